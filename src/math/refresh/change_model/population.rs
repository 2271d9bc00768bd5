//! Rates of single pages in changes per day of their site's measure, with priors from the directory and from all pages.
//!
//! Rates have a Gamma distribution whose shape and scale are learned from all visited pages by expectation maximisation
//! (empirical Bayes), and a factor for each directory.

use super::promises::Promises;
use crate::refresh::gamma::{SHAPES, digamma, mean_log};

/// Pseudo-changes that keep the factor of a directory near 1.
const DIRECTORY_CAUTION: f64 = 3.0;
/// Pseudo-pages with the distribution assumed before any visits, and its shape.
const ASSUMED_PAGES: f64 = 3.0;
const ASSUMED_SHAPE: f64 = 0.7;
/// Initial shape of the distribution.
const FIRST_SHAPE: f64 = 0.5;
/// The distribution is learned again when the number of visits has grown by one part in `RENEWAL_SHARE` plus
/// `RENEWAL_VISITS`.
const RENEWAL_SHARE: usize = 10;
const RENEWAL_VISITS: usize = 10;
const STEPS_MAX: usize = 30;

/// Changes and days of a page or a directory.
#[derive(Clone, Copy, Debug, Default)]
struct ChangeCounts {
    changes: f64,
    days: f64,
    visits: f64,
    gone: f64,
}

/// Bytes of state per page.
#[cfg(test)]
pub(super) const PAGE_BYTES: usize = size_of::<ChangeCounts>() + size_of::<u32>();

/// The rates of all pages.
#[derive(Clone, Debug)]
pub(super) struct Population {
    pages: Vec<ChangeCounts>,
    directory: Vec<u32>,
    directories: Vec<ChangeCounts>,
    all: ChangeCounts,
    assumed_mean: f64,
    shape: f64,
    days: f64,
    visits: usize,
    renew_at: usize,
    promises: Promises,
}

impl Population {
    /// Creates a population, given the directory of each page and the rates that sites announce; `mean` is the rate
    /// assumed before any visits, in changes per day.
    pub(super) fn new(directory: Vec<u32>, directories: usize, mean: f64, promises: Promises) -> Self {
        Self {
            pages: vec![ChangeCounts::default(); directory.len()],
            directory,
            directories: vec![ChangeCounts::default(); directories],
            all: ChangeCounts::default(),
            assumed_mean: mean,
            shape: FIRST_SHAPE,
            days: FIRST_SHAPE / mean,
            visits: 0,
            renew_at: 2 * RENEWAL_VISITS,
            promises,
        }
    }

    /// Returns the rate of `page`.
    pub(super) fn rate(&self, page: usize) -> f64 {
        let directory = &self.directories[self.directory[page] as usize];
        let mean = self.mean();
        let factor = (directory.changes + DIRECTORY_CAUTION) / (directory.days * mean + DIRECTORY_CAUTION);
        let (factor_of_page, page) = (self.promises.factor(page), &self.pages[page]);
        factor_of_page * (page.changes + self.shape) / (page.days * factor_of_page + self.days / factor)
    }

    /// Mean rate of the distribution.
    pub(super) fn mean(&self) -> f64 {
        self.shape / self.days
    }

    /// Number of changes that the rate of `page` is based on, including pseudo-changes.
    pub(super) fn changes(&self, page: usize) -> f64 {
        self.pages[page].changes + self.shape
    }

    /// Probability that a page of the directory of `page` still exists.
    pub(super) fn alive(&self, page: usize) -> f64 {
        let directory = &self.directories[self.directory[page] as usize];
        let everywhere = (self.all.gone + 1.0) / (self.all.visits + self.all.gone + 100.0);
        let gone = directory.gone + DIRECTORY_CAUTION * everywhere;
        1.0 - gone / (directory.visits + directory.gone + DIRECTORY_CAUTION)
    }

    /// Records a visit that found `page` without changes for `days` of the measure, and whether it had changed before
    /// that.
    pub(super) fn book(&mut self, page: usize, days: f64, changed: bool) {
        let changes = f64::from(u8::from(changed));
        let factor = self.promises.factor(page);
        for (counted, factor) in [
            (&mut self.pages[page], 1.0),
            (&mut self.directories[self.directory[page] as usize], factor),
            (&mut self.all, factor),
        ] {
            counted.changes += changes;
            counted.days += days * factor;
            counted.visits += 1.0;
        }
        self.visits += 1;
    }

    /// Records that `page` no longer exists.
    pub(super) fn gone(&mut self, page: usize) {
        self.directories[self.directory[page] as usize].gone += 1.0;
        self.all.gone += 1.0;
    }

    /// Learns the distribution of rates again when there are enough new visits.
    pub(super) fn renew(&mut self) {
        if self.visits <= self.renew_at {
            return;
        }
        self.renew_at = self.visits + self.visits / RENEWAL_SHARE + RENEWAL_VISITS;
        let (mut shape, mut days) = (self.shape, self.days);
        for _ in 0..STEPS_MAX {
            let (mut sum, mut logs, mut count) = (0.0, 0.0, 0.0);
            for (number, page) in self.pages.iter().enumerate().filter(|(_, page)| page.visits > 0.0) {
                let factor = self.promises.factor(number);
                let (p, q) = (page.changes + shape, page.days * factor + days);
                let log = digamma(p) - q.ln();
                sum += p / q;
                logs += log;
                count += 1.0;
                self.promises.note(number, log);
            }
            self.promises.learn();
            let assumed = (sum / count * self.assumed_mean).sqrt();
            sum += ASSUMED_PAGES * assumed;
            logs += ASSUMED_PAGES * mean_log(ASSUMED_SHAPE, assumed);
            count += ASSUMED_PAGES;
            let mean = sum / count;
            let s = mean.ln() - logs / count;
            // Minka, "Estimating a Gamma distribution" (2002): the closed-form start of his Newton iteration.
            let next = (3.0 - s + ((s - 3.0).powi(2) + 24.0 * s).sqrt()) / (12.0 * s);
            let next = next.clamp(SHAPES.0, SHAPES.1);
            let moved = (next - shape).abs() / shape;
            (shape, days) = (next, next / mean);
            if moved < 1e-3 {
                break;
            }
        }
        (self.shape, self.days) = (shape, days);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds even if only vanished pages were seen.
    #[test]
    fn a_chance_to_be_there_is_a_chance() {
        let mut population = Population::new(vec![0; 1000], 1, 0.1, Promises::default());
        for page in 0..999 {
            population.gone(page);
            assert!((0.0..1.0).contains(&population.alive(999)), "{page} gone: {}", population.alive(999));
        }
    }
}
