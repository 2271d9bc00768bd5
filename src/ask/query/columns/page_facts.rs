//! The facts of pages from columns, block by block.

use std::cell::RefCell;

use archive_books::prepared::{Facts, Prepared};
use archive_storage::UrlId;

use crate::query::columns::filter::ColumnFilter;
use crate::query::columns::page_batch::PageBatch;
use crate::query::language::Found;
use crate::query::rows::Running;

/// The facts of all pages that pass a test, sorted by id; `batch` receives the pages.
pub(crate) fn facts_that<'a>(
    prepared: &'a Prepared,
    test: ColumnFilter<'a>,
    batch: &'a RefCell<PageBatch>,
    running: &'a Running,
) -> impl Iterator<Item = Found<(UrlId, Facts)>> + 'a {
    let chosen = move |block| {
        Ok(test.rows(prepared, block)?.of_ids(prepared.ids(block)).into_iter().map(UrlId).collect())
    };
    blocks(prepared, chosen, batch, running)
}

/// The facts of some pages, given sorted by id.
pub(crate) fn facts_of<'a>(
    prepared: &'a Prepared,
    ids: Vec<UrlId>,
    batch: &'a RefCell<PageBatch>,
    running: &'a Running,
) -> impl Iterator<Item = Found<(UrlId, Facts)>> + 'a {
    let chosen = move |block| {
        let urls = prepared.ids(block);
        let place = |url: u32| ids.partition_point(|id| id.0 < url);
        Ok(ids.get(place(urls.start)..place(urls.end)).unwrap_or_default().to_vec())
    };
    blocks(prepared, chosen, batch, running)
}

/// The facts of the pages that `chosen` returns for each block.
fn blocks<'a>(
    prepared: &'a Prepared,
    chosen: impl Fn(u32) -> Found<Vec<UrlId>> + 'a,
    batch: &'a RefCell<PageBatch>,
    running: &'a Running,
) -> impl Iterator<Item = Found<(UrlId, Facts)>> + 'a {
    let read = move |block| -> Found<_> {
        running.check()?;
        let ids = chosen(block)?;
        Ok(if ids.is_empty() { None } else { Some((prepared.facts(block, &ids)?, ids)) })
    };
    (0..prepared.blocks()).flat_map(move |block| {
        let (found, failed) = match read(block) {
            Ok(found) => (found, None),
            Err(error) => (None, Some(Err(error))),
        };
        let rows = found.map(|(facts, ids)| {
            *batch.borrow_mut() = PageBatch::coming(ids);
            facts.into_iter().map(Ok)
        });
        failed.into_iter().chain(rows.into_iter().flatten())
    })
}
