//! Replay of captures in a browser (`/web/`), and the interfaces for other programs: Memento (RFC 7089: `/timegate/`,
//! `/timemap/`), the CDX server (`/cdx`), and records (`/warc/`).
//!
//! These are plain functions from a request to a response: nothing here listens on a socket, and nothing is fetched.
//!
//! # Invariants
//! * Nothing that an archived page names is asked of the live web.
//! * What access rules hide is answered in the same words as what is missing.
//! * A record is read as far as it is asked for, and none of it is kept.
//!
//! ```
//! let (site, captures) = archive_replay::site_asked("/web/2026/https://www.example.org/a")?;
//! assert_eq!((site.as_deref(), captures), (Some("example.org"), None));
//! # Ok::<(), String>(())
//! ```

mod address;
mod cdx;
mod fields;
mod joined;
mod long;
mod mementos;
mod pages;
mod policy;
mod ranges;
mod records;
mod rewrite;
mod show;
mod timegate;
mod timemap;

use archive_base::access::Access;
use archive_base::texts::Language;
use archive_storage::address::{host_key, site_of};
use archive_storage::segment::SegmentError;
use archive_storage::warc::SentRequest;
use archive_storage::{StateError, Store, StoreError};
use bytes::Bytes;
use url::Url;

use self::address::{Modifier, ReplayTarget, When, requested_url};
pub use self::cdx::{ROWS_MAX, Values, asks_for_many, merged, sent};
pub use self::long::Long;
use self::mementos::{Mementos, is_spelled_alike};
use self::ranges::RangeAsked;

/// Maximum length of a request's path and query in bytes; longer ones are refused.
pub const PATH_BYTES_MAX: usize = 16 << 10;

/// Name of the field with a policy.
const POLICY: &str = "Content-Security-Policy";

/// The [`Request::destination`] of a page that the worker requests for a browser: for a window or a frame, which it does
/// not say.
pub const NAVIGATED: &str = "navigated";

/// A request to the replay origin.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// Path and query as received.
    pub path: &'a str,
    /// Method and body, unless the method is `GET` or `HEAD`.
    pub sent: SentRequest<'a>,
    /// `Accept-Datetime`.
    pub accept_datetime: Option<&'a str>,
    /// `Range`.
    pub range: Option<&'a str>,
    /// `Referer`.
    pub referer: Option<&'a str>,
    /// `Sec-Fetch-Dest`: the kind of resource the browser requests; or [`NAVIGATED`].
    pub destination: Option<&'a str>,
    /// The replay origin without a trailing slash: `http://127.0.0.1:8071`.
    pub base: &'a str,
    /// The origin of the application, which has a page for each URL and may frame replayed pages.
    pub application: &'a str,
    /// The language of the banner and of pages that are not archived.
    pub language: Language,
    /// TimeGates of other archives, to which pages for missing captures link; the URL is appended to each.
    pub timegates: &'a [String],
}

/// A response.
#[derive(Debug)]
pub struct Response {
    /// HTTP status.
    pub status: u16,
    /// Names and values; the server adds lengths and dates. No value contains a control character.
    pub headers: Vec<(String, String)>,
    /// The body, or the beginning of a long one.
    pub body: Bytes,
    /// A body that is too long for memory.
    pub long: Option<Long>,
}

/// Why a request cannot be answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Records cannot be read or compressed.
    #[error(transparent)]
    Segment(#[from] SegmentError),
}

impl archive_base::error::Classified for ReplayError {}

impl From<StateError> for ReplayError {
    fn from(error: StateError) -> Self {
        Self::Store(error.into())
    }
}

impl Response {
    pub(crate) fn new(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Bytes::new(), long: None }
    }

    fn text(status: u16, media_type: &str, body: impl Into<Bytes>) -> Self {
        let mut response = Self::new(status);
        response.set("Content-Type", media_type);
        response.body = body.into();
        response
    }

    fn redirect(location: &str) -> Self {
        let mut response = Self::new(302);
        response.set("Location", &address::uri(location));
        response
    }

    /// The value of a header field.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Length of the body in bytes; `None` if only reading it would tell.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        self.long.as_ref().map_or(Some(self.body.len() as u64), Long::length)
    }

    /// Leaves `count` bytes of the body from `first` on; it must have them.
    fn cut(&mut self, first: u64, count: u64) -> Result<(), SegmentError> {
        match &mut self.long {
            Some(long) => long.cut(first, count)?,
            None => self.body = self.body.slice(first as usize..(first + count) as usize),
        }
        Ok(())
    }

    fn set(&mut self, name: &str, value: &str) {
        self.headers.retain(|(found, _)| !found.eq_ignore_ascii_case(name));
        self.add(name, value);
    }

    fn add(&mut self, name: &str, value: &str) {
        self.headers.push((name.to_owned(), value.to_owned()));
    }
}

/// A request together with the archive.
#[derive(Clone, Copy)]
struct ReplayRequest<'a> {
    store: &'a Store,
    access: &'a Access,
    request: &'a Request<'a>,
}

/// Something that is asked for under one path, or under all below one (`/*`).
#[derive(Debug)]
pub struct ReplayRoute {
    /// The path.
    pub path: &'static str,
    /// Takes what follows the start of the path, or its query.
    answer: fn(&ReplayRequest<'_>, &str) -> Result<Response, ReplayError>,
}

/// What the replay answers.
pub const ROUTES: &[ReplayRoute] = &[
    ReplayRoute { path: "/web/*", answer: |asked, rest| asked.replay(rest) },
    ReplayRoute { path: "/timegate/*", answer: |asked, rest| asked.timegate(&requested_url(rest)) },
    ReplayRoute { path: "/timemap/*", answer: |asked, rest| asked.timemap(rest) },
    ReplayRoute { path: "/warc/*", answer: |asked, rest| asked.records(rest) },
    ReplayRoute { path: "/cdx", answer: |asked, query| asked.cdx(query) },
    ReplayRoute { path: "/static/replay.js", answer: |_, _| Ok(script(include_str!("static/replay.js"))) },
    ReplayRoute {
        path: "/static/worker.js",
        answer: |_, _| {
            let mut response = script(include_str!("static/worker.js"));
            response.set("Service-Worker-Allowed", "/web/");
            Ok(response)
        },
    },
    ReplayRoute { path: "/", answer: |asked, _| Ok(asked.start()) },
];

/// Answers a request from an archive, within the limits of `access`.
///
/// # Errors
/// When the archive cannot be read. A missing capture or a malformed request results in a response.
pub fn answer(store: &Store, access: &Access, request: &Request<'_>) -> Result<Response, ReplayError> {
    let asked = ReplayRequest { store, access, request };
    let mut response = if request.path.len() > PATH_BYTES_MAX {
        asked.problem(414, "This address is too long.")
    } else {
        asked.route()?
    };
    // The language affects only the banner of mementos, and these are revalidated each time.
    let is_own = response.get("Memento-Datetime").is_none();
    let is_own_page =
        is_own && response.get("Content-Type").is_some_and(|stated| stated.starts_with("text/html"));
    if is_own_page {
        response.add("Vary", "Accept-Language");
    }
    if response.get(POLICY).is_none() {
        let of_answer = || show::kind_of(response.get("Content-Type").unwrap_or_default(), &response.body);
        let kind = if is_own_page { policy::ResponseKind::Own } else { of_answer() };
        response.set(POLICY, &policy::of_answer(request.application, kind, !asked.is_among_pages()));
    }
    // Pages of our own lead to other archives.
    if !is_own || request.path.starts_with("/static/") {
        response.set("Connection-Allowlist", &policy::connections(request.application));
    }
    response.set("Referrer-Policy", "same-origin");
    response.set("X-DNS-Prefetch-Control", "off");
    if response.get("Cache-Control").is_none() {
        // Access rules take effect immediately, and a later capture may be nearer.
        response.set("Cache-Control", "no-cache");
    }
    Ok(response)
}

/// The site of the URL in a path, and the capture query if it may cover several sites; no site if the path has no URL.
///
/// # Errors
/// The mistake in a capture query.
pub fn site_asked(path: &str) -> Result<(Option<String>, Option<&str>), String> {
    let url = if let Some(rest) = path.strip_prefix("/web/") {
        ReplayTarget::parse(rest).url
    } else if let Some(rest) = path.strip_prefix("/timegate/") {
        requested_url(rest)
    } else if let Some(rest) = path.strip_prefix("/timemap/") {
        requested_url(timemap::named(rest).2)
    } else if let Some(query) = path.strip_prefix("/cdx?") {
        let (host, is_range) = cdx::host_asked(query)?;
        return Ok((Some(site_of(&host).to_owned()), is_range.then_some(query)));
    } else {
        return Ok((None, None));
    };
    Ok((Url::parse(&url).ok().map(|url| site_of(&host_key(&url)).to_owned()), None))
}

impl ReplayRequest<'_> {
    /// Whether the response is for a window of its own, or for a frame of a replayed page.
    fn is_among_pages(&self) -> bool {
        let from = self.request.referer.and_then(|referer| referer.strip_prefix(self.request.base));
        self.request.destination == Some("document") || from.is_some_and(|path| path.starts_with("/web/"))
    }

    fn route(&self) -> Result<Response, ReplayError> {
        let path = self.request.path;
        let (bare, query) = path.split_once('?').unwrap_or((path, ""));
        // A page's own worker would intercept requests for its captures.
        if self.request.destination == Some("serviceworker") && bare != "/static/worker.js" {
            return Ok(self.problem(404, "There are no workers here but the replay's own."));
        }
        let found = ROUTES.iter().find_map(|route| match route.path.strip_suffix('*') {
            Some(start) => Some((route, path.strip_prefix(start)?)),
            None => (bare == route.path).then_some((route, query)),
        });
        found.map_or_else(|| Ok(self.strayed()), |(route, rest)| (route.answer)(self, rest))
    }

    /// `/web/…`
    fn replay(&self, rest: &str) -> Result<Response, ReplayError> {
        let target = ReplayTarget::parse(rest);
        if target.when == When::All {
            return Ok(self.list(&target.url));
        }
        let sent = self.request.sent;
        if target.when == When::Newest && self.request.accept_datetime.is_some() && sent.is_get() {
            return self.timegate(&target.url);
        }
        let mut found = Mementos::of(self.store, self.access, &sent.page(&target.url))?;
        // What a page requests may have been captured with another number against caches, or another callback.
        let is_exact = target.modifier.is_document() || target.modifier == Modifier::Identity;
        if !is_exact || !sent.is_get() {
            found.widen_to_like(self.store, self.access)?;
        }
        let range = self.request.range.and_then(RangeAsked::parse);
        let Some(place) = found.choose(self.store, self.access, target.when, range)? else {
            return self.missing(&target, found);
        };
        let memento = &found.list[place];
        if target.modifier.is_document() && sent.is_get() {
            let stamp = address::stamp(memento.capture.time);
            let is_exact = matches!(target.when, When::Second(time) if address::stamp(time) == stamp);
            // No redirect if only the spelling differs: the client may change it again.
            if !is_exact || !is_spelled_alike(found.url(memento), &target.url) {
                let query = if target.has_empty_query { "?" } else { "" };
                return Ok(Response::redirect(&(found.path(memento, target.modifier.as_str()) + query)));
            }
        }
        let mut response = self.show(&found, place, target.modifier)?;
        if let When::Second(time) | When::Near(time) = target.when {
            // The banner reports how far apart in time the parts of a page are: its script reads this value for each
            // part.
            let apart = memento.capture.time.abs_diff(time) / 1_000_000;
            response.set("Server-Timing", &format!("apart;dur={}", apart * 1000));
        }
        Ok(response)
    }

    /// `/web/*/<url>`
    fn list(&self, url: &str) -> Response {
        let query = url::form_urlencoded::Serializer::new(String::new()).append_pair("url", url).finish();
        Response::redirect(&format!("{}/page?{query}", self.request.application))
    }

    /// Redirects a root-relative request that a page makes before the worker controls it; the referring page determines
    /// the target.
    fn strayed(&self) -> Response {
        let from = self.request.referer.and_then(|referer| {
            let rest = referer.strip_prefix(self.request.base)?.strip_prefix("/web/")?;
            let (first, url) = rest.split_once('/')?;
            let stamp: String = first.chars().take_while(char::is_ascii_digit).collect();
            Some((stamp, Url::parse(&requested_url(url)).ok()?))
        });
        let target = from.and_then(|(stamp, page)| {
            let is_page = matches!(self.request.destination, Some("document"));
            let modifier = if is_page { Modifier::Page } else { Modifier::Main };
            Some(format!("/web/{stamp}{}/{}", modifier.as_str(), page.join(self.request.path).ok()?))
        });
        match target {
            Some(target) => Response::redirect(&target),
            None => self.problem(404, "There is nothing at this address."),
        }
    }
}

fn script(text: &'static str) -> Response {
    Response::text(200, "text/javascript; charset=utf-8", text.as_bytes())
}
