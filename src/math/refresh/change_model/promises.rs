//! How far the rates that sites announce can be trusted.
//!
//! The logarithm of a page's rate is a linear function of that of the announced one. Its slope is learned for each site
//! from what visits found: 1 where a site keeps its word, 0 where its words say nothing. So a page without visits of its
//! own begins with the announced rate as far as its site has kept its word elsewhere.

use std::collections::{BTreeMap, HashMap};

/// Strength of the prior slopes, of all sites (0) and of a site (that of all), as variance of pages times their number.
const CAUTION: f64 = 10.0;
const SITE_CAUTION: f64 = 20.0;
/// Bound of the logarithm of a factor.
const FACTOR_MAX: f64 = 7.0;

/// Sums of a regression.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    pages: f64,
    promised: f64,
    found: f64,
    square: f64,
    product: f64,
}

impl Sums {
    fn add(&mut self, promised: f64, found: f64) {
        self.pages += 1.0;
        self.promised += promised;
        self.found += found;
        self.square += promised * promised;
        self.product += promised * found;
    }

    /// Variance and covariance, times the number of pages.
    fn spread(&self) -> (f64, f64) {
        let pages = self.pages.max(1.0);
        (
            self.square - self.promised * self.promised / pages,
            self.product - self.promised * self.found / pages,
        )
    }
}

/// What a site's words are worth: the slope, and the mean logarithm of what it announces.
#[derive(Clone, Copy, Debug, Default)]
struct Trust {
    slope: f64,
    mean: f64,
}

/// What sites announce, and what comes of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Promises {
    /// Logarithm of the announced rate, and site, of each page that has one.
    pages: HashMap<usize, (f64, usize)>,
    /// In order, so that the same visits teach the same.
    sums: BTreeMap<usize, Sums>,
    trust: HashMap<usize, Trust>,
}

impl Promises {
    /// Notes the rate that a site announces for a page, in changes a day.
    pub(super) fn add(&mut self, page: usize, site: usize, rate: f64) {
        self.pages.insert(page, (rate.ln(), site));
    }

    /// The factor by which what is announced changes the rate expected of a page.
    pub(super) fn factor(&self, page: usize) -> f64 {
        let Some((promised, site)) = self.pages.get(&page) else { return 1.0 };
        let Trust { slope, mean } = self.trust.get(site).copied().unwrap_or_default();
        (slope * (promised - mean)).clamp(-FACTOR_MAX, FACTOR_MAX).exp()
    }

    /// Notes the expected logarithm of a visited page's rate, divided by its factor.
    pub(super) fn note(&mut self, page: usize, log_rate: f64) {
        if let Some((promised, site)) = self.pages.get(&page) {
            let found = log_rate + self.factor(page).ln();
            self.sums.entry(*site).or_default().add(*promised, found);
        }
    }

    /// Learns from what was noted since the last call.
    pub(super) fn learn(&mut self) {
        let (mut squares, mut products) = (CAUTION, 0.0);
        for (square, product) in self.sums.values().map(Sums::spread) {
            squares += square;
            products += product;
        }
        let usual = products / squares;
        for (site, sums) in std::mem::take(&mut self.sums) {
            let (square, product) = sums.spread();
            let slope = (product + SITE_CAUTION * usual) / (square + SITE_CAUTION);
            self.trust.insert(site, Trust { slope: slope.clamp(0.0, 1.0), mean: sums.promised / sums.pages });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_trusted_as_far_as_it_kept_its_word() {
        let mut promises = Promises::default();
        let words = [24.0, 1.0, 1.0 / 7.0, 1.0 / 365.0];
        for page in 0..400 {
            promises.add(page, page % 2, words[page / 2 % 4]);
        }
        // Each step starts from what the one before has learned.
        for _ in 0..20 {
            for page in 0..398 {
                let own = words[if page % 2 == 0 { page / 2 % 4 } else { page / 8 % 4 }];
                promises.note(page, f64::ln(own) - promises.factor(page).ln());
            }
            promises.learn();
        }
        let slopes = [0, 1].map(|site| promises.trust[&site].slope);
        assert!(slopes[0] > 0.9 && slopes[1] < 0.1, "{slopes:?}");
        // Pages that were never visited: a word that was kept, and one that never was.
        assert!(promises.factor(398) < 0.1 && (0.5..2.0).contains(&promises.factor(399)));
        assert_eq!(promises.factor(400), 1.0);
    }
}
