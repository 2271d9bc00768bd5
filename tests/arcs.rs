//! ARC files, as old crawlers wrote them, are imported like WARC files.

use archive_storage::Store;
use serde_json::Value;

use crate::imports::import;
use crate::support::program::start;
use crate::support::warc::member;
use crate::support::{Archive, captures, judges, ledger_balances};

const HTTP: &str = "HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n<title>One</title><p>plain words";

/// Returns a record: its line without the length, and its document.
fn record(line: &str, document: &str) -> Vec<u8> {
    format!("{line} {}\n{document}\n", document.len()).into_bytes()
}

/// Returns the record that begins a file.
fn first(version: u8) -> Vec<u8> {
    let fields = match version {
        1 => "URL IP-address Archive-date Content-type Archive-length",
        _ => {
            "URL IP-address Archive-date Content-type Result-code Checksum Location Offset Filename Archive-length"
        }
    };
    let more = if version == 2 { " 200 - - 0 a.arc" } else { "" };
    let line = format!("filedesc://a.arc 0.0.0.0 19970102030405 text/plain{more}");
    record(&line, &format!("{version} 0 Archive\n{fields}\n"))
}

/// What is known of the captures of an archive: the record's type, URL, date, address, media type and content.
fn stored(archive: &Archive) -> Vec<[String; 6]> {
    let store = Store::read_only(&archive.path).unwrap();
    let mut all = Vec::new();
    for page in (0..store.state().url_count()).map(archive_storage::UrlId) {
        for capture in store.state().history(page).unwrap() {
            let record = store.record(capture.unwrap().1.location).unwrap();
            let field = |name| record.header.get(name).unwrap_or("-").to_owned();
            let content = String::from_utf8_lossy(&record.content).into_owned();
            let [kind, url, date, address, media] =
                ["WARC-Type", "WARC-Target-URI", "WARC-Date", "WARC-IP-Address", "Content-Type"].map(field);
            all.push([kind, url, date, address, media, content]);
        }
    }
    all.sort();
    all
}

fn kinds(findings: &[Value]) -> Vec<(&str, &str)> {
    findings.iter().map(|one| (one["kind"].as_str().unwrap(), one["what"].as_str().unwrap())).collect()
}

/// The records of one old file: pages, a page without a head, a redirect, a lookup, an address in a mail.
fn records(version: u8) -> Vec<Vec<u8>> {
    let of = |url: &str, address: &str, date: &str, kind: &str, document: &str| {
        let more = if version == 2 { " 200 5cf6 - 117 a.arc" } else { "" };
        record(&format!("{url} {address} {date} {kind}{more}"), document)
    };
    vec![
        first(version),
        of("http://a.test/", "1.2.3.4", "19970102030405", "text/html", HTTP),
        of("http://a.test/a b", "0.0.0.0", "199701020304", "text/html", "<title>Two</title><p>no head"),
        of(
            "http://a.test/old",
            "1.2.3.4",
            "19970231",
            "no-type",
            "HTTP/1.0 302 Found\r\nLocation: /\r\n\r\n",
        ),
        of(
            "dns:a.test",
            "8.8.8.8",
            "19970102030406",
            "text/dns",
            "19970102030406\na.test. 60 IN A 1.2.3.4\n",
        ),
    ]
}

#[test]
fn files_of_all_versions_and_packings_are_the_same() {
    let mut expected: Option<Vec<_>> = None;
    for version in [1, 2] {
        let plain = records(version).concat();
        let members: Vec<u8> = records(version).iter().flat_map(|record| member(record)).collect();
        let tight: Vec<u8> = records(version).iter().flat_map(|it| it[..it.len() - 1].to_vec()).collect();
        for (name, file) in
            [("a.arc", plain.clone()), ("a.warc", members), ("whole.gz", member(&plain)), ("tight", tight)]
        {
            let archive = Archive::new();
            let (findings, summary) = import(&archive, &[(name, file)]);
            // Dates that omit something are named.
            assert_eq!(
                kinds(&findings).iter().filter(|(kind, _)| *kind == "date").count(),
                2,
                "{name} {findings:?}"
            );
            let sums = ["captures", "broken", "refused_files"].map(|of| summary[of].as_u64().unwrap());
            assert_eq!(sums, [4, 0, 0], "{name}: {summary} {findings:?}");
            assert_eq!(summary["left_out_types"]["warcinfo"], 1);
            let (_, again) = import(&archive, &[("again", plain.clone())]);
            assert_eq!((&again["captures"], &again["duplicates"]), (&0.into(), &4.into()), "{name}");
            let stored = stored(&archive);
            assert_eq!(*expected.get_or_insert_with(|| stored.clone()), stored, "{name}");
            assert_eq!(archive.verify(), 4);
            ledger_balances(&archive.path);
        }
    }
    let lines: Vec<String> = expected.unwrap().iter().map(|fields| fields[..5].join(" ")).collect();
    let http = "application/http; msgtype=response";
    assert_eq!(
        lines,
        [
            "resource dns:a.test 1997-01-02T03:04:06Z 8.8.8.8 text/dns".to_owned(),
            "resource http://a.test/a b 1997-01-02T03:04Z - text/html".to_owned(),
            format!("response http://a.test/ 1997-01-02T03:04:05Z 1.2.3.4 {http}"),
            format!("response http://a.test/old 1997-02 1.2.3.4 {http}"),
        ]
    );
}

#[test]
fn documents_of_old_files_are_pages() {
    let archive = Archive::new();
    import(&archive, &[("a.arc.gz", records(1).iter().flat_map(|record| member(record)).collect())]);
    let query = "page host = \"a.test\" order by url select url, status, title";
    let pages = start(archive.command("query").args([query, "--json"])).wait().succeeded().json();
    let rows: Vec<String> =
        pages.iter().map(|page| format!("{} {} {}", page["url"], page["status"], page["title"])).collect();
    assert_eq!(
        rows,
        [
            r#""http://a.test/" 200 "One""#,
            r#""http://a.test/a%20b" 200 "Two""#,
            r#""http://a.test/old" 302 null"#
        ]
    );
}

#[test]
fn damage_is_reported_and_what_is_there_is_kept() {
    let whole = |number: u32| {
        let line = format!("http://a.test/{number} 1.2.3.4 1997010203{number:02}00 text/html");
        record(&line, &HTTP.replace("One", &number.to_string()))
    };
    let with_length = |number: u32, length: usize| {
        let record = String::from_utf8(whole(number)).unwrap();
        let (line, document) = record.split_once('\n').unwrap();
        format!("{} {length}\n{document}", line.rsplit_once(' ').unwrap().0).into_bytes()
    };
    let head = first(1);
    let cut = |record: Vec<u8>| record[..record.len() - 9].to_vec();
    let strange = record("http://a.test/9 1.2.3.4 yesterday text/html", HTTP);
    for (name, file, captures_there, findings_there) in [
        (
            "too short",
            [head.clone(), with_length(1, 20), whole(2)].concat(),
            2,
            &["no ARC record starts here"][..],
        ),
        (
            "too long",
            [head.clone(), with_length(1, 150), whole(2), whole(3)].concat(),
            3,
            &["shorter than its Archive-length"],
        ),
        (
            "too long in a member",
            [member(&head), member(&with_length(1, 150)), member(&whole(2))].concat(),
            2,
            &["shorter than its Content-Length"],
        ),
        ("cut", [head.clone(), whole(1), cut(whole(2))].concat(), 2, &["bytes that are there were imported"]),
        (
            "cut member",
            [member(&head), member(&whole(1)), cut(member(&whole(2)))].concat(),
            2,
            &["that are there were imported"],
        ),
        (
            "garbage",
            [head.clone(), b"no record\n".to_vec(), whole(1)].concat(),
            1,
            &["no ARC record starts here"],
        ),
        (
            "no beginning",
            [b"tail of a page\n".to_vec(), whole(1)].concat(),
            1,
            &["no WARC record starts here"],
        ),
        ("no date", [head.clone(), strange, whole(1)].concat(), 1, &["no WARC-Date that can be read"]),
        (
            "no length",
            [head.clone(), b"http://a.test/8 1.2.3.4 19970102030405 a/b -1\n".to_vec(), whole(1)].concat(),
            1,
            &["no ARC record"],
        ),
    ] {
        let archive = Archive::new();
        let (findings, summary) = import(&archive, &[("a.arc", file)]);
        let found = kinds(&findings);
        assert_eq!(summary["captures"], captures_there, "{name}: {found:?}");
        assert_eq!(found.len(), findings_there.len(), "{name}: {found:?}");
        for ((kind, what), expected) in found.iter().zip(findings_there) {
            assert!(*kind == "broken" && what.contains(expected), "{name}: {what}");
        }
        assert_eq!(archive.verify(), captures_there);
    }
}

/// A line before a document is read up to its limit.
#[test]
fn lines_of_old_files_have_a_limit() {
    for (more, captures_there) in [(0, 1), (1, 0)] {
        let end = format!(" 1.2.3.4 19970102030405 text/html {}", HTTP.len());
        let path = "a".repeat((64 << 10) - 1 - "http://a.test/?".len() - end.len() + more);
        let file = format!("http://a.test/?{path}{end}\n{HTTP}\n");
        let archive = Archive::new();
        let (findings, summary) = import(&archive, &[("a.arc", [first(1), file.into_bytes()].concat())]);
        // The URL itself is too long for an archive.
        let what = findings[0]["what"].as_str().unwrap();
        assert_eq!(what.contains("its URL has more than"), captures_there == 1, "{what}");
        assert_eq!(summary["captures"], 0);
    }
}

/// warcio finds the same records in files of the first version: it does not know the second.
#[test]
fn another_reader_finds_the_same_records() {
    let Some(judges) = judges::find() else { return };
    let archive = Archive::new();
    let mut all = records(1);
    // It stops where a date or the end of a line is missing.
    all.remove(3);
    let file = archive.file("judged.arc", all.concat());
    start(archive.command("import").arg(&file)).wait().succeeded();
    let script = "import sys, json\nfrom warcio.archiveiterator import ArchiveIterator\n\
        for r in ArchiveIterator(open(sys.argv[1], 'rb'), no_record_parse=True, arc2warc=False):\n    \
        if r.rec_type == 'response':\n        \
        h = r.rec_headers\n        \
        print(json.dumps([h.get_header('uri'), h.get_header('ip-address'), r.raw_stream.read().decode()]))";
    let said = judges::succeed(judges.program("python").args(["-c", script]).arg(&file), "");
    let mut theirs: Vec<[String; 3]> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    theirs.sort();
    let mut ours: Vec<[String; 3]> = stored(&archive)
        .into_iter()
        .map(|[_, url, _, address, _, content]| [url, address.replace('-', "0.0.0.0"), content])
        .collect();
    ours.sort();
    assert_eq!(ours, theirs);
    assert_eq!(captures(&archive.path).count(), 3);
}
