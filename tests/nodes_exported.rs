//! Exports of archives of other machines, queried over HTTP, equal those of their folders.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::nodes::url;
use crate::nodes_asked::post;
use crate::support::Archive;
use crate::support::fake_node::{END, Fake, HEAD};
use crate::support::program::{Finished, start};
use crate::support::served::Served;
use crate::support::warc::response;
use crate::together::{archives, sites};

/// Conditions that select what is exported.
const CHOSEN: [&str; 5] = [
    "page links to (page status = 404) and captures > 0",
    "page linked from (page site = \"s0.test\" and text contains archive)",
    "page text contains any (walnut, library)",
    "site pages > 3",
    "capture status = 200 and size > 300",
];

pub(crate) fn export(places: &[&str], format: &str, file: &Path, more: &[&str]) -> Finished {
    let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
    command.args(["export", format, "--output"]).arg(file).env_remove("ARCHIVE_DIR").env("TZ", "UTC");
    for place in places {
        command.args(["--archive", place]);
    }
    start(command.args(more)).wait()
}

/// Requests rows from an archive; returns its answer, and where to continue.
fn answer(served: &Served, rows: &str, from: &Value, room: u64) -> (Vec<u8>, Value) {
    let wanted = json!({"rows": rows, "chosen": null, "from": from, "room": room});
    let request = json!({"version": 2, "ask": {"export": wanted}}).to_string();
    let answer = post(served, &["Content-Type: application/json"], &request);
    assert_eq!(answer.status, 200);
    let text = String::from_utf8(answer.content()).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let pieces = lines.iter().filter_map(|line| line["row"].as_str());
    let pieces = pieces.flat_map(|piece| BASE64_STANDARD.decode(piece).unwrap()).collect();
    (pieces, lines.iter().find_map(|line| line.get("end")).cloned().unwrap())
}

#[test]
fn exports_of_nodes_are_those_of_their_folders() {
    let four = archives(&sites(), 4);
    let hidden = "[[rule]]\nprefix = \"test,s1\"\nshown_to = \"reviewer\"\n";
    fs::write(four[1].path.join("access.toml"), hidden).unwrap();
    let served: Vec<Served> = four.iter().map(Served::of).collect();
    let urls: Vec<String> = served.iter().map(url).collect();
    let folders: Vec<&str> = four.iter().map(|archive| archive.path.to_str().unwrap()).collect();
    let nodes: Vec<&str> = urls.iter().map(String::as_str).collect();
    let beside = [folders[0], nodes[1], folders[2], nodes[3]];
    let file = four[0].folder().join("export");
    let of = |places: &[&str], format: &str, more: &[&str]| {
        let summary = export(places, format, &file, &[&["--json"], more].concat()).succeeded().json();
        (fs::read(&file).unwrap(), summary)
    };
    let all = [
        ("warc", ""),
        ("warc", "--gzip"),
        ("cdxj", ""),
        ("links", ""),
        ("parquet", ""),
        ("parquet", "--text"),
    ];
    for (number, (format, option)) in all.into_iter().enumerate() {
        // Each selection with three of the formats.
        let some = (0..CHOSEN.len()).filter(|chosen| (chosen + number) % 2 == 0).map(|chosen| CHOSEN[chosen]);
        for query in [None].into_iter().chain(some.map(Some)) {
            let query = query.into_iter().flat_map(|query| ["--where", query]);
            let more: Vec<&str> = query.chain(Some(option).filter(|option| !option.is_empty())).collect();
            let expected = of(&folders, format, &more);
            assert!(expected.1[0]["rows"].as_u64() > Some(2), "{format} {more:?}: {:?}", expected.1);
            for places in [nodes.as_slice(), &beside] {
                assert!(of(places, format, &more) == expected, "{format} {more:?} {places:?}");
            }
        }
    }
    assert!(!String::from_utf8_lossy(&of(&nodes, "links", &[]).0).contains("\nhttp://s1.test/"), "hidden");
    assert!(of(&nodes[..1], "cdxj", &[]) == of(&folders[..1], "cdxj", &[]), "a node alone");

    let refused = |places: &[&str], format: &str, more: &[&str], code: i32, what: &str| {
        fs::remove_file(&file).unwrap_or_default();
        export(places, format, &file, more).refused(code, &[what]);
        assert!(!file.exists());
    };
    refused(&nodes, "links", &["--where", "page limit 5"], 2, "leave out limit, offset and sample");
    refused(&nodes, "links", &["--where", "count pages"], 2, "selects numbers");
    let nothing = ["--where", "page url = \"http://nowhere.test/\""];
    refused(&nodes, "cdxj", &nothing, 1, "nothing that was captured fits");
    let partly = export(&[nodes[0], "http://127.0.0.1:1/"], "links", &file, &[]);
    assert_eq!(partly.code, Some(4));
    assert!(partly.errors.contains("http://127.0.0.1:1/ is missing from this answer"), "{}", partly.errors);
    assert!(fs::read(&file).unwrap() == of(&folders[..1], "links", &[]).0);
}

#[test]
fn an_answer_goes_on_where_the_one_before_was_full() {
    let one = &archives(&sites(), 1)[0];
    let served = Served::of(one);
    for rows in ["records", "index", "links", "captures", "texts", "pages"] {
        let (whole, end) = answer(&served, rows, &Value::Null, 64 << 20);
        assert_eq!(end, Value::Null, "{rows}");
        let (mut all, mut from, mut answers) = (Vec::new(), Value::Null, 0);
        loop {
            let (piece, next) = answer(&served, rows, &from, if rows == "pages" { 2000 } else { 20_000 });
            // An index that continues in a segment repeats its name.
            let is_named = piece.first() == Some(&0) && !all.is_empty();
            let rest = if is_named { piece.iter().position(|byte| *byte == b'\n').unwrap() + 1 } else { 0 };
            all.extend(&piece[rest..]);
            answers += 1;
            if next == Value::Null {
                break;
            }
            from = next;
        }
        assert!(answers > 1, "{rows}: {answers} answers");
        if !matches!(rows, "captures" | "texts") {
            assert!(all == whole, "{rows}: {} bytes in {answers} answers, {} in one", all.len(), whole.len());
            continue;
        }
        let lists = |bytes: &[u8]| {
            let lists = serde_json::Deserializer::from_slice(bytes).into_iter::<Vec<Value>>();
            lists.flat_map(Result::unwrap).collect::<Vec<_>>()
        };
        assert_eq!(lists(&all), lists(&whole), "{rows}");
    }
    let from = json!({"segment": 1, "offset": 0, "names": 7});
    let wanted = json!({"rows": "records", "chosen": null, "from": from, "room": 1});
    let request = json!({"version": 2, "ask": {"export": wanted}}).to_string();
    let answer = post(&served, &["Content-Type: application/json"], &request);
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    assert!(answer.status == 500 && text.contains("were rewritten meanwhile"), "{text}");
}

#[test]
fn a_node_that_ends_in_the_middle_of_an_export_leaves_the_file_as_it_was() {
    let one = archives(&sites()[..2], 1);
    let there = one[0].path.to_str().unwrap();
    let folder = one[0].folder().join("exports");
    fs::create_dir(&folder).unwrap();
    let file = folder.join("export");
    let until = |offset: u64| format!("{{\"end\":{{\"segment\":1,\"offset\":{offset},\"names\":0}}}}\n");
    let rows = |bytes: &str| format!("{{\"row\":\"{}\"}}\n", BASE64_STANDARD.encode(bytes));
    let link = rows("http://fake.test/\thttp://a.test/\ta\n");
    let sites = format!("{HEAD}{{\"row\":[\"fake.test\",true]}}\n{END}");
    let broken = |format: &str, first: &str, then: &str, why: &str| {
        let fake = Fake::new(vec![
            ("\"sites\"", sites.clone().into_bytes()),
            ("\"from\":null", first.as_bytes().to_vec()),
            ("\"export\"", then.as_bytes().to_vec()),
        ]);
        fs::write(&file, "as it was").unwrap();
        let finished = export(&[there, &fake.url()], format, &file, &["--wait", "2s"]);
        finished.refused(1, &[&fake.url(), "does not answer any more", why]);
        assert_eq!(fs::read_to_string(&file).unwrap(), "as it was", "{format}: {why}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "{format}: {why}");
    };
    let begun = format!("{HEAD}{link}{}", until(5));
    broken("links", &begun, &format!("{HEAD}{link}"), "was cut off");
    broken("links", &begun, "HTTP/1.1 503 No\r\nConnection: close\r\n\r\n", "HTTP 503");
    broken("links", &begun, &begun, "its rows do not go on");
    broken("links", &begun, &format!("{{\"version\":2,\"state\":5}}\n{link}{END}"), "was rebuilt meanwhile");
    broken("links", &format!("{HEAD}{}{END}", rows("a\tb\n")), "", "these are no links");
    broken("links", &format!("{HEAD}{}{END}", rows("a\tb\tc")), "", "these are no links");
    broken("links", &format!("{HEAD}{{\"row\":\"?\"}}\n{END}"), "", "is invalid");
    broken("links", &format!("{HEAD}{{\"row\":1}}\n{END}"), "", "is invalid");
    broken("cdxj", &format!("{HEAD}{}{END}", rows("a 1 {}\n")), "", "names no segment");
    broken("cdxj", &format!("{HEAD}{}{END}", rows("\0s\nb 1 {}\na 1 {}\n")), "", "not in order");
    broken("cdxj", &format!("{HEAD}{}{END}", rows("\0s\nb 1 {}")), "", "not in order");
    let name = |number: usize| format!("\0{number}\n");
    let names = |count: usize| (0..count).map(name).collect::<String>();
    broken("cdxj", &format!("{HEAD}{}{END}", rows(&names((1 << 16) + 1))), "", "too many segments");
    broken("parquet", &format!("{HEAD}{}{END}", rows("[{}]")), "", "these are no captures");
    broken("warc", &format!("{HEAD}{}{END}", rows("WARC/9\r\n\r\n")), "", "these are no records");
    let record = "WARC/1.1\r\nWARC-Type: response\r\nContent-Length: 0\r\n\r\n\r\n\r\n";
    broken("warc", &format!("{HEAD}{}{END}", rows(record)), "", "a capture has no end");
    let capture = |records: usize| {
        let last = record.replace("response", "metadata");
        rows(&(record.repeat(records - 1) + &last))
    };
    let all = |capture: &str| format!("{HEAD}{capture}{END}");
    broken("warc", &all(&capture(1001)), "", "a capture has no end");
    let begun = format!("{HEAD}{}{}", capture(2), until(5));
    for format in ["warc", "wacz"] {
        broken(format, &begun, &format!("{HEAD}{}", capture(2)), "was cut off");
        broken(format, &begun, "HTTP/1.1 503 No\r\nConnection: close\r\n\r\n", "HTTP 503");
    }
    for (format, said) in [("warc", all(&capture(1000))), ("cdxj", all(&rows(&names(1 << 16))))] {
        let sites = ("\"sites\"", sites.clone().into_bytes());
        let fake = Fake::new(vec![sites, ("\"export\"", said.into_bytes())]);
        export(&[there, &fake.url()], format, &file, &[]).succeeded();
    }
}

#[test]
fn an_export_whose_node_is_killed_in_the_middle_says_so() {
    // The links of the folder, which comes first, fill the pipe before the node is asked for its own.
    let many = Archive::new();
    let page = |page: usize| {
        let link =
            |link: usize| format!("<a href=\"http://big.test/{}/{page}/{link}\">x</a>", "long".repeat(40));
        let of = format!("http://big.test/{page}");
        response(&of, &of, "2026-01-02T03:04:05Z", &(0..2000).map(link).collect::<String>())
    };
    crate::imports::import(&many, &[("big.warc", (0..10).flat_map(page).collect())]);
    let two = archives(&sites()[..2], 1);
    let served = Served::of(&two[0]);
    let (node, pipe) = (url(&served), many.folder().join("pipe"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
    command.args(["export", "links", "--archive"]).arg(&many.path).args(["--archive", &node]);
    let running = start(command.arg("--output").arg(&pipe).env_remove("ARCHIVE_DIR"));
    let mut reader = fs::File::open(&pipe).unwrap();
    let mut lines = vec![0; 1];
    reader.read_exact(&mut lines).unwrap();
    drop(served);
    reader.read_to_end(&mut lines).unwrap();
    running.wait().refused(1, &[&node, "does not answer any more"]);
    let lines = String::from_utf8(lines).unwrap();
    assert!(lines.lines().count() > 5000 && !lines.contains("\nhttp://s0.test/"));
}

#[test]
fn what_a_node_exports_comes_back_as_an_archive() {
    let one = archives(&sites(), 1);
    let served = Served::of(&one[0]);
    let file = one[0].folder().join("all.warc.gz");
    export(&[&url(&served)], "warc", &file, &[]).succeeded();
    let again = Archive::new();
    crate::imports::import(&again, &[("all.warc.gz", fs::read(&file).unwrap())]);
    let text = "page captures > 0 select url, captures, status order by url";
    let of = |archive: &Archive| crate::nodes::rows(&[archive.path.to_str().unwrap()], text);
    assert_eq!(of(&again), of(&one[0]));
}

#[test]
fn a_plan_for_nodes_is_that_for_their_folders() {
    let three = archives(&sites(), 3);
    let served: Vec<Served> = three.iter().map(Served::of).collect();
    let urls: Vec<String> = served.iter().map(url).collect();
    let folders: Vec<&str> = three.iter().map(|archive| archive.path.to_str().unwrap()).collect();
    let nodes: Vec<&str> = urls.iter().map(String::as_str).collect();
    let plan = |places: &[&str], more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
        command.args(["plan", "--json", "--budget", "40", "--days", "90", "--clock", "2026-06-01T00:00:00Z"]);
        command.env_remove("ARCHIVE_DIR").env("TZ", "UTC");
        for place in places {
            command.args(["--archive", place]);
        }
        start(command.args(more)).wait()
    };
    for more in
        [&[][..], &["page links to (page status = 404)"], &["page text contains library", "--target", ".5"]]
    {
        let expected = plan(&folders, more).succeeded().json();
        assert!(expected.iter().any(|row| row["fetches"].as_u64() > Some(0)), "{more:?}");
        assert_eq!(plan(&nodes, more).succeeded().json(), expected, "{more:?}");
        assert_eq!(plan(&[nodes[0], folders[1], nodes[2]], more).succeeded().json(), expected, "{more:?}");
    }
    plan(&nodes, &["site pages > 3"]).refused(2, &["selects sites"]);
    plan(&nodes, &["page limit 3"]).refused(2, &["leave out limit, offset and sample"]);

    // A sample is every n-th copy of all archives.
    let copies = |every: Value| {
        let wanted = json!({"chosen": null, "now": 1_780_000_000_000_000_u64, "every": every});
        let request = json!({"version": 2, "ask": {"copies": wanted}}).to_string();
        let answer = post(&served[0], &["Content-Type: application/json"], &request);
        let text = String::from_utf8(answer.content()).unwrap();
        let line: Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
        (line["end"]["count"].clone(), line["end"]["copies"].as_array().unwrap().clone())
    };
    let (count, all) = copies(json!([0, 1]));
    assert!(all.len() > 9 && count == all.len(), "{count}");
    assert_eq!(copies(Value::Null), (count.clone(), Vec::new()));
    assert_eq!(copies(json!([2, 3])), (count, all.into_iter().skip(2).step_by(3).collect()));

    let site = format!("{HEAD}{{\"row\":[\"fake.test\",true]}}\n{END}").into_bytes();
    let rules = json!({"policy": "uniform"});
    for (copy, why) in [
        (json!([1, 0, 0, 0, 0, 0, 0]), "these are no copies"),
        (json!([1, 0, 0, f64::NAN.to_bits(), 1, 0, 0]), "these are no copies"),
        (json!([1_u64 << 32, 0, 0, 1_f64.to_bits(), 1_f64.to_bits(), 0, 0]), "these are no copies"),
        (json!([1]), "is invalid"),
    ] {
        let sent = json!({"end": {"rules": rules, "count": 1, "copies": [copy]}});
        let fake = Fake::new(vec![
            ("\"sites\"", site.clone()),
            ("\"copies\"", format!("{HEAD}{sent}\n").into_bytes()),
        ]);
        let partly = plan(&[folders[0], &fake.url()], &[]);
        assert!(partly.code == Some(4) && partly.errors.contains(why), "{partly:?}");
        assert_eq!(partly.json(), plan(&folders[..1], &[]).succeeded().json());
    }
}
