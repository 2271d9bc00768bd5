//! From a host to a connection: resolution, address guard, TCP, TLS.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{ConnectTo, FetchError, Settings, is_public};

/// A server to connect to, already resolved, so that the address that was checked is the one connected to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// Whether to speak TLS.
    pub secure: bool,
    /// Name or address in the URL, for TLS.
    pub host: Arc<str>,
    /// Address to connect to.
    pub address: SocketAddr,
}

/// Makes connections.
pub(super) struct Connector {
    pub(super) tls: TlsConnector,
    pub(super) redirections: Vec<ConnectTo>,
    pub(super) allow_private: bool,
    pub(super) timeout: Duration,
}

impl Connector {
    pub(super) fn new(settings: &Settings) -> Self {
        let mut roots = RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        roots.add_parsable_certificates(settings.authorities.iter().cloned());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the ring provider supports the default protocol versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self {
            tls: TlsConnector::from(Arc::new(config)),
            redirections: settings.connect_to.clone(),
            allow_private: settings.allow_private,
            timeout: settings.limits.connect,
        }
    }

    /// Returns the address that requests for `host:port` go to.
    ///
    /// A redirection configured by the user is trusted; an address from DNS or from the URL itself must be public
    /// unless private ones are allowed.
    pub(super) async fn resolve(&self, host: &str, port: u16) -> Result<SocketAddr, FetchError> {
        let redirected = self.redirections.iter().find_map(|rule| rule.apply(host, port));
        let trusted = redirected.is_some() || self.allow_private;
        let (name, port) = redirected.unwrap_or_else(|| (host.to_owned(), port));
        let name = name.trim_start_matches('[').trim_end_matches(']').to_owned();
        let found = timeout(self.timeout, tokio::net::lookup_host((name, port))).await;
        let addresses: Vec<SocketAddr> = match found {
            // An IPv4-mapped IPv6 address is the same server, and shares its crawl delay.
            Ok(Ok(found)) => found.map(|at| SocketAddr::new(at.ip().to_canonical(), at.port())).collect(),
            Ok(Err(_)) | Err(_) => return Err(FetchError::Unresolved),
        };
        // IPv4 first: every machine can reach an IPv4 address.
        let usable = |v4: bool| {
            addresses
                .iter()
                .find(|address| address.is_ipv4() == v4 && (trusted || is_public(address.ip())))
                .copied()
        };
        match (usable(true).or_else(|| usable(false)), addresses.first()) {
            (Some(address), _) => Ok(address),
            (None, Some(refused)) => Err(FetchError::PrivateAddress(refused.ip())),
            (None, None) => Err(FetchError::Unresolved),
        }
    }

    pub(super) async fn connect(&self, endpoint: &Endpoint) -> Result<Connection, FetchError> {
        let within = |_| FetchError::ConnectTimeout(self.timeout.as_secs());
        let stream = timeout(self.timeout, TcpStream::connect(endpoint.address))
            .await
            .map_err(within)?
            .map_err(|error| FetchError::Connect(error.kind()))?;
        // Each request is one small write; waiting for more data would only delay it.
        stream.set_nodelay(true).map_err(|error| FetchError::Connect(error.kind()))?;
        if !endpoint.secure {
            return Ok(Connection::Plain(stream));
        }
        let name =
            ServerName::try_from(endpoint.host.trim_start_matches('[').trim_end_matches(']').to_owned())
                .map_err(|error| FetchError::Tls(error.to_string()))?;
        let stream = timeout(self.timeout, self.tls.connect(name, stream))
            .await
            .map_err(within)?
            .map_err(|error| refusal(&error))?;
        Ok(Connection::Secure(Box::new(stream)))
    }
}

/// Why there is no secure connection, in words that do not vary between attempts.
fn refusal(error: &io::Error) -> FetchError {
    use rustls::{CertificateError as Fault, Error};
    let of_tls = error.get_ref().and_then(|error| error.downcast_ref::<Error>());
    let Some(Error::InvalidCertificate(fault)) = of_tls else { return FetchError::Tls(error.to_string()) };
    FetchError::Certificate(match fault {
        Fault::Expired | Fault::ExpiredContext { .. } => "it has expired".to_owned(),
        Fault::NotValidYet | Fault::NotValidYetContext { .. } => "it is not valid yet".to_owned(),
        Fault::NotValidForName | Fault::NotValidForNameContext { .. } => "it is for another host".to_owned(),
        Fault::UnknownIssuer => "it is not signed by a trusted authority (--cacert)".to_owned(),
        fault => fault.to_string(),
    })
}

/// An open connection to one server.
pub(super) enum Connection {
    Plain(TcpStream),
    Secure(Box<TlsStream<TcpStream>>),
}

impl Connection {
    pub(super) async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.write_all(bytes).await,
            Self::Secure(stream) => {
                stream.write_all(bytes).await?;
                stream.flush().await
            }
        }
    }

    pub(super) async fn read(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read_buf(buffer).await,
            Self::Secure(stream) => stream.read_buf(buffer).await,
        }
    }

    /// Protocols of the connection, as named in the field `WARC-Protocol`.
    pub(super) fn protocols(&self) -> Vec<String> {
        let mut names = vec!["http/1.1".to_owned()];
        if let Self::Secure(stream) = self {
            match stream.get_ref().1.protocol_version() {
                Some(rustls::ProtocolVersion::TLSv1_3) => names.push("tls/1.3".to_owned()),
                Some(rustls::ProtocolVersion::TLSv1_2) => names.push("tls/1.2".to_owned()),
                _ => {}
            }
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::{Connector, FetchError, Settings};

    #[test]
    fn what_is_guarded_is_the_address_that_is_connected_to() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let resolve = |host: &str, allow_private: bool| {
            let connector = Connector::new(&Settings { allow_private, ..Settings::default() });
            runtime.block_on(connector.resolve(host, 80))
        };
        for host in
            ["[::ffff:127.0.0.1]", "[::ffff:0:127.0.0.1]", "[64:ff9b::a00:1]", "127.0.0.1", "localhost"]
        {
            assert!(matches!(resolve(host, false), Err(FetchError::PrivateAddress(_))), "{host}");
        }
        // An address in two notations is one server.
        assert_eq!(resolve("[::ffff:127.0.0.1]", true), resolve("127.0.0.1", true));
    }
}
