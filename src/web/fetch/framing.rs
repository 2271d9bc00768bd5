//! Where a response ends: the message framing of RFC 9112, section 6, tolerant of what servers really send.

use archive_storage::warc::{HttpHead, head_length};

/// Maximum bytes of a chunk-size line, including its extensions.
const CHUNK_LINE_BYTES_MAX: usize = 4096;

/// Facts from a response head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResponseHead {
    /// Bytes of the head, including the empty line.
    pub(super) length: usize,
    pub(super) status: u16,
    pub(super) framing: Framing,
    /// Whether the connection can serve another request after this response.
    pub(super) keep_alive: bool,
    /// The fields `Set-Cookie`.
    pub(super) cookies: Vec<String>,
    /// The field `Location`, if there are cookies.
    pub(super) location: Option<String>,
}

/// How the end of the body is determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
}

/// State of the head, given the bytes received so far.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HeadState {
    Whole(ResponseHead),
    Partial,
    NotHttp,
    /// It gives several lengths.
    Contradictory,
}

/// Number of bytes of the line ends before a status line, which some servers send (RFC 9112, section 2.2).
pub(super) fn blank_bytes(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count()
}

/// Reads a response head from the start of `bytes`, with the leniency with which the stored record will be read.
pub(super) fn read_head(bytes: &[u8]) -> HeadState {
    let known = bytes.len().min(5);
    if !b"HTTP/"[..known].eq_ignore_ascii_case(&bytes[..known]) {
        return HeadState::NotHttp;
    }
    let Some(length) = head_length(bytes) else { return HeadState::Partial };
    let head = HttpHead::parse(&bytes[..length]);
    let Some(status) = head.status() else { return HeadState::NotHttp };
    let Some((framing, keep_alive)) = framing(status, &head) else { return HeadState::Contradictory };
    let set = head.fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
    let cookies: Vec<String> = set.map(|(_, value)| value.clone()).collect();
    let location = head.get("Location").filter(|_| !cookies.is_empty()).map(ToOwned::to_owned);
    HeadState::Whole(ResponseHead { length, status, framing, keep_alive, cookies, location })
}

/// Returns how the body ends, and whether the connection stays open then; `None` if there are several lengths.
fn framing(status: u16, head: &HttpHead) -> Option<(Framing, bool)> {
    let version =
        head.first_line.get(5..).and_then(|rest| rest.split_ascii_whitespace().next()?.parse().ok());
    let mut keep_alive = version.is_some_and(|version: f32| version >= 1.1);
    let mut chunked = false;
    let mut lengths = Vec::new();
    for (name, value) in &head.fields {
        if name.eq_ignore_ascii_case("connection") {
            keep_alive = (keep_alive && !has_token(value, "close")) || has_token(value, "keep-alive");
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            chunked |= has_token(value, "chunked");
        } else if name.eq_ignore_ascii_case("content-length") {
            // The same length may be repeated (RFC 9112, section 6.3).
            lengths.extend(value.split(',').filter_map(|length| length.trim().parse::<u64>().ok()));
        }
    }
    lengths.dedup();
    let body = match lengths[..] {
        _ if status == 204 || status == 304 || (100..200).contains(&status) => Framing::Length(0),
        _ if chunked => Framing::Chunked,
        [] => Framing::UntilClose,
        [length] => Framing::Length(length),
        _ => return None,
    };
    Some((body, keep_alive && body != Framing::UntilClose))
}

fn has_token(value: &str, token: &str) -> bool {
    value.split(',').any(|part| part.trim().eq_ignore_ascii_case(token))
}

/// Parses a chunked body as it arrives, without copying it.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    /// Number of bytes of the body parsed so far.
    position: usize,
    state: ChunkState,
}

#[derive(Debug, Default, Clone, Copy)]
enum ChunkState {
    #[default]
    SizeLine,
    /// Data bytes left in the chunk; then its line end follows.
    Data(u64),
    DataEnd,
    Trailer,
}

/// Progress through a chunked body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChunkProgress {
    More,
    /// The body ends at this byte.
    End(usize),
    /// The bytes are not in the chunked coding.
    Broken,
}

impl Chunks {
    /// Continues in `body`: all bytes received since the head, except forgotten ones.
    pub(super) fn advance(&mut self, body: &[u8]) -> ChunkProgress {
        loop {
            match self.state {
                ChunkState::Data(left) => {
                    let here = body.len().saturating_sub(self.position) as u64;
                    let taken = left.min(here);
                    self.position += usize::try_from(taken).unwrap_or(usize::MAX);
                    if taken < left {
                        self.state = ChunkState::Data(left - taken);
                        return ChunkProgress::More;
                    }
                    self.state = ChunkState::DataEnd;
                }
                ChunkState::SizeLine | ChunkState::DataEnd | ChunkState::Trailer => {
                    let Some(line) = self.next_line(body) else {
                        let waiting = body.len().saturating_sub(self.position);
                        return if waiting > CHUNK_LINE_BYTES_MAX {
                            ChunkProgress::Broken
                        } else {
                            ChunkProgress::More
                        };
                    };
                    match self.after_line(line) {
                        Some(state) => self.state = state,
                        None if matches!(self.state, ChunkState::Trailer) => {
                            return ChunkProgress::End(self.position);
                        }
                        None => return ChunkProgress::Broken,
                    }
                }
            }
        }
    }

    /// Whether all data has come, though perhaps not the line ends after it, if nothing more arrives after `body`.
    pub(super) fn has_all_data(&self, body: &[u8]) -> bool {
        let rest = body.get(self.position..).unwrap_or_default();
        let is_last = |rest: &[u8]| !rest.is_empty() && rest.iter().all(|byte| *byte == b'0');
        match self.state {
            ChunkState::Trailer => true,
            ChunkState::SizeLine => is_last(rest.trim_ascii()),
            ChunkState::Data(_) | ChunkState::DataEnd => false,
        }
    }

    /// Number of leading bytes of the body that have been parsed and are no longer needed.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    /// Adjusts the position for `bytes` leading bytes, at most [`Chunks::position`], that the caller has removed.
    pub(super) fn forget(&mut self, bytes: usize) {
        self.position = self.position.saturating_sub(bytes);
    }

    fn next_line<'b>(&mut self, body: &'b [u8]) -> Option<&'b [u8]> {
        let rest = body.get(self.position..)?;
        let end = memchr::memchr(b'\n', rest)?;
        self.position += end + 1;
        Some(rest[..end].trim_ascii())
    }

    /// Returns the state after a line; nothing at the end, or if the line is invalid.
    fn after_line(&self, line: &[u8]) -> Option<ChunkState> {
        match self.state {
            ChunkState::DataEnd => line.is_empty().then_some(ChunkState::SizeLine),
            ChunkState::Trailer => (!line.is_empty()).then_some(ChunkState::Trailer),
            ChunkState::SizeLine | ChunkState::Data(_) => {
                let digits = line.split(|&b| b == b';').next()?.trim_ascii();
                let size = u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
                Some(if size == 0 { ChunkState::Trailer } else { ChunkState::Data(size) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ChunkProgress, Chunks, Framing, HeadState, blank_bytes, read_head};

    fn head(text: &str) -> super::ResponseHead {
        match read_head(text.as_bytes()) {
            HeadState::Whole(head) => head,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn framing_follows_the_head() {
        let answer = head("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
        assert_eq!((answer.status, answer.framing, answer.keep_alive), (200, Framing::Length(5), true));
        assert_eq!(
            head("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\nContent-Length: 5\r\n\r\n").framing,
            Framing::Chunked
        );
        assert_eq!(
            head("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n").framing,
            Framing::Length(0)
        );
        let old = head("HTTP/1.0 200 OK\r\n\r\n");
        assert_eq!((old.framing, old.keep_alive), (Framing::UntilClose, false));
        assert!(head("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n").keep_alive);
        assert!(!head("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").keep_alive);
    }

    #[test]
    fn heads_that_servers_really_send_are_read() {
        assert_eq!(head("HTTP/1.1 200\nContent-Length : 3\n\nabc").framing, Framing::Length(3));
        assert_eq!(
            head("HTTP/1.1 200 OK\r\nX-Bad Name: 1\r\nContent-Length: 3\r\n\r\nabc").framing,
            Framing::Length(3)
        );
        assert_eq!(head("HTTP/1.1 404 Pas trouv\u{e9}\r\n\r\n").status, 404);
        assert_eq!(read_head(b"<html>"), HeadState::NotHttp);
        assert_eq!(read_head(b"HT"), HeadState::Partial);
        assert_eq!(read_head(b"HTTP/1.1 200 OK\r\nA: b\r\n"), HeadState::Partial);
        assert_eq!(
            head("HTTP/1.1 200 OK\r\nA: a\0b\r\nContent-Length: 3\r\n\r\n").framing,
            Framing::Length(3)
        );
        let long = format!("HTTP/1.1 200 OK\r\n{}Content-Length: 3\r\n\r\n", "A: b\r\n".repeat(9000));
        assert_eq!(head(&long).framing, Framing::Length(3));
        for (version, stays) in [("1.2", true), ("2", true), ("1.0", false), ("0.9", false), ("x", false)] {
            let answer = head(&format!("HTTP/{version} 200 OK\r\nContent-Length: 3\r\n\r\n"));
            assert_eq!((answer.framing, answer.keep_alive), (Framing::Length(3), stays), "{version}");
        }
        assert_eq!((blank_bytes(b"\r\n\nHTTP"), blank_bytes(b"HTTP")), (3, 0));
        for bad in ["HTTP/1.1\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.1 20\r\n\r\n"] {
            assert_eq!(read_head(bad.as_bytes()), HeadState::NotHttp, "{bad}");
        }
    }

    #[test]
    fn a_length_may_be_repeated_but_not_contradicted() {
        let read = |lengths: &str| read_head(format!("HTTP/1.1 200 OK\r\n{lengths}\r\n").as_bytes());
        for same in [
            "Content-Length: 5, 5\r\n",
            "Content-Length: 5\r\nContent-length:\t5 \r\n",
            "Content-Length: 05,5,\r\n",
        ] {
            assert!(
                matches!(read(same), HeadState::Whole(head) if head.framing == Framing::Length(5)),
                "{same}"
            );
        }
        for different in ["Content-Length: 5, 6\r\n", "Content-Length: 5\r\nContent-Length: 50\r\n"] {
            assert_eq!(read(different), HeadState::Contradictory, "{different}");
            let chunked = format!("{different}Transfer-Encoding: chunked\r\n");
            assert!(matches!(read(&chunked), HeadState::Whole(head) if head.framing == Framing::Chunked));
        }
    }

    #[test]
    fn a_chunked_body_may_lack_its_last_line_ends() {
        for (body, is_whole) in [
            ("3\r\nabc\r\n0\r\n", true),
            ("3\r\nabc\r\n0", true),
            ("3\r\nabc\r\n0\r\nX: y", true),
            ("3\r\nabc\r\n", false),
            ("3\r\nabc", false),
            ("3\r\nab", false),
            ("30", false),
        ] {
            let mut chunks = Chunks::default();
            assert_eq!(chunks.advance(body.as_bytes()), ChunkProgress::More);
            assert_eq!(chunks.has_all_data(body.as_bytes()), is_whole, "{body}");
        }
    }

    #[test]
    fn a_chunked_body_ends_where_it_ends_however_it_is_cut() {
        let body = b"4;x=y\r\nWiki\r\n0a\r\n0123456789\r\n0\r\nExpires: never\r\n\r\nrest";
        let end = body.len() - 4;
        for cut in 0..end {
            let mut chunks = Chunks::default();
            assert_eq!(chunks.advance(&body[..cut]), ChunkProgress::More, "{cut}");
            assert_eq!(chunks.advance(body), ChunkProgress::End(end), "{cut}");
        }
    }

    #[test]
    fn bad_chunks_are_reported() {
        for body in [&b"zz\r\nabc"[..], b"4\r\nWikiX\r\n", b"\r\n", b"-4\r\n", &[b'1'; 5000]] {
            assert_eq!(Chunks::default().advance(body), ChunkProgress::Broken);
        }
        assert_eq!(Chunks::default().advance(b"ffffffffffffffff\r\nabc"), ChunkProgress::More);
    }
}
