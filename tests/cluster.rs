//! Several nodes crawl one web together: they find what one node finds, capture each page once, and lose no unit of
//! cash, even if nodes are killed, stopped or sent wrong data.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use archive_testweb::Config;
use serde_json::{Value, json};

use crate::copies_s3::bad_way;
use crate::crawl::{everything, lively};
use crate::support::captures::assert_same;
use crate::support::program::{Finished, Running, start};
use crate::support::s3::{BUCKET, Proxy, S3, to};
use crate::support::{Archive, Dice, TestWeb, captures, files_with, kills, ledger_balances};

/// Number of kills of a node, unless `ARCHIVE_KILLS` overrides it.
const KILLS: u64 = 10;

/// Largest time between kills, in microseconds.
const SPREAD_MICROS: u64 = 400_000;

/// The same for a slower object store, and the largest number of restarts of a node that gives up on it.
const S3_KILLS: u64 = 3;
const S3_SPREAD_MICROS: u64 = 2_000_000;
const S3_TRIALS_MAX: u32 = 20;

/// Polling interval of tests that wait for several nodes.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Longer than a stopped node may still write: the lease of [`Nodes::brisk`].
const LEASE_AND_MORE: Duration = Duration::from_secs(4);

/// A web of many sites that always gives the same answers.
pub(crate) fn still(seed: u64, pages: u64, latency_ms: u64) -> Config {
    let latency = Duration::from_millis(latency_ms);
    Config { noise_share: 0.0, latency, sites: 16, ..lively(seed, 32, pages) }
}

/// Nodes that crawl one web together, each with its own archive.
pub(crate) struct Nodes<'a> {
    pub(crate) served: &'a TestWeb,
    pub(crate) seeds: Vec<String>,
    pub(crate) store: tempfile::TempDir,
    pub(crate) archives: Vec<Archive>,
    pub(crate) mode: &'static str,
    /// The object store's server and the nodes' proxy to it, unless the store is a folder.
    pub(crate) s3: Option<(SocketAddr, Proxy)>,
}

impl<'a> Nodes<'a> {
    pub(crate) fn new(served: &'a TestWeb, count: usize) -> Self {
        let archives = (0..count).map(|_| Archive::new()).collect();
        let store = tempfile::tempdir().unwrap();
        Self { served, seeds: served.web.seeds(2), store, archives, mode: "exchange", s3: None }
    }

    /// Returns nodes of a cluster that is begun and whose leases and turns are as short as they may be.
    pub(crate) fn brisk(served: &'a TestWeb, count: usize) -> Self {
        let nodes = Self::new(served, count);
        begin_brisk(nodes.store.path(), count);
        nodes
    }

    pub(crate) fn url(&self) -> String {
        match self.s3 {
            Some(_) => format!("s3://{BUCKET}/cluster"),
            None => format!("file://{}", self.store.path().display()),
        }
    }

    /// Returns the crawl command of a node, counted from 0, not started.
    pub(crate) fn crawl_in(&self, archive: &Archive, node: usize) -> Command {
        let mut options = everything(self.served);
        let partition = format!("{}/{}", node + 1, self.archives.len());
        let more = ["--cluster", &self.url(), "--partition", &partition, "--cluster-mode", self.mode];
        options.extend(more.map(str::to_owned));
        let mut command = archive.crawl(&self.seeds, &options);
        if let Some((_, way)) = &self.s3 {
            to(way.address, &mut command);
        }
        command
    }

    pub(crate) fn crawl(&self, node: usize) -> Command {
        self.crawl_in(&self.archives[node], node)
    }

    /// Runs all nodes to the end, in parallel.
    pub(crate) fn run(&self) -> Vec<Finished> {
        let running = (0..self.archives.len()).map(|node| start(&mut self.crawl(node))).collect();
        self.to_the_end(running)
    }

    /// Waits until all nodes have ended. One that gives up because the object store failed for too long is begun again.
    fn to_the_end(&self, running: Vec<Running>) -> Vec<Finished> {
        let mut finished: Vec<Option<Finished>> = running.iter().map(|_| None).collect();
        let (mut running, mut trials): (Vec<_>, _) = (running.into_iter().map(Some).collect(), 0);
        while running.iter().any(Option::is_some) {
            std::thread::sleep(LOOK_EVERY);
            for (node, running) in running.iter_mut().enumerate() {
                let Some(ended) = running.take_if(Running::has_ended).map(Running::wait) else { continue };
                if ended.code == Some(0) {
                    finished[node] = Some(ended);
                } else {
                    trials += 1;
                    assert!(self.s3.is_some() && trials < S3_TRIALS_MAX, "node {node}: {}", ended.errors);
                    *running = Some(start(&mut self.crawl(node)));
                }
            }
        }
        println!("{trials} begun again");
        finished.into_iter().flatten().collect()
    }

    pub(crate) fn status(&self) -> Value {
        self.status_if_begun().expect("a node has begun the cluster")
    }

    /// Returns the status of the cluster, or none if no node has begun it yet.
    fn status_if_begun(&self) -> Option<Value> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
        command.args(["cluster", "status", "--json", "--cluster", &self.url()]);
        let finished = start(self.reach(&mut command)).wait();
        if finished.code == Some(1) && finished.errors.contains("there is no cluster in") {
            return None;
        }
        Some(finished.json().pop().unwrap_or_else(|| panic!("{finished:?}")))
    }

    /// Directs a command to the object store's server, unless the store is a folder.
    pub(crate) fn reach<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        match self.s3 {
            Some((server, _)) => to(server, command),
            None => command,
        }
    }

    /// Returns the captures of all nodes: payload digests by URL, and the number of captures beyond the first of each
    /// URL.
    pub(crate) fn union(&self) -> (BTreeMap<String, [u8; 16]>, u64) {
        union(self.archives.iter().map(|archive| archive.path.as_path()))
    }

    /// Fails unless all cash in every partition and in transit adds up.
    pub(crate) fn balances(&self) {
        self.archives
            .iter()
            .filter(|archive| archive.path.exists())
            .for_each(|one| ledger_balances(&one.path));
        let status = self.status();
        assert_eq!(status["is_exact"], true, "{status}");
        assert_eq!(status["found"], status["expected"]);
    }

    /// Returns the objects in a folder of the shared store.
    pub(crate) fn objects(&self, folder: &str) -> Vec<PathBuf> {
        let (mut files, mut open) = (Vec::new(), vec![self.store.path().join(folder)]);
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().map(Result::unwrap) {
                if entry.path().is_dir() { open.push(entry.path()) } else { files.push(entry.path()) }
            }
        }
        files.sort();
        files
    }
}

/// Begins a cluster whose leases and turns are as short as they may be.
pub(crate) fn begin_brisk(store: &Path, partitions: usize) {
    let cluster = json!({ "cluster": "0123456789abcdef", "partitions": partitions, "mode": "exchange", "lease_seconds": 3 });
    fs::write(store.join("cluster.json"), cluster.to_string()).unwrap();
}

pub(crate) fn union<'a>(archives: impl Iterator<Item = &'a Path>) -> (BTreeMap<String, [u8; 16]>, u64) {
    let (mut digests, mut overlap) = (BTreeMap::new(), 0);
    for archive in archives {
        for (url, captures) in captures(archive).0 {
            overlap += captures.len() as u64 - 1;
            overlap += u64::from(digests.insert(url, captures[0].digest).is_some());
        }
    }
    (digests, overlap)
}

/// Returns what one node captures undisturbed.
pub(crate) fn alone(served: &TestWeb) -> BTreeMap<String, [u8; 16]> {
    alone_in(&Archive::new(), served)
}

fn alone_in(archive: &Archive, served: &TestWeb) -> BTreeMap<String, [u8; 16]> {
    start(&mut archive.crawl(&served.web.seeds(2), &everything(served))).wait().succeeded();
    captures(&archive.path).are_single_answers();
    let (digests, overlap) = union(std::iter::once(archive.path.as_path()));
    assert_eq!(overlap, 0);
    digests
}

/// Fails unless the nodes together have what one node has.
pub(crate) fn assert_union(found: &(BTreeMap<String, [u8; 16]>, u64), expected: &BTreeMap<String, [u8; 16]>) {
    let urls = |digests: &BTreeMap<String, _>| digests.keys().cloned().collect::<BTreeSet<_>>();
    assert_same(&urls(&found.0), &urls(expected), "captured together");
    assert_eq!(found.0, *expected, "payload digests");
    assert_eq!(found.1, 0, "captures beyond the first of a URL");
}

#[test]
fn one_two_and_four_nodes_find_what_one_finds_each_thing_once() {
    let served = TestWeb::start(still(401, 600, 0));
    let single = Archive::new();
    let expected = alone_in(&single, &served);
    let asked = "page captures > 0 and status < 300 select url, title order by url";
    let answer = single.json("query", &[asked]);
    for count in [1, 2, 4] {
        let nodes = Nodes::brisk(&served, count);
        for finished in nodes.run() {
            assert!(finished.errors.contains("nothing left to fetch"), "{}", finished.errors);
        }
        assert_union(&nodes.union(), &expected);
        nodes.balances();
        let status = nodes.status();
        assert_eq!(status["in_flight"].as_array().unwrap().len(), 0, "{status}");
        let measure = |name: &str| status["measures"][name].as_f64().unwrap();
        assert_eq!(["overlap", "coverage", "coverage_min"].map(measure), [0.0, 1.0, 1.0], "{status}");
        assert!(measure("quality") > 0.9 && (measure("links") > 0.0) == (count > 1), "{status}");
        assert!(nodes.objects("exchange").is_empty() || count > 1);
        let shares: Vec<_> = nodes.archives.iter().map(|archive| captures(&archive.path).count()).collect();
        println!("{count} nodes: {shares:?} captures");
        assert!(shares.iter().all(|share| *share > 0), "every partition has sites: {shares:?}");

        // All archives together answer as one does, and name missing partitions.
        let together = |archives: &[Archive]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
            command.args(["query", asked, "--json"]);
            for archive in archives {
                command.arg("--archive").arg(&archive.path);
            }
            start(&mut command).wait()
        };
        assert_eq!(together(&nodes.archives).succeeded().json(), answer);
        if count > 2 {
            let missing = together(&nodes.archives[1..3]);
            assert_eq!(missing.code, Some(4));
            assert!(missing.errors.contains("of 4 partitions these are missing from this answer: 1, 4"));
        }

        // A finished crawl sends no requests, whichever node runs again.
        let requests = served.server.requests();
        nodes.run();
        assert_eq!(served.server.requests(), requests);
        nodes.balances();
    }
}

#[test]
fn nodes_end_however_often_they_make_checkpoints() {
    let served = TestWeb::start(still(402, 100, 0));
    let nodes = Nodes::new(&served, 2);
    let often = |node| start(nodes.crawl(node).args(["--checkpoint-every", "200ms"]));
    for running in [often(0), often(1)] {
        running.wait().succeeded();
    }
    nodes.balances();
}

#[test]
fn nodes_killed_again_and_again_lose_nothing_and_repeat_nothing() {
    let kills = kills(KILLS);
    let mut dice = Dice::new("cluster");
    let served = TestWeb::start(still(402, 800 * kills.div_ceil(40), 5));
    let expected = alone(&served);
    let nodes = Nodes::new(&served, 3);
    let mut running: Vec<Running> = (0..3).map(|node| start(&mut nodes.crawl(node))).collect();
    let (mut in_time, mut begun) = (0, false);
    for number in 1..=kills {
        std::thread::sleep(Duration::from_micros(dice.below(SPREAD_MICROS)));
        let node = dice.below(3) as usize;
        in_time += u64::from(!running[node].has_ended());
        running.remove(node).kill();
        // The published sums are exact at any time, unless a batch is committed but not yet written.
        // The first kills may come before any node has begun the cluster; once begun, it stays.
        let status = nodes.status_if_begun();
        assert!(status.is_some() || !begun, "kill {number}: the cluster is gone");
        begun |= status.is_some();
        let status = status.unwrap_or_default();
        assert_ne!(status["is_exact"], false, "kill {number}: {status}");
        running.insert(node, start(&mut nodes.crawl(node)));
    }
    println!("{in_time} of {kills} kills came in time");
    assert!(in_time > kills / 2, "most kills must find a node at work");
    for (node, running) in running.into_iter().enumerate() {
        let finished = running.wait().succeeded();
        assert!(finished.errors.contains("nothing left to fetch"), "node {node}: {}", finished.errors);
    }
    assert_union(&nodes.union(), &expected);
    nodes.balances();
    assert_eq!(nodes.status()["in_flight"].as_array().unwrap().len(), 0);
    for archive in &nodes.archives {
        archive.verify();
        assert!(files_with(&archive.segments(), &[".open"]).is_empty(), "no segment is left open");
    }
}

#[test]
fn nodes_killed_over_a_bad_way_to_s3_lose_nothing_and_repeat_nothing() {
    let served = TestWeb::start(still(410, 400, 5));
    let mut nodes = Nodes::new(&served, 2);
    let Some(server) = S3::start(nodes.store.path()) else { return };
    let mut dice = Dice::new("cluster in S3");
    nodes.s3 = Some((server.address, bad_way(server.address, Dice::of(dice.below(u64::MAX)))));
    let expected = alone(&served);
    let begin = |node| start(&mut nodes.crawl(node));
    let mut running: Vec<Running> = (0..2).map(begin).collect();
    for _ in 0..kills(S3_KILLS) {
        std::thread::sleep(Duration::from_micros(dice.below(S3_SPREAD_MICROS)));
        let node = dice.below(2) as usize;
        running.remove(node).kill();
        running.insert(node, begin(node));
    }
    nodes.to_the_end(running);
    assert_union(&nodes.union(), &expected);
    nodes.balances();
    assert_eq!(nodes.status()["in_flight"].as_array().unwrap().len(), 0);
    let asked = nodes.s3.map_or(0, |(_, way)| way.asked().len());
    println!("{asked} requests");
}

#[test]
fn a_node_that_was_stopped_for_long_writes_nothing_more_once_another_has_its_partition() {
    let served = TestWeb::start(still(403, 800, 30));
    let expected = alone(&served);
    let nodes = Nodes::brisk(&served, 2);
    let slow = |mut command: Command| {
        command.args(["--workers", "4"]);
        start(&mut command)
    };
    let mut old = slow(nodes.crawl(0));
    let other = slow(nodes.crawl(1));
    // It has sent something and still has much to do.
    let from = served.server.requests();
    assert!(old.wait_until(|| served.server.requests() > from + 200));
    old.signal("-STOP");
    let copy = nodes.archives[0].copy();
    let new = slow(nodes.crawl_in(&copy, 0));
    std::thread::sleep(LEASE_AND_MORE);
    let statuses = || nodes.objects("status/1/0000000001");
    let before = statuses();
    assert!(!before.is_empty());
    old.signal("-CONT");
    old.wait().refused(
        1,
        &["has taken partition 1 over (epoch 2, this one had 1)", "nothing more is written here"],
    );
    assert_eq!(statuses(), before, "the old node publishes nothing more");
    new.wait().succeeded();
    other.wait().succeeded();
    assert_union(&union([copy.path.as_path(), nodes.archives[1].path.as_path()].into_iter()), &expected);
    assert_eq!(nodes.status()["is_exact"], true);
    ledger_balances(&copy.path);

    // The old node's archive is a branch that no node may continue.
    start(&mut nodes.crawl(0)).wait().refused(
        1,
        &[
            "has exchanged batches that this archive does not have",
            "continue with the archive of the last node",
        ],
    );
    let newest = nodes.objects("epochs/1");
    assert_eq!(newest.len(), 2, "a refused node takes nothing over: {newest:?}");
}

#[test]
fn batches_that_are_not_what_they_should_be_are_refused() {
    let served = TestWeb::start(still(404, 300, 0));
    let expected = alone(&served);
    let nodes = Nodes::brisk(&served, 2);
    // The first node ends early and leaves what it has found to the other one.
    start(nodes.crawl(0).args(["--limit", "20"])).wait().succeeded();
    let sent = nodes.objects("exchange/2/1");
    let first = sent.first().expect("something was sent").clone();
    let name = |number: u64| first.with_file_name(format!("{number:010}"));
    let last = sent.len() as u64;
    let bytes = fs::read(&first).unwrap();
    let mut damaged = bytes.clone();
    *damaged.last_mut().unwrap() ^= 1;
    fs::write(&first, &damaged).unwrap();
    start(&mut nodes.crawl(1))
        .wait()
        .refused(1, &["batch 1 from partition 1 to 2 is damaged", "exchange/2/1/0000000001"]);
    fs::write(&first, "x".repeat((32 << 20) + 1)).unwrap();
    start(&mut nodes.crawl(1)).wait().refused(1, &["batch 1 from partition 1 to 2 is longer than"]);
    fs::write(&first, "").unwrap();
    start(&mut nodes.crawl(1))
        .wait()
        .refused(1, &["batch 1 from partition 1 to 2 does not begin with the header of a batch"]);
    fs::remove_file(&first).unwrap();
    fs::write(name(last + 1), &bytes).unwrap();
    let missing = format!("is missing, although number {} exists", last + 1);
    start(&mut nodes.crawl(1)).wait().refused(1, &["batch 1 from partition 1 to 2", &missing]);
    // A batch from the future: its name has the next number, but its checksum covers another one.
    fs::write(&first, &bytes).unwrap();
    start(&mut nodes.crawl(1)).wait().refused(1, &["batch 2 from partition 1 to 2 is damaged or misnamed"]);
    fs::remove_file(name(last + 1)).unwrap();

    // Once all batches are as they were sent, the crawl continues. A batch that arrives twice is applied once.
    nodes.run();
    assert_union(&nodes.union(), &expected);
    nodes.balances();
    fs::create_dir_all(first.parent().unwrap()).unwrap();
    fs::write(&first, &bytes).unwrap();
    nodes.run();
    assert!(!first.exists(), "what was received already is removed");
    nodes.balances();
    assert_union(&nodes.union(), &expected);
}

#[test]
fn an_archive_stays_what_it_is_in_its_cluster() {
    let served = TestWeb::start(still(405, 100, 0));
    let nodes = Nodes::new(&served, 2);
    nodes.run();
    let url = nodes.url();
    let crawl = |archive: &Archive, options: &[&str]| {
        let mut all = everything(&served);
        all.extend(options.iter().map(|option| (*option).to_owned()));
        start(&mut archive.crawl(&nodes.seeds, &all)).wait()
    };
    let own = &nodes.archives[0];
    crawl(own, &["--cluster", &url, "--partition", "1/3"]).refused(1, &["has 2 partitions, not 3"]);
    crawl(own, &["--cluster", &url, "--partition", "2/2"]).refused(1, &["this archive is partition 1/2"]);
    crawl(own, &["--cluster", &url, "--partition", "3/2"])
        .refused(2, &["'3/2' is not a partition; write it like 3/8"]);
    crawl(own, &["--cluster", &url, "--partition", "1/2", "--cluster-mode", "firewall"])
        .refused(1, &["has the mode exchange, not firewall"]);
    crawl(own, &[]).refused(1, &["is a partition of a cluster; give --cluster and --partition 1/2"]);
    let other = tempfile::tempdir().unwrap();
    let elsewhere = format!("file://{}", other.path().display());
    crawl(own, &["--cluster", &elsewhere, "--partition", "1/2"])
        .refused(1, &["this archive is partition 1/2 of the cluster"]);
    // An independent archive is not a partition, and another archive for the same partition does not know its history.
    let single = Archive::new();
    crawl(&single, &["--limit", "3"]).succeeded();
    crawl(&single, &["--cluster", &elsewhere, "--partition", "2/2"])
        .refused(1, &["was not begun as a partition"]);
    crawl(&Archive::new(), &["--cluster", &url, "--partition", "1/2"])
        .refused(1, &["it is another archive or an old copy"]);
    let foreign = nodes.union().0.into_keys().find(|url| !captures(&own.path).0.contains_key(url)).unwrap();
    let why = own.run("why", &[&foreign]);
    assert!(why.code != Some(0) || why.text().contains("another partition"), "{}", why.text());
    nodes.balances();
}

#[test]
fn others_name_everything_again_for_a_partition_that_was_rebuilt() {
    let served = TestWeb::start(still(406, 400, 0));
    let expected = alone(&served);
    let nodes = Nodes::brisk(&served, 2);
    start(nodes.crawl(0).args(["--limit", "60"])).wait().succeeded();
    // It has received much and fetched little of it.
    start(nodes.crawl(1).args(["--limit", "5"])).wait().succeeded();
    nodes.archives[1].run::<&str>("rebuild", &[]).succeeded();
    ledger_balances(&nodes.archives[1].path);
    nodes.run();
    assert_union(&nodes.union(), &expected);
    nodes.balances();
}

#[test]
fn firewalls_and_crossovers_send_nothing() {
    let served = TestWeb::start(still(407, 300, 0));
    let expected = alone(&served);
    for mode in ["firewall", "crossover"] {
        let nodes = Nodes { mode, ..Nodes::new(&served, 2) };
        nodes.run();
        let (found, overlap) = nodes.union();
        assert!(nodes.objects("exchange").is_empty());
        match mode {
            "firewall" => assert!(found.len() < expected.len() && overlap == 0, "{} {overlap}", found.len()),
            _ => assert!(found == expected && overlap > 0, "{} {overlap}", found.len()),
        }
        let status = nodes.status();
        let measure = |name: &str| status["measures"][name].as_f64().unwrap();
        println!("{mode}: {} of {}, overlap {overlap}: {}", found.len(), expected.len(), status["measures"]);
        assert_eq!(measure("links"), 0.0);
        if mode == "firewall" {
            let coverage = found.len() as f64 / expected.len() as f64;
            assert!(
                (measure("coverage_min")..=measure("coverage")).contains(&coverage),
                "{coverage} {status}"
            );
            assert!(measure("overlap") == 0.0 && measure("quality") < 1.0, "{status}");
        } else {
            assert!(measure("overlap") > 0.9, "{status}");
        }
        nodes.balances();
    }
}

#[test]
fn a_crawl_waits_for_some_time_for_one_that_has_ended_and_got_something_to_do() {
    let served = TestWeb::start(still(109, 150, 0));
    let nodes = Nodes { seeds: served.web.seeds(8), ..Nodes::brisk(&served, 2) };
    let narrow = |node: usize| {
        let partition = format!("{}/2", node + 1);
        let more = ["--scope", "host", "--cluster", &nodes.url(), "--partition", &partition];
        start(
            &mut nodes.archives[node]
                .crawl(&nodes.seeds, &[&served.at_once()[..], &more.map(str::to_owned)].concat()),
        )
    };
    for node in [narrow(0), narrow(1)] {
        node.wait().succeeded();
    }
    let state = |node: usize| nodes.status()["told"][node]["activity"].clone();
    assert_eq!([state(0), state(1)], ["complete", "complete"]);

    // The first one finds pages of the second one, whose crawl is not restarted.
    let alone = start(&mut nodes.crawl(0)).wait().succeeded();
    let said =
        "partitions that have ended have something to do again: 2; begin them, or this crawl ends in 9 s";
    assert!(alone.errors.contains(said), "{}", alone.errors);
    nodes.balances();
    let in_flight = &nodes.status()["in_flight"][0];
    assert!(in_flight["to"] == 2 && in_flight["batches"].as_u64() > Some(0), "{in_flight}");

    // Restarted together, they do the remaining work and end at the same time.
    nodes.run();
    nodes.balances();
    let one = Archive::new();
    start(&mut one.crawl(&nodes.seeds, &everything(&served))).wait().succeeded();
    assert_union(&nodes.union(), &union(std::iter::once(one.path.as_path())).0);
}
