//! An index with the columns of Common Crawl's (cc-index-table, `cc-index-schema-flat.avsc`), as Parquet: DuckDB, Spark and
//! pandas ask it the queries that they ask Common Crawl. Columns of ours follow: titles, importance, ratings, texts if wanted.
//!
//! One row a capture that something answered, in the order of the segments. `warc_filename` is a segment of this archive.
//! What is not known is null. A revisit has the type, language and title of what it stands for, and, where the server said that nothing
//! was modified, its status; `revisit` says so. Digests carry their algorithm, and `crawl` and `subset`, which Common Crawl has as
//! folders, are columns.

mod columns;
mod file;
mod languages;
mod original;
mod page;
mod row;
mod thrift;

use std::io::Write;

use archive_storage::warc::Record;
use archive_storage::{Capture, Store};
use rayon::prelude::*;

use self::columns::columns;
use self::file::ParquetFile;
use self::original::{Originals, capture_of};
use self::page::{Known, Pages};
use self::row::{Context, Row};
use super::walk::{Unit, walk};
use super::{ExportError, Exported, Part, lost};
use crate::change;
use crate::search::TEXT_BYTES_MAX;

/// Rows that are written together, and bytes of their texts.
const ROWS_PER_GROUP: usize = 100_000;
const TEXT_BYTES_PER_GROUP: usize = 64 << 20;

/// Captures whose rows are made at the same time, on as many threads as there are.
const BATCH: usize = 256;

/// Writes one index of all selections.
pub(super) fn write(
    parts: &[Part<'_>],
    with_text: bool,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported, ExportError> {
    let mut table = Table {
        crawl: String::new(),
        file: ParquetFile::begin(out, columns(with_text)).map_err(lost)?,
        batch: Vec::new(),
        rows: Vec::new(),
        text_bytes: 0,
        exported: Exported::default(),
    };
    parts.iter().try_for_each(|part| write_part(part, with_text, &mut table, progress))?;
    table.write_group()?;
    progress(table.exported.rows);
    table.file.finish().map_err(lost)?;
    Ok(table.exported)
}

fn write_part(
    (store, selection): &Part<'_>,
    with_text: bool,
    table: &mut Table<'_>,
    progress: &mut dyn FnMut(u64),
) -> Result<(), ExportError> {
    let name = store.path().canonicalize().unwrap_or_else(|_| store.path().to_owned());
    table.crawl = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (mut originals, pages) = (Originals::default(), Pages::open(store)?);
    walk(store, selection, &mut |segment, file, unit| {
        let Unit::Capture(records) = unit else { return Ok(()) };
        let capture = records.first().map(|main| capture_of(store.state(), main)).transpose()?.flatten();
        let (mut original, mut page, mut text) = (None, Known::default(), None);
        if let Some(capture) = &capture {
            original = originals.of(store, capture)?;
            page = pages.of(capture.url)?;
            text = if with_text { text_of(store, capture)? } else { None };
        }
        table
            .batch
            .push((records, Context { original, page, text, segment: segment.0, file: file.to_owned() }));
        if table.batch.len() >= BATCH {
            table.flush()?;
            progress(table.exported.rows);
        }
        Ok(())
    })?;
    table.flush()
}

/// The text of a capture that has its own payload.
fn text_of(store: &Store, capture: &Capture) -> Result<Option<String>, ExportError> {
    if capture.original.is_some() {
        return Ok(None);
    }
    let mut text = change::text_of(store, capture)?;
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// A table that is being written.
struct Table<'a> {
    crawl: String,
    file: ParquetFile<'a>,
    batch: Vec<(Vec<Record>, Context)>,
    rows: Vec<Row>,
    text_bytes: usize,
    exported: Exported,
}

impl Table<'_> {
    /// Makes rows of the batch.
    fn flush(&mut self) -> Result<(), ExportError> {
        let crawl = &self.crawl;
        let made =
            self.batch.par_drain(..).filter_map(|(records, context)| Row::of(&records, context, crawl));
        let made: Vec<Row> = made.collect();
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
