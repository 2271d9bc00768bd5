//! Files designed to exhaust their readers. The operating system limits memory and processor time and ends a process
//! that exceeds them. Both limits are many times what an import takes, and a small part of what these files once took.

use std::io::Write as _;
use std::process::Command;

use serde_json::Value;
use zip::CompressionMethod;
use zip::write::SimpleFileOptions;

use crate::support::program::{Finished, start};
use crate::support::small_disk::SmallDisk;
use crate::support::warc::{answer, member, record, response};
use crate::support::{Archive, Dice, captures, ledger_balances};

/// Value of `--memory`.
const MEMORY: &str = "192MiB";

/// Limit of the operating system for the writable memory of such an import, in MiB, including what every process needs
/// before it does anything.
const DATA_MIB_MAX: u64 = 512;

/// Limit for the processor time in seconds for any of these files, with an unoptimized program.
const CPU_SECONDS_MAX: u64 = 60;

const DAY: &str = "2014-01-03T03:03:21Z";

/// Imports a file within limits.
fn import(archive: &Archive, name: &str, content: impl AsRef<[u8]>) -> Finished {
    import_with(archive, name, content, MEMORY, DATA_MIB_MAX)
}

/// Imports a file with another `--memory` and another limit for the process, in MiB.
fn import_with(
    archive: &Archive,
    name: &str,
    content: impl AsRef<[u8]>,
    memory: &str,
    data_mib_max: u64,
) -> Finished {
    let file = archive.file(name, content);
    let mut limited = Command::new("prlimit");
    limited.arg(format!("--data={}", data_mib_max << 20)).arg(format!("--cpu={CPU_SECONDS_MAX}"));
    limited.arg(env!("CARGO_BIN_EXE_archive")).arg("import").arg("--archive").arg(&archive.path);
    limited.args(["--memory", memory, "--no-full-text", "--threads", "8", "--json"]).arg(file);
    start(limited.env_remove("ARCHIVE_DIR")).wait()
}

/// Returns the summary of an import that reached its end.
fn summary(finished: &Finished) -> Value {
    assert!(matches!(finished.code, Some(0 | 1)), "{:?}: {}", finished.status, finished.errors);
    finished.json().pop().unwrap()
}

/// Returns a response with additional fields, whose body is one chunk of this many zeros if it is chunked.
fn bomb(url: &str, more: &[&str], coding: &str, bytes: usize) -> Vec<u8> {
    let http = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{coding}\r\n{bytes:x}\r\n");
    let head = String::from_utf8(answer(url, url, DAY, more, "")).unwrap();
    let head =
        head.trim_end().replace("Content-Length: 0", &format!("Content-Length: {}", http.len() + bytes));
    let zeros = vec![b'0'; 1 << 20];
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    write!(packer, "{head}\r\n\r\n{http}").unwrap();
    (0..bytes >> 20).for_each(|_| packer.write_all(&zeros).unwrap());
    packer.write_all(b"\r\n\r\n").unwrap();
    packer.finish().unwrap()
}

/// Records that decompress to gigabytes are all imported.
#[test]
fn contents_that_unpack_to_gigabytes_go_through_files() {
    const RECORDS: usize = 4;
    const BYTES: usize = 150 << 20;
    for coding in ["", "Transfer-Encoding: chunked\r\n"] {
        let archive = Archive::new();
        let pages =
            (0..RECORDS).map(|number| bomb(&format!("http://a.example/{number}"), &[], coding, BYTES));
        let file = pages.collect::<Vec<_>>().concat();
        assert!(file.len() < 12 << 20, "{}", file.len());
        let summary = summary(&import(&archive, "bomb.warc.gz", file));
        assert_eq!((&summary["captures"], &summary["broken"]), (&RECORDS.into(), &0.into()));
        let lengths: Vec<u32> =
            captures(&archive.path).0.values().map(|captures| captures[0].length).collect();
        let chunk_line = format!("{BYTES:x}\r\n").len();
        let expected = if coding.is_empty() { BYTES + chunk_line } else { BYTES };
        assert_eq!(lengths, [expected as u32; RECORDS]);
    }
}

/// Heads and metadata with short lines take much more space in memory than in a file.
#[test]
fn floods_of_fields_are_cut() {
    let archive = Archive::new();
    let lines = ":\n".repeat(8 << 20);
    let metadata = |number: usize| {
        let fields = [
            "WARC-Type: metadata",
            "Content-Type: application/warc-fields",
            "WARC-Target-URI: http://m.example/",
        ];
        let (id, to) =
            (format!("WARC-Record-ID: <urn:m:{number}>"), format!("WARC-Concurrent-To: <urn:a:{number}>"));
        let date = format!("WARC-Date: {DAY}");
        record(&[&fields[..], &[&id, &to, &date]].concat(), &lines[..3 << 20])
    };
    let mut file = Vec::new();
    for number in 0..6 {
        let url = format!("http://a.example/{number}");
        file.extend(member(&answer(
            &format!("urn:a:{number}"),
            &url,
            DAY,
            &[],
            &format!("HTTP/1.1 200 OK\r\n{lines}"),
        )));
        file.extend(member(&metadata(number)));
    }
    let summary = summary(&import(&archive, "fields.warc.gz", file));
    assert_eq!(summary["captures"], 6);
}

/// A base of the largest allowed length, for ten thousand links of two bytes.
#[test]
fn pages_of_long_links_wait_for_their_turn() {
    let archive = Archive::new();
    let base = format!("http://a.example/{}/", "b".repeat(1900));
    let links: String = (0..10_000).map(|number| format!("<a href={number}>")).collect();
    let file: Vec<_> = (0..12)
        .map(|number| {
            let body = format!("<base href={base}{number}/>{links}");
            member(&response(&format!("urn:{number}"), &format!("http://a.example/{number}"), DAY, &body))
        })
        .collect();
    let finished = import(&archive, "links.warc.gz", file.concat());
    assert_eq!(summary(&finished)["captures"], 12);
}

/// The cost does not depend on how a file is cut into members, or on how many of them are empty.
#[test]
fn many_small_members_cost_no_more_than_few() {
    const MEMBERS: usize = 200_000;
    let archive = Archive::new();
    let http = "HTTP/1.1 200 OK\r\n\r\n";
    let head = String::from_utf8(answer("urn:1", "http://a.example/", DAY, &[], "")).unwrap();
    let head =
        head.trim_end().replace("Content-Length: 0", &format!("Content-Length: {}", http.len() + MEMBERS));
    let (letter, line_end, nothing) = (member(b"a"), member(b"\n"), member(b""));
    let mut file = member(format!("{head}\r\n\r\n{http}").as_bytes());
    (0..MEMBERS).for_each(|_| file.extend_from_slice(&letter));
    (0..MEMBERS)
        .for_each(|number| file.extend_from_slice(if number % 2 == 0 { &line_end } else { &nothing }));
    file.extend(member(&response("urn:2", "http://a.example/2", DAY, "last")));
    let summary = summary(&import(&archive, "members.warc.gz", file));
    assert_eq!((&summary["captures"], &summary["broken"]), (&2.into(), &0.into()));
}

/// Everything looks like the beginning of a record, and nothing is one.
#[test]
fn beginnings_of_records_without_end_cost_no_more_than_other_text() {
    let line = "WARC/1.0\r\n";
    let without_end = line.repeat((1 << 20) / line.len());
    let without_length = format!("{}\r\n", line.repeat((1 << 19) / line.len() - 1));
    let last = response("urn:2", "http://a.example/2", DAY, "last");
    let tiny: Vec<u8> = (0..60_000).flat_map(|_| member(b"xWARC/1")).collect();
    for (name, content) in [
        ("end.warc", without_end.clone().into_bytes()),
        ("end.warc.gz", member(without_end.as_bytes())),
        ("length.warc", without_length.repeat(2).into_bytes()),
        ("length.warc.zst", zstd::encode_all(without_length.repeat(2).as_bytes(), 1).unwrap()),
        ("tiny.warc.gz", tiny),
    ] {
        let archive = Archive::new();
        let last = match name.rsplit('.').next() {
            Some("gz") => member(&last),
            Some("zst") => zstd::encode_all(&last[..], 1).unwrap(),
            _ => last.clone(),
        };
        let finished = import(
            &archive,
            name,
            [content, b"\r\n\r\n".to_vec().repeat(usize::from(name.ends_with("warc"))), last].concat(),
        );
        assert_eq!(summary(&finished)["captures"], 1, "{name}");
    }
}

/// A capture whose digests take long, followed by records that are not captures: with two threads, these overtake it
/// and wait.
#[test]
fn what_is_no_capture_waits_within_bounds_for_a_slow_one_before_it() {
    const RECORDS: usize = 1600;
    const BYTES: usize = 400 << 20;
    const DATA_MIB_MAX: u64 = 320;
    let archive = Archive::new();
    let stated = ["Block", "Payload"].map(|of| format!("WARC-{of}-Digest: sha512:{}", "A".repeat(128)));
    let slow = bomb("http://a.example/slow", &stated.each_ref().map(String::as_str), "", BYTES);
    // A capture is released when this many others have begun.
    let others = (0..20).map(|number| {
        member(&response(&format!("urn:{number}"), &format!("http://a.example/{number}"), DAY, ""))
    });
    // The type is what the import must keep of a skipped record.
    let left_out = member(&record(&[&format!("WARC-Type: {}", "a".repeat(256 << 10))], ""));
    let file = [slow, others.collect::<Vec<_>>().concat(), left_out.repeat(RECORDS)].concat();
    let summary = summary(&import_with(&archive, "slow.warc.gz", file, "320MiB", DATA_MIB_MAX));
    assert_eq!((&summary["captures"], &summary["left_out"]), (&21.into(), &RECORDS.into()));
}

/// Captures of one URL and one second are distinguished by their records, each of which is read once.
#[test]
fn captures_of_one_second_cost_no_more_than_others() {
    const CAPTURES: usize = 3000;
    let archive = Archive::new();
    let body = "x".repeat(2000);
    let all = |range: std::ops::Range<usize>| {
        range
            .map(|number| response(&format!("urn:{number}"), "http://a.example/", DAY, &body))
            .collect::<Vec<_>>()
            .concat()
    };
    for (name, range, captures) in [
        ("one.warc", 0..CAPTURES, CAPTURES),
        ("two.warc", 0..CAPTURES, 0),
        ("three.warc", CAPTURES..2 * CAPTURES, CAPTURES),
    ] {
        let summary = summary(&import(&archive, name, all(range)));
        assert_eq!(summary["captures"], captures, "{name}");
    }
}

/// A history in reverse order is not scanned for each of its captures.
#[test]
fn captures_that_come_backwards_cost_no_more_than_others() {
    const CAPTURES: usize = 12_000;
    let archive = Archive::new();
    let date = |number: usize| {
        format!(
            "2014-01-{:02}T{:02}:{:02}:{:02}Z",
            1 + number / 86_400,
            number / 3600 % 24,
            number / 60 % 60,
            number % 60
        )
    };
    let page = |number| {
        answer(&format!("urn:{number}"), "http://a.example/", &date(number), &[], "HTTP/1.1 200 OK\r\n\r\n")
    };
    let file: Vec<u8> = (0..CAPTURES).rev().flat_map(page).collect();
    let summary = summary(&import(&archive, "backwards.warc", file));
    assert_eq!(summary["captures"], CAPTURES);
    ledger_balances(&archive.path);
}

/// Files of a package that share their bytes, and a directory longer than any package needs.
#[test]
fn packages_that_are_larger_within_than_without_are_refused() {
    let archive = Archive::new();
    let content = response("urn:1", "http://a.example/", DAY, "a");
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for name in ["archive/1.warc", "archive/2.warc", "archive/3.warc"] {
        zip.start_file(name, stored).unwrap();
        zip.write_all(&content).unwrap();
    }
    let whole = zip.finish().unwrap().into_inner();
    let finished = import(&archive, "whole.wacz", &whole);
    assert_eq!((&summary(&finished)["captures"], &summary(&finished)["duplicates"]), (&1.into(), &2.into()));

    // The directory entries of the second and third file point to the first (APPNOTE 4.3.12).
    let entries: Vec<usize> = memchr::memmem::find_iter(&whole, b"PK\x01\x02").collect();
    let mut overlapping = whole.clone();
    for entry in &entries[1..] {
        overlapping[entry + 42..entry + 46].fill(0);
    }
    let finished = import(&archive, "overlapping.wacz", overlapping);
    let refused: Vec<_> = finished.json().into_iter().filter(|line| line["kind"] == "file").collect();
    assert_eq!((refused.len(), &summary(&finished)["duplicates"]), (2, &1.into()), "{refused:?}");
    assert!(refused[0]["what"].as_str().unwrap().contains("another file of the package"), "{refused:?}");

    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for number in 0..120_000 {
        zip.start_file(format!("archive/{number:060}.warc"), stored).unwrap();
    }
    let finished = import(&archive, "many.wacz", zip.finish().unwrap().into_inner());
    let what = finished.json()[0]["what"].to_string();
    assert!(what.contains("longer than 8 MiB") && what.contains("unzip"), "{what}");
}

/// A full disk ends the import with a clear message, whatever its threads still have to do.
#[test]
fn a_full_disk_ends_an_import_that_can_be_continued() {
    const PAGES: usize = 200;
    let archive = Archive::new();
    let Some(disk) = SmallDisk::mount(archive.path.clone(), "size=10m") else { return };
    let mut dice = Dice::of(7);
    let mut noise = || (0..8000).map(|_| format!("{:016x}", dice.below(u64::MAX))).collect::<String>();
    let file: Vec<_> = (0..PAGES)
        .map(|number| {
            let http =
                format!("HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n\r\n{}", noise());
            answer(&format!("urn:{number}"), &format!("http://a.example/{number}"), DAY, &[], &http)
        })
        .collect();
    let finished = import(&archive, "noise.warc", file.concat());
    let finished = finished.refused(1, &["No space left"]);
    assert!(finished.output.is_empty(), "{}", finished.text());
    disk.change("size=400m");
    let summary = summary(&import(&archive, "noise.warc", file.concat()));
    let both = summary["captures"].as_u64().unwrap() + summary["duplicates"].as_u64().unwrap();
    assert_eq!(both, PAGES as u64, "{summary}");
    assert_eq!(archive.verify(), PAGES as u64);
}
