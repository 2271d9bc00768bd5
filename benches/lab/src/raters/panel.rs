//! Raters, their ratings, and the scores of raters and of importance.

use std::collections::{BTreeMap, HashMap};

use archive_ask::review::score::Ratings;
use archive_math::graphs::random::Random;
use archive_math::learn::agreement::Thresholds;

use super::expected::{self, Law};
use super::world::RATINGS;
use super::{Judged, Of, Score};
use crate::repeated::mean;

/// Number of random halves by which a kind of importance is judged.
const HALVES: usize = 20;

pub(super) struct Panel<'a> {
    of: Of,
    /// Noise of all raters, if they are identical.
    alike: Option<f64>,
    noise: Vec<f64>,
    truth: &'a [u8],
    ratings: Ratings,
    /// Share of things that each rater rated like the truth.
    like_truth: Vec<f64>,
}

impl<'a> Panel<'a> {
    /// Simulates raters with these noises that rate everything.
    pub(super) fn new(
        of: Of,
        alike: Option<f64>,
        noise: Vec<f64>,
        truth: &'a [u8],
        random: &mut Random,
    ) -> Self {
        let mut like_truth = vec![0_usize; noise.len()];
        let mut given = BTreeMap::new();
        for (thing, quality) in truth.iter().enumerate() {
            let mut ratings = BTreeMap::new();
            for (rater, noise) in noise.iter().enumerate() {
                let mut rating = *quality;
                if random.unit() < *noise {
                    // Draw one of the other ratings.
                    let steps = 1 + random.below(RATINGS as u32 - 1) as u8;
                    rating = (quality - 1 + steps) % RATINGS as u8 + 1;
                }
                like_truth[rater] += usize::from(rating == *quality);
                ratings.insert(name(rater), rating);
            }
            given.insert(name(thing), ratings);
        }
        let like_truth = like_truth.into_iter().map(|count| count as f64 / truth.len() as f64).collect();
        Self { of, alike, noise, truth, ratings: Ratings::new(given), like_truth }
    }

    /// Returns all scores: of each rater (the mean of identical ones), of the reference, of the agreement, and of each
    /// kind of importance.
    pub(super) fn scores(&self, kinds: &[(String, Vec<f64>)], random: &mut Random) -> Vec<Score> {
        let mut scores = self.raters();
        if let Some(noise) = self.alike {
            let mean = |of: fn(&Score) -> f64| mean(&scores.iter().map(of).collect::<Vec<f64>>());
            let like_truth = mean(|score| score.like_truth.unwrap_or_default());
            let (score, expected) = (mean(|score| score.score), mean(|score| score.expected));
            scores = vec![self.score(Judged::Rater, Some(noise), score, expected, Some(like_truth))];
        }
        scores.push(self.reference());
        let alpha = self.ratings.agreement().alpha_interval;
        let expected = expected::alpha(&self.noise, self.truth);
        scores.extend(alpha.map(|alpha| self.score(Judged::Alpha, None, alpha, expected, None)));
        scores.extend(kinds.iter().filter_map(|(kind, values)| self.importance(kind, values, random)));
        // Constant values all become the commonest rating.
        scores.extend(self.importance("commonest", &vec![0.0; self.truth.len()], random));
        scores
    }

    fn score(
        &self,
        judged: Judged,
        noise: Option<f64>,
        score: f64,
        expected: f64,
        like_truth: Option<f64>,
    ) -> Score {
        Score { of: self.of, panel: self.alike, judged, noise, score, expected, like_truth }
    }

    fn raters(&self) -> Vec<Score> {
        let scores = self.ratings.raters().into_iter().zip(&self.noise).zip(&self.like_truth).enumerate();
        let score = |(place, ((rater, noise), like_truth)): (usize, ((_, &f64), &f64))| {
            let rater: archive_ask::review::score::RaterScore = rater;
            let mut others = self.noise.clone();
            others.remove(place);
            let agree = |truth| {
                expected::agree(&expected::rater(*noise, truth), &expected::reference(&others, truth))
            };
            let expected = self.over_things(agree);
            Some(self.score(Judged::Rater, Some(*noise), rater.like_others?, expected, Some(*like_truth)))
        };
        scores.filter_map(score).collect()
    }

    fn reference(&self) -> Score {
        let is_true = |(thing, truth): (usize, &u8)| self.ratings.reference(&name(thing)) == Some(*truth);
        let right = self.truth.iter().enumerate().filter(|thing| is_true(*thing)).count();
        let share = right as f64 / self.truth.len() as f64;
        let expected =
            self.over_things(|truth| expected::reference(&self.noise, truth)[usize::from(truth) - 1]);
        self.score(Judged::Reference, None, share, expected, Some(share))
    }

    /// Scores a kind of importance as in an archive. The expected score uses thresholds fitted in the same way on other
    /// halves: it is the probability that a thing's reference, given only the truth, equals the class from the
    /// thresholds.
    fn importance(&self, kind: &str, values: &[f64], random: &mut Random) -> Option<Score> {
        let numbers: HashMap<String, f64> =
            values.iter().enumerate().map(|(thing, value)| (name(thing), *value)).collect();
        let measured = self.ratings.measure(kind, &numbers, HALVES, random.bits())?;
        let things = self.truth.len();
        let pairs: Vec<(f64, usize)> = (0..things)
            .filter_map(|thing| Some((values[thing], usize::from(self.ratings.reference(&name(thing))?) - 1)))
            .collect();
        let laws: Vec<Law> =
            (1..=RATINGS as u8).map(|truth| expected::reference(&self.noise, truth)).collect();
        let (mut expected, mut like_truth) = (0.0, 0.0);
        for _ in 0..HALVES {
            let order = random.choose(things as u32, things);
            let (learned, judged) = order.split_at(things / 2);
            let learned: Vec<(f64, usize)> = learned.iter().map(|&thing| pairs[thing as usize]).collect();
            let thresholds = Thresholds::fit(&learned, RATINGS);
            for &thing in judged {
                let quality = usize::from(self.truth[thing as usize]) - 1;
                let class = thresholds.class(values[thing as usize]);
                expected += laws[quality][class] / (HALVES * judged.len()) as f64;
                like_truth += f64::from(u8::from(class == quality)) / (HALVES * judged.len()) as f64;
            }
        }
        let judged = Judged::Importance(kind.to_owned());
        Some(self.score(judged, None, measured.like_reference, expected, Some(like_truth)))
    }

    /// Returns the mean, over the rated things, of a number that depends only on the truth.
    fn over_things(&self, of: impl Fn(u8) -> f64) -> f64 {
        let by_quality: Vec<f64> = (1..=RATINGS as u8).map(of).collect();
        mean(&self.truth.iter().map(|quality| by_quality[usize::from(*quality) - 1]).collect::<Vec<f64>>())
    }
}

/// Returns a name that sorts in the order of the numbers.
fn name(number: usize) -> String {
    format!("{number:08}")
}
