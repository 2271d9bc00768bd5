//! Reads the records of a WARC file, written by any tool, one by one.
//!
//! Damage is reported once with its offset. Reading then continues at the next place where a record can start: a line
//! that starts with `WARC/`, or the next gzip member or zstd frame if the compressed bytes are damaged. ARC files are read in the
//! same way if that is wanted; their records are lines and documents ([`super::arc`]).

mod arc_records;

use std::io::{self, Read};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

use super::header::{HeaderError, RecordHeader};
use super::members::UnpackableRanges;
use super::record::{Broken, ReadLimits, Record, RecordError};
use super::unpack::{Packing, UnpackError, Unpacked, Unpacker};
use super::{HEAD_BYTES_MAX, http};
use crate::backend::{Disk, Spool};

/// Bytes at the beginning of a content that stay in memory when the rest is spooled.
const BEGINNING_BYTES: usize = 1 << 20;

/// Bytes of content written to a file at once.
const SPOOLED_AT_ONCE: usize = 1 << 20;

/// Bytes of line ends after a record that are counted as part of it.
const LINE_ENDS_MAX: u64 = 4096;

/// Buffer capacity that is kept for the next record.
const KEPT_BYTES: usize = 1 << 20;

/// Bytes of a document that tell whether it has an HTTP head.
const HTTP_START_BYTES: usize = 5;

/// The format of a file, as its first record tells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FileFormat {
    Warc,
    Arc,
    /// Either of both: no record was read yet.
    Unknown,
}

/// Iterates over the records of a stream.
pub struct RecordReader<R> {
    unpacker: Unpacker<R>,
    limits: ReadLimits,
    format: FileFormat,
    /// Unpacked bytes that are still buffered; those before `start` are consumed.
    unpacked: Vec<u8>,
    start: usize,
    /// Number of unpacked bytes before `unpacked`.
    base: u64,
    members: UnpackableRanges,
    /// Unpacked positions up to which the end of a head was searched for, and of the end found. So a stretch without an
    /// empty line is searched once, however many heads seem to start in it.
    head_searched: u64,
    head_end: u64,
    /// Bytes of content to skip before the next record.
    to_skip: u64,
    /// Bytes of ARC files that are read twice because of wrong lengths.
    gone_back: u64,
    /// Where contents that are too long for memory go.
    spools: Option<(Arc<dyn Disk>, PathBuf)>,
    /// Why unpacking stopped; the bytes before the damage are still to be read.
    damage: Option<String>,
    /// Whether the damage is that the file ends within a member.
    is_ended: bool,
    finished: bool,
}

impl<R> std::fmt::Debug for RecordReader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordReader").field("unpacked_before", &self.base).finish_non_exhaustive()
    }
}

impl<R: Read> RecordReader<R> {
    /// Reads a file from its start and detects its compression.
    #[must_use]
    pub fn new(source: R) -> Self {
        Self::with_unpacker(Unpacker::new(source))
    }

    /// Reads a file from the record at `offset`; the dictionary of a zstd file must be given.
    #[must_use]
    pub fn resumed(source: R, offset: u64, dictionary: Option<Vec<u8>>) -> Self {
        let mut reader = Self::with_unpacker(Unpacker::resumed(source, offset, dictionary));
        reader.base = offset;
        reader
    }

    fn with_unpacker(unpacker: Unpacker<R>) -> Self {
        Self {
            unpacker,
            limits: ReadLimits::default(),
            format: FileFormat::Warc,
            unpacked: Vec::new(),
            start: 0,
            base: 0,
            members: UnpackableRanges::default(),
            head_searched: 0,
            head_end: 0,
            to_skip: 0,
            gone_back: 0,
            spools: None,
            damage: None,
            is_ended: false,
            finished: false,
        }
    }

    /// Sets the limits of a record's size and memory. Call it before the first record is read.
    #[must_use]
    pub fn with_limits(mut self, limits: ReadLimits) -> Self {
        self.limits = limits;
        self.unpacker.limit_window(limits.window_bytes_max);
        self
    }

    /// Reads ARC files, too. Call it before the first record is read.
    #[must_use]
    pub fn with_arc(mut self) -> Self {
        self.format = FileFormat::Unknown;
        self
    }

    /// Writes contents that are too long for memory to unnamed files in a folder.
    #[must_use]
    pub fn with_spools(mut self, disk: Arc<dyn Disk>, folder: PathBuf) -> Self {
        self.spools = Some((disk, folder));
        self
    }

    /// Returns the compression of the file.
    ///
    /// # Errors
    /// When its first bytes cannot be read.
    pub fn packing(&mut self) -> Result<Packing, RecordError> {
        match self.unpacker.packing() {
            Ok(packing) => Ok(packing),
            Err(UnpackError::Io(error)) => Err(error.into()),
            Err(UnpackError::Corrupt(what)) => Err(self.broken(0, what, None)),
            Err(UnpackError::Ended(what)) => Err(self.broken(0, what, None)),
        }
    }

    fn rest(&self) -> &[u8] {
        self.unpacked.get(self.start..).unwrap_or_default()
    }

    /// Returns the unpacked position of the next byte to read.
    fn here(&self) -> u64 {
        self.base + self.start as u64
    }

    /// Unpacks some more bytes; `false` if the file ended or is damaged here.
    fn more(&mut self) -> io::Result<bool> {
        if self.finished || self.damage.is_some() {
            return Ok(false);
        }
        match self.unpacker.step(&mut self.unpacked) {
            Ok(Unpacked::Data) => {}
            Ok(Unpacked::Start(offset)) => {
                let from = self.base + self.unpacked.len() as u64;
                self.members.start(from, offset);
            }
            Ok(Unpacked::End(offset)) => {
                let to = self.base + self.unpacked.len() as u64;
                self.members.end(to, offset);
            }
            Ok(Unpacked::Finished) => self.finished = true,
            Err(UnpackError::Corrupt(what)) => self.damage = Some(what),
            Err(UnpackError::Ended(what)) => (self.damage, self.is_ended) = (Some(what.to_owned()), true),
            Err(UnpackError::Io(error)) => {
                self.finished = true;
                return Err(error);
            }
        }
        Ok(!self.finished && self.damage.is_none())
    }

    fn ensure(&mut self, count: usize) -> io::Result<bool> {
        while self.unpacked.len() - self.start < count {
            if !self.more()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Skips line ends, within and between members: `bytes_max` bytes of them, or slightly more. Returns `false` if
    /// nothing follows.
    fn skip_line_ends(&mut self, bytes_max: u64) -> io::Result<bool> {
        let end = self.here().saturating_add(bytes_max);
        loop {
            let rest = self.rest();
            let blank = rest.iter().take_while(|byte| is_line_end(byte)).count();
            let is_all = blank == rest.len();
            self.start += blank;
            if !is_all || self.here() >= end {
                return Ok(true);
            }
            if !self.more()? {
                return Ok(self.start < self.unpacked.len());
            }
        }
    }

    /// Returns the offset of the member (or, in a plain file, the byte) at an unpacked position.
    fn offset_of(&self, position: u64) -> u64 {
        self.members.at(position).map_or(position, |(_, offset)| offset)
    }

    /// Returns the compressed length between two unpacked positions. `first` is the member at `from`, if the file has
    /// members: then the length is 0 unless `from` is its start and a member ends at `to`.
    fn length_between(&self, first: Option<(u64, u64)>, from: u64, to: u64) -> u64 {
        let Some((start, first_offset)) = first else { return to - from };
        // Line ends after the record may be in a member of their own.
        match self.members.ended(to).filter(|(end, _)| *end > from) {
            Some((end, offset)) if start == from && self.only_line_ends(end, to) => offset - first_offset,
            _ => 0,
        }
    }

    fn only_line_ends(&self, from: u64, to: u64) -> bool {
        let index = |position: u64| usize::try_from(position.saturating_sub(self.base)).unwrap_or(usize::MAX);
        let bytes = self.unpacked.get(index(from)..index(to));
        bytes.is_some_and(|bytes| bytes.iter().all(is_line_end))
    }

    fn broken(&self, start: u64, what: impl Into<String>, header: Option<RecordHeader>) -> RecordError {
        let (offset, what) = (self.offset_of(start), what.into());
        RecordError::Broken(Box::new(Broken { offset, what, header: header.map(Box::new), cut: None }))
    }

    /// Drops consumed bytes. Bytes are only moved if at least as many are dropped.
    fn forget(&mut self) {
        if self.start * 2 >= self.unpacked.len() {
            self.unpacked.drain(..self.start);
            self.base += self.start as u64;
            self.start = 0;
            if self.unpacked.capacity() > 2 * KEPT_BYTES && self.unpacked.len() <= KEPT_BYTES {
                self.unpacked.shrink_to(KEPT_BYTES);
            }
        }
        self.members.forget_before(self.here());
    }

    /// Skips damage; the bytes before it are dropped.
    fn leave_damage(&mut self) -> io::Result<()> {
        self.start = self.unpacked.len();
        self.forget();
        self.members.clear();
        if self.damage.take().is_some() && !self.unpacker.resume()? {
            self.finished = true;
        }
        Ok(())
    }

    /// Advances, by at least one byte, to the next place where a record can start.
    fn resynchronise(&mut self) -> io::Result<()> {
        if self.format != FileFormat::Warc {
            return self.resynchronise_by_lines();
        }
        let is_zstd = self.unpacker.packing().ok() == Some(Packing::Zstd);
        let mut searched = 0;
        loop {
            let rest = self.rest();
            let from = rest.get(searched..).unwrap_or_default();
            if let Some(found) = memchr::memmem::find(from, b"WARC/") {
                let found = searched + found;
                // A zstd frame has at most one record, so a `WARC/` line within one is content.
                let at_line_start = !is_zstd && found > 0 && rest.get(found - 1) == Some(&b'\n');
                let position = self.here() + found as u64;
                let at_member_start = self.members.at(position).is_some_and(|(from, _)| from == position);
                if found > 0 && (at_line_start || at_member_start) {
                    self.start += found;
                    return Ok(());
                }
                searched = found + 1;
                continue;
            }
            searched = rest.len().saturating_sub(4);
            if searched > HEAD_BYTES_MAX {
                // Keeps one more byte, so that a line end before the signature is still seen.
                self.start += searched - 1;
                searched = 1;
                self.forget();
            }
            if !self.more()? {
                if self.damage.is_some() {
                    return self.leave_damage();
                }
                self.start = self.unpacked.len();
                return Ok(());
            }
        }
    }

    fn read_head(&mut self) -> io::Result<Result<(RecordHeader, usize), String>> {
        if let Some(found) = self.arc_line()? {
            self.format = FileFormat::Arc;
            return Ok(Ok(found));
        }
        self.format = FileFormat::Warc;
        loop {
            let (length, available) = (self.head_length(), self.rest().len());
            match length {
                Some(length) if length <= HEAD_BYTES_MAX => {
                    let head = self.rest().get(..length).unwrap_or_default();
                    return Ok(RecordHeader::parse(head).map_err(|error: HeaderError| error.to_string()));
                }
                None if available < HEAD_BYTES_MAX => {}
                _ => return Ok(Err("the record head is too long".into())),
            }
            if !self.ensure(available + 1)? {
                return Ok(Err(self.cut_off("its head")));
            }
        }
    }

    /// Returns the length of the head that starts here, including its empty line, as far as it is unpacked.
    fn head_length(&mut self) -> Option<usize> {
        let here = self.here();
        if self.head_end <= here {
            // The last bytes searched may be the start of an empty line.
            let from = self.head_searched.saturating_sub(2).max(here);
            let rest = self.rest().get((from - here) as usize..).unwrap_or_default();
            match http::empty_line(rest) {
                Some(end) => self.head_end = from + end as u64,
                None => self.head_searched = from + rest.len() as u64,
            }
        }
        self.head_end.checked_sub(here).filter(|length| *length > 0).map(|length| length as usize)
    }

    fn cut_off(&self, place: &str) -> String {
        match &self.damage {
            Some(what) => format!("{what}, within {place}"),
            None => format!("the file ends within {place}"),
        }
    }

    /// Unpacks this many bytes of the content at the positions `within`; otherwise returns how many there are, and why.
    /// A gzip member that starts within the content and starts a record shows that the content is shorter than stated.
    fn read_content(
        &mut self,
        length: usize,
        within: &Range<u64>,
    ) -> io::Result<Result<(), (usize, String)>> {
        let is_gzip = self.unpacker.packing().ok() == Some(Packing::Gzip);
        let end = within.end.min(self.here().saturating_add(length as u64));
        let mut looked_at = within.start.max(self.here().saturating_sub(1));
        loop {
            while let Some(from) = self.members.start_after(looked_at).filter(|from| is_gzip && *from < end) {
                looked_at = from;
                let index = (from - self.here()) as usize;
                let is_warc = self.ensure(index + 5)?
                    && self.rest().get(index..).is_some_and(|rest| rest.starts_with(b"WARC/"));
                self.start += index;
                let is_start = self.arc_line();
                self.start -= index;
                if is_warc || is_start?.is_some() {
                    return Ok(Err((index, "the record is shorter than its Content-Length".into())));
                }
            }
            let available = self.rest().len().min(length);
            if available == length {
                return Ok(Ok(()));
            }
            if !self.more()? && self.rest().len() == available {
                return Ok(Err((available, self.cut_off("its content"))));
            }
        }
    }

    /// Takes a content of this many bytes. Returns all of it, or its beginning and the spooled rest, and why bytes are
    /// missing.
    fn take_content(&mut self, length: u64) -> io::Result<(Bytes, Option<Spool>, Option<String>)> {
        let within = self.here()..self.here().saturating_add(length);
        let mut rest = match &self.spools {
            Some((disk, folder)) if length > self.limits.memory_bytes_max => {
                Some(Spool::create(disk.as_ref(), folder)?)
            }
            _ => None,
        };
        let whole = usize::try_from(length).unwrap_or(usize::MAX);
        let count = if rest.is_some() { whole.min(BEGINNING_BYTES) } else { whole };
        let mut missing = self.read_content(count, &within)?.err();
        let available = missing.as_ref().map_or(count, |(available, _)| *available);
        let beginning = Bytes::copy_from_slice(self.rest().get(..available).unwrap_or_default());
        self.start += available;
        while let (Some(rest), None) = (&mut rest, &missing) {
            self.forget();
            let left = usize::try_from(within.end - self.here()).unwrap_or(usize::MAX);
            if left == 0 {
                break;
            }
            let count = left.min(SPOOLED_AT_ONCE);
            missing = self.read_content(count, &within)?.err();
            let available = missing.as_ref().map_or(count, |(available, _)| *available);
            rest.append(self.unpacked.get(self.start..self.start + available).unwrap_or_default())?;
            self.start += available;
        }
        Ok((beginning, rest, missing.map(|(_, why)| why)))
    }

    /// Skips the content of a record that was not taken.
    fn skip_content(&mut self) -> io::Result<()> {
        let mut left = std::mem::take(&mut self.to_skip);
        loop {
            let available = (self.rest().len() as u64).min(left);
            self.start += available as usize;
            left -= available;
            if left == 0 {
                return Ok(());
            }
            self.forget();
            if !self.more()? {
                return if self.damage.is_some() { self.leave_damage() } else { Ok(()) };
            }
        }
    }

    fn read_record(&mut self, start: u64) -> Result<Record, RecordError> {
        let is_warc = |word: &[u8]| word.eq_ignore_ascii_case(b"WARC/");
        let is_warc =
            self.format != FileFormat::Arc && self.ensure(5)? && self.rest().get(..5).is_some_and(is_warc);
        if !is_warc && self.arc_line()?.is_none() {
            let name = if self.format == FileFormat::Arc { "ARC" } else { "WARC" };
            let error = self.broken(start, format!("no {name} record starts here"), None);
            self.resynchronise()?;
            return Err(error);
        }
        let (header, head_length) = match self.read_head()? {
            Ok(parsed) => parsed,
            Err(what) => {
                let error = self.broken(start, what, None);
                self.resynchronise()?;
                return Err(error);
            }
        };
        let Some(length) = header.content_length() else {
            let error = self.broken(start, "the record has no Content-Length", Some(header));
            // Its lines were parsed as one head; the last line end may be just before a record.
            self.start += head_length - 1;
            self.resynchronise()?;
            return Err(error);
        };
        let first = self.members.at(start);
        let offset = first.map_or(start, |(_, offset)| offset);
        self.start += head_length;
        if length > self.limits.content_bytes_max {
            let most = self.limits.content_bytes_max;
            let what = format!("the record has {length} bytes of content, more than the limit of {most}");
            self.to_skip = length;
            return Err(self.broken(start, what, Some(header)));
        }
        let (content, rest, missing) = self.take_content(length)?;
        let cut = Record { header, offset, length: 0, content, rest: rest.map(Arc::new) };
        if let Some(what) = missing {
            // A wrong length of an ARC record is no reason to drop it: its member or the file ends before.
            let is_end = self.finished || self.format == FileFormat::Arc;
            let is_cut = self.damage.is_none() && is_end || self.is_ended;
            if self.damage.is_some() {
                self.leave_damage()?;
            }
            return Err(cut_off(what, cut, is_cut));
        }
        let first_of_content = self.start.checked_sub(cut.content.len()).filter(|_| cut.rest.is_none());
        self.skip_line_ends(LINE_ENDS_MAX)?;
        if let Some(first) = first_of_content
            && let Some(content) = self.goes_back(first, &cut.content)?
        {
            let what = "the record is shorter than its Archive-length".to_owned();
            return Err(cut_off(what, Record { content, ..cut }, true));
        }
        let is_unfinished = self.members.unfinished().is_some_and(|(from, _)| from < self.here());
        if let Some(what) = self.damage.clone().filter(|_| is_unfinished) {
            // All bytes are there, but not the checksum that confirms them.
            self.leave_damage()?;
            return Err(cut_off(what, cut, self.is_ended));
        }
        let length = self.length_between(first, start, self.here());
        Ok(Record { length, ..cut })
    }
}

fn cut_off(what: String, cut: Record, is_cut: bool) -> RecordError {
    let header = Some(Box::new(cut.header.clone()));
    RecordError::Broken(Box::new(Broken {
        offset: cut.offset,
        what,
        header,
        cut: is_cut.then(|| Box::new(cut)),
    }))
}

fn is_line_end(byte: &u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

impl<R: Read> Iterator for RecordReader<R> {
    type Item = Result<Record, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.to_skip > 0
            && let Err(error) = self.skip_content()
        {
            return Some(Err(error.into()));
        }
        let more = loop {
            self.forget();
            match self.skip_line_ends(LINE_ENDS_MAX) {
                Ok(true) if self.rest().first().is_none_or(is_line_end) => {}
                other => break other,
            }
        };
        match more {
            Ok(true) => {}
            Ok(false) => {
                let what = self.damage.clone()?;
                let offset = self.members.unfinished().map_or(self.unpacker.position(), |(_, offset)| offset);
                let error = Broken { offset, what, header: None, cut: None };
                return Some(match self.leave_damage() {
                    Ok(()) => Err(RecordError::Broken(Box::new(error))),
                    Err(error) => Err(error.into()),
                });
            }
            Err(error) => return Some(Err(error.into())),
        }
        let start = self.here();
        Some(self.read_record(start))
    }
}
