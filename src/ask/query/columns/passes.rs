//! What an archive on disk knows in addition to columns, so that more conditions can be decided without building rows.

use std::time::Instant;

use archive_base::decisions::Subject;
use archive_books::ledger::SiteRule;
use archive_books::prepared::{Column as Stored, Facts};
use archive_grammar::QueryRows;
use archive_storage::UrlId;

use crate::query::columns::archive::ArchiveRows;
use crate::query::columns::filter::ColumnFilter;
use crate::query::columns::page_batch::row;
use crate::query::columns::relations::each_of;
use crate::query::columns::sources::CodeTable;
use crate::query::language::{Column, FieldPath, Filter, Found, Subject as _, TextTest, TextTestKind, Via};
use crate::query::rows::{Hits, Row, Rows as _, World};

/// Pages sorted by id, and those of them that meet a condition.
type Apart = (Vec<UrlId>, Vec<UrlId>);

impl ArchiveRows<'_> {
    /// For each page, whether a test holds; `None` without columns.
    fn each_page(&self, mut test: ColumnFilter<'_>) -> Found<Option<Vec<bool>>> {
        let Some(prepared) = &self.prepared else { return Ok(None) };
        test.prepare()?;
        let running = &self.running;
        let each = each_of(prepared, |ids, block| {
            running.check()?;
            let rows = test.rows(prepared, block)?;
            Ok((0..ids.len()).map(|row| rows.has(row)).collect())
        })?;
        Ok(Some(each))
    }

    /// For each page, whether a condition holds, if columns decide it.
    pub(crate) fn pages_that(&self, filter: &Filter) -> Found<Option<Vec<bool>>> {
        if self.prepared.is_none() {
            return Ok(None);
        }
        let (began, hits) = (Instant::now(), Hits::default());
        let (Some(test), true) = ColumnFilter::of(filter, self.filter_context(QueryRows::Pages, &hits)?)?
        else {
            return Ok(None);
        };
        let each = self.each_page(test)?;
        let found = each.iter().flatten().filter(|holds| **holds).count() as u64;
        self.running.note(|seen| seen.passed("all pages: those of captures", found, began.elapsed()));
        Ok(each)
    }

    /// The values of a field for the sites or hosts of pages.
    pub(crate) fn table(&self, path: FieldPath) -> Found<Option<CodeTable>> {
        if self.has_others {
            return Ok(None);
        }
        let hits = Hits::default();
        let world = World::new(self, &hits);
        let (column, all) = match path.via {
            Some(Via::Site) => (Stored::Site, self.state.site_count()),
            Some(Via::Host) => (Stored::Host, self.state.host_count()),
            _ => return Ok(None),
        };
        let value = |number: u32| {
            let page = row(UrlId(0), &Facts::of_some(&[column], &[number.into()]));
            world.subject(&Row::Page(page)).field(path)
        };
        Ok(Some((column, (0..all).map(value).collect::<Found<_>>()?)))
    }

    /// The pages with decisions of their own, which do not follow from their hosts, and those of them that meet a
    /// condition.
    pub(crate) fn decided_apart(&self, filter: &Filter) -> Found<Option<Apart>> {
        let Some(decisions) = self.decisions() else { return Ok(Some(Apart::default())) };
        if matches!(self.pages.credits().rules().sites, SiteRule::Path(_)) {
            return Ok(None);
        }
        let (mut apart, mut folders) = (Vec::new(), Vec::new());
        for (subject, _) in decisions.subjects() {
            match subject {
                Subject::Page(url) => apart.extend(self.state.find(url)?),
                Subject::Folder(url) => folders.push(url.clone()),
                Subject::Site(_) | Subject::Host(_) => {}
            }
        }
        let hits = Hits::default();
        for folder in folders {
            let test = TextTest { kind: TextTestKind::Starts(folder), folds_case: false };
            let Some(test) =
                ColumnFilter::text(Column::Url, &test, self.filter_context(QueryRows::Pages, &hits)?)?
            else {
                return Ok(None);
            };
            let Some(each) = self.each_page(test)? else { return Ok(None) };
            apart.extend((0..).zip(each).filter(|(_, is_in)| *is_in).map(|(id, _)| UrlId(id)));
        }
        apart.sort_unstable();
        apart.dedup();
        let world = World::new(self, &hits);
        let mut holding = Vec::new();
        for page in self.pages_of(apart.clone()) {
            let page = Row::Page(page?);
            if filter.holds(&world.subject(&page))? {
                holding.push(UrlId(page.id() as u32));
            }
        }
        Ok(Some((apart, holding)))
    }
}
