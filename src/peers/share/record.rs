//! The record of files that an archive has from its cluster: `shared.json` in its folder, which is always replaced
//! completely.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use archive_base::beside;
use archive_base::files::{self, WholeFile};
use serde::{Deserialize, Serialize};

use super::{ShareError, io_error};

const FILE: &str = beside::SHARED;

/// Maximum bytes of the record; with [`archive_books::cluster::FILES_MAX`] files it has about 250 KB.
const BYTES_MAX: u64 = 1 << 20;

/// Record of a published file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    /// Version that was processed last.
    pub(super) version: u64,
    /// Digest of the version; `None` if it removes the file.
    pub(super) digest: Option<String>,
    /// Digest of the file that it replaces, which is still there after a crash; `None` if that is the archive's own
    /// file.
    pub(super) before: Option<String>,
}

/// Files from the cluster, by name.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Record {
    pub(super) files: BTreeMap<String, Entry>,
}

impl Record {
    pub(super) fn read(archive: &Path) -> Result<Self, ShareError> {
        let path = archive.join(FILE);
        let bytes = files::read_if_there(&path, BYTES_MAX).map_err(|source| io_error(&path, source))?;
        let read =
            |bytes: Vec<u8>| serde_json::from_slice(&bytes).map_err(|error| io_error(&path, error.into()));
        bytes.map_or_else(|| Ok(Self::default()), read)
    }

    pub(super) fn write(&self, archive: &Path) -> Result<(), ShareError> {
        let path = archive.join(FILE);
        let bytes = serde_json::to_vec_pretty(self).map_err(io::Error::from);
        let written = bytes.and_then(|bytes| WholeFile::replace(&path, &bytes));
        written.map_err(|source| io_error(&path, source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archive_books::cluster::FILES_MAX;

    #[test]
    fn the_note_of_as_many_files_as_there_can_be_is_read_again() {
        let archive = tempfile::tempdir().unwrap();
        let digest = Some(archive_storage::Digest::sha256(b"").to_string());
        let entry = Entry { version: u64::MAX, digest: digest.clone(), before: digest };
        let files = (0..FILES_MAX).map(|file| (format!("{file:a>40}.topic"), entry.clone())).collect();
        Record { files }.write(archive.path()).unwrap();
        assert_eq!(Record::read(archive.path()).unwrap().files.len(), FILES_MAX);
    }
}
