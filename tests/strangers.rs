//! An archive from a stranger: nothing in it makes a command write outside, or block, or read without end.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use archive_testweb::{Clock, Config};
use chrono::TimeDelta;

use crate::change::{clock, crawled};
use crate::support::program::{Finished, start};
use crate::support::{Archive, TestWeb};

/// Returns the contents of a folder that no command may change.
fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    files
        .map(|file| {
            let bytes = fs::read(file.path()).unwrap_or_default();
            (file.file_name().to_string_lossy().into_owned(), bytes)
        })
        .collect()
}

/// A small archive with a watch that is due, and a folder next to it that no command may touch.
struct Stage {
    served: TestWeb,
    archive: Archive,
    outside: std::path::PathBuf,
}

impl Stage {
    fn new(seed: u64) -> Self {
        let config = Config::plain(seed, 1, 6);
        let clock = Clock::simulated(config.start + TimeDelta::days(200));
        let (served, archive) = crawled(Config { clock, ..config });
        let outside = archive.folder().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("victim"), "untouched").unwrap();
        fs::write(outside.join("victim.json"), "{}").unwrap();
        let stage = Self { served, archive, outside };
        stage.run("watch", &["page", "--name", "all", "--every", "1h"]).succeeded();
        stage.served.web.clock().advance(TimeDelta::days(3));
        stage
    }

    /// Runs a command at the web's time.
    fn run(&self, command: &str, arguments: &[&str]) -> Finished {
        let mut whole = self.archive.command(command);
        whole.args(arguments).args(clock(&self.served));
        if command == "refresh" {
            whole.args(self.served.at_once());
        }
        start(&mut whole).wait()
    }

    fn refresh(&self, more: &[&str]) -> Finished {
        self.run("refresh", &[&["--budget", "50"], more].concat())
    }

    /// Replaces a file of the archive with a symbolic link to the outside.
    fn link(&self, name: &str, target: &str) {
        let path = self.archive.path.join(name);
        if path.is_dir() {
            fs::rename(&path, self.archive.folder().join("taken")).unwrap();
        } else if path.exists() {
            fs::remove_file(&path).unwrap();
        }
        symlink(self.outside.join(target), path).unwrap();
    }

    /// Runs `act`, and fails if it changed anything outside.
    fn keeps_outside(&self, what: &str, act: impl FnOnce() -> Finished) -> Finished {
        let before = content(&self.outside);
        let finished = act();
        assert_eq!(content(&self.outside), before, "{what}: {}{}", finished.text(), finished.errors);
        assert!(!finished.errors.contains("panicked"), "{what}: {}", finished.errors);
        finished
    }
}

#[test]
fn links_in_the_place_of_files_are_not_followed() {
    for (number, name) in ["archive.lock", "state/checkpoint.lock", "state/journal"].into_iter().enumerate() {
        let stage = Stage::new(741 + number as u64);
        stage.link(name, "victim");
        let file = name.rsplit('/').next().unwrap();
        stage.keeps_outside(name, || stage.refresh(&[])).refused(1, &[file, "is a link"]);
        stage.keeps_outside(name, || stage.archive.run::<&str>("rebuild", &[]));
        stage.keeps_outside(name, || stage.archive.run::<&str>("repair", &[]));
    }
}

#[test]
fn links_in_the_place_of_folders_are_not_followed() {
    for (number, name) in
        ["state", "segments", "state/fulltext", "watches", "state/columns"].into_iter().enumerate()
    {
        let stage = Stage::new(751 + number as u64);
        stage.link(name, "");
        for command in ["refresh", "rebuild", "repair"] {
            let arguments: &[&str] = if command == "refresh" { &["--budget", "5"] } else { &[] };
            let run = stage.keeps_outside(name, || stage.archive.run(command, arguments));
            assert_ne!(run.code, Some(0), "{name}, {command}: {}", run.errors);
        }
        stage.keeps_outside(name, || stage.run("watch", &["page", "--name", "more"]));
        stage.keeps_outside(name, || stage.archive.run("rank", &["--save", "hub"]));
    }
}

#[test]
fn links_among_watches_and_columns_are_not_followed() {
    let stage = Stage::new(761);
    stage.link("watches/all", "");
    stage.keeps_outside("the folder of reports", || stage.refresh(&[]));
    fs::remove_file(stage.archive.path.join("watches/all")).unwrap();
    for name in ["watches/all.atom", "watches/new.part", "watches/all/new.part"] {
        fs::create_dir_all(stage.archive.path.join("watches/all")).unwrap();
        stage.link(name, "victim");
        stage.served.web.clock().advance(TimeDelta::days(3));
        stage.keeps_outside(name, || stage.refresh(&[]));
    }
    fs::create_dir_all(stage.archive.path.join("state/columns")).unwrap();
    for name in ["state/columns/page.hub.part", "state/columns/page.hub"] {
        stage.link(name, "victim");
        stage.keeps_outside(name, || stage.archive.run("rank", &["--save", "hub"]));
    }
    stage.link("state/fulltext/.tantivy-writer.lock", "victim");
    stage.keeps_outside("the lock of the index", || stage.refresh(&[]));
    stage.link("out.warc", "victim");
    let output = stage.archive.path.join("out.warc");
    let output = output.to_str().unwrap();
    stage
        .keeps_outside("an export", || stage.archive.run("export", &["warc", "--output", output]))
        .refused(1, &["out.warc", "is a link"]);
    stage.keeps_outside("a log", || stage.refresh(&["--log", output])).refused(1, &["out.warc", "is a link"]);
}

#[test]
fn a_watch_says_what_its_file_is_called_and_writes_nowhere_else() {
    let stage = Stage::new(771);
    let file = stage.archive.path.join("watches/all.json");
    let good = fs::read_to_string(&file).unwrap();
    for name in
        ["../../outside/victim", "../outside", "/tmp/victim", "..", "", "other", "a/b", "a\\u001b[31m"]
    {
        fs::write(&file, good.replace("\"all\"", &format!("\"{name}\""))).unwrap();
        stage.keeps_outside(name, || stage.refresh(&[])).refused(1, &["all.json", "is not a watch"]);
        let run = |command: &str, arguments: &[&str]| stage.archive.run(command, arguments);
        stage.keeps_outside(name, || run("watch list", &[])).refused(1, &["all.json"]);
        stage.keeps_outside(name, || run("watch remove", &["all"])).refused(1, &["all.json"]);
    }
}

/// A watch names an output file of its author; in a stranger's archive, the author is the stranger.
#[test]
fn reports_leave_the_archive_only_where_a_person_says() {
    let stage = Stage::new(772);
    let file = stage.archive.path.join("watches/all.json");
    let good = fs::read_to_string(&file).unwrap();
    let output = format!(
        "\"name\": \"all\",\n  \"output\": {{ \"path\": {:?}, \"format\": \"text\" }}",
        stage.outside.join("report.txt")
    );
    fs::write(&file, good.replace("\"name\": \"all\"", &output)).unwrap();
    let said = stage.keeps_outside("an output", || stage.refresh(&[])).succeeded();
    assert!(said.errors.contains("report.txt") && said.errors.contains("--outputs"), "{}", said.errors);
    assert!(said.text().contains("all: "), "the report is printed instead: {}", said.text());
    stage.served.web.clock().advance(TimeDelta::days(3));
    let allowed = stage.outside.to_str().unwrap();
    // A symbolic link does not lead out of the allowed folder.
    symlink(stage.archive.folder(), stage.outside.join("up")).unwrap();
    stage.refresh(&["--outputs", allowed]).succeeded();
    assert!(stage.outside.join("report.txt").exists());
    let up = fs::read_to_string(&file).unwrap().replace("report.txt", "up/report.txt");
    fs::write(&file, up).unwrap();
    stage.served.web.clock().advance(TimeDelta::days(3));
    stage.refresh(&["--outputs", allowed]).succeeded();
    assert!(!stage.archive.folder().join("report.txt").exists());
}

/// Sparse files of the largest allowed size, and one byte longer.
#[test]
fn files_beyond_their_limits_are_not_read() {
    let stage = Stage::new(774);
    for (name, bytes_max) in [("watches/other.json", 256_u64 << 20), ("crawl.toml", 4 << 20)] {
        let path = stage.archive.path.join(name);
        let before = fs::read(&path).ok();
        for (bytes, is_read) in [(bytes_max, true), (bytes_max + 1, false)] {
            fs::File::create(&path).unwrap().set_len(bytes).unwrap();
            let ended = match name {
                "crawl.toml" => stage.refresh(&[]),
                _ => stage.archive.run::<&str>("watch list", &[]),
            };
            assert_eq!(
                ended.errors.contains(&format!("longer than {bytes_max} bytes")),
                !is_read,
                "{}",
                ended.errors
            );
            assert!(ended.errors.contains(name), "{}", ended.errors);
        }
        let _ = fs::remove_file(&path);
        if let Some(before) = before {
            fs::write(&path, before).unwrap();
        }
    }
}

/// Reading a pipe would block for ever, and a device has no end.
#[test]
fn special_files_are_not_read() {
    let stage = Stage::new(773);
    let places = ["crawl.toml", "watches/other.json", "state/columns/page.hub", "state/due", "archive.lock"];
    fs::create_dir_all(stage.archive.path.join("state/columns")).unwrap();
    for name in places {
        let path = stage.archive.path.join(name);
        let aside = fs::read(&path).ok();
        let _ = fs::remove_file(&path);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let run = stage.refresh(&[]);
        assert!(run.code.is_some(), "{name}");
        fs::remove_file(&path).unwrap();
        symlink("/dev/zero", &path).unwrap();
        // The contents of an endless device would exceed the limit of the address space.
        let mut limited = Command::new("prlimit");
        let command = stage.archive.command("refresh");
        limited.args(["--as=4294967296", "--cpu=60"]).arg(command.get_program()).args(command.get_args());
        limited.args(["--budget", "5", "--memory", "200MB"]).args(stage.served.at_once());
        let run = start(limited.args(clock(&stage.served))).wait();
        assert!(run.code.is_some(), "{name}: {:?} {}", run.status, run.errors);
        fs::remove_file(&path).unwrap();
        if let Some(bytes) = aside {
            fs::write(&path, bytes).unwrap();
        }
    }
}
