//! Limits of a running query, and its execution statistics.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::query::language::{Error, Late, RowsError};
use crate::query::rows::seen::Seen;

/// Default memory limit for a query's groups and the rows that it sorts.
pub const MEMORY_USUAL: usize = 256 << 20;

/// Smallest memory limit that can be set.
pub const MEMORY_MIN: usize = 1_000_000;

/// Maximum number of bytes that a query writes to temporary files.
pub const SPILLED_BYTES_MAX: u64 = 64 << 30;

/// The clock is read once per this many rows.
const ROWS_PER_LOOK: u32 = 16;

/// Resource limits of a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The deadline, and the timeout that it results from.
    pub time: Option<(Instant, Duration)>,
    /// Estimated bytes of groups and of rows to sort; the excess goes to temporary files.
    pub memory: usize,
    /// Bytes of temporary files.
    pub disk: u64,
}

impl Limits {
    /// Default limits: no timeout.
    pub const USUAL: Self = Self { time: None, memory: MEMORY_USUAL, disk: SPILLED_BYTES_MAX };

    /// Limits of queries that clients send to a server: no temporary files.
    pub const SERVED: Self = Self { disk: 0, ..Self::USUAL };

    /// The same limits with a timeout from now.
    #[must_use]
    pub fn within(self, time: Duration) -> Self {
        Self { time: Instant::now().checked_add(time).map(|until| (until, time)), ..self }
    }

    /// The deadline.
    #[must_use]
    pub fn until(&self) -> Option<Instant> {
        self.time.map(|(until, _)| until)
    }

    /// Checks the deadline.
    ///
    /// # Errors
    /// When it has passed.
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

/// A record that a row needs cannot be read. The row is left out, and the query goes on.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unreadable(pub(crate) String);

/// The rows that were left out of an answer, or stay without a text, because their records cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct UnreadRows {
    /// Number of rows.
    pub rows: u64,
    /// What is wrong with the first one, in a sentence.
    pub first: String,
}

/// A running query.
#[derive(Debug, Default)]
pub struct Running {
    pub(crate) limits: Limits,
    rows: AtomicU32,
    /// Bytes of temporary files in use.
    spilled: AtomicU64,
    unread: Mutex<Option<UnreadRows>>,
    seen: Option<Mutex<Seen>>,
}

/// The default: no timeout, not explained.
pub(crate) static USUAL: Running = Running {
    limits: Limits::USUAL,
    rows: AtomicU32::new(0),
    spilled: AtomicU64::new(0),
    unread: Mutex::new(None),
    seen: None,
};

impl Running {
    /// A query with limits; it records statistics if it is `explained`.
    #[must_use]
    pub fn new(limits: Limits, explained: bool) -> Self {
        Self { limits, seen: explained.then(Mutex::default), ..Self::default() }
    }

    /// Checks the deadline.
    pub(crate) fn check(&self) -> Result<(), Late> {
        self.limits.check()
    }

    /// Like `check`, but called for each row and cheap.
    pub(crate) fn check_row(&self) -> Result<(), Late> {
        if self.limits.time.is_none()
            || !self.rows.fetch_add(1, Ordering::Relaxed).is_multiple_of(ROWS_PER_LOOK)
        {
            return Ok(());
        }
        self.check()
    }

    /// Passes on what was found of a row; if its records cannot be read, notes that and returns nothing instead.
    pub(crate) fn unless_unreadable<T: Default>(&self, found: Result<T, RowsError>) -> Result<T, RowsError> {
        match found {
            Err(error) if error.is::<Unreadable>() => {
                let mut unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
                unread.get_or_insert_with(|| UnreadRows { rows: 0, first: error.to_string() }).rows += 1;
                Ok(T::default())
            }
            found => found,
        }
    }

    /// As [`Running::unless_unreadable`], for errors of queries.
    pub(crate) fn readable<T>(&self, found: Result<T, Error>) -> Result<Option<T>, Error> {
        match found {
            Err(Error::Rows(error)) => Ok(self.unless_unreadable(Err(error))?),
            found => found.map(Some),
        }
    }

    /// The rows left out so far, if any.
    #[must_use]
    pub fn unread(&self) -> Option<UnreadRows> {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reserves space for temporary files.
    pub(crate) fn take(&self, bytes: u64) -> Result<(), Error> {
        let spilled = self.spilled.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.note(|seen| seen.spilled_bytes += bytes);
        if spilled > self.limits.disk {
            return Err(Error::TooMuch { memory: self.limits.memory, disk: self.limits.disk });
        }
        Ok(())
    }

    /// Releases space for temporary files.
    pub(crate) fn give_back(&self, bytes: u64) {
        self.spilled.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether statistics are recorded.
    pub(crate) fn is_explained(&self) -> bool {
        self.seen.is_some()
    }

    /// Updates the statistics, if the query is explained.
    pub(crate) fn note<T>(&self, note: impl FnOnce(&mut Seen) -> T) -> Option<T> {
        self.seen.as_ref().map(|seen| note(&mut seen.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// The statistics so far, if the query is explained.
    #[must_use]
    pub fn seen(&self) -> Option<Seen> {
        self.note(|seen| seen.clone())
    }
}
