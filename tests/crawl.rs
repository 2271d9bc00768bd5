//! A crawl finds everything it is allowed to fetch, each page once, and can be stopped and continued at any time.

use std::collections::BTreeSet;
use std::time::Duration;

use archive_books::ledger::page_flags;
use archive_storage::CaptureKind;
use archive_testweb::{Clock, Config};

use crate::support::captures::assert_same;
use crate::support::program::start;
use crate::support::reach::{reach, reach_within};
use crate::support::{Archive, TestWeb, captures, ledger_balances};

/// A small web with all features, whose clock stands still, so that it never changes by itself.
pub(crate) fn lively(seed: u64, hosts: u32, pages: u64) -> Config {
    let config = Config {
        redirect_share: 0.05,
        broken_share: 0.02,
        robots_share: 0.3,
        birth_share: 0.05,
        death_share: 0.05,
        ..Config::sized(seed, hosts, pages)
    };
    let clock = Clock::simulated(config.start + chrono::TimeDelta::days(200));
    Config { clock, ..config }
}

/// Returns the options of a crawl of everything.
pub(crate) fn everything(served: &TestWeb) -> Vec<String> {
    let mut options = served.at_once();
    options.extend(["--scope".to_owned(), "any".to_owned()]);
    options
}

#[test]
fn a_crawl_captures_all_that_is_reachable_and_allowed_once() {
    let served = TestWeb::start(lively(11, 8, 600));
    let archive = Archive::new();
    let seeds = served.web.seeds(2);
    let options = everything(&served);

    let first = start(&mut archive.crawl(&seeds, &options)).wait().succeeded();
    assert!(first.errors.contains("nothing left to fetch"), "{}", first.errors);
    let captured = captures(&archive.path);
    assert_same(&captured.urls(), &reach(&served.web, &seeds), "captured");
    captured.are_single_answers();
    assert_eq!(archive.verify(), captured.count());
    ledger_balances(&archive.path);
    let stats = &archive.json::<&str>("stats", &[])[0];
    let count = |name: &str| stats[name].as_u64().unwrap();
    assert_eq!(count("captures") + count("errors") + count("robots"), captured.count());
    assert!(!captured.of_kind(CaptureKind::Identical).is_empty(), "the web's copies were stored as copies");

    let requests = served.server.requests();
    let second = start(&mut archive.crawl(&seeds, &options)).wait().succeeded();
    assert!(second.errors.contains("nothing left to fetch"), "{}", second.errors);
    assert_eq!(served.server.requests(), requests, "a finished crawl asks for nothing");
    assert_eq!(captures(&archive.path).count(), captured.count());
}

#[test]
fn a_crawl_keeps_to_its_scope() {
    let served = TestWeb::start(Config { inter_host_share: 0.5, ..lively(12, 12, 300) });
    let archive = Archive::new();
    let seeds = served.web.seeds(1);
    let mut options = served.at_once();
    options.extend(["--scope".to_owned(), "host".to_owned()]);
    start(&mut archive.crawl(&seeds, &options)).wait().succeeded();

    let captured = captures(&archive.path);
    captured.are_single_answers();
    let urls = captured.urls();
    let is_own = |url: &str| url.starts_with(&seeds[0]);
    let (inside, outside): (BTreeSet<String>, BTreeSet<String>) =
        urls.into_iter().partition(|url| is_own(url));
    let expected = reach_within(&served.web, &seeds, |url| is_own(url) || outside.contains(url));
    let expected = expected.into_iter().filter(|url| is_own(url)).collect();
    assert_same(&inside, &expected, "captured of the seed's host");

    // Other hosts only contribute what is displayed inside a page of this one, and its requisites.
    let store = archive_storage::Store::read_only(&archive.path).unwrap();
    for url in outside.iter().filter(|url| !url.ends_with("/robots.txt")) {
        let id = store.state().find(url).unwrap().unwrap();
        let hop = char::from(store.state().page(id).unwrap().hop);
        assert!(matches!(hop, 'E' | 'P' | 'R'), "{url} was reached by {hop}");
    }
}

/// Returns the number of fetched pages, without pictures, style sheets and other requisites.
fn proper_pages(archive: &Archive) -> usize {
    let store = archive_storage::Store::read_only(&archive.path).unwrap();
    let state = store.state();
    let flags = |id| state.page(id).unwrap().flags;
    let is_page = |id| page_flags::is_page(flags(id));
    state.visits(0).map(Result::unwrap).filter(|(id, visit)| visit.captures > 0 && is_page(*id)).count()
}

#[test]
fn a_crawl_stops_on_a_signal_and_continues_later() {
    let config = Config { latency: Duration::from_millis(5), ..lively(13, 8, 600) };
    let served = TestWeb::start(config);
    let archive = Archive::new();
    let seeds = served.web.seeds(2);
    let options = everything(&served);
    let crawl = |more: &[&str]| {
        let mut command = archive.crawl(&seeds, &options);
        command.args(more);
        start(&mut command)
    };
    let pages = || captures(&archive.path).urls().iter().filter(|url| !url.ends_with("/robots.txt")).count();

    let limited = crawl(&["--limit", "50"]).wait().succeeded();
    assert!(limited.errors.contains("limit reached"), "{}", limited.errors);
    assert_eq!(proper_pages(&archive), 50, "robots.txt and parts of pages do not count");
    assert!(pages() > 50, "what belongs to the pages is fetched all the same");
    let limited = pages();

    let timed = crawl(&["--for", "500ms"]).wait().succeeded();
    assert!(timed.errors.contains("the time is up"), "{}", timed.errors);
    assert!(pages() > limited);

    for signal in ["-INT", "-TERM"] {
        let before = (served.server.requests(), pages());
        let mut running = crawl(&[]);
        assert!(running.wait_until(|| served.server.requests() > before.0 + 60), "it ended too early");
        running.signal(signal);
        let stopped = running.wait();
        assert_eq!(stopped.code, Some(4), "{signal}: {}", stopped.errors);
        assert!(stopped.errors.contains("stopped"), "{signal}: {}", stopped.errors);
        assert!(!stopped.errors.contains("was interrupted"), "{signal}: {}", stopped.errors);
        assert!(pages() > before.1, "{signal}: what was under way is stored");
        archive.verify();
        ledger_balances(&archive.path);
    }

    let rest = crawl(&[]).wait().succeeded();
    assert!(rest.errors.contains("nothing left to fetch"), "{}", rest.errors);
    assert!(!rest.errors.contains("was interrupted"), "{}", rest.errors);
    let captured = captures(&archive.path);
    assert_same(&captured.urls(), &reach(&served.web, &seeds), "captured in five runs");
    captured.are_single_answers();
    assert_eq!(archive.verify(), captured.count());
    ledger_balances(&archive.path);
}
