//! Hosts and sites.
//!
//! A host is what politeness counts (name or address, with the port when it is not the scheme's own); a site is what
//! belongs to one owner: the registrable domain by the public suffix list that the crate `psl` compiles in.

use url::Url;

/// The host of a URL as a key: its name or address, and `:port` when the port is not the scheme's own.
///
/// One trailing dot is dropped as in [`canonical`](super::canonical). A URL without a host (`mailto:`) has the key `""`.
#[must_use]
pub fn host_key(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let host = super::canonical::without_root_dot(host);
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Bytes of a host name, at most (RFC 1035, section 2.3.4): no name server could be asked for a longer one.
pub const HOST_BYTES_MAX: usize = 253;

/// Whether a canonical URL can be asked for, and kept: it has at most `bytes_max` bytes, and its host at most
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

/// The site a host belongs to: its registrable domain (`a.b.example.co.uk` is of `example.co.uk`).
///
/// Accepts a bare host or a [`host_key`]; the port doesn't count. Addresses are their own site (the public suffix list
/// would make `3.4` of `1.2.3.4`), and so are names without a registrable part (`localhost`, `co.uk`).
#[must_use]
pub fn site_of(host: &str) -> &str {
    let name = without_port(host);
    if name.starts_with('[') || is_address(name) {
        return name;
    }
    psl::domain_str(name).unwrap_or(name)
}

/// The public suffix under which a host's domain was registered with a registry: `co.uk` of `a.example.co.uk`, and `io` of
/// `user.github.io`, whose suffix `github.io` is private. `None` for addresses.
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

/// Whether a name is an IPv4 address. The URL parser has brought every form of one into four decimal numbers.
fn is_address(name: &str) -> bool {
    name.parse::<std::net::Ipv4Addr>().is_ok()
}

/// Cuts `:port` off, leaving the colons of an IPv6 address in brackets alone.
fn without_port(host: &str) -> &str {
    match host.rfind(':') {
        Some(colon) if !host[colon..].contains(']') => &host[..colon],
        _ => host,
    }
}
