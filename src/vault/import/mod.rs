//! Import of WARC and ARC files from any tool.
//!
//! One thread reads records and assembles them into captures. Any number of threads check digests, parse payloads and
//! compress. The caller's thread, which owns the store, stores and credits the captures in the order of the files. A
//! foreign record keeps its block, identifier and fields. Nothing is imported twice, so the same command continues an
//! import that was stopped. Whatever is not imported is reported.

mod digests;
mod gather;
mod known;
mod left_out;
mod listed;
mod made;
mod prepare;
mod read;
mod room;
mod saved;
mod signed;
mod sources;
mod store;

use std::path::PathBuf;
use std::time::Duration;

use archive_books::recorder::Memory;
use serde::Serialize;

pub use left_out::LeftOut;
pub use listed::ListedCaptures;
pub use store::run;

/// The form of what is imported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ImportForm {
    /// Files of records, which their content tells: WARC, ARC, WACZ.
    #[default]
    Records,
    /// Folders that HTTrack mirrored, with its cache.
    Httrack,
    /// Pages saved in one file: MHTML, or HTML with a comment that says from where.
    Mhtml,
    /// Folders whose paths are URLs, as wget mirrors them.
    Folder,
}

/// What to import, and how.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// WARC and ARC files and WACZ packages, and folders of these; they are read in the order of the dates of their first
    /// records. Lists of captures (CDX, CDXJ) among them are compared with the archive afterwards.
    pub files: Vec<PathBuf>,
    /// What these files are.
    pub form: ImportForm,
    /// Number of threads that parse and compress.
    pub threads: usize,
    /// Whether texts are added to the full-text index.
    pub full_text: bool,
    /// Time between two checkpoints.
    pub checkpoint_every: Duration,
    /// Memory limits, which hold whatever the size of the decompressed files.
    pub memory: Memory,
    /// Whether the last record of a file that ends too early is imported as far as it is there.
    pub keep_cut: bool,
    /// Whether signed packages are imported whose signature or content is not what was signed.
    pub accept_wrong_signatures: bool,
}

/// Progress of an import and, at its end, the result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ImportStatus {
    /// Files read to their end.
    pub files: u64,
    /// Compressed bytes read.
    pub bytes: u64,
    /// Records read, of any type.
    pub records: u64,
    /// Captures that are now in the archive.
    pub captures: u64,
    /// Revisits among these captures.
    pub revisits: u64,
    /// Revisits whose original is not in the archive.
    pub open_revisits: u64,
    /// Captures that the archive already had.
    pub duplicates: u64,
    /// Captures of erased URLs, which are left out.
    pub erased: u64,
    /// Broken places in files, and captures without a URL or date.
    pub broken: u64,
    /// Records whose stated digest does not match their content.
    pub wrong_digests: u64,
    /// Records that got a new identifier because another record has theirs.
    pub renamed: u64,
    /// Links that another crawler states and the archive does not keep.
    pub unused_links: u64,
    /// Records that belong to no capture.
    #[serde(flatten)]
    pub left_out: LeftOut,
    /// Files that could not be read, or are not files of records.
    pub refused_files: u64,
    /// What lists of captures name.
    #[serde(flatten)]
    pub lists: ListedCaptures,
}

/// The subject of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoteKind {
    /// A file cannot be read at all.
    File,
    /// A record is broken and was skipped.
    Broken,
    /// A stated digest is wrong; the capture was imported with the right one.
    Digest,
    /// A stated digest is of a kind that cannot be checked, or malformed.
    UncheckedDigest,
    /// A revisit was imported whose original is not in the archive.
    Revisit,
    /// Records that belong to no capture were left out.
    LeftOut,
    /// A record has the identifier of another record; it got a new one.
    RecordId,
    /// A date omits the seconds or more; the time of the capture is the beginning of that period.
    Date,
    /// A URL has control characters, which were removed or escaped.
    Url,
    /// A package is signed: by whom, and whether it is what was signed.
    Signature,
    /// The archive does not have a capture that a list names, or has it with another digest.
    Listed,
    /// What a list and the archive have in common.
    List,
}

/// A message for the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImportNote {
    /// The file.
    pub file: String,
    /// Compressed bytes before the record; `None` if the note is about the whole file.
    pub offset: Option<u64>,
    /// Its subject.
    pub kind: NoteKind,
    /// The message.
    pub what: String,
}

/// What happens while an import runs.
#[derive(Debug, Clone, Copy)]
pub enum ImportEvent<'a> {
    /// It goes on; told a few times a second.
    Status(&'a ImportStatus),
    /// Something that may need attention.
    Note(&'a ImportNote),
}

/// Hears what happens while an import runs.
pub type HearImport<'a> = dyn FnMut(ImportEvent<'_>) + 'a;
