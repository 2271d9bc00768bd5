//! Answers of an archive that is exported together with others: rows in pieces, up to the limit of an answer, and the
//! position at which the next answer continues. Each answer opens the archive anew, so that a crawl can proceed between
//! two answers.

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

/// Bytes of a piece; the last row may exceed it.
const PIECE_BYTES: usize = 1 << 20;

/// Maximum bytes of one row in a line of an answer, so that no line is too long.
const CHUNK_BYTES: usize = 4 << 20;

/// Maximum time of an answer; the next one continues. A crawl waits at most this long.
const TIME_MAX: Duration = Duration::from_secs(15);

/// Receives the lines of an answer.
type Take<'a> = dyn FnMut(Line) -> Result<(), AskError> + 'a;

/// Why an answer ends before all rows are sent.
pub(super) enum Stop {
    /// The answer is full.
    Full,
    /// An error occurred.
    Failed(ExportError),
}

impl<E: Into<ExportError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Sends the requested rows of an archive that `access` shows: all lines of the answer except the first.
///
/// # Errors
/// If the query is invalid, the segments have been replaced since the previous answer, the archive cannot be read, or
/// `take` fails.
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

/// Returns a hash of the names of an archive's segments up to `last`, and of the generation, which changes when link
/// lists move.
fn names_up_to(store: &Store, last: SegmentId) -> u64 {
    let mut digest = Xxh3::new();
    digest.update(&store.state().generation().to_le_bytes());
    for (_, entry) in store.state().segments().filter(|(id, _)| *id <= last) {
        digest.update(entry.file.as_bytes());
        digest.update(b"\n");
    }
    digest.digest()
}

/// Rows that are being sent.
pub(super) struct Pieces<'a> {
    piece: Vec<u8>,
    rows: u64,
    /// Bytes that the answer may still have.
    left: u64,
    until: Instant,
    /// The row at which the next answer begins.
    next: Option<(SegmentId, u64)>,
    take: &'a mut Take<'a>,
}

impl Pieces<'_> {
    /// Begins a row at a position at which another answer can continue, unless the answer is full.
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
