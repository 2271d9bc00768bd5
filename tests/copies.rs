//! Copies of an archive in a folder, complete or absent however copying ends, and archives restored from them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use archive_base::control::Control;
use archive_books::ledger::ScopeKind;
use archive_books::recorder;
use archive_crawl::{CrawlOptions, Politeness, Purpose, scope_of};
use archive_storage::Digest;
use archive_storage::segment::{Codec, SegmentOptions};
use archive_vault::copy::RESTORE_ENDING;
use serde_json::Value;

use crate::crawl::{everything, lively};
use crate::kill_repair::contents;
use crate::support::prepared::prepared;
use crate::support::program::{Running, start};
use crate::support::{Archive, Dice, TestWeb, captures, files_with, kills, ledger_balances};

/// Number of kills of a copy and of a restore, unless `ARCHIVE_KILLS` overrides it.
const KILLS: u64 = 8;

/// Size of a file that keeps a copy busy and is sent in parts, and number of such files.
const LONG_BYTES: usize = 24 << 20;
const LONG_FILES: usize = 4;

/// Number of copies made during a crawl that are checked: the last ones.
const COPIES_LOOKED_AT: usize = 2;

/// Returns a place for copies next to an archive, as folder and URL.
pub(crate) fn place(archive: &Archive) -> (PathBuf, String) {
    let folder = archive.folder().join("copies");
    let url = format!("file://{}", folder.display());
    (folder, url)
}

/// Returns the command that copies an archive, not started.
pub(crate) fn copy(archive: &Archive, url: &str, more: &[&str]) -> Command {
    let mut command = archive.command("copy");
    command.args(["--json", "--to", url]).args(more);
    command
}

/// Copies an archive and returns the output.
pub(crate) fn copied(archive: &Archive, url: &str, more: &[&str]) -> Value {
    start(&mut copy(archive, url, more)).wait().succeeded().json().remove(0)
}

/// Returns the copies in a place, as listed by `--list`.
pub(crate) fn listed(archive: &Archive, url: &str) -> Vec<Value> {
    archive.json("copy", &["--list", "--to", url])
}

/// Verifies the copies in a place; returns the findings and the number of objects.
pub(crate) fn verified(archive: &Archive, url: &str) -> (Vec<Value>, u64) {
    let finished = start(archive.command("copy").args(["--json", "--verify", "--to", url])).wait();
    let mut lines = finished.json();
    let summary = lines.pop().unwrap_or_else(|| panic!("{}", finished.errors));
    assert_eq!(finished.code, Some(i32::from(!lines.is_empty())), "{}", finished.errors);
    assert_eq!(summary["findings"], lines.len());
    (lines, summary["objects"].as_u64().unwrap())
}

/// Returns an archive restored from a copy.
pub(crate) fn restored(url: &str, more: &[&str]) -> Archive {
    let archive = Archive::new();
    start(archive.command("copy").args(["--from", url]).args(more)).wait().succeeded();
    archive
}

/// Returns a small archive of two crawls with full text, a decision, a watch and rules, and its web.
pub(crate) fn crawled() -> (Archive, TestWeb) {
    let served = TestWeb::start(lively(901, 4, 60));
    (prepared("copied", || make(&served)), served)
}

fn make(served: &TestWeb) -> Archive {
    let archive = Archive::new();
    for limit in ["40", "1000"] {
        let mut crawl = archive.crawl(&served.web.seeds(4), &everything(served));
        start(crawl.args(["--limit", limit])).wait().succeeded();
    }
    let site = served.web.seeds(1)[0].split('/').nth(2).unwrap().to_owned();
    archive.run("review set", &[&site, "--rating", "4", "--by", "anna"]).succeeded();
    archive.run("watch", &["page status = 404", "--every", "week"]).succeeded();
    fs::write(archive.path.join("access.toml"), "# nothing is hidden\n").unwrap();
    archive
}

/// Returns the files below a folder with their contents, except those with some names.
fn tree(folder: &Path, without: &[&str]) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
            if without.contains(&name.as_str()) {
                continue;
            }
            if path.is_dir() { open.push(path) } else { found.push((name, fs::read(&path).unwrap())) }
        }
    }
    found.sort();
    found
}

/// Returns the names of the objects of copies, also while copies are being written.
fn objects(folder: &Path) -> Vec<String> {
    let (mut found, mut open) = (Vec::new(), vec![folder.join("objects")]);
    while let Some(at) = open.pop() {
        for path in fs::read_dir(&at).into_iter().flatten().map(|entry| entry.unwrap().path()) {
            if path.is_dir() { open.push(path) } else { found.push(path.to_str().unwrap().to_owned()) }
        }
    }
    found
}

/// Files that are not part of a copy.
const NOT_COPIED: [&str; 7] = [
    "archive.lock",
    "snapshot",
    "state/reading",
    "state/due",
    "state/fulltext/.tantivy-writer.lock",
    "state/fulltext/.tantivy-meta.lock",
    "rebuild",
];

#[test]
fn a_restored_archive_is_the_one_that_was_copied() {
    let (archive, served) = crawled();
    let (folder, url) = place(&archive);
    let first = copied(&archive, &url, &[]);
    assert_eq!((first["number"].as_u64(), first["is_new"].as_bool()), (Some(1), Some(true)));
    assert_eq!(verified(&archive, &url).0, Vec::<Value>::new());
    assert!(!archive.path.join("snapshot/files").exists(), "nothing is held afterwards");

    let twin = restored(&url, &[]);
    assert_eq!(tree(&twin.path, &NOT_COPIED), tree(&archive.path, &NOT_COPIED), "byte for byte");
    assert_eq!(twin.verify(), archive.verify());
    let searched = |archive: &Archive| archive.json("search", &["the"]);
    assert_eq!(searched(&twin), searched(&archive));
    // The restored archive continues as the original would.
    let crawl = start(&mut twin.crawl(&served.web.seeds(4), &everything(&served))).wait().succeeded();
    assert!(crawl.errors.contains("nothing left to fetch"), "{}", crawl.errors);
    assert!(!crawl.errors.contains("interrupted"), "{}", crawl.errors);
    // README.txt documents how to restore without this program.
    if crate::support::installed("jq").is_some() {
        let readme = fs::read_to_string(folder.join("README.txt")).unwrap();
        let script: String = readme
            .lines()
            .filter_map(|line| line.strip_prefix("    "))
            .map(|line| format!("{line}\n"))
            .collect();
        let run = Command::new("sh").arg("-euc").arg(script).current_dir(&folder).status().unwrap();
        assert!(run.success());
        assert_eq!(tree(&folder.join("archive"), &[]), tree(&restored(&url, &[]).path, &[]));
    }
}

#[test]
fn the_next_copy_brings_what_is_new_and_old_ones_go_when_asked() {
    let (archive, served) = crawled();
    let (folder, url) = place(&archive);
    let first = copied(&archive, &url, &[]);
    let again = copied(&archive, &url, &[]);
    assert_eq!(
        (again["number"].as_u64(), again["is_new"].as_bool()),
        (Some(1), Some(false)),
        "nothing has changed"
    );
    assert_eq!(again["sent"], 0);

    let objects = || tree(&folder.join("objects"), &[]);
    let before = objects();
    served.web.clock().advance(chrono::TimeDelta::days(30));
    let refresh = ["--budget", "20", "--shortest", "0s"];
    start(archive.command("refresh").args(refresh).args(served.at_once())).wait().succeeded();
    let second = copied(&archive, &url, &[]);
    assert_eq!(second["number"], 2);
    let (sent, all) = (second["sent_bytes"].as_u64().unwrap(), second["bytes"].as_u64().unwrap());
    assert!(0 < sent && sent < all, "{second}");
    assert!(before.iter().all(|object| objects().contains(object)), "what copy 1 needs stays");
    // The segments of the first copy are not sent again.
    let sealed = |number: u64| {
        let text = fs::read_to_string(folder.join(format!("manifests/{number:08}.jsonl"))).unwrap();
        let is_segment = |line: &&str| line.contains("segments/") && line.contains(".warc.zst\"");
        text.lines().filter(is_segment).map(str::to_owned).collect::<BTreeSet<_>>()
    };
    assert!(sealed(1).is_subset(&sealed(2)), "{:?}", sealed(2));
    assert_eq!(restored(&url, &["--number", "1"]).verify(), first["captures"].as_u64().unwrap());
    assert_eq!(restored(&url, &[]).verify(), archive.verify());

    // Rewritten segments are new; objects that only older copies had are removed with them.
    archive.run("repack", &["--again"]).succeeded();
    let third = copied(&archive, &url, &["--keep", "1"]);
    assert_eq!((third["number"].as_u64(), third["removed_copies"].as_u64()), (Some(3), Some(2)));
    assert!(third["removed"].as_u64().unwrap() > 0);
    let numbers: Vec<Value> = listed(&archive, &url).into_iter().map(|copy| copy["number"].clone()).collect();
    assert_eq!(numbers, [3]);
    let (findings, named) = verified(&archive, &url);
    assert_eq!(
        (findings, named as usize),
        (Vec::new(), objects().len()),
        "no object is left that no copy needs"
    );
    assert_eq!(restored(&url, &[]).verify(), archive.verify());
    archive
        .run("copy", &["--verify", "--to", &url, "--number", "2"])
        .refused(1, &["has no copy 2", "--list"]);
    // A number is not reused.
    fs::write(archive.path.join("access.toml"), "# nothing at all is hidden\n").unwrap();
    assert_eq!(copied(&archive, &url, &[])["number"], 4);
}

#[test]
fn damage_is_found_and_named_and_nothing_is_made_of_it() {
    let (archive, _) = crawled();
    let (folder, url) = place(&archive);
    copied(&archive, &url, &[]);
    let mut dice = Dice::new("damaged copies");
    let objects = tree(&folder.join("objects"), &[]);
    let long: Vec<_> = objects.iter().filter(|(_, bytes)| bytes.len() > 1).collect();
    let (name, bytes) = long[dice.below(long.len() as u64) as usize];
    let path = folder.join("objects").join(name);
    let flipped = || {
        let mut bytes = bytes.clone();
        bytes[0] ^= 1;
        fs::write(&path, bytes).unwrap();
    };
    let shorter = || fs::write(&path, &bytes[1..]).unwrap();
    let missing = || fs::remove_file(&path).unwrap();
    let cases: [(&dyn Fn(), &str); 3] =
        [(&flipped, "does not have its digest"), (&shorter, "bytes instead of"), (&missing, "is not there")];
    for (damage, said) in cases {
        damage();
        let (findings, _) = verified(&archive, &url);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0]["object"], format!("objects/{name}"));
        assert!(findings[0]["what"].as_str().unwrap().contains(said), "{findings:?}");
        let twin = Archive::new();
        let file = findings[0]["path"].as_str().unwrap();
        twin.run("copy", &["--from", &url]).refused(1, &[said, name, file]);
        assert!(!twin.path.exists(), "there is no archive of it");
    }
    // Objects that disappeared there are sent again, although an earlier copy has sent them.
    let second = copied(&archive, &url, &[]);
    assert_eq!((second["number"].as_u64(), second["sent"].as_u64()), (Some(2), Some(1)));
    archive.run("copy", &["--verify", "--to", &url, "--number", "2"]).succeeded();
    // A manifest carries its own digest.
    let manifest = folder.join("manifests/00000002.jsonl");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replacen("segments/", "segment5/", 1)).unwrap();
    let finding = verified(&archive, &url)
        .0
        .into_iter()
        .find(|one| one["object"] == "manifests/00000002.jsonl")
        .unwrap();
    assert!(finding["what"].as_str().unwrap().contains("its digest does not match"), "{finding}");
    archive.run("copy", &["--to", &url]).refused(1, &["copy 2 cannot be used", "damaged"]);
}

/// Returns a manifest as an attacker would write it: with a valid digest.
fn forged(lines: &[String]) -> Vec<u8> {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let digest = Digest::sha256(text.as_bytes()).to_string();
    format!("{text}{{\"sha256\":\"{}\"}}\n", digest.strip_prefix("sha256:").unwrap()).into_bytes()
}

fn head(files: usize) -> String {
    let time = "2026-01-01T00:00:00Z";
    format!(
        r#"{{"format":1,"number":1,"series":"s","copy":"c","time":"{time}","captures":1,"files":{files}}}"#
    )
}

fn line(path: &str, content: &[u8]) -> String {
    let digest = Digest::sha256(content).to_string();
    let (path, digest) = (serde_json::to_string(path).unwrap(), digest.strip_prefix("sha256:").unwrap());
    format!(r#"{{"path":{path},"bytes":{},"sha256":"{digest}","copy":1}}"#, content.len())
}

/// Puts an attacker's object into a place.
fn put(folder: &Path, content: &[u8]) -> PathBuf {
    let digest = Digest::sha256(content).to_string();
    let path = folder.join("objects/00000001").join(digest.strip_prefix("sha256:").unwrap());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    path
}

#[test]
fn a_hostile_place_gets_nowhere() {
    let archive = Archive::new();
    let (folder, url) = place(&archive);
    let manifest = folder.join("manifests/00000001.jsonl");
    fs::create_dir_all(folder.join("manifests")).unwrap();
    let content = b"evil";
    put(&folder, content);
    let refused = |bytes: &[u8], words: &[&str]| {
        fs::write(&manifest, bytes).unwrap();
        let finished = archive.run("copy", &["--from", &url]).refused(1, words);
        assert!(!archive.path.exists());
        finished
    };
    let (long, deep) = ("x".repeat(300), "d/".repeat(40) + "x");
    for path in ["../evil", "/tmp/evil-of-a-copy", "a/../../../evil", "", "a//b", &long, &deep, "a\u{1b}[31m"]
    {
        refused(
            &forged(&[head(1), line(path, content)]),
            &["copy 1 cannot be used", "is not a path in an archive"],
        );
    }
    assert!(!archive.folder().join("evil").exists() && !Path::new("/tmp/evil-of-a-copy").exists());
    refused(&forged(&[head(2), line("a", content)]), &["does not list the 2 files"]);
    refused(&forged(&[head(9_999_999), line("a", content)]), &["9999999 files"]);
    refused(&forged(&[head(2), line("b", content), line("a", content)]), &["order of their paths"]);
    refused(
        &forged(&[head(1), line("a", content).replace("\"bytes\":4", "\"bytes\":5")]),
        &["bytes instead of 5"],
    );
    refused(
        &forged(&[head(1), line("a", content).replace("\"copy\":1", "\"copy\":7")]),
        &["it cannot come from copy 7"],
    );
    let too_long = line("a", content).replace("\"bytes\":4", "\"bytes\":5000000000000");
    refused(&forged(&[head(1), too_long]), &["has room for", "are needed"]);
    refused(&forged(&[head(2), line("a", content), line("a/b", content)]), &[]);
    refused(b"", &["has no copy"]);
    refused(&[b'x'; 1 << 20], &["cannot be used"]);

    // Links, pipes and endless manifests are not even read.
    let good = forged(&[head(1), line("a", content)]);
    fs::write(archive.folder().join("elsewhere"), &good).unwrap();
    fs::remove_file(&manifest).unwrap();
    symlink(archive.folder().join("elsewhere"), &manifest).unwrap();
    archive.run("copy", &["--from", &url]).refused(1, &["which is not allowed in a store"]);
    fs::remove_file(&manifest).unwrap();
    assert!(Command::new("mkfifo").arg(&manifest).status().unwrap().success());
    archive.run("copy", &["--from", &url]).refused(1, &["which is not allowed in a store"]);
    fs::remove_file(&manifest).unwrap();
    fs::File::create(&manifest).unwrap().set_len(1 << 30).unwrap();
    let (finished, usage) = start(archive.command("copy").args(["--from", &url])).measure();
    finished.refused(1, &["is longer than 268435456 bytes"]);
    assert!(usage.peak_mib < 200, "{usage:?}");
    fs::write(&manifest, &good).unwrap();
    fs::rename(folder.join("objects"), archive.folder().join("others")).unwrap();
    symlink(archive.folder().join("others"), folder.join("objects")).unwrap();
    archive.run("copy", &["--from", &url]).refused(1, &["which is not allowed in a store"]);

    // A restore is refused or yields an archive, which is then as untrusted as any archive of a stranger.
    fs::remove_file(folder.join("objects")).unwrap();
    fs::rename(archive.folder().join("others"), folder.join("objects")).unwrap();
    archive.run("copy", &["--from", &url]).succeeded();
    assert_eq!(fs::read(archive.path.join("a")).unwrap(), content);
}

#[test]
fn nothing_is_restored_where_something_is() {
    let (archive, _) = crawled();
    let (_, url) = place(&archive);
    copied(&archive, &url, &[]);
    archive.run("copy", &["--from", &url]).refused(1, &["is not empty", "a new folder"]);
    let twin = Archive::new();
    let beside = twin.folder().join(format!("web.archive{RESTORE_ENDING}"));
    fs::create_dir(&beside).unwrap();
    fs::write(beside.join("letter"), "dear").unwrap();
    twin.run("copy", &["--from", &url]).refused(1, &["was not left by an interrupted restore"]);
    assert_eq!(fs::read_to_string(beside.join("letter")).unwrap(), "dear");
    fs::remove_dir_all(&beside).unwrap();
    symlink(archive.folder(), &twin.path).unwrap();
    twin.run("copy", &["--from", &url]).refused(1, &["is a link"]);
    fs::remove_file(&twin.path).unwrap();
    fs::create_dir(&twin.path).unwrap();
    twin.run("copy", &["--from", &url]).succeeded();
    assert_eq!(twin.verify(), archive.verify());
    let nowhere = format!("file://{}/nowhere", archive.folder().display());
    Archive::new().run("copy", &["--from", &nowhere]).refused(1, &["nowhere has no copy"]);
    assert!(!archive.folder().join("nowhere").exists());
    archive.run("copy", &["--to", "s4://x/y"]).refused(2, &["names no object store", "write it like"]);
}

/// Adds a file that takes a while to copy.
fn lengthen(archive: &Archive, dice: &mut Dice) {
    let mut bytes = vec![0; LONG_BYTES];
    for piece in bytes.chunks_exact_mut(8) {
        piece.copy_from_slice(&dice.below(u64::MAX).to_le_bytes());
    }
    fs::create_dir_all(archive.path.join("notes")).unwrap();
    fs::write(archive.path.join("notes/long"), bytes).unwrap();
}

#[test]
fn a_copy_killed_again_and_again_is_there_whole_or_not_at_all() {
    let mut dice = Dice::new("kill copy");
    let (archive, _) = crawled();
    lengthen(&archive, &mut dice);
    let (folder, url) = place(&archive);
    let calm = start(&mut copy(&archive, &format!("{url}-calm"), &[])).wait().succeeded();
    let mut made = 0;
    for number in 1..=kills(KILLS) {
        // Each copy has something new to send.
        fs::write(archive.path.join("access.toml"), format!("# {number}\n")).unwrap();
        let running = start(&mut copy(&archive, &url, &["--keep", "2"]));
        thread::sleep(Duration::from_micros(dice.below(calm.elapsed.as_micros() as u64 * 6 / 5)));
        running.kill();
        if number % 4 == 0 {
            fs::write(
                archive.path.join("notes/long"),
                dice.below(u64::MAX).to_le_bytes().repeat(LONG_BYTES / 8),
            )
            .unwrap();
        }
        let found = listed(&archive, &url);
        made = found.last().map_or(made, |copy| copy["number"].as_u64().unwrap());
        if !found.is_empty() {
            assert_eq!(verified(&archive, &url).0, Vec::<Value>::new(), "kill {number}");
        }
    }
    let last = copied(&archive, &url, &["--keep", "1"]);
    println!("{} kills, {made} copies made meanwhile", kills(KILLS));
    assert!(last["number"].as_u64().unwrap() <= made + 1, "numbers have no gaps");
    let (findings, named) = verified(&archive, &url);
    assert_eq!(findings, Vec::<Value>::new());
    let there = objects(&folder).into_iter().filter(|name| !name.contains('#')).count();
    assert_eq!(there, named as usize, "what killed copies have brought is used or removed");
    let twin = restored(&url, &[]);
    assert_eq!(tree(&twin.path, &NOT_COPIED), tree(&archive.path, &NOT_COPIED));
    assert_eq!(twin.verify(), archive.verify());
}

#[test]
fn what_a_killed_copy_has_brought_serves_the_next() {
    let mut dice = Dice::new("resume copy");
    let (archive, _) = crawled();
    lengthen(&archive, &mut dice);
    let (folder, url) = place(&archive);
    let mut running = start(&mut copy(&archive, &url, &[]));
    let is_begun = || objects(&folder).len() > 3;
    assert!(running.wait_until(is_begun));
    running.signal("-STOP");
    let whole = objects(&folder).into_iter().filter(|name| !name.contains('#')).count() as u64;
    running.kill();
    let next = copied(&archive, &url, &[]);
    assert_eq!(next["number"], 1);
    assert!(next["sent"].as_u64().unwrap() + whole <= next["files"].as_u64().unwrap(), "{whole} {next}");
    assert_eq!(verified(&archive, &url).0, Vec::<Value>::new());
}

#[test]
fn a_restore_killed_again_and_again_leaves_a_whole_archive_or_none() {
    let mut dice = Dice::new("kill restore");
    let (archive, _) = crawled();
    lengthen(&archive, &mut dice);
    let (_, url) = place(&archive);
    copied(&archive, &url, &[]);
    let calm = start(Archive::new().command("copy").args(["--from", &url])).wait().succeeded();
    let (expected, captures) = (tree(&archive.path, &NOT_COPIED), archive.verify());
    let mut twin = Archive::new();
    for number in 1..=kills(KILLS) {
        let running = start(twin.command("copy").args(["--json", "--from", &url]));
        thread::sleep(Duration::from_micros(dice.below(calm.elapsed.as_micros() as u64 * 6 / 5)));
        running.kill();
        if twin.path.exists() {
            let found = tree(&twin.path, &[&NOT_COPIED[..], &["archive-copy.restoring"]].concat());
            assert!(found == expected, "kill {number}: a whole archive or none");
            twin = Archive::new();
        }
    }
    let finished = start(twin.command("copy").args(["--json", "--from", &url])).wait().succeeded();
    println!("{} files were there already", finished.json()[0]["kept"]);
    assert!(tree(&twin.path, &NOT_COPIED) == expected);
    assert_eq!(twin.verify(), captures);
    // A restore that was interrupted with one copy continues with another.
    let running = start(Archive::new().command("copy").args(["--from", &url]));
    running.kill();
}

/// Stops a copy in the middle, with several long new files still to send.
fn stopped_midway(archive: &Archive, folder: &Path, url: &str, dice: &mut Dice) -> Running {
    fs::create_dir_all(archive.path.join("notes")).unwrap();
    for number in 0..LONG_FILES {
        let bytes = dice.below(u64::MAX).to_le_bytes().repeat(LONG_BYTES / 8);
        fs::write(archive.path.join(format!("notes/long{number}")), bytes).unwrap();
    }
    let before = objects(folder).len();
    let mut running = start(&mut copy(archive, url, &[]));
    assert!(running.wait_until(|| objects(folder).len() > before));
    running.signal("-STOP");
    running
}

#[test]
fn of_two_copies_at_once_one_is_made_and_the_other_says_so() {
    let mut dice = Dice::new("two copies");
    let (archive, _) = crawled();
    let (folder, url) = place(&archive);
    copied(&archive, &url, &[]);
    // Another machine with the same archive that knows of these copies.
    let other = archive.copy();
    fs::write(other.path.join("access.toml"), "# of the other\n").unwrap();
    let slow = stopped_midway(&archive, &folder, &url, &mut dice);
    // The same archive is not copied twice at the same time, and nothing is erased from it meanwhile.
    start(&mut copy(&archive, &url, &[])).wait().refused(3, &["is already being copied"]);
    let erase = ["page status = 200", "--reason", "x", "--yes"];
    archive.run("erase", &erase).refused(1, &["is being copied", "wait for the end of `archive copy`"]);
    assert!(!archive.path.join("erase.json").exists());
    assert_eq!(copied(&other, &url, &[])["number"], 2);
    slow.signal("-CONT");
    slow.wait()
        .refused(3, &["another copy was made at the same time and is copy 2", "run the command again"]);
    assert_eq!(copied(&archive, &url, &[])["number"], 3);
    assert_eq!(verified(&archive, &url).0, Vec::<Value>::new());

    // Two other copies are made meanwhile, and only the newer one is kept.
    let slow = stopped_midway(&archive, &folder, &url, &mut dice);
    for number in [4, 5] {
        fs::write(other.path.join("access.toml"), format!("# {number}\n")).unwrap();
        assert_eq!(copied(&other, &url, &["--keep", "1"])["number"], number);
    }
    slow.signal("-CONT");
    slow.wait().refused(3, &["is copy 4 now"]);
    assert_eq!(verified(&archive, &url).0, Vec::<Value>::new());
    assert_eq!(copied(&archive, &url, &["--keep", "1"])["number"], 6);
    assert_eq!(verified(&archive, &url).0, Vec::<Value>::new());
    assert!(tree(&restored(&url, &[]).path, &NOT_COPIED) == tree(&archive.path, &NOT_COPIED));
}

#[test]
fn one_copy_follows_the_other_until_a_signal_ends_them() {
    let (archive, _) = crawled();
    let (_, url) = place(&archive);
    let rules = |text: &str| fs::write(archive.path.join("access.toml"), text).unwrap();
    let newest = || listed(&archive, &url).last().map_or(0, |copy| copy["number"].as_u64().unwrap());
    let mut running = start(&mut copy(&archive, &url, &["--every", "1s", "--keep", "2"]));
    assert!(running.wait_until(|| newest() == 1));
    rules("# two\n");
    assert!(running.wait_until(|| newest() == 2));
    // A failed copy is retried.
    let erase = archive.path.join("erase.json");
    fs::write(&erase, "{}").unwrap();
    rules("# three\n");
    thread::sleep(Duration::from_millis(2500));
    assert_eq!(newest(), 2);
    fs::remove_file(&erase).unwrap();
    assert!(running.wait_until(|| newest() == 3));
    running.signal("-TERM");
    running.wait().refused(4, &["an erase was interrupted", "trying again in 1 second", "stopped"]);
    assert_eq!(listed(&archive, &url).len(), 2);
    assert_eq!(verified(&archive, &url).0, Vec::<Value>::new());
    // An error on the first copy ends the command at once.
    fs::write(&erase, "{}").unwrap();
    start(&mut copy(&archive, &url, &["--every", "1s"])).wait().refused(1, &["an erase was interrupted"]);
}

#[test]
fn copies_of_two_archives_are_not_mixed() {
    let (one, _) = crawled();
    let two = make(&TestWeb::start(lively(910, 4, 60)));
    let (_, url) = place(&one);
    copied(&one, &url, &[]);
    start(&mut copy(&two, &url, &[]))
        .wait()
        .refused(1, &["copies that this archive does not know of", "--adopt"]);
    assert!(!two.path.join("copies.jsonl").exists());
    // A restored archive continues the copies it came from.
    let twin = restored(&url, &[]);
    twin.run("review set", &["a.test", "--rating", "1", "--by", "bert"]).succeeded();
    assert_eq!(copied(&twin, &url, &[])["number"], 2);
    fs::remove_file(one.path.join("copies.jsonl")).unwrap();
    start(&mut copy(&one, &url, &[])).wait().refused(1, &["--adopt"]);
    assert_eq!(copied(&one, &url, &["--adopt"])["number"], 3);
    assert_eq!(copied(&one, &url, &[])["is_new"], false);
}

#[test]
fn beside_a_crawl_every_copy_is_the_archive_of_some_checkpoint() {
    let served = TestWeb::start(lively(911, 6, 150));
    let archive = Archive::new();
    let (_, url) = place(&archive);
    let urls = served.web.seeds(6);
    let seeds = archive_crawl::read_seeds(&urls.join("\n")).unwrap();
    // Segments are closed and checkpoints made all the time, and an index is written.
    let options = CrawlOptions {
        sync_every: Duration::from_millis(20),
        checkpoint_every: Duration::from_millis(200),
        politeness: Politeness { host_delay: Duration::from_millis(120), ..Politeness::at_once(1, 6) },
        full_text: true,
        ..served.options()
    };
    let is_over = AtomicBool::new(false);
    let copies = thread::scope(|scope| {
        scope.spawn(|| {
            // Without dictionaries, which would be larger than such segments.
            let codec = Some(Codec::Gzip);
            let segments = SegmentOptions { bytes_max: 64 << 10, codec, ..SegmentOptions::default() };
            let mut store = recorder::open(&archive.path, segments).unwrap().store;
            let plan =
                Purpose::Discover { scope: scope_of(&seeds, &ScopeKind::Any, u8::MAX), seeds: seeds.clone() };
            archive_crawl::run(&mut store, plan, &options, &Control::default(), &mut |_| {}).unwrap();
            store.close().unwrap();
            is_over.store(true, Ordering::SeqCst);
        });
        let mut copies = Vec::new();
        while !is_over.load(Ordering::SeqCst) {
            let finished = start(&mut copy(&archive, &url, &[])).wait();
            // Until the first checkpoint there is nothing to copy.
            if finished.code == Some(0) {
                copies.push(finished.json().remove(0));
            } else {
                let is_too_soon = ["there is no archive", "holds no archive"]
                    .iter()
                    .any(|words| finished.errors.contains(words));
                assert!(copies.is_empty() && is_too_soon, "{}", finished.errors);
            }
        }
        copies
    });
    assert!(copies.len() > 2, "{copies:?}");
    let all = contents(&archive.path);
    let mut open = 0;
    for made in copies.iter().filter(|copy| copy["is_new"] == true).rev().take(COPIES_LOOKED_AT) {
        let number = made["number"].as_u64().unwrap().to_string();
        let twin = restored(&url, &["--number", &number]);
        open += files_with(&twin.segments(), &[".open"]).len();
        assert_eq!(Some(twin.verify()), made["captures"].as_u64(), "copy {number}");
        assert!(contents(&twin.path).is_subset(&all));
        // For an owner, it is like an archive after a crash, and continues.
        start(&mut twin.crawl(&urls, &everything(&served))).wait().succeeded();
        assert_eq!(captures(&twin.path).urls(), captures(&archive.path).urls(), "copy {number}, continued");
        twin.verify();
        ledger_balances(&twin.path);
    }
    println!("{} copies, {open} segments that were written to", copies.len());
    assert!(open > 0, "no copy was made beside the crawl");
}
