//! What a page's captures say together.

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
