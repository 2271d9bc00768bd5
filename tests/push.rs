//! Awaited or announced pages come first: watches and their reports, publications, clusters.

use std::collections::BTreeSet;
use std::fs;

use archive_storage::address::surt;
use archive_testweb::{Config, Form, PageIndex};
use archive_web::parse::{DocumentKind, FetchedDocument, ParseLimits, parse};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use url::Url;

use crate::change::{clock, crawled, visits};
use crate::crawl::lively;
use crate::support::captures::assert_same;
use crate::support::program::{Finished, start};
use crate::support::served::{Served, ask};
use crate::support::{Archive, TestWeb};

fn run(archive: &Archive, served: &TestWeb, command: &str, arguments: &[&str]) -> Finished {
    start(archive.command(command).args(arguments).args(clock(served))).wait()
}

fn refresh(archive: &Archive, served: &TestWeb, budget: &str) -> Finished {
    let mut command = archive.command("refresh");
    command.args(["--budget", budget, "--outputs"]).arg(archive.folder());
    start(command.args(served.at_once()).args(clock(served))).wait().succeeded()
}

/// Returns the HTML pages that changed in a period, according to the web.
fn changed(served: &TestWeb, archive: &Archive, from: DateTime<Utc>, to: DateTime<Utc>) -> BTreeSet<String> {
    let web = &served.web;
    let has_changed = |page: PageIndex| {
        // A copy changes with its original.
        let page = web.original(page).map_or(page, |(original, _)| original);
        !web.changes(page, from, to).is_empty()
    };
    let urls = visits(&archive.path).into_keys();
    let is_meant = |page: PageIndex| web.form(page) == Form::Html && has_changed(page);
    urls.filter(|url| web.page_of(url).is_some_and(is_meant)).collect()
}

fn news(report: &Value) -> BTreeSet<String> {
    let news = report["news"].as_array().unwrap();
    news.iter().map(|page| page["url"].as_str().unwrap().to_owned()).collect()
}

/// A web in which pages change only by their own changes.
fn steady(seed: u64) -> Config {
    Config {
        birth_share: 0.0,
        death_share: 0.0,
        redirect_share: 0.0,
        broken_share: 0.0,
        ..lively(seed, 4, 150)
    }
}

#[test]
fn a_due_watch_is_served_and_reports_changes() {
    let (served, archive) = crawled(steady(301));
    // The program's clock runs ahead of the web's by the duration of the crawl, some seconds.
    served.web.clock().advance(TimeDelta::minutes(10));
    let begun = served.web.clock().now();
    let query = "page type = html and status = 200 limit 1000";
    let feed = archive.folder().join("changes.atom");
    let output = feed.to_str().unwrap();
    let added = ["--every", "week", "--name", "all", "--format", "atom", "--output", output, query];
    run(&archive, &served, "watch", &added).succeeded();
    run(&archive, &served, "watch", &added).refused(1, &["there is a watch 'all' already"]);
    run(&archive, &served, "watch", &["page colour = red"]).refused(2, &["colour"]);
    run(&archive, &served, "watch", &["site importance > 1"]).refused(2, &["select their pages"]);

    served.web.clock().advance(TimeDelta::days(3));
    let early = refresh(&archive, &served, "5");
    assert!(early.output.is_empty() && !feed.exists(), "no report is due yet");

    // If the budget is too small, the report waits.
    served.web.clock().advance(TimeDelta::days(5));
    let few = refresh(&archive, &served, "20");
    assert!(few.errors.contains("the report of 'all' waits for"), "{}", few.errors);
    assert!(!feed.exists());
    let again = refresh(&archive, &served, "20");
    assert!(again.errors.contains("the report of 'all' waits for"), "{}", again.errors);
    let waits = |run: &Finished| -> u32 {
        let (_, after) = run.errors.split_once("waits for ").unwrap();
        after.split(' ').next().unwrap().parse().unwrap()
    };
    assert_eq!(waits(&again) + 20, waits(&few), "the second run continues where the first one ended");
    let enough = refresh(&archive, &served, "1000");
    assert!(!enough.errors.contains("waits"), "{}", enough.errors);
    let text = |format: &str| {
        let mut command = archive.command("watch");
        let mut arguments = vec!["report".to_owned(), "all".to_owned()];
        arguments.extend(["--format".to_owned(), format.to_owned()]);
        // The archive is an option of the subcommand.
        command = std::process::Command::new(command.get_program());
        command.args(arguments).arg("--archive").arg(&archive.path);
        let mut whole = std::process::Command::new(command.get_program());
        whole.arg("watch").args(command.get_args());
        start(&mut whole).wait().succeeded().text()
    };
    let report: Value = serde_json::from_str(&text("json")).unwrap();
    let now = served.web.clock().now();
    let expected = changed(&served, &archive, begun, now);
    assert!(expected.len() > 5, "{} pages changed", expected.len());
    assert_same(&news(&report), &expected, "pages in the report");
    for page in report["news"].as_array().unwrap() {
        assert_eq!(
            (page["news"].as_str(), page["difference"]["kind"].as_str()),
            (Some("changed"), Some("text"))
        );
    }
    assert_eq!(report["not_fetched"], 0);
    let shown = text("text");
    assert!(
        shown.starts_with(&format!("all: {} of {} pages changed", expected.len(), report["pages"])),
        "{shown}"
    );
    assert!(expected.iter().all(|url| shown.contains(&format!("changed  {url}"))));

    // The project's own parser accepts the feed, too.
    let atom = fs::read(&feed).unwrap();
    assert_eq!(String::from_utf8_lossy(&atom), text("atom"));
    let base = Url::parse("http://feed.example/").unwrap();
    let source = FetchedDocument {
        url: &base,
        status: 200,
        content_type: Some("application/atom+xml"),
        headers: &[],
        body: &atom,
    };
    let parsed = parse(&source, &ParseLimits::default());
    assert_eq!((parsed.kind, parsed.problems.as_slice()), (DocumentKind::Feed, &[][..]));
    assert_eq!(parsed.entries.len(), expected.len());
    let links = parsed.links.iter().map(|link| link.url.clone()).filter(|url| url != "http://feed.example/");
    assert!(expected.is_subset(&links.collect()));

    // The browser shows the same, except for what is hidden meanwhile.
    let hidden = expected.first().unwrap();
    let rule = format!("[[rule]]\nprefix = \"{}\"\n", surt(hidden));
    fs::write(archive.path.join("access.toml"), rule).unwrap();
    let browser = Served::of(&archive);
    let get = |path: &str| {
        let answer = ask(&browser.application, "GET", path, &[]);
        (answer.status, String::from_utf8(answer.body).unwrap())
    };
    assert!(get("/watches").1.contains("href=\"/watches/all.atom\""));
    let (_, reported) = get("/watches/all?format=json");
    let reported = news(&serde_json::from_str(&reported).unwrap());
    assert!(!reported.contains(hidden) && reported.len() + 1 == expected.len(), "{reported:?}");
    let (status, feed) = get("/watches/all.atom");
    assert_eq!((status, feed.matches("<entry>").count()), (200, reported.len()));
    assert!(!feed.contains(&format!("\"{hidden}\"")) && get("/watches/all").1.contains("changed: "));
    assert_eq!(["/watches/none", "/watches/../all", "/watches/"].map(|path| get(path).0), [404; 3]);
    fs::remove_file(archive.path.join("access.toml")).unwrap();

    // Nothing is reported twice; the next report begins where this one ended.
    let again = refresh(&archive, &served, "10");
    assert!(again.output.is_empty());
    served.web.clock().advance(TimeDelta::days(30));
    refresh(&archive, &served, "1000");
    let second: Value = serde_json::from_str(&text("json")).unwrap();
    assert_eq!(second["since"], report["until"]);
    assert_same(
        &news(&second),
        &changed(&served, &archive, now, served.web.clock().now()),
        "pages in the second report",
    );
}

#[test]
fn reports_without_a_file_are_printed_and_can_be_made_at_once() {
    let (served, archive) = crawled(steady(302));
    served.web.clock().advance(TimeDelta::minutes(10));
    let begun = served.web.clock().now();
    let host = served.web.host_name(served.web.host_of(PageIndex(0)));
    let query = format!("page host = \"{host}\" and type = html limit 1000");
    run(&archive, &served, "watch", &["--every", "day", "--name", "host", &query]).succeeded();
    let watch = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_archive"));
        command.arg("watch").args(arguments).arg("--archive").arg(&archive.path);
        start(command.env_remove("ARCHIVE_DIR")).wait()
    };
    let listed = watch(&["list", "--json"]).succeeded().json();
    assert_eq!(
        (listed[0]["name"].as_str(), listed[0]["query"].as_str()),
        (Some("host"), Some(query.as_str()))
    );
    assert!(watch(&["report", "host"]).succeeded().errors.contains("no report of 'host' yet"));

    served.web.clock().advance(TimeDelta::days(20));
    let connection = served.connection();
    let at = clock(&served);
    let mut arguments = vec!["report", "host", "--now", "--format", "json", "--delay", "0"];
    arguments.extend(connection.iter().chain(&at).map(String::as_str));
    let report = watch(&arguments).succeeded().json().remove(0);
    let of_host = |urls: BTreeSet<String>| -> BTreeSet<String> {
        urls.into_iter().filter(|url| url.contains(&format!("//{host}/"))).collect()
    };
    let expected = of_host(changed(&served, &archive, begun, served.web.clock().now()));
    assert!(!expected.is_empty());
    assert_same(&news(&report), &expected, "pages in a report made at once");

    served.web.clock().advance(TimeDelta::days(20));
    let refreshed = refresh(&archive, &served, "1000");
    assert!(refreshed.text().starts_with("host: "), "{}", refreshed.text());
    watch(&["remove", "host"]).succeeded();
    assert!(watch(&["list", "--json"]).succeeded().output.is_empty());
    watch(&["remove", "host"]).refused(1, &["there is no watch 'host'"]);
}

#[test]
fn announced_pages_are_fetched_first_and_clusters_together() {
    let (served, archive) = crawled(steady(303));
    let capture_counts = || -> std::collections::BTreeMap<String, u32> {
        visits(&archive.path).into_iter().map(|(url, (_, visit))| (url, visit.captures)).collect()
    };
    let first = capture_counts();
    served.web.clock().advance(TimeDelta::days(5));
    let pages: Vec<String> =
        first.keys().filter(|url| served.web.page_of(url).is_some()).step_by(9).take(12).cloned().collect();
    let new = format!("{}never-seen-before", served.web.seeds(1)[0]);
    let publish = |arguments: &[&str]| {
        let mut arguments = arguments.to_vec();
        arguments.push("--json");
        run(&archive, &served, "publish", &arguments).succeeded().json().remove(0)
    };
    let outcome = publish(&[&pages[0], &pages[1], &new]);
    assert_eq!((outcome["queued"].as_u64(), outcome["waiting"].as_u64()), (Some(3), Some(0)));
    let host = Url::parse(&pages[2]).unwrap().host_str().unwrap().to_owned();
    let indexnow = serde_json::json!({ "host": host, "key": "k", "urlList": [&pages[2]] });
    let file = archive.file("announcement.json", indexnow.to_string());
    assert_eq!(publish(&["--file", file.to_str().unwrap()])["queued"], 1);
    assert_eq!(publish(&[&pages[1]])["waiting"], 1);
    let waiting = || run(&archive, &served, "publish", &["--waiting"]).succeeded().text();
    let rebuilt = || archive.run::<&str>("rebuild", &[]).succeeded();
    let before = waiting();
    assert_eq!(before.lines().count(), 4);
    rebuilt();
    assert_eq!(waiting(), before);
    run(&archive, &served, "publish", &["ftp://a.test/"]).refused(2, &["not an http or https URL"]);

    // Half of the budget is enough for all four.
    refresh(&archive, &served, "8");
    let second = capture_counts();
    for url in &pages[..3] {
        assert_eq!(second[url], first[url] + 1, "{url}");
    }
    assert_eq!(second[&new], 1);
    assert_eq!(waiting(), "");
    rebuilt();
    assert_eq!(waiting(), "", "they were fetched");

    // If one page of a cluster is announced, all of it is fetched.
    let cluster = archive.file("cluster.txt", pages[4..10].join("\n"));
    publish(&["--file", cluster.to_str().unwrap(), "--cluster", "catalogue"]);
    served.web.clock().advance(TimeDelta::days(5));
    refresh(&archive, &served, "100");
    let third = capture_counts();
    served.web.clock().advance(TimeDelta::days(1));
    publish(&[&pages[6]]);
    refresh(&archive, &served, "12");
    let fourth = capture_counts();
    for url in &pages[4..10] {
        assert_eq!(fourth[url], third[url] + 1, "{url} of the cluster");
    }

    // If a cluster does not fit into the budget, other pages use it.
    for budget in [8_u64, 9, 10, 11, 12] {
        served.web.clock().advance(TimeDelta::days(1));
        let mut command = archive.command("refresh");
        command.args(["--json", "--budget", &budget.to_string()]).args(served.at_once());
        let summary = start(command.args(clock(&served))).wait().succeeded().json().remove(0);
        let pages = summary["captures"].as_u64().unwrap() - summary["parts"].as_u64().unwrap();
        assert_eq!(pages, budget, "{summary}");
    }
}

#[test]
fn pages_out_of_scope_cannot_be_announced() {
    let served = TestWeb::start(steady(304));
    let archive = Archive::new();
    let seeds = served.web.seeds(1);
    let mut command = archive.crawl(&seeds, &served.at_once());
    start(command.args(["--scope", "host"]).args(clock(&served))).wait().succeeded();
    let outside = "http://elsewhere.example/page";
    let inside = format!("{}new", seeds[0]);
    let outcome =
        run(&archive, &served, "publish", &["--json", outside, &inside]).succeeded().json().remove(0);
    assert_eq!(outcome["out_of_scope"], serde_json::json!([outside]));
    assert_eq!(outcome["queued"], 1);
    // A crawl fetches announced pages, too.
    let before = served.server.requests();
    let mut command = archive.crawl(&seeds, &served.at_once());
    start(command.args(["--scope", "host"]).args(clock(&served))).wait().succeeded();
    assert_eq!(served.server.requests(), before + 1);
    assert_eq!(visits(&archive.path)[&inside].1.captures, 1);
}
