//! From a host to a connection: resolution, address guard, proxies, TCP, TLS.

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
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::certificates::{TlsFacts, Verifier};
use super::error::Unreached;
use super::guard::{is_onion, is_private_name, is_public};
use super::http2::Http2;
use super::logins::LoginHosts;
use super::proxy::{ProxyFault, Wire, open_tunnel};
use super::ways::{Proxy, ProxyKind, Ways};
use super::{ConnectTo, FetchError, FetchSettings, Logins};

/// Maximum number of addresses of a host that are tried.
const ADDRESSES_MAX: usize = 8;

/// The next address of a host is tried, too, if there is no connection within this time (RFC 8305, section 5).
const NEXT_ADDRESS_AFTER: Duration = Duration::from_secs(1);

/// What a server says that speaks none of the protocols offered (RFC 7301, section 3.2).
const NO_COMMON_VERSION: rustls::Error =
    rustls::Error::AlertReceived(rustls::AlertDescription::NoApplicationProtocol);

/// Maximum number of hosts whose further addresses are remembered.
const HOSTS_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(65_535);

/// The protocol that a server is asked in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HttpVersion {
    Http1,
    Http2,
}

impl HttpVersion {
    /// Its name in ALPN and in the field `WARC-Protocol`.
    const fn name(self) -> &'static str {
        match self {
            Self::Http1 => "http/1.1",
            Self::Http2 => "h2",
        }
    }
}

/// Where a host is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// At an address.
    Address(IpAddr),
    /// Where a proxy finds it: the address is not known here.
    BehindProxy,
}

/// A server to connect to, already resolved, so that the address that was checked is the one connected to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// Whether to speak TLS.
    pub secure: bool,
    /// Name or address in the URL.
    pub host: Arc<str>,
    /// Port in the URL, or the default of its scheme.
    pub port: u16,
    /// Where the host is.
    pub place: Place,
}

/// A connection, and where it leads.
pub(super) struct Reached {
    pub(super) connection: Connection,
    /// Where the host was found.
    pub(super) place: Place,
    /// Address of the server, if it is known.
    pub(super) address: Option<IpAddr>,
    /// The proxy that it goes through, as a URL.
    pub(super) proxy: Option<Arc<str>>,
}

/// Makes connections.
pub(super) struct FetchConnector {
    tls: TlsConnector,
    /// Those that show a certificate of their own, by the hosts to which they do.
    certified: Vec<(LoginHosts, TlsConnector)>,
    verifier: Arc<Verifier>,
    redirections: Vec<ConnectTo>,
    ways: Ways,
    logins: Logins,
    allow_private: bool,
    timeout: Duration,
    head_bytes_max: usize,
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
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the ring provider supports the default protocol versions")
            .dangerous()
            .with_custom_certificate_verifier(Arc::<Verifier>::clone(&verifier))
            .with_no_client_auth();
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
            ways: settings.ways.clone(),
            logins: settings.logins.clone(),
            allow_private: settings.allow_private,
            timeout: settings.limits.connect,
            head_bytes_max: settings.limits.head_bytes,
            several: RefCell::new(LruCache::new(HOSTS_MAX)),
        }
    }

    /// Returns where requests for `host:port` go. If the host has several addresses, the others are tried when nothing
    /// connects to the first.
    ///
    /// A redirection configured by the user is trusted; every address from DNS or from the URL itself must be public
    /// unless private ones are allowed, and so must every name that a proxy resolves.
    pub(super) async fn resolve(&self, host: &str, port: u16) -> Result<Place, FetchError> {
        let redirected = self.redirected(host, port);
        let trusted = redirected.is_some() || self.allow_private;
        let (name, port) = redirected.unwrap_or_else(|| (without_brackets(host).to_owned(), port));
        let proxy = self.ways.proxy(host);
        if is_onion(&name) && !proxy.is_some_and(Proxy::may_know_onions) {
            return Err(FetchError::Onion);
        }
        if proxy.is_some_and(Proxy::resolves) && name.parse::<IpAddr>().is_err() {
            let is_refused = !trusted && is_private_name(&name);
            return if is_refused { Err(FetchError::PrivateName) } else { Ok(Place::BehindProxy) };
        }
        let addresses = self.look_up(&name, port).await.ok_or(FetchError::Unresolved)?;
        let guarded = addresses.iter().filter(|address| trusted || is_public(address.ip()));
        let usable = in_order(guarded.clone().filter(|address| self.ways.allow(address.ip())));
        match (usable.first(), guarded.clone().next(), addresses.first()) {
            (Some(address), ..) => {
                let mut several = self.several.borrow_mut();
                several.pop(host);
                if usable.len() > 1 {
                    several.put(host.into(), usable.iter().map(SocketAddr::ip).collect());
                }
                Ok(Place::Address(address.ip()))
            }
            (None, Some(_), _) => Err(FetchError::NoSuchAddress),
            (None, None, Some(refused)) => Err(FetchError::PrivateAddress(refused.ip())),
            (None, None, None) => Err(FetchError::Unresolved),
        }
    }

    /// Returns where the user wants connections to `host:port` to go.
    fn redirected(&self, host: &str, port: u16) -> Option<(String, u16)> {
        let (name, port) = self.redirections.iter().find_map(|rule| rule.apply(host, port))?;
        Some((without_brackets(&name).to_owned(), port))
    }

    /// Asks the system for the addresses of a name.
    async fn look_up(&self, name: &str, port: u16) -> Option<Vec<SocketAddr>> {
        let found = timeout(self.timeout, tokio::net::lookup_host((name, port))).await.ok()?.ok()?;
        // An IPv4-mapped IPv6 address is the same server, and shares its crawl delay.
        Some(found.map(|at| SocketAddr::new(at.ip().to_canonical(), at.port())).collect())
    }

    /// Returns the addresses to connect to, in order; `first` is the one that the host was found at.
    fn addresses(&self, host: &str, first: SocketAddr) -> Vec<SocketAddr> {
        let mut several = self.several.borrow_mut();
        let all = several.get(host).filter(|all| all.contains(&first.ip()));
        let others = all.into_iter().flatten().filter(|ip| **ip != first.ip());
        std::iter::once(first).chain(others.map(|ip| SocketAddr::new(*ip, first.port()))).collect()
    }

    /// Connects to the first of the addresses that answers (RFC 8305, section 5), on behalf of a host.
    async fn reach(&self, host: &str, addresses: &[SocketAddr]) -> Result<(TcpStream, IpAddr), FetchError> {
        let (mut attempts, mut next, mut failed) = (JoinSet::new(), addresses.iter(), Vec::new());
        loop {
            if let Some(&address) = next.next() {
                let (within, own) = (self.timeout, self.ways.own_for(host, address.ip()));
                attempts
                    .spawn_local(async move { (address.ip(), timeout(within, dial(address, own)).await) });
            }
            let patience = if next.len() > 0 { NEXT_ADDRESS_AFTER } else { Duration::MAX };
            match timeout(patience, attempts.join_next()).await {
                Ok(Some(Ok((address, Ok(Ok(stream)))))) => return Ok((stream, address)),
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

    /// Returns a stream to a server through a proxy, which is asked for it by name or address.
    async fn pass(&self, host: &str, proxy: &Proxy, target: (&str, u16)) -> Result<Wire, FetchError> {
        let failed = |fault| FetchError::Proxy { proxy: proxy.to_string(), fault };
        let own_name = without_brackets(&proxy.host);
        let found = self.look_up(own_name, proxy.port).await.unwrap_or_default();
        let usable = in_order(found.iter().filter(|address| self.ways.allow(address.ip())));
        if usable.is_empty() {
            return Err(failed(ProxyFault::Unresolved));
        }
        let (stream, _) = self.reach(host, &usable).await.map_err(|error| match error {
            FetchError::NoConnection(unreached) => failed(ProxyFault::Unreached(unreached)),
            error => error,
        })?;
        let opened = async {
            let mut wire: Wire = Box::new(stream);
            if proxy.kind == ProxyKind::Https {
                let tls = |error: &dyn std::fmt::Display| ProxyFault::Tls(error.to_string());
                let name = ServerName::try_from(own_name.to_owned()).map_err(|error| tls(&error))?;
                wire = Box::new(self.tls.connect(name, wire).await.map_err(|error| tls(&error))?);
            }
            let login = self.logins.of_proxy(&proxy.host, proxy.port);
            open_tunnel(&mut wire, proxy, login, target).await?;
            Ok(wire)
        };
        let opened = timeout(self.timeout, opened).await;
        opened.unwrap_or_else(|_| Err(ProxyFault::Silent(self.timeout.as_secs()))).map_err(failed)
    }

    /// Returns a connection to an endpoint. Only secure ones speak HTTP/2.
    pub(super) async fn connect(
        &self,
        endpoint: &Endpoint,
        version: HttpVersion,
    ) -> Result<Reached, FetchError> {
        let Endpoint { secure, host, port, place } = endpoint;
        let redirected = self.redirected(host, *port);
        let (name, port) = redirected.unwrap_or_else(|| (without_brackets(host).to_owned(), *port));
        let first = match place {
            // A redirection may be of one port only.
            Place::Address(address) => Some(name.parse().unwrap_or(*address)),
            Place::BehindProxy => None,
        };
        let proxy = self.ways.proxy(host);
        let (wire, place, address) = match (proxy, first) {
            (Some(proxy), first) => {
                let target = first.map_or(name, |address| address.to_string());
                (self.pass(host, proxy, (&target, port)).await?, *place, first)
            }
            (None, Some(first)) => {
                let addresses = self.addresses(host, SocketAddr::new(first, port));
                let (stream, address) = self.reach(host, &addresses).await?;
                let place = if address == first { *place } else { Place::Address(address) };
                (Box::new(stream) as Wire, place, Some(address))
            }
            (None, None) => return Err(FetchError::Unresolved),
        };
        let proxy = proxy.map(|proxy| Arc::from(proxy.to_string()));
        let connection = match secure {
            true => self.secure(host, wire, version).await?,
            false => Connection { channel: Channel::Plain(wire), tls: None, tls_version: None },
        };
        Ok(Reached { connection, place, address, proxy })
    }

    /// Speaks TLS with a host.
    async fn secure(&self, host: &str, wire: Wire, version: HttpVersion) -> Result<Connection, FetchError> {
        let name = ServerName::try_from(without_brackets(host).to_owned())
            .map_err(|error| FetchError::Tls(error.to_string()))?;
        let certified = self.certified.iter().find(|(hosts, _)| hosts.has(host));
        let tls = certified.map_or(&self.tls, |(_, tls)| tls);
        let late = |_| FetchError::Tls(format!("no handshake within {} seconds", self.timeout.as_secs()));
        let protocol = Vec::from(version.name());
        let connecting = tls.with_alpn(vec![protocol.clone()]).connect(name.clone(), wire);
        let stream = timeout(self.timeout, connecting).await.map_err(late)?;
        let stream = stream.map_err(|error| self.refusal(&error, &name))?;
        let session = stream.get_ref().1;
        let (facts, tls_version) = (self.facts(session, &name), session.protocol_version());
        let channel = match version {
            HttpVersion::Http1 => Channel::Secure(Box::new(stream)),
            HttpVersion::Http2 if session.alpn_protocol() == Some(&protocol) => {
                let begun = timeout(self.timeout, Http2::begin(stream, self.head_bytes_max));
                let begun = begun.await.map_err(late)?.map_err(|_| FetchError::NoHead)?;
                Channel::Http2(Box::new(begun))
            }
            HttpVersion::Http2 => return Err(FetchError::NoVersion),
        };
        Ok(Connection { channel, tls: facts, tls_version })
    }

    /// Why there is no secure connection.
    fn refusal(&self, error: &io::Error, host: &ServerName<'_>) -> FetchError {
        let of_tls = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
        let is_of_certificate = matches!(of_tls, Some(rustls::Error::InvalidCertificate(_)));
        match self.verifier.fault(host).filter(|_| is_of_certificate) {
            _ if of_tls == Some(&NO_COMMON_VERSION) => FetchError::NoVersion,
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

/// Connects to an address, from this one of this machine if there is one.
async fn dial(address: SocketAddr, own: Option<IpAddr>) -> io::Result<TcpStream> {
    let stream = match own {
        None => TcpStream::connect(address).await?,
        Some(own) => {
            let socket = if own.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
            socket.bind(SocketAddr::new(own, 0))?;
            socket.connect(address).await?
        }
    };
    // Each request is one small write; waiting for more data would only delay it.
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A host without the brackets that an IPv6 address has in URLs.
fn without_brackets(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
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
pub(super) struct Connection {
    channel: Channel,
    tls: Option<Arc<TlsFacts>>,
    tls_version: Option<rustls::ProtocolVersion>,
}

enum Channel {
    Plain(Wire),
    Secure(Box<TlsStream<Wire>>),
    Http2(Box<Http2<TlsStream<Wire>>>),
}

impl Connection {
    /// Sends a request in the form of HTTP/1.1.
    pub(super) async fn send(&mut self, request: &[u8]) -> io::Result<()> {
        match &mut self.channel {
            // It may be one of TLS to a proxy.
            Channel::Plain(stream) => {
                stream.write_all(request).await?;
                stream.flush().await
            }
            Channel::Secure(stream) => {
                stream.write_all(request).await?;
                stream.flush().await
            }
            Channel::Http2(streams) => streams.send(request),
        }
    }

    /// Appends what the server answers, in the form of HTTP/1.1; returns the number of bytes, 0 at the end.
    pub(super) async fn read(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        match &mut self.channel {
            Channel::Plain(stream) => stream.read_buf(buffer).await,
            Channel::Secure(stream) => stream.read_buf(buffer).await,
            Channel::Http2(streams) => streams.read(buffer).await,
        }
    }

    pub(super) fn version(&self) -> HttpVersion {
        match self.channel {
            Channel::Plain(_) | Channel::Secure(_) => HttpVersion::Http1,
            Channel::Http2(_) => HttpVersion::Http2,
        }
    }

    /// Facts of the connection, if it is secure.
    pub(super) fn tls(&self) -> Option<Arc<TlsFacts>> {
        self.tls.clone()
    }

    /// Protocols of the connection, as named in the field `WARC-Protocol`.
    pub(super) fn protocols(&self) -> Vec<String> {
        let tls = match self.tls_version {
            Some(rustls::ProtocolVersion::TLSv1_3) => Some("tls/1.3"),
            Some(rustls::ProtocolVersion::TLSv1_2) => Some("tls/1.2"),
            _ => None,
        };
        [Some(self.version().name()), tls].into_iter().flatten().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::Arc;
    use std::time::Duration;

    use super::{Endpoint, FetchConnector, FetchError, FetchSettings, HttpVersion, Place, Ways};
    use crate::fetch::ResponseLimits;
    use crate::fetch::ways::IpVersion;

    #[test]
    fn the_next_address_of_a_host_is_tried() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (alive, dead) = (listener.local_addr().unwrap(), "127.0.0.2".parse().unwrap());
        let (host, place) = (Arc::from("two.test"), Place::Address(dead));
        let endpoint = Endpoint { secure: false, host, port: alive.port(), place };
        let connector = FetchConnector::new(&FetchSettings {
            limits: ResponseLimits { connect: Duration::from_secs(5), ..ResponseLimits::default() },
            ..FetchSettings::default()
        });
        let connect = || {
            let connected = connector.connect(&endpoint, HttpVersion::Http1);
            let connected = tokio::task::LocalSet::new().block_on(&runtime, connected);
            connected.map(|reached| reached.place).map_err(|error| error.to_string())
        };
        assert_eq!(connect(), Err("no connection to 127.0.0.2 (connection refused)".to_owned()));
        connector.several.borrow_mut().put("two.test".into(), vec![dead, alive.ip()]);
        assert_eq!(connect(), Ok(Place::Address(alive.ip())));
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

    #[test]
    fn names_that_a_proxy_resolves_are_guarded_by_themselves() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let resolve = |proxy: &str, host: &str, allow_private: bool| {
            let proxies = [proxy].iter().filter_map(|proxy| proxy.parse().ok()).collect();
            let ways = Ways { proxies, ..Ways::default() };
            let settings = FetchSettings { allow_private, ways, ..FetchSettings::default() };
            runtime.block_on(FetchConnector::new(&settings).resolve(host, 80))
        };
        for proxy in ["http://p.test:1", "https://p.test:1", "socks5h://p.test:1"] {
            assert_eq!(resolve(proxy, "a.test", false), Ok(Place::BehindProxy));
            for host in ["localhost", "intranet", "a.internal", "b.local."] {
                assert_eq!(resolve(proxy, host, false), Err(FetchError::PrivateName), "{host}");
                assert_eq!(resolve(proxy, host, true), Ok(Place::BehindProxy), "{host}");
            }
            for host in ["127.0.0.1", "[::1]", "[64:ff9b::a00:1]"] {
                let refused = resolve(proxy, host, false);
                assert!(matches!(refused, Err(FetchError::PrivateAddress(_))), "{host} {refused:?}");
            }
            let onion = resolve(proxy, "x.onion", false);
            let is_known = proxy.starts_with("socks");
            assert_eq!(onion, if is_known { Ok(Place::BehindProxy) } else { Err(FetchError::Onion) });
        }
        assert!(matches!(
            resolve("socks5://p.test:1", "localhost", false),
            Err(FetchError::PrivateAddress(_))
        ));
        for proxy in ["socks5://p.test:1", "direct"] {
            assert_eq!(resolve(proxy, "x.onion", true), Err(FetchError::Onion));
        }
    }

    #[test]
    fn only_addresses_of_the_wanted_version_are_asked() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let resolve = |version: IpVersion, host: &str| {
            let ways = Ways { version: Some(version), ..Ways::default() };
            let settings = FetchSettings { allow_private: true, ways, ..FetchSettings::default() };
            runtime.block_on(FetchConnector::new(&settings).resolve(host, 80))
        };
        assert_eq!(resolve(IpVersion::V4, "127.0.0.1"), Ok(Place::Address("127.0.0.1".parse().unwrap())));
        assert_eq!(resolve(IpVersion::V6, "127.0.0.1"), Err(FetchError::NoSuchAddress));
        assert_eq!(resolve(IpVersion::V4, "[::1]"), Err(FetchError::NoSuchAddress));
    }
}
