//! The archive as people and programs see it: a web application, and replay on an origin of its own.
//!
//! Two listeners. The application's pages are made here, work without script, load nothing from elsewhere, and are JSON under the same
//! address for whoever asks for that. The other one is [`crate::replay`]: archived pages are hostile, so
//! they have another origin, which knows nothing of the application.
//!
//! Requests are answered on threads of their own, a few at a time, each from the archive as of a checkpoint that is a quarter of a second old
//! at most (`opened`). Nothing is ever fetched, and nothing can be changed but what people decide, where that is switched on ([`Review`]).

mod events;
mod http;
mod opened;
mod page;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use archive_storage::Store;
use hyper::header::HeaderName;
use tokio::net::TcpListener;
use tokio::runtime;
use tokio::sync::{Semaphore, watch};
use url::Url;

use self::opened::Archive;
pub use self::opened::OpenError;
use crate::recorder::Control;

/// Requests that are answered at once; others wait.
const ANSWERING_MAX: usize = 8;

/// Clients at once that are told of a run as it goes on; others are refused.
const LISTENERS_MAX: usize = 16;

/// Connections at once; others wait to be accepted.
const CONNECTIONS_MAX: usize = 512;

/// Requests that have begun when the server is stopped have so long.
const LAST_REQUESTS: Duration = Duration::from_secs(5);

/// How often the server looks whether it is to stop, and gives up what nobody reads.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What to serve, and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// The archive's folder.
    pub archive: PathBuf,
    /// Where the application listens.
    pub listen: SocketAddr,
    /// Where replayed pages are.
    pub replay_listen: SocketAddr,
    /// The origins of the application and the replay as a web server before this one shows them to the world, for instance
    /// `https://archive.example.org`; they have to differ.
    pub public: Option<[String; 2]>,
    /// Whether people may decide on sites here, and how.
    pub review: Option<Review>,
}

/// Reviewing in the browser. Whoever is on this machine may decide, under any name.
#[derive(Clone, Debug)]
pub struct Review {
    /// Who decides, unless another name is given on the page.
    pub by: String,
    /// The field in which a web server before this one says who asks; nobody may then choose a name.
    pub user_header: Option<HeaderName>,
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
        "{0} is not an address of this machine alone; serve on 127.0.0.1, and let a web server with passwords and TLS stand before it"
    )]
    Public(SocketAddr),
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
    /// No threads.
    #[error("cannot start serving: {0}")]
    Start(io::Error),
}

/// A server whose addresses are taken.
#[derive(Debug)]
pub struct Server {
    runtime: runtime::Runtime,
    application: TcpListener,
    replay: TcpListener,
    shared: Arc<Shared>,
}

/// What all requests share.
#[derive(Debug)]
struct Shared {
    archive: Archive,
    /// The addresses that the listeners have.
    application: SocketAddr,
    replay: SocketAddr,
    public: Option<[String; 2]>,
    review: Option<Review>,
    answering: Semaphore,
    listeners: Arc<Semaphore>,
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
        for address in [options.listen, options.replay_listen] {
            if !address.ip().is_loopback() {
                return Err(ServeError::Public(address));
            }
        }
        let public = options.public.as_ref().map(origins).transpose()?;
        drop(Store::read_only(&options.archive).map_err(OpenError::from)?);
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(ANSWERING_MAX)
            .thread_name("serve")
            .enable_all()
            .build()
            .map_err(ServeError::Start)?;
        let listen = |address: SocketAddr| {
            let bound = runtime.block_on(TcpListener::bind(address));
            let bound = bound.and_then(|listener| Ok((listener.local_addr()?, listener)));
            bound.map_err(|source| ServeError::Listen { address, source })
        };
        let (application_at, application) = listen(options.listen)?;
        let (replay_at, replay) = listen(options.replay_listen)?;
        let shared = Arc::new(Shared {
            archive: Archive::new(&options.archive),
            application: application_at,
            replay: replay_at,
            public,
            review: options.review.clone(),
            answering: Semaphore::new(ANSWERING_MAX),
            listeners: Arc::new(Semaphore::new(LISTENERS_MAX)),
            ends: watch::Sender::new(false),
            connections: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
        });
        Ok(Self { runtime, application, replay, shared })
    }

    /// Where the application and the replay listen.
    #[must_use]
    pub fn addresses(&self) -> [SocketAddr; 2] {
        [self.shared.application, self.shared.replay]
    }

    /// Serves until `control` says to stop; requests that have begun then are answered.
    pub fn run(self, control: &Control) {
        let Self { runtime, application, replay, shared } = self;
        runtime.block_on(async {
            let connections = http::Connections::default();
            tokio::select! {
                () = http::accept(&application, http::Origin::Application, &shared, &connections) => {}
                () = http::accept(&replay, http::Origin::Replay, &shared, &connections) => {}
                () = async {
                    while !control.is_stopped() {
                        tokio::time::sleep(LOOK_EVERY).await;
                        shared.archive.look();
                    }
                } => {}
            }
            drop((application, replay));
            shared.ends.send_replace(true);
            connections.finish(LAST_REQUESTS).await;
        });
        runtime.shutdown_background();
    }
}

/// Two origins as browsers write them.
fn origins(stated: &[String; 2]) -> Result<[String; 2], ServeError> {
    let origin = |text: &String| {
        let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url.filter(|url| url.path() == "/" && url.query().is_none() && url.fragment().is_none());
        let url = url.filter(|url| url.username().is_empty() && url.password().is_none());
        url.map(|url| url.origin().ascii_serialization()).ok_or_else(|| ServeError::Origin(text.clone()))
    };
    let [application, replay] = stated;
    let origins = [origin(application)?, origin(replay)?];
    if origins[0] == origins[1] {
        return Err(ServeError::SameOrigin(origins[0].clone()));
    }
    Ok(origins)
}

#[cfg(test)]
mod tests {
    use super::origins;

    #[test]
    fn origins_are_written_as_browsers_do_and_differ() {
        let of = |application: &str, replay: &str| origins(&[application.to_owned(), replay.to_owned()]);
        let told = of("https://Archive.example.org:443/", "http://replay.example.org:81").unwrap();
        assert_eq!(told, ["https://archive.example.org", "http://replay.example.org:81"]);
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
        assert!(
            of("https://a.org", "https://A.org/")
                .unwrap_err()
                .to_string()
                .starts_with("both origins are https://a.org:")
        );
    }
}
