//! What storing costs above bare compression: real pages with digests, records, group commit, on one thread.
//!
//! Compares `encode` + `append` + `sync` with what the crate `zstd` alone needs for the same bytes, at the same level and
//! with the same dictionary, in time on the processor. Both run alternately, several rounds; the best of each counts.
//!
//! `cargo bench -p archive-storage --bench append -- [FILE]`; the file is by default that of `$ARCHIVE_TEST_DATA`.

use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use archive_storage::Digest;
use archive_storage::backend::RealDisk;
use archive_storage::segment::{
    CaptureBody, CaptureGroup, Dictionary, DictionaryBase, SegmentOptions, Segments,
};
use archive_storage::warc::{RecordReader, RecordType};
use bytes::Bytes;
use chrono::{DateTime, Utc};

const ROUNDS: usize = 5;
/// Bytes between two syncs, as a crawl has them.
const COMMIT_BYTES: u64 = 64 << 20;

struct Page {
    url: String,
    time: DateTime<Utc>,
    http: Bytes,
    body: Bytes,
}

fn pages(file: &Path) -> Result<Vec<Page>, Box<dyn Error>> {
    let mut pages = Vec::new();
    for record in RecordReader::new(File::open(file)?) {
        let record = record?;
        let header = &record.header;
        if !matches!(header.record_type(), RecordType::Resource | RecordType::Response) {
            continue;
        }
        let (Some(url), Some(time)) = (header.target_uri(), header.date()) else { continue };
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n",
            record.content.len()
        );
        let http = Bytes::from([head.as_bytes(), &record.content].concat());
        pages.push(Page { url: url.into(), time, body: http.slice(head.len()..), http });
    }
    Ok(pages)
}

fn store(pages: &[Page], dictionary: Option<&Dictionary>) -> Result<(Duration, u64), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let (mut segments, _) = Segments::open(Arc::new(RealDisk), folder.path(), SegmentOptions::default())?;
    segments.rotate(dictionary.cloned())?;
    let encoder = segments.encoder();
    // The first group makes the compressor and the file.
    let group = |page: &Page| CaptureGroup {
        url: page.url.clone(),
        time: page.time,
        address: Some([192, 0, 2, 1].into()),
        request: Some(Bytes::from_static(
            b"GET / HTTP/1.1\r\nHost: example.org\r\nUser-Agent: archive\r\n\r\n",
        )),
        payload_digest: Some(Digest::sha256(&page.body)),
        body: CaptureBody::Response { http: page.http.clone(), truncated: None },
        protocols: vec!["http/1.1".into()],
        metadata: vec![("via".into(), "http://example.org/".into())],
    };
    segments.append(&encoder.encode(group(pages.first().ok_or("no pages")?))?)?;
    let bytes = |segments: &Segments| segments.list().iter().map(|info| info.bytes).sum::<u64>();
    let begin = bytes(&segments);
    let (start, mut uncommitted) = (running(), 0);
    for page in pages {
        let encoded = encoder.encode(group(page))?;
        uncommitted += encoded.packed_length();
        segments.append(&encoded)?;
        if uncommitted > COMMIT_BYTES {
            segments.sync()?;
            uncommitted = 0;
        }
    }
    segments.sync()?;
    Ok((running() - start, bytes(&segments) - begin))
}

fn compress(pages: &[Page], dictionary: Option<&Dictionary>) -> Result<(Duration, u64), Box<dyn Error>> {
    let options = SegmentOptions::default();
    let mut compressor = match dictionary {
        Some(dictionary) => {
            zstd::bulk::Compressor::with_dictionary(options.dictionary_level, dictionary.as_bytes())?
        }
        None => zstd::bulk::Compressor::new(3)?,
    };
    let mut output = Vec::new();
    compressor.compress_to_buffer(b"first", &mut Vec::with_capacity(1000))?;
    let (start, mut bytes) = (running(), 0);
    for page in pages {
        output.clear();
        output.reserve(zstd::compress_bound(page.http.len()));
        bytes += compressor.compress_to_buffer(&page.http, &mut output)? as u64;
    }
    Ok((running() - start, bytes))
}

/// Time that this thread has been running: other work on the machine does not count. Where the system does not say, the
/// time on the wall.
fn running() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = text.and_then(|text| text.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| START.get_or_init(Instant::now).elapsed(), Duration::from_nanos)
}

fn main() -> Result<(), Box<dyn Error>> {
    let data = std::env::var_os("ARCHIVE_TEST_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data"), PathBuf::from);
    let file = std::env::args().skip(1).find(|word| word != "--bench");
    let file = file.map_or_else(|| data.join("pages/ota-demo-daily.warc.gz"), PathBuf::from);
    if !file.exists() {
        println!("skipped: there is no {}", file.display());
        return Ok(());
    }
    let pages = pages(&file)?;
    let megabytes = pages.iter().map(|page| page.http.len()).sum::<usize>() as f64 / 1e6;
    // Of each URL the version in the middle of the file's time.
    let mut bases: Vec<DictionaryBase> = Vec::new();
    for page in pages.iter().take(pages.len() / 2).rev() {
        if bases.iter().all(|base| base.url != page.url) {
            bases.push(DictionaryBase { url: page.url.clone(), content: page.http.clone(), origin: None });
        }
    }
    let with = Dictionary::build(&bases)?;
    for (name, dictionary) in [("without dictionary", None), ("with dictionary", with.as_ref())] {
        let mut best = [(Duration::MAX, 0); 2];
        for _ in 0..ROUNDS {
            let [stored, bare] = &mut best;
            *stored = store(&pages, dictionary)?.min(*stored);
            *bare = compress(&pages, dictionary)?.min(*bare);
        }
        let [(stored, stored_bytes), (bare, bare_bytes)] = best;
        println!(
            "{name}: stored {:.0} MB/s ({stored_bytes} bytes), bare zstd {:.0} MB/s ({bare_bytes} bytes): {:.2}",
            megabytes / stored.as_secs_f64(),
            megabytes / bare.as_secs_f64(),
            bare.as_secs_f64() / stored.as_secs_f64()
        );
    }
    Ok(())
}
