//! Ways out: through which proxy, from which address of this machine and by which version of IP hosts are reached.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use url::Url;
use xxhash_rust::xxh3::xxh3_64;

/// The ways out of this machine.
#[derive(Debug, Clone, Default)]
pub struct Ways {
    /// Proxies by hosts; of those that fit a host, the ones that name it most closely count.
    pub proxies: Vec<ProxyRule>,
    /// Addresses of this machine that connections are made from; none to leave the choice to the system.
    pub own: Vec<IpAddr>,
    /// The only version of IP that is spoken; `None` for both.
    pub version: Option<IpVersion>,
}

/// A version of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum IpVersion {
    V4,
    V6,
}

impl Ways {
    /// The proxy through which a host is reached, if it is one. Hosts are spread over the rules with the same pattern, and
    /// each stays with its own: it sees one visitor, and connections can be reused.
    #[must_use]
    pub fn proxy(&self, host: &str) -> Option<&Proxy> {
        let closest = self.proxies.iter().filter_map(|rule| rule.hosts.closeness(host)).max()?;
        let fit = self.proxies.iter().filter(|rule| rule.hosts.closeness(host) == Some(closest));
        of_host(&fit.collect::<Vec<_>>(), host).and_then(|rule| rule.proxy.as_ref())
    }

    /// The address of this machine from which an address of a host is asked, if that is not left to the system. Hosts
    /// are spread over them as over proxies.
    pub(super) fn own_for(&self, host: &str, address: IpAddr) -> Option<IpAddr> {
        let fit = self.own.iter().filter(|own| own.is_ipv4() == address.is_ipv4());
        of_host(&fit.collect::<Vec<_>>(), host).map(|own| **own)
    }

    /// Whether an address can be asked at all.
    pub(super) fn allow(&self, address: IpAddr) -> bool {
        let is_own = |own: &IpAddr| own.is_ipv4() == address.is_ipv4();
        self.version.is_none_or(|version| (version == IpVersion::V4) == address.is_ipv4())
            && (self.own.is_empty() || self.own.iter().any(is_own))
    }
}

/// Returns the one of several that a host has, the same in every run with the same ones.
fn of_host<'a, T>(all: &'a [T], host: &str) -> Option<&'a T> {
    let place = xxh3_64(host.as_bytes()).checked_rem(all.len() as u64)?;
    all.get(usize::try_from(place).ok()?)
}

/// `[HOSTS=]URL`: hosts, and the proxy through which they are reached, or `direct` for none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyRule {
    hosts: HostPattern,
    proxy: Option<Proxy>,
}

/// Hosts by name: all, one, or (`*.example.org`) one and all below it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum HostPattern {
    All,
    One(String),
    Below(String),
}

impl HostPattern {
    /// How closely it names a host; `None` if it does not mean it.
    fn closeness(&self, host: &str) -> Option<usize> {
        match self {
            Self::All => Some(0),
            Self::One(name) => (name == host).then_some(usize::MAX),
            Self::Below(name) => {
                let rest = host.strip_suffix(name.as_str())?;
                (rest.is_empty() || rest.ends_with('.')).then_some(name.len())
            }
        }
    }
}

impl FromStr for HostPattern {
    type Err = ProxyRuleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (is_below, name) = text.strip_prefix("*.").map_or((false, text), |name| (true, name));
        let url = Url::parse(&format!("https://{name}/")).map_err(|_| ProxyRuleError::Hosts)?;
        let host = url.host_str().filter(|_| !name.contains(['/', '@', '*', '#', '?', ':']));
        // An IPv6 address has colons, and is no pattern.
        let host = host.ok_or(ProxyRuleError::Hosts)?.to_owned();
        Ok(if is_below { Self::Below(host) } else { Self::One(host) })
    }
}

/// Why a proxy cannot be used. No message repeats what was given, which may have a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyRuleError {
    /// The hosts are no pattern.
    #[error("the hosts of a proxy are a host as www.example.org, or *.example.org for it and all below it")]
    Hosts,
    /// The proxy is no URL of one.
    #[error(
        "a proxy is http://HOST:PORT, https://HOST:PORT, socks5://HOST:PORT (names are resolved here), \
         socks5h://HOST:PORT (it resolves them), or direct for none"
    )]
    Url,
    /// It has a name or a password.
    #[error(
        "name and password of a proxy are secrets, which a command line shows to everybody: \
         `archive login add HOST:PORT --proxy NAME` keeps them"
    )]
    Secret,
}

impl FromStr for ProxyRule {
    type Err = ProxyRuleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (hosts, proxy) = match text.split_once('=') {
            Some((hosts, proxy)) if !hosts.contains("://") => (hosts.parse()?, proxy),
            _ => (HostPattern::All, text),
        };
        Ok(Self { hosts, proxy: if proxy == "direct" { None } else { Some(proxy.parse()?) } })
    }
}

/// A proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    pub(super) kind: ProxyKind,
    pub(super) host: String,
    pub(super) port: u16,
}

/// How a proxy is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProxyKind {
    Http,
    Https,
    /// Names are resolved here.
    Socks5,
    /// The proxy resolves names.
    Socks5h,
}

archive_base::names! { ProxyKind: Http "http", Https "https", Socks5 "socks5", Socks5h "socks5h" }

impl Proxy {
    /// Whether it resolves names.
    pub(super) fn resolves(&self) -> bool {
        self.kind != ProxyKind::Socks5
    }

    /// Whether names of Tor mean something to it.
    pub(super) fn may_know_onions(&self) -> bool {
        self.kind == ProxyKind::Socks5h
    }
}

/// As a URL without anything secret.
impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.kind.name(), self.host, self.port)
    }
}

impl FromStr for Proxy {
    type Err = ProxyRuleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url = Url::parse(text).map_err(|_| ProxyRuleError::Url)?;
        let kind = ProxyKind::EACH.into_iter().find(|kind| kind.name() == url.scheme());
        if !url.username().is_empty() || url.password().is_some() {
            return Err(ProxyRuleError::Secret);
        }
        let is_bare = matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
        match (kind, url.host_str(), url.port_or_known_default()) {
            (Some(kind), Some(host), Some(port)) if is_bare => {
                Ok(Self { kind, host: host.to_ascii_lowercase(), port })
            }
            _ => Err(ProxyRuleError::Url),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn ways(rules: &[&str]) -> Ways {
        Ways { proxies: rules.iter().map(|rule| rule.parse().unwrap()).collect(), ..Ways::default() }
    }

    #[test]
    fn the_closest_pattern_counts() {
        let ways = ways(&[
            "*.A.test=socks5://P:1",
            "http://P:2",
            "b.a.test=direct",
            "*.c.a.test=https://p/",
            "*.onion=socks5h://[::1]:9050",
        ]);
        for (host, proxy) in [
            ("a.test", Some("socks5://p:1")),
            ("x.a.test", Some("socks5://p:1")),
            ("b.a.test", None),
            ("d.b.a.test", Some("socks5://p:1")),
            ("c.a.test", Some("https://p:443")),
            ("ba.test", Some("http://p:2")),
            ("x.onion", Some("socks5h://[::1]:9050")),
        ] {
            assert_eq!(ways.proxy(host).map(ToString::to_string).as_deref(), proxy, "{host}");
        }
        assert_eq!(Ways::default().proxy("a.test"), None);
    }

    #[test]
    fn hosts_are_spread_over_equal_patterns_and_stay() {
        let ways = ways(&["http://p:1", "http://p:2", "http://p:3", "a.test=http://p:4"]);
        let ports: BTreeSet<u16> =
            (0..50).map(|number| ways.proxy(&format!("h{number}.test")).unwrap().port).collect();
        assert_eq!(ports, [1, 2, 3].into());
        assert_eq!(ways.proxy("h1.test"), ways.proxy("h1.test"));
        let own = ["127.0.0.1", "127.0.0.2", "::1"].map(|own| own.parse().unwrap());
        let ways = Ways { own: own.into(), ..Ways::default() };
        let from = |address: &str| -> BTreeSet<IpAddr> {
            let address = address.parse().unwrap();
            (0..50).filter_map(|number| ways.own_for(&format!("h{number}.test"), address)).collect()
        };
        assert_eq!(from("1.1.1.1"), own[..2].iter().copied().collect());
        assert_eq!(from("2a00::1"), own[2..].iter().copied().collect());
        let v4 = Ways { own: own[..2].into(), ..Ways::default() };
        assert!(v4.allow(own[0]) && !v4.allow(own[2]));
        let v6 = Ways { version: Some(IpVersion::V6), ..Ways::default() };
        assert!(!v6.allow(own[0]) && v6.allow(own[2]));
    }

    #[test]
    fn what_is_no_proxy_is_refused_and_not_repeated() {
        for (text, why) in [
            ("p:3128", ProxyRuleError::Url),
            ("ftp://p:21", ProxyRuleError::Url),
            ("socks5://p", ProxyRuleError::Url),
            ("http://p:1/x", ProxyRuleError::Url),
            ("a.test=", ProxyRuleError::Url),
            ("a.*=http://p:1", ProxyRuleError::Hosts),
            ("a.test:80=http://p:1", ProxyRuleError::Hosts),
            ("http://anna:s3cret@p:1", ProxyRuleError::Secret),
            ("*.test=socks5://:s3=cret@p:1", ProxyRuleError::Secret),
        ] {
            assert_eq!(text.parse::<ProxyRule>(), Err(why), "{text}");
            assert!(!why.to_string().contains("s3"));
        }
    }
}
