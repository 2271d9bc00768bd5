//! Servers that break every rule: the crawl ends, in bounded memory, and knows what became of each of them.

use std::thread;

use archive::testweb::{Config, faults, traps};
use archive_storage::{CaptureKind, Store};

use crate::support::program::{Usage, start};
use crate::support::{Archive, TestWeb, captures, ledger_balances};

/// Faults whose number matters, beside the one of the others.
const NUMBERED: [&str; 6] =
    ["/status/404", "/status/429", "/status/503", "/recovers/1", "/redirect-chain/19", "/redirect-chain/404"];

/// Redirects in a row that are followed.
const REDIRECTS_MAX: u64 = 20;

/// Crawls that share the faults.
const CRAWLS: usize = 5;

/// Memory that a crawl of the worst pages may take at most, in MiB.
const MEMORY_MIB_MAX: u64 = 700;

/// Every fault by itself: the address, and the page that leads nowhere else.
fn every_fault() -> Vec<String> {
    let listed = faults::FAULTS.iter().copied().flatten().map(|fault| fault.path.replace("{n}", "3"));
    let paths = listed.chain(NUMBERED.map(str::to_owned));
    let mut seeds: Vec<String> = paths.map(|path| format!("http://faults.test{path}")).collect();
    for host in faults::ROBOTS_HOSTS {
        seeds.push(format!("http://{}.faults.test/", host.name));
        seeds.push(format!("http://{}.faults.test/private/", host.name));
    }
    seeds
}

#[test]
fn every_fault_ends_in_a_capture_or_a_reason() {
    let served = TestWeb::start(Config::plain(81, 1, 1));
    let urls = every_fault();
    // A host that fails is left alone for a while: several crawls at the same time wait for less.
    let share = |number: usize| urls.iter().skip(number).step_by(CRAWLS).cloned().collect::<Vec<String>>();
    thread::scope(|scope| {
        for number in 0..CRAWLS {
            let (served, urls) = (&served, share(number));
            scope.spawn(move || end_well(served, &urls));
        }
    });
}

/// Crawls faulty pages, and nothing else, and looks at what became of each.
fn end_well(served: &TestWeb, urls: &[String]) {
    let archive = Archive::new();
    let seeds: Vec<String> = urls.iter().map(|url| format!("{url} scope=host depth=0")).collect();
    let mut options = served.at_once();
    options.extend(["--timeout", "1s", "--max-time", "4s", "--max-body", "4"].map(str::to_owned));
    let (ended, Usage { peak_mib: peak, .. }) = start(&mut archive.crawl(&seeds, &options)).measure();
    let ended = ended.succeeded();
    println!("{} faults in {:?}, {peak} MiB at most", urls.len(), ended.elapsed);
    assert!(ended.errors.contains("nothing left to fetch"), "{}", ended.errors);
    assert!(peak < MEMORY_MIB_MAX, "{peak} MiB");
    let captured = captures(&archive.path);
    captured.are_single();
    // Beside the pages themselves, the redirects from them and robots.txt of each host.
    let most = 2 * urls.len() as u64 + REDIRECTS_MAX;
    assert!(captured.count() <= most, "{} captures: a chain without end was followed", captured.count());

    let store = Store::read_only(&archive.path).unwrap();
    let without_outcome: Vec<&String> = urls.iter().filter(|url| !tell_outcome(&store, url)).collect();
    println!("nothing is known of {without_outcome:#?}");
    assert!(without_outcome.iter().all(|url| is_refused(url)), "{without_outcome:#?}");
    drop(store);
    archive.verify();
    ledger_balances(&archive.path);
}

/// Prints what became of a URL; whether anything did.
fn tell_outcome(store: &Store, url: &str) -> bool {
    let state = store.state();
    let canonical = archive_storage::address::canonical(&url.parse().unwrap());
    let newest = state.find(&canonical).unwrap().and_then(|id| state.history(id).unwrap().next());
    let Some((_, capture)) = newest.transpose().unwrap() else { return false };
    let record = store.record(capture.location).unwrap();
    if capture.kind == CaptureKind::Failed {
        let reason = record.fields().into_iter().find(|(name, _)| name == "error").map(|(_, reason)| reason);
        let reason = reason.unwrap_or_else(|| panic!("{url} failed without a reason"));
        assert!(!reason.is_empty(), "{url} failed without a reason");
        println!("{url}: no answer: {reason}");
    } else {
        let cut = record.header.get("WARC-Truncated").map_or(String::new(), |why| format!(", cut: {why}"));
        println!("{url}: {} with {} bytes{cut}", capture.status, capture.length);
    }
    true
}

/// Whether robots.txt of a faulty host keeps a crawler away from a page.
fn is_refused(url: &str) -> bool {
    let closed = [
        "robots-503",
        "robots-500",
        "robots-429",
        "robots-nothing",
        "robots-elsewhere",
        "robots-hang",
        "robots-reset",
    ];
    let is_private = url.ends_with("/private/");
    let half_open = ["robots-redirect", "robots-binary", "robots-delay"];
    let begins = |names: &[&str]| names.iter().any(|name| url.starts_with(&format!("http://{name}.")));
    begins(&closed) || (is_private && begins(&half_open))
}

#[test]
fn traps_do_not_keep_a_crawl_from_its_end() {
    let served = TestWeb::start(Config::plain(82, 1, 1));
    let archive = Archive::new();
    let seeds: Vec<String> = traps::ENTRANCES.iter().map(|url| (*url).to_owned()).collect();
    let mut options = served.at_once();
    options.extend(["--limit", "400", "--max-depth", "40"].map(str::to_owned));
    let (ended, Usage { peak_mib: peak, .. }) = start(&mut archive.crawl(&seeds, &options)).measure();
    ended.succeeded();
    assert!(peak < MEMORY_MIB_MAX, "{peak} MiB");
    // Session ids are no part of a page's address: ten pages and the entrance, each once.
    let captured = captures(&archive.path);
    let shop = captured.urls().into_iter().filter(|url| url.starts_with("http://session.trap.test/")).count();
    println!("{} captures, {shop} of them of pages behind session ids", captured.count());
    assert!(shop <= 12, "{shop}");
    captured.are_single();
}
