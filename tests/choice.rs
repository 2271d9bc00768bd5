//! How a refresh chooses pages: policies, the shortest interval, page weights, and the share for discovery.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use archive_books::columns::{self, RowKind};
use archive_books::ledger::Credits;
use archive_books::recorder;
use archive_choose::{RefreshChoice, RefreshRules, Weights, most_obsolete};
use archive_storage::address::url_hash;
use archive_storage::segment::SegmentOptions;
use archive_storage::{Store, Visit};
use archive_testweb::Config;
use archive_web::parse::DocumentKind;
use chrono::TimeDelta;
use serde_json::Value;

use crate::change::{clock, crawled, visits};
use crate::crawl::{everything, lively};
use crate::support::program::{Finished, start};
use crate::support::{Archive, TestWeb};

fn run(served: &TestWeb, archive: &Archive, arguments: &[&str]) -> Finished {
    let mut command = archive.command("refresh");
    command.args(["--no-full-text", "--json"]).args(arguments).args(served.at_once()).args(clock(served));
    start(&mut command).wait()
}

/// Returns the number of URLs that a run fetched, except robots.txt and the parts of pages.
fn fetched(served: &TestWeb, archive: &Archive, arguments: &[&str]) -> u64 {
    let summary = run(served, archive, arguments).succeeded().json().remove(0);
    summary["captures"].as_u64().unwrap() - summary["parts"].as_u64().unwrap()
}

/// Returns the pages of the web that a run captured.
fn refresh(served: &TestWeb, archive: &Archive, arguments: &[&str]) -> BTreeSet<String> {
    let before = Store::read_only(&archive.path).unwrap().state().totals().captures;
    run(served, archive, arguments).succeeded();
    let store = Store::read_only(&archive.path).unwrap();
    let captures = store.state().captures().skip(before as usize).map(|capture| capture.unwrap().1);
    let urls = captures.map(|capture| store.state().url(capture.url).unwrap());
    urls.filter(|url| served.web.page_of(url).is_some()).collect()
}

#[test]
fn no_budget_fetches_a_page_twice_within_the_shortest_interval() {
    let (served, archive) = crawled(lively(411, 3, 60));
    // Nothing is due immediately after the crawl.
    assert_eq!(refresh(&served, &archive, &["--budget", "1000"]).len(), 0);
    served.web.clock().advance(TimeDelta::days(9));
    let all = refresh(&served, &archive, &["--budget", "1000"]);
    assert!(all.len() > 40, "{} pages", all.len());
    served.web.clock().advance(TimeDelta::minutes(20));
    assert_eq!(refresh(&served, &archive, &["--budget", "1000"]).len(), 0);
    // A run that begins slightly early does not miss its turn.
    served.web.clock().advance(TimeDelta::minutes(37));
    assert!(refresh(&served, &archive, &["--budget", "1000"]).len() > 40);
    // The given interval is kept for later runs.
    served.web.clock().advance(TimeDelta::hours(3));
    assert_eq!(refresh(&served, &archive, &["--budget", "1000", "--shortest", "1d"]).len(), 0);
    assert_eq!(refresh(&served, &archive, &["--budget", "1000"]).len(), 0);
    served.web.clock().advance(TimeDelta::hours(22));
    assert!(refresh(&served, &archive, &["--budget", "1000"]).len() > 40);
    run(&served, &archive, &["--budget", "9", "--time-unit", "0s"]).refused(2, &["--time-unit"]);
}

#[test]
fn below_a_floor_nothing_is_fetched_again() {
    let (served, archive) = crawled(lively(413, 3, 60));
    served.web.clock().advance(TimeDelta::days(9));
    let importance = |url: &String| {
        let why = archive.json("why", &[url.as_str()]).remove(0);
        (why["importance"].as_f64().unwrap(), why["next_visit"].clone())
    };
    let some = refresh(&served, &archive, &["--budget", "1000", "--floor", "1"]);
    assert!(!some.is_empty() && some.iter().all(|url| importance(url).0 >= 1.0), "{some:?}");
    // The floor is kept for later runs, plans, and what is said of a page.
    served.web.clock().advance(TimeDelta::days(9));
    assert!(refresh(&served, &archive, &["--budget", "1000"]).iter().all(|url| importance(url).0 >= 1.0));
    // The others were not fetched in this moment.
    let others = refresh(&served, &archive, &["--budget", "1000", "--floor", "0"]);
    assert!(others.len() > 10, "{others:?}");
    served.web.clock().advance(TimeDelta::days(9));
    run(&served, &archive, &["--budget", "1", "--floor", "1"]).succeeded();
    let (_, next) = others.iter().map(importance).find(|(importance, _)| *importance < 1.0).unwrap();
    assert!(next["below_floor"] == true && next["due"].is_null(), "{next}");
    run(&served, &archive, &["--budget", "9", "--floor=-1"]).refused(2, &["weight"]);
}

#[test]
fn policies_can_be_chosen() {
    let (served, archive) = crawled(lively(412, 3, 80));
    for policy in [
        "default",
        "uniform",
        "prop",
        "xyleme",
        "penalty:1:4",
        "index",
        "hindex",
        "chogm",
        "lambda",
        "azar",
        "xyleme_lm",
        "evh_hindex",
        "nutch",
    ] {
        served.web.clock().advance(TimeDelta::days(2));
        assert_eq!(fetched(&served, &archive, &["--budget", "9", "--policy", policy]), 9, "{policy}");
    }
    run(&served, &archive, &["--budget", "9", "--policy", "best"])
        .refused(2, &["no policy \"best\"", "xyleme"]);
    // A plan uses the last policy, or the one it is given.
    let plan = |arguments: &[&str]| {
        let mut command = archive.command("plan");
        command.args(["--json", "--budget", "9", "--days", "10"]).args(arguments).args(clock(&served));
        start(&mut command).wait()
    };
    plan(&[]).refused(2, &["nutch"]);
    let asked = |rows: Vec<Value>| rows.into_iter().find(|row| row["asked"] == true).unwrap();
    let promised =
        |policy: &str| asked(plan(&["--policy", policy]).succeeded().json())["freshness"].as_f64().unwrap();
    let (best, worst) = (promised("default"), promised("prop"));
    assert!(best > worst, "{best} {worst}");
}

/// Returns the ids and URLs of the HTML pages of an archive.
fn html_pages(archive: &Path) -> Vec<(u32, String)> {
    let pages = visits(archive).into_iter();
    let html = pages.filter(|(_, (_, visit))| {
        DocumentKind::from_code(visit.kind) == DocumentKind::Html && visit.status == 200
    });
    html.map(|(url, (id, _))| (id.0, url)).collect()
}

#[test]
fn html_pages_weigh_by_their_interest_where_it_is_known() {
    let (served, archive) = crawled(lively(413, 3, 80));
    served.web.clock().advance(TimeDelta::days(9));
    let html = html_pages(&archive.path);
    let chosen: BTreeSet<String> = html.iter().step_by(9).map(|(_, url)| url.clone()).collect();
    assert!(chosen.len() > 5, "{} pages", chosen.len());
    let mut values = vec![None; html.iter().map(|(id, _)| *id as usize + 1).max().unwrap()];
    for (id, url) in &html {
        values[*id as usize] = Some(if chosen.contains(url) { 1.0 } else { 0.0 });
    }
    let state = archive_storage::Store::read_only(&archive.path).unwrap().state().identity();
    columns::write(&archive.path, RowKind::Page, "interest", &values, state).unwrap();
    let budget = chosen.len().to_string();
    let arguments = ["--budget", &budget, "--policy", "xyleme", "--shortest", "0s"];
    let shared = |fetched: BTreeSet<String>| fetched.intersection(&chosen).count();
    let by_importance =
        shared(refresh(&served, &archive, &[&arguments[..], &["--weight", "importance"]].concat()));
    served.web.clock().advance(TimeDelta::days(9));
    let by_interest =
        shared(refresh(&served, &archive, &[&arguments[..], &["--weight", "interest"]].concat()));
    assert!(
        2 * by_interest > chosen.len() && by_interest > 2 * by_importance,
        "{by_interest} of {} by interest, {by_importance} by importance",
        chosen.len()
    );
    run(&served, &archive, &["--budget", "9", "--weight", "hub"])
        .refused(2, &["no column 'hub'", "archive rank"]);
}

/// Due folders choose the same pages as a pass over all pages, and avoid that pass.
#[test]
fn due_folders_spare_a_pass_and_choose_the_same() {
    let (served, archive) = crawled(lively(415, 3, 120));
    let crawled_at = served.web.clock().now();
    served.web.clock().advance(TimeDelta::days(9));
    // Fetch pages at different times.
    assert!(refresh(&served, &archive, &["--budget", "30", "--policy", "uniform"]).len() > 10);
    let store = Store::read_only(&archive.path).unwrap();
    let credits = Credits::open(store.state()).unwrap();
    let file = archive.path.join("state/due");
    let rules = RefreshRules { policy: "xyleme".parse().unwrap(), ..RefreshRules::default() };
    let choose = |folders: bool, budget: usize, hours: i64| {
        let choice = RefreshChoice::new(rules.clone(), Weights::importance());
        let choice = if folders { choice.with_folders(&archive.path, 0) } else { choice };
        let now = crawled_at + TimeDelta::days(20) + TimeDelta::hours(hours);
        most_obsolete(store.state(), &credits, &choice, budget, now).unwrap()
    };
    assert!(!file.exists());
    assert_eq!(choose(true, 20, 0), choose(false, 20, 0));
    let written = fs::read(&file).unwrap();
    // Later runs open folders.
    for (budget, hours) in [(20, 0), (20, 5), (10, 30), (20, 100)] {
        assert_eq!(choose(true, budget, hours), choose(false, budget, hours), "{budget} after {hours} hours");
        assert_eq!(fs::read(&file).unwrap(), written, "no pass was made for {budget} after {hours} hours");
    }
    // A budget for which the folders contain too little, or a time beyond them, causes a pass.
    for (budget, hours) in [(200, 101), (20, 400)] {
        let before = fs::read(&file).unwrap();
        assert_eq!(choose(true, budget, hours), choose(false, budget, hours));
        assert_ne!(fs::read(&file).unwrap(), before, "a pass was made for {budget} after {hours} hours");
    }
    // A damaged file, or one for other rules, is not used.
    for damaged in [&b""[..], b"{}\n", &written[..written.len() - 3], b"\xFF\n"] {
        fs::write(&file, damaged).unwrap();
        assert_eq!(choose(true, 20, 2), choose(false, 20, 2));
    }
}

/// A refused page was never fetched and is always due; that alone must not cause a pass over all pages.
#[test]
fn soon_after_a_crawl_no_pass_is_made() {
    let (served, archive) = crawled(lively(415, 3, 120));
    let mut store = recorder::open(&archive.path, SegmentOptions::default()).unwrap().store;
    let url = "http://refused.test/";
    let (refused, _) = store.state_mut().intern(url, url_hash(url)).unwrap();
    store.state_mut().set_visit(refused, &Visit::default()).unwrap();
    let credits = Credits::open(store.state()).unwrap();
    let rules = RefreshRules { policy: "xyleme".parse().unwrap(), ..RefreshRules::default() };
    let choice = RefreshChoice::new(rules, Weights::importance()).with_folders(&archive.path, 0);
    let makes_pass = |minutes: i64| {
        let now = served.web.clock().now() + TimeDelta::minutes(minutes);
        most_obsolete(store.state(), &credits, &choice, 20, now).unwrap();
        archive.path.join("state/due").exists()
    };
    assert!(!makes_pass(30) && makes_pass(90));
}

#[test]
fn a_share_of_the_budget_discovers() {
    let served = TestWeb::start(Config::plain(414, 3, 80));
    let archive = Archive::new();
    let mut options = everything(&served);
    options.extend(["--limit", "30", "--no-full-text"].map(str::to_owned));
    start(archive.crawl(&served.web.seeds(served.web.sites()), &options).args(clock(&served)))
        .wait()
        .succeeded();
    let known: BTreeSet<String> = visits(&archive.path).into_keys().collect();
    served.web.clock().advance(TimeDelta::days(9));
    let new = |fetched: BTreeSet<String>| fetched.difference(&known).count();
    assert_eq!(new(refresh(&served, &archive, &["--budget", "20"])), 0);
    served.web.clock().advance(TimeDelta::days(9));
    assert_eq!(new(refresh(&served, &archive, &["--budget", "20", "--discovery", "25%"])), 5);
    served.web.clock().advance(TimeDelta::days(9));
    assert!(new(refresh(&served, &archive, &["--budget", "20", "--discovery", "auto"])) > 0);
    run(&served, &archive, &["--budget", "9", "--discovery", "much"]).refused(2, &["not a share"]);
}

#[test]
fn a_refresh_of_a_query_fetches_only_its_pages() {
    let (served, archive) = crawled(lively(419, 3, 60));
    let watch = ["page", "--name", "all", "--every", "1d"].map(str::to_owned);
    archive.run("watch", &[&watch[..], &clock(&served)].concat()).succeeded();
    served.web.clock().advance(TimeDelta::days(9));
    let host = served.web.host_name(served.web.host_of(archive_testweb::PageIndex(0)));
    let query = format!("page host = \"{host}\"");
    let chosen: BTreeSet<String> = archive
        .json("query", &[&format!("{query} select url limit 100000")])
        .iter()
        .map(|row| row["url"].as_str().unwrap().to_owned())
        .collect();
    let with =
        |budget: &str, query: &str| refresh(&served, &archive, &["--budget", budget, "--where", query]);
    let some = with("5", &query);
    assert!(some.len() == 5 && some.is_subset(&chosen), "{some:?}");
    let rest = with("1000", &query);
    assert!(rest.len() > 5 && rest.is_subset(&chosen) && rest.is_disjoint(&some), "{rest:?}");
    assert_eq!(with("1000", &query).len(), 0);
    // What was left alone is due as before, and so is the report of the watch.
    let all = run(&served, &archive, &["--budget", "1000"]).succeeded();
    assert!(all.json().len() == 2, "{all:?}");
    // In a schedule, a query may match nothing today.
    run(&served, &archive, &["--budget", "5", "--where", "page status = 999"])
        .refused(0, &["no page matches", "nothing is due"]);
    run(&served, &archive, &["--budget", "5", "--where", "site pages > 1"]).refused(2, &["sites"]);
}
