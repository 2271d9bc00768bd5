//! The process that reads documents for another one: it gives up its rights, then answers one document after the other.
//!
//! A question is the code of the kind of document (1 byte), the length of the file (4 bytes, little-endian) and the file; an
//! answer its length (4 bytes) and JSON.

use std::io::{self, Read, Write};

use archive_storage::quietly;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, set_parent_process_death_signal, setrlimit};

use super::{OfficeDocument, OfficeProblem, read_office};
use crate::parse::DocumentKind;

/// Maximum bytes of a document that is read.
pub(super) const FILE_BYTES_MAX: usize = 64 << 20;

/// Maximum bytes of an answer.
pub(super) const ANSWER_BYTES_MAX: usize = 32 << 20;

/// Maximum bytes of a reader's memory, and of its address space, of which its allocator claims more than it uses.
const MEMORY_BYTES_MAX: u64 = 1 << 30;
const ADDRESS_BYTES_MAX: u64 = 4 << 30;

/// Maximum seconds of a processor that a reader uses, should nobody watch it.
const SECONDS_MAX: u64 = 120;

/// What a reader may ask of the system: to read and write what is open already, memory, and the time. It can neither open a file or
/// a connection nor start a process.
const ALLOWED: [&str; 27] = [
    "read",
    "write",
    "close",
    "brk",
    "mmap",
    "munmap",
    "mremap",
    "mprotect",
    "madvise",
    "futex",
    "clock_gettime",
    "clock_nanosleep",
    "nanosleep",
    "getrandom",
    "getpid",
    "gettid",
    "getcpu",
    "sched_yield",
    "sched_getaffinity",
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "sigaltstack",
    "tgkill",
    "restart_syscall",
    "exit",
    "exit_group",
];

/// Answers documents that another process writes to standard input, until that ends. Before the first one is read, the process has
/// lost the right to do anything else; where that is not possible, none is read.
pub fn serve_documents() {
    let is_confined = confine().is_some();
    // Whoever asked is gone when nothing can be read or written any more.
    let _ = answer_all(is_confined, &mut io::stdin().lock(), &mut io::stdout().lock());
}

fn answer_all(is_confined: bool, questions: &mut impl Read, answers: &mut impl Write) -> io::Result<()> {
    loop {
        let mut head = [0; 5];
        questions.read_exact(&mut head)?;
        let [kind, length @ ..] = head;
        let length = u32::from_le_bytes(length);
        let mut file = Vec::new();
        questions.take(length.into()).read_to_end(&mut file)?;
        let document = if is_confined {
            quietly(|| read_office(DocumentKind::from_code(kind), file)).ok_or(OfficeProblem::BrokeDown)
        } else {
            Err(OfficeProblem::NotConfined)
        };
        let document = document.unwrap_or_else(OfficeDocument::unread);
        let answer = serde_json::to_vec(&document)?;
        answers.write_all(&u32::try_from(answer.len()).unwrap_or(u32::MAX).to_le_bytes())?;
        answers.write_all(&answer)?;
        answers.flush()?;
    }
}

/// Gives up all rights but those to think and to answer; none if that is not possible.
fn confine() -> Option<()> {
    set_parent_process_death_signal(Some(Signal::KILL)).ok()?;
    for (resource, most) in [
        (Resource::Data, MEMORY_BYTES_MAX),
        (Resource::As, ADDRESS_BYTES_MAX),
        (Resource::Cpu, SECONDS_MAX),
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Nproc, 0),
        (Resource::Nofile, 0),
    ] {
        // Whoever started this program may have set it a lower limit.
        let most = Some(getrlimit(resource).maximum.map_or(most, |maximum| maximum.min(most)));
        setrlimit(resource, Rlimit { current: most, maximum: most }).ok()?;
    }
    let allowed: Vec<_> = ALLOWED.iter().map(|name| serde_json::json!({ "syscall": name })).collect();
    // Everything else fails as if it were not permitted (EPERM).
    let policy = serde_json::json!({
        "reader": { "mismatch_action": { "errno": 1 }, "match_action": "allow", "filter": allowed }
    });
    let processor = std::env::consts::ARCH.try_into().ok()?;
    let filters = seccompiler::compile_from_json(policy.to_string().as_bytes(), processor).ok()?;
    filters.get("reader").and_then(|filter| seccompiler::apply_filter(filter).ok())
}
