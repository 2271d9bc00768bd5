//! Answers that are written before they are sent: a client that is slow, or never reads, then holds neither the archive nor
//! memory. Short ones stay in memory, the others go to an unnamed temporary file, row by row.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tempfile::{SpooledData, SpooledTempFile};

use super::bodies::SHORT_BYTES_MAX;
use super::page::Reply;

/// Bytes of all answers that are written or wait in files: folders for temporary files may be small, or in memory.
const FILES_BYTES_MAX: u64 = 2 << 30;

/// Bytes that all answers in files may still take.
#[derive(Clone, Debug)]
pub(super) struct FileRoom(Arc<AtomicU64>);

/// An answer that is being written, limited in size and in writing time.
pub(super) struct Unsent {
    data: SpooledTempFile,
    left: u64,
    until: Instant,
    is_full: bool,
    share: FileShare,
}

/// What an answer takes of the room for all.
#[derive(Debug)]
struct FileShare {
    room: FileRoom,
    bytes: u64,
}

/// The file of an answer that is sent.
#[derive(Debug)]
pub(super) struct UnsentFile {
    pub(super) file: File,
    _share: FileShare,
}

impl Default for FileRoom {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(FILES_BYTES_MAX)))
    }
}

impl FileShare {
    /// Takes more of the room; returns whether there is so much.
    fn grow(&mut self, bytes: u64) -> bool {
        let less = |free: u64| free.checked_sub(bytes);
        let is_there = self.room.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok();
        self.bytes += if is_there { bytes } else { 0 };
        is_there
    }
}

impl Drop for FileShare {
    fn drop(&mut self) {
        self.room.0.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

impl Unsent {
    /// An answer of at most so many bytes, which must be written within `time`.
    pub(super) fn new(room: &FileRoom, bytes_max: u64, time: Duration) -> Self {
        Self {
            data: SpooledTempFile::new(SHORT_BYTES_MAX),
            left: bytes_max,
            until: Instant::now() + time,
            is_full: false,
            share: FileShare { room: room.clone(), bytes: 0 },
        }
    }

    /// Whether the answer was too long, took too long, or found no room beside the others.
    pub(super) fn is_over(&self) -> bool {
        self.is_full || Instant::now() >= self.until
    }

    /// The reply that sends it.
    ///
    /// # Errors
    /// When its file cannot be used.
    pub(super) fn reply(self, kind: &str) -> io::Result<Reply> {
        let mut file = match self.data.into_inner() {
            SpooledData::InMemory(data) => return Ok(Reply::of(200, kind, data.into_inner())),
            SpooledData::OnDisk(file) => file,
        };
        file.rewind()?;
        let reply = Reply::of(200, kind, "").with("Content-Length", file.metadata()?.len().to_string());
        Ok(Reply { file: Some(UnsentFile { file, _share: self.share }), ..reply })
    }
}

impl Write for Unsent {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let bytes = buffer.len() as u64;
        self.is_full = self.is_full || bytes > self.left || !self.share.grow(bytes);
        if self.is_over() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.left -= bytes;
        self.data.write_all(buffer).map(|()| buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.data.flush()
    }
}

impl Seek for Unsent {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.data.seek(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_secs(600);

    #[test]
    fn an_answer_takes_no_more_than_it_may() {
        let room = FileRoom::default();
        let (mut enough, mut short) = (Unsent::new(&room, 3, TIME), Unsent::new(&room, 2, TIME));
        assert!(enough.write_all(b"abc").is_ok() && !enough.is_over());
        assert!(short.write_all(b"abc").is_err() && short.is_over());
        assert!(Unsent::new(&room, 9, Duration::ZERO).write_all(b"abc").is_err());
        assert_eq!(enough.reply("text/csv").unwrap().body, "abc");
    }

    #[test]
    fn files_share_the_room_until_they_are_sent() {
        let room = FileRoom(Arc::new(AtomicU64::new(2 * SHORT_BYTES_MAX as u64)));
        let long = vec![0; SHORT_BYTES_MAX + 1];
        let mut first = Unsent::new(&room, u64::MAX, TIME);
        first.write_all(&long).unwrap();
        let reply = first.reply("text/csv").unwrap();
        assert!(reply.body.is_empty() && reply.file.is_some());
        let mut second = Unsent::new(&room, u64::MAX, TIME);
        assert!(second.write_all(&long).is_err() && second.is_over());
        drop((reply, second));
        assert!(Unsent::new(&room, u64::MAX, TIME).write_all(&long).is_ok());
    }
}
