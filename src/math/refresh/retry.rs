//! When a page that brought nothing is asked again.
//!
//! A 404, an error or no answer may pass, so an end is a hypothesis that every further attempt confirms: pauses grow with
//! the time since it began. They are shorter for important pages, and longer if no page links to it any more.

/// Expected share of attempts that find the page back.
pub const RETURNS: f64 = 0.1;

/// Share of a budget for such attempts while it does not suffice for all pages: of the pages that recorded histories
/// lose, none comes back.
pub const SHARE: f64 = 0.01;

/// Longest first pause in days; a page that was visited more often is asked again after its usual interval.
const FIRST_DAYS_MAX: f64 = 1.0;

/// Pause as a multiple of the time since the end began, and that of pages to which nothing links.
const GROWTH: f64 = 1.0;
const GROWTH_UNLINKED: f64 = 3.0;

/// Bounds of the factor by which importance divides a pause.
const FACTORS: (f64, f64) = (0.5, 2.0);

/// Shortest pause in days, a second, and the longest one.
const PAUSE_DAYS_MIN: f64 = 1.0 / 86_400.0;
const PAUSE_DAYS_MAX: f64 = 365.0;

/// Maximum number of attempts in a forecast.
const ATTEMPTS_MAX: u64 = 1000;

/// A page whose newest attempts brought nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Failing {
    /// Days from its last content to the first of these attempts; infinite if it never had any.
    pub usual: f64,
    /// Days from the first to the last of these attempts.
    pub failing: f64,
    /// Whether a page has linked to it since the first one.
    pub is_linked: bool,
    /// Weight in a refresh, with mean 1.
    pub weight: f64,
}

impl Failing {
    /// Returns the days from the last attempt to the next one.
    #[must_use]
    pub fn pause(&self) -> f64 {
        let growth = if self.is_linked { GROWTH } else { GROWTH_UNLINKED };
        let pause = self.usual.min(FIRST_DAYS_MAX).max(self.failing * growth);
        let (least, most) = FACTORS;
        (pause / self.weight.sqrt().clamp(least, most)).clamp(PAUSE_DAYS_MIN, PAUSE_DAYS_MAX)
    }

    /// Returns how often the page is asked within `days`, if it keeps failing and its last attempt is `age` days old.
    #[must_use]
    pub fn attempts(&self, age: f64, days: f64) -> u64 {
        let (mut page, mut attempts, mut at) = (*self, 0, -age);
        while attempts < ATTEMPTS_MAX {
            let next = (at + page.pause()).max(0.0);
            if next > days {
                break;
            }
            page.failing += next - at;
            (at, attempts) = (next, attempts + 1);
        }
        attempts
    }
}

#[cfg(test)]
mod tests {
    use super::{Failing, PAUSE_DAYS_MAX};

    const PAGE: Failing = Failing { usual: 30.0, failing: 0.0, is_linked: true, weight: 1.0 };

    #[test]
    fn pauses_grow_and_follow_importance_and_links() {
        let mut page = PAGE;
        let mut pauses = Vec::new();
        for _ in 0..12 {
            pauses.push(page.pause());
            page.failing += page.pause();
        }
        assert_eq!(pauses[..5], [1.0, 1.0, 2.0, 4.0, 8.0]);
        assert_eq!(*pauses.last().unwrap(), PAUSE_DAYS_MAX);
        let hourly = Failing { usual: 1.0 / 24.0, ..PAGE };
        assert!((hourly.pause() - 1.0 / 24.0).abs() < 1e-12);
        let long = Failing { failing: 10.0, ..PAGE };
        assert_eq!(Failing { is_linked: false, ..long }.pause(), 30.0);
        assert_eq!(Failing { weight: 100.0, ..long }.pause(), 5.0);
        assert_eq!(Failing { weight: 0.0, ..long }.pause(), 20.0);
        assert_eq!(Failing { usual: f64::INFINITY, ..PAGE }.pause(), 1.0);
    }

    #[test]
    fn attempts_are_as_many_as_pauses_fit() {
        assert_eq!((PAGE.attempts(0.0, 0.5), PAGE.attempts(0.0, 8.0), PAGE.attempts(9.0, 0.0)), (0, 4, 1));
    }
}
