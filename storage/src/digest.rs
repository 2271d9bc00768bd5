//! Digests in the form that WARC uses: the label of an algorithm and a value.
//!
//! The archive computes SHA-256; SHA-1 is what most older archives use, and can be selected by a setting. The text form
//! is canonical (`sha256:` with lowercase hex, `sha1:` with uppercase base32, WARC/1.1 section 5.8 as clarified in
//! iipc/warc-specifications #48 and #80), so equal digests have equal texts.

use std::fmt;
use std::io;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

use crate::backend::Spool;

/// RFC 4648 section 6.
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// A digest algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Algorithm {
    /// FIPS 180-4 SHA-256, 32 bytes.
    #[default]
    Sha256,
    /// FIPS 180-4 SHA-1, 20 bytes. Collisions can be constructed: equal SHA-1 values prove nothing about content that
    /// somebody wants to forge.
    Sha1,
}

impl Algorithm {
    /// The label before the colon.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha1 => "sha1",
        }
    }

    const fn length(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha1 => 20,
        }
    }
}

/// A digest and its algorithm; unused bytes are zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest {
    algorithm: Algorithm,
    bytes: [u8; 32],
}

impl Digest {
    /// Returns the SHA-256 digest of `data`.
    #[must_use]
    pub fn sha256(data: &[u8]) -> Self {
        Self::from_sha256(Sha256::digest(data).into())
    }

    /// Returns the SHA-1 digest of `data`.
    #[must_use]
    pub fn sha1(data: &[u8]) -> Self {
        Self::from_sha1(Sha1::digest(data).into())
    }

    /// Returns the digest of `data` under an algorithm.
    #[must_use]
    pub fn of(algorithm: Algorithm, data: &[u8]) -> Self {
        match algorithm {
            Algorithm::Sha256 => Self::sha256(data),
            Algorithm::Sha1 => Self::sha1(data),
        }
    }

    /// Returns the digest of `head` followed by the contents of a spool.
    ///
    /// # Errors
    /// When the spool cannot be read.
    pub fn of_spooled(algorithm: Algorithm, head: &[u8], body: &Spool) -> io::Result<Self> {
        fn feed<D: sha2::Digest>(
            mut hasher: D,
            head: &[u8],
            body: &Spool,
        ) -> io::Result<sha2::digest::Output<D>> {
            hasher.update(head);
            body.each_piece(|piece| {
                hasher.update(piece);
                io::Result::Ok(())
            })?;
            Ok(hasher.finalize())
        }
        Ok(match algorithm {
            Algorithm::Sha256 => Self::from_sha256(feed(Sha256::new(), head, body)?.into()),
            Algorithm::Sha1 => Self::from_sha1(feed(Sha1::new(), head, body)?.into()),
        })
    }

    /// A SHA-256 value computed elsewhere.
    #[must_use]
    pub const fn from_sha256(bytes: [u8; 32]) -> Self {
        Self { algorithm: Algorithm::Sha256, bytes }
    }

    /// A SHA-1 value computed elsewhere.
    pub(crate) fn from_sha1(value: [u8; 20]) -> Self {
        let mut bytes = [0; 32];
        let (used, _) = bytes.split_at_mut(20);
        used.copy_from_slice(&value);
        Self { algorithm: Algorithm::Sha1, bytes }
    }

    /// The algorithm.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The value: 32 or 20 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.split_at(self.algorithm.length()).0
    }

    /// The first 16 bytes, which tables use as the key of a digest.
    #[must_use]
    pub fn prefix(&self) -> [u8; 16] {
        let mut prefix = [0; 16];
        prefix.copy_from_slice(self.bytes.split_at(16).0);
        prefix
    }

    /// The first 16 bytes in hex: enough to make collisions practically impossible.
    #[must_use]
    pub fn short_hex(&self) -> String {
        hex(&self.prefix())
    }

    /// Whether `data` has this digest.
    #[must_use]
    pub fn matches(&self, data: &[u8]) -> bool {
        Self::of(self.algorithm, data) == *self
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.algorithm.label())?;
        f.write_str(":")?;
        match self.algorithm {
            Algorithm::Sha256 => f.write_str(&hex(self.as_bytes())),
            Algorithm::Sha1 => f.write_str(&base32(self.as_bytes())),
        }
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not a digest of a known algorithm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a sha256 or sha1 digest")]
pub struct ParseDigestError(String);

impl FromStr for Digest {
    type Err = ParseDigestError;

    /// Accepts what tools write: the label in any case, also as `sha-256` or `sha-1`, and the value as [`decode`]
    /// accepts it.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseDigestError(text.chars().take(100).collect());
        let (label, value) = text.trim().split_once(':').ok_or_else(error)?;
        let algorithm = match label.to_ascii_lowercase().as_str() {
            "sha256" | "sha-256" => Algorithm::Sha256,
            "sha1" | "sha-1" => Algorithm::Sha1,
            _ => return Err(error()),
        };
        let length = algorithm.length();
        let decoded = decode(value, length).ok_or_else(error)?;
        let mut bytes = [0; 32];
        bytes.split_at_mut(length).0.copy_from_slice(&decoded);
        Ok(Self { algorithm, bytes })
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Lowercase hex, as in every record.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = |byte: &u8| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
    bytes.iter().flat_map(digits).map(char::from).collect()
}

fn base32(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(5) * 8);
    let (mut bits, mut count) = (0_u32, 0);
    let mut push = |bits: u32| text.push(char::from(BASE32[(bits & 31) as usize]));
    for byte in bytes {
        bits = (bits << 8) | u32::from(*byte);
        count += 8;
        while count >= 5 {
            count -= 5;
            push(bits >> count);
        }
        bits &= 31;
    }
    if count > 0 {
        push(bits << (5 - count));
    }
    text
}

/// Decodes the value of a digest of `length` bytes: hex or base32 in any case, or base64 in either alphabet, with or
/// without trailing `=`. Returns `None` for any other text.
#[must_use]
pub fn decode(value: &str, length: usize) -> Option<Vec<u8>> {
    let value = value.trim_end_matches('=');
    let decoded = if value.len() == 2 * length {
        from_hex(value)
    } else if value.len() == (8 * length).div_ceil(5) {
        from_base32(value)
    } else if value.contains(['-', '_']) {
        URL_SAFE_NO_PAD.decode(value).ok()
    } else {
        STANDARD_NO_PAD.decode(value).ok()
    };
    decoded.filter(|bytes| bytes.len() == length)
}

fn from_base32(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 5 / 8);
    let (mut bits, mut count) = (0_u32, 0);
    for symbol in text.bytes() {
        let value = match symbol.to_ascii_uppercase() {
            upper @ b'A'..=b'Z' => upper - b'A',
            digit @ b'2'..=b'7' => digit - b'2' + 26,
            _ => return None,
        };
        bits = ((bits << 5) | u32::from(value)) & 0xfff;
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

/// Decodes hex in any case.
#[must_use]
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |symbol: u8| char::from(symbol).to_digit(16);
    text.as_bytes()
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => Some((digit(*high)? * 16 + digit(*low)?) as u8),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_the_standard() {
        assert_eq!(
            Digest::sha256(b"abc").to_string(),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        // WARC/1.1 writes the digest of the empty payload like this.
        assert_eq!(Digest::sha1(b"").to_string(), "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ");
    }

    #[test]
    fn reads_what_tools_write() {
        let expected = Digest::sha1(b"");
        for text in [
            "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
            "SHA1:3i42h3s6nnfq2msvx7xzkyayscx5qbyj",
            "sha-1:da39a3ee5e6b4b0d3255bfef95601890afd80709",
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        let sha256 = Digest::sha256(b"x");
        assert_eq!(format!("sha256:{}====", base32(sha256.as_bytes())).parse(), Ok(sha256));
        for text in [
            "sha1:2jmj7l5rSw0yVb/vlWAYkK/YBwk=",
            "sha1:2jmj7l5rSw0yVb_vlWAYkK_YBwk",
            "sha-1:2jmj7l5rSw0yVb/vlWAYkK/YBwk",
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for text in ["", "sha1", "sha1:", "md5:d41d8cd98f00b204e9800998ecf8427e", "sha1:AAAA", "sha256:zz"] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn text_round_trips(value: [u8; 32], short: [u8; 20]) {
            for digest in [Digest::from_sha256(value), Digest::from_sha1(short)] {
                proptest::prop_assert_eq!(digest.to_string().parse(), Ok(digest));
            }
        }
    }
}
