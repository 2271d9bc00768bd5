//! Notices from strangers: IndexNow, sitemap pings, WebSub hubs. Enabled by `archive serve --pings`.
//!
//! Nothing is fetched for them. Notices about hosts in the archive, within its scope, are queued on disk for the next
//! run ([`archive_crawl::publish::Notice`]). All others get the same answer, but are dropped and counted, so that nobody learns
//! what the archive holds.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use archive_books::ledger::Credits;
use archive_crawl::publish::subscriptions::{self, Delivered, VerificationRequest};
use archive_crawl::publish::{self, Notice, NoticeError, NoticeKind, NoticeQueued, PublishError, hubs};
use bytes::Bytes;
use chrono::Utc;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::HeaderName;
use hyper::{HeaderMap, Method};
use tokio::sync::Semaphore;
use url::form_urlencoded;

use super::lanes::LaneKind;
use super::opener::ArchiveOpener;
use super::page::Reply;
use super::{PingRules, ServerState};

/// Maximum number of notices within [`SPAN`], per client and in total.
const CLIENT_PINGS_MAX: u32 = 100;
const PINGS_MAX: u32 = 10_000;
/// Number of bytes of a client's name that are significant.
const CLIENT_BYTES_MAX: usize = 64;

const SPAN: Duration = Duration::from_secs(3600);

/// Maximum number of notices processed concurrently; others are refused.
const AT_ONCE_MAX: usize = 4;

/// Maximum size of a notice in bytes: 10 000 URLs of about 400 bytes.
const PING_BYTES_MAX: usize = 4 << 20;

/// Time limit for receiving a notice.
const PING_TIME_MAX: Duration = Duration::from_secs(10);

/// Outcome of a notice.
#[derive(Clone, Copy, Debug)]
enum PingFate {
    /// It is queued for the next run.
    Queued,
    /// It was queued already.
    Waiting,
    /// It is about hosts or pages that are not in this archive.
    Dropped,
    /// It is malformed.
    Wrong,
    /// There were too many notices.
    Refused,
    /// A hub's verification request was answered.
    Answered,
}

/// Names of the outcomes, in the order of [`PingFate`].
const FATES: [&str; 6] = ["queued", "waiting", "dropped", "wrong", "refused", "answered"];

/// Limits for notices, and counters of their outcomes.
#[derive(Debug)]
pub(super) struct Pings {
    /// Header field in which a web server in front names the client; without it all clients count as one.
    client_field: Option<HeaderName>,
    at_once: Arc<Semaphore>,
    span: Mutex<NoticeSpan>,
    counts: [AtomicU64; FATES.len()],
}

/// Number of notices within a time span.
#[derive(Debug)]
struct NoticeSpan {
    began: Instant,
    all: u32,
    clients: HashMap<String, u32>,
}

impl NoticeSpan {
    /// Whether a client may send another notice. At most [`PINGS_MAX`] clients are remembered.
    fn admits(&mut self, client: &str, now: Instant) -> bool {
        if now.saturating_duration_since(self.began) >= SPAN {
            *self = Self { began: now, all: 0, clients: HashMap::new() };
        }
        if self.all >= PINGS_MAX {
            return false;
        }
        let of_client = self.clients.entry(client.to_owned()).or_default();
        if *of_client >= CLIENT_PINGS_MAX {
            return false;
        }
        *of_client += 1;
        self.all += 1;
        true
    }
}

/// Status and text of an answer.
type PingReply = (u16, String);

impl Pings {
    pub(super) fn new(rules: &PingRules) -> Self {
        let client_field = rules.client_header.clone();
        let span = NoticeSpan { began: Instant::now(), all: 0, clients: HashMap::new() };
        let at_once = Arc::new(Semaphore::new(AT_ONCE_MAX));
        Self { client_field, at_once, span: Mutex::new(span), counts: Default::default() }
    }

    /// Whether a path accepts notices.
    pub(super) fn takes(path: &str) -> bool {
        matches!(path.split('?').next(), Some("/indexnow" | "/ping")) || path.starts_with(hubs::CALLBACK)
    }

    /// Number of notices by outcome.
    pub(super) fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        FATES.into_iter().zip(&self.counts).map(|(name, count)| (name, count.load(Ordering::Relaxed)))
    }

    fn count(&self, fate: PingFate) {
        self.counts[fate as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn admits(&self, headers: &HeaderMap) -> bool {
        let client = self.client_field.as_ref().and_then(|field| headers.get(field)?.to_str().ok());
        let mut span = self.span.lock().unwrap_or_else(PoisonError::into_inner);
        // Longer names are cut to the length that an address with a port needs.
        let client = client.map_or("", |client| client.get(..CLIENT_BYTES_MAX).unwrap_or(client));
        span.admits(client, Instant::now())
    }
}

/// Answers a notice.
pub(super) async fn answer(
    shared: &Arc<ServerState>,
    pings: &Pings,
    method: &Method,
    path: &str,
    headers: &HeaderMap,
    body: Incoming,
) -> Reply {
    let is_sent = *method == Method::POST && !path.starts_with("/ping");
    if !is_sent && *method != Method::GET {
        return Reply::plain(405, "Only GET is understood here, and POST of IndexNow and hubs.\n");
    }
    let too_many = || {
        pings.count(PingFate::Refused);
        let reply = Reply::plain(429, "There are too many notices. Come back later.\n");
        reply.with("Retry-After", SPAN.as_secs().to_string())
    };
    let place = Arc::clone(&pings.at_once).try_acquire_owned();
    let Ok(_place) = place.map_err(drop).and_then(|place| pings.admits(headers).then_some(place).ok_or(()))
    else {
        return too_many();
    };
    let body = match is_sent {
        true => match tokio::time::timeout(PING_TIME_MAX, Limited::new(body, PING_BYTES_MAX).collect()).await
        {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(_)) => return Reply::plain(413, "This notice is too long, or was cut off.\n"),
            Err(_) => return Reply::plain(408, "This notice took too long.\n"),
        },
        false => Bytes::new(),
    };
    let Some(turn) = shared.limits.lanes.turn(LaneKind::Page, None, None).await else {
        return Reply::plain(503, "The server is busy. Come back later.\n").with("Retry-After", "60");
    };
    let (work, path) = (Arc::clone(shared), path.to_owned());
    let signature = headers.get("x-hub-signature").and_then(|value| value.to_str().ok().map(str::to_owned));
    let taking = move || {
        let body = is_sent.then_some(&body);
        match (callback(&path), work.archive()) {
            (Some((id, query)), Some(archive)) => take_of_hub(archive, id, query, body, signature.as_deref()),
            (None, Some(archive)) => take(archive, &path, body),
            // Several archives as one accept no notices.
            (_, None) => not_kept(),
        }
    };
    let taken = turn.run(taking).await.map(|(taken, _)| taken);
    let (fate, (status, said)) =
        taken.unwrap_or((PingFate::Refused, (500, "The notice could not be taken.\n".to_owned())));
    if status == 429 {
        return too_many();
    }
    pings.count(fate);
    Reply::plain(status, &said)
}

/// The identifier and the query in a callback URL.
fn callback(path: &str) -> Option<(&str, &str)> {
    let rest = path.strip_prefix(hubs::CALLBACK)?;
    Some(rest.split_once('?').unwrap_or((rest, "")))
}

/// Reads a notice, and queues it if it concerns this archive.
fn take(archive: &ArchiveOpener, path: &str, body: Option<&Bytes>) -> (PingFate, PingReply) {
    match read(path, body) {
        Ok(notice) => keep(archive, notice),
        Err((status, said)) => (PingFate::Wrong, (status, said + "\n")),
    }
}

/// Answers a hub's verification request, or accepts its delivery. Deliveries without a valid signature get the same
/// answer as valid ones.
fn take_of_hub(
    of: &ArchiveOpener,
    id: &str,
    query: &str,
    body: Option<&Bytes>,
    signature: Option<&str>,
) -> (PingFate, PingReply) {
    let (archive, now) = (of.path(), Utc::now());
    let Some(body) = body else {
        let fields: HashMap<_, _> = form_urlencoded::parse(query.as_bytes()).collect();
        let field = |name: &str| fields.get(name).map_or("", AsRef::as_ref);
        let lease_seconds = field("hub.lease_seconds").parse().ok();
        let (mode, topic, challenge) = (field("hub.mode"), field("hub.topic"), field("hub.challenge"));
        let question = VerificationRequest { mode, topic, challenge, lease_seconds };
        return match subscriptions::confirm(archive, id, question, now) {
            Ok(Some(answer)) => (PingFate::Answered, (200, answer)),
            Ok(None) => (PingFate::Wrong, (404, "This was not asked for.\n".to_owned())),
            Err(_) => not_kept(),
        };
    };
    match subscriptions::deliver(archive, id, signature, body, now) {
        Ok(Delivered::Page(page)) => keep(of, Notice::of_hub(page, now)),
        Ok(Delivered::Ignored) => (PingFate::Dropped, accepted()),
        Ok(Delivered::Gone) => (PingFate::Wrong, (410, "There is no such subscription.\n".to_owned())),
        Err(_) => not_kept(),
    }
}

/// Queues a notice if it concerns this archive.
fn keep(archive: &ArchiveOpener, notice: Notice) -> (PingFate, PingReply) {
    match of_this_archive(archive, notice) {
        Ok(Some(notice)) => match publish::enqueue(archive.path(), &notice) {
            Ok(NoticeQueued::New) => (PingFate::Queued, accepted()),
            Ok(NoticeQueued::Waiting) => (PingFate::Waiting, accepted()),
            Err(error @ NoticeError::Full) => (PingFate::Refused, (429, error.to_string() + "\n")),
            Err(_) => not_kept(),
        },
        Ok(None) => (PingFate::Dropped, accepted()),
        Err(error) => (PingFate::Refused, (503, error + "\n")),
    }
}

/// As in IndexNow: received, with the key still to be verified.
fn accepted() -> PingReply {
    (202, "Accepted. The next crawl or refresh will process it.\n".to_owned())
}

fn not_kept() -> (PingFate, PingReply) {
    (PingFate::Refused, (503, "The notice could not be kept. Try again later.\n".to_owned()))
}

fn read(path: &str, body: Option<&Bytes>) -> Result<Notice, PingReply> {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let parameter = |wanted: &str| {
        form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == wanted).map(|(_, value)| value)
    };
    let now = Utc::now();
    if path == "/ping" {
        let notice = parameter("sitemap").and_then(|url| Notice::of_sitemap(&url, now));
        return notice
            .ok_or((400, "Write it like /ping?sitemap=https%3A%2F%2Fexample.org%2Fsitemap.xml".to_owned()));
    }
    let notice = match (body, parameter("url"), parameter("key")) {
        (Some(body), ..) => Notice::of_json(body, now),
        (None, Some(url), Some(key)) => {
            Notice::of_parameters(&url, &key, parameter("keyLocation").as_deref(), now)
        }
        _ => return Err((400, "Write it like /indexnow?url=URL&key=KEY, or send JSON.".to_owned())),
    };
    notice.map_err(|error| {
        let is_foreign = matches!(error, PublishError::OtherHost { .. } | PublishError::Key(_));
        (if is_foreign { 422 } else { 400 }, error.to_string())
    })
}

/// The part of a notice that concerns hosts in the archive and is within its scope, if any.
fn of_this_archive(archive: &ArchiveOpener, mut notice: Notice) -> Result<Option<Notice>, String> {
    let opened = archive.open().map_err(|error| error.to_string())?;
    let state = opened.whole().state();
    let credits = Credits::open(state).map_err(|error| error.to_string())?;
    let mut heard = Vec::new();
    for url in notice.urls {
        // A notice from a stranger must not reveal or add anything.
        let is_known = notice.kind == NoticeKind::IndexNow
            || state.find(&url).map_err(|error| error.to_string())?.is_some();
        if is_known && credits.hears_of(state, &url).map_err(|error| error.to_string())? {
            heard.push(url);
        }
    }
    notice.urls = heard;
    Ok(Some(notice).filter(|notice| !notice.urls.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_and_all_clients_have_limits_in_a_span() {
        let began = Instant::now();
        let mut span = NoticeSpan { began, all: 0, clients: HashMap::new() };
        assert!((0..CLIENT_PINGS_MAX).all(|_| span.admits("a", began)));
        assert!(!span.admits("a", began) && span.admits("b", began));
        assert!((CLIENT_PINGS_MAX + 1..PINGS_MAX).all(|number| span.admits(&number.to_string(), began)));
        assert!(!span.admits("c", began));
        assert!(!span.admits("a", began + SPAN - Duration::from_nanos(1)));
        assert!(span.admits("a", began + SPAN));
    }
}
