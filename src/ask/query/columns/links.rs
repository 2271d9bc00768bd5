//! Links of an archive on disk, found by a parallel pass over the newest lists of all pages.

use archive_base::access::Access;
use archive_books::ledger::LinkCode;
use archive_books::prepared;
use archive_storage::{LinkKinds, LinkList, LinkTarget, LinksPosition, Page, State, UrlId, Visit};
use rayon::prelude::*;

use crate::query::columns::archive::ArchiveRows;
use crate::query::language::{Column, FieldPath, Filter, Found, Plan, RowsError, Via};
use crate::query::rows::{Hits, LinkRow, Row, World};

/// Blocks of links that are read sequentially.
const BLOCKS: u64 = 32;
/// Number of such parts whose links are in memory at once: some 30 MB.
const PARTS: usize = 16;

/// What a condition says of a link's page, its target or its kind by itself.
struct LinkTests<'a> {
    state: &'a State,
    access: &'a Access,
    /// For each page, whether its links may be meant; `None` if all may.
    of_source: Option<Vec<bool>>,
    /// For each URL, whether links to it may be meant; `None` if all may.
    of_target: Option<Vec<bool>>,
    kinds: LinkKinds,
    /// Whether nothing else is asked.
    are_all: bool,
}

impl LinkTests<'_> {
    fn allows(tests: Option<&Vec<bool>>, page: UrlId) -> bool {
        tests.is_none_or(|tests| tests.get(page.index()) == Some(&true))
    }

    fn has(&self, link: LinkTarget) -> bool {
        self.kinds.has(link.kind) && Self::allows(self.of_target.as_ref(), link.target)
    }

    /// The links of these lists that pass the tests; none of a list that is not the newest of its page.
    fn links_of(&self, lists: &[(UrlId, LinksPosition)]) -> Found<Vec<LinkRow>> {
        let sources: Vec<UrlId> = lists.iter().map(|(source, _)| *source).collect();
        let (mut cursor, mut list, mut rows) = (self.state.link_cursor(), LinkList::default(), Vec::new());
        for ((source, position), (_, page, visit)) in lists.iter().zip(self.state.known_of(&sources)?) {
            let is_newest = visit.is_some_and(|visit| visit.links == Some(*position));
            if !is_newest || !self.shows(&page, visit.as_ref())? {
                continue;
            }
            cursor.get(*position, &mut list)?;
            let meant = list.links.iter().enumerate().filter(|(_, link)| self.has(**link));
            let row = |(place, link): (usize, &LinkTarget)| link_row(position.of_link(place), *source, *link);
            rows.extend(meant.filter_map(row));
        }
        Ok(rows)
    }

    /// Whether the links of a page may be shown.
    fn shows(&self, page: &Page, visit: Option<&Visit>) -> Found<bool> {
        Ok(prepared::seen(page, visit).is_some() && self.access.shows_page(self.state, visit)?)
    }
}

impl ArchiveRows<'_> {
    /// Passes links to a function in the order of arrival, without those that a plan's condition excludes cheaply, and whether
    /// the condition is known to hold.
    pub(crate) fn all_links(
        &self,
        plan: Option<&Plan>,
        take: &mut dyn FnMut(LinkRow, bool) -> Found<()>,
    ) -> Found<()> {
        let (state, running) = (self.state, &self.running);
        let tests = self.link_tests(plan.and_then(|plan| plan.filter.as_ref()))?;
        if state.veil().is_some() {
            let mut count = 0;
            return state.newest_links(|(source, page, visit), links| {
                running.check_row()?;
                let is_meant = LinkTests::allows(tests.of_source.as_ref(), source);
                if is_meant && tests.shows(page, Some(visit))? {
                    let meant = links.iter().zip(count..).filter(|(link, _)| tests.has(**link));
                    for row in meant.filter_map(|(link, id)| link_row(id, source, *link)) {
                        take(row, tests.are_all)?;
                    }
                    count += links.len() as u64;
                }
                Ok(())
            });
        }
        let of_part = |first: &u64| -> Found<Vec<LinkRow>> {
            running.check().map_err(RowsError::from)?;
            let is_target = |target| LinkTests::allows(tests.of_target.as_ref(), target);
            let mut lists: Vec<(UrlId, LinksPosition)> = Vec::new();
            state.search_links(
                *first..first + BLOCKS,
                &tests.kinds,
                is_target,
                |source, position, found| {
                    let is_meant = found.is_some() && LinkTests::allows(tests.of_source.as_ref(), source);
                    lists.extend(is_meant.then_some((source, position)));
                },
            )?;
            tests.links_of(&lists)
        };
        let parts: Vec<u64> = (0..state.link_blocks()).step_by(BLOCKS as usize).collect();
        for parts in parts.chunks(PARTS) {
            let rows = parts.par_iter().map(of_part).collect::<Found<Vec<_>>>()?;
            rows.into_iter().flatten().try_for_each(|row| take(row, tests.are_all))?;
        }
        Ok(())
    }

    fn link_tests(&self, filter: Option<&Filter>) -> Found<LinkTests<'_>> {
        let hits = Hits::default();
        let world = World::new(self, &hits);
        let (mut of_source, mut of_target): (Option<Vec<bool>>, Option<Vec<bool>>) = (None, None);
        let (mut of_kind, mut are_all) = (vec![true; usize::from(u8::MAX) + 1], true);
        for part in filter.map(Filter::parts).unwrap_or_default() {
            let fields = part.fields().unwrap_or_default();
            let are = |of: fn(&FieldPath) -> bool| !fields.is_empty() && fields.iter().all(of);
            if are(|path| path.via.is_none() && path.column.is_of_link_kind()) {
                for (kind, is_meant) in (0..=u8::MAX).zip(&mut of_kind) {
                    let link = LinkTarget { target: UrlId(0), kind };
                    let Some(row) = link_row(0, UrlId(0), link) else { continue };
                    *is_meant &= part.holds(&world.subject(&Row::Link(row)))?;
                }
                continue;
            }
            let (of_page, tests) = if are(|path| own(*path, Via::Source).is_some()) {
                (part.with_fields(|path| own(path, Via::Source).unwrap_or(path)), &mut of_source)
            } else if are(|path| own(*path, Via::Target).is_some()) {
                (part.with_fields(|path| own(path, Via::Target).unwrap_or(path)), &mut of_target)
            } else {
                are_all = false;
                continue;
            };
            // What other archives know of a page is not known here.
            let pages = if self.has_others { None } else { self.pages_that(&of_page)? };
            are_all &= pages.is_some();
            let Some(pages) = pages else { continue };
            *tests = Some(match tests.take() {
                Some(before) => before.into_iter().zip(pages).map(|(before, own)| before && own).collect(),
                None => pages,
            });
        }
        let is_meant = |kind: u8| link_row(0, UrlId(0), LinkTarget { target: UrlId(0), kind }).is_some();
        let kinds = LinkKinds::new(|kind| is_meant(kind) && of_kind.get(usize::from(kind)) == Some(&true));
        Ok(LinkTests { state: self.state, access: &self.access, of_source, of_target, kinds, are_all })
    }
}

/// The field of a page that a field of a link to or from it stands for.
fn own(FieldPath { via, column }: FieldPath, page: Via) -> Option<FieldPath> {
    let of_link = if page == Via::Source { Column::Source } else { Column::Target };
    match via {
        None if column == of_link => Some(FieldPath::from(Column::Url)),
        Some(via) if via == page => Some(FieldPath::from(column)),
        _ => None,
    }
}

/// The row for a link; `None` if it is of a kind that only a newer version of the program knows.
fn link_row(id: u64, source: UrlId, link: LinkTarget) -> Option<LinkRow> {
    let code = LinkCode::from_byte(link.kind);
    let kind = code.kind()?;
    Some(LinkRow {
        id,
        source,
        target: link.target,
        hop: kind.hop(),
        context: kind.context(),
        nofollow: code.nofollow(),
        template: code.template(),
    })
}
