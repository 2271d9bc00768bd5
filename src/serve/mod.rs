//! The archive for people and programs: a web application, and replay on a separate origin.
//!
//! There are two listeners. The application's pages are generated here, work without scripts, load nothing from
//! elsewhere, and are available as JSON under the same address for clients that ask for it. The other listener serves
//! [`archive_replay`]: archived pages are hostile, so they have a separate origin, which has no access to the
//! application.
//!
//! Requests are answered on separate threads, a few of each kind at a time (`lanes`), each from the archive as of its
//! newest checkpoint (`opener`). Nothing is ever fetched, and nothing can be changed except people's decisions, if
//! enabled ([`ReviewOptions`]), and the queue of notices for the next run ([`PingRules`]).

mod addresses;
mod ask;
mod bodies;
mod cache;
mod clients;
mod events;
mod front;
mod gate;
mod http;
mod lanes;
mod long_heads;
mod opener;
mod options;
mod page;
mod people;
mod pings;
mod spool;

use std::future::poll_fn;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use archive_ask::find::PageTextCache;
use archive_base::access::Role;
use archive_base::control::Control;
use archive_peers::nodes::Http;
use archive_storage::Store;
use hyper::header::HeaderName;
use tokio::net::TcpListener;
use tokio::runtime;
use tokio::sync::{Semaphore, watch};

use self::addresses::ServedAddresses;
use self::bodies::Sending;
use self::clients::Clients;
use self::front::Front;
use self::lanes::Lanes;
pub use self::lanes::lower_priority;
use self::opener::ArchiveOpener;
pub use self::opener::OpenError;
pub use self::options::{
    AUDIT, FrontOptions, PingRules, ReviewOptions, ServeError, ServeOptions, ServedPeople, share_a_host,
};
use self::options::{following, origins};
use self::people::People;
use self::spool::FileRoom;

/// Maximum number of clients that follow runs concurrently; others are refused.
const LISTENERS_MAX: usize = 16;

/// Maximum number of packages made or sent concurrently; others are refused.
const PACKAGES_MAX: usize = 2;

/// Maximum number of concurrent requests by programs that query several archives; others wait.
const ASKING_MAX: usize = 4;

/// Threads for passwords, for pieces of answers, and for what else may not wait for the requests.
const MORE_THREADS: usize = 8;

/// Grace period for running requests when the server is stopped.
const LAST_REQUESTS: Duration = Duration::from_secs(5);

/// Interval at which the server checks whether to stop, and closes unused archives; and the interval while one is open,
/// because a checkpoint may be waiting for it.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const LOOK_EVERY_OPEN: Duration = Duration::from_millis(5);

/// Name of several archives as one.
const TOGETHER: &str = "all archives";

/// Something that a server of an archive answers.
#[derive(Clone, Copy, Debug)]
pub struct ServerAddress {
    /// Whether it is at the replay's origin.
    pub is_replay: bool,
    /// Path; all below it if it ends in `*`.
    pub path: &'static str,
    /// The least role that may ask for it, if there are accounts.
    pub role: Role,
    /// Parameters that it takes.
    pub takes: &'static [&'static str],
    /// Formats besides the usual one: values of `format`, or endings of the path.
    pub formats: &'static [&'static str],
}

/// All that a server of an archive answers, from the tables by which it does.
pub fn addresses() -> impl Iterator<Item = ServerAddress> {
    let application = page::ROUTES.iter().map(|&page::PageRoute { path, role, takes, formats, .. }| {
        ServerAddress { is_replay: false, path, role, takes, formats }
    });
    let (takes, formats) = (&[][..], &[][..]);
    let replay = archive_replay::ROUTES.iter();
    application.chain(replay.map(|route| ServerAddress {
        is_replay: true,
        path: route.path,
        role: Role::Reader,
        takes,
        formats,
    }))
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    runtime: runtime::Runtime,
    /// Threads for costly requests.
    slow: runtime::Runtime,
    sites: Vec<ServedOrigin>,
}

/// One of the two origins of an archive.
#[derive(Debug)]
struct ServedOrigin {
    listener: TcpListener,
    origin: http::Origin,
    shared: Arc<ServerState>,
}

/// State shared by all requests to an archive.
#[derive(Debug)]
struct ServerState {
    held: Served,
    place: ServedAddresses,
    /// All archives that are served.
    places: Arc<[ServedAddresses]>,
    review: Option<ReviewOptions>,
    pings: Option<pings::Pings>,
    timegates: Vec<String>,
    people: Option<Arc<People>>,
    user_header: Option<HeaderName>,
    /// Whether it is reachable from other machines.
    is_public: bool,
    limits: Arc<ServerLimits>,
}

/// What is served.
#[derive(Debug)]
enum Served {
    Archive(Box<ArchiveOpener>),
    Together(Front),
}

impl ServerState {
    /// The archive; `None` for several archives queried as one.
    fn archive(&self) -> Option<&ArchiveOpener> {
        if let Served::Archive(archive) = &self.held { Some(archive) } else { None }
    }
}

/// Limits shared by all archives.
#[derive(Debug)]
struct ServerLimits {
    lanes: Lanes,
    sending: Sending,
    files: FileRoom,
    listeners: Arc<Semaphore>,
    packages: Arc<Semaphore>,
    asking: Arc<Semaphore>,
    clients: Arc<Clients>,
    /// Whether the server is shutting down, so that event streams must end.
    ends: watch::Sender<bool>,
}

impl Server {
    /// Binds the listeners.
    ///
    /// # Errors
    /// When there is no archive, an address is not local to this machine, an address is in use, or an origin is
    /// invalid.
    pub fn bind(options: &ServeOptions) -> Result<Self, ServeError> {
        let count = options.pairs();
        let mut sockets = Vec::new();
        for number in 0..count {
            for first in [options.listen, options.replay_listen] {
                let address = following(first, number).ok_or(ServeError::Ports(count, first))?;
                options.check_reach(address)?;
                let bound = std::net::TcpListener::bind(address);
                sockets.push(bound.map_err(|source| ServeError::Listen { address, source })?);
            }
        }
        Self::on(options, sockets)
    }

    /// As [`Server::bind`], on sockets that are already bound: two for each archive, the application's first.
    ///
    /// # Errors
    /// As [`Server::bind`], and when the number of sockets is wrong.
    pub fn on(options: &ServeOptions, sockets: Vec<std::net::TcpListener>) -> Result<Self, ServeError> {
        let count = options.pairs();
        if sockets.len() != 2 * count {
            return Err(ServeError::Sockets { archives: count, sockets: sockets.len() });
        }
        let public = origins(&options.public, count)?;
        for archive in &options.archives {
            drop(Store::read_only(archive).map_err(OpenError::from)?);
        }
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(lanes::THREADS + MORE_THREADS)
            .thread_name("serve")
            .enable_all()
            .build()
            .map_err(ServeError::Start)?;
        let slow = lanes::slow_threads().map_err(ServeError::Start)?;
        let listeners = listening(options, &runtime, sockets)?;
        let places = options.places(&listeners, public);
        let lanes = Lanes::new(runtime.handle(), slow.handle());
        let (limits, people) = (Arc::new(ServerLimits::new(lanes)), options.people()?);
        let shared = |held: Served, place: &ServedAddresses| {
            let is_archive = matches!(held, Served::Archive(_));
            Arc::new(ServerState {
                held,
                place: place.clone(),
                places: Arc::clone(&places),
                review: options.review.clone().filter(|_| is_archive),
                pings: options.pings.as_ref().filter(|_| is_archive).map(pings::Pings::new),
                timegates: options.timegates.clone(),
                people: people.clone(),
                user_header: options.user_header.clone(),
                is_public: [place.application, place.replay].iter().any(|it| !it.ip().is_loopback()),
                limits: Arc::clone(&limits),
            })
        };
        let (first, folders) = places.split_at(usize::from(options.together.is_some()));
        let folders = options.archives.iter().zip(folders);
        let kept = Arc::<PageTextCache>::default();
        let archive = |path: &Path| Served::Archive(Box::new(ArchiveOpener::new(path, Arc::clone(&kept))));
        let folders: Vec<_> = folders.map(|(path, place)| shared(archive(path), place)).collect();
        let mut all = Vec::new();
        if let Some((together, place)) = options.together.as_ref().zip(first.first()) {
            let http = Http::on(runtime.handle().clone(), together.wait, front::ANSWERS_BYTES_MAX)?;
            let front = Front::new(together.parts(&folders), http, Arc::clone(&kept));
            all.push(shared(Served::Together(front), place));
        }
        all.extend(folders);
        let origins = [http::Origin::Application, http::Origin::Replay];
        let sites = all.iter().flat_map(|shared| origins.map(|origin| (origin, Arc::clone(shared))));
        let sites = sites.zip(listeners);
        let sites = sites.map(|((origin, shared), (_, listener))| ServedOrigin { listener, origin, shared });
        let mut sites: Vec<ServedOrigin> = sites.collect();
        sites.extend(all.iter().filter_map(|shared| ServedOrigin::of_name(shared, &runtime)));
        Ok(Self { runtime, slow, sites })
    }

    /// Addresses of each archive's application and replay; archives queried as one have no folder.
    pub fn addresses(&self) -> impl Iterator<Item = (Option<&Path>, [SocketAddr; 2])> {
        let applications = self.sites.iter().filter(|site| site.origin == http::Origin::Application);
        applications.map(|site| {
            let ServedAddresses { application, replay, .. } = site.shared.place;
            (site.shared.archive().map(ArchiveOpener::path), [application, replay])
        })
    }

    /// Origins of each archive's application and replay as browsers on this machine see them.
    pub fn origins(&self) -> impl Iterator<Item = [String; 2]> {
        let applications = self.sites.iter().filter(|site| site.origin == http::Origin::Application);
        applications.map(|site| site.shared.place.local_origins(&site.shared.place.application.to_string()))
    }

    /// Serves until `control` requests a stop; running requests are then finished.
    pub fn run(self, control: &Control) {
        let Self { runtime, slow, sites } = self;
        runtime.block_on(async {
            let connections = http::Connections::default();
            tokio::select! {
                () = accept(&sites, &connections) => {}
                () = async {
                    let mut is_open = false;
                    while !control.is_stopped() {
                        tokio::time::sleep(if is_open { LOOK_EVERY_OPEN } else { LOOK_EVERY }).await;
                        let archives = sites.iter().filter_map(|site| site.shared.archive());
                        is_open = archives.fold(false, |is_open, archive| archive.look() | is_open);
                    }
                } => {}
            }
            for site in sites {
                site.shared.limits.ends.send_replace(true);
            }
            connections.finish(LAST_REQUESTS).await;
        });
        runtime.shutdown_background();
        slow.shutdown_background();
    }
}

impl ServedOrigin {
    /// Browsers look for `localhost` at `::1` first; so the replay that has this name is there as well, if the port is
    /// free.
    fn of_name(shared: &Arc<ServerState>, runtime: &runtime::Runtime) -> Option<Self> {
        shared.place.own_names.as_ref().filter(|_| shared.place.replay.is_ipv4())?;
        let socket = std::net::TcpListener::bind((Ipv6Addr::LOCALHOST, shared.place.replay.port())).ok()?;
        socket.set_nonblocking(true).ok()?;
        let _inside = runtime.enter();
        let listener = TcpListener::from_std(socket).ok()?;
        Some(Self { listener, origin: http::Origin::Replay, shared: Arc::clone(shared) })
    }
}

/// Prepares the sockets for accepting connections.
fn listening(
    options: &ServeOptions,
    runtime: &runtime::Runtime,
    sockets: Vec<std::net::TcpListener>,
) -> Result<Vec<(SocketAddr, TcpListener)>, ServeError> {
    let listening = sockets.into_iter().map(|socket| {
        let address = socket.local_addr().map_err(ServeError::Start)?;
        options.check_reach(address)?;
        let listen = || {
            socket.set_nonblocking(true)?;
            let _inside = runtime.enter();
            TcpListener::from_std(socket)
        };
        Ok((address, listen().map_err(|source| ServeError::Listen { address, source })?))
    });
    listening.collect()
}

/// Accepts connections at all addresses forever.
async fn accept(sites: &[ServedOrigin], connections: &http::Connections) {
    let accepting = sites.iter().map(|ServedOrigin { listener, origin, shared }| {
        Box::pin(http::accept(listener, *origin, shared, connections))
    });
    let mut accepting: Vec<_> = accepting.collect();
    poll_fn(|context| {
        for site in &mut accepting {
            // These futures never complete.
            let _ = site.as_mut().poll(context);
        }
        Poll::<()>::Pending
    })
    .await;
}

impl ServerLimits {
    fn new(lanes: Lanes) -> Self {
        Self {
            lanes,
            sending: Sending::new(),
            files: FileRoom::default(),
            listeners: Arc::new(Semaphore::new(LISTENERS_MAX)),
            packages: Arc::new(Semaphore::new(PACKAGES_MAX)),
            asking: Arc::new(Semaphore::new(ASKING_MAX)),
            ends: watch::Sender::new(false),
            clients: Arc::new(Clients::new(clients::CONNECTIONS_MAX)),
        }
    }
}

impl ServeOptions {
    /// Names and addresses of the archives: each has two listeners and, if configured, public origins.
    fn places(
        &self,
        listeners: &[(SocketAddr, TcpListener)],
        public: Vec<[String; 2]>,
    ) -> Arc<[ServedAddresses]> {
        let names = self.together.iter().map(|_| TOGETHER.to_owned());
        let names = names.chain(self.archives.iter().map(|archive| {
            archive.file_name().unwrap_or(archive.as_os_str()).to_string_lossy().into_owned()
        }));
        let mut public = public.into_iter();
        let place = |(name, pair): (String, &[(SocketAddr, TcpListener)])| {
            let [application, replay] = [pair[0].0, pair[1].0];
            let public = public.next();
            let own_names =
                if public.is_none() { ServedAddresses::names_at([application, replay]) } else { None };
            ServedAddresses { name, application, replay, public, own_names }
        };
        names.zip(listeners.chunks(2)).map(place).collect()
    }

    /// The people with accounts, if accounts are required.
    fn people(&self) -> Result<Option<Arc<People>>, ServeError> {
        let Some(members) = &self.people else { return Ok(None) };
        let first = self.archives.first().map(|first| first.join(AUDIT));
        let audit = members.audit.clone().or(first).ok_or(ServeError::NoAudit)?;
        Ok(Some(Arc::new(People::new(members.file.clone(), audit)?)))
    }
}

impl FrontOptions {
    /// The archives in order.
    fn parts(&self, folders: &[Arc<ServerState>]) -> Vec<front::FrontArchive> {
        let (mut folders, mut parts) = (folders.iter().cloned().map(front::FrontArchive::Folder), Vec::new());
        let mut before = 0;
        for (place, node) in &self.nodes {
            parts.extend(folders.by_ref().take(place.saturating_sub(before)));
            before = *place;
            parts.push(front::FrontArchive::Node(node.clone()));
        }
        parts.extend(folders);
        parts
    }
}
