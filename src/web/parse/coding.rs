//! Removes HTTP content codings from a body.
//!
//! Input is not trusted: output is bounded at every stage of a chain; a broken stream yields what could be decoded,
//! together with the problem. Recorders remove codings and keep their names, so a body that does not have a coding is
//! taken as it is. The stored record keeps the bytes as received; this is only for reading them.

use std::borrow::Cow;
use std::io::{self, Read};

use super::DocumentKind;

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

/// Decoded bytes, and what went wrong.
type Decoding = (Vec<u8>, Option<CodingProblem>);

/// Removes the content codings of a body (RFC 9110, section 8.4); each yields at most `limit` bytes.
///
/// `content_encoding` is the value of the header field, or several values joined by commas; empty for none.
#[must_use]
pub fn decode_content<'a>(body: &'a [u8], content_encoding: &str, limit: usize) -> Decoded<'a> {
    let (mut codings, mut unknown) = (Vec::new(), None);
    for name in content_encoding.split(',').map(str::trim) {
        match name.to_ascii_lowercase().as_str() {
            "" | "identity" | "none" => {}
            "gzip" | "x-gzip" => codings.push(Coding::Gzip),
            "deflate" => codings.push(Coding::Deflate),
            "br" => codings.push(Coding::Brotli),
            "zstd" => codings.push(Coding::Zstd),
            _ => unknown = Some(CodingProblem::Unknown(name.chars().take(64).collect())),
        }
    }
    if codings.len() > CODINGS_MAX {
        return Decoded { body: Cow::Borrowed(body), problem: Some(CodingProblem::TooMany) };
    }
    let mut decoded = Decoded { body: Cow::Borrowed(body), problem: unknown };
    // The last coding was applied last. Where servers list them in another order, or recorders have removed some, the
    // bytes decide.
    while let Some((place, bytes, problem)) = (0..codings.len()).rev().find_map(|place| {
        let (bytes, problem) = decode_one(&decoded.body, codings[place], limit);
        (!matches!(problem, Some(CodingProblem::NotCoded { .. }))).then_some((place, bytes, problem))
    }) {
        codings.remove(place);
        decoded.body = Cow::Owned(bytes);
        decoded.problem = decoded.problem.or(problem);
    }
    let left = codings.last().map(|coding| CodingProblem::NotCoded { coding: coding.name() });
    decoded.problem = decoded.problem.or(left);
    decoded
}

fn decode_one(body: &[u8], coding: Coding, limit: usize) -> Decoding {
    if body.is_empty() {
        return (Vec::new(), None);
    }
    let not_coded = (Vec::new(), Some(CodingProblem::NotCoded { coding: coding.name() }));
    match coding {
        Coding::Gzip if !body.starts_with(&[0x1F, 0x8B]) => not_coded,
        Coding::Zstd if !is_zstd(body) => not_coded,
        Coding::Gzip => read_all(flate2::read::MultiGzDecoder::new(body), coding, body.len(), limit).0,
        Coding::Deflate => decode_deflate(body, limit),
        Coding::Brotli => {
            const BUFFER_BYTES: usize = 4096;
            let reader = brotli::Decompressor::new(body.chain(AfterBody), BUFFER_BYTES);
            unmarked(read_all(reader, coding, body.len(), limit), body, coding)
        }
        Coding::Zstd => match zstd::stream::read::Decoder::with_buffer(body) {
            Ok(mut decoder) => {
                let bounded = decoder.window_log_max(ZSTD_WINDOW_LOG_MAX);
                if bounded.is_err() { not_coded } else { read_all(decoder, coding, body.len(), limit).0 }
            }
            Err(_) => not_coded,
        },
    }
}

/// What follows the end of a body: tells a cut brotli stream from an invalid one.
struct AfterBody;

impl Read for AfterBody {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

/// Bytes from which on a body without control characters is text. Of as many compressed bytes, one in a thousand has
/// none.
const TEXT_BYTES_MIN: usize = 64;

/// Judges the outcome for a coding whose streams have no mark at their beginning, so that a decoder takes anything and
/// fails later. A stream gives more than its own bytes, unless it is short or cut; a body that does not, and is a
/// document as it stands or breaks the rules of the coding, was never coded.
fn unmarked((decoded, is_invalid): (Decoding, bool), body: &[u8], coding: Coding) -> Decoding {
    let is_document = || match DocumentKind::of("", body) {
        DocumentKind::Other => false,
        DocumentKind::Text => body.len() >= TEXT_BYTES_MIN || std::str::from_utf8(body).is_ok(),
        _ => true,
    };
    let gives_less = decoded.0.len() < body.len();
    let is_not_coded = is_invalid && gives_less || (decoded.1.is_some() || gives_less) && is_document();
    if is_not_coded { (Vec::new(), Some(CodingProblem::NotCoded { coding: coding.name() })) } else { decoded }
}

/// Whether a body begins with a zstd frame or a skippable frame (RFC 8878, section 3.1).
fn is_zstd(body: &[u8]) -> bool {
    matches!(body, [0x28, 0xB5, 0x2F, 0xFD, ..] | [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..])
}

/// `deflate` means the zlib format (RFC 9110, section 8.4.1.2), but some servers send a raw deflate stream.
fn decode_deflate(body: &[u8], limit: usize) -> Decoding {
    let is_zlib = match body {
        [first, second, ..] => {
            first & 15 == 8 && (u16::from(*first) << 8 | u16::from(*second)).is_multiple_of(31)
        }
        _ => false,
    };
    if is_zlib {
        let (decoded, _) = read_all(flate2::read::ZlibDecoder::new(body), Coding::Deflate, body.len(), limit);
        if !decoded.0.is_empty() || decoded.1.is_none() {
            return decoded;
        }
    }
    let reader = flate2::read::DeflateDecoder::new(body);
    unmarked(read_all(reader, Coding::Deflate, body.len(), limit), body, Coding::Deflate)
}

/// Returns what could be decoded, and whether the stream is invalid, not only cut.
fn read_all(reader: impl Read, coding: Coding, length: usize, limit: usize) -> (Decoding, bool) {
    /// Usual compression ratio of text; only a first guess at the size of the output.
    const USUAL_RATIO: usize = 4;
    let mut bytes = Vec::with_capacity(length.saturating_mul(USUAL_RATIO).min(limit));
    let mut bounded = reader.take(limit as u64 + 1);
    let outcome = bounded.read_to_end(&mut bytes);
    if bytes.len() > limit {
        bytes.truncate(limit);
        return ((bytes, Some(CodingProblem::TooLarge { limit })), false);
    }
    let is_invalid = outcome.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::UnexpectedEof);
    let problem = outcome.is_err().then(|| CodingProblem::Broken { coding: coding.name() });
    ((bytes, problem), is_invalid)
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

        let brotli = brotli(&text);
        let part = decode_content(&brotli[..30], "br", LIMIT);
        assert_eq!(part.problem, Some(CodingProblem::Broken { coding: "br" }));
        assert!(text.starts_with(&part.body), "{:?}", part.body);
        assert_eq!(&decode_content(&gzip(&text), "aws-chunked, gzip", LIMIT).body[..], &text[..]);
        let unknown = decode_content(b"<html>", "utf-8", LIMIT);
        assert_eq!(
            (&unknown.body[..], unknown.problem),
            (&b"<html>"[..], Some(CodingProblem::Unknown("utf-8".into())))
        );
    }

    #[test]
    fn bodies_that_never_had_their_codings_stay() {
        let noise: Vec<u8> = (0..2000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let bodies: [&[u8]; 12] = [
            b"<html>",
            b"p { color: green; background: url(/a.png) }",
            b";",
            b"{\"a\": [1, 2, 3], \"b\": null}",
            b"HKEY_LOCAL_MACHINE = 1",
            "\u{56fd}\u{5bb6}\u{56fe}\u{4e66}\u{9986}".as_bytes(),
            b"\xFF\xFEw\0o\0r\0d\0",
            b"\x89PNG\r\n\x1A\n\0\x01\x02\x03",
            b"RIFF\x10\0\0\0WEBPVP8 ",
            b"%PDF-1.7\n%\xE2\xE3",
            &text(),
            &noise,
        ];
        for body in bodies {
            for coding in ["gzip", "zstd", "deflate", "br", "gzip, br", "br, deflate"] {
                let plain = decode_content(body, coding, LIMIT);
                assert_eq!(&plain.body[..], body, "{coding}: {:?}", plain.problem);
                assert!(matches!(plain.problem, Some(CodingProblem::NotCoded { .. })), "{coding}");
            }
        }
    }

    #[test]
    fn the_bytes_decide_the_order_of_codings() {
        let text = text();
        for (codings, body) in [
            ("gzip, br", gzip(&brotli(&text))),
            ("gzip, deflate", gzip(&deflate(&text))),
            ("br, gzip", brotli(&text)),
            ("gzip, gzip", gzip(&text)),
            ("br, br", brotli(&text)),
        ] {
            assert_eq!(&decode_content(&body, codings, LIMIT).body[..], &text[..], "{codings}");
        }
    }
}
