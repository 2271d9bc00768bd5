//! Links sorted by target, in memory or in a file.

use std::borrow::Cow;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// A link of a page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartLink {
    /// Number of the source page in its part.
    pub from: u32,
    /// Part of the target page.
    pub part: u16,
    /// Number of the target page in that part.
    pub to: u32,
    /// Weight.
    pub weight: f32,
}

impl PartLink {
    /// Returns the target.
    pub fn target(&self) -> (u16, u32) {
        (self.part, self.to)
    }
}

/// Sorts links by target and merges duplicates.
pub fn merge(links: &mut Vec<PartLink>, is_weighted: bool) {
    links.sort_unstable_by_key(|link| (link.target(), link.from));
    links.dedup_by(|next, kept| {
        let is_same = (next.target(), next.from) == (kept.target(), kept.from);
        if is_same && is_weighted {
            kept.weight += next.weight;
        }
        is_same
    });
}

/// 32-bit words in a piece of a file; a longer row has its own piece.
const PIECE_WORDS: usize = 1 << 18;

/// Where the words are stored.
#[derive(Debug)]
enum RowPieces {
    Memory(Vec<Vec<u32>>),
    /// A file without a name, and the number of words in each piece.
    Stored(File, Vec<usize>),
}

/// A sequence of rows; each has the number of its sources, the sources, and their weights if links have weights.
#[derive(Debug)]
pub(super) struct StoredRows {
    pieces: RowPieces,
    piece: Vec<u32>,
    rows: usize,
    pub(super) is_weighted: bool,
}

impl StoredRows {
    /// Creates an empty sequence; in a file without a name if a folder is given.
    pub(super) fn new(is_weighted: bool, folder: Option<&Path>) -> io::Result<Self> {
        let pieces = match folder {
            Some(folder) => RowPieces::Stored(tempfile::tempfile_in(folder)?, Vec::new()),
            None => RowPieces::Memory(Vec::new()),
        };
        Ok(Self { pieces, piece: Vec::new(), rows: 0, is_weighted })
    }

    /// Number of rows, including those without sources.
    pub(super) fn len(&self) -> usize {
        self.rows
    }

    /// Adds a row.
    pub(super) fn push(&mut self, row: &[PartLink]) -> io::Result<()> {
        if self.piece.len() + 1 + 2 * row.len() > PIECE_WORDS {
            self.end_piece()?;
        }
        self.rows += 1;
        self.piece.push(row.len() as u32);
        self.piece.extend(row.iter().map(|link| link.from));
        if self.is_weighted {
            self.piece.extend(row.iter().map(|link| link.weight.to_bits()));
        }
        Ok(())
    }

    /// Ends the current piece; rows are visible only once their piece has ended.
    pub(super) fn end_piece(&mut self) -> io::Result<()> {
        let piece = std::mem::take(&mut self.piece);
        if piece.is_empty() {
            return Ok(());
        }
        match &mut self.pieces {
            RowPieces::Memory(pieces) => pieces.push(piece),
            RowPieces::Stored(file, lengths) => {
                lengths.push(piece.len());
                let bytes: Vec<u8> = piece.iter().flat_map(|word| word.to_le_bytes()).collect();
                file.write_all(&bytes)?;
            }
        }
        Ok(())
    }

    /// Calls `row` with the sum over the sources of each row, and their number.
    pub(super) fn each(&self, gifts: &[Cell<f64>], mut row: impl FnMut(f64, usize)) -> io::Result<()> {
        let mut sum_up = |words: &[u32]| {
            let mut words = words;
            while let Some((&count, rest)) = words.split_first() {
                let count = count as usize;
                let (sources, rest) = rest.split_at_checked(count)?;
                let weighed = if self.is_weighted { count } else { 0 };
                let (weights, rest) = rest.split_at_checked(weighed)?;
                words = rest;
                let gift = |source: &u32| gifts[*source as usize].get();
                let sum = if self.is_weighted {
                    let weighed = sources.iter().zip(weights);
                    weighed.map(|(source, bits)| gift(source) * f64::from(f32::from_bits(*bits))).sum()
                } else {
                    sources.iter().map(gift).sum()
                };
                row(sum, count);
            }
            Some(())
        };
        let pieces = match &self.pieces {
            RowPieces::Memory(pieces) => pieces.len(),
            RowPieces::Stored(_, lengths) => lengths.len(),
        };
        let mut offset = 0;
        for number in 0..pieces {
            let words = self.read(number, &mut offset)?;
            sum_up(&words).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
        }
        Ok(())
    }

    /// Reads a piece; those in a file must be read in order.
    fn read(&self, number: usize, offset: &mut u64) -> io::Result<Cow<'_, [u32]>> {
        match &self.pieces {
            RowPieces::Memory(pieces) => Ok(Cow::Borrowed(&pieces[number])),
            RowPieces::Stored(file, lengths) => {
                let mut bytes = vec![0; lengths[number] * 4];
                file.read_exact_at(&mut bytes, *offset)?;
                *offset += bytes.len() as u64;
                Ok(bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect())
            }
        }
    }
}
