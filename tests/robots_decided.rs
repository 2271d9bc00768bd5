//! What becomes of robots.txt by people's decision: what is fetched all the same says so, and only that.

use serde_json::Value;

use crate::sessions::exported;
use crate::support::Archive;
use crate::support::answers::{Answers, html, nothing, plain, whole};
use crate::support::program::{Finished, start};

const HOST: &str = "http://deposit.test";

/// A web whose `deposit.test` forbids its papers and pictures, and whose `silent.test` has no robots.txt to be had.
fn web() -> Answers {
    Answers::start(|host, path| match (host, path) {
        ("silent.test", "/robots.txt") => whole(501, "", b""),
        (_, "/robots.txt") => plain("User-agent: *\nDisallow: /papers\nDisallow: /pictures"),
        (_, "/") => {
            html("<title>front</title><a href=/papers/1>1</a><img src=/pictures/1.png><a href=/open>o</a>")
        }
        (_, "/papers/1") => html("<title>paper</title><img src=/pictures/2.png>"),
        (_, "/open") => html("<title>open</title>"),
        (_, "/pictures/1.png" | "/pictures/2.png") => whole(200, "Content-Type: image/png\r\n", b"png"),
        _ => nothing(),
    })
}

fn crawl(archive: &Archive, server: &Answers, more: &[&str]) -> Finished {
    let options: Vec<String> =
        server.at_once().into_iter().chain(more.iter().map(|text| (*text).to_owned())).collect();
    start(&mut archive.crawl(&[format!("{HOST}/")], &options)).wait()
}

fn decide(archive: &Archive, subject: &str, robots: &str) {
    let said = ["--robots", robots, "--reason", "legal deposit", "--by", "anna"];
    archive.run("review set", &[&[subject], &said[..]].concat()).succeeded();
}

/// URLs that were fetched although robots.txt forbids them, by a query.
fn ignored(archive: &Archive) -> Vec<String> {
    let rows = archive.json("query", &["captures robots = ignored select url order by url"]);
    rows.iter().map(|row| row["url"].as_str().unwrap().trim_start_matches(HOST).to_owned()).collect()
}

fn why(archive: &Archive, path: &str) -> Value {
    archive.json("why", &[&format!("{HOST}{path}")]).remove(0)
}

#[test]
fn a_decision_lets_in_what_robots_txt_forbids_until_it_is_withdrawn() {
    let (server, archive) = (web(), Archive::new());
    crawl(&archive, &server, &[]).succeeded();
    assert_eq!(why(&archive, "/papers/1")["refusal"], "robots");
    assert!(ignored(&archive).is_empty());

    decide(&archive, "deposit.test", "ignore");
    server.take_asked();
    crawl(&archive, &server, &[]).succeeded();
    assert_eq!(ignored(&archive), ["/papers/1", "/pictures/1.png", "/pictures/2.png"]);
    // It is asked for and kept all the same.
    let robots = archive.json("history", &[&format!("{HOST}/robots.txt")]);
    assert!(!robots.is_empty());
    let story = why(&archive, "/papers/1");
    let origin = story["last_fetch"]["robots_ignored"].as_str().unwrap();
    assert!(origin.starts_with("decision of anna on 20") && origin.ends_with(": legal deposit"), "{origin}");
    assert_eq!(story["robots"]["allowed"], false);
    let decided = story["decided"].as_str().unwrap();
    assert!(decided.contains("robots.txt ignored by anna (legal deposit)"), "{decided}");
    let said = archive.run("why", &[&format!("{HOST}/papers/1")]).succeeded().text();
    assert!(said.contains("fetched though robots.txt forbids it: decision of anna on 20"), "{said}");
    let records = exported(&archive);
    assert_eq!(records.matches("robotsIgnored: decision of anna on 20").count(), 3, "{records}");
    assert_eq!(why(&archive, "/open")["last_fetch"]["robots_ignored"], Value::Null);

    archive.run("review undo", &["1", "--by", "anna"]).succeeded();
    server.take_asked();
    let options = server.at_once();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let refresh = [&["--budget", "100", "--clock", "2040-01-01T00:00:00Z"], &options[..]].concat();
    archive.run("refresh", &refresh).succeeded();
    let asked = server.take_asked();
    assert!(asked.contains(&"deposit.test/open".to_owned()), "{asked:?}");
    assert!(!asked.iter().any(|url| url.contains("/papers") || url.contains("/pictures")), "{asked:?}");
    archive.verify();
}

#[test]
fn a_decision_may_be_for_parts_of_pages_only() {
    let (server, archive) = (web(), Archive::new());
    crawl(&archive, &server, &["--limit", "1"]).succeeded();
    decide(&archive, "host:deposit.test", "parts");
    crawl(&archive, &server, &[]).succeeded();
    assert_eq!(ignored(&archive), ["/pictures/1.png"]);
    assert_eq!(why(&archive, "/papers/1")["refusal"], "robots");
}

#[test]
fn a_run_may_ignore_robots_txt_except_where_somebody_decided() {
    let (server, archive) = (web(), Archive::new());
    crawl(&archive, &server, &["--robots", "ignore", "--limit", "1"]).succeeded();
    assert_eq!(ignored(&archive), ["/pictures/1.png"]);
    let origin = "option --robots of the run";
    assert_eq!(why(&archive, "/pictures/1.png")["last_fetch"]["robots_ignored"], origin);
    decide(&archive, "http://deposit.test/papers/", "obey");
    crawl(&archive, &server, &["--robots", "ignore"]).succeeded();
    assert_eq!(ignored(&archive), ["/pictures/1.png"]);
    // Without decisions, none is obeyed, and the option holds for all.
    crawl(&archive, &server, &["--robots", "ignore", "--no-decisions"]).succeeded();
    assert_eq!(ignored(&archive), ["/papers/1", "/pictures/1.png", "/pictures/2.png"]);
}

#[test]
fn a_host_whose_robots_txt_cannot_be_had_is_asked_by_decision() {
    let (server, archive) = (web(), Archive::new());
    let seeds = ["http://silent.test/".to_owned()];
    let options = server.at_once();
    start(
        &mut archive.crawl(&seeds, &[&options[..], &["--robots".to_owned(), "ignore".to_owned()]].concat()),
    )
    .wait()
    .succeeded();
    let rows = archive.json("query", &["pages robots = ignored and type = html select title"]);
    assert_eq!(rows.len(), 3, "{rows:?}");
}
