//! The full-text index: which pages have which words in their newest version, and, where the archive wants that, in older ones.
//!
//! One [`Writer`] at a time, in the crawl, adds pages and commits them with a watermark; any number of [`Reader`]s, in
//! any process, see the last commit. The index is derived: it can be removed and rebuilt from the archive, and what a
//! crash took from it is added again from the watermark on. It holds no texts, only words and where they stand.
//!
//! What a [`TextQuery`] finds:
//! * `open access`: the words next to one another in this order, in the title, the body or the URL;
//! * `open acc*`: the same, where the last word only has to begin like this;
//! * several texts: pages with all of them, or with any.
//!
//! Large and small letters and accents on Latin letters make no difference; see [`words`] for what a word is.

mod collect;
pub mod elements;
mod error;
mod files;
mod find;
mod labels;
mod phrase;
mod reader;
mod schema;
mod snippet;
mod statistics;
mod structures;
mod terms;
mod versions;
mod view;
mod words;
mod writer;

#[cfg(test)]
mod tests;

pub use error::Error;
pub use files::{check, is_unsealed};
pub use find::{Evidences, FIND_WORDS_MAX, Find, Fit, Found, most_like};
pub use phrase::Phrase;
pub use reader::{Commit, Reader, Readers};
pub use snippet::{Marked, SNIPPET_CHARACTERS_MAX, Snippet};
pub use statistics::Statistics;
pub use structures::Structures;
pub use versions::{
    PagesAsOf, VERSIONS_FOLDER, VERSIONS_NAME, is_searched, keep_versions, newest_searched, older_versions,
};
pub use view::View;
pub use words::{WORD_BYTES_MAX, words};
pub use writer::{Document, Options, TEXT_BYTES_MAX, Writer};

use std::path::Path;

use archive_storage::UrlId;

/// The folder of the index in an archive's folder. The index names pages by their numbers in the state, so it lies within
/// the state's folder: a rebuild puts both in place as one.
pub const FOLDER: &str = "state/fulltext";

/// The name of that folder in the state's folder.
pub const NAME: &str = "fulltext";

/// Makes a copy of the index in `from` without some pages: nothing of them is in its files.
///
/// # Errors
/// When the index cannot be read or the copy not be written.
pub fn copy_without(
    from: &Path,
    to: &Path,
    pages: impl IntoIterator<Item = UrlId>,
    options: Options,
) -> Result<(), Error> {
    files::share(from, to).map_err(|source| Error::of(to, source.into()))?;
    let mut writer = Writer::open(to, options)?;
    pages.into_iter().for_each(|page| writer.remove(page));
    writer.commit(writer.watermark())?;
    writer.expunge()?;
    writer.close()
}

/// Puts the files of the index in `from`, as of one commit, into the folder `to`, even during writes; nothing if there is
/// no index.
///
/// # Errors
/// When the index cannot be read or the folder not be written.
pub fn snapshot(from: &Path, to: &Path) -> Result<(), Error> {
    error::guarded(from, || files::snapshot(from, to).map_err(|source| Error::of(from, source)))
}

/// What to search for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextQuery {
    /// Whether a page needs all of the texts, or only one.
    pub all: bool,
    /// Phrases; a last word that ends in `*` is the beginning of one.
    pub texts: Vec<String>,
}

impl TextQuery {
    /// A search for one phrase.
    pub fn phrase(text: impl Into<String>) -> Self {
        Self { all: true, texts: vec![text.into()] }
    }
}
