//! Content digests, and their text form in queries.

use archive_storage::UrlId;

/// The digest of a capture's content; all zeros if there is none.
pub type FoundDigest = [u8; 16];
/// The digest of a page's newest capture that is not a 304, and the page.
pub type PageDigest = (FoundDigest, UrlId);

/// Formats a digest as hexadecimal text; empty if there is none.
pub(crate) fn hexadecimal(digest: &FoundDigest) -> String {
    let digit = |digit: u8| char::from(b"0123456789abcdef"[usize::from(digit & 15)]);
    if *digest == FoundDigest::default() {
        return String::new();
    }
    let mut text = String::with_capacity(2 * digest.len());
    text.extend(digest.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]));
    text
}

/// Parses the hexadecimal form of a digest.
pub(crate) fn digest_of(text: &str) -> Option<FoundDigest> {
    let is_one = text.len() == 32 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_one.then(|| u128::from_str_radix(text, 16).ok()).flatten().map(u128::to_be_bytes)
}
