//! Where the importance of pages comes from: looked up page by page, or known of all.

use std::path::Path;
use std::sync::OnceLock;

use archive_storage::{Page, State, StateError, UrlId, Visit};

use crate::ledger::{AliasImportance, Credits};
use crate::prepared::KnownPages;

/// Looks up the importance of pages, as of one checkpoint.
#[derive(Debug, Default)]
pub(super) struct Lookup {
    aliases: AliasImportance,
    /// All pages, once they are asked for, if prepared columns have them.
    known: OnceLock<Option<KnownPages>>,
}

impl Lookup {
    /// With the importance of these aliases.
    pub(super) fn of_aliases(aliases: AliasImportance) -> Self {
        Self { aliases, ..Self::default() }
    }

    /// Prepares for looking up all pages, from prepared columns if they are in this folder.
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

    /// All pages, if they are known.
    pub(super) fn known(&self) -> Option<&KnownPages> {
        self.known.get().and_then(Option::as_ref)
    }

    /// The importance of a page, or of that which it stands for; nothing of what is no page.
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
