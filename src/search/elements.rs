//! Elements and attributes of XML documents in the index: which names a document has, the words in those of each name, and short texts
//! as a whole. Those of attributes of elements of one name, and of elements in others, these with their words, have a position, the number
//! of the element or of that around it: so what has to be so of one element is looked for as a phrase whose words stand in one place.
//!
//! What is found is more than what is asked for, never less: a document that has the words in elements of the name somewhere, and
//! every document of which too much would have to be said. Names, short texts as a whole and words decide in many documents: which are
//! known to have these can be asked, too, and the caller reads the others.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use tantivy::query::{AllQuery, BooleanQuery, EmptyQuery, PhraseQuery, Query, TermQuery, TermSetQuery};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};
use tantivy::{Searcher, Term};

use super::schema::Fields;
use super::terms::phrase;
use super::words::{positions, words};
use crate::parse::{Elements, WHOLE_BYTES_MAX};

/// Different words in elements that are indexed for one document.
pub const ELEMENT_WORDS_MAX: usize = 50_000;

/// Texts and words that are indexed with their position for one document.
pub const ELEMENT_PLACES_MAX: usize = 200_000;

/// Different texts of elements or attributes of one name that a query tests.
pub const VALUES_MAX: usize = 1 << 16;

/// Combinations of texts that one element may have. Of more, nothing is known.
pub const COMBINATIONS_MAX: usize = 256;

/// In place of a name: a document that is not fully indexed.
const ALL: &str = "*";

/// After a name: there are words in such elements that are not indexed with it.
const NESTS: char = '/';

/// After a name: there are texts in such places that are not indexed as a whole.
const PARTIAL: char = '~';

/// Between a name and a word.
const HAS: char = '=';

/// Between a name and a whole text.
const IS: char = '"';

/// A document in whose text the words of an element may not stand in their order.
const SCATTERED: &str = "?";

/// Before the name of the root.
const ROOT: char = '/';

/// Before the position of a term that has one; no document has it.
const AT: char = '\u{1B}';

/// White space in a whole text, and characters that no document has in its place: terms have no space.
const SPACES: [(char, char); 4] = [(' ', '\u{1F}'), ('\t', '\u{1E}'), ('\n', '\u{1D}'), ('\r', '\u{1C}')];

/// Whether a text in small letters passes; none where small letters do not tell.
type Passes = dyn Fn(&str) -> Option<bool> + Send + Sync;

/// A test of whole texts.
#[derive(Clone)]
pub struct ValueTest(pub Arc<Passes>);

impl std::fmt::Debug for ValueTest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ValueTest")
    }
}

/// What documents are looked for by.
#[derive(Clone, Debug)]
pub enum ElementQuery {
    /// All of these.
    All(Vec<ElementQuery>),
    /// Any of these.
    Any(Vec<ElementQuery>),
    /// An element, or an `@attribute`, of this name; or such an attribute of such an element, as in `book@year`, or an element in
    /// another, as in `book>title`.
    Named(String),
    /// This word in an element, or in an `@attribute`, of this name or of any.
    Word(Option<String>, String),
    /// This word in an element, an `@attribute` or a `book>title` of this name, if that is known.
    Own(String, String),
    /// These words in a row in the text, which has those of all elements, or may have.
    Row(Vec<String>),
    /// An element of this name with words that are not indexed with it.
    Nests(String),
    /// An element, or an attribute, of this name whose text is this as a whole, in small letters.
    Whole(String, String),
    /// Such a text for which a test holds, or one of which that is not known. With more than [`VALUES_MAX`] different texts it is not
    /// known of any.
    Values {
        /// The name.
        of: String,
        /// The test.
        test: ValueTest,
        /// Whether it is known to hold.
        is_known: bool,
    },
    /// A text that is not indexed as a whole, in an element or an attribute of this name.
    Partial(String),
    /// An element for which all of these are known to hold: each is [`ElementQuery::Whole`], [`ElementQuery::Values`] or
    /// [`ElementQuery::Own`] of `book@year` or `book>title`.
    Same(Vec<ElementQuery>),
    /// A root of this name.
    Root(String),
}

impl ElementQuery {
    /// What has a text as a whole, if the index knows of such texts.
    #[must_use]
    pub fn whole(name: &str, text: &str) -> Option<Self> {
        let is_indexed = text.len() <= WHOLE_BYTES_MAX && !text.contains(SPACES.map(|(_, sign)| sign));
        is_indexed.then(|| Self::Whole(name.to_owned(), text.to_owned()))
    }
}

/// Whether a name is that of an element alone, or of an attribute of any.
fn is_single(name: &str) -> bool {
    name.starts_with('@') || !name.contains(['@', '>'])
}

/// The terms of a document, as the index takes them; of one whose elements are not known, that it may have any. The root is
/// the first of the elements, and `text_has_all` as in [`crate::parse::Parsed`].
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
        // Words that are too long for the index have a place in texts.
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
            // Positions of a term have to rise.
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

/// Takes the terms of a document that have a position, or those that have none.
#[derive(Clone)]
pub(super) struct Terms {
    pub(super) have_position: bool,
}

/// Some terms of a document.
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

/// The text that was written as this.
fn with_space(text: &str) -> Cow<'_, str> {
    if !text.contains(SPACES.map(|(_, sign)| sign)) {
        return Cow::Borrowed(text);
    }
    let space = |c: char| SPACES.iter().find(|(_, sign)| *sign == c).map_or(c, |(space, _)| *space);
    Cow::Owned(text.chars().map(space).collect())
}

/// The engine's query for `query` in an index: documents that may match, or only those that are known to.
pub(super) fn compile(
    query: &ElementQuery,
    are_known: bool,
    fields: Fields,
    searcher: &Searcher,
) -> tantivy::Result<Box<dyn Query>> {
    let known = Compiler { fields, searcher }.query(query)?;
    if are_known {
        return Ok(known);
    }
    Ok(Box::new(BooleanQuery::union(vec![known, term(fields, ALL)])))
}

struct Compiler<'a> {
    fields: Fields,
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
                // The text of an element is also in those around it.
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

    /// The terms that say that all of these hold in one place, in each combination of them; none if there are too many.
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

    /// The field that has the texts of a name.
    fn field(&self, name: &str) -> Field {
        if is_single(name) { self.fields.elements } else { self.fields.places }
    }

    /// The term of a text or word.
    fn exactly(&self, query: &ElementQuery) -> Option<Term> {
        let (name, text) = match query {
            ElementQuery::Whole(name, text) => (name, format!("{name}{IS}{}", without_space(text))),
            ElementQuery::Own(name, word) => (name, format!("{name}{HAS}{word}")),
            _ => return None,
        };
        Some(Term::from_field_text(self.field(name), &text))
    }

    /// The terms of whole texts that pass a test, or of which it is not known whether they do; none if there are too many different
    /// ones.
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

fn term(fields: Fields, text: &str) -> Box<dyn Query> {
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
