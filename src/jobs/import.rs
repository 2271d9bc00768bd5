//! Imports captures from files of other tools.

use std::path::Path;

use archive_base::control::Control;
use archive_books::{recorder, search};
use archive_storage::segment::SegmentOptions;
use archive_vault::import::{self, ImportEvent, ImportOptions, ImportStatus};

use super::{Failure, Hear, JobEvent, Opening, open};

/// An import: from which files, and how.
#[derive(Clone, Debug)]
pub struct ImportJob {
    /// The files, and how they are read.
    pub options: ImportOptions,
    /// How new segments are written.
    pub segments: SegmentOptions,
    /// Whether older versions are indexed from now on; `None` leaves it as it is.
    pub index_versions: Option<bool>,
}

/// Imports files into the archive in a folder, which is created if there is none; the same job continues it after an
/// interruption. Returns whether it came to its end, and what was imported and what was not.
///
/// # Errors
/// If another program owns the archive, or the disk fails. Files that cannot be read are told, and the others imported.
pub fn import(
    path: &Path,
    job: &ImportJob,
    control: &Control,
    hear: &mut Hear<'_>,
) -> Result<(bool, ImportStatus), Failure> {
    let ImportJob { options, segments, index_versions } = job;
    let opening = Opening { segments: segments.clone(), ..Opening::default() };
    let mut store = open(path, &opening, hear)?;
    if let Some(keep) = index_versions {
        search::keep_versions(path, *keep)?;
    }
    let outcome = import::run(&mut store, options, control, &mut |event| {
        hear(match event {
            ImportEvent::Status(status) => JobEvent::Importing(status),
            ImportEvent::Note(note) => JobEvent::Found(note),
        });
    })?;
    recorder::close(store)?;
    Ok(outcome)
}
