//! The thread that holds all sockets, its jobs and their results.

use std::cell::RefCell;
use std::io;
use std::num::NonZeroUsize;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use archive_storage::Clock;
use archive_storage::address::host_key;
use archive_storage::digest::hex;
use archive_storage::warc::HttpHead;
use crossbeam::channel::Sender;
use lru::LruCache;
use rustls::pki_types::CertificateDer;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::time::Instant;
use url::{Position, Url};

use super::connect::{FetchConnector, HttpVersion, Reached};
use super::cookies::{REDACTED, without_values};
use super::digest::Challenge;
use super::doors::Door;
use super::exchange::{Exchange, Failed, exchange};
use super::framing::ResponseHead;
use super::idle::IdleConnections;
use super::{
    AcceptedCertificate, BodyMemory, Compression, ConnectTo, CookieContext, Cookies, Endpoint, FetchError,
    FetchRequest, HttpMessage, Logins, Place, Ways,
};

/// Maximum number of hosts whose challenges are remembered.
const CHALLENGES_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1023);

/// Maximum number of hosts of which is known that they refuse HTTP/1.1, or that they do not speak HTTP/2 either.
const VERSIONS_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(65_535);

/// Answers of servers that refuse HTTP/1.1: HTTP Version Not Supported, Upgrade Required, and one of load balancers.
const REFUSALS_OF_VERSION: [u16; 3] = [505, 426, 464];

/// The field of a request that has its cookies.
const COOKIE: &str = "Cookie";

/// Limits on the time and size of a response.
#[derive(Debug, Clone)]
pub struct ResponseLimits {
    /// Timeout for connecting; TLS has another timeout of the same length.
    pub connect: Duration,
    /// Timeout from the request to a complete head.
    pub head: Duration,
    /// Timeout between two reads of body bytes.
    pub idle: Duration,
    /// Timeout for the whole exchange.
    pub total: Duration,
    /// Maximum bytes of a head.
    pub head_bytes: usize,
    /// Maximum bytes of a body as received; a longer body is not received if the head gives its length, and otherwise cut.
    /// The capture is marked as truncated.
    pub body_bytes: u64,
    /// The same for bodies of some media types, in the place of `body_bytes`.
    pub of_types: Vec<TypeLimit>,
}

/// Maximum bytes of a body of some media types.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeLimit {
    /// A type, as `video`, or one with its subtype, as `application/zip`; in lower case.
    pub media_type: String,
    /// Maximum bytes.
    pub bytes: u64,
}

impl ResponseLimits {
    /// Maximum bytes of the body of a response with this head; a type with its subtype goes before one without.
    pub(super) fn of_body(&self, head: &[u8]) -> u64 {
        if self.of_types.is_empty() {
            return self.body_bytes;
        }
        let media_type = HttpHead::parse(head).media_type().unwrap_or_default();
        let group = media_type.split('/').next().unwrap_or_default();
        let named = |name: &str| self.of_types.iter().find(|limit| limit.media_type == name);
        named(&media_type).or_else(|| named(group)).map_or(self.body_bytes, |limit| limit.bytes)
    }
}

impl Default for ResponseLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(15),
            head: Duration::from_secs(30),
            idle: Duration::from_secs(30),
            total: Duration::from_secs(600),
            head_bytes: 256 * 1024,
            body_bytes: 64 << 20,
            of_types: Vec::new(),
        }
    }
}

/// Settings of the fetcher.
#[derive(Debug, Clone, Default)]
pub struct FetchSettings {
    /// `User-Agent` of the crawler.
    pub user_agent: String,
    /// Redirections of connections.
    pub connect_to: Vec<ConnectTo>,
    /// Through which proxies, from which addresses and by which version of IP servers are reached.
    pub ways: Ways,
    /// Whether connections to addresses that are not public are allowed.
    pub allow_private: bool,
    /// Certificates of authorities to trust in addition to the usual ones.
    pub authorities: Vec<CertificateDer<'static>>,
    /// Certificates that are taken although they cannot be verified.
    pub accepted: Vec<AcceptedCertificate>,
    /// The cookies of the crawl; `None` to neither take nor send any.
    pub cookies: Option<Cookies>,
    /// What is shown at doors that are closed to others.
    pub logins: Logins,
    /// Which content codings servers are asked for.
    pub compression: Compression,
    /// Limits of a response.
    pub limits: ResponseLimits,
    /// The clock that gives the time of every capture.
    pub clock: Clock,
}

/// A task for the fetcher.
#[derive(Debug)]
pub enum FetchTask {
    /// Resolve the address of a host.
    Resolve {
        /// Name or address in the URL.
        host: String,
        /// Port in the URL, or the default of its scheme.
        port: u16,
    },
    /// Request a URL from an endpoint.
    Fetch {
        /// Server to connect to.
        endpoint: Endpoint,
        /// Request to send.
        request: Box<FetchRequest>,
    },
}

/// A task with a tag of the caller.
#[derive(Debug)]
pub struct Job<T> {
    /// What to do.
    pub task: FetchTask,
    /// Returned with the answer.
    pub tag: T,
}

/// Result of a job.
#[derive(Debug)]
pub enum JobResult {
    /// Where the host is.
    Resolved(Result<Place, FetchError>),
    /// The response.
    Fetched(Result<Box<Exchange>, FetchError>),
}

/// The fetching thread accepts no more jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the fetching thread has ended")]
pub struct FetcherEnded;

/// Handle of the fetching thread. Dropping it ends the thread after the jobs in progress.
#[derive(Debug)]
pub struct Fetcher<T> {
    jobs: mpsc::UnboundedSender<Job<T>>,
}

impl<T: Send + 'static> Fetcher<T> {
    /// Starts the thread; every answer goes to `answers`.
    ///
    /// The caller limits the number of jobs in progress, and `answers` must have room for all of them: the thread never
    /// waits for room, since that would stop every other exchange.
    ///
    /// # Errors
    /// When the operating system cannot create the thread or its event queue.
    pub fn start(
        settings: FetchSettings,
        memory: BodyMemory,
        answers: Sender<(T, JobResult)>,
    ) -> io::Result<Self> {
        let (jobs, mut queue) = mpsc::unbounded_channel::<Job<T>>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        thread::Builder::new().name("fetch".to_owned()).spawn(move || {
            let local = tokio::task::LocalSet::new();
            let client = Rc::new(FetchClient::new(settings, memory));
            local.block_on(&runtime, async move {
                while let Some(Job { task, tag }) = queue.recv().await {
                    let client = Rc::clone(&client);
                    let answers = answers.clone();
                    tokio::task::spawn_local(async move {
                        let answer = client.run(task).await;
                        // The receiver is gone only when the crawl is over; nobody needs this answer then.
                        drop(answers.send((tag, answer)));
                    });
                }
            });
        })?;
        Ok(Self { jobs })
    }

    /// Passes a job to the thread.
    ///
    /// # Errors
    /// When the thread has ended.
    pub fn submit(&self, job: Job<T>) -> Result<(), FetcherEnded> {
        self.jobs.send(job).map_err(|_| FetcherEnded)
    }
}

pub(super) struct FetchClient {
    pub(super) settings: FetchSettings,
    pub(super) memory: BodyMemory,
    pub(super) connector: FetchConnector,
    /// Log-ins by forms, with their sessions.
    doors: Vec<Door>,
    idle: RefCell<IdleConnections<Reached>>,
    /// What hosts asked for last, by host and port.
    challenges: RefCell<LruCache<String, Challenge>>,
    /// In what hosts are asked that did not answer in HTTP/1.1, by host and port.
    versions: RefCell<LruCache<String, HttpVersion>>,
}

impl FetchClient {
    pub(super) fn new(settings: FetchSettings, memory: BodyMemory) -> Self {
        let doors = Door::all(&settings.logins);
        let connector = FetchConnector::new(&settings);
        let challenges = RefCell::new(LruCache::new(CHALLENGES_MAX));
        let versions = RefCell::new(LruCache::new(VERSIONS_MAX));
        Self { settings, memory, connector, doors, idle: RefCell::default(), challenges, versions }
    }

    async fn run(&self, task: FetchTask) -> JobResult {
        match task {
            FetchTask::Resolve { host, port } => {
                JobResult::Resolved(self.connector.resolve(&host, port).await)
            }
            FetchTask::Fetch { endpoint, request } => {
                JobResult::Fetched(self.fetch(endpoint, &request).await.map(Box::new))
            }
        }
    }

    async fn fetch(&self, endpoint: Endpoint, request: &FetchRequest) -> Result<Exchange, FetchError> {
        match self.doors.iter().find(|door| door.is_for(request)) {
            Some(door) => self.ask_behind(door, endpoint, request).await,
            None => self.prove(endpoint, request).await,
        }
    }

    /// Asks for a URL; once more if the server wants proof of a password, and for the rest of what is cut off.
    pub(super) async fn prove(
        &self,
        endpoint: Endpoint,
        request: &FetchRequest,
    ) -> Result<Exchange, FetchError> {
        let has_proof = self.has_challenge(request);
        let mut exchange = self.ask(endpoint.clone(), request).await?;
        let is_answerable = exchange.status == 401 && exchange.has_login;
        if is_answerable && self.take_challenge(request, &exchange.http, has_proof) {
            exchange = self.ask(endpoint.clone(), request).await?;
        }
        self.resume(&endpoint, request, exchange).await
    }

    /// Asks in HTTP/1.1, and in HTTP/2 only where that is refused.
    pub(super) async fn ask(
        &self,
        endpoint: Endpoint,
        request: &FetchRequest,
    ) -> Result<Exchange, FetchError> {
        let host = host_key(&request.url);
        let known = self.versions.borrow_mut().get(&host).copied();
        let asked = self.ask_in(known.unwrap_or(HttpVersion::Http1), endpoint.clone(), request).await;
        let is_refused = match &asked {
            Ok(answer) => REFUSALS_OF_VERSION.contains(&answer.status),
            Err(error) => matches!(error, FetchError::NoVersion | FetchError::NotHttp | FetchError::NoHead),
        };
        if !is_refused || known.is_some() || !endpoint.secure {
            return asked;
        }
        let again = self.ask_in(HttpVersion::Http2, endpoint, request).await;
        let version = if again.is_ok() { HttpVersion::Http2 } else { HttpVersion::Http1 };
        self.versions.borrow_mut().put(host, version);
        again.or(asked)
    }

    async fn ask_in(
        &self,
        version: HttpVersion,
        mut endpoint: Endpoint,
        request: &FetchRequest,
    ) -> Result<Exchange, FetchError> {
        let logins = &self.settings.logins;
        let has_login = request.cookies != CookieContext::None && logins.covers(&request.url);
        let mut secrets = if has_login { logins.fields(&request.url) } else { Vec::new() };
        let proof = has_login.then(|| self.proof(request)).flatten();
        secrets.extend(proof.map(|proof| ("Authorization".to_owned(), proof)));
        let cookies = self.cookies_for(request, &request.url);
        let sends_cookies = cookies.is_some();
        secrets.extend(cookies.map(|cookies| (COOKIE.to_owned(), cookies)));
        let sent = request.to_bytes(&self.settings, &secrets);
        // What is stored has nothing that opens a door.
        for (name, value) in &mut secrets {
            *value = if name == COOKIE { without_values(value) } else { REDACTED.to_owned() };
        }
        let recorded =
            if secrets.is_empty() { sent.clone() } else { request.to_bytes(&self.settings, &secrets) };
        let mut opens = None;
        let (limits, cut_at) = (&self.settings.limits, request.body_bytes_max);
        let asked = endpoint.place;
        let idle = self.idle.borrow_mut().take(&endpoint);
        let mut reused = idle.filter(|reached| reached.connection.version() == version);
        loop {
            let is_reused = reused.is_some();
            let mut reached = match reused.take() {
                Some(reached) => reached,
                None => self.connector.connect(&endpoint, version).await?,
            };
            endpoint.place = reached.place;
            let connection = &mut reached.connection;
            let started = self.settings.clock.now();
            let clock = Instant::now();
            let see = |head: &ResponseHead| opens = self.take_cookies(request, head);
            match exchange(connection, &sent, limits, cut_at, &self.memory, see).await {
                Ok(received) => {
                    let exchange = Exchange {
                        request: recorded,
                        sends_cookies,
                        has_login,
                        opens,
                        http: if has_login { received.http.without_cookies() } else { received.http },
                        held: received.held,
                        status: received.head.status,
                        truncated: received.truncated,
                        resumed: Vec::new(),
                        is_unloaded: received.is_unloaded,
                        address: reached.address,
                        proxy: reached.proxy.clone(),
                        is_other_address: endpoint.place != asked,
                        tls: connection.tls(),
                        protocols: connection.protocols(),
                        started,
                        elapsed: clock.elapsed(),
                    };
                    if received.reusable {
                        self.idle.borrow_mut().put(endpoint, reached);
                    }
                    return Ok(exchange);
                }
                // A server may close an idle connection at any time, which says nothing about this request.
                Err(Failed::Closed) if is_reused => {}
                Err(Failed::Closed) => return Err(FetchError::NoHead),
                Err(Failed::Error(error)) => return Err(error),
            }
        }
    }

    /// Returns the answer to what a server asked for last, if it did.
    fn proof(&self, request: &FetchRequest) -> Option<String> {
        let (name, password) = self.settings.logins.provable(&request.url)?;
        let mut challenges = self.challenges.borrow_mut();
        let challenge = challenges.get_mut(&host_key(&request.url))?;
        let mut own = [0; 16];
        getrandom::fill(&mut own).ok()?;
        let target = &request.url[Position::BeforePath..Position::AfterQuery];
        Some(challenge.answer(name, password, target, &hex(&own)))
    }

    /// Whether a server is known to ask for a proof, so that a request has one.
    fn has_challenge(&self, request: &FetchRequest) -> bool {
        self.settings.logins.provable(&request.url).is_some()
            && self.challenges.borrow().contains(&host_key(&request.url))
    }

    /// Keeps what a server asks for. Returns whether there is a new answer: none was given, though meanwhile another
    /// request may have been asked, or only its nonce was too old.
    fn take_challenge(&self, request: &FetchRequest, answer: &HttpMessage, has_proof: bool) -> bool {
        if self.settings.logins.provable(&request.url).is_none() {
            return false;
        }
        let head = answer.head();
        let asked = head.fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("WWW-Authenticate"));
        let Some(challenge) = asked.filter_map(|(_, value)| Challenge::of(value)).next() else {
            return false;
        };
        let is_stale = challenge.is_stale;
        self.challenges.borrow_mut().put(host_key(&request.url), challenge);
        !has_proof || is_stale
    }

    /// Returns the cookies that go to a URL in the context of a request.
    fn cookies_for(&self, request: &FetchRequest, url: &Url) -> Option<String> {
        let now = self.settings.clock.now().timestamp();
        self.settings.cookies.as_ref()?.jar().field(url, request.cookies, now)
    }

    /// Takes the cookies of an answer. Returns where it redirects to, if other cookies are sent there from now on.
    fn take_cookies(&self, request: &FetchRequest, head: &ResponseHead) -> Option<Url> {
        let cookies = self.settings.cookies.as_ref().filter(|_| !head.cookies.is_empty())?;
        let location = head.location.as_ref().filter(|_| (300..400).contains(&head.status));
        let target = location.and_then(|location| request.url.join(location).ok());
        let sent = |url: &Url| self.cookies_for(request, url);
        let before = target.as_ref().and_then(sent);
        let now = self.settings.clock.now().timestamp();
        for field in &head.cookies {
            cookies.jar().take(&request.url, field, request.cookies, now);
        }
        target.filter(|target| sent(target) != before)
    }
}
