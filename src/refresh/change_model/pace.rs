//! How fast the measures of sites run by the calendar.
//!
//! Rates are in changes a day of a site's own measure, and what makes the measure run (events that count for many changes, quiet
//! days that count for less) differs from site to site. Within a site this does not matter; but a fetch is worth as long as
//! a version lives by the calendar, and there sites compete for one budget.

/// Visits are booked under a site as if so many days had been looked back on, times the days between two visits of a page
/// when all are visited alike, at the pace of all sites.
const CAUTION_INTERVALS: f64 = 1.0;

/// Days that visits found free of changes, by a measure and by the calendar.
#[derive(Clone, Copy, Debug, Default)]
struct Free {
    measured: f64,
    calendar: f64,
}

impl Free {
    /// The measure's days a day, taken to be `usual` over `caution` days more.
    fn pace(self, usual: f64, caution: f64) -> f64 {
        (self.measured + caution * usual) / (self.calendar + caution)
    }
}

/// The paces of all sites.
#[derive(Clone, Debug)]
pub(super) struct Paces {
    sites: Vec<Free>,
    all: Free,
    caution: f64,
}

impl Paces {
    /// For so many sites whose pages would be visited every `interval` days if all were visited alike.
    pub(super) fn new(sites: usize, interval: f64) -> Self {
        let caution = CAUTION_INTERVALS * interval;
        Self { sites: vec![Free::default(); sites], all: Free::default(), caution }
    }

    /// A visit of a page of `site` found days free of changes.
    pub(super) fn book(&mut self, site: usize, measured: f64, calendar: f64) {
        for free in [&mut self.sites[site], &mut self.all] {
            free.measured += measured;
            free.calendar += calendar;
        }
    }

    /// Days of the site's measure in a day; positive.
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
