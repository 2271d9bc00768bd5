//! Writes the replacements of captures.

use std::collections::HashMap;

use archive_base::erased::forgotten_name;
use archive_books::ledger::{CrawlerFacts, ErasureRecord};
use archive_storage::digest::Algorithm;
use archive_storage::segment::{
    Author, CaptureBody, CaptureGroup, FIELD_CONTENT_DIGEST, FIELD_ENTITY_DIGEST, FIELD_HTTP_HEAD,
    ReplayedCapture, SegmentError, SegmentReader,
};
use archive_storage::warc::{HttpHead, split};
use archive_storage::{CaptureId, CaptureKind, Digest, Location, SegmentId, State, StateError, Store};
use bytes::Bytes;
use chrono::{DateTime, Utc};

use super::{EraseError, EraseIntent};

/// What happens to a capture.
#[derive(Debug, Clone, Copy)]
pub(super) enum CaptureFate {
    /// It is replaced by a tombstone.
    Tombstone {
        /// Whether it belongs to another page and depended on an erased payload.
        is_copy: bool,
    },
    /// A revisit that gets the payload.
    Own,
    /// A revisit that from now on refers to the given one, which gets the payload.
    Refer(CaptureId),
}

/// What replaces a capture.
enum Instead {
    Tombstone { is_copy: bool },
    Own { revisit: Location, original: Location },
    Refer { revisit: Location, url: String, time: DateTime<Utc>, digest: Option<Digest> },
}

/// Writes the replacements of captures.
pub(super) struct ReplacementWriter<'a> {
    reader: SegmentReader,
    algorithm: Algorithm,
    time: String,
    reason: String,
    by: String,
    forget_url: bool,
    instead: HashMap<(SegmentId, u64), Instead>,
    progress: &'a mut dyn FnMut(u64),
}

impl<'a> ReplacementWriter<'a> {
    pub(super) fn new(
        store: &Store,
        intent: &EraseIntent,
        fates: &[(CaptureId, Location, CaptureFate)],
        progress: &'a mut dyn FnMut(u64),
    ) -> Result<Self, EraseError> {
        let mut instead = HashMap::new();
        for (id, place, fate) in fates {
            let what = match fate {
                CaptureFate::Tombstone { is_copy } => Instead::Tombstone { is_copy: *is_copy },
                CaptureFate::Own => {
                    Instead::Own { revisit: *place, original: original_of(store.state(), *id)? }
                }
                CaptureFate::Refer(holder) => refer(store, *place, *holder)?,
            };
            instead.insert((place.segment, place.offset), what);
        }
        Ok(Self {
            reader: store.reader(),
            algorithm: store.encoder()?.algorithm(),
            time: intent.time.clone(),
            reason: intent.reason.clone(),
            by: intent.by.clone(),
            forget_url: intent.forget_url,
            instead,
            progress,
        })
    }

    fn tombstone(&self, capture: &ReplayedCapture, is_copy: bool) -> CaptureGroup {
        let (time, reason, by) = (self.time.clone(), self.reason.clone(), self.by.clone());
        let erased = ErasureRecord { time, is_copy, reason, by };
        // The page of a copy is not forgotten.
        let url =
            if self.forget_url && !is_copy { forgotten_name(&capture.url) } else { capture.url.clone() };
        let robots = CrawlerFacts::from_fields(&capture.metadata).robots;
        let facts = CrawlerFacts { erased: Some(erased), robots, ..CrawlerFacts::default() };
        CaptureGroup {
            url,
            time: capture.time,
            address: None,
            request: None,
            body: CaptureBody::Failed,
            payload_digest: None,
            protocols: Vec::new(),
            metadata: facts.to_fields(),
        }
    }

    /// Returns the records of a kept revisit with a new main record.
    fn beside(capture: &ReplayedCapture, body: CaptureBody, payload_digest: Option<Digest>) -> CaptureGroup {
        CaptureGroup {
            url: capture.url.clone(),
            time: capture.time,
            address: capture.address,
            request: capture.request.clone(),
            body,
            payload_digest,
            protocols: capture.protocols.clone(),
            metadata: capture.metadata.clone(),
        }
    }
}

impl Author for ReplacementWriter<'_> {
    fn replaces(&mut self, capture: &ReplayedCapture) -> Result<bool, SegmentError> {
        Ok(self.instead.contains_key(&(capture.main.segment, capture.main.offset)))
    }

    fn replacement(&mut self, capture: &ReplayedCapture) -> Result<CaptureGroup, SegmentError> {
        let place = (capture.main.segment, capture.main.offset);
        Ok(match self.instead.get(&place).ok_or(SegmentError::Missing(place.0))? {
            Instead::Tombstone { is_copy } => self.tombstone(capture, *is_copy),
            Instead::Own { revisit, original } => {
                let (http, entity) = own(&self.reader, self.algorithm, *revisit, *original)?;
                let digest = Digest::of(self.algorithm, &split(&http).1);
                let body = CaptureBody::Response { http, truncated: None };
                let mut group = Self::beside(capture, body, Some(digest));
                let of_payload = [FIELD_ENTITY_DIGEST, FIELD_CONTENT_DIGEST, FIELD_HTTP_HEAD];
                group.metadata.retain(|(name, _)| !of_payload.contains(&name.as_str()));
                if entity != digest {
                    group.metadata.push((FIELD_ENTITY_DIGEST.to_owned(), entity.to_string()));
                }
                let fields = self.reader.metadata(*original)?;
                group.metadata.extend(fields.into_iter().filter(|(name, _)| name == FIELD_CONTENT_DIGEST));
                group
            }
            Instead::Refer { revisit, url, time, digest } => {
                let (original_url, original_time) = (url.clone(), *time);
                let fields = self.reader.metadata(*revisit)?;
                let lines = fields.iter().filter(|(name, _)| name == FIELD_HTTP_HEAD);
                let mut lines: String = lines.map(|(_, line)| format!("{line}\r\n")).collect();
                let is_in_metadata = !lines.is_empty();
                lines.push_str("\r\n");
                let body = match capture.kind {
                    CaptureKind::NotModified => {
                        CaptureBody::NotModified { head: lines.into(), original_url, original_time }
                    }
                    _ if is_in_metadata => {
                        CaptureBody::SameContent { head: lines.into(), original_url, original_time }
                    }
                    _ => CaptureBody::Identical {
                        head: split(&capture.content).0,
                        original_url,
                        original_time,
                    },
                };
                Self::beside(capture, body, *digest)
            }
        })
    }

    fn progress(&mut self, plain_bytes: u64) -> Result<(), SegmentError> {
        (self.progress)(plain_bytes);
        Ok(())
    }
}

/// Returns the response that a kept revisit becomes, and the digest of its payload. The response is the revisit's own
/// head, followed by the payload in the form that this head describes.
fn own(
    reader: &SegmentReader,
    algorithm: Algorithm,
    revisit: Location,
    original: Location,
) -> Result<(Bytes, Digest), SegmentError> {
    let original = reader.read(original)?;
    let payload = original.payload();
    let entity = Digest::of(algorithm, &payload);
    let (head, _) = split(&reader.read(revisit)?.content);
    if head.is_empty() {
        // Revisits of other tools may have no head; the original's response is used then.
        return Ok((original.content, entity));
    }
    let mut http = head.to_vec();
    if HttpHead::parse(&head).is_chunked() {
        if !payload.is_empty() {
            http.extend_from_slice(format!("{:x}\r\n", payload.len()).as_bytes());
            http.extend_from_slice(&payload);
            http.extend_from_slice(b"\r\n");
        }
        http.extend_from_slice(b"0\r\n\r\n");
    } else {
        http.extend_from_slice(&payload);
    }
    Ok((http.into(), entity))
}

/// Returns the location of the payload of a revisit.
fn original_of(state: &State, revisit: CaptureId) -> Result<Location, EraseError> {
    let missing = StateError::Unknown { what: "the original of capture", id: u64::from(revisit.0) };
    let original = state.capture(revisit)?.original.ok_or(missing)?;
    Ok(state.capture(original)?.location)
}

fn refer(store: &Store, revisit: Location, holder: CaptureId) -> Result<Instead, EraseError> {
    let (state, reader) = (store.state(), store.reader());
    let capture = state.capture(holder)?;
    let digest = match capture.kind {
        // The holder was rewritten by an earlier batch.
        CaptureKind::Response => {
            let header = store.record(capture.location)?.header;
            header.get("WARC-Payload-Digest").and_then(|digest| digest.parse().ok())
        }
        _ => {
            let algorithm = store.encoder()?.algorithm();
            let (http, _) = own(&reader, algorithm, capture.location, original_of(state, holder)?)?;
            Some(Digest::of(algorithm, &split(&http).1))
        }
    };
    let time = DateTime::from_timestamp_micros(capture.time).unwrap_or_default();
    Ok(Instead::Refer { revisit, url: state.url(capture.url)?, time, digest })
}
