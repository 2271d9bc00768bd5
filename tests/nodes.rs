//! Archives of other machines, asked over HTTP, answer like one archive that has everything.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::imports::import;
use crate::support::Archive;
use crate::support::program::{Finished, start};
use crate::support::served::{Answer, Served, ask};
use crate::support::warc::response;
use crate::together::{QUERIES, SEARCHES, archives, searched, sites};

/// Rows that are sent in doubt and settled later: pages, sites and hosts that several archives know from links.
pub(crate) const MORE: [&str; 20] = [
    "page links to (page site = \"s5.test\" order by url limit 20) select url, status order by url",
    "count pages not links to \"http://s5.test/7\" group by status",
    "page select url order by url",
    "page select url, captures order by captures, url limit 9 offset 3",
    "page captures = 0 select url order by url desc limit 7",
    "count pages",
    "count pages group by site",
    "count pages group by host order by count, host limit 5",
    "page select site, count, min(url), max(url), count(distinct host) group by site having count > 1",
    "site select site, pages order by site",
    "count sites group by pages",
    "host select host, captures, size order by captures desc, host",
    "version select url, time, digest order by time, url limit 20",
    "page links to (page linked from \"http://s0.test/1\") select url order by url",
    "page linked from (page site = \"s0.test\" and text contains archive) select url, captures order by url",
    "page linked from (page links to (page status = 404) order by url limit 9) select url order by url limit 30",
    "count pages not linked from (page site = \"s1.test\") group by site order by count, site",
    "capture links to (page status = 404) and size > 300 select url, time order by url, time",
    "link target.site = \"s5.test\" select source, target, source.title order by source, target",
    "count links group by target.host order by count, target.host",
];

/// Samples differ for one archive, and are the same for folders and nodes.
const SAMPLES: [&str; 7] = [
    "page sample 20 seed 7 select url, status",
    "page captures = 0 sample 9 select url order by url",
    "page sample 400 select url order by url",
    "count pages sample 50 seed 3 group by site",
    "page sample 30 select site, count, median(size), count(distinct url) group by site having count > 1",
    "link sample 5 select source, target",
    "capture sample 30 select url, time order by url, time limit 7 offset 2",
];

/// What cannot be asked of nodes.
pub(crate) fn is_refused(query: &str) -> bool {
    ["duplicates", "target.status"].iter().any(|what| query.contains(what))
}

pub(crate) fn url(served: &Served) -> String {
    format!("http://{}/", served.application)
}

fn query(places: &[&str], arguments: &[&str]) -> Finished {
    let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
    command.arg("query").env_remove("ARCHIVE_DIR").env("TZ", "UTC");
    for place in places {
        command.args(["--archive", place]);
    }
    start(command.args(arguments)).wait()
}

fn rows(places: &[&str], text: &str) -> Vec<Value> {
    query(places, &["--json", text]).succeeded().json()
}

#[test]
fn queries_over_nodes_and_folders_are_answered_as_by_one_archive() {
    let sites = sites();
    let [one, two, four] = [1, 2, 4].map(|count| archives(&sites, count));
    let served = [&one, &two, &four].map(|all| all.iter().map(Served::of).collect::<Vec<_>>());
    let of = |served: &[Served]| served.iter().map(url).collect::<Vec<_>>();
    let folder = |archive: &Archive| archive.path.to_str().unwrap().to_owned();
    let mut beside = of(&served[2]);
    beside[0] = folder(&four[0]);
    beside[2] = folder(&four[2]);
    let [alone, pair, all] = [of(&served[0]), of(&served[1]), of(&served[2])];
    let mut equal = 0;
    for text in QUERIES.iter().chain(&MORE).filter(|text| !is_refused(text)) {
        let expected = rows(&[&folder(&one[0])], text);
        assert!(!expected.is_empty(), "{text} finds something");
        equal += expected.len();
        for places in [&alone, &pair, &all, &beside] {
            let places: Vec<&str> = places.iter().map(String::as_str).collect();
            assert_eq!(rows(&places, text), expected, "{text}, {places:?}");
        }
    }
    // Importance, and so the score, is each archive's: folders of the same sites have the same.
    let folders = four.iter().map(folder).collect::<Vec<_>>();
    let places = |places: &[String]| places.iter().map(String::as_str).map(str::to_owned).collect::<Vec<_>>();
    let scored = [
        "page text contains \"open access\" select url, score limit 20",
        "page text contains any (walnut, \"library page\", \"lan*\") and status = 200 select url, score limit 50 offset 2",
        "page text contains orchid and not text contains zephyr select url, score, site.pages",
        "count pages text contains archive group by site order by count, site",
        "page text contains library and links to (page text contains archive) select url, score",
    ];
    for text in scored.iter().chain(&SAMPLES) {
        let of = |all: &[String]| rows(&places(all).iter().map(String::as_str).collect::<Vec<_>>(), text);
        let expected = of(&folders);
        assert!(!expected.is_empty(), "{text} finds something");
        equal += expected.len();
        assert_eq!(of(&all), expected, "{text}");
        assert_eq!(of(&beside), expected, "{text}");
    }
    println!("{equal} rows are equal");
    // A table says how many more rows there are.
    let more = query(&[&all[0], &all[1], &all[2], &all[3]], &["page captures > 0"]).succeeded();
    let expected = query(&[&folder(&one[0])], &["page captures > 0"]).succeeded();
    assert!(expected.errors.contains("100 of "), "{}", expected.errors);
    assert_eq!(more.errors, expected.errors);
    let some = [all[0].as_str(), &all[1]];
    let count = rows(&some, "count pages")[0]["count"].to_string();
    let cut = query(&some, &["page"]).succeeded().errors;
    assert!(cut.contains(&format!("100 of {count} rows")), "{count}: {cut}");
}

#[test]
fn searches_of_nodes_and_folders_find_what_one_archive_finds() {
    let sites = sites();
    let [one, two, four] = [1, 2, 4].map(|count| archives(&sites, count));
    let served: Vec<Served> = four.iter().map(Served::of).collect();
    let fewer = [&one, &two].map(|all| all.iter().map(Served::of).collect::<Vec<_>>());
    let fewer = fewer.each_ref().map(|all| all.iter().map(url).collect::<Vec<_>>());
    let all: Vec<String> = served.iter().map(url).collect();
    let mut beside: Vec<&Path> = all.iter().map(Path::new).collect();
    let nodes = beside.clone();
    beside[1] = &four[1].path;
    let folders: Vec<&Path> = four.iter().map(|archive| archive.path.as_path()).collect();
    let mut hits = 0;
    for words in SEARCHES {
        let expected = searched(&[&one[0].path], words);
        hits += expected.len();
        assert_eq!(searched(&nodes, words), expected, "{words:?}");
        assert_eq!(searched(&beside, words), expected, "{words:?}, with a folder");
        for few in &fewer {
            let few: Vec<&Path> = few.iter().map(Path::new).collect();
            assert_eq!(searched(&few, words), expected, "{words:?}, {} nodes", few.len());
        }
    }
    println!("{hits} results and facets are equal");
    let search = |places: &[&Path], arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_archive"));
        command.arg("search").env_remove("ARCHIVE_DIR").env("TZ", "UTC");
        for place in places {
            command.arg("--archive").arg(place);
        }
        start(command.args(arguments)).wait().succeeded()
    };
    // With importance, which is each archive's, and what people see.
    for arguments in
        [&["open", "access", "book"][..], &["lantern", "--limit", "3"], &["archive", "--importance", "9"]]
    {
        let expected = search(&folders, arguments);
        assert_eq!(search(&nodes, arguments).text(), expected.text(), "{arguments:?}");
        assert_eq!(search(&beside, arguments).text(), expected.text(), "{arguments:?}");
    }
    let meant = |places: &[&Path]| search(places, &["orchidd"]).errors;
    assert!(meant(&nodes).contains("did you mean \"orchid\"?"), "{}", meant(&nodes));
    assert_eq!(meant(&nodes), meant(&folders));
}

#[test]
fn what_nodes_cannot_be_asked_is_refused_in_one_sentence() {
    let two = archives(&sites(), 2);
    let many: Vec<String> = (0..257).map(|number| format!("http://127.0.0.1:1/{number}")).collect();
    let places = |count: usize| many[..count].iter().map(String::as_str).collect::<Vec<_>>();
    query(&places(257), &["page"]).refused(2, &["write it like http://node:8070/"]);
    let at_most = |count| query(&vec!["http://127.0.0.1:1/"; count], &["--wait", "9s", "page"]);
    at_most(257).refused(1, &["more than 256 archives cannot be asked as one"]);
    at_most(256).refused(1, &["none of these archives can be read"]);
    let served: Vec<Served> = two.iter().map(Served::of).collect();
    let urls: Vec<String> = served.iter().map(url).collect();
    let both: Vec<&str> = urls.iter().map(String::as_str).collect();
    for (text, what) in [
        ("page links to (site site = \"s0.test\")", "relations to sites, hosts and captures"),
        ("page links to (page duplicates)", "pages of equal content"),
        ("page duplicates", "pages of equal content"),
        ("link target.status = 404", "is not known to the archive that has the link"),
        ("page links to (page rating > 2)", "is each archive's own"),
        ("page rating > 2", "is each archive's own"),
        ("page stat = 2", "in the query"),
    ] {
        query(&both, &[text]).refused(2, &[what]);
    }
    let folder = two[0].path.to_str().unwrap();
    query(&[folder, both[0]], &["count pages"])
        .refused(1, &["have both captured pages of s", "ask each alone"]);
    let password = format!("http://anna:secret@{}/", served[0].application);
    let refused = query(&[&password], &["count pages"]);
    assert!(!refused.errors.contains("secret"), "{}", refused.errors);
    refused.refused(2, &["--credentials"]);
    query(&[folder, both[1]], &["--as-archivist", "count pages"]).refused(2, &["decide themselves"]);
    let mut rank = Command::new(env!("CARGO_BIN_EXE_archive"));
    start(rank.args(["rank", "--archive", folder, "--archive", both[1]]).env_remove("ARCHIVE_DIR"))
        .wait()
        .refused(2, &["name folders here"]);
}

/// A node that answers each request by its script, until it is dropped.
pub(crate) struct Fake {
    address: String,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What a fake node answers to a request that contains this text.
pub(crate) type Script = Vec<(&'static str, Vec<u8>)>;

impl Fake {
    pub(crate) fn new(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, ends) = (listener.local_addr().unwrap().to_string(), Arc::new(AtomicBool::new(false)));
        let until = Arc::clone(&ends);
        let serve = move || {
            let open = Mutex::new(Vec::new());
            for stream in listener.incoming() {
                if until.load(Ordering::Relaxed) {
                    return;
                }
                if let Some(silent) = Self::say(stream.unwrap(), &script) {
                    open.lock().unwrap().push(silent);
                }
            }
        };
        Self { address, ends, thread: Some(thread::spawn(serve)) }
    }

    /// Sends the answer of the script; returns the connection if the script has none.
    fn say(stream: TcpStream, script: &Script) -> Option<TcpStream> {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line).unwrap() > 2 {
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let body = String::from_utf8(body).unwrap();
        let mut stream = stream;
        let Some((_, said)) = script.iter().find(|(what, _)| body.contains(what)) else {
            return Some(stream);
        };
        if said.starts_with(b"HTTP/") {
            // The client may have closed the connection.
            let mut is_open = stream.write_all(said).is_ok();
            let last = said.split(|byte| *byte == b'\n').rev().nth(1).unwrap();
            while is_open && last.len() > 1 << 20 {
                is_open = stream.write_all(last).and_then(|()| stream.write_all(b"\n")).is_ok();
            }
            return None;
        }
        let head = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
        let _ = stream.write_all(&[head.as_bytes(), said].concat());
        None
    }

    /// A node whose answer begins like this and then repeats its last line for ever.
    fn endless(beginning: &[u8]) -> Self {
        let marked = [b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".as_slice(), beginning].concat();
        Self::new(vec![("\"ask\"", marked)])
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(&self.address));
        self.thread.take().unwrap().join().unwrap();
    }
}

pub(crate) const HEAD: &str = "{\"version\":1,\"partition\":null}\n";
const END: &str = "{\"end\":{\"matched\":0}}\n";

/// The same, but it does not answer a query.
pub(crate) fn fake_silent() -> Fake {
    Fake::new(vec![("\"sites\"", format!("{HEAD}{{\"site\":[\"fake.test\",true]}}\n{END}").into_bytes())])
}

/// A node that knows a site and gives this answer to a query.
fn fake(said: impl Into<Vec<u8>>) -> Fake {
    let sites = format!("{HEAD}{{\"site\":[\"fake.test\",true]}}\n{END}");
    Fake::new(vec![("\"sites\"", sites.into_bytes()), ("\"portions\"", said.into())])
}

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
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    missing(&format!("http://{nobody}/"), "onnect", &[]);
    let silent = Fake::new(Vec::new());
    missing(&silent.url(), "it did not answer within 1 seconds", &["--wait", "1s"]);
    query(&[&silent.url()], &["--wait", "1s", text]).refused(1, &["none of these archives can be read"]);

    missing(&fake_silent().url(), "it did not answer within 1 seconds", &["--wait", "1s"]);
    let padded = [HEAD.as_bytes(), b"{\"site\":[\"a\",true]}", &vec![b' '; 15 << 20], b"\n"].concat();
    let endless = Fake::endless(&padded);
    missing(&endless.url(), "the answers are longer than 512 MiB", &[]);

    let portion = |keys: &str, has: &str| {
        format!("{HEAD}{{\"portion\":{{\"id\":1,\"keys\":[{keys}],\"has\":{has},\"doubt\":null}}}}\n{END}")
    };
    let group = |gathered: &str| portion("", &format!("{{\"gathered\":[{gathered}]}}"));
    let long = [HEAD.as_bytes(), &vec![b'x'; (16 << 20) + 1]].concat();
    let deep = [HEAD, &"[".repeat(1 << 20), "\n", END].concat();
    let json = |status: &str, body: &str| format!("HTTP/1.1 {status}\r\nConnection: close\r\n\r\n{body}");
    for (said, why) in [
        (long, "a line longer than 16 MiB"),
        (deep.into_bytes(), "makes no sense"),
        (b"{\"version\":2}\n".to_vec(), "speaks version 2"),
        (b"<html>\n".to_vec(), "makes no sense"),
        (Vec::new(), "it was cut off"),
        (HEAD.into(), "it was cut off"),
        (format!("{HEAD}{END}{END}").into(), "after its end"),
        (format!("{HEAD}{{\"site\":[\"a\",true]}}\n{END}").into(), "something that it was not asked"),
        (group("{\"count\":18446744073709551615}").into(), "larger than any"),
        (group("{\"count\":18446744073709551616}").into(), "makes no sense"),
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
            "{{\"portion\":{{\"id\":{id},\"keys\":[{key}],\"has\":{{\"values\":[{value}]}},\"doubt\":null}}}}\n"
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
        let node = fake(format!("{HEAD}{}{END}", row(1, key, value)));
        let finished = query(&[&node.url(), &there], &["--json", text]);
        assert_eq!(finished.code, Some(4), "{key} {value}: {finished:?}");
        assert!(finished.errors.contains("makes no sense"), "{}", finished.errors);
    }
    // Keys of any type have an order, and rows out of order are sorted.
    let keys = [
        "{\"t\":\"b\"}",
        "{\"i\":5}",
        "{\"d\":[0,0]}",
        "\"e\"",
        "{\"f\":4607182418800017408}",
        "{\"t\":\"a\"}",
    ];
    let rows: String = (0..200).map(|id| row(id, keys[id as usize % keys.len()], "{\"i\":7}")).collect();
    let node = fake(format!("{HEAD}{rows}{END}"));
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
    let node = fake(format!("{HEAD}{rows}{END}"));
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
        "{{\"found\":{{\"statistics\":{{\"documents\":{huge},\"alive\":{huge},\"tokens\":{{\"1\":{huge},\"2\":0}},\"words\":{{\"1\":{{\"archive\":{huge}}}}}}},\
         \"like\":[[\"x\",[[\"y\",{huge}]]]],\"behind\":{huge}}}}}\n"
    );
    let candidate = |page: u32, score: u64| {
        format!(
            "{{\"page\":{page},\"url\":\"http://fake.test/\",\"text\":1065353216,\"score\":{score},\"digest\":null,\"has_all\":true}}"
        )
    };
    let best = |candidates: String| {
        format!("{HEAD}{{\"best\":{{\"candidates\":[{candidates}],\"counts\":[[],[],[],[]]}}}}\n{END}")
    };
    // Better than all pages of the other archive.
    let high = 1000.0_f64.to_bits();
    let node = |said: &str, linked: &str, best: String, shown: &str| {
        let answer = |line: &str| format!("{HEAD}{line}{END}").into_bytes();
        Fake::new(vec![
            ("\"sites\"", answer("{\"site\":[\"fake.test\",true]}\n")),
            ("\"find_words\"", answer(said)),
            ("\"find_linked\"", answer(linked)),
            ("\"find_best\"", best.into_bytes()),
            ("\"find_shown\"", answer(shown)),
        ])
    };
    let shown = "{\"shown\":{\"title\":\"Fake\",\"importance\":0,\"snippet\":[\"\u{e9}\",[[1,9],[5,2]]],\"time\":null,\"until\":null}}\n";
    let honest = node(&words, "", best(candidate(1, high)), shown);
    let found = search(&honest).succeeded();
    assert!(found.text().contains("http://fake.test/"), "{}", found.text());
    let many = (0..101).map(|page| candidate(page, high)).collect::<Vec<_>>().join(",");
    for (fake, why) in [
        (node("{\"found\":{}}\n", "", best(String::new()), ""), "makes no sense: missing field"),
        (
            node(
                &words,
                "{\"linked\":{\"site\":\"s0.test\",\"url\":\"http://s0.test/1\",\"fit\":{\"best\":2143289344,\"is_exact\":true,\"words\":4294967295}}}\n",
                best(String::new()),
                "",
            ),
            "this is no share",
        ),
        (node(&words, "", best(candidate(1, f64::NAN.to_bits())), ""), "a number is infinite"),
        (node(&words, "", best(many), ""), "there are more pages than"),
        (node(&words, "", best(candidate(1, high)), ""), "other pages than were asked for"),
        (
            node(
                &words,
                "",
                best(candidate(1, high)),
                &shown.replace("\"time\":null", "\"time\":9223372036854775807"),
            ),
            "calendar",
        ),
        (node(&words, "", best(candidate(1, high)), &words), "something that it was not asked"),
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
                    "{{\"portion\":{{\"id\":1,\"keys\":[{{\"t\":\"{url}\"}}],\"has\":{{\"values\":[{{\"t\":\"{url}\"}}]}},\"doubt\":null}}}}\n"
                )
            })
            .collect();
        let node = Fake::new(vec![
            ("\"sites\"", format!("{HEAD}{{\"site\":[\"fake.test\",true]}}\n{END}").into_bytes()),
            ("\"inner\":[0]", format!("{HEAD}{rows}{END}").into_bytes()),
            ("\"portions\"", format!("{HEAD}{END}").into_bytes()),
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

fn post(served: &Served, fields: &[&str], body: &str) -> Answer {
    let length = format!("Content-Length: {}", body.len());
    ask(&served.application, "POST", "/ask", &[&[length.as_str()], fields, &["", body]].concat())
}

#[test]
fn nodes_are_asked_by_programs_that_say_who_they_are() {
    let archive = Archive::new();
    let day = "2026-01-02T03:04:05Z";
    let pages = ["http://open.test/", "http://closed.test/"];
    let records: Vec<Vec<u8>> = pages.iter().map(|url| response(url, url, day, "<p>words")).collect();
    import(&archive, &[("sites.warc", records.concat())]);
    fs::write(
        archive.path.join("access.toml"),
        "[[rule]]\nprefix = \"test,closed\"\nshown_to = \"reviewer\"\n",
    )
    .unwrap();
    let people = archive.folder().join("people");
    for (name, role) in [("rita", "reader"), ("anna", "reviewer")] {
        let typed = archive.file("typed", format!("the password of {name}\n"));
        let mut program = Command::new(env!("CARGO_BIN_EXE_archive"));
        program.args(["account", "set", name, "--role", role, "--file"]).arg(&people);
        assert!(
            program.stdin(Stdio::from(fs::File::open(typed).unwrap())).output().unwrap().status.success()
        );
    }
    let served = Served::with(&archive, &["--password-file", people.to_str().unwrap()]);
    let there = url(&served);
    let nobody = query(&[&there, &there], &["count pages"]);
    nobody.refused(1, &["none of these archives can be read", "--credentials"]);
    let credentials = |name: &str, url: &str| {
        let file = archive.file("credentials", format!("# nodes\n{url} {name} the password of {name}\n"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        file.to_str().unwrap().to_owned()
    };
    for (name, count) in [("rita", 1), ("anna", 2)] {
        let file = credentials(name, &there);
        let found = query(&[&there], &["--json", "--credentials", &file, "count pages"]).succeeded().json();
        assert_eq!(found[0]["count"], count, "{name}");
    }
    let elsewhere = credentials("anna", "http://127.0.0.1:1/");
    query(&[&there], &["--credentials", &elsewhere, "count pages"]).refused(1, &["none of these archives"]);
    fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o640)).unwrap();
    query(&[&there], &["--credentials", &elsewhere, "count pages"]).refused(2, &["mode is 640", "chmod 600"]);

    let open = Served::of(&archive);
    let json = "Content-Type: application/json";
    let sites = "{\"version\":1,\"ask\":{\"sites\":{}}}";
    let answer = post(&open, &[json], sites);
    assert_eq!(answer.status, 200);
    assert!(String::from_utf8_lossy(&answer.body).contains("{\"end\":{\"matched\":null}}"));
    assert_eq!(post(&served, &[json], sites).status, 401, "an account is needed");
    assert_eq!(
        post(&open, &["Content-Type: text/plain"], sites).status,
        415,
        "a form of a web page is not a request"
    );
    assert_eq!(post(&open, &[json, "Sec-Fetch-Site: cross-site"], sites).status, 403);
    assert_eq!(ask(&open.application, "GET", "/ask", &[]).status, 404);
    let too_many =
        format!("{{\"version\":1,\"ask\":{{\"known\":{{\"urls\":[{}\"\"]}}}}}}", "\"\",".repeat(50_000));
    let too_many_sources = too_many.replacen("known", "targets", 1);
    for (body, what) in [
        (&*too_many_sources, "more than 50000 URLs"),
        (
            "{\"version\":1,\"ask\":{\"portions\":{\"query\":\"page links to (page)\",\"now\":0,\"limit\":null}}}",
            "relations",
        ),
        (
            "{\"version\":1,\"ask\":{\"words\":{\"query\":\"page\",\"now\":0,\"inner\":[0]}}}",
            "no such inner query",
        ),
        ("{\"version\":2,\"ask\":{\"new\":{}}}", "version 2"),
        ("{\"version\":1,\"ask\":{\"new\":{}}}", "not a request"),
        (
            "{\"version\":1,\"ask\":{\"portions\":{\"query\":\"page stat = 2\",\"now\":0,\"limit\":null}}}",
            "in the query",
        ),
        (
            "{\"version\":1,\"ask\":{\"portions\":{\"query\":\"page\",\"now\":9223372036854775807,\"limit\":null}}}",
            "calendar",
        ),
        (&*too_many, "more than 50000 URLs"),
        ("{\"version\":1,\"ask\":{\"find_best\":{}}}", "missing field"),
    ] {
        let answer = post(&open, &[json], body);
        assert_eq!(answer.status, 400, "{}", String::from_utf8_lossy(&answer.body));
        assert!(
            String::from_utf8_lossy(&answer.body).contains(what),
            "{}",
            String::from_utf8_lossy(&answer.body)
        );
    }
    assert_eq!(post(&open, &[json], &too_many.replacen("\"\",", "", 1)).status, 200, "as many as the limit");
    let length = format!("Content-Length: {}", (16 << 20) + 1);
    let mut stream = TcpStream::connect(&open.application).unwrap();
    let head = format!("POST /ask HTTP/1.1\r\nHost: {}\r\n{json}\r\n{length}\r\n\r\n", open.application);
    stream.write_all(head.as_bytes()).unwrap();
    // The server may close the connection before it has read all of it.
    let _ = stream.write_all(&vec![b' '; (16 << 20) + 1]);
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 413");
}
