//! The subject of a site, predicted from its title and URL and judged by the classification of librarians.
//!
//! Librarians put many sites under several subjects, so a prediction is right if the most probable subject is one of
//! the site's. The constants of a model, and the mapping from its scores to a confidence, are chosen by
//! cross-validation on the training sites; the other sites only judge.

mod isotonic;
mod models;
mod ridge;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;
use std::time::Instant;

use archive_math::graphs::random::Random;
use archive_math::learn::measures;
use rayon::prelude::*;

use isotonic::Isotonic;
pub use models::{Constants, Model};
use models::{Texts, scores};

/// Number of folds of the cross-validation.
const FOLDS: usize = 3;
/// Number of equally large groups of sites in which confidence is compared with outcomes.
const BINS: usize = 20;
/// Largest number of subjects.
pub const SUBJECTS_MAX: usize = 1000;
/// Smallest number of training sites.
pub const LEARNED_MIN: usize = 10;

/// A site that librarians classified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Its title.
    pub title: String,
    /// Its URL.
    pub url: String,
    /// Indices of its subjects in [`Collection::subjects`], in file order; at least one.
    pub subjects: Vec<usize>,
}

/// Sites and their subjects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collection {
    /// Names of the subjects.
    pub subjects: Vec<String>,
    /// The sites, without duplicates.
    pub sites: Vec<Site>,
    places: HashMap<String, usize>,
}

/// Why a collection cannot be read or learned from.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubjectsError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The file lacks a required column or is malformed.
    #[error(transparent)]
    Csv(#[from] csv::Error),
    /// A column is missing.
    #[error("its heading has no column `{0}`: it needs primary, title and url, with tabs between")]
    Column(&'static str),
    /// The file has too many subjects.
    #[error("it has more than {SUBJECTS_MAX} subjects in its column `primary`")]
    TooManySubjects,
    /// There are too few sites to learn from.
    #[error("{0} sites are too few to learn from: at least {LEARNED_MIN} are needed")]
    TooFew(usize),
    /// There are no sites to judge by.
    #[error("no site is left to judge by")]
    NothingToJudge,
}

impl Collection {
    /// Adds the sites of a file: tab-separated lines after a heading line with the columns `primary`, `title` and
    /// `url`; optionally in gzip. Existing sites stay unchanged. Returns the indices of the new ones.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn add(&mut self, path: &Path) -> Result<Range<usize>, SubjectsError> {
        let text = super::librarian::text(path)?;
        let mut reader =
            csv::ReaderBuilder::new().delimiter(b'\t').quoting(false).from_reader(text.as_bytes());
        let heading = reader.headers()?.clone();
        let column = |name: &'static str| {
            heading.iter().position(|known| known == name).ok_or(SubjectsError::Column(name))
        };
        let [subject, title, url] = [column("primary")?, column("title")?, column("url")?];
        let first_new = self.sites.len();
        for row in reader.records() {
            let row = row?;
            let place = self.site(&row[title], &row[url]);
            if place < first_new {
                continue;
            }
            let subject = self.subject(&row[subject])?;
            let subjects = &mut self.sites[place].subjects;
            if !subjects.contains(&subject) {
                subjects.push(subject);
            }
        }
        Ok(first_new..self.sites.len())
    }

    fn subject(&mut self, name: &str) -> Result<usize, SubjectsError> {
        let place = self.subjects.iter().position(|known| known == name);
        place.map_or_else(
            || {
                self.subjects.push(name.to_owned());
                let last = self.subjects.len() - 1;
                if last < SUBJECTS_MAX { Ok(last) } else { Err(SubjectsError::TooManySubjects) }
            },
            Ok,
        )
    }

    /// Returns the index of a site, which may be written with or without `www.` and a trailing slash; adds it if it is
    /// new.
    fn site(&mut self, title: &str, url: &str) -> usize {
        let name = url.split_once("://").map_or(url, |(_, rest)| rest).trim_end_matches('/');
        let name = name.strip_prefix("www.").unwrap_or(name);
        *self.places.entry(name.to_owned()).or_insert_with(|| {
            self.sites.push(Site { title: title.to_owned(), url: url.to_owned(), subjects: Vec::new() });
            self.sites.len() - 1
        })
    }

    /// Splits the sites into two random halves.
    #[must_use]
    pub fn halves(&self, rng: u64) -> (Vec<usize>, Vec<usize>) {
        let count = self.sites.len();
        let mut order: Vec<usize> =
            Random::new(rng).choose(count as u32, count).into_iter().map(|site| site as usize).collect();
        let others = order.split_off(count / 2);
        (order, others)
    }
}

/// Result of a model on one set of sites.
#[derive(Clone, Debug)]
pub struct Run {
    /// The model.
    pub model: Model,
    /// The chosen constants.
    pub constants: Constants,
    /// Share of sites whose most probable subject is right.
    pub right: f64,
    /// Mean F1 over the subjects of the judged sites. A prediction is compared with the predicted subject itself if it
    /// is right, otherwise with the site's first subject.
    pub macro_f1: f64,
    /// Expected calibration error of the probability of being right.
    pub ece: f64,
    /// Seconds to learn and to judge with the chosen constants.
    pub seconds: f64,
    /// Seconds to choose the constants.
    pub seconds_to_choose: f64,
    /// How often a site of one subject (but not of the other) was assigned the other; subjects as indices.
    pub confusions: BTreeMap<(usize, usize), usize>,
}

/// Learns every model from some sites of `collection` and judges it by others.
///
/// # Errors
/// There is too little to learn from, or nothing to judge by.
pub fn run(collection: &Collection, learned: &[usize], judged: &[usize]) -> Result<Vec<Run>, SubjectsError> {
    if learned.len() < LEARNED_MIN {
        return Err(SubjectsError::TooFew(learned.len()));
    }
    if judged.is_empty() {
        return Err(SubjectsError::NothingToJudge);
    }
    let texts: Vec<Texts> = collection.sites.par_iter().map(Texts::of).collect();
    let task = Task { collection, texts: &texts };
    Ok(Model::ALL.into_iter().map(|model| task.run(model, learned, judged)).collect())
}

struct Task<'a> {
    collection: &'a Collection,
    texts: &'a [Texts],
}

impl Task<'_> {
    fn run(&self, model: Model, learned: &[usize], judged: &[usize]) -> Run {
        let start = Instant::now();
        let (constants, confidence) = self.choose(model, learned);
        let seconds_to_choose = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let found = self.scores(model, constants, learned, judged);
        let seconds = start.elapsed().as_secs_f64();
        let found: Vec<(usize, f64)> = found.iter().map(|scores| best(scores)).collect();
        let right = self.right(&found, judged);
        let sure: Vec<f64> = found.iter().map(|(_, score)| confidence.probability(*score)).collect();
        let taken: Vec<usize> = found.iter().map(|(subject, _)| *subject).collect();
        let pairs = taken.iter().zip(judged).zip(&right);
        let held: Vec<usize> = pairs
            .map(|((taken, site), right)| if *right { *taken } else { self.subjects(*site)[0] })
            .collect();
        let mut confusions = BTreeMap::new();
        for (held, taken) in held.iter().zip(&taken).filter(|(held, taken)| held != taken) {
            *confusions.entry((*held, *taken)).or_default() += 1;
        }
        let f1 = measures::f1(&taken, &held, self.collection.subjects.len());
        let met: Vec<f64> = f1
            .iter()
            .enumerate()
            .filter(|(subject, _)| judged.iter().any(|site| self.subjects(*site).contains(subject)))
            .map(|(_, f1)| *f1)
            .collect();
        Run {
            model,
            constants,
            right: share(&right),
            macro_f1: super::repeated::mean(&met),
            // There is at least one site to judge by.
            ece: measures::calibration_error(&sure, &right, BINS).unwrap_or_default(),
            seconds,
            seconds_to_choose,
            confusions,
        }
    }

    /// Returns the constants that get most sites right in cross-validation, and the calibration that maps the best
    /// score of a site to the probability of being right.
    fn choose(&self, model: Model, learned: &[usize]) -> (Constants, Isotonic) {
        let all = model.constants();
        let tried = |at: usize| {
            let (constants, fold) = (all[at / FOLDS], at % FOLDS);
            let is_judged = |place: usize| place % FOLDS == fold;
            let part = |judged: bool| -> Vec<usize> {
                let places = learned.iter().enumerate().filter(|(place, _)| is_judged(*place) == judged);
                places.map(|(_, site)| *site).collect()
            };
            let judged = part(true);
            let scores = self.scores(model, constants, &part(false), &judged);
            let found: Vec<(usize, f64)> = scores.iter().map(|scores| best(scores)).collect();
            let right = self.right(&found, &judged);
            (found.into_iter().map(|(_, score)| score).collect::<Vec<f64>>(), right)
        };
        let tried: Vec<(Vec<f64>, Vec<bool>)> = (0..all.len() * FOLDS).into_par_iter().map(tried).collect();
        let together = tried.chunks(FOLDS).map(|folds| {
            let parts: (Vec<_>, Vec<_>) = folds.iter().cloned().unzip();
            (parts.0.concat(), parts.1.concat())
        });
        let chosen = together
            .zip(all.iter().copied())
            .max_by(|((_, a), _), ((_, b), _)| share(a).total_cmp(&share(b)));
        // Every model has at least one choice of constants.
        let ((scores, right), constants) = chosen.unwrap_or_default();
        (constants, Isotonic::fit(&scores, &right))
    }

    fn scores(
        &self,
        model: Model,
        constants: Constants,
        learned: &[usize],
        judged: &[usize],
    ) -> Vec<Vec<f64>> {
        let texts =
            |sites: &[usize]| -> Vec<&Texts> { sites.iter().map(|site| &self.texts[*site]).collect() };
        let subjects: Vec<Vec<usize>> = learned.iter().map(|site| self.subjects(*site).to_vec()).collect();
        let count = self.collection.subjects.len();
        scores(model, constants, (&texts(learned), &subjects), &texts(judged), count)
    }

    fn right(&self, found: &[(usize, f64)], judged: &[usize]) -> Vec<bool> {
        found.iter().zip(judged).map(|((subject, _), site)| self.subjects(*site).contains(subject)).collect()
    }

    fn subjects(&self, site: usize) -> &[usize] {
        &self.collection.sites[site].subjects
    }
}

/// Returns the subject with the highest score; the first of equal ones.
fn best(scores: &[f64]) -> (usize, f64) {
    let better = |best: (usize, f64), next: (usize, f64)| if next.1 > best.1 { next } else { best };
    scores.iter().copied().enumerate().fold((0, f64::NEG_INFINITY), better)
}

fn share(right: &[bool]) -> f64 {
    right.iter().filter(|right| **right).count() as f64 / right.len() as f64
}

#[cfg(test)]
mod tests;
