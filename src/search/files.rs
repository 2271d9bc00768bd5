//! Which files an index consists of, and the proof that they are what was written.
//!
//! The engine guards most files by their own checksum, but not what lists them, and would take one file for another. So
//! closing an index writes a list of all its files with their checksums. While a writer is at work the list has another
//! name: then files come and go, but those that are on it and still there have not changed, because the engine writes each
//! name once.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use archive_storage::backend::{RealDisk, replace_file};
use tantivy::Index;
use tantivy::directory::MmapDirectory;
use xxhash_rust::xxh3::Xxh3;

use super::error::{Error, guarded};
use super::reader::Reader;

/// The list: lines of an XXH3-64 in hexadecimal, two spaces and a name.
const LIST: &str = "files.xxh3";
/// The list while a writer is at work.
const OPEN_LIST: &str = "files.xxh3.open";
/// The list until it has its place: a program that was killed may have left it.
const NEW_LIST: &str = "files.xxh3.new";
/// Files that the engine writes over.
const REWRITTEN: [&str; 2] = ["meta.json", ".managed.json"];
/// Files that the engine only locks.
const LOCKS: [&str; 2] = [".tantivy-writer.lock", ".tantivy-meta.lock"];

/// How often a changing index is tried.
const TRIALS_MAX: usize = 20;

/// Bytes read at once.
const PIECE_BYTES: usize = 1 << 20;

type Files = BTreeMap<String, u64>;

/// Says that the files may change from now on.
pub(super) fn unseal(folder: &Path) -> io::Result<()> {
    match fs::rename(folder.join(LIST), folder.join(OPEN_LIST)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Whether a writer is at work in a folder, or was killed there: the index may then lag the archive.
#[must_use]
pub fn is_unsealed(folder: &Path) -> bool {
    [OPEN_LIST, NEW_LIST].iter().any(|list| folder.join(list).exists())
}

/// Lists all files as they are, durably. What an earlier list says of files that are written once is not computed again.
pub(super) fn seal(folder: &Path) -> io::Result<()> {
    let before = read(&folder.join(OPEN_LIST))?.unwrap_or_default();
    let mut text = String::new();
    for name in names(folder)? {
        let known = before.get(&name).filter(|_| !REWRITTEN.contains(&name.as_str()));
        let sum = known.map_or_else(|| checksum(&folder.join(&name)), |sum| Ok(*sum))?;
        text.push_str(&line(&name, sum));
    }
    replace_file(&RealDisk, &folder.join(LIST), text.as_bytes())?;
    match fs::remove_file(folder.join(OPEN_LIST)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Puts the files of a closed index into another folder, which is made: files that are written once are the same on disk.
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
        match fs::copy(&source, &target) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Puts the files of an index as of one commit into another folder, which is created, even during writes; nothing if there
/// is not an index.
pub(super) fn snapshot(from: &Path, to: &Path) -> tantivy::Result<()> {
    let (meta, list) = (from.join(REWRITTEN[0]), from.join(LIST));
    let look = || match fs::read(&meta) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(|bytes| Some((bytes, list.exists()))),
    };
    for _ in 0..TRIALS_MAX {
        let Some(before) = look()? else { return Ok(()) };
        share(from, to)?;
        // What one commit names is there until the next.
        if look()?.as_ref() != Some(&before) || fs::read(to.join(REWRITTEN[0]))? != before.0 {
            fs::remove_dir_all(to)?;
            continue;
        }
        return if before.1 { Ok(()) } else { remove_unnamed(to) };
    }
    Err(io::Error::other("the full-text index keeps changing; try again later").into())
}

/// Takes files away that the commit does not name, and that may not be whole.
fn remove_unnamed(folder: &Path) -> tantivy::Result<()> {
    let mut named: HashSet<PathBuf> = REWRITTEN.iter().chain([&OPEN_LIST]).map(PathBuf::from).collect();
    named.extend(Index::open(MmapDirectory::open(folder)?)?.load_metas()?.list_segment_files());
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !named.contains(Path::new(&entry.file_name())) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// What is wrong with the files of the index in `folder` of a state with this identity. It must not be written to meanwhile.
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
    // The engine is asked only about files that seem to be its own.
    if !found.is_empty() {
        return found;
    }
    match Reader::open(folder) {
        Ok(reader) if reader.state().is_some_and(|of| of != state) => {
            found.push("it names pages by the numbers of another state".to_owned());
        }
        Ok(_) => {}
        Err(error) => found.push(error.to_string()),
    }
    match guarded(folder, || damaged(folder).map_err(|source| Error::of(folder, source))) {
        Ok(damaged) => found.extend(damaged.iter().map(|file| format!("{} is damaged", file.display()))),
        Err(error) => found.push(error.to_string()),
    }
    found.dedup();
    found
}

/// The files whose checksums, which they hold themselves, are wrong.
fn damaged(folder: &Path) -> tantivy::Result<HashSet<PathBuf>> {
    Index::open(MmapDirectory::open(folder)?)?.validate_checksum()
}

fn compare(folder: &Path, files: &Files, is_open: bool, found: &mut Vec<String>) {
    for (name, sum) in files {
        if is_open && REWRITTEN.contains(&name.as_str()) {
            continue;
        }
        match checksum(&folder.join(name)) {
            Ok(is) if is == *sum => {}
            Ok(_) => found.push(format!("{name} is not what was written")),
            Err(error) if is_open && error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => found.push(format!("{name}: {error}")),
        }
    }
    let names = if is_open { Ok(BTreeSet::new()) } else { names(folder) };
    match names {
        Ok(names) => {
            let surplus = names.iter().filter(|name| !files.contains_key(*name));
            found.extend(surplus.map(|name| format!("{name} does not belong to it")));
        }
        Err(error) => found.push(error.to_string()),
    }
}

/// The files of an index, without its list.
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
    let (mut file, mut hasher, mut piece) = (File::open(path)?, Xxh3::new(), vec![0; PIECE_BYTES]);
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

/// A list; nothing when there is none.
fn read(path: &Path) -> io::Result<Option<Files>> {
    let text = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text?,
    };
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, "is damaged");
    let text = String::from_utf8(text).map_err(|_| damaged())?;
    let mut files = Files::new();
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
