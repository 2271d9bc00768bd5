//! Columns of captures.

use std::ops::Range;

use archive_storage::{Capture, CaptureId, CaptureKind, State, StateError, UrlId};

use super::file::Stamp;
use super::{Column, Pages, stamp};
use crate::ledger::{capture_flags, page_flags};

/// Columns of the file.
pub(super) const COLUMNS: [Column; 9] = [
    Column::Kind,
    Column::Host,
    Column::Site,
    Column::Status,
    Column::Mime,
    Column::Time,
    Column::Size,
    Column::Stored,
    Column::Change,
];

/// Returns the value of [`Column::Kind`] for a capture: [`CaptureKind::Response`] 1, `Identical` 2, `NotModified` 3,
/// `Resource` 4, `Failed` 5, and 6 for an erased one. In the column, 0 marks captures of robots.txt files, which are no
/// pages.
#[must_use]
pub fn capture_kind(capture: &Capture) -> u64 {
    match capture.kind {
        _ if capture_flags::is_erased(capture) => 6,
        CaptureKind::Response => 1,
        CaptureKind::Identical => 2,
        CaptureKind::NotModified => 3,
        CaptureKind::Resource => 4,
        CaptureKind::Failed => 5,
    }
}

/// Bytes of a capture's payload; `None` if nothing answered or it was erased.
#[must_use]
pub fn size(capture: &Capture) -> Option<u32> {
    let has_answer = capture.kind != CaptureKind::Failed && !capture_flags::is_erased(capture);
    has_answer.then_some(capture.length)
}

pub(super) fn of_captures(state: &State) -> Stamp {
    stamp(state, u32::try_from(state.totals().captures).unwrap_or(u32::MAX), COLUMNS.len())
}

/// Returns the columns of some captures; `None` if one of them is from before 1970.
pub(super) fn columns_of(pages: &Pages<'_>, rows: Range<u32>) -> Result<Option<Vec<Vec<u64>>>, StateError> {
    let ids: Vec<CaptureId> = rows.map(CaptureId).collect();
    let block = pages.state().captures_of(&ids)?;
    let mut urls: Vec<UrlId> = block.iter().map(|capture| capture.url).collect();
    urls.sort_unstable();
    urls.dedup();
    let known = pages.state().pages_of(&urls)?;
    let mut columns = [const { Vec::new() }; COLUMNS.len()];
    columns.iter_mut().for_each(|column| column.reserve(block.len()));
    for capture in &block {
        let (Ok(time), Ok(place)) = (u64::try_from(capture.time), urls.binary_search(&capture.url)) else {
            return Ok(None);
        };
        let Some(page) = known.get(place) else { return Ok(None) };
        let is_shown = !page.flags.has_any(page_flags::ROBOTS);
        let values = [
            if is_shown { capture_kind(capture) } else { 0 },
            page.host.0.into(),
            pages.site_of(capture.url, page)?.0.into(),
            capture.status.into(),
            capture.mime.0.into(),
            time,
            size(capture).map_or(0, |bytes| u64::from(bytes) + 1),
            capture.location.length.into(),
            (capture.flags & (capture_flags::CONTENT_CHANGED | capture_flags::BYTES_CHANGED)).into(),
        ];
        columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
    }
    Ok(Some(columns.into()))
}
