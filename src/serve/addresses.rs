//! Names and addresses of an archive: where it listens, and the two origins under which clients know it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use archive_books::ledger::host_name;

use super::ServerState;

/// Name and addresses of an archive.
#[derive(Clone, Debug)]
pub(super) struct ServedAddresses {
    pub(super) name: String,
    /// Addresses of the listeners.
    pub(super) application: SocketAddr,
    pub(super) replay: SocketAddr,
    pub(super) public: Option<[String; 2]>,
    /// Names under which browsers see application and replay if both listen at the same address of this machine. A
    /// browser sends all cookies of a host to each of its ports, so archived pages need another name.
    pub(super) own_names: Option<[String; 2]>,
}

impl ServedAddresses {
    /// Whether this is the address of a web server in front, which names its clients.
    pub(super) fn trusts(&self, peer: IpAddr) -> bool {
        peer.is_loopback() && self.public.is_some()
    }

    /// Whether `host` is the public name of one of the two origins.
    pub(super) fn is_public(&self, host: &str) -> bool {
        self.public
            .iter()
            .flatten()
            .any(|origin| origin.split_once("://").is_some_and(|(_, name)| name.eq_ignore_ascii_case(host)))
    }

    /// Origins of the application and the replay: as configured, or else derived from the name in the request.
    pub(super) fn origins(&self, host: &str) -> [String; 2] {
        self.public.clone().unwrap_or_else(|| self.local_origins(host))
    }

    /// Origins without a web server in front.
    pub(super) fn local_origins(&self, host: &str) -> [String; 2] {
        let named = |host: &str, address: SocketAddr| format!("http://{}", with_port(host, address.port()));
        if let Some(own) = &self.own_names {
            let is_of_replay = host_name(host).eq_ignore_ascii_case(&own[1]);
            let application = if is_of_replay { &own[0] } else { host };
            return [named(application, self.application), named(&own[1], self.replay)];
        }
        [self.application, self.replay].map(|address| match address.ip() {
            ip if self.application.ip() == self.replay.ip() || ip.is_unspecified() => named(host, address),
            _ => format!("http://{address}"),
        })
    }

    /// Names of two origins without public ones, see [`ServedAddresses::own_names`].
    pub(super) fn names_at([application, replay]: [SocketAddr; 2]) -> Option<[String; 2]> {
        let ip = application.ip();
        let is_named = ip == IpAddr::from(Ipv4Addr::LOCALHOST) || ip == IpAddr::from(Ipv6Addr::LOCALHOST);
        (ip == replay.ip() && is_named)
            .then(|| [host_name(&application.to_string()).to_owned(), "localhost".to_owned()])
    }
}

impl ServerState {
    /// The other archives served, with the origins of their applications.
    pub(super) fn others(&self, host: &str) -> Vec<(String, String)> {
        let others = self.places.iter().filter(|place| place.replay != self.place.replay);
        others.map(|place| (place.name.clone(), place.origins(host)[0].clone())).collect()
    }
}

/// Replaces the port of a host.
pub(super) fn with_port(host: &str, port: u16) -> String {
    format!("{}:{port}", host_name(host))
}

#[cfg(test)]
mod tests {
    use archive_books::ledger::names_this_machine;

    use super::with_port;

    #[test]
    fn only_addresses_and_localhost_name_this_machine() {
        for host in ["127.0.0.1:8070", "localhost", "LOCALHOST:1", "[::1]:8070", "[::1]"] {
            assert!(names_this_machine(host), "{host}");
        }
        for host in ["evil.test:8070", "127.0.0.1.evil.test", "", ":8070", "::1", "localhost.evil.test"] {
            assert!(!names_this_machine(host), "{host}");
        }
        assert_eq!(with_port("localhost:8070", 8071), "localhost:8071");
        assert_eq!(with_port("[::1]", 8071), "[::1]:8071");
    }
}
