//! Unattended refresh runs: in time, one at a time, without bursts; and the files that schedule them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use archive_storage::Store;
use archive_testweb::Config;
use chrono::TimeDelta;
use serde_json::Value;

use crate::change::{clock, crawled, visits};
use crate::crawl::lively;
use crate::support::program::start;
use crate::support::{Archive, TestWeb, skip};

/// Folder of the examples.
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/cron");

fn refresh(served: &TestWeb, archive: &Archive, arguments: &[&str]) -> Command {
    let mut command = archive.command("refresh");
    command.args(arguments).args(served.at_once()).args(clock(served));
    command
}

/// Returns the URLs of the captures from a number on, in capture order.
fn captured_since(archive: &Path, number: usize) -> Vec<String> {
    let store = Store::read_only(archive).unwrap();
    let captures = store.state().captures().skip(number).map(|capture| capture.unwrap().1);
    captures.map(|capture| store.state().url(capture.url).unwrap()).collect()
}

fn capture_count(archive: &Path) -> usize {
    Store::read_only(archive).unwrap().state().totals().captures as usize
}

#[test]
fn missed_runs_are_caught_up_without_a_burst_and_a_second_run_continues() {
    let (served, archive) = crawled(lively(401, 4, 150));
    // Eleven daily runs were missed.
    served.web.clock().advance(TimeDelta::days(12));
    let mut fetched: Vec<BTreeSet<String>> = Vec::new();
    for _ in 0..3 {
        let before = capture_count(&archive.path);
        let run =
            start(refresh(&served, &archive, &["--budget", "20", "--json"]).args(["--for", "1m"])).wait();
        let summary = run.succeeded().json().remove(0);
        assert_eq!((summary["budget"].as_u64(), summary["end"].as_str()), (Some(20), Some("complete")));
        let pages: BTreeSet<String> = captured_since(&archive.path, before)
            .into_iter()
            .filter(|url| served.web.page_of(url).is_some())
            .collect();
        assert!(pages.len() <= 20, "{} pages in one run", pages.len());
        fetched.push(pages);
    }
    // The same command again does not fetch the same pages again.
    assert!(fetched[0].len() > 10);
    assert!(fetched[0].is_disjoint(&fetched[1]) && fetched[1].is_disjoint(&fetched[2]), "{fetched:#?}");
}

#[test]
fn a_run_ends_within_its_time_and_keeps_others_out() {
    let config = lively(402, 4, 200);
    let (_, archive) = crawled(config.clone());
    // The same web again, on a slow server.
    let served = TestWeb::start(Config { latency: Duration::from_millis(400), ..config });
    served.web.clock().advance(TimeDelta::days(9));
    let arguments = ["--budget", "1000", "--for", "20s", "--workers", "2", "--json"];
    let mut running = start(&mut refresh(&served, &archive, &arguments));
    assert!(running.wait_until(|| served.server.requests() > 3));
    let second = start(&mut refresh(&served, &archive, &arguments)).wait();
    second.refused(3, &["in use"]);
    let first = running.wait().succeeded();
    assert!(first.errors.lines().last().unwrap().contains("the time is up"), "{}", first.errors);
    let summary: Value = first.json().remove(0);
    assert_eq!(summary["end"], "time");
    assert!(summary["seconds"].as_f64().unwrap() <= 20.0, "{summary}");
    let refreshed = visits(&archive.path).values().filter(|(_, visit)| visit.captures > 1).count();
    assert!((5..150).contains(&refreshed), "{refreshed} pages were fetched again");
    assert_eq!(archive.verify(), capture_count(&archive.path) as u64);
}

#[test]
fn systemd_accepts_the_units() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return skip("no systemd-analyze");
    }
    let archive = Archive::new();
    let read = |name: &str| fs::read_to_string(Path::new(EXAMPLES).join(name)).unwrap();
    let service = read("archive-refresh.service");
    let program = "/usr/local/bin/archive";
    assert!(service.contains(program), "{service}");
    let service = service.replace(program, env!("CARGO_BIN_EXE_archive"));
    let units = [
        archive.file("archive-refresh.service", &service),
        archive.file("archive-refresh.timer", read("archive-refresh.timer")),
    ];
    let judged = Command::new("systemd-analyze").arg("verify").args(&units).output().unwrap();
    let said = String::from_utf8_lossy(&judged.stderr);
    // It may complain about other units of this machine, but not about ours.
    let ours: Vec<&str> = said.lines().filter(|line| line.contains("archive-refresh")).collect();
    assert!(judged.status.success() && ours.is_empty(), "{said}");
    let line = service.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    runs(&archive, line, &[]);
}

#[test]
fn the_crontab_runs_unchanged() {
    let (served, archive) = crawled(lively(403, 4, 100));
    served.web.clock().advance(TimeDelta::days(9));
    let crontab = fs::read_to_string(Path::new(EXAMPLES).join("crontab")).unwrap();
    // The program under its name, as cron finds it, directed to the test web.
    let bin = archive.folder().join("bin");
    fs::create_dir(&bin).unwrap();
    let wrapper = format!(
        "#!/bin/sh\ncase \"$1\" in\nrefresh) exec {0} \"$@\" --delay 0 {1} {2} ;;\n*) exec {0} \"$@\" ;;\nesac\n",
        env!("CARGO_BIN_EXE_archive"),
        served.connection().join(" "),
        clock(&served).join(" "),
    );
    fs::write(bin.join("archive"), wrapper).unwrap();
    fs::set_permissions(bin.join("archive"), fs::Permissions::from_mode(0o755)).unwrap();

    let mut jobs = 0;
    for line in crontab.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
        if line.split_once('=').is_some_and(|(name, _)| is_name(name)) {
            continue;
        }
        // crontab(5): five time fields, then the command, in which % would end a line.
        let mut words = line.split_whitespace();
        let times: Vec<&str> = words.by_ref().take(5).collect();
        let is_time =
            |field: &&str| field.bytes().all(|byte| byte.is_ascii_digit() || b"*,-/".contains(&byte));
        assert!(times.len() == 5 && times.iter().all(is_time) && !line.contains('%'), "{line}");
        let command = words.collect::<Vec<_>>().join(" ");
        let path = format!("{}:/usr/bin:/bin", bin.display());
        runs(&archive, &command, &[("ARCHIVE_DIR", archive.path.to_str().unwrap()), ("PATH", &path)]);
        jobs += 1;
    }
    assert_eq!(jobs, 3);
    let log = fs::read_to_string(archive.path.join("refresh.log")).unwrap();
    assert_eq!(log.lines().count(), 1, "one line sums the run up: {log}");
    assert!(log.contains("captures"), "{log}");
    let refreshed = visits(&archive.path).values().filter(|(_, visit)| visit.captures > 1).count();
    assert!(refreshed > 50, "{refreshed} pages were fetched again");
}

/// Runs a command line as cron does, with only this environment; a missing archive is created by the test.
fn runs(archive: &Archive, line: &str, environment: &[(&str, &str)]) {
    let path = archive.path.to_str().unwrap();
    if !archive.path.exists() {
        // Nothing was crawled: the command is parsed, and reports what is missing.
        let line = line.replace("/srv/web.archive", path);
        let finished = start(Command::new("/bin/sh").env_clear().arg("-c").arg(&line)).wait();
        finished.refused(1, &["there is no archive"]);
        return;
    }
    let mut shell = Command::new("/bin/sh");
    shell.env_clear().env("HOME", archive.folder()).env("SHELL", "/bin/sh").envs(environment.iter().copied());
    start(shell.arg("-c").arg(line)).wait().succeeded();
}
