//! Detects spare processor time, for work that can wait, and measures what a thread has used.
//!
//! Spare time is time in which processors are idle, wait for disks, or run low-priority work, which yields by itself.
//! It is measured for the whole machine (Linux, `/proc/stat`), because other programs use it as well. If the system
//! does not report it, none is assumed.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Share of total processor time that must be spare before `Spare` becomes true, as a divisor.
const BEGINS_AT: u64 = 2;
/// Share below which `Spare` becomes false again, as a divisor. It is lower because the work done in spare time uses
/// some of it.
const ENDS_BELOW: u64 = 4;

/// Whether there is spare time. Clones share the answer.
#[derive(Debug, Clone, Default)]
pub struct Spare {
    is_there: Arc<AtomicBool>,
    is_known: bool,
}

impl Spare {
    /// Whether there was spare time at the last measurement.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.is_there.load(Ordering::Relaxed)
    }

    /// Whether the answer was fixed by the caller, so that nothing is measured.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.is_known
    }
}

/// Ticks of all processors since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    all: u64,
    spare: u64,
}

impl Ticks {
    /// Parses the first line of `/proc/stat` (proc(5)): user, nice, system, idle, iowait, irq, softirq, steal.
    fn of(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> =
            line.split_ascii_whitespace().take(8).map_while(|text| text.parse().ok()).collect();
        let [_, nice, _, idle, iowait, ..] = ticks[..] else { return None };
        Some(Self { all: ticks.iter().sum(), spare: nice + idle + iowait })
    }
}

/// Measures processor load periodically.
#[derive(Debug, Default)]
pub struct Gauge {
    /// The answer, if fixed by the caller.
    known: Option<bool>,
    before: Option<Ticks>,
    spare: Spare,
}

impl Gauge {
    /// Creates a gauge that measures, unless the answer is given.
    #[must_use]
    pub fn new(known: Option<bool>) -> Self {
        let spare = Spare { is_known: known.is_some(), ..Spare::default() };
        Self { known, before: None, spare }
    }

    /// The current answer; it is updated by later measurements.
    #[must_use]
    pub fn spare(&self) -> Spare {
        self.spare.clone()
    }

    /// Measures the time since the last call, which should be about a second ago.
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
        self.spare.is_there.store(self.known.unwrap_or(is_seen), Ordering::Relaxed);
        self.before = now;
    }
}

/// Processor time that the thread with this folder in `/proc` has used; `None` if the system does not report it.
pub fn used_by(task: &Path) -> Option<Duration> {
    // The first number of a `schedstat` file: nanoseconds on a processor (Linux, Documentation/scheduler/sched-stats).
    let text = fs::read_to_string(task.join("schedstat")).ok()?;
    text.split_ascii_whitespace().next()?.parse().ok().map(Duration::from_nanos)
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
        let task = tempfile::tempdir().unwrap();
        assert_eq!(used_by(task.path()), None);
        fs::write(task.path().join("schedstat"), "12345 6 7\n").unwrap();
        assert_eq!(used_by(task.path()), Some(Duration::from_nanos(12_345)));
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
