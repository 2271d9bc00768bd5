//! The captures that a query means, and the values of their fields.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::rc::Rc;

use archive_storage::address::surt;
use archive_storage::{Capture, CaptureId, CaptureKind, Store, UrlId};

use super::field::Field;
use super::object;
use super::query::{Keys, Query};
use crate::access::Access;
use crate::replay::Error;
use crate::replay::address::{moment, requested_url, stamp, uri};
use crate::replay::mementos::known;

/// The media type that indexers give revisits, and what has none.
const REVISIT: &str = "warc/revisit";
const UNKNOWN: &str = "unk";

/// A capture.
pub(super) struct Row {
    id: CaptureId,
    pub capture: Capture,
    key: Rc<str>,
    told: OnceCell<Told>,
}

/// What only the index of its segment tells, or the head of its record.
struct Told {
    url: String,
    digest: Option<String>,
    /// Whether there is a head of an answer in it.
    has_status: bool,
}

/// Where rows come from.
pub(super) struct Rows<'a> {
    pub store: &'a Store,
    pub access: &'a Access,
    /// Captures that one query may look at.
    pub max: usize,
}

impl Rows<'_> {
    /// The captures of a query that may be shown, by key and time; nothing when there are too many.
    pub(super) fn gather(&self, query: &Query) -> Result<Option<Vec<Row>>, Error> {
        let mut rows = Vec::new();
        for (key, url) in self.urls(query)? {
            for capture in self.access.history(self.store.state(), url)? {
                let (id, capture) = capture?;
                let is_early = query.from.as_ref().is_some_and(|from| stamp(capture.time) < *from);
                let is_late = query.to.as_ref().is_some_and(|to| stamp(capture.time) > *to);
                if capture.kind == CaptureKind::Failed || is_early || is_late {
                    continue;
                }
                if rows.len() >= self.max {
                    return Ok(None);
                }
                rows.push(Row { id, capture, key: Rc::clone(&key), told: OnceCell::new() });
            }
        }
        rows.sort_by(|a, b| {
            let place = |row: &Row| (second(row), row.id);
            a.key.cmp(&b.key).then_with(|| place(a).cmp(&place(b)))
        });
        for same in rows.chunk_by_mut(|a, b| a.key == b.key && second(a) == second(b)) {
            if same.len() > 1 {
                self.order_as_lines(same)?;
            }
        }
        Ok(Some(rows))
    }

    /// Captures of one second stand as their lines do in a sorted file.
    fn order_as_lines(&self, rows: &mut [Row]) -> Result<(), Error> {
        let mut lines = HashMap::new();
        for row in &*rows {
            lines.insert(row.id, self.cdxj(row, None)?);
        }
        rows.sort_by(|a, b| lines.get(&a.id).cmp(&lines.get(&b.id)));
        Ok(())
    }

    fn urls(&self, query: &Query) -> Result<Vec<(Rc<str>, UrlId)>, Error> {
        let state = self.store.state();
        let mut urls = Vec::new();
        match &query.keys {
            Keys::Exact(url) => {
                let key: Rc<str> = surt(url).into();
                for (id, _) in known(state, &requested_url(url))? {
                    urls.push((Rc::clone(&key), id));
                }
            }
            Keys::Range(first, end) => {
                let host = memchr::memmem::Finder::new(&query.host);
                state.scan_urls(0..state.url_count(), |id, url| {
                    if host.find(url.as_bytes()).is_some() {
                        let key = surt(url);
                        if key >= *first && key < *end {
                            urls.push((key.into(), id));
                        }
                    }
                    Ok(())
                })?;
            }
        }
        Ok(urls)
    }

    /// The value of a field, if there is one.
    pub(super) fn value(&self, row: &Row, field: Field) -> Result<Option<String>, Error> {
        let (capture, state) = (&row.capture, self.store.state());
        Ok(match field {
            Field::UrlKey => Some(row.key.to_string()),
            Field::Timestamp => Some(stamp(capture.time)),
            Field::Url => Some(self.told(row)?.url.clone()),
            Field::Digest => self.told(row)?.digest.clone(),
            Field::Mime => Some(if !capture.kind.has_payload() {
                REVISIT.to_owned()
            } else {
                Some(state.mime(capture.mime)).filter(|mime| !mime.is_empty()).unwrap_or(UNKNOWN).to_owned()
            }),
            // One that has no head is described by its original's, which is not its own.
            Field::Status if !capture.kind.has_payload() && !self.told(row)?.has_status => None,
            Field::Status => (capture.status != 0).then(|| capture.status.to_string()),
            Field::Length => Some(capture.location.length.to_string()),
            Field::Offset => Some(capture.location.offset.to_string()),
            Field::FileName => state.segment(capture.location.segment).map(|entry| entry.file.clone()),
            Field::Redirect | Field::RobotFlags | Field::Unknown => None,
        })
    }

    fn told<'r>(&self, row: &'r Row) -> Result<&'r Told, Error> {
        if let Some(told) = row.told.get() {
            return Ok(told);
        }
        let (reader, location) = (self.store.reader(), row.capture.location);
        if let Some(line) = reader.indexed(location, &row.key, moment(row.capture.time))? {
            let told = Told { url: uri(&line.url), digest: line.digest, has_status: line.status.is_some() };
            return Ok(row.told.get_or_init(|| told));
        }
        let header = reader.header(location)?;
        let url = match header.target_uri() {
            Some(url) => uri(url),
            None => uri(&self.store.state().url(row.capture.url)?),
        };
        let digest = header.get("WARC-Payload-Digest").map(uri);
        let has_status = header.content_length() != Some(0);
        Ok(row.told.get_or_init(|| Told { url, digest, has_status }))
    }

    /// The line of a CDXJ file; `fields` of its object, but for the two that stand before it.
    pub(super) fn cdxj(&self, row: &Row, fields: Option<&[Field]>) -> Result<String, Error> {
        let mut fields = fields.unwrap_or(&Field::CDX).to_vec();
        fields.retain(|field| !matches!(field, Field::UrlKey | Field::Timestamp));
        Ok(format!("{} {} {}", row.key, stamp(row.capture.time), object(self, row, &fields)?))
    }
}

fn second(row: &Row) -> i64 {
    row.capture.time.div_euclid(1_000_000)
}

#[cfg(test)]
mod tests {
    use archive_storage::address::url_hash;
    use archive_storage::segment::{CaptureBody, CaptureGroup, SegmentOptions};
    use archive_storage::{Digest, MimeId};
    use chrono::DateTime;

    use super::*;

    /// A store with some captures of one URL.
    fn store(folder: &std::path::Path, captures: u8) -> Store {
        let mut store = Store::own(folder, SegmentOptions::default()).unwrap();
        let url = "http://a.org/";
        let (id, _) = store.state_mut().intern(url, url_hash(url)).unwrap();
        for number in 0..captures {
            let time = DateTime::from_timestamp(i64::from(number), 0).unwrap();
            let digest = Digest::sha256(&[number]);
            let body = CaptureBody::Response { http: "HTTP/1.1 200 OK\r\n\r\n".into(), truncated: None };
            let group = CaptureGroup {
                url: url.to_owned(),
                time,
                address: None,
                request: None,
                body,
                payload_digest: Some(digest),
                protocols: Vec::new(),
                metadata: Vec::new(),
            };
            let records = store.encoder().unwrap().encode(group).unwrap();
            let capture = Capture {
                url: id,
                time: time.timestamp_micros(),
                location: store.append(&records).unwrap(),
                digest: digest.prefix(),
                status: 200,
                mime: MimeId::default(),
                kind: CaptureKind::Response,
                length: 0,
                flags: 0,
                original: None,
            };
            store.state_mut().append_capture(&capture, None).unwrap();
        }
        store
    }

    #[test]
    fn more_captures_than_the_limit_are_too_many() {
        let folder = tempfile::tempdir().unwrap();
        let (store, access) = (store(folder.path(), 3), Access::unlimited());
        for query in ["url=a.org", "url=a.org&matchType=host"] {
            let query = Query::parse(query).ok().unwrap();
            let found = |max| {
                let rows = Rows { store: &store, access: &access, max };
                rows.gather(&query).unwrap().map(|rows| rows.len())
            };
            assert_eq!((found(3), found(2)), (Some(3), None));
        }
    }
}
