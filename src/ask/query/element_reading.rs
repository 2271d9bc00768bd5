//! Reads the documents that the index does not decide on, many together and in parallel.

use archive_base::access::Access;
use archive_books::change::with_tree;
use archive_grammar::Target;
use archive_storage::{Store, UrlId};
use rayon::prelude::*;

use super::Plan;
use super::archive::ArchiveRows;
use super::archive_pages::page_type;
use super::captures::{capture_row, unreadable};
use super::columns::NOT_MODIFIED;
use super::elements;
use super::filter::Filter;
use super::hits::Hits;
use super::plan::Search;
use super::rows::{Found, PageType};

impl ArchiveRows<'_> {
    /// See [`Rows::documents_for`](super::Rows::documents_for).
    pub(super) fn documents_that(
        &self,
        plan: &Plan,
        hits: &Hits<'_>,
        search: usize,
    ) -> Found<Option<Vec<UrlId>>> {
        let Some(Search::Elements { read: Some(condition), .. }) = plan.searches.get(search) else {
            return Ok(None);
        };
        if plan.target != Target::Pages {
            return Ok(None);
        }
        let Some((mut columnar, _)) = self.tested(plan, hits)? else { return Ok(None) };
        let mut pages: Vec<UrlId> =
            hits.found(search).into_iter().flat_map(|found| found.iter().copied()).collect();
        if let Some(candidates) = plan.filter.as_ref().and_then(|filter| hits.candidates(filter)) {
            pages.retain(|id| candidates.binary_search(id).is_ok());
        }
        if pages.len() >= columnar.prepared.blocks() as usize {
            columnar.test.prepare()?;
        }
        let pages = columnar.of(&pages)?;
        let has_elements = |kind| matches!(page_type(kind), PageType::Xml | PageType::Feed);
        let pages = pages.into_iter().filter(|(_, facts)| facts.kind.is_some_and(has_elements));
        let pages: Vec<UrlId> = pages.map(|(id, _)| id).collect();
        let (store, access, running) = (self.store, &self.access, &self.running);
        running.note(|seen| seen.documents_parsed += pages.len() as u64);
        let read = |id| {
            running.check()?;
            Ok(running.unless_unreadable(holds(store, access, id, condition))?.then_some(id))
        };
        let found: Found<Vec<_>> = pages.into_par_iter().map(read).filter_map(Found::transpose).collect();
        found.map(Some)
    }
}

/// Whether a condition on elements holds for a page's document: see `RowSubject::document`.
fn holds(store: &Store, access: &Access, id: UrlId, condition: &Filter) -> Found<bool> {
    let Filter::Some(path, filter) = condition else { return Ok(false) };
    for found in access.history(store.state(), id)? {
        let (id, capture) = found?;
        let row = capture_row(store.state(), id, &capture);
        if row.kind == NOT_MODIFIED || !row.is_content {
            continue;
        }
        let has = |tree: &roxmltree::Document<'_>| elements::has(tree, path, filter.as_deref());
        return match row.has_document() {
            true => with_tree(store, access, &capture, has)
                .map_err(|error| unreadable(store, &capture, &error))?
                .unwrap_or(Ok(false)),
            false => Ok(false),
        };
    }
    Ok(false)
}
