//! The host part of canonical URLs, cut out without parsing them again.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Returns host and port of a canonical URL.
#[must_use]
pub fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    rest.rsplit_once('@').map_or(rest, |(_, host)| host)
}

/// Returns an authority without its port.
#[must_use]
pub fn host_name(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    }
}

/// Whether an authority is an IP address or localhost.
#[must_use]
pub fn names_this_machine(authority: &str) -> bool {
    let name = host_name(authority);
    let in_brackets = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<Ipv4Addr>().is_ok()
        || in_brackets.is_some_and(|name| name.parse::<Ipv6Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::{authority, host_name};

    #[test]
    fn authorities_are_found_in_canonical_urls() {
        assert_eq!(authority("http://a.test/x?y@z"), "a.test");
        assert_eq!(authority("https://[::1]:8080/"), "[::1]:8080");
        assert_eq!(authority("https://user:pw@a.test:81/"), "a.test:81");
        assert_eq!(host_name("[::1]:8080"), "[::1]");
        assert_eq!(host_name("[::1]"), "[::1]");
        assert_eq!(host_name("a.test"), "a.test");
    }
}
