//! Review lists of archives of other machines, queried over HTTP, equal those of their folders.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use archive_books::columns::{self, LIKELY, RowKind};
use archive_storage::Store;
use serde_json::{Value, json};

use crate::nodes::url;
use crate::nodes_asked::post;
use crate::support::Archive;
use crate::support::fake_node::{END, END_OF_QUERY, Fake, HEAD};
use crate::support::program::{Finished, start};
use crate::support::served::Served;
use crate::together::{archives, sites};

fn review(name: &str, places: &[&str], more: &[&str]) -> Finished {
    let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
    command.args(["review", name]).env_remove("ARCHIVE_DIR").env("TZ", "UTC");
    for place in places {
        command.args(["--archive", place]);
    }
    start(command.args(more)).wait()
}

fn path(archive: &Archive) -> &str {
    archive.path.to_str().unwrap()
}

/// Returns four archives with decisions of people, and the same archives as they are served.
fn decided() -> (Vec<Archive>, Vec<Served>) {
    let four = archives(&sites(), 4);
    let decide = |place: usize, arguments: &[&str]| {
        four[place].run("review set", &[arguments, &["--by", "anna"]].concat()).succeeded();
    };
    decide(1, &["s1.test", "--rating", "3", "--tag", "maps"]);
    decide(2, &["s2.test", "--verdict", "investigate", "--reason", "is it mirrored?", "--tag", "maps"]);
    decide(0, &["s4.test", "--rating", "4"]);
    // What the automatic librarian would say if it had enough to learn from.
    for archive in &four {
        let store = Store::read_only(&archive.path).unwrap();
        let likely = (0..store.state().site_count()).map(|site| Some(f64::from(site) / 9.0));
        let likely: Vec<Option<f64>> = likely.collect();
        columns::write(&archive.path, RowKind::Site, LIKELY, &likely, store.state().identity()).unwrap();
    }
    fs::write(four[3].path.join("access.toml"), "[[rule]]\nprefix = \"test,s7\"\nshown_to = \"reviewer\"\n")
        .unwrap();
    let served = four.iter().map(Served::of).collect();
    (four, served)
}

#[test]
fn what_to_review_next_of_nodes_is_that_of_their_folders() {
    let (four, served) = decided();
    let urls: Vec<String> = served.iter().map(url).collect();
    let folders: Vec<&str> = four.iter().map(path).collect();
    let nodes: Vec<&str> = urls.iter().map(String::as_str).collect();
    let beside = [folders[0], nodes[1], folders[2], nodes[3]];
    for more in [
        &[][..],
        &["--json"],
        &["--json", "--limit", "1000"],
        &["--limit", "3"],
        &["--limit", "0"],
        &["--json", "--query", "site tags contains \"maps\""],
        &["--json", "--query", "site pages > 30 and likely < 2"],
        &["--query", "site captures = 0"],
    ] {
        let expected = review("next", &folders, more).succeeded();
        for places in [nodes.as_slice(), &beside] {
            let found = review("next", places, more).succeeded();
            assert_eq!((found.text(), found.errors), (expected.text(), expected.errors.clone()), "{more:?}");
        }
    }
    let rows = |places: &[&str], more: &[&str]| {
        review("next", places, &[&["--json", "--limit", "99"], more].concat()).succeeded().json()
    };
    let all = rows(&nodes, &[]);
    assert!(all.len() > 6 && all.iter().any(|row| row["pages"] == 0), "sites that are only linked to, too");
    let asked = all.iter().find(|row| row["site"] == "s2.test").unwrap();
    assert_eq!(asked["reasons"][0]["words"], "anna wants it to be looked at: is it mirrored?");
    assert_eq!(rows(&nodes[..1], &[]), rows(&folders[..1], &[]), "a node alone");

    for (query, what) in [
        ("page", "has to ask for sites"),
        ("site limit 3", "each archive selects its rows independently"),
        ("site pages >", "in the query"),
    ] {
        review("next", &nodes, &["--query", query]).refused(2, &[what]);
    }
    let none =
        ["is missing from this answer", "none of these archives can be read", "HTTP 400: in the query"];
    review("next", &nodes, &["--query", "site pges > 3"]).refused(1, &none[1..]);
    let partly = review("next", &[nodes[0], "http://127.0.0.1:1/"], &["--json", "--limit", "99"]);
    assert!(partly.code == Some(4) && partly.errors.contains(none[0]), "{partly:?}");
    assert_eq!(partly.json(), rows(&folders[..1], &[]));
}

#[test]
fn a_sheet_of_nodes_is_that_of_their_folders() {
    let (four, served) = decided();
    let urls: Vec<String> = served.iter().map(url).collect();
    let folders: Vec<&str> = four.iter().map(path).collect();
    let nodes: Vec<&str> = urls.iter().map(String::as_str).collect();
    let beside = [folders[0], nodes[1], folders[2], nodes[3]];
    // Everything except the time of the export.
    let rows = |finished: Finished| {
        let text = finished.text();
        let mut csv = csv::Reader::from_reader(text.trim_start_matches('\u{feff}').as_bytes());
        let columns: Vec<String> = csv.headers().unwrap().iter().map(str::to_owned).collect();
        let made = columns.iter().position(|column| column == "exported").unwrap();
        let rows = csv.records().map(|row| {
            let row = row.unwrap();
            row.iter()
                .enumerate()
                .filter(|(place, _)| *place != made)
                .map(|(_, text)| text.to_owned())
                .collect()
        });
        rows.collect::<Vec<Vec<String>>>()
    };
    let table = |finished: Finished| {
        let page = finished.text();
        let header =
            page.split_once("<p class=\"lead\">").unwrap().1.split_once("</p>").unwrap().0.to_owned();
        (header, page.split_once("<main>").unwrap().1.split_once("</main>").unwrap().0.to_owned())
    };
    for more in [
        &[][..],
        &["--limit", "3"],
        &["--query", "site"],
        &["--query", "site", "--limit", "3"],
        &["--query", "site captures > 0 order by html desc, site limit 6 offset 1"],
        &["--query", "site select pages as many order by many, site limit 4"],
        &["--query", "site pages > 0 as of 2026-02-15"],
    ] {
        let csv = [&["--format", "csv"], more].concat();
        let expected = rows(review("export", &folders, &csv).succeeded());
        assert!(
            expected.len() > 2 && expected.iter().any(|row| row.iter().any(|text| text.contains("http")))
        );
        let of_page = table(review("export", &folders, more).succeeded());
        for places in [nodes.as_slice(), &beside] {
            assert_eq!(rows(review("export", places, &csv).succeeded()), expected, "{more:?}");
            assert!(table(review("export", places, more).succeeded()) == of_page, "{more:?}");
        }
    }
    let page = review("export", &nodes[..2], &[]).succeeded().text();
    assert!(page.contains(&format!("<h1>{}, {}</h1>", nodes[0], nodes[1])));
    for (query, what) in [
        ("page", "has to ask for sites"),
        ("site rating > 3", "differs between archives"),
        ("site pges", "query"),
    ] {
        review("export", &nodes, &["--query", query]).refused(2, &[what]);
    }
    let file = four[0].folder().join("sheet.csv");
    let partly = review("export", &[nodes[0], "http://127.0.0.1:1/"], &["--output", file.to_str().unwrap()]);
    assert!(partly.code == Some(4) && partly.errors.contains("is missing from this answer"), "{partly:?}");
    assert!(fs::read_to_string(&file).unwrap().contains("s0.test"));
}

#[test]
fn what_nodes_say_for_reviewers_is_checked() {
    let one = archives(&sites()[..2], 1);
    let there = path(&one[0]);
    let (next, sheet) = (["--json", "--limit", "99"], ["--format", "csv"]);
    let expected = review("next", &[there], &next).succeeded().json();
    let waits = |site: &str, importance: f64, gain: f64| {
        format!("{}\n", json!({"row": [site, importance.to_bits(), gain.to_bits()]}))
    };
    let row = |site: &str, bits: &[f64]| {
        let bits: Vec<u64> = bits.iter().map(|number| number.to_bits()).collect();
        let why = json!({"reason": "unrated", "share": 0, "words": "nobody"});
        let row = json!({"site": site, "importance": 0, "gain": 0, "advice": "archive", "reasons": [why],
            "pages": 1, "samples": []});
        format!("{}\n", json!({"row": {"row": row, "bits": bits}}))
    };
    let said = |name: &'static str, waiting: &str, lines: &str| {
        let answer = |lines: &str| format!("{HEAD}{lines}{END}").into_bytes();
        Fake::new(vec![
            ("\"sites\":{}", answer("{\"row\":[\"fake.test\",true]}\n{\"row\":[\"s0.test\",false]}\n")),
            ("\"waiting\"", answer(waiting)),
            (name, answer(lines)),
        ])
    };
    let (first, good) = (waits("fake.test", 2.5, 0.1), row("fake.test", &[2.5, 0.1, 1.0]));
    for (waiting, lines, why) in [
        (waits("fake.test", 1.0, 0.1) + &waits("x.test", 1.0, 0.2), String::new(), "not in order"),
        (waits("fake.test", f64::NAN, 0.1), String::new(), "a number is not finite"),
        (waits("fake.test", 1.0, f64::INFINITY), String::new(), "a number is not finite"),
        (first.replace("row", "known"), String::new(), "is invalid"),
        (first.clone(), row("fake.test", &[2.5, 0.1]), "other numbers than reasons"),
        (first.clone(), row("fake.test", &[2.5, 0.1, f64::NAN]), "a number is not finite"),
        (first.clone(), good.replace("unrated", "fine"), "is invalid"),
        (first.clone(), row("s1.test", &[2.5, 0.1, 1.0]), "other sites than were asked for"),
        (first.clone(), good.repeat(2), "other sites than were asked for"),
        (first.clone(), "{\"row\":1}\n".to_owned(), "is invalid"),
    ] {
        let fake = said("\"reviewed\"", &waiting, &lines);
        let partly = review("next", &[there, &fake.url()], &next);
        assert!(partly.code == Some(4) && partly.errors.contains(why), "{why}: {partly:?}");
        assert_eq!(partly.json(), expected, "{why}");
    }
    // Sites for which other archives answer count there.
    let fake = said("\"reviewed\"", &(waits("s0.test", 9.0, 9.0) + &first), &good);
    let mut both = review("next", &[there, &fake.url()], &next).succeeded().json();
    let place = both.iter().position(|row| row["site"] == "fake.test").unwrap();
    let sent = both.remove(place);
    assert_eq!(
        (&sent["importance"], &sent["gain"], &sent["reasons"][0]["share"]),
        (&json!(2.5), &json!(0.1), &json!(1.0))
    );
    assert_eq!(both, expected);

    let values = |site: &str| {
        let numbers = json!({"i": 1});
        let time = json!("e");
        let has = json!({"values": [{"t": site}, {"f": 1_f64.to_bits()}, numbers, numbers, numbers, numbers, time, time]});
        let keys = json!([{"i": 1}, {"f": 1_f64.to_bits()}]);
        format!("{}\n", json!({"row": {"id": 0, "keys": keys, "has": has, "doubt": null}}))
    };
    let with = |portions: String, samples: &str| {
        let answer = |lines: &str| format!("{HEAD}{lines}{END}").into_bytes();
        Fake::new(vec![
            ("\"sites\":{}", answer("{\"row\":[\"fake.test\",true]}\n")),
            ("\"portions\"", format!("{HEAD}{portions}{END_OF_QUERY}").into_bytes()),
            ("\"samples\"", answer(samples)),
        ])
    };
    let good = "{\"row\":[\"fake.test\",[{\"url\":\"http://fake.test/\",\"title\":\"=x\"}]]}\n";
    let lines = |finished: &Finished| finished.text().lines().count();
    let expected = lines(&review("export", &[there], &sheet).succeeded());
    for (portions, samples, why) in [
        (values("fake.test"), good.replace("fake.test\",", "s0.test\","), "other sites than were asked for"),
        (values("fake.test"), good.repeat(2), "other sites than were asked for"),
        (values("fake.test"), good.replace("url", "uri"), "is invalid"),
        (values("fake.test").replace("{\"t\":\"fake.test\"},", ""), good.to_owned(), "other columns"),
    ] {
        let fake = with(portions, &samples);
        let partly = review("export", &[there, &fake.url()], &sheet);
        assert!(partly.code == Some(4) && partly.errors.contains(why), "{why}: {partly:?}");
        assert_eq!(lines(&partly), expected, "{why}");
    }
    let fake = with(values("fake.test").replace("{\"t\":\"fake.test\"}", "\"e\""), "");
    review("export", &[there, &fake.url()], &sheet).refused(1, &["a site without a name"]);
    let fake = with(values("s0.test"), "");
    assert_eq!(lines(&review("export", &[there, &fake.url()], &sheet).succeeded()), expected + 1);
    let fake = with(values("fake.test"), good);
    let whole = review("export", &[there, &fake.url()], &sheet).succeeded();
    assert!(lines(&whole) == expected + 1 && whole.text().contains("'=x,http://fake.test/"), "{whole:?}");
}

#[test]
fn lists_of_reviews_are_for_reviewers_and_of_as_many_sites_as_the_limit() {
    let archive = &archives(&sites()[..2], 1)[0];
    let people = archive.folder().join("people");
    for (name, role) in [("rita", "reader"), ("anna", "reviewer")] {
        let typed = archive.file("typed", format!("the password of {name}\n"));
        let mut program = Command::new(env!("CARGO_BIN_EXE_archive"));
        program.args(["account", "set", name, "--role", role, "--file"]).arg(&people);
        let typed = Stdio::from(fs::File::open(typed).unwrap());
        assert!(program.stdin(typed).output().unwrap().status.success());
    }
    let served = Served::with(archive, &["--password-file", people.to_str().unwrap()]);
    let there = url(&served);
    let by = |name: &str| {
        let file = archive.file("credentials", format!("{there} {name} the password of {name}\n"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        review("next", &[&there], &["--json", "--credentials", file.to_str().unwrap()])
    };
    by("rita").refused(1, &["HTTP 400: only reviewers may get lists of sites to review"]);
    assert_eq!(
        by("anna").succeeded().json(),
        review("next", &[path(archive)], &["--json"]).succeeded().json()
    );

    let open = Served::of(archive);
    for name in ["reviewed", "samples"] {
        let asked = |count: usize| {
            let sites: Vec<Value> = (0..count).map(|number| json!(format!("{number}.test"))).collect();
            let request = json!({"version": 2, "ask": {name: {"sites": sites}}}).to_string();
            let answer = post(&open, &["Content-Type: application/json"], &request);
            (answer.status, String::from_utf8_lossy(&answer.body).into_owned())
        };
        let (status, text) = asked(50_001);
        assert!(status == 400 && text.contains("more than 50000 sites"), "{text}");
        assert_eq!(asked(50_000).0, 200);
    }
}
