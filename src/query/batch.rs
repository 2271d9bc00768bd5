//! The pages that a query reads now: they are read together once a field is needed that their rows do not have.

use archive_storage::{Page, State, StateError, UrlId, Visit};

/// Some pages, by rising number.
#[derive(Debug, Default)]
pub(super) struct Batch {
    ids: Vec<UrlId>,
    /// What the state knows of them; empty until the first is asked for.
    known: Vec<(Page, Option<Visit>)>,
}

impl Batch {
    /// A page that was read.
    pub(super) fn of(id: UrlId, page: Page, visit: Option<Visit>) -> Self {
        Self { ids: vec![id], known: vec![(page, visit)] }
    }

    /// Pages that will be read, by rising number.
    pub(super) fn coming(ids: Vec<UrlId>) -> Self {
        Self { ids, known: Vec::new() }
    }

    /// What is known of a page, if it is one of them.
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
