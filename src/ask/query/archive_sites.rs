//! The sites of an archive on disk.

use archive_books::ledger::SiteRule;
use archive_books::prepared::{PreparedError, SiteSums, Sites};
use archive_storage::SiteId;

use super::Plan;
use super::archive::{ArchiveRows, once};
use super::archive_pages::time;
use super::best_sites::{self, SiteTest};
use super::columns::Column;
use super::prefilter::Test;
use super::rows::{Each, Found, Row, SiteRow};

impl ArchiveRows<'_> {
    /// Returns the sites that pass tests of their numbers; the names of others are not read.
    pub(super) fn site_rows(&self, tests: Vec<SiteTest>) -> Each<'_, SiteRow> {
        let sums = match self.site_sums() {
            Ok(sums) => sums,
            Err(error) => return Box::new(std::iter::once(Err(error))),
        };
        let passes = move |sum: &SiteSums| {
            let mut tests = tests.iter();
            tests.all(|(number, ranges)| ranges.has(&number.of(sum)))
        };
        let rows = (0..).zip(sums).filter(move |(id, sum)| passes(sum) && self.state.shows_site(SiteId(*id)));
        Box::new(rows.map(|(id, sum)| self.site_row(SiteId(id), sum)))
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

    /// Returns the sites of a plan's answer, and how many sites match, if prepared columns decide this.
    pub(super) fn best_sites(&self, plan: &Plan) -> Found<Option<(Vec<Row>, u64)>> {
        let Some(sites) = self.prepared_sites()? else { return Ok(None) };
        let Some((ids, count)) = best_sites::best_sites(plan, &sites)? else { return Ok(None) };
        let all = self.state.site_count().into();
        self.running.note(|seen| seen.source("the table of sites alone".to_owned(), all));
        let sums = sites.some(&ids)?;
        let rows = ids.iter().zip(&sums).map(|(id, sum)| self.site_row(*id, sum).map(Row::Site));
        Ok(Some((rows.collect::<Result<_, _>>()?, count)))
    }

    /// Returns the sites that a plan names, if it selects no others and there are prepared columns of sites.
    pub(super) fn named_sites(&self, plan: &Plan) -> Found<Option<Vec<SiteRow>>> {
        // Names of domains and hosts are in lower case, and so are the wanted names.
        let are_small = !matches!(self.pages.credits().rules().sites, SiteRule::Path(_));
        let names = plan.filter.as_ref().and_then(|filter| filter.only(Column::Site));
        let Some(names) = names.filter(|_| are_small) else { return Ok(None) };
        let Some(sites) = self.prepared_sites()? else { return Ok(None) };
        let ids = names.iter().filter_map(|name| self.state.find_site(name).transpose());
        let mut ids: Vec<SiteId> = ids.collect::<Result<_, _>>()?;
        ids.sort_unstable();
        ids.dedup();
        let sums = sites.some(&ids)?;
        ids.iter().zip(&sums).map(|(id, sum)| self.site_row(*id, sum)).collect::<Result<_, _>>().map(Some)
    }

    /// The prepared columns of sites, if there are any.
    fn prepared_sites(&self) -> Result<Option<Sites>, PreparedError> {
        if self.access.is_unlimited() { Sites::open(self.store) } else { Ok(None) }
    }

    /// The sums over the pages of each site.
    pub(super) fn site_sums(&self) -> Found<&[SiteSums]> {
        let sums = once(&self.site_sums, || -> Found<_> {
            if let Some(sites) = self.prepared_sites()? {
                return Ok(sites.all()?);
            }
            let mut sums = vec![SiteSums::default(); self.state.site_count() as usize];
            for page in self.facts(Test::All(Vec::new())) {
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
