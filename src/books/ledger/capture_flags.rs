//! The flags of a capture.
//!
//! A page's first capture that found it has both change flags.

use archive_storage::Capture;

/// Its content (the signature of the main text or XML tree) differs from the previous version's.
pub const CONTENT_CHANGED: u8 = 1;
/// Its bytes differ from the previous version's.
pub const BYTES_CHANGED: u8 = 1 << 1;
/// Its digest is also the `WARC-Payload-Digest` of its record: it had no codings. A later copy can then refer to it
/// without reading the record.
pub(crate) const DIGEST_OF_RECORD: u8 = 1 << 2;

/// It was erased and replaced by a tombstone.
pub const ERASED: u8 = 1 << 3;

/// Its body is incomplete, because the connection was lost.
pub const CUT_OFF: u8 = 1 << 4;

/// Its digest is that of its payload without content codings.
pub(crate) const CODED: u8 = 1 << 5;

/// Whether it was erased.
#[must_use]
pub const fn is_erased(capture: &Capture) -> bool {
    capture.flags & ERASED != 0
}

/// Whether its content differs from the previous version's.
#[must_use]
pub const fn content_changed(capture: &Capture) -> bool {
    capture.flags & CONTENT_CHANGED != 0
}

/// Whether its bytes differ from the previous version's.
#[must_use]
pub const fn bytes_changed(capture: &Capture) -> bool {
    capture.flags & BYTES_CHANGED != 0
}

/// Whether its digest is also that of its record.
#[must_use]
pub const fn digest_is_of_record(capture: &Capture) -> bool {
    capture.flags & DIGEST_OF_RECORD != 0
}

/// Whether its digest is that of its payload without the content codings that its record has.
#[must_use]
pub const fn is_coded(capture: &Capture) -> bool {
    capture.flags & CODED != 0
}
