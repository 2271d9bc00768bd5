//! Front coding: a name is stored as the number of bytes that it shares with the previous one, and the remaining bytes.
//!
//! A block holds the number of shared bytes of each name (varints), then the rest of each name, terminated by a line
//! feed. Separating numbers from text compresses better than interleaving them (8.8 against 9.7 bytes per URL of a real
//! crawl, in blocks of 128), and the text stays readable. The first name of a block shares nothing; no name contains a
//! line feed.

use super::NAME_BYTES_MAX;
use crate::checkpoint::{length_of_varints, push_varint, take_varint};

/// Terminates the rest of a name.
pub(super) const SEPARATOR: u8 = b'\n';

/// Builds a block of names.
#[derive(Debug, Default)]
pub(super) struct FrontCoder {
    shared: Vec<u8>,
    text: Vec<u8>,
    last: Vec<u8>,
    count: u32,
}

impl FrontCoder {
    /// Continues a block that has `count` names; `None` if it does not.
    pub(super) fn resume(bytes: &[u8], count: u32) -> Option<Self> {
        let mut decoder = Decoder::default();
        decoder.start(bytes, count)?;
        if let Some(slot) = count.checked_sub(1) {
            decoder.seek(bytes, slot)?;
        }
        let (shared, text) = bytes.split_at(decoder.text_start);
        let is_whole = decoder.text_offset == bytes.len();
        is_whole.then(|| Self { shared: shared.to_vec(), text: text.to_vec(), last: decoder.name, count })
    }

    pub(super) fn push(&mut self, name: &str) {
        let name = name.as_bytes();
        let shared = self.last.iter().zip(name).take_while(|(left, right)| left == right).count();
        let (_, rest) = name.split_at(shared);
        push_varint(&mut self.shared, shared as u64);
        self.text.extend_from_slice(rest);
        self.text.push(SEPARATOR);
        self.last.truncate(shared);
        self.last.extend_from_slice(rest);
        self.count += 1;
    }

    /// Writes the block to `bytes`, replacing its contents.
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.clear();
        bytes.extend_from_slice(&self.shared);
        bytes.extend_from_slice(&self.text);
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    pub(super) fn clear(&mut self) {
        self.shared.clear();
        self.text.clear();
        self.last.clear();
        self.count = 0;
    }
}

/// Decodes the names of a block in sequence. Its functions return `None` if the bytes are not a valid block.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    name: Vec<u8>,
    shared_offset: usize,
    text_start: usize,
    text_offset: usize,
    /// Number of names decoded.
    decoded: u32,
}

impl Decoder {
    /// Starts with a block of `count` names.
    pub(super) fn start(&mut self, block: &[u8], count: u32) -> Option<()> {
        self.text_start = length_of_varints(block, count as usize)?;
        self.rewind();
        Some(())
    }

    fn rewind(&mut self) {
        self.name.clear();
        (self.shared_offset, self.text_offset, self.decoded) = (0, self.text_start, 0);
    }

    /// The name in a slot.
    pub(super) fn seek(&mut self, block: &[u8], slot: u32) -> Option<&str> {
        if self.decoded > slot + 1 {
            self.rewind();
        }
        while self.decoded <= slot {
            self.step(block)?;
        }
        std::str::from_utf8(&self.name).ok()
    }

    /// The bytes of the next name.
    pub(super) fn step(&mut self, block: &[u8]) -> Option<&[u8]> {
        let mut numbers = block.get(self.shared_offset..self.text_start)?;
        let before = numbers.len();
        let shared = usize::try_from(take_varint(&mut numbers)?).ok()?;
        let text = block.get(self.text_offset..)?;
        let rest = text.get(..memchr::memchr(SEPARATOR, text)?)?;
        if shared > self.name.len() || shared + rest.len() > NAME_BYTES_MAX {
            return None;
        }
        self.name.truncate(shared);
        self.name.extend_from_slice(rest);
        self.shared_offset += before - numbers.len();
        self.text_offset += rest.len() + 1;
        self.decoded += 1;
        Some(&self.name)
    }
}
