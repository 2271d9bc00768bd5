//! HTTP: connections, limits for requests, and header fields of all responses.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use archive_books::ledger::names_this_machine;
use archive_storage::warc::SentRequest;
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::header::{HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;

use super::addresses::with_port;
use super::ask;
use super::bodies::{self, SentBody as Body, Shares};
use super::clients::{Client, Watched};
use super::events;
use super::gate;
use super::lanes::LaneKind;
use super::long_heads::LongHeads;
use super::page::{self, PageRequest as Page, Reply, Speech};
use super::people::{AuditKind, Event, Who};
use super::pings::{self, Pings};
use super::{OpenError, Served, ServerState};

/// Time limit for receiving the head of a request, and for an idle connection.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);

/// Maximum size of the head of a request in bytes, and maximum number of its fields.
const HEAD_BYTES_MAX: usize = 32 << 10;
const FIELDS_MAX: usize = 100;

/// Maximum size of a submitted form in bytes.
const FORM_BYTES_MAX: usize = 32 << 10;

/// Maximum size of the body of a request to replay, in bytes. Requests are told apart by their bodies.
const REPLAYED_BYTES_MAX: usize = 1 << 20;

/// Time limit for an answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// When to try again what there was no room for, in seconds.
const RETRY_SECONDS: &str = "10";

/// Pause after a listener failed, for example because there are too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What the application's pages may load and do: styles of their own, images, forms.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; \
                      base-uri 'none'; frame-ancestors 'none'";

/// The origin that a listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Application,
    Replay,
}

/// Open connections, for a graceful shutdown.
#[derive(Default)]
pub(super) struct Connections(GracefulShutdown);

impl Connections {
    /// Lets requests that have begun finish, within a time limit.
    pub(super) async fn finish(self, time: Duration) {
        // Connections that are still open then are cut off.
        let _ = tokio::time::timeout(time, self.0.shutdown()).await;
    }
}

/// Accepts connections forever.
pub(super) async fn accept(
    listener: &TcpListener,
    origin: Origin,
    shared: &Arc<ServerState>,
    all: &Connections,
) {
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let is_front = shared.place.trusts(peer.ip());
        let Some(place) = shared.limits.clients.admit(peer.ip(), is_front).await else { continue };
        let (shared, client, served) =
            (Arc::clone(shared), Arc::clone(&place.client), Arc::clone(&place.client));
        let stream = LongHeads::new(Watched::new(stream, Arc::clone(&client)));
        let service = service_fn(move |request| {
            answer(request, peer.ip(), origin, Arc::clone(&shared), Arc::clone(&client))
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME_MAX)
            .max_buf_size(HEAD_BYTES_MAX)
            .max_headers(FIELDS_MAX)
            .serve_connection(TokioIo::new(stream), service);
        let connection = all.0.watch(connection);
        let serving = tokio::spawn(async move {
            // There is nothing to do if a client disconnects or does not speak HTTP.
            let _ = connection.await;
            drop(place);
        });
        served.set_task(serving.abort_handle());
    }
}

/// The parts of a request that the answering thread needs.
pub(super) struct ReceivedRequest {
    origin: Origin,
    /// The two origins, as the client knows them.
    application: String,
    pub(super) replay: String,
    pub(super) host: String,
    pub(super) who: Who,
    pub(super) path: String,
    pub(super) speech: Speech,
    pub(super) accept: Option<String>,
    accept_datetime: Option<String>,
    range: Option<String>,
    referer: Option<String>,
    destination: Option<String>,
    /// Method of a request to replay that is not `GET` or `HEAD`, type and data of its body.
    sent: Option<(Method, Option<String>, Bytes)>,
    /// Data of a submitted form.
    pub(super) form: Option<Bytes>,
    /// Request of a program that queries several archives.
    ask: Option<Bytes>,
}

type HttpAnswer = Response<Body>;

async fn answer(
    request: Request<Incoming>,
    peer: IpAddr,
    origin: Origin,
    shared: Arc<ServerState>,
    client: Arc<Client>,
) -> Result<HttpAnswer, Infallible> {
    client.waits(true);
    let answer = answered(request, peer, origin, &shared, &client).await;
    client.waits(false);
    Ok(answer.unwrap_or_else(|reply| response(origin, reply)))
}

/// Answers a request.
///
/// # Errors
/// The reply to a request that is refused or cannot be answered.
async fn answered(
    request: Request<Incoming>,
    peer: IpAddr,
    origin: Origin,
    shared: &Arc<ServerState>,
    client: &Client,
) -> Result<HttpAnswer, Reply> {
    let (head, body) = request.into_parts();
    let field = |name: &str| Some(head.headers.get(name)?.to_str().ok()?.to_owned());
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let t = Speech::of(&path, field("accept-language").as_deref());
    let pings = shared.pings.as_ref().filter(|_| origin == Origin::Application && Pings::takes(&path));
    let takes = shared.review.is_some() || (shared.people.is_some() && gate::takes_form(&path));
    let sends = head.method == Method::POST && origin == Origin::Application && takes;
    let asks = head.method == Method::POST && origin == Origin::Application && path == ask::PATH;
    let asks = asks && shared.archive().is_some();
    let sends = sends && !asks;
    let is_get = matches!(head.method, Method::GET | Method::HEAD);
    let replays = !is_get && origin == Origin::Replay && path.starts_with("/web/");
    if pings.is_none() && !sends && !asks && !replays && !is_get {
        let reply = Reply::problem(405, t, "Only GET and HEAD are understood.");
        return Err(reply.with("Allow", "GET, HEAD"));
    }
    // A web page can point its own host name at this port (DNS rebinding), but then the `Host` field has that name.
    let Some(host) = field("host").filter(|host| names_this_machine(host) || shared.place.is_public(host))
    else {
        let what = "This server answers only under an IP address, localhost, or the name given by --origin.";
        return Err(Reply::problem(421, t, what));
    };
    if let Some(pings) = pings {
        let reply = pings::answer(shared, pings, &head.method, &path, &head.headers, body).await;
        return Ok(response(origin, reply));
    }
    if origin == Origin::Application && path == gate::HEALTH {
        return Ok(response(origin, Reply::of(200, "text/plain", "ok\n")));
    }
    let [application, mut replay] = shared.place.origins(&host);
    if origin == Origin::Replay && shared.place.public.is_none() {
        // Programs find it under any of its names.
        replay = format!("http://{}", with_port(&host, shared.place.replay.port()));
    }
    // Browsers send the origin of every form; forms of other pages are refused.
    if sends && field("origin").as_deref() != Some(&application) {
        let wants_json = page::wants_json(field("accept").as_deref());
        return Err(Reply::refusal(403, t, "This form was sent by another page.", wants_json));
    }
    let (form, unread) = if sends { (Some(form(body, t).await?), None) } else { (None, Some(body)) };
    let request = gate::GateRequest {
        origin,
        head: &head.headers,
        path: &path,
        peer,
        application: &application,
        replay: &replay,
        speech: t,
        form: form.as_ref(),
    };
    let (who, address) = (request.enter(shared).await?, request.address(shared));
    if who.name.is_some() {
        client.mark_known();
    }
    // Request bodies are read only after the client is authenticated, and only as many as are answered concurrently.
    let (mut ask, mut asking, mut sent) = (None, None, None);
    if let Some(body) = unread.filter(|_| asks || replays) {
        asking = Arc::clone(&shared.limits.asking).acquire_owned().await.ok();
        if asks {
            ask = Some(ask::read(&head.headers, body).await?);
        } else {
            let body = read_body(body, REPLAYED_BYTES_MAX, t, "This request is too long.").await?;
            sent = Some((head.method.clone(), field("content-type"), body));
        }
    }
    let received = ReceivedRequest {
        origin,
        ask,
        application,
        replay,
        who,
        form,
        host,
        path,
        speech: t,
        accept: field("accept"),
        accept_datetime: field("accept-datetime"),
        // It means nothing in other requests (RFC 9110, section 14.2).
        range: field("range").filter(|_| head.method == Method::GET),
        referer: field("referer"),
        destination: destination(field("sec-fetch-mode").as_deref(), field("sec-fetch-dest")),
        sent,
    };
    if origin == Origin::Application
        && shared.archive().is_some()
        && head.method == Method::GET
        && received.accept.as_deref().is_some_and(|accept| accept.starts_with("text/event-stream"))
        && let Some(run) = page::run_at(&received.path)
    {
        let events = events::begin(shared, run, t, received.who.role).await?;
        return Ok(response(origin, Reply::events()).map(|_| events));
    }
    let packages = received.is_package().then(|| Arc::clone(&shared.limits.packages).try_acquire_owned());
    let Ok(package) = packages.transpose() else {
        return Err(Reply::problem(503, t, "Other packages are being made. Come back later."));
    };
    let kind = LaneKind::of(origin, &received.path);
    let named = (address != peer).then(|| shared.limits.clients.network(address));
    // A web server in front that names nobody asks for all its clients.
    let own = named.as_ref().or_else(|| (!shared.place.trusts(peer)).then(|| client.network()));
    let own = own.map(|network| &network.places);
    let Some(turn) = shared.limits.lanes.turn(kind, received.who.role, own).await else {
        return Err(busy(t));
    };
    let work = Arc::clone(shared);
    let decides = received.form.is_some().then(|| received.who.name.clone());
    let answering = turn.run(move || received.answer(&work));
    let (outcome, turn) = match tokio::time::timeout(ANSWER_TIME_MAX, answering).await {
        Ok(Some((outcome, turn))) => (outcome, turn),
        Ok(None) => {
            let what = "The answer could not be made; the server's log has more.";
            return Err(Reply::problem(500, t, what));
        }
        Err(_) => {
            return Err(Reply::problem(503, t, "The answer took too long. Narrow the request down."));
        }
    };
    let mut reply = outcome.unwrap_or_else(|error| Reply::failure(503, t, &error.to_string()));
    if let (Some(people), Some(name), true) = (&shared.people, &decides, reply.status < 400) {
        people.record(&Event::of(AuditKind::Decision, name.as_deref()));
    }
    if shared.people.is_some() && origin == Origin::Replay {
        reply.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("cache-control"));
        reply = reply.with("Cache-Control", "private, no-cache");
    }
    let shares = package.into_iter().chain(asking).collect();
    let is_head = head.method == Method::HEAD;
    // Until the answer has its share of the memory, the turn bounds how many there are.
    let response = with_body(shared, origin, reply, is_head, shares).await.ok_or_else(|| busy(t));
    drop(turn);
    response
}

fn busy(t: Speech) -> Reply {
    let what = "There are many requests. Come back later.";
    Reply::problem(503, t, what).with("Retry-After", RETRY_SECONDS)
}

/// The response with its body; `None` if there is no room for that.
async fn with_body(
    shared: &ServerState,
    origin: Origin,
    mut reply: Reply,
    is_head: bool,
    shares: Shares,
) -> Option<HttpAnswer> {
    let sending = &shared.limits.sending;
    let (file, long, whole) = (reply.file.take(), reply.long.take(), std::mem::take(&mut reply.body));
    if let Some(length) = long.as_ref().and_then(archive_replay::Long::length) {
        reply = reply.with("Content-Length", length.to_string());
    }
    let body = match (file, long) {
        (Some(file), _) => sending.file(file, shares),
        // A body that is not sent is not read.
        (_, Some(_)) if is_head => bodies::full(Bytes::new()),
        (_, Some(long)) => {
            let pieces = long.map(|piece| piece.map_err(std::io::Error::other));
            sending.in_pieces(Box::new(pieces)).await?
        }
        (None, None) => sending.whole(whole).await?,
    };
    Some(response(origin, reply).map(|_| body))
}

/// What a browser requests: its worker's requests for pages differ from others only in their mode.
fn destination(mode: Option<&str>, stated: Option<String>) -> Option<String> {
    let is_page = mode == Some("navigate") && stated.as_deref() == Some("empty");
    if is_page { Some(archive_replay::NAVIGATED.to_owned()) } else { stated }
}

/// Reads a form, within its limits.
async fn form(body: Incoming, t: Speech) -> Result<Bytes, Reply> {
    read_body(body, FORM_BYTES_MAX, t, "This form is too long, or was cut off.").await
}

async fn read_body(
    body: Incoming,
    bytes_max: usize,
    t: Speech,
    too_long: &'static str,
) -> Result<Bytes, Reply> {
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(Reply::problem(413, t, too_long));
    }
    let whole = Limited::new(body, bytes_max).collect();
    match tokio::time::timeout(HEAD_TIME_MAX, whole).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(_)) => Err(Reply::problem(413, t, too_long)),
        Err(_) => Err(Reply::problem(408, t, "This form took too long.")),
    }
}

impl ReceivedRequest {
    fn is_package(&self) -> bool {
        self.origin == Origin::Application && page::is_package(&self.path)
    }

    fn answer(&self, shared: &ServerState) -> Result<Reply, OpenError> {
        let request = Page::new(self, shared);
        let archive = match &shared.held {
            Served::Archive(archive) => archive,
            Served::Together(front) => {
                let answer = if self.origin == Origin::Application { page::of_front } else { page::led };
                let mut reply = answer(front, &request);
                if self.sent.is_some() && reply.status == 302 {
                    // The client sends method and body again.
                    reply.status = 307;
                }
                return Ok(reply);
            }
        };
        let opened =
            if self.is_package() || self.ask.is_some() { archive.alone()? } else { archive.open()? };
        let seen = archive.seen(&opened, self.who.role)?;
        match self.origin {
            Origin::Application => Ok(match &self.ask {
                Some(asked) => {
                    ask::answer(&seen, [&self.application, &self.replay], asked, &shared.limits.files)
                }
                None => page::answer(&request.of(&seen)),
            }),
            Origin::Replay => {
                let sent = self.sent.as_ref().map(|(method, content_type, body)| SentRequest {
                    method: method.as_str(),
                    content_type: content_type.as_deref(),
                    body,
                });
                let request = archive_replay::Request {
                    path: &self.path,
                    sent: sent.unwrap_or_default(),
                    accept_datetime: self.accept_datetime.as_deref(),
                    range: self.range.as_deref(),
                    referer: self.referer.as_deref(),
                    destination: self.destination.as_deref(),
                    base: &self.replay,
                    application: &self.application,
                    language: *self.speech,
                    timegates: &shared.timegates,
                };
                Ok(match archive_replay::answer(seen.store, &seen.access, &request) {
                    Ok(response) => Reply::replayed(response),
                    Err(error) => Reply::failure(500, self.speech, &error.to_string()),
                })
            }
        }
    }
}

/// Builds a response with the header fields that every response has.
fn response(origin: Origin, reply: Reply) -> HttpAnswer {
    let mut response = Response::new(bodies::full(reply.body));
    *response.status_mut() = reply.status.try_into().unwrap_or(hyper::StatusCode::INTERNAL_SERVER_ERROR);
    let fields = response.headers_mut();
    for (name, value) in &reply.headers {
        // Invalid header values are dropped; replay has renamed the archived page's own fields.
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            fields.append(name, value);
        }
    }
    let mut set = |name: &'static str, value: &'static str| {
        fields.entry(name).or_insert(HeaderValue::from_static(value));
    };
    // Replayed pages must be displayed as they were: many servers state no type, or a wrong one.
    if origin == Origin::Application {
        set("x-content-type-options", "nosniff");
        set("content-security-policy", POLICY);
        set("referrer-policy", "no-referrer");
        set("x-frame-options", "DENY");
        set("cross-origin-opener-policy", "same-origin");
        set("cross-origin-resource-policy", "same-origin");
        set("cache-control", "no-cache");
    }
    response
}
