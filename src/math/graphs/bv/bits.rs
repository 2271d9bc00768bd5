//! Bit streams of the WebGraph framework: the highest bit of a byte comes first.

use std::io::{self, Read, Write};

/// Number of bytes read at a time.
const BUFFER_BYTES: usize = 1 << 16;

/// Why bits cannot be read.
#[derive(Debug)]
pub(super) enum BitError {
    /// A file system operation failed.
    Io(io::Error),
    /// The file ends too early.
    End,
    /// The bits are invalid.
    Damaged(&'static str),
}

impl From<io::Error> for BitError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Reads a bit stream.
pub(super) struct BitReader<R> {
    from: R,
    bytes: Box<[u8]>,
    /// Start of the unread part of `bytes`; `length` is its end.
    place: usize,
    length: usize,
    /// The next `left` bits, from the highest on; the bits below are zero or the ones that follow.
    word: u64,
    left: u32,
}

impl<R: Read> BitReader<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from, bytes: vec![0; BUFFER_BYTES].into(), place: 0, length: 0, word: 0, left: 0 }
    }

    /// Reads a number of `count` bits, at most 64.
    #[inline]
    pub(super) fn bits(&mut self, count: u32) -> Result<u64, BitError> {
        if count > 32 {
            return Ok(self.bits(count - 32)? << 32 | self.bits(32)?);
        }
        if self.left < count {
            self.fill()?;
            if self.left < count {
                return Err(BitError::End);
            }
        }
        // In two steps, because a shift by 64 is not allowed.
        let value = self.word >> 1 >> (63 - count);
        self.skip(count);
        Ok(value)
    }

    /// Reads a unary number: the number of zeros before the next one.
    #[inline]
    pub(super) fn unary(&mut self) -> Result<u64, BitError> {
        let mut zeros = 0;
        loop {
            let leading = self.word.leading_zeros();
            if leading < self.left {
                self.skip(leading);
                self.skip(1);
                return Ok(zeros + u64::from(leading));
            }
            zeros += u64::from(self.left);
            self.skip(self.left);
            self.fill()?;
            if self.left == 0 {
                return Err(BitError::End);
            }
        }
    }

    /// Reads a number in Elias' γ code: as many zeros as the number plus one has bits after its first, then the number
    /// plus one.
    #[inline]
    pub(super) fn gamma(&mut self) -> Result<u64, BitError> {
        let length = 2 * self.word.leading_zeros() + 1;
        if length <= self.left {
            let value = self.word >> (64 - length);
            self.skip(length);
            return Ok(value - 1);
        }
        let length = self.unary()?;
        self.rest(length)
    }

    /// Reads a number plus one, given the number of bits after its first.
    pub(super) fn rest(&mut self, length: u64) -> Result<u64, BitError> {
        match u32::try_from(length) {
            Ok(length @ ..64) => Ok((1 << length | self.bits(length)?) - 1),
            _ => Err(BitError::Damaged("a number has more than 64 bits")),
        }
    }

    #[inline]
    fn skip(&mut self, count: u32) {
        self.word <<= count;
        self.left -= count;
    }

    /// Provides at least 56 bits, or all that are left.
    #[inline]
    fn fill(&mut self) -> Result<(), BitError> {
        if self.length - self.place < 8 {
            self.load()?;
        }
        if let Some(bytes) = self.bytes[self.place..self.length].first_chunk() {
            self.word |= u64::from_be_bytes(*bytes) >> self.left;
            let taken = (63 - self.left) / 8;
            self.place += taken as usize;
            self.left += 8 * taken;
            return Ok(());
        }
        while self.left <= 55 && self.place < self.length {
            self.word |= u64::from(self.bytes[self.place]) << (56 - self.left);
            self.place += 1;
            self.left += 8;
        }
        Ok(())
    }

    #[cold]
    fn load(&mut self) -> Result<(), BitError> {
        self.bytes.copy_within(self.place..self.length, 0);
        self.length -= self.place;
        self.place = 0;
        while self.length < self.bytes.len() {
            match self.from.read(&mut self.bytes[self.length..]) {
                Ok(0) => break,
                Ok(read) => self.length += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Writes a bit stream.
pub(super) struct BitWriter<W> {
    to: W,
    /// Bits not yet written, from the highest on.
    word: u64,
    used: u32,
}

impl<W: Write> BitWriter<W> {
    pub(super) fn new(to: W) -> Self {
        Self { to, word: 0, used: 0 }
    }

    /// Writes a number of `count` bits, at most 64.
    pub(super) fn bits(&mut self, value: u64, count: u32) -> io::Result<()> {
        let room = 64 - self.used;
        if count < room {
            // In two steps, because a shift by 64 is not allowed.
            self.word |= value << (room - count - 1) << 1;
            self.used += count;
            return Ok(());
        }
        let rest = count - room;
        self.to.write_all(&(self.word | value >> rest).to_be_bytes())?;
        self.used = rest;
        self.word = value.checked_shl(64 - rest).unwrap_or(0);
        Ok(())
    }

    /// Writes a unary number: this many zeros and a one.
    pub(super) fn unary(&mut self, mut value: u64) -> io::Result<()> {
        while value >= 63 {
            self.bits(0, 63)?;
            value -= 63;
        }
        self.bits(1, value as u32 + 1)
    }

    /// Pads the last byte with zeros and flushes.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let bytes = self.word.to_be_bytes();
        self.to.write_all(&bytes[..self.used.div_ceil(8) as usize])?;
        self.to.flush()
    }
}
