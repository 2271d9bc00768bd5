//! Closed segments rewritten: what is kept is byte for byte what it was, what is replaced is there as its replacement.

use std::collections::BTreeMap;
use std::path::Path;

use archive_storage::address::url_hash;
use archive_storage::segment::{
    self, Author, CaptureBody, CaptureGroup, Codec, KeepAll, ReplayedCapture, RewriteOptions, SegmentError,
    SegmentOptions,
};
use archive_storage::{
    Capture, CaptureKind, Digest, Location, MimeId, Rebuild, SegmentId, State, Store, StoreError,
};
use bytes::Bytes;
use chrono::{DateTime, TimeDelta};

/// Longer than a frame may be.
const LONG_BYTES: usize = 9 << 20;

fn options(codec: Codec) -> SegmentOptions {
    SegmentOptions { codec: Some(codec), builds_beside: false, captures_max: 40, ..SegmentOptions::default() }
}

fn own(path: &Path, codec: Codec) -> Store {
    let mut store = Store::own(path, options(codec)).expect("an archive");
    let replayed: Result<_, StoreError> = store.replay(|state, capture| book(state, &capture));
    assert!(replayed.expect("a readable disk").is_empty());
    store
}

fn book(state: &mut State, capture: &ReplayedCapture) -> Result<(), StoreError> {
    let (url, _) = state.intern(&capture.url, url_hash(&capture.url))?;
    let digest = match capture.kind {
        CaptureKind::Failed => [0; 16],
        _ => Digest::sha256(&capture.payload()).prefix(),
    };
    let length = capture.payload_length.unwrap_or_default() as u32;
    let (time, location, kind) = (capture.time.timestamp_micros(), capture.main, capture.kind);
    let (status, mime) = (capture.status.unwrap_or_default(), MimeId(0));
    let capture =
        Capture { url, time, location, digest, status, mime, kind, length, flags: 0, original: None };
    state.append_capture(&capture, None)?;
    Ok(())
}

/// A page's text, of which a few words change from version to version.
fn text(page: u64, version: u64, bytes: usize) -> Vec<u8> {
    let mut words = String::new();
    for place in 0.. {
        if words.len() >= bytes {
            break;
        }
        let seed = if place % 97 == version % 97 { version } else { page };
        words.push_str(&format!("w{:x} ", (place * 2_654_435_761 + seed * 40_503) % 0xf_fff1));
    }
    words.into_bytes()
}

fn append(store: &mut Store, number: u64) {
    let (page, version) = (number % 7, number / 7);
    let body = text(page, version, 20_000).repeat(if number == 50 { LONG_BYTES / 20_000 } else { 1 });
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
    let body = match number % 11 {
        5 => CaptureBody::Failed,
        _ => CaptureBody::Response { http: [&head[..], &body].concat().into(), truncated: None },
    };
    let payload = match &body {
        CaptureBody::Response { http, .. } => http.slice(head.len()..),
        _ => Bytes::new(),
    };
    let group = CaptureGroup {
        url: format!("http://site{}.example/{page}", page % 3),
        time: DateTime::UNIX_EPOCH + TimeDelta::seconds(number as i64),
        address: None,
        request: Some(Bytes::from_static(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")),
        payload_digest: (!payload.is_empty()).then(|| Digest::sha256(&payload)),
        body,
        protocols: vec!["http/1.1".into()],
        metadata: vec![("number".into(), number.to_string())],
    };
    let encoded = store.encoder().expect("an owner").encode(group).expect("memory");
    store.append(&encoded).expect("room");
}

fn filled(path: &Path, codec: Codec) -> Store {
    let mut store = Store::own(path, options(codec)).expect("an archive");
    (0..200).for_each(|number| append(&mut store, number));
    store.close().expect("close");
    let _ = std::fs::remove_dir_all(path.join("state"));
    let mut store = own(path, codec);
    store.checkpoint().expect("a checkpoint");
    store
}

/// All records of captures by the numbers of the captures, as heads and digests of contents.
fn records(path: &Path) -> BTreeMap<String, Vec<(String, Digest)>> {
    let (mut found, mut group) = (BTreeMap::new(), Vec::new());
    for (id, file) in segment::files(path).expect("a folder") {
        for record in segment::records(path, id, &file, 0).expect("a segment") {
            let record = record.expect("a whole record");
            let kind = record.header.record_type().as_str().to_owned();
            if kind == "warcinfo" {
                continue;
            }
            group.push((record.header.to_string(), Digest::sha256(&record.content)));
            if kind == "metadata" {
                let number = String::from_utf8_lossy(&record.content).into_owned();
                assert!(found.insert(number, std::mem::take(&mut group)).is_none());
            }
        }
    }
    found
}

fn replayed(path: &Path) -> Vec<(String, i64)> {
    let mut rebuild = Rebuild::begin(path, SegmentOptions::default()).expect("a rebuild");
    let mut order = Vec::new();
    let outcome: Result<_, StoreError> = rebuild.store().replay(|_, capture| {
        order.push((capture.url, capture.time.timestamp_micros()));
        Ok(())
    });
    assert!(outcome.expect("a readable disk").is_empty());
    rebuild.abandon().expect("room");
    order
}

fn all(store: &Store) -> Vec<SegmentId> {
    store.closed_segments().iter().map(|info| info.id).collect()
}

fn locations(store: &Store) -> Vec<Location> {
    store.state().captures().map(|capture| capture.expect("a table").1.location).collect()
}

#[test]
fn what_is_kept_is_byte_for_byte_what_it_was() {
    for (from, to, halvings) in [
        (Codec::Zstd, Codec::Zstd, 0),
        (Codec::Gzip, Codec::Gzip, 0),
        (Codec::Gzip, Codec::Zstd, 0),
        (Codec::Zstd, Codec::Gzip, 0),
        (Codec::Zstd, Codec::Zstd, 1),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        let mut store = filled(path, from);
        let (before, places) = (records(path), locations(&store));
        assert_eq!(before.len(), 200);
        let bytes: u64 = store.closed_segments().iter().map(|info| info.bytes).sum();
        let options = RewriteOptions { codec: Some(to), threads: 2, halvings, ..RewriteOptions::default() };
        let old = all(&store);
        let estimated = store.estimate_rewriting(&old, &options).expect("readable segments");
        let rewritten = store.rewrite(&old, &options, &mut KeepAll).expect("room");
        assert_eq!((records(path), locations(&store)), (before.clone(), places), "nothing has changed yet");
        store.put_in_place(&rewritten).expect("room");
        let (was, now) = rewritten.bytes();
        println!("{from:?} to {to:?}: {was} bytes became {now}, estimated {estimated}");
        assert_eq!(was, bytes);
        // Fewer samples find less that small pages have in common.
        let most = if halvings == 0 { was / 2 } else { was * 2 / 3 };
        assert!(to == Codec::Gzip || now < most, "{was} {now}");
        assert!(to == from || estimated > now / 4 && estimated < now * 4, "{estimated} for {now}");
        assert!(all(&store).iter().all(|id| !old.contains(id)));
        store.close().expect("close");
        assert_eq!(records(path), before);
        let order: Vec<i64> = replayed(path).into_iter().map(|(_, time)| time).collect();
        assert_eq!(order, (0..200).map(|number| number * 1_000_000).collect::<Vec<i64>>());
        let verified = archive_storage::verify(path, 1, &mut |_| {}).expect("an archive");
        assert_eq!((verified.captures, verified.findings), (200, Vec::new()));
        let store = own(path, to);
        assert_eq!(locations(&store).len(), 200);
    }
}

/// Puts a note in the place of one page's captures.
struct Forgetting;

impl Author for Forgetting {
    fn replaces(&mut self, capture: &ReplayedCapture) -> Result<bool, SegmentError> {
        Ok(capture.url.ends_with("/4"))
    }

    fn replacement(&mut self, capture: &ReplayedCapture) -> Result<CaptureGroup, SegmentError> {
        Ok(CaptureGroup {
            url: "urn:forgotten".into(),
            time: capture.time,
            address: None,
            request: None,
            body: CaptureBody::Failed,
            payload_digest: None,
            protocols: Vec::new(),
            metadata: vec![("forgotten".into(), capture.time.timestamp().to_string())],
        })
    }
}

#[test]
fn what_is_replaced_is_gone_from_segments_and_dictionaries_and_keeps_its_place() {
    for (codec, verbatim) in
        [(Codec::Zstd, false), (Codec::Gzip, false), (Codec::Zstd, true), (Codec::Gzip, true)]
    {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        let mut store = filled(path, codec);
        let before = records(path);
        let captures = store.state().captures().map(|capture| capture.expect("a table").1);
        let named = captures.map(|capture| (store.state().url(capture.url).expect("a name"), capture.time));
        let order: Vec<(String, i64)> = named.collect();
        let old = all(&store);
        let options = RewriteOptions { verbatim, threads: 2, ..RewriteOptions::default() };
        let rewritten = store.rewrite(&old, &options, &mut Forgetting).expect("room");
        assert!(!verbatim || rewritten.new_segments().len() == old.len());
        store.put_in_place(&rewritten).expect("room");
        store.close().expect("close");
        let after = records(path);
        let kept = after.iter().filter(|(number, _)| number.starts_with("number"));
        assert!(kept.clone().all(|(number, records)| before[number] == *records));
        let notes = after.keys().filter(|number| number.starts_with("forgotten")).count();
        assert_eq!(
            (kept.count() + notes, notes),
            (200, order.iter().filter(|(url, _)| url.ends_with("/4")).count())
        );
        let expected = order
            .into_iter()
            .map(|(url, time)| (if url.ends_with("/4") { "urn:forgotten".to_owned() } else { url }, time));
        assert!(replayed(path).into_iter().eq(expected));
        // Not in any dictionary either: all that the file says, unpacked.
        let needle = &text(4, 4, 20_000)[..2000];
        for (id, file) in segment::files(path).expect("a folder") {
            let bytes = std::fs::read(path.join("segments").join(&file)).expect("a file");
            // What is copied as it lies has the dictionary that it had.
            if !verbatim && bytes.starts_with(&[0x5d, 0x2a, 0x4d, 0x18]) {
                let length = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]) as usize;
                let dictionary = zstd::decode_all(&bytes[8..8 + length]).expect("a frame");
                assert!(!dictionary.windows(needle.len()).any(|window| window == needle));
            }
            for record in segment::records(path, id, &file, 0).expect("a segment") {
                let content = record.expect("a record").content;
                assert!(!content.windows(500).any(|window| window == &needle[..500]));
            }
        }
    }
}
