//! What the books note of a capture in its flags.
//!
//! A page's first capture that found it has both kinds of change.

/// Its meaningful content (the signature of the main text, or of the XML tree) differs from that of the version before.
pub const CONTENT_CHANGED: u8 = 1;
/// Its bytes differ from those of the version before.
pub const BYTES_CHANGED: u8 = 1 << 1;
/// Its digest is also the `WARC-Payload-Digest` of its record: it was not chunked. A later copy can then refer to it
/// without the record being read.
pub const DIGEST_OF_RECORD: u8 = 1 << 2;
