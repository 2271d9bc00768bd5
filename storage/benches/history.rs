//! What a history of versions costs, and how fast any version of it is read, through the whole store.
//!
//! Imports real captures in the order of time, as a crawl would have met them: the store's clock is theirs, payloads found by
//! digest become revisits, and the store decides when a segment closes. Prints the archive's bytes beside those of the
//! `.warc.gz`, and the time of reading every version in random order.
//!
//! `cargo bench -p archive-storage --bench history -- [FILE] [--level N] [--groups N] [--copy] [--list]`; the file is by
//! default that of `$ARCHIVE_TEST_DATA`. A folder of web pages in place of the file stands for one pass of a crawl: its
//! files are captures of as many pages, and the bytes beside are those of one gzip member a record.

use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use archive_storage::address::url_hash;
use archive_storage::backend::RealDisk;
use archive_storage::segment::{CaptureBody, CaptureGroup, Codec, Guard, SegmentOptions, Segments};
use archive_storage::warc::{Record, RecordReader, RecordType, split};
use archive_storage::{Capture, CaptureId, CaptureKind, Clock, Digest, Location, MimeId, Store, StoreError};
use bytes::Bytes;
use chrono::{DateTime, Utc};

/// A capture as the foreign file has it.
fn group(record: &Record) -> Option<CaptureGroup> {
    let header = &record.header;
    let payload_digest = header.get("WARC-Payload-Digest").and_then(|digest| digest.parse().ok());
    let body = match header.record_type() {
        RecordType::Resource => CaptureBody::Resource {
            content_type: header.get("Content-Type")?.to_owned(),
            body: record.content.clone(),
        },
        RecordType::Response => CaptureBody::Response { http: record.content.clone(), truncated: None },
        RecordType::Revisit => CaptureBody::Identical {
            head: record.content.clone(),
            original_url: header.get("WARC-Refers-To-Target-URI").or(header.target_uri())?.to_owned(),
            original_time: header.get("WARC-Refers-To-Date")?.parse().ok()?,
        },
        _ => return None,
    };
    Some(CaptureGroup {
        url: header.target_uri()?.to_owned(),
        time: header.date()?,
        address: None,
        request: None,
        body,
        payload_digest,
        protocols: Vec::new(),
        metadata: Vec::new(),
    })
}

fn default_file() -> PathBuf {
    let data = std::env::var_os("ARCHIVE_TEST_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data"), PathBuf::from);
    data.join("pages/ota-demo-daily.warc.gz")
}

struct Arguments {
    source: PathBuf,
    options: SegmentOptions,
    lists: bool,
}

fn arguments() -> Result<Arguments, Box<dyn Error>> {
    let mut options =
        SegmentOptions { clock: Clock::of(capture_time), builds_beside: false, ..SegmentOptions::default() };
    let (mut source, mut lists) = (default_file(), false);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || -> Result<usize, Box<dyn Error>> {
            Ok(words.next().ok_or_else(|| format!("{word} needs a number"))?.parse()?)
        };
        match word.as_str() {
            "--bench" => {} // cargo adds it
            "--copy" => options.guard = Some(Guard::Copy),
            "--list" => lists = true,
            "--level" => options.dictionary_level = i32::try_from(number()?)?,
            "--groups" => options.host_groups = number()?,
            _ => source = word.into(),
        }
    }
    Ok(Arguments { source, options, lists })
}

/// Seconds since 1970 at which the crawl is.
static CLOCK: AtomicI64 = AtomicI64::new(0);

fn capture_time() -> DateTime<Utc> {
    DateTime::from_timestamp(CLOCK.load(Ordering::Relaxed), 0).unwrap_or_default()
}

/// Captures of a WARC file, in the order of time.
fn recaptures(file: &Path) -> Result<Vec<CaptureGroup>, Box<dyn Error>> {
    let records = RecordReader::new(File::open(file)?);
    let mut groups: Vec<CaptureGroup> = records.flatten().filter_map(|record| group(&record)).collect();
    groups.sort_by_key(|group| group.time);
    Ok(groups)
}

/// One pass over the pages in a folder, site by site as they lie there.
fn pages(folder: &Path) -> Result<Vec<CaptureGroup>, Box<dyn Error>> {
    let mut paths = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            match entry.path() {
                path if entry.file_type()?.is_dir() => folders.push(path),
                path if path.extension().is_some_and(|extension| extension == "html") => paths.push(path),
                _ => {}
            }
        }
    }
    paths.sort();
    let page = |(second, path): (i64, &PathBuf)| {
        let body = Bytes::from(std::fs::read(path)?);
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n", body.len());
        let name = path.strip_prefix(folder)?.to_string_lossy().into_owned();
        // The first folder is the site.
        let (site, name) = name.split_once('/').unwrap_or(("site", &name));
        Ok(CaptureGroup {
            url: format!("http://{site}.example/{name}"),
            time: DateTime::from_timestamp(1_767_225_600 + second, 0).unwrap_or_default(),
            address: Some([192, 0, 2, 1].into()),
            request: Some(Bytes::from(format!("GET /{name} HTTP/1.1\r\nHost: {site}.example\r\n\r\n"))),
            payload_digest: Some(Digest::sha256(&body)),
            body: CaptureBody::Response { http: [head.as_bytes(), &body].concat().into(), truncated: None },
            protocols: vec!["http/1.1".into()],
            metadata: Vec::new(),
        })
    };
    (0..).zip(&paths).map(page).collect()
}

/// Bytes that the same captures take as `.warc.gz`, one member a record.
fn gzipped(groups: &[CaptureGroup]) -> Result<u64, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let options = SegmentOptions { codec: Some(Codec::Gzip), ..SegmentOptions::default() };
    let (mut segments, _) = Segments::open(Arc::new(RealDisk), folder.path(), options)?;
    for group in groups {
        segments.append(&segments.encoder().encode(group.clone())?)?;
    }
    segments.rotate(None)?;
    Ok(segments.list().iter().map(|info| info.bytes).sum())
}

/// Time that this thread has been running: other work on the machine does not count. Where the system does not say, the
/// time on the wall.
fn running() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = text.and_then(|text| text.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| START.get_or_init(Instant::now).elapsed(), Duration::from_nanos)
}

/// Notes a capture in the state, as a crawl does.
fn note(store: &mut Store, group: &CaptureGroup, location: Location) -> Result<CaptureId, Box<dyn Error>> {
    let state = store.state_mut();
    let (url, _) = state.intern(&group.url, url_hash(&group.url))?;
    let original = match &group.body {
        CaptureBody::Identical { original_url, original_time, .. } => {
            let original = state.find(original_url)?.ok_or("a revisit of an unknown URL")?;
            state.nearest(original, original_time.timestamp_micros())?.map(|(id, _)| id)
        }
        _ => None,
    };
    let kind = match group.body {
        CaptureBody::Identical { .. } => CaptureKind::Identical,
        CaptureBody::Resource { .. } => CaptureKind::Resource,
        _ => CaptureKind::Response,
    };
    let digest = group.payload_digest.map_or([0; 16], |digest| digest.prefix());
    let capture = Capture {
        url,
        time: group.time.timestamp_micros(),
        location,
        digest,
        status: 200,
        mime: MimeId(0),
        kind,
        length: 0,
        flags: 0,
        original,
    };
    Ok(state.append_capture(&capture, None)?)
}

fn payload(group: &CaptureGroup) -> Option<Bytes> {
    match &group.body {
        CaptureBody::Resource { body, .. } => Some(body.clone()),
        CaptureBody::Response { http, .. } => Some(split(http).1),
        _ => None,
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let Arguments { source, options, lists } = arguments()?;
    if !source.exists() {
        println!("skipped: there is no {}", source.display());
        return Ok(());
    }
    let (groups, foreign_bytes) = if source.is_dir() {
        let groups = pages(&source)?;
        let bytes = gzipped(&groups)?;
        (groups, bytes)
    } else {
        (recaptures(&source)?, source.metadata()?.len())
    };

    let folder = tempfile::tempdir()?;
    let mut store = Store::own(folder.path(), options)?;
    store.replay::<StoreError>(|_, _| Ok(()))?;
    let mut stored = Vec::new();
    let (mut plain_bytes, mut encoding, mut appending) = (0, Duration::ZERO, Duration::ZERO);
    for group in &groups {
        CLOCK.store(group.time.timestamp(), Ordering::Relaxed);
        let start = running();
        let encoded = store.encoder()?.encode(group.clone())?;
        encoding += running() - start;
        plain_bytes += encoded.plain_length();
        let start = running();
        let location = store.append(&encoded)?;
        appending += running() - start;
        stored.push((note(&mut store, group, location)?, payload(group)));
    }
    store.close()?;
    let store = Store::read_only(folder.path())?;
    report(&store, lists, groups.len(), (plain_bytes, foreign_bytes));
    let (dictionaries, guards) = dictionary_bytes(&folder.path().join("segments"))?;
    println!("of these, dictionaries {dictionaries} bytes and what guards them {guards}");
    println!(
        "encoding {:.0} MB/s; appending, with waiting for dictionaries, {:.1} s",
        plain_bytes as f64 / 1e6 / encoding.as_secs_f64(),
        appending.as_secs_f64()
    );
    read_back(&store, &mut stored)
}

fn report(store: &Store, lists: bool, captures: usize, (plain_bytes, foreign_bytes): (u64, u64)) {
    let segments: Vec<_> = store.state().segments().map(|(_, segment)| segment).collect();
    for segment in segments.iter().filter(|_| lists) {
        println!("{} {:>5} records {:>9} bytes", segment.file, segment.records, segment.bytes);
    }
    let bytes: u64 = segments.iter().map(|segment| segment.bytes).sum();
    println!(
        "{captures} captures, {plain_bytes} bytes plain, {foreign_bytes} as .warc.gz, {bytes} stored in {} segments: {:.1} x, {:.3} of the .warc.gz",
        segments.len(),
        plain_bytes as f64 / bytes as f64,
        bytes as f64 / foreign_bytes as f64
    );
}

/// Bytes of the skippable frames that segments start and end with.
fn dictionary_bytes(folder: &Path) -> Result<(u64, u64), Box<dyn Error>> {
    /// The magic numbers of skippable frames without their last four bits (RFC 8878 section 3.1.2).
    const SKIPPABLE: u32 = 0x0184_d2a5;
    let (mut firsts, mut lasts) = (0, 0);
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "zst") {
            continue;
        }
        let bytes = std::fs::read(path)?;
        let mut rest = bytes.as_slice();
        while let Some((head, content)) = rest.split_first_chunk::<8>() {
            let [a, b, c, d, size @ ..] = *head;
            let length = if u32::from_le_bytes([a, b, c, d]) >> 4 == SKIPPABLE {
                let length = 8 + u32::from_le_bytes(size) as usize;
                *if rest.len() == bytes.len() { &mut firsts } else { &mut lasts } += length as u64;
                length
            } else {
                zstd::zstd_safe::find_frame_compressed_size(rest).map_err(|_| "a frame that is none")?
            };
            rest = content.get(length - 8..).ok_or("a frame ends too late")?;
        }
    }
    Ok((firsts, lasts))
}

/// Reads every version in a scattered order, twice; the second time everything is warm.
fn read_back(store: &Store, stored: &mut [(CaptureId, Option<Bytes>)]) -> Result<(), Box<dyn Error>> {
    stored.sort_by_key(|(id, _)| u64::from(id.0).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for round in ["cold", "warm"] {
        let mut times = Vec::with_capacity(stored.len());
        for (id, expected) in stored.iter() {
            let start = Instant::now();
            let capture = store.state().capture(*id)?;
            let payload = store.payload(&capture)?;
            times.push(start.elapsed());
            if expected.is_some() && payload != *expected {
                return Err(format!("capture {} differs", id.0).into());
            }
        }
        times.sort_unstable();
        let at = |share: usize| times.get((times.len() - 1) * share / 100).copied().unwrap_or_default();
        println!("get, {round}: median {:?}, p99 {:?}, longest {:?}", at(50), at(99), at(100));
    }
    Ok(())
}
