//! What nodes that crawl together cost and find, compared to one node: measurements that print tables for `docs/cluster.md`.
//!
//! Every node is capped: it sends a fixed number of requests at a time, and each answer takes a fixed time. So nodes are as fast on
//! one machine as on machines of their own, as long as its processors keep up.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use archive_storage::Store;
use archive_testweb::Config;
use serde_json::Value;

use crate::crawl::lively;
use crate::support::program::{Finished, Usage, start};
use crate::support::{Archive, TestWeb, captures};

/// Requests of a node at a time, and how long each takes: some 30 a second.
const WORKERS: &str = "3";
const LATENCY: Duration = Duration::from_millis(100);

/// Pages of the web that is crawled completely, unless `ARCHIVE_PAGES` says otherwise.
const PAGES: u64 = 1200;

/// Checkpoints are closer together, so that a crawl of minutes stands for one of hours.
const CHECKPOINT_EVERY: [&str; 2] = ["--checkpoint-every", "2s"];

/// How long nodes run whose speed is compared.
const SPAN: &str = "60s";

/// How much faster several nodes must be together.
const SPEED_UP_MIN: [(usize, f64); 2] = [(2, 1.95), (4, 3.8)];
/// Capped nodes cannot turn to the partition with the most important pages together, as one node does.
const QUALITY_MIN: f64 = 0.85;
const BYTES_A_PAGE_MAX: f64 = 1024.0;

/// A web of many sites of similar sizes, so that partitions are of similar sizes, too.
fn many_sites(pages: u64) -> Config {
    Config {
        noise_share: 0.0,
        latency: LATENCY,
        sites: 256,
        host_size_exponent: 0.3,
        ..lively(415, 256, pages)
    }
}

/// What nodes have done together.
struct Measured {
    /// URLs and bytes of all captures, in the order of their times.
    fetched: Vec<(i64, String, u64)>,
    usages: Vec<Usage>,
    status: Option<Value>,
}

impl Measured {
    fn of<'a>(archives: impl Iterator<Item = &'a Path>, usages: Vec<Usage>, status: Option<Value>) -> Self {
        let mut fetched = Vec::new();
        for archive in archives {
            for (url, captures) in captures(archive).0 {
                fetched.extend(captures.iter().map(|one| (one.time, url.clone(), u64::from(one.length))));
            }
        }
        fetched.sort_unstable();
        Self { fetched, usages, status }
    }

    fn distinct(&self) -> BTreeSet<&str> {
        self.fetched.iter().map(|(_, url, _)| url.as_str()).collect()
    }

    fn count(&self) -> f64 {
        self.fetched.len() as f64
    }

    fn bytes(&self) -> f64 {
        self.fetched.iter().map(|(.., bytes)| *bytes as f64).sum()
    }

    fn processor(&self) -> f64 {
        self.usages.iter().map(|usage| usage.cpu_seconds).sum()
    }

    fn elapsed(&self) -> f64 {
        self.usages.iter().map(|usage| usage.elapsed.as_secs_f64()).fold(0.0, f64::max)
    }

    /// The sum of one figure over all that partitions have sent.
    fn sent(&self, figure: &str) -> f64 {
        let statuses = self.status.iter().flat_map(|status| status["told"].as_array().unwrap());
        let marks = statuses.flat_map(|one| one["marks"]["sent"].as_object().unwrap().values());
        marks.map(|mark| mark[figure].as_u64().unwrap() as f64).sum()
    }

    /// The share of all importance that has been found, added up over the first `count` fetches.
    fn recall(&self, importance: &BTreeMap<String, f64>, count: usize) -> f64 {
        let (mut seen, mut found, mut sum) = (BTreeSet::new(), 0.0, 0.0);
        for at in 0..count {
            if let Some((_, url, _)) = self.fetched.get(at)
                && seen.insert(url)
            {
                found += importance.get(url).copied().unwrap_or(0.0);
            }
            sum += found;
        }
        sum
    }
}

/// Lets one node crawl alone, or several together.
fn crawl(served: &TestWeb, archives: &[Archive], mode: &str, more: &[&str]) -> Measured {
    let store = tempfile::tempdir().unwrap();
    let url = format!("file://{}", store.path().display());
    let count = archives.len();
    let nodes = archives.iter().enumerate().map(|(node, archive)| {
        let mut options = served.at_once();
        options.extend(["--scope", "any", "--no-full-text", "--workers", WORKERS].map(str::to_owned));
        options.extend(more.iter().map(|option| (*option).to_owned()));
        if count > 1 {
            let partition = format!("{}/{count}", node + 1);
            let cluster = ["--cluster", &url, "--partition", &partition, "--cluster-mode", mode];
            options.extend(cluster.map(str::to_owned));
        }
        start(&mut archive.crawl(&served.web.seeds(32), &options))
    });
    let nodes: Vec<_> = nodes.map(|node| thread::spawn(move || node.measure())).collect();
    let ended: Vec<(Finished, Usage)> = nodes.into_iter().map(|node| node.join().unwrap()).collect();
    let usages = ended.into_iter().map(|(finished, usage)| {
        finished.succeeded();
        usage
    });
    let usages = usages.collect();
    let status = (count > 1).then(|| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
        let status = start(command.args(["cluster", "status", "--json", "--cluster", &url])).wait();
        status.succeeded().json().remove(0)
    });
    Measured::of(archives.iter().map(|archive| archive.path.as_path()), usages, status)
}

/// Bytes of all files below a folder.
fn size(folder: &Path) -> f64 {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| if path.is_dir() { size(&path) } else { fs::metadata(&path).unwrap().len() as f64 })
        .sum()
}

fn archives(count: usize) -> Vec<Archive> {
    (0..count).map(|_| Archive::new()).collect()
}

#[test]
#[ignore = "measures; prints the table of docs/cluster.md and takes eight minutes"]
fn what_several_nodes_cost_and_find() {
    let pages = env::var("ARCHIVE_PAGES").map_or(PAGES, |pages| pages.parse().unwrap());
    let served = TestWeb::start(many_sites(pages));
    let alone = archives(1);
    let one = crawl(&served, &alone, "", &CHECKPOINT_EVERY);
    let asked = "page captures > 0 select url, importance";
    let importance: BTreeMap<String, f64> = alone[0]
        .json("query", &[asked])
        .iter()
        .map(|row| (row["url"].as_str().unwrap().to_owned(), row["importance"].as_f64().unwrap_or(0.0)))
        .collect();
    let (expected, count) = (one.distinct(), one.fetched.len());
    println!("{count} captures, {:.0} bytes each on average", one.bytes() / one.count());
    let urls = f64::from(Store::read_only(&alone[0].path).unwrap().state().url_count());
    println!(
        "on disk: {:.0} bytes of segments a capture, {:.0} of state a known URL ({urls} of them)",
        size(&alone[0].segments()) / one.count(),
        size(&alone[0].path.join("state")) / urls,
    );
    println!(
        "| mode | nodes | overlap | coverage | quality | bytes sent a page | of bytes fetched | seconds | processor time |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let row = |mode: &str, nodes: usize, of: &Measured| {
        let distinct = of.distinct();
        let (found, bytes) = (distinct.len() as f64, of.sent("bytes"));
        let quality = of.recall(&importance, count) / one.recall(&importance, count);
        println!(
            "| {mode} | {nodes} | {:.3} | {:.3} | {quality:.4} | {:.1} | {:.3} % | {:.1} | {:.2} |",
            (of.count() - found) / found,
            found / expected.len() as f64,
            bytes / of.count(),
            bytes / of.bytes() * 100.0,
            of.elapsed(),
            of.processor() / of.count() / (one.processor() / one.count()),
        );
        if mode == "exchange" {
            assert_eq!((distinct.len() as u64, distinct == expected), (of.fetched.len() as u64, true));
            assert!(quality >= QUALITY_MIN, "{quality}");
            assert!(bytes / of.count() <= BYTES_A_PAGE_MAX);
        }
    };
    row("one node", 1, &one);
    for nodes in [4, 2] {
        for mode in ["exchange", "crossover", "firewall"] {
            row(mode, nodes, &crawl(&served, &archives(nodes), mode, &CHECKPOINT_EVERY));
        }
    }
}

#[test]
#[ignore = "measures; prints a table and takes three minutes"]
fn capped_nodes_add_up() {
    let served = TestWeb::start(many_sites(40_000));
    let mut of_one = None;
    println!("| nodes | pages a second | times one node | processor time a page | bytes sent a page |");
    println!("|---|---|---|---|---|");
    for nodes in [1, 2, 4] {
        let measured = crawl(&served, &archives(nodes), "exchange", &["--for", SPAN]);
        let (rate, processor) =
            (measured.count() / measured.elapsed(), measured.processor() / measured.count());
        let (rate_of_one, processor_of_one) = *of_one.get_or_insert((rate, processor));
        println!(
            "| {nodes} | {rate:.1} | {:.2} | {:.2} ms, {:.2} of one node's | {:.1} |",
            rate / rate_of_one,
            processor * 1000.0,
            processor / processor_of_one,
            measured.sent("bytes") / measured.count(),
        );
        for (_, least) in SPEED_UP_MIN.iter().filter(|(count, _)| *count == nodes) {
            assert!(rate / rate_of_one >= *least, "{nodes} nodes");
        }
    }
}
