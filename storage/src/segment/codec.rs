//! Compression and decompression of whole records.
//!
//! zstd: every frame has its content size and a checksum, and the dictionary id if the segment has a dictionary, as the
//! IIPC proposal requires. A record is one frame. A record over [`FRAME_BYTES_MAX`] is split into several frames, with
//! the head in a frame of its own, so that a reader never needs much memory for one frame. gzip: one member per record.

use std::io;
use std::path::Path;

use bytes::Bytes;
use flate2::{Compress, Compression, FlushCompress, Status};
use serde::{Deserialize, Serialize};
use zstd::zstd_safe::{self, CCtx, CParameter, DictAttachPref};

use super::error::SegmentError;
use crate::backend::Spool;

/// How segments are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Codec {
    /// `.warc.zst`: small and fast, with dictionaries; few other tools read it yet.
    #[default]
    Zstd,
    /// `.warc.gz`: every WARC tool reads it.
    Gzip,
}

impl Codec {
    /// Returns the extension of a segment's file name.
    #[must_use]
    pub fn extension(self) -> &'static str {
        match self {
            Self::Zstd => ".warc.zst",
            Self::Gzip => ".warc.gz",
        }
    }
}

/// Bytes of a record above which it is split into several zstd frames: the window size that every reader must support.
pub const FRAME_BYTES_MAX: usize = 8 << 20;
/// Bytes of content in each of these frames.
const FRAME_BYTES: usize = 4 << 20;

/// Largest capacity that a compressor keeps for each of its buffers: there are several compressors, and long records
/// are rare.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Line ends after a record's content.
pub(super) const RECORD_END: &[u8] = b"\r\n\r\n";

/// zstd level at which a dictionary needs a larger hash table and longer matches. By default zstd uses 13 bits, which
/// hold the positions of a fifth of a trained dictionary. Pages of three sites take 1.9 to 2.6 % less with these
/// values, in the same time; with 15 bits they take another 1.5 % less, but the table is copied for each record.
const FASTEST_LEVEL: i32 = 1;
const TABLE_BITS: u32 = 14;
const MATCH_BYTES_MIN: u32 = 7;

/// Compression state of one thread; reused, because setting it up costs more than compressing a small record.
pub struct Compressor {
    coder: Coder,
    /// The record in one piece: one-shot compression beats streaming, even with the copy.
    plain: Vec<u8>,
    packed: Vec<u8>,
}

enum Coder {
    Zstd(CCtx<'static>),
    Gzip(Compress),
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
    }
}

impl Compressor {
    /// Creates a compressor at a level: 1 to 19 for zstd, 0 to 9 for gzip; other values are clamped.
    ///
    /// # Errors
    /// When there is no memory, or the dictionary is invalid.
    pub fn new(codec: Codec, level: i32, dictionary: Option<&[u8]>) -> Result<Self, SegmentError> {
        let coder = match codec {
            Codec::Zstd => Coder::Zstd(zstd_context(level.clamp(1, 19), dictionary)?),
            Codec::Gzip => Coder::Gzip(Compress::new_gzip(Compression::new(level.clamp(0, 9) as u32), 15)),
        };
        Ok(Self { coder, plain: Vec::new(), packed: Vec::new() })
    }

    /// Makes zstd search the dictionary's tables in place. By default it copies them for each record over some
    /// kilobytes, which takes longer when the dictionary has megabytes.
    ///
    /// # Errors
    /// When zstd refuses.
    pub(super) fn attached(mut self) -> Result<Self, SegmentError> {
        if let Coder::Zstd(context) = &mut self.coder {
            let attach = CParameter::ForceAttachDict(DictAttachPref::ForceAttach);
            context.set_parameter(attach).map_err(compression)?;
        }
        Ok(self)
    }

    /// Compresses a record, including its two final line ends, and appends it to `output`.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn record(&mut self, head: &[u8], content: &[u8], output: &mut Vec<u8>) -> Result<(), SegmentError> {
        let length = head.len() + content.len() + RECORD_END.len();
        let is_long = length > FRAME_BYTES_MAX && matches!(self.coder, Coder::Zstd(_));
        if !is_long {
            return self.frame(&[head, content, RECORD_END], output);
        }
        self.frame(&[head], output)?;
        let mut frames = content.chunks(FRAME_BYTES).peekable();
        while let Some(frame) = frames.next() {
            let end = if frames.peek().is_none() { RECORD_END } else { &[] };
            self.frame(&[frame, end], output)?;
        }
        Ok(())
    }

    /// Compresses a record, piece by piece, whose content is `beginning` followed by a spool.
    pub(super) fn spooled_record(
        &mut self,
        head: &[u8],
        beginning: &[u8],
        body: &Spool,
        output: &mut Spool,
    ) -> Result<(), SpoolingError> {
        self.pieces(output, |put| {
            put(head)?;
            put(beginning)?;
            body.pieces(FRAME_BYTES, &mut *put)?;
            put(RECORD_END)
        })
    }

    /// Compresses a long record that `give` passes piece by piece, including head and final line ends. Each piece
    /// becomes a zstd frame; for gzip, all pieces become one member.
    pub(super) fn pieces(
        &mut self,
        output: &mut Spool,
        give: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<(), SpoolingError>) -> Result<(), SpoolingError>,
    ) -> Result<(), SpoolingError> {
        let mut packed = Vec::new();
        if let Coder::Gzip(deflater) = &mut self.coder {
            deflater.reset();
            let mut put = |piece: &[u8], flush| -> Result<(), SpoolingError> {
                packed.clear();
                deflate(deflater, piece, flush, &mut packed)?;
                Ok(output.append(&packed)?)
            };
            give(&mut |piece| put(piece, FlushCompress::None))?;
            return put(&[], FlushCompress::Finish);
        }
        give(&mut |piece| {
            packed.clear();
            self.frame(&[piece], &mut packed)?;
            Ok(output.append(&packed)?)
        })
    }

    fn frame(&mut self, parts: &[&[u8]], output: &mut Vec<u8>) -> Result<(), SegmentError> {
        self.plain.clear();
        for part in parts {
            self.plain.extend_from_slice(part);
        }
        match &mut self.coder {
            Coder::Zstd(context) => {
                self.packed.clear();
                self.packed.reserve(zstd_safe::compress_bound(self.plain.len()));
                context.compress2(&mut self.packed, &self.plain).map_err(compression)?;
                output.extend_from_slice(&self.packed);
            }
            Coder::Gzip(deflater) => gzip_member(deflater, &self.plain, output)?,
        }
        for buffer in [&mut self.plain, &mut self.packed] {
            if buffer.capacity() > KEPT_BYTES_MAX {
                *buffer = Vec::new();
            }
        }
        Ok(())
    }
}

fn zstd_context(level: i32, dictionary: Option<&[u8]>) -> Result<CCtx<'static>, SegmentError> {
    let mut context = CCtx::try_create().ok_or_else(|| SegmentError::Compression("out of memory".into()))?;
    for parameter in [
        CParameter::CompressionLevel(level),
        CParameter::ChecksumFlag(true),
        CParameter::ContentSizeFlag(true),
    ] {
        context.set_parameter(parameter).map_err(compression)?;
    }
    if let Some(dictionary) = dictionary {
        if level == FASTEST_LEVEL {
            for parameter in [CParameter::HashLog(TABLE_BITS), CParameter::MinMatch(MATCH_BYTES_MIN)] {
                context.set_parameter(parameter).map_err(compression)?;
            }
        }
        context.load_dictionary(dictionary).map_err(compression)?;
    }
    Ok(context)
}

fn compression(code: usize) -> SegmentError {
    SegmentError::Compression(zstd_safe::get_error_name(code).to_owned())
}

fn gzip_member(deflater: &mut Compress, input: &[u8], output: &mut Vec<u8>) -> Result<(), SegmentError> {
    deflater.reset();
    deflate(deflater, input, FlushCompress::Finish, output)
}

/// Compresses all of `input`; [`FlushCompress::Finish`] also ends the member.
fn deflate(
    deflater: &mut Compress,
    mut input: &[u8],
    flush: FlushCompress,
    output: &mut Vec<u8>,
) -> Result<(), SegmentError> {
    loop {
        output.reserve(input.len() / 4 + 1024);
        let before = deflater.total_in();
        let status = deflater
            .compress_vec(input, output, flush)
            .map_err(|error| SegmentError::Compression(error.to_string()))?;
        let taken = (deflater.total_in() - before) as usize;
        input = input.get(taken..).unwrap_or_default();
        let is_done = match flush {
            FlushCompress::Finish => status == Status::StreamEnd,
            // The output has room left, so the deflater has nothing more to write.
            _ => input.is_empty() && output.len() < output.capacity(),
        };
        if is_done {
            return Ok(());
        }
    }
}

/// Why a spool could not be compressed into another spool.
#[derive(Debug, thiserror::Error)]
pub(super) enum SpoolingError {
    #[error(transparent)]
    Disk(#[from] io::Error),
    #[error(transparent)]
    Segment(#[from] SegmentError),
}

impl SpoolingError {
    /// Adds the action and the path to an error of the disk.
    pub(super) fn at(self, action: &'static str, path: &Path) -> SegmentError {
        match self {
            Self::Disk(source) => SegmentError::Io { action, path: path.to_owned(), source },
            Self::Segment(error) => error,
        }
    }
}

/// Splits the bytes of a record into head and content.
pub(super) fn cut(record: &Bytes) -> Result<(crate::warc::RecordHeader, Bytes), String> {
    let (header, length) = crate::warc::RecordHeader::parse(record).map_err(|error| error.to_string())?;
    let content_length = header
        .content_length()
        .and_then(|content_length| usize::try_from(content_length).ok())
        .and_then(|content_length| content_length.checked_add(length))
        .filter(|end| *end <= record.len())
        .ok_or("the record is shorter than its Content-Length")?;
    Ok((header, record.slice(length..content_length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_level_finds_what_stands_early_in_a_trained_dictionary() {
        let dictionary: String = (0..7000_u32)
            .map(|number| format!("{:016x}", xxhash_rust::xxh3::xxh3_64(&number.to_le_bytes())))
            .collect();
        // Far apart, so that each piece is matched on its own.
        let content: String = (0..100).map(|piece| &dictionary[piece * 37 % 100 * 160..][..64]).collect();
        let mut packed = Vec::new();
        let mut compressor =
            Compressor::new(Codec::Zstd, FASTEST_LEVEL, Some(dictionary.as_bytes())).unwrap();
        compressor.record(&[], content.as_bytes(), &mut packed).unwrap();
        assert!(packed.len() < content.len() / 3, "{} of {} bytes", packed.len(), content.len());
    }
}
