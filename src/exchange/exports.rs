//! Which exports were made of an archive: when something is erased, people have to know where else it may be.
//!
//! `exports.jsonl` in the archive's folder has a line for each of the newest [`EXPORTS_MAX`].

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

use crate::files::{self, WholeFile};

/// The name of the file.
const FILE: &str = "exports.jsonl";

/// Exports that are remembered.
pub const EXPORTS_MAX: usize = 1000;

/// A longer file is none of ours.
const BYTES_MAX: u64 = 64 << 20;

/// Characters of a query or a path that are kept.
const CHARACTERS_MAX: usize = 4096;

/// An export that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Export {
    /// When it was finished, RFC 3339.
    pub time: String,
    /// What was written: `warc`, `wacz`, …
    pub format: String,
    /// To which file.
    pub output: String,
    /// What was asked for; nothing for everything.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
}

/// Notes an export.
///
/// # Errors
/// When the list cannot be read or written.
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

/// The exports that were made since a time.
pub(super) fn since(archive: &Path, time: Option<DateTime<Utc>>) -> io::Result<Vec<Export>> {
    let Some(time) = time else { return Ok(Vec::new()) };
    let is_later = |export: &Export| {
        DateTime::parse_from_rfc3339(&export.time)
            .is_ok_and(|made| made.to_utc().timestamp() >= time.timestamp())
    };
    Ok(read(archive)?.into_iter().filter(is_later).collect())
}

/// Takes queries that name one of some URLs out of the list.
pub(super) fn forget(archive: &Path, urls: &HashSet<String>) -> io::Result<()> {
    let mut exports = read(archive)?;
    let names = |export: &Export| {
        export.query.as_ref().is_some_and(|query| urls.iter().any(|url| query.contains(url.as_str())))
    };
    if !exports.iter().any(names) {
        return Ok(());
    }
    for export in exports.iter_mut().filter(|export| names(export)) {
        export.query = Some("(named what is forgotten)".to_owned());
    }
    write(archive, &exports)
}

/// Where the list is.
pub(super) fn path(archive: &Path) -> PathBuf {
    archive.join(FILE)
}

/// The list; other lines are skipped.
fn read(archive: &Path) -> io::Result<Vec<Export>> {
    match files::read(&path(archive), BYTES_MAX) {
        Ok(bytes) => {
            let lines = bytes.split(|byte| *byte == b'\n');
            Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn write(archive: &Path, exports: &[Export]) -> io::Result<()> {
    let mut bytes = Vec::new();
    for export in exports {
        serde_json::to_writer(&mut bytes, export)?;
        bytes.push(b'\n');
    }
    WholeFile::replace(&path(archive), &bytes)
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
