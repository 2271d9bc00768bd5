//! Several nodes share an address, and partitions move from one node to another: after a kill, on demand, and after
//! disk loss.

use std::collections::BTreeMap;
use std::fs::{self, ReadDir};
use std::process::Command;
use std::time::{Duration, Instant};

use archive_books::cluster::{Division, Mode, Partition};
use archive_books::ledger::Credits;
use archive_storage::Store;
use archive_storage::address::site_of;
use chrono::{SecondsFormat, TimeDelta, Utc};

use crate::cluster::{Nodes, alone, assert_union, begin_brisk, still, union};
use crate::politeness::are_apart;
use crate::support::program::{Running, start};
use crate::support::{Archive, Dice, TestWeb, captures, kills, ledger_balances};

/// Number of lost disks, unless `ARCHIVE_KILLS` overrides it.
const LOST_DISKS: u64 = 2;

/// Delay of the address that all sites share; each run ends when each of two nodes has had a turn.
const ONE_ADDRESS: [&str; 2] = ["--delay", "200ms"];
const ADDRESS_DELAY: Duration = Duration::from_millis(200);

#[test]
fn an_address_is_left_alone_for_its_delay_by_all_nodes_together() {
    let served = TestWeb::start(still(409, 2000, 0));
    served.server.record_arrivals(true);
    let nodes = Nodes { seeds: served.web.seeds(16), ..Nodes::new(&served, 2) };
    let too_long = |millis| start(&mut crawl(&nodes, 0, Duration::from_millis(millis))).wait();
    too_long(10_001).refused(1, &["--address-delay is at most 10 s"]);
    begin_brisk(nodes.store.path(), 2);
    too_long(901).refused(1, &["--address-delay is at most 0.9 s"]);
    are_apart_together(&nodes, (0..2).map(|node| crawl(&nodes, node, ADDRESS_DELAY)).collect());
}

/// Returns the crawl command of a node that keeps delays, not started.
fn crawl(nodes: &Nodes, node: usize, delay: Duration) -> Command {
    let partition = format!("{}/{}", node + 1, nodes.archives.len());
    let mut options = polite(nodes, delay);
    options.extend(["--scope", "any", "--partition", &partition].map(str::to_owned));
    nodes.archives[node].crawl(&nodes.seeds, &options)
}

fn polite(nodes: &Nodes, delay: Duration) -> Vec<String> {
    let mut options = nodes.served.connection().to_vec();
    options.extend(ONE_ADDRESS.map(str::to_owned));
    let delay = format!("{}ms", delay.as_millis());
    options.extend(["--address-delay", &delay, "--cluster", &nodes.url()].map(str::to_owned));
    options
}

/// Fails unless all nodes together keep the delay of the address, until each has had a turn.
fn are_apart_together(nodes: &Nodes, commands: Vec<Command>) {
    let count = nodes.archives.len() as u16;
    let any =
        Partition { cluster: String::new(), number: 1, count, mode: Mode::default(), by: Division::Site };
    let mut running: Vec<Running> = commands.into_iter().map(|mut command| start(&mut command)).collect();
    let (mut arrivals, mut shares) = (Vec::new(), vec![0; usize::from(count)]);
    let have_had_a_turn = running[0].wait_until(|| {
        for arrival in nodes.served.server.take_arrivals() {
            shares[usize::from(any.of_site(site_of(&arrival.host))) - 1] += 1;
            arrivals.push(arrival);
        }
        shares.iter().all(|share| *share > 10)
    });
    running.iter().for_each(|node| node.signal("-TERM"));
    for node in running {
        assert_eq!(node.wait().code, Some(4), "it was stopped");
    }
    arrivals.extend(nodes.served.server.take_arrivals());
    println!("{} requests to one address: {shares:?}", arrivals.len());
    assert!(have_had_a_turn, "every node has had a turn: {shares:?}");
    are_apart("the address", &arrivals, ADDRESS_DELAY);
}

/// Returns nodes that have each crawled a part of a web at one address, at full speed: more pages than a node can ask for
/// again, at its delay, before the other one has had its turns, on a busy machine too.
fn crawled(served: &TestWeb) -> Nodes<'_> {
    let nodes = Nodes { seeds: served.web.seeds(16), ..Nodes::brisk(served, 2) };
    let mut crawls: Vec<Command> = (0..2).map(|node| nodes.crawl(node)).collect();
    let running: Vec<Running> =
        crawls.iter_mut().map(|crawl| start(crawl.args(["--limit", "200"]))).collect();
    running.into_iter().for_each(|node| drop(node.wait().succeeded()));
    nodes
}

fn refresh(archive: &Archive, options: &[String]) -> Command {
    let mut command = archive.command("refresh");
    command.args(["--budget", "200", "--shortest", "0s"]).args(options);
    command
}
#[test]
fn a_refresh_takes_turns_with_refreshes_and_crawls_of_other_nodes() {
    let beside = [Beside::Crawl, Beside::Report]
        .map(|beside| std::thread::spawn(move || refresh_at_one_address(&beside)));
    refresh_at_one_address(&Beside::Refresh);
    beside.into_iter().for_each(|run| run.join().unwrap());
}

/// Activity of the other node.
enum Beside {
    Crawl,
    Refresh,
    Report,
}

fn refresh_at_one_address(beside: &Beside) {
    let served = TestWeb::start(still(416, 2000, 0));
    let nodes = crawled(&served);
    served.server.record_arrivals(true);
    let refresh = |node: usize| refresh(&nodes.archives[node], &polite(&nodes, ADDRESS_DELAY));
    let other = match beside {
        Beside::Crawl => crawl(&nodes, 1, ADDRESS_DELAY),
        Beside::Refresh => refresh(1),
        Beside::Report => {
            nodes.archives[1].run("watch", &["page", "--name", "all"]).succeeded();
            let mut report = nodes.archives[1].command("watch report");
            report.args(["all", "--now"]).args(polite(&nodes, ADDRESS_DELAY));
            report
        }
    };
    are_apart_together(&nodes, vec![refresh(0), other]);
    nodes.balances();
}

#[test]
fn a_refresh_in_a_cluster_fetches_what_it_fetches_alone_and_crawls_send_what_it_finds() {
    let served = TestWeb::start(still(417, 600, 0));
    let nodes = crawled(&served);
    let now = Utc::now();
    let with = |days: i64, more: &[&str]| {
        let clock = (now + TimeDelta::days(days)).to_rfc3339_opts(SecondsFormat::Secs, true);
        let more = [&["--clock", &clock], more].concat();
        served.at_once().into_iter().chain(more.into_iter().map(str::to_owned)).collect::<Vec<_>>()
    };
    let (url, copy) = (nodes.url(), nodes.archives[0].copy());
    let alone = start(&mut refresh(&copy, &with(1, &[]))).wait().succeeded();
    assert!(
        alone.errors.contains("is partition 1/2 of a cluster") && alone.errors.contains("give --cluster")
    );
    let own = &nodes.archives[0];
    let joined = start(&mut refresh(own, &with(1, &["--cluster", &url]))).wait().succeeded();
    assert!(joined.errors.contains("partition 1/2, epoch 2"), "{}", joined.errors);
    assert!(!joined.errors.contains("give --cluster"), "{}", joined.errors);
    let fetched = |archive: &Archive| {
        let captures = captures(&archive.path).0.into_iter();
        captures.map(|(url, captures)| (url, captures.len())).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(fetched(own), fetched(&copy));
    assert!(fetched(own).values().filter(|captures| **captures > 1).count() > 40, "pages were fetched again");
    // Nobody continues a crawl that reached its limit; a killed one must still be continued.
    let ended = |node: usize| nodes.status()["told"][node]["activity"]["ended"].clone();
    assert_eq!(ended(0), "refresh");
    let mut killed = start(nodes.crawl(1).args(["--workers", "1"]));
    assert!(killed.wait_until(|| !nodes.objects("status/2/0000000002").is_empty()));
    killed.kill();
    start(&mut refresh(&nodes.archives[1], &with(1, &["--cluster", &url]))).wait().succeeded();
    assert_eq!(ended(1), "stopped");

    // Pages that a refresh finds while the others are absent are sent by the next crawl.
    start(&mut refresh(&nodes.archives[1], &with(2, &[]))).wait().succeeded();
    let waiting = || Credits::outbox(Store::read_only(&nodes.archives[1].path).unwrap().state()).count();
    assert!(waiting() > 0);
    nodes.run();
    assert_eq!(waiting(), 0);
    nodes.balances();

    let elsewhere = tempfile::tempdir().unwrap();
    let other = Nodes { store: elsewhere, ..Nodes::new(&served, 2) };
    let at_other = with(1, &["--cluster", &other.url()]);
    start(&mut refresh(own, &at_other)).wait().refused(1, &["there is no cluster in"]);
    start(other.crawl(0).args(["--limit", "3"])).wait().succeeded();
    start(&mut refresh(own, &at_other)).wait().refused(1, &["this archive is partition 1/2 of the cluster"]);
    let single = Archive::new();
    start(single.crawl(&nodes.seeds, &served.at_once()).args(["--limit", "3"])).wait().succeeded();
    start(&mut refresh(&single, &at_other)).wait().refused(2, &["is not a partition of a cluster"]);
}

#[test]
fn a_partition_is_fetched_again_soon_after_its_node_was_killed() {
    let each = [true, false].map(|is_moved| std::thread::spawn(move || time_to_take_over(is_moved)));
    each.into_iter().for_each(|run| run.join().unwrap());
}

/// Kills a node and starts another one, in the same folder or with a copy elsewhere.
fn time_to_take_over(is_moved: bool) {
    let served = TestWeb::start(still(411, 4000, 0));
    let nodes = Nodes { seeds: served.web.seeds(16), ..Nodes::brisk(&served, 2) };
    // Only the first node exists, so every request is its own or its successor's. Addresses are announced before they
    // are requested.
    let crawl = |archive: &Archive| {
        let mut options = served.connection().to_vec();
        let url = nodes.url();
        let more = ["--delay", "500ms", "--scope", "any", "--cluster", &url, "--partition", "1/2"];
        options.extend(more.map(str::to_owned));
        archive.crawl(&nodes.seeds, &options)
    };
    let mut old = start(&mut crawl(&nodes.archives[0]));
    assert!(old.wait_until(|| served.server.requests() > 20));
    old.kill();
    let copy = is_moved.then(|| nodes.archives[0].copy());
    let (before, begun) = (served.server.requests(), Instant::now());
    let mut new = start(&mut crawl(copy.as_ref().unwrap_or(&nodes.archives[0])));
    assert!(new.wait_until(|| served.server.requests() > before));
    let waited = begun.elapsed();
    new.kill();
    // How long this may take is asserted where time is simulated: `cluster::simulation`.
    println!("{} after {waited:.1?}", if is_moved { "in another place" } else { "in the same folder" });
}

#[test]
fn a_partition_moves_to_another_node_without_loss_or_delay() {
    let served = TestWeb::start(still(412, 800, 20));
    let expected = alone(&served);
    let nodes = Nodes::brisk(&served, 2);
    let slow = |mut command: Command| {
        command.args(["--workers", "4"]);
        start(&mut command)
    };
    let from = served.server.requests();
    let mut first = slow(nodes.crawl(0));
    let mut other = slow(nodes.crawl(1));
    assert!(first.wait_until(|| served.server.requests() > from + 200));
    let drain = |partition: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
        start(command.args(["cluster", "drain", partition, "--cluster", &nodes.url()])).wait()
    };
    assert!(drain("1").succeeded().text().contains("has left partition 1"));
    let first = first.wait().succeeded();
    assert!(first.errors.contains("left to another node"), "{}", first.errors);
    let status = nodes.status();
    assert_eq!((&status["told"][0]["activity"], &status["is_exact"]), (&"drained".into(), &true.into()));
    assert!(!other.has_ended(), "the others wait");
    assert!(drain("1").succeeded().text().contains("had already left partition 1"));
    drain("3").refused(1, &["no node has begun partition 3"]);

    // The next node is elsewhere, and does not wait for a lease.
    let moved = nodes.archives[0].copy();
    let statuses = || nodes.objects("status/1/0000000002");
    let begun = Instant::now();
    let mut next = slow(nodes.crawl_in(&moved, 0));
    assert!(next.wait_until(|| !statuses().is_empty()));
    println!("the next node writes after {:.1?}", begun.elapsed());
    let next = next.wait().succeeded();
    assert!(!next.errors.contains("another node had this partition"), "{}", next.errors);
    other.wait().succeeded();
    assert_union(&union([moved.path.as_path(), nodes.archives[1].path.as_path()].into_iter()), &expected);
    assert_eq!(nodes.status()["is_exact"], true);
    ledger_balances(&moved.path);
    // The first node's archive is a branch that was continued elsewhere.
    start(&mut nodes.crawl(0)).wait().refused(1, &["has exchanged batches that this archive does not have"]);
}

/// Whether a copy is complete: a manifest that is being written has another ending.
fn has_manifest(mut files: ReadDir) -> bool {
    files.any(|file| file.unwrap().path().extension().is_some_and(|ending| ending == "jsonl"))
}

#[test]
fn a_lost_disk_costs_what_was_captured_since_the_last_copy_and_no_cash() {
    let served = TestWeb::start(still(413, 800, 20));
    let expected = alone(&served);
    let mut nodes = Nodes::brisk(&served, 2);
    let mut dice = Dice::new("lost disks");
    let copies = tempfile::tempdir().unwrap();
    let place = |node: usize| format!("file://{}", copies.path().join(node.to_string()).display());
    let begin = |nodes: &Nodes, node: usize| {
        start(nodes.crawl(node).args(["--workers", "4", "--copy-to", &place(node)]))
    };
    let mut running: Vec<Running> = (0..2).map(|node| begin(&nodes, node)).collect();
    for lost in 1..=kills(LOST_DISKS) {
        let node = dice.below(2) as usize;
        let (from, more) = (served.server.requests(), 50 + dice.below(50));
        let manifests = copies.path().join(node.to_string()).join("manifests");
        let has_copy = || fs::read_dir(&manifests).is_ok_and(has_manifest);
        running[node].wait_until(|| served.server.requests() > from + more && has_copy());
        running.remove(node).kill();
        let had = captures(&nodes.archives[node].path).count();
        nodes.archives[node] = Archive::new();
        let place = place(node);
        nodes.archives[node].run("copy", &["--from", &place]).succeeded();
        println!(
            "disk {lost}: {} of {had} captures are in the copy",
            captures(&nodes.archives[node].path).count()
        );
        let status = nodes.status();
        assert_ne!(status["is_exact"], false, "what others hear of is in a copy: {status}");
        running.insert(node, begin(&nodes, node));
    }
    for node in running {
        let finished = node.wait().succeeded();
        assert!(finished.errors.contains("nothing left to fetch"), "{}", finished.errors);
    }
    assert_union(&nodes.union(), &expected);
    nodes.balances();
    for (node, archive) in nodes.archives.iter().enumerate() {
        archive.verify();
        // At the end, the copies are complete and few.
        let listed = archive.json("copy", &["--list", "--to", &place(node)]);
        let captured = captures(&archive.path).count();
        assert!(listed.len() <= 2, "{listed:?}");
        assert_eq!(listed.last().unwrap()["captures"], captured);
    }
}

#[test]
fn a_node_that_cannot_copy_reports_nothing_to_the_others_and_says_so() {
    let served = TestWeb::start(still(414, 60, 0));
    let nodes = Nodes::new(&served, 2);
    // A folder cannot be created in place of a file.
    let file = nodes.archives[0].file("occupied", "");
    let place = format!("file://{}/copies", file.display());
    let finished = start(nodes.crawl(0).args(["--copy-to", &place, "--limit", "10"])).wait();
    assert_eq!(finished.code, Some(1), "{}", finished.errors);
    assert!(finished.errors.contains("cannot be copied"), "{}", finished.errors);
    assert!(nodes.objects("status").is_empty() && nodes.objects("exchange").is_empty());
    // Copies of another archive stay unchanged.
    let place = format!("file://{}", nodes.archives[0].folder().join("copies").display());
    start(nodes.crawl(0).args(["--copy-to", &place, "--limit", "10"])).wait().succeeded();
    start(nodes.crawl(1).args(["--copy-to", &place, "--limit", "10"]))
        .wait()
        .refused(1, &["has copies that this archive does not know of"]);
}
