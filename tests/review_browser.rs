//! Reviewing in a real browser: by keys, by buttons without script, by two people at once; and what is refused.

use serde_json::Value;

use crate::imports::import;
use crate::support::Archive;
use crate::support::browser::Browser;
use crate::support::served::{Served, ask};
use crate::support::warc::response;

const DOWN: char = '\u{e015}';
const UP: char = '\u{e013}';
const ENTER: char = '\u{e007}';

const DAY: &str = "2026-01-03T03:03:21Z";

/// Sites, each with a page.
fn sites(count: usize) -> Archive {
    let pages: Vec<Vec<u8>> = (0..count)
        .map(|site| {
            let page = format!("<title>Site {site}</title><p>About {site}.</p>");
            response(&format!("{site}"), &format!("http://site{site:02}.org/"), DAY, &page)
        })
        .collect();
    let archive = Archive::new();
    import(&archive, &[("sites.warc", pages.concat())]);
    archive
}

fn decisions(archive: &Archive) -> Vec<(String, String, Value)> {
    let log = archive.json("review log", &[""; 0]);
    let said = |line: &Value| {
        let said = &line["what"]["said"];
        let site = said["on"]["site"].as_str().unwrap_or_default().to_owned();
        let what = if said["rating"].is_null() { said["verdict"].clone() } else { said["rating"].clone() };
        (line["by"].as_str().unwrap().to_owned(), site, what)
    };
    log.iter().map(said).collect()
}

#[test]
fn twenty_sites_are_rated_by_keys() {
    let archive = sites(20);
    let served = Served::with(&archive, &["--review", "--by", "anna"]);
    let Some(browser) = Browser::start(true) else { return };
    let home = format!("http://{}", served.application);
    browser.go(&format!("{home}/review"));
    browser.wait_for("aria-current=\"true\"");
    for (number, key) in "1234kdonk1234d".chars().enumerate() {
        browser.press(&key.to_string());
        let said = format!("anna {key}");
        let verdict = [('k', "keep"), ('d', "drop"), ('o', "often"), ('n', "never")];
        let said = verdict
            .iter()
            .find(|(letter, _)| *letter == key)
            .map_or(said, |(_, name)| format!("{name} (anna)"));
        // Each goes on to the next row when it is written down.
        let begun = std::time::Instant::now();
        while browser.source().matches("(anna)").count() + browser.source().matches(">anna ").count()
            <= number
        {
            assert!(begun.elapsed().as_secs() < 60, "{said} was not written down");
        }
    }
    let made = decisions(&archive);
    assert_eq!(made.len(), 14);
    assert_eq!(made.iter().map(|(_, site, _)| site).collect::<std::collections::BTreeSet<_>>().len(), 14);
    // The others one by one.
    for number in 0..6 {
        browser.go(&format!("{home}/review"));
        browser.wait_for("aria-current=\"true\"");
        browser.press(&ENTER.to_string());
        browser.wait_for("Pages to look at");
        browser.wait_for("class=\"preview\"");
        browser.press("3");
        browser.wait_for("anna 3");
        assert_eq!(decisions(&archive).len(), 15 + number);
    }
    browser.go(&format!("{home}/review"));
    browser.wait_for("No site waits for a review.");
    assert_eq!(archive.json("query", &["site rating is not empty or verdict is not empty"]).len(), 20);
}

#[test]
fn two_people_decide_at_once_and_one_takes_it_back() {
    let archive = sites(3);
    let served = Served::with(&archive, &["--review", "--by", "anna"]);
    let (Some(anna), Some(ben)) = (Browser::start(true), Browser::start(true)) else { return };
    let list = |by: &str| format!("http://{}/review?by={by}", served.application);
    for (browser, name) in [(&anna, "anna"), (&ben, "ben")] {
        browser.go(&list(name));
        browser.wait_for("aria-current=\"true\"");
    }
    anna.press(&format!("{DOWN}{DOWN}{UP}4"));
    anna.wait_for("anna 4");
    ben.press(&format!("{DOWN}1"));
    ben.wait_for("anna decided on");
    assert_eq!(decisions(&archive).len(), 1, "nothing is written over what was not seen");
    ben.go(&format!("{}&show=second", list("ben")));
    ben.wait_for("aria-current=\"true\"");
    ben.press("1");
    ben.wait_for("anna 4, ben 1");
    anna.go(&format!("{}&show=mine", list("anna")));
    anna.wait_for("aria-current=\"true\"");
    anna.press("u");
    anna.wait_for(">ben 1<");
    let log = archive.json("review log", &[""; 0]);
    assert_eq!((log.len(), &log[0]["undone"], &log[2]["what"]["undoes"]), (3, &true.into(), &1.into()));
}

#[test]
fn buttons_work_without_script() {
    let archive = sites(2);
    let served = Served::with(&archive, &["--review", "--by", "anna", "--blind"]);
    let Some(browser) = Browser::start(false) else { return };
    browser.go(&format!("http://{}/review", served.application));
    browser.click("button[value='2']");
    browser.wait_for("You decide as");
    let made = decisions(&archive);
    assert_eq!((made[0].0.as_str(), &made[0].2), ("anna", &2.into()));
    let page = format!("http://{}/review/site?name={}", served.application, made[0].1);
    archive.run("review set", &[&made[0].1, "--rating", "3", "--by", "ben"]).succeeded();
    browser.go(&format!("{page}&by=carl"));
    assert!(browser.source().contains("rated by others") && !browser.source().contains("anna 2"));
    browser.click("button[value='4']");
    browser.wait_for("anna 2, ben 3, carl 4");
    // What was seen is older than ben's word.
    browser.go(&page);
    archive.run("review set", &[&made[0].1, "--verdict", "drop", "--by", "ben"]).succeeded();
    browser.click("button[value='keep']");
    browser.wait_for("ben decided on");
    browser.click("main form button");
    browser.wait_for("keep (anna)");
}

#[test]
fn forms_of_other_pages_are_refused() {
    let archive = sites(1);
    let form = |served: &Served, origin: &str, body: &str| {
        let length = format!("Content-Length: {}", body.len());
        let kind = "Content-Type: application/x-www-form-urlencoded";
        let mut fields = vec![length.as_str(), kind];
        let origin = format!("Origin: {origin}");
        if origin.len() > 8 {
            fields.push(&origin);
        }
        ask_with(&served.application, "/review/decide", &fields, body)
    };
    let reading = Served::with(&archive, &[]);
    assert_eq!(form(&reading, &format!("http://{}", reading.application), "site=site00.org&rating=4"), 405);
    assert_eq!(ask(&reading.application, "GET", "/review", &[]).status, 404);
    let served = Served::with(&archive, &["--review"]);
    let own = format!("http://{}", served.application);
    let replay = format!("http://{}", served.replay);
    for origin in ["", "null", "http://evil.example", replay.as_str()] {
        assert_eq!(form(&served, origin, "site=site00.org&rating=4"), 403, "{origin}");
    }
    let long = format!("site=site00.org&note={}", "x".repeat(32 << 10));
    for (body, status) in [
        ("site=nothing.org&rating=4", 404),
        ("site=site00.org&rating=5", 400),
        ("site=site00.org&verdict=burn", 400),
        ("site=site00.org", 400),
        ("site=site00.org&undo=1", 400),
        (long.as_str(), 413),
    ] {
        assert_eq!(form(&served, &own, body), status, "{}", &body[..body.len().min(60)]);
    }
    assert!(decisions(&archive).is_empty());
    assert_eq!(form(&served, &own, "site=site00.org&rating=4"), 303);
    assert_eq!(decisions(&archive).len(), 1);
}

#[test]
fn people_who_decide_at_the_same_moment_are_all_heard() {
    let archive = sites(8);
    let served = Served::with(&archive, &["--review"]);
    let own = format!("Origin: http://{}", served.application);
    let send = |body: &str| {
        let length = format!("Content-Length: {}", body.len());
        ask_with(&served.application, "/review/decide", &[&length, &own], body)
    };
    std::thread::scope(|scope| {
        for site in 0..8 {
            let send = &send;
            scope.spawn(move || {
                for rating in 1..=3 {
                    let body = format!("site=site{site:02}.org&rating={rating}&by=p{site}&seen=9999");
                    assert_eq!(send(&body), 303, "{body}");
                }
            });
        }
    });
    assert_eq!(decisions(&archive).len(), 24);
    // Of those who saw nothing of a site, one is first.
    let answers: Vec<u16> = std::thread::scope(|scope| {
        let each = ["anna", "ben", "carl", "dora"].map(|by| {
            let send = &send;
            scope.spawn(move || send(&format!("site=site00.org&verdict=keep&by={by}&seen=24")))
        });
        each.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(answers.iter().filter(|status| **status == 303).count(), 1, "{answers:?}");
    assert_eq!(answers.iter().filter(|status| **status == 409).count(), 3, "{answers:?}");
}

fn ask_with(address: &str, path: &str, fields: &[&str], body: &str) -> u16 {
    let head = [fields, &["", body][..]].concat();
    // The last field ends the head, and what follows is the body.
    ask(address, "POST", path, &head).status
}
