//! Compiles a search into a query of the engine.

use tantivy::Term;
use tantivy::query::{BooleanQuery, BoostQuery, PhrasePrefixQuery, PhraseQuery, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption};

use super::schema::IndexSchema;
use super::words::positions;
use super::{TextField, TextQuery};

/// Weight of a word in the title and in the URL, relative to the body.
const TITLE_BOOST: f32 = 2.0;
const URL_BOOST: f32 = 0.5;

/// Maximum number of dictionary words that one `word*` stands for.
const EXPANSIONS_MAX: u32 = 50_000;

/// Returns the engine's query for `query`; it finds nothing if there is no word to search for.
pub(crate) fn compile(query: &TextQuery, fields: IndexSchema) -> Box<dyn Query> {
    let mut parts: Vec<Box<dyn Query>> =
        query.texts.iter().map(|text| found_in(query.field, text, fields)).collect();
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            Box::new(if query.all { BooleanQuery::intersection(parts) } else { BooleanQuery::union(parts) })
        }
        None => Box::new(tantivy::query::EmptyQuery),
    }
}

/// Finds `text` in a field, or in the title, the body or the URL.
fn found_in(field: Option<TextField>, text: &str, fields: IndexSchema) -> Box<dyn Query> {
    let words = positions(text);
    let prefix = ends_in_prefix(text);
    if let Some(field) = field {
        return phrase(fields.of(field), words.into_iter(), prefix);
    }
    let weights = [(fields.title, TITLE_BOOST), (fields.body, 1.0), (fields.url, URL_BOOST)];
    let parts = weights.into_iter().map(|(field, boost)| {
        let query = phrase(field, words.iter().cloned(), prefix);
        Box::new(BoostQuery::new(query, boost)) as Box<dyn Query>
    });
    Box::new(BooleanQuery::union(parts.collect()))
}

/// Whether the last word of `text` is a prefix.
pub(super) fn ends_in_prefix(text: &str) -> bool {
    let trimmed = text.trim_end();
    trimmed.strip_suffix('*').is_some_and(|rest| rest.ends_with(|c: char| c.is_alphanumeric()))
}

/// Finds words in a row, each with its position.
pub(super) fn phrase(
    field: Field,
    words: impl Iterator<Item = (usize, String)>,
    prefix: bool,
) -> Box<dyn Query> {
    let mut terms: Vec<(usize, Term)> =
        words.map(|(place, word)| (place, Term::from_field_text(field, &word))).collect();
    match terms.pop() {
        None => Box::new(tantivy::query::EmptyQuery),
        Some(last) if prefix => {
            terms.push(last);
            let mut query = PhrasePrefixQuery::new_with_offset(terms);
            query.set_max_expansions(EXPANSIONS_MAX);
            Box::new(query)
        }
        Some((_, only)) if terms.is_empty() => Box::new(TermQuery::new(only, IndexRecordOption::WithFreqs)),
        Some(last) => {
            terms.push(last);
            Box::new(PhraseQuery::new_with_offset(terms))
        }
    }
}
