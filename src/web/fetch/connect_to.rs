//! `--connect-to HOST:PORT:ADDR:PORT` and `--resolve HOST:PORT:ADDR`, as in curl: connect to a different server than the
//! URL names.

use std::net::IpAddr;
use std::str::FromStr;

/// One redirection of connections: requests for `host:port` go to `address:target_port` instead.
///
/// An empty part (or `*`) on the left matches anything; on the right it keeps the value of the URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectTo {
    host: Option<String>,
    port: Option<u16>,
    address: Option<String>,
    target_port: Option<u16>,
}

/// Why a `--connect-to` value cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectToError {
    /// The value does not have four parts.
    #[error(
        "'{0}' does not have the form HOST:PORT:ADDR:PORT (any part may be empty; IPv6 addresses in brackets)"
    )]
    Form(String),
    /// The value of `--resolve` does not have three parts, or the last one is no address.
    #[error("'{0}' does not have the form HOST:PORT:ADDR, with an IP address (IPv6 in brackets or not)")]
    Resolved(String),
    /// A port that is not a number from 1 to 65535.
    #[error("'{0}' is not a port number")]
    Port(String),
}

impl ConnectTo {
    /// Returns where a connection to `host:port` goes; none if this redirection does not apply.
    #[must_use]
    pub fn apply(&self, host: &str, port: u16) -> Option<(String, u16)> {
        let host_fits = self.host.as_deref().is_none_or(|h| h.eq_ignore_ascii_case(host));
        if !host_fits || self.port.is_some_and(|p| p != port) {
            return None;
        }
        let address = self.address.clone().unwrap_or_else(|| host.to_owned());
        Some((address, self.target_port.unwrap_or(port)))
    }
}

impl ConnectTo {
    /// Reads a value of `--resolve`: a redirection to an address at the same port.
    ///
    /// # Errors
    /// When the value has another form.
    pub fn resolved(text: &str) -> Result<Self, ConnectToError> {
        let form = || ConnectToError::Resolved(text.to_owned());
        let (host, rest) = split_host(text).ok_or_else(form)?;
        let (port, address) = rest.split_once(':').ok_or_else(form)?;
        let address: IpAddr = address.trim_matches(['[', ']']).parse().map_err(|_| form())?;
        let address = Some(address.to_string());
        Ok(Self { host: host_part(host), port: port_part(port)?, address, target_port: None })
    }
}

impl FromStr for ConnectTo {
    type Err = ConnectToError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let form = || ConnectToError::Form(text.to_owned());
        let (host, rest) = split_host(text).ok_or_else(form)?;
        let (port, rest) = rest.split_once(':').ok_or_else(form)?;
        let (address, target_port) = split_host(rest).ok_or_else(form)?;
        Ok(Self {
            host: host_part(host),
            port: port_part(port)?,
            address: host_part(address),
            target_port: port_part(target_port)?,
        })
    }
}

/// Splits at the colon after a host, which may be an IPv6 address in brackets.
fn split_host(text: &str) -> Option<(&str, &str)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        return Some((host, rest.strip_prefix(':')?));
    }
    text.split_once(':')
}

fn host_part(text: &str) -> Option<String> {
    (!text.is_empty() && text != "*").then(|| text.to_owned())
}

fn port_part(text: &str) -> Result<Option<u16>, ConnectToError> {
    if text.is_empty() || text == "*" {
        return Ok(None);
    }
    match text.parse::<u16>() {
        Ok(port) if port > 0 => Ok(Some(port)),
        _ => Err(ConnectToError::Port(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::{ConnectTo, ConnectToError};

    fn applied(rule: &str, host: &str, port: u16) -> Option<(String, u16)> {
        rule.parse::<ConnectTo>().unwrap().apply(host, port)
    }

    #[test]
    fn empty_parts_and_stars_match_anything() {
        let local = Some(("127.0.0.1".to_owned(), 8080));
        assert_eq!(applied("::127.0.0.1:8080", "a.test", 80), local);
        assert_eq!(applied("*:80:127.0.0.1:8080", "a.test", 80), local);
        assert_eq!(applied("*:80:127.0.0.1:8080", "a.test", 443), None);
        assert_eq!(applied("A.test::127.0.0.1:8080", "a.test", 443), local);
        assert_eq!(applied("b.test::127.0.0.1:8080", "a.test", 443), None);
        assert_eq!(applied(":::8080", "a.test", 80), Some(("a.test".to_owned(), 8080)));
        assert_eq!(applied("[::1]:80:[::2]:81", "::1", 80), Some(("::2".to_owned(), 81)));
    }

    #[test]
    fn an_address_is_given_to_a_name() {
        let resolved = |rule: &str, port| ConnectTo::resolved(rule).unwrap().apply("a.test", port);
        assert_eq!(resolved("a.test:80:127.0.0.1", 80), Some(("127.0.0.1".to_owned(), 80)));
        assert_eq!(resolved("a.test:80:127.0.0.1", 81), None);
        assert_eq!(resolved("*:443:[::1]", 443), Some(("::1".to_owned(), 443)));
        assert_eq!(resolved("*:443:::1", 443), Some(("::1".to_owned(), 443)));
        for wrong in ["a.test:80", "a.test:80:b.test", "a.test:x:::1", ""] {
            assert!(ConnectTo::resolved(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn bad_values_are_explained() {
        assert!(matches!("a:b".parse::<ConnectTo>(), Err(ConnectToError::Form(_))));
        assert_eq!("a:b:c:1".parse::<ConnectTo>(), Err(ConnectToError::Port("b".to_owned())));
        assert_eq!("a:1:c:99999".parse::<ConnectTo>(), Err(ConnectToError::Port("99999".to_owned())));
    }
}
