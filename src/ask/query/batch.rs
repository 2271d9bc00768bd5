//! The pages that a query is currently reading. They are read together once a field is needed that their rows do not
//! have.

use archive_storage::{Page, State, StateError, UrlId, Visit};

/// Some pages, sorted by id.
#[derive(Debug, Default)]
pub(super) struct Batch {
    ids: Vec<UrlId>,
    /// Their data from the state; empty until the first lookup.
    known: Vec<(Page, Option<Visit>)>,
}

impl Batch {
    /// A single page that was read already.
    pub(super) fn of(id: UrlId, page: Page, visit: Option<Visit>) -> Self {
        Self { ids: vec![id], known: vec![(page, visit)] }
    }

    /// Pages to be read when needed, sorted by id.
    pub(super) fn coming(ids: Vec<UrlId>) -> Self {
        Self { ids, known: Vec::new() }
    }

    /// The data of a page, if it is in the batch.
    pub(super) fn known(
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
