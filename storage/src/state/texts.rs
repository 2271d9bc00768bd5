//! Titles, validators and links.

use std::ops::Range;

use super::State;
use super::pages::unknown;
use crate::checkpoint::{RecordCursor, RecordLog, Result, StateError, push_varint, take_varint};
use crate::ids::UrlId;
use crate::links::{LinkCursor, LinkKinds, LinkList, LinkScan, LinkTarget};
use crate::pages::{LinksPosition, Page, TextPosition, ValidatorsPosition, Visit, VisitRecord};
use crate::validators::Validators;
use crate::veil::Veil;

/// Number of blocks of titles kept during many lookups: 4 MiB.
const TITLE_BLOCKS: usize = 256;
/// Maximum bytes kept of a title.
pub const TITLE_BYTES_MAX: usize = 4096;

impl State {
    /// Stores a title, truncated to [`TITLE_BYTES_MAX`], and returns its position, to be stored in the visit.
    ///
    /// # Errors
    /// I/O errors.
    pub fn append_title(&mut self, title: &str) -> Result<TextPosition> {
        self.writable()?;
        let title = title.get(..title.floor_char_boundary(TITLE_BYTES_MAX)).unwrap_or_default();
        let mut record = Vec::with_capacity(title.len() + 2);
        push_varint(&mut record, title.len() as u64);
        record.extend_from_slice(title.as_bytes());
        let outcome = self.titles.push(&record);
        self.finish(outcome).map(TextPosition)
    }

    /// The title at a position.
    ///
    /// # Errors
    /// [`crate::StateError::Corrupted`] for an invalid position, and I/O errors.
    pub fn title(&self, position: TextPosition) -> Result<String> {
        TitleCursor { records: RecordCursor::new(&self.titles), veil: self.veil() }
            .get(position)
            .map(str::to_owned)
    }

    /// Looks up many titles; cheap when successive lookups are close together, or close to one of several recent runs.
    #[must_use]
    pub fn title_cursor(&self) -> TitleCursor<'_> {
        TitleCursor { records: RecordCursor::keeping(&self.titles, TITLE_BLOCKS), veil: self.veil() }
    }

    /// Number of blocks of titles; [`State::scan_titles`] reads a range of them.
    #[must_use]
    pub fn title_blocks(&self) -> u64 {
        self.titles.blocks()
    }

    /// Calls `visit` with all titles in a range of blocks, in order, including those of older versions.
    ///
    /// # Errors
    /// [`crate::StateError::Corrupted`] and I/O errors.
    pub fn scan_titles(&self, blocks: Range<u64>, mut visit: impl FnMut(TextPosition, &str)) -> Result<()> {
        let mut block = blocks.start;
        self.titles.read_many(blocks, |raw| {
            let mut rest = raw;
            while !rest.is_empty() {
                let position = RecordLog::join(block, raw.len() - rest.len());
                let title = take_varint(&mut rest)
                    .and_then(|length| rest.split_at_checked(usize::try_from(length).ok()?))
                    .and_then(|(title, others)| Some((std::str::from_utf8(title).ok()?, others)));
                let Some((title, others)) = title else {
                    return Err(self.titles.log().corrupted(block, "no title"));
                };
                visit(TextPosition(position), title);
                rest = others;
            }
            block += 1;
            Ok(())
        })
    }

    /// Stores the validators of a version, unless the previous version's are the same.
    pub(super) fn push_validators(
        &mut self,
        before: &Visit,
        validators: Option<&Validators>,
    ) -> Result<Option<ValidatorsPosition>> {
        let Some(given) = validators else { return Ok(None) };
        if self.validators_at(before)?.as_ref() == Some(given) {
            return Ok(before.validators);
        }
        let outcome = self.validators.push(&given.encode());
        self.finish(outcome).map(|position| Some(ValidatorsPosition(position)))
    }

    /// The validators of the newest version of a page (see [`State::newest_version`]), if known.
    ///
    /// # Errors
    /// [`crate::StateError::Unknown`] and I/O errors.
    pub fn validators(&self, url: UrlId) -> Result<Option<Validators>> {
        match self.visit(url)? {
            Some(visit) => self.validators_at(&visit),
            None => Ok(None),
        }
    }

    pub(super) fn validators_at(&self, visit: &Visit) -> Result<Option<Validators>> {
        let Some(ValidatorsPosition(position)) = visit.validators else { return Ok(None) };
        let mut cursor = RecordCursor::new(&self.validators);
        let found = Validators::decode(cursor.bytes(position)?);
        found.map(Some).ok_or_else(|| cursor.damage(position, "no validators"))
    }

    /// Stores the links of a page as its newest list, unless its newest list is the same.
    ///
    /// # Errors
    /// [`crate::StateError::Unknown`], [`crate::StateError::TooLong`] and I/O errors.
    pub fn append_links(&mut self, source: UrlId, links: &[LinkTarget]) -> Result<LinksPosition> {
        self.writable()?;
        let visit_id = self.visit_of(source)?;
        let newest = self.visits.get(visit_id.0)?.and_then(|record| record.visit.links);
        if let Some(position) = newest {
            let mut list = LinkList::default();
            self.link_cursor().get(position, &mut list)?;
            if list.links == links {
                return Ok(position);
            }
        }
        let position = self.links.push(source, links)?;
        let outcome = self.visits.update(visit_id.0, |record| record.visit.links = Some(position));
        self.finish(outcome)?;
        self.add(super::small::LINKS, links.len() as u64);
        Ok(position)
    }

    /// The newest links of a page; empty if none were stored.
    ///
    /// # Errors
    /// [`crate::StateError::Unknown`] and I/O errors.
    pub fn links(&self, source: UrlId) -> Result<LinkList> {
        let mut list = LinkList { source: Some(source), ..LinkList::default() };
        if let Some(position) = self.visit(source)?.and_then(|visit| visit.links) {
            self.link_cursor().get(position, &mut list)?;
        }
        Ok(list)
    }

    /// Looks up many lists; cheap when successive lookups are close together.
    #[must_use]
    pub fn link_cursor(&self) -> LinkCursor<'_> {
        self.links.cursor(self.veil())
    }

    /// Every list ever stored, in the order of storing.
    #[must_use]
    pub fn all_links(&self) -> LinkScan<'_> {
        self.links.scan(LinksPosition(0))
    }

    /// Number of blocks of links; [`State::search_links`] reads a range of them.
    #[must_use]
    pub fn link_blocks(&self) -> u64 {
        self.links.blocks()
    }

    /// Calls `visit` for each list in a range of blocks with its source, its position, and the target of the first link
    /// that has one of `kinds` and a target for which `counts` holds. Faster than reading the lists, especially if few contain such
    /// a kind.
    ///
    /// # Errors
    /// As [`LinkScan::read_next`].
    pub fn search_links(
        &self,
        blocks: Range<u64>,
        kinds: &LinkKinds,
        counts: impl Fn(UrlId) -> bool,
        visit: impl FnMut(UrlId, LinksPosition, Option<UrlId>),
    ) -> Result<()> {
        self.links.search(blocks, kinds, counts, visit)
    }

    /// Calls `visit` with the newest list of every page and what is known about the page, in the order of storing.
    /// Rankings are computed from this.
    ///
    /// # Errors
    /// Any error that `visit` returns, and I/O errors.
    pub fn newest_links<E: From<StateError>>(
        &self,
        visit: impl FnMut((UrlId, &Page, &Visit), &[LinkTarget]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        self.newest_links_from(LinksPosition(0), visit)
    }

    /// As [`State::newest_links`], starting with the list at a position that [`Visit::links`] gives.
    ///
    /// # Errors
    /// As [`State::newest_links`], and [`StateError::Corrupted`] if no list starts at the position.
    pub fn newest_links_from<E: From<StateError>>(
        &self,
        from: LinksPosition,
        mut visit: impl FnMut((UrlId, &Page, &Visit), &[LinkTarget]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let (mut scan, mut list) = (self.links.scan(from), LinkList::default());
        let (mut pages, mut visits) = (self.pages.cursor(), self.visits.cursor());
        while scan.read_next(&mut list)? {
            let Some(source) = list.source.filter(|source| self.veiled(*source).is_none()) else { continue };
            let page: Page = pages.get(source.0)?.ok_or_else(|| unknown(source))?;
            let record: Option<VisitRecord> = match page.visit {
                Some(visit) => visits.get(visit.0)?,
                None => None,
            };
            if let Some(record) = record.filter(|record| record.visit.links == list.position) {
                visit((source, &page, &record.visit), &list.links)?;
            }
        }
        self.veiled_links(from, visit)
    }
}

impl State {
    /// Calls `visit` for the newest lists of the pages that the veil changes.
    fn veiled_links<E: From<StateError>>(
        &self,
        from: LinksPosition,
        mut visit: impl FnMut((UrlId, &Page, &Visit), &[LinkTarget]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let Some(veil) = self.veil() else { return Ok(()) };
        let lists = veil.pages.iter().filter_map(|(source, (page, shown))| {
            let shown = shown.as_ref()?;
            Some((shown.links.filter(|position| *position >= from)?, *source, page, shown))
        });
        let mut lists: Vec<_> = lists.collect();
        lists.sort_unstable_by_key(|(position, ..)| *position);
        let (mut cursor, mut list) = (self.link_cursor(), LinkList::default());
        for (position, source, page, shown) in lists {
            cursor.get(position, &mut list)?;
            visit((source, page, shown), &list.links)?;
        }
        Ok(())
    }
}

/// Looks up titles, keeping the last block decompressed.
#[derive(Debug)]
pub struct TitleCursor<'a> {
    records: RecordCursor<'a>,
    veil: Option<&'a Veil>,
}

impl TitleCursor<'_> {
    /// The title at a position.
    ///
    /// # Errors
    /// [`crate::StateError::Corrupted`] for an invalid position, and I/O errors.
    pub fn get(&mut self, position: TextPosition) -> Result<&str> {
        if let Some(title) = self.veil.and_then(|veil| veil.title(position)) {
            return Ok(title);
        }
        let damaged = self.records.damage(position.0, "no title");
        let mut bytes = self.records.bytes(position.0)?;
        let title = take_varint(&mut bytes)
            .and_then(|length| bytes.get(..usize::try_from(length).ok()?))
            .and_then(|title| std::str::from_utf8(title).ok());
        title.ok_or(damaged)
    }
}
