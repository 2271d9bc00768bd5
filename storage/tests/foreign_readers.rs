//! Other people's tools read what we write: warcio and FastWARC find every record and verify every digest, also of
//! chunked and content-coded responses, in both codecs.
//!
//! Needs a Python with both (`pip install warcio fastwarc`): the one in the folder `$ARCHIVE_TEST_JUDGES`, which
//! `tests/run` makes, or else `python3`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use archive_storage::Digest;
use archive_storage::backend::RealDisk;
use archive_storage::segment::{
    CaptureBody, CaptureGroup, Codec, Dictionary, DictionaryBase, FRAME_BYTES_MAX, Guard, SegmentOptions,
    Segments, Truncated,
};
use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};

fn judges_python() -> String {
    std::env::var("ARCHIVE_TEST_JUDGES")
        .map_or_else(|_| "python3".into(), |programs| format!("{programs}/python3"))
}

/// The interpreter, if it has both tools.
fn python() -> Option<String> {
    let python = judges_python();
    let probe = Command::new(&python).args(["-c", "import warcio, fastwarc"]).output();
    if probe.is_ok_and(|probe| probe.status.success()) {
        return Some(python);
    }
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{python} has no warcio and fastwarc");
    println!("skipped: {python} has no warcio and fastwarc");
    None
}

fn time(seconds: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::seconds(1_767_225_600 + seconds) + TimeDelta::microseconds(7)
}

fn chunked(body: &[u8]) -> Vec<u8> {
    let mut coded = Vec::new();
    for piece in body.chunks(1000) {
        coded.extend_from_slice(format!("{:X}\r\n", piece.len()).as_bytes());
        coded.extend_from_slice(piece);
        coded.extend_from_slice(b"\r\n");
    }
    coded.extend_from_slice(b"0\r\n\r\n");
    coded
}

fn gzipped(body: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(body).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

fn response(path: &str, seconds: i64, fields: &str, body: &[u8]) -> CaptureGroup {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{fields}\r\n");
    CaptureGroup {
        url: format!("http://example.org/{path}"),
        time: time(seconds),
        address: Some("2001:db8::1".parse().expect("an address")),
        request: Some(Bytes::from(format!("GET /{path} HTTP/1.1\r\nHost: example.org\r\n\r\n"))),
        body: CaptureBody::Response { http: Bytes::from([head.as_bytes(), body].concat()), truncated: None },
        payload_digest: Some(Digest::sha256(body)),
        protocols: vec!["http/1.1".into(), "tls/1.3".into()],
        metadata: vec![("via".into(), "http://example.org/".into()), ("hopsFromSeed".into(), "L".into())],
    }
}

fn groups() -> Vec<CaptureGroup> {
    let text: String = (0..2000).map(|word| format!("<p>paragraph {}</p>", word * 7919 % 1009)).collect();
    let text = text.as_bytes();
    let long: Vec<u8> = text.iter().copied().cycle().take(FRAME_BYTES_MAX + 100_000).collect();
    let head = Bytes::from_static(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n");
    let not_modified = Bytes::from_static(b"HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n");
    let (original_url, original_time) = ("http://example.org/plain".to_owned(), time(1));
    let with = |path: &str, seconds: i64, body: CaptureBody| CaptureGroup {
        body,
        payload_digest: Some(Digest::sha256(text)),
        ..response(path, seconds, "", b"")
    };
    let mut cut = response("cut", 8, "", text);
    if let CaptureBody::Response { truncated, .. } = &mut cut.body {
        *truncated = Some(Truncated::Length);
    }
    vec![
        response("plain", 1, "", text),
        response("chunked", 2, "Transfer-Encoding: chunked\r\n", &chunked(text)),
        response("gzip", 3, "Content-Encoding: gzip\r\n", &gzipped(text)),
        response(
            "gzip-chunked",
            4,
            "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
            &chunked(&gzipped(text)),
        ),
        response("empty", 5, "Content-Length: 0\r\n", b""),
        response("long", 6, "", &long),
        response("broken-chunks", 7, "Transfer-Encoding: chunked\r\n", b"5\r\nhello\r\nnonsense"),
        cut,
        with("again", 9, CaptureBody::Identical { head, original_url: original_url.clone(), original_time }),
        with("same", 10, CaptureBody::NotModified { head: not_modified, original_url, original_time }),
        CaptureGroup {
            url: "dns:example.org".into(),
            request: None,
            payload_digest: Some(Digest::sha256(b"example.org. 60 IN A 192.0.2.1\n")),
            ..with(
                "",
                11,
                CaptureBody::Resource {
                    content_type: "text/dns".into(),
                    body: Bytes::from_static(b"example.org. 60 IN A 192.0.2.1\n"),
                },
            )
        },
        CaptureGroup { payload_digest: None, ..with("failed", 12, CaptureBody::Failed) },
    ]
}

/// Writes two segments, of which the second may have a dictionary, and names their files.
fn write(folder: &Path, codec: Codec, guard: Guard) -> (Vec<PathBuf>, usize) {
    let options = SegmentOptions {
        codec: Some(codec),
        guard: Some(guard),
        info: vec![("software".into(), "archive/0.1".into()), ("robots".into(), "obey".into())],
        ..SegmentOptions::default()
    };
    let (mut segments, _) = Segments::open(Arc::new(RealDisk), folder, options).expect("open");
    let mut records = 0;
    for round in 0..2 {
        records += 1; // the warcinfo record
        for group in groups() {
            records += 1
                + usize::from(group.request.is_some())
                + usize::from(!matches!(group.body, CaptureBody::Failed));
            let encoded = segments.encoder().encode(group).expect("encode");
            segments.append(&encoded).expect("append");
        }
        let bases = groups().into_iter().take(1).filter_map(|group| match group.body {
            CaptureBody::Response { http, .. } => {
                Some(DictionaryBase { url: group.url, content: http, origin: None })
            }
            _ => None,
        });
        let dictionary = Dictionary::build(&bases.collect::<Vec<_>>()).expect("dictionary");
        segments.rotate(dictionary.filter(|_| round == 0)).expect("rotate");
    }
    let names = segments.list().into_iter().map(|info| folder.join("segments").join(info.name)).collect();
    segments.close().expect("close");
    (names, records)
}

#[test]
fn warcio_and_fastwarc_read_and_verify_everything() {
    let Some(python) = python() else { return };
    let cases =
        [(Codec::Gzip, Guard::Parity, 2), (Codec::Zstd, Guard::Parity, 1), (Codec::Zstd, Guard::Copy, 1)];
    for (codec, guard, readers) in cases {
        let folder = tempfile::tempdir().expect("a folder");
        let (files, records) = write(folder.path(), codec, guard);
        assert_eq!(files.len(), 2);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign_readers.py");
        let output = Command::new(&python).arg(script).args(&files).output().expect("python");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report = String::from_utf8(output.stdout).expect("text");
        assert_eq!(report.lines().count(), records * readers, "{report}");
        for line in report.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [reader, _, record_type, _, length, block, payload] = words[..] else { panic!("{line}") };
            assert!(block == "pass" || (block == "none" && length == "0"), "{line}");
            assert_ne!(payload, "fail", "{line}");
            let has_payload = record_type == "response" || (record_type == "resource" && reader == "warcio");
            assert_eq!(payload == "pass", has_payload, "{line}");
        }
        for file in files.iter().filter(|_| codec == Codec::Gzip) {
            let check = Command::new(&python)
                .args(["-m", "warcio.cli", "check", "-v"])
                .arg(file)
                .output()
                .expect("warcio");
            assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
        }
    }
}
