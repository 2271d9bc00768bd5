//! Rows and groups that do not fit into memory: sorted runs in unnamed files, merged in order.
//!
//! A query that fills its memory writes its rows or groups as a sorted run and goes on. At the end, all runs are merged.
//! [`RUNS_MERGED`] runs of one level are merged into one of the next before that, so that few runs are open at once
//! however little memory there is, and each item is written only a few times. The files are in the system's temporary
//! folder and disappear with the process, however it ends.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;

use chrono::DateTime;

use crate::query::language::{Error, Value};
use crate::query::rows::Running;

/// Number of runs of one level that are merged into one.
const RUNS_MERGED: usize = 32;

/// Number of bytes of a run that are read at once.
const READ_BYTES: usize = 16 << 10;

/// An item that can be written to a file and read back.
pub(crate) trait Spilled: Sized {
    /// Appends the item.
    fn write(&self, bytes: &mut Vec<u8>);

    /// Reads an item from the start of `bytes`; `None` if there is no valid one.
    fn read(bytes: &mut &[u8]) -> Option<Self>;
}

/// Sorted runs of items; those of one level are in one file.
pub(crate) struct Runs<'a, C> {
    running: &'a Running,
    compare: C,
    /// Each of the runs of a level was merged from [`RUNS_MERGED`] of the level before.
    levels: Vec<Level>,
}

#[derive(Default)]
struct Level {
    file: Option<File>,
    /// Where each run ends.
    ends: Vec<u64>,
}

impl<'a, C> Runs<'a, C> {
    pub(crate) fn new(running: &'a Running, compare: C) -> Self {
        Self { running, compare, levels: Vec::new() }
    }

    /// Writes sorted items as a run. Equal items keep the order in which they were added.
    pub(crate) fn add<T: Spilled>(
        &mut self,
        items: impl Iterator<Item = Result<T, Error>>,
    ) -> Result<(), Error>
    where
        C: Fn(&T, &T) -> Ordering,
    {
        write(&mut self.levels, self.running, 0, items)?;
        for level in 0.. {
            let full = match self.levels.get_mut(level) {
                Some(level) if level.ends.len() >= RUNS_MERGED => std::mem::take(level),
                _ => break,
            };
            let merged = Merged::<T, C>::of(full.runs().collect(), &self.compare)?;
            write(&mut self.levels, self.running, level + 1, merged)?;
            self.running.give_back(full.bytes());
        }
        Ok(())
    }

    /// Whether there are no runs.
    pub(crate) fn is_empty(&self) -> bool {
        self.levels.is_empty()
    }

    /// All items in order; equal ones in the order in which they were added.
    pub(crate) fn merged<T: Spilled>(&self) -> Result<Merged<'_, T, C>, Error>
    where
        C: Fn(&T, &T) -> Ordering,
    {
        // Runs that were merged are older.
        Merged::of(self.levels.iter().rev().flat_map(Level::runs).collect(), &self.compare)
    }
}

/// Releases the space of the files.
impl<C> Drop for Runs<'_, C> {
    fn drop(&mut self) {
        self.levels.iter().for_each(|level| self.running.give_back(level.bytes()));
    }
}

/// Writes items as one more run of a level.
fn write<T: Spilled>(
    levels: &mut Vec<Level>,
    running: &Running,
    level: usize,
    items: impl Iterator<Item = Result<T, Error>>,
) -> Result<(), Error> {
    if levels.len() <= level {
        levels.push(Level::default());
    }
    let Some(Level { file, ends }) = levels.get_mut(level) else { return Ok(()) };
    let file = match file {
        Some(file) => file,
        None => file.insert(tempfile::tempfile().map_err(Error::Spill)?),
    };
    let mut end = ends.last().copied().unwrap_or_default();
    let mut out = BufWriter::with_capacity(READ_BYTES, &*file);
    let mut bytes = Vec::new();
    for item in items {
        running.check_row()?;
        bytes.clear();
        item?.write(&mut bytes);
        let length = u32::try_from(bytes.len()).map_err(|_| unreadable())?;
        let all = u64::from(length) + size_of::<u32>() as u64;
        running.take(all)?;
        end += all;
        out.write_all(&length.to_le_bytes()).and_then(|()| out.write_all(&bytes)).map_err(Error::Spill)?;
    }
    out.flush().map_err(Error::Spill)?;
    drop(out);
    ends.push(end);
    Ok(())
}

impl Level {
    fn bytes(&self) -> u64 {
        self.ends.last().copied().unwrap_or_default()
    }

    fn runs(&self) -> impl Iterator<Item = Run<'_>> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let spans = starts.zip(self.ends.iter().copied());
        self.file.iter().flat_map(move |file| {
            spans.clone().map(move |(at, end)| Run { file, at, end, bytes: Vec::new(), read: 0 })
        })
    }
}

/// A run being read.
struct Run<'a> {
    file: &'a File,
    /// Offset of the bytes to read next.
    at: u64,
    end: u64,
    bytes: Vec<u8>,
    /// Number of bytes of `bytes` already consumed.
    read: usize,
}

impl Run<'_> {
    fn next<T: Spilled>(&mut self) -> Result<Option<T>, Error> {
        if self.at == self.end && self.read == self.bytes.len() {
            return Ok(None);
        }
        let length = self.some(size_of::<u32>())?;
        let length = u32::from_le_bytes(length.try_into().map_err(|_| unreadable())?);
        let mut item = self.some(length as usize)?;
        T::read(&mut item).ok_or_else(unreadable).map(Some)
    }

    /// The next bytes.
    fn some(&mut self, count: usize) -> Result<&[u8], Error> {
        if self.bytes.len() - self.read < count {
            self.bytes.drain(..self.read);
            self.read = 0;
            let before = self.bytes.len();
            let wanted = READ_BYTES.max(count - before) as u64;
            let wanted = wanted.min(self.end - self.at);
            self.bytes.resize(before + wanted as usize, 0);
            self.file.read_exact_at(&mut self.bytes[before..], self.at).map_err(Error::Spill)?;
            self.at += wanted;
        }
        let start = self.read;
        self.read = (start + count).min(self.bytes.len());
        self.bytes.get(start..start + count).ok_or_else(unreadable)
    }
}

/// Items of several runs in order.
pub(crate) struct Merged<'a, T, C> {
    runs: Vec<Run<'a>>,
    /// The first item of each run that has one left.
    heads: BinaryHeap<Head<'a, T, C>>,
}

struct Head<'a, T, C> {
    item: T,
    run: usize,
    compare: &'a C,
}

impl<'a, T: Spilled, C: Fn(&T, &T) -> Ordering> Merged<'a, T, C> {
    fn of(mut runs: Vec<Run<'a>>, compare: &'a C) -> Result<Self, Error> {
        let mut heads = BinaryHeap::new();
        for (run, read) in runs.iter_mut().enumerate() {
            heads.extend(read.next()?.map(|item| Head { item, run, compare }));
        }
        Ok(Self { runs, heads })
    }
}

impl<T: Spilled, C: Fn(&T, &T) -> Ordering> Iterator for Merged<'_, T, C> {
    type Item = Result<T, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut head = self.heads.peek_mut()?;
        let next = match self.runs.get_mut(head.run).map(Run::next::<T>) {
            Some(Ok(Some(next))) => next,
            Some(Err(error)) => return Some(Err(error)),
            _ => return Some(Ok(std::collections::binary_heap::PeekMut::pop(head).item)),
        };
        Some(Ok(std::mem::replace(&mut head.item, next)))
    }
}

/// The heap is a maximum heap, so the item to return next is the greatest; among equal items, that of the oldest run.
impl<T, C: Fn(&T, &T) -> Ordering> Ord for Head<'_, T, C> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.compare)(&other.item, &self.item).then_with(|| other.run.cmp(&self.run))
    }
}

impl<T, C: Fn(&T, &T) -> Ordering> PartialOrd for Head<'_, T, C> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T, C: Fn(&T, &T) -> Ordering> PartialEq for Head<'_, T, C> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T, C: Fn(&T, &T) -> Ordering> Eq for Head<'_, T, C> {}

pub(crate) fn unreadable() -> Error {
    Error::Spill(io::Error::new(io::ErrorKind::InvalidData, "the file is damaged"))
}

/// Lossless.
impl Spilled for Value {
    fn write(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Empty => bytes.push(0),
            Self::Integer(count) => {
                bytes.push(1);
                bytes.extend(count.to_le_bytes());
            }
            Self::Number(number) => {
                bytes.push(2);
                bytes.extend(number.to_le_bytes());
            }
            Self::Text(text) => {
                bytes.push(3);
                bytes.extend((text.len() as u32).to_le_bytes());
                bytes.extend(text.as_bytes());
            }
            Self::Time(time) => {
                bytes.push(4);
                bytes.extend(time.timestamp().to_le_bytes());
                bytes.extend(time.timestamp_subsec_nanos().to_le_bytes());
            }
        }
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        Some(match bytes.split_off_first()? {
            0 => Self::Empty,
            1 => Self::Integer(u64::from_le_bytes(*bytes.split_off(..8)?.first_chunk()?)),
            2 => Self::Number(f64::from_le_bytes(*bytes.split_off(..8)?.first_chunk()?)),
            3 => {
                let length = u32::from_le_bytes(*bytes.split_off(..4)?.first_chunk()?);
                Self::Text(str::from_utf8(bytes.split_off(..length as usize)?).ok()?.to_owned())
            }
            4 => {
                let seconds = i64::from_le_bytes(*bytes.split_off(..8)?.first_chunk()?);
                let nanos = u32::from_le_bytes(*bytes.split_off(..4)?.first_chunk()?);
                Self::Time(DateTime::from_timestamp(seconds, nanos)?)
            }
            _ => return None,
        })
    }
}

impl Spilled for Vec<Value> {
    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend((self.len() as u32).to_le_bytes());
        self.iter().for_each(|value| value.write(bytes));
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let count = u32::from_le_bytes(*bytes.split_off(..4)?.first_chunk()?);
        (0..count).map(|_| Value::read(bytes)).collect()
    }
}
