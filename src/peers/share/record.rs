//! The record of files that an archive has from its cluster: `shared.json` in its folder, which is always replaced
//! completely.

use std::collections::BTreeMap;
use std::path::Path;

use archive_base::beside;
use serde::{Deserialize, Serialize};

use super::{ShareError, read_record, write_record};

const FILE: &str = beside::SHARED;

/// Maximum bytes of the record; with [`archive_books::cluster::FILES_MAX`] files it has about 250 KB.
const BYTES_MAX: u64 = 1 << 20;

/// Record of a published file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SharedEntry {
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
pub(super) struct SharedRecord {
    pub(super) files: BTreeMap<String, SharedEntry>,
}

impl SharedRecord {
    pub(super) fn read(archive: &Path) -> Result<Self, ShareError> {
        read_record(&archive.join(FILE), BYTES_MAX)
    }

    pub(super) fn write(&self, archive: &Path) -> Result<(), ShareError> {
        write_record(&archive.join(FILE), self)
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
        let entry = SharedEntry { version: u64::MAX, digest: digest.clone(), before: digest };
        let files = (0..FILES_MAX).map(|file| (format!("{file:a>40}.topic"), entry.clone())).collect();
        SharedRecord { files }.write(archive.path()).unwrap();
        assert_eq!(SharedRecord::read(archive.path()).unwrap().files.len(), FILES_MAX);
    }
}
