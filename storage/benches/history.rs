//! What a history of versions costs, and how fast any version of it is read.
//!
//! Imports real captures in the order of time, as a crawl would have met them; a segment closes when a dictionary of newer
//! versions pays. Prints the archive's bytes beside those
//! of the `.warc.gz`, and the time of reading every version in random order.
//!
//! `cargo bench -p archive-storage --bench history -- [FILE] [--level N] [--copy]`; the file is by default that of
//! `$ARCHIVE_TEST_DATA`.

use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use archive_storage::Location;
use archive_storage::backend::RealDisk;
use archive_storage::segment::{CaptureBody, CaptureGroup, Guard, SegmentOptions, Segments};
use archive_storage::warc::{Record, RecordReader, RecordType};

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
    file: PathBuf,
    level: Option<i32>,
    guard: Guard,
}

fn arguments() -> Result<Arguments, Box<dyn Error>> {
    let mut arguments = Arguments { file: default_file(), level: None, guard: Guard::Parity };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--bench" => {} // cargo adds it
            "--copy" => arguments.guard = Guard::Copy,
            "--level" => arguments.level = Some(words.next().ok_or("--level needs a number")?.parse()?),
            _ => arguments.file = word.into(),
        }
    }
    Ok(arguments)
}

/// Time that this thread has been running: other work on the machine does not count. Where the system does not tell, the
/// time on the wall.
fn running() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|text| text.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| START.get_or_init(Instant::now).elapsed(), Duration::from_nanos)
}

fn main() -> Result<(), Box<dyn Error>> {
    let Arguments { file, level, guard } = arguments()?;
    let Ok(source) = File::open(&file) else {
        println!("skipped: there is no {}", file.display());
        return Ok(());
    };
    let foreign_bytes = source.metadata()?.len();
    let mut groups: Vec<CaptureGroup> =
        RecordReader::new(source).flatten().filter_map(|record| group(&record)).collect();
    groups.sort_by_key(|group| group.time);

    let folder = tempfile::tempdir()?;
    let mut options = SegmentOptions::default();
    options.guard = guard;
    options.dictionary_level = level.unwrap_or(options.dictionary_level);
    let (mut segments, _) = Segments::open(Arc::new(RealDisk), folder.path(), options)?;
    let mut stored = Vec::new();
    let (mut plain_bytes, mut encoding, mut building) = (0, Duration::ZERO, Duration::ZERO);
    for (order, group) in groups.iter().enumerate() {
        let start = running();
        let encoded = segments.encoder().encode(group.clone())?;
        encoding += running() - start;
        plain_bytes += encoded.plain_length();
        stored.push((segments.append(&encoded)?.main, group));
        if segments.rotation_due().is_some() {
            let start = running();
            let plan = segments.dictionary_plan();
            let dictionary = plan.map(|plan| plan.build()).transpose()?.flatten();
            building += running() - start;
            println!("segment {:?} closes after capture {order}", segments.watermark());
            segments.rotate(dictionary.map(Arc::new))?;
        }
    }
    segments.rotate(None)?;
    report(&segments, groups.len(), plain_bytes, foreign_bytes);
    let megabytes = plain_bytes as f64 / 1e6;
    println!(
        "encoding {:.0} MB/s; dictionaries {:.1} s",
        megabytes / encoding.as_secs_f64(),
        building.as_secs_f64()
    );
    read_back(&segments, &mut stored)
}

fn report(segments: &Segments, captures: usize, plain_bytes: u64, foreign_bytes: u64) {
    let list = segments.list();
    for info in &list {
        println!("{} {:>4} captures {:>9} bytes", info.name, info.captures, info.bytes);
    }
    let bytes: u64 = list.iter().map(|info| info.bytes).sum();
    println!(
        "{captures} captures, {plain_bytes} bytes plain, {foreign_bytes} as found, {bytes} stored: {:.1} x, {:.3} of the .warc.gz",
        plain_bytes as f64 / bytes as f64,
        bytes as f64 / foreign_bytes as f64
    );
}

/// Reads every version in a scattered order, twice; the second time everything is warm.
fn read_back(segments: &Segments, stored: &mut [(Location, &CaptureGroup)]) -> Result<(), Box<dyn Error>> {
    stored.sort_by_key(|(location, _)| location.offset.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for round in ["cold", "warm"] {
        let mut times = Vec::with_capacity(stored.len());
        for (location, group) in stored.iter() {
            let start = Instant::now();
            let record = segments.read(*location)?;
            times.push(start.elapsed());
            if let CaptureBody::Resource { body, .. } | CaptureBody::Response { http: body, .. } = &group.body
                && *body != record.content
            {
                return Err(format!("{} of {} differs", group.url, group.time).into());
            }
        }
        times.sort_unstable();
        let at = |share: usize| times.get((times.len() - 1) * share / 100).copied().unwrap_or_default();
        println!("get, {round}: median {:?}, p99 {:?}, longest {:?}", at(50), at(99), at(100));
    }
    Ok(())
}
