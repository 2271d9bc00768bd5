//! From a host to a connection: resolution, address guard, TCP, TLS.

use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use archive_storage::Digest;
use bytes::BytesMut;
use lru::LruCache;
use rustix::io::Errno;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::pki_types::ServerName;
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::certificates::{TlsFacts, Verifier};
use super::error::Unreached;
use super::logins::LoginHosts;
use super::{ConnectTo, FetchError, FetchSettings, is_public};

/// Maximum number of addresses of a host that are tried.
const ADDRESSES_MAX: usize = 8;

/// The next address of a host is tried, too, if there is no connection within this time (RFC 8305, section 5).
const NEXT_ADDRESS_AFTER: Duration = Duration::from_secs(1);

/// Maximum number of hosts whose further addresses are remembered.
const HOSTS_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(65_535);

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
pub(super) struct FetchConnector {
    tls: TlsConnector,
    /// Those that show a certificate of their own, by the hosts to which they do.
    certified: Vec<(LoginHosts, TlsConnector)>,
    verifier: Arc<Verifier>,
    pub(super) redirections: Vec<ConnectTo>,
    pub(super) allow_private: bool,
    pub(super) timeout: Duration,
    /// All usable addresses of hosts that have several.
    several: RefCell<LruCache<Box<str>, Vec<IpAddr>>>,
}

impl FetchConnector {
    pub(super) fn new(settings: &FetchSettings) -> Self {
        let mut roots = RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        roots.add_parsable_certificates(settings.authorities.iter().cloned());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .expect("there are authorities, and no lists of revoked certificates");
        let verifier = Arc::new(Verifier::new(inner, settings.accepted.clone()));
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the ring provider supports the default protocol versions")
            .dangerous()
            .with_custom_certificate_verifier(Arc::<Verifier>::clone(&verifier))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let certified = settings.logins.certificates().into_iter().map(|(hosts, key)| {
            let mut own = config.clone();
            own.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(key));
            own.resumption = Resumption::default();
            (hosts, TlsConnector::from(Arc::new(own)))
        });
        Self {
            certified: certified.collect(),
            tls: TlsConnector::from(Arc::new(config)),
            verifier,
            redirections: settings.connect_to.clone(),
            allow_private: settings.allow_private,
            timeout: settings.limits.connect,
            several: RefCell::new(LruCache::new(HOSTS_MAX)),
        }
    }

    /// Returns the address that requests for `host:port` go to first. If the host has others, they are tried when
    /// nothing connects there.
    ///
    /// A redirection configured by the user is trusted; every address from DNS or from the URL itself must be public
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
        let usable = in_order(addresses.iter().filter(|address| trusted || is_public(address.ip())));
        match (usable.first(), addresses.first()) {
            (Some(&address), _) => {
                let mut several = self.several.borrow_mut();
                several.pop(host);
                if usable.len() > 1 {
                    several.put(host.into(), usable.iter().map(SocketAddr::ip).collect());
                }
                Ok(address)
            }
            (None, Some(refused)) => Err(FetchError::PrivateAddress(refused.ip())),
            (None, None) => Err(FetchError::Unresolved),
        }
    }

    /// Returns the addresses to connect to, in order.
    fn addresses(&self, endpoint: &Endpoint) -> Vec<SocketAddr> {
        let first = endpoint.address;
        let mut several = self.several.borrow_mut();
        let all = several.get(&*endpoint.host).filter(|all| all.contains(&first.ip()));
        let others = all.into_iter().flatten().filter(|ip| **ip != first.ip());
        std::iter::once(first).chain(others.map(|ip| SocketAddr::new(*ip, first.port()))).collect()
    }

    /// Connects to the first of the addresses that answers (RFC 8305, section 5).
    async fn reach(&self, addresses: &[SocketAddr]) -> Result<TcpStream, FetchError> {
        let (mut attempts, mut next, mut failed) = (JoinSet::new(), addresses.iter(), Vec::new());
        loop {
            if let Some(&address) = next.next() {
                let within = self.timeout;
                attempts.spawn_local(async move {
                    (address.ip(), timeout(within, TcpStream::connect(address)).await)
                });
            }
            let patience = if next.len() > 0 { NEXT_ADDRESS_AFTER } else { Duration::MAX };
            match timeout(patience, attempts.join_next()).await {
                Ok(Some(Ok((_, Ok(Ok(stream)))))) => return Ok(stream),
                Ok(Some(Ok((_, Ok(Err(error)))))) if lacks_descriptors(&error) => {
                    return Err(FetchError::NoDescriptors);
                }
                Ok(Some(Ok((address, Ok(Err(error)))))) => failed.push((address, Some(error.kind()))),
                Ok(Some(Ok((address, Err(_))))) => failed.push((address, None)),
                // Nobody cancels an attempt.
                Ok(Some(Err(_))) | Err(_) => {}
                Ok(None) if next.len() > 0 => {}
                Ok(None) => return Err(FetchError::NoConnection(Unreached { failed, within: self.timeout })),
            }
        }
    }

    /// Returns a connection to an endpoint, and the address that it leads to.
    pub(super) async fn connect(&self, endpoint: &Endpoint) -> Result<(Connection, SocketAddr), FetchError> {
        let stream = self.reach(&self.addresses(endpoint)).await?;
        let broken = |error: io::Error| {
            let failed = vec![(endpoint.address.ip(), Some(error.kind()))];
            FetchError::NoConnection(Unreached { failed, within: self.timeout })
        };
        let address = stream.peer_addr().map_err(broken)?;
        // Each request is one small write; waiting for more data would only delay it.
        stream.set_nodelay(true).map_err(broken)?;
        if !endpoint.secure {
            return Ok((Connection::Plain(stream), address));
        }
        let name =
            ServerName::try_from(endpoint.host.trim_start_matches('[').trim_end_matches(']').to_owned())
                .map_err(|error| FetchError::Tls(error.to_string()))?;
        let certified = self.certified.iter().find(|(hosts, _)| hosts.has(&endpoint.host));
        let tls = certified.map_or(&self.tls, |(_, tls)| tls);
        let stream = timeout(self.timeout, tls.connect(name.clone(), stream))
            .await
            .map_err(|_| FetchError::Tls(format!("no handshake within {} seconds", self.timeout.as_secs())))?
            .map_err(|error| self.refusal(&error, &name))?;
        let facts = self.facts(stream.get_ref().1, &name);
        Ok((Connection::Secure(Box::new(stream), facts), address))
    }

    /// Why there is no secure connection.
    fn refusal(&self, error: &io::Error, host: &ServerName<'_>) -> FetchError {
        let of_tls = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
        let is_of_certificate = matches!(of_tls, Some(rustls::Error::InvalidCertificate(_)));
        match self.verifier.fault(host).filter(|_| is_of_certificate) {
            Some(fault) => FetchError::Certificate(Box::new(fault)),
            None => FetchError::Tls(error.to_string()),
        }
    }

    fn facts(&self, connection: &ClientConnection, host: &ServerName<'_>) -> Option<Arc<TlsFacts>> {
        let suite = connection.negotiated_cipher_suite()?.suite();
        // rustls has names of its own for the suites of TLS 1.3.
        let cipher_suite = suite.as_str()?.replacen("TLS13_", "TLS_", 1);
        let chain = connection.peer_certificates()?.iter().fold(Vec::new(), |mut all, certificate| {
            all.extend_from_slice(certificate);
            all
        });
        let accepted = self.verifier.fault(host);
        Some(Arc::new(TlsFacts { cipher_suite, chain: Digest::sha256(&chain), accepted }))
    }
}

/// Whether this process, and not the server, is why there is no connection.
fn lacks_descriptors(error: &io::Error) -> bool {
    [Errno::MFILE, Errno::NFILE].iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Orders addresses: IPv4 first, because every machine can reach an IPv4 address, then one of each in turn.
fn in_order<'a>(addresses: impl Iterator<Item = &'a SocketAddr>) -> Vec<SocketAddr> {
    let (v4, v6): (Vec<SocketAddr>, Vec<SocketAddr>) = addresses.partition(|address| address.is_ipv4());
    let longest = v4.len().max(v6.len());
    let mut order: Vec<SocketAddr> = Vec::new();
    for address in (0..longest).flat_map(|at| [v4.get(at), v6.get(at)]).flatten() {
        if !order.contains(address) {
            order.push(*address);
        }
    }
    order.truncate(ADDRESSES_MAX);
    order
}

/// An open connection to one server.
pub(super) enum Connection {
    Plain(TcpStream),
    Secure(Box<TlsStream<TcpStream>>, Option<Arc<TlsFacts>>),
}

impl Connection {
    pub(super) async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.write_all(bytes).await,
            Self::Secure(stream, _) => {
                stream.write_all(bytes).await?;
                stream.flush().await
            }
        }
    }

    pub(super) async fn read(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read_buf(buffer).await,
            Self::Secure(stream, _) => stream.read_buf(buffer).await,
        }
    }

    /// Facts of the connection, if it is secure.
    pub(super) fn tls(&self) -> Option<Arc<TlsFacts>> {
        match self {
            Self::Plain(_) => None,
            Self::Secure(_, facts) => facts.clone(),
        }
    }

    /// Protocols of the connection, as named in the field `WARC-Protocol`.
    pub(super) fn protocols(&self) -> Vec<String> {
        let mut names = vec!["http/1.1".to_owned()];
        if let Self::Secure(stream, _) = self {
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
    use std::net::SocketAddr;
    use std::time::Duration;

    use super::{Endpoint, FetchConnector, FetchError, FetchSettings};
    use crate::fetch::ResponseLimits;

    #[test]
    fn the_next_address_of_a_host_is_tried() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (alive, dead) = (listener.local_addr().unwrap(), "127.0.0.2".parse().unwrap());
        let endpoint =
            Endpoint { secure: false, host: "two.test".into(), address: SocketAddr::new(dead, alive.port()) };
        let connector = FetchConnector::new(&FetchSettings {
            limits: ResponseLimits { connect: Duration::from_secs(5), ..ResponseLimits::default() },
            ..FetchSettings::default()
        });
        let connect = || {
            let connected = connector.connect(&endpoint);
            let connected = tokio::task::LocalSet::new().block_on(&runtime, connected);
            connected.map(|(_, address)| address).map_err(|error| error.to_string())
        };
        assert_eq!(connect(), Err("no connection to 127.0.0.2 (connection refused)".to_owned()));
        connector.several.borrow_mut().put("two.test".into(), vec![dead, alive.ip()]);
        assert_eq!(connect(), Ok(alive));
        drop(listener);
        let all = "no connection to 127.0.0.2 (connection refused) or 127.0.0.1 (connection refused)";
        assert_eq!(connect(), Err(all.to_owned()));
    }

    #[test]
    fn addresses_of_both_kinds_take_turns_with_the_older_kind_first() {
        let address = |text: &str| format!("{text}:80").parse::<SocketAddr>().unwrap();
        let found = ["[2a00::1]", "[2a00::2]", "1.1.1.1", "[2a00::1]", "1.1.1.2", "1.1.1.3"].map(address);
        let expected = ["1.1.1.1", "[2a00::1]", "1.1.1.2", "[2a00::2]", "1.1.1.3"].map(address);
        assert_eq!(super::in_order(found.iter()), expected);
        let many: Vec<_> = (0..20).map(|number| address(&format!("1.1.1.{number}"))).collect();
        assert_eq!(super::in_order(many.iter()).len(), super::ADDRESSES_MAX);
    }

    #[test]
    fn what_is_guarded_is_the_address_that_is_connected_to() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let resolve = |host: &str, allow_private: bool| {
            let connector = FetchConnector::new(&FetchSettings { allow_private, ..FetchSettings::default() });
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
