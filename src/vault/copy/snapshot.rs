//! Holds the files of an archive as of its last checkpoint, however long copying takes.
//!
//! An open reader blocks checkpoints, so it is kept open only for fast local operations: files that never change are
//! hard-linked into the folder `snapshot`, files that grow are recorded with their length, and files that change in
//! place are copied there. On a file system without hard links, files are read in place; the copy fails if one is
//! removed before.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use archive_base::files::{if_there, make_folder, refuse_link};
use archive_base::secrets;
use archive_books::search;
use archive_storage::backend::{OpenMode, open_regular};
use archive_storage::{CheckpointFile, FileChange, Store};

use super::manifest::{check_path, hex};
use super::{CopyError, FILES_MAX, restore};
use crate::erase;
use crate::verify::INDEXES;

/// Name of the folder in the archive's folder.
pub const FOLDER: &str = "snapshot";

const LOCK: &str = "lock";
const FILES: &str = "files";

/// Other files up to this length are copied, because people may overwrite them.
const SMALL_BYTES_MAX: u64 = 1 << 20;

/// Names that are not copied, in the archive's folder and in the state's folder.
const LEFT_OUT: [&str; 8] = [
    "archive.lock",
    "segments",
    "state",
    "rebuild",
    FOLDER,
    secrets::FOLDER,
    erase::INTENT_FILE,
    restore::MARK,
];
const LEFT_OUT_OF_STATE: [&str; 6] =
    ["checkpoint.lock", "journal", "reading", "due", search::NAME, search::VERSIONS_NAME];

/// Records changes that were made to other files, which are held after it: a copy may contain changes that this file
/// lacks, but must not lack changes that it records.
pub const HELD_FIRST: &str = "orders.json";

/// Extensions of incomplete files.
const UNFINISHED: [&str; 2] = [".part", ".new"];

/// The exclusive right to hold an archive's files. Taking it removes what a killed holder has left.
#[derive(Debug)]
pub struct HoldLock {
    _file: File,
    folder: PathBuf,
}

impl HoldLock {
    /// Takes the lock. Returns `None` while another process has it.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn take(archive: &Path) -> io::Result<Option<Self>> {
        let folder = archive.join(FOLDER);
        make_folder(&folder)?;
        let file = open_regular(&folder.join(LOCK), OpenMode::Create)?;
        if file.try_lock().is_err() {
            return Ok(None);
        }
        let lock = Self { _file: file, folder: folder.join(FILES) };
        lock.clear()?;
        Ok(Some(lock))
    }

    fn clear(&self) -> io::Result<()> {
        if_there(fs::remove_dir_all(&self.folder)).map(drop)
    }
}

impl Drop for HoldLock {
    fn drop(&mut self) {
        // If this fails, the next holder removes it.
        let _ = self.clear();
    }
}

/// Location of a file's bytes.
#[derive(Debug)]
enum FileSource {
    File(PathBuf),
    Bytes(Vec<u8>),
}

/// A file of the archive as it is copied.
#[derive(Debug)]
pub(super) struct Local {
    /// Path in the archive's folder.
    pub(super) name: String,
    pub(super) bytes: u64,
    /// The expected digest, if it is recorded.
    pub(super) sha256: Option<String>,
    source: FileSource,
}

impl Local {
    /// Returns a file if it exists with this length.
    pub(super) fn of_file(path: &Path, bytes: u64) -> Option<Self> {
        let found =
            fs::symlink_metadata(path).ok().filter(|found| found.is_file() && found.len() == bytes)?;
        let name = path.to_string_lossy().into_owned();
        Some(Self { name, bytes: found.len(), sha256: None, source: FileSource::File(path.to_owned()) })
    }

    pub(super) fn open(&self) -> Result<Box<dyn Read + '_>, CopyError> {
        match &self.source {
            FileSource::Bytes(bytes) => Ok(Box::new(Cursor::new(bytes))),
            FileSource::File(path) => {
                let file = open_regular(path, OpenMode::Read).map_err(CopyError::io(&self.path()))?;
                Ok(Box::new(file))
            }
        }
    }

    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(&self.name)
    }

    pub(super) fn changed(&self, problem: &str) -> CopyError {
        CopyError::Changed { path: self.path(), problem: problem.to_owned() }
    }
}

/// The files of one checkpoint; they are held until this is dropped.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) captures: u64,
    /// Sorted by name.
    pub(super) files: Vec<Local>,
    _lock: HoldLock,
}

impl Snapshot {
    pub(super) fn take(archive: &Path) -> Result<Self, CopyError> {
        let lock = HoldLock::take(archive).map_err(CopyError::io(&archive.join(FOLDER)))?;
        let lock = lock.ok_or_else(|| CopyError::UnderWay(archive.to_owned()))?;
        // An erase needs this lock too, so none can be running.
        if archive.join(erase::INTENT_FILE).exists() {
            return Err(CopyError::EraseUnfinished);
        }
        fs::create_dir(&lock.folder).map_err(CopyError::io(&lock.folder))?;
        let mut held = SnapshotHold { archive, folder: &lock.folder, files: Vec::new() };
        let store = Store::read_only(archive)?;
        let captures = store.state().totals().captures;
        let listed = store.files()?;
        let mut known: HashSet<String> = HashSet::new();
        for file in listed.files {
            known.insert(file.name.clone());
            held.hold(file)?;
        }
        for (name, bytes) in listed.written {
            let (length, source) = (bytes.len() as u64, FileSource::Bytes(bytes));
            held.files.push(Local { name, bytes: length, sha256: None, source });
        }
        INDEXES.into_iter().try_for_each(|index| held.index(index))?;
        held.walk("state", &|name| {
            LEFT_OUT_OF_STATE.contains(&name) || known.contains(&format!("state/{name}"))
        })?;
        drop(store);
        held.walk("", &|name| name != HELD_FIRST)?;
        held.walk("", &|name| LEFT_OUT.contains(&name) || name == HELD_FIRST)?;
        let mut files = held.files;
        files.sort_unstable_by(|left, right| left.name.cmp(&right.name));
        if files.len() > FILES_MAX {
            return Err(CopyError::TooMany);
        }
        Ok(Self { captures, files, _lock: lock })
    }
}

struct SnapshotHold<'a> {
    archive: &'a Path,
    folder: &'a Path,
    files: Vec<Local>,
}

impl SnapshotHold<'_> {
    /// Holds a file in its current state.
    fn hold(&mut self, file: CheckpointFile) -> Result<(), CopyError> {
        let CheckpointFile { name, source, length, change, sha256 } = file;
        let own = self.folder.join(self.files.len().to_string());
        let kept = match keep(&source, &own, length, change) {
            // The segment has just been closed.
            Err(error) if error.kind() == io::ErrorKind::NotFound && change == FileChange::Grows => {
                keep(&source.with_extension(""), &own, length, change)
            }
            kept => kept,
        };
        let source = FileSource::File(kept.map_err(CopyError::io(&source))?);
        let sha256 = sha256.map(|digest| hex(&digest));
        self.files.push(Local { name, bytes: length, sha256, source });
        Ok(())
    }

    /// Holds a full-text index as of its last commit.
    fn index(&mut self, (from, name): (&str, &str)) -> Result<(), CopyError> {
        let to = self.folder.join(name);
        search::snapshot(&self.archive.join(from), &to)?;
        let Ok(entries) = fs::read_dir(&to) else { return Ok(()) };
        for entry in entries {
            let entry = entry.map_err(CopyError::io(&to))?;
            let bytes = entry.metadata().map_err(CopyError::io(&to))?.len();
            let name = format!("{from}/{}", entry.file_name().to_string_lossy());
            self.files.push(Local { name, bytes, sha256: None, source: FileSource::File(entry.path()) });
        }
        Ok(())
    }

    /// Holds all files below a folder of the archive, except the excluded names at its top and incomplete files.
    fn walk(&mut self, below: &str, is_left_out: &dyn Fn(&str) -> bool) -> Result<(), CopyError> {
        let mut open = vec![below.to_owned()];
        while let Some(folder) = open.pop() {
            let at = self.archive.join(&folder);
            for entry in fs::read_dir(&at).map_err(CopyError::io(&at))? {
                let entry = entry.map_err(CopyError::io(&at))?;
                let path = entry.path();
                let file = entry.file_name();
                let file = file.to_string_lossy();
                if folder == below && is_left_out(&file)
                    || UNFINISHED.iter().any(|ending| file.ends_with(ending))
                {
                    continue;
                }
                let name = if folder.is_empty() { file.into_owned() } else { format!("{folder}/{file}") };
                check_path(&name).map_err(|problem| CopyError::Changed { path: path.clone(), problem })?;
                let metadata = if_there(fs::symlink_metadata(&path)).map_err(CopyError::io(&path))?;
                let Some(metadata) = metadata else { continue };
                if metadata.is_dir() {
                    open.push(name);
                    continue;
                }
                let change =
                    if metadata.len() <= SMALL_BYTES_MAX { FileChange::InPlace } else { FileChange::Never };
                let file =
                    CheckpointFile { name, source: path, length: metadata.len(), change, sha256: None };
                match self.hold(file) {
                    Err(CopyError::Io(error)) if error.source.kind() == io::ErrorKind::NotFound => {}
                    held => held?,
                }
            }
        }
        Ok(())
    }
}

/// Hard-links a file, or copies it. Returns the path to read from.
fn keep(source: &Path, own: &Path, length: u64, change: FileChange) -> io::Result<PathBuf> {
    refuse_link(source)?;
    if change == FileChange::InPlace {
        return copy(source, own, length).map(|()| own.to_owned());
    }
    match fs::hard_link(source, own) {
        Ok(()) => Ok(own.to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(error),
        // The file gets another name when its segment is closed.
        Err(_) if change == FileChange::Grows => copy(source, own, length).map(|()| own.to_owned()),
        Err(_) => Ok(source.to_owned()),
    }
}

/// Copies the first bytes of a file; on some file systems this takes no time and no space.
fn copy(from: &Path, to: &Path, length: u64) -> io::Result<()> {
    let mut source = open_regular(from, OpenMode::Read)?.take(length);
    let copied = io::copy(&mut source, &mut open_regular(to, OpenMode::CreateNew)?)?;
    if copied < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}
