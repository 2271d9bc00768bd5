//! HTTP messages as records hold them: the bytes from the wire, whatever they were.
//!
//! No message is refused. A head is read line by line (RFC 9112 with the leniency of its section 2.2), and a body's
//! chunks as far as they are valid. The *payload* of a record is the body without its transfer coding; content codings
//! such as gzip belong to the payload.

use bytes::Bytes;

use super::HEAD_BYTES_MAX;
use super::header::{RecordHeader, RecordType, text};

/// Maximum bytes of a media type. RFC 6838 allows this many for each of its two names; the longest registered ones have
/// 80 in total.
pub const MEDIA_TYPE_BYTES_MAX: usize = 127;

/// The media type of records that hold HTTP messages, without parameters.
pub(crate) const MEDIA_TYPE_HTTP: &str = "application/http";

/// The head of an HTTP message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpHead {
    /// The first line without its line end: a status line or a request line.
    pub first_line: String,
    /// Names and values in order; values that are not UTF-8 are read as Latin-1.
    pub fields: Vec<(String, String)>,
}

impl HttpHead {
    /// Parses a head; the empty line at its end may be missing. Only the first [`HEAD_BYTES_MAX`] bytes are read.
    #[must_use]
    pub fn parse(head: &[u8]) -> Self {
        let head = head.get(..head.len().min(HEAD_BYTES_MAX)).unwrap_or_default();
        let mut lines =
            head.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let first_line = text(lines.next().unwrap_or_default().trim_ascii());
        let mut fields: Vec<(String, String)> = Vec::new();
        for line in lines {
            if line.is_empty() {
                break;
            }
            if line.starts_with(b" ") || line.starts_with(b"\t") {
                // RFC 9112 section 5.2: an obsolete fold is replaced by a blank.
                if let Some((_, value)) = fields.last_mut() {
                    value.push(' ');
                    value.push_str(&text(line.trim_ascii()));
                }
            } else if let Some(colon) = memchr::memchr(b':', line) {
                let (name, value) = line.split_at(colon);
                fields.push((text(name.trim_ascii()), text(value.split_at(1).1.trim_ascii())));
            }
        }
        Self { first_line, fields }
    }

    /// Returns the status code if the first line is a status line such as `HTTP/1.1 200 OK`, of any version.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        let mut words = self.first_line.split_ascii_whitespace();
        let version = words.next()?;
        let named = version.get(..4).is_some_and(|name| name.eq_ignore_ascii_case("HTTP"));
        // Shoutcast servers answer with ICY.
        if !named && version != "ICY" {
            return None;
        }
        words.next()?.parse().ok().filter(|status| (100..1000).contains(status))
    }

    /// Returns the first value of a field; names are compared case-insensitively.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Returns all values of a field that is a list, such as `Content-Encoding`, joined by commas; empty if there are
    /// none.
    #[must_use]
    pub fn list(&self, name: &str) -> String {
        let values = self.fields.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
        values.map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Returns the media type without parameters, in lower case; `None` if the message states none (see
    /// [`media_type`]).
    #[must_use]
    pub fn media_type(&self) -> Option<String> {
        media_type(self.get("Content-Type")?)
    }

    /// Whether the last transfer coding is `chunked`.
    #[must_use]
    pub fn is_chunked(&self) -> bool {
        self.fields
            .iter()
            .rfind(|(name, _)| name.eq_ignore_ascii_case("Transfer-Encoding"))
            .and_then(|(_, value)| value.rsplit(',').next())
            .is_some_and(|coding| coding.trim().eq_ignore_ascii_case("chunked"))
    }
}

/// Returns a media type without parameters, in lower case. `None` if RFC 6838 (section 4.2) does not allow it, or if it
/// is longer than [`MEDIA_TYPE_BYTES_MAX`].
#[must_use]
pub fn media_type(value: &str) -> Option<String> {
    let essence = value.split([';', ',']).next()?.trim();
    let (name, subtype) = essence.split_once('/')?;
    let is_name = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_alphanumeric())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    let is_type = essence.len() <= MEDIA_TYPE_BYTES_MAX && is_name(name) && is_name(subtype);
    is_type.then(|| essence.to_ascii_lowercase())
}

/// Returns the length up to and including the first pair of consecutive line ends.
pub(super) fn empty_line(text: &[u8]) -> Option<usize> {
    memchr::memchr_iter(b'\n', text).find_map(|end| match text.get(end + 1..)? {
        [b'\n', ..] => Some(end + 2),
        [b'\r', b'\n', ..] => Some(end + 3),
        _ => None,
    })
}

/// Returns the length up to and including the first empty line, if there is one.
#[must_use]
pub fn head_length(message: &[u8]) -> Option<usize> {
    let mut start = 0;
    for newline in memchr::memchr_iter(b'\n', message) {
        let line = message.get(start..newline)?;
        if line.is_empty() || line == b"\r" {
            return Some(newline + 1);
        }
        start = newline + 1;
    }
    None
}

/// Splits a message into head (with the empty line) and body. Without an empty line everything is head.
#[must_use]
pub fn split(message: &Bytes) -> (Bytes, Bytes) {
    let length = head_length(message).unwrap_or(message.len());
    (message.slice(..length), message.slice(length..))
}

/// Removes the chunked coding from a body (RFC 9112 section 7.1).
///
/// A body that does not start with a chunk was decoded by the tool that stored it, and is returned unchanged. Where the
/// chunks end early or break the rules, the data before that is returned; trailer fields are dropped.
#[must_use]
pub fn dechunk(body: &Bytes) -> Bytes {
    let Some((first, next)) = chunk(body, 0) else { return body.clone() };
    if first.is_empty() {
        return Bytes::new();
    }
    let mut next = next;
    let (mut single, mut joined) = (Some(first), Vec::new());
    while let Some((data, after)) = chunk(body, next) {
        if data.is_empty() {
            break;
        }
        if let Some(first) = single.take() {
            joined.reserve(body.len());
            joined.extend_from_slice(body.get(first).unwrap_or_default());
        }
        joined.extend_from_slice(body.get(data).unwrap_or_default());
        next = after;
    }
    single.map_or_else(|| Bytes::from(joined), |first| body.slice(first))
}

/// Whether a body begins with a chunk: many tools store bodies decoded, with a head that still announces chunks.
#[must_use]
pub fn begins_with_chunk(body: &[u8]) -> bool {
    chunk(body, 0).is_some()
}

/// Returns the range of the data of the chunk at a position, and the position of the next chunk.
fn chunk(body: &[u8], start: usize) -> Option<(std::ops::Range<usize>, usize)> {
    let rest = body.get(start..)?;
    let line_length = memchr::memchr(b'\n', rest.get(..rest.len().min(CHUNK_LINE_BYTES_MAX))?)?;
    let line = rest.get(..line_length)?;
    let digits = line.split(|byte| *byte == b';').next()?.trim_ascii();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let size = usize::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    let data = start + line_length + 1;
    let end = data.saturating_add(size).min(body.len());
    let rest = body.get(end..)?;
    let line_end = if rest.starts_with(b"\r\n") { 2 } else { usize::from(rest.starts_with(b"\n")) };
    Some((data..end, end + line_end))
}

/// Maximum bytes of a chunk's size and extensions.
pub(crate) const CHUNK_LINE_BYTES_MAX: usize = 4096;

/// Returns the content of a record, without the HTTP head if it is an HTTP message.
pub(crate) fn body(header: &RecordHeader, content: &Bytes) -> Bytes {
    if is_message(header, content) { split(content).1 } else { content.clone() }
}

/// Returns the payload of a record: what a browser gets before it removes content codings.
///
/// For an HTTP message that is the body without the transfer coding, for any other record the unchanged content.
#[must_use]
pub fn payload(header: &RecordHeader, content: &Bytes) -> Bytes {
    if !is_message(header, content) {
        return content.clone();
    }
    let (head, body) = split(content);
    if HttpHead::parse(&head).is_chunked() { dechunk(&body) } else { body }
}

/// Returns the head of a record's HTTP message; for any other record, a head that only states its media type.
#[must_use]
pub fn http_head(header: &RecordHeader, content: &Bytes) -> HttpHead {
    if is_message(header, content) {
        return HttpHead::parse(&split(content).0);
    }
    let media_type = header.get("Content-Type").unwrap_or_default().to_owned();
    HttpHead { first_line: String::new(), fields: vec![("Content-Type".to_owned(), media_type)] }
}

/// Whether a block is an HTTP message, by the type that its record states. Some tools state none; then it is one if it
/// begins like a response.
#[must_use]
pub fn is_http(content_type: Option<&str>, content: &[u8]) -> bool {
    match content_type.filter(|stated| !stated.trim().is_empty()) {
        Some(stated) => media_type(stated).is_some_and(|essence| essence == MEDIA_TYPE_HTTP),
        None => content.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"HTTP/")),
    }
}

/// Whether a record's content is an HTTP message.
pub(crate) fn is_message(header: &RecordHeader, content: &[u8]) -> bool {
    matches!(header.record_type(), RecordType::Response | RecordType::Request | RecordType::Revisit)
        && is_http(header.get("Content-Type"), content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_is_what_the_standard_allows() {
        let longest = format!("text/{}", "x".repeat(MEDIA_TYPE_BYTES_MAX - 5));
        for (value, expected) in [
            (" Text/HTML ; charset=x", Some("text/html")),
            ("text/html, text/html; charset=x", Some("text/html")),
            ("application/vnd.a-b+xml", Some("application/vnd.a-b+xml")),
            (&longest, Some(longest.as_str())),
            (&format!("{longest}x"), None),
            ("", None),
            ("html", None),
            ("*/*", None),
            ("text/", None),
            ("text/h tml", None),
            ("text/h\u{e9}", None),
            ("text/html/x", None),
        ] {
            assert_eq!(media_type(value).as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn reads_heads_of_all_kinds() {
        let head =
            HttpHead::parse(b"HTTP/1.1 200 OK\r\nContent-Type: Text/HTML; charset=x\r\nA: 1\r\n 2\r\n\r\n");
        assert_eq!(head.status(), Some(200));
        assert_eq!(head.media_type().as_deref(), Some("text/html"));
        assert_eq!(head.get("a"), Some("1 2"));
        for (line, status) in [
            ("HTTP/2 404", Some(404)),
            ("http/1.0 301 Moved", Some(301)),
            ("ICY 200 OK", Some(200)),
            ("HTTP/1.1 99999", None),
            ("GET / HTTP/1.1", None),
            ("", None),
        ] {
            assert_eq!(HttpHead::parse(line.as_bytes()).status(), status, "{line}");
        }
    }

    #[test]
    fn splits_at_the_first_empty_line() {
        for (message, head) in
            [("a\r\n\r\nbody", 5), ("a\n\nbody", 3), ("a\r\nb", 4), ("\r\nbody", 2), ("", 0)]
        {
            let message = Bytes::from_static(message.as_bytes());
            let (first, second) = split(&message);
            assert_eq!(first.len(), head);
            assert_eq!([first, second].concat(), message);
        }
    }

    #[test]
    fn dechunks_as_far_as_it_goes() {
        for (coded, plain) in [
            ("5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nTrailer: a\r\n\r\n", "hello world"),
            ("5\r\nhello\r\n0\r\n\r\n", "hello"),
            ("5\r\nhello\r\n", "hello"),
            ("5\nhello\n1\n!\n0\n\n", "hello!"),
            ("ff\r\ncut off", "cut off"),
            ("0\r\n\r\n", ""),
            ("hello, already decoded\r\n", "hello, already decoded\r\n"),
            ("5\r\nhello\r\nzz\r\n", "hello"),
            ("ffffffffffffffffff\r\nx", "ffffffffffffffffff\r\nx"),
            ("", ""),
        ] {
            assert_eq!(dechunk(&Bytes::from_static(coded.as_bytes())), plain, "{coded:?}");
        }
    }

    #[test]
    fn payload_is_without_transfer_coding_but_with_content_coding() {
        let header = |content_type: &str, kind: &str| RecordHeader {
            version: "1.1".into(),
            fields: vec![("WARC-Type".into(), kind.into()), ("Content-Type".into(), content_type.into())],
        };
        let message = Bytes::from_static(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
        );
        assert_eq!(payload(&header("application/http; msgtype=response", "response"), &message), "x");
        assert_eq!(payload(&header("text/plain", "resource"), &message), message);
    }

    proptest::proptest! {
        #[test]
        fn never_panics(bytes: Vec<u8>) {
            let bytes = Bytes::from(bytes);
            let (head, body) = split(&bytes);
            let _ = HttpHead::parse(&head).status();
            proptest::prop_assert!(dechunk(&body).len() <= body.len());
        }

        #[test]
        fn dechunk_undoes_chunking(pieces: Vec<Vec<u8>>) {
            let mut coded = Vec::new();
            for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
                coded.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                coded.extend_from_slice(piece);
                coded.extend_from_slice(b"\r\n");
            }
            coded.extend_from_slice(b"0\r\n\r\n");
            proptest::prop_assert_eq!(dechunk(&Bytes::from(coded)), pieces.concat());
        }
    }
}
