//! Queries that have no answer say why, and times mean what they say.

use serde_json::json;

use crate::imports::import;
use crate::support::Archive;
use crate::support::warc::{answer, response};

const URL: &str = "http://a.test/";

/// Returns an archive of a page that was a page, then a redirect, then a page again, and of one that is gone.
fn moved() -> Archive {
    let archive = Archive::new();
    let files = [
        response("urn:test:1", URL, "2026-01-03T10:00:00.25Z", "<title>one</title><h1>opening hours</h1>"),
        answer(
            "urn:test:2",
            URL,
            "2026-02-03T10:00:00.5Z",
            &[],
            "HTTP/1.1 301 Moved\r\nLocation: /b\r\n\r\n",
        ),
        response("urn:test:3", URL, "2026-03-03T10:00:00.75Z", "<title>two</title><h1>opening hours</h1>"),
        response("urn:test:4", "http://a.test/b", "2026-01-03T10:00:00.25Z", "<p>opening hours"),
        answer(
            "urn:test:5",
            "http://a.test/b",
            "2026-03-03T10:00:00Z",
            &[],
            "HTTP/1.1 404 Not Found\r\n\r\n",
        ),
    ];
    let file = archive.file("a.warc", files.concat());
    archive.run("import", &[file.to_str().unwrap(), "--index-versions"]).succeeded();
    archive
}

fn urls(archive: &Archive, query: &str) -> Vec<String> {
    archive.json("query", &[query]).iter().map(|row| row["url"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_page_says_what_stood_there_that_day() {
    let archive = moved();
    let said = |as_of: &str| {
        urls(&archive, &format!("page text contains \"opening hours\" {as_of} order by url select url"))
    };
    assert_eq!(said("as of 2026-01-31"), [URL, "http://a.test/b"]);
    assert_eq!(said("as of 2026-02-10"), ["http://a.test/b"], "the other one redirects");
    assert_eq!(said("as of 2026-03-31"), [URL], "the other one is gone");
    assert_eq!(said(""), [URL]);
}

#[test]
fn times_of_pages_and_captures_are_compared_by_the_second() {
    let archive = moved();
    for query in [
        "capture url = \"http://a.test/\" and time > page.first seen",
        "capture url = \"http://a.test/\" and time > page.first_seen",
        "capture url = \"http://a.test/\" and page.first seen < time",
        "capture url = \"http://a.test/\" and not time = page.first_seen",
    ] {
        assert_eq!(urls(&archive, &format!("{query} select url")).len(), 2, "{query}");
    }
    let first = "capture time = page.first seen and time < page.last_seen select url, time";
    assert_eq!(archive.json("query", &[first]).len(), 1);
    assert_eq!(urls(&archive, "page last seen > first seen + 40 days select url"), [URL]);
    assert_eq!(urls(&archive, "page last answer > first seen + 40 days select url").len(), 2);
}

#[test]
fn what_is_only_known_today_is_refused_as_of_a_day() {
    let archive = moved();
    for query in [
        "site importance > 1 as of 2026-01-31",
        "site pages > 0 as of 2026-01-31 order by importance",
        "page captures > 0 as of 2026-01-31 select url, importance",
        "page site.importance > 1 as of 2026-01-31",
    ] {
        archive.run("query", &[query]).refused(2, &["importance` is not known as of another time"]);
    }
    // What is shown without being asked for is only what is known.
    let site = archive.json("query", &["site as of 2026-01-31"]).remove(0);
    assert_eq!((&site["site"], site.get("importance")), (&json!("a.test"), None), "{site}");
    assert!(archive.json("query", &["page as of 2026-01-31"])[0].get("importance").is_none());
}

#[test]
fn a_query_that_cannot_be_right_says_what_to_write() {
    let archive = moved();
    archive.run("query", &["site importance > x"]).refused(
        2,
        &["`importance` is a number, but x is text", "write a number or a field, as in `importance > 2`"],
    );
    for options in
        [&["page //h1 contains hours"][..], &["page //h1 contains hours", "--json"], &["page //h1", "--csv"]]
    {
        let finished = archive.run("query", options).succeeded();
        assert!(
            finished.errors.contains("XML documents and feeds; HTML pages are found by `text contains`"),
            "{finished:?}"
        );
    }
    // A query that finds something says nothing more.
    let xml = answer(
        "urn:test:x",
        "http://a.test/x.xml",
        "2026-01-03T10:00:00Z",
        &[],
        "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n\r\n<?xml version='1.0'?><h1>hours</h1>",
    );
    import(&archive, &[("x.warc", xml)]);
    let finished = archive.run("query", &["page //h1 contains hours"]).succeeded();
    assert!(finished.text().contains("x.xml") && !finished.errors.contains("XML documents"), "{finished:?}");
}
