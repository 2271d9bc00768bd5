//! Hosts and sites.
//!
//! A host is the unit of politeness (name or address, with the port unless it is the scheme's default). A site belongs
//! to one owner: it is the registrable domain by the public suffix list compiled into the crate `psl`.

use url::Url;

/// Returns the host of a URL as a key: its name or address, and `:port` unless that is the scheme's default.
///
/// Trailing dots are dropped as in [`canonical`](super::canonical). A URL without a host (`mailto:`) has the key `""`.
#[must_use]
pub fn host_key(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let host = super::canonical::without_root_dot(host);
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Maximum bytes of a host name (RFC 1035, section 2.3.4): a longer one cannot be looked up.
pub const HOST_BYTES_MAX: usize = 253;

/// Whether a canonical URL can be fetched and stored: it has at most `bytes_max` bytes, and its host at most
/// [`HOST_BYTES_MAX`].
#[must_use]
pub fn is_url_in_bounds(url: &str, bytes_max: usize) -> bool {
    let host = || {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        without_port(authority.rsplit_once('@').map_or(authority, |(_, host)| host))
    };
    url.len() <= bytes_max && (url.len() <= HOST_BYTES_MAX || host().len() <= HOST_BYTES_MAX)
}

/// Returns the site of a host: its registrable domain (`example.co.uk` for `a.b.example.co.uk`).
///
/// Accepts a bare host or a [`host_key`]; the port is ignored. An address is its own site (the public suffix list would
/// give `3.4` for `1.2.3.4`), and so is a name without a registrable part (`localhost`, `co.uk`).
#[must_use]
pub fn site_of(host: &str) -> &str {
    let name = without_port(host);
    if name.starts_with('[') || is_address(name) {
        return name;
    }
    psl::domain_str(name).unwrap_or(name)
}

/// Returns the public suffix under which a host's domain was registered with a registry: `co.uk` for `a.example.co.uk`,
/// and `io` for `user.github.io`, whose suffix `github.io` is private. `None` for addresses.
#[must_use]
pub fn registry_suffix(host: &str) -> Option<&str> {
    let name = without_port(host);
    if name.is_empty() || name.starts_with('[') || is_address(name) {
        return None;
    }
    let mut rest = name;
    loop {
        let suffix = psl::suffix(rest.as_bytes())?;
        let text = std::str::from_utf8(suffix.as_bytes()).ok()?;
        if suffix.typ() != Some(psl::Type::Private) {
            return Some(text);
        }
        rest = text.split_once('.')?.1;
    }
}

/// Whether a name is an IPv4 address. The URL parser has converted every form of one to four decimal numbers.
fn is_address(name: &str) -> bool {
    name.parse::<std::net::Ipv4Addr>().is_ok()
}

/// Cuts off `:port`, but not within an IPv6 address in brackets.
fn without_port(host: &str) -> &str {
    match host.rfind(':') {
        Some(colon) if !host[colon..].contains(']') => &host[..colon],
        _ => host,
    }
}
