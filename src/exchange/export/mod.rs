//! Export: records as they are stored, and indexes of them, in the forms that other tools read.
//!
//! Everything or the result of a query, closed over the originals of revisits: a capture is never exported without the one
//! that has its payload. Regular files get their names when they are whole; pipes and devices are written to.

mod cdxj;
mod columnar;
mod graph;
mod links;
mod received;
mod selection;
mod sent;
mod wacz;
mod walk;
mod warc;

use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use archive_storage::segment::SegmentError;
use archive_storage::warc::ReadError;
use archive_storage::{SegmentId, StateError, Store, StoreError};
use flate2::Compression;
use flate2::write::GzEncoder;
use zip::ZipWriter;

pub use graph::write as graph;
pub use selection::Selection;
pub use sent::answer;

use self::wacz::UntilFailure;
use self::warc::Packing;
use crate::change::VersionError;
use crate::files::Output;
use crate::graphs::{JoinError, StoredError};
use crate::nodes::{self, AskError, Chosen, Sender};
use crate::query::{ArchiveRowsError, Limits, RowsError};

/// What to export, to one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Records: `.warc`, `.warc.gz` or `.warc.zst`.
    Warc,
    /// An index of the archive's own segments, sorted by SURT.
    Cdxj,
    /// Records, index and list of pages in one file (WACZ 1.1.1).
    Wacz,
    /// An index of the archive's own segments with the columns of Common Crawl's, and some of ours.
    Parquet,
    /// The newest links of every page: source, target and kind, separated by tabs.
    Links,
}

/// The outcome of an export.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Exported {
    /// Captures, or links.
    pub rows: u64,
    /// WARC records, where records were exported.
    pub records: u64,
    /// Bytes of the file, or of all files of a graph.
    pub bytes: u64,
}

/// Why an export broke off; no file was made or replaced.
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
    /// The output cannot be written, whatever it is called.
    #[error("the output: {0}")]
    Lost(#[source] io::Error),
    /// There is nothing to export.
    #[error("nothing was exported: {0}; --allow-empty makes an empty file")]
    Nothing(String),
    /// What is known of pages cannot be read.
    #[error(transparent)]
    Rows(#[from] RowsError),
    /// It cannot be opened.
    #[error(transparent)]
    Archive(#[from] ArchiveRowsError),
    /// A capture cannot be read.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// The links cannot be read.
    #[error(transparent)]
    Links(#[from] StoredError),
    /// The links of several archives are no graph.
    #[error(transparent)]
    Joined(#[from] JoinError),
    /// A graph's name would lose what follows its dot.
    #[error(
        "{}: a graph is the files NAME.graph, NAME.offsets, NAME.properties and NAME.urls.gz; give a NAME without a dot",
        .0.display()
    )]
    GraphName(PathBuf),
    /// Another archive, or what was asked of this one.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// What was sent before lies elsewhere now.
    #[error("its segments were rewritten meanwhile; export again")]
    Replaced,
    /// Two archives' segments are called the same.
    #[error(
        "two of these archives have a segment {0}, so that an index of both would not say which is meant; export each alone"
    )]
    SameSegment(String),
    /// Nodes send more captures than a package's lists can hold.
    #[error("the index of this package would take more than {} GiB of memory; export fewer captures, or folders", wacz::LISTS_BYTES_MAX >> 30)]
    LongPackage,
    /// The ZIP file could not be written.
    #[error("cannot write the ZIP file: {0}")]
    Zip(#[from] zip::result::ZipError),
}

/// An archive that is exported.
#[derive(Debug)]
pub enum Part<'a> {
    /// A folder, and what of it.
    Folder(&'a Store, Selection),
    /// On another machine.
    Node(Sender<'a>),
}

impl<'a> Part<'a> {
    /// The same archives, as they answered together, and what was chosen of them.
    ///
    /// # Errors
    /// When a folder cannot be read.
    pub fn of(exported: nodes::Exported<'a>, chosen: Option<&Chosen>) -> Result<Self, ExportError> {
        Ok(match exported {
            nodes::Exported::Folder(store, access) => {
                Self::Folder(store, Selection::of(store, &access, chosen, Limits::USUAL)?)
            }
            nodes::Exported::Node(sender) => Self::Node(sender),
        })
    }

    /// Captures; none if only a node knows.
    #[must_use]
    pub fn count(&self) -> Option<u64> {
        match self {
            Self::Folder(store, selection) => Some(selection.count_in(store)),
            Self::Node(_) => None,
        }
    }

    /// What was asked for, in words; nothing when everything was.
    fn words(&self) -> Option<&str> {
        match self {
            Self::Folder(_, selection) => selection.words(),
            Self::Node(sender) => sender.query(),
        }
    }

    /// What the archive is called.
    fn called(&self) -> String {
        match self {
            Self::Folder(store, _) => {
                store.path().file_name().unwrap_or_default().to_string_lossy().into_owned()
            }
            Self::Node(sender) => sender.name().to_owned(),
        }
    }
}

/// How an export is written, besides its format.
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings {
    /// Packs with gzip what is not packed by itself, whatever the output is called.
    pub gzip: bool,
    /// The level of compression of records: 0 to 9 for gzip, 1 to 19 for zstd; nothing for 6 and 9.
    pub level: Option<i32>,
    /// Gives a table of captures their texts.
    pub text: bool,
    /// Writes a file even if nothing is in it.
    pub allow_empty: bool,
}

/// Writes selections of archives to an output, see [`Output`]: one archive after the other, an index in the order of its lines.
///
/// # Errors
/// [`ExportError::Nothing`], [`ExportError::SameSegment`], [`ExportError::LongPackage`]; when an archive cannot be read or the output not be written. A file that was there before is
/// then still there.
pub fn run(
    parts: &[Part<'_>],
    format: Format,
    output: &Path,
    settings: Settings,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported, ExportError> {
    let failed = |source| ExportError::Write { path: output.to_owned(), source };
    expect_some(parts, settings)?;
    let mut out = Output::open(output).map_err(failed)?;
    let written = match (format, out.whole()) {
        // A package in a file says how long each of its parts is before that part, in a pipe after it.
        (Format::Wacz, Some(file)) => {
            wacz::write(parts, ZipWriter::new(UntilFailure::new(BufWriter::new(file))), progress)
        }
        (Format::Wacz, None) => {
            wacz::write(parts, ZipWriter::new_stream(UntilFailure::new(BufWriter::new(&mut out))), progress)
        }
        _ => {
            let gzip = settings.gzip || is_gzip(output);
            let packing = if gzip { Packing::Gzip } else { Packing::of(output) };
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

/// Fails if there is nothing in archives, as far as that is known, unless it is allowed.
fn expect_some(parts: &[Part<'_>], settings: Settings) -> Result<(), ExportError> {
    let is_empty = parts.iter().all(|part| part.count() == Some(0));
    if is_empty && !settings.allow_empty { Err(nothing(parts)) } else { Ok(()) }
}

fn nothing(parts: &[Part<'_>]) -> ExportError {
    selection::nothing(parts.first().and_then(Part::words))
}

/// Writes a selection as WACZ to a file that is open.
///
/// # Errors
/// As [`run`]; what the file holds then is not a package.
pub fn package(
    store: &Store,
    selection: &Selection,
    out: impl Write + Seek,
) -> Result<Exported, ExportError> {
    selection.check(store, false)?;
    let parts = [Part::Folder(store, selection.clone())];
    wacz::write(&parts, ZipWriter::new(UntilFailure::new(out)), &mut |_| {})
}

fn write(
    parts: &[Part<'_>],
    format: Format,
    (packing, settings): (Packing, Settings),
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported, ExportError> {
    match format {
        Format::Warc | Format::Wacz => {
            warc::write(parts, (packing, settings.level), out, &mut |_| Ok(()), progress)
        }
        Format::Parquet => columnar::write(parts, settings.text, out, progress),
        Format::Cdxj | Format::Links if packing == Packing::Gzip => {
            let mut packer = GzEncoder::new(out, Compression::default());
            let exported = lines(parts, format, &mut packer, progress)?;
            packer.finish().map_err(lost)?;
            Ok(exported)
        }
        Format::Cdxj | Format::Links => lines(parts, format, out, progress),
    }
}

fn lines(
    parts: &[Part<'_>],
    format: Format,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported, ExportError> {
    match format {
        Format::Cdxj => cdxj::write(parts, out, progress),
        _ => links::write(parts, out, progress),
    }
}

fn is_gzip(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"))
}

/// An error of writing, without the name of the file, which the caller knows.
fn lost(source: io::Error) -> ExportError {
    ExportError::Lost(source)
}
