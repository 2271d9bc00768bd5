//! Atomic file replacement.
//!
//! A new file is written next to its final path, with `.part` appended to its name, and renamed when it is complete.
//! Readers see either the old file or the new one, however the program ends; the next run overwrites what a crash left.
//! Links are not followed, because an archive may come from a stranger. Only where a person names the destination
//! ([`Output`]) are links followed and devices written to.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IntoInnerError, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use archive_storage::backend::{OpenMode, open_regular};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Maximum length of a chain of links to an output.
const LINKS_MAX: usize = 40;

/// Bytes of the line at the end of a file that has the checksum of all before it.
const CHECK_BYTES: usize = "{\"xxh3\":\"0123456789abcdef\"}\n".len();

/// That line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckLine {
    xxh3: String,
}

impl CheckLine {
    fn of(sum: u64) -> Self {
        Self { xxh3: format!("{sum:016x}") }
    }
}

/// An error of a file or folder, with its path.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct FileError {
    /// The file or folder.
    pub path: PathBuf,
    /// The error.
    pub source: io::Error,
}

impl FileError {
    /// Returns a closure that adds a path to an error.
    pub fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self { path: path.to_owned(), source }
    }
}

/// Reads a regular file.
///
/// # Errors
/// When it cannot be read, is not a regular file, or is longer than `bytes_max`.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    read_within(open_regular(path, OpenMode::Read)?, bytes_max)
}

/// Reads all of `source`.
///
/// # Errors
/// When it cannot be read or is longer than `bytes_max`.
pub fn read_within(source: impl Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::other(format!("it is longer than {bytes_max} bytes")));
    }
    Ok(bytes)
}

/// Reads a regular file that may not exist.
///
/// # Errors
/// As [`read`], except that a missing file is no error.
pub fn read_if_there(path: &Path, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    if_there(read(path, bytes_max))
}

/// Copies a regular file of an archive.
///
/// # Errors
/// When it cannot be read or is not a regular file, and when the copy cannot be written.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut file = open_regular(from, OpenMode::Read)?;
    let mut copy = open_regular(to, OpenMode::Create)?;
    copy.set_len(0)?;
    io::copy(&mut file, &mut copy).map(drop)
}

/// Returns the outcome of an operation on a file or folder; `None` if that does not exist.
///
/// # Errors
/// As the operation, except that what is missing is no error.
pub fn if_there<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        outcome => outcome.map(Some),
    }
}

/// Whether a file ends with its checksum, whatever else is in it.
#[must_use]
pub fn is_checked(path: &Path) -> bool {
    let last = || {
        let mut last = [0; CHECK_BYTES];
        let mut file = open_regular(path, OpenMode::Read)?;
        file.seek(SeekFrom::End(-(CHECK_BYTES as i64)))?;
        file.read_exact(&mut last)?;
        Ok::<_, io::Error>(last)
    };
    last().is_ok_and(|last| serde_json::from_slice::<CheckLine>(&last).is_ok())
}

/// Returns the lines of a file without the one with their checksum, which earlier versions did not write.
///
/// # Errors
/// When the checksum is not theirs.
pub fn checked(bytes: &[u8]) -> io::Result<&[u8]> {
    let Some((lines, last)) = bytes.split_at_checked(bytes.len().saturating_sub(CHECK_BYTES)) else {
        return Ok(bytes);
    };
    match serde_json::from_slice::<CheckLine>(last) {
        Ok(check) if check.xxh3 == CheckLine::of(xxh3_64(lines)).xxh3 => Ok(lines),
        Ok(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "it has changed since it was written")),
        Err(_) => Ok(bytes),
    }
}

/// Line and column (in characters) of a byte offset in a text; both start at 1.
#[must_use]
pub fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    (line, before.rsplit('\n').next().unwrap_or_default().chars().count() + 1)
}

/// Creates a folder of an archive unless it exists.
///
/// # Errors
/// When it cannot be created, or when the path is a link.
pub fn make_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)?;
    refuse_link(path)
}

/// A file that replaces another one when it is complete. Dropping it before that removes it.
#[derive(Debug)]
pub struct WholeFile {
    out: File,
    part: PathBuf,
    path: PathBuf,
    is_whole: bool,
}

impl WholeFile {
    /// Begins a file that will replace the one at `path`.
    ///
    /// # Errors
    /// When the folder cannot be written, when another process is writing the same file, or when the path of the
    /// unfinished file is occupied by something other than a regular file.
    pub fn begin(path: &Path) -> io::Result<Self> {
        Self::begin_as(path, with_ending(path, ".part"))
    }

    /// As [`WholeFile::begin`], with another path in the same folder for the unfinished file.
    ///
    /// # Errors
    /// As [`WholeFile::begin`].
    pub fn begin_as(path: &Path, part: PathBuf) -> io::Result<Self> {
        // The caller names the final file in its message, but does not know the unfinished one.
        let out = lock(&part).map_err(|error| match part.symlink_metadata() {
            Ok(_) => io::Error::new(error.kind(), format!("{}: {error}", part.display())),
            Err(_) => error,
        })?;
        Ok(Self { out, part, path: path.to_owned(), is_whole: false })
    }

    /// Syncs the file to disk and renames it to its final name. It gets the permissions of the file it replaces.
    ///
    /// # Errors
    /// When writing to the disk fails; the old file then remains.
    pub fn commit(self) -> io::Result<()> {
        self.end(true)
    }

    /// As [`WholeFile::commit`], but does not wait for the disk: after a power failure the file may be the old one or
    /// contain anything.
    ///
    /// # Errors
    /// As [`WholeFile::commit`].
    pub fn put_in_place(self) -> io::Result<()> {
        self.end(false)
    }

    /// Writes each value as a line of JSON, and commits the file.
    ///
    /// # Errors
    /// As [`WholeFile::commit`].
    pub fn commit_lines(self, values: impl IntoIterator<Item: Serialize>) -> io::Result<()> {
        let mut out = BufWriter::new(self);
        for value in values {
            serde_json::to_writer(&mut out, &value)?;
            out.write_all(b"\n")?;
        }
        out.into_inner().map_err(IntoInnerError::into_error)?.commit()
    }

    /// As [`WholeFile::commit_lines`], with a last line that has the checksum of the others ([`checked`]).
    ///
    /// # Errors
    /// As [`WholeFile::commit`].
    pub fn commit_checked_lines(self, values: impl IntoIterator<Item: Serialize>) -> io::Result<()> {
        let (mut out, mut hasher) = (BufWriter::new(self), Xxh3::new());
        for value in values {
            let mut line = serde_json::to_vec(&value)?;
            line.push(b'\n');
            hasher.update(&line);
            out.write_all(&line)?;
        }
        let file = out.into_inner().map_err(IntoInnerError::into_error)?;
        file.commit_lines([CheckLine::of(hasher.digest())])
    }

    fn end(mut self, durably: bool) -> io::Result<()> {
        if let Ok(old) = fs::symlink_metadata(&self.path)
            && old.is_file()
        {
            self.out.set_permissions(old.permissions())?;
        }
        if durably {
            self.out.sync_all()?;
        }
        fs::rename(&self.part, &self.path)?;
        self.is_whole = true;
        if !durably {
            return Ok(());
        }
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }

    /// Makes the file readable only by the program's user.
    ///
    /// # Errors
    /// When the permissions cannot be set.
    pub fn keep_private(&self) -> io::Result<()> {
        self.out.set_permissions(fs::Permissions::from_mode(0o600))
    }

    /// Replaces a file with one that contains `bytes`.
    ///
    /// # Errors
    /// As [`WholeFile::begin`] and [`WholeFile::commit`].
    pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = Self::begin(path)?;
        file.out.write_all(bytes)?;
        file.commit()
    }
}

impl Write for WholeFile {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.out.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if !self.is_whole {
            // If it cannot be removed, the next run overwrites it.
            let _ = fs::remove_file(&self.part);
        }
    }
}

/// Opens an unfinished file, empty and locked, so that two processes never write the same one.
fn lock(part: &Path) -> io::Result<File> {
    loop {
        let file = open_regular(part, OpenMode::Create)?;
        if file.try_lock().is_err() {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "another process is writing this file"));
        }
        // The process that held the lock may have renamed the file before this lock was taken.
        let now = fs::symlink_metadata(part);
        if now.is_ok_and(|now| file.metadata().is_ok_and(|own| is_same(&own, &now))) {
            file.set_len(0)?;
            return Ok(file);
        }
    }
}

/// A destination that a person named. A link's target is replaced and the link kept; pipes and devices are written to
/// directly; `-` is standard output.
#[derive(Debug)]
pub struct Output {
    place: OutputPlace,
    written: u64,
}

#[derive(Debug)]
enum OutputPlace {
    /// A regular file, renamed to its final name when it is complete.
    Whole(WholeFile),
    /// A pipe or a device, or standard output of any kind.
    Direct(File),
}

impl Output {
    /// Opens an output.
    ///
    /// # Errors
    /// As [`WholeFile::begin`], and when a device cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let standard = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let place = match fs::metadata(path) {
            _ if is_standard_output(path) => OutputPlace::Direct(standard),
            Ok(found) if is_same(&found, &standard.metadata()?) => OutputPlace::Direct(standard),
            Ok(found) if !found.is_file() => OutputPlace::Direct(OpenOptions::new().write(true).open(path)?),
            _ => OutputPlace::Whole(WholeFile::begin(&end_of_links(path)?)?),
        };
        Ok(Self { place, written: 0 })
    }

    /// The file, if it is a regular file that supports random-access writes.
    pub fn whole(&mut self) -> Option<&mut File> {
        match &mut self.place {
            OutputPlace::Whole(file) => Some(&mut file.out),
            OutputPlace::Direct(_) => None,
        }
    }

    /// Syncs a regular file to disk and renames it to its final name. Returns the number of bytes written.
    ///
    /// # Errors
    /// As [`WholeFile::commit`].
    pub fn commit(self) -> io::Result<u64> {
        match self.place {
            OutputPlace::Whole(file) => {
                let bytes = file.out.metadata()?.len();
                file.commit().map(|()| bytes)
            }
            OutputPlace::Direct(_) => Ok(self.written),
        }
    }
}

impl Write for Output {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let (OutputPlace::Whole(WholeFile { out: file, .. }) | OutputPlace::Direct(file)) = &mut self.place;
        let count = file.write(buffer)?;
        self.written += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether the path means standard output: `-`.
#[must_use]
pub fn is_standard_output(path: &Path) -> bool {
    path == Path::new("-")
}

/// The file that a link leads to, whether or not it exists; the path itself if it is not a link.
fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..=LINKS_MAX {
        let Ok(target) = fs::read_link(&path) else { return Ok(path) };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    Err(io::Error::other("there are too many links to follow"))
}

/// Refuses a link inside an archive; links elsewhere are allowed.
///
/// # Errors
/// When `path` is a link in the archive's folder or below.
pub fn refuse_link_in(archive: &Path, path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (archive.canonicalize(), parent.canonicalize()) {
        (Ok(archive), Ok(parent)) if parent.starts_with(&archive) => refuse_link(path),
        _ => Ok(()),
    }
}

/// Identity of a file's contents, if files are only ever replaced: inode number and modification time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp(u64, i64, i64);

impl FileStamp {
    /// Returns the stamp of the file at `path`, if there is one.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let meta = fs::metadata(path).ok()?;
        Some(Self(meta.ino(), meta.mtime(), meta.mtime_nsec()))
    }
}

/// Refuses a path that is a link.
///
/// # Errors
/// When `path` is a link.
pub fn refuse_link(path: &Path) -> io::Result<()> {
    if path.is_symlink() {
        return Err(io::Error::other("is a link, which may lead out of the archive; remove it"));
    }
    Ok(())
}

fn is_same(left: &fs::Metadata, right: &fs::Metadata) -> bool {
    (left.dev(), left.ino()) == (right.dev(), right.ino())
}

/// Appends `ending` to the name of a file.
fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(ending);
    path.into()
}
