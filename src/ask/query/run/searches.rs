//! Pages by their relations to others: links, redirects, equal content.
//!
//! Each relation takes one pass over all links or all pages, unless the store has a faster way, and results in a list
//! of pages.

use std::collections::HashSet;

use archive_books::prepared::FOUND;
use archive_books::search::copies;
use archive_books::search::elements::ElementQuery;
use archive_grammar::Relation;
use archive_storage::UrlId;
use archive_web::parse::LinkKind;
use rayon::prelude::*;

use crate::query::elements::{Bounds, bounds};
use crate::query::language::{Error, Filter, Plan, RowsError, Scores, Search};
use crate::query::rows::{FoundDigest, FullText, Hits, PageDigest, PageRow, Rows, SearchResult, newest};
use crate::query::run::explain;

/// Maximum number of rows whose scores are looked up one by one.
const SCORED_LATER_MAX: usize = 100;

/// For which pages of a search scores are needed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scoring {
    None,
    /// For those whose score is asked for later.
    Later,
    All,
}

impl Plan {
    /// Runs the searches of the plan.
    pub(crate) fn hits<'a>(
        &'a self,
        rows: &dyn Rows,
        full_text: Option<&'a dyn FullText>,
    ) -> Result<Hits<'a>, Error> {
        let mut hits = Hits::default();
        let scoring = self.scoring();
        if let Some(index) = full_text.filter(|_| self.asks_structure && self.as_of.is_none()) {
            hits.structures = index.structures().map_err(Error::Search)?;
        }
        let names_urls = self.filter.as_ref().is_some_and(|filter| filter.urls().is_some());
        for (place, search) in self.searches.iter().enumerate() {
            rows.running().check()?;
            if names_urls && matches!(search, Search::Lacking(_)) {
                // A few pages are read sooner than the dictionary of the index.
                hits.push(SearchResult::Pages(Vec::new()), None);
                continue;
            }
            let found = explain::searched(rows.running(), search, || {
                search.found(rows, full_text, scoring == Scoring::All)
            })?;
            match found {
                Some(mut found) => {
                    // Documents known to match need not be read.
                    if let (Search::Elements { are_known: false, .. }, SearchResult::Pages(pages)) =
                        (search, &mut found)
                    {
                        pages.retain(|id| !hits.has(place - 2, *id));
                    }
                    let later = match (search, full_text) {
                        (Search::Text { query, scores: true }, Some(index)) => Some((index, query)),
                        _ => None,
                    };
                    hits.push(found, later.filter(|_| scoring == Scoring::Later));
                }
                None => hits.push_any(),
            }
        }
        self.read_documents(rows, &mut hits)?;
        Ok(hits)
    }

    /// The scores of a few rows are looked up one by one.
    fn scoring(&self) -> Scoring {
        let are_few = self.last_row().is_some_and(|last| last <= SCORED_LATER_MAX) && self.as_of.is_none();
        match self.scores {
            Scores::Nothing => Scoring::None,
            Scores::Shown if are_few => Scoring::Later,
            Scores::Shown | Scores::Decide => Scoring::All,
        }
    }

    /// Reads the documents that the index does not decide on, if the store reads them together.
    fn read_documents(&self, rows: &dyn Rows, hits: &mut Hits<'_>) -> Result<(), RowsError> {
        for (place, search) in self.searches.iter().enumerate() {
            let is_unsure = matches!(search, Search::Elements { are_known: false, .. })
                && hits.found(place).is_some_and(|found| !found.is_empty());
            if is_unsure && let Some(found) = rows.documents_for(self, hits, place)? {
                hits.set(place - 1, found);
                hits.set(place, Vec::new());
            }
        }
        Ok(())
    }
}

impl Search {
    /// Runs the search; `None` if it may find any page.
    fn found(
        &self,
        rows: &dyn Rows,
        full_text: Option<&dyn FullText>,
        scores: bool,
    ) -> Result<Option<SearchResult>, Error> {
        let pages = match self {
            Self::Text { query, scores: is_scored } => {
                let index = full_text.ok_or(Error::NoIndex)?;
                if scores && *is_scored {
                    return Ok(Some(SearchResult::Scored(index.hits(query).map_err(Error::Search)?)));
                }
                index.pages_with(query).map_err(Error::Search)?
            }
            Self::Url(Relation::Near, url) => copies_of(rows, full_text, rows.find(url)?)?,
            Self::Pages(Relation::Near, plan) => {
                copies_of(rows, full_text, plan.pages_found(rows, full_text)?)?
            }
            Self::Url(relation, url) => related(rows, *relation, &rows.find(url)?.into_iter().collect())?,
            Self::Pages(relation, plan) => {
                let others = plan.pages_found(rows, full_text)?;
                related(rows, *relation, &others.into_iter().collect())?
            }
            Self::Urls(relation, urls) => {
                let ids = urls.iter().filter_map(|url| rows.find(url).transpose());
                let ids = ids.collect::<Result<HashSet<_>, _>>()?;
                match relation {
                    Some(relation) => related(rows, *relation, &ids)?,
                    None => ids.into_iter().collect(),
                }
            }
            Self::Duplicates => duplicates(rows)?,
            Self::Read => Vec::new(),
            Self::Lacking(needs) => match full_text {
                Some(index) => index.lacking(needs).map_err(Error::Search)?,
                None => Vec::new(),
            },
            Self::Elements { condition, are_known } => {
                let query = element_query(condition, *are_known);
                // Without an index, each document is read.
                let documents = full_text.map(|index| index.documents(&query, *are_known)).transpose();
                match documents.map_err(Error::Search)?.flatten() {
                    Some(documents) => documents,
                    None if *are_known => Vec::new(),
                    None => return Ok(None),
                }
            }
        };
        Ok(Some(SearchResult::Pages(pages)))
    }
}

/// The index query for documents that are known to meet a condition on elements, or for all others that may.
pub(crate) fn element_query(condition: &Filter, are_known: bool) -> ElementQuery {
    let nothing = ElementQuery::Any(Vec::new());
    let Filter::Some(path, filter) = condition else { return nothing };
    let Bounds { known, maybe } = bounds(path, filter.as_deref());
    // Without any that may, some documents are still not fully indexed.
    if are_known { known } else { maybe.unwrap_or(nothing) }
}

/// Returns the pages related to one of `others`.
pub(crate) fn related(
    rows: &dyn Rows,
    relation: Relation,
    others: &HashSet<UrlId>,
) -> Result<Vec<UrlId>, RowsError> {
    let found = match (relation, rows.linked(relation, others)?) {
        (_, Some(found)) => found,
        (Relation::SameContentAs, None) => {
            let mut contents = HashSet::new();
            for id in others {
                let page = rows.page(*id)?;
                contents.extend(page.map(|page| content(rows, &page)).transpose()?.flatten());
            }
            let equal = contents_of(rows, Some(&contents))?
                .into_iter()
                .filter(|(content, _)| contents.contains(content));
            equal.map(|(_, id)| id).collect()
        }
        (_, None) => linked(rows, relation, others)?,
    };
    Ok(found.into_iter().collect())
}

/// Returns the pages that copy the text of one of `others`, or quote from it.
fn copies_of(
    rows: &dyn Rows,
    full_text: Option<&dyn FullText>,
    others: impl IntoIterator<Item = UrlId>,
) -> Result<Vec<UrlId>, Error> {
    let index = full_text.ok_or(Error::NoIndex)?;
    let mut found = Vec::new();
    for other in others {
        rows.running().check()?;
        found.extend(copying(rows, index, other)?);
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Returns the other pages that have passages of a page's text.
fn copying(rows: &dyn Rows, index: &dyn FullText, page: UrlId) -> Result<Vec<UrlId>, RowsError> {
    let Some(newest) = rows.page(page)?.map(|page| newest(rows, &page)).transpose()?.flatten() else {
        return Ok(Vec::new());
    };
    let Some(facts) = rows.document_facts(&[newest.id])?.pop().flatten() else { return Ok(Vec::new()) };
    let passages = index.passages(&facts.text)?.unwrap_or_default();
    let site_of = |page: UrlId| Ok::<_, RowsError>(rows.page(page)?.map(|page| page.site.0));
    let mut copying = copies::copying(&passages, site_of)?;
    copying.retain(|copy| *copy != page);
    Ok(copying)
}

/// Returns the pages that links relate to one of `others`.
fn linked(rows: &dyn Rows, relation: Relation, others: &HashSet<UrlId>) -> Result<HashSet<UrlId>, RowsError> {
    let (running, mut found) = (rows.running(), HashSet::new());
    rows.links(&mut |link| {
        running.check_row()?;
        let (page, other) = match relation {
            Relation::LinkedFrom => (link.target, link.source),
            _ => (link.source, link.target),
        };
        let counts = relation != Relation::RedirectsTo || link.hop == LinkKind::Redirect.hop();
        if counts && others.contains(&other) {
            found.insert(page);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Returns the pages whose content equals that of another page.
fn duplicates(rows: &dyn Rows) -> Result<Vec<UrlId>, RowsError> {
    let mut contents = contents_of(rows, None)?;
    contents.par_sort_unstable();
    let equal = contents.chunk_by(|(left, _), (right, _)| left == right).filter(|chunk| chunk.len() > 1);
    Ok(equal.flatten().map(|(_, id)| *id).collect())
}

/// Returns the content digests of pages: at least of those in `wanted` or, without it, of those that two pages share.
fn contents_of(rows: &dyn Rows, wanted: Option<&HashSet<FoundDigest>>) -> Result<Vec<PageDigest>, RowsError> {
    if let Some(contents) = rows.contents_alike(wanted)? {
        return Ok(contents);
    }
    let mut contents = Vec::new();
    for page in rows.pages() {
        let page = page?;
        rows.running().check_row()?;
        contents.extend(content(rows, &page)?.map(|content| (content, page.id)));
    }
    Ok(contents)
}

/// The content digest of a fetched page; error responses have none.
fn content(rows: &dyn Rows, page: &PageRow) -> Result<Option<FoundDigest>, RowsError> {
    if !page.content_status.is_some_and(|status| FOUND.contains(&status)) {
        return Ok(None);
    }
    let newest = newest(rows, page)?;
    Ok(newest.map(|capture| capture.digest).filter(|digest| *digest != FoundDigest::default()))
}
