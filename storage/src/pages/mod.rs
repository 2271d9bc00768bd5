//! Records of every URL ([`Page`]), of every fetched URL ([`Visit`]), of hosts and of sites.
//!
//! Invariant: besides its name, an unfetched URL costs only its [`Page`], and there may be 10^8 of them, so that is as
//! small as possible; whatever only fetched URLs need is in their [`Visit`]. All records have a fixed size, given by
//! the constants below and checked there.

use crate::checkpoint::{FieldReader, FieldWriter, TableRecord};
use crate::ids::{CaptureId, HostId, SiteId, UrlId};

/// Flags of a page. The crawler defines their meaning; the store only keeps them.
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

    /// The bits of either.
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

/// The number of a [`Visit`], in the order of first fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VisitId(pub u32);

/// The record of a URL, fetched or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Cash, without the global offset.
    pub cash: i64,
    /// Host of the URL; [`Page::HOST_UNKNOWN`] until it is set.
    pub host: HostId,
    /// The page from which the URL was discovered; `None` for a seed.
    pub via: Option<UrlId>,
    /// Number of links from the nearest seed.
    pub depth: u8,
    /// Kind of the link through which the URL was discovered, as one of the crawler's letters.
    pub hop: u8,
    /// Flags of the page.
    pub flags: PageFlags,
    /// The record of its fetches, maintained by the store.
    pub visit: Option<VisitId>,
}

impl Page {
    /// Host of a URL whose host has not been set.
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

impl TableRecord for Page {
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

/// The record of a URL that was fetched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Visit {
    /// Time of the first capture with content, or of the first attempt as long as there is none; seconds since 1970,
    /// as in all times here.
    pub first_seen: u32,
    /// Time of the newest capture with content; 0 without one.
    pub last_seen: u32,
    /// Time of the newest answer; 0 without one.
    pub last_answer: u32,
    /// Time of the newest attempt.
    pub last_attempt: u32,
    /// Time of the first attempt since the newest content; 0 if the newest attempt brought content.
    pub failing_since: u32,
    /// Time of the last fetch that found changed content, seconds since 1970.
    pub last_changed: u32,
    /// Number of attempts, whatever came of them, maintained by the store.
    pub captures: u32,
    /// Number of captures with content.
    pub contents: u32,
    /// Number of captures whose content differed from the previous one.
    pub versions: u32,
    /// The newest capture by time, maintained by the store.
    pub last_capture: Option<CaptureId>,
    /// HTTP status of the newest answer; 0 without one.
    pub status: u16,
    /// HTTP status of the newest content; 0 without one, and for a document without an answer.
    pub content_status: u16,
    /// Kind of document of the newest content, by the crawler's codes.
    pub kind: u8,
    /// Its language, by the crawler's codes; 0 for none.
    pub language: u8,
    /// Credit history, in the crawler's own layout.
    pub credit: [u8; 16],
    /// Position of its title; see `State::title`.
    pub title: Option<TextPosition>,
    /// Position of its newest list of links, maintained by the store.
    pub links: Option<LinksPosition>,
    /// Hash of the meaningful content of the newest version, computed by the crawler; 0 if unknown.
    pub signature: u64,
    /// Time of the first announcement of a change since the last fetch, seconds since 1970; 0 if there was none.
    pub announced: u32,
    /// Number of fetches that followed an announcement.
    pub announcements: u16,
    /// Number of these fetches that found a change.
    pub announcements_confirmed: u16,
    /// Additional data of the crawler: statistics for the refresh.
    pub extension: [u8; 48],
    /// The newest version by time (see `State::newest_version`), maintained by the store.
    pub version: Option<CaptureId>,
    /// Position of the validators of that version, maintained by the store.
    pub validators: Option<ValidatorsPosition>,
}

impl Default for Visit {
    fn default() -> Self {
        Self {
            first_seen: 0,
            last_seen: 0,
            last_answer: 0,
            last_attempt: 0,
            failing_since: 0,
            last_changed: 0,
            captures: 0,
            contents: 0,
            versions: 0,
            last_capture: None,
            status: 0,
            content_status: 0,
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

/// Position of a text in the log of titles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextPosition(pub u64);

/// Position of a list in the link log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinksPosition(pub u64);

/// Position of a version's validators in their log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValidatorsPosition(pub u64);

/// A visit and the URL it belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VisitRecord {
    pub(crate) url: UrlId,
    pub(crate) visit: Visit,
}

const VISIT_BYTES: usize = 10 * 4 + 4 + 2 + 2 + 1 + 1 + 4 * 8 + 8 + 4 + 2 + 2 + 48 + 4 + 8;
const _: () = assert!(VISIT_BYTES == 158);

impl TableRecord for VisitRecord {
    const BYTES: usize = VISIT_BYTES;

    fn encode(&self, fields: &mut FieldWriter<'_>) {
        let visit = &self.visit;
        fields.u32(self.url.0).u32(visit.first_seen).u32(visit.last_seen).u32(visit.last_changed);
        fields.u32(visit.last_answer).u32(visit.last_attempt).u32(visit.failing_since);
        fields.u32(visit.captures).u32(visit.contents).u32(visit.versions);
        fields.id(visit.last_capture.map(|capture| capture.0));
        fields
            .u16(visit.status)
            .u16(visit.content_status)
            .u8(visit.kind)
            .u8(visit.language)
            .bytes(&visit.credit);
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
            last_answer: fields.u32(),
            last_attempt: fields.u32(),
            failing_since: fields.u32(),
            captures: fields.u32(),
            contents: fields.u32(),
            versions: fields.u32(),
            last_capture: fields.id().map(CaptureId),
            status: fields.u16(),
            content_status: fields.u16(),
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

/// The record of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// The site it belongs to.
    pub site: SiteId,
    /// Number of known URLs.
    pub urls: u32,
    /// Number of fetched URLs.
    pub fetched: u32,
    /// Number of attempts.
    pub captures: u32,
    /// Number of captures with content.
    pub contents: u32,
    /// Number of attempts that nothing answered.
    pub failures: u32,
    /// Bytes of all payloads.
    pub bytes: u64,
    /// The newest capture of its robots.txt.
    pub robots: Option<CaptureId>,
    /// Time of the last fetch of robots.txt, seconds since 1970.
    pub robots_time: u32,
    /// Additional data of the crawler.
    pub extension: [u8; 64],
}

impl Host {
    /// The record of a new host.
    #[must_use]
    pub fn new(site: SiteId) -> Self {
        Self {
            site,
            urls: 0,
            fetched: 0,
            captures: 0,
            contents: 0,
            failures: 0,
            bytes: 0,
            robots: None,
            robots_time: 0,
            extension: [0; 64],
        }
    }
}

const HOST_BYTES: usize = 6 * 4 + 8 + 2 * 4 + 64;
const _: () = assert!(HOST_BYTES == 104);

impl TableRecord for Host {
    const BYTES: usize = HOST_BYTES;

    fn encode(&self, fields: &mut FieldWriter<'_>) {
        fields.u32(self.site.0).u32(self.urls).u32(self.fetched).u32(self.captures).u32(self.contents);
        fields.u32(self.failures);
        fields.u64(self.bytes).id(self.robots.map(|capture| capture.0)).u32(self.robots_time);
        fields.bytes(&self.extension);
    }

    fn decode(fields: &mut FieldReader<'_>) -> Self {
        Self {
            site: SiteId(fields.u32()),
            urls: fields.u32(),
            fetched: fields.u32(),
            captures: fields.u32(),
            contents: fields.u32(),
            failures: fields.u32(),
            bytes: fields.u64(),
            robots: fields.id().map(CaptureId),
            robots_time: fields.u32(),
            extension: fields.array(),
        }
    }
}

/// The record of a site.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Site {
    /// Cash, without the global offset.
    pub cash: i64,
    /// Credit history, in the crawler's own layout.
    pub credit: [u8; 16],
    /// Flags, defined by the crawler.
    pub flags: u16,
    /// Number of known hosts.
    pub hosts: u32,
    /// Number of known URLs.
    pub urls: u32,
    /// Number of fetched URLs.
    pub fetched: u32,
    /// Number of captures.
    pub captures: u32,
    /// Bytes of all payloads.
    pub bytes: u64,
    /// Additional data of the crawler.
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

impl TableRecord for Site {
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
