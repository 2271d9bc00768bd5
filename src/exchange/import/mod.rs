//! Import of WARC files that any tool wrote.
//!
//! A thread reads records and puts them together to captures; any number of threads check digests, parse payloads and
//! compress; the caller's thread, which owns the store, stores and credits them in the order of the files. A foreign
//! record is stored as it came: its block, its identifier, its fields. Nothing is imported twice, so an import that was
//! stopped is continued by the same command. What is not imported is reported.

mod digests;
mod gather;
mod known;
mod left_out;
mod prepare;
mod read;
mod room;
mod sources;
mod store;

use std::path::PathBuf;
use std::time::Duration;

use crate::recorder::Memory;

pub use left_out::LeftOut;
pub use store::run;

/// What to import, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// WARC files and WACZ packages; they are read in the order of the dates of their first records.
    pub files: Vec<PathBuf>,
    /// Threads that parse and compress.
    pub threads: usize,
    /// Whether texts go into the full-text index.
    pub full_text: bool,
    /// Between two checkpoints.
    pub checkpoint_every: Duration,
    /// What may be held in memory, whatever the files unpack to.
    pub memory: Memory,
    /// Whether a request without an answer is a capture. In a damaged segment it is what is left of one.
    pub requests_alone: bool,
}

/// How far an import is, and at its end the result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Status {
    /// Files read to their end.
    pub files: u64,
    /// Compressed bytes read.
    pub bytes: u64,
    /// Records read, of whatever type.
    pub records: u64,
    /// Captures that are now in the archive.
    pub captures: u64,
    /// Of these, revisits.
    pub revisits: u64,
    /// Revisits whose original the archive does not have.
    pub open_revisits: u64,
    /// Captures that the archive had already.
    pub duplicates: u64,
    /// Captures of URLs that were erased, which are left out.
    pub erased: u64,
    /// Places that could not be read, and captures without a URL or date.
    pub broken: u64,
    /// Records whose stated digest is not that of their content.
    pub wrong_digests: u64,
    /// Records with an identifier that another record has too, which got a new one.
    pub renamed: u64,
    /// Records that belong to no capture.
    pub left_out: LeftOut,
    /// Files that could not be read, or are not WARC files.
    pub refused_files: u64,
}

/// What a note is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// Records were left out, because they hold no capture.
    LeftOut,
    /// A record has the identifier of another one; it was given a new one.
    RecordId,
    /// A date leaves out the second or more; the capture stands at its beginning.
    Date,
    /// A URL has control characters, which were taken out or escaped.
    Url,
}

impl NoteKind {
    /// Its name in data.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Broken => "broken",
            Self::Digest => "digest",
            Self::UncheckedDigest => "unchecked-digest",
            Self::Revisit => "revisit",
            Self::LeftOut => "left-out",
            Self::RecordId => "record-id",
            Self::Date => "date",
            Self::Url => "url",
        }
    }
}

/// Something that a person has to know of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The file.
    pub file: String,
    /// Compressed bytes before the record; nothing when the file as a whole is meant.
    pub offset: Option<u64>,
    /// What it is about.
    pub kind: NoteKind,
    /// In words.
    pub what: String,
}

/// What the caller hears while an import runs.
pub trait Listener {
    /// How far it is; a few times a second.
    fn status(&mut self, status: &Status);
    /// Something to know of.
    fn note(&mut self, note: &Note);
}
