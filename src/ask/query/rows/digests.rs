//! Content digests, and their text form in queries.

use archive_storage::UrlId;
use archive_storage::digest::hex;

/// The digest of a capture's content; all zeros if there is none.
pub type FoundDigest = [u8; 16];
/// The digest of a page's newest capture that is not a 304, and the page.
pub type PageDigest = (FoundDigest, UrlId);

/// Formats a digest as hexadecimal text; empty if there is none.
pub(crate) fn hexadecimal(digest: &FoundDigest) -> String {
    if *digest == FoundDigest::default() { String::new() } else { hex(digest) }
}

/// Parses the hexadecimal form of a digest.
pub(crate) fn digest_of(text: &str) -> Option<FoundDigest> {
    let is_one = text.len() == 32 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_one.then(|| u128::from_str_radix(text, 16).ok()).flatten().map(u128::to_be_bytes)
}
