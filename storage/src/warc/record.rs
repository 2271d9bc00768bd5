//! A record read from a file, or why there is none.

use std::io;
use std::sync::Arc;

use bytes::Bytes;

use super::header::RecordHeader;
use super::http;
use crate::backend::Spool;

/// Limits of what a reader accepts and keeps in memory.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ReadLimits {
    /// Maximum bytes of a record's content; a longer record is reported as broken and skipped.
    pub content_bytes_max: u64,
    /// Maximum bytes of content kept in memory, if there is a folder for longer ones
    /// ([`super::RecordReader::with_spools`]).
    pub memory_bytes_max: u64,
    /// Maximum bytes of a zstd frame's window, rounded down to a power of two; a frame that needs more counts as
    /// damaged.
    pub window_bytes_max: u64,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self { content_bytes_max: 1 << 30, memory_bytes_max: 16 << 20, window_bytes_max: 128 << 20 }
    }
}

/// A record and its place in its file.
#[derive(Clone, Debug)]
pub struct Record {
    /// Its header fields.
    pub header: RecordHeader,
    /// Offset in the compressed file. A record that shares a gzip member has the member's offset.
    pub offset: u64,
    /// Compressed bytes, including the empty lines after it; 0 if it shares a gzip member with others, so that it
    /// cannot be read on its own.
    pub length: u64,
    /// Its block, or the first MiB of a block that is too long for memory.
    pub content: Bytes,
    /// The remainder of such a block.
    pub rest: Option<Arc<Spool>>,
}

impl Record {
    /// Returns the bytes of its block.
    #[must_use]
    pub fn content_length(&self) -> u64 {
        self.content.len() as u64 + self.rest.as_ref().map_or(0, |rest| rest.len())
    }

    /// Returns the content, without the HTTP head if it is an HTTP message: what `WARC-Payload-Digest` covers in
    /// practice, including transfer coding. For a block that is not in memory, only the beginning.
    #[must_use]
    pub fn body(&self) -> Bytes {
        http::body(&self.header, &self.content)
    }

    /// Returns the content, without head and transfer coding if it is an HTTP message. For a block that is not in
    /// memory, only the beginning.
    #[must_use]
    pub fn payload(&self) -> Bytes {
        http::payload(&self.header, &self.content)
    }
}

/// A place in a file without an intact record.
#[derive(Clone, Debug, thiserror::Error)]
#[error("broken record at byte {offset}: {what}")]
pub struct Broken {
    /// Offset in the compressed file.
    pub offset: u64,
    /// What is wrong.
    pub what: String,
    /// The head, if it could be read.
    pub header: Option<Box<RecordHeader>>,
    /// The record with as much of its content as there is, if it is broken only because the file ends, or because an
    /// ARC file states a wrong length.
    pub cut: Option<Box<Record>>,
}

/// Why there is no record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Reading failed; no more records follow.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A record is broken; more records may follow.
    #[error(transparent)]
    Broken(#[from] Box<Broken>),
}
