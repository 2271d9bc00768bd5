//! The clock of a test web: the machine's own, one offset from it, or a simulated one that stands still.
//!
//! All clones of a [`Clock`] show the same time, so a test that holds one controls the running server's clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, TimeDelta, Utc};

/// A shared clock with microsecond resolution.
#[derive(Clone, Debug)]
pub struct Clock(Hand);

#[derive(Clone, Debug)]
enum Hand {
    Real,
    /// Microseconds ahead of the machine's clock.
    Ahead(Arc<AtomicI64>),
    /// Microseconds since 1970.
    Simulated(Arc<AtomicI64>),
}

impl Clock {
    /// Returns the clock of this machine.
    #[must_use]
    pub const fn real() -> Self {
        Self(Hand::Real)
    }

    /// Returns a clock that stands at `start` until it is moved.
    #[must_use]
    pub fn simulated(start: DateTime<Utc>) -> Self {
        Self(Hand::Simulated(Arc::new(AtomicI64::new(start.timestamp_micros()))))
    }

    /// Returns a clock that starts at the machine's time, runs with it, and can be moved.
    #[must_use]
    pub fn adjustable() -> Self {
        Self(Hand::Ahead(Arc::new(AtomicI64::new(0))))
    }

    /// Returns the current time.
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        from_micros(self.micros())
    }

    /// Microseconds since 1970.
    pub(super) fn micros(&self) -> i64 {
        let machine = || Utc::now().timestamp_micros();
        match &self.0 {
            Hand::Real => machine(),
            Hand::Ahead(ahead) => machine().saturating_add(ahead.load(Ordering::Relaxed)),
            Hand::Simulated(hand) => hand.load(Ordering::Relaxed),
        }
    }

    /// Moves the clock by `step`, which may be negative. Returns false for the machine's own clock, which cannot be
    /// moved.
    pub fn advance(&self, step: TimeDelta) -> bool {
        let (Hand::Ahead(hand) | Hand::Simulated(hand)) = &self.0 else { return false };
        hand.fetch_add(step.num_microseconds().unwrap_or(0), Ordering::Relaxed);
        true
    }

    /// Sets the clock. Returns false for the machine's own clock, which cannot be set.
    pub fn set(&self, time: DateTime<Utc>) -> bool {
        let (hand, to) = match &self.0 {
            Hand::Real => return false,
            Hand::Ahead(hand) => (hand, time.timestamp_micros() - Utc::now().timestamp_micros()),
            Hand::Simulated(hand) => (hand, time.timestamp_micros()),
        };
        hand.store(to, Ordering::Relaxed);
        true
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::real()
    }
}

/// Converts microseconds since 1970. Times out of chrono's range, which no test web reaches, become 1970.
pub(super) fn from_micros(micros: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(micros).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_move_together_and_the_real_clock_stays() {
        let start = from_micros(1_700_000_000_000_000);
        let clock = Clock::simulated(start);
        let other = clock.clone();
        assert!(clock.advance(TimeDelta::days(2)));
        assert_eq!(other.now(), start + TimeDelta::days(2));
        assert!(other.set(start));
        assert_eq!(clock.now(), start);
        let running = Clock::adjustable();
        assert!(running.advance(TimeDelta::days(2)));
        assert!((running.now() - Utc::now() - TimeDelta::days(2)).abs() < TimeDelta::hours(1));
        assert!(running.set(start));
        assert!((running.now() - start).abs() < TimeDelta::hours(1));
        assert!(!Clock::real().advance(TimeDelta::days(1)));
        assert!((Clock::real().now() - Utc::now()).abs() < TimeDelta::hours(1));
    }
}
