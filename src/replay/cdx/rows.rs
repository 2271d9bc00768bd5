//! Captures that match a query, and the values of their fields.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use archive_base::access::Access;
use archive_storage::address::surt;
use archive_storage::segment::LookUp;
use archive_storage::{Capture, CaptureId, CaptureKind, Page, State, StateError, Store, UrlId, Visit};
use rayon::prelude::*;

use super::field::CdxField;
use super::query::{CdxQuery, Keys};
use super::table::{CdxSource, method_in};
use crate::ReplayError;
use crate::address::{requested_url, stamp, uri};
use crate::mementos::known;

/// Media types that indexers use for revisits and for unknown types.
const REVISIT: &str = "warc/revisit";
const UNKNOWN: &str = "unk";

/// Number of URLs per part when scanning all URLs, and number of parts held in memory before captures are counted,
/// whatever the number of processors.
const PART_URLS: usize = 1 << 13;
const PARTS_MAX: usize = 32;

/// A capture.
pub(super) struct CdxRow {
    id: CaptureId,
    pub capture: Capture,
    key: Rc<str>,
    indexed: OnceCell<IndexedValues>,
}

/// Values that are only in the segment's index or in the record header.
struct IndexedValues {
    url: String,
    digest: Option<String>,
    /// Whether the record contains the head of a response.
    has_status: bool,
}

/// A URL of the answer.
struct Captured {
    key: String,
    url: UrlId,
    /// Its capture, if it has only one.
    only: Option<(CaptureId, Capture)>,
}

/// Source of the rows.
pub(super) struct CdxRows<'a> {
    store: &'a Store,
    access: &'a Access,
    /// Maximum number of captures that a query may examine.
    max: usize,
    indexes: RefCell<LookUp>,
}

impl<'a> CdxRows<'a> {
    pub(super) fn new(store: &'a Store, access: &'a Access, max: usize) -> Self {
        Self { store, access, max, indexes: RefCell::new(store.reader().look_up()) }
    }

    /// The captures that a query selects and that may be shown, sorted by key and time; `None` if there are too many.
    pub(super) fn gather(&self, query: &CdxQuery) -> Result<Option<Vec<CdxRow>>, ReplayError> {
        let (state, mut rows) = (self.store.state(), Vec::new());
        let is_whole = match &query.keys {
            Keys::Exact(url) => {
                let found = known(state, &requested_url(url))?;
                let urls = found.into_iter().map(|(id, _)| (surt(url), id)).collect();
                self.add(query, captured(state, urls)?, &mut rows)?
            }
            Keys::Range(first, end) => self.add_between(query, first, end, &mut rows)?,
        };
        if !is_whole {
            return Ok(None);
        }
        rows.sort_by(|a, b| {
            let place = |row: &CdxRow| (second(row), row.id);
            a.key.cmp(&b.key).then_with(|| place(a).cmp(&place(b)))
        });
        for same in rows.chunk_by_mut(|a, b| a.key == b.key && second(a) == second(b)) {
            if same.len() > 1 {
                self.order_as_lines(same)?;
            }
        }
        Ok(Some(rows))
    }

    /// Adds the captures of all URLs with keys from `first` to before `end`; returns false if there are too many.
    fn add_between(
        &self,
        query: &CdxQuery,
        first: &str,
        end: &str,
        rows: &mut Vec<CdxRow>,
    ) -> Result<bool, ReplayError> {
        let state = self.store.state();
        // URLs are read only if their host contains the query's host.
        let host = memchr::memmem::Finder::new(&query.host);
        let hosts = state.hosts().map(|found| Ok(host.find(found?.1.as_bytes()).is_some()));
        let hosts = hosts.collect::<Result<Vec<bool>, StateError>>()?;
        let is_meant = |page: &Page| hosts.get(page.host.index()).copied().unwrap_or(true);
        let part = |from: &u32| -> Result<Vec<Captured>, StateError> {
            let (mut names, mut urls) = (state.url_cursor(), Vec::new());
            for page in state.pages(UrlId(*from)).take(PART_URLS) {
                let (id, page) = page?;
                if page.visit.is_none() || !is_meant(&page) {
                    continue;
                }
                let key = surt(names.get(id)?);
                if key.as_str() >= first && key.as_str() < end {
                    urls.push((key, id));
                }
            }
            captured(state, urls)
        };
        let parts: Vec<u32> = (0..state.url_count()).step_by(PART_URLS).collect();
        for parts in parts.chunks(PARTS_MAX) {
            for found in parts.par_iter().map(part).collect::<Result<Vec<_>, _>>()? {
                if !self.add(query, found, rows)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Adds the captures of some URLs; returns false if there are too many.
    fn add(
        &self,
        query: &CdxQuery,
        urls: Vec<Captured>,
        rows: &mut Vec<CdxRow>,
    ) -> Result<bool, ReplayError> {
        let state = self.store.state();
        for Captured { key, url, only } in urls {
            let key: Rc<str> = key.into();
            let mut take = |id, capture: Capture| {
                if query.takes(&capture) {
                    rows.push(CdxRow { id, capture, key: Rc::clone(&key), indexed: OnceCell::new() });
                }
                rows.len() <= self.max
            };
            if let Some((id, capture)) = only {
                if self.access.shows(state, &capture)? && !take(id, capture) {
                    return Ok(false);
                }
                continue;
            }
            for found in self.access.history(state, url)? {
                let (id, capture) = found?;
                if !take(id, capture) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Orders captures of the same second like their lines in a sorted file.
    fn order_as_lines(&self, rows: &mut [CdxRow]) -> Result<(), ReplayError> {
        let mut lines = HashMap::new();
        for row in &*rows {
            lines.insert(row.id, self.cdxj(row, None)?);
        }
        rows.sort_by(|a, b| lines.get(&a.id).cmp(&lines.get(&b.id)));
        Ok(())
    }

    fn indexed<'r>(&self, row: &'r CdxRow) -> Result<&'r IndexedValues, ReplayError> {
        if let Some(indexed) = row.indexed.get() {
            return Ok(indexed);
        }
        let location = row.capture.location;
        let found = self.indexes.borrow_mut().find(location, &row.key, &stamp(row.capture.time));
        if let Ok(Some(line)) = found {
            let indexed =
                IndexedValues { url: uri(&line.url), digest: line.digest, has_status: line.status.is_some() };
            return Ok(row.indexed.get_or_init(|| indexed));
        }
        // Of a record that cannot be read, the state still knows the most.
        let header = self.store.reader().header(location);
        let header = header.inspect_err(|error| tracing::warn!(%error, "a record cannot be read")).ok();
        let url = match header.as_ref().and_then(|header| header.target_uri()) {
            Some(url) => uri(url),
            None => uri(&self.store.state().url(row.capture.url)?),
        };
        let digest = header.as_ref().and_then(|header| header.get("WARC-Payload-Digest")).map(uri);
        let has_status = header.is_none_or(|header| header.content_length() != Some(0));
        Ok(row.indexed.get_or_init(|| IndexedValues { url, digest, has_status }))
    }
}

impl CdxSource for CdxRows<'_> {
    type Row = CdxRow;

    fn value<'r>(&'r self, row: &'r CdxRow, field: CdxField) -> Result<Option<Cow<'r, str>>, ReplayError> {
        let (capture, state) = (&row.capture, self.store.state());
        Ok(match field {
            CdxField::UrlKey => Some(Cow::Borrowed(&*row.key)),
            CdxField::Timestamp => Some(stamp(capture.time).into()),
            CdxField::Url => Some(self.indexed(row)?.url.as_str().into()),
            CdxField::Digest => self.indexed(row)?.digest.as_deref().map(Cow::Borrowed),
            CdxField::Mime => Some(Cow::Borrowed(if !capture.kind.has_payload() {
                REVISIT
            } else {
                Some(state.mime(capture.mime)).filter(|mime| !mime.is_empty()).unwrap_or(UNKNOWN)
            })),
            // A capture without a head takes its description from its original, but has no status of its own.
            CdxField::Status if !capture.kind.has_payload() && !self.indexed(row)?.has_status => None,
            // As other indexes have it: there was no HTTP.
            CdxField::Status if capture.kind == CaptureKind::Resource => None,
            CdxField::Status => (capture.status != 0).then(|| capture.status.to_string().into()),
            CdxField::Length => Some(capture.location.length.to_string().into()),
            CdxField::Offset => Some(capture.location.offset.to_string().into()),
            CdxField::FileName => {
                state.segment(capture.location.segment).map(|entry| Cow::Borrowed(entry.file.as_str()))
            }
            CdxField::Method => method_in(&row.key),
            CdxField::Redirect | CdxField::RobotFlags | CdxField::Unknown => None,
        })
    }

    fn second(&self, row: &CdxRow) -> i64 {
        second(row)
    }
}

/// Reads the captures of URLs that have only one, as most do, in a batch: that costs little more than reading one.
fn captured(state: &State, urls: Vec<(String, UrlId)>) -> Result<Vec<Captured>, StateError> {
    let only = |visit: Visit| Some(visit).filter(|visit| visit.captures == 1)?.last_capture;
    let visits = state.visits_of(urls.iter().map(|(_, id)| *id));
    let ids = visits.map(|known| known.map(|(.., visit)| visit.and_then(only)));
    let ids: Vec<Option<CaptureId>> = ids.collect::<Result<_, _>>()?;
    let mut captures = state.captures_of(&ids.iter().flatten().copied().collect::<Vec<_>>())?.into_iter();
    let known = urls.into_iter().zip(ids).map(|((key, url), id)| {
        let only = id.and_then(|id| Some((id, captures.next()?)));
        Captured { key, url, only }
    });
    Ok(known.collect())
}

fn second(row: &CdxRow) -> i64 {
    row.capture.time.div_euclid(1_000_000)
}

#[cfg(test)]
mod tests {
    use archive_storage::address::url_hash;
    use archive_storage::segment::{CaptureBody, CaptureGroup, SegmentOptions};
    use archive_storage::{CaptureKind, Digest, MimeId};
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
            let query = CdxQuery::parse(query).ok().unwrap();
            let found = |max| {
                let rows = CdxRows::new(&store, &access, max);
                rows.gather(&query).unwrap().map(|rows| rows.len())
            };
            assert_eq!((found(3), found(2)), (Some(3), None));
        }
    }
}
