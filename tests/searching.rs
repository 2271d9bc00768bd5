//! `archive search`, as people type: what is found, in which order, and what is said where nothing is.

use serde_json::Value;

use crate::support::pages::PageServer;
use crate::support::program::{Finished, start};
use crate::support::{Archive, TestWeb};

/// A small site: a page on opening hours in two places, one that links to them, one in French, and a document without text.
fn library() -> Archive {
    let page = |title: &str, body: &str| {
        ("text/html", format!("<html lang=en><title>{title}</title>{body}</html>").into_bytes())
    };
    let hours = page("Library", "<h1>Opening hours</h1><p>The reading room is open on weekdays.");
    let start_page = page(
        "Start",
        "<p>Welcome to the library. <a href=/hours>Hours</a> <a href=/hours.html>Hours</a> \
         <a href=/plan.bin>Floor plan</a> <a href=/fr>français</a>",
    );
    let french = (
        "text/html",
        "<html lang=fr><title>Horaires</title><p>La salle de lecture est ouverte. \u{1b}[31m"
            .to_owned()
            .into_bytes(),
    );
    let pages = [
        ("/", start_page),
        ("/hours", hours.clone()),
        ("/hours.html", hours),
        ("/fr", french),
        ("/plan.bin", ("application/octet-stream", vec![0, 1, 2])),
    ];
    let server = PageServer::start(pages.into_iter().map(|(path, page)| (path.to_owned(), page)).collect());
    let archive = Archive::new();
    let seeds = ["http://h.test/ scope=host".to_owned()];
    start(&mut archive.crawl(&seeds, &server.options())).wait().succeeded();
    archive
}

fn search(archive: &Archive, arguments: &[&str]) -> Finished {
    start(archive.command("search").args(arguments)).wait()
}

fn found(archive: &Archive, arguments: &[&str]) -> Vec<Value> {
    search(archive, &[arguments, &["--json"]].concat()).succeeded().json()
}

fn urls(archive: &Archive, arguments: &[&str]) -> Vec<String> {
    found(archive, arguments).iter().map(|hit| hit["url"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_is_typed_is_found() {
    let archive = library();
    let hits = found(&archive, &["opening", "hours"]);
    let first = &hits[0];
    // Equal pages are one result.
    let mut both = vec![first["url"].as_str().unwrap(), first["also"][0].as_str().unwrap()];
    both.sort_unstable();
    assert_eq!(both, ["http://h.test/hours", "http://h.test/hours.html"]);
    assert!(first["snippet"].as_str().unwrap().contains("Opening hours"), "{first}");
    assert_eq!((first["title"].as_str(), first["all_words"].as_bool()), (Some("Library"), Some(true)));
    for (typed, expected) in [
        (&["\"reading room\""][..], &["http://h.test/hours"][..]),
        (&["\"room reading\""], &[]),
        (&["welcome"], &["http://h.test/"]),
        (&["library", "-welcome", "site:h.test"], &["http://h.test/hours"]),
        (&["library", "site:other.test"], &[]),
        (&["lecture", "language:fr"], &["http://h.test/fr"]),
        (&["library", "language:fr"], &[]),
        (&["library", "before:2000"], &[]),
        (&["library", "type:pdf"], &[]),
        // What only a link says, of what has no text.
        (&["floor", "plan"], &["http://h.test/plan.bin"]),
        (&["welcome", "reading", "--all"], &[]),
    ] {
        let mut found = urls(&archive, typed);
        found.truncate(expected.len().max(1));
        let expected: Vec<&str> = expected.to_vec();
        let is_expected =
            found == expected || expected == ["http://h.test/hours"] && found == ["http://h.test/hours.html"];
        assert!(is_expected, "{typed:?}: {found:?}");
    }
    let partly = search(&archive, &["welcome", "reading"]).succeeded();
    assert!(partly.errors.contains("no page has all these words"), "{}", partly.errors);
    let facets = found_facets(&archive);
    assert_eq!(facets["language"][0][0], "en");
}

fn found_facets(archive: &Archive) -> Value {
    let lines = found(archive, &["library", "lecture", "--facets"]);
    lines
        .into_iter()
        .filter(|line| line["facet"].is_string())
        .map(|line| (line["facet"].as_str().unwrap().to_owned(), line["counts"].clone()))
        .collect()
}

#[test]
fn what_is_not_found_is_explained() {
    let archive = library();
    let nothing = search(&archive, &["openning"]).succeeded();
    assert!(
        nothing.errors.contains("no page says \"openning\"; did you mean \"opening\"?"),
        "{}",
        nothing.errors
    );
    assert!(nothing.errors.contains("nothing was found"), "{}", nothing.errors);
    search(&archive, &["room", "type:page"]).refused(2, &["column 6", "there is no type `page`", "html"]);
    search(&archive, &["\"room"]).refused(2, &["column 1", "has no end"]);
    search(&archive, &["room", "--limit", "0"]).refused(2, &["1 to 1000"]);
    let terminal = search(&archive, &["lecture"]).succeeded().text();
    assert!(!terminal.contains('\u{1b}'), "{terminal}");

    let served = TestWeb::start(crate::crawl::lively(7, 1, 10));
    let without = Archive::new();
    let mut options = served.at_once();
    options.push("--no-full-text".to_owned());
    start(&mut without.crawl(&served.web.seeds(served.web.sites()), &options)).wait().succeeded();
    search(&without, &["room"]).refused(1, &["no full-text index"]);
}
