//! A Parquet file of one flat table (<https://github.com/apache/parquet-format>): row groups with one chunk for every
//! column, each a gzip-compressed data page of plain values, followed by the metadata.
//!
//! The crate `parquet` could do this too, but it would bring a dozen dependencies and enable more features of shared
//! ones, to save about two hundred lines here. The tests check the result with DuckDB.

use std::io::{self, Write};

use archive_base::program;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::columns::{Cell, Column, ColumnType};
use super::row::Row;
use super::thrift::{Struct, varint};

/// First and last bytes of a file.
const MAGIC: &[u8; 4] = b"PAR1";

/// Values of the format's enumerations (parquet.thrift).
const DATA_PAGE: i32 = 0;
const ENCODING_PLAIN: i32 = 0;
const ENCODING_RLE: i32 = 3;
const CODEC_GZIP: i32 = 2;
const REQUIRED: i32 = 0;
const OPTIONAL: i32 = 1;

/// Version of the format; every reader supports 1.
const VERSION: i32 = 1;

/// A file that is being written.
pub(super) struct ParquetFile<'a> {
    out: &'a mut dyn Write,
    columns: &'static [Column],
    position: u64,
    rows: i64,
    groups: Vec<Struct>,
}

impl<'a> ParquetFile<'a> {
    /// Begins a file.
    pub(super) fn begin(out: &'a mut dyn Write, columns: &'static [Column]) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        Ok(Self { out, columns, position: MAGIC.len() as u64, rows: 0, groups: Vec::new() })
    }

    /// Writes rows as one row group.
    pub(super) fn write_group(&mut self, rows: &[Row]) -> io::Result<()> {
        let mut chunks = Vec::with_capacity(self.columns.len());
        let mut total = 0;
        for column in self.columns {
            let (chunk, bytes) = self.write_column(column, rows)?;
            chunks.push(chunk);
            total += bytes;
        }
        let group =
            Struct::default().structures(1, chunks.into_iter()).i64(2, total).i64(3, rows.len() as i64);
        self.groups.push(group);
        self.rows += rows.len() as i64;
        Ok(())
    }

    /// Writes a column of some rows. Returns its metadata and its bytes before compression.
    fn write_column(&mut self, column: &Column, rows: &[Row]) -> io::Result<(Struct, i64)> {
        let page = page(column, rows);
        let mut packer = GzEncoder::new(Vec::new(), Compression::default());
        packer.write_all(&page)?;
        let packed = packer.finish()?;
        let size = |bytes: &[u8]| i32::try_from(bytes.len()).map_err(|_| io::ErrorKind::FileTooLarge);
        let data_page = Struct::default()
            .i32(1, rows.len() as i32)
            .i32(2, ENCODING_PLAIN)
            .i32(3, ENCODING_RLE)
            .i32(4, ENCODING_RLE);
        let head = Struct::default()
            .i32(1, DATA_PAGE)
            .i32(2, size(&page)?)
            .i32(3, size(&packed)?)
            .structure(5, data_page)
            .end();
        let start = self.position as i64;
        self.out.write_all(&head)?;
        self.out.write_all(&packed)?;
        self.position += (head.len() + packed.len()) as u64;
        let plain_bytes = (head.len() + page.len()) as i64;
        let metadata = Struct::default()
            .i32(1, column.kind.physical())
            .numbers(2, &[ENCODING_PLAIN, ENCODING_RLE])
            .texts(3, &[column.name])
            .i32(4, CODEC_GZIP)
            .i64(5, rows.len() as i64)
            .i64(6, plain_bytes)
            .i64(7, (head.len() + packed.len()) as i64)
            .i64(9, start);
        Ok((Struct::default().i64(2, start).structure(3, metadata), plain_bytes))
    }

    /// Writes the metadata at the end of the file.
    pub(super) fn finish(self) -> io::Result<()> {
        let root = Struct::default().text(4, "cc_index").i32(5, self.columns.len() as i32);
        let schema: Vec<Struct> = std::iter::once(root).chain(self.columns.iter().map(element)).collect();
        let metadata = Struct::default()
            .i32(1, VERSION)
            .structures(2, schema.into_iter())
            .i64(3, self.rows)
            .structures(4, self.groups.into_iter())
            .text(6, &format!("archive version {}", program::VERSION))
            .end();
        self.out.write_all(&metadata)?;
        self.out.write_all(&(metadata.len() as u32).to_le_bytes())?;
        self.out.write_all(MAGIC)
    }
}

/// Returns a column's entry in the schema.
fn element(column: &Column) -> Struct {
    let repetition = if column.is_required { REQUIRED } else { OPTIONAL };
    let element = Struct::default().i32(1, column.kind.physical()).i32(3, repetition).text(4, column.name);
    let element = match column.kind.converted() {
        Some(converted) => element.i32(6, converted),
        None => element,
    };
    match column.kind {
        ColumnType::Text => element.structure(10, Struct::default().structure(1, Struct::default())),
        ColumnType::Time => {
            let milliseconds = Struct::default().structure(1, Struct::default());
            let timestamp = Struct::default().bool(1, false).structure(2, milliseconds);
            element.structure(10, Struct::default().structure(8, timestamp))
        }
        ColumnType::Int | ColumnType::Small | ColumnType::Double => element,
    }
}

/// Returns the data page of a column before compression: the definition levels, then the values.
fn page(column: &Column, rows: &[Row]) -> Vec<u8> {
    let cells: Vec<Cell> = rows.iter().map(column.get).collect();
    let mut page = Vec::new();
    if !column.is_required {
        let levels = levels(&cells);
        page.extend_from_slice(&(levels.len() as u32).to_le_bytes());
        page.extend(levels);
    }
    for cell in &cells {
        match cell {
            Cell::Text(text) => {
                page.extend_from_slice(&(text.len() as u32).to_le_bytes());
                page.extend_from_slice(text.as_bytes());
            }
            Cell::Int(number) => page.extend_from_slice(&number.to_le_bytes()),
            Cell::Double(number) => page.extend_from_slice(&number.to_le_bytes()),
            Cell::Time(time) => page.extend_from_slice(&time.to_le_bytes()),
            Cell::Null => {}
        }
    }
    page
}

/// Encodes which values are present as runs of equal bits (the format's run-length encoding, width 1).
fn levels(cells: &[Cell]) -> Vec<u8> {
    let is_there = |cell: &Cell| !matches!(cell, Cell::Null);
    let mut levels = Vec::new();
    for run in cells.chunk_by(|left, right| is_there(left) == is_there(right)) {
        varint(&mut levels, (run.len() as u64) << 1);
        levels.push(u8::from(run.first().is_some_and(is_there)));
    }
    levels
}
