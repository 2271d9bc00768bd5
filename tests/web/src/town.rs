//! A town of hosts that live by a script: what each address answers, from when until when.
//!
//! An act is a line: when, where, what. Lines that begin with `#` are comments.
//!
//! ```text
//! 2018        museum.test/            page <title>The museum</title><img src=/front>
//! 2021        museum.test/front       picture 30
//! 2019..2021  library.test/hours      status 404
//! 2022..2023  station.test/*          reset
//! 2020        old.test/*              301 http://new.test/{rest}
//! ```
//!
//! *When* is a time, or two, the second of which is past the end: `2018`, `2018-06-01`, `2018-06-01T12:00`. *Where* is an
//! address without its scheme; one that ends in `*` is every address that begins so, and `{rest}` stands in *what* for
//! what follows. *What* is
//!
//! - `page HTML`, `style CSS`, `script TEXT` or `plain TEXT` (`\n` is a line end), or `picture N`, which is N pixels wide;
//! - `301 URL` or another redirect;
//! - `status N`, with an error page;
//! - `later N SECONDS`: this status, and `Retry-After`;
//! - `reset`: the connection is reset.
//!
//! Of several acts at an address the last to begin counts, then the one that names it whole, then the later line. All
//! other addresses of the hosts answer 404.

use chrono::{DateTime, NaiveDateTime, Utc};

use super::answer::{Answerer, Outcome, Request};
use super::clock::from_micros;
use super::faults::Fault;
use super::text::Append as _;

/// Hosts, and what they answer when.
#[derive(Clone, Debug, Default)]
pub struct Town {
    acts: Vec<Act>,
}

#[derive(Clone, Debug)]
struct Act {
    /// Microseconds since 1970.
    from: i64,
    /// The same, past the end.
    until: i64,
    /// Host, path and query, or their beginning.
    at: String,
    is_beginning: bool,
    says: Says,
}

/// What an address answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Says {
    /// A file with status 200.
    File {
        /// Value of `Content-Type`.
        media_type: &'static str,
        /// The bytes.
        body: Vec<u8>,
    },
    /// A redirect.
    Moved {
        /// The status, such as 301.
        status: u16,
        /// Value of `Location`.
        to: String,
    },
    /// An error page with this status.
    Status(u16),
    /// An error page that asks clients to come back.
    Later {
        /// The status, such as 503.
        status: u16,
        /// Value of `Retry-After`.
        seconds: u64,
    },
    /// No answer: the connection is reset.
    Reset,
}

/// A line of a script that is no act.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the town's script is no act: {text}")]
pub struct TownError {
    line: usize,
    text: String,
}

impl Town {
    /// Reads a script.
    ///
    /// # Errors
    /// A line is not an act.
    pub fn read(script: &str) -> Result<Self, TownError> {
        let is_act = |line: &&str| !line.is_empty() && !line.starts_with('#');
        let lines = script.lines().map(str::trim).enumerate().filter(|(_, line)| is_act(line));
        let acts = lines.map(|(index, line)| {
            act(line).ok_or_else(|| TownError { line: index + 1, text: line.to_owned() })
        });
        Ok(Self { acts: acts.collect::<Result<_, _>>()? })
    }

    /// Returns the addresses that acts name whole, with `http://`, in the order of the script, without duplicates.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        let mut urls: Vec<String> = Vec::new();
        for act in self.acts.iter().filter(|act| !act.is_beginning) {
            let url = format!("http://{}", act.at);
            if !urls.contains(&url) {
                urls.push(url);
            }
        }
        urls
    }

    /// Returns when the first act at an address begins.
    #[must_use]
    pub fn since(&self, url: &str) -> Option<DateTime<Utc>> {
        let at = url.strip_prefix("http://")?;
        let first = self.acts.iter().filter(|act| act.is_at(at)).map(|act| act.from).min()?;
        Some(from_micros(first))
    }

    /// Returns what an address answers at a time; `None` if it is on no host of the town.
    #[must_use]
    pub fn says(&self, url: &str, time: DateTime<Utc>) -> Option<Says> {
        let rest = url.strip_prefix("http://")?;
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        self.find(host, if path.is_empty() { "/" } else { path }, time.timestamp_micros())
            .map(|(_, says)| says)
    }

    /// Returns when the current act began, and what the address answers.
    fn find(&self, host: &str, path: &str, now: i64) -> Option<(i64, Says)> {
        let is_on = |act: &&Act| act.at.split('/').next() == Some(host);
        self.acts.iter().find(is_on)?;
        let at = format!("{host}{path}");
        let here = self.acts.iter().filter(|act| (act.from..act.until).contains(&now) && act.is_at(&at));
        let Some(act) = here.max_by_key(|act| (act.from, !act.is_beginning)) else {
            return Some((0, Says::Status(404)));
        };
        Some((act.from, act.says.with_rest(&at[act.at.len()..])))
    }

    /// Answers a request if it is for a host of the town.
    pub(super) fn answer(&self, answerer: &mut Answerer, request: &Request<'_>, now: i64) -> Option<Outcome> {
        if self.acts.is_empty() {
            return None;
        }
        let host = std::str::from_utf8(request.host).ok()?.to_ascii_lowercase();
        let (since, says) = self.find(&host, std::str::from_utf8(request.path).ok()?, now)?;
        match says {
            Says::File { media_type, body } => {
                answerer.put_type(media_type);
                // As on many sites, files have validators and pages have none.
                if !media_type.starts_with("text/html") {
                    let tag = format!("\"{since:x}\"");
                    answerer.head.put(&format!("ETag: {tag}\r\n"));
                    if request.if_none_match == Some(tag.as_bytes()) {
                        answerer.status = 304;
                        return Some(Outcome::Ready);
                    }
                }
                answerer.body = body;
            }
            Says::Moved { status, to } => {
                answerer.status = status;
                answerer.head.put(&format!("Location: {to}\r\n"));
            }
            Says::Status(status) => answerer.fail(status, "There is nothing here"),
            Says::Later { status, seconds } => {
                answerer.fail(status, "Come back later");
                answerer.head.put(&format!("Retry-After: {seconds}\r\n"));
            }
            Says::Reset => return Some(Outcome::Fault(Fault::reset())),
        }
        Some(Outcome::Ready)
    }
}

impl Act {
    fn is_at(&self, at: &str) -> bool {
        if self.is_beginning { at.starts_with(&self.at) } else { at == self.at }
    }
}

impl Says {
    /// Returns this with what follows the act's address put in its place.
    fn with_rest(&self, rest: &str) -> Self {
        match self {
            Self::Moved { status, to } => Self::Moved { status: *status, to: to.replace("{rest}", rest) },
            Self::File { media_type, body } => match std::str::from_utf8(body) {
                Ok(text) => Self::File { media_type, body: text.replace("{rest}", rest).into_bytes() },
                Err(_) => self.clone(),
            },
            _ => self.clone(),
        }
    }
}

fn act(line: &str) -> Option<Act> {
    let (when, rest) = line.split_once(char::is_whitespace)?;
    let (at, what) = rest.trim_start().split_once(char::is_whitespace)?;
    let (from, until) = match when.split_once("..") {
        Some((from, until)) => (instant(from)?, instant(until)?),
        None => (instant(when)?, i64::MAX),
    };
    let (at, is_beginning) = at.strip_suffix('*').map_or((at, false), |at| (at, true));
    at.contains('/').then_some(())?;
    Some(Act { from, until, at: at.to_owned(), is_beginning, says: says(what.trim())? })
}

/// Parses a time, or a beginning of one, in microseconds since 1970.
fn instant(text: &str) -> Option<i64> {
    const WHOLE: &str = "0000-01-01T00:00:00";
    let text = format!("{text}{}", WHOLE.get(text.len()..)?);
    let time = NaiveDateTime::parse_from_str(&text, "%Y-%m-%dT%H:%M:%S").ok()?;
    Some(time.and_utc().timestamp_micros())
}

fn says(what: &str) -> Option<Says> {
    let (word, rest) = what.split_once(' ').unwrap_or((what, ""));
    let file = |media_type, body: Vec<u8>| Some(Says::File { media_type, body });
    let text = || rest.replace("\\n", "\n").into_bytes();
    match word {
        "page" => file("text/html; charset=utf-8", format!("<!doctype html>{rest}").into_bytes()),
        "style" => file("text/css", text()),
        "script" => file("text/javascript", text()),
        "plain" => file("text/plain", text()),
        "picture" => file("image/bmp", picture(rest.parse().ok()?)),
        "reset" => Some(Says::Reset),
        "status" => Some(Says::Status(rest.parse().ok()?)),
        "later" => {
            let (status, seconds) = rest.split_once(' ')?;
            Some(Says::Later { status: status.parse().ok()?, seconds: seconds.parse().ok()? })
        }
        _ => Some(Says::Moved { status: word.parse().ok()?, to: rest.to_owned() }),
    }
}

/// Returns a picture in one line, this many pixels wide (a bitmap of 24 bits a pixel).
fn picture(width: u8) -> Vec<u8> {
    const HEADS: u32 = 14 + 40;
    let row = (u32::from(width) * 3).next_multiple_of(4);
    let mut bytes = b"BM".to_vec();
    for number in [HEADS + row, 0, HEADS, 40, u32::from(width), 1, 1 | 24 << 16, 0, row, 0, 0, 0, 0] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.resize((HEADS + row) as usize, 0x99);
    bytes
}
