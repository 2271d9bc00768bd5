//! Rows of an archive that is exported together with others, as bytes: in pieces, up to the limit of an answer, and the
//! position at which the next answer continues. Each answer opens the archive anew, so that a crawl can proceed between
//! two answers.

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use archive_storage::{SegmentId, Store};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::walk::START;
use super::{ExportError, Selection, cdxj, columnar, graph, links, lost, warc};

/// Bytes of a piece; the last row may exceed it.
const PIECE_BYTES: usize = 1 << 20;

/// Maximum bytes of a piece with a part of one row, so that no line of an answer is too long.
const CHUNK_BYTES: usize = 4 << 20;

/// Maximum time of an answer; the next one continues. A crawl waits at most this long.
const TIME_MAX: Duration = Duration::from_secs(15);

/// Kind of rows to export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportRows {
    /// WARC records.
    Records,
    /// Index lines (CDXJ).
    Index,
    /// Links.
    Links,
    /// Rows of a table of captures.
    Captures,
    /// Rows of a table of captures, with their texts.
    Texts,
    /// Pages: numbers and URLs.
    Pages,
}

/// Position at which the next answer continues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportPlace {
    /// Segment number; 0 for links.
    pub segment: u32,
    /// Offset within the segment, in the unit of the rows.
    pub offset: u64,
    /// Digest of the names of the segments up to this one and of the state's generation. If it differs, positions from
    /// earlier answers are no longer valid.
    pub names: u64,
}

/// An archive on another machine that sends rows.
pub trait RowSender: Debug {
    /// Its name, as given by the user.
    fn name(&self) -> &str;

    /// The query that selects its pages; `None` if all are.
    fn query(&self) -> Option<&str>;

    /// Passes its rows to `take`, piece by piece, each in an unnamed temporary file positioned at its beginning.
    ///
    /// Returns the identity of the state that page numbers refer to.
    ///
    /// # Errors
    /// [`ExportError::Remote`], and the errors of `take`.
    fn send(
        &self,
        rows: ExportRows,
        take: &mut dyn FnMut(File) -> Result<(), ExportError>,
    ) -> Result<Option<u64>, ExportError>;

    /// The error for rows that are invalid.
    fn senseless(&self, what: &str) -> ExportError;
}

/// Receives the pieces of an answer.
type TakePiece<'a> = dyn FnMut(&[u8]) -> io::Result<()> + 'a;

/// Why an answer ends before all rows are sent.
pub(super) enum RowStop {
    /// The answer is full.
    Full,
    /// An error occurred.
    Failed(ExportError),
}

impl<E: Into<ExportError>> From<E> for RowStop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Sends the selected rows from a position on, about as many bytes as there is room for; the row that exceeds it is
/// still sent. Returns the position of the first row that is left for another answer.
///
/// # Errors
/// If the segments have been replaced since the previous answer, the archive cannot be read, or `take` fails.
pub fn send(
    store: &Store,
    selection: &Selection,
    (rows, from, room): (ExportRows, Option<ExportPlace>, u64),
    take: &mut TakePiece<'_>,
) -> Result<Option<ExportPlace>, ExportError> {
    let from = match from {
        Some(from) if names_up_to(store, SegmentId(from.segment)) != from.names => {
            return Err(ExportError::Replaced);
        }
        Some(from) => (SegmentId(from.segment), from.offset),
        None => START,
    };
    let until = Instant::now() + TIME_MAX;
    let mut out = RowPieces { piece: Vec::new(), rows: 0, left: room, until, next: None, take };
    let part = (store, selection);
    let ended = match rows {
        ExportRows::Records => warc::send(part, from, &mut out),
        ExportRows::Index => cdxj::send(part, from, &mut out),
        ExportRows::Links => links::send(part, from, &mut out),
        ExportRows::Captures => columnar::send(part, from, false, &mut out),
        ExportRows::Texts => columnar::send(part, from, true, &mut out),
        ExportRows::Pages => graph::send(part, from.1, &mut out),
    };
    let next = match ended {
        Ok(()) => None,
        Err(RowStop::Full) => out.next,
        Err(RowStop::Failed(error)) => return Err(error),
    };
    out.flush()?;
    Ok(next.map(|(segment, offset)| ExportPlace {
        segment: segment.0,
        offset,
        names: names_up_to(store, segment),
    }))
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
pub(super) struct RowPieces<'a> {
    piece: Vec<u8>,
    rows: u64,
    /// Bytes that the answer may still have.
    left: u64,
    until: Instant,
    /// The row at which the next answer begins.
    next: Option<(SegmentId, u64)>,
    take: &'a mut TakePiece<'a>,
}

impl RowPieces<'_> {
    /// Begins a row at a position at which another answer can continue, unless the answer is full.
    pub(super) fn begin(&mut self, place: (SegmentId, u64)) -> Result<(), RowStop> {
        if self.rows > 0 && (self.left == 0 || Instant::now() > self.until) {
            self.next = Some(place);
            return Err(RowStop::Full);
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
            (self.take)(&self.piece).map_err(lost)?;
            self.piece.clear();
        }
        Ok(())
    }
}
