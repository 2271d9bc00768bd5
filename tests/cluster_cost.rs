//! Cost and results of nodes that crawl together, compared with one node: measurements that print tables for
//! `docs/cluster.md`.
//!
//! Every node has a fixed number of requests in flight, and each answer takes a fixed time. So nodes are as fast on one
//! machine as on separate machines, as long as its processors keep up.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::iter;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use archive_books::cluster::{Division, Mode, Partition};
use archive_storage::Store;
use archive_storage::address::site_of;
use archive_testweb::Config;
use serde_json::Value;
use url::Url;

use crate::crawl::lively;
use crate::support::program::{Finished, Usage, start};
use crate::support::{Archive, TestWeb, captures};

/// Requests in flight per node, and the time each takes: about 30 requests per second.
const WORKERS: &str = "3";
const LATENCY: Duration = Duration::from_millis(100);

/// Number of pages of the completely crawled web, unless `ARCHIVE_PAGES` overrides it.
const PAGES: u64 = 1200;

/// Frequent checkpoints, so that a crawl of minutes represents one of hours.
const CHECKPOINT_EVERY: [&str; 2] = ["--checkpoint-every", "2s"];

/// Duration of the speed comparison, unless `ARCHIVE_SPAN` overrides it.
const SPAN: &str = "60s";

/// Smallest required speed-up of several nodes together.
const SPEED_UP_MIN: [(usize, f64); 2] = [(2, 1.95), (4, 3.8)];
/// For a single web, in which the positions of a few important pages change the result by several percent.
const QUALITY_MIN: f64 = 0.85;
/// Machines with several partitions each.
const SHARED: &str = "exchange, shared";
const PARTITIONS_A_MACHINE: usize = 8;
const BYTES_A_PAGE_MAX: f64 = 1024.0;

/// A web of many sites of similar sizes, so that partitions are of similar sizes, too.
fn many_sites(seed: u64, pages: u64, latency: Duration) -> Config {
    Config { noise_share: 0.0, latency, sites: 256, host_size_exponent: 0.3, ..lively(seed, 256, pages) }
}

/// Result of nodes that crawl together.
struct Measured {
    /// Time, URL and bytes of all captures, ordered by time.
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

    /// Returns the sum of one figure over everything that partitions have sent.
    fn sent(&self, figure: &str) -> f64 {
        let statuses = self.status.iter().flat_map(|status| status["told"].as_array().unwrap());
        let marks = statuses.flat_map(|one| one["marks"]["sent"].as_object().unwrap().values());
        marks.map(|mark| mark[figure].as_u64().unwrap() as f64).sum()
    }

    /// Returns the URLs in fetch order.
    fn order(&self) -> Vec<&str> {
        self.fetched.iter().map(|(_, url, _)| url.as_str()).collect()
    }
}

/// Returns the importance that a node has learned of the pages it fetched.
fn importance(archive: &Archive) -> BTreeMap<String, f64> {
    let rows = archive.json("query", &["page captures > 0 select url, importance"]);
    let importance = |row: &Value| row["importance"].as_f64().unwrap_or(0.0);
    rows.iter().map(|row| (row["url"].as_str().unwrap().to_owned(), importance(row))).collect()
}

/// Returns the sum, over the first `count` fetches of an order, of the importance found so far.
fn recall(order: &[&str], importance: &BTreeMap<String, f64>, count: usize) -> f64 {
    let (mut seen, mut found, mut sum) = (BTreeSet::new(), 0.0, 0.0);
    for at in 0..count {
        if let Some(url) = order.get(at)
            && seen.insert(url)
        {
            found += importance.get(*url).copied().unwrap_or(0.0);
        }
        sum += found;
    }
    sum
}

/// Reorders the same pages as if each node fetched its own at the same pace: the loss from partitioning alone.
fn at_one_pace<'a>(order: &[&'a str], node_of: &BTreeMap<&str, usize>) -> Vec<&'a str> {
    let mut own: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    order.iter().for_each(|url| own.entry(node_of[url]).or_default().push(url));
    let longest = own.values().map(Vec::len).max().unwrap_or(0);
    (0..longest).flat_map(|at| own.values().filter_map(move |own| own.get(at).copied())).collect()
}

/// Assigns each page to a node, with this many partitions dealt to two nodes so that both have the same importance.
fn dealt<'a>(
    order: &[&'a str],
    importance: &BTreeMap<String, f64>,
    partitions: u16,
) -> BTreeMap<&'a str, usize> {
    let all = Partition {
        cluster: String::new(),
        number: 1,
        count: partitions,
        mode: Mode::Exchange,
        by: Division::Site,
    };
    let of = |url: &str| {
        let host = Url::parse(url).unwrap().host_str().unwrap().to_owned();
        all.of_site(site_of(&host))
    };
    let mut weights: BTreeMap<u16, f64> = BTreeMap::new();
    importance.iter().for_each(|(url, one)| *weights.entry(of(url)).or_default() += one);
    let mut weights: Vec<(u16, f64)> = weights.into_iter().collect();
    weights.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (mut loads, mut nodes) = ([0.0; 2], BTreeMap::new());
    for (partition, weight) in weights {
        let lighter = usize::from(loads[1] < loads[0]);
        loads[lighter] += weight;
        nodes.insert(partition, lighter);
    }
    let share = loads[0] / (loads[0] + loads[1]);
    println!("{partitions} partitions on two nodes: {share:.3} and {:.3} of all importance", 1.0 - share);
    order.iter().map(|url| (*url, nodes.get(&of(url)).copied().unwrap_or(0))).collect()
}

/// Prints the results of orders that know the importance of every page from the start, and of one node's order at the
/// pace of two.
fn print_bounds(one: &Measured, importance: &BTreeMap<String, f64>) {
    let (order, count) = (one.order(), one.fetched.len());
    let mut best = order.clone();
    let of = |url: &str| importance.get(url).copied().unwrap_or(0.0);
    best.sort_by(|a, b| of(b).total_cmp(&of(a)));
    let quality = |order: &[&str]| recall(order, importance, count) / recall(&one.order(), importance, count);
    println!("the best order that there is: {:.4}", quality(&best));
    for partitions in [2, 4, 8, 16, 64, 256] {
        let nodes = dealt(&order, importance, partitions);
        println!(
            "{partitions} partitions on two nodes at one pace: the order of one node {:.4}, the best order {:.4}",
            quality(&at_one_pace(&order, &nodes)),
            quality(&at_one_pace(&best, &nodes)),
        );
    }
}

/// Runs the crawl of one node alone, or of several together.
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
    let status = (count > 1).then(|| status_of(&url));
    Measured::of(archives.iter().map(|archive| archive.path.as_path()), usages, status)
}

/// Runs as many machines as there are folders; they share partitions, each with the slots of one node.
fn crawl_on_machines(served: &TestWeb, folders: &[Archive], partitions: usize, more: &[&str]) -> Measured {
    let store = tempfile::tempdir().unwrap();
    let url = format!("file://{}", store.path().display());
    let (partitions_of_all, each) = (partitions.to_string(), partitions.div_ceil(folders.len()).to_string());
    let machines = folders.iter().zip(1..).map(|(folder, number)| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
        command.args([
            "node",
            "--cluster",
            &url,
            "--partitions",
            &partitions_of_all,
            "--partitions-max",
            &each,
        ]);
        command.args(["--workers", WORKERS, "--node", &format!("machine {number}"), "--archives"]);
        command.arg(folder.folder()).args(["--", "--seeds"]).arg(folder.seeds(&served.web.seeds(32)));
        command.args(served.at_once()).args(["--scope", "any", "--no-full-text"]);
        start(command.args(more))
    });
    let machines: Vec<_> = machines.map(|machine| thread::spawn(move || machine.measure())).collect();
    let ended: Vec<(Finished, Usage)> = machines.into_iter().map(|machine| machine.join().unwrap()).collect();
    let usages = ended.into_iter().map(|(finished, usage)| {
        finished.succeeded();
        usage
    });
    let (usages, status) = (usages.collect(), status_of(&url));
    // A machine that lost a partition to another one keeps the part it had.
    let urls = |archive: &PathBuf| Store::read_only(archive).map_or(0, |store| store.state().url_count());
    let archives: Vec<PathBuf> = (1..=partitions)
        .map(|number| {
            let places = folders.iter().map(|folder| folder.folder().join(format!("{number}.archive")));
            places.filter(|archive| archive.join("state").exists()).max_by_key(urls).unwrap()
        })
        .collect();
    Measured::of(archives.iter().map(PathBuf::as_path), usages, Some(status))
}

fn status_of(cluster: &str) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
    let status = start(command.args(["cluster", "status", "--json", "--cluster", cluster])).wait();
    status.succeeded().json().remove(0)
}

/// Returns the total size of all files below a folder, in bytes.
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
    let served = TestWeb::start(many_sites(415, pages, LATENCY));
    let alone = archives(1);
    let one = crawl(&served, &alone, "", &CHECKPOINT_EVERY);
    let importance = importance(&alone[0]);
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
        let quality = recall(&of.order(), &importance, count) / recall(&one.order(), &importance, count);
        println!(
            "| {mode} | {nodes} | {:.3} | {:.3} | {quality:.4} | {:.1} | {:.3} % | {:.1} | {:.2} |",
            (of.count() - found) / found,
            found / expected.len() as f64,
            bytes / of.count(),
            bytes / of.bytes() * 100.0,
            of.elapsed(),
            of.processor() / of.count() / (one.processor() / one.count()),
        );
        if mode.starts_with("exchange") {
            assert_eq!((distinct.len() as u64, distinct == expected), (of.fetched.len() as u64, true));
            assert!(quality >= QUALITY_MIN, "{quality}");
            assert!(bytes / of.count() <= BYTES_A_PAGE_MAX);
        }
    };
    row("one node", 1, &one);
    print_bounds(&one, &importance);
    for nodes in [4, 2] {
        for mode in ["exchange", "crossover", "firewall"] {
            row(mode, nodes, &crawl(&served, &archives(nodes), mode, &CHECKPOINT_EVERY));
        }
    }
    for nodes in [2, 4] {
        let partitions = nodes * PARTITIONS_A_MACHINE;
        let shared = crawl_on_machines(&served, &archives(nodes), partitions, &CHECKPOINT_EVERY);
        row(SHARED, nodes, &shared);
    }
}

/// Number of webs in the mean: in a single web, the positions of a few important pages make several percent.
const WEBS: u64 = 6;
const WEBS_AT_ONCE: usize = 3;

#[test]
#[ignore = "measures; prints a table and takes ten minutes with a dist build"]
fn several_nodes_find_importance_as_soon_as_one() {
    let webs = env::var("ARCHIVE_WEBS").map_or(WEBS, |webs| webs.parse().unwrap());
    let pages = env::var("ARCHIVE_PAGES").map_or(PAGES, |pages| pages.parse().unwrap());
    let of_web = |web: u64| {
        let served = TestWeb::start(many_sites(415 + web, pages, LATENCY / 2));
        let alone = archives(1);
        let one = crawl(&served, &alone, "", &["--checkpoint-every", "1s"]);
        let importance = importance(&alone[0]);
        let (order, count) = (one.order(), one.fetched.len());
        let quality =
            |order: &[&str]| recall(order, &importance, count) / recall(&one.order(), &importance, count);
        let again = crawl(&served, &archives(1), "", &["--checkpoint-every", "1s"]);
        let mut row =
            vec![quality(&again.order()), quality(&at_one_pace(&order, &dealt(&order, &importance, 2)))];
        for (nodes, every) in [(2, "4s"), (2, "1s"), (2, "250ms"), (4, "1s")] {
            let several = crawl(&served, &archives(nodes), "exchange", &["--checkpoint-every", every]);
            row.push(quality(&several.order()));
        }
        for every in ["1s", "250ms"] {
            let two = crawl_on_machines(
                &served,
                &archives(2),
                2 * PARTITIONS_A_MACHINE,
                &["--checkpoint-every", every],
            );
            row.push(quality(&two.order()));
        }
        println!("web {web}, {count} captures: {row:.4?}");
        row
    };
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for first in (0..webs).step_by(WEBS_AT_ONCE) {
        let some = first..webs.min(first + WEBS_AT_ONCE as u64);
        rows.extend(thread::scope(|scope| {
            let some: Vec<_> = some.map(|web| scope.spawn(move || of_web(web))).collect();
            some.into_iter().map(|web| web.join().unwrap()).collect::<Vec<_>>()
        }));
    }
    let names = [
        "one node again",
        "its order at one pace",
        "two, 4 s",
        "two, 1 s",
        "two, 250 ms",
        "four, 1 s",
        "machines, 1 s",
        "machines, 250 ms",
    ];
    for (at, name) in names.iter().enumerate() {
        let all: Vec<f64> = rows.iter().map(|row| row[at]).collect();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let square = all.iter().map(|one| (one - mean).powi(2)).sum::<f64>();
        let error = (square / (all.len() as f64 - 1.0) / all.len() as f64).sqrt();
        println!("| {name} | {mean:.4} | {error:.4} |");
    }
}

#[test]
#[ignore = "measures; prints a table and takes seven minutes"]
fn capped_nodes_add_up() {
    let span = env::var("ARCHIVE_SPAN").unwrap_or_else(|_| SPAN.to_owned());
    let served = TestWeb::start(many_sites(415, 40_000, LATENCY));
    let mut of_one = None;
    println!(
        "| nodes | pages a second | times one node | processor time a page | bytes a page | bytes sent a page |"
    );
    println!("|---|---|---|---|---|---|");
    // In a minute, several nodes reach other pages than one node: longer ones with more links. So do nodes that
    // exchange nothing.
    let modes = ["exchange", "firewall", SHARED];
    let several = [2, 4].into_iter().flat_map(|nodes| modes.map(|mode| (nodes, mode)));
    for (nodes, mode) in iter::once((1, modes[0])).chain(several) {
        let (folders, limit) = (archives(nodes), ["--for", &span]);
        let measured = if mode == SHARED {
            crawl_on_machines(&served, &folders, nodes * PARTITIONS_A_MACHINE, &limit)
        } else {
            crawl(&served, &folders, mode, &limit)
        };
        let (rate, processor) =
            (measured.count() / measured.elapsed(), measured.processor() / measured.count());
        let (rate_of_one, processor_of_one) = *of_one.get_or_insert((rate, processor));
        println!(
            "| {nodes}, {mode} | {rate:.1} | {:.2} | {:.2} ms, {:.2} of one node's | {:.0} | {:.1} |",
            rate / rate_of_one,
            processor * 1000.0,
            processor / processor_of_one,
            measured.bytes() / measured.count(),
            measured.sent("bytes") / measured.count(),
        );
        for (_, least) in SPEED_UP_MIN.iter().filter(|(count, _)| *count == nodes && mode != SHARED) {
            assert!(rate / rate_of_one >= *least, "{nodes} nodes");
        }
    }
}
