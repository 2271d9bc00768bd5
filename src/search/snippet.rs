//! The part of a text that answers a search best.

use std::collections::BTreeMap;
use std::ops::Range;

use tantivy::query::Bm25StatisticsProvider as _;
use tantivy::tokenizer::TokenStream as _;
use xxhash_rust::xxh3::xxh3_64;

use super::schema::Fields;
use super::view::View;
use super::words::{analyzer, words};
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

/// A text and its words: finding those is what snippets cost.
#[derive(Debug, Default)]
pub struct Text {
    text: Box<str>,
    words: Box<[Word]>,
}

/// A word, by a part of its fingerprint. Its bytes begin some after the end of the one before; those of a word of no bytes only
/// add to what lies between.
#[derive(Clone, Copy, Debug)]
struct Word {
    mark: u16,
    after: u8,
    bytes: u8,
}

/// Words that are marked in texts, with what each is worth.
#[derive(Clone, Debug)]
pub struct Marked(Vec<(u16, String, f32)>);

fn mark(word: &str) -> u16 {
    xxh3_64(word.as_bytes()) as u16
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        let (mut found, mut analyzer, mut end) = (Vec::new(), analyzer(), 0);
        analyzer.token_stream(&text).process(&mut |token| {
            // A word that is mostly soft hyphens is not marked.
            let Ok(bytes) = u8::try_from(token.offset_to - token.offset_from) else { return };
            let mut after = token.offset_from - end;
            while after > u8::MAX.into() {
                found.push(Word { mark: 0, after: u8::MAX, bytes: 0 });
                after -= usize::from(u8::MAX);
            }
            found.push(Word { mark: mark(&token.text), after: after as u8, bytes });
            end = token.offset_to;
        });
        Self { text: text.into(), words: found.into() }
    }
}

impl Text {
    /// What it takes of memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.text.len() + size_of_val(&*self.words)
    }

    /// The words, each with its place in bytes.
    fn words(&self) -> impl Iterator<Item = (u16, Range<usize>)> {
        let mut end = 0;
        let placed = self.words.iter().map(move |word| {
            let start = end + usize::from(word.after);
            end = start + usize::from(word.bytes);
            (word.mark, start..end)
        });
        placed.filter(|(_, place)| !place.is_empty())
    }

    fn part(&self, place: Range<usize>) -> &str {
        self.text.get(place).unwrap_or_default()
    }
}

impl View<'_> {
    /// The words that are marked in texts that `query` finds. The index has no texts: they come from the archive.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn marked(&self, query: &TextQuery) -> Result<Marked, Error> {
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
        Ok(Marked(weights.into_iter().map(|(word, weight)| (mark(&word), word, weight)).collect()))
    }
}

/// A stretch of a text.
#[derive(Default)]
struct Stretch {
    place: Range<usize>,
    worth: f32,
    found: Vec<Range<usize>>,
}

impl Marked {
    /// The part of a text that answers a search best, the first of several; none when nothing in it does.
    #[must_use]
    pub fn snippet(&self, text: &Text) -> Option<Snippet> {
        let (mut best, mut stretch) = (Stretch::default(), Stretch::default());
        for (mark, place) in text.words() {
            if place.end - stretch.place.start > SNIPPET_CHARACTERS_MAX {
                best = better(best, stretch);
                stretch = Stretch { place: place.clone(), ..Stretch::default() };
            }
            stretch.place.end = place.end;
            if let Some(worth) = self.worth(mark, text.part(place.clone())) {
                stretch.worth += worth;
                stretch.found.push(place);
            }
        }
        let best = better(best, stretch);
        let start = best.place.start;
        (best.worth > 0.0).then(|| Snippet {
            text: text.part(best.place).to_owned(),
            found: best.found.into_iter().map(|word| word.start - start..word.end - start).collect(),
        })
    }

    /// What a word of a text is worth; none if it is not marked.
    fn worth(&self, mark: u16, word: &str) -> Option<f32> {
        // Two words may have the same mark.
        let marked =
            |(other, wanted, _): &&(u16, String, f32)| *other == mark && words(word) == [wanted.as_str()];
        self.0.iter().find(marked).map(|(_, _, worth)| *worth)
    }
}

fn better(best: Stretch, other: Stretch) -> Stretch {
    if other.worth > best.worth { other } else { best }
}
