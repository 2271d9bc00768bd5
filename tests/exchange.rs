//! WARC files of other tools are imported completely, in any order.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use archive_storage::warc::RecordReader;
use archive_storage::{Capture, CaptureKind, Digest, Store};
use archive_testweb::Config;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::crawl::lively;
use crate::support::judges;
use crate::support::program::start;
use crate::support::{Archive, TestWeb, captures, files_with, ledger_balances, skip};

/// Returns the folder of WARC files written by other tools, `$ARCHIVE_TEST_DATA/warc`.
pub(crate) fn foreign() -> Option<PathBuf> {
    let data = std::env::var_os("ARCHIVE_TEST_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data"), PathBuf::from);
    if data.join("warc").is_dir() {
        return Some(data.join("warc"));
    }
    skip(&format!("there is no {}", data.join("warc").display()));
    None
}

/// Returns two crawls of one site by Heritrix; the second has 55 revisits of captures in the first.
pub(crate) fn pair(data: &Path) -> [PathBuf; 2] {
    ["121225068", "122341434"].map(|time| {
        data.join(format!("ukwa__webarchive-discovery/BL-20140325{time}-00000-32090~opera~8443.warc.gz"))
    })
}

/// Imports files; returns the findings and the summary.
fn import(archive: &Archive, files: &[PathBuf], code: i32) -> (Vec<Value>, Value) {
    let finished = start(archive.command("import").arg("--json").args(files)).wait();
    assert_eq!(finished.code, Some(code), "{}{}", finished.text(), finished.errors);
    let mut lines = finished.json();
    let summary = lines.pop().unwrap();
    (lines, summary)
}

/// A page's captures, newest first, and its totals.
#[derive(Debug, PartialEq)]
struct Page {
    /// Time, status, kind, start of the digest, and whether the capture refers to another one.
    history: Vec<(i64, u16, CaptureKind, [u8; 16], bool)>,
    sums: [u32; 5],
}

/// Returns every capture of an archive as other tools see it, and the totals of each page.
fn known(archive: &Archive) -> BTreeMap<String, Page> {
    let store = Store::read_only(&archive.path).unwrap();
    let state = store.state();
    let mut pages = BTreeMap::new();
    for (id, visit) in state.visits(0).map(Result::unwrap).filter(|(_, visit)| visit.captures > 0) {
        let history = state.history(id).unwrap().map(|capture| {
            let (_, capture) = capture.unwrap();
            (capture.time, capture.status, capture.kind, capture.digest, capture.original.is_some())
        });
        let history: Vec<_> = history.collect();
        assert!(history.is_sorted_by(|newer, older| newer.0 >= older.0), "{}", state.url(id).unwrap());
        let sums = [visit.first_seen, visit.last_seen, visit.last_changed, visit.captures, visit.versions];
        pages.insert(state.url(id).unwrap(), Page { history, sums });
    }
    pages
}

#[test]
fn every_foreign_file_is_imported_and_nothing_twice() {
    let Some(data) = foreign() else { return };
    let archive = Archive::new();
    let mut files = Vec::new();
    for folder in std::fs::read_dir(data).unwrap() {
        files.extend(std::fs::read_dir(folder.unwrap().path()).unwrap().map(|file| file.unwrap().path()));
    }
    files.retain(|file| !file.to_string_lossy().ends_with(".cdx"));
    files.sort();
    let (findings, summary) = import(&archive, &files, 1);
    let found = |ending: &str, kind: &str| {
        let of =
            |finding: &&Value| finding["file"].as_str().unwrap().ends_with(ending) && finding["kind"] == kind;
        findings.iter().filter(of).collect::<Vec<_>>()
    };
    // Truncated files are cut where their authors say.
    for (file, offset) in
        [("corrupted-mid-record.warc.gz.open", 1219), ("corrupted-trailing-bytes.warc.gz.open", 2362)]
    {
        let broken = found(file, "broken");
        assert_eq!(broken.len(), 1, "{file}");
        assert_eq!(broken[0]["offset"], offset);
    }
    assert_eq!(found("example-wrong-chunks.warc.gz", "digest").len(), 1);
    // ClueWeb's crawler wrote days of the month up to 65.
    assert_eq!(found("clueweb-quirk.warc.gz", "broken").len(), 29);
    assert_eq!((&summary["refused_files"], &summary["open_revisits"]), (&0.into(), &0.into()), "{summary}");

    // The responses, revisits and resources that FastWARC finds in these files, one that is cut and one of an ARC file, minus 29 records
    // without a date (which are reported), minus those that occur in two files.
    let captured = captures(&archive.path);
    assert_eq!(captured.count() + summary["duplicates"].as_u64().unwrap(), CAPTURES);
    assert_eq!(summary["captures"].as_u64().unwrap(), captured.count());
    assert_eq!(archive.verify(), captured.count());
    ledger_balances(&archive.path);

    let (_, again) = import(&archive, &files, 1);
    assert_eq!(again["captures"], 0, "{again}");
    assert_eq!(captures(&archive.path).count(), captured.count());
}

/// Number of captures in all foreign files, including those that occur in two of them.
const CAPTURES: u64 = 718;

#[test]
fn histories_do_not_depend_on_the_order_of_imports() {
    let Some(data) = foreign() else { return };
    let [first, second] = pair(&data);
    let (together, forwards, backwards) = (Archive::new(), Archive::new(), Archive::new());
    import(&together, &[second.clone(), first.clone()], 0);
    for file in [&first, &second] {
        import(&forwards, std::slice::from_ref(file), 0);
    }
    let (findings, summary) = import(&backwards, std::slice::from_ref(&second), 0);
    let open = |findings: &[Value]| findings.iter().filter(|finding| finding["kind"] == "revisit").count();
    assert_eq!((open(&findings), &summary["open_revisits"]), (55, &55.into()));
    // Its crawler guessed links in scripts.
    assert_eq!((findings.len(), &findings[0]["kind"]), (56, &"left-out".into()), "{findings:?}");
    let (findings, summary) = import(&backwards, &[first], 0);
    assert_eq!((open(&findings), &summary["open_revisits"]), (0, &0.into()));

    let expected = known(&together);
    let revisits = expected.values().flat_map(|page| &page.history).filter(|capture| capture.4).count();
    assert_eq!(revisits, 55);
    for archive in [&forwards, &backwards] {
        let found = known(archive);
        for (url, page) in &expected {
            assert_eq!(found.get(url), Some(page), "{url}");
        }
        assert_eq!(found.len(), expected.len());
        assert_eq!(archive.verify(), 130);
        ledger_balances(&archive.path);
    }
    // An imported page is like any other: searchable by its text, with links and importance.
    let rows = together.json("query", &["page text contains \"open data\" and importance > 0 limit 5"]);
    assert_eq!(rows.len(), 5);
    let home = together.json("history", &["http://data.gov.uk/"]);
    assert_eq!(home.len(), 2, "{home:?}");
    let bytes = |at: &str| {
        start(together.command("get").args(["http://data.gov.uk/", "--at", at])).wait().succeeded().output
    };
    assert_eq!(bytes("20140325122351"), bytes("20140325121235"), "a revisit has its original's payload");
}

#[test]
fn a_file_may_be_packed_in_any_way() {
    let Some(data) = foreign() else { return };
    let plain = data.join("chatnoir-eu__chatnoir-resiliparse/warcfile.warc");
    let bytes = std::fs::read(&plain).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let whole_gzip = folder.path().join("whole.warc.gz");
    let mut packer = GzEncoder::new(std::fs::File::create(&whole_gzip).unwrap(), Compression::fast());
    packer.write_all(&bytes).unwrap();
    packer.finish().unwrap();
    let whole_zstd = folder.path().join("whole.warc.zst");
    std::fs::write(&whole_zstd, zstd::encode_all(&bytes[..], 3).unwrap()).unwrap();
    let expected = {
        let archive = Archive::new();
        import(&archive, &[plain], 0);
        known(&archive)
    };
    assert_eq!(expected.len(), 16);
    for file in [whole_gzip, whole_zstd, data.join("chatnoir-eu__chatnoir-resiliparse/warcfile.warc.gz")] {
        let archive = Archive::new();
        import(&archive, std::slice::from_ref(&file), 0);
        assert_eq!(known(&archive), expected, "{}", file.display());
        archive.verify();
    }
}

/// The facts of a capture from its metadata are extracted again and replace the imported ones.
#[test]
fn what_is_said_of_a_capture_is_not_said_twice_after_an_import() {
    // Faults have problems to record.
    let served = TestWeb::start(Config { faults: true, ..lively(99, 4, 60) });
    let first = Archive::new();
    let limits =
        ["--limit", "250", "--timeout", "1s", "--max-time", "4s", "--max-body", "4", "--scope", "any"];
    // Nothing that fails is asked for again, so it may be all that is left before the limit is reached.
    let crawled = start(first.crawl(&served.web.seeds(2), &served.with_patience("0s")).args(limits)).wait();
    assert!(matches!(crawled.code, Some(0 | 4)), "{}", crawled.errors);
    let second = Archive::new();
    import(&second, &files_with(&first.segments(), &[".warc.zst"]), 0);
    let fields = |archive: &Archive| {
        let store = Store::read_only(&archive.path).unwrap();
        let of = |capture: &Capture| {
            let mut fields = store.metadata(capture).unwrap();
            fields.retain(|(name, _)| name != "importedFrom" && name != "importedRecordId");
            fields.sort_unstable();
            (store.state().url(capture.url).unwrap(), fields)
        };
        captures(&archive.path).0.values().flatten().map(of).collect::<Vec<_>>()
    };
    let (before, after) = (fields(&first), fields(&second));
    assert_eq!(before.len(), after.len());
    let mut problems = 0;
    for ((url, before), (_, after)) in before.iter().zip(&after) {
        assert_eq!(after, before, "{url}");
        problems += after.iter().filter(|(name, _)| name == "problem").count();
    }
    assert!(problems > 3, "{problems} problems show nothing");
}

#[test]
fn what_cannot_be_imported_is_reported_in_one_sentence() {
    let archive = Archive::new();
    let none = archive.folder().join("none.warc.gz");
    let text = archive.file("text.warc", "This is no WARC file.\n");
    let (findings, summary) = import(&archive, &[none.clone(), text.clone()], 1);
    let row = |finding: &Value| {
        (finding["file"].as_str().unwrap().to_owned(), finding["what"].as_str().unwrap().to_owned())
    };
    let rows: Vec<_> = findings.iter().map(row).collect();
    assert_eq!(rows[0].0, none.display().to_string());
    assert!(rows[0].1.contains("No such file"), "{rows:?}");
    assert_eq!(rows[1], (text.display().to_string(), "no WARC record starts here".to_owned()));
    assert_eq!((&summary["captures"], &summary["refused_files"]), (&0.into(), &1.into()));
    start(&mut archive.command("import")).wait().refused(2, &["FILES"]);
}

/// Our own segments are valid WARC files: other tools read the imported records correctly.
#[test]
fn segments_of_imports_please_other_readers() {
    let (Some(data), Some(judges)) = (foreign(), judges::find()) else { return };
    let archive = Archive::new();
    let codec = ["--codec", "gzip"].map(PathBuf::from);
    import(&archive, &[&codec[..], &pair(&data)].concat(), 0);
    let records = judges.check(&archive.segments());
    assert_eq!(records.warcio, records.fastwarc);
    assert_eq!(records.fastwarc["revisit"], 55);
    assert_eq!(records.fastwarc["response"], 75);
}

/// Another tool's package imports like its files; a file that is not a package, or a truncated one, is reported in a
/// sentence.
#[test]
fn packages_of_other_tools_are_imported() {
    let (Some(data), Some(judges)) = (foreign(), judges::find()) else { return };
    let (packed, plain) = (Archive::new(), Archive::new());
    let files = pair(&data);
    let package = packed.folder().join("collection.wacz");
    let mut command = judges.program("wacz");
    judges::succeed(command.arg("create").arg("-o").arg(&package).args(&files), "");
    import(&plain, &files, 0);
    let (_, summary) = import(&packed, std::slice::from_ref(&package), 0);
    assert_eq!((&summary["files"], &summary["captures"]), (&2.into(), &130.into()), "{summary}");
    assert_eq!(known(&packed), known(&plain));

    let whole = std::fs::read(&package).unwrap();
    let torn = packed.folder().join("torn.wacz");
    std::fs::write(&torn, &whole[..whole.len() / 2]).unwrap();
    let other = packed.folder().join("other.zip");
    let mut zip = zip::ZipWriter::new(std::fs::File::create(&other).unwrap());
    zip.start_file("notes.txt", zip::write::SimpleFileOptions::default()).unwrap();
    zip.write_all(b"no records").unwrap();
    zip.finish().unwrap();
    let (findings, summary) = import(&packed, &[torn, other, package], 1);
    let reported: Vec<&str> = findings.iter().map(|finding| finding["what"].as_str().unwrap()).collect();
    assert_eq!(reported.len(), 2, "{reported:?}");
    assert!(reported[0].contains("cannot be read"), "{reported:?}");
    assert!(reported[1].contains("not a WACZ package"), "{reported:?}");
    assert_eq!((&summary["refused_files"], &summary["duplicates"]), (&2.into(), &130.into()), "{summary}");
}

/// An option stores a second copy of the dictionary at the end of a file, which FastWARC can read.
#[test]
fn dictionaries_have_a_second_copy_by_setting() {
    let (Some(data), Some(judges)) = (foreign(), judges::find()) else { return };
    let archive = Archive::new();
    let [first, second] = pair(&data);
    let copy = ["--dictionary-guard", "copy"].map(PathBuf::from);
    for file in [first, second] {
        import(&archive, &[&copy[..], &[file]].concat(), 0);
    }
    let summaries = std::fs::read_to_string(archive.segments().join("segments.jsonl")).unwrap();
    let summaries = summaries.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let guarded: Vec<Value> = summaries.filter(|summary| !summary["dictionary"].is_null()).collect();
    assert!(!guarded.is_empty());
    for summary in guarded {
        assert_eq!(summary["guard"], "copy");
        let segment = std::fs::read(archive.segments().join(summary["name"].as_str().unwrap())).unwrap();
        let length = u32::from_le_bytes(segment[4..8].try_into().unwrap()) as usize;
        let last = segment.split_at(segment.len() - length - 8).1;
        assert_eq!(last[..4], 0x184D_2A51_u32.to_le_bytes());
        assert_eq!(last[4..], segment[4..length + 8], "the first frame's content once more");
    }
    assert_eq!(judges.check(&archive.segments()).fastwarc["response"], 75);
}

/// Files that FastWARC reads differently: it returns a truncated record, which we report as broken, and it skips the
/// record before a broken one.
const READ_OTHERWISE: [&str; 2] = ["clipped.warc.gz", "example-trunc.warc"];

#[test]
fn records_and_their_blocks_are_those_that_fastwarc_reads() {
    let (Some(data), Some(judges)) = (foreign(), judges::find()) else { return };
    let folders = std::fs::read_dir(data).unwrap().map(|folder| folder.unwrap().path());
    let endings = [".warc", ".warc.gz", ".warc.gz.open"];
    let mut files: Vec<PathBuf> = folders.flat_map(|folder| files_with(&folder, &endings)).collect();
    files.retain(|file| !READ_OTHERWISE.iter().any(|name| file.ends_with(name)));
    files.sort();
    assert!(files.len() > 40, "{}", files.len());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/list_records.py");
    let theirs = judges::succeed(judges.program("python").arg(script).args(&files), "");
    let theirs: Vec<[String; 4]> = theirs.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut ours = Vec::new();
    for file in &files {
        let records = RecordReader::new(std::fs::File::open(file).unwrap());
        ours.extend(records.flatten().map(|record| {
            let header = &record.header;
            let block = Digest::sha256(&record.content).to_string();
            [
                file.display().to_string(),
                header.get("WARC-Type").unwrap_or_default().to_owned(),
                header.target_uri().unwrap_or_default().to_owned(),
                block.trim_start_matches("sha256:").to_owned(),
            ]
        }));
    }
    for (number, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        assert_eq!(ours, theirs, "record {number}");
    }
    assert_eq!(ours.len(), theirs.len());
}
