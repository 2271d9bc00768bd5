//! Pages of an archive on disk that are related to other pages.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use archive_books::ledger::LinkCode;
use archive_books::prepared::{self, Column, FOUND, Prepared, short_digest};
use archive_grammar::Relation;
use archive_storage::{Capture, CaptureId, LinkKinds, LinkList, LinksPosition, UrlId};
use archive_web::parse::LinkKind;
use rayon::prelude::*;

use crate::query::columns::archive::ArchiveRows;
use crate::query::columns::filter::{ColumnFilter, FoundBy};
use crate::query::columns::row_set::{RowSet, flags};
use crate::query::columns::texts::{OnText, Urls};
use crate::query::language::{Column as Field, Found, RowsError, TextTest};
use crate::query::rows::{FoundDigest, PageDigest, Rows as _, digest_of, hexadecimal};

/// Number of captures that are read together.
const CAPTURES: usize = 1 << 15;

impl ArchiveRows<'_> {
    /// Returns the pages that links relate to some pages. Links to pages are found by a parallel pass over all links.
    pub(crate) fn pages_linked(
        &self,
        relation: Relation,
        others: &HashSet<UrlId>,
    ) -> Found<Option<HashSet<UrlId>>> {
        let is_hop = |kind: LinkKind| relation == Relation::LinksTo || kind == LinkKind::Redirect;
        match relation {
            Relation::SameContentAs | Relation::Near => Ok(None),
            Relation::LinkedFrom => self.linked_from(others).map(Some),
            Relation::LinksTo | Relation::RedirectsTo => {
                let kinds = LinkKinds::new(|kind| LinkCode::from_byte(kind).kind().is_some_and(is_hop));
                let linking = match others.iter().next().filter(|_| others.len() == 1) {
                    Some(&only) => self.linking_to(|target| target == only, &kinds)?,
                    None => {
                        let others = others.iter().map(|target| target.0);
                        // Faster than a set lookup for each link.
                        let are = flags(others, self.state.url_count() as usize);
                        self.linking_to(|target| are.get(target.index()) == Some(&true), &kinds)?
                    }
                };
                Ok(Some(linking.into_iter().collect()))
            }
        }
    }

    fn linked_from(&self, sources: &HashSet<UrlId>) -> Found<HashSet<UrlId>> {
        let mut sources: Vec<UrlId> = sources.iter().copied().collect();
        sources.sort_unstable();
        let (mut cursor, mut list, mut found) =
            (self.state.link_cursor(), LinkList::default(), HashSet::new());
        for source in sources {
            self.running.check_row()?;
            if let Some(links) = self.newest_links(source)? {
                cursor.get(links, &mut list)?;
                let known = list.links.iter().filter(|link| LinkCode::from_byte(link.kind).kind().is_some());
                found.extend(known.map(|link| link.target));
            }
        }
        Ok(found)
    }

    /// Returns the pages with a link of these kinds to a page that `counts` accepts, sorted by id.
    fn linking_to(&self, counts: impl Fn(UrlId) -> bool + Sync, kinds: &LinkKinds) -> Found<Vec<UrlId>> {
        let (state, running) = (self.state, &self.running);
        let mut are_linking = vec![false; state.url_count() as usize];
        let check = || running.check().map_err(RowsError::from);
        let mut note = |source: UrlId, is_linking| {
            are_linking.get_mut(source.index()).into_iter().for_each(|is| *is = is_linking);
        };
        if state.veil().is_some() {
            state.newest_links(|(source, ..), links| {
                check()?;
                note(source, links.iter().any(|link| kinds.has(link.kind) && counts(link.target)));
                Ok::<_, RowsError>(())
            })?;
        } else {
            // Older versions had other links.
            prepared::each_list(state, kinds, counts, check, |source, target| {
                note(source, target.is_some());
            })?;
        }
        let linking = (0..).zip(are_linking).filter_map(|(id, is_linking)| is_linking.then_some(UrlId(id)));
        let Some(prepared) = &self.prepared else {
            let shown = self.pages_of(linking.collect());
            let shown = shown.map(|page| page.map(|page| (page.attempts > 0).then_some(page.id)));
            return shown.filter_map(Result::transpose).collect();
        };
        let linking: Vec<UrlId> = linking.collect();
        let of_block = |block: u32| -> Found<Vec<u32>> {
            let linking = RowSet::of_found(prepared.ids(block), &linking);
            let shown =
                RowSet::passing((prepared, block), Column::Attempts, &linking, |attempts| attempts > 0)?;
            Ok(linking.and(shown).of_ids(prepared.ids(block)))
        };
        let blocks = (0..prepared.blocks()).into_par_iter().map(of_block).collect::<Found<Vec<_>>>()?;
        Ok(blocks.into_iter().flatten().map(UrlId).collect())
    }

    /// For each page, whether a text test holds for the URL of the page through which it was found, or of the one that it
    /// redirects to. `None` without columns.
    pub(crate) fn pages_led(&self, field: Field, test: &TextTest) -> Found<Option<Vec<bool>>> {
        let Some(prepared) = &self.prepared else { return Ok(None) };
        let (began, for_none) = (Instant::now(), test.holds_of(None, Some(field)));
        let (state, running) = (self.state, &self.running);
        let urls = Urls { state, test: OnText::new(Field::Url, test.clone()) };
        let named = urls.named()?;
        let own = each_of(prepared, |ids, block| {
            running.check()?;
            let urls = match &named {
                Some(named) => RowSet::of_found(ids.clone(), named),
                None => urls.rows(ids.clone(), &RowSet::All)?,
            };
            // URLs that are not pages are not shown.
            let shown = RowSet::passing((prepared, block), Column::Kind, &RowSet::All, |kind| kind > 0)?;
            Ok((0..ids.len()).map(|row| if shown.has(row) { urls.has(row) } else { for_none }).collect())
        })?;
        let led = match field {
            Field::Via => each_of(prepared, |ids, _| {
                running.check()?;
                let of_via = |via: UrlId| own.get(via.index()).copied().unwrap_or(for_none);
                let pages = state.pages(UrlId(ids.start)).take(ids.len());
                let holds = pages.map(|page| page.map(|(_, page)| page.via.map_or(for_none, of_via)));
                Ok(holds.collect::<Result<_, _>>()?)
            })?,
            _ => each_of(prepared, |_, block| {
                running.check()?;
                let targets = prepared.values(block, Column::Redirect)?.into_iter();
                let target = targets.map(|target| target.checked_sub(1));
                let of_target = |target: Option<u64>| own.get(usize::try_from(target?).ok()?).copied();
                Ok(target.map(|target| of_target(target).unwrap_or(for_none)).collect())
            })?,
        };
        let found = || led.iter().filter(|holds| **holds).count() as u64;
        let over = match field {
            Field::Via => "all pages: via",
            _ => "all pages: redirect",
        };
        running.note(|seen| seen.passed(over, found(), began.elapsed()));
        Ok(Some(led))
    }

    /// Position of the newest links of a page, unless it is hidden.
    fn newest_links(&self, id: UrlId) -> Found<Option<LinksPosition>> {
        let has_captures = self.page(id)?.is_some_and(|page| page.attempts > 0);
        Ok(if has_captures { self.known(id)?.1.and_then(|visit| visit.links) } else { None })
    }

    /// Returns the digests of fetched pages, found through columns: all pages whose content may be in `wanted` or,
    /// without it, equal that of another page.
    pub(crate) fn digests_alike(
        &self,
        wanted: Option<&HashSet<FoundDigest>>,
    ) -> Found<Option<Vec<PageDigest>>> {
        let Some(prepared) = &self.prepared else { return Ok(None) };
        let is_found = |status: u64| u16::try_from(status).is_ok_and(|status| FOUND.contains(&status));
        let mut alike = self.contents_with(prepared, wanted, is_found)?;
        if wanted.is_none() {
            alike.par_sort_unstable_by_key(|content| content.digest);
            let equal = alike.chunk_by(|left, right| left.digest == right.digest);
            alike = equal.filter(|pages| pages.len() > 1).flatten().copied().collect();
        }
        self.digests_of(alike).map(Some)
    }

    /// The page test equivalent to a condition on digests alone; `None` without columns.
    pub(crate) fn pages_with_digests(&self, test: &OnText) -> Found<Option<ColumnFilter<'static>>> {
        let Some(prepared) = &self.prepared else { return Ok(None) };
        let (began, for_none) = (Instant::now(), test.holds(None));
        let wanted = test.0.only(Field::Digest).filter(|_| !for_none);
        let (pages, found) = match wanted {
            Some(texts) => {
                let wanted = texts.iter().filter_map(|text| digest_of(text)).collect();
                let contents = self.digests_of(self.contents_with(prepared, Some(&wanted), |_| true)?)?;
                let holding =
                    contents.into_iter().filter(|(digest, _)| test.holds(Some(&hexadecimal(digest))));
                let mut pages: Vec<UrlId> = holding.map(|(_, page)| page).collect();
                pages.sort_unstable();
                (pages.len(), ColumnFilter::Ids(Arc::new(pages), FoundBy::Pass))
            }
            None => {
                let each = self.each_capture(|| {
                    // Threads that share one regular expression would wait for each other.
                    let test = test.clone();
                    move |capture| {
                        let digest = Some(hexadecimal(&capture.digest)).filter(|digest| !digest.is_empty());
                        test.holds(digest.as_deref())
                    }
                })?;
                let are = self.pages_with_newest(prepared, for_none, &each)?;
                (are.iter().filter(|holds| **holds).count(), ColumnFilter::Each(are))
            }
        };
        self.running.note(|seen| {
            seen.passed("contents of all pages: digest", pages as u64, began.elapsed());
        });
        Ok(Some(found))
    }

    /// For each capture, whether a test holds; runs in parallel, and each thread makes its own test.
    pub(crate) fn each_capture<H: Fn(&Capture) -> bool>(
        &self,
        holds: impl Fn() -> H + Sync,
    ) -> Found<Vec<bool>> {
        let (state, running) = (self.state, &self.running);
        let of_part = |part: usize| -> Found<Vec<bool>> {
            running.check()?;
            let holds = holds();
            let captures = state.captures_from(CaptureId((part * CAPTURES) as u32)).take(CAPTURES);
            let each = captures.map(|found| found.map(|(_, capture)| holds(&capture)));
            Ok(each.collect::<Result<_, _>>()?)
        };
        let parts = 0..(state.totals().captures as usize).div_ceil(CAPTURES);
        Ok(parts.into_par_iter().map(of_part).collect::<Found<Vec<_>>>()?.concat())
    }

    /// Maps each page to the result for its newest capture that is not a 304, or to `for_none`.
    pub(crate) fn pages_with_newest(
        &self,
        prepared: &Prepared,
        for_none: bool,
        are: &[bool],
    ) -> Found<Vec<bool>> {
        let running = &self.running;
        each_of(prepared, |_, block| {
            running.check()?;
            let newest = prepared.values(block, Column::Newest)?.into_iter();
            let capture = |newest: u64| are.get(newest.checked_sub(1)? as usize).copied();
            Ok(newest.map(|newest| capture(newest).unwrap_or(for_none)).collect())
        })
    }

    /// The contents of pages whose status passes a test and whose digest may be in `wanted`.
    fn contents_with(
        &self,
        prepared: &Prepared,
        wanted: Option<&HashSet<FoundDigest>>,
        has_status: impl Fn(u64) -> bool + Sync,
    ) -> Found<Vec<PageContent>> {
        let wanted: Option<HashSet<u32>> = wanted.map(|wanted| wanted.iter().map(short_digest).collect());
        let running = &self.running;
        let is_wanted = |digest: u64| {
            digest != 0 && wanted.as_ref().is_none_or(|wanted| wanted.contains(&(digest as u32)))
        };
        let of_block = |block: u32| -> Found<Vec<PageContent>> {
            running.check()?;
            let alike = RowSet::passing((prepared, block), Column::Digest, &RowSet::All, is_wanted)?;
            let rows = match alike {
                RowSet::None => return Ok(Vec::new()),
                alike => {
                    let counting =
                        RowSet::passing((prepared, block), Column::ContentStatus, &alike, &has_status)?;
                    alike.and(counting)
                }
            };
            let digests = rows.values(prepared, block, Column::Digest)?;
            let newest = rows.values(prepared, block, Column::Newest)?;
            let ids = prepared.ids(block);
            let contents = rows.places(ids.len()).zip(digests.into_iter().zip(newest));
            let content = |(row, (digest, newest)): (Option<u32>, (u64, u64))| {
                let (page, capture) = (UrlId(ids.start + row?), CaptureId(newest.checked_sub(1)? as u32));
                Some(PageContent { digest: digest as u32, capture, page })
            };
            Ok(contents.filter_map(content).collect())
        };
        let blocks = (0..prepared.blocks()).into_par_iter().map(of_block).collect::<Found<Vec<_>>>()?;
        Ok(blocks.concat())
    }

    /// Reads the full digests of contents.
    fn digests_of(&self, mut contents: Vec<PageContent>) -> Found<Vec<PageDigest>> {
        let state = self.state;
        // In the order of captures, so that nothing is read twice.
        contents.par_sort_unstable_by_key(|content| content.capture);
        let digests = |contents: &[PageContent]| -> Found<Vec<PageDigest>> {
            let captures: Vec<CaptureId> = contents.iter().map(|content| content.capture).collect();
            let captures = state.captures_of(&captures)?.into_iter().zip(contents);
            Ok(captures.map(|(capture, content)| (capture.digest, content.page)).collect())
        };
        Ok(contents.par_chunks(CAPTURES).map(digests).collect::<Found<Vec<_>>>()?.concat())
    }
}

/// What columns know of a page's content.
#[derive(Clone, Copy)]
struct PageContent {
    /// The short digest.
    digest: u32,
    capture: CaptureId,
    page: UrlId,
}

/// Concatenates the results of a function for the pages of each block, run in parallel.
pub(crate) fn each_of(
    prepared: &Prepared,
    of_block: impl Fn(Range<u32>, u32) -> Found<Vec<bool>> + Sync,
) -> Found<Vec<bool>> {
    let blocks = (0..prepared.blocks()).into_par_iter().map(|block| of_block(prepared.ids(block), block));
    Ok(blocks.collect::<Found<Vec<_>>>()?.concat())
}
