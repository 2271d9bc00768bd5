//! What is known of every URL ([`Page`]), of every fetched one ([`Visit`]), of hosts and of sites.
//!
//! Invariant: a [`Page`] is all that 10^8 URLs cost besides their names, so it is as small as can be; what only fetched
//! URLs need is in their [`Visit`]. All records have a fixed size, given by the constants below and checked there.

use crate::checkpoint::{FieldReader, FieldWriter, Record};
use crate::ids::{CaptureId, HostId, SiteId, UrlId};

/// Properties of a page, one bit each. The crawler gives them their meaning; the store only keeps them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PageFlags(pub u16);

impl PageFlags {
    /// Whether all bits of `flags` are set.
    #[inline]
    #[must_use]
    pub fn contains(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Whether any bit of `flags` is set.
    #[inline]
    #[must_use]
    pub const fn has_any(self, flags: Self) -> bool {
        self.0 & flags.0 != 0
    }

    /// The bits of both.
    #[must_use]
    pub const fn or(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }

    /// Sets or clears all bits of `flags`.
    #[inline]
    pub fn set(&mut self, flags: Self, on: bool) {
        if on {
            self.0 |= flags.0;
        } else {
            self.0 &= !flags.0;
        }
    }
}

impl std::ops::BitOr for PageFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.or(other)
    }
}

/// The number of a [`Visit`], in order of first fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VisitId(pub u32);

/// What is known of a URL, fetched or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Cash, without the global offset.
    pub cash: i64,
    /// Its host; [`Page::HOST_UNKNOWN`] until somebody sets it.
    pub host: HostId,
    /// The page that led here; none for a seed.
    pub via: Option<UrlId>,
    /// Links from the nearest seed.
    pub depth: u8,
    /// The kind of the link that led here, as a letter of the crawler's.
    pub hop: u8,
    /// Properties.
    pub flags: PageFlags,
    /// The record of its fetches, kept by the store.
    pub visit: Option<VisitId>,
}

impl Page {
    /// The host of a URL that was only named.
    pub const HOST_UNKNOWN: HostId = HostId(u32::MAX);

    pub(crate) const NEW: Self = Self {
        cash: 0,
        host: Self::HOST_UNKNOWN,
        via: None,
        depth: 0,
        hop: 0,
        flags: PageFlags(0),
        visit: None,
    };
}

const PAGE_BYTES: usize = 8 + 4 + 4 + 4 + 2 + 1 + 1;
const _: () = assert!(PAGE_BYTES == 24);

impl Record for Page {
    const BYTES: usize = PAGE_BYTES;

    #[inline]
    fn encode(&self, fields: &mut FieldWriter<'_>) {
        fields.i64(self.cash).u32(self.host.0).id(self.visit.map(|visit| visit.0));
        fields.id(self.via.map(|via| via.0)).u16(self.flags.0).u8(self.depth).u8(self.hop);
    }

    #[inline]
    fn decode(fields: &mut FieldReader<'_>) -> Self {
        Self {
            cash: fields.i64(),
            host: HostId(fields.u32()),
            visit: fields.id().map(VisitId),
            via: fields.id().map(UrlId),
            flags: PageFlags(fields.u16()),
            depth: fields.u8(),
            hop: fields.u8(),
        }
    }
}

/// What is known of a URL that was fetched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Visit {
    /// First fetch, seconds since 1970.
    pub first_seen: u32,
    /// Last fetch, seconds since 1970.
    pub last_seen: u32,
    /// Last fetch that found the content changed, seconds since 1970.
    pub last_changed: u32,
    /// Captures, counted by the store.
    pub captures: u32,
    /// Captures whose content differed from the one before.
    pub versions: u32,
    /// The newest capture by time, kept by the store.
    pub last_capture: Option<CaptureId>,
    /// HTTP status of the last fetch; 0 when nothing answered.
    pub status: u16,
    /// Kind of document, by the crawler's numbers.
    pub kind: u8,
    /// Language, by the crawler's numbers; 0 for none.
    pub language: u8,
    /// Credit history, by the crawler's own layout.
    pub credit: [u8; 16],
    /// Where its title is, see `State::title`.
    pub title: Option<TextPosition>,
    /// Where its newest list of links is, kept by the store.
    pub links: Option<LinksPosition>,
    /// Hash of the meaningful content of the newest version, by the crawler; 0 when unknown.
    pub signature: u64,
    /// When somebody first said that it changed after its last fetch, seconds since 1970; 0 when nobody did.
    pub announced: u32,
    /// Fetches after somebody had said so.
    pub announcements: u16,
    /// How many of these found a change.
    pub announcements_confirmed: u16,
    /// Whatever the crawler needs besides: statistics for the refresh.
    pub extension: [u8; 48],
    /// The newest version by time (see `State::newest_version`), kept by the store.
    pub version: Option<CaptureId>,
    /// Where the validators of that version are, kept by the store.
    pub validators: Option<ValidatorsPosition>,
}

impl Default for Visit {
    fn default() -> Self {
        Self {
            first_seen: 0,
            last_seen: 0,
            last_changed: 0,
            captures: 0,
            versions: 0,
            last_capture: None,
            status: 0,
            kind: 0,
            language: 0,
            credit: [0; 16],
            title: None,
            links: None,
            signature: 0,
            announced: 0,
            announcements: 0,
            announcements_confirmed: 0,
            extension: [0; 48],
            version: None,
            validators: None,
        }
    }
}

/// Where a text lies in the log of titles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextPosition(pub u64);

/// Where a list of links lies in the link log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinksPosition(pub u64);

/// Where a version's validators lie in their log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValidatorsPosition(pub u64);

/// A visit and the URL it belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VisitRecord {
    pub(crate) url: UrlId,
    pub(crate) visit: Visit,
}

const VISIT_BYTES: usize = 6 * 4 + 4 + 2 + 1 + 1 + 4 * 8 + 8 + 4 + 2 + 2 + 48 + 4 + 8;
const _: () = assert!(VISIT_BYTES == 140);

impl Record for VisitRecord {
    const BYTES: usize = VISIT_BYTES;

    fn encode(&self, fields: &mut FieldWriter<'_>) {
        let visit = &self.visit;
        fields.u32(self.url.0).u32(visit.first_seen).u32(visit.last_seen).u32(visit.last_changed);
        fields.u32(visit.captures).u32(visit.versions).id(visit.last_capture.map(|capture| capture.0));
        fields.u16(visit.status).u8(visit.kind).u8(visit.language).bytes(&visit.credit);
        fields.u64(visit.title.map_or(0, |position| position.0 + 1));
        fields.u64(visit.links.map_or(0, |position| position.0 + 1));
        fields.u64(visit.signature).u32(visit.announced);
        fields.u16(visit.announcements).u16(visit.announcements_confirmed);
        fields.bytes(&visit.extension).id(visit.version.map(|version| version.0));
        fields.u64(visit.validators.map_or(0, |position| position.0 + 1));
    }

    fn decode(fields: &mut FieldReader<'_>) -> Self {
        let url = UrlId(fields.u32());
        let visit = Visit {
            first_seen: fields.u32(),
            last_seen: fields.u32(),
            last_changed: fields.u32(),
            captures: fields.u32(),
            versions: fields.u32(),
            last_capture: fields.id().map(CaptureId),
            status: fields.u16(),
            kind: fields.u8(),
            language: fields.u8(),
            credit: fields.array(),
            title: fields.u64().checked_sub(1).map(TextPosition),
            links: fields.u64().checked_sub(1).map(LinksPosition),
            signature: fields.u64(),
            announced: fields.u32(),
            announcements: fields.u16(),
            announcements_confirmed: fields.u16(),
            extension: fields.array(),
            version: fields.id().map(CaptureId),
            validators: fields.u64().checked_sub(1).map(ValidatorsPosition),
        };
        Self { url, visit }
    }
}

/// What is known of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// The site it belongs to.
    pub site: SiteId,
    /// URLs known.
    pub urls: u32,
    /// URLs fetched.
    pub fetched: u32,
    /// Captures.
    pub captures: u32,
    /// Fetches that failed.
    pub failures: u32,
    /// Bytes of all payloads.
    pub bytes: u64,
    /// The newest capture of its robots.txt.
    pub robots: Option<CaptureId>,
    /// When robots.txt was last fetched, seconds since 1970.
    pub robots_time: u32,
    /// Whatever the crawler needs besides.
    pub extension: [u8; 64],
}

impl Host {
    /// A host of which nothing is known but its site.
    #[must_use]
    pub fn new(site: SiteId) -> Self {
        Self {
            site,
            urls: 0,
            fetched: 0,
            captures: 0,
            failures: 0,
            bytes: 0,
            robots: None,
            robots_time: 0,
            extension: [0; 64],
        }
    }
}

const HOST_BYTES: usize = 5 * 4 + 8 + 2 * 4 + 64;
const _: () = assert!(HOST_BYTES == 100);

impl Record for Host {
    const BYTES: usize = HOST_BYTES;

    fn encode(&self, fields: &mut FieldWriter<'_>) {
        fields.u32(self.site.0).u32(self.urls).u32(self.fetched).u32(self.captures).u32(self.failures);
        fields.u64(self.bytes).id(self.robots.map(|capture| capture.0)).u32(self.robots_time);
        fields.bytes(&self.extension);
    }

    fn decode(fields: &mut FieldReader<'_>) -> Self {
        Self {
            site: SiteId(fields.u32()),
            urls: fields.u32(),
            fetched: fields.u32(),
            captures: fields.u32(),
            failures: fields.u32(),
            bytes: fields.u64(),
            robots: fields.id().map(CaptureId),
            robots_time: fields.u32(),
            extension: fields.array(),
        }
    }
}

/// What is known of a site.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Site {
    /// Cash, without the global offset.
    pub cash: i64,
    /// Credit history, by the crawler's own layout.
    pub credit: [u8; 16],
    /// Properties, by the crawler's numbers.
    pub flags: u16,
    /// Hosts known.
    pub hosts: u32,
    /// URLs known.
    pub urls: u32,
    /// URLs fetched.
    pub fetched: u32,
    /// Captures.
    pub captures: u32,
    /// Bytes of all payloads.
    pub bytes: u64,
    /// Whatever the crawler needs besides.
    pub extension: [u8; 64],
}

impl Default for Site {
    fn default() -> Self {
        Self {
            cash: 0,
            credit: [0; 16],
            flags: 0,
            hosts: 0,
            urls: 0,
            fetched: 0,
            captures: 0,
            bytes: 0,
            extension: [0; 64],
        }
    }
}

const SITE_BYTES: usize = 8 + 16 + 8 + 4 * 4 + 2 + 64;
const _: () = assert!(SITE_BYTES == 114);

impl Record for Site {
    const BYTES: usize = SITE_BYTES;

    fn encode(&self, fields: &mut FieldWriter<'_>) {
        fields.i64(self.cash).bytes(&self.credit).u64(self.bytes);
        fields.u32(self.hosts).u32(self.urls).u32(self.fetched).u32(self.captures).u16(self.flags);
        fields.bytes(&self.extension);
    }

    fn decode(fields: &mut FieldReader<'_>) -> Self {
        Self {
            cash: fields.i64(),
            credit: fields.array(),
            bytes: fields.u64(),
            hosts: fields.u32(),
            urls: fields.u32(),
            fetched: fields.u32(),
            captures: fields.u32(),
            flags: fields.u16(),
            extension: fields.array(),
        }
    }
}

#[cfg(test)]
mod tests;
