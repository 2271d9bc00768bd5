//! Captures, and the history of each page in the order of time.
//!
//! Invariant: the captures of a URL form a list from newest to oldest, linked by `previous`, whatever order they were
//! appended in; captures of the same microsecond keep their order of arrival. In addition, `jump` refers to some older
//! capture, chosen so that any time is found in a number of steps logarithmic in the length of the history (the parents
//! in a Fenwick tree: Fenwick, "A New Data Structure for Cumulative Frequency Tables", 1994). Captures that arrive out
//! of order get a `jump` over [`STEPS_MAX`] others once a search has had to visit those one by one; the order by time
//! never depends on it.

use crate::capture_kind::CaptureKind;
use crate::checkpoint::{
    FieldReader, FieldWriter, RecordTable, Result, StateError, TableCursor, TableRecord,
};
use crate::ids::{CaptureId, Location, SegmentId, UrlId};
use crate::veil::Veil;

/// Number of captures that a search visits one by one before it adds a jump over them.
const STEPS_MAX: usize = 512;

/// Error message for a history whose captures do not go back in time.
pub(crate) const OUT_OF_ORDER: &str = "a history is out of order";

/// Maximum of `Location::offset`: it must stay below 2^48 bytes.
const OFFSET_MAX: u64 = (1 << 48) - 1;

/// A media type, numbered by the store; see `State::mime`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MimeId(pub u16);

/// One outcome of fetching one URL at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The URL.
    pub url: UrlId,
    /// Microseconds since 1970.
    pub time: i64,
    /// Location of the main record; the offset is below 2^48.
    pub location: Location,
    /// First 16 bytes of the payload digest; zeros if there is no payload.
    pub digest: [u8; 16],
    /// HTTP status; 0 if there was no response.
    pub status: u16,
    /// Media type.
    pub mime: MimeId,
    /// Kind of the record.
    pub kind: CaptureKind,
    /// Length of the payload in bytes, at most 2^32 - 1.
    pub length: u32,
    /// Flags, defined by the crawler.
    pub flags: u8,
    /// For a revisit: the capture whose record holds the payload, if it is in this archive.
    pub original: Option<CaptureId>,
}

impl Capture {
    /// Whether the capture can be the base of a conditional request: a response, or a revisit that found the same
    /// payload, with a status from 200 to 299.
    #[must_use]
    pub fn is_confirmable(&self) -> bool {
        let is_found = matches!(self.kind, CaptureKind::Response | CaptureKind::Identical);
        is_found && (200..300).contains(&self.status)
    }
}

/// A capture and its links in the page's history.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CaptureRecord {
    pub(crate) capture: Capture,
    previous: Option<u32>,
    jump: Option<u32>,
}

impl CaptureRecord {
    /// The next older capture of the URL.
    pub(crate) fn older(&self) -> Option<CaptureId> {
        self.previous.map(CaptureId)
    }
}

const CAPTURE_BYTES: usize = 8 + 16 + 4 + 6 + 2 + 6 * 4 + 2 + 1 + 1;
const _: () = assert!(CAPTURE_BYTES == 64);

impl TableRecord for CaptureRecord {
    const BYTES: usize = CAPTURE_BYTES;

    fn encode(&self, fields: &mut FieldWriter<'_>) {
        let capture = &self.capture;
        let location = &capture.location;
        fields.i64(capture.time).bytes(&capture.digest).u32(capture.url.0);
        fields.u32(location.segment.0).u48(location.offset).u16(capture.mime.0).u32(location.length);
        fields
            .u32(capture.length)
            .id(self.previous)
            .id(self.jump)
            .id(capture.original.map(|original| original.0));
        fields.u16(capture.status).u8(capture.kind as u8).u8(capture.flags);
    }

    fn decode(fields: &mut FieldReader<'_>) -> Self {
        let time = fields.i64();
        let digest = fields.array();
        let url = UrlId(fields.u32());
        let segment = SegmentId(fields.u32());
        let offset = fields.u48();
        let mime = MimeId(fields.u16());
        let location = Location { segment, offset, length: fields.u32() };
        let length = fields.u32();
        let (previous, jump) = (fields.id(), fields.id());
        let original = fields.id().map(CaptureId);
        let status = fields.u16();
        let [kind, flags] = fields.array();
        let kind = CaptureKind::from_code(kind);
        let capture = Capture { url, time, location, digest, status, mime, kind, length, flags, original };
        Self { capture, previous, jump }
    }
}

/// Appends a capture to a page's history. Returns its id, and whether it is the page's newest.
///
/// `newest` is the page's newest capture so far, and `count` is their number.
pub(crate) fn append(
    captures: &mut RecordTable<CaptureRecord>,
    capture: &Capture,
    newest: Option<CaptureId>,
    count: u32,
) -> Result<(CaptureId, bool)> {
    let mut capture = *capture;
    capture.location.offset = capture.location.offset.min(OFFSET_MAX);
    let Some(newest) = newest else {
        let id = captures.push(&CaptureRecord { capture, previous: None, jump: None })?;
        return Ok((CaptureId(id), true));
    };
    let record = |number: u32| captures.get(number).map(|record| record.map(|record| (number, record)));
    let Some((_, newest_record)) = record(newest.0)? else {
        return Err(StateError::Unknown { what: "capture", id: u64::from(newest.0) });
    };
    if newest_record.capture.time <= capture.time {
        let mut jump = Some(newest.0);
        for _ in 0..(count.saturating_add(1)).trailing_zeros() {
            jump = match jump {
                Some(number) => record(number)?.and_then(|(_, record)| record.jump),
                None => None,
            };
        }
        let id = captures.push(&CaptureRecord { capture, previous: Some(newest.0), jump })?;
        return Ok((CaptureId(id), true));
    }
    let mut jumps = Vec::new();
    let (after, before) = around(captures, newest.0, capture.time, |from, to| jumps.push((from, to)))?;
    for (from, to) in jumps {
        captures.update(from, |record| record.jump = Some(to))?;
    }
    let id = captures.push(&CaptureRecord { capture, previous: before, jump: before })?;
    captures.update(after, |record| record.previous = Some(id))?;
    Ok((CaptureId(id), false))
}

/// Returns the oldest capture after a time and the newest one at or before it. `start` must be after the time. Calls
/// `jump_over` with captures for which a jump would have saved steps, and the target of that jump.
fn around(
    captures: &RecordTable<CaptureRecord>,
    start: u32,
    time: i64,
    mut jump_over: impl FnMut(u32, u32),
) -> Result<(u32, Option<u32>)> {
    let mut cursor = captures.cursor();
    let mut after = start;
    // The first of a run of captures visited one by one, which has no jump of its own, and the length of the run.
    let mut walked: Option<(u32, usize)> = None;
    let mut later = None;
    loop {
        let Some(record) = cursor.get(after)? else { return Ok((after, None)) };
        let place = Some((record.capture.time, after));
        if later.is_some() && later <= place {
            return Err(captures.damaged(after, OUT_OF_ORDER));
        }
        later = place;
        let is_after = |number: u32, cursor: &mut TableCursor<'_, CaptureRecord>| {
            Ok(cursor.get(number)?.is_some_and(|record| record.capture.time > time))
        };
        after = match (record.jump, record.previous) {
            (Some(jump), previous) if Some(jump) != previous && is_after(jump, &mut cursor)? => {
                walked = None;
                jump
            }
            (jump, Some(previous)) if is_after(previous, &mut cursor)? => {
                let has_none = jump.is_none_or(|jump| jump == previous);
                walked = match walked {
                    Some((first, STEPS_MAX)) => {
                        jump_over(first, after);
                        None
                    }
                    Some((first, steps)) => Some((first, steps + 1)),
                    None => has_none.then_some((after, 1)),
                };
                previous
            }
            (_, previous) => return Ok((after, previous)),
        };
    }
}

/// The capture nearest to a time; the older one of two equally near ones.
pub(crate) fn nearest(
    captures: &RecordTable<CaptureRecord>,
    newest: CaptureId,
    time: i64,
) -> Result<Option<(CaptureId, Capture)>> {
    let get = |number: u32| Ok(captures.get(number)?.map(|record| (CaptureId(number), record.capture)));
    let Some(found) = get(newest.0)? else { return Ok(None) };
    if found.1.time <= time {
        return Ok(Some(found));
    }
    let (after, before) = around(captures, newest.0, time, |_, _| {})?;
    let (after, before) = (get(after)?, before.map(get).transpose()?.flatten());
    Ok(match (after, before) {
        (Some(after), Some(before)) => {
            let distance = |capture: &Capture| capture.time.abs_diff(time);
            Some(if distance(&after.1) < distance(&before.1) { after } else { before })
        }
        (after, before) => after.or(before),
    })
}

/// The captures of a page, from newest to oldest; stops after the first error.
#[derive(Debug)]
pub struct History<'a> {
    captures: &'a RecordTable<CaptureRecord>,
    /// Captures of a frequently fetched page lie close together.
    cursor: TableCursor<'a, CaptureRecord>,
    next: Option<u32>,
    /// URL, time and number of the previous, newer capture.
    later: Option<(UrlId, i64, u32)>,
    veil: Option<&'a Veil>,
}

impl<'a> History<'a> {
    pub(crate) fn new(captures: &'a RecordTable<CaptureRecord>, newest: Option<CaptureId>) -> Self {
        let next = newest.map(|capture| capture.0);
        Self { captures, cursor: captures.cursor(), next, later: None, veil: None }
    }

    /// The same without what a veil hides.
    pub(crate) fn behind(self, veil: Option<&'a Veil>) -> Self {
        Self { veil, ..self }
    }

    /// Whether a capture may come next: a damaged list must not lead into an endless loop.
    fn may_follow(&self, number: u32, capture: &Capture) -> bool {
        self.later
            .is_none_or(|(url, time, later)| url == capture.url && (capture.time, number) < (time, later))
    }
}

impl Iterator for History<'_> {
    type Item = Result<(CaptureId, Capture)>;

    fn next(&mut self) -> Option<Self::Item> {
        let Some(veil) = self.veil else { return self.next_stored() };
        loop {
            match self.next_stored()? {
                Ok((id, _)) if veil.hides(id) => {}
                Ok((id, capture)) => return Some(Ok((id, veil.shown(id, capture)))),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl History<'_> {
    fn next_stored(&mut self) -> Option<Result<(CaptureId, Capture)>> {
        let number = self.next.take()?;
        match self.cursor.get(number) {
            Ok(Some(CaptureRecord { capture, .. })) if !self.may_follow(number, &capture) => {
                Some(Err(self.captures.damaged(number, OUT_OF_ORDER)))
            }
            Ok(record) => record.map(|CaptureRecord { capture, previous, .. }| {
                (self.next, self.later) = (previous, Some((capture.url, capture.time, number)));
                Ok((CaptureId(number), capture))
            }),
            Err(error) => Some(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests;
