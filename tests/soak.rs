//! A crawl of the hostile mix, killed again and again for `$ARCHIVE_SOAK_SECONDS`: no stored data is lost, nothing is
//! stored twice, all cash is accounted for, and memory does not grow.
//!
//! `ARCHIVE_SOAK_SECONDS=3600 tests/run soak`; without the variable it lasts a few seconds. The time between two kills
//! is random, up to `$ARCHIVE_SOAK_KILL_SECONDS` (180 at most, which is below the timeout of a command). With
//! `$ARCHIVE_SOAK_FOLDER`, the archive there is continued. Each run prints a line: when it ended, what it captured, its
//! memory.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use archive_storage::CaptureKind;
use archive_testweb::{attacks, faults, traps};

use crate::crawl::lively;
use crate::support::program::start;
use crate::support::{Archive, Dice, TestWeb, captures, judges, ledger_balances};

/// Default duration of a soak.
const SECONDS: u64 = 4;

/// Largest time between two kills.
const KILL_SECONDS: u64 = 180;

/// Memory limit given to the crawl, in MiB.
const MEMORY_MIB: u64 = 512;

/// Memory that it may take in addition, in MiB: for the program itself, and for the index of open segments.
const MEMORY_MIB_MORE: u64 = 100;

/// Bytes that it may take for each URL, capture and host of the archive, as stated in `recorder/memory.rs`.
const MEMORY_BYTES_OF: [(&str, u64); 3] = [("urls", 12), ("captures", 11), ("hosts", 230)];

/// Number of hosts of the ordinary part of the web, in a short soak and in a long one.
const HOSTS: [u32; 2] = [8, 20_000];

/// Approximate number of pages per host.
const PAGES_PER_HOST: u64 = 200;

fn seconds(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Times of the captures of each URL, in storage order.
type Times = BTreeMap<String, Vec<i64>>;

#[test]
fn a_crawl_of_the_hostile_mix_survives_being_killed_at_random() {
    let mut dice = Dice::new("soak");
    let whole = Duration::from_secs(seconds("ARCHIVE_SOAK_SECONDS", SECONDS));
    let life_max = seconds("ARCHIVE_SOAK_KILL_SECONDS", KILL_SECONDS).min(KILL_SECONDS);
    let life_max = Duration::from_secs(life_max).min(whole / 3);
    let hosts = HOSTS[usize::from(whole > Duration::from_secs(60))];
    let served = TestWeb::start(lively(99, hosts, u64::from(hosts) * PAGES_PER_HOST));
    let mut archive = Archive::new();
    if let Some(folder) = std::env::var_os("ARCHIVE_SOAK_FOLDER") {
        archive.path = Path::new(&folder).join("web.archive");
    }
    let mut seeds = served.web.seeds(served.web.sites());
    seeds.extend(traps::ENTRANCES.iter().chain(&attacks::ENTRANCES).map(|url| (*url).to_owned()));
    seeds.push(faults::ENTRANCE.to_owned());
    seeds.extend(faults::ROBOTS_HOSTS.iter().map(|host| format!("http://{}.faults.test/", host.name)));
    let mut options = served.at_once();
    // The farm has a host for every name; an operator would counter it with a budget per site.
    let limits = ["--timeout", "2s", "--max-time", "10s", "--max-body", "8", "--workers", "64"];
    options.extend(["--pages-per-site", "2000"].map(str::to_owned));
    options.extend(["--memory".to_owned(), format!("{MEMORY_MIB}MiB")]);
    options.extend(limits.map(str::to_owned));

    let begun = Instant::now();
    let mut known = Times::new();
    if archive.segments().is_dir() {
        look(&archive, &mut known);
    }
    let mut peak = 0;
    let mut ended = false;
    while begun.elapsed() < whole && !ended {
        let life = Duration::from_millis(dice.below(life_max.as_millis() as u64).max(500));
        let mut running = start(&mut archive.crawl(&seeds, &options));
        let (process, until) = (running.id(), Instant::now() + life);
        let mut memory = 0;
        ended = !running.wait_until(|| {
            memory = memory.max(resident_mib(process).unwrap_or(0));
            Instant::now() >= until
        });
        running.kill();
        look(&archive, &mut known);
        let bound = memory_bound(&archive);
        println!("after {:.0?}: {} URLs captured, {memory} of {bound} MiB", begun.elapsed(), known.len());
        assert!(memory < bound, "{memory} of {bound} MiB");
        peak = peak.max(memory);
    }
    let mut last = start(&mut archive.crawl(&seeds, &options));
    let before = served.server.requests();
    if last.wait_until(|| served.server.requests() > before + 20) {
        last.signal("-TERM");
    }
    let last = last.wait();
    assert!(matches!(last.code, Some(0 | 4)), "{}", last.errors);
    look(&archive, &mut known);
    assert_eq!(archive.verify(), captures(&archive.path).count());
    ledger_balances(&archive.path);
    if let Some(judges) = judges::find() {
        let (judged, all) = (judges.check(&archive.segments()), captures(&archive.path));
        // A failed fetch has only metadata; every capture has metadata.
        let failed = all.0.values().flatten().filter(|capture| capture.kind == CaptureKind::Failed).count();
        assert_eq!(judged.captures(), all.count() - failed as u64);
        assert_eq!(judged.fastwarc["metadata"], all.count());
    }
    println!(
        "{} captures in all, {} requests, {peak} MiB at most",
        captures(&archive.path).count(),
        served.server.requests()
    );
}

/// Fails if an earlier capture is missing, or if a page was captured twice.
fn look(archive: &Archive, known: &mut Times) {
    let now: Times = captures(&archive.path)
        .0
        .into_iter()
        .map(|(url, captures)| (url, captures.iter().map(|capture| capture.time).collect()))
        .collect();
    for (url, before) in known.iter() {
        let times = now.get(url).unwrap_or_else(|| panic!("{url} was captured and is gone"));
        assert!(times.starts_with(before), "{url}: {before:?} has become {times:?}");
    }
    // An unavailable robots.txt is requested in every run, and so is the target of its redirect.
    let is_robots = |url: &str| url.split('?').next().is_some_and(|path| path.ends_with("/robots.txt"));
    let twice = now.iter().find(|(url, times)| times.len() > 1 && !is_robots(url));
    assert!(twice.is_none(), "captured twice: {twice:?}");
    *known = now;
}

/// Returns the memory that a crawl of this archive may take, in MiB.
fn memory_bound(archive: &Archive) -> u64 {
    let stats = start(archive.command("stats").arg("--json")).wait().succeeded().json().remove(0);
    let bytes: u64 = MEMORY_BYTES_OF.iter().map(|(what, bytes)| stats[*what].as_u64().unwrap() * bytes).sum();
    MEMORY_MIB + MEMORY_MIB_MORE + (bytes >> 20)
}

/// Returns the private memory of a process in MiB (Linux, proc(5)). Pages of mapped files, such as the full-text index
/// while segments are merged, can be reclaimed at any time and do not count.
fn resident_mib(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kibibytes| kibibytes / 1024)
}
