//! The pages of the application: each is data, shown as HTML, or as JSON to whoever asks for that.

mod captured;
mod compare;
mod picture;
mod pictures;
mod query;
mod reading;
mod review;
mod runs;
mod search;
mod site;
mod start;

use bytes::Bytes;
use chrono::{DateTime, Local, SecondsFormat, Utc};
use maud::{DOCTYPE, Markup, html};
use serde::Serialize;
use url::form_urlencoded;

use super::Review;
use super::opened::Opened;
use crate::query::RowsError;
use crate::selection::utc;

const STYLE: &str = include_str!("style.css");

/// Longest path and query of a request.
const PATH_BYTES_MAX: usize = 16 << 10;

/// A request.
pub(super) struct Asked<'a> {
    path: &'a str,
    /// Bytes of its path and query.
    length: usize,
    parameters: Vec<(String, String)>,
    wants_json: bool,
    opened: &'a Opened,
    /// The origin of the replay.
    replay: &'a str,
    review: Option<&'a Review>,
    /// Who asks, as the web server before this one says.
    user: Option<&'a str>,
    /// What was sent with a form, if one was sent.
    form: Option<Vec<(String, String)>>,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Bytes,
}

/// Why there is no page.
enum Problem {
    /// There is nothing of that name.
    Missing(String),
    /// The question is wrong.
    Wrong(String),
    /// Whoever asks may not.
    Refused(String),
    /// Something failed.
    Failed(String),
}

impl Problem {
    /// An error of rows.
    fn of(error: &RowsError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl<E: std::error::Error> From<E> for Problem {
    fn from(error: E) -> Self {
        Self::Failed(error.to_string())
    }
}

impl<'a> Asked<'a> {
    pub(super) fn new(path: &'a str, accept: Option<&str>, opened: &'a Opened, replay: &'a str) -> Self {
        let length = path.len();
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let parameters: Vec<(String, String)> =
            form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let format = parameters.iter().find(|(name, _)| name == "format").map(|(_, value)| value.as_str());
        let wants_json = match format {
            Some(format) => format == "json",
            None => wants_json(accept),
        };
        Self { path, length, parameters, wants_json, opened, replay, review: None, user: None, form: None }
    }

    /// The same where people may decide, with who asks and what was sent with a form.
    pub(super) fn reviewed(
        mut self,
        review: Option<&'a Review>,
        user: Option<&'a str>,
        form: Option<&[u8]>,
    ) -> Self {
        (self.review, self.user) = (review, user);
        self.form = form.map(|form| form_urlencoded::parse(form).into_owned().collect());
        self
    }

    /// A parameter; empty where it was not given.
    fn parameter(&self, name: &str) -> &str {
        self.parameters.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.trim())
    }

    /// A page, or its data.
    fn reply(&self, title: &str, data: &impl Serialize, content: impl FnOnce() -> Markup) -> Reply {
        if !self.wants_json {
            let words = if self.path == "/search" { self.parameter("q") } else { "" };
            return Reply::of(
                200,
                "text/html; charset=utf-8",
                layout(title, words, self.review.is_some(), &content()).into_string(),
            );
        }
        match serde_json::to_vec(data) {
            Ok(mut json) => {
                json.push(b'\n');
                Reply::of(200, "application/json", json)
            }
            Err(error) => Reply::problem(500, &error.to_string()),
        }
    }

    /// Where a capture is replayed.
    fn replayed(&self, url: &str, time: Option<DateTime<Utc>>) -> String {
        let time = time.map_or("2".to_owned(), |time| time.format("%Y%m%d%H%M%S").to_string());
        format!("{}/web/{time}/{url}", self.replay)
    }
}

impl Reply {
    fn of(status: u16, kind: &str, body: impl Into<Bytes>) -> Self {
        let headers =
            vec![("Content-Type".to_owned(), kind.to_owned()), ("Vary".to_owned(), "Accept".to_owned())];
        Self { status, headers, body: body.into() }
    }

    /// The head of an answer that goes on.
    pub(super) fn events() -> Self {
        Self::of(200, "text/event-stream", "")
    }

    /// The same with what a page needs that has a script; `frames` is the origin of what it may have in frames.
    fn with_script(mut self, frames: Option<&str>) -> Self {
        let frames = frames.unwrap_or("'none'");
        let policy = format!(
            "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; \
             form-action 'self'; frame-src {frames}; base-uri 'none'; frame-ancestors 'none'"
        );
        self.headers.push(("Content-Security-Policy".to_owned(), policy));
        self
    }

    fn html(status: u16, title: &str, words: &str, content: &Markup) -> Self {
        Self::of(status, "text/html; charset=utf-8", layout(title, words, false, content).into_string())
    }

    /// A page that says why there is no other.
    pub(super) fn problem(status: u16, what: &str) -> Self {
        Self::html(status, "No page", "", &html! { h1 { "No page" } p { (what) } })
    }

    /// The same, or as data to whoever asks for that.
    pub(super) fn refusal(status: u16, what: &str, wants_json: bool) -> Self {
        if !wants_json {
            return Self::problem(status, what);
        }
        let error = serde_json::json!({ "error": what });
        Self::of(status, "application/json", error.to_string() + "\n")
    }
}

/// The answer to a request.
pub(super) fn answer(asked: &Asked<'_>) -> Reply {
    if asked.length > PATH_BYTES_MAX {
        return Reply::problem(414, "This address is too long.");
    }
    let reply = match asked.path {
        "/review" if asked.review.is_some() => review::list(asked),
        "/review/scores" if asked.review.is_some() => review::scores(asked),
        "/review/site" if asked.review.is_some() => review::site(asked),
        "/review/decide" if asked.form.is_some() => review::decide(asked),
        "/review.js" if asked.review.is_some() => Ok(Reply::of(200, "text/javascript", review::SCRIPT)),
        _ if asked.form.is_some() => Err(Problem::Wrong("Nothing can be sent to this address.".to_owned())),
        "/" => start::page(asked),
        "/search" => search::page(asked),
        "/query" => query::page(asked),
        "/page" => captured::page(asked),
        "/site" => site::page(asked),
        "/compare" => compare::page(asked),
        "/read" => reading::page(asked),
        "/pictures" => pictures::page(asked),
        "/runs" => runs::list(asked),
        "/runs.js" => Ok(Reply::of(200, "text/javascript", runs::SCRIPT)),
        "/style.css" => Ok(Reply::of(200, "text/css", STYLE)),
        "/opensearch.xml" => Ok(Reply::of(200, "application/opensearchdescription+xml", search::DESCRIPTION)),
        "/health" => Ok(Reply::of(200, "text/plain", "ok\n")),
        "/metrics" => start::metrics(asked),
        path => match told_run(path) {
            Some(which) => runs::one(asked, which),
            None => Err(Problem::Missing("There is no such page here.".to_owned())),
        },
    };
    let problem = match reply {
        Ok(reply) => return reply,
        Err(problem) => problem,
    };
    let (status, what) = match &problem {
        Problem::Missing(what) => (404, what),
        Problem::Wrong(what) => (400, what),
        Problem::Refused(what) => (403, what),
        Problem::Failed(what) => (500, what),
    };
    Reply::refusal(status, what, asked.wants_json)
}

/// Whether an `Accept` field asks for JSON first.
pub(super) fn wants_json(accept: Option<&str>) -> bool {
    accept.is_some_and(|accept| {
        accept.split(',').next().is_some_and(|first| first.trim().starts_with("application/json"))
    })
}

pub(super) use runs::{Which, told, told_run};

fn layout(title: &str, words: &str, reviews: bool, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " – archive" }
                link rel="stylesheet" href="/style.css";
                link rel="search" type="application/opensearchdescription+xml" href="/opensearch.xml" title="archive";
            }
            body {
                a .skip href="#content" { "Skip to content" }
                header {
                    nav aria-label="Main" {
                        a .home href="/" { "archive" }
                        a href="/query" { "Query" }
                        a href="/runs" { "Runs" }
                        a href="/pictures" { "Pictures" }
                        @if reviews { a href="/review" { "Review" } }
                    }
                    form role="search" action="/search" {
                        label .unseen for="q" { "Words to search for" }
                        input #q name="q" type="search" value=(words) placeholder="Words, or a URL";
                        button { "Search" }
                    }
                }
                main #content { (content) }
            }
        }
    }
}

/// A count with its digits in groups.
fn count(number: u64) -> String {
    indicatif::HumanCount(number).to_string()
}

/// A time for people, in the zone of the server.
fn moment(time: Option<DateTime<Utc>>) -> Markup {
    html! {
        @if let Some(time) = time {
            time datetime=(time.to_rfc3339_opts(SecondsFormat::Secs, true)) {
                (time.with_timezone(&Local).format("%Y-%m-%d %H:%M"))
            }
        } @else { "–" }
    }
}

/// The address of what the archive knows of a URL.
fn page_of(url: &str) -> String {
    address("/page", &[("url", url)])
}

/// The address of what it knows of a site.
fn site_of(name: &str) -> String {
    address("/site", &[("name", name)])
}

/// An address of the application.
fn address(path: &str, parameters: &[(&str, &str)]) -> String {
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}
