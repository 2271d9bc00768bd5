//! What is known of a capture's page, whichever of its captures a row is of.

use archive_storage::{Store, UrlId};

use crate::access::Access;
use crate::exchange::export::ExportError;
use crate::query::{ArchiveRows, PageText, Rows};

/// What holds of a page now.
#[derive(Clone, Copy, Default)]
pub(super) struct Known {
    /// Mean 1 over all known pages; of nothing but pages.
    pub(super) importance: Option<f64>,
    /// Mean 1 over all known sites.
    pub(super) site_importance: Option<f64>,
    /// The mean of people's ratings of the page or of what it is part of, 1 to 4.
    pub(super) rating: Option<f64>,
}

/// The pages of an archive.
pub(super) struct Pages<'a> {
    rows: ArchiveRows<'a>,
    /// By the numbers of sites.
    sites: Vec<f64>,
}

impl<'a> Pages<'a> {
    pub(super) fn open(store: &'a Store) -> Result<Self, ExportError> {
        let rows = ArchiveRows::new(store, Access::unlimited())?;
        let mut sites = vec![0.0; store.state().site_count() as usize];
        for site in rows.sites() {
            let site = site?;
            if let Some(importance) = sites.get_mut(site.id.index()) {
                *importance = site.importance;
            }
        }
        Ok(Self { rows, sites })
    }

    pub(super) fn of(&self, page: UrlId) -> Result<Known, ExportError> {
        let Some(row) = self.rows.page(page)? else { return Ok(Known::default()) };
        let rating = match self.rows.decisions().filter(|decisions| !decisions.is_empty()) {
            Some(decisions) => {
                let text =
                    |text| Ok::<_, ExportError>(self.rows.text(&row, text)?.unwrap_or_default().into_owned());
                let (url, host, site) = (text(PageText::Url)?, text(PageText::Host)?, text(PageText::Site)?);
                decisions.of_page(&url, &host, &site).rating()
            }
            None => None,
        };
        let site_importance = self.sites.get(row.site.index()).copied();
        Ok(Known { importance: Some(row.importance), site_importance, rating })
    }
}
