//! Options of the server, and errors at startup.

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use archive_base::accounts::AccountsError;
use archive_books::ledger::host_name;
use archive_peers::nodes::{self, AskError, Node};
use hyper::header::HeaderName;

use super::opener::OpenError;

/// Name of the audit log in an archive's folder.
pub const AUDIT: &str = "audit.jsonl";

/// What to serve, and where.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Folders of the archives. Each archive has two addresses of its own, because its pages must not share an origin
    /// with those of others.
    pub archives: Vec<PathBuf>,
    /// Address of the application. Each further archive is two ports higher, unless the system is to choose the port
    /// (0).
    pub listen: SocketAddr,
    /// Address of the replay; further archives follow the same scheme.
    pub replay_listen: SocketAddr,
    /// Public origins of application and replay for each archive, if a web server in front provides them, for instance
    /// `https://archive.example.org`; all must differ.
    pub public: Vec<[String; 2]>,
    /// Whether people may decide on sites in the browser, and how.
    pub review: Option<ReviewOptions>,
    /// Whether strangers may send notices of changes (IndexNow, sitemap pings), and how clients are distinguished.
    pub pings: Option<PingRules>,
    /// TimeGates of other archives, to which pages for missing captures link.
    pub timegates: Vec<String>,
    /// Accounts; without them everybody who can reach an address has access.
    pub people: Option<ServedPeople>,
    /// Header field in which a web server in front names the person; decisions are recorded under this name only.
    pub user_header: Option<HeaderName>,
    /// Archives queried as one at the first two addresses; the addresses of the folders follow.
    pub together: Option<FrontOptions>,
}

/// Archives that are queried as one.
#[derive(Clone, Debug)]
pub struct FrontOptions {
    /// Nodes, each with the number of folders before it.
    pub nodes: Vec<(usize, Node)>,
    /// Time limit for a node's answer.
    pub wait: Duration,
}

/// Notices from outside, which wait for the next run.
#[derive(Clone, Debug, Default)]
pub struct PingRules {
    /// Header field in which a web server in front names the client, such as `X-Real-IP`; without it all clients count
    /// as one.
    pub client_header: Option<HeaderName>,
}

/// People with accounts.
#[derive(Clone, Debug)]
pub struct ServedPeople {
    /// The file of accounts ([`archive_base::accounts`]).
    pub file: PathBuf,
    /// The audit log; by default [`AUDIT`] in the folder of the first archive.
    pub audit: Option<PathBuf>,
}

/// Reviewing in the browser. Without accounts, everybody on this machine may decide, under any name.
#[derive(Clone, Debug)]
pub struct ReviewOptions {
    /// Name under which decisions are recorded, unless another one is given on the page.
    pub by: String,
    /// Whether ratings by others are shown only to people who have rated the site as well.
    pub is_blind: bool,
}

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The archive cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The address is reachable from other machines, but access is not restricted.
    #[error(
        "{0} can be reached from other machines: give --password-file to define who may log in, or --user-header if a web server in front checks passwords"
    )]
    Public(SocketAddr),
    /// The accounts cannot be used.
    #[error(transparent)]
    Accounts(#[from] AccountsError),
    /// There is no folder for the audit log.
    #[error("there is no folder for the audit log: name a file with --audit-log")]
    NoAudit,
    /// Nodes cannot be queried.
    #[error(transparent)]
    Nodes(#[from] AskError),
    /// The audit log cannot be written.
    #[error("cannot write the audit log {} (--audit-log names another place): {source}", path.display())]
    Audit {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The address is not available.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// A configured origin is invalid.
    #[error("'{0}' is not an origin such as https://archive.example.org")]
    Origin(String),
    /// Two origins are the same: archived pages would be able to read the application.
    #[error("both origins are {0}: archived pages are hostile and need an origin of their own")]
    SameOrigin(String),
    /// Only some archives have origins.
    #[error("give an origin and a replay origin for each of the {0} archives, or for none")]
    Origins(usize),
    /// There are not enough port numbers.
    #[error("there are not enough ports after {1} for {0} archives")]
    Ports(usize, SocketAddr),
    /// The number of sockets is wrong.
    #[error("{sockets} sockets were passed for {archives} archives; each needs two, the application's first")]
    Sockets {
        /// Number of archives.
        archives: usize,
        /// Number of sockets.
        sockets: usize,
    },
    /// The system cannot provide threads.
    #[error("cannot start serving: {0}")]
    Start(io::Error),
}

impl archive_base::error::Classified for ServeError {}

impl ServeOptions {
    /// Number of address pairs served.
    pub(super) fn pairs(&self) -> usize {
        self.archives.len() + usize::from(self.together.is_some())
    }

    /// Refuses an address that other machines can reach, unless clients are authenticated.
    pub(super) fn check_reach(&self, address: SocketAddr) -> Result<(), ServeError> {
        let asks = self.people.is_some() || self.user_header.is_some();
        if asks || address.ip().is_loopback() { Ok(()) } else { Err(ServeError::Public(address)) }
    }
}

/// Address of a further archive; `None` if there is no such port.
pub(super) fn following(first: SocketAddr, number: usize) -> Option<SocketAddr> {
    let port = match first.port() {
        0 => 0,
        port => u16::try_from(usize::from(port) + 2 * number).ok()?,
    };
    Some(SocketAddr::new(first.ip(), port))
}

/// Normalizes the configured origins: a pair for each archive, or none at all.
pub(super) fn origins(stated: &[[String; 2]], archives: usize) -> Result<Vec<[String; 2]>, ServeError> {
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

/// Whether two origins have the same host name: browsers send its cookies to both.
pub fn share_a_host(application: &str, replay: &str) -> bool {
    let host = |origin: &str| {
        origin.split_once("://").map(|(_, authority)| host_name(authority).to_ascii_lowercase())
    };
    host(application) == host(replay)
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
