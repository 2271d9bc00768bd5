//! Page data for passes over all pages, in memory: flags and hosts from the table of pages, importance from the
//! prepared column.

use std::path::Path;

use archive_storage::{HostId, Page, PageFlags, State, StateError, UrlId};
use rayon::prelude::*;

use super::{Column, Prepared};
use crate::ledger::page_flags as flags;

/// Archives with more URLs keep no pages in memory, at 16 bytes each.
const PAGES_MAX: u32 = 1 << 24;

/// The pages of an archive, by number.
#[derive(Debug)]
pub struct KnownPages(Vec<KnownPage>);

#[derive(Clone, Copy, Debug)]
struct KnownPage {
    /// Importance of the page; of an alias, that of the page it stands for. Negative for none.
    importance: f64,
    host: HostId,
    flags: PageFlags,
}

impl KnownPages {
    /// Reads the pages of the archive in this folder. Returns `None` if there are too many URLs, if the columns are of
    /// another checkpoint or damaged, or if the state has changed since: the tables have the same data, if more slowly.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn read(state: &State, archive: &Path) -> Result<Option<Self>, StateError> {
        if state.url_count() > PAGES_MAX || state.dirty_bytes() > 0 {
            return Ok(None);
        }
        let Ok(Some(prepared)) = Prepared::open_of(state, archive) else { return Ok(None) };
        let of_block = |block: u32| -> Result<Option<Vec<KnownPage>>, StateError> {
            let ids = prepared.ids(block);
            let Ok(importance) = prepared.map(block, Column::Importance, f64::from_bits) else {
                return Ok(None);
            };
            let pages = state.pages(UrlId(ids.start)).zip(importance);
            pages.map(|(page, importance)| Ok(Some(KnownPage::of(&page?.1, importance)))).collect()
        };
        let blocks = (0..prepared.blocks()).into_par_iter().map(of_block);
        let blocks: Option<Vec<_>> = blocks.collect::<Result<_, _>>()?;
        Ok(blocks.map(|blocks| Self(blocks.concat())))
    }

    /// Returns a page with only its flags and host set.
    #[must_use]
    pub fn page(&self, id: UrlId) -> Option<Page> {
        let KnownPage { host, flags, .. } = *self.0.get(id.index())?;
        Some(Page { cash: 0, host, via: None, depth: 0, hop: 0, flags, visit: None })
    }

    /// Returns the importance of a page or, for an alias, of the page it stands for; `None` if neither has an account.
    #[must_use]
    pub fn importance(&self, id: UrlId) -> Option<f64> {
        self.0.get(id.index()).map(|known| known.importance).filter(|importance| *importance >= 0.0)
    }
}

impl KnownPage {
    fn of(page: &Page, importance: f64) -> Self {
        // In the column, an alias of no page has importance 0. A page may also have exactly 0; then its aliases are not
        // worth a fetch.
        let has_importance = match page.flags.has_any(flags::ALIAS) {
            true => importance > 0.0,
            false => page.flags.has_any(flags::ACCOUNT),
        };
        let importance = if has_importance { importance } else { -1.0 };
        Self { importance, host: page.host, flags: page.flags }
    }
}
