//! Elements and attributes of XML documents in the index: which names a document has, and which words stand in those of a name.
//!
//! What is found is more than what is asked for, never less: a document that has the words in elements of the name somewhere, and
//! every document of which too much would have to be said. Whoever asks reads what is found.

use std::fmt::Write as _;

use tantivy::Term;
use tantivy::query::{AllQuery, BooleanQuery, EmptyQuery, Query, TermQuery};
use tantivy::schema::IndexRecordOption;

use super::schema::Fields;
use super::words::words;
use crate::parse::Elements;

/// Different words in elements that are told of one document.
pub const ELEMENT_WORDS_MAX: usize = 50_000;

/// In place of a name: a document of which not all is told.
const ALL: &str = "*";

/// After a name: elements stand in one.
const NESTS: char = '/';

/// Between a name and a word.
const HAS: char = '=';

/// What documents are looked for by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElementQuery {
    /// All of these.
    All(Vec<ElementQuery>),
    /// Any of these.
    Any(Vec<ElementQuery>),
    /// An element, or an `@attribute`, of this name.
    Named(String),
    /// This word in an element, or in an `@attribute`, of this name or of any.
    Word(Option<String>, String),
}

/// The terms of a document, as the index takes them; of one whose elements are not known, that it may have any.
#[must_use]
pub fn terms(elements: Option<Vec<Elements>>) -> String {
    let Some(elements) = elements else { return ALL.to_owned() };
    let mut terms = String::new();
    let mut count = 0;
    let mut everywhere = Vec::new();
    for Elements { name, text, nest } in elements {
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
        if !name.starts_with('@') {
            everywhere.append(&mut here);
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

/// The engine's query for `query`.
pub(super) fn compile(query: &ElementQuery, fields: Fields) -> Box<dyn Query> {
    let told = told(query, fields);
    Box::new(BooleanQuery::union(vec![told, term(fields, ALL)]))
}

fn told(query: &ElementQuery, fields: Fields) -> Box<dyn Query> {
    let each = |parts: &[ElementQuery]| parts.iter().map(|part| told(part, fields)).collect::<Vec<_>>();
    match query {
        ElementQuery::All(parts) if parts.is_empty() => Box::new(AllQuery),
        ElementQuery::All(parts) => Box::new(BooleanQuery::intersection(each(parts))),
        ElementQuery::Any(parts) if parts.is_empty() => Box::new(EmptyQuery),
        ElementQuery::Any(parts) => Box::new(BooleanQuery::union(each(parts))),
        ElementQuery::Named(name) => term(fields, name),
        ElementQuery::Word(None, word) => term(fields, &format!("{HAS}{word}")),
        ElementQuery::Word(Some(name), word) => {
            let itself = term(fields, &format!("{name}{HAS}{word}"));
            // What stands in an element stands in those around it, too.
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
        terms(Some(vec![Elements { name: "a".to_owned(), text, nest: false }]))
    }

    #[test]
    fn words_are_told_once_and_not_without_end() {
        assert_eq!(of(2), "a a=w0 a=w1 =w0 =w1 ");
        assert_eq!(of(ELEMENT_WORDS_MAX).matches("a=").count(), ELEMENT_WORDS_MAX);
        assert_eq!((of(ELEMENT_WORDS_MAX + 1).as_str(), terms(None).as_str()), (ALL, ALL));
    }
}
