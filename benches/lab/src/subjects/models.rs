//! The models that predict subjects.

use std::ops::RangeInclusive;

use archive_math::learn::{HashedWords, Multinomial, NaiveBayes, Sparse, TfIdf};
use serde::Serialize;
use url::Url;

use super::Site;
use super::ridge::Ridge;

/// Lengths of the character n-grams of words.
const PIECE_LETTERS: RangeInclusive<usize> = 3..=5;
/// Part number for [`HashedWords`]; a single one, as title and URL contain the same words.
const PART: u8 = 0;

/// A model that predicts subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Naive Bayes on word counts of title and URL.
    NaiveBayes,
    /// Logistic regression on tf-idf of the same words.
    Logistic,
    /// Ridge regression on the same vectors.
    Words,
    /// Ridge regression on character n-grams of the words of title and host.
    Pieces,
    /// Weighted average of the two ridge regressions.
    Average,
}

impl Model {
    /// All models.
    pub const ALL: [Self; 5] = [Self::NaiveBayes, Self::Logistic, Self::Words, Self::Pieces, Self::Average];

    /// Returns its name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NaiveBayes => "naive_bayes",
            Self::Logistic => "logistic",
            Self::Words => "ridge_words",
            Self::Pieces => "ridge_pieces",
            Self::Average => "average",
        }
    }

    /// Returns the constants to choose from.
    pub(super) fn constants(self) -> Vec<Constants> {
        let (bounds, shares): (&[f64], &[f64]) = match self {
            Self::NaiveBayes => (&[0.03, 0.1, 0.2, 0.4, 1.0], &[1.0]),
            Self::Logistic => (&[0.03, 0.1, 0.3, 1.0], &[1.0]),
            Self::Words => (&[0.4, 0.7, 1.0, 1.5, 2.2], &[1.0]),
            Self::Pieces => (&[0.4, 0.7, 1.0, 1.5, 2.2], &[0.0]),
            Self::Average => (&[0.7, 1.2], &[0.2, 0.35, 0.5]),
        };
        let of = |&bound: &f64| shares.iter().map(move |&of_words| Constants { bound, of_words });
        bounds.iter().flat_map(of).collect()
    }
}

/// Constants chosen for a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Constants {
    /// Smoothing added to each count of naive Bayes, or the bound on the weights of the other models.
    pub bound: f64,
    /// Weight of the word model's score; the rest is the weight of the n-gram model's.
    pub of_words: f64,
}

/// Words and n-grams of a site.
pub(super) struct Texts {
    words: HashedWords,
    pieces: HashedWords,
}

impl Texts {
    pub(super) fn of(site: &Site) -> Self {
        let mut texts = Self { words: HashedWords::default(), pieces: HashedWords::default() };
        let host = Url::parse(&site.url).ok().and_then(|url| url.host_str().map(str::to_owned));
        let parts =
            [(site.title.as_str(), true), (&site.url, false), (host.as_deref().unwrap_or_default(), true)];
        for (place, (text, has_pieces)) in parts.into_iter().enumerate() {
            let lower = text.to_lowercase();
            for word in lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
                // The URL already contains the words of the host.
                if place < 2 {
                    texts.words.add(PART, word);
                }
                if has_pieces && word != "www" {
                    texts.pieces.add_pieces(PART, word, PIECE_LETTERS);
                }
            }
        }
        texts
    }
}

/// Returns the scores of all subjects for each of the judged sites.
pub(super) fn scores(
    model: Model,
    constants: Constants,
    (learned, subjects): (&[&Texts], &[Vec<usize>]),
    judged: &[&Texts],
    count: usize,
) -> Vec<Vec<f64>> {
    let words = || Vectors::of(learned, judged, |texts| &texts.words, TfIdf::vector);
    let pieces = || Vectors::of(learned, judged, |texts| &texts.pieces, TfIdf::vector);
    let ridge = |vectors: Vectors| {
        let model = Ridge::fit(&vectors.learned, subjects, count, vectors.width, constants.bound);
        vectors.judged.iter().map(|row| model.shares(row)).collect::<Vec<_>>()
    };
    match model {
        Model::NaiveBayes => {
            let vectors = Vectors::of(learned, judged, |texts| &texts.words, TfIdf::counts);
            let (rows, labels) = vectors.by_subject(subjects);
            let model = NaiveBayes::fit(&rows, &labels, count, vectors.width, constants.bound);
            vectors.judged.iter().map(|row| model.probabilities(row)).collect()
        }
        Model::Logistic => {
            let vectors = words();
            let (rows, labels) = vectors.by_subject(subjects);
            let model = Multinomial::fit(&rows, &labels, count, vectors.width, constants.bound);
            vectors.judged.iter().map(|row| model.probabilities(row)).collect()
        }
        Model::Words => ridge(words()),
        Model::Pieces => ridge(pieces()),
        Model::Average => {
            let of = constants.of_words;
            let average = |(words, pieces): (Vec<f64>, Vec<f64>)| {
                let pairs = words.into_iter().zip(pieces);
                pairs.map(|(words, pieces)| of * words + (1.0 - of) * pieces).collect()
            };
            ridge(words()).into_iter().zip(ridge(pieces())).map(average).collect()
        }
    }
}

/// Texts as vectors, weighted by statistics of the training texts.
struct Vectors {
    learned: Vec<Sparse>,
    judged: Vec<Sparse>,
    width: usize,
}

impl Vectors {
    fn of(
        learned: &[&Texts],
        judged: &[&Texts],
        words: fn(&Texts) -> &HashedWords,
        vector: fn(&TfIdf, &HashedWords) -> Sparse,
    ) -> Self {
        let all: Vec<HashedWords> = learned.iter().map(|texts| words(texts).clone()).collect();
        let weights = TfIdf::of(&all, 1);
        let vectors = |texts: &[&Texts]| texts.iter().map(|texts| vector(&weights, words(texts))).collect();
        Self { learned: vectors(learned), judged: vectors(judged), width: weights.width() }
    }

    /// Returns rows for models with one class per row: each site once for each of its subjects.
    fn by_subject(&self, subjects: &[Vec<usize>]) -> (Vec<Sparse>, Vec<usize>) {
        let rows = self.learned.iter().zip(subjects);
        rows.flat_map(|(row, subjects)| subjects.iter().map(|subject| (row.clone(), *subject))).unzip()
    }
}
