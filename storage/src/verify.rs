//! Verifies that an archive holds what it claims: every record is readable and matches its digests, every revisit is
//! resolved, every closed segment is unchanged since it was closed, catalogue and segments agree, and the state is
//! consistent.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;

use serde::Serialize;
use url::Url;

use crate::address::{canonical, was_dropped, without_parameters, without_request};
use crate::backend::RealDisk;
use crate::capture_kind::CaptureKind;
use crate::catalogue::SegmentState;
use crate::checkpoint::{Owner, StateError};
use crate::digest::Digest;
use crate::history::Capture;
use crate::ids::{CaptureId, SegmentId};
use crate::rebuild::catalogued;
use crate::segment::{self, FIELD_CONTENT_DIGEST, FIELD_IMPORTED, Inspection, SegmentError};
use crate::store::{Store, StoreError};
use crate::warc::{HttpHead, dechunk, split};

/// A problem found by a verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The segment; `None` if the problem is in the state.
    pub segment: Option<SegmentId>,
    /// The record's offset; `None` if the problem concerns the whole segment.
    pub offset: Option<u64>,
    /// Description of the problem.
    pub what: String,
}

/// What a verification checked and found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Captures whose records were read.
    pub captures: u64,
    /// Number of these captures that are revisits whose original was found.
    pub revisits: u64,
    /// Revisits whose original was never imported or is lost.
    pub open_revisits: u64,
    /// Closed segments checked: read from end to end in a full verification, otherwise checked for existence and size.
    pub segments: u64,
    /// Compressed bytes of the records read.
    pub bytes: u64,
    /// Captures that earlier repairs could not recover.
    pub lost: u64,
    /// Problems found: the first [`FINDINGS_MAX`] of them.
    #[serde(skip)]
    pub findings: Vec<Finding>,
    /// Number of further problems.
    #[serde(skip)]
    pub unlisted: u64,
}

/// Maximum number of findings listed; further ones are only counted.
pub const FINDINGS_MAX: usize = 1000;

impl Verified {
    /// Records a problem.
    pub fn find(&mut self, segment: Option<SegmentId>, offset: Option<u64>, what: impl Into<String>) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding { segment, offset, what: what.into() });
        } else {
            self.unlisted += 1;
        }
    }
}

/// Verifies every `every`th capture of an archive (1 for all). When all are read, closed segments are also read from
/// end to end and the consistency of the state is checked. Problems do not stop it: a state that cannot be opened is a
/// finding as well, and the segments are still checked.
///
/// `progress` is called with the number of captures checked so far.
///
/// # Errors
/// When there is no archive, its state has another format, or the folder of segments cannot be read.
pub fn verify(path: &Path, every: u64, progress: &mut dyn FnMut(u64)) -> Result<Verified, StoreError> {
    let is_whole = every <= 1;
    let mut verified = Verified::default();
    let store = match Store::read_only(path) {
        Ok(store) => Some(store),
        Err(StoreError::State(StateError::Lost { .. })) => {
            verified.find(None, None, "the state is missing; `archive repair` rebuilds it");
            None
        }
        Err(StoreError::State(
            error @ (StateError::Missing { .. }
            | StateError::NewerFormat { .. }
            | StateError::OlderFormat { .. }),
        )) => return Err(error.into()),
        Err(error) if error.lacks_descriptors() => return Err(error),
        Err(error) => {
            verified.find(None, None, state_finding(&error));
            None
        }
    };
    let aside = segment::put_aside(&RealDisk, path)?.0;
    verified.lost = aside.iter().filter_map(|entry| entry.lost).sum();
    let catalogue = store.as_ref().map_or_else(|| catalogued(path), |store| store.state().catalogued());
    let inspection = thread::scope(|scope| {
        // Segments are read sequentially, in parallel with captures, which are read by location: both ways have to
        // work.
        let inspection = scope.spawn(|| segment::inspect(path, &catalogue, is_whole, &|_, _| {}));
        let known = store.as_ref().map(|store| check_captures(store, every, &mut verified, progress));
        if let Some(store) = store.as_ref().filter(|_| is_whole) {
            let outcome = store.state().check(&mut |found| verified.find(None, None, state_finding(found)));
            if let Err(error) = outcome {
                verified.find(None, None, state_finding(&error));
            }
        }
        let inspection = inspection.join().unwrap_or(Err(SegmentError::Poisoned))?;
        verified.segments = inspection.closed.len() as u64;
        if let (Some(store), Some(known)) = (&store, known) {
            compare(store, &known, &inspection, &mut verified);
        } else {
            verified.captures = inspection.surveys.values().map(|survey| survey.captures).sum();
        }
        Ok::<_, StoreError>(inspection)
    })?;
    for fault in inspection.faults {
        let what = if fault.offset.is_some() { fault.what } else { format!("{} {}", fault.file, fault.what) };
        verified.find(fault.segment, fault.offset, what);
    }
    Ok(verified)
}

/// Describes a problem of the state, with its remedy.
fn state_finding(found: &dyn std::fmt::Display) -> String {
    let found = found.to_string();
    let remedy = if found.contains("`archive ") { "" } else { "; `archive repair` rebuilds it" };
    format!("state, {found}{remedy}")
}

/// Reads captures by location, and returns the number of captures of each segment.
fn check_captures(
    store: &Store,
    every: u64,
    verified: &mut Verified,
    progress: &mut dyn FnMut(u64),
) -> BTreeMap<SegmentId, u64> {
    let mut known: BTreeMap<SegmentId, u64> = BTreeMap::new();
    for number in 0..store.state().totals().captures {
        // Capture ids have 32 bits.
        let id = CaptureId(u32::try_from(number).unwrap_or(u32::MAX));
        let capture = match store.state().capture(id) {
            Ok(capture) => capture,
            Err(error) => {
                verified.find(None, None, format!("capture {id}: {error}"));
                continue;
            }
        };
        *known.entry(capture.location.segment).or_default() += 1;
        if number % every.max(1) != 0 {
            continue;
        }
        let outcome = check_capture(store, &capture, verified).unwrap_or_else(|error| Err(error.to_string()));
        if let Err(what) = outcome {
            verified.find(Some(capture.location.segment), Some(capture.location.offset), what);
        }
        verified.captures += 1;
        verified.bytes += u64::from(capture.location.length);
        progress(verified.captures);
    }
    known
}

/// Compares the catalogue with the segments that exist.
fn compare(
    store: &Store,
    known: &BTreeMap<SegmentId, u64>,
    inspection: &Inspection,
    verified: &mut Verified,
) {
    // A running crawl may have created and closed segments since its last checkpoint.
    let is_owned = Owner::is_taken(store.path()).unwrap_or(false);
    let next = store.state().watermarks().next;
    for id in &inspection.closed {
        let Some(entry) = store.state().segment(*id) else {
            if !is_owned || *id < next {
                let what = format!("segment {id} is not in the catalogue; `archive repair` takes it in");
                verified.find(Some(*id), None, what);
            }
            continue;
        };
        let known = known.get(id).copied().unwrap_or(0);
        let held = inspection.surveys.get(id).map_or(known, |survey| survey.captures);
        if entry.state == SegmentState::Closed && held != known {
            let what = format!("{} holds {held} captures, the catalogue knows {known}", entry.file);
            verified.find(Some(*id), None, what);
        }
    }
}

type CheckResult = Result<(), String>;

fn check_capture(
    store: &Store,
    capture: &Capture,
    verified: &mut Verified,
) -> Result<CheckResult, StoreError> {
    let url = store.state().url(capture.url)?;
    let record = match store.record(capture.location) {
        Ok(record) => record,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let header = &record.header;
    let found = header.target_uri().unwrap_or("nothing");
    // A fragment, or method and body, distinguish captures of one URL for different purposes.
    let expected = without_request(url.split_once('#').map_or(url.as_str(), |(fetched, _)| fetched));
    if !is_named(found, expected) {
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
            let is_of_content = || is_of_content(store, capture);
            Ok(check_payload(header.get("WARC-Payload-Digest"), &record.content, capture, is_of_content))
        }
        CaptureKind::Identical | CaptureKind::NotModified => {
            let original = store.original(capture)?;
            let Some(original) = original else {
                if verified.lost > 0 || is_imported(store, capture) {
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

/// Whether a record of a URL as another tool spelled it may have this canonical URL, which earlier versions made
/// without parameters of sessions.
fn is_named(found: &str, expected: &str) -> bool {
    let is_expected = |url: String| {
        url == expected || without_parameters(&url, was_dropped).is_some_and(|without| without == expected)
    };
    found == expected || Url::parse(found).is_ok_and(|found| is_expected(canonical(&found)))
}

/// Whether another tool made the capture: its original may then be in a file that was never imported.
fn is_imported(store: &Store, capture: &Capture) -> bool {
    let fields = store.reader().metadata(capture.location).unwrap_or_default();
    fields.iter().any(|(name, _)| name == FIELD_IMPORTED)
}

/// Whether the digest in the catalogue is that of the payload without content codings, as it was when that was captured. The
/// payload itself is proved by its own digest.
fn is_of_content(store: &Store, capture: &Capture) -> bool {
    let fields = store.reader().metadata(capture.location).unwrap_or_default();
    let stated = fields.iter().find(|(name, _)| name == FIELD_CONTENT_DIGEST);
    stated
        .and_then(|(_, digest)| digest.parse::<Digest>().ok())
        .is_some_and(|it| it.prefix() == capture.digest)
}

fn check_payload(
    stated: Option<&str>,
    content: &bytes::Bytes,
    capture: &Capture,
    is_of_content: impl FnOnce() -> bool,
) -> CheckResult {
    let (head, body) = split(content);
    let stated =
        stated.and_then(|text| text.parse::<Digest>().ok()).ok_or("the record has no payload digest")?;
    let is_chunked = HttpHead::parse(&head).is_chunked();
    let payload = if is_chunked { dechunk(&body) } else { body.clone() };
    // Records written by other tools may mean the de-chunked payload, and may use another algorithm.
    let is_right = stated.matches(&body) || is_chunked && stated.matches(&payload);
    if !is_right {
        return Err("the payload does not have its digest".to_owned());
    }
    let is_entity = !is_chunked && stated.prefix() == capture.digest;
    if !is_entity && Digest::sha256(&payload).prefix() != capture.digest && !is_of_content() {
        return Err("the payload does not have the digest in the catalogue".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_listed_up_to_a_limit_and_counted_beyond() {
        let mut verified = Verified::default();
        (0..FINDINGS_MAX).for_each(|number| verified.find(None, None, number.to_string()));
        assert_eq!((verified.findings.len(), verified.unlisted), (FINDINGS_MAX, 0));
        verified.find(None, None, "one more");
        assert_eq!((verified.findings.len(), verified.unlisted), (FINDINGS_MAX, 1));
    }
}
