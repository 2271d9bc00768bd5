//! The pace of each site's measure relative to the calendar.
//!
//! Rates are in changes per day of a site's own measure. What advances the measure (events that count as many changes,
//! quiet days that count less) differs between sites. Within a site this does not matter. But the value of a fetch
//! depends on how long a version lives by the calendar, and there sites compete for one budget.

/// Prior weight of the pace of all sites when the pace of a site is estimated, in multiples of the days between visits
/// if all pages were visited equally often.
const CAUTION_INTERVALS: f64 = 1.0;

/// Days found free of changes, by the measure and by the calendar.
#[derive(Clone, Copy, Debug, Default)]
struct Free {
    measured: f64,
    calendar: f64,
}

impl Free {
    /// Days of the measure per calendar day, with a prior of `usual` over `caution` days.
    fn pace(self, usual: f64, caution: f64) -> f64 {
        (self.measured + caution * usual) / (self.calendar + caution)
    }
}

/// Paces of all sites.
#[derive(Clone, Debug)]
pub(super) struct Paces {
    sites: Vec<Free>,
    all: Free,
    caution: f64,
}

impl Paces {
    /// Creates the paces of `sites` sites whose pages would be visited every `interval` days if all were visited
    /// equally often.
    pub(super) fn new(sites: usize, interval: f64) -> Self {
        let caution = CAUTION_INTERVALS * interval;
        Self { sites: vec![Free::default(); sites], all: Free::default(), caution }
    }

    /// Records the days free of changes found by a visit of a page of `site`.
    pub(super) fn book(&mut self, site: usize, measured: f64, calendar: f64) {
        for free in [&mut self.sites[site], &mut self.all] {
            free.measured += measured;
            free.calendar += calendar;
        }
    }

    /// Days of the site's measure per calendar day; positive.
    pub(super) fn of(&self, site: usize) -> f64 {
        let usual = self.all.pace(1.0, self.caution);
        self.sites[site].pace(usual, self.caution)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_young_site_resembles_the_others() {
        let mut paces = Paces::new(3, 10.0);
        assert_eq!(paces.of(0), 1.0);
        for _ in 0..1000 {
            paces.book(0, 4.0, 1.0);
            paces.book(1, 0.5, 2.0);
        }
        assert!((paces.of(0) - 4.0).abs() < 0.1 && (paces.of(1) - 0.25).abs() < 0.1, "{paces:?}");
        assert!((paces.of(2) - 1.5).abs() < 0.1, "{paces:?}");
    }
}
