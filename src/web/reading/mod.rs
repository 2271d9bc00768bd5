//! Reads documents on threads that can be abandoned.
//!
//! Reading takes time and memory in proportion to a document's length ([`crate::parse`]). Should some document escape
//! that bound, its thread is given up after `TIME_MAX` on a processor: the thread is left running, another one takes its place, and
//! the fetched document is stored unread. A file records what is being read (`notes`), so that a document that
//! crashed the program is not read again.
//!
//! A [`Crew`] does [`Work`] on such threads. While a thread reads, it shares its job with the watch thread; whichever
//! of the two takes the job back first continues with it. Nothing else is passed between threads, so the watch costs
//! next to nothing.

mod notes;
mod page;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use archive_base::spare::used_by;
use archive_storage::quietly;
use crossbeam::channel::{Receiver, RecvTimeoutError, Sender, bounded};

use self::notes::{Notes, ReadingNote};
pub use self::page::RawPage;
use crate::parse::{ParseLimits, ParseProblem, XPATH_STACK_BYTES};

/// Processor time for reading a document. The largest take some seconds on a slow machine.
const TIME_MAX: Duration = Duration::from_secs(30);

/// Time by the clock for reading a document, as a multiple of the processor time. A thread gets less than a processor
/// on a busy machine, and a reader that waits for something uses none.
const CLOCK_TIMES: u32 = 10;

/// A document that takes longer than this is noted as one that may never end.
const NOTED_AFTER: Duration = Duration::from_secs(1);

/// How often the watch checks the threads.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Maximum number of given-up threads still running. Beyond it, nothing is read until one of them ends.
const GIVEN_UP_MAX: usize = 8;

/// Start of a document's digest.
pub(crate) type DocumentKey = [u8; 16];

/// Why a document was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// Reading took too long.
    TooLong,
    /// The program ended while the document was being read.
    EndedTheProgram,
    /// The reader panicked.
    Failed,
    /// Too many given-up threads are still running.
    TooMany,
}

impl From<Unread> for ParseProblem {
    fn from(unread: Unread) -> Self {
        let why = match unread {
            Unread::TooLong => "reading it takes too long",
            Unread::EndedTheProgram => "the program ended while it was being read",
            Unread::Failed => "reading it failed",
            Unread::TooMany => "too many others take too long to read",
        };
        Self::NotRead(why.into())
    }
}

/// Does `work`, which reads something, on its own thread; returns nothing if that takes too long or fails.
pub fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, result) = bounded(1);
    // Nobody waits for a reader that was given up.
    let thread = thread::Builder::new().name("process-read".to_owned()).stack_size(XPATH_STACK_BYTES);
    let thread = thread.spawn(move || drop(sender.send(work())));
    thread.ok().and_then(|_| result.recv_timeout(TIME_MAX).ok())
}

/// What the threads of a crew do with each item.
pub trait Work: Clone + Send + 'static {
    /// What a crew receives.
    type Item: Send + 'static;
    /// An item with something to read. It is cloned only when its thread is given up.
    type Job: Clone + Send + Sync + 'static;
    /// Result of reading.
    type Read;
    /// What a crew sends.
    type Done: Send + 'static;

    /// Returns the job of an item, or its final result if there is nothing to read; nothing if the item is invalid.
    fn take(item: Self::Item) -> Option<Result<Self::Job, Self::Done>>;

    /// Reads. The thread may be given up here; another one then does the job again, unread.
    fn read(&mut self, job: &Self::Job, reader: &CallerReader) -> Self::Read;

    /// Completes a job after reading.
    fn finish(&mut self, job: Self::Job, read: Self::Read) -> Self::Done;
}

/// State shared by all readers of a program.
struct ReadingPool {
    notes: Notes,
    limits: ParseLimits,
    given_up: AtomicUsize,
    /// Maximum times for a document: on a processor, and by the clock.
    times_max: [Duration; 2],
    began: Instant,
}

impl ReadingPool {
    fn new(notes: Notes, limits: ParseLimits, times_max: [Duration; 2]) -> Arc<Self> {
        Arc::new(Self { notes, limits, given_up: AtomicUsize::new(0), times_max, began: Instant::now() })
    }
}

/// Reads documents on the calling thread.
pub struct CallerReader {
    desk: Arc<Desk>,
    /// Why nothing is read any more, for the reader that finishes a given-up job.
    unread: Option<Unread>,
}

/// State of a reading thread that the watch can see.
struct Desk {
    shared: Arc<ReadingPool>,
    note: ReadingNote,
    /// When it began to read, in milliseconds since the start; 0 while it reads nothing.
    since: AtomicU64,
    /// Its folder in `/proc`, where the system has one.
    task: OnceLock<PathBuf>,
    /// `since` of the document with which the watch last saw it, and its processor time then.
    seen: Mutex<(u64, Duration)>,
}

impl CallerReader {
    fn new(shared: &Arc<ReadingPool>) -> Self {
        let desk = Desk {
            shared: Arc::clone(shared),
            note: shared.notes.note(),
            since: AtomicU64::new(0),
            task: OnceLock::new(),
            seen: Mutex::default(),
        };
        Self { desk: Arc::new(desk), unread: None }
    }

    /// Does `work`, which only reads a document.
    fn read<T>(&self, key: DocumentKey, work: impl FnOnce() -> T) -> Result<T, Unread> {
        let Desk { shared, note, since, .. } = &*self.desk;
        if let Some(unread) = self.unread {
            return Err(unread);
        }
        if shared.notes.has_ended_the_program(&key) {
            return Err(Unread::EndedTheProgram);
        }
        if shared.given_up.load(Ordering::Relaxed) >= GIVEN_UP_MAX {
            return Err(Unread::TooMany);
        }
        note.begin(key);
        since.store(self.desk.now(), Ordering::Release);
        // State left behind by a panic is dropped with the document.
        let done = quietly(work);
        since.store(0, Ordering::Release);
        note.end(key);
        done.ok_or(Unread::Failed)
    }
}

impl Desk {
    fn now(&self) -> u64 {
        u64::try_from(self.shared.began.elapsed().as_millis()).unwrap_or(u64::MAX).max(1)
    }

    /// How long the thread has been reading.
    fn reading_for(&self) -> Option<Duration> {
        let since = self.since.load(Ordering::Acquire);
        (since > 0).then(|| Duration::from_millis(self.now().saturating_sub(since)))
    }

    /// Processor time used since the watch first saw the thread with its current document; the time by the clock if the
    /// system does not report it.
    fn used_for(&self, by_clock: Duration) -> Duration {
        let Some(used) = self.task.get().and_then(|task| used_by(task)) else { return by_clock };
        let since = self.since.load(Ordering::Acquire);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.0 != since {
            *seen = (since, used);
        }
        used.saturating_sub(seen.1)
    }
}

/// Threads that work until all senders or all receivers are gone. Dropping a crew waits for no document.
pub struct Crew<W: Work> {
    team: Arc<Team<W>>,
    /// Dropping it ends the watch.
    watched: Option<Sender<()>>,
    watch: Option<JoinHandle<()>>,
}

/// The threads of a crew, as seen by the watch.
struct Team<W: Work> {
    work: W,
    shared: Arc<ReadingPool>,
    posts: Mutex<Vec<Arc<Post<W>>>>,
}

/// One thread of a crew.
struct Post<W: Work> {
    desk: Arc<Desk>,
    /// What its successor needs, while it reads.
    turn: Mutex<Option<ReadingJob<W>>>,
    /// Whether it has taken an item and not finished it yet.
    is_busy: AtomicBool,
}

/// A job, the source of further items, and the destination of its result.
struct ReadingJob<W: Work> {
    job: Arc<W::Job>,
    items: Receiver<W::Item>,
    done: Sender<W::Done>,
}

impl<W: Work> Post<W> {
    fn turn(&self) -> MutexGuard<'_, Option<ReadingJob<W>>> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: Work + Sync> Crew<W> {
    /// Starts threads for the archive in a folder. The caller must own the archive.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start(
        work: W,
        threads: usize,
        archive: &Path,
        limits: ParseLimits,
        items: &Receiver<W::Item>,
        done: &Sender<W::Done>,
    ) -> io::Result<Self> {
        let times_max = [TIME_MAX, TIME_MAX * CLOCK_TIMES];
        Self::with(work, threads, ReadingPool::new(Notes::open(archive), limits, times_max), items, done)
    }

    fn with(
        work: W,
        threads: usize,
        shared: Arc<ReadingPool>,
        items: &Receiver<W::Item>,
        done: &Sender<W::Done>,
    ) -> io::Result<Self> {
        let team = Arc::new(Team { work, shared, posts: Mutex::default() });
        for _ in 0..threads.max(1) {
            team.start_thread(items.clone(), done.clone())?;
        }
        let (watched, is_over) = bounded(0);
        let watching = Arc::clone(&team);
        let watch = thread::Builder::new().name("process-watch".to_owned()).spawn(move || {
            while is_over.recv_timeout(LOOK_EVERY.min(watching.shared.times_max[0] / 2))
                == Err(RecvTimeoutError::Timeout)
            {
                watching.look();
            }
        })?;
        Ok(Self { team, watched: Some(watched), watch: Some(watch) })
    }
}

impl<W: Work + Sync> Team<W> {
    fn posts(&self) -> MutexGuard<'_, Vec<Arc<Post<W>>>> {
        self.posts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start_thread(&self, items: Receiver<W::Item>, done: Sender<W::Done>) -> io::Result<()> {
        let reader = CallerReader::new(&self.shared);
        let desk = Arc::clone(&reader.desk);
        let post = Arc::new(Post { desk, turn: Mutex::default(), is_busy: AtomicBool::new(false) });
        let (own, work) = (Arc::clone(&post), self.work.clone());
        let mut posts = self.posts();
        let name = format!("process-{}", posts.len());
        thread::Builder::new().name(name).spawn(move || own.work(work, &reader, items, done))?;
        posts.push(post);
        Ok(())
    }

    /// Looks for threads that have been reading for long.
    fn look(&self) {
        let posts = self.posts().clone();
        let [used_max, time_max] = self.shared.times_max;
        for post in posts {
            let Some(time) = post.desk.reading_for() else { continue };
            if post.desk.used_for(time) >= used_max || time >= time_max {
                self.give_up(&post);
            } else if time >= NOTED_AFTER {
                post.desk.note.takes_long();
            }
        }
    }

    /// Abandons a thread, finishes its job unread, and starts another thread.
    fn give_up(&self, post: &Arc<Post<W>>) {
        self.shared.given_up.fetch_add(1, Ordering::Relaxed);
        let Some(ReadingJob { job, items, done }) = post.turn().take() else {
            // It finished just in time.
            self.shared.given_up.fetch_sub(1, Ordering::Relaxed);
            return;
        };
        post.desk.note.takes_long();
        self.posts().retain(|other| !Arc::ptr_eq(other, post));
        let mut work = self.work.clone();
        let reader = CallerReader { unread: Some(Unread::TooLong), ..CallerReader::new(&self.shared) };
        let read = work.read(&job, &reader);
        // If all receivers are gone, the new thread ends too. If it cannot start, the crew has one thread less.
        let _ = done.send(work.finish(Arc::unwrap_or_clone(job), read));
        let _ = self.start_thread(items, done);
    }
}

impl<W: Work> Post<W> {
    /// Main loop of a thread: takes items until all senders are gone or the thread is given up.
    fn work(
        &self,
        mut work: W,
        reader: &CallerReader,
        mut items: Receiver<W::Item>,
        mut done: Sender<W::Done>,
    ) {
        if let Ok(task) = std::fs::read_link("/proc/thread-self") {
            // It is set once, when the thread begins.
            let _ = self.desk.task.set(Path::new("/proc").join(task));
        }
        while let Ok(item) = items.recv() {
            self.is_busy.store(true, Ordering::Release);
            let result = match W::take(item) {
                Some(Ok(job)) => {
                    let job = Arc::new(job);
                    *self.turn() = Some(ReadingJob { job: Arc::clone(&job), items, done });
                    let read = work.read(&job, reader);
                    drop(job);
                    let Some(turn) = self.turn().take() else {
                        self.desk.shared.given_up.fetch_sub(1, Ordering::Relaxed);
                        return;
                    };
                    (items, done) = (turn.items, turn.done);
                    Some(work.finish(Arc::unwrap_or_clone(turn.job), read))
                }
                Some(Err(result)) => Some(result),
                None => None,
            };
            if result.is_some_and(|result| done.send(result).is_err()) {
                break;
            }
            self.is_busy.store(false, Ordering::Release);
        }
        self.is_busy.store(false, Ordering::Release);
    }
}

impl<W: Work> Drop for Crew<W> {
    fn drop(&mut self) {
        self.watched.take();
        // A panic of the watch no longer matters.
        self.watch.take().map(JoinHandle::join);
        let posts = std::mem::take(&mut *self.team.posts.lock().unwrap_or_else(PoisonError::into_inner));
        // A thread that is not reading finishes soon.
        let is_at_work =
            |post: &Arc<Post<W>>| post.is_busy.load(Ordering::Acquire) && post.desk.reading_for().is_none();
        while posts.iter().any(is_at_work) {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: DocumentKey = [1; 16];
    const SOON: Duration = Duration::from_millis(200);

    /// A document here is a channel: reading it ends when its sender is dropped.
    #[derive(Clone)]
    struct ToTheEnd;

    impl Work for ToTheEnd {
        type Item = (u32, Receiver<()>);
        type Job = (u32, Receiver<()>);
        type Read = Result<(), Unread>;
        type Done = (u32, Result<(), Unread>);

        fn take(item: Self::Item) -> Option<Result<Self::Job, Self::Done>> {
            Some(Ok(item))
        }

        fn read(&mut self, (_, end): &Self::Job, reader: &CallerReader) -> Self::Read {
            reader.read(KEY, || assert!(end.recv().is_err()))
        }

        fn finish(&mut self, (number, _): Self::Job, read: Self::Read) -> Self::Done {
            (number, read)
        }
    }

    struct Started {
        crew: Crew<ToTheEnd>,
        items: Sender<(u32, Receiver<()>)>,
        done: Receiver<(u32, Result<(), Unread>)>,
    }

    /// Starts a crew that gives up soon.
    fn start(threads: usize) -> Started {
        start_with(threads, [SOON; 2])
    }

    fn start_with(threads: usize, times_max: [Duration; 2]) -> Started {
        let ((items, receiver), (sender, done)) = (bounded(100), bounded(100));
        let shared = ReadingPool::new(Notes::default(), ParseLimits::default(), times_max);
        let crew = Crew::with(ToTheEnd, threads, shared, &receiver, &sender).unwrap();
        Started { crew, items, done }
    }

    impl Started {
        /// Sends a document, which is read until the returned sender is dropped.
        fn send(&self, number: u32) -> Sender<()> {
            let (end, document) = bounded(0);
            self.items.send((number, document)).unwrap();
            end
        }

        fn given_up(&self) -> usize {
            self.crew.team.shared.given_up.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn what_takes_too_long_is_given_up_and_the_next_is_read() {
        let started = start(1);
        drop(started.send(1));
        assert_eq!(started.done.recv(), Ok((1, Ok(()))));
        let end = started.send(2);
        assert_eq!(started.done.recv(), Ok((2, Err(Unread::TooLong))));
        drop(started.send(3));
        assert_eq!(started.done.recv(), Ok((3, Ok(()))));
        assert_eq!(started.given_up(), 1);
        drop(end);
        while started.given_up() > 0 {
            thread::yield_now();
        }
    }

    /// A document that waits uses no processor, as one that is read on a busy machine uses little.
    #[test]
    fn what_gets_no_processor_is_not_given_up() {
        let started = start_with(1, [SOON / 4, TIME_MAX]);
        let end = started.send(1);
        while started.crew.team.posts()[0].desk.reading_for().is_none_or(|time| time < SOON) {
            thread::yield_now();
        }
        assert_eq!(started.given_up(), 0);
        drop(end);
        assert_eq!(started.done.recv(), Ok((1, Ok(()))));
    }

    #[test]
    fn given_up_threads_are_limited() {
        let started = start(2);
        let ends: Vec<_> = (0..GIVEN_UP_MAX as u32).map(|number| started.send(number)).collect();
        for _ in &ends {
            assert_eq!(started.done.recv().unwrap().1, Err(Unread::TooLong));
        }
        drop(started.send(100));
        assert_eq!(started.done.recv(), Ok((100, Err(Unread::TooMany))));
        drop(ends);
        while started.given_up() > 0 {
            thread::yield_now();
        }
        drop(started.send(101));
        assert_eq!(started.done.recv(), Ok((101, Ok(()))));
    }

    /// A receiver of results sees their end even though a given-up thread is still running.
    #[test]
    fn results_end_when_all_senders_are_gone() {
        let Started { crew, items, done } = start(2);
        let (_end, document) = bounded(0);
        items.send((1, document)).unwrap();
        drop(items);
        assert_eq!(done.recv(), Ok((1, Err(Unread::TooLong))));
        assert!(done.recv().is_err());
        drop(crew);
    }

    #[test]
    fn nobody_waits_for_a_document_once_the_run_is_over() {
        let ((items, receiver), (sender, _done)) = (bounded(1), bounded(1));
        let shared = ReadingPool::new(Notes::default(), ParseLimits::default(), [TIME_MAX; 2]);
        let crew = Crew::with(ToTheEnd, 1, shared, &receiver, &sender).unwrap();
        let (_end, document) = bounded(0);
        let begun = Instant::now();
        items.send((1, document)).unwrap();
        while crew.team.posts()[0].desk.reading_for().is_none() {
            thread::yield_now();
        }
        drop(crew);
        assert!(begun.elapsed() < TIME_MAX);
    }

    #[test]
    fn a_panic_costs_one_document() {
        let reader =
            CallerReader::new(&ReadingPool::new(Notes::default(), ParseLimits::default(), [TIME_MAX; 2]));
        assert_eq!(reader.read(KEY, || assert!(KEY.is_empty(), "on purpose")), Err(Unread::Failed));
        assert_eq!(reader.read(KEY, || 1), Ok(1));
    }

    /// A process that dies while reading leaves the same file as one that never notes the end.
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
        let read = || {
            let notes = Notes::open(folder.path());
            CallerReader::new(&ReadingPool::new(notes, ParseLimits::default(), [TIME_MAX; 2]))
                .read(KEY, || ())
        };
        // A killed program happened to be reading some document: the document gets further chances.
        for _ in 1..notes::ENDS_MAX {
            die(false);
        }
        assert_eq!(read(), Ok(()));
        for _ in 0..notes::ENDS_MAX {
            die(false);
        }
        assert_eq!(read(), Err(Unread::EndedTheProgram));
        assert_eq!(read(), Err(Unread::EndedTheProgram));
        std::fs::remove_dir_all(folder.path().join("state")).unwrap();
        die(true);
        assert_eq!(read(), Err(Unread::EndedTheProgram));
    }
}
