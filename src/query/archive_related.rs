//! Pages of an archive on disk that are related to others.

use std::collections::HashSet;
use std::ops::Bound;

use archive_grammar::{Relation, Target};
use archive_storage::{CaptureId, LinkList, LinksPosition, PAGES_TOGETHER, UrlId};
use rayon::prelude::*;

use super::archive::ArchiveRows;
use super::block_rows::flags;
use super::columnar::Columnar;
use super::columns::Column;
use super::numbers::number;
use super::prefilter::Test;
use super::related::FOUND;
use super::rows::{PageDigest, Rows as _, RowsError};
use super::visit_tests::of_visits;
use crate::ledger::LinkCode;
use crate::parse::LinkKind;

/// Blocks of links that are read one after the other.
const LINK_BLOCKS: u64 = 256;
/// Captures that are read together.
const CAPTURES: usize = 1 << 15;

type Found<T> = Result<T, RowsError>;

impl ArchiveRows<'_> {
    /// The pages that links relate to some pages: those to a page are found by a pass over all links, on all processors.
    pub(super) fn pages_linked(
        &self,
        relation: Relation,
        others: &HashSet<UrlId>,
    ) -> Found<Option<HashSet<UrlId>>> {
        let is_hop = |kind: LinkKind| relation == Relation::LinksTo || kind == LinkKind::Redirect;
        match relation {
            Relation::SameContentAs => Ok(None),
            Relation::LinkedFrom => self.linked_from(others).map(Some),
            Relation::LinksTo | Relation::RedirectsTo => self.linking_to(others, is_hop).map(Some),
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

    fn linking_to(
        &self,
        targets: &HashSet<UrlId>,
        is_wanted: impl Fn(LinkKind) -> bool + Sync,
    ) -> Found<HashSet<UrlId>> {
        let (state, running) = (self.state, &self.running);
        // Faster than asking the set for each link.
        let are_targets = &flags(targets.iter().map(|target| target.0), state.url_count() as usize);
        let parts: Vec<u64> = (0..state.link_blocks()).step_by(LINK_BLOCKS as usize).collect();
        let of_part = |first: u64| -> Found<Vec<(UrlId, LinksPosition)>> {
            running.check()?;
            let (mut scan, mut list, mut found) =
                (state.links_of(first..first + LINK_BLOCKS), LinkList::default(), Vec::new());
            while scan.read_next(&mut list)? {
                let mut to_target =
                    list.links.iter().filter(|link| are_targets.get(link.target.index()) == Some(&true));
                if to_target.any(|link| LinkCode::from_byte(link.kind).kind().is_some_and(&is_wanted)) {
                    found.extend(list.source.zip(list.position));
                }
            }
            Ok(found)
        };
        let found: Vec<Vec<_>> = parts.into_par_iter().map(of_part).collect::<Found<_>>()?;
        let found: HashSet<(UrlId, LinksPosition)> = found.into_iter().flatten().collect();
        let shown = self.pages_of(found.iter().map(|(source, _)| *source).collect());
        let mut sources = Vec::new();
        for page in shown {
            let page = page?;
            sources.extend((page.captures > 0).then_some(page.id));
        }
        let mut linking = HashSet::new();
        for sources in sources.chunks(PAGES_TOGETHER) {
            // Older versions had other links.
            let newest = state.known_of(sources)?.into_iter();
            let newest = newest.filter_map(|(id, _, visit)| Some((id, visit?.links?)));
            linking.extend(newest.filter(|newest| found.contains(newest)).map(|(id, _)| id));
        }
        Ok(linking)
    }

    /// Where the newest links of a page are that is shown.
    fn newest_links(&self, id: UrlId) -> Found<Option<LinksPosition>> {
        let has_captures = self.page(id)?.is_some_and(|page| page.captures > 0);
        Ok(if has_captures { self.known(id)?.1.and_then(|visit| visit.links) } else { None })
    }

    /// The digests of all pages that were found and have one, if columns say which were found; each page's newest capture has it.
    pub(super) fn contents_of_pages(&self) -> Found<Option<Vec<PageDigest>>> {
        let Some(prepared) = &self.prepared else { return Ok(None) };
        let Some(status) = number(Column::Status, Target::Pages) else { return Ok(None) };
        let (from, end) = (f64::from(FOUND.start), f64::from(FOUND.end));
        let test = Test::Between(status, vec![(Bound::Included(from), Bound::Excluded(end))]);
        let columnar = Columnar { prepared, test, running: &self.running };
        let state = self.state;
        let of_block =
            |block: u32| -> Found<Vec<u32>> { Ok(columnar.rows(block)?.of_ids(prepared.ids(block))) };
        let blocks = (0..prepared.blocks()).into_par_iter().map(of_block).collect::<Found<Vec<_>>>()?;
        let are_found = flags(blocks.into_iter().flatten(), state.url_count() as usize);
        // In the order of captures, so that nothing is read twice.
        let newest = of_visits(state, &self.running, |id, visit| {
            Some((visit.last_capture.filter(|_| are_found.get(id.index()) == Some(&true))?, id))
        })?;
        let contents_of = |newest: &[(CaptureId, UrlId)]| -> Found<Vec<_>> {
            let captures: Vec<CaptureId> = newest.iter().map(|(capture, _)| *capture).collect();
            let contents = state.captures_of(&captures)?.into_iter().zip(newest);
            let contents = contents.map(|(capture, (_, id))| (capture.digest, *id));
            Ok(contents.filter(|(digest, _)| *digest != [0; 16]).collect())
        };
        let contents: Vec<Vec<_>> = newest.par_chunks(CAPTURES).map(contents_of).collect::<Found<_>>()?;
        Ok(Some(contents.concat()))
    }
}
