//! A web archiving crawler that ranks what it finds, keeps every version, and refreshes it.
//!
//! This package is the top floor: [`jobs`] are what is done with a whole archive, [`serve`] answers over HTTP, and the
//! program's command line is above both. What they do is in the crates below; each uses only those after it:
//!
//! [`archive_peers`], [`archive_replay`], [`archive_crawl`], [`archive_vault`], [`archive_ask`], [`archive_choose`],
//! [`archive_books`], [`archive_web`], [`archive_math`], [`archive_base`], [`archive_storage`].

pub mod jobs;
pub mod serve;
