//! A Parquet table with the columns of Common Crawl's index (cc-index-table, `cc-index-schema-flat.avsc`), so that
//! DuckDB, Spark and pandas can run the same queries as on Common Crawl. Columns of our own follow: titles, importance,
//! ratings and, on request, texts.
//!
//! There is one row for each capture with a response, in the order of the segments. `warc_filename` is a segment of
//! this archive. Unknown values are null. A revisit has the type, language and title of its original and, if the server
//! reported no modification, its status; `revisit` marks such rows. Digests include the name of their algorithm.
//! `crawl` and `subset`, which are folders in Common Crawl, are columns.

mod columns;
mod file;
mod languages;
mod original;
mod page;
mod row;
mod thrift;

use std::io::{BufReader, Write};

use archive_base::access::Access;
use archive_books::change;
use archive_books::search::TEXT_BYTES_MAX;
use archive_storage::warc::{Record, RecordType, split};
use archive_storage::{Capture, SegmentId, Store};
use bytes::Bytes;
use rayon::prelude::*;

use self::columns::columns;
use self::file::ParquetFile;
use self::original::{Originals, capture_of};
use self::page::{Known, Pages};
use self::row::{Row, RowContext};
use super::rows::{ExportRows, RowPieces, RowStop};
use super::walk::{LongContents, START, are_description, walk};
use super::{ExportError, ExportPart, Exported, Selection, lost};

/// Maximum number of rows in a row group, and of bytes of their texts.
const ROWS_PER_GROUP: usize = 100_000;
const TEXT_BYTES_PER_GROUP: usize = 64 << 20;

/// Number of captures whose rows are built in parallel.
const BATCH: usize = 256;

/// Maximum bytes of the texts of a batch.
const TEXT_BYTES_PER_BATCH: usize = 32 << 20;

/// Writes one table of all selections.
pub(super) fn write(
    parts: &[ExportPart<'_>],
    with_text: bool,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported, ExportError> {
    let mut table = CaptureTable {
        file: ParquetFile::begin(out, columns(with_text)).map_err(lost)?,
        rows: Vec::new(),
        text_bytes: 0,
        exported: Exported::default(),
    };
    for part in parts {
        let mut add = |rows| {
            table.add(rows)?;
            progress(table.exported.rows);
            Ok::<_, ExportError>(())
        };
        match part {
            ExportPart::Folder(store, selection) => {
                each_batch((store, selection), START, with_text, &mut |_, rows| add(rows))?;
            }
            ExportPart::Node(sender) => {
                let wanted = if with_text { ExportRows::Texts } else { ExportRows::Captures };
                sender.send(wanted, &mut |piece| {
                    let rows = serde_json::Deserializer::from_reader(BufReader::new(piece));
                    for rows in rows.into_iter() {
                        add(rows.map_err(|_| sender.senseless("these are no captures"))?)?;
                    }
                    Ok::<_, ExportError>(())
                })?;
            }
        }
    }
    table.write_group()?;
    progress(table.exported.rows);
    table.file.finish().map_err(lost)?;
    Ok(table.exported)
}

/// Sends rows in batches, each a JSON list.
pub(super) fn send(
    part: (&Store, &Selection),
    from: (SegmentId, u64),
    with_text: bool,
    out: &mut RowPieces<'_>,
) -> Result<(), RowStop> {
    each_batch(part, from, with_text, &mut |place, rows| {
        out.begin(place)?;
        let rows = serde_json::to_vec(&rows).map_err(|error| lost(error.into()))?;
        Ok(out.add(&rows)?)
    })
}

/// Calls `take` with the rows of an archive from a position on, in batches, each with the position of its first
/// capture.
fn each_batch<E: From<ExportError>>(
    (store, selection): (&Store, &Selection),
    from: (SegmentId, u64),
    with_text: bool,
    take: &mut dyn FnMut((SegmentId, u64), Vec<Row>) -> Result<(), E>,
) -> Result<(), E> {
    let name = store.path().canonicalize().unwrap_or_else(|_| store.path().to_owned());
    let crawl = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (mut originals, pages) = (Originals::default(), Pages::open(store)?);
    let (mut batch, mut texts, mut place) = (Vec::new(), 0, from);
    let mut flush = |batch: &mut Vec<(Vec<Record>, RowContext)>, place| {
        let made = batch.par_drain(..).filter_map(|(records, context)| Row::of(&records, context, &crawl));
        take(place, made.collect())
    };
    walk(store, selection, from, LongContents::Spooled, &mut |segment, file, mut records| {
        if are_description(&records) {
            return Ok(());
        }
        if batch.is_empty() {
            place = (segment, records.first().map_or(0, |main| main.offset));
        }
        let capture = records.first().map(|main| capture_of(store.state(), main)).transpose();
        let capture = capture.map_err(ExportError::from)?.flatten();
        let (mut original, mut page, mut text) = (None, Known::default(), None);
        if let Some(capture) = &capture {
            original = originals.of(store, capture).map_err(ExportError::from)?;
            page = pages.of(capture.url)?;
            text = if with_text { text_of(store, capture)? } else { None };
        }
        texts += text.as_ref().map_or(0, String::len);
        // A row is made from heads and metadata; contents of a whole batch would take much memory.
        for record in &mut records {
            if record.header.record_type() != RecordType::Metadata {
                record.content = Bytes::copy_from_slice(&split(&record.content).0);
                record.rest = None;
            }
        }
        batch.push((records, RowContext { original, page, text, segment: segment.0, file: file.to_owned() }));
        if batch.len() < BATCH && texts < TEXT_BYTES_PER_BATCH {
            return Ok(());
        }
        texts = 0;
        flush(&mut batch, place)
    })?;
    if batch.is_empty() { Ok(()) } else { flush(&mut batch, place) }
}

/// Returns the text of a capture that has its own payload.
fn text_of(store: &Store, capture: &Capture) -> Result<Option<String>, ExportError> {
    if capture.original.is_some() {
        return Ok(None);
    }
    // A damaged record leaves its row without a text.
    let (mut text, _) = change::text_of(store, &Access::unlimited(), capture).unwrap_or_default();
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// A table that is being written.
struct CaptureTable<'a> {
    file: ParquetFile<'a>,
    rows: Vec<Row>,
    text_bytes: usize,
    exported: Exported,
}

impl CaptureTable<'_> {
    fn add(&mut self, made: Vec<Row>) -> Result<(), ExportError> {
        self.exported.rows += made.len() as u64;
        self.text_bytes += made.iter().filter_map(|row| row.text.as_ref()).map(String::len).sum::<usize>();
        self.rows.extend(made);
        if self.rows.len() >= ROWS_PER_GROUP || self.text_bytes >= TEXT_BYTES_PER_GROUP {
            self.write_group()?;
        }
        Ok(())
    }

    fn write_group(&mut self) -> Result<(), ExportError> {
        if !self.rows.is_empty() {
            self.file.write_group(&self.rows).map_err(lost)?;
            self.rows.clear();
            self.text_bytes = 0;
        }
        Ok(())
    }
}
