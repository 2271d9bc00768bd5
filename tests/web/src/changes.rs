//! Times of changes: Poisson processes that can be queried at any time without simulating the events before it.
//!
//! The number of changes over the whole horizon is one Poisson number. Given it, the changes are independent and
//! uniform over the horizon, so each half gets Binomial(n, 1/2) of them, and so on down to a microsecond. Any count or
//! time is found by descending one branch of this binary tree in 48 steps; no event is ever stored.

use super::random::{Key, Subject};

/// The horizon is 2^48 µs: 8.9 years.
const LEVELS: u32 = 48;
const HORIZON_DAYS: f64 = (1u64 << LEVELS) as f64 / 86_400e6;

/// A Poisson process over the horizon. Times are microseconds since its start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    key: Key,
    total: u64,
}

/// The changes up to some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Past {
    /// Number of changes.
    pub(super) count: u64,
    /// Time of the last one, if any.
    pub(super) last: Option<i64>,
}

/// An interval of 2^`level` microseconds that contains `count` changes. `place` numbers the intervals of this length.
#[derive(Clone, Copy)]
struct Node {
    level: u32,
    place: u64,
    count: u64,
}

impl Node {
    const fn start(&self) -> u64 {
        self.place << self.level
    }

    fn halves(&self, key: Key) -> (Self, Self) {
        let level = self.level - 1;
        let left = key.at((u64::from(self.level) << 56) ^ self.place).stream().heads(self.count);
        (
            Self { level, place: self.place * 2, count: left },
            Self { level, place: self.place * 2 + 1, count: self.count - left },
        )
    }
}

impl Process {
    /// Returns the process that `key` identifies, with a rate in changes per day.
    pub(super) fn new(key: Key, per_day: f64) -> Self {
        let total = key.of(Subject::Changes).stream().poisson(per_day * HORIZON_DAYS);
        Self { key, total }
    }

    const fn root(&self) -> Node {
        Node { level: LEVELS, place: 0, count: self.total }
    }

    /// Returns the changes up to and including `time`.
    pub(super) fn past(&self, time: i64) -> Past {
        let Ok(time) = u64::try_from(time) else { return Past::default() };
        let mut node = self.root();
        let mut past = 0;
        let mut before = None;
        while node.level > 0 && node.count > 0 {
            let (left, right) = node.halves(self.key);
            if time >= right.start() {
                if left.count > 0 {
                    before = Some(left);
                }
                past += left.count;
                node = right;
            } else {
                node = left;
            }
        }
        if node.level == 0 && node.count > 0 && node.start() <= time {
            return Past { count: past + node.count, last: Some(node.start().cast_signed()) };
        }
        Past { count: past, last: before.map(|node| self.last_in(node)) }
    }

    fn last_in(&self, mut node: Node) -> i64 {
        while node.level > 0 {
            let (left, right) = node.halves(self.key);
            node = if right.count > 0 { right } else { left };
        }
        node.start().cast_signed()
    }

    /// Returns the times of all changes after `from` up to and including `to`, in order; a microsecond with two changes
    /// appears twice.
    pub(super) fn times(&self, from: i64, to: i64) -> Vec<i64> {
        let mut times = Vec::new();
        if to >= 0 && to > from {
            self.collect(
                self.root(),
                from.saturating_add(1).max(0).cast_unsigned(),
                to.cast_unsigned(),
                &mut times,
            );
        }
        times
    }

    fn collect(&self, node: Node, first: u64, last: u64, times: &mut Vec<i64>) {
        let end = (node.place + 1) << node.level;
        if node.count == 0 || node.start() > last || end <= first {
            return;
        }
        if node.level == 0 {
            times.extend((0..node.count).map(|_| node.start().cast_signed()));
            return;
        }
        let (left, right) = node.halves(self.key);
        self.collect(left, first, last, times);
        self.collect(right, first, last, times);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000_000;

    #[test]
    fn counts_and_times_agree() {
        for (seed, rate) in [(1, 0.01), (2, 0.5), (3, 20.0), (4, 0.0)] {
            let process = Process::new(Key::new(seed), rate);
            let times = process.times(-1, 400 * DAY);
            assert!(times.is_sorted());
            for step in 0..400 {
                let now = step * DAY + 12_345;
                let until: Vec<i64> = times.iter().copied().take_while(|time| *time <= now).collect();
                let expected = Past { count: until.len() as u64, last: until.last().copied() };
                assert_eq!(process.past(now), expected);
            }
            for time in times.iter().take(50) {
                assert_eq!(
                    process.past(*time).last,
                    Some(*time),
                    "a change counts from its own microsecond on"
                );
                assert!(process.past(time - 1).count < process.past(*time).count);
            }
        }
    }

    #[test]
    fn gaps_are_exponential() {
        let rate = 2.0;
        let mut gaps = Vec::new();
        for seed in 0..200 {
            let times = Process::new(Key::new(seed), rate).times(-1, 100 * DAY);
            gaps.extend(times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / DAY as f64));
        }
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        assert!((mean * rate - 1.0).abs() < 0.03, "mean gap {mean} days");
        let beyond = gaps.iter().filter(|gap| **gap > 1.0 / rate).count() as f64 / gaps.len() as f64;
        assert!((beyond - (-1.0f64).exp()).abs() < 0.01, "{beyond} of the gaps are longer than the mean");
    }

    #[test]
    fn nothing_happens_before_the_start() {
        let process = Process::new(Key::new(5), 50.0);
        assert_eq!(process.past(-1), Past::default());
        assert!(process.times(-10, -5).is_empty());
        assert_eq!(process.past(i64::MAX).count, process.total);
    }
}
