//! What the books note of a capture in its flags.
//!
//! A page's first capture that found it has both kinds of change.

use archive_storage::Capture;

/// Its meaningful content (the signature of the main text, or of the XML tree) differs from that of the version before.
pub const CONTENT_CHANGED: u8 = 1;
/// Its bytes differ from those of the version before.
pub const BYTES_CHANGED: u8 = 1 << 1;
/// Its digest is also the `WARC-Payload-Digest` of its record: it was not chunked. A later copy can then refer to it
/// without the record being read.
pub const DIGEST_OF_RECORD: u8 = 1 << 2;

/// It was erased; a tombstone is in its place.
pub const ERASED: u8 = 1 << 3;

/// Whether it was erased.
#[must_use]
pub const fn is_erased(capture: &Capture) -> bool {
    capture.flags & ERASED != 0
}

/// Whether its meaningful content differs from that of the version before.
#[must_use]
pub const fn content_changed(capture: &Capture) -> bool {
    capture.flags & CONTENT_CHANGED != 0
}

/// Whether its bytes differ from those of the version before.
#[must_use]
pub const fn bytes_changed(capture: &Capture) -> bool {
    capture.flags & BYTES_CHANGED != 0
}

/// Whether its digest is that of its record, too.
#[must_use]
pub const fn digest_is_of_record(capture: &Capture) -> bool {
    capture.flags & DIGEST_OF_RECORD != 0
}
