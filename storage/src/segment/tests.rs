//! Tests of what segments promise, mostly on an in-memory disk. Crashes have their own test, `tests/crash.rs`.

mod damage;
mod dictionaries;
mod metadata;
mod pieces;

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};

use super::*;
use crate::backend::{Disk, Faults, RealDisk, SimulatedDisk, Spool, read_file, replace_file};
use crate::clock::Clock;
use crate::digest::{Algorithm, Digest};
use crate::ids::{Location, SegmentId};

fn time(seconds: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::seconds(1_767_225_600 + seconds) + TimeDelta::microseconds(seconds % 7)
}

fn page(number: u32, words: u32) -> Bytes {
    let words: Vec<String> =
        (0..words).map(|word| format!("word{}", word.wrapping_mul(number + 1) % 977)).collect();
    Bytes::from(format!("<html><title>Page {number}</title><p>{}</p></html>", words.join(" ")))
}

fn response(number: u32, body: &[u8]) -> CaptureGroup {
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
fn every_kind() -> Vec<CaptureGroup> {
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

/// An archive on an in-memory disk.
struct MemoryArchive {
    disk: SimulatedDisk,
    options: SegmentOptions,
}

impl MemoryArchive {
    fn new(codec: Codec) -> Self {
        let info = vec![("software".into(), "test".into())];
        let options = SegmentOptions {
            codec: Some(codec),
            seed: Some(1),
            info,
            builds_beside: false,
            clock: Clock::of(|| time(0)),
            ..Default::default()
        };
        let disk = SimulatedDisk::new(1);
        disk.create_dir_all(&PathBuf::from("/archive")).expect("a folder");
        Self { disk, options }
    }

    fn open(&self) -> (Segments, Vec<Recovered>) {
        Segments::open(Arc::new(self.disk.clone()), &PathBuf::from("/archive"), self.options.clone())
            .expect("open")
    }

    fn path(name: &str) -> PathBuf {
        PathBuf::from("/archive/segments").join(name)
    }

    fn read(&self, name: &str) -> Vec<u8> {
        read_file(&self.disk, &Self::path(name)).expect("read")
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        self.disk.create_dir_all(&Self::path("")).expect("a folder");
        replace_file(&self.disk, &Self::path(name), bytes).expect("write");
    }

    fn files(&self) -> Vec<String> {
        let entries = self.disk.list(&Self::path("")).expect("list");
        entries.into_iter().map(|entry| entry.name).collect()
    }
}

/// Appends some groups and returns their locations.
fn append(segments: &mut Segments, groups: impl IntoIterator<Item = CaptureGroup>) -> Vec<Appended> {
    let encoder = segments.encoder();
    let mut append = |group| segments.append(&encoder.encode(group).expect("encode")).expect("append");
    groups.into_iter().map(&mut append).collect()
}

fn bases(numbers: std::ops::Range<u32>) -> Vec<DictionaryBase> {
    let base = |number| match response(number, &page(number, 300)).body {
        CaptureBody::Response { http, .. } => {
            DictionaryBase { url: format!("http://example.org/page/{number}"), content: http, origin: None }
        }
        _ => unreachable!("a response is one"),
    };
    numbers.map(base).collect()
}

fn dictionary(numbers: std::ops::Range<u32>) -> Option<Dictionary> {
    Dictionary::build(&bases(numbers)).expect("memory")
}

fn replayed(segments: &Segments, from: impl Into<Watermarks>) -> Vec<ReplayedCapture> {
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
        let archive = MemoryArchive::new(codec);
        let (mut segments, recovered) = archive.open();
        assert!(recovered.is_empty());
        let groups = every_kind();
        let mut appended = Vec::new();
        for group in &groups {
            let encoded = segments.encoder().encode(group.clone()).expect("encode");
            appended.push(segments.append(&encoded).expect("append"));
        }
        assert_eq!(segments.sync().expect("sync").open, [appended.last().expect("some").end]);
        let captures = replayed(&segments, Watermark::default());
        assert_eq!(captures.len(), groups.len());
        for ((group, capture), appended) in groups.iter().zip(&captures).zip(&appended) {
            assert_same(group, capture);
            assert_eq!((capture.main, capture.end), (appended.main, appended.end));
            let record = segments.read(appended.main).expect("read");
            assert_eq!(record.header.target_uri(), Some(group.url.as_str()));
        }
        let kinds: Vec<_> = captures.iter().map(|capture| capture.kind).collect();
        use crate::capture_kind::CaptureKind::{Failed, Identical, NotModified, Resource, Response};
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
        assert_eq!(captures[1].content_digest(), Some(Digest::sha256(b"hello")));
        assert_eq!(captures[3].http.as_ref().and_then(|head| head.get("ETag")), Some("\"a: b\""));
        for revisit in [&captures[2], &captures[3]] {
            assert_eq!(revisit.original, Some((groups[0].url.clone(), groups[0].time)));
        }
        // Replay from the end of each group returns the rest.
        for (index, appended) in appended.iter().enumerate() {
            assert_eq!(replayed(&segments, appended.end).len(), groups.len() - index - 1);
        }
        segments.close().expect("close");
    }
}

#[test]
fn closing_makes_a_segment_immutable_and_listed() {
    let archive = MemoryArchive::new(Codec::Zstd);
    let (mut segments, _) = archive.open();
    for number in 0..3 {
        append(&mut segments, [response(number, &page(number, 100))]);
        segments.rotate(dictionary(0..number)).expect("rotate");
    }
    append(&mut segments, [response(9, b"x")]);
    let before = segments.list();
    let states: Vec<_> =
        before.iter().map(|info| (info.id.0, info.is_open, info.dictionary.is_some())).collect();
    assert_eq!(states, [(0, false, false), (1, false, false), (2, false, true), (3, true, true)]);
    segments.close().expect("close");
    let (segments, recovered) = archive.open();
    assert_eq!(recovered, []);
    let after = segments.list();
    assert_eq!(after[..3], before[..3]);
    assert!(!after[3].is_open);
    for info in &after {
        let bytes = archive.read(&info.name);
        assert_eq!(info.sha256, Some(Digest::sha256(&bytes)));
        assert_eq!((info.captures, info.records, info.bytes), (1, 4, bytes.len() as u64));
        let manifest = String::from_utf8(archive.read("manifest.sha256")).expect("text");
        let hex = Digest::sha256(&bytes).to_string().replace("sha256:", "");
        assert!(manifest.contains(&format!("{hex}  {}\n", info.name)), "{manifest}");
        let index = String::from_utf8(archive.read(&format!("{}.cdxj", info.name))).expect("text");
        assert!(index.starts_with("org,example)/page/") && index.lines().count() == 1, "{index}");
    }
    // The files beside the segments can be rebuilt from them.
    let files = archive.disk.files();
    for file in archive.files().iter().filter(|file| !file.ends_with(".zst")) {
        archive.disk.remove(&MemoryArchive::path(file)).expect("remove");
    }
    let (again, _) = archive.open();
    let facts = |infos: Vec<SegmentInfo>| {
        let fact = |info: SegmentInfo| {
            (info.name, info.sha256, info.captures, info.records, info.first, info.dictionary)
        };
        infos.into_iter().map(fact).collect::<Vec<_>>()
    };
    assert_eq!(facts(again.list()), facts(after));
    for (path, bytes) in
        files.iter().filter(|(path, _)| path.extension().is_some_and(|extension| extension != "jsonl"))
    {
        assert_eq!(archive.disk.files().get(path), Some(bytes), "{}", path.display());
    }
    assert_eq!(replayed(&again, Watermark::default()).len(), 4);
}

#[test]
fn the_open_name_of_a_closed_segment_goes_and_another_file_of_that_name_stays() {
    let archive = MemoryArchive::new(Codec::Zstd);
    let (mut segments, _) = archive.open();
    for number in 0..2 {
        append(&mut segments, [response(number, &page(number, 100))]);
        segments.rotate(None).expect("rotate");
    }
    let names: Vec<String> = segments.list().into_iter().map(|info| info.name).collect();
    drop(segments);
    // One state that a crash during a rename may leave, and one that no crash leaves.
    archive.write(&format!("{}.open", names[0]), &archive.read(&names[0]));
    archive.write(&format!("{}.open", names[1]), &archive.read(&names[0]));
    let (segments, recovered) = archive.open();
    assert_eq!((segments.list().len(), recovered), (2, vec![]));
    let open: Vec<String> = archive.files().into_iter().filter(|file| file.ends_with(".open")).collect();
    assert_eq!(open, [format!("{}.open", names[1])]);
}

/// Page `number` of host `host`.
fn hosted(host: u32, number: u32, words: u32) -> CaptureGroup {
    let url = format!("http://host{host}.org/{number}");
    CaptureGroup { url, ..response(number, &page(number, words)) }
}

#[test]
fn each_group_of_hosts_has_a_segment_and_the_order_is_kept() {
    let mut archive = MemoryArchive::new(Codec::Zstd);
    archive.options.host_groups = 4;
    let (mut segments, _) = archive.open();
    let mut given = Vec::new();
    let mut marks = vec![Watermarks::default()];
    for number in 0..60 {
        let group = hosted(number % 7, number, 40);
        given.push(group.url.clone());
        append(&mut segments, [group]);
        if number % 10 == 3 {
            assert_eq!(segments.sync().expect("sync").captures, u64::from(number) + 1);
            marks.push(segments.watermarks());
        }
        if number == 31 {
            segments.rotate(dictionary(0..3)).expect("rotate");
        }
    }
    let open = segments.list().iter().filter(|info| info.is_open).count();
    assert_eq!(open, 4, "seven hosts fall into all four groups");
    let check = |segments: &Segments| {
        for mark in &marks {
            let urls: Vec<String> =
                replayed(segments, mark.clone()).into_iter().map(|capture| capture.url).collect();
            assert_eq!(urls, given[mark.captures as usize..]);
        }
    };
    check(&segments);
    // The process dies; the segments alone determine the order.
    drop(segments);
    let (segments, recovered) = archive.open();
    assert_eq!(recovered.iter().map(|recovered| recovered.cut_bytes).sum::<u64>(), 0);
    check(&segments);
    let (again, recovered) = archive.open();
    assert_eq!(recovered, []);
    check(&again);
}

#[test]
fn segments_are_closed_by_size_count_and_age() {
    let due = |change: fn(&mut SegmentOptions)| {
        let mut archive = MemoryArchive::new(Codec::Gzip);
        change(&mut archive.options);
        let (mut segments, _) = archive.open();
        assert_eq!(segments.rotate_due().expect("a good disk"), None);
        append(&mut segments, (0..3).map(|number| response(number, &page(number, 100))));
        segments.rotate_due().expect("a good disk")
    };
    assert_eq!(due(|_| {}), None);
    assert_eq!(due(|options| options.bytes_max = 2000), Some(RotationReason::Full));
    assert_eq!(due(|options| options.captures_max = 3), Some(RotationReason::Full));
    assert_eq!(due(|options| options.captures_max = 4), None);
    assert_eq!(due(|options| options.age_max = std::time::Duration::ZERO), Some(RotationReason::Old));
}

#[test]
fn the_real_disk_keeps_the_same_promises() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = MemoryArchive::new(Codec::Zstd).options;
    for round in 1..4 {
        let (mut segments, recovered) =
            Segments::open(Arc::new(RealDisk), folder.path(), options.clone()).expect("open");
        assert_eq!(recovered.len(), usize::from(round > 1));
        append(&mut segments, every_kind());
        segments.sync().expect("sync");
        assert_eq!(replayed(&segments, Watermark::default()).len(), round * every_kind().len());
        // Dropped, not closed, as if the process had been killed.
    }
}

#[test]
fn long_bodies_are_cut_into_frames_and_come_back() {
    for codec in [Codec::Zstd, Codec::Gzip] {
        let archive = MemoryArchive::new(codec);
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
fn digests_follow_the_setting() {
    let archive = MemoryArchive::new(Codec::Gzip);
    let options = SegmentOptions { algorithm: Algorithm::Sha1, ..archive.options.clone() };
    let (mut segments, _) =
        Segments::open(Arc::new(archive.disk.clone()), &PathBuf::from("/archive"), options).expect("open");
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
    let mut archive = MemoryArchive::new(Codec::Gzip);
    let append = |archive: &MemoryArchive| {
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

#[test]
fn a_spooled_body_is_the_record_it_would_be_in_memory() {
    let head = Bytes::from_static(b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n\r\n");
    for (codec, length) in [(Codec::Zstd, 20 << 20), (Codec::Gzip, 9 << 20), (Codec::Zstd, 100_000)] {
        let archive = MemoryArchive::new(codec);
        let (mut segments, _) = archive.open();
        let body: Vec<u8> =
            (0..length as u32).flat_map(|word| (word / 5).to_le_bytes()).take(length).collect();
        let mut spool = Spool::create(&archive.disk, &MemoryArchive::path("")).expect("a spool");
        body.chunks(1_000_000).for_each(|piece| spool.append(piece).expect("write"));
        let body_in_file = CaptureBody::Spooled {
            head: head.clone(),
            body: Arc::new(spool),
            truncated: Some(Truncated::Length),
        };
        let http = Bytes::from([&head[..], &body].concat());
        let in_memory = CaptureBody::Response { http: http.clone(), truncated: Some(Truncated::Length) };
        let group = |number, body_of| CaptureGroup {
            payload_digest: Some(Digest::sha256(&body)),
            body: body_of,
            ..response(number, b"")
        };
        let appended =
            append(&mut segments, [group(1, body_in_file), group(2, in_memory), response(3, b"last")]);
        segments.sync().expect("sync");
        let read = |place: usize| segments.reader().read(appended[place].main).expect("read");
        let (spooled, whole) = (read(0), read(1));
        assert_eq!(spooled.content, http);
        for field in
            ["WARC-Block-Digest", "WARC-Payload-Digest", "Content-Length", "WARC-Truncated", "Content-Type"]
        {
            assert_eq!(spooled.header.get(field), whole.header.get(field), "{field}");
        }
        let urls: Vec<String> =
            replayed(&segments, Watermark::default()).into_iter().map(|one| one.url).collect();
        assert_eq!(urls, [1, 2, 3].map(|number| format!("http://example.org/page/{number}")));
        assert!(archive.files().iter().all(|name| !name.starts_with("spool")));
    }
}
