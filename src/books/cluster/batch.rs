//! Links and cash in transit from one partition to another.
//!
//! A batch consists of a magic line, a checksum of its name and of the rest, and the rest: lines, compressed by brotli.
//! Most batches name a few pages, so everything else in them is short:
//!
//! 1. a line with the epoch, the number of pages, and the number of pages that were named before, which only get cash;
//! 2. for each page the page that led to it: pages without one come first, and an empty line repeats the previous one;
//! 3. the URLs of all pages;
//! 4. the cash of all pages, in units;
//! 5. for each page its depth, the letter of its hop, `p` if it is linked to as a page, else `-`, and its distance from
//!    the page that it is a part of, in links.
//!
//! Like values are grouped, which saves a twelfth compared with JSON rows; brotli saves a sixth compared with zstd. A
//! batch was written by another machine, so all of it is checked before any of it is used, and everything has a limit.

use std::io::Read as _;
use std::str::{FromStr, Split};

use archive_math::importance::Cash;
use archive_storage::Digest;
use archive_storage::address::{canonical, is_url_in_bounds, site_of};
use brotli::enc::BrotliEncoderParams;
use url::Url;

use super::Partition;

/// First line of a batch.
const HEAD: &[u8] = b"batch 4\n";

/// Bytes of the checksum, a prefix of a SHA-256.
const CHECKSUM_BYTES: usize = 8;

/// Maximum bytes of a batch.
pub(crate) const BATCH_BYTES_MAX: usize = 32 << 20;

/// Maximum bytes of a decompressed batch.
const PLAIN_BYTES_MAX: usize = 64 << 20;

/// Maximum number of pages that a batch names.
pub(crate) const BATCH_PAGES_MAX: usize = 50_000;

/// Bytes of URLs at which a batch is full; with all other data of its pages it is still far below the limits.
const URL_BYTES_FULL: usize = 8 << 20;

/// Maximum bytes of a URL, as in the URL table.
const URL_BYTES_MAX: usize = 16 << 10;

/// Maximum number of consecutive links from a page to a part of it.
pub const PART_MAX: u8 = 6;

/// Brotli's quality, and log2 of its window. Most batches are small; the better quality makes them 6 % shorter, in 2 ms
/// instead of 0.1 ms.
const QUALITY: i32 = 5;
const SMALL_QUALITY: i32 = 10;
const SMALL_BYTES_MAX: usize = 8 << 10;
#[cfg(test)]
const FAST_QUALITY: i32 = 2;
const WINDOW_LOG: i32 = 22;
const BUFFER_BYTES: usize = 4096;

/// Whether a URL is linked to as a page.
const AS_PAGE: char = 'p';
const NOT_AS_PAGE: char = '-';

/// Source, destination and number of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Name of the cluster.
    pub cluster: String,
    /// The sending partition.
    pub from: u16,
    /// The receiving partition.
    pub to: u16,
    /// Number among all batches from sender to receiver, from 1 without gaps.
    pub number: u64,
}

/// Links and cash from one partition to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Source, destination and number.
    pub route: Route,
    /// Epoch of the node that made it.
    pub epoch: u64,
    /// URLs that the batch names.
    pub pages: Vec<Named>,
    /// URLs that an earlier batch has already named, with their cash in units.
    pub again: Vec<(String, u64)>,
}

/// A URL that pages of another partition link to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// The URL in canonical form.
    pub url: String,
    /// Cash paid to its account there since the last batch, in units.
    pub cash: u64,
    /// Number of links from the nearest seed.
    pub depth: u8,
    /// Kind of the link, as a letter.
    pub hop: char,
    /// The page that contains the link.
    pub via: Option<String>,
    /// Whether it is linked to as a page.
    pub is_page: bool,
    /// Number of links from the page that it is a part of; 0 if it is no part.
    pub part: u8,
}

/// An invalid batch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "batch {} from partition {} to {} {why}; nothing of it was applied: restore {} as it was sent", .route.number, .route.from, .route.to, .route.name()
)]
pub struct BatchError {
    /// The batch.
    pub route: Route,
    /// The problem.
    pub why: BatchFault,
}

/// A problem of a batch, as the rest of a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BatchFault {
    /// It has more bytes than allowed.
    #[error("is longer than the limit of {BATCH_BYTES_MAX} bytes for a batch")]
    TooLong,
    /// It is not a batch.
    #[error("does not begin with the header of a batch")]
    Head,
    /// Its checksum is wrong.
    #[error("is damaged or misnamed: its checksum does not match its name and content")]
    Checksum,
    /// It cannot be decompressed within the limit.
    #[error("cannot be unpacked to at most {PLAIN_BYTES_MAX} bytes")]
    Packing,
    /// A line is missing or malformed.
    #[error("cannot be read: {0} is missing or invalid")]
    Line(&'static str),
    /// It names too many pages.
    #[error("names {0} pages, more than the {BATCH_PAGES_MAX} that a batch may name")]
    TooMany(usize),
    /// It names something that is not a canonical HTTP URL.
    #[error("names '{0}', which is not a canonical URL of http or https")]
    Url(String),
    /// It names a page of another partition.
    #[error("names {url}, which belongs to partition {partition}")]
    Foreign {
        /// The page.
        url: String,
        /// The partition that it belongs to.
        partition: u16,
    },
    /// The role of a page is impossible.
    #[error("describes {0} as neither a page nor close enough to one")]
    Part(String),
    /// It carries more cash than exists.
    #[error("carries more cash than there is")]
    Cash,
    /// The batch is missing, but a later one exists.
    #[error("is missing, although number {0} exists")]
    Missing(u64),
}

impl Route {
    /// Returns the name of the batch's object.
    #[must_use]
    pub fn name(&self) -> String {
        format!("exchange/{}/{}/{:010}", self.to, self.from, self.number)
    }

    /// Returns the checksum of a batch with this route.
    fn checksum(&self, packed: &[u8]) -> [u8; CHECKSUM_BYTES] {
        let named = [self.cluster.as_bytes(), self.name().as_bytes(), packed].concat();
        let prefix = Digest::sha256(&named).prefix();
        std::array::from_fn(|place| prefix[place])
    }

    /// Returns the bytes of a batch with this route and these lines, which are not checked.
    ///
    /// # Errors
    /// If there is no memory for the compression.
    pub fn seal(&self, lines: &str) -> std::io::Result<Vec<u8>> {
        let quality = if lines.len() <= SMALL_BYTES_MAX { SMALL_QUALITY } else { QUALITY };
        self.seal_at(quality, lines)
    }

    fn seal_at(&self, quality: i32, lines: &str) -> std::io::Result<Vec<u8>> {
        let packed = pack(quality, lines)?;
        Ok([HEAD, &self.checksum(&packed), &packed].concat())
    }

    /// Returns an error about the batch of this route.
    #[must_use]
    pub fn refuse(&self, why: BatchFault) -> BatchError {
        BatchError { route: self.clone(), why }
    }
}

impl Batch {
    /// Whether the batch is full, so that the next page needs another one.
    #[must_use]
    pub fn is_full(&self, url_bytes: usize) -> bool {
        self.named() >= BATCH_PAGES_MAX || url_bytes >= URL_BYTES_FULL
    }

    /// Number of pages that it names.
    #[must_use]
    pub fn named(&self) -> usize {
        self.pages.len() + self.again.len()
    }

    fn amounts(&self) -> impl Iterator<Item = u64> {
        self.pages.iter().map(|page| page.cash).chain(self.again.iter().map(|(_, cash)| *cash))
    }

    /// Total cash of the batch. [`Batch::read`] has checked that it does not exceed all cash.
    #[must_use]
    pub fn cash(&self) -> u64 {
        self.amounts().fold(0, u64::saturating_add)
    }

    /// Encodes the batch.
    ///
    /// # Errors
    /// If there is no memory for the compression.
    pub fn write(&self) -> std::io::Result<Vec<u8>> {
        self.route.seal(&self.lines())
    }

    /// Encodes the batch in a small part of the time, for simulations of thousands of them.
    #[cfg(test)]
    pub(super) fn write_quickly(&self) -> std::io::Result<Vec<u8>> {
        self.route.seal_at(FAST_QUALITY, &self.lines())
    }

    fn lines(&self) -> String {
        let mut pages: Vec<&Named> = self.pages.iter().collect();
        pages.sort_unstable_by(|one, other| (&one.via, &one.url).cmp(&(&other.via, &other.url)));
        let mut again: Vec<(&str, u64)> =
            self.again.iter().map(|(url, cash)| (url.as_str(), *cash)).collect();
        again.sort_unstable();
        let mut before = "";
        let vias = pages.iter().map(|page| {
            let via = page.via.as_deref().unwrap_or_default();
            if std::mem::replace(&mut before, via) == via { "" } else { via }
        });
        let mut lines = format!("{} {} {}", self.epoch, pages.len(), again.len());
        let mut add = |line: &str| lines.extend(["\n", line]);
        vias.for_each(&mut add);
        pages
            .iter()
            .map(|page| page.url.as_str())
            .chain(again.iter().map(|(url, _)| *url))
            .for_each(&mut add);
        for cash in pages.iter().map(|page| page.cash).chain(again.iter().map(|(_, cash)| *cash)) {
            add(&cash.to_string());
        }
        for Named { depth, hop, is_page, part, .. } in pages {
            add(&format!("{depth}{hop}{}{part}", if *is_page { AS_PAGE } else { NOT_AS_PAGE }));
        }
        lines
    }

    /// Decodes and checks the batch of this route, which is for `partition`.
    ///
    /// # Errors
    /// If the batch is invalid.
    pub fn read(bytes: &[u8], route: &Route, partition: &Partition) -> Result<Self, BatchError> {
        Self::read_any(bytes, route)
            .and_then(|batch| {
                batch.check(partition)?;
                Ok(batch)
            })
            .map_err(|why| route.refuse(why))
    }

    /// Like [`Batch::read`], without checking what the batch names.
    pub(super) fn read_any(bytes: &[u8], route: &Route) -> Result<Self, BatchFault> {
        if bytes.len() > BATCH_BYTES_MAX {
            return Err(BatchFault::TooLong);
        }
        let rest = bytes.strip_prefix(HEAD).and_then(|rest| rest.split_at_checked(CHECKSUM_BYTES));
        let (checksum, packed) = rest.ok_or(BatchFault::Head)?;
        if checksum != route.checksum(packed) {
            return Err(BatchFault::Checksum);
        }
        let mut plain = String::new();
        let unpacked = brotli::Decompressor::new(packed, BUFFER_BYTES)
            .take(PLAIN_BYTES_MAX as u64 + 1)
            .read_to_string(&mut plain);
        if unpacked.is_err() || plain.len() > PLAIN_BYTES_MAX {
            return Err(BatchFault::Packing);
        }
        let batch = Self::from_lines(&plain, route)?;
        let cash = batch.amounts().try_fold(0u64, u64::checked_add);
        match cash {
            Some(cash) if cash <= Cash::WHOLE.units() => Ok(batch),
            _ => Err(BatchFault::Cash),
        }
    }

    fn from_lines(text: &str, route: &Route) -> Result<Self, BatchFault> {
        let mut lines = text.split('\n');
        let mut head = lines.next().unwrap_or_default().split(' ');
        let epoch = number(&mut head, "its epoch")?;
        let pages_count: usize = number(&mut head, "how many pages it names")?;
        let again_count: usize = number(&mut head, "how many pages it names again")?;
        let named = pages_count.saturating_add(again_count);
        if named > BATCH_PAGES_MAX {
            return Err(BatchFault::TooMany(named));
        }
        let mut via = None;
        let mut pages = Vec::new();
        for _ in 0..pages_count {
            let line = lines.next().ok_or(BatchFault::Line("a page that led to another"))?;
            if !line.is_empty() {
                via = Some(line.to_owned());
            }
            pages.push(Named { via: via.clone(), ..Named::default() });
        }
        let mut again = vec![(String::new(), 0); again_count];
        let urls = pages.iter_mut().map(|page| &mut page.url).chain(again.iter_mut().map(|(url, _)| url));
        for url in urls {
            lines.next().ok_or(BatchFault::Line("a URL"))?.clone_into(url);
        }
        let amounts =
            pages.iter_mut().map(|page| &mut page.cash).chain(again.iter_mut().map(|(_, cash)| cash));
        for cash in amounts {
            *cash = number(&mut lines, "an amount of cash")?;
        }
        for page in &mut pages {
            lines
                .next()
                .and_then(|line| page.read_role(line))
                .ok_or(BatchFault::Line("what a page is to the one that led to it"))?;
        }
        match lines.next() {
            None => Ok(Self { route: route.clone(), epoch, pages, again }),
            Some(_) => Err(BatchFault::Line("the end")),
        }
    }

    fn check(&self, partition: &Partition) -> Result<(), BatchFault> {
        let urls = || self.pages.iter().map(|page| &page.url).chain(self.again.iter().map(|(url, _)| url));
        if let Some(url) = urls()
            .chain(self.pages.iter().filter_map(|page| page.via.as_ref()))
            .find(|url| !is_canonical(url))
        {
            return Err(BatchFault::Url(url.chars().take(200).collect()));
        }
        for url in urls() {
            let owner = host(url).map_or(0, |host| partition.of_site(site_of(&host)));
            if owner != partition.number {
                return Err(BatchFault::Foreign { url: url.clone(), partition: owner });
            }
        }
        for page in &self.pages {
            let has_role = page.is_page || page.part > 0;
            if !has_role || page.part > PART_MAX || !page.hop.is_ascii_uppercase() {
                return Err(BatchFault::Part(page.url.clone()));
            }
        }
        Ok(())
    }
}

fn pack(quality: i32, lines: &str) -> std::io::Result<Vec<u8>> {
    let mut packed = Vec::new();
    let (lgwin, size_hint) = (WINDOW_LOG, lines.len());
    let parameters = BrotliEncoderParams { quality, lgwin, size_hint, ..Default::default() };
    brotli::BrotliCompress(&mut lines.as_bytes(), &mut packed, &parameters)?;
    Ok(packed)
}

impl Named {
    /// Parses its depth, its hop, whether it is a page, and its distance from the page that it is a part of.
    fn read_role(&mut self, line: &str) -> Option<()> {
        let (depth, rest) = line.split_at(line.find(|letter: char| !letter.is_ascii_digit())?);
        let mut letters = rest.chars();
        self.depth = depth.parse().ok()?;
        self.hop = letters.next()?;
        self.is_page = match letters.next()? {
            AS_PAGE => true,
            NOT_AS_PAGE => false,
            _ => return None,
        };
        self.part = letters.as_str().parse().ok()?;
        Some(())
    }
}

/// Parses the next number.
fn number<T: FromStr>(texts: &mut Split<'_, char>, what: &'static str) -> Result<T, BatchFault> {
    texts.next().and_then(|text| text.parse().ok()).ok_or(BatchFault::Line(what))
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
    use super::super::{Division, Mode};
    use super::*;

    fn partition() -> Partition {
        Partition { cluster: "c".to_owned(), number: 1, count: 1, mode: Mode::Exchange, by: Division::Site }
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
        Batch { route: route(7), epoch: 3, pages, again: Vec::new() }
    }

    fn fault(batch: &Batch) -> BatchFault {
        Batch::read(&batch.write().unwrap(), &route(7), &partition()).unwrap_err().why
    }

    /// Returns the problem of a batch with these invalid lines.
    fn fault_of(lines: &str) -> BatchFault {
        Batch::read(&route(7).seal(lines).unwrap(), &route(7), &partition()).unwrap_err().why
    }

    #[test]
    fn a_batch_is_read_as_it_was_written() {
        let pages =
            vec![Named { cash: 0, via: None, part: 6, ..page("http://a.test/b") }, page("http://a.test/")];
        let whole = Batch { again: vec![("http://a.test/c".to_owned(), 7)], ..batch(pages) };
        let bytes = whole.write().unwrap();
        assert_eq!(bytes, whole.write().unwrap(), "the same bytes each time");
        assert_eq!(Batch::read(&bytes, &route(7), &partition()).unwrap(), whole);
        assert_eq!((whole.cash(), whole.named()), (12, 3));
        for cut in [0, 10, HEAD.len(), 50, bytes.len() - 1] {
            assert!(Batch::read(&bytes[..cut], &route(7), &partition()).is_err(), "{cut}");
        }
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1;
            assert!(Batch::read(&damaged, &route(7), &partition()).is_err(), "{place}");
        }
        let error = Batch::read(&bytes, &route(8), &partition()).unwrap_err().to_string();
        assert!(error.contains("batch 8 from partition 2 to 1 is damaged or misnamed"), "{error}");
    }

    #[test]
    fn what_is_beyond_a_limit_is_refused() {
        let many = |pages| batch(vec![Named { via: None, ..page("http://a.test/") }; pages]);
        let read = |batch: &Batch| Batch::read(&batch.write().unwrap(), &route(7), &partition());
        let again = || vec![("http://a.test/".to_owned(), 1)];
        assert!(read(&Batch { again: again(), ..many(BATCH_PAGES_MAX - 1) }).is_ok());
        let more = Batch { again: again(), ..many(BATCH_PAGES_MAX) };
        assert_eq!(fault(&more), BatchFault::TooMany(BATCH_PAGES_MAX + 1));
        let long = |bytes: usize| page(&format!("http://a.test/{}", "x".repeat(bytes - 14)));
        assert!(read(&batch(vec![long(URL_BYTES_MAX)])).is_ok());
        assert!(matches!(fault(&batch(vec![long(URL_BYTES_MAX + 1)])), BatchFault::Url(_)));
        let bytes = vec![0; BATCH_BYTES_MAX + 1];
        assert_eq!(Batch::read(&bytes, &route(7), &partition()).unwrap_err().why, BatchFault::TooLong);
        assert_eq!(Batch::read(&bytes[1..], &route(7), &partition()).unwrap_err().why, BatchFault::Head);
        assert_eq!(fault_of(&" ".repeat(PLAIN_BYTES_MAX + 1)), BatchFault::Packing);
    }

    #[test]
    fn lines_that_no_batch_has_are_refused() {
        let lines =
            "3 2 1\n\nhttp://b.test/\nhttp://a.test/\nhttp://a.test/b\nhttp://a.test/c\n5\n6\n7\n1Lp0\n12E-6";
        let batch = Batch::from_lines(lines, &route(7)).unwrap();
        assert_eq!(batch.lines(), lines);
        let said = |lines: &str| match fault_of(lines) {
            BatchFault::Line(what) => what,
            other => panic!("{other:?} of {lines}"),
        };
        assert_eq!(said(""), "its epoch");
        assert_eq!(said("3 2"), "how many pages it names again");
        assert_eq!(said("3 1 0\n"), "a URL");
        assert_eq!(said("3 1 0\n\nhttp://a.test/\n-5"), "an amount of cash");
        for role in ["", "1", "1L", "1Lq0", "Lp0", "256Lp0", "1Lp", "1Lp0p"] {
            let what = said(&format!("3 1 0\n\nhttp://a.test/\n5\n{role}"));
            assert_eq!(what, "what a page is to the one that led to it", "{role}");
        }
        assert_eq!(said(&format!("{lines}\n")), "the end");
        let most = usize::MAX;
        assert!(matches!(fault_of(&format!("3 {most} {most}\n")), BatchFault::TooMany(_)));
        let damaged = lines.char_indices().flat_map(|(place, _)| {
            ["", "\n", "0", " ", "-"].map(|put| format!("{}{put}{}", &lines[..place], &lines[place + 1..]))
        });
        for lines in damaged {
            let _ = Batch::from_lines(&lines, &route(7)).map(|batch| batch.check(&partition()));
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for url in
            ["http://a.test", "http://A.test/", "ftp://a.test/", "/a", "", "http://a.test/#x", "data:,x"]
        {
            assert!(matches!(fault(&batch(vec![page(url)])), BatchFault::Url(_)), "{url}");
            // A batch cannot name an empty one.
            if !url.is_empty() {
                let found = Named { via: Some(url.to_owned()), ..page("http://a.test/") };
                assert!(matches!(fault(&batch(vec![found])), BatchFault::Url(_)), "{url}");
            }
            let again = vec![(url.to_owned(), 1)];
            assert!(matches!(fault(&Batch { again, ..batch(Vec::new()) }), BatchFault::Url(_)), "{url}");
        }
        let rich = Named { cash: Cash::WHOLE.units(), ..page("http://a.test/") };
        assert!(Batch::read(&batch(vec![rich.clone()]).write().unwrap(), &route(7), &partition()).is_ok());
        assert_eq!(fault(&batch(vec![rich, page("http://a.test/b")])), BatchFault::Cash);
        let overflow = Named { cash: u64::MAX, ..page("http://a.test/") };
        assert_eq!(fault(&batch(vec![overflow.clone(), overflow.clone()])), BatchFault::Cash);
        let again = vec![("http://a.test/b".to_owned(), 1)];
        assert_eq!(fault(&Batch { again, ..batch(vec![overflow]) }), BatchFault::Cash);
        for wrong in [
            Named { is_page: false, ..page("http://a.test/") },
            Named { part: PART_MAX + 1, ..page("http://a.test/") },
            Named { hop: 'l', ..page("http://a.test/") },
        ] {
            assert!(matches!(fault(&batch(vec![wrong])), BatchFault::Part(_)));
        }
        let two = Partition { count: 2, ..partition() };
        let foreign = (0..).map(|site| format!("s{site}.test")).find(|site| two.of_site(site) == 2).unwrap();
        let foreign = format!("http://www.{foreign}/");
        let again = Batch { again: vec![(foreign.clone(), 1)], ..batch(Vec::new()) };
        for wrong in [batch(vec![page(&foreign)]), again] {
            let error = Batch::read(&wrong.write().unwrap(), &route(7), &two).unwrap_err();
            assert!(matches!(error.why, BatchFault::Foreign { partition: 2, .. }));
        }
    }

    #[test]
    fn a_batch_of_one_page_is_short() {
        let bytes = batch(vec![page("http://a.test/")]).write().unwrap();
        assert!(bytes.len() <= 70, "{}", bytes.len());
    }
}
