//! Which addresses the crawler may connect to: a page on the open web must not lead it into its own network.
//!
//! The check is made on the address after resolution, so it catches a name that resolves to a private address as well
//! as a literal one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether `address` is globally reachable according to the special-purpose registries of RFC 6890 and its updates.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Top-level domains of names that only a network itself knows (RFC 6761, RFC 6762 with appendix G, RFC 8375).
const PRIVATE_DOMAINS: [&str; 9] =
    ["localhost", "local", "internal", "home.arpa", "intranet", "private", "corp", "home", "lan"];

/// Whether a name is only known inside of a network: where a proxy resolves names, no address can be checked.
pub(super) fn is_private_name(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    !name.contains('.') || PRIVATE_DOMAINS.iter().any(|domain| is_below(name, domain))
}

/// Whether a name is one of Tor, which is never resolved by DNS (RFC 7686).
pub(super) fn is_onion(name: &str) -> bool {
    is_below(name.trim_end_matches('.'), "onion")
}

/// Whether a name is a domain or below it.
fn is_below(name: &str, domain: &str) -> bool {
    let rest = name.len().checked_sub(domain.len()).and_then(|at| name.split_at_checked(at));
    rest.is_some_and(|(rest, end)| {
        end.eq_ignore_ascii_case(domain) && (rest.is_empty() || rest.ends_with('.'))
    })
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b)) // shared address space, RFC 6598
        || (a == 192 && b == 0 && c == 0) // protocol assignments
        || (a == 192 && b == 88 && c == 99) // former 6to4 relay
        || (a == 198 && (18..20).contains(&b)); // benchmarking
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        // IPv4-mapped (RFC 4291), and IPv4 reached through NAT64 translators (RFC 6052): the IPv4 address is what is
        // connected to.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            is_public_v4(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)))
        }
        [0x2001, 0..0x200, ..] // protocol assignments, Teredo
        | [0x2001, 0xdb8, ..] | [0x3fff, 0..0x1000, ..] // documentation
        | [0x2002, ..] => false, // 6to4: would reach any IPv4 address
        // Nothing else is global unicast (RFC 4291, section 2.4), including other notations that embed an IPv4 address.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::{is_onion, is_private_name, is_public};

    #[test]
    fn names_inside_a_network_are_private() {
        for name in ["localhost", "a.LOCALHOST", "intranet", "a.home.arpa", "printer.local.", "x.corp"] {
            assert!(is_private_name(name), "{name}");
        }
        for name in ["example.org", "xlocal.test", "local.test", "arpa.test", "é.test"] {
            assert!(!is_private_name(name), "{name}");
        }
        assert!(
            is_onion("a.b.onion") && is_onion("a.Onion.") && !is_onion("onion.test") && !is_onion("xonion")
        );
    }

    #[test]
    fn addresses_of_the_open_web_are_public() {
        for address in [
            "93.184.216.34",
            "1.1.1.1",
            "172.32.0.1",
            "100.128.0.1",
            "2606:2800:220:1::1",
            "2a00::1",
            "2001:200::1",
            "3fff:1000::1",
            "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn addresses_inside_a_network_are_not() {
        for address in [
            "127.0.0.1",
            "127.9.9.9",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "255.255.255.255",
            "224.0.0.1",
            "198.18.0.1",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "ff02::1",
            // Reserved, or not global unicast.
            "100::1",
            "100:0:0:1::1",
            "1fff::1",
            "4000::1",
            "5f00::1",
            "fec0::1",
            "feff::1",
            "2001:db8::1",
            "2001:1ff::1",
            "3fff::1",
            "3fff:fff::1",
            // 127.0.0.1 and 10.0.0.1 in other notations: compatible, translated, NAT64 with the well-known and local
            // prefixes, 6to4, Teredo.
            "::127.0.0.1",
            "::ffff:0:127.0.0.1",
            "::ffff:0:10.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::127.0.0.1",
            "64:ff9b:0:1::1.1.1.1",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "2001:0:0:0:0:0:80ff:fffe",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }
}
