//! Learning from examples: the classes of pages, and what URLs and link texts say about their targets.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Lead;
use super::links::{last_segment, url_words};
use crate::learn::{HashedWords, Multinomial, NaiveBayes, Sparse, TfIdf};

/// L2 penalty of weights (scikit-learn's 1 / C): for pages, and for the few words of links.
pub(super) const PAGE_L2: f64 = 0.25;
const LINK_L2: f64 = 1.0;
/// Lidstone smoothing of naive Bayes, added to each word of a class. It is small because tf-idf weights are about a
/// tenth per word, less than counts.
const SMOOTHING: f64 = 0.01;
/// Maximum number of words of a text that count.
const WORDS_MAX: usize = 3000;
/// Maximum number of headings that count.
const HEADINGS_MAX: usize = 20;

/// Content of a page.
#[derive(Clone, Debug)]
pub struct TopicText<'a> {
    /// Its URL.
    pub url: &'a str,
    /// Its title.
    pub title: &'a str,
    /// Headings of the page.
    pub headings: Vec<&'a str>,
    /// Visible text, including the headings.
    pub text: &'a str,
}

impl TopicText<'_> {
    pub(super) fn words(&self) -> HashedWords {
        let mut words = HashedWords::default();
        let end = self
            .text
            .split_ascii_whitespace()
            .nth(WORDS_MAX)
            .map(|word| word.as_ptr() as usize - self.text.as_ptr() as usize);
        words.add_text(TEXT, &self.text[..end.unwrap_or(self.text.len())]);
        words.add_text(TITLE, self.title);
        self.headings.iter().take(HEADINGS_MAX).for_each(|heading| words.add_text(HEADING, heading));
        url_words(self.url, |word| words.add(URL, word));
        words
    }
}

/// The parts of a page from which words come.
pub(super) const TEXT: u8 = 0;
pub(super) const TITLE: u8 = 1;
pub(super) const HEADING: u8 = 2;
pub(super) const URL: u8 = 3;

/// A page of known class.
#[derive(Clone, Debug)]
pub struct LabelledPage<'a> {
    /// Content of the page.
    pub text: TopicText<'a>,
    /// Class of the page, counted from 0.
    pub class: usize,
    /// Links to other examples; targets are indices of examples.
    pub leads: Vec<Lead<'a>>,
}

/// A classifier of pages. Both use tf-idf weights of words and add up their evidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Model {
    /// Logistic regression: the evidence of words in combination.
    #[default]
    Logistic,
    /// Naive Bayes: the evidence of each word independently.
    Bayes,
}

/// The text is not the name of a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a model; the models are logistic and bayes")]
pub struct UnknownModel(String);

impl Model {
    fn fit(self, rows: &[Sparse], labels: &[usize], classes: usize, width: usize, l2: f64) -> Multinomial {
        match self {
            Self::Logistic => Multinomial::fit(rows, labels, classes, width, l2),
            Self::Bayes => NaiveBayes::fit(rows, labels, classes, width, SMOOTHING).into(),
        }
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Logistic => "logistic",
            Self::Bayes => "bayes",
        })
    }
}

impl FromStr for Model {
    type Err = UnknownModel;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = [Self::Logistic, Self::Bayes].into_iter().find(|model| model.to_string() == text);
        known.ok_or_else(|| UnknownModel(text.to_owned()))
    }
}

/// A classifier by words.
#[derive(Clone, Debug)]
pub(super) struct Teller {
    pub(super) words: TfIdf,
    pub(super) model: Multinomial,
    /// ln p(class) without any words.
    pub(super) prior: Vec<f64>,
}

impl Teller {
    pub(super) fn fit(texts: &[HashedWords], labels: &[usize], classes: usize, l2: f64) -> Self {
        Self::fit_by(Model::Logistic, texts, labels, classes, l2)
    }

    fn fit_by(model: Model, texts: &[HashedWords], labels: &[usize], classes: usize, l2: f64) -> Self {
        let words = TfIdf::of(texts, 2);
        let rows: Vec<Sparse> = texts.iter().map(|text| words.vector(text)).collect();
        let model = model.fit(&rows, labels, classes, words.width(), l2);
        let mut prior = vec![1.0; classes];
        labels.iter().for_each(|&label| prior[label] += 1.0);
        let sum: f64 = prior.iter().sum();
        prior.iter_mut().for_each(|share| *share = (*share / sum).ln());
        Self { words, model, prior }
    }

    pub(super) fn probabilities(&self, words: &HashedWords) -> Vec<f64> {
        self.model.probabilities(&self.words.vector(words))
    }

    /// Returns how much the words change the log-probability of each class: ln p(class | words) - ln p(class); 0 if no
    /// word is known.
    fn evidence(&self, words: &HashedWords) -> Vec<f64> {
        let row = self.words.vector(words);
        if row.is_empty() {
            return vec![0.0; self.prior.len()];
        }
        let after = self.model.probabilities(&row);
        after.iter().zip(&self.prior).map(|(after, before)| after.max(1e-6).ln() - before).collect()
    }
}

/// What was learned from examples. All returned vectors have an entry per class.
#[derive(Clone, Debug)]
pub struct Knowledge {
    pub(super) pages: Teller,
    pub(super) urls: Teller,
    pub(super) anchors: Teller,
    /// Shares of links from examples of one class to each class: a row per source class.
    pub(super) leads_to: Vec<Vec<f64>>,
    /// Classifier for finer classes, if there are any.
    pub(super) leaves: Option<Teller>,
}

/// Returns the probabilities of `classes` for each example by cross-validation. Examples with these `labels` are
/// assigned to `parts` in turn, and each part is classified by the others.
#[must_use]
pub fn held_out(
    examples: &[LabelledPage<'_>],
    labels: &[usize],
    classes: usize,
    parts: usize,
    model: Model,
) -> Vec<Vec<f64>> {
    let words: Vec<HashedWords> = examples.iter().map(|example| example.text.words()).collect();
    let mut probabilities = vec![Vec::new(); examples.len()];
    for part in 0..parts {
        let others = || (0..examples.len()).filter(|place| place % parts != part);
        let texts: Vec<HashedWords> = others().map(|place| words[place].clone()).collect();
        let labels: Vec<usize> = others().map(|place| labels[place]).collect();
        let teller = Teller::fit_by(model, &texts, &labels, classes, PAGE_L2);
        for place in (part..examples.len()).step_by(parts) {
            probabilities[place] = teller.probabilities(&words[place]);
        }
    }
    probabilities
}

impl Knowledge {
    /// Learns from `examples`, whose classes are below `classes`.
    #[must_use]
    pub fn learn(examples: &[LabelledPage<'_>], classes: usize, model: Model) -> Self {
        let labels: Vec<usize> = examples.iter().map(|example| example.class).collect();
        let pages: Vec<HashedWords> = examples.iter().map(|example| example.text.words()).collect();
        let urls: Vec<HashedWords> = examples.iter().map(|example| of_url(example.text.url)).collect();
        // Use a title as what a link to the page would probably say.
        let mut said: Vec<(HashedWords, usize)> =
            examples.iter().map(|example| (of_text(example.text.title), example.class)).collect();
        let mut leads_to = vec![vec![1.0 / classes as f64; classes]; classes];
        for example in examples {
            for lead in &example.leads {
                let class = examples[lead.target as usize].class;
                said.push((of_text(lead.anchor), class));
                leads_to[example.class][class] += 1.0;
            }
        }
        for row in &mut leads_to {
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|share| *share /= sum);
        }
        let (said, of): (Vec<HashedWords>, Vec<usize>) = said.into_iter().unzip();
        Self {
            pages: Teller::fit_by(model, &pages, &labels, classes, PAGE_L2),
            urls: Teller::fit(&urls, &labels, classes, LINK_L2),
            anchors: Teller::fit(&said, &of, classes, LINK_L2),
            leads_to,
            leaves: None,
        }
    }

    /// Also learns finer classes: `labels` of the examples, all below `classes`.
    pub fn learn_leaves(
        &mut self,
        examples: &[LabelledPage<'_>],
        labels: &[usize],
        classes: usize,
        model: Model,
    ) {
        let pages: Vec<HashedWords> = examples.iter().map(|example| example.text.words()).collect();
        self.leaves = Some(Teller::fit_by(model, &pages, labels, classes, PAGE_L2));
    }

    /// Returns the probability of each finer class for a page; `None` if there are no finer classes.
    #[must_use]
    pub fn leaves(&self, text: &TopicText<'_>) -> Option<Vec<f64>> {
        Some(self.leaves.as_ref()?.probabilities(&text.words()))
    }

    /// Number of finer classes.
    #[must_use]
    pub fn leaf_count(&self) -> usize {
        self.leaves.as_ref().map_or(0, |leaves| leaves.prior.len())
    }

    /// Returns the probability of each class for a page.
    #[must_use]
    pub fn page(&self, text: &TopicText<'_>) -> Vec<f64> {
        self.pages.probabilities(&text.words())
    }

    /// Returns the evidence of a URL for each class of its page, in log-likelihood; 0 is neutral.
    #[must_use]
    pub fn url(&self, url: &str) -> Vec<f64> {
        self.urls.evidence(&of_url(url))
    }

    /// Returns the evidence of a link text, like [`Knowledge::url`].
    #[must_use]
    pub fn anchor(&self, anchor: &str) -> Vec<f64> {
        self.anchors.evidence(&of_text(anchor))
    }

    /// Returns the evidence of the words of a link for each class as if they were the text of a page, like
    /// [`Knowledge::url`]. Words that name a class rather than one of its pages lead to a list of such pages.
    #[must_use]
    pub fn naming(&self, lead: &Lead<'_>) -> Vec<f64> {
        let mut words = of_text(lead.anchor);
        words.add_text(TEXT, last_segment(lead.url));
        self.pages.evidence(&words)
    }

    /// Returns the share of links from a page with these classes that leads to `class`, by the examples.
    pub(crate) fn lead_rate(&self, classes: &[f64], class: usize) -> f64 {
        classes.iter().zip(&self.leads_to).map(|(p, row)| p * row[class]).sum()
    }

    /// Returns the evidence of a single occurrence of a word in the text for `class`, in log-odds; 0 for an unknown
    /// word.
    #[must_use]
    pub fn word(&self, word: &str, class: usize) -> f64 {
        let Teller { words, model, .. } = &self.pages;
        let mut one = HashedWords::default();
        one.add_text(TEXT, word);
        let weight = |&(place, count): &(u32, f32)| {
            let others = (0..self.classes()).filter(|&other| other != class);
            let most = others.map(|other| model.weight(place, other)).fold(f32::NEG_INFINITY, f32::max);
            f64::from(count * words.weight(place) * (model.weight(place, class) - most))
        };
        words.counts(&one).iter().map(weight).sum()
    }

    /// Number of classes.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.leads_to.len()
    }
}

pub(super) fn of_text(text: &str) -> HashedWords {
    let mut words = HashedWords::default();
    words.add_text(TEXT, text);
    words
}

fn of_url(url: &str) -> HashedWords {
    let mut words = HashedWords::default();
    url_words(url, |word| words.add(URL, word));
    words
}
