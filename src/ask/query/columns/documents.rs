//! Reads the documents that the index does not decide on, many together and in parallel.

use archive_base::access::Access;
use archive_books::change::with_tree;
use archive_grammar::QueryRows;
use archive_storage::{Store, UrlId};
use archive_web::parse::DocumentKind;
use rayon::prelude::*;

use crate::query::columns::archive::ArchiveRows;
use crate::query::columns::captures::{capture_row, unreadable};
use crate::query::elements::tree;
use crate::query::language::{Filter, Found, NOT_MODIFIED, Plan, Search};
use crate::query::rows::Hits;

impl ArchiveRows<'_> {
    /// See [`Rows::documents_for`](crate::query::rows::Rows::documents_for).
    pub(crate) fn documents_that(
        &self,
        plan: &Plan,
        hits: &Hits<'_>,
        search: usize,
    ) -> Found<Option<Vec<UrlId>>> {
        let Some(Search::Elements { condition, are_known: false }) = plan.searches.get(search) else {
            return Ok(None);
        };
        if plan.target != QueryRows::Pages {
            return Ok(None);
        }
        let Some((mut columnar, _)) = self.tested(plan, hits)? else { return Ok(None) };
        let mut pages: Vec<UrlId> =
            hits.found(search).into_iter().flat_map(|found| found.iter().copied()).collect();
        if let Some(candidates) = plan.filter.as_ref().and_then(|filter| hits.candidates(filter)) {
            pages.retain(|id| candidates.binary_search(id).is_ok());
        }
        if pages.len() >= columnar.prepared.blocks() as usize {
            columnar.filter.prepare()?;
        }
        let pages = columnar.of(&pages)?;
        let has_elements = |kind| DocumentKind::from_code(kind).has_elements();
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
        let has = |tree: &roxmltree::Document<'_>| tree::has(tree, path, filter.as_deref());
        return match row.has_document() {
            true => with_tree(store, access, &capture, has)
                .map_err(|error| unreadable(store, &capture, &error))?
                .unwrap_or(Ok(false)),
            false => Ok(false),
        };
    }
    Ok(false)
}
