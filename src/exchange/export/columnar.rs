//! An index with the columns of Common Crawl's (cc-index-table, `cc-index-schema-flat.avsc`), as Parquet: DuckDB, Spark and
//! pandas ask it the queries that they ask Common Crawl.
//!
//! One row a capture that something answered, in the order of the segments. `warc_filename` is a segment of this archive.
//! What is not known is null. A revisit has the type and the language of what it stands for; `fetch_status` is 304 where the
//! server said so. Digests carry their algorithm, and `crawl` and `subset`, which Common Crawl has as folders,
//! are columns.

mod columns;
mod file;
mod languages;
mod original;
mod row;
mod thrift;

use std::io::Write;

use archive_storage::Store;
use rayon::prelude::*;

use self::file::ParquetFile;
use self::original::{Original, Originals};
use self::row::Row;
use super::walk::{Unit, walk};
use super::{ExportError, Exported, Selection, lost};

/// Rows that are written together.
const ROWS_PER_GROUP: usize = 100_000;

/// Captures whose rows are made at the same time, on as many threads as there are.
const BATCH: usize = 256;

/// Writes the index of a selection.
pub(super) fn write(
    store: &Store,
    selection: &Selection,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported, ExportError> {
    let mut file = ParquetFile::begin(out).map_err(lost)?;
    let name = store.path().canonicalize().unwrap_or_else(|_| store.path().to_owned());
    let crawl = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (mut batch, mut rows, mut exported) = (Vec::new(), Vec::new(), Exported::default());
    let mut flush = |batch: &mut Vec<_>, rows: &mut Vec<Row>, is_last: bool| {
        let made: Vec<Row> = batch
            .par_drain(..)
            .filter_map(|(segment, file, records, original): (u32, String, Vec<_>, Option<Original>)| {
                Row::of(&records, original.as_ref(), segment, &file, &crawl)
            })
            .collect();
        exported.rows += made.len() as u64;
        rows.extend(made);
        if rows.len() >= ROWS_PER_GROUP || is_last && !rows.is_empty() {
            file.write_group(rows).map_err(lost)?;
            rows.clear();
        }
        progress(exported.rows);
        Ok::<(), ExportError>(())
    };
    let mut originals = Originals::default();
    walk(store, selection, &mut |segment, file, unit| {
        if let Unit::Capture(records) = unit {
            let original = match records.first() {
                Some(main) => originals.of(store, main)?,
                None => None,
            };
            batch.push((segment.0, file.to_owned(), records, original));
        }
        if batch.len() >= BATCH { flush(&mut batch, &mut rows, false) } else { Ok(()) }
    })?;
    flush(&mut batch, &mut rows, true)?;
    file.finish().map_err(lost)?;
    Ok(exported)
}
