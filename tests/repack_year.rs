//! A site that is refreshed hourly and repacked nightly: the resulting number of files and bytes, and the speed of
//! reading them.

use std::time::{Duration, Instant};

use archive_storage::Store;
use archive_testweb::{ChangeRates, Config};
use chrono::TimeDelta;

use crate::change::clock;
use crate::crawl::{everything, lively};
use crate::repack::{listed, repack, segment_bytes};
use crate::support::program::start;
use crate::support::{Archive, TestWeb, files_with};

/// Number of hours, unless `ARCHIVE_HOURS` overrides it: 8760 for a year.
const HOURS: u64 = 24;
/// Hours between two repacks.
const NIGHT: u64 = 12;
/// Number of pages fetched per hour.
const BUDGET: &str = "20";

#[test]
fn a_year_of_hourly_refreshes_leaves_few_files_and_hardly_more_bytes_than_hindsight() {
    let asked = std::env::var("ARCHIVE_HOURS").ok().and_then(|text| text.parse().ok());
    let hours: u64 = asked.unwrap_or(HOURS);
    let config = lively(521, 2, 150);
    let changes = ChangeRates { median_per_day: 0.5, ..config.changes };
    let served = TestWeb::start(Config { changes, ..config });
    let archive = Archive::new();
    let mut crawl = archive.crawl(&served.web.seeds(served.web.sites()), &everything(&served));
    start(crawl.args(clock(&served)).arg("--no-full-text")).wait().succeeded();
    let mut written = 1;
    for hour in 1..=hours {
        served.web.clock().advance(TimeDelta::hours(1));
        let mut refresh = archive.command("refresh");
        let options = ["--budget", BUDGET, "--shortest", "0s", "--no-full-text"];
        start(refresh.args(options).args(served.at_once()).args(clock(&served))).wait().succeeded();
        written += 1;
        if hour % NIGHT == 0 || hour == hours {
            repack(&archive, &[]);
        }
    }
    let before = listed(&archive.path);
    let (files, bytes) = (files_with(&archive.segments(), &[".warc.zst"]).len(), segment_bytes(&archive));
    let slow = read_all(&archive);
    repack(&archive, &["--again"]);
    assert_eq!(listed(&archive.path), before);
    let ratio = bytes as f64 / segment_bytes(&archive) as f64;
    println!(
        "{hours} hours, {} captures: {written} segments are {files} now, {bytes} bytes are {ratio:.3} of what hindsight needs; \
         99 of 100 captures are read within {slow:?}",
        before.len()
    );
    assert!(files * 10 <= written, "{files} files of {written}");
    assert!(ratio <= 1.15, "{ratio:.3} of the bytes that hindsight needs");
    if asked.is_some() {
        assert!(slow < Duration::from_millis(1), "{slow:?}");
    }
}

/// Returns the 99th percentile of the time to read a capture, after all were read once.
fn read_all(archive: &Archive) -> Duration {
    let store = Store::read_only(&archive.path).unwrap();
    let mut times = Vec::new();
    for _ in 0..2 {
        times.clear();
        for capture in store.state().captures() {
            let (_, capture) = capture.unwrap();
            let begun = Instant::now();
            store.payload(&capture).unwrap();
            times.push(begun.elapsed());
        }
    }
    times.sort_unstable();
    times[times.len() * 99 / 100]
}
