//! Restores an archive from a copy.
//!
//! All files are written into the folder `DIR.restoring` and synced. The folder gets its final name in one step when
//! every file has its digest, so there is either a complete archive or none. A restore that was interrupted is
//! continued; files in the folder that have their digests are kept.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use archive_base::control::Control;
use archive_base::files::{if_there, refuse_link};
use archive_storage::backend::{Disk, OpenMode, RealDisk, open_regular};
use serde::Serialize;

use super::snapshot::Local;
use super::{CopiedFile, CopyError, CopyProgress, Manifest, Remote, transfer};

/// Suffix of the folder's name until the archive is complete.
pub const RESTORE_ENDING: &str = ".restoring";

/// A file that marks the folder and is locked by the restore that fills it. It is removed last; in a complete archive
/// it is meaningless.
pub(super) const MARK: &str = "archive-copy.restoring";

/// The result of a restore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RestoreSummary {
    /// Number of the copy.
    pub number: u64,
    /// When the copy was made, RFC 3339.
    pub time: String,
    /// Number of captures in the copy.
    pub captures: u64,
    /// Number of files in the copy.
    pub files: u64,
    /// Bytes of the files.
    pub bytes: u64,
    /// Number of files that an interrupted restore had already written.
    pub kept: u64,
}

/// Restores a copy, by default the newest, into `archive`, which must be missing or an empty folder.
///
/// # Errors
/// If the destination is occupied, an object is missing or does not match the manifest, or the store or the disk fails.
/// There is no archive then, and the same command continues the restore.
pub fn restore(
    remote: &Remote,
    archive: &Path,
    number: Option<u64>,
    control: &Control,
    progress: CopyProgress<'_>,
) -> Result<RestoreSummary, CopyError> {
    let newest = || remote.numbers().map(|numbers| numbers.last().copied());
    let number = number.map_or_else(newest, |number| Ok(Some(number)))?;
    let number = number.ok_or_else(|| CopyError::NoCopy { url: remote.url.clone(), number: None })?;
    let manifest = remote.manifest(number)?;
    check_empty(archive)?;
    let beside = beside(archive)?;
    let folder = RestoreFolder::begin(&beside)?;
    folder.clear_but(&manifest)?;
    check_room(&beside, &manifest)?;
    let folders = folder.make_folders(&manifest)?;
    let (done, total) = (AtomicU64::new(0), manifest.bytes());
    let kept = transfer::each(&manifest.files, control, |file| {
        let was_there = folder.bring(remote, file, control)?;
        progress(done.fetch_add(file.bytes, Ordering::Relaxed) + file.bytes, total);
        Ok(was_there)
    })?;
    for path in folders.iter().rev() {
        sync(path)?;
    }
    folder.finish(archive)?;
    Ok(RestoreSummary {
        number,
        time: manifest.time.clone(),
        captures: manifest.captures,
        files: manifest.files.len() as u64,
        bytes: total,
        kept: kept.iter().filter(|was_there| **was_there).count() as u64,
    })
}

fn occupied(path: &Path, problem: &str) -> CopyError {
    CopyError::Occupied { path: path.to_owned(), problem: problem.to_owned() }
}

/// Refuses a destination that the archive cannot replace.
fn check_empty(archive: &Path) -> Result<(), CopyError> {
    refuse_link(archive).map_err(CopyError::io(archive))?;
    let entries = if_there(fs::read_dir(archive)).map_err(CopyError::io(archive))?;
    let Some(mut entries) = entries else { return Ok(()) };
    if entries.next().is_some() {
        return Err(occupied(archive, "is not empty; restore into a new folder"));
    }
    let device = |path: &Path| fs::metadata(path).map(|folder| folder.dev()).map_err(CopyError::io(path));
    if device(archive)? != device(parent(archive))? {
        return Err(occupied(archive, "is where a disk is mounted; name a new folder in it"));
    }
    Ok(())
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns the folder to fill.
fn beside(archive: &Path) -> Result<PathBuf, CopyError> {
    let mut name = archive
        .file_name()
        .ok_or_else(|| occupied(archive, "cannot be the name of a new folder"))?
        .to_owned();
    name.push(RESTORE_ENDING);
    Ok(archive.with_file_name(name))
}

fn check_room(folder: &Path, manifest: &Manifest) -> Result<(), CopyError> {
    let there: u64 = manifest
        .files
        .iter()
        .filter_map(|file| fs::metadata(folder.join(&file.path)).ok())
        .map(|file| file.len())
        .sum();
    let free = RealDisk.free_bytes(folder).map_err(CopyError::io(folder))?;
    let missing = manifest.bytes().saturating_sub(there);
    if missing > free {
        return Err(occupied(folder, &format!("has room for {free} bytes; {missing} are needed")));
    }
    Ok(())
}

fn sync(folder: &Path) -> Result<(), CopyError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(CopyError::io(folder))
}

/// The folder that is being filled.
struct RestoreFolder {
    path: PathBuf,
    _lock: File,
}

impl RestoreFolder {
    /// Creates the folder, or opens the one that an interrupted restore left.
    fn begin(path: &Path) -> Result<Self, CopyError> {
        let failed = CopyError::io(path);
        let mark = path.join(MARK);
        let begin = || -> io::Result<Option<File>> {
            refuse_link(path)?;
            fs::create_dir_all(path)?;
            let is_other = !mark.exists() && fs::read_dir(path)?.next().is_some();
            Ok(if is_other { None } else { Some(open_regular(&mark, OpenMode::Create)?) })
        };
        let lock = begin().map_err(failed)?;
        let lock = lock.ok_or_else(|| occupied(path, "was not left by an interrupted restore; remove it"))?;
        if lock.try_lock().is_err() {
            return Err(occupied(path, "is being filled by another restore"));
        }
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    /// Removes files that an interrupted restore, possibly of another copy, has left and this copy does not contain.
    fn clear_but(&self, manifest: &Manifest) -> Result<(), CopyError> {
        let wanted: HashSet<&str> = manifest.files.iter().map(|file| file.path.as_str()).collect();
        let mut open = vec![self.path.clone()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(&folder).map_err(CopyError::io(&folder))? {
                let path = entry.map_err(CopyError::io(&folder))?.path();
                let name = path.strip_prefix(&self.path).ok().and_then(Path::to_str).unwrap_or_default();
                let is_folder = fs::symlink_metadata(&path).map_err(CopyError::io(&path))?.is_dir();
                if is_folder && !wanted.contains(name) {
                    open.push(path);
                } else if is_folder {
                    fs::remove_dir_all(&path).map_err(CopyError::io(&path))?;
                } else if name != MARK && !wanted.contains(name) {
                    fs::remove_file(&path).map_err(CopyError::io(&path))?;
                }
            }
        }
        Ok(())
    }

    /// Creates the folders of all files, parents first.
    fn make_folders(&self, manifest: &Manifest) -> Result<Vec<PathBuf>, CopyError> {
        let mut folders = vec![self.path.clone()];
        let mut made: HashSet<&str> = HashSet::new();
        for file in &manifest.files {
            for (at, _) in file.path.match_indices('/') {
                let name = file.path.get(..at).unwrap_or_default();
                if made.insert(name) {
                    let path = self.path.join(name);
                    refuse_link(&path).map_err(CopyError::io(&path))?;
                    fs::create_dir_all(&path).map_err(CopyError::io(&path))?;
                    folders.push(path);
                }
            }
        }
        Ok(folders)
    }

    /// Downloads a file durably. Returns whether it was already there.
    fn bring(&self, remote: &Remote, file: &CopiedFile, control: &Control) -> Result<bool, CopyError> {
        let path = self.path.join(&file.path);
        if let Some(local) = Local::of_file(&path, file.bytes)
            && transfer::digest(&local, control)? == file.sha256
        {
            return Ok(true);
        }
        let problem = transfer::again(|| {
            let out = open_regular(&path, OpenMode::Create).and_then(|out| out.set_len(0).map(|()| out));
            let mut out = out.map_err(CopyError::io(&path))?;
            let take = &mut |piece: &[u8]| out.write_all(piece).map_err(CopyError::io(&path));
            let problem = transfer::download(remote, file, control, take)?;
            out.sync_all().map_err(CopyError::io(&path))?;
            Ok(problem)
        })?;
        match problem {
            None => Ok(false),
            Some(problem) => Err(CopyError::Damaged {
                url: remote.url.clone(),
                object: file.object().to_string(),
                path: file.path.clone(),
                problem,
            }),
        }
    }

    /// Gives the folder the archive's name, and removes the mark.
    fn finish(self, archive: &Path) -> Result<(), CopyError> {
        fs::rename(&self.path, archive).map_err(CopyError::io(archive))?;
        sync(parent(archive))?;
        let mark = archive.join(MARK);
        fs::remove_file(&mark).map_err(CopyError::io(&mark))?;
        sync(archive)
    }
}
