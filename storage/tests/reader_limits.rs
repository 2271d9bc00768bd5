//! What a reader of WARC files takes, at its limits and one beyond; and that it skips the rest.

use std::io::Write as _;
use std::sync::Arc;

use archive_storage::backend::RealDisk;
use archive_storage::warc::{HEAD_BYTES_MAX, HttpHead, ReadLimits, Record, RecordError, RecordReader};
use flate2::Compression;
use flate2::write::GzEncoder;

fn record(content: &[u8]) -> Vec<u8> {
    let head = format!("WARC/1.1\r\nWARC-Type: resource\r\nContent-Length: {}\r\n\r\n", content.len());
    [head.as_bytes(), content, b"\r\n\r\n"].concat()
}

fn member(content: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(content).expect("memory takes it");
    packer.finish().expect("memory takes it")
}

fn read(file: &[u8], change: impl FnOnce(&mut ReadLimits)) -> Vec<Result<Record, String>> {
    let mut limits = ReadLimits::default();
    change(&mut limits);
    let records = RecordReader::new(file).with_limits(limits);
    let records = records.with_spools(Arc::new(RealDisk), std::env::temp_dir());
    let words = |error| match error {
        RecordError::Broken(broken) => broken.what,
        other => other.to_string(),
    };
    records.map(|record| record.map_err(words)).collect()
}

/// All of a record's content, wherever it lies.
fn content(record: &Record) -> Vec<u8> {
    let mut content = record.content.to_vec();
    if let Some(rest) = &record.rest {
        rest.each_piece(|piece| {
            content.extend_from_slice(piece);
            std::io::Result::Ok(())
        })
        .expect("memory takes it");
    }
    content
}

#[test]
fn a_content_that_is_too_long_is_passed_over() {
    let file = [record(&[b'x'; 101]), record(&[b'y'; 100]), record(b"last")].concat();
    for file in [file.clone(), member(&file), zstd::encode_all(&file[..], 1).expect("memory takes it")] {
        let found = read(&file, |limits| limits.content_bytes_max = 100);
        let [Err(what), Ok(longest), Ok(last)] = &found[..] else { panic!("{found:?}") };
        assert!(what.contains("101 bytes of content, more than the limit of 100"), "{what}");
        assert_eq!((longest.content.len(), &last.content[..]), (100, &b"last"[..]));
    }
}

#[test]
fn a_content_that_is_too_long_for_memory_goes_to_a_file() {
    const MIB: usize = 1 << 20;
    let letters = |count: usize| (0..count).map(|number| b'a' + (number % 23) as u8).collect::<Vec<u8>>();
    let (short, long) = (letters(2 * MIB), letters(3 * MIB + 7));
    // One member a record; one member for both; a member every 100 000 bytes.
    let plain = [record(&short), record(&long), record(b"last")].concat();
    let each = [member(&record(&short)), member(&record(&long)), member(&record(b"last"))].concat();
    let pieces: Vec<u8> = plain.chunks(100_000).flat_map(member).collect();
    for (file, has_length) in [(plain.clone(), true), (each, true), (member(&plain), false), (pieces, false)]
    {
        let found = read(&file, |limits| limits.memory_bytes_max = 2 << 20);
        let [Ok(first), Ok(second), Ok(last)] = &found[..] else { panic!("{found:?}") };
        assert!(first.rest.is_none() && last.rest.is_none());
        assert_eq!(second.content.len(), MIB);
        assert!(content(first) == short && content(second) == long && content(last) == b"last");
        assert_eq!(second.content_length(), long.len() as u64);
        if has_length {
            assert_eq!(second.offset, first.length);
            assert_eq!(last.offset, second.offset + second.length);
        }
    }
    // A long content that ends too early is broken, and what follows is read.
    let cut = [member(&record(&long)[..2 * MIB]), member(&record(b"last"))].concat();
    let found = read(&cut, |limits| limits.memory_bytes_max = 2 << 20);
    let [Err(what), Ok(last)] = &found[..] else { panic!("{found:?}") };
    assert!(what.contains("shorter than its Content-Length"), "{what}");
    assert_eq!(content(last), b"last");
}

#[test]
fn heads_have_a_limit() {
    let head = |bytes: usize| {
        let frame = "WARC/1.1\r\nX: \r\nContent-Length: 0\r\n\r\n";
        frame.replace("X: ", &format!("X: {}", "x".repeat(bytes - frame.len())))
    };
    for (bytes, is_read) in [(HEAD_BYTES_MAX, true), (HEAD_BYTES_MAX + 1, false)] {
        let found = read(&[head(bytes).as_bytes(), b"\r\n\r\n", &record(b"last")].concat(), |_| {});
        assert_eq!(found[0].is_ok(), is_read, "{bytes}");
        assert_eq!(content(found.last().expect("memory takes it").as_ref().unwrap()), b"last");
    }
    // Of a longer head of HTTP the beginning is read.
    let http = format!("HTTP/1.1 200 OK\r\n{}A: b\r\n", "X: y\r\n".repeat(HEAD_BYTES_MAX / 6));
    let parsed = HttpHead::parse(http.as_bytes());
    assert_eq!((parsed.status(), parsed.get("A")), (Some(200), None));
}

#[test]
fn windows_of_zstd_have_a_limit() {
    let long = record(&(0..3_000_000_u32).flat_map(u32::to_le_bytes).collect::<Vec<u8>>());
    let pack = |log: u32| {
        let mut packer = zstd::Encoder::new(Vec::new(), 1).expect("memory takes it");
        packer.window_log(log).expect("memory takes it");
        packer.include_contentsize(false).expect("memory takes it");
        packer.write_all(&long).expect("memory takes it");
        packer.finish().expect("memory takes it")
    };
    for (log, is_read) in [(20, true), (21, false)] {
        let found = read(&pack(log), |limits| limits.window_bytes_max = (2 << 20) - 1);
        assert_eq!(found[0].is_ok(), is_read, "{log}: {found:?}");
    }
}
