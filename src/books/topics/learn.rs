//! Learns a topic from pages of an archive, and measures how well it recognises them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use archive_base::access::Access;
use archive_math::focus::{Focus, Knowledge, LabelledPage, Lead, LearnOrder, Model, held_out};
use archive_math::learn::{Platt, log_odds, measures};
use archive_storage::{Store, UrlId};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{About, Branch, CLASS, RELEVANT, Sight, Topic, TopicError, check_name, likeliest, wanted};
use crate::change::parsed_in_time;

/// Minimum number of examples of each kind.
pub const EXAMPLES_MIN: usize = 5;

/// Maximum number of examples of each kind, the first ones.
pub const EXAMPLES_MAX: usize = 5000;

/// Number of parts in cross-validation.
const PARTS: usize = 5;

/// Number of words shown for and against a topic.
pub(super) const WORDS_SHOWN: usize = 20;

/// Number of equally large groups of pages in which probabilities are compared with the truth.
const BINS: usize = 10;

/// A page with text, in its newest version.
#[derive(Clone, Debug)]
pub struct LabelledDocument {
    /// Id of the page.
    pub id: UrlId,
    /// URL of the page.
    pub url: String,
    sight: Sight,
}

impl LabelledDocument {
    /// Its text, cut at the limit of topics.
    #[must_use]
    pub fn text(&self) -> &str {
        self.sight.text(&self.url).text
    }
}

/// Quality of a classification.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// Number of pages of the topic.
    pub positives: u64,
    /// Number of other pages.
    pub negatives: u64,
    /// Pages of the topic classified as such.
    pub hits: u64,
    /// Other pages classified as pages of the topic.
    pub false_alarms: u64,
    /// hits / (hits + false alarms); 0 without either.
    pub precision: f64,
    /// hits / positives.
    pub recall: f64,
    /// The harmonic mean of precision and recall.
    pub f1: f64,
    /// How often a page of the topic has a higher probability than another page; `None` without both kinds.
    pub auc: Option<f64>,
    /// Mean difference between probability and truth.
    pub calibration_error: Option<f64>,
}

impl Judged {
    /// Compares probabilities with the truth.
    #[must_use]
    pub fn of(probabilities: &[f64], labels: &[bool]) -> Self {
        let count = |wanted: bool, taken: Option<bool>| {
            let pairs = probabilities.iter().zip(labels).filter(|(_, label)| **label == wanted);
            pairs.filter(|(p, _)| taken.is_none_or(|taken| taken == (**p >= RELEVANT))).count() as u64
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

/// Reads the newest versions of pages that have text, each once, at most [`EXAMPLES_MAX`].
///
/// # Errors
/// If one cannot be read.
pub fn read_documents(store: &Store, ids: &[UrlId]) -> Result<Vec<LabelledDocument>, TopicError> {
    let mut met = HashSet::new();
    let mut documents = Vec::new();
    for &id in ids.iter().filter(|id| met.insert(**id)) {
        let Some((_, capture)) = store.state().newest_version(id)? else { continue };
        let url = store.state().url(id)?;
        let Ok(parsed) = parsed_in_time(store, &Access::unlimited(), &capture) else {
            tracing::warn!(url, "a page cannot be read and is left out");
            continue;
        };
        let sight = parsed.and_then(|parsed| Sight::of(&url, &parsed));
        documents.extend(sight.map(|sight| LabelledDocument { id, url, sight }));
        if documents.len() == EXAMPLES_MAX {
            break;
        }
    }
    Ok(documents)
}

/// The examples for a topic.
#[derive(Clone, Debug, Default)]
pub struct Lesson {
    /// Pages of the topic.
    pub positives: Vec<LabelledDocument>,
    /// Other pages.
    pub negatives: Vec<LabelledDocument>,
    /// Branches of a taxonomy; empty without one.
    pub branches: Vec<Branch>,
    /// Branch of each page, as an index of `branches`.
    pub branch_of: HashMap<UrlId, usize>,
}

/// A branch of a taxonomy that has examples, as a topic has learned it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Leaf {
    /// Names of the branch and its ancestors; empty for pages of no branch.
    pub path: String,
    /// Whether its pages are wanted.
    pub is_wanted: bool,
    /// Number of examples.
    pub examples: u64,
    /// F1 in cross-validation: the harmonic mean of precision and recall.
    pub f1: f64,
}

impl Lesson {
    /// Returns the leaf of each page: 0 is for pages of no branch, and may be empty.
    fn leaf_of(&self, documents: &[&LabelledDocument]) -> Vec<usize> {
        let leaf =
            |document: &&LabelledDocument| self.branch_of.get(&document.id).map_or(0, |branch| branch + 1);
        documents.iter().map(leaf).collect()
    }

    /// Describes the leaves, with quality from cross-validation.
    fn leaves(&self, leaf_of: &[usize], classified: &[Vec<f64>]) -> Vec<Leaf> {
        let predicted: Vec<usize> = classified.iter().map(|leaves| likeliest(leaves)).collect();
        let f1 = measures::f1(&predicted, leaf_of, self.branches.len() + 1);
        let branches = self.branches.iter().map(|branch| (branch.path.clone(), branch.is_wanted));
        let named = std::iter::once((String::new(), false)).chain(branches);
        let leaf = |((leaf, (path, is_wanted)), f1)| {
            let examples = leaf_of.iter().filter(|of| **of == leaf).count() as u64;
            Leaf { path, is_wanted, examples, f1 }
        };
        named.enumerate().zip(f1).map(leaf).collect()
    }

    /// Whether there are too few pages of either kind to learn from.
    #[must_use]
    pub fn is_too_short(&self) -> bool {
        self.positives.len().min(self.negatives.len()) < EXAMPLES_MIN
    }

    fn check(&self, leaf_of: &[usize]) -> Result<(), TopicError> {
        let too_few = |found: usize, what: &str| {
            if found < EXAMPLES_MIN {
                return Err(TopicError::TooFew { found, what: what.to_owned() });
            }
            Ok(())
        };
        too_few(self.positives.len(), "pages of the topic")?;
        too_few(self.negatives.len(), "other pages")?;
        self.branches.iter().zip(1..).try_for_each(|(branch, leaf)| {
            let found = leaf_of.iter().filter(|of| **of == leaf).count();
            too_few(found, &format!("pages of the branch {}", branch.path))
        })
    }
}

/// Learns a topic from its pages and others; `from` describes their source.
///
/// # Errors
/// If there are too few pages of one kind, or the links between them cannot be read.
pub fn learn(
    store: &Store,
    name: &str,
    from: &str,
    lesson: &Lesson,
    model: Model,
    now: DateTime<Utc>,
) -> Result<Topic, TopicError> {
    let name = check_name(name)?.to_owned();
    let Lesson { positives, negatives, branches, .. } = lesson;
    let documents: Vec<&LabelledDocument> = positives.iter().chain(negatives).collect();
    let leaf_of = lesson.leaf_of(&documents);
    lesson.check(&leaf_of)?;
    // Examples are assigned to parts in turn, so that each part has its share of both kinds.
    let labels: Vec<bool> = (0..documents.len()).map(|place| place < positives.len()).collect();
    let examples = examples(store, &documents, &labels)?;
    let mut knowledge = Knowledge::learn(&examples, 2, model);
    let (predicted, leaves) = if branches.is_empty() {
        let classes: Vec<usize> = examples.iter().map(|example| example.class).collect();
        let classified = held_out(&examples, &classes, 2, PARTS, model);
        (classified.iter().map(|classes| classes[CLASS]).collect::<Vec<f64>>(), Vec::new())
    } else {
        let classified = held_out(&examples, &leaf_of, branches.len() + 1, PARTS, model);
        knowledge.learn_leaves(&examples, &leaf_of, branches.len() + 1, model);
        let leaves = lesson.leaves(&leaf_of, &classified);
        (classified.iter().map(|probabilities| wanted(&leaves, probabilities)).collect(), leaves)
    };
    let said: Vec<f64> = predicted.into_iter().map(log_odds).collect();
    let calibration = Platt::fit(&said, &labels);
    let probabilities: Vec<f64> = said.iter().map(|&said| calibration.probability(said)).collect();
    let (words_for, words_against) = words(&knowledge, &examples);
    let urls =
        |documents: &[LabelledDocument]| documents.iter().map(|document| document.url.clone()).collect();
    let about = About {
        name,
        learned: now,
        from: from.to_owned(),
        model,
        leaves,
        examples: urls(positives),
        against: urls(negatives),
        words_for,
        words_against,
        quality: Judged::of(&probabilities, &labels),
        calibration: calibration.parts(),
    };
    Ok(Topic { about, knowledge: Arc::new(knowledge), is_hard: false })
}

/// Learns an order of a crawl from the examples of a topic that are still in the archive, and the links among them.
///
/// # Errors
/// If there are too few, as of a topic of words or from another archive, or one cannot be read.
pub fn learn_order(store: &Store, topic: &Topic, learn: LearnOrder) -> Result<Box<dyn Focus>, TopicError> {
    let About { examples: of_topic, against, .. } = &topic.about;
    let read = |urls: &[String]| {
        let ids = urls.iter().map(|url| store.state().find(url)).collect::<Result<Vec<_>, _>>()?;
        read_documents(store, &ids.into_iter().flatten().collect::<Vec<_>>())
    };
    let (positives, negatives) = (read(of_topic)?, read(against)?);
    if positives.len() < EXAMPLES_MIN {
        let what = format!("pages that the topic {} was learned from", topic.about.name);
        return Err(TopicError::TooFew { found: positives.len(), what });
    }
    let documents: Vec<&LabelledDocument> = positives.iter().chain(&negatives).collect();
    let labels: Vec<bool> = (0..documents.len()).map(|place| place < positives.len()).collect();
    Ok(learn(&examples(store, &documents, &labels)?, CLASS))
}

/// Measures how well a topic recognises pages, and returns the probability of each page in order.
#[must_use]
pub fn judge(
    topic: &Topic,
    positives: &[LabelledDocument],
    negatives: &[LabelledDocument],
) -> (Judged, Vec<f64>) {
    let documents = positives.iter().chain(negatives);
    let probabilities: Vec<f64> =
        documents.map(|document| topic.probability(&document.sight.text(&document.url))).collect();
    let labels: Vec<bool> = (0..probabilities.len()).map(|place| place < positives.len()).collect();
    (Judged::of(&probabilities, &labels), probabilities)
}

/// Turns documents into examples, with the links among them.
fn examples<'a>(
    store: &Store,
    documents: &[&'a LabelledDocument],
    labels: &[bool],
) -> Result<Vec<LabelledPage<'a>>, TopicError> {
    let places: HashMap<u32, u32> = documents.iter().map(|document| document.id.0).zip(0..).collect();
    let mut examples = Vec::with_capacity(documents.len());
    for (&document, &label) in documents.iter().zip(labels) {
        let leads = document.sight.leads(store.state())?.into_iter();
        let leads =
            leads.filter_map(|lead| Some(Lead { target: *places.get(&lead.target)?, ..lead })).collect();
        examples.push(LabelledPage {
            text: document.sight.text(&document.url),
            class: usize::from(label),
            leads,
        });
    }
    Ok(examples)
}

/// Returns the strongest words for the topic and against it. The evidence of a word is multiplied by the share of
/// examples of that kind that have it.
#[expect(clippy::type_complexity, reason = "two lists of the same")]
fn words(knowledge: &Knowledge, examples: &[LabelledPage<'_>]) -> (Vec<(String, f64)>, Vec<(String, f64)>) {
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
    let mut words: Vec<(String, f64)> = found
        .into_iter()
        .map(|(word, found)| {
            let says = knowledge.word(&word, CLASS);
            let class = if says > 0.0 { CLASS } else { 1 - CLASS };
            (word, says * found[class] / sums[class])
        })
        .collect();
    words.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let against = words.iter().rev().take_while(|word| word.1 < 0.0).take(WORDS_SHOWN).cloned().collect();
    words.truncate(WORDS_SHOWN);
    words.retain(|word| word.1 > 0.0);
    (words, against)
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
