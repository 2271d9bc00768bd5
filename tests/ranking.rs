//! Several archives rank as one does that has everything.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;

use serde_json::Value;

use crate::imports::import;
use crate::support::program::start;
use crate::support::warc::answer;
use crate::support::{Archive, Dice};

const SITES: u64 = 8;
const PAGES: u64 = 40;

/// A page with links to all sites and to what nobody has; some are not there, some have no links, some lead on, also to other
/// sites and in rows. What an archive makes of a page that is gone or leads on depends on whether something was known to link to
/// it before, and so does what it makes of a page that leads to it; the first page of each site links to all of these.
fn page(dice: &mut Dice, site: u64, number: u64) -> Vec<u8> {
    let url = format!("http://s{site}.test/{number}");
    let id = format!("urn:test:{site}-{number}");
    let date = format!("2026-03-0{}T10:00:00Z", 1 + number % 9);
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
    let block = match number % 10 {
        7 => "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\n<p>There is no such page".to_owned(),
        8 => {
            let (to, number) = (dice.below(SITES + 2), dice.below(9));
            let number = if number == 7 || number == 8 && to <= site { 1 } else { number };
            format!("HTTP/1.1 302 Found\r\nLocation: http://s{to}.test/{number}\r\n\r\n")
        }
        9 => format!("{head}<p>Nothing leads on from {url}"),
        _ => (0..30).fold(format!("{head}<p>Page {url}"), |mut body, _| {
            let (to, number) = (dice.below(SITES + 2), dice.below(PAGES + 5));
            write!(body, " <a href=http://s{to}.test/{number}>there</a>").unwrap();
            body
        }),
    };
    let own = (0..PAGES).filter(|number| number % 10 > 6).map(|number| (site, number));
    let first = own.chain((0..SITES + 2).flat_map(|site| (0..9).map(move |number| (site, number))));
    let links = first.map(|(site, number)| format!(" <a href=http://s{site}.test/{number}>first</a>"));
    let block = if number == 0 { block + &links.collect::<String>() } else { block };
    answer(&id, &url, &date, &[], &block)
}

/// Archives that have the sites between them.
fn archives(sites: &[Vec<u8>], count: usize) -> Vec<Archive> {
    let of = |part: usize| {
        let archive = Archive::new();
        let own = (part..sites.len()).step_by(count);
        let names: Vec<(String, Vec<u8>)> =
            own.map(|site| (format!("s{site}.warc"), sites[site].clone())).collect();
        let files: Vec<(&str, Vec<u8>)> =
            names.iter().map(|(name, file)| (name.as_str(), file.clone())).collect();
        import(&archive, &files);
        archive
    };
    (0..count).map(of).collect()
}

fn rank(archives: &[Archive], options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
    command.arg("rank").env_remove("ARCHIVE_DIR");
    for archive in archives {
        command.arg("--archive").arg(&archive.path);
    }
    command.args(["--json", "--tolerance", "1e-11", "--top", "100000"]).args(options);
    command
}

/// The values of all pages or sites by their names, and what the ranking says of itself.
fn ranked(archives: &[Archive], options: &[&str]) -> (BTreeMap<String, f64>, Value) {
    let mut lines = start(&mut rank(archives, options)).wait().succeeded().json();
    let first = lines.remove(0);
    let named = |line: &Value| Some((line["name"].as_str()?.to_owned(), line["value"].as_f64()?));
    let values: BTreeMap<String, f64> = lines.iter().filter_map(named).collect();
    assert_eq!(values.len() as u64, first["pages"].as_u64().unwrap(), "every page has a name of its own");
    (values, first)
}

#[test]
fn several_archives_rank_as_one_that_has_everything() {
    let mut dice = Dice::of(31);
    let sites: Vec<Vec<u8>> = (0..SITES)
        .map(|site| (0..PAGES).flat_map(|number| page(&mut dice, site, number)).collect())
        .collect();
    let one = archives(&sites, 1);
    for options in [&[][..], &["--sites"], &["--method", "opic"], &["--sites", "--unweighted"]] {
        let (expected, summary) = ranked(&one, options);
        assert!(expected.len() >= SITES as usize);
        for count in [2, 4] {
            let parts = archives(&sites, count);
            // So little that the links of an archive are read in several goes.
            for more in [&[][..], &["--memory", "80KB"]] {
                let (found, line) = ranked(&parts, &[options, more].concat());
                assert!(found.keys().eq(expected.keys()), "{options:?}: other pages in {count} archives");
                let error: f64 = found.iter().map(|(name, value)| (value - expected[name]).abs()).sum();
                println!("{options:?}, {count} archives: {error:.1e}, {line}");
                assert!(error < 1e-9, "{options:?}, {count} archives: {error}");
                assert_eq!(line["arcs"], summary["arcs"], "{options:?}: each link is counted once");
            }
        }
    }
}

#[test]
fn what_several_archives_are_ranked_by_is_kept_in_each_of_them() {
    let mut dice = Dice::of(32);
    let sites: Vec<Vec<u8>> = (0..SITES)
        .map(|site| (0..PAGES).flat_map(|number| page(&mut dice, site, number)).collect())
        .collect();
    let parts = archives(&sites, 2);
    let (values, _) = ranked(&parts, &["--save", "everywhere"]);
    let mean = values.values().sum::<f64>() / values.len() as f64;
    let mut kept = 0;
    for archive in &parts {
        let rows = archive.json("query", &["page everywhere > 0 select url, everywhere limit 100000"]);
        kept += rows.len();
        for row in rows {
            let (url, value) = (row["url"].as_str().unwrap(), row["everywhere"].as_f64().unwrap());
            assert!((value / (values[url] / mean) - 1.0).abs() < 1e-6, "{url}: {value}");
        }
    }
    assert_eq!(kept, values.len(), "each page has its value in one archive");

    let refused = |archives: &[Archive], options: &[&str], says: &str| {
        let finished = start(&mut rank(archives, options)).wait();
        assert!(finished.code != Some(0) && finished.errors.contains(says), "{options:?}: {finished:?}");
    };
    refused(&parts, &["--method", "hits"], "hits ranks one archive");
    refused(&parts, &["--chosen-query", "type = xml"], "choose pages of one archive");
    refused(&parts, &["--memory", "1KB"], "bytes of memory are too few");
    refused(&parts[..1], &["--memory", "1MB"], "--memory needs --graph, or several --archive");
    import(&parts[0], &[("again.warc", sites[1].clone())]);
    refused(&parts, &[], "have both captured pages of s1.test");
}
