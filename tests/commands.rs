//! The commands other than the crawl report what is true of the crawled web.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use archive_storage::{CaptureKind, Digest};
use archive_testweb::{Config, Form, PageIndex, SiteIndex};
use chrono::TimeDelta;
use serde_json::Value;

use crate::crawl::{everything, lively};
use crate::support::captures::assert_same;
use crate::support::program::start;
use crate::support::{Archive, TestWeb, captures};

/// Crawls a small web.
fn crawled(seed: u64) -> (TestWeb, Archive) {
    let served = TestWeb::start(Config { legacy_encoding_share: 0.3, ..lively(seed, 6, 200) });
    let archive = Archive::new();
    start(&mut archive.crawl(&served.web.seeds(2), &everything(&served))).wait().succeeded();
    (served, archive)
}

fn query(archive: &Archive, text: &str) -> Vec<Value> {
    archive.json("query", &[text])
}

fn strings(rows: &[Value], column: &str) -> Vec<String> {
    rows.iter().map(|row| row[column].as_str().unwrap().to_owned()).collect()
}

#[test]
fn queries_find_what_the_web_has() {
    let (served, archive) = crawled(91);
    let web = &served.web;
    let now = web.clock().now();

    let is_found = |page: &PageIndex| web.exists(*page, now) && web.allowed(*page);
    let pages: Vec<PageIndex> = (0..web.pages()).map(PageIndex).filter(is_found).collect();
    let xml = pages.iter().filter(|page| web.form(**page) == Form::Xml).map(|page| web.url(*page));
    let rows = query(&archive, "page type = xml and status = 200 limit 100000");
    let found = strings(&rows, "url").into_iter().filter(|url| web.page_of(url).is_some()).collect();
    assert_same(&found, &xml.collect(), "XML pages by query");

    let ranked =
        query(&archive, "page importance > 0 order by importance desc limit 50 select importance, url");
    let importance: Vec<f64> = ranked.iter().map(|row| row["importance"].as_f64().unwrap()).collect();
    assert!(importance.len() == 50 && importance.is_sorted_by(|a, b| a >= b), "{importance:?}");

    let sites = query(&archive, "site pages > 0 limit 100000");
    let expected: BTreeSet<String> = (0..web.sites()).map(|site| web.site_name(SiteIndex(site))).collect();
    assert_same(&strings(&sites, "site").into_iter().collect(), &expected, "sites by query");

    let host = web.host_name(web.host_of(pages[0]));
    let of_host = query(&archive, &format!("page host = \"{host}\" and status = 200 limit 100000"));
    let prefix = format!("http://{host}/");
    let of_host = strings(&of_host, "url");
    assert!(!of_host.is_empty() && of_host.iter().all(|url| url.starts_with(&prefix)), "{of_host:?}");
}

#[test]
fn a_page_is_found_by_its_words() {
    let (_served, archive) = crawled(92);
    let pages = query(&archive, "page type = html and status = 200 order by url limit 300 select url, title");
    let mut looked_for = 0;
    for page in pages.iter().step_by(pages.len().div_ceil(10)) {
        let (url, title) = (page["url"].as_str().unwrap(), page["title"].as_str().unwrap());
        let words: Vec<&str> =
            title.split(&[' ', ',', '–'][..]).filter(|word| word.len() > 2).take(2).collect();
        let text = format!("page text contains \"{}\" order by score desc limit 300", words.join(" "));
        let found = strings(&query(&archive, &text), "url");
        assert!(found.iter().any(|found| found == url), "{url} is not among {} for {text}", found.len());
        looked_for += 1;
    }
    assert!(looked_for >= 8);
}

#[test]
fn a_page_is_found_by_its_language() {
    let (_served, archive) = crawled(94);
    let pages =
        query(&archive, "page type = html and status = 200 order by url limit 300 select url, language");
    for page in pages.iter().step_by(pages.len().div_ceil(10)) {
        let (url, language) = (page["url"].as_str().unwrap(), page["language"].as_str().unwrap());
        let body = archive.run("get", &[url]).succeeded().output;
        let body = String::from_utf8_lossy(&body);
        assert!(
            body.contains(&format!("<html lang=\"{language}\"")),
            "{url} is not in {language}: {body:.300}"
        );
        let text = format!("page language = \"{language}\" limit 100000");
        assert!(strings(&query(&archive, &text), "url").iter().any(|found| found == url), "{text}: no {url}");
    }
}

#[test]
fn get_and_history_show_every_version() {
    let (served, archive) = crawled(93);
    let web = &served.web;
    let before = web.clock().now();
    web.clock().advance(TimeDelta::days(60));
    start(archive.command("refresh").args(["--budget", "100000", "--shortest", "0s"]).args(served.at_once()))
        .wait()
        .succeeded();
    let after = web.clock().now();

    // A page that changed according to the web, and whose changes are visible in its bytes.
    let pages = (0..web.pages()).map(PageIndex);
    let changed = pages.filter(|page| web.allowed(*page) && !web.noisy(*page)).find(|page| {
        web.exists(*page, before) && web.exists(*page, after) && !web.changes(*page, before, after).is_empty()
    });
    let url = web.url(changed.unwrap());
    let history = archive.json("history", &[&url]);
    assert_eq!(strings(&history, "kind"), ["response", "response"], "{history:?}");
    let digest = |arguments: &[&str]| {
        let text = start(archive.command("get").arg(&url).args(arguments)).wait().succeeded();
        Digest::sha256(&text.output).to_string()["sha256:".len()..][..32].to_owned()
    };
    let stated = strings(&history, "digest");
    let times = strings(&history, "time");
    assert_eq!(digest(&[]), stated[0], "the newest by default");
    assert_eq!(digest(&["--at", &times[1]]), stated[1], "the older by its time");
    assert_ne!(stated[0], stated[1]);

    let raw = start(archive.command("get").args([&url, "--raw"])).wait().succeeded().output;
    let head = start(archive.command("get").args([&url, "--headers"])).wait().succeeded().output;
    assert!(head.starts_with(b"HTTP/1.1 200 OK\r\nServer: testweb\r\n") && head.ends_with(b"\r\n\r\n"));
    assert!(raw.starts_with(&head) && raw.len() > head.len());

    let unchanged = captures(&archive.path).of_kind(CaptureKind::NotModified);
    let history = archive.json("history", &[&unchanged[0]]);
    assert_eq!(strings(&history, "kind"), ["not-modified", "response"]);
    let stats = &archive.json::<&str>("stats", &[])[0];
    let count = |name: &str| stats[name].as_u64().unwrap();
    let captured = captures(&archive.path);
    let all = ["captures", "errors", "robots", "failures"].map(count);
    assert_eq!(all.iter().sum::<u64>(), captured.count());
    let of_robots = captured.0.iter().filter(|(url, _)| url.ends_with("/robots.txt"));
    let of_robots: usize = of_robots.map(|(_, captures)| captures.len()).sum();
    assert_eq!(count("robots"), of_robots as u64);
}

#[test]
fn a_review_has_a_row_for_every_site_and_room_for_a_rating() {
    let (served, archive) = crawled(94);
    let export = |file: &Path| {
        let output = file.display().to_string();
        let arguments =
            ["review", "export", "--archive", &archive.path.display().to_string(), "--output", &output]
                .map(str::to_owned);
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_archive"));
        start(command.args(arguments)).wait().succeeded();
        std::fs::read_to_string(file).unwrap()
    };
    let table = export(&archive.folder().join("review.csv"));
    let mut reader = csv::Reader::from_reader(table.trim_start_matches('\u{feff}').as_bytes());
    let rows: Vec<BTreeMap<String, String>> = reader.deserialize().map(Result::unwrap).collect();
    assert_eq!(rows.len(), served.web.sites() as usize);
    for row in &rows {
        assert!(row["rating"].is_empty() && row["pages"].parse::<u64>().unwrap() > 0, "{row:?}");
        assert!(served.web.page_of(&row["sample_1_url"]).is_some(), "{row:?}");
    }
    let importance: Vec<f64> = rows.iter().map(|row| row["importance"].parse().unwrap()).collect();
    assert!(importance.is_sorted_by(|a, b| a >= b), "{importance:?}");

    let page = export(&archive.folder().join("review.html"));
    assert!(rows.iter().all(|row| page.contains(&row["site"])), "every site is on the page");
    for outside in ["src=\"http", "@import", "<link"] {
        assert!(!page.contains(outside), "the page needs nothing from elsewhere: {outside}");
    }
}

#[test]
fn the_demo_shows_the_whole_job() {
    let mut archive = Archive::new();
    archive.path = archive.folder().join("demo");
    let demo = || archive.run("demo", &["--pages", "120", "--hosts", "6"]);
    for _ in 0..2 {
        let text = demo().succeeded().text();
        for words in
            ["truth", "archive query", "refresh", "archive history", "review.html", "standard WARC files"]
        {
            assert!(text.contains(words), "'{words}' is not in: {text}");
        }
    }
    assert!(archive.verify() > 120);
    assert!(archive.path.join("review.html").exists());

    // It replaces nothing but a demo.
    let other = archive.folder().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("thesis.txt"), "three years of work").unwrap();
    archive.path = other.clone();
    archive.run::<&str>("demo", &[]).refused(1, &["is not the archive of a demo", "--archive"]);
    assert!(other.join("thesis.txt").exists());
}
