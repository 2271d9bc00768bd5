//! `archive why` knows for every URL how it was found and what happened to it, even if it was never requested.

use archive_testweb::Config;
use chrono::DateTime;
use serde_json::Value;

use crate::support::program::start;
use crate::support::{Archive, TestWeb, captures};

/// Returns the report of `archive why` on a URL, as data and as text.
fn why(archive: &Archive, url: &str) -> (Value, String) {
    let data = archive.json("why", &[url]).remove(0);
    let text = archive.run("why", &[url]).succeeded().text();
    println!("{text}");
    (data, text)
}

#[test]
fn every_refusal_and_every_cut_has_its_reason() {
    let served = TestWeb::start(Config::plain(91, 2, 40));
    let archive = Archive::new();
    let home = served.web.seeds(1).remove(0);
    let seeds = [
        &format!("{home} scope=host depth=1"),
        "http://robots-503.faults.test/ scope=host depth=0",
        "http://robots-delay.faults.test/private/ scope=host depth=0",
        "http://faults.test/many-links scope=host depth=0",
        "http://faults.test/bomb scope=host depth=0",
        "http://faults.test/nothing-here scope=host depth=0",
    ];
    let mut options = served.at_once();
    options.extend(["--timeout", "1s"].map(str::to_owned));
    // A robots.txt that says 503 waits for the next run.
    start(&mut archive.crawl(&seeds.map(str::to_owned), &options)).wait().refused(4, &["1 put off"]);

    let (data, text) = why(&archive, "http://robots-delay.faults.test/private/");
    assert_eq!(data["refusal"], "robots");
    assert_eq!((&data["robots"]["line"], &data["robots"]["pattern"]), (&3.into(), &"/private/".into()));
    assert_eq!((&data["robots"]["allowed"], &data["found"]["seed"]), (&false.into(), &true.into()));
    assert_eq!(data["robots"]["crawl_delay"], 2.0);
    assert!(text.contains("robots.txt forbids it") && text.contains("by line 3: /private/"), "{text}");

    let (data, text) = why(&archive, "http://robots-503.faults.test/");
    assert_eq!((&data["refusal"], &data["robots"]["status"]), (&"robots-unreachable".into(), &503.into()));
    assert!(text.contains("as the answer was 503"), "{text}");

    let (data, _) = why(&archive, "http://faults.test/many-links");
    let problems = data["last_fetch"]["problems"].to_string();
    assert!(problems.contains("links beyond the limit"), "{problems}");
    assert!(data["next_visit"]["of"].as_u64().unwrap() > 2, "{data}");
    let (data, _) = why(&archive, "http://faults.test/bomb");
    let problems = data["last_fetch"]["problems"].to_string();
    assert!(problems.contains("when decoded"), "{problems}");
    assert!(data["next_visit"]["of"].as_u64().unwrap() > 1, "{data}");
    let (data, _) = why(&archive, "http://faults.test/nothing-here");
    assert_eq!(data["last_fetch"]["status"], 404);
    assert!(data["importance"].is_null(), "what is not there is no page: {data}");
    assert!(data["next_visit"]["of"].as_u64().unwrap() > 2, "a seed is considered nevertheless: {data}");

    let (data, text) = why(&archive, "http://faults.test/many-links?7");
    assert!(data["scope"].as_str().unwrap().starts_with("too deep: 1 link from"), "{data}");
    assert_eq!(data["found"]["via"][0], "http://faults.test/many-links");
    assert!(data["found"]["time"].is_string() && data["found"]["hops"] == "L", "{data}");
    assert!(text.contains("out of scope"), "{text}");

    let fetched = captures(&archive.path).urls();
    let host = url::Url::parse(&home).unwrap().origin().ascii_serialization();
    let is_child = |url: &&String| url.starts_with(&host) && **url != home && !url.ends_with(".txt");
    let child = fetched.iter().find(is_child);
    let (data, text) = why(&archive, child.unwrap());
    assert_eq!((&data["found"]["via"][0], &data["scope"]), (&home.into(), &"inside".into()));
    assert!(data["next_visit"]["fetches_per_day"].as_f64().unwrap() > 0.0);
    assert_eq!(data["next_visit"]["policy"], "default");
    assert!(data["next_visit"]["interval_days"].as_f64().unwrap() > 0.0, "{data}");
    assert!(data["next_visit"]["before"].as_u64() < data["next_visit"]["of"].as_u64(), "{data}");
    assert!(text.contains("next due") && text.contains("status 200"), "{text}");
    assert!(data["spent"]["host_pages"].as_u64().unwrap() > 2, "{data}");

    archive.run("why", &["http://nobody.test/"]).refused(1, &["http://nobody.test/ is not in"]);
}

#[test]
fn every_visit_is_listed_with_the_rules_of_its_time() {
    let served = TestWeb::start(Config::plain(93, 1, 8));
    let archive = Archive::new();
    let home = served.web.seeds(1).remove(0);
    start(&mut archive.crawl(std::slice::from_ref(&home), &served.at_once())).wait().succeeded();
    let refresh = ["--budget", "100", "--shortest", "0s"];
    start(archive.command("refresh").args(refresh).args(served.at_once())).wait().succeeded();

    let urls = captures(&archive.path).urls();
    let child = urls.iter().find(|url| **url != home && !url.ends_with(".txt")).unwrap();
    let (data, text) = why(&archive, child);
    assert!(text.contains("robots.txt then") && text.matches(&home).count() >= 3, "{text}");
    let visits = archive.json("why", &["--visits", "5", child]);
    assert_eq!(data["last_fetch"]["captures"], visits.len());
    assert!(visits.len() == 2 && visits[0]["time"].as_str() >= visits[1]["time"].as_str(), "{visits:?}");
    for visit in &visits {
        assert_eq!(
            (&visit["via"], &visit["hops"], &visit["robots"]["allowed"]),
            (&home.as_str().into(), &"L".into(), &true.into())
        );
        assert!(visit["robots"]["time"].as_str() <= visit["time"].as_str(), "{visit}");
    }
    assert_eq!(archive.json("why", &["--visits", "1", child]), visits[..1]);
}

#[test]
fn queries_say_what_is_expected_of_pages() {
    let served = TestWeb::start(Config::plain(94, 2, 40));
    let archive = Archive::new();
    start(&mut archive.crawl(&served.web.seeds(2), &served.at_once())).wait().succeeded();
    let refresh = ["--budget", "20", "--shortest", "0s"];
    start(archive.command("refresh").args(refresh).args(served.at_once())).wait().succeeded();

    let rows = archive.json("query", &["page attempts > 0 select url, freshness, next visit limit 1000"]);
    let due: Vec<&Value> = rows.iter().filter(|row| !row["next_visit"].is_null()).collect();
    assert!(due.len() > 20, "{rows:?}");
    for row in due.iter().step_by(9) {
        let (data, _) = why(&archive, row["url"].as_str().unwrap());
        let time = |value: &Value| DateTime::parse_from_rfc3339(value.as_str().unwrap()).unwrap();
        let apart = (time(&row["next_visit"]) - time(&data["next_visit"]["due"])).num_seconds();
        assert!(apart.abs() < 60, "{row} {data}");
    }

    let copies: Vec<f64> = rows.iter().filter_map(|row| row["freshness"].as_f64()).collect();
    assert!(copies.iter().all(|fresh| (0.9..=1.0).contains(fresh)), "{rows:?}");
    let reported = archive.json::<&str>("freshness", &[]).remove(0)["expected"].clone();
    // Pages without importance have copies, too, but are not counted there.
    assert!(copies.len() as u64 >= reported["pages"].as_u64().unwrap(), "{reported}");

    for (condition, expected) in [
        ("next visit is not empty", due.len()),
        ("next visit > 2020-01-01", due.len()),
        ("next visit < 2020-01-01", 0),
        ("freshness <= 1", copies.len()),
        ("freshness < 0.5", 0),
    ] {
        let found = archive.json("query", &[&format!("count pages {condition}")]);
        assert_eq!(found[0]["count"], expected, "{condition}");
    }
    archive
        .run("query", &["page select freshness as of 2020-01-01"])
        .refused(2, &["not known as of another time"]);
}

#[test]
fn robots_are_asked_for_over_the_scheme_of_the_host() {
    // The web has no TLS here, so the host answers over http only, which is detected without losing its rules.
    let served = TestWeb::start(Config::plain(92, 1, 5));
    let archive = Archive::new();
    let seeds = ["https://robots-delay.faults.test/private/".to_owned()];
    let ended = start(&mut archive.crawl(&seeds, &served.at_once())).wait();
    ended.refused(1, &["could not be fetched: robots.txt forbids it", "no seed could be fetched"]);
    let (first, _) = why(&archive, "https://robots-delay.faults.test/robots.txt");
    let error = first["last_fetch"]["error"].as_str().unwrap();
    assert!(error.contains("no secure connection"), "{error}");
    let (data, _) = why(&archive, "https://robots-delay.faults.test/private/");
    assert_eq!(
        (&data["refusal"], &data["robots"]["url"]),
        (&"robots".into(), &"http://robots-delay.faults.test/robots.txt".into())
    );
}
