//! Why nothing, or only part of a response, was received.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::{CertificateFault, ProxyFault};

/// The addresses that were tried, each with the reason; without one, nothing answered in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreached {
    pub(super) failed: Vec<(IpAddr, Option<io::ErrorKind>)>,
    pub(super) within: Duration,
}

impl Unreached {
    fn reasons(&self) -> impl Iterator<Item = (IpAddr, String)> {
        let reason = |kind: Option<io::ErrorKind>| match kind {
            Some(kind) => kind.to_string(),
            None => format!("no answer within {} seconds", self.within.as_secs()),
        };
        self.failed.iter().map(move |&(address, kind)| (address, reason(kind)))
    }
}

impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each: Vec<String> =
            self.reasons().map(|(address, reason)| format!("{address} ({reason})")).collect();
        f.write_str(&each.join(" or "))
    }
}

/// Why a URL could not be fetched.
///
/// The text is stored with the failed capture, so it names the cause, but nothing that varies between runs.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum FetchError {
    /// The host name has no address, or DNS did not answer.
    #[error("the host name cannot be resolved")]
    Unresolved,
    /// Every address of the host name is one that the archive refuses to connect to.
    #[error("{0} is not a public address; --allow-private permits it")]
    PrivateAddress(IpAddr),
    /// The host name is one that only a network itself knows, and would be resolved by a proxy.
    #[error("the host name is one inside of a network; --allow-private permits it")]
    PrivateName,
    /// The host name is one of Tor.
    #[error(
        "names of .onion are reached through Tor alone, as with --proxy '*.onion=socks5h://127.0.0.1:9050'"
    )]
    Onion,
    /// The host has no address that can be asked from here.
    #[error("the host has no address of the kind that --ipv4, --ipv6 or --bind leave")]
    NoSuchAddress,
    /// There is no connection through a proxy.
    #[error("no connection through the proxy {proxy}: {fault}")]
    Proxy {
        /// The proxy as a URL, without anything secret.
        proxy: String,
        /// The cause.
        fault: ProxyFault,
    },
    /// No address of the host accepted a connection.
    #[error("no connection to {0}")]
    NoConnection(Unreached),
    /// This process may open no more connections.
    #[error("no connection, because too many files are open here; allow more (`ulimit -n 4096`)")]
    NoDescriptors,
    /// The TLS handshake failed.
    #[error("no secure connection: {0}")]
    Tls(String),
    /// The server speaks none of the protocols that it was offered.
    #[error("no secure connection: the server speaks neither HTTP/1.1 nor HTTP/2")]
    NoVersion,
    /// The server's certificate is not trusted.
    #[error("no secure connection: {0}")]
    Certificate(Box<CertificateFault>),
    /// The server closed or broke the connection before sending a complete head.
    #[error("the connection ended before a response head")]
    NoHead,
    /// The server did not send a complete head within the timeout.
    #[error("no response head within {0} seconds")]
    HeadTimeout(u64),
    /// The head is longer than the limit.
    #[error("the response head is longer than {0} bytes")]
    HeadTooLong(usize),
    /// The response is not HTTP/1.
    #[error("the answer is not HTTP/1")]
    NotHttp,
    /// The head gives several lengths of the body.
    #[error("the answer gives several lengths of its body")]
    Lengths,
    /// A log-in by a form does not work: nothing is asked for without it.
    #[error("{0}")]
    LogIn(Arc<str>),
    /// A new session does not open the page, by this sign.
    #[error("the page asks for a log-in although there is a new session: {0}")]
    LoggedOut(&'static str),
    /// The body was too long for memory and could not be written to disk.
    #[error("the body could not be kept on disk: {0}")]
    Spool(io::ErrorKind),
}

impl FetchError {
    /// How the text begins if there was no secure connection.
    pub const NOT_SECURE: &str = "no secure connection";

    /// The reason without addresses, by which failures are counted.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::NoConnection(unreached) => unreached
                .reasons()
                .next()
                .map_or_else(String::new, |(_, reason)| format!("no connection: {reason}")),
            Self::Certificate(refused) => {
                format!("no secure connection: the certificate is refused: {}", refused.fault)
            }
            error => error.to_string(),
        }
    }

    /// Whether there was no connection, which concerns all pages of the host.
    #[must_use]
    pub fn is_of_connection(&self) -> bool {
        matches!(
            self,
            Self::Unresolved
                | Self::PrivateAddress(_)
                | Self::PrivateName
                | Self::Onion
                | Self::NoSuchAddress
                | Self::Proxy { .. }
                | Self::NoConnection(_)
                | Self::NoDescriptors
                | Self::Tls(_)
                | Self::NoVersion
                | Self::Certificate(_)
        )
    }

    /// Whether a proxy is out of order, which says nothing of any server.
    #[must_use]
    pub fn is_of_proxy(&self) -> bool {
        matches!(self, Self::Proxy { fault, .. } if fault.is_of_proxy())
    }

    /// Whether a later retry may succeed.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        !matches!(
            self,
            Self::PrivateAddress(_)
                | Self::PrivateName
                | Self::Onion
                | Self::NoSuchAddress
                | Self::Certificate(_)
                | Self::LogIn(_)
                | Self::LoggedOut(_)
                | Self::HeadTooLong(_)
                | Self::NotHttp
                | Self::Lengths
        )
    }
}
