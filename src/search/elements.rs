//! Elements and attributes of XML documents in the index: which names a document has, and the words in those of each name.
//!
//! What is found is more than what is asked for, never less: a document that has the words in elements of the name somewhere, and
//! every document of which too much would have to be said. The caller reads what is found. Names and short texts as a whole
//! decide: which documents are known to have these can be asked, too.

use std::borrow::Cow;
use std::fmt::Write as _;

use tantivy::Term;
use tantivy::query::{AllQuery, BooleanQuery, EmptyQuery, Query, TermQuery};
use tantivy::schema::IndexRecordOption;

use super::schema::Fields;
use super::words::words;
use crate::parse::{Elements, WHOLE_BYTES_MAX};

/// Different words in elements that are indexed for one document.
pub const ELEMENT_WORDS_MAX: usize = 50_000;

/// In place of a name: a document that is not fully indexed.
const ALL: &str = "*";

/// After a name: such elements are nested.
const NESTS: char = '/';

/// Between a name and a word.
const HAS: char = '=';

/// Between a name and a whole text.
const IS: char = '"';

/// Before the name of the root.
const ROOT: char = '/';

/// White space in a whole text, and characters that no document has in its place: terms have no space.
const SPACES: [(char, char); 4] = [(' ', '\u{1F}'), ('\t', '\u{1E}'), ('\n', '\u{1D}'), ('\r', '\u{1C}')];

/// What documents are looked for by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElementQuery {
    /// All of these.
    All(Vec<ElementQuery>),
    /// Any of these.
    Any(Vec<ElementQuery>),
    /// An element, or an `@attribute`, of this name; or such an attribute of such an element, as in `book@year`.
    Named(String),
    /// This word in an element, or in an `@attribute`, of this name or of any.
    Word(Option<String>, String),
    /// An element of this name with others in it.
    Nests(String),
    /// An element without others in it, or an attribute, of this name whose text is this as a whole, in small letters.
    Whole(String, String),
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

/// The terms of a document, as the index takes them; of one whose elements are not known, that it may have any. The root is
/// the first of the elements.
#[must_use]
pub fn terms(elements: Option<Vec<Elements>>) -> String {
    let Some(elements) = elements else { return ALL.to_owned() };
    let mut terms = String::new();
    let mut count = 0;
    let mut everywhere = Vec::new();
    if let Some(root) = elements.first() {
        let _ = write!(terms, "{ROOT}{} ", root.name);
    }
    for Elements { name, text, nest, mut wholes } in elements {
        let _ = write!(terms, "{name} ");
        if nest {
            let _ = write!(terms, "{name}{NESTS} ");
        }
        let mut here = words(&text);
        here.sort_unstable();
        here.dedup();
        count += here.len();
        for word in &here {
            let _ = write!(terms, "{name}{HAS}{word} ");
        }
        if !name.contains('@') {
            everywhere.append(&mut here);
        }
        wholes.sort_unstable();
        wholes.dedup();
        count += wholes.len();
        for whole in &wholes {
            let _ = write!(terms, "{name}{IS}{} ", without_space(whole));
        }
    }
    if count > ELEMENT_WORDS_MAX {
        return ALL.to_owned();
    }
    everywhere.sort_unstable();
    everywhere.dedup();
    for word in everywhere {
        let _ = write!(terms, "{HAS}{word} ");
    }
    terms
}

fn without_space(text: &str) -> Cow<'_, str> {
    if !text.contains(SPACES.map(|(space, _)| space)) {
        return Cow::Borrowed(text);
    }
    let sign = |c: char| SPACES.iter().find(|(space, _)| *space == c).map_or(c, |(_, sign)| *sign);
    Cow::Owned(text.chars().map(sign).collect())
}

/// The engine's query for `query`: documents that may match, or only those that are known to.
pub(super) fn compile(query: &ElementQuery, are_known: bool, fields: Fields) -> Box<dyn Query> {
    let known = known(query, fields);
    if are_known {
        return known;
    }
    Box::new(BooleanQuery::union(vec![known, term(fields, ALL)]))
}

fn known(query: &ElementQuery, fields: Fields) -> Box<dyn Query> {
    let each = |parts: &[ElementQuery]| parts.iter().map(|part| known(part, fields)).collect::<Vec<_>>();
    match query {
        ElementQuery::All(parts) if parts.is_empty() => Box::new(AllQuery),
        ElementQuery::All(parts) => Box::new(BooleanQuery::intersection(each(parts))),
        ElementQuery::Any(parts) if parts.is_empty() => Box::new(EmptyQuery),
        ElementQuery::Any(parts) => Box::new(BooleanQuery::union(each(parts))),
        ElementQuery::Named(name) => term(fields, name),
        ElementQuery::Nests(name) => term(fields, &format!("{name}{NESTS}")),
        ElementQuery::Whole(name, text) => term(fields, &format!("{name}{IS}{}", without_space(text))),
        ElementQuery::Root(name) => term(fields, &format!("{ROOT}{name}")),
        ElementQuery::Word(None, word) => term(fields, &format!("{HAS}{word}")),
        ElementQuery::Word(Some(name), word) => {
            let itself = term(fields, &format!("{name}{HAS}{word}"));
            // The text of an element is also in those around it.
            let below = vec![term(fields, &format!("{name}{NESTS}")), term(fields, &format!("{HAS}{word}"))];
            Box::new(BooleanQuery::union(vec![itself, Box::new(BooleanQuery::intersection(below))]))
        }
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
        terms(Some(vec![Elements { name: "a".to_owned(), text, ..Elements::default() }]))
    }

    #[test]
    fn words_are_indexed_once_and_up_to_a_limit() {
        assert_eq!(of(2), "/a a a=w0 a=w1 =w0 =w1 ");
        assert_eq!(of(ELEMENT_WORDS_MAX).matches("a=").count(), ELEMENT_WORDS_MAX);
        assert_eq!((of(ELEMENT_WORDS_MAX + 1).as_str(), terms(None).as_str()), (ALL, ALL));
    }

    #[test]
    fn whole_texts_have_no_space() {
        let wholes = ["b\tc", "", "b c", ""].map(str::to_owned).to_vec();
        let terms = terms(Some(vec![Elements { name: "a@d".to_owned(), wholes, ..Elements::default() }]));
        assert_eq!(terms, "/a@d a@d a@d\" a@d\"b\u{1E}c a@d\"b\u{1F}c ");
        assert_eq!(ElementQuery::whole("a", "b\u{1F}c"), None);
        assert!(ElementQuery::whole("a", &"x".repeat(WHOLE_BYTES_MAX)).is_some());
        assert_eq!(ElementQuery::whole("a", &"x".repeat(WHOLE_BYTES_MAX + 1)), None);
    }
}
