//! What weighing all pages needs of them, in memory: flags and hosts from their table, importance from the prepared column.

use std::path::Path;

use archive_storage::{HostId, Page, PageFlags, State, StateError, UrlId};
use rayon::prelude::*;

use super::{Column, Prepared};
use crate::ledger::page_flags as flags;

/// Of an archive with more URLs no pages are kept in memory, at 16 bytes each.
const PAGES_MAX: u32 = 1 << 24;

/// The pages of an archive, by number.
#[derive(Debug)]
pub struct KnownPages(Vec<Known>);

#[derive(Clone, Copy, Debug)]
struct Known {
    /// That of the page that an alias stands for; negative where there is none.
    importance: f64,
    host: HostId,
    flags: PageFlags,
}

impl KnownPages {
    /// Those of the archive in this folder; nothing if its columns are of another checkpoint or the state has changed since, for
    /// too many URLs, and if the file is damaged: the tables say the same, if more slowly.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn read(state: &State, archive: &Path) -> Result<Option<Self>, StateError> {
        if state.url_count() > PAGES_MAX || state.dirty_bytes() > 0 {
            return Ok(None);
        }
        let Ok(Some(prepared)) = Prepared::open_of(state, archive) else { return Ok(None) };
        let of_block = |block: u32| -> Result<Option<Vec<Known>>, StateError> {
            let ids = prepared.ids(block);
            let Ok(importance) = prepared.map(block, Column::Importance, f64::from_bits) else {
                return Ok(None);
            };
            let pages = state.pages(UrlId(ids.start)).zip(importance);
            pages.map(|(page, importance)| Ok(Some(Known::of(&page?.1, importance)))).collect()
        };
        let blocks = (0..prepared.blocks()).into_par_iter().map(of_block);
        let blocks: Option<Vec<_>> = blocks.collect::<Result<_, _>>()?;
        Ok(blocks.map(|blocks| Self(blocks.concat())))
    }

    /// Of a page only its flags and its host.
    #[must_use]
    pub fn page(&self, id: UrlId) -> Option<Page> {
        let Known { host, flags, .. } = *self.0.get(id.index())?;
        Some(Page { cash: 0, host, via: None, depth: 0, hop: 0, flags, visit: None })
    }

    /// Its importance, or that of the page that it stands for; nothing if neither has an account.
    #[must_use]
    pub fn importance(&self, id: UrlId) -> Option<f64> {
        self.0.get(id.index()).map(|known| known.importance).filter(|importance| *importance >= 0.0)
    }
}

impl Known {
    fn of(page: &Page, importance: f64) -> Self {
        // In the column, what stands for no page has an importance of 0; if a page has just that, its aliases are worth no fetch.
        let has_importance = match page.flags.has_any(flags::ALIAS) {
            true => importance > 0.0,
            false => page.flags.has_any(flags::ACCOUNT),
        };
        let importance = if has_importance { importance } else { -1.0 };
        Self { importance, host: page.host, flags: page.flags }
    }
}
