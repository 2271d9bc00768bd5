//! The records of a capture: reading, compressing and comparing them.

use std::io;

use bytes::Bytes;
use xxhash_rust::xxh3::Xxh3;

use super::super::codec::{Codec, Compressor, RECORD_END, SpoolingError, cut};
use super::super::encode::CompressedGroup;
use super::super::error::{IoContext, SegmentError};
use super::super::group::{RecordBlock, RecordContent};
use super::super::read::SegmentReader;
use super::super::replay::{Assembler, RecordRole, ReplayedCapture};
use super::raw::{ByteStretch, Raw, RawReader};
use crate::backend::{Disk, Spool};
use crate::warc::{Record, head_length};

/// Compressed size in percent above which a record is not worth much work.
const COMPRESSED_PERCENT_MAX: u64 = 85;

/// Compressors of one thread.
#[derive(Debug)]
pub(super) struct Packers {
    /// For records that shrink.
    pub well: Compressor,
    /// For records that hardly shrink, except for the head.
    pub quickly: Compressor,
}

impl Packers {
    /// Chooses the compressor for a record by its previous compressed length.
    fn fitting(&mut self, record: &Raw, packed: Option<u64>) -> &mut Compressor {
        let plain = record.length();
        let shrinks = packed.is_none_or(|packed| packed * 100 <= plain * COMPRESSED_PERCENT_MAX);
        if shrinks { &mut self.well } else { &mut self.quickly }
    }
}

/// Bytes of a long record that are parsed, as its beginning is enough.
const BEGINNING_BYTES: usize = 1 << 20;

/// The records of a capture before compression.
pub(super) struct RawRecords<'a> {
    reader: Option<RawReader<'a>>,
    /// Records with their compressed lengths, if they were compressed.
    records: Vec<(Raw, Option<u64>)>,
    /// Index of the main record, by which the capture is found.
    main: usize,
}

impl<'a> RawRecords<'a> {
    /// Reads the records. `main` is the offset of the main record.
    pub(super) fn read(
        reader: &'a SegmentReader,
        stretch: ByteStretch,
        main: u64,
    ) -> Result<Self, SegmentError> {
        let mut reader = RawReader::new(reader, stretch)?;
        let (mut place, mut position, mut records) = (None, stretch.offset, Vec::new());
        for (record, length) in reader.records()? {
            if position == main {
                place = Some(records.len());
            }
            position += length;
            records.push((record, Some(length)));
        }
        let what = "no record starts here".to_owned();
        let missing = SegmentError::Corrupted { segment: stretch.segment, offset: main, what };
        Ok(Self { reader: Some(reader), records, main: place.ok_or(missing)? })
    }

    /// Wraps newly made records.
    pub(super) fn made(blocks: &[RecordBlock<'_>], main: usize) -> io::Result<Self> {
        let raw = |block: &RecordBlock<'_>| {
            let mut raw = block.head.clone().into_bytes();
            match &block.content {
                RecordContent::Bytes(content) => raw.extend_from_slice(content),
                RecordContent::Spooled(beginning, rest) => {
                    raw.extend_from_slice(beginning);
                    raw.extend_from_slice(&rest.beginning(usize::MAX)?);
                }
            }
            raw.extend_from_slice(RECORD_END);
            Ok((Raw::Short(raw), None))
        };
        let records: io::Result<Vec<_>> = blocks.iter().map(raw).collect();
        Ok(Self { reader: None, records: records?, main })
    }

    fn each_piece(
        reader: &mut Option<RawReader<'a>>,
        record: &Raw,
        take: &mut dyn FnMut(&[u8]) -> Result<(), SegmentError>,
    ) -> Result<(), SegmentError> {
        match (record, reader) {
            (Raw::Short(bytes), _) => take(bytes),
            (Raw::Long(stretch, _), Some(reader)) => reader.pieces(*stretch, take),
            // Newly made records are never long.
            (Raw::Long(stretch, _), None) => Err(SegmentError::Missing(stretch.segment)),
        }
    }

    /// Returns the records in their compressed form; only for records that were read.
    pub(super) fn as_they_lie(&self, stretch: ByteStretch) -> Result<CompressedGroup, SegmentError> {
        let reader = self.reader.as_ref().ok_or(SegmentError::Missing(stretch.segment))?;
        let lengths: Vec<u32> =
            self.records.iter().map(|(_, packed)| packed.unwrap_or_default() as u32).collect();
        let (before, rest) = lengths.split_at(self.main.min(lengths.len()));
        Ok(CompressedGroup {
            generation: 0,
            spooled: None,
            bytes: reader.bytes(stretch)?,
            main: (before.iter().sum(), rest.first().copied().unwrap_or_default()),
            records: lengths.len() as u32,
            plain_length: self.records.iter().map(|(record, _)| record.length()).sum(),
            facts: None,
        })
    }

    /// Returns a digest of all their bytes: XXH3 with 128 bits.
    pub(super) fn digest(&mut self) -> Result<u128, SegmentError> {
        let mut hasher = Xxh3::new();
        let Self { reader, records, .. } = self;
        for (record, _) in records {
            Self::each_piece(reader, record, &mut |piece| {
                hasher.update(piece);
                Ok(())
            })?;
        }
        Ok(hasher.digest128())
    }

    /// Assembles the capture; a long record contributes only its beginning.
    pub(super) fn capture(&mut self, stretch: ByteStretch) -> Result<Box<ReplayedCapture>, SegmentError> {
        let Self { reader, records, .. } = self;
        let broken =
            |what: String| SegmentError::Corrupted { segment: stretch.segment, offset: stretch.offset, what };
        let mut assembler = Assembler::default();
        for (raw, _) in records {
            let mut bytes = Vec::new();
            Self::each_piece(reader, raw, &mut |piece| {
                let is_short = matches!(raw, Raw::Short(_));
                let room = if is_short { usize::MAX } else { BEGINNING_BYTES.saturating_sub(bytes.len()) };
                bytes.extend_from_slice(piece.get(..piece.len().min(room)).unwrap_or_default());
                Ok(())
            })?;
            let bytes = Bytes::from(bytes);
            let (header, content) = match raw {
                Raw::Short(_) => cut(&bytes).map_err(broken)?,
                Raw::Long(..) => {
                    let (header, length) = crate::warc::RecordHeader::parse(&bytes)
                        .map_err(|error| broken(error.to_string()))?;
                    (header, bytes.slice(length..))
                }
            };
            let record = Record { header, offset: 0, length: 0, content, rest: None };
            if let RecordRole::Capture(capture) = assembler.take(stretch.segment, record) {
                return Ok(capture);
            }
        }
        Err(broken("these records do not form a capture".to_owned()))
    }

    /// Compresses the records as a group of a new segment.
    pub(super) fn pack(
        &mut self,
        packers: &mut Packers,
        codec: Codec,
        spools: (&dyn Disk, &std::path::Path),
    ) -> Result<CompressedGroup, SegmentError> {
        let Self { reader, records, main } = self;
        let (mut bytes, mut spooled, mut plain_length) = (Vec::new(), None, 0);
        let mut places = Vec::with_capacity(records.len());
        for (number, (record, packed)) in records.iter().enumerate() {
            let start = bytes.len();
            let compressor = packers.fitting(record, *packed);
            match record {
                Raw::Short(raw) => {
                    plain_length += raw.len() as u64;
                    let head = head_length(raw).unwrap_or_default().min(raw.len());
                    let end = raw.len().saturating_sub(RECORD_END.len()).max(head);
                    let (head, content) = (raw.get(..head), raw.get(head..end));
                    compressor.record(head.unwrap_or_default(), content.unwrap_or_default(), &mut bytes)?;
                }
                Raw::Long(_, length) => {
                    plain_length += length;
                    let (disk, folder) = spools;
                    let mut spool = Spool::create(disk, folder).context("create", folder)?;
                    let packed = compressor.pieces(&mut spool, |put| {
                        let mut is_first = codec == Codec::Zstd;
                        Self::each_piece(reader, record, &mut |piece| {
                            let head = if std::mem::take(&mut is_first) { head_length(piece) } else { None };
                            let (head, rest) = piece.split_at(head.unwrap_or_default());
                            for part in [head, rest].into_iter().filter(|part| !part.is_empty()) {
                                put(part).map_err(|error| error.at("write to a file in", folder))?;
                            }
                            Ok(())
                        })
                        .map_err(SpoolingError::from)
                    });
                    packed.map_err(|error| error.at("write to a file in", folder))?;
                    if number == 0 {
                        spooled = Some(std::sync::Arc::new(spool));
                    } else {
                        bytes.extend(spool.beginning(usize::MAX).context("read", folder)?);
                    }
                }
            }
            places.push((start as u32, (bytes.len() - start) as u32));
        }
        let first = spooled.as_ref().map_or(0, |spool| spool.len());
        let main = match (places.get(*main).copied().unwrap_or_default(), *main) {
            (_, 0) if spooled.is_some() => (0, u32::try_from(first).unwrap_or(u32::MAX)),
            ((offset, length), _) => (offset + first as u32, length),
        };
        let records = records.len() as u32;
        Ok(CompressedGroup { generation: 0, spooled, bytes, main, records, plain_length, facts: None })
    }
}
