//! How close the importance found by a crawl comes to the exact one, pass by pass.

use std::collections::HashMap;
use std::process::Command;

use archive_books::ledger::Credits;
use archive_storage::Store;
use archive_testweb::{Clock, Config, truth};

use crate::crawl::everything;
use crate::support::program::start;
use crate::support::{Archive, TestWeb};

const PAGES: u64 = 1500;
const TOP: usize = 100;

#[test]
fn opic_is_near_exact_importance_after_every_pass() {
    let config = Config::plain(41, 30, PAGES);
    let clock = Clock::simulated(config.start);
    let served = TestWeb::start(Config { clock: clock.clone(), ..config });
    let exact = truth::Graph::of(&served.web, clock.now()).importance(1e-12);
    let archive = Archive::new();
    let budget = PAGES.to_string();
    let mut figures = Vec::new();
    println!("pass  Kendall's tau  of the top {TOP}");
    for pass in 1..=4 {
        if pass == 1 {
            start(&mut archive.crawl(&served.web.seeds(3), &everything(&served))).wait().succeeded();
        } else {
            let mut refresh = archive.command("refresh");
            start(refresh.args(["--budget", &budget, "--shortest", "0s"]).args(served.at_once()))
                .wait()
                .succeeded();
        }
        let found = importance(&archive, &served);
        assert_eq!(found.len(), exact.len(), "every page of the web is a page of the archive");
        let mean = found.iter().sum::<f64>() / found.len() as f64;
        assert!((mean - 1.0).abs() < 1e-6, "the mean importance is {mean}");
        let (tau, top) = (kendall_tau(&found, &exact), top_overlap(&found, &exact, TOP));
        if matches!(pass, 1 | 2 | 4) {
            println!("{pass:>4}  {tau:>13.3}  {top:>4}");
            figures.push((tau, top));
        }
    }
    // After each pass, the crawl processes its stored links, so one pass of fetches is enough.
    let [first, second, fourth] = figures.as_slice() else { unreachable!("three passes are measured") };
    for (tau, top) in [first, second, fourth] {
        assert!(*tau > 0.98 && *top >= 95, "after one, two and four passes: {figures:?}");
        assert!((tau - first.0).abs() < 0.001, "further passes change nothing: {figures:?}");
    }
}

/// Returns the importance of every page, by page number of the web.
fn importance(archive: &Archive, served: &TestWeb) -> Vec<f64> {
    let store = Store::read_only(&archive.path).unwrap();
    let state = store.state();
    let mut credits = Credits::open(state).unwrap();
    credits.audit(state).unwrap();
    let mut by_page = HashMap::new();
    for (id, page) in state.pages(archive_storage::UrlId(0)).map(Result::unwrap) {
        let visit = state.visit(id).unwrap();
        if let Some(importance) = credits.importance(&page, visit.as_ref()) {
            let number = served.web.page_of(&state.url(id).unwrap()).unwrap();
            by_page.insert(number.0, importance);
        }
    }
    (0..served.web.pages()).filter_map(|page| by_page.get(&page).copied()).collect()
}

/// Returns Kendall's tau-b of two orders: 1 for the same order, 0 for unrelated ones.
fn kendall_tau(left: &[f64], right: &[f64]) -> f64 {
    let (mut agree, mut tied_left, mut tied_right, mut pairs) = (0_i64, 0_i64, 0_i64, 0_i64);
    for first in 0..left.len() {
        for second in first + 1..left.len() {
            let (a, b) = (left[first].total_cmp(&left[second]), right[first].total_cmp(&right[second]));
            agree += (a as i64) * (b as i64);
            tied_left += i64::from(a.is_eq());
            tied_right += i64::from(b.is_eq());
            pairs += 1;
        }
    }
    agree as f64 / (((pairs - tied_left) as f64) * ((pairs - tied_right) as f64)).sqrt()
}

/// Returns how many of the `count` most important pages by one order are so by the other.
fn top_overlap(left: &[f64], right: &[f64], count: usize) -> usize {
    let top = |scores: &[f64]| {
        let mut places: Vec<usize> = (0..scores.len()).collect();
        places.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
        places.truncate(count);
        places
    };
    let right = top(right);
    top(left).into_iter().filter(|place| right.contains(place)).count()
}

/// Threads that only know the other threads' values from the previous sweep need more sweeps.
#[test]
fn a_second_thread_follows_hardly_more_links() {
    for graph in ["generate:kron:65536:8", "generate:copy:60000:12"] {
        let operations = |threads: &str| {
            let mut program = Command::new(env!("CARGO_BIN_EXE_archive"));
            program.args(["rank", "--graph", graph, "--threads", threads, "--json"]);
            let line = start(&mut program).wait().succeeded().json().remove(0);
            println!("{line}");
            line["operations"].as_f64().unwrap()
        };
        let (one, two) = (operations("1"), operations("2"));
        assert!(two <= 1.15 * one, "{graph}: {one} and {two}");
    }
}
