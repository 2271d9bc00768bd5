//! The link log: for every fetch of a page that changed its links, the list of them.
//!
//! A list, as bytes: source (varint); links (varint); per link the difference of its target to the one before, the first
//! to the source (zigzag varint); then per link its kind (one byte). Links stay in the order of the document. New URLs
//! get ids in that order too, so most differences are 1, and the links that all pages of a site share repeat the same
//! bytes, which the compression of the blocks finds.
//!
//! Invariant: lists are only appended. The newest of a page is the one its visit points to, which is its last; earlier ones stay
//! readable.

use std::ops::Range;
use std::path::Path;

use crate::backend::{Disk, OpenMode};
use crate::checkpoint::{
    BlockLog, Position, RecordCursor, RecordLog, Result, StateError, length_of_varints, push_varint,
    take_varint, take_varints, unzigzag, zigzag,
};
use crate::ids::UrlId;
use crate::pages::LinksPosition;

/// Links that one list may have.
pub const LINKS_PER_PAGE_MAX: usize = 1 << 20;
/// Raw bytes at which a block is closed: reading one list decompresses a whole block. With 48 KiB the log is 2 to 5 % smaller, and one
/// list takes four times as long.
const BLOCK_BYTES: u16 = 8 * 1024;

/// What is wrong with bytes that are none.
const NO_LIST: &str = "no list of links";

/// A link as the log keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkTarget {
    /// Where it leads.
    pub target: UrlId,
    /// What kind of link it is, by the parser's codes.
    pub kind: u8,
}

/// The links of one fetch of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkList {
    /// Where the list lies.
    pub position: Option<LinksPosition>,
    /// The page they are on.
    pub source: Option<UrlId>,
    /// The links in order of the document.
    pub links: Vec<LinkTarget>,
}

/// The log; see the module.
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
        // The log is some 3 % larger, and read in less than half of the time.
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

    pub(crate) fn cursor(&self) -> LinkCursor<'_> {
        LinkCursor { records: RecordCursor::new(&self.records) }
    }

    /// All lists from a place on, which is that of a list, or 0.
    pub(crate) fn scan(&self, from: LinksPosition) -> LinkScan<'_> {
        let (block, offset) = RecordLog::split(from.0);
        LinkScan { cursor: RecordCursor::new(&self.records), block, end: self.blocks(), offset }
    }

    /// Says of each list in some blocks whose it is, and to which target that counts the first link of some kinds leads.
    pub(crate) fn search(
        &self,
        blocks: Range<u64>,
        kinds: &LinkKinds,
        counts: impl Fn(UrlId) -> bool,
        mut visit: impl FnMut(UrlId, Option<UrlId>),
    ) -> Result<()> {
        let mut block = blocks.start;
        self.records.read_many(blocks, |mut lists| {
            while !lists.is_empty() {
                let found = search(lists, kinds, &counts);
                let (source, first, length) = found.ok_or_else(|| self.log().corrupted(block, NO_LIST))?;
                visit(source, first);
                lists = &lists[length..];
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
    // Every link has two bytes at least, so a wrong count can't ask for much memory.
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

/// Takes the targets of `count` links off the front, and says each; `None` when they are none.
#[inline]
fn take_targets(bytes: &mut &[u8], source: UrlId, count: usize, mut visit: impl FnMut(UrlId)) -> Option<()> {
    // Whether all are ids is looked at once: millions of links are read in a row.
    let (mut before, mut high_bits) = (i64::from(source.0), 0);
    take_varints(bytes, count, |step| {
        before = before.wrapping_add(unzigzag(step));
        high_bits |= before >> u32::BITS;
        visit(UrlId(before as u32));
    })?;
    (high_bits == 0).then_some(())
}

/// Reads lists by their positions; cheap when these lie near each other.
#[derive(Debug)]
pub struct LinkCursor<'a> {
    records: RecordCursor<'a>,
}

impl LinkCursor<'_> {
    /// Reads the list at a position into `list`.
    ///
    /// # Errors
    /// [`StateError::Corrupted`] for an invalid position, and I/O errors.
    pub fn get(&mut self, position: LinksPosition, list: &mut LinkList) -> Result<()> {
        list.position = Some(position);
        let bytes = self.records.bytes(position.0)?;
        match decode(bytes, list) {
            Some(_) => Ok(()),
            None => Err(self.records.damage(position.0, NO_LIST)),
        }
    }
}

/// Reads lists in order of their fetches.
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

/// Some kinds of links, by their codes.
#[derive(Debug)]
pub struct LinkKinds {
    are_wanted: [bool; 256],
    /// Whether most lists have none of them, and so are passed over by their kinds, which come last.
    are_few: bool,
}

impl LinkKinds {
    /// Those for which a function says so.
    pub fn new(is_wanted: impl Fn(u8) -> bool) -> Self {
        let are_wanted = std::array::from_fn(|kind| is_wanted(kind as u8));
        let wanted = are_wanted.iter().filter(|is_wanted| **is_wanted).count();
        Self { are_wanted, are_few: wanted <= KINDS_FEW }
    }

    #[inline]
    fn has(&self, kind: u8) -> bool {
        self.are_wanted[usize::from(kind)]
    }
}

/// More kinds are looked for in each link.
const KINDS_FEW: usize = 16;

/// The source of a list, the target of its first link of some kinds to one that counts, and its length in bytes; `None` when the bytes
/// are not a list.
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
