//! Stored records with the requested compression; the conversion is lossless in both directions.

use std::io::{self, BufReader, Write};
use std::path::Path;

use archive_storage::segment::{Codec, Compressor, Dictionary, SegmentError};
use archive_storage::warc::{Record, RecordReader, RecordType};
use archive_storage::{SegmentId, Store};
use rayon::prelude::*;

use super::rows::{ExportRows, RowPieces, RowSender, RowStop};
use super::walk::{LongContents, START, are_description, walk};
use super::{ExportError, ExportPart, Exported, Selection, lost};

/// Bytes of content that are compressed in parallel.
const BATCH_BYTES: usize = 16 << 20;

/// Number of records from which the dictionary of a zstd file is learned.
const LEARNED_MAX: usize = 1000;
/// Bytes of records above which a dictionary outweighs its own size.
const LEARNED_BYTES_MIN: usize = 1 << 20;

/// Default compression levels.
const GZIP_LEVEL: i32 = 6;
const ZSTD_LEVEL: i32 = 9;

/// The bytes after each record (WARC 1.1, section 4).
const RECORD_END: &[u8] = b"\r\n\r\n";

/// Maximum number of records of a capture that a node sends.
const RECORDS_MAX: usize = 1000;

/// Compression of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordPacking {
    /// No compression.
    Plain,
    /// One gzip member per record.
    Gzip,
    /// One zstd frame per record, with a dictionary learned from the first records if there are enough.
    Zstd,
}

impl RecordPacking {
    /// Returns the compression that the extension of a file asks for.
    pub(super) fn of(path: &Path) -> Self {
        let name = path.to_string_lossy().to_ascii_lowercase();
        if name.ends_with(".gz") {
            Self::Gzip
        } else if name.ends_with(".zst") {
            Self::Zstd
        } else {
            Self::Plain
        }
    }

    fn compressor(
        self,
        level: Option<i32>,
        dictionary: Option<&Dictionary>,
    ) -> Result<Option<Compressor>, SegmentError> {
        let dictionary = dictionary.map(Dictionary::as_bytes);
        match self {
            Self::Plain => Ok(None),
            Self::Gzip => Compressor::new(Codec::Gzip, level.unwrap_or(GZIP_LEVEL), None).map(Some),
            Self::Zstd => Compressor::new(Codec::Zstd, level.unwrap_or(ZSTD_LEVEL), dictionary).map(Some),
        }
    }
}

/// A capture in the new file.
pub(super) struct WrittenCapture<'a> {
    /// Its records, the main one first.
    pub(super) records: &'a [Record],
    /// Offset and length of its main record.
    pub(super) offset: u64,
    pub(super) length: u64,
}

/// Called for every capture with its location.
type EachCapture<'a> = dyn FnMut(&WrittenCapture<'_>) -> Result<(), ExportError> + 'a;

/// Writes all records, compressed at `level` if given. Calls `each` with the location of every capture.
pub(super) fn write(
    parts: &[ExportPart<'_>],
    (packing, level): (RecordPacking, Option<i32>),
    out: &mut dyn Write,
    each: &mut EachCapture<'_>,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported, ExportError> {
    let mut batch = RecordBatch {
        packing,
        level,
        dictionary: None,
        units: Vec::new(),
        bytes: 0,
        position: 0,
        exported: Exported::default(),
    };
    let mut add = |records| {
        batch.add(records);
        if batch.bytes >= BATCH_BYTES {
            batch.write(out, each)?;
            progress(batch.exported.rows);
        }
        Ok::<_, ExportError>(())
    };
    for part in parts {
        match part {
            ExportPart::Folder(store, selection) => {
                walk(store, selection, START, LongContents::Kept, &mut |_, _, records| add(records))?;
            }
            ExportPart::Node(sender) => receive(&**sender, &mut add)?,
        }
    }
    batch.write(out, each)?;
    progress(batch.exported.rows);
    Ok(batch.exported)
}

/// Sends the stored records.
pub(super) fn send(
    (store, selection): (&Store, &Selection),
    from: (SegmentId, u64),
    out: &mut RowPieces<'_>,
) -> Result<(), RowStop> {
    walk(store, selection, from, LongContents::Spooled, &mut |id, _, records| {
        out.begin((id, records.first().map_or(0, |first| first.offset)))?;
        for record in records {
            out.add(record.header.to_string().as_bytes())?;
            out.add(&record.content)?;
            if let Some(rest) = &record.rest {
                let add = |piece: &[u8]| {
                    out.add(piece).map_err(|error| match error {
                        ExportError::Lost(source) => source,
                        error => io::Error::other(error),
                    })
                };
                rest.each_piece(add).map_err(lost)?;
            }
            out.add(RECORD_END)?;
        }
        Ok(())
    })
}

/// Assembles the captures that a node sends.
fn receive(
    sender: &dyn RowSender,
    add: &mut dyn FnMut(Vec<Record>) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    let mut capture: Vec<Record> = Vec::new();
    let endless = || sender.senseless("a capture has no end");
    sender.send(ExportRows::Records, &mut |piece| {
        for record in RecordReader::new(BufReader::new(piece)) {
            let record = record.map_err(|_| sender.senseless("these are no records"))?;
            let record_type = record.header.record_type();
            let is_description = record_type == RecordType::Warcinfo;
            if capture.len() == RECORDS_MAX || is_description && !capture.is_empty() {
                return Err(endless());
            }
            capture.push(record);
            if is_description || record_type == RecordType::Metadata {
                add(std::mem::take(&mut capture))?;
            }
        }
        Ok(())
    })?;
    if capture.is_empty() { Ok(()) } else { Err(endless()) }
}

/// Captures that are compressed together.
struct RecordBatch {
    packing: RecordPacking,
    level: Option<i32>,
    dictionary: Option<Dictionary>,
    units: Vec<Vec<Record>>,
    bytes: usize,
    position: u64,
    exported: Exported,
}

impl RecordBatch {
    fn add(&mut self, records: Vec<Record>) {
        self.bytes += records.iter().map(|record| record.content.len() + 1024).sum::<usize>();
        self.units.push(records);
    }

    fn write(&mut self, out: &mut dyn Write, each: &mut EachCapture<'_>) -> Result<(), ExportError> {
        if self.packing == RecordPacking::Zstd && self.position == 0 {
            self.learn(out)?;
        }
        let compressor = || self.packing.compressor(self.level, self.dictionary.as_ref());
        let packed: Vec<(Vec<u8>, u64)> = self
            .units
            .par_iter()
            .map_init(compressor, |compressor, records| pack(compressor, records))
            .collect::<Result<_, _>>()?;
        for (records, (bytes, main_length)) in self.units.iter().zip(packed) {
            out.write_all(&bytes).map_err(lost)?;
            self.exported.records += records.len() as u64;
            if !are_description(records) {
                self.exported.rows += 1;
                each(&WrittenCapture { records, offset: self.position, length: main_length })?;
            }
            self.position += bytes.len() as u64;
        }
        self.units.clear();
        self.bytes = 0;
        Ok(())
    }

    /// Begins a file with a dictionary that is learned from the records of the batch.
    fn learn(&mut self, out: &mut dyn Write) -> Result<(), ExportError> {
        if self.bytes < LEARNED_BYTES_MIN {
            return Ok(());
        }
        let records: Vec<&Record> = self.units.iter().flatten().collect();
        let step = records.len().div_ceil(LEARNED_MAX).max(1);
        let plain: Vec<Vec<u8>> = records
            .into_iter()
            .step_by(step)
            .map(|record| [record.header.to_string().as_bytes(), &record.content].concat())
            .collect();
        self.dictionary = Dictionary::learned(plain.iter().map(Vec::as_slice))?;
        if let Some(dictionary) = &self.dictionary {
            let frame = dictionary.first_frame();
            out.write_all(&frame).map_err(lost)?;
            self.position = frame.len() as u64;
        }
        Ok(())
    }
}

/// Compresses records one after the other. Returns the bytes and the length of the first record.
fn pack(
    compressor: &mut Result<Option<Compressor>, SegmentError>,
    records: &[Record],
) -> Result<(Vec<u8>, u64), SegmentError> {
    let (mut bytes, mut first) = (Vec::new(), 0);
    for (number, record) in records.iter().enumerate() {
        let head = record.header.to_string();
        match compressor {
            Ok(Some(compressor)) => compressor.record(head.as_bytes(), &record.content, &mut bytes)?,
            Ok(None) => {
                bytes.extend_from_slice(head.as_bytes());
                bytes.extend_from_slice(&record.content);
                bytes.extend_from_slice(RECORD_END);
            }
            Err(error) => return Err(SegmentError::Compression(error.to_string())),
        }
        if number == 0 {
            first = bytes.len() as u64;
        }
    }
    Ok((bytes, first))
}
