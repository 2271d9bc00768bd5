//! The current time, for everything that writes times into records.
//!
//! Usually this is the machine's clock; a simulation shifts it forwards or backwards.

use chrono::{DateTime, TimeDelta, Utc};

/// A clock at a fixed offset from the machine's clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    machine: fn() -> DateTime<Utc>,
    ahead: TimeDelta,
}

impl Default for Clock {
    fn default() -> Self {
        Self::of(Utc::now)
    }
}

impl Clock {
    /// A clock that shows the same time as `machine`.
    #[must_use]
    pub const fn of(machine: fn() -> DateTime<Utc>) -> Self {
        Self { machine, ahead: TimeDelta::zero() }
    }

    /// The machine's clock, shifted so that it shows `time` now.
    #[must_use]
    pub fn set_to(time: DateTime<Utc>) -> Self {
        Self { machine: Utc::now, ahead: time - Utc::now() }
    }

    /// The current time.
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        let machine = (self.machine)();
        machine.checked_add_signed(self.ahead).unwrap_or(machine)
    }
}

#[cfg(test)]
mod tests {
    use chrono::{TimeDelta, Utc};

    use super::Clock;

    #[test]
    fn a_clock_that_was_set_runs_on_from_there() {
        let future = Utc::now() + TimeDelta::days(400);
        let clock = Clock::set_to(future);
        let (first, second) = (clock.now(), clock.now());
        assert!(first >= future && second >= first && second - future < TimeDelta::hours(1));
        assert!((Clock::default().now() - Utc::now()).abs() < TimeDelta::hours(1));
    }
}
