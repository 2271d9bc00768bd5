//! Files of watches.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use archive_base::files::{self, FileError, WholeFile, make_folder, refuse_link};
use serde::Serialize;
use serde_json::{Map, Value};
use xxhash_rust::xxh3::xxh3_64;

use super::{FOLDER, Watch, WatchError};

/// Maximum length of a name.
pub(super) const NAME_LENGTH_MAX: usize = 40;

/// Maximum size in bytes; a larger file is not a watch or a report.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Name of a file while it is being written: always the same, so that the next write replaces what a crash has left.
const UNFINISHED: &str = "new.part";

/// The JSON files in a folder, sorted by name; for reports that is by time.
pub(super) fn json_files(folder: &Path) -> Result<Vec<PathBuf>, WatchError> {
    refuse_link(folder).map_err(FileError::at(folder))?;
    let entries = files::if_there(fs::read_dir(folder)).map_err(FileError::at(folder))?;
    let mut files = Vec::new();
    for entry in entries.into_iter().flatten() {
        let path = entry.map_err(FileError::at(folder))?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

pub(super) fn save(archive: &Path, watch: &Watch) -> Result<(), WatchError> {
    make(&archive.join(FOLDER))?;
    write_json(&file(archive, &watch.name), &WatchFile { watch, xxh3: checksum(watch) })
}

/// A watch as it is written, with the checksum of its fields. Whoever writes one by hand leaves it out.
#[derive(Serialize)]
struct WatchFile<'a> {
    #[serde(flatten)]
    watch: &'a Watch,
    xxh3: String,
}

/// Fails unless a watch is as the program wrote it, or as somebody wrote it who left out the checksum.
pub(super) fn check_written(path: &Path) -> Result<(), WatchError> {
    let watch = read_watch(path)?;
    let mut found: Map<String, Value> = read_json(path)?;
    if found.remove("xxh3").is_some_and(|sum| sum != checksum(&watch)) {
        let problem = "it has changed since it was written; if you changed it, remove its field `xxh3`";
        return Err(format_error(path, problem));
    }
    let known = serde_json::to_value(&watch).unwrap_or_default();
    match found.keys().find(|name| known.get(name).is_none()) {
        Some(other) => Err(format_error(path, &format!("unknown field `{other}`"))),
        None => Ok(()),
    }
}

fn checksum(watch: &Watch) -> String {
    // What cannot be written has no checksum that anything could have.
    format!("{:016x}", xxh3_64(&serde_json::to_vec(watch).unwrap_or_default()))
}

fn format_error(path: &Path, problem: &str) -> WatchError {
    WatchError::Format { path: path.to_owned(), problem: problem.to_owned() }
}

pub(super) fn make(folder: &Path) -> Result<(), WatchError> {
    Ok(make_folder(folder).map_err(FileError::at(folder))?)
}

/// Reads a watch. Its name must match its file name.
pub(super) fn read_watch(path: &Path) -> Result<Watch, WatchError> {
    parsed(path, &files::read(path, FILE_BYTES_MAX).map_err(FileError::at(path))?)
}

/// Parses a watch from the bytes of its file.
pub(super) fn parsed(path: &Path, bytes: &[u8]) -> Result<Watch, WatchError> {
    let watch: Watch = from_json(path, bytes)?;
    if checked_name(&watch.name).is_err() || path.file_stem() != Some(OsStr::new(&watch.name)) {
        return Err(format_error(path, "the name in it is not that of the file"));
    }
    Ok(watch)
}

/// Path of a watch's file.
#[must_use]
pub fn file(archive: &Path, name: &str) -> PathBuf {
    archive.join(FOLDER).join(format!("{name}.json"))
}

pub(super) fn checked_name(name: &str) -> Result<&str, WatchError> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > NAME_LENGTH_MAX || !name.chars().all(fits) || name.starts_with('-') {
        return Err(WatchError::Name(name.to_owned()));
    }
    Ok(name)
}

/// Derives an unused name from the words of a query.
pub(super) fn free_name(archive: &Path, query: &str) -> String {
    let words = query.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut name = String::new();
    for word in words.skip_while(|word| *word == "page") {
        if name.len() + word.len() + 5 > NAME_LENGTH_MAX {
            break;
        }
        if !name.is_empty() {
            name.push('-');
        }
        name.push_str(&word.to_ascii_lowercase());
    }
    if name.is_empty() {
        name.push_str("watch");
    }
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    std::iter::once(name.clone()).chain(numbered).find(|name| !file(archive, name).exists()).unwrap_or(name)
}

pub(super) fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, WatchError> {
    from_json(path, &files::read(path, FILE_BYTES_MAX).map_err(FileError::at(path))?)
}

fn from_json<T: serde::de::DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, WatchError> {
    serde_json::from_slice(bytes)
        .map_err(|error| WatchError::Format { path: path.to_owned(), problem: error.to_string() })
}

pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), WatchError> {
    let mut bytes = serde_json::to_vec_pretty(value)
        .map_err(|error| WatchError::Format { path: path.to_owned(), problem: error.to_string() })?;
    bytes.push(b'\n');
    replace(path, &bytes)
}

/// Replaces a file of the archive atomically.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), WatchError> {
    let save = || -> io::Result<()> {
        let mut out = WholeFile::begin_as(path, path.with_file_name(UNFINISHED))?;
        out.write_all(bytes)?;
        out.commit()
    };
    Ok(save().map_err(FileError::at(path))?)
}
