//! A multiplier for sites that are busier than expected. It needs no dates, only whether pages changed.

use super::estimates::Estimates;
use super::ranked::Ageing;
use super::{RefreshProblem, Sighting};

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

/// The activity of all sites.
pub(super) struct SiteActivities {
    /// Site of each page.
    site: Vec<usize>,
    sites: Vec<SiteActivity>,
    half_life: f64,
}

impl SiteActivities {
    pub(super) fn new(known: &RefreshProblem) -> Self {
        Self {
            site: known.site.clone(),
            sites: vec![SiteActivity::default(); known.sites],
            // About the number of days that forty fetches take.
            half_life: (2.0 * known.tick).max(40.0 / known.budget),
        }
    }
}

impl Ageing for SiteActivities {
    fn age(&self, page: usize, _rate: f64, age: f64) -> f64 {
        let site = &self.sites[self.site[page]];
        let multiplier = (site.observed + CAUTION) / (site.expected + CAUTION);
        age * multiplier.clamp(MULTIPLIERS.0, MULTIPLIERS.1)
    }

    fn seen(&mut self, now: f64, visits: &[Sighting], estimates: &Estimates) {
        for visit in visits {
            let site = &mut self.sites[self.site[visit.page]];
            let fade = (-(now - site.seen) / self.half_life).exp2();
            let expected = -(-estimates.rate(visit.page) * visit.age).exp_m1();
            site.observed = site.observed * fade + f64::from(u8::from(visit.changed.is_some()));
            site.expected = site.expected * fade + expected;
            site.seen = now;
        }
    }
}
