//! Scores of raters and of measures, as in the OPIC paper (section 5: an automatic librarian compared with people).
//!
//! The reference rating of a site is the mean of its ratings. A rater's score is the share of sites that they rate like
//! the reference, computed without their own rating. A measure is mapped to ratings by three thresholds; these are
//! fitted on one half of the rated sites and evaluated on the other, repeatedly.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use archive_base::access::Access;
use archive_base::decisions::{Decisions, Subject};
use archive_base::error::{Classified, ErrorKind};
use archive_math::learn::agreement::{AgreementLevel, Thresholds, alpha};
use archive_storage::Store;
use chrono::Utc;
use fastrand::Rng;
use serde::Serialize;

use crate::query::{Error, Question, Value};

/// Measures evaluated by default: a site's importance from links between sites, and the importance of its pages.
pub const MEASURES: [&str; 4] = ["importance", "importance_sum", "importance_max", "importance_sum / pages"];

/// Number of possible ratings, 1 to 4.
const RATINGS: usize = 4;

/// Ratings by site and rater.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ratings(BTreeMap<String, BTreeMap<String, u8>>);

/// How a rater compares with the others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RaterScore {
    /// Name of the rater.
    pub rater: String,
    /// Number of sites that they rated.
    pub rated: usize,
    /// Number of these that others rated, too.
    pub judged: usize,
    /// Share of these that they rated like the mean of the others; `None` if there are none.
    pub like_others: Option<f64>,
    /// 95 % confidence interval of that share (Wilson, 1927).
    pub interval: Option<(f64, f64)>,
    /// How much higher they rate than the others on average, in points.
    pub higher: Option<f64>,
}

/// How well a measure predicts ratings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasureScore {
    /// The measure.
    pub measure: String,
    /// Number of rated sites for which the measure is known.
    pub sites: usize,
    /// Mean share of sites rated like the reference.
    pub like_reference: f64,
    /// Range that contains 95 % of the shares.
    pub interval: (f64, f64),
    /// The share if every site got the most common rating of the training half.
    pub commonest: f64,
}

/// How far raters agree.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// Krippendorff's alpha for ordinal data; `None` if no disagreement was possible.
    pub alpha_ordinal: Option<f64>,
    /// Krippendorff's alpha for interval data.
    pub alpha_interval: Option<f64>,
    /// Number of pairs in which one person gave the rating of the row and another that of the column to the same site,
    /// 1 to 4.
    pub confusion: [[u64; RATINGS]; RATINGS],
}

/// A site with differing ratings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Disagreement {
    /// The site.
    pub site: String,
    /// Ratings by person.
    pub ratings: BTreeMap<String, u8>,
}

/// Why scores cannot be computed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScoreError {
    /// The archive cannot be queried.
    #[error(transparent)]
    Query(#[from] Error),
    /// The measure consists of several expressions.
    #[error("'{0}' is more than one calculation: each has to be given by itself")]
    Several(String),
}

impl Classified for ScoreError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Query(error) => error.kind(),
            Self::Several(_) => ErrorKind::Usage,
        }
    }
}

/// How far people agree in an archive, and which measures agree with them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReviewScores {
    /// Scores of the raters.
    pub raters: Vec<RaterScore>,
    /// Agreement among all raters.
    pub agreement: Agreement,
    /// Scores of the measures that are known for at least two rated sites.
    pub measures: Vec<MeasureScore>,
    /// Sites whose ratings differ, largest differences first.
    pub disagreements: Vec<Disagreement>,
}

impl ReviewScores {
    /// Evaluates the ratings of an archive's sites, and `measures`: expressions on sites, as in a query. `repeat` and
    /// `rng` as for [`Ratings::measure`].
    ///
    /// # Errors
    /// When the archive cannot be read or a measure is not a valid expression.
    pub fn of(
        store: &Store,
        access: &Access,
        decisions: &Decisions,
        measures: &[String],
        repeat: usize,
        rng: u64,
    ) -> Result<Self, ScoreError> {
        let ratings = Ratings::of_sites(decisions);
        let mut scores = Vec::new();
        for measure in measures {
            let numbers = numbers(store, access, measure)?;
            scores.extend(ratings.measure(measure, &numbers, repeat, rng));
        }
        Ok(Self {
            raters: ratings.raters(),
            agreement: ratings.agreement(),
            measures: scores,
            disagreements: ratings.disagreements(),
        })
    }
}

/// The value of an expression for each site.
fn numbers(store: &Store, access: &Access, measure: &str) -> Result<HashMap<String, f64>, ScoreError> {
    let query = format!("site select site, {measure}");
    let answer = Question::new(store, access.clone(), &query, Utc::now())?.answer()?;
    if answer.headings.len() != 2 {
        return Err(ScoreError::Several(measure.to_owned()));
    }
    let rows = answer.rows.into_iter().filter_map(|row| match row.as_slice() {
        [Value::Text(site), value] => Some((site.clone(), value.as_number()?)),
        _ => None,
    });
    Ok(rows.collect())
}

impl Ratings {
    /// The newest ratings of sites by each person.
    #[must_use]
    pub fn of_sites(decisions: &Decisions) -> Self {
        let sites = decisions.subjects().filter_map(|(subject, standing)| match subject {
            Subject::Site(name) if !standing.ratings.is_empty() => {
                let ratings = standing.ratings.iter().map(|(who, rated)| (who.clone(), rated.rating));
                Some((name.clone(), ratings.collect()))
            }
            _ => None,
        });
        Self(sites.collect())
    }

    /// Creates ratings from a map of sites to ratings by person.
    #[must_use]
    pub fn new(given: BTreeMap<String, BTreeMap<String, u8>>) -> Self {
        Self(given)
    }

    /// The rating nearest to the mean of a site's ratings; `None` without ratings.
    #[must_use]
    pub fn reference(&self, site: &str) -> Option<u8> {
        reference(self.0.get(site)?)
    }

    /// The rated sites.
    pub fn sites(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Scores of the raters, ordered by name.
    #[must_use]
    pub fn raters(&self) -> Vec<RaterScore> {
        let names: BTreeSet<&String> = self.0.values().flat_map(BTreeMap::keys).collect();
        names.into_iter().map(|name| self.rater(name)).collect()
    }

    fn rater(&self, name: &str) -> RaterScore {
        let (mut rated, mut judged, mut like, mut higher) = (0, 0, 0, 0.0);
        for ratings in self.0.values() {
            let Some(own) = ratings.get(name) else { continue };
            rated += 1;
            let others: Vec<u8> =
                ratings.iter().filter(|(who, _)| *who != name).map(|(_, rating)| *rating).collect();
            if let Some(mean) = mean(&others) {
                judged += 1;
                like += usize::from(nearest(mean) == *own);
                higher += f64::from(*own) - mean;
            }
        }
        let share = |sum: f64| (judged > 0).then(|| sum / judged as f64);
        RaterScore {
            rater: name.to_owned(),
            rated,
            judged,
            like_others: share(like as f64),
            interval: (judged > 0).then(|| wilson(like as f64, judged as f64)),
            higher: share(higher),
        }
    }

    /// How far raters agree.
    #[must_use]
    pub fn agreement(&self) -> Agreement {
        let things: Vec<Vec<u8>> =
            self.0.values().map(|ratings| ratings.values().copied().collect()).collect();
        let mut confusion = [[0; RATINGS]; RATINGS];
        for ratings in &things {
            for (one, left) in ratings.iter().enumerate() {
                for (other, right) in ratings.iter().enumerate() {
                    if let (true, Some(count)) = (one != other, cell(&mut confusion, *left, *right)) {
                        *count += 1;
                    }
                }
            }
        }
        Agreement {
            alpha_ordinal: alpha(&things, AgreementLevel::Ordinal),
            alpha_interval: alpha(&things, AgreementLevel::Interval),
            confusion,
        }
    }

    /// Sites whose ratings differ, largest differences first.
    #[must_use]
    pub fn disagreements(&self) -> Vec<Disagreement> {
        let spread = |ratings: &BTreeMap<String, u8>| {
            ratings.values().max().zip(ratings.values().min()).map_or(0, |(max, min)| max - min)
        };
        let mut apart: Vec<_> = self.0.iter().filter(|(_, ratings)| spread(ratings) > 0).collect();
        apart.sort_by(|left, right| spread(right.1).cmp(&spread(left.1)).then(left.0.cmp(right.0)));
        apart
            .into_iter()
            .map(|(site, ratings)| Disagreement { site: site.clone(), ratings: ratings.clone() })
            .collect()
    }

    /// Evaluates a measure, given its value for each site, over `repeat` random halves; `None` if it is known for fewer
    /// than two rated sites.
    #[must_use]
    pub fn measure(
        &self,
        measure: &str,
        numbers: &HashMap<String, f64>,
        repeat: usize,
        rng: u64,
    ) -> Option<MeasureScore> {
        let mut pairs: Vec<(f64, usize)> = Vec::new();
        for (site, ratings) in &self.0 {
            let pair = numbers.get(site).zip(reference(ratings));
            pairs.extend(pair.map(|(number, rating)| (*number, usize::from(rating) - 1)));
        }
        if pairs.len() < 2 || repeat == 0 {
            return None;
        }
        let mut random = Rng::with_seed(rng);
        let (mut shares, mut commonest) = (Vec::new(), 0.0);
        for _ in 0..repeat {
            random.shuffle(&mut pairs);
            let (learned, judged) = pairs.split_at(pairs.len() / 2);
            let thresholds = Thresholds::fit(learned, RATINGS);
            let right = judged.iter().filter(|(number, class)| thresholds.class(*number) == *class).count();
            shares.push(right as f64 / judged.len() as f64);
            let count = |class: usize| learned.iter().filter(|(_, of)| *of == class).count();
            let common = (0..RATINGS).rev().max_by_key(|class| count(*class));
            let right = judged.iter().filter(|(_, class)| Some(*class) == common).count();
            commonest += right as f64 / judged.len() as f64;
        }
        shares.sort_by(f64::total_cmp);
        let at = |share: f64| shares[((shares.len() - 1) as f64 * share).round() as usize];
        Some(MeasureScore {
            measure: measure.to_owned(),
            sites: pairs.len(),
            like_reference: shares.iter().sum::<f64>() / repeat as f64,
            interval: (at(0.025), at(0.975)),
            commonest: commonest / repeat as f64,
        })
    }
}

fn cell(table: &mut [[u64; RATINGS]; RATINGS], left: u8, right: u8) -> Option<&mut u64> {
    table.get_mut(usize::from(left).checked_sub(1)?)?.get_mut(usize::from(right).checked_sub(1)?)
}

fn reference(ratings: &BTreeMap<String, u8>) -> Option<u8> {
    let ratings: Vec<u8> = ratings.values().copied().collect();
    mean(&ratings).map(nearest)
}

fn mean(ratings: &[u8]) -> Option<f64> {
    let sum: f64 = ratings.iter().map(|rating| f64::from(*rating)).sum();
    (!ratings.is_empty()).then(|| sum / ratings.len() as f64)
}

/// Wilson score interval of a proportion: `hits` of `all`, which is above 0.
fn wilson(hits: f64, all: f64) -> (f64, f64) {
    const Z: f64 = 1.959_964;
    let (share, square) = (hits / all, Z * Z / all);
    let (middle, spread) =
        (share + square / 2.0, Z * (share * (1.0 - share) / all + square / (4.0 * all)).sqrt());
    ((middle - spread) / (1.0 + square), (middle + spread) / (1.0 + square))
}

/// The rating nearest to a mean; ties go to the higher one.
fn nearest(mean: f64) -> u8 {
    mean.round().clamp(1.0, RATINGS as f64) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratings(given: &[(&str, &[(&str, u8)])]) -> Ratings {
        let sites = given.iter().map(|(site, ratings)| {
            ((*site).to_owned(), ratings.iter().map(|(who, rating)| ((*who).to_owned(), *rating)).collect())
        });
        Ratings(sites.collect())
    }

    #[test]
    fn raters_are_judged_by_the_others() {
        let ratings = ratings(&[
            ("a", &[("anna", 4), ("ben", 4), ("carl", 3)]),
            ("b", &[("anna", 1), ("ben", 2), ("carl", 1)]),
            ("c", &[("anna", 2)]),
            ("d", &[("ben", 1), ("carl", 4)]),
        ]);
        let scores = ratings.raters();
        let listed: Vec<_> = scores
            .iter()
            .map(|it| (it.rater.as_str(), it.rated, it.judged, it.like_others.unwrap()))
            .collect();
        // The mean of 4 and 3 is rated 4, and that of 2 and 1 is rated 2.
        assert_eq!(
            ["a", "b", "c", "e"].map(|site| ratings.reference(site)),
            [Some(4), Some(1), Some(2), None]
        );
        assert_eq!(listed, [("anna", 3, 2, 0.5), ("ben", 3, 3, 1.0 / 3.0), ("carl", 3, 3, 0.0)]);
        assert_eq!(scores[0].higher, Some((0.5 - 0.5) / 2.0));
        // 81 of 263: .2553 to .3662 (R. Newcombe, Statistics in Medicine 17, 1998, table I).
        let (low, high) = wilson(81.0, 263.0);
        assert!((low - 0.2553).abs() < 5e-5 && (high - 0.3662).abs() < 5e-5, "{low} {high}");
        let agreement = ratings.agreement();
        assert_eq!(agreement.confusion[0], [2, 2, 0, 1]);
        assert_eq!(agreement.confusion[3], [1, 0, 2, 2]);
        let apart: Vec<String> = ratings.disagreements().into_iter().map(|it| it.site).collect();
        assert_eq!(apart, ["d", "a", "b"]);
    }

    #[test]
    fn a_measure_that_knows_is_distinguished_from_one_that_guesses() {
        let mut random = Rng::with_seed(1);
        let (mut given, mut knows, mut guesses) = (BTreeMap::new(), HashMap::new(), HashMap::new());
        for site in 0..200 {
            let (name, rating) = (format!("site-{site}"), random.u8(1..5));
            given.insert(name.clone(), BTreeMap::from([("anna".to_owned(), rating)]));
            knows.insert(name.clone(), f64::from(rating) * 10.0 + random.f64());
            guesses.insert(name, random.f64());
        }
        let ratings = Ratings(given);
        let score = ratings.measure("x", &knows, 50, 1).unwrap();
        assert_eq!((score.sites, score.like_reference, score.interval), (200, 1.0, (1.0, 1.0)));
        let score = ratings.measure("x", &guesses, 50, 1).unwrap();
        assert!(score.like_reference < 0.4 && score.interval.0 < score.like_reference, "{score:?}");
        assert_eq!(ratings.measure("x", &HashMap::new(), 50, 1), None);
    }
}
