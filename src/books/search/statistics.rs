//! Word statistics of indexes for BM25, exchanged between machines that search their indexes as one.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tantivy::Term;
use tantivy::query::{Bm25StatisticsProvider, EnableScoring};
use tantivy::schema::Field;

use super::error::SearchError;
use super::find::{Find, wanted};
use super::schema::IndexSchema;
use super::view::{IndexView, Searchers};
use super::{TextQuery, terms};

/// Statistics of one or more indexes, limited to what a search needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statistics {
    /// Number of documents, including removed ones that are not merged away yet, as the engine counts.
    documents: u64,
    /// Number of documents without removed ones.
    alive: u64,
    /// Number of words of all documents, by field.
    tokens: BTreeMap<u32, u64>,
    /// Number of documents with a word, by field and word.
    words: BTreeMap<u32, BTreeMap<String, u64>>,
}

impl Statistics {
    /// Number of documents that are not removed.
    pub(super) fn alive(&self) -> u64 {
        self.alive
    }

    /// Adds the statistics of another index.
    pub fn add(&mut self, other: Self) {
        let add = |count: &mut u64, more: u64| *count = count.saturating_add(more);
        add(&mut self.documents, other.documents);
        add(&mut self.alive, other.alive);
        other.tokens.into_iter().for_each(|(field, more)| add(self.tokens.entry(field).or_default(), more));
        for (field, words) in other.words {
            let known = self.words.entry(field).or_default();
            words.into_iter().for_each(|(word, more)| add(known.entry(word).or_default(), more));
        }
    }
}

/// Reported numbers may be wrong, and the engine panics if a word occurs in more documents than there are.
impl Bm25StatisticsProvider for Statistics {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        Ok(self.tokens.get(&field.field_id()).copied().unwrap_or_default())
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.documents)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        let words = self.words.get(&term.field().field_id());
        let found = words.zip(term.value().as_str()).and_then(|(words, word)| words.get(word));
        Ok(found.copied().unwrap_or_default().min(self.documents))
    }
}

/// Indexes that record which statistics are requested.
struct Noting<'a> {
    of: Searchers<'a>,
    noted: Mutex<Statistics>,
}

impl Noting<'_> {
    fn note<T>(&self, number: T, write: impl FnOnce(&mut Statistics, &T)) -> T {
        write(&mut self.noted.lock().unwrap_or_else(PoisonError::into_inner), &number);
        number
    }
}

impl Bm25StatisticsProvider for Noting<'_> {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        let number = self.of.total_num_tokens(field)?;
        Ok(self.note(number, |noted, number| {
            noted.tokens.insert(field.field_id(), *number);
        }))
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        let number = self.of.total_num_docs()?;
        Ok(self.note(number, |noted, number| noted.documents = *number))
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        let number = self.of.doc_freq(term)?;
        Ok(self.note(number, |noted, number| {
            let words = noted.words.entry(term.field().field_id()).or_default();
            words.extend(term.value().as_str().map(|word| (word.to_owned(), *number)));
        }))
    }
}

impl IndexView<'_> {
    /// Returns the statistics of these indexes that some searches need.
    ///
    /// # Errors
    /// When an index cannot be read.
    pub fn statistics<'q>(
        &self,
        queries: impl Iterator<Item = &'q TextQuery>,
        find: Option<&Find>,
    ) -> Result<Statistics, SearchError> {
        let of = self.searchers();
        let noted = Statistics { alive: of.alive(), ..Statistics::default() };
        let noting = Noting { of, noted: Mutex::new(noted) };
        let (_, fields) = IndexSchema::schema(false);
        self.guarded(|| {
            if let Some(find) = find {
                let wanted = wanted(&noting, noting.of.alive(), fields, &find.typed());
                wanted.map_err(|source| SearchError::of(self.folder(), source))?;
            }
            for query in queries {
                for (searcher, _) in &self.searchers().all {
                    let scoring = EnableScoring::enabled_from_statistics_provider(&noting, searcher);
                    let weight = terms::compile(query, fields).weight(scoring);
                    weight.map_err(|source| SearchError::of(self.folder(), source))?;
                }
            }
            Ok(())
        })?;
        Ok(noting.noted.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_reports_stay_usable_numbers() {
        let reported = |documents, frequency| Statistics {
            documents,
            alive: 1,
            tokens: BTreeMap::from([(1, u64::MAX)]),
            words: BTreeMap::from([(1, BTreeMap::from([("open".to_owned(), frequency)]))]),
        };
        let mut sum = reported(2, u64::MAX);
        sum.add(reported(3, 9));
        let field = Field::from_field_id(1);
        let frequency = |word: &str| sum.doc_freq(&Term::from_field_text(field, word)).unwrap();
        assert_eq!((sum.total_num_docs().unwrap(), frequency("open"), frequency("other")), (5, 5, 0));
        assert_eq!(sum.total_num_tokens(field).unwrap(), u64::MAX);
        assert_eq!(serde_json::from_str::<Statistics>(&serde_json::to_string(&sum).unwrap()).unwrap(), sum);
    }
}
