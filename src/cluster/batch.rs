//! Links and cash on their way from one partition to another.
//!
//! A batch is a line that says so, a line with the SHA-256 of the rest, and the rest: JSON, compressed by zstd. It was
//! written by another machine, so all of it is checked before any of it is taken, and everything has a limit.

use std::io::Read as _;

use archive_storage::Digest;
use archive_storage::address::{canonical, is_url_in_bounds, site_of};
use serde::{Deserialize, Serialize};
use url::Url;

use super::Partition;
use crate::importance::Cash;

/// The first line of a batch.
const HEAD: &[u8] = b"archive batch 1\n";

/// Bytes of a batch, at most.
pub const BATCH_BYTES_MAX: usize = 32 << 20;

/// Bytes that a batch unpacks to, at most.
const PLAIN_BYTES_MAX: usize = 64 << 20;

/// Pages that a batch names, at most.
pub const BATCH_PAGES_MAX: usize = 50_000;

/// Bytes of URLs after which a batch is full: far from the limits, whatever JSON makes of them.
const URL_BYTES_FULL: usize = 8 << 20;

/// Bytes of a URL, as in the table of URLs.
const URL_BYTES_MAX: usize = 16 << 10;

/// Links in a row from a page to a part of it, at most.
pub const PART_MAX: u8 = 6;

/// The zstd level: batches are small compared to pages.
const LEVEL: i32 = 3;

/// From where to where a batch goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// The cluster.
    pub cluster: String,
    /// The partition that sends it.
    pub from: u16,
    /// The partition that it is for.
    pub to: u16,
    /// Its number among all from there to here, from 1 without gaps.
    pub number: u64,
}

/// Links and cash from one partition for another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// From where to where.
    pub route: Route,
    /// The epoch of the node that made it.
    pub epoch: u64,
    /// The URLs that it names.
    pub pages: Vec<Named>,
}

/// A URL that pages of another partition lead to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// The URL in canonical form.
    pub url: String,
    /// What its account there was paid since the last time, in units.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cash: u64,
    /// Links from the nearest seed.
    pub depth: u8,
    /// The kind of link, as a letter.
    pub hop: char,
    /// The page with the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// Whether it is linked to as a page.
    pub is_page: bool,
    /// How many links from a page it is a part of; 0 if of none.
    #[serde(default, skip_serializing_if = "is_none")]
    pub part: u8,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
const fn is_zero(units: &u64) -> bool {
    *units == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
const fn is_none(part: &u8) -> bool {
    *part == 0
}

/// What is wrong with a batch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "batch {} from partition {} to {} {why}; none of it was taken: put {} back as it was sent", .route.number, .route.from, .route.to, .route.name()
)]
pub struct BatchError {
    /// Which batch.
    pub route: Route,
    /// What is wrong with it.
    pub why: Fault,
}

/// What is wrong with a batch, as the rest of a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// More bytes than any batch has.
    #[error("is longer than the {BATCH_BYTES_MAX} bytes that a batch may have")]
    TooLong,
    /// Not a batch at all.
    #[error("does not begin as a batch does")]
    Head,
    /// Other bytes than were written.
    #[error("is damaged: its checksum is that of other bytes")]
    Checksum,
    /// It cannot be unpacked within the limit.
    #[error("cannot be unpacked to at most {PLAIN_BYTES_MAX} bytes")]
    Packing,
    /// It is not the JSON that it should be.
    #[error("cannot be read: {0}")]
    Json(String),
    /// It is another batch than its name says.
    #[error(
        "says of itself that it is batch {number} from partition {from} to {to} of the cluster {cluster}"
    )]
    Route {
        /// Its cluster.
        cluster: String,
        /// Its sender.
        from: u16,
        /// Its receiver.
        to: u16,
        /// Its number.
        number: u64,
    },
    /// It names too many pages.
    #[error("names {0} pages, more than the {BATCH_PAGES_MAX} that a batch may name")]
    TooMany(usize),
    /// It names something that is not a URL that can be fetched.
    #[error("names '{0}', which is not a canonical URL of http or https")]
    Url(String),
    /// It names a page of another partition.
    #[error("names {url}, which belongs to partition {partition}")]
    Foreign {
        /// The page.
        url: String,
        /// Where it belongs.
        partition: u16,
    },
    /// What it says of a page is impossible.
    #[error("says of {0} that it is neither a page nor near enough to one")]
    Part(String),
    /// It carries more cash than there is.
    #[error("carries more cash than there is")]
    Cash,
    /// It is not there, but a later one is.
    #[error("is missing, while number {0} is there")]
    Missing(u64),
}

impl Route {
    /// The name of its object.
    #[must_use]
    pub fn name(&self) -> String {
        format!("exchange/{}/{}/{:010}", self.to, self.from, self.number)
    }

    /// Says what is wrong with the batch of this route.
    #[must_use]
    pub fn refuse(&self, why: Fault) -> BatchError {
        BatchError { route: self.clone(), why }
    }
}

impl Batch {
    /// Whether it is full, so that the next page needs another batch.
    #[must_use]
    pub fn is_full(&self, url_bytes: usize) -> bool {
        self.pages.len() >= BATCH_PAGES_MAX || url_bytes >= URL_BYTES_FULL
    }

    /// All cash that it carries; [`Batch::read`] has made sure that it is no more than there is.
    #[must_use]
    pub fn cash(&self) -> u64 {
        self.pages.iter().fold(0, |sum, page| sum.saturating_add(page.cash))
    }

    /// Its bytes.
    ///
    /// # Errors
    /// When there is no memory to compress it.
    pub fn write(&self) -> std::io::Result<Vec<u8>> {
        let packed = zstd::bulk::compress(&serde_json::to_vec(self)?, LEVEL)?;
        let mut bytes = HEAD.to_vec();
        bytes.extend_from_slice(Digest::sha256(&packed).to_string().as_bytes());
        bytes.push(b'\n');
        bytes.extend(packed);
        Ok(bytes)
    }

    /// Reads the batch of this route, which is for `partition`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(bytes: &[u8], route: &Route, partition: &Partition) -> Result<Self, BatchError> {
        Self::read_any(bytes, route)
            .and_then(|batch| {
                batch.check(partition)?;
                Ok(batch)
            })
            .map_err(|why| route.refuse(why))
    }

    /// The same without checking what it names.
    pub(super) fn read_any(bytes: &[u8], route: &Route) -> Result<Self, Fault> {
        if bytes.len() > BATCH_BYTES_MAX {
            return Err(Fault::TooLong);
        }
        let rest = bytes.strip_prefix(HEAD).ok_or(Fault::Head)?;
        let end = rest.iter().position(|byte| *byte == b'\n').ok_or(Fault::Head)?;
        let (stated, packed) = (&rest[..end], &rest[end + 1..]);
        if stated != Digest::sha256(packed).to_string().as_bytes() {
            return Err(Fault::Checksum);
        }
        let mut plain = Vec::new();
        let unpacked = zstd::stream::read::Decoder::new(packed)
            .and_then(|decoder| decoder.take(PLAIN_BYTES_MAX as u64 + 1).read_to_end(&mut plain));
        if unpacked.is_err() || plain.len() > PLAIN_BYTES_MAX {
            return Err(Fault::Packing);
        }
        let batch: Self = serde_json::from_slice(&plain).map_err(|error| Fault::Json(error.to_string()))?;
        if batch.route != *route {
            let Route { cluster, from, to, number } = batch.route;
            return Err(Fault::Route { cluster, from, to, number });
        }
        if batch.pages.len() > BATCH_PAGES_MAX {
            return Err(Fault::TooMany(batch.pages.len()));
        }
        let cash = batch.pages.iter().try_fold(0u64, |sum, page| sum.checked_add(page.cash));
        match cash {
            Some(cash) if cash <= Cash::WHOLE.units() => Ok(batch),
            _ => Err(Fault::Cash),
        }
    }

    fn check(&self, partition: &Partition) -> Result<(), Fault> {
        for page in &self.pages {
            for url in std::iter::once(&page.url).chain(&page.via) {
                if !is_canonical(url) {
                    return Err(Fault::Url(url.chars().take(200).collect()));
                }
            }
            let owner = host(&page.url).map_or(0, |host| partition.of_site(site_of(&host)));
            if owner != partition.number {
                return Err(Fault::Foreign { url: page.url.clone(), partition: owner });
            }
            let has_role = page.is_page || page.part > 0;
            if !has_role || page.part > PART_MAX || !page.hop.is_ascii_uppercase() {
                return Err(Fault::Part(page.url.clone()));
            }
        }
        Ok(())
    }
}

fn host(url: &str) -> Option<String> {
    Url::parse(url).ok()?.host_str().map(str::to_owned)
}

fn is_canonical(text: &str) -> bool {
    is_url_in_bounds(text, URL_BYTES_MAX)
        && Url::parse(text).is_ok_and(|url| {
            matches!(url.scheme(), "http" | "https") && url.has_host() && canonical(&url) == text
        })
}

#[cfg(test)]
mod tests {
    use super::super::Mode;
    use super::*;

    fn partition() -> Partition {
        Partition { cluster: "c".to_owned(), number: 1, count: 1, mode: Mode::Exchange }
    }

    fn route(number: u64) -> Route {
        Route { cluster: "c".to_owned(), from: 2, to: 1, number }
    }

    fn page(url: &str) -> Named {
        Named {
            url: url.to_owned(),
            cash: 5,
            depth: 1,
            hop: 'L',
            via: Some("http://b.test/".to_owned()),
            is_page: true,
            part: 0,
        }
    }

    fn batch(pages: Vec<Named>) -> Batch {
        Batch { route: route(7), epoch: 3, pages }
    }

    fn fault(batch: &Batch) -> Fault {
        Batch::read(&batch.write().unwrap(), &route(7), &partition()).unwrap_err().why
    }

    #[test]
    fn a_batch_is_read_as_it_was_written() {
        let whole = batch(vec![
            page("http://a.test/"),
            Named { cash: 0, via: None, part: 6, ..page("http://a.test/b") },
        ]);
        let bytes = whole.write().unwrap();
        assert_eq!(bytes, whole.write().unwrap(), "the same bytes each time");
        assert_eq!(Batch::read(&bytes, &route(7), &partition()).unwrap(), whole);
        assert_eq!(whole.cash(), 5);
        for cut in [0, 10, HEAD.len(), 50, bytes.len() - 1] {
            assert!(Batch::read(&bytes[..cut], &route(7), &partition()).is_err(), "{cut}");
        }
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1;
            assert!(Batch::read(&damaged, &route(7), &partition()).is_err(), "{place}");
        }
        let error = Batch::read(&bytes, &route(8), &partition()).unwrap_err().to_string();
        assert!(error.contains("batch 8 from partition 2 to 1 says of itself that it is batch 7"), "{error}");
    }

    #[test]
    fn what_is_beyond_a_limit_is_refused() {
        let many = |pages| batch(vec![Named { via: None, ..page("http://a.test/") }; pages]);
        let read = |batch: &Batch| Batch::read(&batch.write().unwrap(), &route(7), &partition());
        assert!(read(&many(BATCH_PAGES_MAX)).is_ok());
        assert_eq!(fault(&many(BATCH_PAGES_MAX + 1)), Fault::TooMany(BATCH_PAGES_MAX + 1));
        let long = |bytes: usize| page(&format!("http://a.test/{}", "x".repeat(bytes - 14)));
        assert!(read(&batch(vec![long(URL_BYTES_MAX)])).is_ok());
        assert!(matches!(fault(&batch(vec![long(URL_BYTES_MAX + 1)])), Fault::Url(_)));
        let bytes = vec![0; BATCH_BYTES_MAX + 1];
        assert_eq!(Batch::read(&bytes, &route(7), &partition()).unwrap_err().why, Fault::TooLong);
        assert_eq!(Batch::read(&bytes[1..], &route(7), &partition()).unwrap_err().why, Fault::Head);
        let packed = zstd::bulk::compress(&vec![b' '; PLAIN_BYTES_MAX + 1], 1).unwrap();
        let bomb = [HEAD, Digest::sha256(&packed).to_string().as_bytes(), b"\n", &packed].concat();
        assert_eq!(Batch::read(&bomb, &route(7), &partition()).unwrap_err().why, Fault::Packing);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for url in
            ["http://a.test", "http://A.test/", "ftp://a.test/", "/a", "", "http://a.test/#x", "data:,x"]
        {
            assert!(matches!(fault(&batch(vec![page(url)])), Fault::Url(_)), "{url}");
            assert!(matches!(
                fault(&batch(vec![Named { via: Some(url.to_owned()), ..page("http://a.test/") }])),
                Fault::Url(_)
            ));
        }
        let rich = Named { cash: Cash::WHOLE.units(), ..page("http://a.test/") };
        assert!(Batch::read(&batch(vec![rich.clone()]).write().unwrap(), &route(7), &partition()).is_ok());
        assert_eq!(fault(&batch(vec![rich, page("http://a.test/b")])), Fault::Cash);
        let overflow = Named { cash: u64::MAX, ..page("http://a.test/") };
        assert_eq!(fault(&batch(vec![overflow.clone(), overflow])), Fault::Cash);
        for wrong in [
            Named { is_page: false, ..page("http://a.test/") },
            Named { part: PART_MAX + 1, ..page("http://a.test/") },
            Named { hop: 'l', ..page("http://a.test/") },
        ] {
            assert!(matches!(fault(&batch(vec![wrong])), Fault::Part(_)));
        }
        let two = Partition { count: 2, ..partition() };
        let foreign = (0..).map(|site| format!("s{site}.test")).find(|site| two.of_site(site) == 2).unwrap();
        let bytes = batch(vec![page(&format!("http://www.{foreign}/"))]).write().unwrap();
        assert!(matches!(
            Batch::read(&bytes, &route(7), &two).unwrap_err().why,
            Fault::Foreign { partition: 2, .. }
        ));
    }
}
