//! Hosts whose robots.txt is the fault (RFC 9309).

use std::time::Duration;

use super::{HTML, raw, sent, whole};
use crate::answer::Request;
use crate::script::{Ending, Move, Script};

/// A host whose robots.txt is a fault.
pub struct Case {
    /// First label of its name; the rest is `.faults.test`.
    pub name: &'static str,
    /// What its robots.txt does.
    pub what: &'static str,
    script: fn(&Request<'_>) -> Script,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Case").field("name", &self.name).field("what", &self.what).finish_non_exhaustive()
    }
}

/// Suffix of the path of a robots.txt that is requested over TLS; the server cannot recognise TLS otherwise.
const SECURE_FILE: &str = "?secure";

const PLAIN: &str = "Content-Type: text/plain\r\n";

/// All hosts of this kind.
pub static ROBOTS_HOSTS: &[Case] = &[
    Case {
        name: "robots-503",
        what: "answers 503: everything is disallowed",
        script: |_| sent(whole(503, PLAIN, b"")),
    },
    Case {
        name: "robots-500",
        what: "answers 500: everything is disallowed",
        script: |_| sent(whole(500, PLAIN, b"")),
    },
    Case { name: "robots-429", what: "answers 429", script: |_| sent(whole(429, "Retry-After: 2\r\n", b"")) },
    Case {
        name: "robots-404",
        what: "answers 404: everything is allowed",
        script: |_| sent(whole(404, HTML, b"")),
    },
    Case {
        name: "robots-403",
        what: "answers 403: everything is allowed",
        script: |_| sent(whole(403, HTML, b"")),
    },
    Case {
        name: "robots-html",
        what: "answers 200 with an HTML page",
        script: |_| sent(whole(200, HTML, b"<!DOCTYPE html>\n<title>Welcome</title>\n<p>Disallow: /</p>\n")),
    },
    Case {
        name: "robots-redirect",
        what: "redirects to a file that disallows /private/ by way of six redirects",
        script: |_| sent(whole(301, "Location: http://faults.test/redirect-chain/6\r\n", b"")),
    },
    Case {
        name: "robots-elsewhere",
        what: "redirects to the file of another host, which disallows everything",
        script: |_| sent(whole(302, "Location: http://robots-nothing.faults.test/robots.txt\r\n", b"")),
    },
    Case {
        name: "robots-secure",
        what: "redirects from http to https, where a file disallows /private/",
        script: |request| {
            let is_redirected = request.path.ends_with(SECURE_FILE.as_bytes());
            sent(if is_redirected {
                whole(200, PLAIN, b"User-agent: *\nDisallow: /private/\n")
            } else {
                let place =
                    format!("Location: https://robots-secure.faults.test/robots.txt{SECURE_FILE}\r\n");
                whole(301, &place, b"")
            })
        },
    },
    Case {
        name: "robots-nothing",
        what: "disallows everything",
        script: |_| sent(whole(200, PLAIN, b"User-agent: *\nDisallow: /\n")),
    },
    Case {
        name: "robots-large",
        what: "a file of 10 MiB whose rule against everything comes after the first MiB",
        script: |_| Script {
            moves: vec![
                Move::Send(raw(&format!("{PLAIN}Content-Length: {}\r\n", (10 << 20) + RULE.len()), b"")),
                Move::Repeat(b"# filler filler\n".to_vec(), 1 << 16),
                Move::Send(RULE.to_vec()),
                Move::Repeat(b"# filler filler\n".to_vec(), 9 << 16),
            ],
            ending: Ending::KeepOpen,
        },
    },
    Case {
        name: "robots-hang",
        what: "never answers",
        script: |_| Script { moves: vec![Move::Wait(Duration::from_secs(3600))], ending: Ending::Close },
    },
    Case {
        name: "robots-reset",
        what: "resets the connection",
        script: |_| Script::sent(Vec::new(), Ending::Reset),
    },
    Case {
        name: "robots-binary",
        what: "a file of bytes that are no text, with one right rule against /private/",
        script: |_| {
            let mut body = b"\xef\xbb\xbfUser-Agent : *\r\n\x00\xff\xfe\x80\r".to_vec();
            body.extend_from_slice(b"\nDISALLOW: /private/ # comment\n\xff");
            sent(whole(200, PLAIN, &body))
        },
    },
    Case {
        name: "robots-delay",
        what: "asks for a delay of 2 seconds",
        script: |_| sent(whole(200, PLAIN, b"User-agent: *\nCrawl-delay: 2\nDisallow: /private/\n")),
    },
    Case {
        name: "robots-long-delay",
        what: "asks for a delay of a year",
        script: |_| sent(whole(200, PLAIN, b"User-agent: *\nCrawl-delay: 31536000\nDisallow:\n")),
    },
];

const RULE: &[u8] = b"User-agent: *\nDisallow: /\n";

impl Case {
    pub(super) fn script(&self, request: &Request<'_>) -> Script {
        (self.script)(request)
    }
}

/// Returns the case with this label.
pub(super) fn case(label: &[u8]) -> Option<&'static Case> {
    ROBOTS_HOSTS.iter().find(|case| case.name.as_bytes() == label)
}
