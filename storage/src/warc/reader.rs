//! Reads the records of a WARC file one after the other, whoever wrote it.
//!
//! What is broken is reported once with its offset; reading then goes on at the next place where a record can start: a
//! line that says `WARC/`, or the next gzip member or zstd frame when the compressed bytes themselves are damaged.

use std::collections::VecDeque;
use std::io::{self, Read};

use bytes::Bytes;

use super::header::{Header, HeaderError};
use super::unpack::{Packing, Step, UnpackError, Unpacker};
use super::{HEAD_BYTES_MAX, http};

/// What a reader is willing to hold in memory.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ReadLimits {
    /// Bytes of one record's content; a longer record is reported as broken and passed over.
    pub content_bytes_max: u64,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self { content_bytes_max: 1 << 30 }
    }
}

/// A record and where it lies in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its named fields.
    pub header: Header,
    /// Compressed bytes before it. A record that shares a gzip member has the member's offset.
    pub offset: u64,
    /// Compressed bytes it takes with the empty lines behind it; 0 when it shares a gzip member with others, so that it
    /// can't be read on its own.
    pub length: u64,
    /// Its block.
    pub content: Bytes,
}

impl Record {
    /// The content without the HTTP head, if it is an HTTP message: what `WARC-Payload-Digest` covers in practice,
    /// transfer coding included.
    #[must_use]
    pub fn body(&self) -> Bytes {
        http::body(&self.header, &self.content)
    }

    /// The content without head and transfer coding, if it is an HTTP message, else the content.
    #[must_use]
    pub fn payload(&self) -> Bytes {
        http::payload(&self.header, &self.content)
    }
}

/// A place in a file that holds no whole record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("broken record at byte {offset}: {what}")]
pub struct Broken {
    /// Compressed bytes before it.
    pub offset: u64,
    /// What is wrong.
    pub what: String,
    /// The head, if that much could be read.
    pub header: Option<Box<Header>>,
    /// As much of the content as could be read.
    pub content: Bytes,
}

/// Why there is no record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Reading failed; nothing more comes.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A record is broken; more may come.
    #[error(transparent)]
    Broken(#[from] Box<Broken>),
}

/// A stretch of compressed bytes that unpacks on its own.
#[derive(Debug)]
struct Member {
    /// Unpacked bytes before it.
    from: u64,
    /// Compressed bytes before it.
    offset: u64,
    /// The same two numbers for its end.
    end: Option<(u64, u64)>,
}

/// Iterates over the records of a stream.
pub struct RecordReader<R> {
    unpacker: Unpacker<R>,
    limits: ReadLimits,
    /// Unpacked bytes that are not yet forgotten; those before `start` are done with.
    unpacked: Vec<u8>,
    start: usize,
    /// Unpacked bytes before `unpacked`.
    base: u64,
    members: VecDeque<Member>,
    /// What stopped the unpacking; the bytes before it are still to be read.
    damage: Option<String>,
    finished: bool,
}

impl<R> std::fmt::Debug for RecordReader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordReader").field("unpacked_before", &self.base).finish_non_exhaustive()
    }
}

impl<R: Read> RecordReader<R> {
    /// Reads a file from its start; its compression is found out.
    #[must_use]
    pub fn new(source: R) -> Self {
        Self::with_unpacker(Unpacker::new(source))
    }

    /// Reads a file from a record on that starts at `offset`; a zstd file's dictionary must be given.
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
            unpacked: Vec::new(),
            start: 0,
            base: 0,
            members: VecDeque::new(),
            damage: None,
            finished: false,
        }
    }

    /// Sets what may be held in memory.
    #[must_use]
    pub fn with_limits(mut self, limits: ReadLimits) -> Self {
        self.limits = limits;
        self
    }

    /// How the file is compressed.
    ///
    /// # Errors
    /// When its first bytes cannot be read.
    pub fn packing(&mut self) -> Result<Packing, ReadError> {
        match self.unpacker.packing() {
            Ok(packing) => Ok(packing),
            Err(UnpackError::Io(error)) => Err(error.into()),
            Err(UnpackError::Corrupt(what)) => Err(self.broken(0, what, None, Bytes::new())),
        }
    }

    fn rest(&self) -> &[u8] {
        self.unpacked.get(self.start..).unwrap_or_default()
    }

    /// Unpacked bytes before the place where reading stands.
    fn here(&self) -> u64 {
        self.base + self.start as u64
    }

    /// Unpacks a little more; `false` when the file ended or is damaged here.
    fn more(&mut self) -> io::Result<bool> {
        if self.finished || self.damage.is_some() {
            return Ok(false);
        }
        match self.unpacker.step(&mut self.unpacked) {
            Ok(Step::Data) => {}
            Ok(Step::Start(offset)) => {
                let from = self.base + self.unpacked.len() as u64;
                self.members.push_back(Member { from, offset, end: None });
            }
            Ok(Step::End(offset)) => {
                let to = self.base + self.unpacked.len() as u64;
                if let Some(member) = self.members.back_mut() {
                    member.end = Some((to, offset));
                }
            }
            Ok(Step::Finished) => self.finished = true,
            Err(UnpackError::Corrupt(what)) => self.damage = Some(what),
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

    /// Passes over line ends, within and between members; `false` when nothing follows.
    fn skip_line_ends(&mut self) -> io::Result<bool> {
        loop {
            let rest = self.rest();
            let blank = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            let is_all = blank == rest.len();
            self.start += blank;
            if !is_all {
                return Ok(true);
            }
            if !self.more()? {
                return Ok(self.start < self.unpacked.len());
            }
        }
    }

    /// The member that holds an unpacked position, if the file has members.
    fn member_at(&self, position: u64) -> Option<&Member> {
        self.members.iter().rev().find(|member| member.from <= position)
    }

    /// Compressed bytes before the member (or, in a plain file, the byte) at an unpacked position.
    fn offset_of(&self, position: u64) -> u64 {
        self.member_at(position).map_or(position, |member| member.offset)
    }

    /// Compressed bytes from one unpacked position to another, if both are member limits.
    fn length_between(&self, from: u64, to: u64) -> u64 {
        let Some(first) = self.member_at(from) else { return to - from };
        // Line ends may stand in a member of their own behind the record.
        let last = self
            .members
            .iter()
            .rev()
            .find_map(|member| member.end.filter(|(end, _)| *end <= to && *end > from));
        match last {
            Some((end, offset)) if first.from == from && self.only_line_ends(end, to) => {
                offset - first.offset
            }
            _ => 0,
        }
    }

    fn only_line_ends(&self, from: u64, to: u64) -> bool {
        let index = |position: u64| usize::try_from(position.saturating_sub(self.base)).unwrap_or(usize::MAX);
        let bytes = self.unpacked.get(index(from)..index(to));
        bytes.is_some_and(|bytes| bytes.iter().all(|byte| matches!(byte, b'\r' | b'\n')))
    }

    fn broken(
        &self,
        start: u64,
        what: impl Into<String>,
        header: Option<Header>,
        content: Bytes,
    ) -> ReadError {
        let what = what.into();
        ReadError::Broken(Box::new(Broken {
            offset: self.offset_of(start),
            what,
            header: header.map(Box::new),
            content,
        }))
    }

    /// Forgets what is done with.
    fn forget(&mut self) {
        self.unpacked.drain(..self.start);
        self.base += self.start as u64;
        self.start = 0;
        let position = self.base;
        while self.members.len() > 1
            && self.members.front().and_then(|member| member.end).is_some_and(|(to, _)| to <= position)
        {
            self.members.pop_front();
        }
    }

    /// Leaves a damaged place: the bytes before it are given up.
    fn leave_damage(&mut self) -> io::Result<()> {
        self.start = self.unpacked.len();
        self.forget();
        self.members.clear();
        if self.damage.take().is_some() && !self.unpacker.resume()? {
            self.finished = true;
        }
        Ok(())
    }

    /// Goes to the next line that can start a record, at least one byte on.
    fn resynchronise(&mut self) -> io::Result<()> {
        let is_zstd = self.unpacker.packing().ok() == Some(Packing::Zstd);
        let mut searched = 0;
        loop {
            let rest = self.rest();
            let from = rest.get(searched..).unwrap_or_default();
            if let Some(found) = memchr::memmem::find(from, b"WARC/") {
                let found = searched + found;
                // A zstd frame holds no more than one record: what looks like one within is somebody's content.
                let at_line_start = !is_zstd && found > 0 && rest.get(found - 1) == Some(&b'\n');
                let position = self.here() + found as u64;
                let at_member_start = self.members.iter().any(|member| member.from == position);
                if found > 0 && (at_line_start || at_member_start) {
                    self.start += found;
                    return Ok(());
                }
                searched = found + 1;
                continue;
            }
            searched = rest.len().saturating_sub(4);
            if searched > HEAD_BYTES_MAX {
                // Keep one byte more, so that a line end before the signature is still seen.
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

    fn read_head(&mut self) -> io::Result<Result<(Header, usize), String>> {
        let mut searched = 0;
        loop {
            let rest = self.rest();
            match http::head_length(rest.get(..rest.len().min(HEAD_BYTES_MAX)).unwrap_or_default()) {
                Some(length) => {
                    let head = rest.get(..length).unwrap_or_default();
                    return Ok(Header::parse(head).map_err(|error: HeaderError| error.to_string()));
                }
                None if rest.len() >= HEAD_BYTES_MAX => return Ok(Err("the record head is too long".into())),
                None => searched = rest.len().max(searched),
            }
            if !self.ensure(searched + 1)? {
                return Ok(Err(self.cut_off("its head")));
            }
        }
    }

    fn cut_off(&self, place: &str) -> String {
        match &self.damage {
            Some(what) => format!("{what}, within {place}"),
            None => format!("the file ends within {place}"),
        }
    }

    /// Whether a gzip member that starts within `count` bytes from here starts a record of its own: then the record
    /// before it is shorter than it says.
    fn next_record_within(&mut self, count: usize) -> io::Result<Option<usize>> {
        if self.unpacker.packing().ok() != Some(Packing::Gzip) {
            return Ok(None);
        }
        let (from, to) = (self.here(), self.here() + count as u64);
        let starts: Vec<u64> = self
            .members
            .iter()
            .map(|member| member.from)
            .filter(|start| *start > from && *start < to)
            .collect();
        for start in starts {
            let index = (start - from) as usize;
            if self.ensure(index + 5)?
                && self.rest().get(index..).is_some_and(|rest| rest.starts_with(b"WARC/"))
            {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    /// Waits for so many bytes of content; says how many there are and why not more.
    fn read_content(&mut self, length: usize) -> io::Result<Result<(), (usize, String)>> {
        let mut members = self.members.len();
        while self.unpacked.len() - self.start < length {
            let goes_on = self.more()?;
            if self.members.len() > members {
                members = self.members.len();
                if let Some(available) = self.next_record_within(length)? {
                    return Ok(Err((available, "the record is shorter than its Content-Length".into())));
                }
            }
            if !goes_on {
                let available = (self.unpacked.len() - self.start).min(length);
                return Ok(if available == length {
                    Ok(())
                } else {
                    Err((available, self.cut_off("its content")))
                });
            }
        }
        Ok(Ok(()))
    }

    /// Passes over content that is too long to hold.
    fn skip_content(&mut self, mut length: u64) -> io::Result<()> {
        loop {
            let available = ((self.unpacked.len() - self.start) as u64).min(length);
            self.start += available as usize;
            length -= available;
            if length == 0 {
                return Ok(());
            }
            self.forget();
            if !self.more()? {
                return if self.damage.is_some() { self.leave_damage() } else { Ok(()) };
            }
        }
    }

    fn read_record(&mut self, start: u64) -> Result<Record, ReadError> {
        if !self.ensure(5)? || !self.rest().get(..5).is_some_and(|word| word.eq_ignore_ascii_case(b"WARC/")) {
            let error = self.broken(start, "no WARC record starts here", None, Bytes::new());
            self.resynchronise()?;
            return Err(error);
        }
        let (header, head_length) = match self.read_head()? {
            Ok(parsed) => parsed,
            Err(what) => {
                let error = self.broken(start, what, None, Bytes::new());
                self.resynchronise()?;
                return Err(error);
            }
        };
        let Some(length) = header.content_length() else {
            let error = self.broken(start, "the record has no Content-Length", Some(header), Bytes::new());
            self.resynchronise()?;
            return Err(error);
        };
        let offset = self.offset_of(start);
        self.start += head_length;
        if length > self.limits.content_bytes_max {
            let what = format!("{length} bytes of content are more than may be held in memory");
            let error = self.broken(start, what, Some(header), Bytes::new());
            self.skip_content(length)?;
            return Err(error);
        }
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if let Err((available, what)) = self.read_content(length)? {
            let content = Bytes::copy_from_slice(self.rest().get(..available).unwrap_or_default());
            let error = self.broken(start, what, Some(header), content);
            self.start += available;
            if self.damage.is_some() {
                self.leave_damage()?;
            }
            return Err(error);
        }
        let content = Bytes::copy_from_slice(self.rest().get(..length).unwrap_or_default());
        self.start += length;
        self.skip_line_ends()?;
        let is_unfinished =
            self.members.back().is_some_and(|member| member.end.is_none() && member.from < self.here());
        if let Some(what) = self.damage.clone().filter(|_| is_unfinished) {
            // The bytes are all there, but not the checksum that vouches for them.
            let error = self.broken(start, what, Some(header), content);
            self.leave_damage()?;
            return Err(error);
        }
        Ok(Record { header, offset, length: self.length_between(start, self.here()), content })
    }
}

impl<R: Read> Iterator for RecordReader<R> {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.forget();
        match self.skip_line_ends() {
            Ok(true) => {}
            Ok(false) => {
                let what = self.damage.clone()?;
                let unfinished = self.members.back().filter(|member| member.end.is_none());
                let offset = unfinished.map_or(self.unpacker.position(), |member| member.offset);
                let error = Broken { offset, what, header: None, content: Bytes::new() };
                return Some(match self.leave_damage() {
                    Ok(()) => Err(ReadError::Broken(Box::new(error))),
                    Err(error) => Err(error.into()),
                });
            }
            Err(error) => return Some(Err(error.into())),
        }
        let start = self.here();
        Some(self.read_record(start))
    }
}
