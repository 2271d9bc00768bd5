//! Pages of the application: each is data, rendered as HTML, or returned as JSON if the client asks for it.

mod captures;
mod compare;
mod early;
mod front;
mod login;
mod package;
mod picture;
mod pictures;
mod query;
mod reading;
mod ready;
mod review;
mod runs;
mod search;
mod settings;
mod site;
mod speech;
mod start;
mod times;
mod trend;
mod watches;

use std::ops::Deref;

use archive_base::texts::Language;
use archive_peers::nodes::Missing;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use maud::{DOCTYPE, Markup, html};
use serde::Serialize;
use url::form_urlencoded;

pub(super) use self::site::SiteView;
pub(super) use self::speech::Speech;
pub(super) use self::start::StartPage;

use archive_ask::query::RowsError;
use archive_base::access::Role;
use archive_choose::utc;

use super::front::Front;
use super::http::ReceivedRequest;
use super::opener::RoleView;
use super::people::Who;
use super::spool::UnsentFile;
use super::{ReviewOptions, ServerState};

const STYLE: &str = include_str!("style.css");

/// Maximum length of a request's path and query in bytes.
const PATH_BYTES_MAX: usize = 16 << 10;

/// A request.
pub(super) struct PageRequest<'a> {
    /// Path and query as received.
    whole: &'a str,
    path: &'a str,
    parameters: Vec<(String, String)>,
    wants_json: bool,
    speech: Speech,
    /// Origin of the replay.
    replay: &'a str,
    /// The name by which the client reaches the server.
    host: &'a str,
    server: &'a ServerState,
    who: &'a Who,
    /// Data of a submitted form, if any.
    form: Option<Vec<(String, String)>>,
}

/// A request to an archive.
pub(super) struct ArchiveRequest<'a> {
    request: PageRequest<'a>,
    opened: &'a RoleView<'a>,
}

impl<'a> Deref for ArchiveRequest<'a> {
    type Target = PageRequest<'a>;

    fn deref(&self) -> &PageRequest<'a> {
        &self.request
    }
}

/// A reply.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Bytes,
    /// A file to send as the body, from its current position to its end.
    pub(super) file: Option<UnsentFile>,
    /// An archived body to send as the body.
    pub(super) long: Option<archive_replay::Long>,
}

/// Why a page cannot be shown.
enum PageProblem {
    /// There is nothing with that name.
    Missing(String),
    /// The request is wrong.
    Wrong(String),
    /// The request is wrong, with a message that is always in English, like all errors of the query language.
    Mistake(String),
    /// The person lacks permission.
    Refused(String),
    /// The archive that could answer is not available.
    Absent(String),
    /// Something failed; the logs have the same message.
    Failed(String),
}

impl PageProblem {
    /// A failure to read rows.
    fn of(error: &RowsError) -> Self {
        Self::Failed(error.to_string())
    }

    /// A text that should be a URL is not valid.
    fn no_url(t: Speech, text: &str) -> Self {
        Self::Wrong(if text.is_empty() {
            t.say("No URL is given: write one in the search box.").to_owned()
        } else {
            t.fill("“{}” is not a URL.", &[&text])
        })
    }

    /// The archive does not know the site, or none was given.
    fn no_site(t: Speech, name: &str) -> Self {
        if name.is_empty() {
            Self::Wrong(t.say("The address names no site.").to_owned())
        } else {
            Self::Missing(t.fill("The archive knows no site “{}”.", &[&name]))
        }
    }

    /// The error page.
    fn reply(&self, asked: &PageRequest<'_>) -> Reply {
        let t = asked.speech;
        let (status, what, is_english) = match self {
            Self::Missing(what) => (404, what, false),
            Self::Wrong(what) => (400, what, false),
            Self::Mistake(what) => (400, what, true),
            Self::Refused(what) => (403, what, false),
            Self::Absent(what) => (503, what, true),
            Self::Failed(what) => (500, what, true),
        };
        if asked.wants_json {
            return Reply::no_data(status, what);
        }
        Reply::no_page(status, t, Some(asked), &html! { p lang=[is_english.then_some("en")] { (what) } })
    }
}

impl<E: std::error::Error> From<E> for PageProblem {
    fn from(error: E) -> Self {
        Self::Failed(error.to_string())
    }
}

impl<'a> PageRequest<'a> {
    /// Reads what a server received.
    pub(super) fn new(received: &'a ReceivedRequest, server: &'a ServerState) -> Self {
        let whole = received.path.as_str();
        let (path, query) = whole.split_once('?').unwrap_or((whole, ""));
        let pairs = |text: &[u8]| form_urlencoded::parse(text).into_owned().collect::<Vec<_>>();
        let parameters = pairs(query.as_bytes());
        let format = parameters.iter().find(|(name, _)| name == "format").map(|(_, value)| value.as_str());
        let wants_json = match format {
            Some(format) => format == "json",
            None => wants_json(received.accept.as_deref()),
        };
        let speech = if wants_json { received.speech.of_data() } else { received.speech };
        let form = received.form.as_deref().map(pairs);
        // A form states the language of its page, which is also used for the reply, even for data.
        let sent = form.iter().flatten().find(|(name, _)| name == speech::PARAMETER);
        let speech = sent.map_or(speech, |(_, tag)| speech.choosing(tag));
        let ReceivedRequest { replay, host, who, .. } = received;
        Self { whole, path, parameters, wants_json, speech, replay, host, server, who, form }
    }

    /// Whether the person has the rights of `role`; without accounts everybody has them.
    fn may(&self, role: Role) -> bool {
        self.who.role.is_none_or(|own| own >= role)
    }

    /// Directs the request to an archive.
    pub(super) fn of(self, opened: &'a RoleView<'a>) -> ArchiveRequest<'a> {
        ArchiveRequest { request: self, opened }
    }

    /// A query parameter; empty if it is missing.
    fn parameter(&self, name: &str) -> &str {
        self.parameters.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.trim())
    }

    /// Renders a page, or its data as JSON.
    fn reply(&self, title: &str, data: &impl Serialize, content: impl FnOnce() -> Markup) -> Reply {
        if !self.wants_json {
            return Reply::html(200, self.speech, title, Some(self), &content());
        }
        match serde_json::to_vec(data) {
            Ok(mut json) => {
                json.push(b'\n');
                Reply::of(200, "application/json", json)
            }
            Err(error) => PageProblem::from(error).reply(self),
        }
    }

    /// Address of this page in another language.
    fn in_language(&self, language: Language) -> String {
        let kept = self.parameters.iter().filter(|(name, _)| name != speech::PARAMETER);
        let kept: Vec<(&str, &str)> = kept.map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.speech.choosing(language.tag()).address(self.path, &kept)
    }

    /// Address of a replayed capture.
    fn replayed(&self, url: &str, time: Option<DateTime<Utc>>) -> String {
        let time = time.map_or("2".to_owned(), |time| time.format("%Y%m%d%H%M%S").to_string());
        format!("{}/web/{time}/{url}", self.replay)
    }
}

impl Reply {
    pub(super) fn of(status: u16, kind: &str, body: impl Into<Bytes>) -> Self {
        let headers = [("Content-Type", kind), ("Vary", "Accept, Accept-Language")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        Self { status, headers, body: body.into(), file: None, long: None }
    }

    /// A response of the replay.
    pub(super) fn replayed(response: archive_replay::Response) -> Self {
        let archive_replay::Response { status, headers, body, long } = response;
        Self { status, headers, body, file: None, long }
    }

    /// A plain-text reply to a program.
    pub(super) fn plain(status: u16, text: &str) -> Self {
        Self::of(status, "text/plain; charset=utf-8", text.to_owned())
    }

    /// Redirects to another address.
    pub(super) fn led_to(place: &str) -> Self {
        Self::of(302, "text/plain", "").with("Location", place)
    }

    /// Adds a header field.
    pub(super) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Adds a header field for each archive that is missing from the reply.
    fn without(mut self, missing: &[Missing]) -> Self {
        let fields = missing.iter().map(|missing| ("Archive-Missing".to_owned(), missing.name.clone()));
        self.headers.extend(fields);
        self
    }

    /// The head of an event stream.
    pub(super) fn events() -> Self {
        Self::of(200, "text/event-stream", "")
    }

    /// Adds the headers for a page with a script; `frames` is the origin that it may show in frames.
    fn with_script(self, frames: Option<&str>) -> Self {
        let frames = frames.unwrap_or("'none'");
        let policy = format!(
            "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; \
             form-action 'self'; frame-src {frames}; base-uri 'none'; frame-ancestors 'none'"
        );
        self.with("Content-Security-Policy", policy)
    }

    fn html(status: u16, t: Speech, title: &str, asked: Option<&PageRequest<'_>>, content: &Markup) -> Self {
        Self::of(status, "text/html; charset=utf-8", layout(t, title, asked, content).into_string())
    }

    /// An error page.
    pub(super) fn problem(status: u16, t: Speech, what: &'static str) -> Self {
        Self::no_page(status, t, None, &html! { p { (t.say(what)) } })
    }

    /// An error page with a message in English.
    pub(super) fn failure(status: u16, t: Speech, error: &str) -> Self {
        Self::no_page(status, t, None, &html! { p lang="en" { (error) } })
    }

    /// An error page, or data if the client asks for it.
    pub(super) fn refusal(status: u16, t: Speech, what: &'static str, wants_json: bool) -> Self {
        if wants_json { Self::no_data(status, what) } else { Self::problem(status, t, what) }
    }

    fn no_page(status: u16, t: Speech, asked: Option<&PageRequest<'_>>, why: &Markup) -> Self {
        let title = if status == 400 { t.say("Not understood") } else { t.say("No page") };
        Self::html(status, t, title, asked, &html! { h1 { (title) } (why) })
    }

    /// An error for a program.
    pub(super) fn no_data(status: u16, what: &str) -> Self {
        let error = serde_json::json!({ "error": what });
        Self::of(status, "application/json", error.to_string() + "\n")
    }
}

/// Something that is asked for under one path, or under all below one (`/*`).
pub(super) struct PageRoute {
    pub(super) path: &'static str,
    /// The least role that sees it.
    pub(super) role: Role,
    /// Parameters that it takes.
    pub(super) takes: &'static [&'static str],
    /// Other values of `format` than that of the page, or endings of the path.
    pub(super) formats: &'static [&'static str],
    is_review: bool,
    answer: fn(&ArchiveRequest<'_>) -> Result<Reply, PageProblem>,
}

impl PageRoute {
    const fn of(
        path: &'static str,
        takes: &'static [&'static str],
        formats: &'static [&'static str],
        answer: fn(&ArchiveRequest<'_>) -> Result<Reply, PageProblem>,
    ) -> Self {
        Self { path, role: Role::Reader, takes, formats, is_review: false, answer }
    }

    const fn for_role(self, role: Role) -> Self {
        Self { role, ..self }
    }

    /// There is one only with `--review`, and it answers forms, too.
    const fn for_review(self) -> Self {
        Self { role: Role::Reviewer, is_review: true, ..self }
    }

    fn is_at(&self, path: &str) -> bool {
        match self.path.strip_suffix('*') {
            Some(start) => path.starts_with(start),
            None => path == self.path,
        }
    }
}

/// What an archive answers; the first route that fits counts.
pub(super) const ROUTES: &[PageRoute] = &[
    PageRoute::of("/review", &["by"], &["json"], review::list).for_review(),
    PageRoute::of("/review/scores", &["by"], &["json"], review::scores).for_review(),
    PageRoute::of("/review/site", &["name", "by"], &["json"], review::site).for_review(),
    PageRoute::of("/review/decide", &[], &[], review::decide).for_review(),
    PageRoute::of("/review.js", &[], &[], |_| Ok(Reply::of(200, "text/javascript", review::SCRIPT)))
        .for_review(),
    PageRoute::of("/", &[], &["json"], start::page),
    PageRoute::of("/search", &["q", "from", "as-of"], &["json"], search::page),
    PageRoute::of("/query", &["q", "ready", "site", "words", "date"], &["json", "csv"], query::page),
    PageRoute::of("/page", &["url", "from"], &["json"], captures::page),
    PageRoute::of("/site", &["name"], &["json"], site::page),
    PageRoute::of("/compare", &["url", "from", "to"], &["json"], compare::page),
    PageRoute::of("/read", &["url", "at"], &["json"], reading::page),
    PageRoute::of("/wacz", &["site", "query"], &[], package::page),
    PageRoute::of("/pictures", &[], &["json"], pictures::page),
    PageRoute::of("/runs", &["before"], &["json"], runs::list).for_role(Role::Operator),
    PageRoute::of("/runs/*", &[], &["json"], runs::at).for_role(Role::Operator),
    PageRoute::of("/runs.js", &[], &[], |_| Ok(Reply::of(200, "text/javascript", runs::SCRIPT)))
        .for_role(Role::Operator),
    PageRoute::of("/settings", &[], &["json"], settings::page).for_role(Role::Operator),
    PageRoute::of("/metrics", &[], &[], start::metrics).for_role(Role::Operator),
    PageRoute::of("/watches", &[], &["json"], watches::list).for_role(Role::Reviewer),
    PageRoute::of("/watches/*", &[], &["json", ".atom"], watches::one).for_role(Role::Reviewer),
    PageRoute::of("/search.js", &[], &[], |asked| everywhere(asked)),
    PageRoute::of("/query.js", &[], &[], |asked| everywhere(asked)),
    PageRoute::of("/style.css", &[], &[], |asked| everywhere(asked)),
    PageRoute::of("/opensearch.xml", &[], &[], |asked| everywhere(asked)),
    PageRoute::of("/health", &[], &[], |asked| everywhere(asked)),
];

/// The role required for a page of the application.
pub(super) fn role_for(path: &str) -> Role {
    ROUTES.iter().find(|route| route.is_at(path)).map_or(Role::Reader, |route| route.role)
}

/// Answers a request to an archive.
pub(super) fn answer(asked: &ArchiveRequest<'_>) -> Reply {
    if asked.whole.len() > PATH_BYTES_MAX {
        return Reply::problem(414, asked.speech, "This address is too long.");
    }
    let is_there =
        |route: &&PageRoute| route.is_at(asked.path) && (!route.is_review || asked.server.review.is_some());
    let reply = match ROUTES.iter().find(is_there) {
        _ if asked.path == "/review/decide" && asked.form.is_none() => everywhere(asked),
        Some(route) if asked.form.is_none() || route.is_review => (route.answer)(asked),
        _ if asked.form.is_some() => {
            Err(PageProblem::Wrong(asked.speech.say("Nothing can be sent to this address.").to_owned()))
        }
        _ => everywhere(asked),
    };
    reply.unwrap_or_else(|problem| problem.reply(asked))
}

/// Answers a request to several archives as one.
pub(super) fn of_front(front: &Front, asked: &PageRequest<'_>) -> Reply {
    if asked.whole.len() > PATH_BYTES_MAX {
        return Reply::problem(414, asked.speech, "This address is too long.");
    }
    let reply = front::page(front, asked).unwrap_or_else(|| everywhere(asked));
    reply.unwrap_or_else(|problem| problem.reply(asked))
}

/// Pages that do not depend on the archive.
fn everywhere(asked: &PageRequest<'_>) -> Result<Reply, PageProblem> {
    Ok(match asked.path {
        "/search.js" => Reply::of(200, "text/javascript", search::SCRIPT),
        "/query.js" => query::script(),
        "/style.css" => Reply::of(200, "text/css", STYLE),
        "/opensearch.xml" => {
            Reply::of(200, "application/opensearchdescription+xml", search::description(asked.speech))
        }
        "/health" => Reply::of(200, "text/plain", "ok\n"),
        _ => return Err(PageProblem::Missing(asked.speech.say("There is no such page here.").to_owned())),
    })
}

/// Whether an `Accept` field lists JSON first.
pub(super) fn wants_json(accept: Option<&str>) -> bool {
    accept.is_some_and(|accept| {
        accept.split(',').next().is_some_and(|first| first.trim().starts_with("application/json"))
    })
}

pub(super) use front::led;
pub(super) use package::is_package;
pub(super) use runs::{Which, report, run_at};

fn layout(t: Speech, title: &str, asked: Option<&PageRequest<'_>>, content: &Markup) -> Markup {
    let words = asked.filter(|asked| asked.path == "/search").map_or("", |asked| asked.parameter("q"));
    let is_front = asked.is_some_and(|asked| asked.server.archive().is_none());
    let operates = !is_front && asked.is_none_or(|asked| asked.may(Role::Operator));
    let reviews = asked.is_some_and(|asked| asked.server.review.is_some() && asked.may(Role::Reviewer));
    let is_member = asked.is_some_and(|asked| asked.who.role.is_some());
    html! {
        (DOCTYPE)
        html lang=(t.tag()) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " – archive" }
                link rel="stylesheet" href="/style.css";
                link rel="search" type="application/opensearchdescription+xml" href=(t.address("/opensearch.xml", &[])) title="archive";
            }
            body {
                a .skip href="#content" { (t.say("Skip to content")) }
                header {
                    nav aria-label=(t.say("Main")) {
                        a .home href=(t.address("/", &[])) { "archive" }
                        a href=(t.address("/query", &[])) { (t.say("Query")) }
                        @if operates { a href=(t.address("/runs", &[])) { (t.say("Runs")) } }
                        @if !is_front { a href=(t.address("/pictures", &[])) { (t.say("Pictures")) } }
                        @if operates { a href=(t.address("/settings", &[])) { (t.say("Settings")) } }
                        @if reviews { a href=(t.address("/review", &[])) { (t.say("Review")) } }
                        @if is_member { a href=(t.address("/logout", &[])) { (t.say("Log out")) } }
                    }
                    form role="search" action="/search" {
                        (t.kept())
                        label .unseen for="q" { (t.say("Words to search for")) }
                        input #q name="q" type="search" value=(words) placeholder=(t.say("Words, or a URL"));
                        button { (t.say("Search")) }
                    }
                }
                main #content { (content) }
                @if let Some(asked) = asked.filter(|asked| asked.form.is_none()) {
                    footer { @for other in Language::EACH.into_iter().filter(|other| *other != *t) {
                        a href=(asked.in_language(other)) lang=(other.tag()) hreflang=(other.tag()) { (other.name()) }
                    } }
                }
            }
        }
    }
}
