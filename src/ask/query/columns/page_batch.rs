//! The pages that a query is currently reading. They are read together once a field is needed that their rows do not
//! have.

use archive_books::prepared::Facts;
use archive_storage::{Page, State, StateError, UrlId, Visit};
use archive_web::parse::DocumentKind;
use chrono::{DateTime, Utc};

use crate::query::rows::PageRow;

/// Some pages, sorted by id.
#[derive(Debug, Default)]
pub(crate) struct PageBatch {
    ids: Vec<UrlId>,
    /// Their data from the state; empty until the first lookup.
    known: Vec<(Page, Option<Visit>)>,
}

impl PageBatch {
    /// A single page that was read already.
    pub(crate) fn of(id: UrlId, page: Page, visit: Option<Visit>) -> Self {
        Self { ids: vec![id], known: vec![(page, visit)] }
    }

    /// Pages to be read when needed, sorted by id.
    pub(crate) fn coming(ids: Vec<UrlId>) -> Self {
        Self { ids, known: Vec::new() }
    }

    /// The data of a page, if it is in the batch.
    pub(crate) fn known(
        &mut self,
        state: &State,
        id: UrlId,
    ) -> Result<Option<(Page, Option<Visit>)>, StateError> {
        let Ok(place) = self.ids.binary_search(&id) else { return Ok(None) };
        if self.known.is_empty() {
            let known = state.visits_of(self.ids.iter().copied());
            self.known =
                known.map(|known| known.map(|(_, page, visit)| (page, visit))).collect::<Result<_, _>>()?;
        }
        Ok(self.known.get(place).copied())
    }
}

pub(crate) fn row(id: UrlId, facts: &Facts) -> PageRow {
    PageRow {
        id,
        host: facts.host,
        site: facts.site,
        kind: facts.kind.map(DocumentKind::from_code),
        status: Some(facts.status).filter(|status| *status > 0),
        content_status: Some(facts.content_status).filter(|status| *status > 0),
        importance: facts.importance,
        captures: facts.captures,
        attempts: facts.attempts,
        versions: facts.versions,
        first_seen: time(facts.first_seen),
        last_seen: time(facts.last_seen),
        last_answer: time(facts.last_answer),
        last_attempt: time(facts.last_attempt),
        failing_since: time(facts.failing_since),
        changed: time(facts.changed),
        depth: Some(u32::from(facts.depth)),
    }
}

/// A time from seconds since 1970; `None` for 0.
pub(crate) fn time(seconds: u32) -> Option<DateTime<Utc>> {
    (seconds > 0).then(|| DateTime::from_timestamp(i64::from(seconds), 0)).flatten()
}
