//! A multiplier for sites that are busier than expected. It needs no dates, only whether pages changed.

use super::estimates::{Estimates, Estimator};
use super::{RefreshPolicy, RefreshProblem, Sighting};
use crate::refresh::budget::Rule;

/// Pseudo-changes, observed and expected, that keep the multiplier near 1.
const CAUTION: f64 = 3.0;
/// Range of the multiplier.
const MULTIPLIERS: (f64, f64) = (0.5, 4.0);

#[derive(Clone, Copy, Default)]
struct SiteActivity {
    observed: f64,
    expected: f64,
    seen: f64,
}

pub(super) struct SiteActivities {
    rule: Rule,
    importance: Vec<f64>,
    site: Vec<usize>,
    sites: Vec<SiteActivity>,
    half_life: f64,
    estimates: Estimates,
}

impl SiteActivities {
    pub(super) fn new(
        rule: Rule,
        estimator: Estimator,
        half_life: Option<f64>,
        known: &RefreshProblem,
    ) -> Self {
        Self {
            rule,
            importance: known.importance.clone(),
            site: known.site.clone(),
            sites: vec![SiteActivity::default(); known.sites],
            // About the number of days that forty fetches take.
            half_life: (2.0 * known.tick).max(40.0 / known.budget),
            estimates: Estimates::new(estimator, half_life, known),
        }
    }
}

impl RefreshPolicy for SiteActivities {
    fn values(&mut self, now: f64, pages: &[usize], ages: &[f64], values: &mut [f64]) {
        self.estimates.renew(now);
        for ((value, &page), &age) in values.iter_mut().zip(pages).zip(ages) {
            let site = &self.sites[self.site[page]];
            let multiplier = (site.observed + CAUTION) / (site.expected + CAUTION);
            let age = age * multiplier.clamp(MULTIPLIERS.0, MULTIPLIERS.1);
            *value = self.rule.value(self.importance[page], self.estimates.rate(page), age);
        }
    }

    fn seen(&mut self, now: f64, visits: &[Sighting]) {
        for visit in visits {
            let site = &mut self.sites[self.site[visit.page]];
            let fade = (-(now - site.seen) / self.half_life).exp2();
            let expected = -(-self.estimates.rate(visit.page) * visit.age).exp_m1();
            site.observed = site.observed * fade + f64::from(u8::from(visit.changed.is_some()));
            site.expected = site.expected * fade + expected;
            site.seen = now;
        }
        self.estimates.seen(now, visits);
    }
}
