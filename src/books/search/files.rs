//! The files of an index, and the proof that they are what was written.
//!
//! The engine protects most files by a checksum of their own, but not the file that lists them, and it would not notice
//! swapped files. Closing an index therefore writes a list of all its files with their checksums. While a writer is at
//! work, the list has another name: files then come and go, but those that are on the list and still exist are
//! unchanged, because the engine writes each file name once.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use archive_base::files::{self, if_there};
use archive_storage::backend::{OpenMode, RealDisk, open_regular, replace_file};
use tantivy::Index;
use xxhash_rust::xxh3::Xxh3;

use super::directory::{LIST_BYTES_MAX, RegularFiles, check_regular};
use super::error::{SearchError, guarded};
use super::reader::SearchReader;

/// The list: each line has an XXH3-64 in hexadecimal, two spaces and a file name.
const LIST: &str = "files.xxh3";
/// Name of the list while a writer is at work.
const OPEN_LIST: &str = "files.xxh3.open";
/// Name of the list until it is complete; a killed program may have left it behind.
const NEW_LIST: &str = "files.xxh3.new";
/// Files that the engine overwrites.
const REWRITTEN: [&str; 2] = ["meta.json", ".managed.json"];
/// Files that the engine only locks.
const LOCKS: [&str; 2] = [".tantivy-writer.lock", ".tantivy-meta.lock"];

/// Maximum number of attempts to copy an index that keeps changing.
const TRIALS_MAX: usize = 20;

/// Bytes read at a time.
const PIECE_BYTES: usize = 1 << 20;

type IndexFiles = BTreeMap<String, u64>;

/// Records that files may change from now on.
pub(super) fn unseal(folder: &Path) -> io::Result<()> {
    if_there(fs::rename(folder.join(LIST), folder.join(OPEN_LIST))).map(drop)
}

/// Whether a writer is at work in a folder, or was killed there: the index may then lag behind the archive.
#[must_use]
pub fn is_unsealed(folder: &Path) -> bool {
    [OPEN_LIST, NEW_LIST].iter().any(|list| folder.join(list).exists())
}

/// Lists all files as they are, durably. Checksums in an earlier list of files that are written only once are reused.
pub(super) fn seal(folder: &Path) -> io::Result<()> {
    let before = read(&folder.join(OPEN_LIST))?.unwrap_or_default();
    let mut text = String::new();
    for name in names(folder)? {
        let known = before.get(&name).filter(|_| !REWRITTEN.contains(&name.as_str()));
        let sum = known.map_or_else(|| checksum(&folder.join(&name)), |sum| Ok(*sum))?;
        text.push_str(&line(&name, sum));
    }
    replace_file(&RealDisk, &folder.join(LIST), text.as_bytes())?;
    if_there(fs::remove_file(folder.join(OPEN_LIST))).map(drop)
}

/// Puts the files of a closed index into another folder, which is created. Files that are written only once become hard
/// links if possible.
pub(super) fn share(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for name in names(from)?.into_iter().chain([LIST.to_owned(), OPEN_LIST.to_owned()]) {
        let (source, target) = (from.join(&name), to.join(&name));
        let is_shared = ![LIST, OPEN_LIST].contains(&name.as_str())
            && !REWRITTEN.contains(&name.as_str())
            && fs::hard_link(&source, &target).is_ok();
        if is_shared {
            continue;
        }
        if_there(files::copy(&source, &target))?;
    }
    Ok(())
}

/// Puts the files of an index, as of one commit, into another folder, which is created, even while the index is written
/// to. Does nothing if there is no index.
pub(super) fn snapshot(from: &Path, to: &Path) -> tantivy::Result<()> {
    let (meta, list) = (from.join(REWRITTEN[0]), from.join(LIST));
    let look = || if_there(files::read(&meta, LIST_BYTES_MAX).map(|bytes| (bytes, list.exists())));
    for _ in 0..TRIALS_MAX {
        let Some(before) = look()? else { return Ok(()) };
        share(from, to)?;
        // The files that a commit names exist until the next commit.
        if look()?.as_ref() != Some(&before)
            || files::read(&to.join(REWRITTEN[0]), LIST_BYTES_MAX)? != before.0
        {
            fs::remove_dir_all(to)?;
            continue;
        }
        return if before.1 { Ok(()) } else { remove_unnamed(to) };
    }
    Err(io::Error::other("the full-text index keeps changing; try again later").into())
}

/// Removes files that the commit does not name and that may be incomplete.
fn remove_unnamed(folder: &Path) -> tantivy::Result<()> {
    let mut named: HashSet<PathBuf> = REWRITTEN.iter().chain([&OPEN_LIST]).map(PathBuf::from).collect();
    named.extend(Index::open(RegularFiles::open(folder)?)?.load_metas()?.list_segment_files());
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !named.contains(Path::new(&entry.file_name())) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Returns what is wrong with the files of the index in `folder`, which should be of the state with this identity.
/// Nothing may write to it meanwhile.
#[must_use]
pub fn check(folder: &Path, state: u64) -> Vec<String> {
    let mut found = Vec::new();
    for (list, is_open) in [(LIST, false), (OPEN_LIST, true)] {
        match read(&folder.join(list)) {
            Ok(Some(files)) => compare(folder, &files, is_open, &mut found),
            Ok(None) => {}
            Err(error) => found.push(format!("{list}: {error}")),
        }
    }
    let locks = LOCKS.iter().filter_map(|lock| if_there(check_regular(&folder.join(lock))).err());
    found.extend(locks.map(|error| error.to_string()));
    // The engine is asked only about files that seem to be its own.
    if !found.is_empty() {
        return found;
    }
    match SearchReader::open(folder) {
        Ok(reader) if reader.state().is_some_and(|of| of != state) => {
            found.push("it belongs to another state".to_owned());
        }
        Ok(_) => {}
        Err(error) => found.push(error.to_string()),
    }
    match guarded(folder, || damaged(folder).map_err(|source| SearchError::of(folder, source))) {
        Ok(damaged) => found.extend(damaged.iter().map(|file| format!("{} is damaged", file.display()))),
        Err(error) => found.push(error.to_string()),
    }
    found.dedup();
    found
}

/// Returns the files whose embedded checksums are wrong.
fn damaged(folder: &Path) -> tantivy::Result<HashSet<PathBuf>> {
    Index::open(RegularFiles::open(folder)?)?.validate_checksum()
}

fn compare(folder: &Path, files: &IndexFiles, is_open: bool, found: &mut Vec<String>) {
    for (name, sum) in files {
        if is_open && REWRITTEN.contains(&name.as_str()) {
            continue;
        }
        match checksum(&folder.join(name)) {
            Ok(is) if is == *sum => {}
            Ok(_) => found.push(format!("{name} has changed since it was written")),
            Err(error) if is_open && error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => found.push(format!("{name}: {error}")),
        }
    }
    let names = if is_open { Ok(BTreeSet::new()) } else { names(folder) };
    match names {
        Ok(names) => {
            let surplus = names.iter().filter(|name| !files.contains_key(*name));
            found.extend(surplus.map(|name| format!("{name} is not part of the index")));
        }
        Err(error) => found.push(error.to_string()),
    }
}

/// Returns the names of the files of an index, without its list.
fn names(folder: &Path) -> io::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if ![LIST, OPEN_LIST, NEW_LIST].contains(&name.as_str()) && !LOCKS.contains(&name.as_str()) {
            names.insert(name);
        }
    }
    Ok(names)
}

fn checksum(path: &Path) -> io::Result<u64> {
    check_regular(path)?;
    let file = open_regular(path, OpenMode::Read)?;
    let (mut file, mut hasher, mut piece) = (file, Xxh3::new(), vec![0; PIECE_BYTES]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hasher.digest()),
            count => hasher.update(piece.split_at(count).0),
        }
    }
}

fn line(name: &str, sum: u64) -> String {
    format!("{sum:016x}  {name}\n")
}

/// Reads a list; nothing if there is none.
fn read(path: &Path) -> io::Result<Option<IndexFiles>> {
    let Some(text) = files::read_if_there(path, LIST_BYTES_MAX)? else { return Ok(None) };
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, "is damaged");
    let text = String::from_utf8(text).map_err(|_| damaged())?;
    let mut files = IndexFiles::new();
    for found in text.split_inclusive('\n') {
        let (sum, name) = found.trim_end_matches('\n').split_once("  ").ok_or_else(damaged)?;
        let sum = u64::from_str_radix(sum, 16).map_err(|_| damaged())?;
        if line(name, sum) != found {
            return Err(damaged());
        }
        files.insert(name.to_owned(), sum);
    }
    Ok(Some(files))
}
