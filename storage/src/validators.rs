//! Validators that a server sent with a version, for asking whether that is still current (RFC 9110, section 8.8).
//!
//! The state keeps those of each page's newest version, so that a conditional request and the resulting revisit need no
//! record from the segments.

use crate::checkpoint::{push_varint, take_varint};
use crate::digest::{Algorithm, Digest};
use crate::warc::HttpHead;

/// Maximum bytes kept of an `ETag` or a `Last-Modified`; a longer one is dropped.
pub const VALIDATOR_BYTES_MAX: usize = 256;

/// Validators sent with a version, and the digest under which the version is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validators {
    /// `WARC-Payload-Digest` of the version's record, which a revisit repeats.
    pub digest: Digest,
    /// `ETag`, as received.
    pub etag: Option<String>,
    /// `Last-Modified`, as received.
    pub last_modified: Option<String>,
}

impl Validators {
    /// Extracts the validators of a response head. Drops values that could break a request, and those longer than
    /// [`VALIDATOR_BYTES_MAX`].
    #[must_use]
    pub fn of(digest: Digest, head: Option<&HttpHead>) -> Self {
        let field = |name| head?.get(name).filter(|value| is_sendable(value)).map(str::to_owned);
        Self { digest, etag: field("ETag"), last_modified: field("Last-Modified") }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![self.digest.algorithm() as u8];
        bytes.extend_from_slice(self.digest.as_bytes());
        for value in [&self.etag, &self.last_modified] {
            let value = value.as_deref().unwrap_or_default();
            push_varint(&mut bytes, value.len() as u64);
            bytes.extend_from_slice(value.as_bytes());
        }
        bytes
    }

    /// Decodes the first record in `bytes`.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (&algorithm, rest) = bytes.split_first()?;
        let (digest, mut rest) = match algorithm {
            code if code == Algorithm::Sha256 as u8 => {
                let (value, rest) = rest.split_first_chunk()?;
                (Digest::from_sha256(*value), rest)
            }
            code if code == Algorithm::Sha1 as u8 => {
                let (value, rest) = rest.split_first_chunk()?;
                (Digest::from_sha1(*value), rest)
            }
            _ => return None,
        };
        let mut field = || {
            let length = usize::try_from(take_varint(&mut rest)?).ok()?;
            let (value, after) = rest.split_at_checked(length)?;
            rest = after;
            let value = std::str::from_utf8(value).ok()?;
            if value.is_empty() { Some(None) } else { is_sendable(value).then(|| Some(value.to_owned())) }
        };
        Some(Self { digest, etag: field()?, last_modified: field()? })
    }
}

fn is_sendable(value: &str) -> bool {
    (1..=VALIDATOR_BYTES_MAX).contains(&value.len())
        && value.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(fields: &str) -> Validators {
        let head = HttpHead::parse(format!("HTTP/1.1 200 OK\r\n{fields}\r\n").as_bytes());
        Validators::of(Digest::sha1(b"x"), Some(&head))
    }

    #[test]
    fn what_is_kept_is_short_and_can_be_sent() {
        let longest = "e".repeat(VALIDATOR_BYTES_MAX);
        assert_eq!(of(&format!("etag: {longest}\r\n")).etag, Some(longest.clone()));
        assert_eq!(of(&format!("ETag: {longest}e\r\n")).etag, None);
        assert_eq!(of("ETag:\r\nLast-Modified: \u{b5}\r\n"), of(""));
    }

    #[test]
    fn records_come_back() {
        let dated = of("ETag: W/\"1\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
        for validators in [of(""), Validators { digest: Digest::sha256(b"y"), ..of("") }, dated] {
            let mut bytes = validators.encode();
            let length = bytes.len();
            bytes.extend_from_slice(b"the next record");
            assert_eq!(Validators::decode(&bytes), Some(validators));
            assert!((0..length).all(|cut| Validators::decode(&bytes[..cut]).is_none()));
        }
        assert_eq!(Validators::decode(&[2; 99]), None);
    }
}
