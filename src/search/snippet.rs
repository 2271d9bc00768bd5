//! The part of a text that answers a search best.

use std::collections::BTreeMap;
use std::ops::Range;

use tantivy::query::Bm25StatisticsProvider as _;
use tantivy::snippet::SnippetGenerator;

use super::schema::Fields;
use super::view::View;
use super::words::analyzer;
use super::{Error, TextQuery, terms};

/// Characters of a snippet.
pub const SNIPPET_CHARACTERS_MAX: usize = 200;

/// The part of a text that answers a search best.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snippet {
    /// The part, at most [`SNIPPET_CHARACTERS_MAX`] characters.
    pub text: String,
    /// Where in it the words searched for stand, in bytes.
    pub found: Vec<Range<usize>>,
}

impl View<'_> {
    /// The part of `text` that answers `query` best; none when nothing in it does. The index has no texts: they come
    /// from the archive.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn snippet(&self, query: &TextQuery, text: &str) -> Result<Option<Snippet>, Error> {
        let (_, fields) = Fields::schema(false);
        let (whole, query) = (self.whole(), terms::compile(query, fields));
        let mut terms = Vec::new();
        query.query_terms(&mut |term, _| terms.extend((term.field() == fields.body).then_some(term)));
        let mut weights = BTreeMap::new();
        for term in terms {
            let frequency = whole.doc_freq(term).map_err(|source| Error::of(self.folder(), source))?;
            let word = term.value().as_str().filter(|_| frequency > 0).map(str::to_owned);
            weights.extend(word.map(|word| (word, 1.0 / (1.0 + frequency as f32))));
        }
        let generator = SnippetGenerator::new(weights, analyzer(), fields.body, SNIPPET_CHARACTERS_MAX);
        let snippet = generator.snippet(text);
        let found = snippet.highlighted().to_vec();
        Ok((!snippet.is_empty()).then(|| Snippet { text: snippet.fragment().to_owned(), found }))
    }
}
