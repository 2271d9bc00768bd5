//! Faults of connections, headers, lengths, chunks and speed.

use std::time::Duration;

use super::{Asked, HTML, Listed, SMALL_PAGE, closed, page, raw, sent, whole};
use crate::script::{Ending, Move, Script};
use crate::text::Append as _;

const SECOND: Duration = Duration::from_secs(1);
/// Longer than any client waits.
const AN_HOUR: Duration = Duration::from_secs(3600);

pub(super) static LISTED: &[Listed] = &[
    Listed { path: "/no-answer", what: "closes without a byte", script: |_| closed(Vec::new()) },
    Listed {
        path: "/reset",
        what: "resets the connection without a byte",
        script: |_| Script::sent(Vec::new(), Ending::Reset),
    },
    Listed {
        path: "/early-close",
        what: "promises 10000 bytes, sends 1000, closes",
        script: |_| closed(raw(&length(10_000), &filler(1000))),
    },
    Listed {
        path: "/early-reset",
        what: "promises 10000 bytes, sends 1000, resets",
        script: |_| Script {
            moves: vec![Move::Send(raw(&length(10_000), &filler(1000))), Move::Wait(SECOND / 10)],
            ending: Ending::Reset,
        },
    },
    Listed {
        path: "/head-cut",
        what: "closes in the middle of the head",
        script: |_| closed(b"HTTP/1.1 200 OK\r\nContent-Type: text/ht".to_vec()),
    },
    Listed {
        path: "/short-length",
        what: "promises 100 bytes, sends 1000",
        script: |_| closed(raw(&length(100), &filler(1000))),
    },
    Listed {
        path: "/two-lengths",
        what: "promises 100 and 1000 bytes, sends 1000",
        script: |_| closed(raw(&(length(100) + &length(1000)), &filler(1000))),
    },
    Listed {
        path: "/negative-length",
        what: "promises -1 bytes",
        script: |_| closed(raw("Content-Length: -1\r\n", &filler(1000))),
    },
    Listed {
        path: "/huge-length",
        what: "promises 10^30 bytes",
        script: |_| closed(raw("Content-Length: 1000000000000000000000000000000\r\n", &filler(1000))),
    },
    Listed {
        path: "/length-and-chunked",
        what: "sends both a length and chunks",
        script: |_| closed(raw(&(length(10) + CHUNKED), &chunked(SMALL_PAGE.as_bytes()))),
    },
    Listed {
        path: "/no-length",
        what: "ends the body by closing, which is allowed",
        script: |_| closed(raw(HTML, SMALL_PAGE.as_bytes())),
    },
    Listed {
        path: "/chunked",
        what: "sends right chunks with an extension and a trailer",
        script: |_| {
            sent(raw(CHUNKED, b"5;name=\"value\"\r\n<p>ab\r\n4\r\n</p>\r\n0\r\nX-Trailer: 1\r\n\r\n"))
        },
    },
    Listed {
        path: "/bad-chunk-size",
        what: "a chunk size that is no number",
        script: |_| closed(raw(CHUNKED, b"5\r\n<p>ab\r\nxyz\r\nabc\r\n0\r\n\r\n")),
    },
    Listed {
        path: "/chunk-overflow",
        what: "a chunk size of 2^68",
        script: |_| closed(raw(CHUNKED, b"100000000000000000\r\nabc")),
    },
    Listed {
        path: "/chunk-cut",
        what: "closes before the last chunk",
        script: |_| closed(raw(CHUNKED, b"5\r\n<p>ab\r\n")),
    },
    Listed {
        path: "/chunk-without-end",
        what: "a chunk longer than its size",
        script: |_| closed(raw(CHUNKED, b"5\r\n<p>abcdefgh\r\n0\r\n\r\n")),
    },
    Listed {
        path: "/chunk-extension-flood",
        what: "a chunk extension of 16 MiB",
        script: |_| Script {
            moves: vec![
                Move::Send(raw(CHUNKED, b"5;")),
                Move::Repeat(b"a=1;".to_vec(), 4 << 20),
                Move::Send(b"\r\n<p>ab\r\n0\r\n\r\n".to_vec()),
            ],
            ending: Ending::Close,
        },
    },
    Listed {
        path: "/one-byte-chunks",
        what: "20000 chunks of one byte",
        script: |_| Script {
            moves: vec![
                Move::Send(raw(CHUNKED, b"")),
                Move::Repeat(b"1\r\nx\r\n".to_vec(), 20_000),
                Move::Send(b"0\r\n\r\n".to_vec()),
            ],
            ending: Ending::KeepOpen,
        },
    },
    Listed {
        path: "/garbage-head",
        what: "bytes that are no HTTP",
        script: |_| closed((0..2000u32).map(|index| (index * 167 + index / 7) as u8).collect()),
    },
    Listed {
        path: "/http09",
        what: "a body without a head (HTTP/0.9)",
        script: |_| closed(SMALL_PAGE.as_bytes().to_vec()),
    },
    Listed {
        path: "/http10",
        what: "a right answer in HTTP/1.0",
        script: |_| {
            closed([b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n", SMALL_PAGE.as_bytes()].concat())
        },
    },
    Listed {
        path: "/http3000",
        what: "an answer in HTTP/3000.1",
        script: |_| closed([b"HTTP/3000.1 200 OK\r\n\r\n", SMALL_PAGE.as_bytes()].concat()),
    },
    Listed {
        path: "/bad-status",
        what: "a status that is no number",
        script: |_| closed(b"HTTP/1.1 abc OK\r\nContent-Length: 0\r\n\r\n".to_vec()),
    },
    Listed {
        path: "/no-reason",
        what: "a status line that ends after the status, which is common",
        script: |_| sent([b"HTTP/1.1 200\r\n", length(4).as_bytes(), b"\r\nabcd"].concat()),
    },
    Listed {
        path: "/bare-newlines",
        what: "a head whose lines end with a newline only",
        script: |_| sent(b"HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Length: 4\n\nabcd".to_vec()),
    },
    Listed {
        path: "/folded-header",
        what: "a header folded over three lines (obsolete)",
        script: |_| sent(raw(&format!("X-Folded: a\r\n b\r\n\tc\r\n{}", length(4)), b"abcd")),
    },
    Listed {
        path: "/space-before-colon",
        what: "a header name with a space after it",
        script: |_| sent(raw(&format!("X-Spaced : a\r\n{}", length(4)), b"abcd")),
    },
    Listed {
        path: "/header-without-colon",
        what: "a header line without a colon",
        script: |_| sent(raw(&format!("this is no header\r\n{}", length(4)), b"abcd")),
    },
    Listed {
        path: "/header-latin1",
        what: "header values with bytes that are not UTF-8, and control characters",
        script: |_| {
            let mut answer =
                b"HTTP/1.1 200 OK\r\nX-Latin1: caf\xe9 \xff\xfe\r\nX-Control: a\x01b\r\n".to_vec();
            answer.put(&length(4));
            answer.put("\r\nabcd");
            sent(answer)
        },
    },
    Listed {
        path: "/header-flood",
        what: "a million headers",
        script: |_| Script {
            moves: vec![
                Move::Send(b"HTTP/1.1 200 OK\r\n".to_vec()),
                Move::Repeat(b"X-Flood: water\r\n".to_vec(), 1_000_000),
                Move::Send(b"Content-Length: 0\r\n\r\n".to_vec()),
            ],
            ending: Ending::Close,
        },
    },
    Listed {
        path: "/header-endless",
        what: "a header that never ends",
        script: |_| Script {
            moves: vec![
                Move::Send(b"HTTP/1.1 200 OK\r\nX-Long: ".to_vec()),
                Move::Forever(b"water ".to_vec(), Duration::ZERO),
            ],
            ending: Ending::Close,
        },
    },
    Listed {
        path: "/many-headers",
        what: "200 headers, which is legal",
        script: |_| {
            let headers: String = (0..200).map(|index| format!("X-Header-{index}: {index}\r\n")).collect();
            sent(raw(&(headers + &length(4)), b"abcd"))
        },
    },
    Listed {
        path: "/cookie-flood",
        what: "100 cookies of 4000 bytes",
        script: |_| {
            let cookies: String = (0..100)
                .map(|index| format!("Set-Cookie: c{index}={}; Path=/\r\n", "x".repeat(4000)))
                .collect();
            sent(raw(&(cookies + &length(4)), b"abcd"))
        },
    },
    Listed {
        path: "/continue",
        what: "sends 100 and 103 before the answer, which is legal",
        script: |_| {
            sent([
                b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n",
                whole(200, HTML, SMALL_PAGE.as_bytes()).as_slice(),
            ]
            .concat())
        },
    },
    Listed {
        path: "/continue-forever",
        what: "sends 100 Continue and never an answer",
        script: |_| Script {
            moves: vec![Move::Forever(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec(), Duration::ZERO)],
            ending: Ending::Close,
        },
    },
    Listed {
        path: "/two-answers",
        what: "sends a second answer that nobody asked for",
        script: |_| {
            let first = whole(200, HTML, SMALL_PAGE.as_bytes());
            let second = whole(200, HTML, b"<title>This answers the next request wrongly</title>");
            sent([first, second].concat())
        },
    },
    Listed {
        path: "/closes-after",
        what: "closes after a right answer that promised to keep open",
        script: |_| closed(whole(200, HTML, SMALL_PAGE.as_bytes())),
    },
    Listed {
        path: "/head-with-body",
        what: "status 204 with a body",
        script: |_| closed(b"HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nabcd".to_vec()),
    },
    Listed {
        path: "/unasked-304",
        what: "304 whether asked for or not",
        script: |_| sent(b"HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n".to_vec()),
    },
    Listed { path: "/status/{n}", what: "any status; ?retry-after=SECONDS adds that header", script: status },
    Listed {
        path: "/recovers/{n}",
        what: "503 with Retry-After: 1 as many times, then a page",
        script: |asked| {
            if asked.visits < asked.number {
                sent(whole(503, "Retry-After: 1\r\n", b""))
            } else {
                page(SMALL_PAGE)
            }
        },
    },
];

pub(super) static SLOW: &[Listed] = &[
    Listed {
        path: "/hang",
        what: "takes the request and does nothing",
        script: |_| Script { moves: vec![Move::Wait(AN_HOUR)], ending: Ending::Close },
    },
    Listed {
        path: "/hang-in-body",
        what: "sends half of the body and nothing more",
        script: |_| Script {
            moves: vec![Move::Send(raw(&length(2000), &filler(1000))), Move::Wait(AN_HOUR)],
            ending: Ending::Close,
        },
    },
    Listed {
        path: "/slow-head",
        what: "a head at ten bytes a second",
        script: |_| Script {
            moves: vec![Move::Drip(whole(200, HTML, SMALL_PAGE.as_bytes()), SECOND / 10)],
            ending: Ending::Close,
        },
    },
    Listed {
        path: "/slow-body",
        what: "a body of 100 kB at ten bytes a second",
        script: |_| Script {
            moves: vec![Move::Send(raw(&length(100_000), b"")), Move::Drip(filler(100_000), SECOND / 10)],
            ending: Ending::Close,
        },
    },
    Listed {
        path: "/slow/{n}",
        what: "a right answer after so many milliseconds",
        script: |asked| Script {
            moves: vec![
                Move::Wait(Duration::from_millis(asked.number)),
                Move::Send(whole(200, HTML, SMALL_PAGE.as_bytes())),
            ],
            ending: Ending::KeepOpen,
        },
    },
    Listed {
        path: "/endless",
        what: "chunks without end as fast as they are taken",
        script: |_| Script {
            moves: vec![Move::Send(raw(CHUNKED, b"")), Move::Forever(chunk(&filler(4096)), Duration::ZERO)],
            ending: Ending::Close,
        },
    },
    Listed {
        path: "/endless-plain",
        what: "a body without length and without end",
        script: |_| Script {
            moves: vec![Move::Send(raw(HTML, b"")), Move::Forever(filler(4096), Duration::ZERO)],
            ending: Ending::Close,
        },
    },
    Listed {
        path: "/endless-slow",
        what: "a chunk of 100 bytes a second without end",
        script: |_| Script {
            moves: vec![Move::Send(raw(CHUNKED, b"")), Move::Forever(chunk(&filler(100)), SECOND)],
            ending: Ending::Close,
        },
    },
    Listed {
        path: "/large/{n}",
        what: "a right body of so many MiB",
        script: |asked| {
            let mebibytes = asked.number.min(1 << 20);
            let head =
                format!("Content-Type: application/octet-stream\r\nContent-Length: {}\r\n", mebibytes << 20);
            Script {
                moves: vec![Move::Send(raw(&head, b"")), Move::Repeat(filler(1024), mebibytes << 10)],
                ending: Ending::KeepOpen,
            }
        },
    },
];

const CHUNKED: &str = "Content-Type: text/html; charset=utf-8\r\nTransfer-Encoding: chunked\r\n";

fn length(bytes: u64) -> String {
    format!("Content-Length: {bytes}\r\n")
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

fn chunked(bytes: &[u8]) -> Vec<u8> {
    [chunk(bytes).as_slice(), b"0\r\n\r\n"].concat()
}

/// Returns text of exactly this many bytes.
fn filler(bytes: usize) -> Vec<u8> {
    b"<p>All work and no play makes a dull page. ".iter().copied().cycle().take(bytes).collect()
}

fn status(asked: &Asked<'_>) -> Script {
    let status = asked.number.clamp(200, 999) as u16;
    let path = String::from_utf8_lossy(asked.request.path);
    let wait = path.split_once("?retry-after=").map(|(_, wait)| wait.replace(['\r', '\n'], ""));
    let head = wait.map_or(HTML.to_owned(), |wait| format!("{HTML}Retry-After: {wait}\r\n"));
    sent(whole(status, &head, SMALL_PAGE.as_bytes()))
}
