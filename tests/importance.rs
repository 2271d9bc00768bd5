//! How close the importance found by a crawl comes to the exact one, pass by pass.

use std::collections::HashMap;
use std::fs;
use std::process::Command;

use archive_books::ledger::Credits;
use archive_books::trends::Trends;
use archive_storage::Store;
use archive_testweb::{Clock, Config, truth};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::Value;

use crate::crawl::everything;
use crate::support::program::start;
use crate::support::served::{Served, ask};
use crate::support::warc::response;
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

/// Captures that all link to some pages.
fn linking(time: DateTime<Utc>, name: &str, count: u32, to: &str) -> Vec<u8> {
    let date = time.to_rfc3339_opts(SecondsFormat::Secs, true);
    let body = format!("<p>{name} <a href={to}>there</a>");
    let page = |number: u32| {
        let url = format!("http://{name}{number}.test/");
        response(&format!("urn:test:{url}"), &url, &date, &body)
    };
    let target = response(&format!("urn:test:{to}:{date}"), to, &date, "<p>here");
    (0..count).flat_map(page).chain(target).collect()
}

#[test]
fn importance_is_noted_over_time() {
    let archive = Archive::new();
    let folder = tempfile::tempdir().unwrap();
    let import = |name: &str, records: &[u8]| {
        let file = folder.path().join(name);
        fs::write(&file, records).unwrap();
        archive.run("import", &[file.to_str().unwrap()]).succeeded();
    };
    let (old, new) = ("http://old.test/", "http://new.test/");
    let [then, now] = [60, 1].map(|days| Utc::now() - TimeDelta::days(days));
    let both = [linking(then, "one", 40, old), linking(then, "two", 10, new)].concat();
    import("one.warc", &both);
    let trend = |rows: &str, name: &str| {
        let rows = archive.json("query", &[&format!("{rows} = \"{name}\" select trend")]);
        rows[0]["trend"].as_f64()
    };
    assert_eq!((trend("page url", old), trend("page url", "http://one3.test/")), (Some(0.0), None));
    let length = || fs::metadata(archive.path.join("trends.json.zst")).unwrap().len();
    let before = length();
    import("one.warc", &both);
    assert_eq!(length(), before, "nothing has changed");
    import("two.warc", &linking(now, "three", 60, new));
    let found = |what: &str| {
        let [old, new] = ["old", "new"].map(|name| match what {
            "page" => trend("page url", &format!("http://{name}.test/")).unwrap(),
            _ => trend("site site", &format!("{name}.test")).unwrap(),
        });
        assert!(new >= 2.0 && old.abs() < 1.0, "{what}: {old} {new}");
        (old, new)
    };
    let trends = ["page", "site"].map(found);
    let rising = archive.json("query", &["page trend > 0.5 order by trend desc select url"]);
    assert_eq!(rising[0]["url"], new, "{rising:?}");
    let size = length();
    println!("{size} bytes");

    let none: [&str; 0] = [];
    // A rebuild gives other numbers to pages, and keeps what they were.
    archive.run("rebuild", &none).succeeded();
    assert_eq!(["page", "site"].map(found), trends);

    let served = Served::of(&archive);
    for path in ["/page?url=http://new.test/", "/site?name=new.test"] {
        let answer = |kind: &str| ask(&served.application, "GET", path, &[kind]).content();
        let data: Value = serde_json::from_slice(&answer("Accept: application/json")).unwrap();
        let noted = data["importance_noted"].as_array().unwrap();
        assert_eq!(noted.len(), 2, "{path}: {noted:?}");
        assert!(noted[1]["importance"].as_f64() > noted[0]["importance"].as_f64());
        let page = String::from_utf8(answer("Accept: text/html")).unwrap();
        assert!(page.contains("Importance over time"), "{path}");
    }
    drop(served);

    archive.run("verify", &none).succeeded();
    archive.run("erase", &["url = \"http://new.test/\"", "--reason", "asked", "--yes"]).succeeded();
    assert!(!Trends::read(&archive.path).unwrap().pages.contains_key(new));
    let file = archive.path.join("trends.json.zst");
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[1..]).unwrap();
    assert!(archive.run("verify", &none).text().contains("trends.json.zst"));
    archive.run("repair", &none).succeeded();
    archive.run("verify", &none).succeeded();
    assert_eq!(trend("page url", old), None);
}
