//! Segments: the append-only WARC files that are the archive.
//!
//! One [`Segments`] writes, in one thread; [`Encoder`]s compress on any number of threads before; [`SegmentReader`]s read
//! beside it. What holds at all times:
//!
//! * A segment is a run of whole capture groups after one `warcinfo` record. A group is written by one write; only the
//!   newest segment can end in the middle of one, and only after a crash.
//! * Bytes before the [`Watermark`] that a sync returned survive a crash. Nothing else is promised, nothing else may be
//!   acknowledged.
//! * A segment is written once: `NAME.open` grows, `NAME` never changes again. After a crash its torn tail is cut off
//!   and it is closed; writing goes on in a new segment.
//! * A failed sync ends all writing ([`SegmentError::Poisoned`]).

mod append;
mod codec;
mod dictionary;
mod encode;
mod error;
mod group;
mod guard;
mod index;
mod ledger;
mod metadata;
mod name;
mod read;
mod recover;
mod replay;
#[cfg(test)]
mod tests;
mod versions;

pub use append::{Appended, RotationReason, SegmentOptions, Segments, SyncHandle};
pub use codec::{Codec, FRAME_BYTES_MAX};
pub use dictionary::{Base, DICTIONARY_BYTES_MAX, Dictionary};
pub use encode::{Encoded, Encoder};
pub use error::SegmentError;
pub use group::{
    CaptureBody, CaptureGroup, FIELD_ENTITY_DIGEST, FIELD_HTTP_HEAD, FIELD_VIA, PROFILE_IDENTICAL,
    PROFILE_NOT_MODIFIED, Truncated,
};
pub use guard::{Guard, SKIPPABLE_COPY, SKIPPABLE_PARITY};
pub use ledger::SegmentInfo;
pub use read::{SegmentReader, StoredRecord};
pub use recover::{Damage, Recovered};
pub use replay::{CaptureKind, ReplayedCapture};
pub use versions::DictionaryPlan;

pub use crate::ids::Watermark;

/// The folder of segments within an archive.
pub const FOLDER: &str = "segments";

/// Bytes of content that one record may have.
pub const CONTENT_BYTES_MAX: u64 = 1 << 30;
