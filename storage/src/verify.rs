//! The proof that an archive holds what it says: every record readable and as its digests say, every revisit resolved,
//! every closed segment as it was closed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};

use sha2::{Digest as _, Sha256};
use url::Url;

use crate::address::canonical;
use crate::catalogue::SegmentState;
use crate::digest::Digest;
use crate::history::{Capture, CaptureKind};
use crate::ids::SegmentId;
use crate::segment::FOLDER;
use crate::store::{Store, StoreError};
use crate::warc::{HttpHead, dechunk, split};

/// Bytes read at once when a segment is hashed.
const HASH_READ_BYTES: usize = 1 << 20;

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The segment.
    pub segment: SegmentId,
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
    /// Closed segments whose files were hashed.
    pub segments: u64,
    /// Compressed bytes of the records read.
    pub bytes: u64,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

/// Verifies an archive: every `every`th capture (1 for all), and the digests of closed segments when all are read.
///
/// `progress` is told the number of captures looked at so far.
///
/// # Errors
/// When the state cannot be read; what is wrong with records is a finding, not an error.
pub fn verify(store: &Store, every: u64, progress: &mut dyn FnMut(u64)) -> Result<Verified, StoreError> {
    let mut verified = Verified::default();
    for (number, capture) in (0_u64..).zip(store.state().captures()) {
        let (_, capture) = capture?;
        if number % every.max(1) != 0 {
            continue;
        }
        if let Err(what) = check_capture(store, &capture, &mut verified)? {
            let (segment, offset) = (capture.location.segment, Some(capture.location.offset));
            verified.findings.push(Finding { segment, offset, what });
        }
        verified.captures += 1;
        verified.bytes += u64::from(capture.location.length);
        progress(verified.captures);
    }
    if every <= 1 {
        check_segments(store, &mut verified);
    }
    Ok(verified)
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
    // Records that other tools wrote keep their spelling of the URL.
    if found != url && Url::parse(found).ok().map(|found| canonical(&found)) != Some(url.clone()) {
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

fn check_segments(store: &Store, verified: &mut Verified) {
    let segments: BTreeMap<_, _> = store.state().segments().collect();
    for (id, entry) in segments {
        if entry.state != SegmentState::Closed {
            continue;
        }
        let Some(stated) = &entry.sha256 else { continue };
        let path = store.path().join(FOLDER).join(&entry.file);
        let what = match hash_file(&path) {
            Ok(digest) if digest.to_string() == *stated => None,
            Ok(_) => Some(format!("{} is not the file that was closed", path.display())),
            Err(error) => Some(format!("cannot read {}: {error}", path.display())),
        };
        verified.segments += 1;
        verified.findings.extend(what.map(|what| Finding { segment: id, offset: None, what }));
    }
}

fn hash_file(path: &std::path::Path) -> io::Result<Digest> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; HASH_READ_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(Digest::from_sha256(hasher.finalize().into())),
            read => hasher.update(buffer.get(..read).unwrap_or_default()),
        }
    }
}
