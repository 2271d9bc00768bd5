//! The arrangement and names of hosts, sites and pages, all in closed form.
//!
//! Hosts of one site are adjacent in host order. Pages are distributed over hosts by size rank, a permutation of host
//! order, so the largest host can belong to any site. The pages of a host form a tree with [`BRANCHES`] children per
//! page: page 0 is the home page, pages 1 to 8 are sections, and a page's path begins with its section.

use super::config::Config;
use super::random::{Key, Partition, Shuffle, Subject};
use super::text::Append;
use super::words::PATH_NOUNS;

/// Number of children of a page in the tree of its host.
pub(super) const BRANCHES: u32 = 8;

/// A page of a test web, below the number of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageIndex(pub u64);

/// A host of a test web, below the number of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostIndex(pub u32);

/// A site of a test web, below the number of sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteIndex(pub u32);

/// Markup language of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// HTML.
    Html,
    /// An XML document in the style of DocBook.
    Xml,
}

/// The derived properties of a host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Host {
    pub(super) index: u32,
    pub(super) site: u32,
    /// Number of the host within its site.
    pub(super) label: u32,
    /// Its first page in page order.
    pub(super) first: u64,
    /// Number of its pages, at least 1.
    pub(super) pages: u32,
    pub(super) key: Key,
}

impl Host {
    /// Returns the key of the page `local` of this host.
    pub(super) const fn page_key(&self, local: u32) -> Key {
        self.key.at(local as u64)
    }

    /// Whether a page has no children.
    pub(super) const fn is_leaf(&self, local: u32) -> bool {
        first_child(local) >= self.pages as u64
    }

    /// Appends the host's name.
    pub(super) fn put_name(&self, out: &mut Vec<u8>) {
        out.push(b'h');
        out.put_number(u64::from(self.label));
        out.put(".s");
        out.put_number(u64::from(self.site));
        out.put(".test");
    }
}

/// Returns the parent of a page other than the home page.
pub(super) const fn parent(local: u32) -> u32 {
    local.saturating_sub(1) / BRANCHES
}

/// Returns the first child that a page would have on a host with unlimited pages.
pub(super) const fn first_child(local: u32) -> u64 {
    local as u64 * BRANCHES as u64 + 1
}

/// Returns the section that contains a page; 0 for the home page.
pub(super) const fn section(mut local: u32) -> u32 {
    while local > BRANCHES {
        local = parent(local);
    }
    local
}

/// The arrangement of a web.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    key: Key,
    pages: Partition,
    hosts: Partition,
    /// Maps a host's size rank to its index.
    by_size: Shuffle,
    xml_share: f64,
}

/// How steeply the number of hosts of a site falls with the site's index.
const SITE_SIZE_EXPONENT: f64 = 0.5;

impl Layout {
    /// Builds the arrangement for `config`, which is already checked.
    pub(super) fn new(config: &Config) -> Self {
        let key = Key::new(config.seed);
        let hosts = u64::from(config.hosts);
        Self {
            key,
            pages: Partition::new(hosts, config.pages, config.host_size_exponent),
            hosts: Partition::new(u64::from(config.sites), hosts, SITE_SIZE_EXPONENT),
            by_size: Shuffle::new(key.of(Subject::Sites), hosts),
            xml_share: config.xml_share,
        }
    }

    /// Returns the host with this index.
    pub(super) fn host(&self, index: u32) -> Host {
        let site = self.hosts.part_of(u64::from(index));
        self.host_of_site(site as u32, index - self.hosts.first(site) as u32)
    }

    /// Returns the hosts of a site: the first one and their number.
    pub(super) fn hosts_of(&self, site: u32) -> (u32, u32) {
        let first = self.hosts.first(u64::from(site)) as u32;
        (first, self.hosts.first(u64::from(site) + 1) as u32 - first)
    }

    /// Returns the host `label` of `site`; both must exist.
    pub(super) fn host_of_site(&self, site: u32, label: u32) -> Host {
        let index = self.hosts.first(u64::from(site)) as u32 + label;
        let rank = self.by_size.backward(u64::from(index));
        let first = self.pages.first(rank);
        let pages = (self.pages.first(rank + 1) - first) as u32;
        Host { index, site, label, first, pages, key: self.key.at(u64::from(index)) }
    }

    /// Returns the host of a page, and the page's number on it.
    pub(super) fn place(&self, page: PageIndex) -> (Host, u32) {
        let rank = self.pages.part_of(page.0);
        let host = self.host(self.by_size.forward(rank) as u32);
        (host, (page.0 - host.first) as u32)
    }

    /// Returns the host named `name`, in any letter case and without a port.
    pub(super) fn host_named(&self, name: &[u8]) -> Option<Host> {
        let mut labels = name.split(|byte| *byte == b'.');
        let label = numbered(labels.next()?, b'h')?;
        let site = numbered(labels.next()?, b's')?;
        if !labels.next()?.eq_ignore_ascii_case(b"test") || labels.next().is_some() {
            return None;
        }
        let site = u32::try_from(site).ok().filter(|site| u64::from(*site) < self.hosts.parts())?;
        let (_, hosts) = self.hosts_of(site);
        let label = u32::try_from(label).ok().filter(|label| *label < hosts)?;
        Some(self.host_of_site(site, label))
    }

    /// Returns the markup language of a page. The home page and the sections are always HTML.
    pub(super) fn form(&self, host: &Host, local: u32) -> Form {
        if local > BRANCHES && host.page_key(local).of(Subject::Form).chance(self.xml_share) {
            Form::Xml
        } else {
            Form::Html
        }
    }

    /// Appends the path and query of a page.
    pub(super) fn put_path(&self, host: &Host, local: u32, out: &mut Vec<u8>) {
        out.push(b'/');
        if local == 0 {
            return;
        }
        put_section(host, section(local), out);
        if local <= BRANCHES {
            return;
        }
        let slug = host.page_key(local).of(Subject::Slug).bits();
        match self.form(host, local) {
            // One page in sixteen has the address of a page generated from a query.
            Form::Html if slug.is_multiple_of(16) => {
                out.put("view?id=");
                out.put_number(u64::from(local));
            }
            form => {
                out.put(PATH_NOUNS[(slug >> 8) as usize % PATH_NOUNS.len()]);
                out.push(b'-');
                out.put_number(u64::from(local));
                out.put(if form == Form::Xml { ".xml" } else { ".html" });
            }
        }
    }

    /// Returns the page of `host` with this path and query, which must be written exactly as
    /// [`put_path`](Self::put_path) writes it; `scratch` is overwritten.
    pub(super) fn page_at(&self, host: &Host, path: &[u8], scratch: &mut Vec<u8>) -> Option<u32> {
        if path == b"/" {
            return Some(0);
        }
        let stem =
            [&b".html"[..], b".xml", b"/"].iter().find_map(|end| path.strip_suffix(*end)).unwrap_or(path);
        let digits = stem.len() - stem.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let local = u32::try_from(decimal(&stem[digits..])?).ok()?;
        if local == 0 || local >= host.pages {
            return None;
        }
        scratch.clear();
        self.put_path(host, local, scratch);
        (scratch == path).then_some(local)
    }
}

/// Appends the folder of a section, including the slash after it.
pub(super) fn put_section(host: &Host, section: u32, out: &mut Vec<u8>) {
    let word = host.key.of(Subject::Section).at(u64::from(section)).below(PATH_NOUNS.len() as u64);
    out.put(PATH_NOUNS[word as usize]);
    out.put_number(u64::from(section));
    out.push(b'/');
}

/// Parses the number after the letter `letter`.
fn numbered(label: &[u8], letter: u8) -> Option<u64> {
    let (first, digits) = label.split_first()?;
    if !first.eq_ignore_ascii_case(&letter) || (digits.len() > 1 && digits.starts_with(b"0")) {
        return None;
    }
    decimal(digits)
}

/// Parses a decimal number of 1 to 18 digits.
pub(super) fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}
