//! Nodes that do not answer, or answer nonsense, are reported and left out.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::nodes::{query, rows, url};
use crate::support::fake_node::{END, END_OF_QUERY, Fake, HEAD, fake, fake_silent};
use crate::support::program::start;
use crate::support::served::Served;
use crate::together::{archives, sites};

#[test]
fn nodes_that_do_not_answer_are_named_and_the_others_asked_without_them() {
    let one = archives(&sites()[..2], 1);
    let served = Served::of(&one[0]);
    let (there, text) = (url(&served), "count pages captures > 0");
    let expected = rows(&[&there], text);
    let missing = |node: &str, why: &str, options: &[&str]| {
        let begun = Instant::now();
        let finished = query(&[node, &there], &[&["--json", text], options].concat());
        assert_eq!(finished.code, Some(4), "{finished:?}");
        assert_eq!(finished.errors.lines().count(), 1, "{}", finished.errors);
        let named = format!("{node} is missing from this answer: ");
        assert!(
            finished.errors.contains(&named) && finished.errors.contains(why),
            "{why}: {}",
            finished.errors
        );
        assert_eq!(finished.json(), expected, "{why}");
        assert!(begun.elapsed() < Duration::from_secs(60), "{why}");
    };
    missing("http://127.0.0.1:1/", "onnect", &[]);
    let silent = Fake::new(Vec::new());
    missing(&silent.url(), "it did not answer within 1 seconds", &["--wait", "1s"]);
    query(&[&silent.url()], &["--wait", "1s", text]).refused(1, &["none of these archives can be read"]);

    missing(&fake_silent().url(), "it did not answer within 1 seconds", &["--wait", "1s"]);
    let padded = [HEAD.as_bytes(), b"{\"row\":[\"a\",true]}", &vec![b' '; 15 << 20], b"\n"].concat();
    let endless = Fake::endless(&padded);
    missing(&endless.url(), "the answers are longer than 512 MiB", &[]);

    let portion = |keys: &str, has: &str| {
        format!(
            "{HEAD}{{\"row\":{{\"id\":1,\"keys\":[{keys}],\"has\":{has},\"doubt\":null}}}}\n{END_OF_QUERY}"
        )
    };
    let group = |gathered: &str| portion("", &format!("{{\"gathered\":[{gathered}]}}"));
    let long = [HEAD.as_bytes(), &vec![b'x'; (16 << 20) + 1]].concat();
    let deep = [HEAD, &"[".repeat(1 << 20), "\n", END].concat();
    let json = |status: &str, body: &str| format!("HTTP/1.1 {status}\r\nConnection: close\r\n\r\n{body}");
    for (said, why) in [
        (long, "a line longer than 16 MiB"),
        (deep.into_bytes(), "is invalid"),
        (b"{\"version\":3}\n".to_vec(), "uses version 3 of the protocol"),
        (b"<html>\n".to_vec(), "is invalid"),
        (Vec::new(), "it was cut off"),
        (HEAD.into(), "it was cut off"),
        (format!("{HEAD}{END}{END}").into(), "after its end"),
        (format!("{HEAD}{{\"row\":[\"a\",true]}}\n{END}").into(), "is invalid"),
        (group("{\"count\":18446744073709551615}").into(), "larger than any"),
        (group("{\"count\":18446744073709551616}").into(), "is invalid"),
        (group("{\"sum\":[0,1]}").into(), "other numbers"),
        (group("{\"count\":1},{\"count\":1}").into(), "other columns"),
        (portion("{\"t\":\"x\"}", "{\"gathered\":[{\"count\":1}]}").into(), "other columns"),
        (portion("", "{\"values\":[{\"i\":1}]}").into(), "other columns"),
        (
            portion("", "{\"gathered\":[{\"count\":1}]}").replace("\"id\":1", "\"id\":1,\"lot\":1").into(),
            "was drawn that should not be",
        ),
        (json("302 Found", "").replace("close", "close\r\nLocation: /").into(), "HTTP 302"),
        (json("503 Service Unavailable", "{\"error\":\"not now\"}").into(), "HTTP 503: not now"),
        (json("500 X", &format!("{{\"error\":\"{}\"}}", "y".repeat(9000))).into(), "HTTP 500"),
        (json("401 Unauthorized", "").into(), "--credentials"),
    ] {
        missing(&fake(said).url(), why, &[]);
    }
}

#[test]
fn rows_from_a_node_are_checked_against_the_query() {
    let one = archives(&sites()[..1], 1);
    let served = Served::of(&one[0]);
    let there = url(&served);
    let row = |id: u64, key: &str, value: &str| {
        format!(
            "{{\"row\":{{\"id\":{id},\"keys\":[{key}],\"has\":{{\"values\":[{value}]}},\"doubt\":null}}}}\n"
        )
    };
    let text = "page captures > 0 select size order by size desc limit 5";
    for (key, value) in [
        ("{\"i\":1}", "{\"t\":\"many\"}"),
        ("{\"i\":1}", "{\"i\":1},{\"i\":1}"),
        ("", "{\"i\":1}"),
        ("{\"f\":9221120237041090560}", "{\"i\":1}"),
        ("{\"d\":[9223372036854775807,0]}", "{\"i\":1}"),
    ] {
        let node = fake(format!("{HEAD}{}{END_OF_QUERY}", row(1, key, value)));
        let finished = query(&[&node.url(), &there], &["--json", text]);
        assert_eq!(finished.code, Some(4), "{key} {value}: {finished:?}");
        assert!(finished.errors.contains("is invalid"), "{}", finished.errors);
    }
    // Keys of any type are ordered, and rows out of order are sorted.
    let keys = [
        "{\"t\":\"b\"}",
        "{\"i\":5}",
        "{\"d\":[0,0]}",
        "\"e\"",
        "{\"f\":4607182418800017408}",
        "{\"t\":\"a\"}",
    ];
    let rows: String = (0..200).map(|id| row(id, keys[id as usize % keys.len()], "{\"i\":7}")).collect();
    let node = fake(format!("{HEAD}{rows}{END_OF_QUERY}"));
    assert_eq!(query(&[&node.url(), &there], &["--json", text]).succeeded().json().len(), 5);
    let sizes = ["3", "99999999", "88888888"];
    let rows: String = (0..3)
        .map(|id| {
            row(
                id,
                &format!("{{\"i\":{}}}", sizes[id as usize]),
                &format!("{{\"i\":{}}}", sizes[id as usize]),
            )
        })
        .collect();
    let node = fake(format!("{HEAD}{rows}{END_OF_QUERY}"));
    let found = query(&[&node.url(), &there], &["--json", text]).succeeded().json();
    assert_eq!((&found[0]["size"], &found[1]["size"]), (&99_999_999.into(), &88_888_888.into()));
}

#[test]
fn search_results_from_a_node_are_checked_against_the_search() {
    let one = archives(&sites()[..1], 1);
    let served = Served::of(&one[0]);
    let there = url(&served);
    let search = |node: &Fake| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
        command.args([
            "search",
            "archive",
            "--json",
            "--facets",
            "--archive",
            &node.url(),
            "--archive",
            &there,
        ]);
        start(command.env_remove("ARCHIVE_DIR")).wait()
    };
    let huge = u64::MAX;
    let words = format!(
        "{{\"end\":{{\"statistics\":{{\"documents\":{huge},\"alive\":{huge},\"tokens\":{{\"1\":{huge},\"2\":0}},\"words\":{{\"1\":{{\"archive\":{huge}}}}}}},\
         \"like\":[[\"x\",[[\"y\",{huge}]]]],\"behind\":{huge}}}}}\n"
    );
    let candidate = |page: u32, score: u64| {
        format!(
            "{{\"page\":{page},\"url\":\"http://fake.test/\",\"text\":1065353216,\"score\":{score},\"digest\":null,\"has_all\":true}}"
        )
    };
    let best = |candidates: String| {
        format!("{HEAD}{{\"end\":{{\"candidates\":[{candidates}],\"counts\":[[],[],[],[]]}}}}\n")
    };
    // Better than all pages of the other archive.
    let high = 1000.0_f64.to_bits();
    let node = |said: &str, linked: &str, best: String, shown: &str| {
        let answer = |line: &str| format!("{HEAD}{line}{END}").into_bytes();
        Fake::new(vec![
            ("\"sites\"", answer("{\"row\":[\"fake.test\",true]}\n")),
            ("\"find_words\"", format!("{HEAD}{said}").into_bytes()),
            ("\"find_linked\"", answer(linked)),
            ("\"find_best\"", best.into_bytes()),
            ("\"find_shown\"", answer(shown)),
        ])
    };
    let shown = "{\"row\":{\"title\":\"Fake\",\"importance\":0,\"snippet\":[\"\u{e9}\",[[1,9],[5,2]]],\"time\":null,\"until\":null}}\n";
    let honest = node(&words, "", best(candidate(1, high)), shown);
    let found = search(&honest).succeeded();
    assert!(found.text().contains("http://fake.test/"), "{}", found.text());
    let many = (0..101).map(|page| candidate(page, high)).collect::<Vec<_>>().join(",");
    for (fake, why) in [
        (node("{\"end\":{}}\n", "", best(String::new()), ""), "is invalid: missing field"),
        (
            node(
                &words,
                "{\"row\":{\"site\":\"s0.test\",\"url\":\"http://s0.test/1\",\"fit\":{\"best\":2143289344,\"is_exact\":true,\"words\":4294967295}}}\n",
                best(String::new()),
                "",
            ),
            "not a share",
        ),
        (node(&words, "", best(candidate(1, f64::NAN.to_bits())), ""), "a number is not finite"),
        (node(&words, "", best(many), ""), "there are more pages than"),
        (node(&words, "", best(candidate(1, high)), ""), "other pages than were asked for"),
        (
            node(
                &words,
                "",
                best(candidate(1, high)),
                &shown.replace("\"time\":null", "\"time\":9223372036854775807"),
            ),
            "out of range",
        ),
        (node(&words, "", best(candidate(1, high)), "{\"row\":{}}\n"), "is invalid"),
    ] {
        let finished = search(&fake);
        assert_eq!(finished.code, Some(4), "{why}: {finished:?}");
        assert!(
            finished.errors.contains("is missing") && finished.errors.contains(why),
            "{why}: {}",
            finished.errors
        );
        assert!(!finished.json().is_empty(), "the other one answers");
    }
}

#[test]
fn relations_name_as_many_pages_as_the_limit_and_no_more() {
    let one = archives(&sites()[..1], 1);
    let served = Served::of(&one[0]);
    let asked = |urls: &mut dyn Iterator<Item = String>| {
        let rows: String = urls
            .map(|url| {
                format!(
                    "{{\"row\":{{\"id\":1,\"keys\":[{{\"t\":\"{url}\"}}],\"has\":{{\"values\":[{{\"t\":\"{url}\"}}]}},\"doubt\":null}}}}\n"
                )
            })
            .collect();
        let node = Fake::new(vec![
            ("\"sites\"", format!("{HEAD}{{\"row\":[\"fake.test\",true]}}\n{END}").into_bytes()),
            ("\"inner\":[0]", format!("{HEAD}{rows}{END_OF_QUERY}").into_bytes()),
            ("\"portions\"", format!("{HEAD}{END_OF_QUERY}").into_bytes()),
        ]);
        let text = "page links to (page site = \"fake.test\" order by url) select url";
        query(&[&node.url(), &url(&served)], &["--json", text])
    };
    let short = |number: usize| format!("http://fake.test/{number}");
    asked(&mut (0..50_000).map(short)).succeeded();
    asked(&mut (0..50_001).map(short)).refused(2, &["a relation names more than 50000 pages"]);
    let long = |_: usize| format!("http://fake.test/{}", "x".repeat((1 << 20) - 17));
    asked(&mut (0..2).map(long)).succeeded();
    asked(&mut (0..2).map(long).chain(["y".to_owned()])).refused(2, &["2 MiB of URLs"]);
}
