//! How a command ends: by a signal, when its reader ends, next to another command.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use archive_choose::RefreshRules;
use archive_storage::Store;
use archive_testweb::Config;

use crate::change::crawled;
use crate::crawl::{everything, lively};
use crate::support::program::start;
use crate::support::{Archive, TestWeb, captures};

/// Runs a command whose reader ends after a few bytes; returns its exit code and standard error.
fn cut_off(command: &mut Command) -> (Option<i32>, String) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let _some = out.read(&mut [0; 16]).unwrap();
    drop(out);
    let ended = child.wait_with_output().unwrap();
    (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let (_, archive) = crawled(lively(731, 8, 1200));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
        assert_eq!(cut_off(command.args(["completions", shell])), (Some(0), String::new()), "{shell}");
    }
    let page = &captures(&archive.path).urls().pop_first().unwrap();
    let commands: [(&str, &[&str]); 12] = [
        ("query", &["page limit 100000", "--csv"]),
        ("query", &["page limit 100000", "--json"]),
        ("query", &["page limit 100000"]),
        ("review export", &["--format", "csv"]),
        ("review export", &["--format", "html"]),
        ("export", &["warc", "--output", "-"]),
        ("export", &["wacz", "--output", "-"]),
        ("export", &["cdxj", "--output", "-"]),
        ("export", &["links", "--output", "-"]),
        ("export", &["parquet", "--output", "-"]),
        ("rank", &["--output", "-"]),
        ("get", &[page]),
    ];
    for (command, arguments) in commands {
        let (code, said) = cut_off(archive.command(command).args(arguments));
        assert_eq!(code, Some(0), "{command} {arguments:?}: {said}");
        assert!(!said.contains("Broken pipe") && !said.contains("panicked"), "{command}: {said}");
    }
}

#[test]
fn unread_messages_are_not_a_failure() {
    let archive = Archive::new();
    let mut command = archive.command("stats");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

fn slow(seed: u64) -> TestWeb {
    TestWeb::start(Config { latency: Duration::from_millis(50), ..lively(seed, 8, 600) })
}

#[test]
fn a_terminal_that_closes_ends_a_crawl_cleanly() {
    let served = slow(732);
    let archive = Archive::new();
    let mut running = start(&mut archive.crawl(&served.web.seeds(2), &everything(&served)));
    assert!(running.wait_until(|| served.server.requests() > 20));
    running.signal("-HUP");
    let ended = running.wait();
    assert_eq!(ended.code, Some(4), "{}", ended.errors);
    assert!(ended.errors.contains("stopped after"), "{}", ended.errors);
    assert_eq!(archive.verify(), captures(&archive.path).count());
}

/// `nohup` ignores SIGHUP, and this must stay so.
#[test]
fn a_crawl_under_nohup_continues() {
    let served = slow(733);
    let archive = Archive::new();
    let crawl = archive.crawl(&served.web.seeds(1), &everything(&served));
    let mut nohup = Command::new("nohup");
    nohup.arg(crawl.get_program()).args(crawl.get_args()).args(["--limit", "60"]);
    let mut running = start(&mut nohup);
    assert!(running.wait_until(|| served.server.requests() > 20));
    running.signal("-HUP");
    running.wait().succeeded();
}

#[test]
fn a_doubled_signal_is_one() {
    let served = slow(734);
    let archive = Archive::new();
    let mut running = start(&mut archive.crawl(&served.web.seeds(2), &everything(&served)));
    assert!(running.wait_until(|| served.server.requests() > 20));
    for signal in ["-INT", "-INT", "-TERM"] {
        running.signal(signal);
        std::thread::sleep(Duration::from_millis(50));
    }
    let ended = running.wait();
    assert_eq!(ended.code, Some(4), "{}", ended.errors);
    assert!(ended.errors.contains("stopped after"), "{}", ended.errors);
}

/// A second signal some time later ends the program at once.
#[test]
fn a_second_request_to_stop_is_obeyed_at_once() {
    // A server that never answers delays a clean stop.
    let served = TestWeb::start(Config { latency: Duration::from_secs(20), ..lively(735, 4, 50) });
    let archive = Archive::new();
    let mut running = start(&mut archive.crawl(&served.web.seeds(2), &everything(&served)));
    assert!(running.wait_until(|| served.server.requests() > 0));
    running.signal("-INT");
    std::thread::sleep(Duration::from_secs(3));
    if running.has_ended() {
        panic!("it ended before it was asked twice: {}", running.wait().errors);
    }
    running.signal("-INT");
    assert_eq!(running.wait().code, Some(130));
}

#[test]
fn whatever_changes_an_archive_says_that_it_is_in_use() {
    let (served, archive) = crawled(lively(736, 2, 40));
    let lock = File::options().write(true).open(archive.path.join("archive.lock")).unwrap();
    lock.lock().unwrap();
    // The owner has not written its name yet.
    lock.set_len(0).unwrap();
    let file = archive.file("some.warc", "WARC/1.1\r\n");
    let file = file.to_str().unwrap();
    let seeds = archive.seeds(&served.web.seeds(1));
    let [option, here] = &served.connection();
    let commands: [(&str, &[&str]); 6] = [
        ("crawl", &["--seeds", seeds.to_str().unwrap(), option, here]),
        ("refresh", &["--budget", "1", option, here]),
        ("rebuild", &[]),
        ("repair", &[]),
        ("import", &[file]),
        ("publish", &["http://a.test/"]),
    ];
    for (command, arguments) in commands {
        let refused = archive.run(command, arguments).refused(3, &["is in use by another process"]);
        assert_eq!(refused.errors.lines().count(), 1, "{}", refused.errors);
    }
}

#[test]
fn a_refresh_says_why_nothing_is_due() {
    let (served, archive) = crawled(lively(737, 2, 40));
    let at = |arguments: &[&str]| {
        let mut command = archive.command("refresh");
        command.args(arguments).args(served.at_once()).args(crate::change::clock(&served));
        start(&mut command).wait().succeeded().errors
    };
    let said = at(&["--budget", "10"]);
    assert!(said.contains("nothing is due; next at ") && said.contains("--shortest"), "{said}");
    assert!(!said.contains("captures"), "{said}");
    let said = at(&["--budget", "0"]);
    assert!(said.contains("--budget is 0"), "{said}");
    // Only the options given now are stored.
    let kept = || {
        let store = Store::read_only(&archive.path).unwrap();
        (store.state().checkpoint_number(), RefreshRules::kept(store.state()).unwrap().shortest)
    };
    let (number, _) = kept();
    at(&["--budget", "10"]);
    assert_eq!(kept().0, number);
    at(&["--budget", "10", "--shortest", "3h"]);
    assert_eq!((kept().0 > number, kept().1.as_secs()), (true, 3 * 3600));
}

#[test]
fn a_favour_that_is_no_query_is_refused_with_its_place() {
    let archive = Archive::new();
    let seeds = archive.seeds(&["http://127.0.0.1:9/".to_owned()]);
    let crawl = |favour: &str| {
        start(archive.command("crawl").arg("--seeds").arg(&seeds).args(["--favour", favour])).wait()
    };
    crawl("(tpye = xml)").refused(2, &["--favour", "line 1, column 1", "no field `tpye`", "`type`"]);
    crawl("(type = )").refused(2, &["--favour", "line 1, column"]);
    crawl("(site importance > 2)").refused(2, &["--favour", "pages"]);
    crawl("type = xml").refused(2, &["(type = xml)"]);
    assert!(!archive.path.exists());
    crawl("tpye").refused(1, &["no seed could be fetched"]);
}

#[test]
fn an_interrupted_password_leaves_a_terminal_that_shows_what_is_typed() {
    let folder = tempfile::tempdir().unwrap();
    let people = folder.path().join("people");
    // The shell continues, and prints the state of the terminal.
    let line = format!(
        "trap : INT; '{}' account set anna --role reader --file '{}'; echo code $?; stty -a",
        env!("CARGO_BIN_EXE_archive"),
        people.display()
    );
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut keys, mut out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (mut shown, mut bytes) = (String::new(), [0; 4096]);
    while !shown.contains("Password of anna: ") {
        let count = out.read(&mut bytes).unwrap();
        assert!(count > 0, "{shown}");
        shown += &String::from_utf8_lossy(&bytes[..count]);
    }
    keys.write_all(b"secret\x03").unwrap();
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    child.wait().unwrap();
    assert!(rest.contains("code 130") && rest.contains(" echo ") && !rest.contains("secret"), "{rest}");
    assert!(!people.exists());
}
