//! The full-text index: the words of each page's newest version and, if the archive wants that, of older versions.
//!
//! At most one [`IndexWriterOwner`], in the crawl, adds pages and commits them with a watermark; any number of [`SearchReader`]s, in
//! any process, see the last commit. The index is derived data: it can be removed and rebuilt from the archive. Pages
//! lost in a crash are added again from the watermark on. The index stores no texts, only words and their positions.
//!
//! What a [`TextQuery`] finds:
//! * `open access`: these words next to each other, in this order, in the title, the body or the URL;
//! * `open acc*`: the same, but the last word is a prefix;
//! * several texts: pages with all of them, or with any.
//!
//! Case and accents on Latin letters are ignored, and so are the Arabic article and Korean particles; see [`words`] for the definition of a word.

mod arabic;
mod collect;
pub mod copies;
mod directory;
pub mod elements;
mod error;
mod evidence;
mod files;
mod find;
mod forms;
mod labels;
mod lacking;
mod needs;
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

pub use error::SearchError;
pub use files::{check, is_unsealed};
pub use find::{Evidences, FIND_WORDS_MAX, FieldPhrase, Find, Fit, FoundPage, most_like};
pub(crate) use forms::language_term;
pub use needs::Needs;
pub(crate) use needs::terms as sign_terms;
pub use phrase::Phrase;
pub use reader::{Readers, SearchReader, commit_of};
pub use snippet::{Marked, SNIPPET_CHARACTERS_MAX, Snippet};
pub use statistics::Statistics;
pub use structures::Structures;
pub use versions::{PagesAsOf, VERSIONS_FOLDER, VERSIONS_NAME, is_searched, keep_versions};
pub(crate) use versions::{newest_searched, older_versions};
pub use view::IndexView;
pub(crate) use words::WORD_BYTES_MAX;
pub use words::words;
pub use writer::{IndexOptions, IndexWriterOwner, IndexedVersion, TEXT_BYTES_MAX};

use std::path::Path;

use archive_storage::UrlId;

/// Folder of the index in an archive's folder. The index names pages by their numbers in the state, so it lies in the
/// state's folder: a rebuild replaces both in one step.
pub const FOLDER: &str = "state/fulltext";

/// Name of that folder in the state's folder.
pub const NAME: &str = "fulltext";

/// Copies the index in `from` without some pages; no file of the copy has any data of them.
///
/// # Errors
/// When the index cannot be read or the copy cannot be written.
pub fn copy_without(
    from: &Path,
    to: &Path,
    pages: impl IntoIterator<Item = UrlId>,
    options: IndexOptions,
) -> Result<(), SearchError> {
    files::share(from, to).map_err(|source| SearchError::of(to, source.into()))?;
    let mut writer = IndexWriterOwner::open(to, options)?;
    pages.into_iter().for_each(|page| writer.remove(page));
    writer.commit(writer.watermark())?;
    writer.expunge()?;
    writer.close()
}

/// Copies the files of the index in `from`, as of one commit, into the folder `to`, even while the index is written to.
/// Does nothing if there is no index.
///
/// # Errors
/// When the index cannot be read or the folder cannot be written.
pub fn snapshot(from: &Path, to: &Path) -> Result<(), SearchError> {
    error::guarded(from, || files::snapshot(from, to).map_err(|source| SearchError::of(from, source)))
}

/// A text of a page that can be searched by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextField {
    /// The title.
    Title,
    /// The description, and the headline by which the page is shared.
    Description,
    /// The keywords.
    Keywords,
    /// The authors.
    Author,
}

/// What to search for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextQuery {
    /// Where; `None` for title, body and URL.
    pub field: Option<TextField>,
    /// Whether a page must have all of the texts, or just one.
    pub all: bool,
    /// Phrases; a last word that ends in `*` is a prefix.
    pub texts: Vec<String>,
}

impl TextQuery {
    /// A search for one phrase.
    pub fn phrase(text: impl Into<String>) -> Self {
        Self { field: None, all: true, texts: vec![text.into()] }
    }
}
