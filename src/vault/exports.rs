//! The list of exports of an archive. After an erase, it shows where else the erased captures may be.
//!
//! `exports.jsonl` in the archive's folder has a line for each of the newest [`EXPORTS_MAX`] exports, and one with
//! their checksum.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use archive_base::beside::EXPORTS;
use archive_base::files::{self, WholeFile};
use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

/// Number of exports that are kept in the list.
pub const EXPORTS_MAX: usize = 1000;

/// Largest accepted size of the file in bytes; a longer one was not written by this program.
const BYTES_MAX: u64 = 64 << 20;

/// Characters kept of a query or a path.
const CHARACTERS_MAX: usize = 4096;

/// A finished export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Export {
    /// When it was finished, RFC 3339.
    pub time: String,
    /// Format of the output: `warc`, `wacz`, …
    pub format: String,
    /// Path of the output file.
    pub output: String,
    /// The query; absent if everything was exported.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
}

/// Adds an export to the list.
///
/// # Errors
/// If the list cannot be read or written.
pub fn note(archive: &Path, format: &str, output: &Path, query: Option<&str>) -> io::Result<()> {
    let cut = |text: &str| text.chars().take(CHARACTERS_MAX).collect::<String>();
    let output = std::path::absolute(output).unwrap_or_else(|_| output.to_owned());
    let mut exports = read(archive)?;
    exports.push(Export {
        time: Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true),
        format: format.to_owned(),
        output: cut(&output.to_string_lossy()),
        query: query.map(cut),
    });
    let surplus = exports.len().saturating_sub(EXPORTS_MAX);
    exports.drain(..surplus);
    write(archive, &exports)
}

/// Returns the exports that were made since `time`.
pub(super) fn since(archive: &Path, time: Option<DateTime<Utc>>) -> io::Result<Vec<Export>> {
    let Some(time) = time else { return Ok(Vec::new()) };
    let is_later = |export: &Export| {
        DateTime::parse_from_rfc3339(&export.time)
            .is_ok_and(|made| made.to_utc().timestamp() >= time.timestamp())
    };
    Ok(read(archive)?.into_iter().filter(is_later).collect())
}

/// Replaces queries that contain one of `urls`.
pub(super) fn forget(archive: &Path, urls: &HashSet<String>) -> io::Result<()> {
    let mut exports = read(archive)?;
    let names = |export: &Export| {
        export.query.as_ref().is_some_and(|query| urls.iter().any(|url| query.contains(url.as_str())))
    };
    if !exports.iter().any(names) {
        return Ok(());
    }
    for export in exports.iter_mut().filter(|export| names(export)) {
        export.query = Some("(contained a forgotten URL)".to_owned());
    }
    write(archive, &exports)
}

/// Path of the list.
pub(super) fn path(archive: &Path) -> PathBuf {
    archive.join(EXPORTS)
}

/// Returns what is wrong with the list.
pub(super) fn damage(archive: &Path) -> Option<String> {
    let checked = files::read_if_there(&path(archive), BYTES_MAX)
        .and_then(|bytes| files::checked(bytes.as_deref().unwrap_or_default()).map(drop));
    checked.err().map(|error| format!("{EXPORTS}: {error}"))
}

/// Reads the list; unreadable lines are skipped.
fn read(archive: &Path) -> io::Result<Vec<Export>> {
    let bytes = files::read_if_there(&path(archive), BYTES_MAX)?.unwrap_or_default();
    let lines = bytes.split(|byte| *byte == b'\n');
    Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

fn write(archive: &Path, exports: &[Export]) -> io::Result<()> {
    WholeFile::begin(&path(archive))?.commit_checked_lines(exports)
}

#[cfg(test)]
mod tests {
    use super::{EXPORTS_MAX, Path, note, read};

    #[test]
    fn the_newest_exports_are_remembered() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..=EXPORTS_MAX {
            note(folder.path(), "warc", Path::new(&format!("/tmp/{number}.warc")), None).unwrap();
        }
        let exports = read(folder.path()).unwrap();
        assert_eq!((exports.len(), exports[0].output.as_str()), (EXPORTS_MAX, "/tmp/1.warc"));
    }
}
