//! What a page's captures say together.

use archive_storage::{CaptureId, UrlId};

use crate::query::language::{Found, Instant, NOT_MODIFIED};
use crate::query::rows::details::CaptureRow;
use crate::query::rows::{PageRow, Rows};

/// The newest content of a page, or what came instead if there is none; instead of a 304, the capture that it confirms.
pub(crate) fn newest(rows: &dyn Rows, page: &PageRow) -> Found<Option<CaptureRow>> {
    if page.attempts == 0 {
        return Ok(None);
    }
    let mut history = rows.history(page.id)?;
    let is_meant = |it: &CaptureRow| it.kind != NOT_MODIFIED && (it.is_content || page.captures == 0);
    history.find(|capture| capture.as_ref().map_or(true, is_meant)).transpose()
}

/// The version of a page before that of a capture: the newest earlier content with other bytes.
pub(crate) fn version_before(rows: &dyn Rows, capture: &CaptureRow) -> Found<Option<CaptureRow>> {
    let mut history =
        rows.history(capture.page)?.skip_while(|it| it.as_ref().is_ok_and(|it| it.id != capture.id));
    let is_meant = |it: &CaptureRow| it.is_content && it.kind != NOT_MODIFIED && it.digest != capture.digest;
    history.find(|it| it.as_ref().map_or(true, is_meant)).transpose()
}

/// The shortest time between two captures of a page with content, in seconds; with `of`, the time from the one before to
/// that capture.
pub(crate) fn recaptured(rows: &dyn Rows, page: UrlId, of: Option<CaptureId>) -> Found<Option<f64>> {
    let mut history = rows.history(page)?.filter(|it| it.as_ref().map_or(true, |it| it.is_content));
    let mut later = match of {
        Some(of) => history.find(|it| it.as_ref().map_or(true, |it| it.id == of)),
        None => history.next(),
    };
    let mut shortest: Option<f64> = None;
    while let Some(newer) = later {
        let newer = newer?;
        let Some(older) = history.next() else { break };
        let older = older?;
        let seconds = (newer.time - older.time).as_seconds_f64();
        shortest = Some(shortest.map_or(seconds, |known| known.min(seconds)));
        later = Some(Ok(older)).filter(|_| of.is_none());
    }
    Ok(shortest)
}

/// Whether content changed between two times, given the captures of a page (time, and whether the content changed) from
/// newest to oldest. The first version is not a change: a change only counts if an older version follows.
pub(crate) fn changed(
    history: impl Iterator<Item = Found<(Instant, bool)>>,
    from: Option<Instant>,
    until: Option<Instant>,
) -> Found<bool> {
    let mut is_in = false;
    for capture in history {
        let (time, is_change) = capture?;
        if !is_change {
            continue;
        }
        if is_in {
            return Ok(true);
        }
        if from.is_some_and(|from| time < from) {
            return Ok(false);
        }
        is_in = until.is_none_or(|until| time < until);
    }
    Ok(false)
}
