//! Files that hold on all nodes of a cluster: access rules, topics and watches that are published there and adopted by
//! the archives.
//!
//! A published file has the same name as in an archive's folder: `access.toml`, `NAME.topic` or `NAME.json`.
//! `shared.json` records which files came from the cluster. All others belong to the archive and are kept. Each file is
//! checked by its reader before it is published and before it is adopted. Decisions and erasures are published as
//! orders ([`orders`]).

mod erasures;
pub mod orders;
mod progress;
mod record;

use std::io;
use std::path::{Path, PathBuf};

use archive_ask::query;
use archive_ask::watch::{self, Watch, WatchError};
use archive_base::access::{self, Access, AccessError};
use archive_base::decisions::DecisionsError;
use archive_base::erased::{Erased, ErasedError};
use archive_base::error::{Classified, ErrorKind, Failure};
use archive_base::files::{self, FileError, WholeFile};
use archive_books::cluster::{ClusterError, FileVersion, Publications};
use archive_books::ledger::CreditError;
use archive_books::topics::{self, TopicError};
use archive_storage::segment::SegmentError;
use archive_storage::{Digest, StateError, Store, StoreError};
use archive_vault::erase::EraseError;
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::record::{SharedEntry, SharedRecord};

pub use self::erasures::Erasure;
pub use self::progress::{ListProgress, OrderProgress};

/// Maximum bytes of a watch's file; a longer one is neither published nor adopted.
pub const WATCH_BYTES_MAX: u64 = 1 << 20;

/// Why a file or an order cannot be published, adopted or carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShareError {
    /// The name of the file is not one of these.
    #[error("'{0}' cannot be published; only access.toml, NAME.topic (a topic) and NAME.json (a watch) can")]
    Name(String),
    /// The access rules are invalid.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// A topic was learned from a page that was erased.
    #[error(
        "it names {0}, which was erased from this archive: learn it again without that page, and publish it"
    )]
    NamesErased(String),
    /// The archive cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The archive cannot be read, or another program is changing it.
    #[error(transparent)]
    State(#[from] StateError),
    /// The query of an order cannot be answered.
    #[error(transparent)]
    Query(#[from] query::Error),
    /// The order cannot be published.
    #[error("{0}")]
    Order(String),
    /// The archive is no partition of the cluster; orders are for partitions.
    #[error("the archive is not a partition of this cluster, so it gets no decisions or erasures from it")]
    NoPartition,
    /// Anything else.
    #[error(transparent)]
    Other(#[from] Failure),
}

archive_base::passes_on! {
    ShareError: FileError, TopicError, WatchError, ErasedError, CreditError, SegmentError, DecisionsError,
    EraseError, ClusterError
}

/// What happened to a published file in an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAdoption {
    /// The archive already had this version.
    Had,
    /// The archive has adopted it.
    Over,
    /// The archive has a file of its own with this name, which is kept.
    Refused,
}

/// The result for a published file and an archive.
#[derive(Debug)]
pub struct FileOutcome<'a> {
    /// The archive.
    pub archive: &'a Path,
    /// The file.
    pub file: &'a str,
    /// Newest version of the file.
    pub version: FileVersion,
    /// What happened to it.
    pub taken: Result<FileAdoption, ShareError>,
}

/// Kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SharedKind {
    Access,
    Topic,
    Watch,
}

/// A publishable file, by its name.
struct SharedFile<'a> {
    file: &'a str,
    kind: SharedKind,
    /// Name of the topic or watch.
    name: &'a str,
}

impl ShareError {
    /// Whether another program is using the archive.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        match self {
            Self::Store(error) => error.is_locked(),
            Self::State(StateError::Locked { .. }) => true,
            _ => false,
        }
    }

    /// Whether the archive, as it is, can never answer the query of an order. A read error may be temporary.
    #[must_use]
    pub fn is_for_good(&self) -> bool {
        use query::Error::{NoIndex, NoVersions, TooMuch};
        match self {
            Self::Query(error) => {
                error.kind() == ErrorKind::Usage || matches!(error, NoIndex | NoVersions(_) | TooMuch { .. })
            }
            _ => false,
        }
    }
}

impl<'a> SharedFile<'a> {
    fn of(file: &'a str) -> Result<Self, ShareError> {
        let (name, ending) = file.split_once('.').unwrap_or((file, ""));
        // The same rules hold for the names of watches.
        let kind = match ending {
            _ if file == access::FILE => SharedKind::Access,
            _ if topics::check_name(name).is_err() => return Err(ShareError::Name(file.to_owned())),
            topics::ENDING => SharedKind::Topic,
            "json" => SharedKind::Watch,
            _ => return Err(ShareError::Name(file.to_owned())),
        };
        Ok(Self { file, kind, name })
    }

    fn bytes_max(&self) -> u64 {
        match self.kind {
            SharedKind::Access => access::BYTES_MAX,
            SharedKind::Topic => topics::FILE_BYTES_MAX,
            SharedKind::Watch => WATCH_BYTES_MAX,
        }
    }

    /// Path of the file in an archive.
    fn path(&self, archive: &Path) -> Result<PathBuf, ShareError> {
        Ok(match self.kind {
            SharedKind::Access => archive.join(access::FILE),
            SharedKind::Topic => topics::file(archive, self.name)?,
            SharedKind::Watch => watch::file(archive, self.name),
        })
    }

    /// Parses the file; `path` is used in errors.
    fn read(&self, path: &Path, bytes: Vec<u8>) -> Result<SharedContent, ShareError> {
        Ok(match self.kind {
            SharedKind::Access => {
                let text =
                    std::str::from_utf8(&bytes).map_err(io::Error::other).map_err(FileError::at(path))?;
                Access::of_text(path, text)?;
                SharedContent { bytes, watch: None, examples: Vec::new() }
            }
            SharedKind::Topic => {
                let about = topics::read(path, self.name, &bytes)?.about;
                SharedContent { bytes, watch: None, examples: [about.examples, about.against].concat() }
            }
            SharedKind::Watch => {
                let watch = watch::read(path, &bytes)?;
                SharedContent { bytes, watch: Some(watch), examples: Vec::new() }
            }
        })
    }

    /// Returns the digest of an archive's file, if it exists. For a watch it covers only the query and the period,
    /// because the rest changes with every report.
    fn digest(&self, path: &Path) -> Result<Option<String>, ShareError> {
        let Some(bytes) = files::read_if_there(path, self.bytes_max()).map_err(FileError::at(path))? else {
            return Ok(None);
        };
        let watch = if self.kind == SharedKind::Watch { serde_json::from_slice(&bytes).ok() } else { None };
        Ok(Some(SharedContent { bytes, watch, examples: Vec::new() }.digest()))
    }
}

/// A parsed file.
struct SharedContent {
    bytes: Vec<u8>,
    watch: Option<Watch>,
    /// Pages that a topic was learned from.
    examples: Vec<String>,
}

impl SharedContent {
    fn digest(&self) -> String {
        let of_watch = |watch: &Watch| format!("{} {}", watch.every_seconds, watch.query).into_bytes();
        let bytes = self.watch.as_ref().map(of_watch);
        Digest::sha256(bytes.as_ref().unwrap_or(&self.bytes)).to_string()
    }

    fn write(&self, shared: &SharedFile<'_>, archive: &Path, now: DateTime<Utc>) -> Result<(), ShareError> {
        match (&self.watch, shared.kind) {
            (Some(watch), _) => watch::take_over(&Store::read_only(archive)?, watch, now)?,
            (None, SharedKind::Topic) => {
                let erased = Erased::read(archive)?;
                if let Some(page) = self.examples.iter().find(|url| erased.of(url).is_some()) {
                    return Err(ShareError::NamesErased(page.clone()));
                }
                topics::write(archive, shared.name, &self.bytes)?;
            }
            (None, _) => {
                let path = shared.path(archive)?;
                WholeFile::replace(&path, &self.bytes).map_err(FileError::at(&path))?;
            }
        }
        Ok(())
    }
}

/// Reads a file to be published, and checks that archives can read it. Returns its name and its bytes.
///
/// # Errors
/// If it cannot be read, or is not what its name says.
pub fn checked(path: &Path) -> Result<(String, Vec<u8>), ShareError> {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let shared = SharedFile::of(&file)?;
    let bytes = files::read(path, shared.bytes_max()).map_err(FileError::at(path))?;
    let bytes = shared.read(path, bytes)?.bytes;
    Ok((file.into_owned(), bytes))
}

/// Updates archives to the newest versions of all published files. `report` gets the result for each file and archive.
pub fn take_over(
    published: &Publications,
    archives: &[PathBuf],
    now: DateTime<Utc>,
    report: &mut dyn FnMut(FileOutcome<'_>),
) {
    // Files that only newer programs know are skipped. Topics come before watches, which may refer to them.
    let known =
        published.newest.iter().filter_map(|(file, version)| Some((SharedFile::of(file).ok()?, *version)));
    let mut files: Vec<_> = known.collect();
    files.sort_by_key(|(shared, _)| shared.kind);
    for (shared, version) in files {
        let mut content = None;
        for archive in archives {
            let taken =
                VersionChange { published, shared: &shared, version, archive, now }.make(&mut content);
            report(FileOutcome { archive, file: shared.file, version, taken });
        }
    }
}

/// A version of a file for an archive.
struct VersionChange<'a> {
    published: &'a Publications,
    shared: &'a SharedFile<'a>,
    version: FileVersion,
    archive: &'a Path,
    now: DateTime<Utc>,
}

impl VersionChange<'_> {
    /// Applies the version, unless the archive already has it or has a file of its own. `content` caches the parsed
    /// file for all archives.
    fn make(&self, content: &mut Option<SharedContent>) -> Result<FileAdoption, ShareError> {
        let Self { shared, version, archive, now, .. } = *self;
        let mut record = SharedRecord::read(archive)?;
        let known = record.files.get(shared.file).cloned().unwrap_or_default();
        let path = shared.path(archive)?;
        let current = shared.digest(&path)?;
        let is_known = known.version == version.number;
        if (version.is_removed && current.is_none()) || (is_known && current == known.digest) {
            return Ok(FileAdoption::Had);
        }
        let digest =
            if is_known { known.digest.clone() } else { self.content(content)?.map(SharedContent::digest) };
        let is_own = current.is_some() && ![&digest, &known.digest, &known.before].contains(&&current);
        // The record is written before the file: after a crash in between, the file is still known to be the cluster's.
        let before = current.clone().filter(|_| !is_own);
        let entry = SharedEntry { version: version.number, digest: digest.clone(), before };
        if entry != known {
            record.files.insert(shared.file.to_owned(), entry);
            record.write(archive)?;
        }
        if is_own {
            return Ok(if version.is_removed { FileAdoption::Had } else { FileAdoption::Refused });
        }
        if current == digest {
            return Ok(FileAdoption::Had);
        }
        match self.content(content)? {
            Some(content) => content.write(shared, archive, now)?,
            None => self.remove(&path)?,
        }
        Ok(FileAdoption::Over)
    }

    /// Returns the content of the version; `None` if it removes the file.
    fn content<'c>(
        &self,
        content: &'c mut Option<SharedContent>,
    ) -> Result<Option<&'c SharedContent>, ShareError> {
        if content.is_none() && !self.version.is_removed {
            *content = Some(self.read()?);
        }
        Ok(content.as_ref())
    }

    fn read(&self) -> Result<SharedContent, ShareError> {
        let Self { published, shared, version, .. } = self;
        let damaged = |why: String| {
            let name = format!("version {} of {}", version.number, shared.file);
            ShareError::from(ClusterError::Damaged { name, why })
        };
        let bytes = published.read(shared.file, shared.bytes_max())?;
        shared.read(Path::new(shared.file), bytes).map_err(|error| damaged(error.to_string()))
    }

    fn remove(&self, path: &Path) -> Result<(), ShareError> {
        match self.shared.kind {
            SharedKind::Access => std::fs::remove_file(path).map_err(FileError::at(path))?,
            SharedKind::Topic => topics::remove(self.archive, self.shared.name)?,
            SharedKind::Watch => watch::remove(self.archive, self.shared.name)?,
        }
        Ok(())
    }
}

/// Reads a record of an archive; there is none at first.
fn read_record<T: DeserializeOwned + Default>(path: &Path, bytes_max: u64) -> Result<T, ShareError> {
    let bytes = files::read_if_there(path, bytes_max).map_err(FileError::at(path))?;
    let read = |bytes: Vec<u8>| serde_json::from_slice(&bytes).map_err(io::Error::from);
    Ok(bytes.map_or_else(|| Ok(T::default()), read).map_err(FileError::at(path))?)
}

/// Replaces a record completely.
fn write_record(path: &Path, record: &impl Serialize) -> Result<(), ShareError> {
    let bytes = serde_json::to_vec_pretty(record).map_err(io::Error::from);
    Ok(bytes.and_then(|bytes| WholeFile::replace(path, &bytes)).map_err(FileError::at(path))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_now_does_not_fail_for_good() {
        let of_query = |error| ShareError::Query(error).is_for_good();
        let (unread, unspilled) = (io::Error::other("disk"), io::Error::other("disk"));
        assert!(of_query(query::Error::NoIndex) && of_query(query::Error::NotOfEach));
        assert!(!of_query(query::Error::Rows(unread.into())) && !of_query(query::Error::Spill(unspilled)));
        assert!(!ShareError::NoPartition.is_for_good());
    }
}
