//! Runs every example, on an archive that one of them creates.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::Archive;
use crate::support::program::start;
use crate::support::site::Site;

/// Returns the path of an example's program; examples are built with the tests.
fn program(name: &str) -> PathBuf {
    let archive = Path::new(env!("CARGO_BIN_EXE_archive"));
    archive.with_file_name("examples").join(name)
}

/// Runs an example and returns what it prints.
fn run(name: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program(name));
    command.args(arguments).env("EXAMPLE_LOOPBACK", "yes");
    String::from_utf8_lossy(&start(&mut command).wait().succeeded().output).into_owned()
}

#[test]
fn examples_crawl_and_read_an_archive() {
    let (archive, site) = (Archive::new(), Site::start());
    let (folder, home) = (archive.path.to_str().unwrap(), site.url("/"));
    let crawled = run("small_crawl", &[folder, &home]);
    assert!(crawled.starts_with("Limit: 20 pages"), "{crawled}");

    let refreshed = run("refresh", &[folder]);
    let (run_line, totals) = refreshed.trim_end().split_once('\n').unwrap();
    assert!(run_line.starts_with("Complete: ") && !run_line.contains(" 0 captures"), "{refreshed}");
    assert!(totals.starts_with("the archive has ") && !totals.contains(" 0 captures"), "{refreshed}");

    let found = run("query_archive", &[folder, "captures > 0 select url order by url limit 3"]);
    assert_eq!(found.lines().count(), 1 + 3, "{found}");
    assert!(found.starts_with("url\nhttp://127.0.0.1:"), "{found}");

    let history = run("page_history", &[folder, &home]);
    assert!(history.contains("Response  status 200"), "{history}");
    assert!(history.contains("<title>"), "{history}");

    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/read_without_archive.sh");
    let records = start(Command::new(script).arg(folder)).wait().succeeded().output;
    let records = String::from_utf8_lossy(&records);
    assert!(records.contains(&format!("WARC-Target-URI: {home}\r\n")), "{} bytes", records.len());
}

#[test]
fn examples_rank_and_refresh() {
    let ranked = run("rank_graph", &[]);
    // By hand: r2 = r3 = r4 = 0.03, r0 = 0.03 + 0.85 (r1 + 0.075), r1 = 0.03 + 0.85 (r0 + 0.015).
    assert!(ranked.contains("page 0: 0.468784") && ranked.contains("page 2: 0.030000"), "{ranked}");

    let compared = run("refresh_policy", &[]);
    let share = |line: &str| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
    let shares: Vec<f64> = compared.lines().map(share).collect();
    assert_eq!(shares.len(), 2, "{compared}");
    assert!(shares[0] > shares[1], "the built-in policy learns what changes: {compared}");
}
