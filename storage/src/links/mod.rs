//! The link log: one list of links for every fetch of a page that changed its links.
//!
//! Encoding of a list: source (varint); number of links (varint); for each link the difference between its target and
//! the previous one, starting from the source (zigzag varint); then for each link its kind (one byte). Links stay in
//! document order. New URLs get ids in that order too, so most differences are 1, and the links shared by all pages of
//! a site repeat the same bytes, which block compression exploits.
//!
//! Invariant: lists are only appended. A page's newest list is its last one, and its visit refers to it; earlier ones
//! stay readable.

use std::ops::Range;
use std::path::Path;

use crate::backend::{Disk, OpenMode};
use crate::checkpoint::{
    BlockLog, Position, RecordCursor, RecordLog, Result, StateError, length_of_varints, push_varint,
    take_varint, take_varints, unzigzag, zigzag,
};
use crate::ids::UrlId;
use crate::pages::LinksPosition;
use crate::veil::Veil;

/// Maximum number of links in a list.
pub const LINKS_PER_PAGE_MAX: usize = 1 << 20;
/// Raw bytes at which a block is closed: reading one list decompresses a whole block. With 48 KiB the log is 2 to 5 %
/// smaller, and reading one list takes four times as long.
const BLOCK_BYTES: u16 = 8 * 1024;

/// Error message for bytes that are not a list.
const NO_LIST: &str = "no list of links";

impl LinksPosition {
    /// A number for the link at a place of the list that is stored here: no other link has it, and it grows in the order of
    /// storing.
    #[must_use]
    pub fn of_link(self, place: usize) -> u64 {
        let (block, offset) = RecordLog::split(self.0);
        // A link takes more than a byte, so lists of one block do not meet.
        (block << (LINKS_PER_PAGE_MAX.ilog2() + 1)) + (offset + place) as u64
    }
}

/// A link as stored in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkTarget {
    /// The URL that the link leads to.
    pub target: UrlId,
    /// Kind of the link, by the parser's codes.
    pub kind: u8,
}

/// The links of one fetch of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkList {
    /// Position of the list.
    pub position: Option<LinksPosition>,
    /// The page that contains the links.
    pub source: Option<UrlId>,
    /// The links in document order.
    pub links: Vec<LinkTarget>,
}

/// The log; see the module documentation.
#[derive(Debug)]
pub(crate) struct LinkLog {
    records: RecordLog,
    buffer: Vec<u8>,
}

impl LinkLog {
    pub(crate) fn open(
        disk: &dyn Disk,
        stem: &Path,
        blocks: u64,
        open: Vec<u8>,
        mode: OpenMode,
    ) -> Result<Self> {
        let mut records = RecordLog::open(disk, stem, blocks, open, mode, BLOCK_BYTES)?;
        // The log gets about 3 % larger, and reading it takes less than half the time.
        records.log_mut().leave_literals();
        Ok(Self { records, buffer: Vec::new() })
    }

    /// Appends a list.
    pub(crate) fn push(&mut self, source: UrlId, links: &[LinkTarget]) -> Result<LinksPosition> {
        if links.len() > LINKS_PER_PAGE_MAX {
            return Err(StateError::TooLong {
                what: "a list of links",
                length: links.len(),
                limit: LINKS_PER_PAGE_MAX,
            });
        }
        self.buffer.clear();
        push_varint(&mut self.buffer, u64::from(source.0));
        push_varint(&mut self.buffer, links.len() as u64);
        let mut before = source.0;
        for link in links {
            push_varint(&mut self.buffer, zigzag(i64::from(link.target.0) - i64::from(before)));
            before = link.target.0;
        }
        self.buffer.extend(links.iter().map(|link| link.kind));
        self.records.push(&self.buffer).map(LinksPosition)
    }

    pub(crate) fn cursor<'a>(&'a self, veil: Option<&'a Veil>) -> LinkCursor<'a> {
        LinkCursor { records: RecordCursor::new(&self.records), veil }
    }

    /// All lists from a position on, which must be that of a list, or 0.
    pub(crate) fn scan(&self, from: LinksPosition) -> LinkScan<'_> {
        let (block, offset) = RecordLog::split(from.0);
        LinkScan { cursor: RecordCursor::new(&self.records), block, end: self.blocks(), offset }
    }

    /// Calls `visit` for each list in a range of blocks with its source, its position, and the target of the first link
    /// that has one of `kinds` and a target for which `counts` holds.
    pub(crate) fn search(
        &self,
        blocks: Range<u64>,
        kinds: &LinkKinds,
        counts: impl Fn(UrlId) -> bool,
        mut visit: impl FnMut(UrlId, LinksPosition, Option<UrlId>),
    ) -> Result<()> {
        let mut block = blocks.start;
        self.records.read_many(blocks, |lists| {
            let mut offset = 0;
            while offset < lists.len() {
                let found = search(&lists[offset..], kinds, &counts);
                let (source, first, length) = found.ok_or_else(|| self.log().corrupted(block, NO_LIST))?;
                visit(source, LinksPosition(RecordLog::join(block, offset)), first);
                offset += length;
            }
            block += 1;
            Ok(())
        })
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.records.blocks()
    }

    pub(crate) fn open_block(&self) -> &[u8] {
        self.records.open_block()
    }

    pub(crate) fn log(&self) -> &BlockLog {
        self.records.log()
    }

    pub(crate) fn log_mut(&mut self) -> &mut BlockLog {
        self.records.log_mut()
    }
}

/// Decodes a list into `list` and returns its length in bytes; `None` when the bytes are not a list.
fn decode(bytes: &[u8], list: &mut LinkList) -> Option<usize> {
    let mut rest = bytes;
    let source = u32::try_from(take_varint(&mut rest)?).ok()?;
    let count = usize::try_from(take_varint(&mut rest)?).ok()?;
    // Every link takes at least two bytes, so a wrong count cannot allocate much memory.
    if count > rest.len() {
        return None;
    }
    list.source = Some(UrlId(source));
    list.links.clear();
    list.links.reserve(count);
    let links = &mut list.links;
    take_targets(&mut rest, UrlId(source), count, |target| links.push(LinkTarget { target, kind: 0 }))?;
    let kinds = rest.get(..count)?;
    for (link, &kind) in list.links.iter_mut().zip(kinds) {
        link.kind = kind;
    }
    Some(bytes.len() - rest.len() + count)
}

/// Removes the targets of `count` links from the front and calls `visit` with each; `None` if the bytes are invalid.
#[inline]
fn take_targets(bytes: &mut &[u8], source: UrlId, count: usize, mut visit: impl FnMut(UrlId)) -> Option<()> {
    // Checks once at the end that all targets are ids: millions of links are read in a row.
    let (mut before, mut high_bits) = (i64::from(source.0), 0);
    take_varints(bytes, count, |step| {
        before = before.wrapping_add(unzigzag(step));
        high_bits |= before >> u32::BITS;
        visit(UrlId(before as u32));
    })?;
    (high_bits == 0).then_some(())
}

/// Reads lists by position; cheap when successive ones lie close together.
#[derive(Debug)]
pub struct LinkCursor<'a> {
    records: RecordCursor<'a>,
    veil: Option<&'a Veil>,
}

impl LinkCursor<'_> {
    /// Reads the list at a position into `list`.
    ///
    /// # Errors
    /// [`StateError::Corrupted`] for an invalid position, and I/O errors.
    pub fn get(&mut self, position: LinksPosition, list: &mut LinkList) -> Result<()> {
        if let Some(own) = self.veil.and_then(|veil| veil.list(position)) {
            list.clone_from(own);
            return Ok(());
        }
        list.position = Some(position);
        let bytes = self.records.bytes(position.0)?;
        match decode(bytes, list) {
            Some(_) => Ok(()),
            None => Err(self.records.damage(position.0, NO_LIST)),
        }
    }
}

/// Reads lists in the order of storing.
#[derive(Debug)]
pub struct LinkScan<'a> {
    cursor: RecordCursor<'a>,
    block: u64,
    end: u64,
    offset: usize,
}

impl LinkScan<'_> {
    /// Reads the next list into `list`; `false` after the last.
    ///
    /// # Errors
    /// [`StateError::Corrupted`], and I/O errors.
    pub fn read_next(&mut self, list: &mut LinkList) -> Result<bool> {
        if self.block >= self.end {
            return Ok(false);
        }
        let position: Position = RecordLog::join(self.block, self.offset);
        let bytes = self.cursor.bytes(position)?;
        let available = bytes.len();
        let Some(length) = decode(bytes, list) else {
            return Err(self.cursor.damage(position, NO_LIST));
        };
        list.position = Some(LinksPosition(position));
        if length == available {
            self.block += 1;
            self.offset = 0;
        } else {
            self.offset += length;
        }
        Ok(true)
    }
}

/// A set of link kinds, by code.
#[derive(Debug)]
pub struct LinkKinds {
    are_wanted: [bool; 256],
    /// Whether most lists have none of them; such lists are skipped by looking at their kinds, which come last.
    are_few: bool,
}

impl LinkKinds {
    /// The set of kinds for which `is_wanted` holds.
    pub fn new(is_wanted: impl Fn(u8) -> bool) -> Self {
        let are_wanted = std::array::from_fn(|kind| is_wanted(kind as u8));
        let wanted = are_wanted.iter().filter(|is_wanted| **is_wanted).count();
        Self { are_wanted, are_few: wanted <= KINDS_FEW }
    }

    /// Whether a kind is in it.
    #[inline]
    #[must_use]
    pub fn has(&self, kind: u8) -> bool {
        self.are_wanted[usize::from(kind)]
    }
}

/// With more kinds than this, every link is checked instead.
const KINDS_FEW: usize = 16;

/// Returns the source of a list, the target of its first link that has one of `kinds` and a target for which `counts`
/// holds, and the length of the list in bytes; `None` if the bytes are not a list.
fn search(
    bytes: &[u8],
    kinds: &LinkKinds,
    counts: impl Fn(UrlId) -> bool,
) -> Option<(UrlId, Option<UrlId>, usize)> {
    let mut rest = bytes;
    let source = UrlId(u32::try_from(take_varint(&mut rest)?).ok()?);
    let count = usize::try_from(take_varint(&mut rest)?).ok()?;
    if kinds.are_few {
        let (_, after) = rest.split_at_checked(length_of_varints(rest, count)?)?;
        let (own, after) = after.split_at_checked(count)?;
        if !own.iter().any(|&kind| kinds.has(kind)) {
            return Some((source, None, bytes.len() - after.len()));
        }
    }
    let (mut place, mut places) = (0, Vec::new());
    take_targets(&mut rest, source, count, |target| {
        if counts(target) {
            places.push((place, target));
        }
        place += 1;
    })?;
    let (own, after) = rest.split_at_checked(count)?;
    let first = places.iter().find(|(place, _)| kinds.has(own[*place])).map(|(_, target)| *target);
    Some((source, first, bytes.len() - after.len()))
}

#[cfg(test)]
mod tests;
