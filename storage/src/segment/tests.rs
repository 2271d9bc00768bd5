//! What segments promise, on the disk of the machine.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};

use super::*;
use crate::backend::{Disk, RealDisk};
use crate::digest::{Algorithm, Digest};
use crate::ids::SegmentId;

pub(super) fn time(seconds: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::seconds(1_767_225_600 + seconds) + TimeDelta::microseconds(seconds % 7)
}

pub(super) fn page(number: u32, words: u32) -> Bytes {
    let words: Vec<String> =
        (0..words).map(|word| format!("word{}", word.wrapping_mul(number + 1) % 977)).collect();
    Bytes::from(format!("<html><title>Page {number}</title><p>{}</p></html>", words.join(" ")))
}

pub(super) fn response(number: u32, body: &[u8]) -> CaptureGroup {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    CaptureGroup {
        url: format!("http://example.org/page/{number}"),
        time: time(i64::from(number)),
        address: Some([192, 0, 2, 1].into()),
        request: Some(Bytes::from(format!("GET /page/{number} HTTP/1.1\r\nHost: example.org\r\n\r\n"))),
        body: CaptureBody::Response { http: Bytes::from([head.as_bytes(), body].concat()), truncated: None },
        payload_digest: Some(Digest::sha256(body)),
        protocols: vec!["http/1.1".into(), "tls/1.3".into()],
        metadata: vec![
            ("via".into(), "http://example.org/".into()),
            ("outlink".into(), "http://example.org/a L a/@href".into()),
            ("outlink".into(), " spaces around ".into()),
        ],
    }
}

/// One group of every kind.
pub(super) fn every_kind() -> Vec<CaptureGroup> {
    let body = page(1, 400);
    let plain = response(1, &body);
    let (original_url, original_time) = (plain.url.clone(), plain.time);
    let head =
        Bytes::from_static(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 77\r\n\r\n");
    let with = |number: u32, body: CaptureBody| CaptureGroup { body, ..response(number, b"") };
    let chunked = b"HTTP/1.1 200 OK\r\nContent-Type: Text/Plain;x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    vec![
        plain.clone(),
        CaptureGroup {
            payload_digest: Some(Digest::sha256(b"5\r\nhello\r\n0\r\n\r\n")),
            metadata: vec![(FIELD_ENTITY_DIGEST.into(), Digest::sha256(b"hello").to_string())],
            ..with(
                2,
                CaptureBody::Response { http: Bytes::from_static(chunked), truncated: Some(Truncated::Time) },
            )
        },
        with(3, CaptureBody::Identical { head, original_url: original_url.clone(), original_time }),
        with(
            4,
            CaptureBody::NotModified {
                head: Bytes::from_static(b"HTTP/1.1 304 Not Modified\r\nETag: \"a: b\"\r\n\r\n"),
                original_url,
                original_time,
            },
        ),
        CaptureGroup {
            request: None,
            payload_digest: None,
            ..with(
                5,
                CaptureBody::Resource {
                    content_type: "text/dns".into(),
                    body: "example.org. 1 IN A 192.0.2.1".into(),
                },
            )
        },
        CaptureGroup {
            payload_digest: None,
            address: None,
            protocols: vec![],
            ..with(6, CaptureBody::Failed)
        },
    ]
}

pub(super) struct Archive {
    pub folder: tempfile::TempDir,
    pub options: SegmentOptions,
}

impl Archive {
    fn new(codec: Codec) -> Self {
        let options = SegmentOptions {
            codec: Some(codec),
            seed: Some(1),
            info: vec![("software".into(), "test".into())],
            ..Default::default()
        };
        Self { folder: tempfile::tempdir().expect("a folder"), options }
    }

    fn open(&self) -> (Segments, Vec<Recovered>) {
        Segments::open(Arc::new(RealDisk), self.folder.path(), self.options.clone()).expect("open")
    }

    fn files(&self) -> Vec<String> {
        let entries = RealDisk.list(&self.folder.path().join(FOLDER)).expect("list");
        entries.into_iter().map(|entry| entry.name).collect()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(FOLDER).join(name)
    }
}

fn replayed(segments: &Segments, from: Watermark) -> Vec<ReplayedCapture> {
    let mut captures = Vec::new();
    let broken = segments.replay(from, &mut |capture| captures.push(capture)).expect("replay");
    assert!(broken.is_empty(), "{broken:?}");
    captures
}

fn assert_same(group: &CaptureGroup, capture: &ReplayedCapture) {
    assert_eq!(capture.url, group.url);
    assert_eq!(capture.time, group.time);
    assert_eq!(capture.payload_digest, group.payload_digest);
    assert_eq!(capture.metadata, group.metadata);
    assert_eq!(capture.request, group.request);
    assert_eq!(capture.address, group.address.filter(|_| !matches!(group.body, CaptureBody::Failed)));
    assert_eq!(capture.protocols, group.protocols);
}

#[test]
fn every_kind_of_capture_comes_back() {
    for codec in [Codec::Zstd, Codec::Gzip] {
        let archive = Archive::new(codec);
        let (mut segments, recovered) = archive.open();
        assert!(recovered.is_empty());
        let groups = every_kind();
        let mut appended = Vec::new();
        for group in &groups {
            let encoded = segments.encoder().encode(group.clone()).expect("encode");
            appended.push(segments.append(&encoded).expect("append"));
        }
        assert_eq!(segments.sync().expect("sync"), appended.last().expect("some").end);
        let captures = replayed(&segments, Watermark::default());
        assert_eq!(captures.len(), groups.len());
        for ((group, capture), appended) in groups.iter().zip(&captures).zip(&appended) {
            assert_same(group, capture);
            assert_eq!((capture.main, capture.end), (appended.main, appended.end));
            let record = segments.read(appended.main).expect("read");
            assert_eq!(record.header.target_uri(), Some(group.url.as_str()));
        }
        let kinds: Vec<_> = captures.iter().map(|capture| capture.kind).collect();
        use CaptureKind::{Failed, Identical, NotModified, Resource, Response};
        assert_eq!(kinds, [Response, Response, Identical, NotModified, Resource, Failed]);
        let facts: Vec<_> = captures
            .iter()
            .map(|capture| (capture.status, capture.mime.as_deref(), capture.payload_length))
            .collect();
        assert_eq!(
            facts,
            [
                (Some(200), Some("text/html"), Some(page(1, 400).len() as u64)),
                (Some(200), Some("text/plain"), Some(5)),
                (Some(200), Some("text/html"), Some(77)),
                (Some(304), None, None),
                (None, Some("text/dns"), Some(29)),
                (None, None, None),
            ]
        );
        assert_eq!(captures[1].truncated, Some(Truncated::Time));
        assert_eq!(captures[1].payload(), "hello");
        assert_eq!(captures[1].entity_digest(), Some(Digest::sha256(b"hello")));
        assert_eq!(captures[3].http.as_ref().and_then(|head| head.get("ETag")), Some("\"a: b\""));
        for revisit in [&captures[2], &captures[3]] {
            assert_eq!(revisit.original, Some((groups[0].url.clone(), groups[0].time)));
        }
        // Replay from every group on gives the rest.
        for (index, appended) in appended.iter().enumerate() {
            assert_eq!(replayed(&segments, appended.end).len(), groups.len() - index - 1);
        }
        segments.close().expect("close");
    }
}

#[test]
fn closing_makes_a_segment_immutable_and_listed() {
    let archive = Archive::new(Codec::Zstd);
    let (mut segments, _) = archive.open();
    let encoder = segments.encoder();
    for number in 0..3 {
        segments
            .append(&encoder.encode(response(number, &page(number, 100))).expect("encode"))
            .expect("append");
        segments.rotate(None).expect("rotate");
    }
    segments.append(&encoder.encode(response(9, b"x")).expect("encode")).expect("append");
    let before = segments.list();
    assert_eq!(
        before.iter().map(|info| (info.id, info.is_open)).collect::<Vec<_>>(),
        [(SegmentId(0), false), (SegmentId(1), false), (SegmentId(2), false), (SegmentId(3), true),]
    );
    segments.close().expect("close");
    let names: Vec<_> = before.iter().map(|info| info.name.clone()).collect();
    let (segments, recovered) = archive.open();
    assert!(recovered.is_empty());
    let after = segments.list();
    assert_eq!(after[..3], before[..3]);
    assert!(!after[3].is_open);
    for info in &after {
        let bytes = std::fs::read(archive.path(&info.name)).expect("read");
        assert_eq!(info.sha256, Some(Digest::sha256(&bytes)));
        assert_eq!((info.captures, info.records, info.bytes), (1, 4, bytes.len() as u64));
    }
    assert!(names.iter().all(|name| archive.files().contains(name)));
    // Opening again, and without what is kept beside the segments, tells the same.
    for file in ["manifest.sha256", "segments.jsonl"] {
        std::fs::remove_file(archive.path(file)).expect("remove");
    }
    let (again, _) = archive.open();
    let facts = |infos: Vec<SegmentInfo>| {
        infos
            .into_iter()
            .map(|info| (info.name, info.sha256, info.captures, info.records, info.first, info.last))
            .collect::<Vec<_>>()
    };
    assert_eq!(facts(again.list()), facts(after));
    assert_eq!(replayed(&again, Watermark::default()).len(), 4);
}

#[test]
fn a_torn_tail_is_cut_at_the_last_whole_group() {
    for codec in [Codec::Zstd, Codec::Gzip] {
        let archive = Archive::new(codec);
        let (mut segments, _) = archive.open();
        let encoder = segments.encoder();
        let mut ends = Vec::new();
        for number in 0..3 {
            let encoded = encoder.encode(response(number, &page(number, 60))).expect("encode");
            ends.push(segments.append(&encoded).expect("append").end.offset);
        }
        let name = segments.list()[0].name.clone();
        drop(segments);
        let whole = std::fs::read(archive.path(&format!("{name}.open"))).expect("read");
        assert_eq!(ends[2], whole.len() as u64);
        for length in (ends[1]..=ends[2]).rev().step_by(29) {
            let torn = Archive::new(codec);
            std::fs::create_dir_all(torn.path("")).expect("folder");
            std::fs::write(torn.path(&format!("{name}.open")), &whole[..length as usize]).expect("write");
            let (mut segments, recovered) = torn.open();
            let expected = if length == ends[2] { 3 } else { 2 };
            assert_eq!(recovered.len(), 1);
            assert_eq!(
                (recovered[0].captures, recovered[0].cut_bytes),
                (expected, length - ends[expected as usize - 1])
            );
            assert_eq!(replayed(&segments, Watermark::default()).len() as u64, expected);
            if length % 97 == 0 {
                let appended =
                    segments.append(&encoder.encode(response(7, b"new")).expect("encode")).expect("append");
                assert_eq!(appended.main.segment, SegmentId(1));
                drop(segments);
                let (segments, _) = torn.open();
                assert_eq!(replayed(&segments, Watermark::default()).len() as u64, expected + 1);
            }
        }
    }
}

#[test]
fn long_bodies_are_cut_into_frames_and_come_back() {
    for codec in [Codec::Zstd, Codec::Gzip] {
        let archive = Archive::new(codec);
        let (mut segments, _) = archive.open();
        let body = page(3, 1_500_000);
        assert!(body.len() > FRAME_BYTES_MAX);
        let group = response(3, &body);
        let appended = segments.append(&segments.encoder().encode(group).expect("encode")).expect("append");
        let record = segments.read(appended.main).expect("read");
        assert!(record.payload() == body);
        let captures = replayed(&segments, Watermark::default());
        assert!(captures[0].payload() == body);
        assert_eq!(captures[0].main, appended.main);
    }
}

#[test]
fn damage_is_never_read_as_a_record() {
    for codec in [Codec::Zstd, Codec::Gzip] {
        let archive = Archive::new(codec);
        let (mut segments, _) = archive.open();
        let encoded = segments.encoder().encode(response(1, &page(1, 50))).expect("encode");
        let appended = segments.append(&encoded).expect("append");
        let right = segments.read(appended.main).expect("read");
        let path = archive.path(&format!("{}.open", segments.list()[0].name));
        let whole = std::fs::read(&path).expect("read");
        let start = appended.main.offset as usize;
        for place in start..start + appended.main.length as usize {
            let mut bytes = whole.clone();
            bytes[place] ^= 0x10;
            std::fs::write(&path, &bytes).expect("write");
            // A gzip head has bytes that say nothing about the content.
            match segments.read(appended.main) {
                Ok(record) => assert_eq!(record, right, "byte {place}"),
                Err(SegmentError::Corrupted { segment: SegmentId(0), .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn digests_follow_the_setting() {
    let archive = Archive::new(Codec::Gzip);
    let options = SegmentOptions { algorithm: Algorithm::Sha1, ..archive.options.clone() };
    let (mut segments, _) = Segments::open(Arc::new(RealDisk), archive.folder.path(), options).expect("open");
    let group = CaptureGroup { payload_digest: Some(Digest::sha1(b"body")), ..response(1, b"body") };
    let appended = segments.append(&segments.encoder().encode(group).expect("encode")).expect("append");
    let record = segments.read(appended.main).expect("read");
    for field in ["WARC-Block-Digest", "WARC-Payload-Digest"] {
        assert!(record.header.get(field).is_some_and(|digest| digest.starts_with("sha1:")), "{field}");
    }
    assert_eq!(
        record.header.get("WARC-Block-Digest"),
        Some(Digest::sha1(&record.content).to_string().as_str())
    );
}

#[test]
fn an_archive_keeps_its_codec_until_another_one_is_asked_for() {
    let mut archive = Archive::new(Codec::Gzip);
    let append = |archive: &Archive| {
        let (mut segments, _) = archive.open();
        let encoded = segments.encoder().encode(response(1, b"hello")).expect("encode");
        segments.append(&encoded).expect("append");
        segments.close().expect("close");
        let is_segment = |name: &String| name.ends_with(".gz") || name.ends_with(".zst");
        let names: Vec<String> = archive.files().into_iter().filter(is_segment).collect();
        names.iter().map(|name| name.ends_with(".gz")).collect::<Vec<_>>()
    };
    append(&archive);
    archive.options.codec = None;
    assert_eq!(append(&archive), [true, true]);
    archive.options.codec = Some(Codec::Zstd);
    append(&archive);
    archive.options.codec = None;
    assert_eq!(append(&archive).into_iter().filter(|is_gzip| *is_gzip).count(), 2);
}
