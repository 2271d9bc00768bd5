//! Decisions of people determine the next crawl and refresh, and are visible in queries.

use std::fs;
use std::process::Command;

use archive_testweb::Config;
use chrono::{TimeDelta, Utc};

use crate::imports::import;
use crate::support::program::start;
use crate::support::warc::response;
use crate::support::{Archive, TestWeb, installed, ledger_balances};

/// Returns a web of sites with one host and 12 pages each.
fn web(sites: u32) -> Config {
    Config { sites, ..Config::plain(17, sites, 12 * u64::from(sites)) }
}

/// Returns a web of several sites, and an archive of crawls from their home pages.
pub(crate) fn crawled(sites: u32) -> (TestWeb, Archive) {
    let served = TestWeb::start(web(sites));
    let archive = Archive::new();
    let seeds: Vec<String> =
        served.web.seeds(sites).into_iter().map(|home| format!("{home} scope=host")).collect();
    start(&mut archive.crawl(&seeds, &served.at_once())).wait().succeeded();
    (served, archive)
}

fn set(archive: &Archive, subject: &str, more: &[&str]) {
    let words = [&[subject, "--by", "anna"], more].concat();
    archive.run("review set", &words).succeeded();
}

pub(crate) fn sites(archive: &Archive) -> Vec<String> {
    let rows = archive.json("query", &["site pages > 0 select site order by site"]);
    rows.iter().map(|row| row["site"].as_str().unwrap().to_owned()).collect()
}

/// Returns the number of captures of a site's pages.
fn captures(archive: &Archive, site: &str) -> u64 {
    let rows = archive.json("query", &[&format!("site site = \"{site}\" select captures")]);
    rows[0]["captures"].as_u64().unwrap()
}

/// Refreshes long after the crawl, so that all pages are about equally old, however long the crawl took.
fn refresh_later(served: &TestWeb, archive: &Archive, budget: &str, more: &[&str]) {
    let later = (Utc::now() + TimeDelta::days(30)).to_rfc3339();
    let options = served.at_once();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let words = [&["--budget", budget, "--clock", &later], more, &options].concat();
    archive.run("refresh", &words).succeeded();
}

#[test]
fn dropped_sites_are_not_refreshed_and_rated_ones_come_first() {
    let (served, archive) = crawled(3);
    let [low, dropped, high] = <[String; 3]>::try_from(sites(&archive)).unwrap();
    set(&archive, &dropped, &["--verdict", "drop", "--reason", "moved"]);
    set(&archive, &low, &["--rating", "1"]);
    set(&archive, &high, &["--rating", "4"]);
    set(&archive, &high, &["--verdict", "often"]);
    let before = [&low, &dropped, &high].map(|site| captures(&archive, site));
    let refresh = |budget: &str, more: &[&str]| refresh_later(&served, &archive, budget, more);
    refresh("12", &[]);
    let after = [&low, &dropped, &high].map(|site| captures(&archive, site));
    assert_eq!(after[1], before[1], "what is dropped is not fetched");
    assert!(after[2] - before[2] > 2 * (after[0] - before[0]), "{before:?} {after:?}");

    let home =
        archive.json("query", &[&format!("page site = \"{dropped}\" and captures > 0 select url limit 1")]);
    let home = home[0]["url"].as_str().unwrap();
    let why = archive.run("why", &[home]).succeeded().text();
    assert!(why.contains("drop by anna (moved); is not fetched"), "{why}");
    let why = archive.json("why", &[home]).remove(0);
    assert_eq!(why["next_visit"], serde_json::Value::Null, "{why}");

    // Undone or ignored, the decision has no effect.
    refresh("36", &["--no-decisions"]);
    assert!(captures(&archive, &dropped) > before[1]);
    archive.run("review undo", &["1", "--by", "ben"]).succeeded();
    let why = archive.run("why", &[home]).succeeded().text();
    assert!(!why.contains("drop by anna"), "{why}");
    let again = archive.run("review undo", &["5", "--by", "ben"]);
    assert_eq!(again.code, Some(1));
    assert!(again.errors.contains("decision 5 is itself an undo"), "{}", again.errors);
}

#[test]
fn what_is_never_wanted_is_not_crawled_and_queries_know_what_was_decided() {
    let served = TestWeb::start(web(2));
    let archive = Archive::new();
    let seeds: Vec<String> =
        served.web.seeds(2).into_iter().map(|home| format!("{home} scope=host")).collect();
    start(&mut archive.crawl(&seeds[..1], &served.at_once())).wait().succeeded();
    let first = sites(&archive).remove(0);
    let other = seeds[1].split('/').nth(2).unwrap();
    let unknown = archive.run("review set", &["a.test", "--note", "later", "--by", "anna"]).succeeded();
    assert!(unknown.errors.contains("the archive does not know the site a.test"), "{}", unknown.errors);
    archive.run("review undo", &["1", "--by", "anna"]).succeeded();
    let home = seeds[0].split('/').nth(2).unwrap();
    let meant = archive.run("review set", &[home, "--note", "later", "--by", "anna"]).succeeded();
    assert!(meant.errors.contains(&format!("the site {home}; the host is host:{home}")), "{}", meant.errors);
    archive.run("review undo", &["3", "--by", "anna"]).succeeded();
    set(&archive, &format!("host:{other}"), &["--verdict", "never", "--tag", "spam", "--tag", "farm"]);
    start(&mut archive.crawl(&seeds, &served.at_once())).wait();
    assert_eq!(sites(&archive), std::slice::from_ref(&first), "nothing of it is fetched");
    let refused = archive.json("query", &["page refusal = decided select url, verdict, tags limit 1"]);
    assert_eq!((&refused[0]["verdict"], &refused[0]["tags"]), (&"never".into(), &"farm, spam".into()));

    set(&archive, &first, &["--rating", "4", "--collection", "maps"]);
    archive.run("review set", &[&first, "--rating", "2", "--by", "ben"]).succeeded();
    for (query, rows) in [
        ("site rating >= 3 select site, rating, rated_by", 1),
        ("site rating > 3", 0),
        ("site rated by contains \"ben\"", 1),
        ("site collection contains \"maps\"", 1),
        ("site verdict is not empty", 0),
        ("host verdict = never", 1),
        ("count page site.rating = 3 and captures > 0 having count > 5", 1),
    ] {
        let found = archive.json("query", &[query]);
        assert_eq!(found.len(), rows, "{query}: {found:?}");
    }
    let log = archive.json("review log", &[""; 0]);
    assert_eq!(log.len(), 7);
    assert_eq!((&log[0]["by"], &log[6]["what"]["said"]["rating"]), (&"anna".into(), &2.into()));
    archive.run("rebuild", &[""; 0]).succeeded();
    assert_eq!(archive.json("query", &["site rating = 3"]).len(), 1, "a rebuild keeps what people said");
}

#[test]
fn a_sheet_that_comes_back_overwrites_nothing_silently() {
    let (_served, archive) = crawled(2);
    let sheet = archive.folder().join("review.csv");
    let path = sheet.display().to_string();
    archive.run("review export", &["--output", &path]).succeeded();
    let text = fs::read_to_string(&sheet).unwrap();
    let names = sites(&archive);
    let rated = names
        .iter()
        .fold(text, |text, name| text.replace(&format!("{name},,,,"), &format!("{name},3,seen,keep,")));
    fs::write(&sheet, rated).unwrap();
    // The sheet does not contain these decisions. That of another person stands beside it.
    set(&archive, &names[0], &["--rating", "1"]);
    archive.run("review set", &[&names[0], "--rating", "2", "--by", "ben"]).succeeded();
    let import =
        |more: &[&str]| archive.run("review import", &[&[path.as_str(), "--by", "ben"], more].concat());
    let first = import(&[]);
    assert_eq!(first.code, Some(1));
    assert!(
        first.errors.contains("1 site in conflict") && first.errors.contains("ben decided"),
        "{}",
        first.errors
    );
    let ratings = || {
        let rows = archive.json("query", &["site pages > 0 select rating, verdict order by site"]);
        rows.iter()
            .map(|row| (row["rating"].as_f64(), row["verdict"].as_str().map(str::to_owned)))
            .collect::<Vec<_>>()
    };
    assert_eq!(ratings(), [(Some(1.5), None), (Some(3.0), Some("keep".to_owned()))]);
    import(&["--overwrite"]).succeeded();
    assert_eq!(ratings(), [(Some(2.0), Some("keep".to_owned())), (Some(3.0), Some("keep".to_owned()))]);
    // Importing the same sheet again adds nothing.
    import(&[]).succeeded();
    assert_eq!(archive.json("review log", &[""; 0]).len(), 4);

    let kept = fs::read(archive.path.join("decisions.jsonl")).unwrap();
    fs::write(archive.path.join("decisions.jsonl"), [&kept[..], b"{}\n"].concat()).unwrap();
    let verified = archive.run("verify", &[""; 0]);
    assert!(
        verified.code == Some(1) && verified.text().contains("decisions.jsonl, line 5"),
        "{}",
        verified.text()
    );
    fs::write(archive.path.join("decisions.jsonl"), kept).unwrap();
    archive.verify();

    for (command, bad, problem) in [
        ("set", &["a b", "--rating", "3"][..], "is neither a site"),
        ("set", &["nonsense…", "--rating", "3"], "'nonsense…' is neither a site"),
        ("set", &["a.test"], "it says nothing"),
        ("set", &["a.test", "--rating", "5"], "a rating is 1, 2, 3 or 4"),
        ("set", &["a.test", "--verdict", "maybe"], "expected keep, drop, often, never, investigate"),
        ("undo", &["99"], "there is no decision 99"),
        ("suggest", &[], "at least 5 are needed"),
    ] {
        let by: &[&str] = if command == "suggest" { &[] } else { &["--by", "anna"] };
        let run = archive.run(&format!("review {command}"), &[bad, by].concat());
        assert!(run.code != Some(0) && run.errors.contains(problem), "{bad:?}: {}", run.errors);
    }
}

#[test]
fn sites_like_the_chosen_ones_are_found_by_their_pages() {
    let words = [
        ("en", "the history of the library and of all the books that were kept in it for many years"),
        (
            "fr",
            "l'histoire de la bibliothèque et de tous les livres qui y furent gardés pendant de longues années",
        ),
    ];
    let pages = (0..40).map(|site| {
        let (language, text) = words[site % 2];
        let page = format!("<html lang={language}><title>{text}</title><p>{text}</html>");
        response(&format!("{site}"), &format!("http://site{site:02}.org/"), "2026-01-03T03:03:21Z", &page)
    });
    let archive = Archive::new();
    import(&archive, &[("sites.warc", pages.collect::<Vec<_>>().concat())]);
    for site in (1..20).step_by(2) {
        archive
            .run("review set", &[&format!("site{site:02}.org"), "--verdict", "keep", "--by", "anna"])
            .succeeded();
    }
    let suggested = archive.json("review suggest", &["--limit", "10"]);
    for row in &suggested {
        let site: u32 = row["site"].as_str().unwrap()[4..6].parse().unwrap();
        assert!(site % 2 == 1 && site > 20, "{row}");
        let reasons = row["reasons"].to_string();
        assert!(
            reasons.contains("in the language fr") && reasons.contains("words of its titles"),
            "{reasons}"
        );
    }
}

#[test]
fn sites_like_the_chosen_ones_are_suggested() {
    let (_served, archive) = crawled(12);
    let names = sites(&archive);
    for name in &names[..6] {
        set(&archive, name, &["--rating", "4"]);
    }
    let suggested = archive.json("review suggest", &["--limit", "3"]);
    assert_eq!(suggested.len(), 3);
    for row in &suggested {
        assert!(!names[..6].contains(&row["site"].as_str().unwrap().to_owned()), "{row}");
        assert!((0.0..=1.0).contains(&row["probability"].as_f64().unwrap()), "{row}");
    }
    assert!(archive.run("review suggest", &[""; 0]).succeeded().text().contains("because"));

    let unknown = archive.run("query", &["site likely > 0.5"]);
    assert!(unknown.code == Some(2) && unknown.errors.contains("archive review learn"), "{}", unknown.errors);
    let kept = archive.json("review learn", &[""; 0]).remove(0);
    assert_eq!((&kept["chosen"], &kept["sites"]), (&6.into(), &6.into()), "{kept}");
    let rows = archive.json("query", &["site likely >= 0 select site, likely order by likely desc"]);
    assert_eq!(rows.len(), 6);
    for (suggestion, row) in suggested.iter().zip(&rows) {
        assert_eq!(suggestion["site"], row["site"]);
        let [a, b] = [&suggestion["probability"], &row["likely"]].map(|value| value.as_f64().unwrap());
        assert!((a - b).abs() < 1e-6, "{suggestion} {row}");
    }
    // Pages are as likely as their sites.
    let pages = archive.json("query", &["count page likely >= 0 and captures > 0"]);
    let expected: Vec<String> = names[6..].iter().map(|name| format!("site = \"{name}\"")).collect();
    let expected = format!("count page captures > 0 and ({})", expected.join(" or "));
    assert_eq!(pages[0]["count"], archive.json("query", &[&expected])[0]["count"]);
    assert!(archive.run("review suggest", &[""; 0]).succeeded().errors.contains("`likely` in queries is of"));
}

#[test]
fn a_crawl_may_favour_what_people_rate_high_and_no_cash_is_made() {
    let served = TestWeb::start(Config { host_size_exponent: 0.0, sites: 12, ..Config::plain(17, 12, 1200) });
    let seeds = served.web.seeds(12);
    let found = |favours: &[&str]| {
        let archive = Archive::new();
        let crawl = |more: &[&str]| {
            let options = [&["--workers", "1"], more].concat();
            let options: Vec<String> =
                options.into_iter().map(str::to_owned).chain(served.at_once()).collect();
            start(&mut archive.crawl(&seeds, &options)).wait();
            ledger_balances(&archive.path);
        };
        crawl(&["--limit", "60"]);
        let names = sites(&archive);
        for name in &names[..3] {
            set(&archive, name, &["--rating", "4"]);
        }
        for name in &names[3..6] {
            set(&archive, name, &["--rating", "1"]);
        }
        crawl(&[&["--limit", "300"], favours].concat());
        let pages = archive.json("query", &["site pages > 0 select pages order by site"]);
        let pages: Vec<u64> = pages.iter().map(|row| row["pages"].as_u64().unwrap()).collect();
        (pages[..3].iter().sum::<u64>(), pages.iter().sum::<u64>())
    };
    let (plain, all) = found(&[]);
    let (favoured, as_many) = found(&["--favour", "rated*20"]);
    let (disregarded, _) = found(&["--favour", "rated*20", "--no-decisions"]);
    assert!(5 * disregarded < 6 * plain, "{disregarded} {plain}");
    println!(
        "of {all} pages {plain} are of sites that were rated high, and {favoured} of {as_many} where these are favoured"
    );
    assert!(5 * favoured > 6 * plain, "{plain} {favoured}");
}

#[test]
fn each_decision_does_what_it_says_to_the_next_crawl_and_to_the_next_refresh() {
    let served = TestWeb::start(Config { host_size_exponent: 0.0, ..web(8) });
    let archive = Archive::new();
    let seeds: Vec<String> =
        served.web.seeds(8).into_iter().map(|home| format!("{home} scope=host")).collect();
    let crawl = |budget: &str| {
        let options = [&served.at_once()[..], &["--pages-per-host", budget].map(str::to_owned)].concat();
        start(&mut archive.crawl(&seeds, &options)).wait().succeeded();
    };
    crawl("3");
    let names = sites(&archive);
    let decisions: [&[&str]; 8] = [
        &["--verdict", "keep"],
        &["--verdict", "often"],
        &["--verdict", "drop"],
        &["--verdict", "never"],
        &["--verdict", "investigate"],
        &["--rating", "4"],
        &["--rating", "1"],
        &["--tag", "nothing"],
    ];
    for (site, decision) in names.iter().zip(decisions) {
        set(&archive, site, decision);
    }
    let counted = |field: &str| {
        let rows = archive.json("query", &[&format!("site pages > 0 select {field} order by site")]);
        rows.iter().map(|row| row[field].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let begun = counted("pages");
    assert!(begun.iter().all(|pages| *pages < 12), "{begun:?}");
    crawl("4");
    let pages = counted("pages");
    let [keep, often, drop, never, investigate, best, worst, plain] =
        <[u64; 8]>::try_from(pages.clone()).unwrap();
    assert!(keep >= 12, "{pages:?}");
    assert_eq!((drop, never, worst), (begun[2], begun[3], begun[6]), "{pages:?}");
    assert!(often > begun[1] && investigate > begun[4] && plain > begun[7], "{pages:?}");
    assert!(best >= 2 * begun[5] && best > plain, "{pages:?}");

    let before = counted("captures");
    refresh_later(&served, &archive, "20", &[]);
    let gained: Vec<u64> = counted("captures").iter().zip(before).map(|(now, before)| now - before).collect();
    let [_, often, drop, never, _, best, worst, plain] = <[u64; 8]>::try_from(gained.clone()).unwrap();
    assert_eq!((drop, never), (0, 0), "{gained:?}");
    assert!(often >= plain && best >= plain && plain >= worst && often + best > plain + worst, "{gained:?}");

    // Everything that takes queries also takes conditions on decisions.
    let exported = archive.folder().join("kept.warc.gz");
    let exported = exported.to_str().unwrap();
    archive.run("export warc", &["--where", "page verdict = keep", "--output", exported]).succeeded();
    archive.run("watch", &["page rating >= 3", "--every", "hour", "--name", "esteemed"]).succeeded();
    let report = archive.run("watch report", &["esteemed", "--now", "--format", "json"]).succeeded().text();
    let copy = Archive::new();
    copy.run("import", &[exported]).succeeded();
    assert_eq!(sites(&copy), names[..1]);
    // One of the twelve pages of the site that is rated 4 never had content.
    assert!(report.contains("\"pages\":11,"), "{report}");
}

#[test]
fn what_a_spreadsheet_program_saves_comes_back() {
    let Some(office) = installed("soffice") else { return };
    let (_served, archive) = crawled(3);
    let names = sites(&archive);
    let sheet = archive.folder().join("review.csv");
    archive.run("review export", &["--output", &sheet.display().to_string()]).succeeded();
    let text = fs::read_to_string(&sheet).unwrap();
    let text =
        text.replace(&format!("{},,,,", names[0]), &format!("{},4,\"'=1+1, \"\"good\"\"\",keep,", names[0]));
    let text = text.replace(&format!("{},,,,", names[1]), &format!("{},1,,,", names[1]));
    fs::write(&sheet, text).unwrap();
    let saved = archive.folder().join("saved");
    for (form, from) in [("xlsx", &sheet), ("ods", &sheet), ("csv", &saved.join("review.ods"))] {
        let profile = format!("-env:UserInstallation=file://{}", archive.folder().join("office").display());
        let mut convert = Command::new(&office);
        convert.args([&profile, "--headless", "--convert-to", form, "--outdir"]).arg(&saved).arg(from);
        assert!(convert.output().unwrap().status.success());
        let file = saved.join(format!("review.{form}")).display().to_string();
        let ratings: Vec<_> = archive
            .json("review check", &[file.as_str()])
            .into_iter()
            .map(|row| {
                (row["site"].as_str().unwrap().to_owned(), row["rating"].as_u64(), row["comment"].clone())
            })
            .collect();
        let mut expected =
            [(names[0].clone(), Some(4), "=1+1, \"good\"".into()), (names[1].clone(), Some(1), "".into())];
        expected.sort_by_key(|(name, ..)| ratings.iter().position(|(site, ..)| site == name));
        assert_eq!(ratings, expected, "{form}");
        archive.run("review import", &[file.as_str(), "--by", form, "--overwrite"]).succeeded();
    }
    let rows = archive.json("query", &["site rated_by = \"csv, ods, xlsx\""]);
    assert_eq!(rows.len(), 2, "three people rated both: {rows:?}");
}

#[test]
fn raters_and_measures_get_scores() {
    let (_served, archive) = crawled(6);
    let names = sites(&archive);
    for (rater, ratings) in [("anna", "432143"), ("ben", "432143"), ("carl", "123412")] {
        for (site, rating) in names.iter().zip(ratings.chars()) {
            archive.run("review set", &[site, "--rating", &rating.to_string(), "--by", rater]).succeeded();
        }
    }
    let scores =
        archive.json("review score", &["--by", "importance", "--by", "captures / pages", "--repeat", "20"]);
    let of = |key: &str| scores.iter().filter(|line| !line[key].is_null()).collect::<Vec<_>>();
    let raters: Vec<_> =
        of("rater").into_iter().map(|it| (it["rater"].clone(), it["like_others"].as_f64())).collect();
    assert_eq!(raters[2], ("carl".into(), Some(0.0)));
    assert_eq!(of("measure").len(), 2);
    assert_eq!(of("site").len(), 6, "carl sees all sites otherwise");
    assert!(of("confusion")[0]["alpha_ordinal"].as_f64().unwrap() < 0.3);
    let table = archive.run("review score", &[""; 0]);
    let table = String::from_utf8_lossy(&table.output).into_owned();
    assert!(table.contains("Krippendorff's alpha") && table.contains("importance_sum / pages"));
    for wrong in ["nothing", "pages, captures"] {
        let refused = archive.run("review score", &["--by", wrong]);
        assert_eq!(refused.code, Some(2), "{}", refused.errors);
    }
}

#[test]
fn three_people_fill_one_sheet() {
    let (_served, archive) = crawled(5);
    let names = sites(&archive);
    let path = archive.folder().join("review.csv").display().to_string();
    archive.run("review export", &["--output", &path]).succeeded();
    let empty = fs::read_to_string(&path).unwrap();
    let fill = |by: &str, rating: usize, verdict: &str| {
        let filled = names.iter().fold(empty.clone(), |text, name| {
            text.replace(&format!("{name},,,,"), &format!("{name},{rating},by {by},{verdict},"))
        });
        fs::write(&path, filled).unwrap();
        archive.run("review import", &[&path, "--by", by, "--json"])
    };
    for (place, by) in ["anna", "ben", "carl"].into_iter().enumerate() {
        let imported = fill(by, 2 + place, "keep").succeeded().json().remove(0);
        assert_eq!(
            (&imported["imported"], &imported["conflicts"]),
            (&5.into(), &serde_json::json!([])),
            "{by}"
        );
    }
    let rated = |text: &str| archive.json("query", &[&format!("site {text} select site")]).len();
    assert_eq!((rated("rating = 3"), rated("verdict = keep")), (5, 5));
    // Of one verdict against another, the rating is taken in and the verdict is named.
    let other = fill("dora", 3, "drop");
    assert!(other.code == Some(1) && other.errors.contains("carl decided"), "{other:?}");
    assert_eq!(other.json()[0]["imported"], 5);
    assert_eq!((rated("rating = 3"), rated("verdict = keep")), (5, 5));
    // The same sheet again changes nothing, and a person's own other rating is a conflict.
    assert_eq!(fill("anna", 2, "keep").succeeded().json()[0]["imported"], 0);
    assert!(fill("anna", 1, "keep").errors.contains("anna decided"));

    let raters: Vec<_> =
        archive.json("review score", &[""; 0]).into_iter().filter(|row| row["rater"].is_string()).collect();
    let rated: Vec<_> =
        raters.iter().map(|row| (row["rater"].as_str().unwrap(), row["rated"].as_u64().unwrap())).collect();
    assert_eq!(rated, [("anna", 5), ("ben", 5), ("carl", 5), ("dora", 5)]);
    let text = archive.run::<&str>("review score", &[]).succeeded().text();
    assert!(text.contains("\n\nKrippendorff") && !text.contains("\\n"), "{text}");
}
