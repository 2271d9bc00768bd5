//! Files of an archive in whose place is something else: a pipe, a device. No command hangs or reads without end.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use archive_testweb::Config;

use crate::change::crawled;
use crate::damage::kind;
use crate::support::Archive;
use crate::support::program::{Running, start, within};
use crate::support::served::{self, Served};
use crate::support::warc::{member, response};

/// Address space of a command in bytes: what an endless device gives does not fit.
const MEMORY: &str = "--as=4294967296";

/// Returns a file of each kind in an archive, by path in it.
fn of_each_kind(archive: &Path) -> Vec<PathBuf> {
    let (mut kinds, mut folders) = (BTreeMap::new(), vec![archive.to_owned()]);
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                let path = path.strip_prefix(archive).unwrap().to_owned();
                kinds.insert(kind(&path), path);
            }
        }
    }
    kinds.into_values().collect()
}

/// Runs these commands side by side, each within its time and memory; returns what they said.
fn run(archive: &Archive, commands: &[(&str, &[&str])]) -> Vec<String> {
    let begin = |(command, arguments): &(&str, &[&str])| {
        start(&mut within(MEMORY, archive.command(command).args(*arguments)))
    };
    let running: Vec<_> = commands.iter().map(begin).collect();
    let ended = running.into_iter().map(Running::wait);
    ended
        .map(|ended| {
            assert!(ended.code.is_some(), "{:?}: {}", ended.status, ended.errors);
            assert!(!ended.errors.contains("panicked"), "{}", ended.errors);
            ended.text() + &ended.errors
        })
        .collect()
}

/// Puts something else in the place of a file.
fn put(place: &Path, what: &str) {
    match what {
        "a pipe" => assert!(Command::new("mkfifo").arg(place).status().unwrap().success()),
        "a folder" => fs::create_dir(place).unwrap(),
        device => symlink(device, place).unwrap(),
    }
}

fn remove(place: &Path) {
    if place.is_dir() && !place.is_symlink() { fs::remove_dir(place) } else { fs::remove_file(place) }
        .unwrap();
}

#[test]
fn no_file_that_is_a_pipe_or_endless_holds_up_a_reader() {
    let (_served, archive) = crawled(Config::plain(781, 1, 6));
    archive.run("rank", &["--save", "rank"]).succeeded();
    archive.run("watch", &["page", "--name", "all", "--every", "1h"]).succeeded();
    let out = archive.folder().join("out.warc.gz");
    archive.run("export", &["warc", "--output", out.to_str().unwrap()]).succeeded();
    fs::write(archive.path.join("access.toml"), "").unwrap();
    let reading: [(&str, &[&str]); 4] =
        [("stats", &[]), ("verify", &[]), ("search", &["page"]), ("query", &["page text contains \"page\""])];
    for file in of_each_kind(&archive.path) {
        let (place, aside) = (archive.path.join(&file), archive.folder().join("aside"));
        fs::rename(&place, &aside).unwrap();
        for (what, count) in [("a pipe", 4), ("/dev/zero", 2)] {
            println!("{what} as {}", file.display());
            put(&place, what);
            run(&archive, &reading[4 - count..]);
            remove(&place);
        }
        fs::rename(&aside, &place).unwrap();
    }
    archive.verify();
}

#[test]
fn an_index_with_something_else_in_it_is_named_and_repaired() {
    let archive = Archive::new();
    let page =
        |id: &str| member(&response(id, "http://a.test/", "2020-01-01T00:00:00Z", "<title>a</title>hello"));
    let file = archive.file("a.warc.gz", page("urn:a"));
    let import = |archive: &Archive| start(archive.command("import").arg(&file)).wait();
    import(&archive).succeeded();
    let segment = fs::read_dir(archive.path.join("state/fulltext")).unwrap();
    let segment = segment.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let segment = segment.filter(|name| name.ends_with(".term")).last().unwrap();
    for name in ["meta.json", ".managed.json", ".tantivy-meta.lock", ".tantivy-writer.lock", &segment] {
        for what in ["a pipe", "/dev/zero", "/etc/passwd", "a folder"] {
            let damaged = archive.copy();
            let place = damaged.path.join("state/fulltext").join(name);
            let _ = fs::remove_file(&place);
            put(&place, what);
            println!("{what} as {name}");
            let out = format!("file://{}", damaged.folder().join("copies").display());
            let again = file.to_str().unwrap();
            let mut said = run(&damaged, &[("search", &["hello"]), ("publish", &["http://a.test/"])]);
            // It leaves out what another command may be writing.
            said.extend(run(&damaged, &[("verify", &[])]));
            run(&damaged, &[("copy", &["--to", &out])]);
            run(&damaged, &[("import", &[again])]);
            let is_read = name != ".tantivy-writer.lock";
            for said in said.iter().step_by(2).skip(usize::from(!is_read)) {
                assert!(said.contains("is not a regular file"), "{said}");
                assert!(said.contains("`archive repair` rebuilds it"), "{said}");
            }
            run(&damaged, &[("repair", &[])]);
            damaged.verify();
            assert_eq!(damaged.json("search", &["hello"]).len(), 1);
        }
    }
    // A list of segments that is too long for memory.
    let meta = archive.path.join("state/fulltext/meta.json");
    fs::File::create(&meta).unwrap().set_len(1 << 40).unwrap();
    let said = run(&archive, &[("search", &["hello"])]);
    assert!(said[0].contains("meta.json is too long"), "{said:?}");
}

/// Whether this machine lets the test mount folders, as root or in a namespace of its own.
fn mounts() -> Option<[&'static str; 3]> {
    let namespace = ["unshare", "-rm", "sh"];
    let tried =
        Command::new(namespace[0]).args(&namespace[1..]).args(["-c", "mount --bind /tmp /mnt"]).output();
    if tried.is_ok_and(|tried| tried.status.success()) {
        return Some(namespace);
    }
    crate::support::skip("nothing can be mounted read-only here: neither as root nor with `unshare -rm`");
    None
}

#[test]
fn an_archive_on_a_read_only_medium_is_read() {
    let Some([unshare, how, shell]) = mounts() else { return };
    let (_served, archive) = crawled(Config::plain(782, 1, 6));
    archive.verify();
    let url = archive.json("query", &["page captures > 0 select url limit 1"])[0]["url"]
        .as_str()
        .unwrap()
        .to_owned();
    let mounted = |command: &Command| {
        let mut mounted = Command::new(unshare);
        let script = "mount --bind \"$0\" \"$0\" && mount -o remount,ro,bind \"$0\" && ! touch \"$0/x\" 2>&- && exec \"$@\"";
        mounted.args([how, shell, "-c", script]).arg(archive.folder()).arg(command.get_program());
        mounted.args(command.get_args()).env_remove("ARCHIVE_DIR");
        mounted
    };
    let ask = |command: &str, arguments: &[&str]| {
        start(&mut mounted(archive.command(command).args(arguments))).wait()
    };
    for lock in [false, true] {
        if !lock {
            // As an older program left it, or a person who tidied up.
            let _ = fs::remove_file(archive.path.join("state/fulltext/.tantivy-meta.lock"));
        }
        for (command, arguments) in [
            ("verify", &[][..]),
            ("stats", &[]),
            ("search", &["page"]),
            ("query", &["page text contains \"page\""]),
            ("get", &[url.as_str()]),
            ("history", &[url.as_str()]),
            ("why", &[url.as_str()]),
            ("said", &["page", url.as_str()]),
            ("freshness", &[]),
            ("plan", &["--budget", "5"]),
            ("watch list", &[]),
            ("erase", &["--list"]),
            ("export", &["cdxj", "--output", "/dev/null"]),
            ("review export", &["--output", "-"]),
        ] {
            let ended = ask(command, arguments);
            assert_eq!(ended.code, Some(0), "{command}: {}{}", ended.text(), ended.errors);
        }
        archive.run("search", &["page"]).succeeded();
    }
    let listen = ["--listen", "127.0.0.1:0", "--replay-listen", "127.0.0.1:0"];
    let served = Served::spawn(&mut mounted(archive.command("serve").args(listen)), 1);
    for path in ["/", "/health", "/search?q=page", "/query?q=page+text+contains+%22page%22"] {
        let answer = served::ask(&served.application, "GET", path, &[]);
        assert_eq!(answer.status, 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
    }
    for (command, arguments) in [("import", &["/dev/null"][..]), ("repair", &[])] {
        let ended = ask(command, arguments);
        assert_eq!(ended.code, Some(1), "{command}");
        assert!(ended.errors.contains("Read-only file system"), "{command}: {}", ended.errors);
    }
}
