//! Small data, all of it in the catalogue: totals, the callers' numbers, media types, segments, settings.

use std::collections::BTreeMap;

use super::State;
use crate::catalogue::{CatalogueContents, NUMBER, REWRITES, SegmentEntry};
use crate::checkpoint::{Result, StateError};
use crate::history::MimeId;
use crate::ids::{SegmentId, Watermark, Watermarks};
use crate::segment::Catalogued;
use crate::warc::MEDIA_TYPE_BYTES_MAX;

pub(super) const PAYLOAD_BYTES: &str = "total.payload-bytes";
pub(super) const STORED_BYTES: &str = "total.stored-bytes";
pub(super) const LINKS: &str = "total.links";
const WATERMARK_CAPTURES: &str = "watermark.captures";
const WATERMARK_NEXT: &str = "watermark.next";
/// Prefix; a segment's id follows.
const WATERMARK_OPEN: &str = "watermark.open.";
/// Prefix of the keys of the callers' own numbers.
const COUNTER: &str = "counter.";
/// Maximum number of numbered media types apart from the common ones; further ones share number 0. Every command keeps
/// all of them in memory, and servers can invent as many as they like; 2 300 are registered.
const MIMES_MAX: usize = 4096;
/// Media types that always get a number, however many others were seen before them.
const COMMON_MIMES: [&str; 48] = [
    "application/atom+xml",
    "application/epub+zip",
    "application/gzip",
    "application/javascript",
    "application/json",
    "application/ld+json",
    "application/manifest+json",
    "application/msword",
    "application/octet-stream",
    "application/pdf",
    "application/postscript",
    "application/rdf+xml",
    "application/rss+xml",
    "application/rtf",
    "application/vnd.ms-excel",
    "application/vnd.ms-powerpoint",
    "application/vnd.oasis.opendocument.text",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "application/x-javascript",
    "application/xhtml+xml",
    "application/xml",
    "application/zip",
    "audio/mpeg",
    "audio/ogg",
    "font/ttf",
    "font/woff",
    "font/woff2",
    "image/avif",
    "image/bmp",
    "image/gif",
    "image/jpeg",
    "image/png",
    "image/svg+xml",
    "image/tiff",
    "image/vnd.microsoft.icon",
    "image/webp",
    "image/x-icon",
    "text/calendar",
    "text/css",
    "text/csv",
    "text/html",
    "text/javascript",
    "text/plain",
    "text/xml",
    "video/mp4",
    "video/webm",
];
/// Maximum bytes of a setting. Every command keeps all settings in memory.
pub const SETTING_BYTES_MAX: usize = 64 << 20;

/// Totals of the archive; maintained incrementally, so reading them is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of known URLs.
    pub urls: u64,
    /// Number of URLs fetched at least once.
    pub fetched: u64,
    /// Number of captures.
    pub captures: u64,
    /// Bytes of the captures' payloads, counted once per capture.
    pub payload_bytes: u64,
    /// Bytes of the captures' main records on disk.
    pub stored_bytes: u64,
    /// Number of links in all lists.
    pub links: u64,
    /// Number of known hosts.
    pub hosts: u64,
    /// Number of known sites.
    pub sites: u64,
}

pub(super) fn watermarks(contents: &CatalogueContents) -> Watermarks {
    let id = |number: u64| SegmentId(u32::try_from(number).unwrap_or(u32::MAX));
    let open = contents.numbers.range(WATERMARK_OPEN.to_owned()..);
    let open = open.map_while(|(name, offset)| {
        let segment = name.strip_prefix(WATERMARK_OPEN)?.parse().ok()?;
        Some(Watermark { segment: SegmentId(segment), offset: *offset })
    });
    let mut open: Vec<Watermark> = open.collect();
    open.sort_unstable();
    Watermarks {
        captures: contents.number(WATERMARK_CAPTURES),
        next: id(contents.number(WATERMARK_NEXT)),
        open,
    }
}

pub(super) fn set_watermarks(numbers: &mut BTreeMap<String, u64>, watermarks: &Watermarks) {
    numbers.retain(|name, _| !name.starts_with(WATERMARK_OPEN));
    numbers.insert(WATERMARK_CAPTURES.to_owned(), watermarks.captures);
    numbers.insert(WATERMARK_NEXT.to_owned(), u64::from(watermarks.next.0));
    for open in &watermarks.open {
        numbers.insert(format!("{WATERMARK_OPEN}{}", open.segment), open.offset);
    }
}

impl State {
    /// The totals of what a reader sees of the archive. [`State::totals`] also has what a veil hides: it bounds ids.
    #[must_use]
    pub fn shown_totals(&self) -> Totals {
        self.veil.as_ref().map_or_else(|| self.totals(), |veil| veil.totals)
    }

    /// The totals of the archive.
    #[must_use]
    pub fn totals(&self) -> Totals {
        Totals {
            urls: u64::from(self.pages.len()),
            fetched: u64::from(self.visits.len()),
            captures: u64::from(self.captures.len()),
            payload_bytes: self.contents.number(PAYLOAD_BYTES),
            stored_bytes: self.contents.number(STORED_BYTES),
            links: self.contents.number(LINKS),
            hosts: u64::from(self.hosts.len()),
            sites: u64::from(self.sites.len()),
        }
    }

    pub(super) fn add(&mut self, name: &'static str, amount: u64) {
        match self.contents.numbers.get_mut(name) {
            Some(number) => *number = number.saturating_add(amount),
            None => {
                self.contents.numbers.insert(name.to_owned(), amount);
            }
        }
    }

    pub(super) fn take_away(&mut self, name: &'static str, amount: u64) {
        if let Some(number) = self.contents.numbers.get_mut(name) {
            *number = number.saturating_sub(amount);
        }
    }

    /// Number of rewrites of segments, including one that the next checkpoint commits; `None` before the first
    /// checkpoint.
    pub(crate) fn rewrites(&self) -> Option<u64> {
        (self.contents.number(NUMBER) > 0).then(|| self.contents.number(REWRITES))
    }

    /// Sets the number of rewrites from the next checkpoint on.
    pub(crate) fn set_rewrites(&mut self, number: u64) -> Result<()> {
        self.writable()?;
        self.contents.numbers.insert(REWRITES.to_owned(), number);
        Ok(())
    }

    /// A number that the caller keeps under a name of its own; 0 if it was never set.
    #[must_use]
    pub fn counter(&self, name: &str) -> u64 {
        self.contents.number(&format!("{COUNTER}{name}"))
    }

    /// Stores a number under a name.
    ///
    /// # Errors
    /// [`StateError::ReadOnly`] and [`StateError::Poisoned`].
    pub fn set_counter(&mut self, name: &str, number: u64) -> Result<()> {
        self.writable()?;
        self.contents.numbers.insert(format!("{COUNTER}{name}"), number);
        Ok(())
    }

    /// Returns the number of a media type, assigning one if it has none. Number 0 stands for the empty type, for types
    /// longer than [`MEDIA_TYPE_BYTES_MAX`], and, once 4096 types are known, for every uncommon new one.
    ///
    /// # Errors
    /// [`StateError::ReadOnly`] and [`StateError::Poisoned`].
    pub fn intern_mime(&mut self, mime: &str) -> Result<MimeId> {
        self.writable()?;
        if self.contents.mimes.is_empty() {
            self.contents.mimes.push(String::new());
            self.mime_ids.insert(String::new(), 0);
        }
        if let Some(&id) = self.mime_ids.get(mime) {
            return Ok(MimeId(id));
        }
        let has_room = self.contents.mimes.len() < MIMES_MAX || COMMON_MIMES.contains(&mime);
        if !has_room || mime.len() > MEDIA_TYPE_BYTES_MAX {
            return Ok(MimeId(0));
        }
        let id = self.contents.mimes.len() as u16;
        self.contents.mimes.push(mime.to_owned());
        self.mime_ids.insert(mime.to_owned(), id);
        Ok(MimeId(id))
    }

    /// The media type with a number; empty for a number that was never assigned.
    #[must_use]
    pub fn mime(&self, id: MimeId) -> &str {
        self.contents.mimes.get(usize::from(id.0)).map_or("", String::as_str)
    }

    /// All segments in order.
    pub fn segments(&self) -> impl Iterator<Item = (SegmentId, &SegmentEntry)> {
        self.contents.segments.iter().map(|(&id, entry)| (id, entry))
    }

    /// The catalogue's entries of segments by file name.
    #[must_use]
    pub fn catalogued(&self) -> Catalogued {
        self.contents.catalogued()
    }

    /// The entry of a segment.
    #[must_use]
    pub fn segment(&self, id: SegmentId) -> Option<&SegmentEntry> {
        self.contents.segments.get(&id)
    }

    /// Replaces the catalogue entry of a segment; `None` removes it.
    pub(crate) fn set_segment(&mut self, id: SegmentId, entry: Option<SegmentEntry>) -> Result<()> {
        self.writable()?;
        match entry {
            Some(entry) => self.contents.segments.insert(id, entry),
            None => self.contents.segments.remove(&id),
        };
        Ok(())
    }

    /// The value of a setting.
    #[must_use]
    pub fn setting(&self, name: &str) -> Option<&[u8]> {
        self.contents.settings.get(name).map(Vec::as_slice)
    }

    /// The settings whose names start with a prefix, ordered by name.
    pub fn settings<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        let from = self.contents.settings.range(prefix.to_owned()..);
        from.take_while(move |(name, _)| name.starts_with(prefix))
            .map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
    }

    /// Stores a setting from the next checkpoint on; `None` removes it.
    ///
    /// # Errors
    /// [`StateError::TooLong`] for more than [`SETTING_BYTES_MAX`], [`StateError::ReadOnly`] and
    /// [`StateError::Poisoned`].
    pub fn set_setting(&mut self, name: &str, value: Option<&[u8]>) -> Result<()> {
        self.writable()?;
        let (length, limit) = (value.map_or(0, <[u8]>::len), SETTING_BYTES_MAX);
        if length > limit {
            return Err(StateError::TooLong { what: "a setting", length, limit });
        }
        match value {
            Some(value) => self.contents.settings.insert(name.to_owned(), value.to_vec()),
            None => self.contents.settings.remove(name),
        };
        Ok(())
    }
}
