//! A flipped bit anywhere in an archive's folder, and files that are missing, truncated or swapped: `verify` finds all
//! of it, and `repair` repairs it or reports what cannot be recovered.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use archive::jobs;
use archive_base::runs::FOLDER;
use archive_books::prepared::ANSWERS_FILE;
use archive_books::trends;
use archive_storage::segment::SegmentOptions;
use archive_testweb::{ChangeRates, Config};
use archive_vault::repair::{self, Repaired};
use chrono::TimeDelta;

use crate::crawl::{everything, lively};
use crate::kill_repair::{Contents, contents, searched};
use crate::support::prepared::prepared;
use crate::support::program::start;
use crate::support::{Archive, Dice, TestWeb, ledger_balances};

/// Number of flipped bits in each kind of file, unless `ARCHIVE_FLIPS` overrides it.
const FLIPS: u64 = 1;

/// An undamaged archive and its contents.
struct Sound {
    archive: Archive,
    contents: Contents,
    texts: Vec<String>,
}

impl Sound {
    /// Returns an archive of a crawl and refreshes, with several segments and all derived data.
    fn new(seed: u64) -> Self {
        Self::of(prepared(&format!("damaged-{seed}"), || with_rank(refreshed(seed, 2))))
    }

    /// Creates an archive by importing all of another one at once, which trains dictionaries for pages that recur.
    fn imported(seed: u64) -> Self {
        let first = refreshed(seed, 8);
        let all = first.folder().join("all.warc.gz");
        start(first.command("export").arg("warc").arg("--output").arg(&all)).wait().succeeded();
        let archive = Archive::new();
        start(archive.command("import").arg(&all)).wait().succeeded();
        Self::of(with_rank(archive))
    }

    fn of(archive: Archive) -> Self {
        let (contents, texts) = (contents(&archive.path), searched(&archive));
        Self { archive, contents, texts }
    }

    /// Returns the files of the archive by kind, except lock files, the reports of runs, and the list of documents that
    /// took long to read: these say nothing about the archived data, may be removed, and have no checksums.
    fn files(&self) -> BTreeMap<String, Vec<PathBuf>> {
        let mut kinds: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        let mut folders = vec![self.archive.path.clone()];
        while let Some(folder) = folders.pop() {
            for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    folders.extend((!path.ends_with(FOLDER)).then_some(path));
                    continue;
                }
                let path = path.strip_prefix(&self.archive.path).unwrap().to_owned();
                if path.extension().is_none_or(|extension| extension != "lock") && !path.ends_with("reading")
                {
                    kinds.entry(kind(&path)).or_default().push(path);
                }
            }
        }
        kinds.values_mut().for_each(|files| files.sort());
        kinds
    }

    /// Fails unless `verify` finds the damage in a copy of the archive and `repair` repairs it or reports what is lost.
    fn is_repaired(&self, damaged: &Archive, what: &str) {
        println!("{what}");
        assert!(!is_sound(damaged), "{what} is not found");
        let repaired = repair(damaged);
        println!("{repaired:?}");
        let found = contents(&damaged.path);
        if repaired.lost.is_empty() {
            let (missing, surplus) = (self.contents.difference(&found), found.difference(&self.contents));
            let (missing, surplus) = (missing.collect::<Vec<_>>(), surplus.collect::<Vec<_>>());
            assert!(
                missing.is_empty() && surplus.is_empty(),
                "{what}: without {missing:?}, with {surplus:?}"
            );
        } else {
            // A revisit whose original is lost has no digest any more.
            let names = |contents: &Contents| -> BTreeSet<(String, i64)> {
                contents.iter().map(|(url, time, _)| (url.clone(), *time)).collect()
            };
            assert!(names(&found).is_subset(&names(&self.contents)), "{what}");
        }
        assert_eq!(damaged.verify(), found.len() as u64, "{what}");
        let texts = searched(damaged);
        assert!(texts == self.texts || !repaired.lost.is_empty(), "{what}: {texts:?}");
        ledger_balances(&damaged.path);
        let again = repair(damaged);
        assert!(again.actions.is_empty() && again.lost.is_empty(), "{what}: {again:?}");
    }
}

/// Whether a verification finds nothing.
fn is_sound(archive: &Archive) -> bool {
    archive.verified().is_ok_and(|verified| verified.findings.is_empty())
}

/// Repairs an archive, as `archive repair` does.
fn repair(archive: &Archive) -> Repaired {
    let options = jobs::segment_options(SegmentOptions::default(), None);
    repair::run(&archive.path, &options, &|_, _| {}).unwrap()
}

fn with_rank(archive: Archive) -> Archive {
    archive.json("rank", &["--save", "rank"]);
    archive.verify();
    archive
}

/// Returns the archive of a crawl of a small web and this many refreshes, before each of which all pages change.
fn refreshed(seed: u64, times: u64) -> Archive {
    let config = lively(seed, 2, 30);
    let changes = ChangeRates { median_per_day: 0.2, ..config.changes };
    let served = TestWeb::start(Config { changes, ..config });
    let archive = Archive::new();
    start(&mut archive.crawl(&served.web.seeds(2), &everything(&served))).wait().succeeded();
    for _ in 0..times {
        served.web.clock().advance(TimeDelta::days(20));
        let mut refresh = archive.command("refresh");
        refresh.args(["--budget", "1000", "--shortest", "0s"]).args(served.at_once());
        start(&mut refresh).wait().succeeded();
    }
    archive
}

/// Returns the kind of a file: its name without the parts that differ from archive to archive.
pub(crate) fn kind(path: &Path) -> String {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let is_of_index = path.parent().is_some_and(|folder| folder.ends_with("fulltext"));
    match name.split_once(".warc.zst") {
        Some((_, rest)) => format!(".warc.zst{rest}"),
        None if is_of_index && name.len() > 32 => format!("fulltext/*{}", name.split_at(32).1),
        None => path.display().to_string(),
    }
}

/// Whether a file contains nothing that could be wrong: it is empty, or useful only to the next run, which can do
/// without it.
fn says_nothing(archive: &Path, file: &Path) -> bool {
    fs::metadata(archive.join(file)).unwrap().len() == 0 || file.starts_with("state/due")
}

#[test]
fn a_wrong_bit_is_found_and_repaired_or_named() {
    let mut dice = Dice::new("flips");
    let flips = std::env::var("ARCHIVE_FLIPS").map_or(FLIPS, |flips| flips.parse().unwrap());
    let sound = Sound::new(91);
    for (kind, files) in sound.files() {
        for _ in 0..flips {
            let file = &files[dice.below(files.len() as u64) as usize];
            if says_nothing(&sound.archive.path, file) {
                continue;
            }
            let damaged = sound.archive.copy();
            let mut bytes = fs::read(damaged.path.join(file)).unwrap();
            let (byte, bit) = (dice.below(bytes.len() as u64) as usize, dice.below(8));
            bytes[byte] ^= 1 << bit;
            fs::write(damaged.path.join(file), &bytes).unwrap();
            let what = format!("bit {bit} of byte {byte} of {} in {} ({kind})", bytes.len(), file.display());
            if kind.ends_with(".redb") && means_nothing(&sound, &damaged) {
                println!("{what} means nothing");
                continue;
            }
            sound.is_repaired(&damaged, &what);
        }
    }
}

/// Whether a copy of an archive still has the same contents: a database has unused pages.
fn means_nothing(sound: &Sound, damaged: &Archive) -> bool {
    is_sound(damaged) && contents(&damaged.path) == sound.contents && searched(damaged) == sound.texts
}

#[test]
fn a_wrong_bit_in_the_guard_of_a_dictionary_is_repaired() {
    let mut dice = Dice::new("guards");
    let sound = Sound::imported(92);
    let segments = &sound.files()[".warc.zst"];
    let starts = |file: &Path| fs::read(sound.archive.path.join(file)).unwrap();
    let guarded = segments.iter().find(|file| starts(file).starts_with(&0x184D_2A5D_u32.to_le_bytes()));
    let guarded = guarded.expect("a segment with a dictionary");
    let bytes = starts(guarded);
    let dictionary = 8 + u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
    let parity = memchr::memmem::rfind(&bytes, &0x184D_2A52_u32.to_le_bytes()).unwrap();
    for range in [0..8, 8..dictionary, parity..bytes.len()] {
        let damaged = sound.archive.copy();
        let mut flipped = bytes.clone();
        let byte = range.start + dice.below(range.len() as u64) as usize;
        flipped[byte] ^= 1 << dice.below(8);
        fs::write(damaged.path.join(guarded), &flipped).unwrap();
        sound.is_repaired(&damaged, &format!("byte {byte} in {range:?} of a segment with a dictionary"));
    }
}

#[test]
fn a_truncated_file_is_found_and_repaired_or_named() {
    let mut dice = Dice::new("truncated files");
    let sound = Sound::new(91);
    for (kind, files) in sound.files() {
        let file = &files[dice.below(files.len() as u64) as usize];
        if says_nothing(&sound.archive.path, file) {
            continue;
        }
        let length = fs::metadata(sound.archive.path.join(file)).unwrap().len();
        let cut = sound.archive.copy();
        let kept = dice.below(length);
        let opened = fs::OpenOptions::new().write(true).open(cut.path.join(file)).unwrap();
        opened.set_len(kept).unwrap();
        drop(opened);
        sound.is_repaired(&cut, &format!("{kind}: {} cut to {kept} of {length} bytes", file.display()));
    }
}

#[test]
fn a_missing_file_is_found_and_repaired_or_named() {
    let mut dice = Dice::new("missing files");
    let sound = Sound::new(91);
    for (kind, files) in sound.files() {
        let file = &files[dice.below(files.len() as u64) as usize];
        // The files of an index are intact without their list.
        if says_nothing(&sound.archive.path, file) || kind.ends_with("files.xxh3") {
            continue;
        }
        let missing = sound.archive.copy();
        fs::remove_file(missing.path.join(file)).unwrap();
        // No list names the columns, URLs are found without their file, records are read if there are no noted answers,
        // and importance over time may begin again.
        if kind.starts_with("state/columns")
            || ["state/urls.find", "state/keys.find", ANSWERS_FILE, trends::FILE].contains(&kind.as_str())
        {
            assert_eq!(missing.verify(), sound.contents.len() as u64, "{kind} is missing");
            continue;
        }
        sound.is_repaired(&missing, &format!("{kind}: {} is missing", file.display()));
    }
}

#[test]
fn swapped_or_foreign_files_are_found_and_repaired_or_named() {
    let (sound, other) = (Sound::new(91), Sound::new(95));
    let others = other.files();
    for (kind, files) in sound.files() {
        let content = |file: &Path| fs::read(sound.archive.path.join(file)).unwrap();
        let first = &files[0];
        // Two files may be identical; swapping them changes nothing.
        if let Some(second) = files.iter().find(|second| content(second) != content(first)) {
            let damaged = sound.archive.copy();
            let aside = damaged.path.join("aside");
            fs::rename(damaged.path.join(first), &aside).unwrap();
            fs::rename(damaged.path.join(second), damaged.path.join(first)).unwrap();
            fs::rename(aside, damaged.path.join(second)).unwrap();
            sound.is_repaired(
                &damaged,
                &format!("{kind}: {} and {} exchanged", first.display(), second.display()),
            );
        }
        let Some(foreign) = others.get(&kind).and_then(|files| files.first()) else { continue };
        if says_nothing(&sound.archive.path, &files[0]) || says_nothing(&other.archive.path, foreign) {
            continue;
        }
        // An index stores no texts, so this part of it depends on the number of pages only. And remarks that begin with
        // this archive's own are these, and more that a crash might have kept out of its state.
        if fs::read(other.archive.path.join(foreign)).unwrap().starts_with(&content(&files[0])) {
            continue;
        }
        let damaged = sound.archive.copy();
        fs::copy(other.archive.path.join(foreign), damaged.path.join(&files[0])).unwrap();
        if kind == ".warc.zst" {
            // Its records are intact, so they are added to the others.
            let repaired = repair(&damaged);
            assert!(!repaired.lost.is_empty(), "{repaired:?}");
            assert!(format!("{repaired:?}").contains("has changed since it was closed"), "{repaired:?}");
            damaged.verify();
            continue;
        }
        // Details noted for another state are ignored, and importance over time is kept by URLs.
        if [ANSWERS_FILE, trends::FILE].contains(&kind.as_str()) {
            assert_eq!(damaged.verify(), sound.contents.len() as u64, "{kind} of another archive");
            continue;
        }
        sound.is_repaired(&damaged, &format!("{kind}: {} of another archive", files[0].display()));
    }
    let damaged = sound.archive.copy();
    fs::remove_dir_all(damaged.path.join("state/fulltext")).unwrap();
    fs::rename(other.archive.copy().path.join("state/fulltext"), damaged.path.join("state/fulltext"))
        .unwrap();
    sound.is_repaired(&damaged, "the full-text index of another archive");
}
