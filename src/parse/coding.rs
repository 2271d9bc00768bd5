//! Removes HTTP content codings from a body.
//!
//! Input is not trusted: output is bounded at every stage of a chain; a broken stream yields what could be decoded,
//! together with the problem. The stored record keeps the bytes as received; this is only for reading them.

use std::borrow::Cow;
use std::io::Read;

/// Maximum number of codings in one `Content-Encoding`; more are treated as an attack.
pub const CODINGS_MAX: usize = 4;

/// Maximum window of a zstd body, as a power of two: 8 MiB (RFC 9659).
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// A body without codings.
#[derive(Debug, PartialEq, Eq)]
pub struct Decoded<'a> {
    /// The bytes; borrowed if nothing had to be decoded.
    pub body: Cow<'a, [u8]>,
    /// What went wrong, if anything. The body then has what was decoded before.
    pub problem: Option<CodingProblem>,
}

/// Why a body is incomplete.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodingProblem {
    /// The decoded body exceeds the limit.
    #[error("more than {limit} bytes when decoded")]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The compressed stream is broken or truncated.
    #[error("broken {coding} stream")]
    Broken {
        /// The coding's name.
        coding: &'static str,
    },
    /// The body is not in the declared coding; it is returned as is.
    #[error("not in the declared coding {coding}")]
    NotCoded {
        /// The coding's name.
        coding: &'static str,
    },
    /// Unknown coding; the body is returned as is.
    #[error("unknown content coding {0:?}")]
    Unknown(String),
    /// Too many codings in a chain.
    #[error("more than {CODINGS_MAX} content codings")]
    TooMany,
}

#[derive(Clone, Copy)]
enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

impl Coding {
    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }
}

/// Removes the content codings of a body (RFC 9110, section 8.4); each yields at most `limit` bytes.
///
/// `content_encoding` is the value of the header field, or several values joined by commas; empty for none.
#[must_use]
pub fn decode_content<'a>(body: &'a [u8], content_encoding: &str, limit: usize) -> Decoded<'a> {
    let mut codings = Vec::new();
    for name in content_encoding.split(',').map(str::trim) {
        match name.to_ascii_lowercase().as_str() {
            "" | "identity" | "none" => {}
            "gzip" | "x-gzip" => codings.push(Coding::Gzip),
            "deflate" => codings.push(Coding::Deflate),
            "br" => codings.push(Coding::Brotli),
            "zstd" => codings.push(Coding::Zstd),
            _ => {
                let problem = Some(CodingProblem::Unknown(name.chars().take(64).collect()));
                return Decoded { body: Cow::Borrowed(body), problem };
            }
        }
    }
    if codings.len() > CODINGS_MAX {
        return Decoded { body: Cow::Borrowed(body), problem: Some(CodingProblem::TooMany) };
    }
    let mut decoded = Decoded { body: Cow::Borrowed(body), problem: None };
    for coding in codings.into_iter().rev() {
        let (bytes, problem) = decode_one(&decoded.body, coding, limit);
        match problem {
            Some(problem @ CodingProblem::NotCoded { .. }) => {
                decoded.problem = Some(problem);
                return decoded;
            }
            problem => {
                decoded.body = Cow::Owned(bytes);
                decoded.problem = decoded.problem.or(problem);
            }
        }
    }
    decoded
}

fn decode_one(body: &[u8], coding: Coding, limit: usize) -> (Vec<u8>, Option<CodingProblem>) {
    if body.is_empty() {
        return (Vec::new(), None);
    }
    let not_coded = (Vec::new(), Some(CodingProblem::NotCoded { coding: coding.name() }));
    match coding {
        Coding::Gzip if !body.starts_with(&[0x1F, 0x8B]) => not_coded,
        Coding::Zstd if !is_zstd(body) => not_coded,
        Coding::Gzip => read_all(flate2::read::MultiGzDecoder::new(body), coding, body.len(), limit),
        Coding::Deflate => decode_deflate(body, limit),
        Coding::Brotli => {
            const BUFFER_BYTES: usize = 4096;
            read_all(brotli::Decompressor::new(body, BUFFER_BYTES), coding, body.len(), limit)
        }
        Coding::Zstd => match zstd::stream::read::Decoder::with_buffer(body) {
            Ok(mut decoder) => {
                let bounded = decoder.window_log_max(ZSTD_WINDOW_LOG_MAX);
                if bounded.is_err() { not_coded } else { read_all(decoder, coding, body.len(), limit) }
            }
            Err(_) => not_coded,
        },
    }
}

/// Whether a body begins with a zstd frame or a skippable frame (RFC 8878, section 3.1).
fn is_zstd(body: &[u8]) -> bool {
    matches!(body, [0x28, 0xB5, 0x2F, 0xFD, ..] | [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..])
}

/// `deflate` means the zlib format (RFC 9110, section 8.4.1.2), but some servers send a raw deflate stream.
fn decode_deflate(body: &[u8], limit: usize) -> (Vec<u8>, Option<CodingProblem>) {
    let is_zlib = match body {
        [first, second, ..] => {
            first & 15 == 8 && (u16::from(*first) << 8 | u16::from(*second)).is_multiple_of(31)
        }
        _ => false,
    };
    if is_zlib {
        let decoded = read_all(flate2::read::ZlibDecoder::new(body), Coding::Deflate, body.len(), limit);
        if !decoded.0.is_empty() || decoded.1.is_none() {
            return decoded;
        }
    }
    let (bytes, problem) =
        read_all(flate2::read::DeflateDecoder::new(body), Coding::Deflate, body.len(), limit);
    if bytes.is_empty() && problem.is_some() {
        return (bytes, Some(CodingProblem::NotCoded { coding: "deflate" }));
    }
    (bytes, problem)
}

fn read_all(
    reader: impl Read,
    coding: Coding,
    length: usize,
    limit: usize,
) -> (Vec<u8>, Option<CodingProblem>) {
    /// Usual compression ratio of text; only a first guess at the size of the output.
    const USUAL_RATIO: usize = 4;
    let mut bytes = Vec::with_capacity(length.saturating_mul(USUAL_RATIO).min(limit));
    let mut bounded = reader.take(limit as u64 + 1);
    let outcome = bounded.read_to_end(&mut bytes);
    if bytes.len() > limit {
        bytes.truncate(limit);
        return (bytes, Some(CodingProblem::TooLarge { limit }));
    }
    let problem = outcome.is_err().then(|| CodingProblem::Broken { coding: coding.name() });
    (bytes, problem)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    const LIMIT: usize = 1 << 20;

    fn text() -> Vec<u8> {
        b"a page that says the same again and again. ".repeat(500)
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn zlib(text: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn deflate(text: &[u8]) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn brotli(text: &[u8]) -> Vec<u8> {
        let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 22);
        encoder.write_all(text).unwrap();
        encoder.into_inner()
    }

    #[test]
    fn every_coding_and_chains() {
        let text = text();
        let zstd = zstd::encode_all(&text[..], 1).unwrap();
        let two_members = [gzip(&text[..100]), gzip(&text[100..])].concat();
        for (coding, body) in [
            ("", text.clone()),
            ("identity", text.clone()),
            ("gzip", gzip(&text)),
            ("X-GZIP", two_members),
            ("deflate", zlib(&text)),
            ("deflate", deflate(&text)),
            ("br", brotli(&text)),
            ("zstd", zstd),
            ("deflate, gzip", gzip(&zlib(&text))),
            ("gzip, identity,  gzip", gzip(&gzip(&text))),
        ] {
            assert_eq!(
                decode_content(&body, coding, LIMIT),
                Decoded { body: Cow::Borrowed(&text), problem: None }
            );
        }
    }

    #[test]
    fn bombs_stop_at_the_limit() {
        let zeros = vec![0; LIMIT];
        let zstd = |text: &[u8]| zstd::encode_all(text, 1).unwrap();
        for (coding, bomb) in [
            ("gzip", gzip(&zeros)),
            ("br", brotli(&zeros)),
            ("zstd", zstd(&zeros)),
            ("deflate", zlib(&zeros)),
        ] {
            assert_eq!(decode_content(&bomb, coding, LIMIT).problem, None);
            let cut = decode_content(&bomb, coding, LIMIT - 1);
            assert_eq!(
                (cut.body.len(), cut.problem),
                (LIMIT - 1, Some(CodingProblem::TooLarge { limit: LIMIT - 1 }))
            );
        }
        let nested = gzip(&gzip(&zeros));
        assert_eq!(
            decode_content(&nested, "gzip, gzip", 1000).problem,
            Some(CodingProblem::TooLarge { limit: 1000 })
        );
        assert_eq!(
            decode_content(b"x", &"gzip,".repeat(CODINGS_MAX + 1), LIMIT).problem,
            Some(CodingProblem::TooMany)
        );
    }

    #[test]
    fn broken_bodies_give_what_they_can() {
        let text = text();
        let whole = gzip(&text);
        let cut = decode_content(&whole[..whole.len() / 2], "gzip", LIMIT);
        assert_eq!(cut.problem, Some(CodingProblem::Broken { coding: "gzip" }));
        assert!(text.starts_with(&cut.body) && !cut.body.is_empty());

        for coding in ["gzip", "zstd", "deflate"] {
            let plain = decode_content(b"<html>", coding, LIMIT);
            assert_eq!(&plain.body[..], b"<html>", "{coding}");
            assert!(matches!(plain.problem, Some(CodingProblem::NotCoded { .. })), "{coding}");
        }
        let unknown = decode_content(b"<html>", "utf-8", LIMIT);
        assert_eq!(
            (&unknown.body[..], unknown.problem),
            (&b"<html>"[..], Some(CodingProblem::Unknown("utf-8".into())))
        );
    }
}
