//! Questions to an archive: the query language ([`query`]), searches for words ([`find`]), lists for librarians and what they
//! decide ([`review`]), and pages that somebody wants to hear of ([`watch`]).
//!
//! # Invariants
//! * A query that was understood fails only if the archive cannot be read, never because of what its writer meant.
//! * The same question to the same archive has the same answer: ties are broken by id.
//! * Nothing is answered that the asking role may not know.
//!
//! ```
//! use archive_ask::query::end_of;
//!
//! let after = end_of("2026-02").unwrap();
//! assert!(after > end_of("2026-02-27").unwrap() && after == end_of("2026-02-28").unwrap());
//! assert!(end_of("the other day").is_none());
//! ```

pub mod find;
pub mod query;
pub mod review;
pub mod watch;

archive_base::classified! { review::learned::LearnError, watch::WatchError }
