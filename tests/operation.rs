//! A crawl that runs for weeks can be paused, controlled and monitored, and waits while the disk is full.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use archive_testweb::Config;
use serde_json::Value;

use crate::crawl::{everything, lively};
use crate::support::captures::assert_same;
use crate::support::program::{Running, start};
use crate::support::reach::reach;
use crate::support::small_disk::SmallDisk;
use crate::support::{Archive, TestWeb, captures, ledger_balances};

/// A slow web, so that its crawl can be controlled.
fn slow_web(seed: u64) -> TestWeb {
    TestWeb::start(Config { latency: Duration::from_millis(20), ..lively(seed, 8, 300) })
}

fn says(log: &Path, words: &str) -> bool {
    fs::read_to_string(log).unwrap_or_default().contains(words)
}

/// Waits until the web gets no more requests.
fn falls_silent(served: &TestWeb, running: &mut Running) {
    let mut before = served.server.requests();
    let came = running.wait_until(|| {
        std::thread::sleep(Duration::from_millis(300));
        let now = served.server.requests();
        let silent = now == before;
        before = now;
        silent
    });
    assert!(came, "it ended instead");
}

fn ask(address: &str, path: &str) -> Option<String> {
    let mut connection = TcpStream::connect(address).ok()?;
    connection.write_all(format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes()).ok()?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).ok()?;
    answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
}

#[test]
fn a_crawl_is_paused_steered_and_watched_while_it_runs() {
    let served = slow_web(95);
    let archive = Archive::new();
    let log = archive.folder().join("crawl.log");
    let settings = archive.path.join("crawl.toml");
    let seeds = served.web.seeds(2);
    let mut options = everything(&served);
    options.extend(["--workers", "4", "--status", "127.0.0.1:0", "--log"].map(str::to_owned));
    options.push(log.display().to_string());
    let mut running = start(&mut archive.crawl(&seeds, &options));
    assert!(running.wait_until(|| served.server.requests() > 30));

    let text = fs::read_to_string(&log).unwrap();
    let (_, address) = text.split_once("served at http://").unwrap();
    let address = address.split('/').next().unwrap();
    let status: Value = serde_json::from_str(&ask(address, "/status").unwrap()).unwrap();
    assert!(status["captures"].is_u64() && status["paused"].is_null(), "{status}");

    fs::write(&settings, "paused = true\n").unwrap();
    assert!(running.wait_until(|| says(&log, "paused: requested in ") && says(&log, "/crawl.toml")));
    falls_silent(&served, &mut running);
    assert!(running.wait_until(|| ask(address, "/metrics").unwrap().contains("archive_paused 1\n")));

    // Unreadable settings change nothing.
    fs::write(&settings, "paused = false\nignore = ['(']\n").unwrap();
    let mistake = "crawl.toml, line 2, column 11: the pattern cannot be used: unclosed group; the settings before it stay";
    assert!(running.wait_until(|| says(&log, mistake)), "{}", fs::read_to_string(&log).unwrap());
    falls_silent(&served, &mut running);

    let known = captures(&archive.path).urls().len();
    fs::write(&settings, "ignore = ['^http://[^/]+/.*[02468]$']\nworkers = 2\n").unwrap();
    assert!(running.wait_until(|| says(&log, "resumed")));
    running.signal("-USR1");
    assert!(running.wait_until(|| says(&log, "paused: a signal asked for it")));
    falls_silent(&served, &mut running);
    running.signal("-USR2");
    let ended = running.wait().succeeded();
    assert!(ended.errors.contains("nothing left to fetch"), "{}", ended.errors);
    assert!(captures(&archive.path).urls().len() >= known);
    ledger_balances(&archive.path);

    let lines: Vec<Value> =
        fs::read_to_string(&log).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |target: &str| lines.iter().filter(|line| line["target"] == target).count();
    println!("{} lines of log, {} of them captures", lines.len(), of("capture"));
    assert!(of("capture") > 30 && lines.iter().all(|line| line["timestamp"].is_string()));
    let said = |words: &str| {
        let line =
            lines.iter().find(|line| line["message"].as_str().is_some_and(|said| said.contains(words)));
        line.unwrap_or_else(|| panic!("'{words}' is not in the log"))
    };
    // Numbers are numbers, and only what needs attention is a warning.
    let capture = lines.iter().find(|line| line["target"] == "capture").unwrap();
    for (line, fields) in [
        (said("checkpoint"), &["captures", "milliseconds"][..]),
        (capture, &["status", "bytes", "milliseconds"]),
        (said("the run has begun"), &["queued"]),
        (said("the run has ended"), &["captures"]),
        (said("passed along"), &["rounds"]),
    ] {
        assert!(fields.iter().all(|field| line[field].is_u64()), "{line}");
    }
    for (words, level) in [("served at", "INFO"), ("resumed", "INFO"), ("paused: ", "WARN")] {
        assert_eq!(said(words)["level"], level);
    }
}

#[test]
fn ignore_rules_hold_from_the_start_and_a_mistake_keeps_a_crawl_from_beginning() {
    let served = TestWeb::start(lively(96, 4, 200));
    let archive = Archive::new();
    let seeds = served.web.seeds(1);
    let options = everything(&served);
    fs::create_dir(&archive.path).unwrap();
    let settings = archive.path.join("crawl.toml");
    fs::write(&settings, "delay = 5\n").unwrap();
    start(&mut archive.crawl(&seeds, &options)).wait().refused(2, &["crawl.toml, line 1, column 9: "]);
    assert_eq!(served.server.requests(), 0);

    fs::write(&settings, "ignore = ['[13579]$']\n").unwrap();
    start(&mut archive.crawl(&seeds, &options)).wait().succeeded();
    let odd = |url: &String| url.ends_with(['1', '3', '5', '7', '9']);
    let captured = captures(&archive.path).urls();
    assert!(!captured.iter().any(odd), "{:?}", captured.iter().find(|url| odd(url)));
    let store = archive_storage::Store::read_only(&archive.path).unwrap();
    let mut urls =
        (0..store.state().url_count()).map(|id| store.state().url(archive_storage::UrlId(id)).unwrap());
    let ignored = urls.find(odd).unwrap();
    drop(urls);
    drop(store);
    let why = archive.json("why", &[&ignored]).remove(0);
    assert_eq!(why["refusal"], "ignored", "{why}");

    fs::remove_file(&settings).unwrap();
    start(&mut archive.crawl(&seeds, &options)).wait().succeeded();
    assert_same(&captures(&archive.path).urls(), &reach(&served.web, &seeds), "captured without the rule");
}

/// Fails unless a paused crawl continues to its end once there is space, and captures everything once.
fn continues(running: Running, archive: &Archive, served: &TestWeb, seeds: &[String]) {
    let ended = running.wait().succeeded();
    assert!(
        ended.errors.contains("resumed") && ended.errors.contains("nothing left to fetch"),
        "{}",
        ended.errors
    );
    let captured = captures(&archive.path);
    assert_same(&captured.urls(), &reach(&served.web, seeds), "captured in spite of a full disk");
    captured.are_single_answers();
    assert_eq!(archive.verify(), captured.count());
    ledger_balances(&archive.path);
}

#[test]
fn a_disk_that_is_full_all_at_once_pauses_a_crawl() {
    let mut archive = Archive::new();
    let folder = archive.folder().join("small");
    let Some(disk) = SmallDisk::mount(folder.clone(), "size=24m") else { return };
    let log = archive.folder().join("crawl.log");
    archive.path = folder.join("web.archive");
    let served = slow_web(98);
    let seeds = served.web.seeds(2);
    let mut options = everything(&served);
    options.extend(["--disk-min", "1", "--no-full-text", "--log"].map(str::to_owned));
    options.push(log.display().to_string());
    start(archive.crawl(&seeds, &options).args(["--limit", "100"])).wait().succeeded();
    let acknowledged = captures(&archive.path);

    // Another program uses up the free space while the crawl writes.
    let before = served.server.requests();
    let mut running = start(&mut archive.crawl(&seeds, &options));
    assert!(running.wait_until(|| served.server.requests() > before + 20));
    let ballast = folder.join("ballast");
    let mut file = fs::File::create(&ballast).unwrap();
    while file.write_all(&[0; 1 << 16]).is_ok() {}
    assert!(running.wait_until(|| says(&log, "paused: ")), "{}", fs::read_to_string(&log).unwrap());
    falls_silent(&served, &mut running);
    drop(file);
    fs::remove_file(ballast).unwrap();
    disk.change("size=100m");
    continues(running, &archive, &served, &seeds);
    let captured = captures(&archive.path);
    for (url, before) in &acknowledged.0 {
        assert_eq!(captured.0[url][0], before[0], "{url} is where it was");
    }
}

#[test]
fn a_crawl_waits_for_room_on_the_disk() {
    let mut archive = Archive::new();
    let folder = archive.folder().join("small");
    let Some(disk) = SmallDisk::mount(folder.clone(), "size=6m") else { return };
    let log = archive.folder().join("crawl.log");
    archive.path = folder.join("web.archive");
    // The disk is checked every second, so the crawl must last for several.
    let config = Config { latency: Duration::from_millis(300), ..lively(97, 8, 400) };
    let served = TestWeb::start(config);
    let seeds = served.web.seeds(2);
    let mut options = everything(&served);
    options.extend(["--disk-min", "5", "--log"].map(str::to_owned));
    options.push(log.display().to_string());
    let mut running = start(&mut archive.crawl(&seeds, &options));
    assert!(running.wait_until(|| says(&log, "paused: less than 5 MiB are free on the disk of")));
    falls_silent(&served, &mut running);
    disk.change("size=100m");
    continues(running, &archive, &served, &seeds);
}
