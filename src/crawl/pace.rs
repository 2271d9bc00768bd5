//! The progress of a run over time, to see whether a crawl slows down as it grows.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Maximum number of moments kept; beyond it, every second one is dropped.
const MOMENTS_MAX: usize = 2000;

/// Number of parts of a run that are measured.
const PARTS: usize = 10;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct PaceMoment {
    captures: f64,
    /// Wall-clock time in seconds.
    elapsed: f64,
    /// Processor time in seconds.
    processor: f64,
}

/// The pace of a run: its captures over time.
#[derive(Debug, Clone, Default)]
pub struct CrawlPace {
    moments: Vec<PaceMoment>,
    /// Logarithm to base 2 of the number of calls per noted moment.
    one_in: u32,
    calls: u64,
}

/// A part of a run; all parts have the same number of captures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PacePart {
    /// Captures per second of wall-clock time.
    pub rate: f64,
    /// Processor time per capture.
    pub processor: Duration,
}

impl CrawlPace {
    /// Notes the number of captures so far.
    pub(super) fn note(&mut self, captures: u64, elapsed: Duration) {
        self.calls += 1;
        if self.calls.is_multiple_of(1 << self.one_in) {
            let (elapsed, processor) = (elapsed.as_secs_f64(), process_time().as_secs_f64());
            self.push(PaceMoment { captures: captures as f64, elapsed, processor });
        }
    }

    fn push(&mut self, moment: PaceMoment) {
        self.moments.push(moment);
        if self.moments.len() > MOMENTS_MAX {
            let mut number = 0;
            self.moments.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.one_in += 1;
        }
    }

    /// Returns ten parts with equal numbers of captures, in order; empty for a run too short to measure.
    #[must_use]
    pub fn tenths(&self) -> Vec<PacePart> {
        let (Some(first), Some(last)) = (self.moments.first(), self.moments.last()) else {
            return Vec::new();
        };
        let step = (last.captures - first.captures) / PARTS as f64;
        if step < 1.0 {
            return Vec::new();
        }
        let bounds: Vec<PaceMoment> =
            (0..=PARTS).map(|part| self.at(first.captures + step * part as f64)).collect();
        let part = |pair: &[PaceMoment]| {
            let [from, to] = pair else { return None };
            let elapsed = to.elapsed - from.elapsed;
            let processor = ((to.processor - from.processor) / step).max(0.0);
            (elapsed > 0.0)
                .then(|| PacePart { rate: step / elapsed, processor: Duration::from_secs_f64(processor) })
        };
        bounds.windows(2).map(part).collect::<Option<_>>().unwrap_or_default()
    }

    /// Returns the moment with this number of captures, interpolated between two that were noted.
    fn at(&self, captures: f64) -> PaceMoment {
        let after = self.moments.partition_point(|moment| moment.captures < captures);
        let to = self.moments.get(after).or(self.moments.last()).copied().unwrap_or_default();
        let Some(from) = after.checked_sub(1).and_then(|before| self.moments.get(before)) else { return to };
        let span = to.captures - from.captures;
        let share = if span > 0.0 { ((captures - from.captures) / span).min(1.0) } else { 1.0 };
        let between = |from: f64, to: f64| from + (to - from) * share;
        PaceMoment {
            captures,
            elapsed: between(from.elapsed, to.elapsed),
            processor: between(from.processor, to.processor),
        }
    }
}

/// Processor time of the process, including threads that have ended.
pub(super) fn process_time() -> Duration {
    // Times since the start of the process are not negative.
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenths_have_as_many_captures_each() {
        let mut pace = CrawlPace::default();
        assert!(pace.tenths().is_empty());
        // Half as fast in its second half, by both clocks, and more moments than are kept.
        let mut elapsed = 0.0;
        for captures in 0..=10_000_u32 {
            elapsed += if captures <= 5000 { 0.01 } else { 0.02 };
            pace.push(PaceMoment { captures: f64::from(captures), elapsed, processor: elapsed / 2.0 });
        }
        assert!(pace.moments.len() <= MOMENTS_MAX);
        let tenths = pace.tenths();
        assert_eq!(tenths.len(), 10);
        assert!((tenths[0].rate - 100.0).abs() < 1.0, "{tenths:?}");
        assert!((tenths[9].rate - 50.0).abs() < 0.5, "{tenths:?}");
        assert!((tenths[9].processor.as_secs_f64() - 0.01).abs() < 1e-4, "{tenths:?}");
    }
}
