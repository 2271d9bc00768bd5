//! Which addresses a crawler may talk to: a page on the open web must not lead it into the network it runs in.
//!
//! The check is made on the address itself, after resolution, so that a name that resolves to a private address is
//! caught as well as a literal one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether `address` is globally reachable, by the special-purpose registries of RFC 6890 and its updates.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
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
    if let Some(mapped) = address.to_ipv4_mapped() {
        return is_public_v4(mapped);
    }
    let segments = address.segments();
    let special = address.is_loopback()
        || address.is_unspecified()
        || address.is_multicast()
        || address.is_unique_local()
        || address.is_unicast_link_local()
        || segments[..6] == [0, 0, 0, 0, 0, 0] // IPv4-compatible
        || (segments[0] == 0x64 && segments[1] == 0xff9b) // NAT64: would reach any IPv4 address
        || (segments[0] == 0x100 && segments[1..4] == [0, 0, 0]) // discard-only
        || segments[0] == 0x2002 // 6to4: would reach any IPv4 address
        || (segments[0] == 0x2001 && segments[1] < 0x200) // protocol assignments, Teredo
        || (segments[0] == 0x2001 && segments[1] == 0xdb8) // documentation
        || segments[0] & 0xffc0 == 0xfec0; // former site-local
    !special
}

#[cfg(test)]
mod tests {
    use super::is_public;

    #[test]
    fn addresses_of_the_open_web_are_public() {
        for address in
            ["93.184.216.34", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:2800:220:1::1", "2a00::1"]
        {
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
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "ff02::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }
}
