//! Segments: the append-only WARC files that make up the archive.
//!
//! One [`Segments`] appends, on one thread. [`Encoder`]s compress beforehand on any number of threads;
//! [`SegmentReader`]s read concurrently. Each host group has its own segment, so several are open at once. Invariants:
//!
//! * A segment is one `warcinfo` record followed by complete capture groups. A group is written by one write; only an
//!   open segment can end within a group, and only after a crash.
//! * Captures are numbered in append order. A crash may lose captures, but only from some number on, across all
//!   segments; replay returns the others in that order.
//! * Captures within the [`Watermarks`] that a sync returned survive a crash. Nothing else is promised, and nothing
//!   else may be acknowledged. Before a segment is created or closed, everything appended earlier is synced.
//! * A segment is written once: `NAME.open` grows, `NAME` never changes again. After a crash its torn tail is cut off
//!   and it is closed; writing continues in a new segment.
//! * A failed sync ends all writing ([`SegmentError::Poisoned`]).
//!
//! ```
//! use std::sync::Arc;
//!
//! use archive_storage::backend::RealDisk;
//! use archive_storage::segment::{CaptureBody, CaptureGroup, SegmentOptions, Segments};
//! use chrono::DateTime;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let (mut segments, recovered) = Segments::open(Arc::new(RealDisk), folder.path(), SegmentOptions::default())?;
//! assert!(recovered.is_empty(), "no crash has left anything open");
//! let group = CaptureGroup {
//!     url: "dns:example.org".to_owned(),
//!     time: DateTime::UNIX_EPOCH,
//!     address: None,
//!     request: None,
//!     body: CaptureBody::Resource { content_type: "text/dns".to_owned(), body: "example.org. A 192.0.2.1".into() },
//!     payload_digest: None,
//!     protocols: Vec::new(),
//!     metadata: vec![("via".to_owned(), "https://example.org/".to_owned())],
//! };
//! let records = segments.encoder().encode(group)?; // on any thread
//! let place = segments.append(&records)?.main;
//! segments.sync()?; // from here on it survives a crash
//!
//! let record = segments.reader().read(place)?;
//! assert_eq!(record.content, "example.org. A 192.0.2.1");
//! # Ok(())
//! # }
//! ```

mod append;
mod codec;
mod dictionary;
mod encode;
mod error;
mod group;
mod guard;
mod host_group;
mod index;
mod inspect;
mod ledger;
mod look_up;
mod metadata;
mod name;
mod of_checkpoint;
mod options;
mod order;
mod origins;
mod pieces;
mod quarantine;
mod read;
mod recover;
mod replay;
mod revisit;
mod rewrite;
mod samples;
mod statements;
mod survey;
#[cfg(test)]
mod tests;
mod versions;
mod writer;

pub use append::{Appended, RotationReason, Segments};
pub use codec::{Codec, Compressor, FRAME_BYTES_MAX};
pub use dictionary::{Dictionary, DictionaryBase};
pub use encode::{CompressionTotals, Encoded, Encoder, Shrinking};
pub use error::SegmentError;
pub use group::{
    CaptureBody, CaptureGroup, FIELD_CONTENT_DIGEST, FIELD_ENTITY_DIGEST, FIELD_HTTP_HEAD, FIELD_IMPORTED,
    ImportedRecord, Truncated,
};
pub use guard::Guard;
pub use index::index_line;
pub use inspect::{Fault, FaultKind, Inspection, inspect};
pub use ledger::SegmentInfo;
pub use look_up::{IndexedFacts, LookUp};
pub(crate) use of_checkpoint::checkpointed;
pub use options::SegmentOptions;
pub use order::SKIPPABLE_NUMBER;
pub use pieces::{PayloadPieces, RecordPieces};
pub use quarantine::{PutAside, QUARANTINE, check_repaired, put_aside, save_put_aside};
pub use read::{SegmentReader, StoredRecord};
pub use recover::{Damage, Recovered};
pub use replay::ReplayedCapture;
pub use revisit::{PROFILE_IDENTICAL, is_not_modified};
pub(crate) use rewrite::SwapIntent;
pub(crate) use rewrite::settle;
pub use rewrite::{
    Author, HALVINGS_MAX, KeepAll, Moved, REWRITTEN_CAPTURES_MAX, RewriteOptions, Rewriter, Rewritten,
};
pub use statements::Catalogued;
pub use survey::{
    BROKEN_MAX, DictionaryRepair, SegmentSurvey, files, records, records_within, restore, survey,
};
pub use writer::SyncHandle;

pub use crate::ids::{Watermark, Watermarks};

/// Name of the folder of segments within an archive.
pub const FOLDER: &str = "segments";

/// Maximum bytes of a record's content.
pub const CONTENT_BYTES_MAX: u64 = 1 << 30;
