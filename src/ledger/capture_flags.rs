//! What the books note of a capture in its flags.
//!
//! A page's first capture that found it has both.

/// Its meaningful content (the signature of the main text, or of the XML tree) differs from that of the version before.
pub const CONTENT_CHANGED: u8 = 1;
/// Its bytes differ from those of the version before.
pub const BYTES_CHANGED: u8 = 1 << 1;
