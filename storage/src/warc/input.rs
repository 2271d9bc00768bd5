//! A buffered stream that counts the bytes taken from it.

use std::io::{self, Read};

/// Maximum bytes of one read from the stream.
const BUFFER_BYTES: usize = 128 << 10;

#[derive(Debug)]
pub(super) struct Input<R> {
    source: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    offset: u64,
}

impl<R: Read> Input<R> {
    /// Wraps a stream whose first byte counts as being at `offset`.
    pub(super) fn new(source: R, offset: u64) -> Self {
        Self { source, buffer: vec![0; BUFFER_BYTES], start: 0, end: 0, offset }
    }

    /// Returns the offset of the next byte.
    pub(super) fn position(&self) -> u64 {
        self.offset
    }

    /// Returns the bytes in the buffer.
    pub(super) fn buffered(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Buffers at least one byte, unless the stream has ended.
    pub(super) fn fill(&mut self) -> io::Result<&[u8]> {
        self.fill_to(1)
    }

    /// Buffers at least this many bytes, unless the stream ends first; at most the buffer's size.
    pub(super) fn fill_to(&mut self, count: usize) -> io::Result<&[u8]> {
        if self.end - self.start < count && self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        while self.end - self.start < count {
            let Some(room) = self.buffer.get_mut(self.end..).filter(|room| !room.is_empty()) else { break };
            match self.source.read(room) {
                Ok(0) => break,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.buffered())
    }

    /// Takes bytes from the buffer.
    pub(super) fn consume(&mut self, count: usize) {
        let count = count.min(self.end - self.start);
        self.start += count;
        self.offset += count as u64;
    }
}
