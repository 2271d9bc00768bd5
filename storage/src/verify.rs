//! The proof that an archive holds what it says: every record readable and as its digests say, every revisit resolved,
//! every closed segment as it was closed, catalogue and segments in agreement, the state whole.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use url::Url;

use crate::address::canonical;
use crate::catalogue::{SegmentEntry, SegmentState};
use crate::digest::Digest;
use crate::history::{Capture, CaptureKind};
use crate::ids::SegmentId;
use crate::segment::{self, FIELD_IMPORTED, SegmentError, Survey};
use crate::store::{Store, StoreError};
use crate::warc::{HttpHead, dechunk, split};

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The segment; nothing when the state is meant.
    pub segment: Option<SegmentId>,
    /// The record's offset; nothing when the segment as a whole is meant.
    pub offset: Option<u64>,
    /// What is wrong.
    pub what: String,
}

/// What a verification looked at and found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// Captures whose records were read.
    pub captures: u64,
    /// Of these, revisits whose original was found.
    pub revisits: u64,
    /// Imported revisits whose original was never imported.
    pub open_revisits: u64,
    /// Closed segments that were looked at: in a whole verification read from end to end, else found and measured.
    pub segments: u64,
    /// Compressed bytes of the records read.
    pub bytes: u64,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

/// Verifies an archive: every `every`th capture (1 for all). When all are read, closed segments are read from end to end as
/// well and the state is checked for itself.
///
/// `progress` is told the number of captures looked at so far.
///
/// # Errors
/// When the state cannot be read; what is wrong with records is a finding, not an error.
pub fn verify(store: &Store, every: u64, progress: &mut dyn FnMut(u64)) -> Result<Verified, StoreError> {
    let is_whole = every <= 1;
    let mut verified = Verified::default();
    let (path, closed) = (store.path(), closed_files(store));
    thread::scope(|scope| {
        // Segments are read beside the captures, which are read by their locations: both ways have to work.
        let surveys = is_whole.then(|| scope.spawn(|| survey_all(path, &closed)));
        let mut known: BTreeMap<SegmentId, u64> = BTreeMap::new();
        for (number, capture) in (0_u64..).zip(store.state().captures()) {
            let (_, capture) = capture?;
            *known.entry(capture.location.segment).or_default() += 1;
            if number % every.max(1) != 0 {
                continue;
            }
            if let Err(what) = check_capture(store, &capture, &mut verified)? {
                let (segment, offset) = (Some(capture.location.segment), Some(capture.location.offset));
                verified.findings.push(Finding { segment, offset, what });
            }
            verified.captures += 1;
            verified.bytes += u64::from(capture.location.length);
            progress(verified.captures);
        }
        if is_whole {
            store.state().check(&mut |found| {
                let what = format!("state, {found}; `archive rebuild` makes it anew");
                verified.findings.push(Finding { segment: None, offset: None, what });
            })?;
        }
        let surveys = surveys.map(|surveys| surveys.join().unwrap_or_default()).unwrap_or_default();
        check_segments(store, &known, &surveys, &mut verified);
        Ok(verified)
    })
}

type Check = Result<(), String>;

fn check_capture(store: &Store, capture: &Capture, verified: &mut Verified) -> Result<Check, StoreError> {
    let url = store.state().url(capture.url)?;
    let record = match store.record(capture.location) {
        Ok(record) => record,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let header = &record.header;
    let found = header.target_uri().unwrap_or("nothing");
    // A fragment tells apart what was fetched at one URL for different purposes.
    let expected = url.split_once('#').map_or(url.as_str(), |(fetched, _)| fetched);
    // Records that other tools wrote keep their spelling of the URL.
    if found != expected && Url::parse(found).ok().is_none_or(|found| canonical(&found) != expected) {
        return Ok(Err(format!("the record is of {found}, the catalogue says {url}")));
    }
    if header.date().map(|date| date.timestamp_micros()) != Some(capture.time) {
        return Ok(Err("the record's date is not the one in the catalogue".to_owned()));
    }
    if let Some(stated) = header.get("WARC-Block-Digest").and_then(|text| text.parse::<Digest>().ok())
        && !stated.matches(&record.content)
    {
        return Ok(Err("the block does not have its digest".to_owned()));
    }
    match capture.kind {
        CaptureKind::Response => {
            Ok(check_payload(header.get("WARC-Payload-Digest"), &record.content, capture))
        }
        CaptureKind::Identical | CaptureKind::NotModified => {
            let original = store.original(capture)?;
            let Some(original) = original else {
                if is_imported(store, capture) {
                    verified.open_revisits += 1;
                    return Ok(Ok(()));
                }
                return Ok(Err("no capture in the archive has the payload of this revisit".to_owned()));
            };
            if original.digest != capture.digest {
                return Ok(Err("the original of this revisit has another payload".to_owned()));
            }
            verified.revisits += 1;
            Ok(Ok(()))
        }
        CaptureKind::Resource if Digest::sha256(&record.content).prefix() != capture.digest => {
            Ok(Err("the content does not have the digest in the catalogue".to_owned()))
        }
        CaptureKind::Resource | CaptureKind::Failed => Ok(Ok(())),
    }
}

/// Whether another tool captured it: then its original may be in a file that was never imported.
fn is_imported(store: &Store, capture: &Capture) -> bool {
    let fields = store.reader().metadata(capture.location).unwrap_or_default();
    fields.iter().any(|(name, _)| name == FIELD_IMPORTED)
}

fn check_payload(stated: Option<&str>, content: &bytes::Bytes, capture: &Capture) -> Check {
    let (head, body) = split(content);
    let stated =
        stated.and_then(|text| text.parse::<Digest>().ok()).ok_or("the record has no payload digest")?;
    let is_chunked = HttpHead::parse(&head).is_chunked();
    let payload = if is_chunked { dechunk(&body) } else { body.clone() };
    // Records that other tools wrote may mean the payload without its chunks, and may use another algorithm.
    let is_right = stated.matches(&body) || is_chunked && stated.matches(&payload);
    if !is_right {
        return Err("the payload does not have its digest".to_owned());
    }
    let is_entity = !is_chunked && stated.prefix() == capture.digest;
    if !is_entity && Digest::sha256(&payload).prefix() != capture.digest {
        return Err("the payload does not have the digest in the catalogue".to_owned());
    }
    Ok(())
}

/// What closed segments hold, or why they cannot be read.
type Surveys = BTreeMap<SegmentId, Result<Survey, SegmentError>>;

/// The closed segments that the catalogue knows.
fn closed_files(store: &Store) -> Vec<(SegmentId, String)> {
    let closed = store.state().segments().filter(|(_, entry)| entry.state == SegmentState::Closed);
    closed.map(|(id, entry)| (id, entry.file.clone())).collect()
}

/// Reads every closed segment, on as many threads as there are.
fn survey_all(archive: &Path, closed: &[(SegmentId, String)]) -> Surveys {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut surveys = Vec::new();
        while let Some((id, file)) = closed.get(next.fetch_add(1, Ordering::Relaxed)) {
            surveys.push((*id, segment::survey(archive, *id, file)));
        }
        surveys
    };
    thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    })
}

/// Compares segments, manifest and catalogue.
fn check_segments(
    store: &Store,
    known: &BTreeMap<SegmentId, u64>,
    surveys: &Surveys,
    verified: &mut Verified,
) {
    let manifest = segment::manifest(store.path());
    let on_disk = segment::files(store.path());
    let mut find = |segment, offset, what| verified.findings.push(Finding { segment, offset, what });
    let manifest = manifest.unwrap_or_else(|error| {
        find(None, None, error.to_string());
        BTreeMap::new()
    });
    let on_disk = on_disk.unwrap_or_else(|error| {
        find(None, None, error.to_string());
        Vec::new()
    });
    for (id, file) in &on_disk {
        // A segment that was begun after the checkpoint is still written to.
        if store.state().segment(*id).is_none() && !file.ends_with(".open") {
            find(Some(*id), None, format!("{file} is not in the catalogue; `archive rebuild` takes it in"));
        }
    }
    let mut segments = 0;
    for (id, entry) in store.state().segments() {
        if entry.state != SegmentState::Closed {
            continue;
        }
        segments += 1;
        let file = &entry.file;
        if !on_disk.iter().any(|(_, name)| name == file) {
            find(Some(id), None, format!("{file} is missing"));
            continue;
        }
        let stated = manifest.get(file).map(ToString::to_string);
        if stated != entry.sha256 {
            find(Some(id), None, format!("the manifest and the catalogue state different digests of {file}"));
        }
        match surveys.get(&id) {
            Some(Ok(survey)) => {
                for what in survey_findings(survey, entry, known.get(&id).copied().unwrap_or(0)) {
                    find(Some(id), what.0, what.1);
                }
            }
            Some(Err(error)) => find(Some(id), None, error.to_string()),
            None => {
                let length =
                    fs::metadata(store.path().join(segment::FOLDER).join(file)).map(|file| file.len());
                if length.ok() != Some(entry.bytes) {
                    find(
                        Some(id),
                        None,
                        format!("{file} does not have the {} bytes it was closed with", entry.bytes),
                    );
                }
            }
        }
    }
    verified.segments = segments;
}

/// What is wrong with a segment that was read from end to end.
fn survey_findings(survey: &Survey, entry: &SegmentEntry, known: u64) -> Vec<(Option<u64>, String)> {
    let mut findings: Vec<_> =
        survey.broken.iter().map(|place| (Some(place.offset), place.what.clone())).collect();
    if entry.sha256.as_ref().is_some_and(|stated| *stated != survey.sha256.to_string()) {
        findings.push((None, format!("{} is not the file that was closed", entry.file)));
    }
    if survey.captures != known {
        let what = format!("{} holds {} captures, the catalogue knows {known}", entry.file, survey.captures);
        findings.push((None, what));
    }
    findings
}
