//! Files of other tools are imported or reported, to the last record.

use std::io::Write as _;

use archive_storage::{CaptureKind, Store};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde_json::Value;

use crate::support::program::start;
use crate::support::served::{Served, ask};
use crate::support::warc::{answer, member, record, response};
use crate::support::{Archive, captures, ledger_balances};

const DAY: &str = "2014-01-03T03:03:21Z";

/// Imports files; returns the findings and the summary.
pub(crate) fn import(archive: &Archive, files: &[(&str, Vec<u8>)]) -> (Vec<Value>, Value) {
    let files: Vec<_> = files.iter().map(|(name, content)| archive.file(name, content)).collect();
    let finished = start(archive.command("import").arg("--json").args(files)).wait();
    assert!(matches!(finished.code, Some(0 | 1)), "{}{}", finished.text(), finished.errors);
    let mut lines = finished.json();
    let summary = lines.pop().unwrap();
    (lines, summary)
}

/// Imports a file twice: the second time, nothing is new, and only skipped records are reported.
fn import_twice(archive: &Archive, file: Vec<u8>) -> (Vec<Value>, Value) {
    let (findings, summary) = import(archive, &[("a.warc", file.clone())]);
    let (_, again) = import(archive, &[("b.warc", file)]);
    assert_eq!(again["captures"], 0, "{again}");
    assert_eq!(again["duplicates"], summary["captures"], "{again}");
    assert_eq!(archive.verify(), summary["captures"].as_u64().unwrap());
    ledger_balances(&archive.path);
    (findings, summary)
}

fn kinds(findings: &[Value]) -> Vec<&str> {
    findings.iter().map(|finding| finding["kind"].as_str().unwrap()).collect()
}

/// Returns everything stored for a URL: the bytes of the records and the lines of the metadata.
fn stored(archive: &Archive, url: &str) -> Vec<(String, Vec<(String, String)>)> {
    let store = Store::read_only(&archive.path).unwrap();
    let id = store.state().find(url).unwrap().unwrap_or_else(|| panic!("there is no {url}"));
    let each = store.state().history(id).unwrap().map(|capture| {
        let (_, capture) = capture.unwrap();
        let record = store.record(capture.location).unwrap();
        let content = String::from_utf8_lossy(&record.content).into_owned();
        (format!("{}{content}", record.header), store.metadata(&capture).unwrap())
    });
    let mut each: Vec<_> = each.collect();
    each.reverse();
    each
}

fn field<'a>(fields: &'a [(String, String)], name: &str) -> Option<&'a str> {
    fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

/// pywb's `example-extra` has two records with the same identifier, URL and second that differ in one letter of the
/// head; ipwb's `variableSizedDates` has one identifier for four dates.
#[test]
fn captures_that_look_alike_are_kept() {
    let archive = Archive::new();
    let (id, url) = ("urn:uuid:6d058047-ede2-4a13-be79-90c17c631dd4", "http://example.com/?example=2");
    let nameless = |body: &str| {
        let fields = [
            "WARC-Type: response",
            "Content-Type: application/http",
            "WARC-Target-URI: http://nameless.example/",
        ];
        record(
            &[&fields[..], &["WARC-Date: 2015-01-01T00:00:00Z"]].concat(),
            format!("HTTP/1.1 200 OK\r\n\r\n{body}"),
        )
    };
    let file = [
        answer(id, url, DAY, &[], "HTTP/1.1 200 OK\r\n\r\nbody"),
        answer(id, url, DAY, &[], "HTTPX/1.1 200 OK\r\n\r\nbody"),
        answer(id, url, DAY, &[], "HTTP/1.1 200 OK\r\n\r\nother"),
        answer("urn:uuid:2", url, DAY, &[], "HTTP/1.1 200 OK\r\n\r\nbody"),
        answer(id, "http://example.com/else", DAY, &[], "HTTP/1.1 200 OK\r\n\r\nbody"),
        answer(id, url, "2014-01", &[], "HTTP/1.1 200 OK\r\n\r\nbody"),
        answer(id, url, "2014-01-01T00:00:00Z", &[], "HTTP/1.1 200 OK\r\n\r\nbody"),
        answer(id, url, "2014-01-03T03:03:21.000000002Z", &[], "HTTP/1.1 200 OK\r\n\r\nbody"),
        nameless("one"),
        nameless("two"),
        // The same records again.
        answer(id, url, DAY, &[], "HTTP/1.1 200 OK\r\n\r\nother"),
        nameless("one"),
    ];
    let (findings, summary) = import(&archive, &[("a.warc", file.concat())]);
    assert_eq!((&summary["captures"], &summary["duplicates"]), (&10.into(), &2.into()), "{findings:?}");
    assert_eq!(summary["renamed"], 6, "{findings:?}");
    assert_eq!(kinds(&findings).iter().filter(|kind| **kind == "record-id").count(), 6, "{findings:?}");
    let (_, again) = import(&archive, &[("b.warc", file.concat())]);
    assert_eq!((&again["captures"], &again["duplicates"]), (&0.into(), &12.into()));
    assert_eq!(archive.verify(), 10);
    ledger_balances(&archive.path);

    let stored = stored(&archive, url);
    assert_eq!(stored.len(), 7);
    let mut ids: Vec<&str> = Vec::new();
    for (record, fields) in &stored {
        let name = record.lines().find_map(|line| line.strip_prefix("WARC-Record-ID: ")).unwrap();
        assert!(!ids.contains(&name), "{name} names two records");
        ids.push(name);
        let is_first_two = name == format!("<{id}>") || name == "<urn:uuid:2>";
        assert_eq!(field(fields, "importedRecordId"), (!is_first_two).then_some(id));
    }
    for said in ["2014-01", "2014-01-01T00:00:00Z", "2014-01-03T03:03:21.000000002Z"] {
        let line = format!("WARC-Date: {said}\r\n");
        assert_eq!(stored.iter().filter(|(record, _)| record.contains(&line)).count(), 1, "{said}");
    }
    assert!(stored.iter().any(|(record, _)| record.contains("HTTPX/1.1")));

    // An export is unchanged when it is imported again.
    let out = archive.folder().join("out.warc.gz");
    archive.run("export", &["warc".as_ref(), "--output".as_ref(), out.as_os_str()]).succeeded();
    let other = Archive::new();
    let content = std::fs::read(&out).unwrap();
    assert_eq!(import(&other, &[("out.warc.gz", content.clone())]).1["captures"], 10);
    assert_eq!(import(&archive, &[("out.warc.gz", content)]).1["captures"], 0);
}

/// A request record, of a GET unless its bytes say otherwise.
fn request(id: &str, url: &str, date: &str, concurrent: &str, bytes: &str) -> Vec<u8> {
    let fields = [
        "WARC-Type: request".to_owned(),
        format!("WARC-Record-ID: <{id}>"),
        format!("WARC-Target-URI: {url}"),
        format!("WARC-Date: {date}"),
        format!("WARC-Concurrent-To: <{concurrent}>"),
        "Content-Type: application/http; msgtype=request".to_owned(),
    ];
    record(&fields.each_ref().map(String::as_str), bytes)
}

/// The matching responses are in another file, or nowhere: nobody said that anything failed.
#[test]
fn a_request_without_its_answer_is_no_capture() {
    let requests = [
        request("urn:q:1", "http://a.example/", DAY, "urn:a:1", "GET / HTTP/1.1\r\n\r\n"),
        request("urn:q:3", "http://nowhere.example/", DAY, "urn:a:3", "GET /3 HTTP/1.1\r\n\r\n"),
    ]
    .concat();
    let answers = response("urn:a:1", "http://a.example/", DAY, "<title>A</title><a href=/b>b</a>");
    for files in [[&answers, &requests], [&requests, &answers]] {
        let archive = Archive::new();
        for (number, file) in files.iter().enumerate() {
            let (findings, summary) = import(&archive, &[(&format!("{number}.warc"), file.to_vec())]);
            if *file == &requests {
                assert_eq!(kinds(&findings), ["left-out"]);
                assert!(findings[0]["what"].as_str().unwrap().ends_with("2 request"), "{findings:?}");
                assert_eq!(summary["left_out_types"]["request"], 2);
            }
        }
        assert_eq!(archive.verify(), 1);
        let rows = archive.json("query", &["title = \"A\" and status = 200 select captures, url"]);
        assert_eq!((rows.len(), &rows[0]["captures"]), (1, &1.into()), "{rows:?}");
        assert!(!captures(&archive.path).0.contains_key("http://nowhere.example/"));
    }
}

/// A tool gave the record another name when it made a revisit of a response; the request still has the old one.
#[test]
fn the_request_of_a_revisit_belongs_to_it() {
    let archive = Archive::new();
    let url = "http://a.example/a.gif";
    let revisit = record(
        &[
            "WARC-Type: revisit",
            "WARC-Record-ID: <urn:a:2>",
            "WARC-Target-URI: http://a.example/a.gif",
            "WARC-Date: 2020-02-01T00:00:01Z",
            "WARC-Profile: http://netpreserve.org/warc/1.0/revisit/identical-payload-digest",
            "WARC-Refers-To-Target-URI: http://a.example/a.gif",
            "WARC-Refers-To-Date: 2020-01-01T00:00:00Z",
            "Content-Type: application/http; msgtype=response",
        ],
        "HTTP/1.1 200 OK\r\n\r\n",
    );
    let file = [
        response("urn:a:1", url, "2020-01-01T00:00:00Z", "GIF89a"),
        revisit,
        request(
            "urn:q:2",
            url,
            "2020-02-01T00:00:00Z",
            "urn:gone",
            "GET /a.gif HTTP/1.1\r\nX-Of: two\r\n\r\n",
        ),
    ];
    let (findings, summary) = import_twice(&archive, file.concat());
    assert_eq!((findings, &summary["captures"]), (Vec::new(), &2.into()));
    assert!(all_records(&archive).contains("X-Of: two"));
    let kept = captures(&archive.path);
    assert!(kept.0[url].iter().all(|capture| capture.kind != CaptureKind::Failed));
}

/// What is there of a last record is kept, in files of any compression.
#[test]
fn a_record_that_the_end_of_its_file_cuts_is_kept() {
    // Hardly compressible, so that the frame has several blocks.
    let digests = (0..6000_u32).map(|n| archive_storage::Digest::sha256(&n.to_le_bytes()).to_string());
    let text = format!("herons {}", digests.collect::<String>());
    let whole = |id: u32| response(&format!("urn:a:{id}"), &format!("http://a.example/{id}"), DAY, &text);
    let cut = |content: Vec<u8>| content[..content.len() - 1000].to_vec();
    let zstd = |content: &[u8]| zstd::encode_all(content, 1).unwrap();
    for (name, file) in [
        ("plain.warc", [whole(1), cut(whole(2))].concat()),
        ("gzip.warc.gz", [member(&whole(1)), cut(member(&whole(2)))].concat()),
        ("zstd.warc.zst", [zstd(&whole(1)), cut(zstd(&whole(2)))].concat()),
    ] {
        let archive = Archive::new();
        let (findings, summary) = import(&archive, &[(name, file.clone())]);
        assert_eq!(
            (&summary["captures"], &summary["broken"]),
            (&2.into(), &1.into()),
            "{name}: {findings:?}"
        );
        let what = findings[0]["what"].as_str().unwrap();
        assert!(
            what.contains("ends within") && what.contains("bytes that are there were imported"),
            "{what}"
        );
        assert_eq!(archive.verify(), 2);
        let [(record, _)] = &stored(&archive, "http://a.example/2")[..] else { panic!("{name}") };
        if name != "zstd.warc.zst" {
            assert!(
                record.contains("WARC-Truncated: unspecified\r\n") && record.contains("herons"),
                "{name}"
            );
        }
        assert_eq!(
            archive.json("search", &["herons"]).iter().filter(|row| row["url"].is_string()).count(),
            2
        );
        let (_, again) = import(&archive, &[("again.warc", file)]);
        assert_eq!((&again["captures"], &again["duplicates"]), (&0.into(), &2.into()), "{name}");
    }
}

/// Returns a ZIP file; compression is 0 or 8.
fn zip(files: &[(&str, u16, &[u8])]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, method, data) in files {
        let packed = match method {
            0 => data.to_vec(),
            _ => {
                let mut packer = DeflateEncoder::new(Vec::new(), Compression::fast());
                packer.write_all(data).unwrap();
                packer.finish().unwrap()
            }
        };
        let (lengths, name_length) = ([packed.len() as u32, data.len() as u32], name.len() as u16);
        let mut fields = [20_u16, 0, *method, 0, 0].map(u16::to_le_bytes).concat();
        fields.extend(0_u32.to_le_bytes());
        fields.extend(lengths.map(u32::to_le_bytes).concat());
        fields.extend([name_length, 0].map(u16::to_le_bytes).concat());
        let offset = out.len() as u32;
        out.extend([&b"PK\x03\x04"[..], &fields[..], name.as_bytes(), &packed].concat());
        let rest = [&[0; 10][..], &offset.to_le_bytes(), name.as_bytes()].concat();
        directory.extend([&b"PK\x01\x02"[..], &20_u16.to_le_bytes()[..], &fields, &rest].concat());
    }
    let (count, start) = (files.len() as u16, out.len() as u32);
    let length = directory.len() as u32;
    out.extend(directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend([count, count].map(u16::to_le_bytes).concat());
    out.extend([length, start].map(u32::to_le_bytes).concat());
    out.extend([0, 0]);
    out
}

/// Some tools deflate the records of a package, and some put packages into a package.
#[test]
fn packages_may_be_deflated_and_nested() {
    let records =
        |id: u32| member(&response(&format!("urn:{id}"), &format!("http://a.example/{id}"), DAY, "x"));
    let package = |id: u32, method| {
        zip(&[("archive/2024/a.warc.gz", method, &records(id)[..]), ("pages/pages.jsonl", 0, &b"{}"[..])])
    };
    let nested = |depth: u32| {
        (0..depth).fold(package(3, 8), |inner, _| {
            zip(&[("in.wacz", 0, &inner[..]), ("two.wacz", 0, &package(4, 0)[..])])
        })
    };
    for (file, captures) in [(package(1, 0), 1), (package(2, 8), 1), (nested(1), 2)] {
        let archive = Archive::new();
        let (findings, summary) = import(&archive, &[("a.wacz", file)]);
        assert_eq!((findings, &summary["captures"]), (Vec::new(), &captures.into()), "{summary}");
        assert_eq!(archive.verify(), captures);
    }
    // One package around a package, no more, and none within the bytes of another.
    let (_, summary) = import(&Archive::new(), &[("deep.wacz", nested(2))]);
    assert_eq!(summary["captures"], 1, "{summary}");
}

/// A crawler's own links are used where the document gives none, and counted where it has its own.
#[test]
fn links_that_another_crawler_states_are_used_or_counted() {
    let archive = Archive::new();
    let metadata = |of: u32, url: &str, lines: &str| {
        let fields = [
            "WARC-Type: metadata".to_owned(),
            format!("WARC-Record-ID: <urn:m:{of}>"),
            format!("WARC-Target-URI: {url}"),
            format!("WARC-Date: {DAY}"),
            format!("WARC-Concurrent-To: <urn:a:{of}>"),
            "Content-Type: application/warc-fields".to_owned(),
        ];
        record(&fields.each_ref().map(String::as_str), lines)
    };
    let lines = "outlink: http://a.example/favicon.ico I =INFERRED_MISC\r\noutlink: http://a.example/own L a/@href\r\n\
        outlink: http://a.example/bare\r\noutlink: mailto:a@a.example L a/@href\r\nother-field: kept\r\n";
    let file = [
        answer(
            "urn:a:1",
            "http://a.example/robots.txt",
            DAY,
            &[],
            "HTTP/1.1 200 OK\r\n\r\nUser-agent: *\r\n",
        ),
        metadata(1, "http://a.example/robots.txt", lines),
        response("urn:a:2", "http://a.example/", DAY, "<a href=/own>own</a>"),
        metadata(2, "http://a.example/", lines),
    ];
    let (findings, summary) = import_twice(&archive, file.concat());
    assert_eq!(summary["unused_links"], 4, "{summary}");
    assert_eq!(kinds(&findings), ["left-out"]);
    assert!(findings[0]["what"].as_str().unwrap().ends_with(": 4"), "{findings:?}");
    let store = Store::read_only(&archive.path).unwrap();
    let id = store.state().find("http://a.example/").unwrap().unwrap();
    let (_, capture) = store.state().history(id).unwrap().next().unwrap().unwrap();
    assert!(store.metadata(&capture).unwrap().contains(&("other-field".to_owned(), "kept".to_owned())));
    let text = all_records(&archive);
    for url in ["http://a.example/favicon.ico X speculative", "http://a.example/bare L identifier"] {
        assert!(text.contains(&format!("outlink: {url}")), "{url}");
    }
}

/// Documents that were recorded without HTTP are versions of their page.
#[test]
fn documents_without_http_are_versions() {
    let archive = Archive::new();
    let url = "http://a.example/notes";
    let document = |kind: &str, day: u32, url: &str, text: &str| {
        let fields = [
            format!("WARC-Type: {kind}"),
            format!("WARC-Record-ID: <urn:{kind}:{day}>"),
            format!("WARC-Date: 2020-01-{day:02}T00:00:00Z"),
            format!("WARC-Target-URI: {url}"),
            "Content-Type: text/html".to_owned(),
        ];
        record(&fields.each_ref().map(String::as_str), format!("<title>Notes</title><p>{text}</p>"))
    };
    let file = [
        document("resource", 1, url, "herons"),
        document("resource", 2, url, "terns"),
        document("conversion", 3, url, "gulls"),
        // A conversion of what the archive has is no version.
        response("urn:a:4", "http://a.example/page", "2020-01-04T00:00:00Z", "page"),
        document("conversion", 4, "http://a.example/page", "text of the page"),
    ];
    let (_, summary) = import(&archive, &[("a.warc", file.concat())]);
    assert_eq!((&summary["captures"], &summary["left_out_types"]["conversion"]), (&4.into(), &1.into()));
    let (_, again) = import(&archive, &[("b.warc", file.concat())]);
    assert_eq!((&again["captures"], &again["duplicates"]), (&0.into(), &4.into()));
    for rebuild in [false, true] {
        if rebuild {
            archive.run("rebuild", &[""; 0]).succeeded();
        }
        assert_eq!(archive.verify(), 4);
        let rows = archive
            .json("query", &["captures page.url = \"http://a.example/notes\" and status = 200 select kind"]);
        assert_eq!(rows.len(), 3, "{rows:?}");
        let kinds: Vec<_> = rows.iter().map(|row| row["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["resource"; 3]);
        let difference = archive.json("diff", &[url]).remove(0);
        assert!(difference["kind"] == "text" && difference.to_string().contains("gulls"), "{difference}");
        let said = archive.json("said", &["terns", url]);
        assert!(said.iter().any(|row| row.to_string().contains("/notes")), "{said:?}");
        let found = archive.json("search", &["gulls"]);
        assert!(found.iter().any(|row| row["url"] == url), "{found:?}");
    }
    let served = Served::of(&archive);
    let page = ask(&served.application, "GET", "/page?url=http://a.example/notes", &[]);
    let page = String::from_utf8(page.body).unwrap();
    assert_eq!(page.matches("type=\"radio\"").count(), 6, "each version can be compared with each");
    let compared = ask(&served.application, "GET", "/compare?url=http://a.example/notes", &[]);
    assert_eq!(compared.status, 200);
    let shown = ask(&served.replay, "GET", "/web/2020mp_/http://a.example/page", &[]);
    assert!(String::from_utf8_lossy(&shown.body).contains("page") && shown.status == 200);
}

/// Other tools remove content codings from bodies and keep the field.
#[test]
fn a_body_without_its_content_coding_is_taken_as_it_is() {
    let archive = Archive::new();
    let text = "<!DOCTYPE html><title>Tides</title><p>The herons returned.</p><a href=/next>next</a>";
    let answer = |id: usize, path: &str, kind: &str, coding: &str, body: &str| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{coding}\r\n{body}");
        answer(&format!("urn:{id}"), &format!("http://coded.example/{path}"), DAY, &[], &head)
    };
    let codings = ["gzip", "deflate", "zstd", "br", "gzip, br"];
    let field = |coding: &str| format!("Content-Encoding: {coding}\r\n");
    let mut file: Vec<_> =
        codings.iter().enumerate().map(|(id, it)| answer(id, it, "text/html", &field(it), text)).collect();
    let twice = "Content-Encoding: br\r\nContent-Encoding: br\r\n";
    file.push(answer(8, "twice", "text/html", twice, text));
    file.push(answer(9, "style.css", "text/css", &field("br"), "p { color: green }"));
    import(&archive, &[("a.warc", file.concat())]);
    let count = codings.len() + 1;
    assert_eq!(archive.json("query", &["page text contains \"herons\" select url"]).len(), count);
    assert_eq!(archive.json("query", &["link target.url ~ \"*/next\" select source"]).len(), count);
    let served = Served::of(&archive);
    for (path, says) in
        [("br", "herons returned"), ("twice", "herons returned"), ("style.css", "color: green")]
    {
        let path = format!("/web/20140103030321mp_/http://coded.example/{path}");
        let shown = ask(&served.replay, "GET", &path, &[]);
        assert!(String::from_utf8_lossy(&shown.body).contains(says), "{path}: {shown:?}");
        assert_eq!(shown.get("content-encoding"), None);
    }
}

/// Returns the records of an archive as text.
fn all_records(archive: &Archive) -> String {
    let out = archive.folder().join("all.warc");
    archive.run("export", &["warc".as_ref(), "--output".as_ref(), out.as_os_str()]).succeeded();
    String::from_utf8_lossy(&std::fs::read(out).unwrap()).into_owned()
}

#[test]
fn records_that_hold_no_capture_are_counted_by_type() {
    let archive = Archive::new();
    let other = |kind: &str, id: u32| {
        let fields = [
            format!("WARC-Type: {kind}"),
            format!("WARC-Record-ID: <urn:other:{id}>"),
            format!("WARC-Date: {DAY}"),
            "WARC-Target-URI: http://a.example/".to_owned(),
            "WARC-Refers-To: <urn:a:1>".to_owned(),
            "Content-Type: text/plain".to_owned(),
        ];
        record(&fields.each_ref().map(String::as_str), "content")
    };
    let file = [
        other("warcinfo", 0),
        response("urn:a:1", "http://a.example/", DAY, "a"),
        other("conversion", 1),
        other("conversion", 2),
        other("continuation", 3),
        other("metadata", 4),
        other("screenshot", 5),
        // What a crawler says of a page of which there is no capture.
        record(
            &[
                "WARC-Type: metadata",
                "WARC-Record-ID: <urn:other:6>",
                &format!("WARC-Date: {DAY}"),
                "WARC-Target-URI: http://a.example/lone",
                "Content-Type: application/warc-fields",
            ],
            "fetchTimeMs: 12\r\noutlink: http://a.example/linked L a/@href\r\n",
        ),
    ];
    let (findings, summary) = import(&archive, &[("a.warc", file.concat())]);
    assert_eq!(kinds(&findings), ["left-out"]);
    let what = findings[0]["what"].as_str().unwrap();
    for words in ["2 conversion", "1 continuation", "2 metadata", "1 of other types"] {
        assert!(what.contains(words), "{what}");
    }
    assert_eq!(
        (&summary["records"], &summary["captures"], &summary["left_out"]),
        (&8.into(), &1.into(), &7.into())
    );
    assert_eq!(summary["left_out_types"]["warcinfo"], 1);
    let again = start(archive.command("import").arg(archive.folder().join("a.warc"))).wait().succeeded();
    assert!(
        again.text().contains("records left out: 1 warcinfo, 2 conversion, 1 continuation"),
        "{}",
        again.text()
    );
}

#[test]
fn digests_of_every_kind_are_checked_or_reported() {
    let archive = Archive::new();
    let stated = [
        (
            "sha512",
            "sha512:3a81oZNherrMQXNJriBBMRLm+k6JqX6iCp7u5ktV05ohkpkqJ0/BqDa6PCOj/uu9RU1EI2Q86A4qmslPpUyknw==",
            None,
        ),
        ("md5", "md5:900150983cd24fb0d6963f7d28e17f72", None),
        ("base64", "sha1:qZk+NkcGgWq6PiVxeFDCbJzQ2J0=", None),
        ("wrong", "md5:00000000000000000000000000000000", Some("digest")),
        (
            "unknown",
            "blake3:6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85",
            Some("unchecked-digest"),
        ),
        ("malformed", "sha1:xyz", Some("unchecked-digest")),
    ];
    let file = stated.map(|(name, digest, _)| {
        let field = format!("WARC-Payload-Digest: {digest}");
        answer(
            &format!("urn:{name}"),
            &format!("http://a.example/{name}"),
            DAY,
            &[&field],
            "HTTP/1.1 200 OK\r\n\r\nabc",
        )
    });
    let (findings, summary) = import_twice(&archive, file.concat());
    let expected: Vec<&str> = stated.iter().filter_map(|(_, _, kind)| *kind).collect();
    assert_eq!(kinds(&findings), expected, "{findings:?}");
    assert_eq!(summary["wrong_digests"], 1);
    for (name, digest, _) in stated {
        let [(record, fields)] = &stored(&archive, &format!("http://a.example/{name}"))[..] else {
            panic!("{name}")
        };
        // A record states the correct digest; a different original one is kept next to it.
        let line = |name: &str| record.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        let found: archive_storage::Digest = line("WARC-Payload-Digest: ").unwrap().parse().unwrap();
        assert!(found.matches(b"abc"), "{name}");
        let kept = field(fields, "statedPayloadDigest");
        assert_eq!(kept, (name != "base64").then_some(digest), "{name}");
    }
}

/// A URL is stored as its parser reads it, so that the archive agrees with its records; the same applies to file names.
#[test]
fn control_characters_do_not_come_between_a_record_and_the_archive() {
    let archive = Archive::new();
    let urls = [
        ("http://a.example/\rb", "http://a.example/b"),
        ("http://a.exa\tmple/\x0bc", "http://a.example/%0Bc"),
        ("http://a.example/\u{85}d?\x1b[31m", "http://a.example/%C2%85d?%1B[31m"),
        ("http://a.example/e#\x7f", "http://a.example/e"),
    ];
    let file: Vec<_> =
        (0..).zip(urls).map(|(id, (url, _))| response(&format!("urn:{id}"), url, DAY, url)).collect();
    let (findings, summary) = import(&archive, &[("od\u{1b}d\r\n.warc", file.concat())]);
    assert_eq!(kinds(&findings), ["url"; 4], "{findings:?}");
    assert_eq!(summary["captures"], 4);
    assert_eq!(archive.verify(), 4);
    for (_, url) in urls {
        let [(record, fields)] = &stored(&archive, url)[..] else { panic!("{url}") };
        let imported = field(fields, "importedFrom").unwrap();
        assert!(!imported.contains(char::is_control) && imported.ends_with(".warc"), "{imported:?}");
        let stated = record.lines().find_map(|line| line.strip_prefix("WARC-Target-URI: ")).unwrap();
        assert!(!stated.contains(char::is_control), "{stated:?}");
    }
    assert_eq!(import(&archive, &[("again.warc", file.concat())]).1["duplicates"], 4);
    archive.run("rebuild", &[""; 0]).succeeded();
    assert_eq!(archive.verify(), 4);

    // Every line of the exports is complete.
    let out = archive.folder().join("index.cdxj");
    archive.run("export", &["cdxj".as_ref(), "--output".as_ref(), out.as_os_str()]).succeeded();
    let lines = std::fs::read_to_string(&out).unwrap();
    assert_eq!(lines.lines().count(), 4);
    for line in lines.lines() {
        let [surt, time, json] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        assert!(
            surt.starts_with("example,a)/") && surt.bytes().all(|byte| byte.is_ascii_graphic()),
            "{line}"
        );
        assert_eq!(time, "20140103030321");
        serde_json::from_str::<Value>(json).unwrap();
    }
}

/// W3C, "Date and Time Formats", which WARC/1.1 (section 5.4) follows.
#[test]
fn dates_stay_as_they_are_stated() {
    let archive = Archive::new();
    let stated = [
        ("2014", "2014-01-01T00:00:00Z", true),
        ("2014-02", "2014-02-01T00:00:00Z", true),
        ("2014-03-04", "2014-03-04T00:00:00Z", true),
        ("2014-03-04T05Z", "2014-03-04T05:00:00Z", true),
        ("2014-03-04T05:06Z", "2014-03-04T05:06:00Z", true),
        ("2014-03-04T05:06:07Z", "2014-03-04T05:06:07Z", false),
        ("2014-03-04T05:06:07.123456789Z", "2014-03-04T05:06:07.123456Z", false),
        ("2014-03-04T05:06:07.5Z", "2014-03-04T05:06:07.500Z", false),
    ];
    let url = "http://a.example/";
    let file = stated.map(|(date, _, _)| response(&format!("urn:{date}"), url, date, date));
    let (findings, _) = import_twice(&archive, file.concat());
    assert_eq!(kinds(&findings), ["date"; 5], "{findings:?}");
    let records = stored(&archive, url);
    let store = Store::read_only(&archive.path).unwrap();
    let id = store.state().find(url).unwrap().unwrap();
    let times: Vec<i64> = store.state().history(id).unwrap().map(|capture| capture.unwrap().1.time).collect();
    for ((place, (date, time, is_partial)), ((record, _), found)) in
        stated.iter().enumerate().zip(records.iter().zip(times.iter().rev()))
    {
        assert!(record.contains(&format!("WARC-Date: {date}\r\n")), "{record}");
        assert_eq!(chrono::DateTime::parse_from_rfc3339(time).unwrap().timestamp_micros(), *found, "{date}");
        if *is_partial {
            let what = findings[place]["what"].as_str().unwrap();
            assert!(what.contains(date) && what.contains(time), "{what}");
        }
    }
    drop(store);
    // Other date formats are converted to the standard one.
    let odd = [response("urn:o", "http://o.example/", "20140304050607", "x")].concat();
    import(&archive, &[("odd.warc", odd)]);
    assert!(stored(&archive, "http://o.example/")[0].0.contains("WARC-Date: 2014-03-04T05:06:07Z\r\n"));
}
