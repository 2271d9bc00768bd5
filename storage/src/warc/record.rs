//! A record as it is read, or why there is none.

use std::io;
use std::sync::Arc;

use bytes::Bytes;

use super::header::Header;
use super::http;
use crate::backend::Spool;

/// What a reader takes of a record, and holds in memory.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ReadLimits {
    /// Bytes of one record's content; a longer record is reported as broken and skipped.
    pub content_bytes_max: u64,
    /// Bytes of content up to which it stays in memory, if there is a folder for longer ones
    /// ([`super::RecordReader::with_spools`]).
    pub memory_bytes_max: u64,
    /// Bytes of a zstd frame's window, rounded down to a power of two; a frame that needs a larger one is damaged.
    pub window_bytes_max: u64,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self { content_bytes_max: 1 << 30, memory_bytes_max: 16 << 20, window_bytes_max: 128 << 20 }
    }
}

/// A record and where it lies in its file.
#[derive(Clone, Debug)]
pub struct Record {
    /// Its named fields.
    pub header: Header,
    /// Compressed bytes before it. A record that shares a gzip member has the member's offset.
    pub offset: u64,
    /// Compressed bytes it takes with the empty lines after it; 0 when it shares a gzip member with others, so that it
    /// can't be read on its own.
    pub length: u64,
    /// Its block, or the first MiB of one that is too long for memory.
    pub content: Bytes,
    /// What follows of the block then.
    pub rest: Option<Arc<Spool>>,
}

impl Record {
    /// Bytes of its block.
    #[must_use]
    pub fn content_length(&self) -> u64 {
        self.content.len() as u64 + self.rest.as_ref().map_or(0, |rest| rest.len())
    }

    /// The content without the HTTP head, if it is an HTTP message: what `WARC-Payload-Digest` covers in practice,
    /// transfer coding included. Of a block that is not in memory the beginning.
    #[must_use]
    pub fn body(&self) -> Bytes {
        http::body(&self.header, &self.content)
    }

    /// The content without head and transfer coding, if it is an HTTP message, else the content. Of a block that is not
    /// in memory the beginning.
    #[must_use]
    pub fn payload(&self) -> Bytes {
        http::payload(&self.header, &self.content)
    }
}

/// A place in a file that holds no whole record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("broken record at byte {offset}: {what}")]
pub struct Broken {
    /// Compressed bytes before it.
    pub offset: u64,
    /// What is wrong.
    pub what: String,
    /// The head, if that much could be read.
    pub header: Option<Box<Header>>,
    /// As much of the content as could be read.
    pub content: Bytes,
}

/// Why there is no record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Reading failed; nothing more comes.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A record is broken; more may come.
    #[error(transparent)]
    Broken(#[from] Box<Broken>),
}
