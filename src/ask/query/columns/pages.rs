//! Pages of an archive on disk, read in bulk from columns or from the state's tables.

use std::sync::Arc;

use archive_books::change::Checks;
use archive_books::prepared::{Answers, BySite, Facts, Prepared, PreparedError};
use archive_grammar::QueryRows;
use archive_storage::{Page, StateError, UrlId, Visit};

use crate::query::columns::archive::{ArchiveRows, once};
use crate::query::columns::compile::is_version;
use crate::query::columns::context::FilterContext;
use crate::query::columns::filter::{ColumnFilter, FoundBy};
use crate::query::columns::first::{Columnar, by_block};
use crate::query::columns::order::KeyOrder;
use crate::query::columns::page_batch::{PageBatch, row};
use crate::query::language::{Found, Plan, PlannedExpr, plural};
use crate::query::rows::{Each, Hits, PageRow, Row, World, source};

/// If searches found fewer pages per block of columns than this, on average, each page is looked up.
const FOUND_PER_BLOCK_MIN: usize = 16;

impl<'r> ArchiveRows<'r> {
    /// The facts of all pages, sorted by id; with columns, only of those that pass a filter.
    pub(crate) fn facts<'s>(&'s self, filter: ColumnFilter<'s>) -> Each<'s, (UrlId, Facts)> {
        let Some(prepared) = &self.prepared else {
            if let Err(error) = self.pages.expect_all() {
                return Box::new(std::iter::once(Err(error.into())));
            }
            return Box::new(
                self.state.pages_with_visits().filter_map(|known| self.facts_of(known).transpose()),
            );
        };
        Box::new(by_block(prepared.blocks(), move |block| {
            self.running.check()?;
            let ids = filter.rows(prepared, block)?.of_ids(prepared.ids(block));
            let ids: Vec<UrlId> = ids.into_iter().map(UrlId).collect();
            if ids.is_empty() {
                return Ok(Vec::new());
            }
            let facts = prepared.facts(block, &ids)?;
            *self.batch.borrow_mut() = PageBatch::coming(ids);
            Ok(facts)
        }))
    }

    /// The prepared columns of captures, if there are any.
    pub(crate) fn prepared_captures(&self) -> Result<Option<&Prepared>, PreparedError> {
        let open = || if self.access.is_unlimited() { Prepared::captures(self.store) } else { Ok(None) };
        Ok(once(&self.captures, open)?.as_ref())
    }

    /// The pages of each site, if there are columns.
    pub(crate) fn by_site(&self) -> Result<Option<&BySite>, PreparedError> {
        let open = || if self.access.is_unlimited() { BySite::open(self.store) } else { Ok(None) };
        Ok(once(&self.by_site, open)?.as_ref())
    }

    /// What responses said, if it was noted.
    pub(crate) fn answers(&self) -> Result<Option<&Answers>, PreparedError> {
        Ok(once(&self.answers, || Answers::open(self.store))?.as_ref())
    }

    /// What responses said, and the results of checking documents.
    pub(crate) fn checks(&self) -> Found<Option<(&Answers, &Checks)>> {
        let answers = self.answers()?;
        let read = || answers.map(|answers| Checks::of(answers, self.store, &self.access)).transpose();
        Ok(answers.zip(once(&self.checks, read)?.as_ref()))
    }

    /// Returns the columns of the rows that a plan selects from, if there are any, with a test that holds for all rows
    /// that match, and whether it holds for no others.
    pub(crate) fn tested(&self, plan: &Plan, hits: &Hits<'_>) -> Found<Option<(Columnar<'_>, bool)>> {
        let prepared = match plan.target {
            QueryRows::Pages => self.prepared.as_ref(),
            QueryRows::Captures | QueryRows::Versions => self.prepared_captures()?,
            QueryRows::Sites => self.prepared_sites()?,
            QueryRows::Hosts | QueryRows::Links => None,
        };
        let Some(prepared) = prepared else { return Ok(None) };
        let (filter, is_exact) = match &plan.filter {
            Some(filter) => ColumnFilter::of(filter, self.filter_context(plan.target, hits)?)?,
            None => (None, true),
        };
        let is_version = (plan.target == QueryRows::Versions).then(is_version);
        let filter = ColumnFilter::All(filter.into_iter().chain(is_version).collect());
        Ok(Some((Columnar { target: plan.target, prepared, filter, running: &self.running }, is_exact)))
    }

    /// As `tested`, for rows that are passed on one by one; notes how many of `all` rows columns choose from.
    pub(crate) fn chosen(
        &self,
        plan: &Plan,
        hits: &Hits<'_>,
        all: u64,
    ) -> Found<Option<(Columnar<'_>, bool)>> {
        let tested = self.tested(plan, hits)?;
        self.running.note(|seen| {
            let columns = tested.as_ref().map(|(columnar, _)| columnar.filter.columns());
            let are_selected = tested.as_ref().is_some_and(|(_, are_selected)| *are_selected);
            seen.source(source(plural(plan.target), columns, are_selected), all);
        });
        Ok(tested)
    }

    /// The context from which filters on rows of a target are built.
    pub(crate) fn filter_context<'h>(
        &self,
        target: QueryRows,
        hits: &'h Hits<'h>,
    ) -> Found<FilterContext<'_, 'r, 'h>> {
        Ok(FilterContext { target, archive: self, hits, by_site: self.by_site()? })
    }

    /// Returns the first rows in the order of a plan's keys, and how many rows match, if columns or passes provide
    /// these.
    pub(crate) fn first_by_keys(&self, plan: &Plan, hits: &Hits<'_>) -> Found<Option<(Vec<Row>, u64)>> {
        let Some(keyed) = KeyOrder::of(plan, self.filter_context(plan.target, hits)?)? else {
            return Ok(None);
        };
        let Some(columnar) = self.columnar(plan, hits)? else { return Ok(None) };
        let Some((ids, count)) = keyed.first(&columnar, self)? else { return Ok(None) };
        columnar.note(plan, keyed.columns());
        Ok(Some((self.rows_of(plan, ids)?, count)))
    }

    /// The columns and test of a plan, if these alone answer it.
    pub(crate) fn columnar(&self, plan: &Plan, hits: &Hits<'_>) -> Found<Option<Columnar<'_>>> {
        // Single pages are looked up.
        if plan.filter.as_ref().is_some_and(|filter| filter.urls().is_some()) {
            return Ok(None);
        }
        let columnar = self.tested(plan, hits)?.and_then(|(columnar, is_exact)| is_exact.then_some(columnar));
        let are_many = |most: usize, blocks: u32| most / FOUND_PER_BLOCK_MIN >= blocks as usize;
        let Some(mut columnar) = columnar.filter(|columnar| {
            columnar.filter.most().is_none_or(|most| are_many(most, columnar.prepared.blocks()))
        }) else {
            return Ok(None);
        };
        columnar.filter.prepare()?;
        Ok(Some(columnar))
    }

    /// Returns those of the given pages (sorted by id) that meet a plan's conditions, with only their type, site, last
    /// capture and language. `None` if columns do not decide all conditions or, without columns, if the conditions need
    /// importance.
    pub(crate) fn found_of(&self, plan: &Plan, ids: &[UrlId]) -> Found<Option<Vec<(UrlId, Facts)>>> {
        let needs_importance =
            || plan.filter.as_ref().is_some_and(|filter| filter.has(PlannedExpr::is_importance));
        if self.prepared.is_none() && plan.searches.is_empty() && !needs_importance() {
            return self.found_in_tables(plan, ids).map(Some);
        }
        self.columnar(plan, &Hits::default())?.map(|columnar| columnar.of(ids)).transpose()
    }

    /// Like `found_of` without columns: checkpoints that a running crawl writes have none. Importance is the most
    /// expensive to look up, so it is left out.
    fn found_in_tables(&self, plan: &Plan, ids: &[UrlId]) -> Found<Vec<(UrlId, Facts)>> {
        // An index may be ahead of what the store has saved.
        let ids = ids.iter().copied().filter(|id| id.0 < self.state.url_count());
        let (mut found, hits) = (Vec::new(), Hits::default());
        let world = World::new(self, &hits);
        for known in self.state.visits_of(ids) {
            let (id, page, visit) = known?;
            self.running.check_row()?;
            *self.batch.borrow_mut() = PageBatch::of(id, page, visit);
            if self.access.shows_page(self.state, visit.as_ref())?
                && let Some(facts) = self.pages.facts_unweighed(id, &page, visit.as_ref())?
                && plan.holds(&world, &Row::Page(row(id, &facts)))?
            {
                found.push((id, facts));
            }
        }
        Ok(found)
    }

    /// Returns the rows of the given pages, sorted by id: reading many together is cheaper than one by one.
    pub fn pages_of(&self, mut ids: Vec<UrlId>) -> impl Iterator<Item = Found<PageRow>> + '_ {
        ids.sort_unstable();
        ids.dedup();
        // An index may be ahead of what the store has saved.
        ids.retain(|id| id.0 < self.state.url_count());
        let facts: Each<'_, _> = match &self.prepared {
            Some(_) => self.facts(ColumnFilter::Ids(Arc::new(ids), FoundBy::Names)),
            None => Box::new(
                self.state.visits_of(ids.into_iter()).filter_map(|known| self.facts_of(known).transpose()),
            ),
        };
        facts.map(|page| page.map(|(id, facts)| row(id, &facts)))
    }

    /// The facts of a page that was read; `None` if it is not a page or is hidden.
    fn facts_of(
        &self,
        known: Result<(UrlId, Page, Option<Visit>), StateError>,
    ) -> Found<Option<(UrlId, Facts)>> {
        let (id, page, visit) = known?;
        self.running.check_row()?;
        *self.batch.borrow_mut() = PageBatch::of(id, page, visit);
        if !self.access.shows_page(self.state, visit.as_ref())? {
            return Ok(None);
        }
        Ok(self.pages.facts(id, &page, visit.as_ref())?.map(|facts| (id, facts)))
    }
}
