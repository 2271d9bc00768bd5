//! The full-text indexes of several archives combined into one.

use archive_books::search::elements::ElementQuery;
use archive_books::search::{IndexView, Needs, Structures, TextQuery};
use archive_storage::UrlId;

use crate::query::language::Found;
use crate::query::rows::FullText;
use crate::query::several::merge::Together;
use crate::query::several::part::Member;

/// Views of the archives' full-text indexes, in the order of the archives.
pub(crate) struct Indexes<'r, 'a> {
    rows: &'r Together<'a>,
    views: Vec<IndexView<'a>>,
}

impl<'r, 'a> Indexes<'r, 'a> {
    pub(crate) fn new(rows: &'r Together<'a>, views: Vec<IndexView<'a>>) -> Self {
        Self { rows, views }
    }

    pub(crate) fn into_views(self) -> Vec<IndexView<'a>> {
        self.views
    }

    fn parts(&self) -> impl Iterator<Item = (&Member<'a>, &IndexView<'a>)> {
        self.rows.parts.iter().zip(&self.views)
    }
}

impl FullText for Indexes<'_, '_> {
    fn hits(&self, query: &TextQuery) -> Found<Vec<(UrlId, f32)>> {
        let mut hits = Vec::new();
        for (part, view) in self.parts() {
            let found = view.hits(query)?.into_iter().filter(|(id, _)| part.has(*id));
            let found: Vec<_> = found.map(|(id, bm25)| (part.page_above(id), bm25)).collect();
            if hits.is_empty() { hits = found } else { hits.extend(found) }
        }
        Ok(hits)
    }

    fn pages_with(&self, query: &TextQuery) -> Found<Vec<UrlId>> {
        let mut pages = Vec::new();
        for (part, view) in self.parts() {
            add(&mut pages, part, view.pages_with(query)?);
        }
        Ok(pages)
    }

    fn bm25(&self, query: &TextQuery, page: UrlId) -> Found<f32> {
        let (_, index, page) = self.rows.origin(page);
        self.views.get(index).map_or(Ok(0.0), |view| FullText::bm25(view, query, page))
    }

    fn passages(&self, text: &str) -> Found<Option<Vec<Vec<UrlId>>>> {
        let mut passages = Vec::new();
        for (part, view) in self.parts() {
            passages.extend(view.passages(text)?.into_iter().map(|found| {
                let mut pages = Vec::new();
                add(&mut pages, part, found);
                pages
            }));
        }
        Ok(Some(passages))
    }

    fn documents(&self, query: &ElementQuery, are_known: bool) -> Found<Option<Vec<UrlId>>> {
        let mut documents = Vec::new();
        for (part, view) in self.parts() {
            let Some(found) = view.documents(query, are_known)? else { return Ok(None) };
            add(&mut documents, part, found);
        }
        Ok(Some(documents))
    }

    fn lacking(&self, needs: &Needs) -> Found<Vec<UrlId>> {
        let mut pages = Vec::new();
        for (part, view) in self.parts() {
            add(&mut pages, part, FullText::lacking(view, needs)?);
        }
        Ok(pages)
    }

    fn structures(&self) -> Found<Structures> {
        let mut structures = Structures::default();
        for (part, view) in self.parts() {
            structures.add(view.structures()?, |id| part.has(id).then(|| part.page_above(id)));
        }
        Ok(structures)
    }
}

/// Adds what was found in an archive, restricted to the pages that it is responsible for.
fn add(pages: &mut Vec<UrlId>, part: &Member<'_>, found: Vec<UrlId>) {
    let found = found.into_iter().filter(|id| part.has(*id)).map(|id| part.page_above(id));
    if pages.is_empty() { *pages = found.collect() } else { pages.extend(found) }
}
