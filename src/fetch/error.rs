//! Why nothing, or only a part, came back.

use std::io;
use std::net::IpAddr;

/// What kept a URL from being fetched.
///
/// The text is stored with the failed capture, so it names the cause and nothing that changes from run to run.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum FetchError {
    /// The name has no address, or the name server did not answer.
    #[error("the host name cannot be resolved")]
    Unresolved,
    /// Every address of the name is one that the archive refuses to talk to.
    #[error("{0} is not a public address; --allow-private permits it")]
    PrivateAddress(IpAddr),
    /// No connection within the time allowed.
    #[error("no connection within {0} seconds")]
    ConnectTimeout(u64),
    /// The connection was refused or broke while it was being made.
    #[error("no connection: {0}")]
    Connect(io::ErrorKind),
    /// The TLS handshake failed.
    #[error("no secure connection: {0}")]
    Tls(String),
    /// The server's certificate is not to be trusted.
    #[error("no secure connection: the server's certificate is refused, as {0}")]
    Certificate(String),
    /// The server closed or broke the connection before it had sent a whole head.
    #[error("the connection ended before a response head")]
    NoHead,
    /// The server sent nothing for too long before its head was whole.
    #[error("no response head within {0} seconds")]
    HeadTimeout(u64),
    /// The head is longer than the limit.
    #[error("the response head is longer than {0} bytes")]
    HeadTooLong(usize),
    /// What came back is not HTTP/1.
    #[error("the answer is not HTTP/1")]
    NotHttp,
    /// The body was too long for memory, and could not be kept on disk.
    #[error("the body could not be kept on disk: {0}")]
    Spool(io::ErrorKind),
    /// The URL cannot be asked for.
    #[error("not a URL that can be fetched over HTTP")]
    Unfetchable,
}

impl FetchError {
    /// Whether trying again later may help.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        !matches!(
            self,
            Self::PrivateAddress(_)
                | Self::Certificate(_)
                | Self::HeadTooLong(_)
                | Self::NotHttp
                | Self::Unfetchable
        )
    }
}
