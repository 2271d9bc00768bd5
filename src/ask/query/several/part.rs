//! One archive of several: its own ids, and the ids of its rows among all.

use std::cell::RefCell;
use std::collections::HashMap;

use archive_storage::{CaptureId, HostId, SiteId, UrlId};

use crate::query::columns::ArchiveRows;
use crate::query::rows::{CaptureRow, HostRow, PageRow};

/// The first of an archive's ids among all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FirstIds {
    pub(crate) url: u32,
    pub(crate) host: u32,
    pub(crate) site: u32,
    pub(crate) capture: u32,
    pub(crate) link: u64,
}

/// An archive among others, and how its ids are converted.
#[derive(Debug)]
pub(crate) struct Member<'a> {
    pub(crate) rows: ArchiveRows<'a>,
    pub(crate) first: FirstIds,
    /// Which archive answers for each site, by the site's id in this archive.
    pub(crate) answering: Vec<usize>,
    /// The rows of pages that links lead to.
    pub(crate) targets: RefCell<HashMap<UrlId, UrlId>>,
}

impl Member<'_> {
    pub(crate) fn answers(&self, index: usize, site: SiteId) -> bool {
        self.answering.get(site.index()).is_none_or(|answering| *answering == index)
    }

    /// Whether the archive has this id: an index may be ahead of what the store has saved.
    pub(crate) fn has(&self, id: UrlId) -> bool {
        id.0 < self.rows.state.url_count()
    }

    pub(crate) fn page_above(&self, id: UrlId) -> UrlId {
        UrlId(id.0 + self.first.url)
    }

    pub(crate) fn page(&self, id: UrlId) -> UrlId {
        UrlId(id.0 - self.first.url)
    }

    pub(crate) fn up(&self, row: PageRow) -> PageRow {
        let FirstIds { host, site, .. } = self.first;
        let (host, site) = (HostId(row.host.0 + host), SiteId(row.site.0 + site));
        PageRow { id: self.page_above(row.id), host, site, ..row }
    }

    pub(crate) fn down(&self, row: &PageRow) -> PageRow {
        let FirstIds { host, site, .. } = self.first;
        let (host, site) = (HostId(row.host.0 - host), SiteId(row.site.0 - site));
        PageRow { id: self.page(row.id), host, site, ..*row }
    }

    pub(crate) fn host(&self, row: HostRow) -> HostRow {
        let (id, site) = (HostId(row.id.0 + self.first.host), SiteId(row.site.0 + self.first.site));
        HostRow { id, site, ..row }
    }

    pub(crate) fn capture(&self, row: CaptureRow) -> CaptureRow {
        let id = CaptureId(row.id.0 + self.first.capture);
        CaptureRow { id, page: self.page_above(row.page), ..row }
    }
}
