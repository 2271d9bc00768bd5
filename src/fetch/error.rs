//! Why nothing, or only part of a response, was received.

use std::io;
use std::net::IpAddr;

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
    /// No connection was made within the timeout.
    #[error("no connection within {0} seconds")]
    ConnectTimeout(u64),
    /// The connection was refused or broke while being established.
    #[error("no connection: {0}")]
    Connect(io::ErrorKind),
    /// The TLS handshake failed.
    #[error("no secure connection: {0}")]
    Tls(String),
    /// The server's certificate is not trusted.
    #[error("no secure connection: the server's certificate is refused: {0}")]
    Certificate(String),
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
    /// The body was too long for memory and could not be written to disk.
    #[error("the body could not be kept on disk: {0}")]
    Spool(io::ErrorKind),
}

impl FetchError {
    /// Whether a later retry may succeed.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        !matches!(self, Self::PrivateAddress(_) | Self::Certificate(_) | Self::HeadTooLong(_) | Self::NotHttp)
    }
}
