//! Importance of pages: looked up page by page, or read for all pages at once.

use std::path::Path;
use std::sync::OnceLock;

use archive_books::ledger::{AliasImportance, Credits};
use archive_books::prepared::KnownPages;
use archive_storage::{Page, State, StateError, UrlId, Visit};

/// Looks up the importance of pages, as of one checkpoint.
#[derive(Debug, Default)]
pub(super) struct Lookup {
    aliases: AliasImportance,
    /// All pages, once requested, if prepared columns have them.
    known: OnceLock<Option<KnownPages>>,
}

impl Lookup {
    /// Starts with the importance of these aliases.
    pub(super) fn of_aliases(aliases: AliasImportance) -> Self {
        Self { aliases, ..Self::default() }
    }

    /// Prepares for looking up all pages, from the prepared columns in this folder if there are any.
    pub(super) fn expect_all(
        &self,
        state: &State,
        credits: &Credits,
        archive: Option<&Path>,
    ) -> Result<(), StateError> {
        if self.known.get().is_none() {
            let known = archive.map(|archive| KnownPages::read(state, archive)).transpose()?.flatten();
            self.known.get_or_init(|| known);
        }
        if self.known().is_none() {
            self.aliases.read_all(state, credits)?;
        }
        Ok(())
    }

    /// Returns all pages, if they were read from prepared columns.
    pub(super) fn known(&self) -> Option<&KnownPages> {
        self.known.get().and_then(Option::as_ref)
    }

    /// Returns the importance of a page, or of the page that it stands for; `None` if it is not a page.
    pub(super) fn importance(
        &self,
        state: &State,
        credits: &Credits,
        (id, page): (UrlId, &Page),
        visit: &Visit,
    ) -> Result<Option<f64>, StateError> {
        match self.known() {
            Some(known) => Ok(known.importance(id)),
            None => self.aliases.of_page(state, credits, (id, page), Some(visit)),
        }
    }
}
