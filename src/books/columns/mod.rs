//! Named columns of numbers, stored with an archive: what `archive rank --save` computed, for use in queries.
//!
//! A column is one file, `DIR/state/columns/KIND.NAME`: the eight bytes of `MAGIC`, the identity of the state whose ids
//! it uses (`u64`), one 32-bit float for each URL or site in the order of ids, all little-endian, and the XXH3-64 of
//! everything before it. NaN means "unknown". A column is computed from the link log at one moment: pages that came
//! later have no value. A file is always replaced whole.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use archive_base::files::{self, FileError, WholeFile, if_there, make_folder};
use archive_storage::backend::{OpenMode, open_regular};
use chrono::{DateTime, Utc};
use xxhash_rust::xxh3::xxh3_64;

/// Folder of the columns in an archive. Columns refer to URLs and sites by their ids in the state, and are valid only
/// with it.
pub const FOLDER: &str = "state/columns";

/// Site column with the estimated probability that people would choose a site (`archive review learn`).
pub const LIKELY: &str = "likely";

/// Page and site column with the change of importance ([`crate::trends`]); it is in no file.
pub const TREND: &str = "trend";

/// First bytes of each file; the digit is the format version.
const MAGIC: [u8; 8] = *b"archcol2";

/// Copies the columns of an archive to another folder whose state has the same ids.
///
/// # Errors
/// When the disk refuses.
pub fn share(archive: &Path, other: &Path) -> io::Result<()> {
    let (from, to) = (archive.join(FOLDER), other.join(FOLDER));
    let Some(entries) = if_there(fs::read_dir(&from))? else { return Ok(()) };
    make_folder(&to)?;
    for entry in entries {
        let name = entry?.file_name();
        files::copy(&from.join(&name), &to.join(&name))?;
    }
    Ok(())
}

/// What a column describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    /// Pages, by URL id.
    Page,
    /// Sites, by site id.
    Site,
}

archive_base::names! { RowKind: Page "page", Site "site" }

/// Why a column cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ColumnError {
    /// A file system operation failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is damaged, not a column, or of an unknown version.
    #[error("{} is damaged or of another version; compute it again with `archive rank --save`", path.display())]
    Format {
        /// The file.
        path: PathBuf,
    },
    /// The name cannot be used in queries.
    #[error(
        "'{0}' is not a name for a column: use 1 to {NAME_LENGTH_MAX} lowercase letters, digits and _, beginning with a letter"
    )]
    Name(String),
}

/// Maximum length of a name.
const NAME_LENGTH_MAX: usize = 32;

/// Names that already have a meaning in queries.
const RESERVED: [&str; 4] = ["importance", "importance_sum", "importance_max", TREND];

/// A column in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedColumn {
    /// Name in queries.
    pub name: String,
    values: Vec<f32>,
}

impl SavedColumn {
    /// A column that is in no file.
    pub(crate) fn of(name: &str, values: &[Option<f64>]) -> Self {
        let values = values.iter().map(|value| value.map_or(f32::NAN, |value| value as f32)).collect();
        Self { name: name.to_owned(), values }
    }

    /// Number of ids that it covers, from 0 on.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether it covers no ids.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the value of an id, if it has one.
    #[must_use]
    pub fn get(&self, id: usize) -> Option<f64> {
        self.values.get(id).filter(|value| !value.is_nan()).map(|&value| f64::from(value))
    }
}

/// Locks the columns until the returned file is dropped: columns that belong together must come from one ranking.
///
/// # Errors
/// When the folder cannot be made or locked.
pub fn lock(archive: &Path) -> Result<File, ColumnError> {
    let folder = archive.join(FOLDER);
    make_folder(&folder).map_err(FileError::at(&folder))?;
    let lock = File::open(&folder).map_err(FileError::at(&folder))?;
    lock.lock().map_err(FileError::at(&folder))?;
    Ok(lock)
}

/// Returns an error if `name` is not a valid column name.
///
/// # Errors
/// [`ColumnError::Name`].
pub fn check_name(name: &str) -> Result<(), ColumnError> {
    if is_name(name) { Ok(()) } else { Err(ColumnError::Name(name.to_owned())) }
}

/// Writes a column of the state with this identity, replacing any column of the same name.
///
/// # Errors
/// When the name is invalid, or the folder cannot be written.
pub fn write(
    archive: &Path,
    kind: RowKind,
    name: &str,
    values: &[Option<f64>],
    state: u64,
) -> Result<(), ColumnError> {
    check_name(name)?;
    let folder = archive.join(FOLDER);
    make_folder(&folder).map_err(FileError::at(&folder))?;
    let path = folder.join(format!("{}.{name}", kind.name()));
    let mut bytes = [MAGIC, state.to_le_bytes()].concat();
    let numbers = values.iter().map(|value| value.map_or(f32::NAN, |value| value as f32).to_le_bytes());
    bytes.extend(numbers.flatten());
    bytes.extend(xxh3_64(&bytes).to_le_bytes());
    Ok(WholeFile::replace(&path, &bytes).map_err(FileError::at(&path))?)
}

/// Returns when a column was computed, if it exists.
#[must_use]
pub fn computed(archive: &Path, kind: RowKind, name: &str) -> Option<DateTime<Utc>> {
    let path = archive.join(FOLDER).join(format!("{}.{name}", kind.name()));
    Some(fs::metadata(path).and_then(|file| file.modified()).ok()?.into())
}

/// Returns the files that are not valid columns of the state with this identity.
///
/// # Errors
/// When the folder cannot be read.
pub fn damaged(archive: &Path, state: u64) -> Result<Vec<PathBuf>, ColumnError> {
    let mut damaged = Vec::new();
    for path in files(archive)? {
        // The next run overwrites a file that a crash left unfinished.
        let is_part = path.extension().is_some_and(|extension| extension == "part");
        if !is_part && !bytes_of(&path).is_ok_and(|bytes| parse(&bytes).is_some_and(|(of, _)| of == state)) {
            damaged.push(path);
        }
    }
    Ok(damaged)
}

/// Whether a name is valid in queries, and so in file names.
fn is_name(name: &str) -> bool {
    let fits = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    fits && name.starts_with(|c: char| c.is_ascii_lowercase())
        && (1..=NAME_LENGTH_MAX).contains(&name.len())
        && !RESERVED.contains(&name)
}

/// Reads all columns of one kind, sorted by name.
///
/// # Errors
/// When a file cannot be read or is not a column.
pub fn read_all(archive: &Path, kind: RowKind) -> Result<Vec<SavedColumn>, ColumnError> {
    let mut columns = Vec::new();
    for path in files(archive)? {
        let file = path.file_name().and_then(|file| file.to_str());
        let name = file.and_then(|file| file.split_once('.')).filter(|(of, _)| *of == kind.name());
        // Other names belong to unfinished files or other programs.
        if let Some((_, name)) = name.filter(|(_, name)| is_name(name)) {
            columns.push(read(&path, name)?);
        }
    }
    columns.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(columns)
}

fn files(archive: &Path) -> Result<Vec<PathBuf>, ColumnError> {
    let folder = archive.join(FOLDER);
    let entries = if_there(fs::read_dir(&folder)).map_err(FileError::at(&folder))?;
    entries.into_iter().flatten().map(|entry| Ok(entry.map_err(FileError::at(&folder))?.path())).collect()
}

fn bytes_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path, OpenMode::Read)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn read(path: &Path, name: &str) -> Result<SavedColumn, ColumnError> {
    let bytes = bytes_of(path).map_err(FileError::at(path))?;
    let (_, values) = parse(&bytes).ok_or_else(|| ColumnError::Format { path: path.into() })?;
    Ok(SavedColumn { name: name.to_owned(), values })
}

/// Returns the state's identity and the values in a file, if its format and checksum are right.
fn parse(bytes: &[u8]) -> Option<(u64, Vec<f32>)> {
    let (content, sum) = bytes.split_last_chunk::<8>()?;
    let (state, numbers) = content.strip_prefix(&MAGIC)?.split_first_chunk::<8>()?;
    let (numbers, rest) = numbers.as_chunks::<4>();
    let is_whole = rest.is_empty() && xxh3_64(content) == u64::from_le_bytes(*sum);
    let values = numbers.iter().map(|&number| f32::from_le_bytes(number)).collect();
    is_whole.then_some((u64::from_le_bytes(*state), values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_read_as_they_were_written() {
        let archive = tempfile::tempdir().unwrap();
        assert_eq!(read_all(archive.path(), RowKind::Page).unwrap(), []);
        write(archive.path(), RowKind::Page, "pagerank", &[Some(0.5), None, Some(2.0)], 7).unwrap();
        write(archive.path(), RowKind::Page, "hub", &[Some(9.0)], 7).unwrap();
        write(archive.path(), RowKind::Page, "hub", &[Some(1.0)], 7).unwrap();
        write(archive.path(), RowKind::Site, "harmonic", &[Some(3.0)], 7).unwrap();
        let columns = read_all(archive.path(), RowKind::Page).unwrap();
        assert_eq!(
            columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>(),
            ["hub", "pagerank"]
        );
        let values: Vec<Option<f64>> = (0..4).map(|id| columns[1].get(id)).collect();
        assert_eq!(values, [Some(0.5), None, Some(2.0), None]);
        assert_eq!(columns[0].get(0), Some(1.0));
        assert_eq!(read_all(archive.path(), RowKind::Site).unwrap().len(), 1);
        assert_eq!(damaged(archive.path(), 7).unwrap(), [] as [PathBuf; 0]);
        assert_eq!(damaged(archive.path(), 8).unwrap().len(), 3, "columns of another state");
    }

    #[test]
    fn names_have_to_fit_queries() {
        let archive = tempfile::tempdir().unwrap();
        for name in ["", "Rank", "a.b", "../x", "importance", &"x".repeat(33)] {
            assert!(
                matches!(write(archive.path(), RowKind::Page, name, &[], 7), Err(ColumnError::Name(_))),
                "{name}"
            );
        }
    }

    #[test]
    fn other_files_are_no_columns() {
        let archive = tempfile::tempdir().unwrap();
        write(archive.path(), RowKind::Page, "a", &[Some(1.0)], 7).unwrap();
        let path = archive.path().join(FOLDER).join("page.a");
        let good = fs::read(&path).unwrap();
        let flipped = |byte: usize| [&good[..byte], &[good[byte] ^ 1], &good[byte + 1..]].concat();
        let flipped = (0..good.len()).map(flipped);
        for bad in
            [good[..7].to_vec(), good[..10].to_vec(), b"something else".to_vec()].into_iter().chain(flipped)
        {
            fs::write(&path, bad).unwrap();
            assert!(matches!(read_all(archive.path(), RowKind::Page), Err(ColumnError::Format { .. })));
            assert_eq!(damaged(archive.path(), 7).unwrap(), std::slice::from_ref(&path));
        }
        fs::remove_file(&path).unwrap();
        // A write that was cut off leaves no column.
        fs::write(archive.path().join(FOLDER).join("page.a.part"), b"arch").unwrap();
        assert_eq!(read_all(archive.path(), RowKind::Page).unwrap(), []);
    }
}
