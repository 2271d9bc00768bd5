//! Export: records as they are stored, and indexes of them, in the forms that other tools read.
//!
//! Everything or the result of a query, closed over the originals of revisits: a capture is never exported without the one
//! that has its payload. Files are written beside their final name and renamed when they are whole.

mod cdxj;
mod columnar;
mod graph;
mod links;
mod selection;
mod wacz;
mod walk;
mod warc;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use archive_storage::segment::SegmentError;
use archive_storage::warc::ReadError;
use archive_storage::{SegmentId, StateError, Store, StoreError};
use flate2::Compression;
use flate2::write::GzEncoder;

pub use graph::write as graph;
pub use selection::Selection;

use crate::lab::graphs::StoredError;

/// What to export, to one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Records: `.warc`, `.warc.gz` or `.warc.zst`.
    Warc,
    /// An index of the archive's own segments, sorted by SURT.
    Cdxj,
    /// Records, index and list of pages in one file (WACZ 1.1.1).
    Wacz,
    /// An index of the archive's own segments with the columns of Common Crawl's.
    Parquet,
    /// The newest links of every page: source, target and kind, separated by tabs.
    Links,
}

/// What came of an export.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Exported {
    /// Captures, or links.
    pub rows: u64,
    /// WARC records, where records were exported.
    pub records: u64,
    /// Bytes of the file, or of all files of a graph.
    pub bytes: u64,
}

/// Why an export broke off; no file was left.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The state failed.
    #[error(transparent)]
    State(#[from] StateError),
    /// A segment failed.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// A record cannot be read.
    #[error("segment {segment}: {source}; `archive repair` puts damaged segments aside")]
    Record {
        /// The segment.
        segment: SegmentId,
        /// What is wrong with it.
        source: ReadError,
    },
    /// The file cannot be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// The links cannot be read.
    #[error(transparent)]
    Links(#[from] StoredError),
    /// A graph's name would lose what follows its dot.
    #[error(
        "{}: a graph is the files NAME.graph, NAME.offsets, NAME.properties and NAME.urls.gz; give a NAME without a dot",
        .0.display()
    )]
    GraphName(PathBuf),
    /// The graph could not be written.
    #[error("cannot write the graph: {0}")]
    Graph(String),
    /// The ZIP file could not be written.
    #[error("cannot write the ZIP file: {0}")]
    Zip(#[from] zip::result::ZipError),
}

/// Writes a selection of an archive to a file; `gzip` packs what is not packed by itself.
///
/// # Errors
/// When the archive cannot be read or the file not be written; a file that was there before is still there.
pub fn run(
    store: &Store,
    selection: &Selection,
    format: Format,
    output: &Path,
    gzip: bool,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported, ExportError> {
    let mut name = output.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = output.with_file_name(name);
    let written = (|| {
        let file = File::create(&part)?;
        Ok(BufWriter::with_capacity(1 << 20, file))
    })();
    let file = written.map_err(|source| ExportError::Write { path: output.to_owned(), source })?;
    let outcome = write(store, selection, format, file, gzip || is_gzip(output), &part, progress);
    let outcome = outcome.and_then(|exported| {
        let failed = |source| ExportError::Write { path: output.to_owned(), source };
        let bytes = fs::metadata(&part).map_err(failed)?.len();
        fs::rename(&part, output).map_err(failed)?;
        Ok(Exported { bytes, ..exported })
    });
    if outcome.is_err() {
        // The error that matters is the one that is returned.
        let _ = fs::remove_file(&part);
    }
    outcome
}

fn write(
    store: &Store,
    selection: &Selection,
    format: Format,
    mut file: BufWriter<File>,
    gzip: bool,
    part: &Path,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported, ExportError> {
    let failed = |source| ExportError::Write { path: part.to_owned(), source };
    let exported = match format {
        Format::Warc => {
            let packing = if gzip { warc::Packing::Gzip } else { warc::Packing::of(part) };
            warc::write(store, selection, packing, &mut file, &mut |_| {}, progress)?
        }
        Format::Wacz => return wacz::write(store, selection, file, part, progress),
        Format::Parquet => return columnar::write(store, selection, file, progress),
        Format::Cdxj | Format::Links => {
            let lines = |out: &mut dyn Write, progress: &mut dyn FnMut(u64)| match format {
                Format::Cdxj => cdxj::write(store, selection, out, progress),
                _ => links::write(store, selection, out, progress),
            };
            if gzip {
                let mut packer = GzEncoder::new(&mut file, Compression::default());
                let exported = lines(&mut packer, progress)?;
                packer.finish().map_err(failed)?;
                exported
            } else {
                lines(&mut file, progress)?
            }
        }
    };
    file.flush().map_err(failed)?;
    file.get_ref().sync_all().map_err(failed)?;
    Ok(exported)
}

fn is_gzip(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"))
}

/// An error of writing, without the name of the file: whoever called knows it.
fn lost(source: io::Error) -> ExportError {
    ExportError::Write { path: PathBuf::from("the output"), source }
}
