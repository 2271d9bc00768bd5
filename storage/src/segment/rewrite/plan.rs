//! What is in the segments that are rewritten, and which captures go together into a new one.
//!
//! Captures are put in the order of their pages' SURTs, so that versions of a page, pages of a folder and hosts of a site
//! stand together, and this order is cut into stretches, one for each new segment. A stretch is cut in two as long as
//! two dictionaries are estimated to save more than they cost, see [`super::choice`].

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use super::super::error::{Context, SegmentError};
use super::super::group::FIELD_IMPORTED;
use super::super::ledger::SegmentInfo;
use super::super::order::{CaptureStream, FIELD_CAPTURES_BEFORE, Found};
use super::super::replay::ReplayedCapture;
use super::choice::Texts;
use super::raw::Stretch;
use crate::address::surt;
use crate::backend::{Disk, OpenMode};
use crate::ids::Watermark;

/// Fields of `warcinfo` that are the segment's own.
const OWN_FIELDS: [&str; 4] = ["format", "conformsTo", FIELD_CAPTURES_BEFORE, "dictionary"];
/// Bytes of a metadata field beside its name and value.
const FIELD_SIGNS: usize = 4;
/// Other fields, of all old segments together, that new ones repeat at most.
const FIELDS_MAX: usize = 64;

/// A capture of an old segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planned {
    /// Captures of the archive before it.
    pub number: u64,
    /// Its records.
    pub stretch: Stretch,
    /// Where its main record lies in the segment.
    pub main: u64,
    /// Microseconds since 1970.
    pub time: i64,
    /// Its page, by number.
    page: u32,
    /// Bytes of its records before compression, about.
    pub plain: u64,
    /// Whether other records take its place.
    pub is_replaced: bool,
}

/// All that is rewritten at once.
#[derive(Debug, Default)]
pub(super) struct Rewrite {
    /// In the order of their pages, those of a page in the order of appending.
    pub captures: Vec<Planned>,
    /// The main blocks and metadata of these captures, two each.
    pub texts: Texts,
    /// Fields of the old segments' `warcinfo` records.
    pub info: Vec<(String, String)>,
    /// Page numbers by SURT.
    pages: HashMap<String, u32>,
}

impl Rewrite {
    /// Reads an old segment. `is_replaced` says what becomes of a capture, `samples` whether it is looked for what captures
    /// have in common.
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
        let mut stream = stream.with_spools(disk.clone(), folder);
        while let Some(found) = stream.next()? {
            match found {
                Found::Warcinfo { fields, .. } => self.add_info(fields),
                Found::Broken(place) => {
                    let (offset, what) = (place.offset, place.what);
                    return Err(SegmentError::Corrupted { segment: segment.id, offset, what });
                }
                Found::Capture { number, start, capture, .. } => {
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
            stretch: Stretch { segment: main.segment, offset: start, length: capture.end.offset - start },
            main: main.offset,
            time: capture.time.timestamp_micros(),
            page: 0,
            plain,
            is_replaced,
        });
    }

    /// Looks at the capture that was added last.
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

    /// Puts the captures in order once all segments are read.
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

    /// The place near the middle of a range, by bytes, where a page begins; none in the history of a single page.
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

/// The content of a capture's metadata record.
pub(super) fn metadata_text(capture: &ReplayedCapture) -> Vec<u8> {
    let mut text = Vec::new();
    // What an import came from is the same for all.
    for (name, value) in capture.metadata.iter().filter(|(name, _)| name != FIELD_IMPORTED) {
        text.extend_from_slice(name.as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value.as_bytes());
        text.extend_from_slice(b"\r\n");
    }
    text
}
