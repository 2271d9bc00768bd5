//! What an archive sends of itself to be exported together with others: rows in pieces, as many as an answer may hold, and where the
//! next answer goes on. Each answer looks at the archive anew, so that a crawl may go on between two.

use std::time::{Duration, Instant};

use archive_storage::{SegmentId, Store};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use xxhash_rust::xxh3::Xxh3;

use super::walk::START;
use super::{ExportError, Selection, cdxj, columnar, graph, links, warc};
use crate::access::Access;
use crate::nodes::{AskError, ExportPlace, ExportRows, Line, Wanted};
use crate::query::Limits;

/// Bytes of a piece; the last row may go beyond.
const PIECE_BYTES: usize = 1 << 20;

/// Bytes of a line of an answer that come from one row, at most, so that no line is too long.
const CHUNK_BYTES: usize = 4 << 20;

/// An answer ends after this time, and the next one goes on: a crawl beside it waits so long at most.
const TIME_MAX: Duration = Duration::from_secs(15);

/// Receives lines as they come.
type Take<'a> = dyn FnMut(Line) -> Result<(), AskError> + 'a;

/// Why an answer ends before its archive does.
pub(super) enum Stop {
    /// It is full.
    Full,
    /// Something failed.
    Failed(ExportError),
}

impl<E: Into<ExportError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Answers with what is wanted of an archive, as far as `access` shows it: all lines but the first.
///
/// # Errors
/// When the query is wrong, the segments have been replaced since the answer before, the archive cannot be read, and what `take`
/// reports.
pub fn answer(
    store: &Store,
    access: &Access,
    wanted: &Wanted,
    limits: Limits,
    take: &mut Take<'_>,
) -> Result<(), ExportError> {
    let from = match wanted.from {
        Some(from) if names_up_to(store, SegmentId(from.segment)) != from.names => {
            return Err(ExportError::Replaced);
        }
        Some(from) => (SegmentId(from.segment), from.offset),
        None => START,
    };
    let chosen = wanted.chosen.as_ref();
    let selection = Selection::of(store, access, chosen, limits)?;
    let until = Instant::now() + TIME_MAX;
    let mut out = Pieces { piece: Vec::new(), rows: 0, left: wanted.room(), until, next: None, take };
    let part = (store, &selection);
    let ended = match wanted.rows {
        ExportRows::Records => warc::send(part, from, &mut out),
        ExportRows::Index => cdxj::send(part, from, &mut out),
        ExportRows::Links => links::send(part, from, &mut out),
        ExportRows::Captures => columnar::send(part, from, false, &mut out),
        ExportRows::Texts => columnar::send(part, from, true, &mut out),
        ExportRows::Pages => graph::send(part, from.1, &mut out),
    };
    let next = match ended {
        Ok(()) => None,
        Err(Stop::Full) => out.next,
        Err(Stop::Failed(error)) => return Err(error),
    };
    out.flush()?;
    if let Some((segment, offset)) = next {
        let names = names_up_to(store, segment);
        take(Line::Place(ExportPlace { segment: segment.0, offset, names }))?;
    }
    Ok(take(Line::End { matched: None })?)
}

/// A digest of the names of an archive's segments up to one, and of what tells whether lists of links have moved.
fn names_up_to(store: &Store, last: SegmentId) -> u64 {
    let mut digest = Xxh3::new();
    digest.update(&store.state().generation().to_le_bytes());
    for (_, entry) in store.state().segments().filter(|(id, _)| *id <= last) {
        digest.update(entry.file.as_bytes());
        digest.update(b"\n");
    }
    digest.digest()
}

/// Rows on their way into an answer.
pub(super) struct Pieces<'a> {
    piece: Vec<u8>,
    rows: u64,
    /// Bytes that may still come.
    left: u64,
    until: Instant,
    /// The row that is left for the next answer.
    next: Option<(SegmentId, u64)>,
    take: &'a mut Take<'a>,
}

impl Pieces<'_> {
    /// Begins a row, whose place is that from which another answer can go on, unless the answer is full.
    pub(super) fn begin(&mut self, place: (SegmentId, u64)) -> Result<(), Stop> {
        if self.rows > 0 && (self.left == 0 || Instant::now() > self.until) {
            self.next = Some(place);
            return Err(Stop::Full);
        }
        self.rows += 1;
        if self.piece.len() >= PIECE_BYTES { Ok(self.flush()?) } else { Ok(()) }
    }

    /// Adds bytes to the row.
    pub(super) fn add(&mut self, bytes: &[u8]) -> Result<(), ExportError> {
        self.left = self.left.saturating_sub(bytes.len() as u64);
        for chunk in bytes.chunks(CHUNK_BYTES) {
            if self.piece.len() + chunk.len() > CHUNK_BYTES {
                self.flush()?;
            }
            self.piece.extend_from_slice(chunk);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ExportError> {
        if !self.piece.is_empty() {
            (self.take)(Line::Rows(BASE64_STANDARD.encode(&self.piece)))?;
            self.piece.clear();
        }
        Ok(())
    }
}
