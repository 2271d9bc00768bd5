//! Where records of ARC files begin: at lines that read like it.

use std::io::{self, Read};

use bytes::Bytes;

use super::super::arc;
use super::super::header::RecordHeader;
use super::{FileFormat, HTTP_START_BYTES, RecordReader};

impl<R: Read> RecordReader<R> {
    /// Advances to the next place where a record begins, in a file that is or may be an ARC file: a line or a member.
    pub(super) fn resynchronise_by_lines(&mut self) -> io::Result<()> {
        let mut looked_at = self.here();
        loop {
            let (here, rest) = (self.here(), self.rest());
            let line = memchr::memchr(b'\n', rest).map(|end| here + end as u64 + 1);
            let next = line.into_iter().chain(self.members.start_after(looked_at)).min();
            if let Some(next) = next {
                self.start += next.saturating_sub(here) as usize;
                looked_at = next;
                self.forget();
                self.ensure(HTTP_START_BYTES)?;
                let is_warc = self.format == FileFormat::Unknown && self.rest().starts_with(b"WARC/");
                if is_warc || self.arc_line()?.is_some() {
                    return Ok(());
                }
                continue;
            }
            self.start = self.unpacked.len();
            self.forget();
            if !self.more()? {
                return if self.damage.is_some() { self.leave_damage() } else { Ok(()) };
            }
        }
    }

    /// Returns the head of the ARC record that begins here, and the length of its line; `None` if none does.
    pub(super) fn arc_line(&mut self) -> io::Result<Option<(RecordHeader, usize)>> {
        if self.format == FileFormat::Warc {
            return Ok(None);
        }
        let (mut may_begin, mut searched) = (None, 0);
        let end = loop {
            let rest = self.rest();
            may_begin = may_begin.or_else(|| arc::may_begin(rest));
            if may_begin == Some(false) {
                return Ok(None);
            }
            let line = rest.get(..arc::LINE_BYTES_MAX).unwrap_or(rest);
            if let Some(end) = memchr::memchr(b'\n', line.get(searched..).unwrap_or_default()) {
                break searched + end;
            }
            searched = line.len();
            if searched == arc::LINE_BYTES_MAX || !self.ensure(searched + 1)? {
                return Ok(None);
            }
        };
        self.ensure(end + 1 + HTTP_START_BYTES)?;
        let (line, block) = self.rest().split_at(end);
        Ok(arc::header(line, block.get(1..).unwrap_or_default()).map(|header| (header, end + 1)))
    }

    /// Whether what a content's length led to is no record, and its content has the beginning of one: then the length is
    /// wrong. Goes back to that beginning, but not so often that more is read twice than once, and returns what is before it.
    pub(super) fn goes_back(&mut self, first: usize, content: &Bytes) -> io::Result<Option<Bytes>> {
        let is_end = !self.ensure(1)?;
        if self.format != FileFormat::Arc || is_end || self.arc_line()?.is_some() {
            return Ok(None);
        }
        let after = self.start;
        for end in memchr::memchr_iter(b'\n', content) {
            self.start = first + end + 1;
            let again = (after - self.start) as u64;
            if self.gone_back + again <= self.here() && self.arc_line()?.is_some() {
                self.gone_back += again;
                return Ok(Some(content.slice(..end)));
            }
        }
        self.start = after;
        Ok(None)
    }
}
