//! The files of the last checkpoint; see [`crate::files`].

use std::path::Path;

use super::State;
use super::open::{FOLDER, LOGS, TABLES, table_file};
use crate::backend::OpenMode;
use crate::checkpoint::{Result, StateError, lock};
use crate::files::{CheckpointFile, CheckpointFiles, FileChange};

const JOURNAL: &str = "journal";

impl State {
    /// Adds the files of the state.
    pub(crate) fn files(&self, found: &mut CheckpointFiles) -> Result<()> {
        let logs = [
            self.urls.log(),
            self.host_names.log(),
            self.site_names.log(),
            self.titles.log(),
            self.validators.log(),
            self.links.log(),
        ];
        for (name, log) in LOGS.iter().zip(logs) {
            let (bytes, ends) = log.extent();
            for (file, length) in [(format!("{name}.zst"), bytes), (format!("{name}.ends"), ends)] {
                found.files.push(self.file(&file, length, FileChange::Grows));
            }
        }
        let tables = TABLES.map(table_file);
        for file in tables.iter().map(String::as_str).chain([crate::catalogue::FILE]) {
            let length = self.length(&self.folder.join(FOLDER).join(file))?;
            found.files.push(self.file(file, length, FileChange::InPlace));
        }
        // An owner killed after a commit leaves a journal that its tables still lack. Any other content belongs to a
        // future checkpoint.
        if self.journal.is_pending(self.checkpoint_number())? {
            let length = self.length(self.journal.path())?;
            found.files.push(self.file(JOURNAL, length, FileChange::InPlace));
        } else {
            found.written.push((format!("{FOLDER}/{JOURNAL}"), Vec::new()));
        }
        found.written.push((format!("{FOLDER}/{}", lock::CHECKPOINT_LOCK), Vec::new()));
        Ok(())
    }

    fn file(&self, name: &str, length: u64, change: FileChange) -> CheckpointFile {
        let source = self.folder.join(FOLDER).join(name);
        CheckpointFile { name: format!("{FOLDER}/{name}"), source, length, change, sha256: None }
    }

    fn length(&self, path: &Path) -> Result<u64> {
        let length = self.disk.open(path, OpenMode::Read).and_then(|file| file.len());
        length.map_err(|error| StateError::io(path, error))
    }
}
