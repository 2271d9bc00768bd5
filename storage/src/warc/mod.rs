//! WARC records (ISO 28500:2017): heads, the HTTP messages within, and a reader for files written by any tool.
//!
//! Reading is tolerant and never panics: unreadable bytes are reported with their offset, and reading continues after
//! them. Writing is strict: `HeadWriter` cannot produce a head that breaks the line structure.
//!
//! ```
//! use archive_storage::warc::RecordReader;
//!
//! let file = "WARC/1.1\r\nWARC-Type: resource\r\nWARC-Record-ID: <urn:x:1>\r\nWARC-Date: 2026-01-31T10:00:00Z\r\n\
//!             WARC-Target-URI: https://example.org/\r\nContent-Length: 5\r\n\r\nHello\r\n\r\nno record\r\n";
//! // Plain, gzip or zstd: a reader sees which.
//! let mut read = RecordReader::new(file.as_bytes());
//! let record = read.next().ok_or("a record")??;
//! assert_eq!(record.header.target_uri(), Some("https://example.org/"));
//! assert_eq!(record.content, "Hello");
//! // What is not a record is reported with its place, and reading continues after it.
//! assert!(read.next().is_some_and(|broken| broken.is_err()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arc;
mod chunks;
mod header;
mod http;
mod input;
mod listed;
mod members;
mod reader;
mod record;
mod sent;
mod unpack;
mod write;

pub use chunks::Dechunker;
pub(crate) use header::text;
pub use header::{Date, HeaderError, RecordHeader, RecordType, fields, parse_fields};
pub(crate) use http::{CHUNK_LINE_BYTES_MAX, MEDIA_TYPE_HTTP, is_message};
pub use http::{
    HttpHead, MEDIA_TYPE_BYTES_MAX, begins_with_chunk, dechunk, head_length, http_head, is_http, media_type,
    payload, split,
};
pub use listed::{CaptureList, LIST_LINE_BYTES_MAX, ListError, ListedCapture, is_list};
pub use reader::RecordReader;
pub use record::{Broken, ReadLimits, Record, RecordError};
pub use sent::{SentRequest, page_of_request};
pub(crate) use unpack::SKIPPABLE_MAGIC;
pub use unpack::{Packing, SKIPPABLE_DICTIONARY};
pub(crate) use unpack::{ZSTD_MAGIC, embedded_dictionary, skippable_frame};
pub(crate) use write::{HeadWriter, RecordIds, WarcDate};

/// Maximum bytes of a record's head; a longer one is reported as broken.
pub const HEAD_BYTES_MAX: usize = 1 << 20;
