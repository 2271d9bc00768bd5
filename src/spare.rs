//! Whether processors have time to spare: what can wait is done then.
//!
//! Time to spare is what processors are idle, wait for disks, or give to work of low priority, which makes way by itself. It is
//! asked of the whole machine (Linux, `/proc/stat`), because others work on it, too. Where the system does not say, there is
//! none.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The part of all processors' time that has to be spare before there is said to be some, as a divisor.
const BEGINS_AT: u64 = 2;
/// The part below which there is none any more, as a divisor: what is done in spare time takes some of it.
const ENDS_BELOW: u64 = 4;

/// What is told of it. Clones tell the same.
#[derive(Debug, Clone, Default)]
pub struct Spare {
    is_there: Arc<AtomicBool>,
    is_told: bool,
}

impl Spare {
    /// Whether there was time to spare when it was last looked at.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.is_there.load(Ordering::Relaxed)
    }

    /// Whether somebody said so who knows better than the system.
    #[must_use]
    pub fn is_told(&self) -> bool {
        self.is_told
    }
}

/// Ticks of all processors since the system began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    all: u64,
    spare: u64,
}

impl Ticks {
    /// Reads the first line of `/proc/stat` (proc(5)): user, nice, system, idle, iowait, irq, softirq, steal.
    fn of(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> =
            line.split_ascii_whitespace().take(8).map_while(|text| text.parse().ok()).collect();
        let [_, nice, _, idle, iowait, ..] = ticks[..] else { return None };
        Some(Self { all: ticks.iter().sum(), spare: nice + idle + iowait })
    }
}

/// Looks at the processors now and then.
#[derive(Debug, Default)]
pub struct Gauge {
    /// What somebody knows better.
    told: Option<bool>,
    before: Option<Ticks>,
    spare: Spare,
}

impl Gauge {
    /// One that looks, unless it is told what there is.
    #[must_use]
    pub fn new(told: Option<bool>) -> Self {
        let spare = Spare { is_told: told.is_some(), ..Spare::default() };
        Self { told, before: None, spare }
    }

    /// What it tells.
    #[must_use]
    pub fn spare(&self) -> Spare {
        self.spare.clone()
    }

    /// Looks at what became of the time since it looked last: a second or so, to say anything.
    pub fn look(&mut self) {
        self.take(Ticks::of(&fs::read_to_string("/proc/stat").unwrap_or_default()));
    }

    fn take(&mut self, now: Option<Ticks>) {
        let passed = self.before.zip(now).map(|(before, now)| Ticks {
            all: now.all.saturating_sub(before.all),
            spare: now.spare.saturating_sub(before.spare),
        });
        let divisor = if self.spare.is_there() { ENDS_BELOW } else { BEGINS_AT };
        let is_seen = passed.is_some_and(|passed| passed.all > 0 && passed.spare * divisor >= passed.all);
        self.spare.is_there.store(self.told.unwrap_or(is_seen), Ordering::Relaxed);
        self.before = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_account_is_read() {
        let text = "cpu  10 5 20 100 7 1 2 3 4 5\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(Ticks::of(text), Some(Ticks { all: 148, spare: 112 }));
        assert_eq!(Ticks::of(""), None);
        assert_eq!(Ticks::of("cpu  1 2 x"), None);
    }

    #[test]
    fn spare_time_comes_with_the_half_and_goes_with_three_quarters() {
        let mut gauge = Gauge::default();
        let (spare, mut now) = (gauge.spare(), Ticks { all: 1000, spare: 0 });
        let mut seen = Vec::new();
        for idle in [100, 49, 50, 25, 24, 49] {
            gauge.take(Some(now));
            now = Ticks { all: now.all + 100, spare: now.spare + idle };
            gauge.take(Some(now));
            seen.push(spare.is_there());
        }
        assert_eq!(seen, [true, false, true, false, false, false]);
    }
}
