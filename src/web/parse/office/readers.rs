//! The processes that read documents for this one.
//!
//! A reader is started when a document comes and no other one is free, by a thread of its own, which lives as long as this
//! program: the system ends a process with the thread that started it. What ends a reader costs the document that it was reading.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use archive_base::spare::used_by;
use crossbeam::channel::{Receiver, Sender, TrySendError, bounded};

use super::process::{ANSWER_BYTES_MAX, FILE_BYTES_MAX};
use super::{OfficeDocument, OfficeProblem};
use crate::parse::DocumentKind;

/// Maximum number of readers.
const READERS_MAX: usize = 2;

/// Processor time for reading a document, and more of it for each mebibyte. Few take one second.
const TIME_MAX: Duration = Duration::from_secs(5);
const TIME_MAX_A_MEBIBYTE: Duration = Duration::from_secs(1);

/// Time by the clock for reading a document, as a multiple of the processor time.
const CLOCK_TIMES: u32 = 10;

/// Processor time after which a reader is replaced, so that what it lost of its memory comes back.
const LIFE_MAX: Duration = Duration::from_secs(60);

/// How often a reader at work is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The program that is started, and its arguments.
static READER: OnceLock<(PathBuf, Vec<String>)> = OnceLock::new();

/// Sets the program that reads documents for this one: it calls [`serve_documents`](super::serve_documents) when it is started with
/// these arguments. Before, documents are not read, and say so. Only the first call counts.
pub fn start_readers_with(program: &Path, arguments: &[&str]) {
    // A second call changes nothing.
    let _ = READER.set((program.to_owned(), arguments.iter().map(|&argument| argument.to_owned()).collect()));
}

/// A document to be read, and where its answer goes.
struct Question {
    kind: DocumentKind,
    file: Vec<u8>,
    answer: Sender<OfficeDocument>,
}

/// Has a document read; waits while all readers are at work.
pub(crate) fn ask(kind: DocumentKind, file: &[u8]) -> OfficeDocument {
    if READER.get().is_none() {
        return OfficeDocument::unread(OfficeProblem::NoReader);
    }
    if file.len() > FILE_BYTES_MAX {
        return OfficeDocument::unread(OfficeProblem::TooLarge);
    }
    let (questions, waiting) = QUESTIONS.get_or_init(|| bounded(0));
    let (answer, answered) = bounded(1);
    let asked = match questions.try_send(Question { kind, file: file.to_vec(), answer }) {
        Ok(()) => true,
        Err(TrySendError::Full(question) | TrySendError::Disconnected(question)) => {
            start_thread(waiting) && questions.send(question).is_ok()
        }
    };
    let document = answered.recv().ok().filter(|_| asked);
    document.unwrap_or_else(|| OfficeDocument::unread(OfficeProblem::NotStarted))
}

/// Questions to readers, which nobody puts while no reader is free.
static QUESTIONS: OnceLock<(Sender<Question>, Receiver<Question>)> = OnceLock::new();

/// Starts another thread that answers questions, unless there are enough; returns whether there is any.
fn start_thread(waiting: &Receiver<Question>) -> bool {
    static STARTED: Mutex<usize> = Mutex::new(0);
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    if *started < READERS_MAX {
        let waiting = waiting.clone();
        let thread = thread::Builder::new().name("document-reader".to_owned());
        *started += usize::from(thread.spawn(move || answer_all(&waiting)).is_ok());
    }
    *started > 0
}

/// Answers questions with one reader at a time.
fn answer_all(questions: &Receiver<Question>) {
    let mut reader = None;
    for Question { kind, file, answer } in questions {
        let taken = match reader.take() {
            Some(reader) => Ok(reader),
            None => Reader::start(),
        };
        let document = match taken {
            Ok(mut taken) => match taken.read(kind, &file) {
                Ok(document) => {
                    reader = (taken.used() < LIFE_MAX).then_some(taken);
                    document
                }
                Err(problem) => OfficeDocument::unread(problem),
            },
            Err(error) => {
                say_once(&error);
                OfficeDocument::unread(OfficeProblem::NotStarted)
            }
        };
        // Whoever asked may have given up.
        let _ = answer.send(document);
    }
}

fn say_once(error: &io::Error) {
    static IS_SAID: AtomicBool = AtomicBool::new(false);
    if !IS_SAID.swap(true, Ordering::Relaxed) {
        tracing::warn!(%error, "PDF and office documents are not read: no process can be started for that");
    }
}

/// A process that reads documents. Dropping it ends it.
struct Reader {
    child: Child,
    /// Its standard input and output.
    stream: UnixStream,
    /// Its folder in `/proc`.
    folder: PathBuf,
}

impl Reader {
    fn start() -> io::Result<Self> {
        let (program, arguments) = READER.get().ok_or(io::ErrorKind::NotFound)?;
        let (stream, theirs) = UnixStream::pair()?;
        stream.set_read_timeout(Some(LOOK_EVERY))?;
        stream.set_write_timeout(Some(LOOK_EVERY))?;
        let theirs = OwnedFd::from(theirs);
        // It gets neither secrets of the environment nor the signals of a terminal.
        let child = Command::new(program)
            .args(arguments)
            .env_clear()
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::from(theirs.try_clone()?))
            .stdout(Stdio::from(theirs))
            .stderr(Stdio::null())
            .spawn()?;
        let folder = Path::new("/proc").join(child.id().to_string());
        Ok(Self { child, stream, folder })
    }

    /// Processor time that it has used.
    fn used(&self) -> Duration {
        used_by(&self.folder).unwrap_or_default()
    }

    /// Has a document read. After an error, the reader is of no use any more.
    fn read(&mut self, kind: DocumentKind, file: &[u8]) -> Result<OfficeDocument, OfficeProblem> {
        let mebibytes = u32::try_from(file.len() >> 20).unwrap_or(u32::MAX);
        let most = TIME_MAX + TIME_MAX_A_MEBIBYTE.saturating_mul(mebibytes);
        let limit = Limit { used: self.used(), began: Instant::now(), most };
        let length = u32::try_from(file.len()).map_err(|_| OfficeProblem::TooLarge)?;
        self.write(&limit, &[&[kind.code()][..], &length.to_le_bytes()].concat())?;
        self.write(&limit, file)?;
        let mut length = [0; 4];
        self.fill(&limit, &mut length)?;
        let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
        if length > ANSWER_BYTES_MAX {
            return Err(OfficeProblem::BrokeDown);
        }
        let mut answer = vec![0; length];
        self.fill(&limit, &mut answer)?;
        serde_json::from_slice(&answer).map_err(|_| OfficeProblem::BrokeDown)
    }

    fn write(&mut self, limit: &Limit, mut bytes: &[u8]) -> Result<(), OfficeProblem> {
        while !bytes.is_empty() {
            let written = (&self.stream).write(bytes);
            bytes = &bytes[self.went_on(limit, written)?..];
        }
        Ok(())
    }

    fn fill(&mut self, limit: &Limit, bytes: &mut [u8]) -> Result<(), OfficeProblem> {
        let mut filled = 0;
        while filled < bytes.len() {
            let read = (&self.stream).read(&mut bytes[filled..]);
            let read = match read {
                Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
                read => read,
            };
            filled += self.went_on(limit, read)?;
        }
        Ok(())
    }

    /// Returns how many bytes went through, unless the reader has ended or used up its time.
    fn went_on(&self, limit: &Limit, bytes: io::Result<usize>) -> Result<usize, OfficeProblem> {
        match bytes {
            Ok(bytes) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let is_over = self.used().saturating_sub(limit.used) >= limit.most
                    || limit.began.elapsed() >= limit.most * CLOCK_TIMES;
                if is_over { Err(OfficeProblem::TooCostly) } else { Ok(0) }
            }
            Err(_) => Err(OfficeProblem::BrokeDown),
        }
    }
}

/// Since when a document is read, and for how long it may be.
struct Limit {
    used: Duration,
    began: Instant,
    most: Duration,
}

impl Drop for Reader {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
