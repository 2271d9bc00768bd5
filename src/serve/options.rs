//! What is served, where, and why it may not be.

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use hyper::header::HeaderName;

use super::opened::OpenError;
use crate::accounts::AccountsError;
use crate::nodes::{self, AskError, Node};

/// The name of the audit log in an archive's folder.
pub const AUDIT: &str = "audit.jsonl";

/// What to serve, and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// The archives' folders. Each archive has two addresses of its own, for its pages must share no origin with those of others.
    pub archives: Vec<PathBuf>,
    /// Where the application listens. Each further archive is two ports higher, unless the system is to choose (port 0).
    pub listen: SocketAddr,
    /// Where the replay listens; the same holds.
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
    /// Who may come in; without it everybody who reaches an address may.
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
    /// How long a node may take for an answer.
    pub wait: Duration,
}

/// Notices from outside, which wait for the next run.
#[derive(Clone, Debug, Default)]
pub struct PingRules {
    /// The field in which a web server before this one says who asks, as `X-Real-IP`; without it all clients are one.
    pub client_header: Option<HeaderName>,
}

/// People with accounts.
#[derive(Clone, Debug)]
pub struct Members {
    /// Their file, [`crate::accounts`].
    pub file: PathBuf,
    /// The audit log; otherwise [`AUDIT`] in the folder of the first archive.
    pub audit: Option<PathBuf>,
}

/// Reviewing in the browser. Without accounts everybody on this machine may decide, under any name.
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
    /// There is no place for the audit log.
    #[error("there is no folder for the audit log: name a file by --audit-log")]
    NoAudit,
    /// Nodes cannot be asked.
    #[error(transparent)]
    Nodes(#[from] AskError),
    /// The audit log could not be written.
    #[error("cannot write the audit log {} (--audit-log names another place): {source}", path.display())]
    Audit {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The address is not available.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// A stated origin is not one.
    #[error("'{0}' is not an origin such as https://archive.example.org")]
    Origin(String),
    /// Archived pages would be able to read the application.
    #[error("both origins are {0}: archived pages are hostile and need an origin of their own")]
    SameOrigin(String),
    /// Some archives would have no origins.
    #[error("of {0} archives each needs an origin and a replay origin, or none has one")]
    Origins(usize),
    /// There is no port of that number.
    #[error("for {0} archives there are not enough ports from {1} on")]
    Ports(usize, SocketAddr),
    /// The number of sockets does not fit.
    #[error("{sockets} sockets were passed for {archives} archives; each needs two, the application's first")]
    Sockets {
        /// Archives.
        archives: usize,
        /// Sockets.
        sockets: usize,
    },
    /// The system gives no threads.
    #[error("cannot start serving: {0}")]
    Start(io::Error),
}

impl Options {
    /// How many pairs of addresses are served.
    pub(super) fn pairs(&self) -> usize {
        self.archives.len() + usize::from(self.together.is_some())
    }

    /// Refuses an address that other machines reach unless people have to say who they are.
    pub(super) fn check_reach(&self, address: SocketAddr) -> Result<(), ServeError> {
        let asks = self.people.is_some() || self.user_header.is_some();
        if asks || address.ip().is_loopback() { Ok(()) } else { Err(ServeError::Public(address)) }
    }
}

/// The address of a further archive; nothing where there is no port of that number.
pub(super) fn following(first: SocketAddr, number: usize) -> Option<SocketAddr> {
    let port = match first.port() {
        0 => 0,
        port => u16::try_from(usize::from(port) + 2 * number).ok()?,
    };
    Some(SocketAddr::new(first.ip(), port))
}

/// The origins of some archives as browsers write them, a pair for each, or none at all.
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
