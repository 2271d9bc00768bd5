//! Where the body of a response is kept while it is received: in memory, or in a file once it is too long.
//!
//! Invariant: all bodies in memory together, from the first byte received until the body is stored, take no more than
//! the budget plus [`KEPT_BYTES_MIN`] per request in progress.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use archive_storage::backend::{RealDisk, Spool};
use archive_storage::warc::{HttpHead, split};
use bytes::{Bytes, BytesMut};

use super::logins::without_cookies;

/// A body of up to this many bytes stays in memory; nearly all do.
const KEPT_BYTES_MIN: usize = 256 * 1024;

/// No single body takes more than this fraction (one eighth) of the budget.
const BODY_SHARE_MAX: usize = 8;

/// Memory budget for bodies, and the folder for those that exceed it. Clones share the account.
#[derive(Debug, Clone)]
pub struct BodyMemory {
    budget: usize,
    folder: PathBuf,
    held: Arc<AtomicUsize>,
}

impl BodyMemory {
    /// Creates an account of `budget` bytes; longer bodies go to unnamed files in `folder`.
    #[must_use]
    pub fn new(budget: usize, folder: PathBuf) -> Self {
        Self { budget, folder, held: Arc::default() }
    }

    /// Bytes of bodies currently in memory.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Returns an empty hold on this account.
    pub(super) fn hold(&self) -> ChargedBytes {
        ChargedBytes { held: Arc::clone(&self.held), bytes: 0 }
    }

    /// Whether a body with this many bytes in memory must go to a file.
    fn is_too_much(&self, bytes: usize) -> bool {
        bytes > KEPT_BYTES_MIN && (bytes > self.budget / BODY_SHARE_MAX || self.held() > self.budget)
    }
}

/// Bytes charged to the account until dropped.
#[derive(Debug)]
pub struct ChargedBytes {
    held: Arc<AtomicUsize>,
    bytes: usize,
}

impl ChargedBytes {
    fn set(&mut self, bytes: usize) {
        self.held.fetch_add(bytes, Ordering::Relaxed);
        self.held.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = bytes;
    }
}

/// A clone belongs to the same account, but has no bytes charged.
impl Clone for ChargedBytes {
    fn clone(&self) -> Self {
        Self { held: Arc::clone(&self.held), bytes: 0 }
    }
}

impl Drop for ChargedBytes {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A response as received, without interim responses.
#[derive(Debug, Clone)]
pub enum HttpMessage {
    /// Head and body in one buffer.
    Whole(Bytes),
    /// A head, and a body that was too long for memory.
    Spooled {
        /// The head, including its empty line.
        head: Bytes,
        /// The body with all codings.
        body: Arc<Spool>,
    },
}

impl Default for HttpMessage {
    /// Nothing.
    fn default() -> Self {
        Self::Whole(Bytes::new())
    }
}

impl HttpMessage {
    /// Bytes received.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a response has at least a head")]
    pub fn len(&self) -> u64 {
        match self {
            Self::Whole(http) => http.len() as u64,
            Self::Spooled { head, body } => head.len() as u64 + body.len(),
        }
    }
}

impl HttpMessage {
    /// The head.
    pub(super) fn head(&self) -> HttpHead {
        match self {
            Self::Whole(http) => HttpHead::parse(&split(http).0),
            Self::Spooled { head, .. } => HttpHead::parse(head),
        }
    }

    /// Bytes received of the body.
    pub(super) fn body_length(&self) -> u64 {
        match self {
            Self::Whole(http) => split(http).1.len() as u64,
            Self::Spooled { body, .. } => body.len(),
        }
    }

    /// The message with the body of another one behind its own.
    pub(super) fn followed_by(self, rest: &Self, memory: &BodyMemory) -> io::Result<(Self, ChargedBytes)> {
        let head = match &self {
            Self::Whole(http) => split(http).0,
            Self::Spooled { head, .. } => head.clone(),
        };
        let mut all = Incoming::new(memory, head.len(), BytesMut::from(&head[..]));
        match self {
            Self::Whole(http) => all.append(&split(&http).1)?,
            Self::Spooled { body, .. } => match Arc::try_unwrap(body) {
                Ok(spool) => all.spool = Some(spool),
                Err(shared) => shared.each_piece(|piece| all.append(piece))?,
            },
        }
        match rest {
            Self::Whole(http) => all.append(&split(http).1)?,
            Self::Spooled { body, .. } => body.each_piece(|piece| all.append(piece))?,
        }
        let length = all.body_length();
        all.finish(length)
    }

    /// The message without the values of the cookies that it sets.
    pub(super) fn without_cookies(self) -> Self {
        match self {
            Self::Whole(http) => {
                let (head, body) = split(&http);
                without_cookies(&head)
                    .map_or(Self::Whole(http), |head| Self::Whole([&head[..], &body].concat().into()))
            }
            Self::Spooled { head, body } => {
                Self::Spooled { head: without_cookies(&head).map_or(head, Bytes::from), body }
            }
        }
    }
}

/// A response being received: the head, and the body or its tail.
#[derive(Debug)]
pub(super) struct Incoming<'m> {
    memory: &'m BodyMemory,
    held: ChargedBytes,
    /// Bytes of the head, at the start of the buffer.
    head_length: usize,
    buffer: BytesMut,
    spool: Option<Spool>,
}

impl<'m> Incoming<'m> {
    pub(super) fn new(memory: &'m BodyMemory, head_length: usize, buffer: BytesMut) -> Self {
        Self { memory, held: memory.hold(), head_length, buffer, spool: None }
    }

    /// Buffer to read into; only to be appended to.
    pub(super) fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// The tail of the body, which is not in a file yet.
    pub(super) fn tail(&self) -> &[u8] {
        &self.buffer[self.head_length..]
    }

    /// Bytes of the body that are in a file.
    pub(super) fn spooled(&self) -> u64 {
        self.spool.as_ref().map_or(0, Spool::len)
    }

    /// Bytes of the body received.
    pub(super) fn body_length(&self) -> u64 {
        self.spooled() + self.tail().len() as u64
    }

    /// Accounts for bytes just read, and moves bytes to a file if there are too many. The framing no longer needs the
    /// first `settled` bytes of the tail: only these may be moved. Returns how many were.
    pub(super) fn settle(&mut self, settled: usize) -> io::Result<usize> {
        self.held.set(self.buffer.capacity());
        let must_leave = self.spool.is_some() || self.memory.is_too_much(self.buffer.len());
        if !must_leave || settled < KEPT_BYTES_MIN / 2 {
            return Ok(0);
        }
        let spool = match &mut self.spool {
            Some(spool) => spool,
            none => none.insert(Spool::create(&RealDisk, &self.memory.folder)?),
        };
        let (head, body) = self.buffer.split_at(self.head_length);
        let (leaving, staying) = body.split_at(settled);
        spool.append(leaving)?;
        let mut buffer = BytesMut::with_capacity(head.len() + staying.len() + KEPT_BYTES_MIN);
        buffer.extend_from_slice(head);
        buffer.extend_from_slice(staying);
        self.buffer = buffer;
        self.held.set(self.buffer.capacity());
        Ok(settled)
    }

    /// Adds bytes that need no framing.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(bytes);
        let settled = self.tail().len();
        self.settle(settled).map(drop)
    }

    /// Returns the message, its body cut to `body_length` bytes.
    pub(super) fn finish(mut self, body_length: u64) -> io::Result<(HttpMessage, ChargedBytes)> {
        let left = usize::try_from(body_length.saturating_sub(self.spooled())).unwrap_or(usize::MAX);
        self.buffer.truncate(self.head_length.saturating_add(left));
        let message = match self.spool {
            None => HttpMessage::Whole(self.buffer.freeze()),
            Some(mut spool) => {
                spool.append(&self.buffer[self.head_length..])?;
                spool.truncate(body_length);
                self.buffer.truncate(self.head_length);
                self.held.set(0);
                HttpMessage::Spooled { head: Bytes::copy_from_slice(&self.buffer), body: Arc::new(spool) }
            }
        };
        Ok((message, self.held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_leaves_memory_when_it_is_too_long() {
        let folder = tempfile::tempdir().unwrap();
        let memory = BodyMemory::new(4 << 20, folder.path().to_owned());
        let mut incoming = Incoming::new(&memory, 4, BytesMut::from(&b"head"[..]));
        let piece: Vec<u8> = (0..100_000_u32).map(|number| number as u8).collect();
        for _ in 0..30 {
            incoming.buffer().extend_from_slice(&piece);
            let settled = incoming.tail().len();
            incoming.settle(settled).unwrap();
            assert!(memory.held() < 2 << 20, "{}", memory.held());
        }
        assert_eq!(incoming.body_length(), 3_000_000);
        assert!(incoming.spooled() > 2_000_000);
        let (message, held) = incoming.finish(2_900_000).unwrap();
        assert_eq!(message.len(), 2_900_004);
        let HttpMessage::Spooled { head, body } = message else { panic!("the body was kept in memory") };
        assert_eq!(&head[..], b"head");
        assert_eq!(body.beginning(usize::MAX).unwrap(), [&piece[..]; 29].concat());
        drop(held);
        assert_eq!(memory.held(), 0);
    }

    #[test]
    fn a_body_is_joined_in_memory_and_on_disk() {
        let folder = tempfile::tempdir().unwrap();
        let memory = BodyMemory::new(4 << 20, folder.path().to_owned());
        let whole = |body: &[u8]| HttpMessage::Whole([b"HTTP/1.1 200 OK\r\n\r\n", body].concat().into());
        let (joined, held) = whole(b"one").followed_by(&whole(b"two"), &memory).unwrap();
        let HttpMessage::Whole(http) = joined else { panic!("it is short") };
        assert_eq!(&http[..], b"HTTP/1.1 200 OK\r\n\r\nonetwo");
        drop(held);
        let long: Vec<u8> = (0..2_000_000_u32).map(|number| number as u8).collect();
        let (joined, _) = whole(&long).followed_by(&whole(&long), &memory).unwrap();
        let (joined, _) = joined.followed_by(&whole(b"end"), &memory).unwrap();
        let HttpMessage::Spooled { head, body } = joined else { panic!("it is too long for memory") };
        assert_eq!(&head[..], b"HTTP/1.1 200 OK\r\n\r\n");
        assert!(body.beginning(usize::MAX).unwrap() == [&long[..], &long, b"end"].concat());
        assert!(memory.held() < 1 << 20, "{}", memory.held());
    }

    #[test]
    fn short_bodies_stay_and_count() {
        let memory = BodyMemory::new(1 << 20, PathBuf::from("/nowhere"));
        let mut incoming = Incoming::new(&memory, 0, BytesMut::from(&[0; 1000][..]));
        assert_eq!(incoming.settle(1000).unwrap(), 0);
        assert_eq!(memory.held(), 1000);
        let (message, held) = incoming.finish(1000).unwrap();
        assert!(matches!(message, HttpMessage::Whole(http) if http.len() == 1000));
        drop(held);
        assert_eq!(memory.held(), 0);
    }
}
