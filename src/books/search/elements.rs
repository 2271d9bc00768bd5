//! Elements and attributes of XML documents in the index: which names a document has, the words in the elements of each
//! name, and short texts stored whole. Texts of attributes of an element of a given name (`book@year`), and of elements
//! in others (`book>title`, with their words), have a position: the number of the element, or of the enclosing one. A
//! conjunction about one element is thus a phrase query whose terms share one position.
//!
//! A query may find too much, but never too little: it finds a document that has the words anywhere in elements of the
//! name, and every document that is too large to index in full. Names, short whole texts and words decide for many
//! documents. A caller can ask which documents are known to match, and reads only the others.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use archive_web::parse::{Elements, WHOLE_BYTES_MAX};
use tantivy::query::{AllQuery, BooleanQuery, EmptyQuery, PhraseQuery, Query, TermQuery, TermSetQuery};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};
use tantivy::{Searcher, Term};

use super::schema::IndexSchema;
use super::terms::phrase;
use super::words::{positions, words};

/// Maximum number of distinct words in elements that are indexed for one document.
pub(crate) const ELEMENT_WORDS_MAX: usize = 50_000;

/// Maximum number of texts and words that are indexed with a position for one document.
pub(crate) const ELEMENT_PLACES_MAX: usize = 200_000;

/// Maximum number of distinct texts of elements or attributes of one name that a query tests.
pub const VALUES_MAX: usize = 1 << 16;

/// Maximum number of combinations of texts for one element. Beyond it, no document is known to match.
pub const COMBINATIONS_MAX: usize = 256;

/// In place of a name: the document is not fully indexed.
const ALL: &str = "*";

/// After a name: elements of this name have words that are not indexed with it.
const NESTS: char = '/';

/// After a name: some texts at this name are not indexed whole.
const PARTIAL: char = '~';

/// Between a name and a word.
const HAS: char = '=';

/// Between a name and a whole text.
const IS: char = '"';

/// The words of an element may not be in order in the text of the document.
const SCATTERED: &str = "?";

/// Before the name of the root element.
const ROOT: char = '/';

/// Before the position of a term that has one; occurs in no document.
const AT: char = '\u{1B}';

/// White space in a whole text, and the characters that replace it, which occur in no document: terms have no spaces.
const SPACES: [(char, char); 4] = [(' ', '\u{1F}'), ('\t', '\u{1E}'), ('\n', '\u{1D}'), ('\r', '\u{1C}')];

/// Whether a text passes, given in lower case; none if lower case cannot decide.
type Passes = dyn Fn(&str) -> Option<bool> + Send + Sync;

/// A test of whole texts.
#[derive(Clone)]
pub struct ValueTest(pub Arc<Passes>);

impl std::fmt::Debug for ValueTest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ValueTest")
    }
}

/// A query by elements.
#[derive(Clone, Debug)]
pub enum ElementQuery {
    /// All of these.
    All(Vec<ElementQuery>),
    /// Any of these.
    Any(Vec<ElementQuery>),
    /// An element or an `@attribute` of this name; an attribute of such an element, as in `book@year`; or an element
    /// within another, as in `book>title`.
    Named(String),
    /// This word in an element or `@attribute` of this name, or of any name.
    Word(Option<String>, String),
    /// This word in an element, an `@attribute` or a `book>title` of this name, if that is known.
    Own(String, String),
    /// These words in a row in the text of a document. Also finds documents whose text may not have all words of
    /// elements in order.
    Row(Vec<String>),
    /// An element of this name with words that are not indexed with it.
    Nests(String),
    /// An element or attribute of this name whose whole text is this, in lower case.
    Whole(String, String),
    /// A whole text for which a test is known to hold or, without `is_known`, one for which it is undecided. With more
    /// than [`VALUES_MAX`] distinct texts, it is undecided for all.
    Values {
        /// The name of the element or attribute.
        of: String,
        /// The test.
        test: ValueTest,
        /// Whether the test must be known to hold; otherwise it must be undecided.
        is_known: bool,
    },
    /// A text that is not indexed whole, in an element or attribute of this name.
    Partial(String),
    /// An element for which all of these are known to hold; each is [`ElementQuery::Whole`], [`ElementQuery::Values`]
    /// or [`ElementQuery::Own`] of `book@year` or `book>title`.
    Same(Vec<ElementQuery>),
    /// A root of this name.
    Root(String),
}

impl ElementQuery {
    /// A test for a whole text; none if the text is not indexed whole.
    #[must_use]
    pub fn whole(name: &str, text: &str) -> Option<Self> {
        let is_indexed = text.len() <= WHOLE_BYTES_MAX && !text.contains(SPACES.map(|(_, sign)| sign));
        is_indexed.then(|| Self::Whole(name.to_owned(), text.to_owned()))
    }
}

/// Whether a name is that of an element alone, or of an attribute on any element.
fn is_single(name: &str) -> bool {
    name.starts_with('@') || !name.contains(['@', '>'])
}

/// Returns the terms of a document for the index. If its elements are not known, the term says that it may have any.
/// The root is the first of the elements; `text_has_all` as in [`archive_web::parse::ParsedDocument`].
#[must_use]
pub fn terms(elements: Option<Vec<Elements>>, text_has_all: bool) -> String {
    let Some(elements) = elements else { return ALL.to_owned() };
    let mut terms = String::new();
    let (mut count, mut places) = (0, 0);
    let mut everywhere = Vec::new();
    let mut is_in_row = text_has_all;
    if let Some(root) = elements.first() {
        let _ = write!(terms, "{ROOT}{} ", root.name);
    }
    for Elements { name, text, nest, mut wholes, is_partial } in elements {
        let _ = write!(terms, "{name} ");
        for (_, sign) in [(nest, NESTS), (is_partial, PARTIAL)].into_iter().filter(|(is_so, _)| *is_so) {
            let _ = write!(terms, "{name}{sign} ");
        }
        let here = positions(&text);
        // Words too long for the index still take up a position in texts.
        is_in_row &= here.last().is_none_or(|(place, _)| *place + 1 == here.len());
        let mut here: Vec<String> = here.into_iter().map(|(_, word)| word).collect();
        here.sort_unstable();
        here.dedup();
        count += here.len();
        for word in &here {
            let _ = write!(terms, "{name}{HAS}{word} ");
        }
        if !name.contains(['@', '>']) {
            everywhere.append(&mut here);
        }
        if is_single(&name) {
            let mut wholes: Vec<_> = wholes.into_iter().map(|(_, whole)| whole).collect();
            wholes.sort_unstable();
            wholes.dedup();
            count += wholes.len();
            for whole in &wholes {
                let _ = write!(terms, "{name}{IS}{} ", without_space(whole));
            }
        } else {
            // Positions of a term must be ascending.
            wholes.sort_unstable();
            wholes.dedup();
            places += wholes.len();
            for (number, whole) in &wholes {
                let _ = write!(terms, "{name}{IS}{}{AT}{number} ", without_space(whole));
                for word in words(whole).iter().filter(|_| name.contains('>')) {
                    let _ = write!(terms, "{name}{HAS}{word}{AT}{number} ");
                    places += 1;
                }
            }
        }
        if count > ELEMENT_WORDS_MAX || places > ELEMENT_PLACES_MAX {
            return ALL.to_owned();
        }
    }
    if !is_in_row {
        let _ = write!(terms, "{SCATTERED} ");
    }
    everywhere.sort_unstable();
    everywhere.dedup();
    for word in everywhere {
        let _ = write!(terms, "{HAS}{word} ");
    }
    terms
}

/// Tokenizer for the terms of a document that have a position, or for those that have none.
#[derive(Clone)]
pub(super) struct Terms {
    pub(super) have_position: bool,
}

/// The terms of a document of one kind.
pub(super) struct TermStream<'a> {
    terms: std::str::Split<'a, char>,
    have_position: bool,
    token: Token,
}

impl Tokenizer for Terms {
    type TokenStream<'a> = TermStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> TermStream<'a> {
        TermStream { terms: text.split(' '), have_position: self.have_position, token: Token::default() }
    }
}

impl TokenStream for TermStream<'_> {
    fn advance(&mut self) -> bool {
        for term in self.terms.by_ref().filter(|term| !term.is_empty()) {
            let (term, position) = match term.split_once(AT) {
                Some((term, position)) => (term, position.parse().ok()),
                None => (term, None),
            };
            if position.is_some() == self.have_position {
                self.token.position = position.unwrap_or_default();
                self.token.text.clear();
                self.token.text.push_str(term);
                return true;
            }
        }
        false
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

fn without_space(text: &str) -> Cow<'_, str> {
    if !text.contains(SPACES.map(|(space, _)| space)) {
        return Cow::Borrowed(text);
    }
    let sign = |c: char| SPACES.iter().find(|(space, _)| *space == c).map_or(c, |(_, sign)| *sign);
    Cow::Owned(text.chars().map(sign).collect())
}

/// Reverses the replacement of spaces.
fn with_space(text: &str) -> Cow<'_, str> {
    if !text.contains(SPACES.map(|(_, sign)| sign)) {
        return Cow::Borrowed(text);
    }
    let space = |c: char| SPACES.iter().find(|(_, sign)| *sign == c).map_or(c, |(space, _)| *space);
    Cow::Owned(text.chars().map(space).collect())
}

/// Returns the engine's query for `query`: documents that may match, or only those known to match.
pub(super) fn compile(
    query: &ElementQuery,
    are_known: bool,
    fields: IndexSchema,
    searcher: &Searcher,
) -> tantivy::Result<Box<dyn Query>> {
    let known = Compiler { fields, searcher }.query(query)?;
    if are_known {
        return Ok(known);
    }
    Ok(Box::new(BooleanQuery::union(vec![known, term(fields, ALL)])))
}

struct Compiler<'a> {
    fields: IndexSchema,
    searcher: &'a Searcher,
}

impl Compiler<'_> {
    fn query(&self, query: &ElementQuery) -> tantivy::Result<Box<dyn Query>> {
        let each = |parts: &[ElementQuery]| -> tantivy::Result<Vec<_>> {
            parts.iter().map(|part| self.query(part)).collect()
        };
        let term = |text: &str| term(self.fields, text);
        Ok(match query {
            ElementQuery::All(parts) | ElementQuery::Any(parts) if parts.len() == 1 => {
                self.query(&parts[0])?
            }
            ElementQuery::All(parts) if parts.is_empty() => Box::new(AllQuery),
            ElementQuery::All(parts) => Box::new(BooleanQuery::intersection(each(parts)?)),
            ElementQuery::Any(parts) if parts.is_empty() => Box::new(EmptyQuery),
            ElementQuery::Any(parts) => Box::new(BooleanQuery::union(each(parts)?)),
            ElementQuery::Named(name) => term(name),
            ElementQuery::Row(words) => {
                let row = phrase(self.fields.body, words.iter().cloned().enumerate(), false);
                Box::new(BooleanQuery::union(vec![row, term(SCATTERED)]))
            }
            ElementQuery::Nests(name) => term(&format!("{name}{NESTS}")),
            ElementQuery::Partial(name) => term(&format!("{name}{PARTIAL}")),
            ElementQuery::Root(name) => term(&format!("{ROOT}{name}")),
            ElementQuery::Whole(..) | ElementQuery::Own(..) => match self.exactly(query) {
                Some(term) => Box::new(TermQuery::new(term, IndexRecordOption::Basic)),
                None => Box::new(EmptyQuery),
            },
            ElementQuery::Same(parts) if parts.len() == 1 => self.query(&parts[0])?,
            ElementQuery::Same(parts) => {
                let combinations = self.combinations(parts)?.into_iter();
                let same = |terms: Vec<Term>| -> Box<dyn Query> {
                    let terms = terms.into_iter().map(|term| (0, term)).collect();
                    Box::new(PhraseQuery::new_with_offset(terms))
                };
                Box::new(BooleanQuery::union(combinations.map(same).collect()))
            }
            ElementQuery::Word(None, word) => term(&format!("{HAS}{word}")),
            ElementQuery::Word(Some(name), word) => {
                let itself = term(&format!("{name}{HAS}{word}"));
                // The text of an element is also text of the elements around it.
                let below = vec![term(&format!("{name}{NESTS}")), term(&format!("{HAS}{word}"))];
                Box::new(BooleanQuery::union(vec![itself, Box::new(BooleanQuery::intersection(below))]))
            }
            ElementQuery::Values { of, test, is_known } => match self.values(of, test, *is_known)? {
                Some(terms) => Box::new(TermSetQuery::new(terms)),
                None if *is_known => Box::new(EmptyQuery),
                None => term(of),
            },
        })
    }

    /// Returns the terms for all of these holding at one position, in each combination; none if there are too many.
    fn combinations(&self, parts: &[ElementQuery]) -> tantivy::Result<Vec<Vec<Term>>> {
        let mut all: Vec<Vec<Term>> = vec![Vec::new()];
        for part in parts {
            let terms = match part {
                ElementQuery::Values { of, test, is_known: true } => self.values(of, test, true)?,
                part => self.exactly(part).map(|term| vec![term]),
            };
            let mut terms = terms.unwrap_or_default();
            terms.sort_unstable();
            terms.dedup();
            terms.retain(|term| term.field() == self.fields.places);
            if all.len().saturating_mul(terms.len()) > COMBINATIONS_MAX {
                return Ok(Vec::new());
            }
            let with =
                |before: &Vec<Term>, term: &Term| [before.as_slice(), std::slice::from_ref(term)].concat();
            all = all.iter().flat_map(|before| terms.iter().map(move |term| with(before, term))).collect();
        }
        all.retain(|terms| terms.len() > 1);
        Ok(all)
    }

    /// Returns the field that has the texts of a name.
    fn field(&self, name: &str) -> Field {
        if is_single(name) { self.fields.elements } else { self.fields.places }
    }

    /// Returns the term of a text or word.
    fn exactly(&self, query: &ElementQuery) -> Option<Term> {
        let (name, text) = match query {
            ElementQuery::Whole(name, text) => (name, format!("{name}{IS}{}", without_space(text))),
            ElementQuery::Own(name, word) => (name, format!("{name}{HAS}{word}")),
            _ => return None,
        };
        Some(Term::from_field_text(self.field(name), &text))
    }

    /// Returns the terms of whole texts that pass a test if `is_known`, or else for which the test is undecided; none
    /// if there are too many distinct texts.
    fn values(&self, of: &str, test: &ValueTest, is_known: bool) -> tantivy::Result<Option<Vec<Term>>> {
        let first = format!("{of}{IS}");
        let (mut read, mut found) = (0, Vec::new());
        for segment in self.searcher.segment_readers() {
            let index = segment.inverted_index(self.field(of))?;
            let mut terms = index.terms().range().ge(first.as_bytes()).into_stream()?;
            while terms.advance() {
                let Some(text) = terms.key().strip_prefix(first.as_bytes()) else { break };
                read += 1;
                if read > VALUES_MAX {
                    return Ok(None);
                }
                let Ok(text) = std::str::from_utf8(text) else { continue };
                if (test.0)(&with_space(text)) == is_known.then_some(true) {
                    found.push(Term::from_field_text(self.field(of), &format!("{first}{text}")));
                }
            }
        }
        Ok(Some(found))
    }
}

fn term(fields: IndexSchema, text: &str) -> Box<dyn Query> {
    Box::new(TermQuery::new(Term::from_field_text(fields.elements, text), IndexRecordOption::Basic))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: usize) -> String {
        let text = (0..words).map(|word| format!("w{word} w{word}\n")).collect();
        terms(Some(vec![Elements { name: "a".to_owned(), text, ..Elements::default() }]), true)
    }

    #[test]
    fn words_are_indexed_once_and_up_to_a_limit() {
        assert_eq!(of(2), "/a a a=w0 a=w1 =w0 =w1 ");
        assert_eq!(of(ELEMENT_WORDS_MAX).matches("a=").count(), ELEMENT_WORDS_MAX);
        assert_eq!((of(ELEMENT_WORDS_MAX + 1).as_str(), terms(None, true).as_str()), (ALL, ALL));
    }

    #[test]
    fn texts_are_indexed_with_their_place_up_to_a_limit() {
        let of = |places: usize| {
            let wholes = (0..places as u32).map(|number| (number, String::new())).collect();
            terms(Some(vec![Elements { name: "a@b".to_owned(), wholes, ..Elements::default() }]), true)
        };
        assert!(of(ELEMENT_PLACES_MAX).ends_with("199999 "));
        assert_eq!(of(ELEMENT_PLACES_MAX + 1), ALL);
    }

    #[test]
    fn whole_texts_have_no_space() {
        let wholes =
            [(3, "b\tc"), (2, ""), (1, "b c"), (2, "")].map(|(number, text)| (number, text.to_owned()));
        let named = |name: &str| {
            let (name, wholes) = (name.to_owned(), wholes.to_vec());
            Elements { name, wholes, ..Elements::default() }
        };
        let terms = terms(Some(["a>d", "a@d", "@d"].map(named).to_vec()), true);
        let of = |have_position| {
            let (mut tokenizer, mut found) = (Terms { have_position }, Vec::new());
            tokenizer
                .token_stream(&terms)
                .process(&mut |token| found.push(format!("{} {}", token.position, token.text)));
            found
        };
        let single = ["0 /a>d", "0 a>d", "0 a@d", "0 @d", "0 @d\"", "0 @d\"b\u{1E}c", "0 @d\"b\u{1F}c"];
        assert_eq!(of(false), single);
        let inner =
            ["1 a>d\"b\u{1F}c", "1 a>d=b", "1 a>d=c", "2 a>d\"", "3 a>d\"b\u{1E}c", "3 a>d=b", "3 a>d=c"];
        let attribute = ["1 a@d\"b\u{1F}c", "2 a@d\"", "3 a@d\"b\u{1E}c"];
        assert_eq!(of(true), [inner.as_slice(), &attribute].concat());
        assert!(ElementQuery::whole("a", "b\u{1F}c").is_none());
        assert!(ElementQuery::whole("a", &"x".repeat(WHOLE_BYTES_MAX)).is_some());
        assert!(ElementQuery::whole("a", &"x".repeat(WHOLE_BYTES_MAX + 1)).is_none());
    }
}
