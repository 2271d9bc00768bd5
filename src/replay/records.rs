//! The records of a capture as a WARC file.

use archive_storage::{CaptureId, CaptureKind};
use bytes::Bytes;

use super::address::ReplayTarget;
use super::long::{Long, MemberRecords};
use super::mementos::Mementos;
use super::{ReplayError, ReplayRequest, Response};

/// Maximum size of the records in a download, in bytes.
const RECORDS_BYTES_MAX: u64 = 1 << 30;

/// Bytes of a download that are made before it is sent; a longer one is sent while it is made, without its length.
const WHOLE_BYTES_MAX: usize = 1 << 20;

impl ReplayRequest<'_> {
    /// `/warc/<number>` or `/warc/<timestamp>/<url>`: the records of the capture and of its original.
    pub(super) fn records(&self, rest: &str) -> Result<Response, ReplayError> {
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
        let captures = std::iter::once(capture).chain(original).map(|capture| capture.location);
        let mut records = MemberRecords::new(self.store.reader(), captures);
        let mut response = Response::text(200, "application/warc", Bytes::new());
        response.set("Content-Disposition", &format!("attachment; filename=\"capture-{id}.warc.gz\""));
        let mut file = Vec::new();
        while file.len() < WHOLE_BYTES_MAX {
            let Some(piece) = records.next().transpose()? else {
                response.body = file.into();
                return Ok(response);
            };
            file.extend_from_slice(&piece);
        }
        response.long = Some(Long::of_records(records.after(file.into())));
        Ok(response)
    }

    /// The capture that a path names, if it may be shown.
    fn capture_named(&self, rest: &str) -> Result<Option<CaptureId>, ReplayError> {
        let state = self.store.state();
        let is_number = !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
        if is_number {
            let Some(id) = rest.parse().ok().filter(|id| u64::from(*id) < state.totals().captures) else {
                return Ok(None);
            };
            let capture = state.capture(CaptureId(id))?;
            let is_shown = capture.kind != CaptureKind::Failed
                && !state.is_hidden(CaptureId(id))
                && self.access.shows(state, &capture)?;
            return Ok(is_shown.then_some(CaptureId(id)));
        }
        let target = ReplayTarget::parse(rest);
        let mut found = Mementos::of(self.store, self.access, &target.url)?;
        let place = found.choose(self.store, self.access, target.when, None)?;
        Ok(place.map(|place| found.list[place].id))
    }
}
