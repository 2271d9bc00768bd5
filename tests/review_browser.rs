//! Reviewing in a real browser: by keyboard, by buttons without scripts, by two people at once; and refused requests.

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

/// Returns an archive of sites with one page each.
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
        // Each key moves to the next row once its decision is stored.
        browser.wait_until(&format!("{said} was not written down"), || {
            let source = browser.source();
            source.matches("(anna)").count() + source.matches(">anna ").count() > number
        });
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
    // The page before and the page after look alike.
    browser.wait_until("nothing was written down", || !decisions(&archive).is_empty());
    let made = decisions(&archive);
    assert_eq!((made[0].0.as_str(), &made[0].2), ("anna", &2.into()));
    let page = format!("http://{}/review/site?name={}", served.application, made[0].1);
    archive.run("review set", &[&made[0].1, "--rating", "3", "--by", "ben"]).succeeded();
    browser.go(&format!("{page}&by=carl"));
    assert!(browser.source().contains("rated by others") && !browser.source().contains("anna 2"));
    browser.click("button[value='4']");
    browser.wait_for("anna 2, ben 3, carl 4");
    // What was shown is older than ben's decision.
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
fn users_of_a_proxy_have_its_names() {
    let archive = sites(2);
    let public = ["--origin", "https://archive.example.org", "--replay-origin", "https://replay.example.org"];
    let served =
        Served::with(&archive, &[&public[..], &["--review", "--user-header", "X-Remote-User"]].concat());
    let host = "Host: archive.example.org";
    let own = "Origin: https://archive.example.org";
    let send = |fields: &[&str], body: &str| {
        let length = format!("Content-Length: {}", body.len());
        let head = [fields, &[length.as_str(), "Accept: application/json", "", body]].concat();
        ask(&served.application, "POST", "/review/decide", &head)
    };
    let body = "site=site00.org&rating=4&by=ben";
    let anna = "X-Remote-User: anna";
    let local = format!("Origin: http://{}", served.application);
    for (fields, status) in [
        (vec![host, own], 403),
        (vec![host, own, "X-Remote-User: "], 403),
        (vec![host, anna], 403),
        (vec![host, anna, &local], 403),
        (vec![host, anna, "Origin: https://replay.example.org"], 403),
        (vec!["Host: evil.example", anna, own], 421),
        (vec![host, own, anna], 200),
    ] {
        let answer = send(&fields, body);
        assert_eq!(answer.status, status, "{fields:?}");
        if status == 403 {
            assert!(
                serde_json::from_slice::<Value>(&answer.body).unwrap()["error"].is_string(),
                "{fields:?}"
            );
        }
    }
    let made = decisions(&archive);
    assert_eq!((made.len(), made[0].0.as_str()), (1, "anna"), "nobody takes another name");
    let page = ask(&served.application, "GET", "/review/site?name=site00.org", &[host, anna]);
    let page = String::from_utf8(page.body).unwrap();
    assert!(page.contains("src=\"https://replay.example.org/web/2/http://site00.org/\""), "{page}");
    assert_eq!(ask(&served.application, "GET", "/review", &[host]).status, 403);
    for (options, why) in [
        (
            &["--origin", "https://a.org", "--replay-origin", "https://A.org"][..],
            "both origins are https://a.org",
        ),
        (&["--origin", "a.org", "--replay-origin", "https://b.org"], "'a.org' is not an origin"),
        (&["--origin", "https://a.org"], "--replay-origin"),
        (&["--user-header", "X-User", "--password-file", "people"], "--password-file"),
    ] {
        let refused = archive.run("serve", options);
        assert!(!refused.status.success() && refused.errors.contains(why), "{}", refused.errors);
    }
}

#[test]
fn a_site_has_neighbours_and_an_assignee() {
    let link = "<a href=http://site01.org/>one</a><a href=http://site01.org/b>b</a><a href=http://site02.org/>two</a>";
    let pages = [
        ("0", "http://site00.org/", link),
        ("1", "http://site01.org/", "one"),
        ("2", "http://site02.org/", "two"),
    ];
    let pages = pages.map(|(id, url, text)| response(id, url, DAY, text));
    let archive = Archive::new();
    import(&archive, &[("sites.warc", pages.concat())]);
    archive.run("review set", &["site02.org", "--rating", "3", "--by", "ben"]).succeeded();
    archive.run("review set", &["site00.org", "--tag", "@anna", "--by", "ben"]).succeeded();
    let served = Served::with(&archive, &["--review", "--by", "anna"]);
    let json = |path: &str| {
        let answer = ask(&served.application, "GET", path, &["Accept: application/json"]);
        serde_json::from_slice::<Value>(&answer.body).unwrap()
    };
    let site = json("/review/site?name=site00.org");
    let neighbours: Vec<_> = site["neighbours"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["site"].as_str().unwrap(), &it["links"]))
        .collect();
    assert_eq!(neighbours, [("site02.org", &1.into()), ("site01.org", &2.into())], "decided ones are first");
    assert_eq!(site["neighbours"][0]["said"], "ben 3");
    let page = ask(&served.application, "GET", "/review/site?name=site01.org", &[]);
    let page = String::from_utf8(page.body).unwrap();
    let query = page.split("/query?").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let linking = json(&format!("/query?{}", query.replace("&amp;", "&")));
    assert!(linking.to_string().contains("site00.org"), "{linking}");
    let assigned = || json("/review?show=assigned")["sites"].as_array().unwrap().len();
    assert_eq!(
        (assigned(), json("/review?show=assigned&by=carl")["sites"].as_array().unwrap().len()),
        (1, 0)
    );
    archive.run("review set", &["site00.org", "--rating", "2", "--by", "anna"]).succeeded();
    assert_eq!(assigned(), 0);
}

#[test]
fn scores_are_a_page() {
    let archive = sites(4);
    let served = Served::with(&archive, &["--review", "--by", "anna"]);
    let page = |fields: &[&str]| {
        let answer = ask(&served.application, "GET", "/review/scores", fields);
        String::from_utf8(answer.body).unwrap()
    };
    assert!(page(&[]).contains("Nobody has rated a site yet."));
    for (site, rating) in [("site00.org", "4"), ("site01.org", "1"), ("site02.org", "2")] {
        archive.run("review set", &[site, "--rating", rating, "--by", "anna"]).succeeded();
    }
    archive.run("review set", &["site00.org", "--rating", "4", "--by", "ben"]).succeeded();
    archive.run("review set", &["site01.org", "--rating", "3", "--by", "ben"]).succeeded();
    let shown = page(&[]);
    assert!(shown.contains("<td class=\"number\">50 %</td>") && shown.contains("anna 1, ben 3"), "{shown}");
    let data: Value = serde_json::from_str(&page(&["Accept: application/json"])).unwrap();
    let scores = archive.json("review score", &[""; 0]);
    let each = ["raters", "measures", "disagreements"].map(|part| data[part].as_array().unwrap().len());
    assert_eq!((each, scores.len()), ([2, 4, 1], 2 + 1 + 4 + 1));
    assert_eq!((&data["raters"][0], &data["measures"][0]), (&scores[0], &scores[3]));
    let blind = Served::with(&archive, &["--review", "--blind"]);
    assert_eq!(ask(&blind.application, "GET", "/review/scores", &[]).status, 403);
}

#[test]
fn a_decision_undone_in_the_meantime_is_reported() {
    let archive = sites(1);
    let served = Served::with(&archive, &["--review", "--by", "anna"]);
    let own = format!("Origin: http://{}", served.application);
    let send = |body: &str| {
        let length = format!("Content-Length: {}", body.len());
        ask(&served.application, "POST", "/review/decide", &[&length, &own, "", body])
    };
    archive.run("review set", &["site00.org", "--verdict", "drop", "--by", "ben"]).succeeded();
    archive.run("review undo", &["1", "--by", "ben"]).succeeded();
    let refused = send("site=site00.org&rating=1&seen=1");
    assert_eq!(refused.status, 409);
    assert!(String::from_utf8(refused.body).unwrap().contains("ben took a decision on site00.org back"));
    assert_eq!(send("site=site00.org&rating=1&seen=2").status, 303);
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
    // Of several reviewers who saw no decision on a site, only one is first.
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
