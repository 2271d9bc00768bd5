//! One archive of several: its own numbers, and those that its rows have among all.

use std::cell::RefCell;
use std::collections::HashMap;

use archive_storage::{CaptureId, HostId, SiteId, UrlId};

use crate::query::archive::ArchiveRows;
use crate::query::details::{CaptureRow, HostRow};
use crate::query::rows::PageRow;

/// The number at which an archive's numbers begin.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct First {
    pub(super) url: u32,
    pub(super) host: u32,
    pub(super) site: u32,
    pub(super) capture: u32,
    pub(super) link: u64,
}

/// An archive among others, and how its numbers become those of all.
#[derive(Debug)]
pub(in crate::query) struct Part<'a> {
    pub(super) rows: ArchiveRows<'a>,
    pub(super) first: First,
    /// By the archive's own numbers of sites, which archive answers for each.
    pub(super) answering: Vec<usize>,
    /// The rows of pages that links lead to.
    pub(super) targets: RefCell<HashMap<UrlId, UrlId>>,
}

impl Part<'_> {
    pub(super) fn answers(&self, index: usize, site: SiteId) -> bool {
        self.answering.get(site.index()).is_none_or(|answering| *answering == index)
    }

    /// Whether a number is of the archive: an index may be ahead of what the store has saved.
    pub(in crate::query) fn has(&self, id: UrlId) -> bool {
        id.0 < self.rows.state.url_count()
    }

    pub(in crate::query) fn page_above(&self, id: UrlId) -> UrlId {
        UrlId(id.0 + self.first.url)
    }

    pub(super) fn page(&self, id: UrlId) -> UrlId {
        UrlId(id.0 - self.first.url)
    }

    pub(super) fn up(&self, row: PageRow) -> PageRow {
        let First { host, site, .. } = self.first;
        let (host, site) = (HostId(row.host.0 + host), SiteId(row.site.0 + site));
        PageRow { id: self.page_above(row.id), host, site, ..row }
    }

    pub(super) fn down(&self, row: &PageRow) -> PageRow {
        let First { host, site, .. } = self.first;
        let (host, site) = (HostId(row.host.0 - host), SiteId(row.site.0 - site));
        PageRow { id: self.page(row.id), host, site, ..*row }
    }

    pub(super) fn host(&self, row: HostRow) -> HostRow {
        let (id, site) = (HostId(row.id.0 + self.first.host), SiteId(row.site.0 + self.first.site));
        HostRow { id, site, ..row }
    }

    pub(super) fn capture(&self, row: CaptureRow) -> CaptureRow {
        let id = CaptureId(row.id.0 + self.first.capture);
        CaptureRow { id, page: self.page_above(row.page), ..row }
    }
}
