//! What a running query may take, and what is seen of it when it is explained.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Error;
use super::explain::Seen;

/// Memory of the groups of a query, and of its rows that wait to be ordered, unless it is given another limit.
pub const MEMORY_USUAL: usize = 256 << 20;

/// Less memory cannot be asked for.
pub const MEMORY_MIN: usize = 1_000_000;

/// Bytes that a query writes to temporary files at most.
pub const SPILLED_BYTES_MAX: u64 = 64 << 30;

/// The time is looked at once in so many rows.
const ROWS_PER_LOOK: u32 = 16;

/// What a query may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// When it is given up, and how long after its beginning that is.
    pub time: Option<(Instant, Duration)>,
    /// Bytes of its groups and of rows that wait to be ordered, by estimate; what is beyond goes to temporary files.
    pub memory: usize,
    /// Bytes of these files.
    pub disk: u64,
}

impl Limits {
    /// What queries may take that say nothing else: any time.
    pub const USUAL: Self = Self { time: None, memory: MEMORY_USUAL, disk: SPILLED_BYTES_MAX };

    /// What queries may take that others ask of a server: no temporary files.
    pub const SERVED: Self = Self { disk: 0, ..Self::USUAL };

    /// The same, but only so long from now.
    #[must_use]
    pub fn within(self, time: Duration) -> Self {
        Self { time: Instant::now().checked_add(time).map(|until| (until, time)), ..self }
    }

    /// When a query is given up.
    #[must_use]
    pub fn until(&self) -> Option<Instant> {
        self.time.map(|(until, _)| until)
    }

    /// Looks at the time.
    ///
    /// # Errors
    /// When it is over.
    pub fn check(&self) -> Result<(), Late> {
        match self.time {
            Some((until, limit)) if Instant::now() >= until => Err(Late { limit }),
            _ => Ok(()),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::USUAL
    }
}

/// The time of a query is over.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("this takes longer than its time limit of {} s: ask for less, or give it more time", limit.as_secs_f64())]
pub struct Late {
    /// What it was given.
    pub limit: Duration,
}

/// A query that runs.
#[derive(Debug, Default)]
pub struct Running {
    pub(super) limits: Limits,
    rows: AtomicU32,
    /// Bytes of temporary files.
    spilled: AtomicU64,
    seen: Option<Mutex<Seen>>,
}

/// One without a limit of time.
pub(super) static USUAL: Running =
    Running { limits: Limits::USUAL, rows: AtomicU32::new(0), spilled: AtomicU64::new(0), seen: None };

impl Running {
    /// One with limits; what is seen of it is noted if it is `explained`.
    #[must_use]
    pub fn new(limits: Limits, explained: bool) -> Self {
        Self { limits, seen: explained.then(Mutex::default), ..Self::default() }
    }

    /// Looks at the time.
    pub(super) fn check(&self) -> Result<(), Late> {
        self.limits.check()
    }

    /// The same for each of many rows.
    pub(super) fn check_row(&self) -> Result<(), Late> {
        if self.limits.time.is_none()
            || !self.rows.fetch_add(1, Ordering::Relaxed).is_multiple_of(ROWS_PER_LOOK)
        {
            return Ok(());
        }
        self.check()
    }

    /// Takes room for so many bytes of temporary files.
    pub(super) fn take(&self, bytes: u64) -> Result<(), Error> {
        let spilled = self.spilled.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.note(|seen| seen.spilled_bytes += bytes);
        if spilled > self.limits.disk {
            return Err(Error::TooMuch { memory: self.limits.memory, disk: self.limits.disk });
        }
        Ok(())
    }

    /// Gives such room back.
    pub(super) fn give_back(&self, bytes: u64) {
        self.spilled.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether what is seen is noted.
    pub(super) fn is_explained(&self) -> bool {
        self.seen.is_some()
    }

    /// Notes something, if it is explained.
    pub(super) fn note<T>(&self, note: impl FnOnce(&mut Seen) -> T) -> Option<T> {
        self.seen.as_ref().map(|seen| note(&mut seen.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// What was seen so far, if it is explained.
    #[must_use]
    pub fn seen(&self) -> Option<Seen> {
        self.note(|seen| seen.clone())
    }
}
