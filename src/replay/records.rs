//! The records of a capture as a WARC file.

use archive_storage::segment::{self, Codec, Compressor};
use archive_storage::warc::RecordType;
use archive_storage::{Capture, CaptureId, CaptureKind, Store};

use super::address::Target;
use super::mementos::Mementos;
use super::{Asked, Error, Response};

/// Maximum size of the records in a download, in bytes.
const RECORDS_BYTES_MAX: u64 = 1 << 30;

/// Maximum number of records read per capture.
const RECORDS_MAX: usize = 16;

/// Gzip compression level.
const LEVEL: i32 = 6;

impl Asked<'_> {
    /// `/warc/<number>` or `/warc/<timestamp>/<url>`: the records of the capture and of its original.
    pub(super) fn records(&self, rest: &str) -> Result<Response, Error> {
        let Some(id) = self.capture_named(rest)? else {
            return Ok(self.problem(404, "There is no such capture."));
        };
        let capture = self.store.state().capture(id)?;
        let original = capture.original.map(|id| self.store.state().capture(id)).transpose()?;
        let packed: u64 = [Some(&capture), original.as_ref()]
            .iter()
            .flatten()
            .map(|capture| u64::from(capture.length))
            .sum();
        if packed > RECORDS_BYTES_MAX {
            return Ok(self
                .problem(413, "The records are too long for a download; export them on the command line."));
        }
        let mut file = Vec::new();
        for capture in std::iter::once(capture).chain(original) {
            pack(self.store, &capture, &mut file)?;
        }
        let mut response = Response::text(200, "application/warc", file);
        response.set("Content-Disposition", &format!("attachment; filename=\"capture-{id}.warc.gz\""));
        Ok(response)
    }

    /// The capture that a path names, if it may be shown.
    fn capture_named(&self, rest: &str) -> Result<Option<CaptureId>, Error> {
        let state = self.store.state();
        let is_number = !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
        if is_number {
            let Some(id) = rest.parse().ok().filter(|id| u64::from(*id) < state.totals().captures) else {
                return Ok(None);
            };
            let capture = state.capture(CaptureId(id))?;
            let is_shown = capture.kind != CaptureKind::Failed && self.access.shows(state, &capture)?;
            return Ok(is_shown.then_some(CaptureId(id)));
        }
        let target = Target::parse(rest);
        let mut found = Mementos::of(self.store, self.access, &target.url)?;
        let place = found.choose(self.store, self.access, target.when, None)?;
        Ok(place.map(|place| found.list[place].id))
    }
}

/// Appends the records of a capture, each as a gzip member.
fn pack(store: &Store, capture: &Capture, file: &mut Vec<u8>) -> Result<(), Error> {
    let mut compressor = Compressor::new(Codec::Gzip, LEVEL, None)?;
    let id = capture.location.segment;
    let entry = store.state().segment(id).map(|entry| entry.file.clone()).unwrap_or_default();
    let on_disk = segment::files(store.path())?.into_iter();
    let Some((_, name)) =
        on_disk.into_iter().find(|(other, name)| *other == id && name.trim_end_matches(".open") == entry)
    else {
        return Err(segment::SegmentError::Missing(id).into());
    };
    for record in segment::records(store.path(), id, &name, capture.location.offset)?.take(RECORDS_MAX) {
        // `archive verify` reports unreadable records; the main record's header has been read already.
        let Ok(record) = record else { break };
        compressor.record(record.header.to_string().as_bytes(), &record.content, file)?;
        if record.header.record_type() == RecordType::Metadata {
            break;
        }
    }
    Ok(())
}
