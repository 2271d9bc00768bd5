//! Repacks while a crawl or a refresh writes to the archive.
//!
//! Closed segments no longer change, so a thread can rewrite them while others are appended to. The owner of the
//! archive polls [`Beside`], and its next checkpoint puts finished batches in place: a crash leaves either the old
//! segments or the new ones, and readers are not disturbed. The thread has the lowest priority and pauses while there
//! is no spare processor time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use archive_base::spare::Spare;
use archive_storage::segment::{Author, ReplayedCapture, Rewriter, Rewritten, SegmentError};
use archive_storage::{Store, StoreError};

use super::{RepackBatch, RepackOptions, Repacked, plan};

/// The lowest priority.
const NICENESS: i32 = 19;
/// Interval at which a paused thread checks for spare time.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// How long the end of a run waits for the thread, which stops only between two steps.
const END_WAIT: Duration = Duration::from_secs(5);

/// The result of a poll.
#[derive(Debug)]
pub enum PollResult {
    /// A batch that the next checkpoint puts in place.
    Repacked(Repacked),
    /// Repacking ends with this error, and nothing was changed.
    GaveUp(SegmentError),
}

/// A batch that is being rewritten.
#[derive(Debug)]
struct RunningBatch {
    batch: RepackBatch,
    thread: JoinHandle<Result<Rewritten, SegmentError>>,
}

/// Repacks batch after batch in spare time.
#[derive(Debug)]
pub struct Beside {
    options: RepackOptions,
    spare: Spare,
    is_over: Arc<AtomicBool>,
    under_way: Option<RunningBatch>,
}

impl Beside {
    /// Creates a repacker. It begins nothing before the first [`Beside::look`].
    #[must_use]
    pub fn new(options: RepackOptions, spare: Spare) -> Self {
        Self { options, spare, is_over: Arc::default(), under_way: None }
    }

    /// Hands over a finished batch, or begins one that needs at most `free` bytes on disk. To be called about every
    /// second by the owner of the archive.
    ///
    /// # Errors
    /// If the state fails; the archive must then be opened again.
    pub fn look(&mut self, store: &mut Store, free: u64) -> Result<Option<PollResult>, StoreError> {
        if let Some(work) = self.under_way.take_if(|work| work.thread.is_finished()) {
            return self.hand_over(store, work);
        }
        let may_begin = self.under_way.is_none() && !store.is_exchanging() && self.spare.is_there();
        if may_begin && !self.is_over.load(Ordering::Relaxed) {
            let options = RepackOptions { room: self.options.room.min(free), ..self.options.clone() };
            if let Some(batch) = plan(&store.closed_segments(), &options).0.into_iter().next() {
                return self.begin(store, batch);
            }
        }
        Ok(None)
    }

    fn begin(&mut self, store: &mut Store, batch: RepackBatch) -> Result<Option<PollResult>, StoreError> {
        let begun =
            store.rewriter(&batch.segments).and_then(|rewriter| Ok(self.start(rewriter, &batch, store)?));
        match begun {
            Ok(thread) => self.under_way = Some(RunningBatch { batch, thread }),
            Err(error) => return self.give_up(error),
        }
        Ok(None)
    }

    fn start(
        &self,
        rewriter: Rewriter,
        batch: &RepackBatch,
        store: &Store,
    ) -> Result<JoinHandle<Result<Rewritten, SegmentError>>, SegmentError> {
        let mut author = Patient { is_over: self.is_over.clone(), spare: self.spare.clone() };
        let rewriting = self.options.rewriting(batch);
        let work = move || {
            if !author.spare.is_known() {
                // On Linux each thread has its own priority. If this fails, `spare` still limits the thread.
                let _ = rustix::process::setpriority_process(None, NICENESS);
            }
            rewriter.carry_out(&rewriting, &mut author)
        };
        thread::Builder::new().name("repack".to_owned()).spawn(work).map_err(|source| SegmentError::Io {
            action: "start a thread for",
            path: store.path().to_owned(),
            source,
        })
    }

    fn hand_over(&mut self, store: &mut Store, work: RunningBatch) -> Result<Option<PollResult>, StoreError> {
        let outcome = match work.thread.join() {
            Ok(Ok(rewritten)) if rewritten.is_worse() => store.leave(&rewritten).map(|()| rewritten),
            Ok(Ok(rewritten)) => store.exchange_next(&rewritten).map(|()| rewritten),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(SegmentError::Poisoned.into()),
        };
        match outcome {
            Ok(rewritten) => Ok(Some(PollResult::Repacked(Repacked::of(&work.batch, &rewritten)))),
            Err(StoreError::Segment(SegmentError::Stopped)) => Ok(None),
            Err(error) => self.give_up(error),
        }
    }

    /// Begins no more batches: an error that occurred once would occur every second.
    fn give_up(&mut self, error: StoreError) -> Result<Option<PollResult>, StoreError> {
        self.is_over.store(true, Ordering::Relaxed);
        match error {
            StoreError::Segment(error) => Ok(Some(PollResult::GaveUp(error))),
            error => Err(error),
        }
    }

    /// Begins no more batches, and hands over a finished one. Waits a few seconds for a running thread and then
    /// abandons it: it ends by itself, and nothing that it wrote is used.
    ///
    /// # Errors
    /// As [`Beside::look`].
    pub fn end(&mut self, store: &mut Store) -> Result<Option<PollResult>, StoreError> {
        self.is_over.store(true, Ordering::Relaxed);
        let begun = Instant::now();
        while let Some(work) = &self.under_way {
            if work.thread.is_finished() {
                return self.look(store, 0);
            }
            if begun.elapsed() >= END_WAIT {
                break;
            }
            thread::sleep(LOOK_AGAIN / 10);
        }
        Ok(None)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Keeps all captures, and pauses while there is no spare time.
struct Patient {
    is_over: Arc<AtomicBool>,
    spare: Spare,
}

impl Patient {
    fn wait(&self) -> Result<(), SegmentError> {
        loop {
            if self.is_over.load(Ordering::Relaxed) {
                return Err(SegmentError::Stopped);
            }
            if self.spare.is_there() {
                return Ok(());
            }
            thread::sleep(LOOK_AGAIN);
        }
    }
}

impl Author for Patient {
    fn replaces(&mut self, _: &ReplayedCapture) -> Result<bool, SegmentError> {
        self.wait().map(|()| false)
    }

    fn progress(&mut self, _: u64) -> Result<(), SegmentError> {
        self.wait()
    }
}
