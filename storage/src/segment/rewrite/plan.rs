//! The captures of the segments being rewritten, and which of them go together into a new segment.
//!
//! Captures are sorted by the SURTs of their pages, so that versions of a page, pages of a folder and hosts of a site
//! are adjacent. This order is split into stretches, one for each new segment. A stretch is split in two as long as two
//! dictionaries are estimated to save more than they cost, see [`super::choice`].

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use super::super::error::{IoContext, SegmentError};
use super::super::group::FIELD_IMPORTED;
use super::super::ledger::SegmentInfo;
use super::super::order::{CaptureStream, Captures as _, FIELD_CAPTURES_BEFORE, StreamItem};
use super::super::replay::ReplayedCapture;
use super::choice::TextSamples;
use super::raw::ByteStretch;
use crate::address::surt;
use crate::backend::{Disk, OpenMode};
use crate::ids::Watermark;

/// Fields of `warcinfo` that are specific to a segment.
const OWN_FIELDS: [&str; 4] = ["format", "conformsTo", FIELD_CAPTURES_BEFORE, "dictionary"];
/// Bytes of a metadata field besides its name and value.
const FIELD_SIGNS: usize = 4;
/// Maximum number of other fields of all old segments that new ones repeat.
const FIELDS_MAX: usize = 64;

/// Captures that are decoded ahead, while earlier ones are sampled.
const AHEAD_MAX: usize = 4;

/// A capture of an old segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planned {
    /// Number of captures in the archive before it.
    pub number: u64,
    /// Where its records are.
    pub stretch: ByteStretch,
    /// Offset of its main record in the segment.
    pub main: u64,
    /// Microseconds since 1970.
    pub time: i64,
    /// Number of its page.
    page: u32,
    /// Approximate bytes of its records before compression.
    pub plain: u64,
    /// Whether its records are replaced.
    pub is_replaced: bool,
}

/// All captures that are rewritten together.
#[derive(Debug, Default)]
pub(super) struct Rewrite {
    /// Sorted by page, those of a page in append order.
    pub captures: Vec<Planned>,
    /// Main blocks and metadata of these captures, two texts each.
    pub texts: TextSamples,
    /// Fields of the old segments' `warcinfo` records.
    pub info: Vec<(String, String)>,
    /// Page numbers by SURT.
    pages: HashMap<String, u32>,
}

impl Rewrite {
    /// Reads an old segment. `is_replaced` decides whether a capture is replaced; `samples` is whether to sample the
    /// texts for what captures have in common.
    pub(super) fn read(
        &mut self,
        disk: &Arc<dyn Disk>,
        folder: &Path,
        segment: &SegmentInfo,
        samples: bool,
        is_replaced: &mut dyn FnMut(&ReplayedCapture) -> Result<bool, SegmentError>,
    ) -> Result<(), SegmentError> {
        let path = folder.join(&segment.name);
        let file = disk.open(&path, OpenMode::Read).context("open", &path)?;
        let start = Watermark { segment: segment.id, offset: 0 };
        let stream = CaptureStream::resumed(file, start, &path, segment.captures_before)?;
        let mut stream = stream.with_spools(disk.clone(), folder).ahead(AHEAD_MAX);
        while let Some(found) = stream.next()? {
            match found {
                StreamItem::Warcinfo { fields, .. } => self.add_info(fields),
                StreamItem::Broken(place) => {
                    let (offset, what) = (place.offset, place.what);
                    return Err(SegmentError::Corrupted { segment: segment.id, offset, what });
                }
                StreamItem::Capture { number, start, capture, .. } => {
                    let is_replaced = is_replaced(&capture)?;
                    self.add(number, start, &capture, is_replaced);
                    if samples {
                        self.sample(&capture, is_replaced);
                    }
                }
            }
        }
        Ok(())
    }

    fn add_info(&mut self, fields: Vec<(String, String)>) {
        for field in fields {
            let is_own = OWN_FIELDS.iter().any(|own| field.0.eq_ignore_ascii_case(own));
            if !is_own && self.info.len() < FIELDS_MAX && !self.info.contains(&field) {
                self.info.push(field);
            }
        }
    }

    fn add(&mut self, number: u64, start: u64, capture: &ReplayedCapture, is_replaced: bool) {
        let metadata: usize =
            capture.metadata.iter().map(|(name, value)| name.len() + value.len() + FIELD_SIGNS).sum();
        let kept = if is_replaced { 0 } else { capture.content.len() + metadata };
        let plain = (kept + capture.request.as_ref().map_or(0, Bytes::len)) as u64;
        let main = capture.main;
        self.captures.push(Planned {
            number,
            stretch: ByteStretch { segment: main.segment, offset: start, length: capture.end.offset - start },
            main: main.offset,
            time: capture.time.timestamp_micros(),
            page: 0,
            plain,
            is_replaced,
        });
    }

    /// Samples the texts of the capture that was added last.
    fn sample(&mut self, capture: &ReplayedCapture, is_replaced: bool) {
        let count = self.pages.len() as u32;
        let page = *self.pages.entry(surt(&capture.url)).or_insert(count);
        if let Some(planned) = self.captures.last_mut() {
            planned.page = page;
        }
        let metadata = if is_replaced { Vec::new() } else { metadata_text(capture) };
        self.texts.add(if is_replaced { &[] } else { &capture.content });
        self.texts.add(&metadata);
    }

    /// Sorts the captures once all segments are read.
    pub(super) fn arrange(&mut self) {
        let ranks: BTreeMap<&String, u32> = self.pages.iter().map(|(surt, page)| (surt, *page)).collect();
        let mut rank_of = vec![0_u32; ranks.len()];
        for (rank, page) in (0..).zip(ranks.into_values()) {
            rank_of[page as usize] = rank;
        }
        self.pages = HashMap::new();
        for capture in &mut self.captures {
            capture.page = rank_of[capture.page as usize];
        }
        let mut order: Vec<u32> = (0..self.captures.len() as u32).collect();
        order.sort_unstable_by_key(|place| {
            let capture = &self.captures[*place as usize];
            (capture.page, capture.number)
        });
        self.texts.arrange(&order);
        self.captures = order.iter().map(|place| self.captures[*place as usize]).collect();
    }

    /// Returns the position nearest to the middle of a range, by bytes, where a page begins; `None` for a single page.
    pub(super) fn middle(&self, range: &Range<usize>) -> Option<usize> {
        let captures = self.captures.get(range.clone())?;
        let half = captures.iter().map(|capture| capture.plain).sum::<u64>() / 2;
        let (mut before, mut best) = (0, None);
        for (place, pair) in (range.start + 1..).zip(captures.windows(2)) {
            let [one, other] = pair else { continue };
            before += one.plain;
            if one.page != other.page {
                let distance = before.abs_diff(half);
                if best.is_none_or(|(least, _)| distance < least) {
                    best = Some((distance, place));
                }
            }
        }
        best.map(|(_, place)| place)
    }
}

/// Returns the content of a capture's metadata record.
pub(super) fn metadata_text(capture: &ReplayedCapture) -> Vec<u8> {
    let mut text = Vec::new();
    // The source of an import is the same for all captures.
    for (name, value) in capture.metadata.iter().filter(|(name, _)| name != FIELD_IMPORTED) {
        text.extend_from_slice(name.as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value.as_bytes());
        text.extend_from_slice(b"\r\n");
    }
    text
}
