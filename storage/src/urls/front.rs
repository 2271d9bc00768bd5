//! Front coding: a name is stored as how many bytes it shares with the one before it, and the bytes after them.
//!
//! Per name: shared bytes (varint), further bytes (varint), those bytes. The first name of a block shares nothing.

use crate::checkpoint::{push_varint, take_varint};

/// Collects the names of one block.
#[derive(Debug, Default)]
pub(super) struct FrontCoder {
    bytes: Vec<u8>,
    last: Vec<u8>,
    count: u32,
}

impl FrontCoder {
    /// Goes on with a block that has `count` names; `None` when it has not.
    pub(super) fn resume(bytes: Vec<u8>, count: u32) -> Option<Self> {
        let mut last = Vec::new();
        if let Some(slot) = count.checked_sub(1) {
            let mut progress = Progress::default();
            last.extend_from_slice(progress.advance(&bytes, slot)?.as_bytes());
            if progress.offset != bytes.len() {
                return None;
            }
        } else if !bytes.is_empty() {
            return None;
        }
        Some(Self { bytes, last, count })
    }

    pub(super) fn push(&mut self, name: &str) {
        let name = name.as_bytes();
        let shared = self.last.iter().zip(name).take_while(|(left, right)| left == right).count();
        let (_, rest) = name.split_at(shared);
        push_varint(&mut self.bytes, shared as u64);
        push_varint(&mut self.bytes, rest.len() as u64);
        self.bytes.extend_from_slice(rest);
        self.last.truncate(shared);
        self.last.extend_from_slice(rest);
        self.count += 1;
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.last.clear();
        self.count = 0;
    }
}

/// How far a block has been decoded.
#[derive(Debug, Default)]
pub(super) struct Progress {
    name: Vec<u8>,
    offset: usize,
    /// Names decoded.
    count: u32,
}

impl Progress {
    /// The name in a slot; starts from the front again when that lies behind. `None` when the bytes are no such block.
    pub(super) fn advance(&mut self, raw: &[u8], slot: u32) -> Option<&str> {
        if self.count > slot + 1 {
            *self = Self { name: std::mem::take(&mut self.name), offset: 0, count: 0 };
        }
        while self.count <= slot {
            self.step(raw)?;
        }
        std::str::from_utf8(&self.name).ok()
    }

    fn step(&mut self, raw: &[u8]) -> Option<()> {
        let mut bytes = raw.get(self.offset..)?;
        let shared = take_varint(&mut bytes)? as usize;
        let rest = take_varint(&mut bytes)? as usize;
        if shared > self.name.len() || (self.count == 0 && shared > 0) {
            return None;
        }
        let rest = bytes.get(..rest)?;
        self.name.truncate(shared);
        self.name.extend_from_slice(rest);
        self.offset = raw.len() - bytes.len() + rest.len();
        self.count += 1;
        Some(())
    }
}

/// The names of a block in order.
#[derive(Debug)]
pub(super) struct Names<'a> {
    raw: &'a [u8],
    progress: Progress,
}

impl<'a> Names<'a> {
    pub(super) fn new(raw: &'a [u8]) -> Self {
        Self { raw, progress: Progress::default() }
    }

    /// The next name; `None` when there is no whole one left.
    pub(super) fn next_name(&mut self) -> Option<&str> {
        self.progress.step(self.raw)?;
        std::str::from_utf8(&self.progress.name).ok()
    }
}
