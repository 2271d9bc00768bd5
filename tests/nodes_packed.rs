//! Packages and graphs of several archives, folders and nodes equal those of one archive that has everything.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Cursor, Read as _};
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::read::MultiGzDecoder;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_128;
use zip::ZipArchive;

use crate::nodes::{rows, url};
use crate::nodes_exported::export;
use crate::ranking;
use crate::support::Archive;
use crate::support::fake_node::{END, Fake, HEAD};
use crate::support::judges;
use crate::support::program::start;
use crate::support::served::Served;
use crate::together::{archives, sites};

/// Selections: pages of each archive that depend on the contents of others, and pages that nobody captured.
const CHOSEN: [&str; 3] = [
    "page links to (page status = 404)",
    "page text contains any (walnut, library)",
    "page site = \"s3.test\" or captures = 0",
];

/// The same for a graph, in which redirects lead from one archive to the next.
const LINKED: [&str; 3] = [
    "page links to (page status = 404)",
    "page text contains there",
    "page site = \"s3.test\" or captures = 0",
];

/// Returns the files of a package by name.
fn package(file: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut zip = ZipArchive::new(File::open(file).unwrap()).unwrap();
    let names: Vec<String> = zip.file_names().map(|name| name.unwrap().into_owned()).collect();
    let read = |name: String| {
        let mut bytes = Vec::new();
        zip.by_name(&name).unwrap().read_to_end(&mut bytes).unwrap();
        (name, bytes)
    };
    names.into_iter().map(read).collect()
}

fn unpacked(bytes: &[u8]) -> String {
    let mut text = String::new();
    MultiGzDecoder::new(bytes).read_to_string(&mut text).unwrap();
    text
}

/// Returns the keys of captures from the index of a package, after checking that each leads to a record of its URL.
fn captures(files: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
    let (index, records) = (unpacked(&files["indexes/index.cdx.gz"]), &files["archive/data.warc.gz"]);
    let key = |line: &str| {
        let (key, rest) = line.split_once(" {").unwrap();
        let fields: Value = serde_json::from_str(&format!("{{{rest}")).unwrap();
        let number = |name: &str| fields[name].as_str().unwrap().parse::<usize>().unwrap();
        let record = unpacked(&records[number("offset")..][..number("length")]);
        assert!(record.contains(&format!("WARC-Target-URI: {}\r\n", fields["url"].as_str().unwrap())));
        key.to_owned()
    };
    assert!(index.lines().is_sorted());
    index.lines().map(key).collect()
}

#[test]
fn a_package_of_several_archives_has_what_one_archive_has() {
    let [one, four] = [1, 4].map(|count| archives(&sites(), count));
    let served: Vec<Served> = four.iter().map(Served::of).collect();
    let urls: Vec<String> = served.iter().map(url).collect();
    let path = |archive: &Archive| archive.path.to_str().unwrap().to_owned();
    let folders: Vec<String> = four.iter().map(path).collect();
    let beside = [&folders[0], &urls[1], &urls[2], &folders[3]].map(String::clone);
    let file = one[0].folder().join("all.wacz");
    let of = |places: &[String], more: &[&str]| {
        let places: Vec<&str> = places.iter().map(String::as_str).collect();
        export(&places, "wacz", &file, more).succeeded();
        package(&file)
    };
    let sorted = |text: &[u8]| {
        let mut lines: Vec<String> = String::from_utf8_lossy(text).lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    for query in [None].into_iter().chain(CHOSEN.map(Some)) {
        let more: Vec<&str> = query.into_iter().flat_map(|query| ["--where", query]).collect();
        let (whole, of_folders) = (of(&[path(&one[0])], &more), of(&folders, &more));
        let keys = captures(&whole);
        assert!(keys.len() > 20 && captures(&of_folders) == keys, "{more:?}");
        assert_eq!(sorted(&of_folders["pages/pages.jsonl"]), sorted(&whole["pages/pages.jsonl"]));
        for places in [urls.as_slice(), &beside] {
            for (name, bytes) in of(places, &more) {
                // These files contain the names of the archives and the time.
                let is_equal = name.starts_with("datapackage") || of_folders[&name] == bytes;
                assert!(is_equal, "{name} of {places:?}, {more:?}");
            }
        }
    }
    let description: Value = serde_json::from_slice(&of(&beside, &[])["datapackage.json"]).unwrap();
    let name = |place: &String| place.rsplit('/').next().unwrap().to_owned();
    let title = [name(&beside[0]), beside[1].clone(), beside[2].clone(), name(&beside[3])].join(", ");
    assert_eq!(description["title"], title);
    if let Some(judges) = judges::find() {
        let output = judges::succeed(judges.program("wacz").args(["validate", "-f"]).arg(&file), "");
        assert!(output.contains("Valid"), "{output}");
    }
    // Imported again, it is one archive.
    let again = Archive::new();
    start(again.command("import").arg(&file)).wait().succeeded();
    let text = "page captures > 0 select url, captures, status order by url";
    assert_eq!(rows(&[&path(&again)], text), rows(&[&path(&one[0])], text));
    // A pipe gets the same records.
    let places = [beside[0].as_str(), &beside[1]];
    export(&places, "wacz", &file, &[]).succeeded();
    let records = package(&file).remove("archive/data.warc.gz");
    let piped = export(&places, "wacz", Path::new("-"), &[]).succeeded();
    let mut zip = ZipArchive::new(Cursor::new(piped.output)).unwrap();
    let mut bytes = Vec::new();
    zip.by_name("archive/data.warc.gz").unwrap().read_to_end(&mut bytes).unwrap();
    assert!(Some(bytes) == records);
}

#[test]
fn a_graph_of_several_archives_is_that_of_one() {
    let [one, four] = [1, 4].map(|count| ranking::archives(&ranking::web(5), count));
    let served: Vec<Served> = four.iter().map(Served::of).collect();
    let urls: Vec<String> = served.iter().map(url).collect();
    let path = |archive: &Archive| archive.path.to_str().unwrap().to_owned();
    let folders: Vec<String> = four.iter().map(path).collect();
    let beside = [&folders[0], &urls[1], &urls[2], &folders[3]].map(String::clone);
    let name = one[0].folder().join("web");
    let of = |places: &[String], more: &[&str]| {
        let places: Vec<&str> = places.iter().map(String::as_str).collect();
        let summary = export(&places, "graph", &name, &[&["--json"], more].concat()).succeeded().json();
        let file = |ending: &str| fs::read(name.with_extension(ending)).unwrap();
        let files = ["graph", "offsets", "properties", "urls.gz"].map(file);
        (summary[0]["rows"].as_u64().unwrap(), files)
    };
    for query in [None].into_iter().chain(LINKED.map(Some)) {
        let more: Vec<&str> = query.into_iter().flat_map(|query| ["--where", query]).collect();
        let whole = of(&[path(&one[0])], &more);
        assert!(whole.0 > 5, "{more:?}: {}", whole.0);
        for places in [folders.as_slice(), &urls, &beside] {
            let found = of(places, &more);
            assert_eq!(
                (found.0, unpacked(&found.1[3])),
                (whole.0, unpacked(&whole.1[3])),
                "{more:?} {places:?}"
            );
            assert!(found == whole, "{more:?} {places:?}");
        }
    }
    assert!(of(&urls[..1], &[]) == of(&folders[..1], &[]), "a node alone");
    let hidden = "[[rule]]\nprefix = \"test,s1\"\nshown_to = \"reviewer\"\n";
    fs::write(four[1].path.join("access.toml"), hidden).unwrap();
    let shown = of(&folders, &[]);
    assert!(of(&beside, &[]) == shown);
    assert!(!unpacked(&shown.1[3]).contains("http://s1.test/2\n"));

    let places = [urls[0].as_str(), "http://127.0.0.1:1/"];
    let partly = export(&places, "graph", &name, &[]);
    assert!(partly.code == Some(4) && partly.errors.contains("is missing from this answer"), "{partly:?}");
    let nothing = ["--where", "page url = \"http://nowhere.test/\""];
    export(&[&urls[0]], "graph", &name, &nothing).refused(1, &["nothing that was captured fits"]);
}

#[test]
fn pages_of_a_graph_are_those_whose_links_a_node_sent() {
    let one = archives(&sites()[..2], 1);
    let there = one[0].path.to_str().unwrap();
    let folder = one[0].folder().join("graphs");
    fs::create_dir(&folder).unwrap();
    let name = folder.join("web");
    let packed = |bytes: &[u8]| BASE64_STANDARD.encode(bytes);
    let page = "http://fake.test/";
    let key = xxh3_128(page.as_bytes());
    // A page of the first site that has an account and was fetched.
    let words = [0_u32, 0, 5].into_iter().chain([0, 32, 64, 96].map(|bits| (key >> bits) as u32));
    let outline = packed(&words.flat_map(u32::to_le_bytes).collect::<Vec<u8>>());
    let answer = |head: &str, lines: &str| format!("{head}{lines}{END}").into_bytes();
    let with = |head: &str, pages: &str| {
        let rows = format!("{{\"row\":\"{}\"}}\n", packed(pages.as_bytes()));
        Fake::new(vec![
            ("\"sites\":{}", answer(HEAD, "{\"row\":[\"fake.test\",true]}\n")),
            ("\"rows\":\"urls\"", answer(HEAD, &format!("{{\"row\":\"{outline}\"}}\n"))),
            ("\"outline\"", answer(HEAD, "")),
            ("\"export\"", answer(head, &rows)),
        ])
    };
    let export_with = |head: &str, pages: &str| {
        let fake = with(head, pages);
        let finished = export(&[there, &fake.url()], "graph", &name, &["--wait", "2s"]);
        (finished, fake.url())
    };
    let rebuilt = "{\"version\":2,\"state\":5}\n";
    for (head, pages, why) in [
        (HEAD, "0\thttp://other.test/\n", "not the pages that it sent before"),
        (HEAD, "0 http://fake.test/\n", "not the pages that it sent before"),
        (HEAD, "x\thttp://fake.test/\n", "not the pages that it sent before"),
        (rebuilt, "0\thttp://fake.test/\n", "not the pages that it sent before"),
    ] {
        let (finished, node) = export_with(head, pages);
        finished.refused(1, &[&node, "does not answer any more", why]);
        assert!(!name.with_extension("graph").exists());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "something is left");
    }
    // A page found since then has no links and no number.
    export_with(HEAD, "0\thttp://fake.test/\n1\thttp://fake.test/new\n").0.succeeded();
    let named = unpacked(&fs::read(name.with_extension("urls.gz")).unwrap());
    assert!(named.contains("http://fake.test/\n") && !named.contains("new"));
}
