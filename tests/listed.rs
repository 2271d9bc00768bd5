//! Lists of captures (CDX, CDXJ): beside imported files, of other archives, and as seeds.

use serde_json::Value;

use crate::support::Archive;
use crate::support::program::start;
use crate::support::warc::{answer, member};

const DAY: &str = "2014-01-03T03:03:21Z";

/// SHA-1 of `one`, which the records do not state: other tools do.
const ONE: &str = "7YC3ZXG4JEUACJ4BUXY2FJ34XNJZRYIG";

/// Returns a file with the answers `one` and `two`, and what a tool would list of it.
fn collection() -> (Vec<u8>, String) {
    let page = |number: usize, body: &str| {
        let url = format!("http://a.test/{number}");
        let http = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{body}");
        member(&answer(&format!("urn:{number}"), &url, DAY, &[], &http))
    };
    let line = |number: usize, digest: &str| {
        format!(
            "test,a)/{number} 20140103030321 http://a.test/{number} text/html 200 {digest} - - 9 9 a.warc.gz\n"
        )
    };
    let other = "A".repeat(32);
    let list = [" CDX N b a m s k r M S V g\n".to_owned(), line(1, ONE), line(2, &other), line(3, &other)];
    ([page(1, "one"), page(2, "two")].concat(), list.concat())
}

fn import(archive: &Archive, arguments: &[&std::path::Path]) -> (Option<i32>, Vec<Value>, Value) {
    let finished = start(archive.command("import").arg("--json").args(arguments)).wait();
    let mut lines = finished.json();
    let summary = lines.pop().unwrap_or_else(|| panic!("{}", finished.errors));
    (finished.code, lines, summary)
}

fn of_kind<'a>(findings: &'a [Value], kind: &str) -> Vec<&'a str> {
    let of_kind = findings.iter().filter(|finding| finding["kind"] == kind);
    of_kind.map(|finding| finding["what"].as_str().unwrap()).collect()
}

/// A folder as older tools leave it: files of records and their list, beside other things.
#[test]
fn a_folder_is_imported_and_its_list_compared() {
    let archive = Archive::new();
    let (records, list) = collection();
    let folder = archive.folder().join("old");
    std::fs::create_dir_all(folder.join("warcs")).unwrap();
    std::fs::write(folder.join("warcs/a.warc.gz"), records).unwrap();
    std::fs::write(folder.join("index.cdx"), &list).unwrap();
    std::fs::write(folder.join("crawl.log"), "not a record").unwrap();
    let (code, findings, summary) = import(&archive, &[&folder]);
    assert_eq!((code, &summary["captures"], &summary["files"]), (Some(1), &2.into(), &1.into()));
    let counts = ["listed", "listed_missing", "listed_otherwise"].map(|name| summary[name].as_u64().unwrap());
    assert_eq!(counts, [3, 1, 1], "{findings:?}");
    assert_eq!(
        of_kind(&findings, "listed"),
        [
            "the capture of http://a.test/2 at 2014-01-03T03:03:21Z, listed in a.warc.gz, has another digest in the archive",
            "the capture of http://a.test/3 at 2014-01-03T03:03:21Z, listed in a.warc.gz, is not in the archive",
        ]
    );
    assert_eq!(
        of_kind(&findings, "list"),
        [
            "of the 3 captures that it lists, the archive has 1, 1 with another digest, and lacks 1 (1 of a.warc.gz)"
        ]
    );
}

/// The archive's own index, and that of an archive elsewhere, which has one more capture.
#[test]
fn an_archive_is_compared_with_a_list_alone() {
    let archive = Archive::new();
    let (records, _) = collection();
    let file = archive.file("a.warc.gz", &records);
    assert_eq!(import(&archive, &[&file]).0, Some(0));
    let index = archive.folder().join("own.cdxj");
    archive.run("export", &["cdxj".as_ref(), "--output".as_ref(), index.as_os_str()]).succeeded();
    let (code, findings, summary) = import(&archive, &[&index]);
    assert_eq!((code, of_kind(&findings, "listed").len()), (Some(0), 0), "{findings:?}");
    assert_eq!((&summary["listed"], &summary["listed_missing"]), (&2.into(), &0.into()));

    let rows = r#"[["urlkey","timestamp","original","mimetype","statuscode","digest","length"],
["test,a)/1","20140103030321","http://a.test/1","text/html","200","7YC3ZXG4JEUACJ4BUXY2FJ34XNJZRYIG","9"],
["test,a)/1","20150103030321","http://a.test/1","text/html","200","7YC3ZXG4JEUACJ4BUXY2FJ34XNJZRYIG","9"]]"#;
    let served = archive.file("served.json", member(rows.as_bytes()));
    let (code, findings, _) = import(&archive, &[&served]);
    assert_eq!(code, Some(1));
    let expected = "the capture of http://a.test/1 at 2015-01-03T03:03:21Z is not in the archive";
    assert_eq!(of_kind(&findings, "listed"), [expected]);
}
