//! When a run makes its next checkpoint.

use std::time::{Duration, Instant};

use archive_storage::Checkpointed;

/// Delay before retrying a checkpoint that readers blocked.
const RETRY: Duration = Duration::from_secs(1);

/// Minimum interval between checkpoints, however much has changed.
const PAUSE_MIN: Duration = Duration::from_secs(5);

/// Checkpoints take at most one part in this many of the time: in a large archive, most accounts change between two of
/// them.
const PART: u32 = 20;

/// Decides when a checkpoint is due: at a fixed interval, or a longer one if checkpoints take long.
#[derive(Debug, Clone, Copy)]
pub(super) struct CheckpointTimer {
    every: Duration,
    /// End of the last checkpoint; `pause` is the interval from there to the next.
    last: Instant,
    pause: Duration,
}

impl CheckpointTimer {
    /// Starts the timer with the minimum interval between checkpoints.
    pub(super) fn new(every: Duration) -> Self {
        Self { every, last: Instant::now(), pause: every }
    }

    /// Whether a checkpoint is due. Changes since the last one stay in memory, so it is due earlier if that `is_full`.
    pub(super) fn is_due(&self, is_full: impl FnOnce() -> bool) -> bool {
        let waited = self.last.elapsed();
        waited >= self.pause || waited >= self.every.min(PAUSE_MIN) && is_full()
    }

    /// Records that a checkpoint started at `begun` has ended. A deferred one is retried soon.
    pub(super) fn ended(&mut self, begun: Instant, outcome: Checkpointed) {
        self.last = Instant::now();
        self.pause = match outcome {
            Checkpointed::Done => self.every.max((self.last - begun) * PART),
            Checkpointed::Deferred => RETRY,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ago(seconds: u64) -> Instant {
        Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap()
    }

    #[test]
    fn a_long_checkpoint_puts_off_the_next_one_unless_memory_is_full() {
        let mut timer = CheckpointTimer::new(Duration::from_secs(30));
        for (lasted, waited, is_full, is_due) in [
            (1, 29, false, false),
            (1, 31, false, true),
            (1, 4, true, false),
            (1, 6, true, true),
            (3, 31, false, false),
            (3, 61, false, true),
            (3, 6, true, true),
        ] {
            timer.ended(ago(lasted), Checkpointed::Done);
            timer.last = ago(waited);
            assert_eq!(timer.is_due(|| is_full), is_due, "{lasted} {waited} {is_full}");
        }
    }

    #[test]
    fn what_readers_put_off_is_tried_again_soon() {
        let mut timer = CheckpointTimer::new(Duration::from_secs(30));
        timer.ended(Instant::now(), Checkpointed::Deferred);
        assert!(!timer.is_due(|| true));
        timer.last = ago(1);
        assert!(timer.is_due(|| false));
    }
}
