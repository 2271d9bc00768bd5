//! Documents read on threads that can be given up.
//!
//! Reading takes time and memory in proportion to a document's length ([`crate::parse`]). In case some document finds a way
//! around that, it is read on a thread of its own: one that takes longer than [`TIME_MAX`] is left to itself, and what was
//! fetched is stored unread. What is being read stands in a file ([`notes`]), so that a document that ended the program isn't
//! read again.

mod notes;
mod page;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crossbeam::channel::{self, Receiver, RecvTimeoutError, Sender, bounded};

use self::notes::{Note, Notes};
pub(crate) use self::page::Page;
use crate::parse::{Limits, Problem};

/// How long a document may be read. The largest take some seconds on a slow machine.
const TIME_MAX: Duration = Duration::from_secs(30);

/// A document that is read for longer than this is noted as one that may never end.
const NOTED_AFTER: Duration = Duration::from_secs(1);

/// Threads that are given up and still at work. With more, nothing is read until one of them ends.
const GIVEN_UP_MAX: usize = 8;

/// A document by the start of its digest.
pub(crate) type Key = [u8; 16];

/// Why a document was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It takes too long.
    TooLong,
    /// The program ended while it was read.
    EndedTheProgram,
    /// The thread that read it has ended, or there is none.
    Failed,
    /// Too many others take too long.
    TooMany,
    /// The run is over.
    RunIsOver,
}

impl From<Unread> for Problem {
    fn from(unread: Unread) -> Self {
        Self::NotRead(match unread {
            Unread::TooLong => "reading it takes too long",
            Unread::EndedTheProgram => "the program ended while it was being read",
            Unread::Failed => "reading it failed",
            Unread::TooMany => "too many others take too long to read",
            Unread::RunIsOver => "the run was over before it was read",
        })
    }
}

/// What the readers of a program have in common.
#[derive(Clone)]
pub(crate) struct Readers(Arc<Shared>);

struct Shared {
    notes: Notes,
    given_up: AtomicUsize,
    time_max: Duration,
    limits: Limits,
}

impl Readers {
    /// Readers of documents of the archive in a folder; the caller owns it.
    pub(crate) fn of_archive(folder: &Path, limits: Limits) -> Self {
        Self::new(Notes::open(folder), limits)
    }

    /// Readers that note nothing.
    pub(crate) fn without_notes(limits: Limits) -> Self {
        Self::new(Notes::default(), limits)
    }

    fn new(notes: Notes, limits: Limits) -> Self {
        Self(Arc::new(Shared { notes, given_up: AtomicUsize::new(0), time_max: TIME_MAX, limits }))
    }

    /// A reader for one thread, which waits for it.
    pub(crate) fn reader(&self) -> Reader {
        self.reader_until(channel::never())
    }

    /// A reader that is waited for until all senders of `over` are gone.
    pub(crate) fn reader_until(&self, over: Receiver<()>) -> Reader {
        Reader { shared: Arc::clone(&self.0), over, thread: None }
    }
}

/// Reads one document after the other, each on a thread that is given up when it takes too long.
pub(crate) struct Reader {
    shared: Arc<Shared>,
    over: Receiver<()>,
    /// The thread that reads, unless it is given up.
    thread: Option<ReadingThread>,
}

impl Reader {
    /// Does `work`, which reads a document and nothing else.
    pub(crate) fn read<T: Send + 'static>(
        &mut self,
        key: Key,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unread> {
        if self.shared.notes.has_ended_the_program(&key) {
            return Err(Unread::EndedTheProgram);
        }
        if self.shared.given_up.load(Ordering::Relaxed) >= GIVEN_UP_MAX {
            return Err(Unread::TooMany);
        }
        let thread = match self.thread.take() {
            Some(thread) => thread,
            None => ReadingThread::start(&self.shared).map_err(|_| Unread::Failed)?,
        };
        let (sender, result) = bounded(1);
        // Nobody waits any more for a thread that is given up.
        let task = Box::new(move || drop(sender.send(work())));
        thread.tasks.send((key, task)).map_err(|_| Unread::Failed)?;
        let done = self.wait(&result, &thread);
        match done {
            Ok(_) => self.thread = Some(thread),
            // Who reads it next has more time.
            Err(Unread::Failed | Unread::RunIsOver) => thread.note.end(key),
            Err(_) => {
                self.shared.given_up.fetch_add(1, Ordering::Relaxed);
                thread.is_given_up.store(true, Ordering::Relaxed);
            }
        }
        done
    }

    fn wait<T>(&self, result: &Receiver<T>, thread: &ReadingThread) -> Result<T, Unread> {
        let noted_after = NOTED_AFTER.min(self.shared.time_max);
        match result.recv_timeout(noted_after) {
            Ok(done) => return Ok(done),
            Err(RecvTimeoutError::Disconnected) => return Err(Unread::Failed),
            Err(RecvTimeoutError::Timeout) => thread.note.takes_long(),
        }
        channel::select! {
            recv(result) -> done => done.map_err(|_| Unread::Failed),
            recv(self.over) -> _ => Err(Unread::RunIsOver),
            default(self.shared.time_max - noted_after) => Err(Unread::TooLong),
        }
    }
}

type Task = Box<dyn FnOnce() + Send>;

struct ReadingThread {
    tasks: Sender<(Key, Task)>,
    note: Arc<Note>,
    is_given_up: Arc<AtomicBool>,
}

impl ReadingThread {
    fn start(shared: &Arc<Shared>) -> io::Result<Self> {
        let (tasks, queue) = bounded::<(Key, Task)>(1);
        let note = Arc::new(shared.notes.note());
        let is_given_up = Arc::new(AtomicBool::new(false));
        let end = End { shared: Arc::clone(shared), is_given_up: Arc::clone(&is_given_up) };
        let own_note = Arc::clone(&note);
        thread::Builder::new().name("process-read".to_owned()).spawn(move || {
            let _end = end;
            for (key, task) in queue {
                own_note.begin(key);
                task();
                own_note.end(key);
            }
        })?;
        Ok(Self { tasks, note, is_given_up })
    }
}

/// Says that a thread has ended, also by a panic.
struct End {
    shared: Arc<Shared>,
    is_given_up: Arc<AtomicBool>,
}

impl Drop for End {
    fn drop(&mut self) {
        if self.is_given_up.load(Ordering::Relaxed) {
            self.shared.given_up.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    const KEY: Key = [1; 16];

    /// Readers that give up soon.
    fn impatient(notes: Notes) -> Readers {
        let mut readers = Readers::new(notes, Limits::default());
        Arc::get_mut(&mut readers.0).unwrap().time_max = Duration::from_millis(20);
        readers
    }

    /// A document that is read until its sender is dropped.
    fn endless() -> (Sender<()>, impl FnOnce() + Send + 'static) {
        let (sender, receiver) = bounded::<()>(0);
        (sender, move || assert!(receiver.recv().is_err()))
    }

    #[test]
    fn what_takes_too_long_is_given_up_and_the_next_is_read() {
        let readers = impatient(Notes::default());
        let mut reader = readers.reader();
        assert_eq!(reader.read(KEY, || 1), Ok(1));
        let (end, task) = endless();
        assert_eq!(reader.read(KEY, task), Err(Unread::TooLong));
        assert_eq!(reader.read(KEY, || 2), Ok(2));
        drop(end);
        while readers.0.given_up.load(Ordering::Relaxed) > 0 {
            thread::yield_now();
        }
    }

    #[test]
    fn given_up_threads_are_limited() {
        let readers = impatient(Notes::default());
        let ends: Vec<_> = (0..GIVEN_UP_MAX)
            .map(|_| {
                let (end, task) = endless();
                assert_eq!(readers.reader().read(KEY, task), Err(Unread::TooLong));
                end
            })
            .collect();
        assert_eq!(readers.reader().read(KEY, || ()), Err(Unread::TooMany));
        drop(ends);
        while readers.reader().read(KEY, || ()).is_err() {
            thread::yield_now();
        }
    }

    #[test]
    fn a_panic_costs_one_document() {
        let mut reader = Readers::without_notes(Limits::default()).reader();
        assert_eq!(reader.read(KEY, || assert!(KEY.is_empty(), "on purpose")), Err(Unread::Failed));
        assert_eq!(reader.read(KEY, || 1), Ok(1));
    }

    #[test]
    fn nobody_waits_once_the_run_is_over() {
        let (run, over) = bounded(0);
        let mut reader = Readers::without_notes(Limits::default()).reader_until(over);
        let (_end, task) = endless();
        drop(run);
        let begun = Instant::now();
        assert_eq!(reader.read(KEY, task), Err(Unread::RunIsOver));
        assert!(begun.elapsed() < TIME_MAX);
    }

    /// What a process leaves behind that dies while it reads is what one leaves that forgets to end.
    #[test]
    fn what_ended_the_program_is_not_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let die = |is_long: bool| {
            let notes = Notes::open(folder.path());
            let note = notes.note();
            note.begin(KEY);
            if is_long {
                note.takes_long();
            }
        };
        let read = || Readers::new(Notes::open(folder.path()), Limits::default()).reader().read(KEY, || ());
        // Whoever kills a program hits some document or other: it gets a second chance.
        die(false);
        assert_eq!(read(), Ok(()));
        die(false);
        die(false);
        assert_eq!(read(), Err(Unread::EndedTheProgram));
        assert_eq!(read(), Err(Unread::EndedTheProgram));
        std::fs::remove_dir_all(folder.path().join("state")).unwrap();
        die(true);
        assert_eq!(read(), Err(Unread::EndedTheProgram));
    }
}
