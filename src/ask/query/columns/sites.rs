//! The sites of an archive on disk.

use archive_books::prepared::{Prepared, PreparedError, SiteSums};
use archive_storage::SiteId;

use crate::query::columns::archive::{ArchiveRows, once};
use crate::query::columns::filter::ColumnFilter;
use crate::query::columns::page_batch::time;
use crate::query::language::{Found, Plan};
use crate::query::rows::{Chosen, Each, Hits, SiteRow};

impl ArchiveRows<'_> {
    pub(crate) fn all_sites(&self) -> Each<'_, SiteRow> {
        let sums = match self.site_sums() {
            Ok(sums) => sums,
            Err(error) => return Box::new(std::iter::once(Err(error))),
        };
        let shown = (0..).map(SiteId).zip(sums).filter(|(id, _)| self.state.shows_site(*id));
        Box::new(shown.map(|(id, sum)| self.site_row(id, sum)))
    }

    /// The sites that a plan may select; with columns, only these are read.
    pub(crate) fn chosen_sites(&self, plan: &Plan) -> Found<Chosen<'_, SiteRow>> {
        let tested = self.chosen(plan, &Hits::default(), self.state.site_count().into())?;
        let Some((columnar, are_selected)) = tested else {
            return Ok(Chosen { rows: self.all_sites(), are_selected: false });
        };
        let mut ids = Vec::new();
        for block in 0..columnar.prepared.blocks() {
            ids.extend(columnar.rows(block)?.of_ids(columnar.prepared.ids(block)).into_iter().map(SiteId));
        }
        Ok(Chosen { rows: self.sites_of(ids)?, are_selected })
    }

    /// The rows of the given sites, in the same order.
    pub(crate) fn sites_of(&self, ids: Vec<SiteId>) -> Found<Each<'_, SiteRow>> {
        let sums = match self.prepared_sites()? {
            Some(sites) => sites.sums(&ids)?,
            None => Vec::new(),
        };
        Ok(Box::new(ids.into_iter().zip(sums).map(|(id, sum)| self.site_row(id, &sum))))
    }

    fn site_row(&self, id: SiteId, sum: &SiteSums) -> Found<SiteRow> {
        Ok(SiteRow {
            id,
            name: self.texts.borrow_mut().sites.get(id.0)?.to_owned(),
            importance: sum.by_links,
            pages: sum.pages,
            captures: sum.captures,
            html: sum.html,
            xml: sum.xml,
            first_seen: time(sum.first_seen),
            last_seen: time(sum.last_seen),
        })
    }

    /// The prepared columns of sites, if there are any.
    pub(crate) fn prepared_sites(&self) -> Result<Option<&Prepared>, PreparedError> {
        let open = || if self.access.is_unlimited() { Prepared::sites(self.store) } else { Ok(None) };
        Ok(once(&self.sites, open)?.as_ref())
    }

    /// The sums over the pages of each site.
    pub(crate) fn site_sums(&self) -> Found<&[SiteSums]> {
        let sums = once(&self.site_sums, || -> Found<_> {
            if let Some(sites) = self.prepared_sites()? {
                return Ok(sites.all_sums()?);
            }
            let mut sums = vec![SiteSums::default(); self.state.site_count() as usize];
            for page in self.facts(ColumnFilter::All(Vec::new())) {
                let (_, facts) = page?;
                if let Some(sum) = sums.get_mut(facts.site.index()) {
                    sum.add(&facts);
                }
            }
            self.pages.weigh(&mut sums)?;
            Ok(sums)
        })?;
        Ok(sums)
    }
}
