//! Export of stored records, and of indexes of them, in formats that other tools read.
//!
//! An export contains all captures or the result of a query, together with the originals of revisits: a capture is
//! never exported without the capture that holds its payload. Archives on other machines ([`RowSender`]) send the rows of
//! which a format is made (`rows`). A regular file gets its name when it is complete; pipes
//! and devices are written to directly.

mod cdxj;
mod columnar;
mod graph;
mod links;
mod node_index;
mod rows;
mod selection;
mod wacz;
mod walk;
mod warc;

use std::error::Error;
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use archive_ask::query::{ArchiveRowsError, RowsError, UnreadRows};
use archive_base::error::Failure;
use archive_base::files::{FileError, Output};
use archive_books::change::VersionError;
use archive_books::stored_graph::JoinError;
use archive_storage::segment::SegmentError;
use archive_storage::warc::RecordError;
use archive_storage::{SegmentId, StateError, Store, StoreError};
use flate2::Compression;
use flate2::write::GzEncoder;
use zip::ZipWriter;

use self::wacz::UntilFailure;
use self::warc::RecordPacking;
pub use graph::write as graph;
pub use rows::{ExportPlace, ExportRows, RowSender, send};
pub use selection::Selection;

/// The format of an export to one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Records: `.warc`, `.warc.gz` or `.warc.zst`.
    Warc,
    /// A CDXJ index of the archive's own segments, sorted by SURT.
    Cdxj,
    /// Records, their index and a list of pages in one file (WACZ 1.1.1).
    Wacz,
    /// A table of the captures in the archive's own segments, with Common Crawl's columns and some of our own.
    Parquet,
    /// The newest links of every page: source, target and kind, separated by tabs.
    Links,
}

/// The result of an export.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Exported {
    /// Number of captures, or of links.
    pub rows: u64,
    /// Number of WARC records, if records were exported.
    pub records: u64,
    /// Bytes of the file, or of all files of a graph.
    pub bytes: u64,
}

/// Why an export failed. No file was created or replaced.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// A record cannot be read.
    #[error("segment {segment}: {source}; `archive repair` puts damaged segments aside")]
    Record {
        /// The segment.
        segment: SegmentId,
        /// What is wrong with it.
        source: RecordError,
    },
    /// A record is longer than the selection allows.
    #[error("a record is longer than {0} bytes")]
    TooLong(u64),
    /// The file cannot be written.
    #[error(transparent)]
    Write(FileError),
    /// The output cannot be written; its name is not known here.
    #[error("the output: {0}")]
    Lost(#[source] io::Error),
    /// There is nothing to export.
    #[error("nothing was exported: {0}; --allow-empty makes an empty file")]
    Nothing(String),
    /// The name of a graph has a dot, and the part after it would be lost.
    #[error(
        "{}: a graph is the files NAME.graph, NAME.offsets, NAME.properties and NAME.urls.gz; give a NAME without a dot",
        .0.display()
    )]
    GraphName(PathBuf),
    /// An archive on another machine, or the request to it, failed.
    #[error(transparent)]
    Remote(Box<dyn Error + Send + Sync>),
    /// The segments that were already sent have been rewritten.
    #[error("its segments were rewritten meanwhile; export again")]
    Replaced,
    /// Two archives have segments of the same name.
    #[error(
        "two of these archives have a segment {0}, so an index of both would be ambiguous; export each by itself"
    )]
    SameSegment(String),
    /// Nodes send more captures than the lists of a package can hold.
    #[error("the index of this package would take more than {} GiB of memory; export fewer captures, or folders", wacz::LISTS_BYTES_MAX >> 30)]
    LongPackage,
    /// The ZIP file could not be written.
    #[error("cannot write the ZIP file: {0}")]
    Zip(#[from] zip::result::ZipError),
    /// Anything else.
    #[error(transparent)]
    Other(#[from] Failure),
}

archive_base::passes_on! {
    ExportError: StoreError, StateError, SegmentError, ArchiveRowsError, VersionError, JoinError; RowsError
}

/// An archive to export.
#[derive(Debug)]
pub enum ExportPart<'a> {
    /// A folder, and the captures selected from it.
    Folder(&'a Store, Selection),
    /// An archive on another machine.
    Node(Box<dyn RowSender + 'a>),
}

impl ExportPart<'_> {
    /// Number of captures; `None` if only a node knows it.
    #[must_use]
    pub fn count(&self) -> Option<u64> {
        match self {
            Self::Folder(store, selection) => Some(selection.count_in(store)),
            Self::Node(_) => None,
        }
    }

    /// Returns what could not be read, if anything.
    #[must_use]
    pub fn unread(&self) -> Option<UnreadRows> {
        match self {
            Self::Folder(_, selection) => selection.unread(),
            Self::Node(_) => None,
        }
    }

    /// Returns the query in words; `None` if everything was requested.
    fn words(&self) -> Option<&str> {
        match self {
            Self::Folder(_, selection) => selection.words(),
            Self::Node(sender) => sender.query(),
        }
    }

    /// Returns the name of the archive.
    fn called(&self) -> String {
        match self {
            Self::Folder(store, _) => {
                store.path().file_name().unwrap_or_default().to_string_lossy().into_owned()
            }
            Self::Node(sender) => sender.name().to_owned(),
        }
    }
}

/// How an export is written, apart from its format.
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings {
    /// Compress with gzip what is not compressed in itself, whatever the name of the output.
    pub gzip: bool,
    /// Compression level of records: 0 to 9 for gzip (default 6), 1 to 19 for zstd (default 9).
    pub level: Option<i32>,
    /// Include the texts in a table of captures.
    pub text: bool,
    /// Write a file even if it is empty.
    pub allow_empty: bool,
}

/// Writes selections of archives to an output, see [`Output`], one archive after the other; the lines of an index are
/// sorted across archives.
///
/// # Errors
/// [`ExportError::Nothing`], [`ExportError::SameSegment`] or [`ExportError::LongPackage`]; also if an archive cannot be
/// read or the output cannot be written. An existing file is then unchanged.
pub fn run(
    parts: &[ExportPart<'_>],
    format: Format,
    output: &Path,
    settings: Settings,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported, ExportError> {
    let failed = |source| ExportError::Write(FileError::at(output)(source));
    expect_some(parts, settings)?;
    let mut out = Output::open(output).map_err(failed)?;
    let written = match (format, out.whole()) {
        // In a file, the length of each part of a package precedes the part; in a pipe, it follows it.
        (Format::Wacz, Some(file)) => {
            wacz::write(parts, ZipWriter::new(UntilFailure::new(BufWriter::new(file))), progress)
        }
        (Format::Wacz, None) => {
            wacz::write(parts, ZipWriter::new_stream(UntilFailure::new(BufWriter::new(&mut out))), progress)
        }
        _ => {
            let packing = if settings.gzip { RecordPacking::Gzip } else { RecordPacking::of(output) };
            let mut out = BufWriter::with_capacity(1 << 20, &mut out);
            let written = write(parts, format, (packing, settings), &mut out, progress);
            written.and_then(|exported| out.flush().map(|()| exported).map_err(lost))
        }
    };
    let exported = written.map_err(|error| match error {
        ExportError::Lost(source) => failed(source),
        error => error,
    })?;
    if exported.rows == 0 && !settings.allow_empty {
        return Err(nothing(parts));
    }
    let bytes = out.commit().map_err(failed)?;
    Ok(Exported { bytes, ..exported })
}

/// Fails if the archives are known to contain nothing, unless empty files are allowed.
fn expect_some(parts: &[ExportPart<'_>], settings: Settings) -> Result<(), ExportError> {
    let is_empty = parts.iter().all(|part| part.count() == Some(0));
    if is_empty && !settings.allow_empty { Err(nothing(parts)) } else { Ok(()) }
}

fn nothing(parts: &[ExportPart<'_>]) -> ExportError {
    selection::nothing(parts.first().and_then(ExportPart::words))
}

/// Writes a selection as WACZ to an open file.
///
/// # Errors
/// As [`run`]. The file then does not hold a valid package.
pub fn package(
    store: &Store,
    selection: &Selection,
    out: impl Write + Seek,
) -> Result<Exported, ExportError> {
    let parts = [ExportPart::Folder(store, selection.clone())];
    expect_some(&parts, Settings::default())?;
    wacz::write(&parts, ZipWriter::new(UntilFailure::new(out)), &mut |_| {})
}

fn write(
    parts: &[ExportPart<'_>],
    format: Format,
    (packing, settings): (RecordPacking, Settings),
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported, ExportError> {
    match format {
        Format::Warc | Format::Wacz => {
            warc::write(parts, (packing, settings.level), out, &mut |_| Ok(()), progress)
        }
        Format::Parquet => columnar::write(parts, settings.text, out, progress),
        Format::Cdxj | Format::Links => {
            let write = if format == Format::Cdxj { cdxj::write } else { links::write };
            if packing != RecordPacking::Gzip {
                return write(parts, out, progress);
            }
            let mut packer = GzEncoder::new(out, Compression::default());
            let exported = write(parts, &mut packer, progress)?;
            packer.finish().map_err(lost)?;
            Ok(exported)
        }
    }
}

/// Makes a write error without the name of the file, which the caller adds.
fn lost(source: io::Error) -> ExportError {
    ExportError::Lost(source)
}
