//! Files of other tools are imported or reported, to the last record.

use archive_storage::{CaptureKind, Store};
use serde_json::Value;

use crate::support::program::start;
use crate::support::warc::{answer, record, response};
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

/// The matching responses are in another file, or nowhere.
#[test]
fn a_request_without_its_answer_is_kept() {
    let request = |id: &str, url: &str, concurrent: &str, bytes: &str| {
        let fields = [
            "WARC-Type: request".to_owned(),
            format!("WARC-Record-ID: <{id}>"),
            format!("WARC-Target-URI: {url}"),
            format!("WARC-Date: {DAY}"),
            format!("WARC-Concurrent-To: <{concurrent}>"),
            "Content-Type: application/http; msgtype=request".to_owned(),
        ];
        record(&fields.each_ref().map(String::as_str), bytes)
    };
    let requests = [
        request("urn:q:1", "http://a.example/", "urn:a:1", "GET / HTTP/1.1\r\n\r\n"),
        request("urn:q:2", "http://a.example/", "urn:a:2", "POST / HTTP/1.1\r\n\r\nx"),
        request("urn:q:3", "http://nowhere.example/", "urn:a:3", "GET /3 HTTP/1.1\r\n\r\n"),
    ]
    .concat();
    let answers = response("urn:a:1", "http://a.example/", DAY, "<title>A</title><a href=/b>b</a>");
    let (before, after) = (Archive::new(), Archive::new());
    for (archive, files) in [(&before, [&answers, &requests]), (&after, [&requests, &answers])] {
        for (number, file) in files.iter().enumerate() {
            import_twice_of(archive, number, file);
        }
        assert_eq!(archive.verify(), 4);
        let page = stored(archive, "http://a.example/");
        assert_eq!(page.len(), 3);
        let known = captures(&archive.path);
        let answered: Vec<_> = known.0["http://a.example/"].iter().map(|capture| capture.kind).collect();
        assert_eq!(answered.iter().filter(|kind| **kind == CaptureKind::Failed).count(), 2);
        // The page is its response, whichever record came first.
        let rows = archive.json("query", &["title = \"A\" and status = 200"]);
        assert_eq!(rows.len(), 1, "{rows:?}");
        let links = archive.folder().join("links.tsv");
        archive.run("export", &["links".as_ref(), "--output".as_ref(), links.as_os_str()]).succeeded();
        assert!(std::fs::read_to_string(links).unwrap().contains("http://a.example/b"));
        let text = all_records(archive);
        for bytes in ["GET / HTTP/1.1", "POST / HTTP/1.1", "GET /3 HTTP/1.1"] {
            assert!(text.contains(bytes), "{bytes} was lost");
        }
    }
}

fn import_twice_of(archive: &Archive, number: usize, file: &[u8]) {
    for name in ["once", "twice"] {
        let (findings, summary) = import(archive, &[(&format!("{name}-{number}.warc"), file.to_vec())]);
        assert_eq!(findings, Vec::<Value>::new());
        assert_eq!(summary["captures"] == 0, name == "twice", "{summary}");
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
    ];
    let (findings, summary) = import(&archive, &[("a.warc", file.concat())]);
    assert_eq!(kinds(&findings), ["left-out"]);
    let what = findings[0]["what"].as_str().unwrap();
    for words in ["2 conversion", "1 continuation", "1 metadata", "1 of other types"] {
        assert!(what.contains(words), "{what}");
    }
    assert_eq!(
        (&summary["records"], &summary["captures"], &summary["left_out"]),
        (&7.into(), &1.into(), &6.into())
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
