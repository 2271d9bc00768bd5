//! What decides which partition a site belongs to.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// Maximum bytes of a label of a host name (RFC 1035, section 2.3.4).
const LABEL_BYTES_MAX: usize = 63;

/// What decides which partition a site belongs to; its text form is that of the command line and of `cluster.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Division {
    /// The name of the site.
    #[default]
    Site,
    /// The country of its top-level domain; in other domains, its name. Some domains have a partition of their own
    /// choice, which no hash decides.
    Country(BTreeMap<String, u16>),
}

impl Division {
    /// Returns the number of the partition, of `count`, that a site belongs to: XXH3 (64 bits, unkeyed) of the name
    /// that decides, modulo their number, plus 1.
    pub(super) fn partition(&self, site: &str, count: u16) -> u16 {
        let mut decides = site;
        if let Self::Country(chosen) = self
            && let Some((_, domain)) = site.rsplit_once('.')
        {
            if let Some(partition) = chosen.get(domain) {
                return *partition;
            }
            if is_country(domain) {
                decides = domain;
            }
        }
        // The remainder fits into a u16.
        (xxh3_64(decides.as_bytes()) % u64::from(count.max(1))) as u16 + 1
    }

    /// Returns the first domain whose chosen partition is not one of `count`.
    pub(super) fn outside(&self, count: u16) -> Option<&str> {
        let Self::Country(chosen) = self else { return None };
        let outside = chosen.iter().find(|(_, partition)| !(1..=count).contains(partition));
        outside.map(|(domain, _)| domain.as_str())
    }

    /// Whether it is the usual one.
    pub(super) fn is_usual(&self) -> bool {
        *self == Self::Site
    }
}

/// Whether a top-level domain is a country's: exactly these have two letters (RFC 1591; ISO 3166 and the codes reserved
/// for it). Those in other scripts have the form of all others, and count as countries if they are given a partition.
fn is_country(domain: &str) -> bool {
    domain.len() == 2 && domain.bytes().all(|byte| byte.is_ascii_lowercase())
}

impl fmt::Display for Division {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Country(chosen) = self else { return f.write_str("site") };
        f.write_str("country")?;
        for (place, (domain, partition)) in chosen.iter().enumerate() {
            write!(f, "{}{domain}={partition}", if place == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

impl FromStr for Division {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || {
            format!(
                "'{text}' does not say by what sites are divided: write site, country, or country:DOMAIN=PARTITION,… as in country:de=1,fr=2"
            )
        };
        match text.split_once(':') {
            None if text == "site" => Ok(Self::Site),
            None if text == "country" => Ok(Self::Country(BTreeMap::new())),
            Some(("country", chosen)) => {
                let mut partitions = BTreeMap::new();
                for one in chosen.split(',') {
                    let (domain, partition) = one.split_once('=').ok_or_else(unknown)?;
                    let domain = domain.to_ascii_lowercase();
                    let is_label = (1..=LABEL_BYTES_MAX).contains(&domain.len())
                        && domain.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
                    let partition = partition.parse().ok().filter(|_| is_label).ok_or_else(unknown)?;
                    if partitions.insert(domain, partition).is_some() {
                        return Err(unknown());
                    }
                }
                Ok(Self::Country(partitions))
            }
            _ => Err(unknown()),
        }
    }
}

impl From<Division> for String {
    fn from(division: Division) -> Self {
        division.to_string()
    }
}

impl TryFrom<String> for Division {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_country_is_in_one_partition_and_other_domains_are_spread() {
        let by = |text: &str| text.parse::<Division>().unwrap();
        let of = |division: &Division, site: &str| division.partition(site, 8);
        let (site, country) = (by("site"), by("country"));
        // Nodes of different versions must agree on the hash.
        assert_eq!(["a.de", "b.de", "c.co.uk", "a.fr"].map(|name| of(&country, name)), [7, 7, 4, 4]);
        // An address and a name without a domain are sites like any other.
        for name in [
            "example.org",
            "example.com",
            "a.xn--p1ai",
            "127.0.0.1",
            "192.0.2.22",
            "[::1]",
            "localhost",
            "de",
            "",
        ] {
            assert_eq!(of(&country, name), of(&site, name), "{name}");
        }
        let chosen = by("country:de=2,xn--p1ai=3,org=4");
        for (name, partition) in [("a.de", 2), ("a.xn--p1ai", 3), ("a.org", 4), ("de", of(&site, "de"))] {
            assert_eq!(of(&chosen, name), partition, "{name}");
        }
        assert_eq!(of(&chosen, "a.fr"), of(&country, "a.fr"));
        assert_eq!((chosen.outside(4), chosen.outside(3), country.outside(1)), (None, Some("org"), None));
    }

    #[test]
    fn its_text_says_everything() {
        for text in ["site", "country", "country:de=1,fr=2,xn--p1ai=2"] {
            let division: Division = text.parse().unwrap();
            assert_eq!(division.to_string(), text);
            let json = serde_json::to_string(&division).unwrap();
            assert_eq!(serde_json::from_str::<Division>(&json).unwrap(), division);
        }
        assert_eq!("country:DE=3".parse::<Division>().unwrap().to_string(), "country:de=3");
        let long = format!("country:{}=1", "x".repeat(LABEL_BYTES_MAX + 1));
        for wrong in [
            "",
            "host",
            "country:",
            "country:de",
            "country:de=x",
            "country:=1",
            "country:de=1,de=2",
            "country:a.b=1",
            "site:de=1",
            &long,
        ] {
            assert!(wrong.parse::<Division>().is_err(), "{wrong}");
        }
        assert!(format!("country:{}=1", "x".repeat(LABEL_BYTES_MAX)).parse::<Division>().is_ok());
        assert!(serde_json::from_str::<Division>("\"host\"").is_err());
    }
}
