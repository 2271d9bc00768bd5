//! The archive as people and programs see it: a web application, and replay on an origin of its own.
//!
//! Two listeners. The application's pages are made here, work without script, load nothing from elsewhere, and are JSON under the same
//! address for whoever asks for that. The other one is [`crate::replay`]: archived pages are hostile, so
//! they have another origin, which knows nothing of the application.
//!
//! Requests are answered on threads of their own, a few at a time, each from the archive as of a checkpoint that is a quarter of a second old
//! at most (`opened`). Nothing is ever fetched, and nothing can be changed but what people decide, where that is switched on ([`Review`]),
//! and what waits for the next run ([`PingRules`]).

mod ask;
mod events;
mod front;
mod gate;
mod http;
mod lately;
mod opened;
mod page;
mod people;
mod pings;

use std::collections::HashSet;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use archive_storage::Store;
use hyper::header::HeaderName;
use tokio::net::TcpListener;
use tokio::runtime;
use tokio::sync::{Semaphore, watch};

use self::front::Front;
use self::opened::Archive;
pub use self::opened::OpenError;
use self::people::People;
use crate::accounts::AccountsError;
use crate::nodes::{self, AskError, Http, Node};
use crate::recorder::Control;

/// Requests that are answered at once; others wait.
const ANSWERING_MAX: usize = 8;

/// Clients that follow runs at the same time; others are refused.
const LISTENERS_MAX: usize = 16;

/// Packages that are made or sent at once; others are refused.
const PACKAGES_MAX: usize = 2;

/// Programs at once that ask this archive beside others; more of them wait.
const ASKING_MAX: usize = 4;

/// Connections at once; others wait to be accepted.
const CONNECTIONS_MAX: usize = 512;

/// Requests that have begun when the server is stopped have so long.
const LAST_REQUESTS: Duration = Duration::from_secs(5);

/// How often the server looks whether it is to stop, and gives up what nobody reads.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What to serve, and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// The archives' folders. Each archive has two addresses of its own, for its pages are strangers to those of the others.
    pub archives: Vec<PathBuf>,
    /// Where the application listens. Each further archive is two ports higher, unless the system is to choose (port 0).
    pub listen: SocketAddr,
    /// Where replayed pages are, and the same.
    pub replay_listen: SocketAddr,
    /// The origins of application and replay of each archive as a web server before this one shows them to the world, for instance
    /// `https://archive.example.org`; all have to differ.
    pub public: Vec<[String; 2]>,
    /// Whether people may decide on sites here, and how.
    pub review: Option<Review>,
    /// Whether strangers may send notices of changes (IndexNow, sitemap pings), and how they are distinguished.
    pub pings: Option<PingRules>,
    /// TimeGates of other archives, to which pages that are missing are linked.
    pub timegates: Vec<String>,
    /// Who may come in, unless whoever reaches an address may.
    pub people: Option<Members>,
    /// The field in which a web server before this one says who asks; they decide under this name and no other.
    pub user_header: Option<HeaderName>,
    /// What is asked as one at the first two addresses; those of the folders follow.
    pub together: Option<Together>,
}

/// Archives that are asked as one.
#[derive(Clone, Debug)]
pub struct Together {
    /// Nodes, with how many of the folders come before each.
    pub nodes: Vec<(usize, Node)>,
    /// So long a node may take for an answer.
    pub wait: Duration,
}

/// Notices from outside, which wait for the next run.
#[derive(Clone, Debug, Default)]
pub struct PingRules {
    /// The field in which a web server before this one says who asks, as `X-Real-IP`; without it all clients are one.
    pub client_header: Option<HeaderName>,
}

/// The name of several archives as one.
const TOGETHER: &str = "all archives";

/// The name of the audit log in an archive's folder.
pub const AUDIT: &str = "audit.jsonl";

/// People with accounts.
#[derive(Clone, Debug)]
pub struct Members {
    /// Their file, [`crate::accounts`].
    pub file: PathBuf,
    /// Where it is written down what they do; else [`AUDIT`] in the folder of the first archive.
    pub audit: Option<PathBuf>,
}

/// Reviewing in the browser. Without accounts whoever is on this machine may decide, under any name.
#[derive(Clone, Debug)]
pub struct Review {
    /// Who decides, unless another name is given on the page.
    pub by: String,
    /// Whether what others rated is shown only to those who rated, too.
    pub is_blind: bool,
}

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The archive cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Other machines are not to see it.
    #[error(
        "{0} is not an address of this machine alone: say by --password-file who may log in, or by --user-header how a web server with passwords before it names people"
    )]
    Public(SocketAddr),
    /// Nobody can log in.
    #[error(transparent)]
    Accounts(#[from] AccountsError),
    /// What people do cannot be written down.
    #[error("there is no folder for the audit log: name a file by --audit-log")]
    NoAudit,
    /// Nodes cannot be asked.
    #[error(transparent)]
    Nodes(#[from] AskError),
    /// What people do could not be written down.
    #[error("cannot write the audit log {} (--audit-log names another place): {source}", path.display())]
    Audit {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The address cannot be had.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// What is to be an origin is none.
    #[error("'{0}' is not an origin such as https://archive.example.org")]
    Origin(String),
    /// Archived pages would be able to read the application.
    #[error("both origins are {0}: archived pages are hostile and need an origin of their own")]
    SameOrigin(String),
    /// Some archives would be without one.
    #[error("of {0} archives each needs an origin and a replay origin, or none has one")]
    Origins(usize),
    /// There is no port of that number.
    #[error("for {0} archives there are not enough ports from {1} on")]
    Ports(usize, SocketAddr),
    /// Nobody knows which socket is whose.
    #[error("{sockets} sockets were passed for {archives} archives; each needs two, the application's first")]
    Sockets {
        /// Archives.
        archives: usize,
        /// Sockets.
        sockets: usize,
    },
    /// No threads.
    #[error("cannot start serving: {0}")]
    Start(io::Error),
}

/// A server whose addresses are taken.
#[derive(Debug)]
pub struct Server {
    runtime: runtime::Runtime,
    sites: Vec<Site>,
}

/// One of the two origins of an archive.
#[derive(Debug)]
struct Site {
    listener: TcpListener,
    origin: http::Origin,
    shared: Arc<Shared>,
}

/// What all requests to an archive share.
#[derive(Debug)]
struct Shared {
    held: Held,
    place: Place,
    /// All archives that are served.
    places: Arc<[Place]>,
    review: Option<Review>,
    pings: Option<pings::Pings>,
    timegates: Vec<String>,
    people: Option<Arc<People>>,
    user_header: Option<HeaderName>,
    /// Whether other machines reach it.
    is_public: bool,
    limits: Arc<Limits>,
}

/// What is served.
#[derive(Debug)]
enum Held {
    Archive(Box<Archive>),
    Together(Front),
}

impl Shared {
    /// The archive, unless it is several as one.
    fn archive(&self) -> Option<&Archive> {
        if let Held::Archive(archive) = &self.held { Some(archive) } else { None }
    }
}

/// Where an archive is.
#[derive(Clone, Debug)]
struct Place {
    name: String,
    /// The addresses that the listeners have.
    application: SocketAddr,
    replay: SocketAddr,
    public: Option<[String; 2]>,
}

/// What all archives share.
#[derive(Debug)]
struct Limits {
    answering: Semaphore,
    listeners: Arc<Semaphore>,
    packages: Arc<Semaphore>,
    asking: Arc<Semaphore>,
    connections: Arc<Semaphore>,
    /// Whether the server ends, for those who would go on telling.
    ends: watch::Sender<bool>,
}

impl Server {
    /// Takes the addresses.
    ///
    /// # Errors
    /// When there is no archive, an address is not one of this machine alone, it is taken, or an origin is none.
    pub fn bind(options: &Options) -> Result<Self, ServeError> {
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

    /// The same on sockets that somebody has bound: two for each archive, the application's first.
    ///
    /// # Errors
    /// As [`Server::bind`], and when there are more or fewer sockets.
    pub fn on(options: &Options, sockets: Vec<std::net::TcpListener>) -> Result<Self, ServeError> {
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
            .max_blocking_threads(ANSWERING_MAX)
            .thread_name("serve")
            .enable_all()
            .build()
            .map_err(ServeError::Start)?;
        let mut listeners = Vec::new();
        for socket in sockets {
            let address = socket.local_addr().map_err(ServeError::Start)?;
            options.check_reach(address)?;
            let listen = || {
                socket.set_nonblocking(true)?;
                let _inside = runtime.enter();
                TcpListener::from_std(socket)
            };
            listeners.push((address, listen().map_err(|source| ServeError::Listen { address, source })?));
        }
        let limits = Arc::new(Limits {
            answering: Semaphore::new(ANSWERING_MAX),
            listeners: Arc::new(Semaphore::new(LISTENERS_MAX)),
            packages: Arc::new(Semaphore::new(PACKAGES_MAX)),
            asking: Arc::new(Semaphore::new(ASKING_MAX)),
            ends: watch::Sender::new(false),
            connections: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
        });
        let people = options.people.as_ref().map(|members| {
            let first = options.archives.first().map(|first| first.join(AUDIT));
            let audit = members.audit.clone().or(first).ok_or(ServeError::NoAudit)?;
            Ok::<_, ServeError>(Arc::new(People::new(members.file.clone(), audit)?))
        });
        let people = people.transpose()?;
        let names = options.together.iter().map(|_| TOGETHER.to_owned());
        let names = names.chain(options.archives.iter().map(|archive| {
            archive.file_name().unwrap_or(archive.as_os_str()).to_string_lossy().into_owned()
        }));
        let mut public = public.into_iter();
        let place = |(name, pair): (String, &[(SocketAddr, TcpListener)])| Place {
            name,
            application: pair[0].0,
            replay: pair[1].0,
            public: public.next(),
        };
        let places: Arc<[Place]> = names.zip(listeners.chunks(2)).map(place).collect();
        let shared = |held: Held, place: &Place| {
            let is_archive = matches!(held, Held::Archive(_));
            Arc::new(Shared {
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
        let folders: Vec<_> =
            folders.map(|(path, place)| shared(Held::Archive(Box::new(Archive::new(path))), place)).collect();
        let mut all = Vec::new();
        if let Some((together, place)) = options.together.as_ref().zip(first.first()) {
            let http = Http::on(runtime.handle().clone(), together.wait, front::ANSWERS_BYTES_MAX)?;
            let front = Front::new(together.parts(&folders), http);
            all.push(shared(Held::Together(front), place));
        }
        all.extend(folders);
        let mut listeners = listeners.into_iter().map(|(_, listener)| listener);
        let mut sites = Vec::new();
        for shared in all {
            for origin in [http::Origin::Application, http::Origin::Replay] {
                let listener = listeners.next();
                sites.extend(listener.map(|listener| Site { listener, origin, shared: Arc::clone(&shared) }));
            }
        }
        Ok(Self { runtime, sites })
    }

    /// Where the application and the replay of each archive listen; several that are asked as one have no folder.
    pub fn addresses(&self) -> impl Iterator<Item = (Option<&Path>, [SocketAddr; 2])> {
        let applications = self.sites.iter().filter(|site| site.origin == http::Origin::Application);
        applications.map(|site| {
            let Place { application, replay, .. } = site.shared.place;
            (site.shared.archive().map(Archive::path), [application, replay])
        })
    }

    /// Serves until `control` says to stop; requests that have begun then are answered.
    pub fn run(self, control: &Control) {
        let Self { runtime, sites } = self;
        runtime.block_on(async {
            let connections = http::Connections::default();
            tokio::select! {
                () = accept(&sites, &connections) => {}
                () = async {
                    while !control.is_stopped() {
                        tokio::time::sleep(LOOK_EVERY).await;
                        sites.iter().filter_map(|site| site.shared.archive()).for_each(Archive::look);
                    }
                } => {}
            }
            for site in sites {
                site.shared.limits.ends.send_replace(true);
            }
            connections.finish(LAST_REQUESTS).await;
        });
        runtime.shutdown_background();
    }
}

/// Accepts connections at all addresses for ever.
async fn accept(sites: &[Site], connections: &http::Connections) {
    let accepting = sites.iter().map(|Site { listener, origin, shared }| {
        Box::pin(http::accept(listener, *origin, shared, connections))
    });
    let mut accepting: Vec<_> = accepting.collect();
    poll_fn(|context| {
        for site in &mut accepting {
            // None ever ends.
            let _ = site.as_mut().poll(context);
        }
        Poll::<()>::Pending
    })
    .await;
}

impl Together {
    /// The archives in their order.
    fn parts(&self, folders: &[Arc<Shared>]) -> Vec<front::Part> {
        let (mut folders, mut parts) = (folders.iter().cloned().map(front::Part::Folder), Vec::new());
        let mut before = 0;
        for (place, node) in &self.nodes {
            parts.extend(folders.by_ref().take(place.saturating_sub(before)));
            before = *place;
            parts.push(front::Part::Node(node.clone()));
        }
        parts.extend(folders);
        parts
    }
}

impl Options {
    /// How many pairs of addresses are served.
    fn pairs(&self) -> usize {
        self.archives.len() + usize::from(self.together.is_some())
    }

    /// Refuses an address that other machines reach unless people have to say who they are.
    fn check_reach(&self, address: SocketAddr) -> Result<(), ServeError> {
        let asks = self.people.is_some() || self.user_header.is_some();
        if asks || address.ip().is_loopback() { Ok(()) } else { Err(ServeError::Public(address)) }
    }
}

/// The address of a further archive; nothing where there is no port of that number.
fn following(first: SocketAddr, number: usize) -> Option<SocketAddr> {
    let port = match first.port() {
        0 => 0,
        port => u16::try_from(usize::from(port) + 2 * number).ok()?,
    };
    Some(SocketAddr::new(first.ip(), port))
}

/// The origins of some archives as browsers write them, a pair for each, or none at all.
fn origins(stated: &[[String; 2]], archives: usize) -> Result<Vec<[String; 2]>, ServeError> {
    let origin = |text: &String| nodes::origin(text).ok_or_else(|| ServeError::Origin(text.clone()));
    if !stated.is_empty() && stated.len() != archives {
        return Err(ServeError::Origins(archives));
    }
    let (mut pairs, mut seen) = (Vec::new(), HashSet::new());
    for [application, replay] in stated {
        let pair = [origin(application)?, origin(replay)?];
        if let Some(twice) = pair.iter().find(|origin| !seen.insert((*origin).clone())) {
            return Err(ServeError::SameOrigin(twice.clone()));
        }
        pairs.push(pair);
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::{following, origins};

    #[test]
    fn origins_are_written_as_browsers_do_and_differ() {
        let pair = |application: &str, replay: &str| [application.to_owned(), replay.to_owned()];
        let of = |application: &str, replay: &str| origins(&[pair(application, replay)], 1);
        let normal = of("https://Archive.example.org:443/", "http://replay.example.org:81").unwrap();
        assert_eq!(normal, [["https://archive.example.org", "http://replay.example.org:81"]]);
        for wrong in [
            "archive.example.org",
            "ftp://a.org",
            "https://a.org/archive",
            "https://a@a.org",
            "https://a.org/?x",
        ] {
            let error = of("https://b.org", wrong).unwrap_err().to_string();
            assert_eq!(error, format!("'{wrong}' is not an origin such as https://archive.example.org"));
        }
        let two = [pair("https://a.org", "https://b.org"), pair("https://c.org", "https://B.org")];
        for error in [of("https://a.org", "https://A.org/"), origins(&two, 2)] {
            assert!(error.unwrap_err().to_string().starts_with("both origins are https://"));
        }
        assert!(origins(&two[..1], 2).is_err() && origins(&[], 2).is_ok());
    }

    #[test]
    fn ports_go_on_by_two_and_end() {
        let port = |first: &str, number| following(first.parse().unwrap(), number).map(|found| found.port());
        assert_eq!((port("127.0.0.1:8070", 0), port("[::1]:8070", 2)), (Some(8070), Some(8074)));
        assert_eq!((port("127.0.0.1:0", 3), port("127.0.0.1:65533", 1)), (Some(0), Some(65535)));
        assert_eq!(port("127.0.0.1:65533", 2), None);
    }
}
