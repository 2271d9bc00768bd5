//! From pages of an archive to a topic, and how well it tells them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use archive_storage::{Store, UrlId};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{About, CLASS, RELEVANT, Sight, Topic, TopicError, check_name};
use crate::change::parsed;
use crate::learn::{Platt, log_odds, measures};
use crate::topic::{Context, Example, Knowledge, Lead, held_out};

/// Examples of each kind from which something can be learned.
pub const EXAMPLES_MIN: usize = 5;

/// Examples of each kind that are read: the first.
pub const EXAMPLES_MAX: usize = 5000;

/// Parts of the examples of which each is told by the others.
const PARTS: usize = 5;

/// Words that are shown for and against a topic.
const WORDS_SHOWN: usize = 20;

/// Groups of equally many pages in which probabilities are held against what came true.
const BINS: usize = 10;

/// A page of an archive that has text, in its newest version.
#[derive(Clone, Debug)]
pub struct Document {
    /// Its number.
    pub id: UrlId,
    /// Its URL.
    pub url: String,
    sight: Sight,
}

/// How well pages were told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// Pages of the topic.
    pub positives: u64,
    /// Other pages.
    pub negatives: u64,
    /// Pages of the topic that were taken for such.
    pub hits: u64,
    /// Other pages that were taken for ones of the topic.
    pub false_alarms: u64,
    /// hits / (hits + false alarms); 0 without either.
    pub precision: f64,
    /// hits / positives.
    pub recall: f64,
    /// The harmonic mean of the two.
    pub f1: f64,
    /// How often a page of the topic has the higher probability; none without both kinds.
    pub auc: Option<f64>,
    /// Mean distance of probability and what came true.
    pub calibration_error: Option<f64>,
}

impl Judged {
    /// Holds probabilities against what is so.
    #[must_use]
    pub fn of(probabilities: &[f64], labels: &[bool]) -> Self {
        let count = |wanted: bool, told: Option<bool>| {
            let pairs = probabilities.iter().zip(labels).filter(|(_, label)| **label == wanted);
            pairs.filter(|(p, _)| told.is_none_or(|told| told == (**p >= RELEVANT))).count() as u64
        };
        let (positives, negatives) = (count(true, None), count(false, None));
        let (hits, false_alarms) = (count(true, Some(true)), count(false, Some(true)));
        let share = |of: u64| if of > 0 { hits as f64 / of as f64 } else { 0.0 };
        let f1_sum = (positives + hits + false_alarms) as f64;
        Self {
            positives,
            negatives,
            hits,
            false_alarms,
            precision: share(hits + false_alarms),
            recall: share(positives),
            f1: if f1_sum > 0.0 { 2.0 * hits as f64 / f1_sum } else { 0.0 },
            auc: measures::auc(probabilities, labels),
            calibration_error: measures::calibration_error(probabilities, labels, BINS),
        }
    }
}

/// Reads the newest versions of pages, each once, as far as they have text; [`EXAMPLES_MAX`] at most.
///
/// # Errors
/// When one cannot be read.
pub fn read_documents(store: &Store, ids: &[UrlId]) -> Result<Vec<Document>, TopicError> {
    let mut met = HashSet::new();
    let mut documents = Vec::new();
    for &id in ids.iter().filter(|id| met.insert(**id)) {
        let Some((_, capture)) = store.state().newest_version(id)? else { continue };
        let url = store.state().url(id)?;
        let sight = Sight::of(&url, &parsed(store, &capture)?);
        documents.extend(sight.map(|sight| Document { id, url, sight }));
        if documents.len() == EXAMPLES_MAX {
            break;
        }
    }
    Ok(documents)
}

/// Learns a topic from pages of it and others; `from` says in words where they came from.
///
/// # Errors
/// When there are too few of one kind, or the links between them cannot be read.
pub fn learn(
    store: &Store,
    name: &str,
    from: &str,
    positives: &[Document],
    negatives: &[Document],
    now: DateTime<Utc>,
) -> Result<Topic, TopicError> {
    let name = check_name(name)?.to_owned();
    for (documents, what) in [(positives, "pages of the topic"), (negatives, "other pages")] {
        if documents.len() < EXAMPLES_MIN {
            return Err(TopicError::TooFew { found: documents.len(), what });
        }
    }
    // Dealt in turn, so that each part has its share of both.
    let documents: Vec<&Document> = positives.iter().chain(negatives).collect();
    let labels: Vec<bool> = (0..documents.len()).map(|place| place < positives.len()).collect();
    let examples = examples(store, &documents, &labels)?;
    let said: Vec<f64> =
        held_out(&examples, 2, PARTS).iter().map(|classes| log_odds(classes[CLASS])).collect();
    let calibration = Platt::fit(&said, &labels);
    let probabilities: Vec<f64> = said.iter().map(|&said| calibration.probability(said)).collect();
    let knowledge = Knowledge::learn(&examples, 2);
    let (words_for, words_against) = words(&knowledge, &examples);
    let urls = |documents: &[Document]| documents.iter().map(|document| document.url.clone()).collect();
    let about = About {
        name,
        learned: now,
        from: from.to_owned(),
        examples: urls(positives),
        against: urls(negatives),
        words_for,
        words_against,
        quality: Judged::of(&probabilities, &labels),
        calibration: calibration.parts(),
    };
    Ok(Topic { about, knowledge: Arc::new(knowledge) })
}

/// Learns how far from the topic pages seem to be, from those of its examples that are still there.
///
/// # Errors
/// When one cannot be read.
pub fn learn_layers(store: &Store, topic: &Topic) -> Result<Context, TopicError> {
    let About { examples: of_topic, against, .. } = &topic.about;
    let read = |urls: &[String]| {
        let ids = urls.iter().map(|url| store.state().find(url)).collect::<Result<Vec<_>, _>>()?;
        read_documents(store, &ids.into_iter().flatten().collect::<Vec<_>>())
    };
    let (positives, negatives) = (read(of_topic)?, read(against)?);
    let documents: Vec<&Document> = positives.iter().chain(&negatives).collect();
    let labels: Vec<bool> = (0..documents.len()).map(|place| place < positives.len()).collect();
    Ok(Context::learn(&examples(store, &documents, &labels)?, CLASS))
}

/// How a topic tells pages; how well, and for each of them, in their order, how probably it is of the topic.
#[must_use]
pub fn judge(topic: &Topic, positives: &[Document], negatives: &[Document]) -> (Judged, Vec<f64>) {
    let documents = positives.iter().chain(negatives);
    let probabilities: Vec<f64> =
        documents.map(|document| topic.probability(&document.sight.text(&document.url))).collect();
    let labels: Vec<bool> = (0..probabilities.len()).map(|place| place < positives.len()).collect();
    (Judged::of(&probabilities, &labels), probabilities)
}

/// Examples out of documents, with the links among them.
fn examples<'a>(
    store: &Store,
    documents: &[&'a Document],
    labels: &[bool],
) -> Result<Vec<Example<'a>>, TopicError> {
    let places: HashMap<u32, u32> = documents.iter().map(|document| document.id.0).zip(0..).collect();
    let mut examples = Vec::with_capacity(documents.len());
    for (&document, &label) in documents.iter().zip(labels) {
        let leads = document.sight.leads(store.state())?.into_iter();
        let leads =
            leads.filter_map(|lead| Some(Lead { target: *places.get(&lead.target)?, ..lead })).collect();
        examples.push(Example { text: document.sight.text(&document.url), class: usize::from(label), leads });
    }
    Ok(examples)
}

/// The words of the examples' texts that say most for the topic, and against it: what a word says counts by the share of the
/// examples of that kind that have it.
#[expect(clippy::type_complexity, reason = "two lists of the same")]
fn words(knowledge: &Knowledge, examples: &[Example<'_>]) -> (Vec<(String, f64)>, Vec<(String, f64)>) {
    let mut sums = [0.0; 2];
    let mut found: HashMap<String, [f64; 2]> = HashMap::new();
    for example in examples {
        sums[example.class] += 1.0;
        let words = example.text.text.split(|c: char| !c.is_alphanumeric());
        let words = words.filter(|word| word.chars().any(char::is_alphabetic)).map(str::to_lowercase);
        for word in words.collect::<HashSet<String>>() {
            found.entry(word).or_default()[example.class] += 1.0;
        }
    }
    let mut told: Vec<(String, f64)> = found
        .into_iter()
        .map(|(word, found)| {
            let says = knowledge.word(&word, CLASS);
            let class = if says > 0.0 { CLASS } else { 1 - CLASS };
            (word, says * found[class] / sums[class])
        })
        .collect();
    told.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let against = told.iter().rev().take_while(|word| word.1 < 0.0).take(WORDS_SHOWN).cloned().collect();
    told.truncate(WORDS_SHOWN);
    told.retain(|word| word.1 > 0.0);
    (told, against)
}

#[cfg(test)]
mod tests {
    use super::Judged;

    #[test]
    fn measures_are_as_by_hand() {
        let judged = Judged::of(&[0.9, 0.4, 0.6, 0.1, 0.2], &[true, true, false, false, false]);
        assert_eq!((judged.positives, judged.negatives, judged.hits, judged.false_alarms), (2, 3, 1, 1));
        assert_eq!((judged.precision, judged.recall, judged.f1), (0.5, 0.5, 0.5));
        assert!((judged.auc.unwrap() - 5.0 / 6.0).abs() < 1e-12);
        assert_eq!(Judged::of(&[], &[]), Judged::default());
    }
}
