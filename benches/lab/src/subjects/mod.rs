//! The subject of a site from its title and URL, as librarians classified it.
//!
//! A row is a site: librarians put many sites under several subjects, so a model is right when the subject that it finds most
//! probable is one of the site's. Every constant of a model is chosen by folds of the sites that are learned from, and so is what makes
//! a confidence of its scores; the other sites only judge.

mod models;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;
use std::time::Instant;

use archive::graphs::random::Random;
use archive::learn::{Isotonic, measures};
use rayon::prelude::*;

pub use models::{Constants, Model};
use models::{Texts, scores};

/// Folds by which constants are chosen.
const FOLDS: usize = 3;
/// Groups of equally many sites in which confidence is compared with what came true.
const BINS: usize = 20;
/// Subjects there may be.
pub const SUBJECTS_MAX: usize = 1000;
/// Sites that are learned from, at least.
pub const LEARNED_MIN: usize = 10;

/// A site that librarians classified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Its title.
    pub title: String,
    /// Its URL.
    pub url: String,
    /// Its subjects, as places in [`Collection::subjects`], in the order of the file; at least one.
    pub subjects: Vec<usize>,
}

/// Sites and their subjects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collection {
    /// The names of the subjects.
    pub subjects: Vec<String>,
    /// Each site once.
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
    /// A line that has no such columns.
    #[error(transparent)]
    Csv(#[from] csv::Error),
    /// A missing column.
    #[error("its heading has no column `{0}`: it needs primary, title and url, with tabs between")]
    Column(&'static str),
    /// Too many.
    #[error("it has more than {SUBJECTS_MAX} subjects in its column `primary`")]
    TooManySubjects,
    /// Too few.
    #[error("{0} sites are too few to learn from: at least {LEARNED_MIN} are needed")]
    TooFew(usize),
    /// Nothing to judge by.
    #[error("no site is left to judge by")]
    NothingToJudge,
}

impl Collection {
    /// Adds the sites of a file: lines with tabs between, below a heading that names the columns `primary`, `title` and `url`; may be
    /// in gzip. Sites that are there already stay as they are. Returns the places of the new ones.
    ///
    /// # Errors
    /// When it cannot be read.
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

    /// The same site may be written with and without `www.` and with a slash at the end.
    fn site(&mut self, title: &str, url: &str) -> usize {
        let name = url.split_once("://").map_or(url, |(_, rest)| rest).trim_end_matches('/');
        let name = name.strip_prefix("www.").unwrap_or(name);
        *self.places.entry(name.to_owned()).or_insert_with(|| {
            self.sites.push(Site { title: title.to_owned(), url: url.to_owned(), subjects: Vec::new() });
            self.sites.len() - 1
        })
    }

    /// Half of the sites at random, and the others.
    #[must_use]
    pub fn halves(&self, rng: u64) -> (Vec<usize>, Vec<usize>) {
        let count = self.sites.len();
        let mut order: Vec<usize> =
            Random::new(rng).choose(count as u32, count).into_iter().map(|site| site as usize).collect();
        let others = order.split_off(count / 2);
        (order, others)
    }
}

/// How well a model predicted the subjects of one set of sites.
#[derive(Clone, Debug)]
pub struct Run {
    /// The model.
    pub model: Model,
    /// The constants that were chosen.
    pub constants: Constants,
    /// Share of sites whose first subject by the model is one of theirs.
    pub right: f64,
    /// Mean F1 of the subjects that are among the sites; what a site is taken for is held against the subject found, if that is
    /// right, else against its first one.
    pub macro_f1: f64,
    /// Expected calibration error of the probability that it is right.
    pub ece: f64,
    /// Seconds to learn and to judge with the chosen constants.
    pub seconds: f64,
    /// Seconds to choose them.
    pub seconds_to_choose: f64,
    /// How often what is of a subject (and not of the other) was taken for another: the two, from 0.
    pub confusions: BTreeMap<(usize, usize), usize>,
}

/// Learns every model from some sites of `collection` and judges it by others.
///
/// # Errors
/// When there is too little to learn from, or nothing to judge.
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
            // There is a site to judge.
            ece: measures::calibration_error(&sure, &right, BINS).unwrap_or_default(),
            seconds,
            seconds_to_choose,
            confusions,
        }
    }

    /// The constants with which most sites of each fold are right when the others are learned from; and what the best score of a
    /// site then says of being right.
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
        // A model has some to choose among.
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

/// The subject with the highest score; of equal ones the first.
fn best(scores: &[f64]) -> (usize, f64) {
    let better = |best: (usize, f64), next: (usize, f64)| if next.1 > best.1 { next } else { best };
    scores.iter().copied().enumerate().fold((0, f64::NEG_INFINITY), better)
}

fn share(right: &[bool]) -> f64 {
    right.iter().filter(|right| **right).count() as f64 / right.len() as f64
}

#[cfg(test)]
mod tests;
