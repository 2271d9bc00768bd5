//! The host `faults.test` breaks the rules of the web in a different way at each path, so that a test can request
//! exactly one fault.
//!
//! [`FAULTS`] lists the paths; `http://faults.test/` links to all of them. On other hosts, such as
//! `robots-503.faults.test`, robots.txt is the fault: see [`ROBOTS_HOSTS`]. Their other paths answer with a plain page.

mod bomb;
mod content;
mod framing;
mod redirects;
mod robots;

pub use robots::ROBOTS_HOSTS;

use super::answer::{Request, reason};
use super::layout::decimal;
use super::script::{Ending, Script};
use super::text::Append;

/// Address of the page that links to all faults.
pub const ENTRANCE: &str = "http://faults.test/";

/// A path of `faults.test`.
#[derive(Clone, Copy)]
pub struct Listed {
    /// The path; `{n}` stands for any number.
    pub path: &'static str,
    /// What the server does there.
    pub what: &'static str,
    script: fn(&Asked<'_>) -> Script,
}

impl std::fmt::Debug for Listed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listed").field("path", &self.path).field("what", &self.what).finish_non_exhaustive()
    }
}

/// The inputs that a script may depend on.
struct Asked<'a> {
    request: &'a Request<'a>,
    /// Number in the path.
    number: u64,
    /// Number of earlier requests for the path.
    visits: u64,
}

/// All paths of `faults.test`.
pub static FAULTS: &[&[Listed]] =
    &[framing::LISTED, framing::SLOW, redirects::LISTED, content::LISTED, content::XML, bomb::LISTED];

/// A requested fault.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// The page that links to all faults.
    Index,
    Listed(Listed, u64),
    Robots(&'static robots::Case),
    /// Any other page of a fault host.
    Plain,
    Absent,
}

impl Fault {
    /// Returns the fault at this address if the host is one of the fault hosts.
    pub(super) fn of(host: &[u8], path: &[u8]) -> Option<Self> {
        let name = host.to_ascii_lowercase();
        if name == b"faults.test" {
            return Some(Self::listed(path));
        }
        let case = robots::case(name.strip_suffix(b".faults.test")?);
        Some(match case {
            Some(case) if without_query(path) == b"/robots.txt" => Self::Robots(case),
            Some(_) => Self::Plain,
            None => Self::Absent,
        })
    }

    /// The connection is reset without a byte.
    pub(super) fn reset() -> Self {
        Self::listed(b"/reset")
    }

    fn listed(path: &[u8]) -> Self {
        if path == b"/" {
            return Self::Index;
        }
        let path = without_query(path);
        for listed in FAULTS.iter().copied().flatten() {
            match listed.path.split_once("{n}") {
                None if listed.path.as_bytes() == path => return Self::Listed(*listed, 0),
                None => {}
                Some((before, after)) => {
                    let digits = path
                        .strip_prefix(before.as_bytes())
                        .and_then(|rest| rest.strip_suffix(after.as_bytes()));
                    if let Some(number) = digits.and_then(decimal) {
                        return Self::Listed(*listed, number);
                    }
                }
            }
        }
        Self::Absent
    }

    /// Returns the server's script; `visits` is the number of earlier requests for the path.
    pub(super) fn script(&self, request: &Request<'_>, visits: u64) -> Script {
        match self {
            Self::Index => page(&index()),
            Self::Listed(listed, number) => (listed.script)(&Asked { request, number: *number, visits }),
            Self::Robots(case) => case.script(request),
            Self::Plain => page("<!DOCTYPE html>\n<title>A page</title>\n<p>A page like any other.</p>\n"),
            Self::Absent => sent(whole(404, HTML, b"<!DOCTYPE html>\n<title>Not found</title>\n")),
        }
    }
}

/// Header line of HTML in UTF-8.
const HTML: &str = "Content-Type: text/html; charset=utf-8\r\n";

fn without_query(path: &[u8]) -> &[u8] {
    path.split(|byte| *byte == b'?').next().unwrap_or(path)
}

fn index() -> String {
    let mut page = "<!DOCTYPE html>\n<title>Faults</title>\n<ul>\n".to_owned();
    for listed in FAULTS.iter().copied().flatten() {
        let path = listed.path.replace("{n}", "3");
        page.push_str(&format!("<li><a href=\"{path}\">{path}</a>: {}</li>\n", listed.what));
    }
    for host in ROBOTS_HOSTS {
        page.push_str(&format!(
            "<li><a href=\"http://{0}.faults.test/\">{0}</a>: {1}</li>\n",
            host.name, host.what
        ));
    }
    page.push_str("</ul>\n");
    page
}

/// Returns a complete, correct answer.
fn whole(status: u16, head: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(body.len() + 200);
    bytes.put(&format!(
        "HTTP/1.1 {status} {}\r\n{head}Content-Length: {}\r\n\r\n",
        reason(status),
        body.len()
    ));
    bytes.extend_from_slice(body);
    bytes
}

/// Sends `bytes` and keeps the connection open.
fn sent(bytes: Vec<u8>) -> Script {
    Script::sent(bytes, Ending::KeepOpen)
}

/// Sends `bytes` and closes the connection.
fn closed(bytes: Vec<u8>) -> Script {
    Script::sent(bytes, Ending::Close)
}

/// Returns a complete, correct HTML page.
fn page(body: &str) -> Script {
    sent(whole(200, HTML, body.as_bytes()))
}

/// Returns a status line, header lines, an empty line and `rest`, without adding a length.
fn raw(head: &str, rest: &[u8]) -> Vec<u8> {
    [b"HTTP/1.1 200 OK\r\n", head.as_bytes(), b"\r\n", rest].concat()
}

/// A small, correct page for faults that lie elsewhere.
const SMALL_PAGE: &str =
    "<!DOCTYPE html>\n<title>A small page</title>\n<p>It has <a href=\"/\">one link</a>.</p>\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_and_none_is_listed_twice() {
        let mut seen = std::collections::BTreeSet::new();
        for listed in FAULTS.iter().copied().flatten() {
            assert!(seen.insert(listed.path), "{} is listed twice", listed.path);
            assert!(listed.path.starts_with('/') && !listed.what.is_empty());
            let path = listed.path.replace("{n}", "7");
            match Fault::of(b"Faults.test", path.as_bytes()) {
                Some(Fault::Listed(found, _)) => assert_eq!(found.path, listed.path),
                other => panic!("{path} is {other:?}"),
            }
        }
        assert!(seen.len() > 60, "{} faults", seen.len());
        assert!(matches!(Fault::of(b"faults.test", b"/"), Some(Fault::Index)));
        assert!(matches!(
            Fault::of(b"faults.test", b"/status/503?retry-after=1"),
            Some(Fault::Listed(_, 503))
        ));
        assert!(matches!(Fault::of(b"robots-503.faults.test", b"/robots.txt"), Some(Fault::Robots(_))));
        assert!(Fault::of(b"h0.s0.test", b"/").is_none());
    }
}
