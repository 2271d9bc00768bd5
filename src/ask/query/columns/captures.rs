//! Hosts, captures, links and records of an archive on disk.

use std::collections::HashMap;
use std::fmt;

use archive_books::ledger::{
    CrawlerFacts, FIELD_FETCH_MS, LinkCode, Refusal, Session, capture_flags, is_content, page_flags as flags,
};
use archive_books::prepared::{self, Column as Stored, archive_prior};
use archive_choose::Timetable;
use archive_choose::freshness::{PartsShown, SECONDS_PER_DAY, fresh};
use archive_math::refresh::rate::{ChangeObservations, RatePrior};
use archive_storage::segment::FIELD_HTTP_HEAD;
use archive_storage::warc::HttpHead;
use archive_storage::{Capture, CaptureId, CaptureKind, Host, HostId, State, Store, StoreError, UrlId};
use archive_web::parse::LinkKind;
use chrono::{DateTime, Utc};

use crate::query::columns::archive::{ArchiveRows, once};
use crate::query::columns::first::by_block;
use crate::query::columns::row_set::RowSet;
use crate::query::language::{CAPTURE_KINDS, Found, Plan, ROBOTS_IGNORED, RowsError, Value, yes_no};
use crate::query::rows::{
    CaptureRow, Chosen, Hits, HostRow, PageDetail, PageRow, Record, Row, Rows as _, Unreadable,
};

/// Maximum number of pages for which it is cached, while reading all captures, whether their captures are shown.
const PAGES_REMEMBERED: usize = 1 << 16;

impl ArchiveRows<'_> {
    pub(crate) fn page_detail_of(&self, page: &PageRow, detail: PageDetail) -> Found<Value> {
        let state = self.state;
        Ok(match detail {
            PageDetail::Hop => match self.known(page.id)?.0 {
                known if known.via.is_some() => char::from(known.hop).to_string().into(),
                _ => Value::Empty,
            },
            PageDetail::Via => self.shown_url(self.known(page.id)?.0.via)?.into(),
            PageDetail::Seed => yes_no(self.known(page.id)?.0.flags.has_any(flags::SEED)).into(),
            PageDetail::Refusal => Refusal::from_code(flags::refusal_code(self.known(page.id)?.0.flags))
                .map(Refusal::name)
                .into(),
            PageDetail::Redirect => {
                let is_redirect = |code: u8| LinkCode::from_byte(code).kind() == Some(LinkKind::Redirect);
                let links = if page.attempts > 0 { state.links(page.id)?.links } else { Vec::new() };
                let target = links.iter().find(|link| is_redirect(link.kind)).map(|link| link.target);
                self.shown_url(target)?.into()
            }
            PageDetail::Parts(time) | PageDetail::PartsAge(time) | PageDetail::PartsRight(time) => {
                let prior = self.prior()?;
                let shown = match time {
                    Some(time) => Some(PartsShown::at(state, prior, page.id, time)?),
                    None => PartsShown::newest(state, prior, page.id)?,
                };
                let Some(shown) = shown else { return Ok(Value::Empty) };
                match detail {
                    PageDetail::Parts(_) => shown.parts.into(),
                    _ if shown.parts == 0 => Value::Empty,
                    PageDetail::PartsAge(_) => (shown.age_days_max * SECONDS_PER_DAY).into(),
                    _ => shown.right.into(),
                }
            }
            PageDetail::ChangeRate | PageDetail::Freshness | PageDetail::NextVisit => {
                let (known, visit) = self.known(page.id)?;
                let Some(visit) = visit.filter(|_| page.attempts > 0) else { return Ok(Value::Empty) };
                match detail {
                    PageDetail::Freshness => fresh(self.prior()?, &visit, self.now).into(),
                    PageDetail::NextVisit => {
                        self.timetable()?.turns(state).due((page.id, &known), &visit)?.into()
                    }
                    _ => ChangeObservations::from_bytes(&visit.extension).rate(self.prior()?).per_day.into(),
                }
            }
        })
    }

    /// The prior of the change rate, estimated from all visits.
    pub(crate) fn prior(&self) -> Found<&RatePrior> {
        once(&self.prior, || {
            Ok(match prepared::prior(self.store)? {
                Some(prior) => prior,
                None => archive_prior(&[self.state])?,
            })
        })
    }

    /// When pages are due.
    pub(crate) fn timetable(&self) -> Found<&Timetable> {
        Ok(once(&self.timetable, || Timetable::of(self.store, self.now))?)
    }

    /// The URL of a page, unless it is hidden.
    fn shown_url(&self, page: Option<UrlId>) -> Found<Option<String>> {
        match page {
            Some(id) if self.page(id)?.is_some() => Ok(Some(self.state.url(id)?)),
            _ => Ok(None),
        }
    }

    pub(crate) fn host_row(&self, id: HostId, name: String, host: &Host) -> HostRow {
        HostRow {
            id,
            site: host.site,
            name,
            pages: host.fetched,
            captures: host.contents,
            attempts: host.captures,
            failures: host.failures,
            bytes: host.bytes,
        }
    }

    /// Numbers of the URLs of each host that are known, captured or not: one pass over all pages.
    pub(crate) fn urls_of_hosts(&self) -> Found<&[u32]> {
        let count = || -> Found<Vec<u32>> {
            let mut urls = vec![0; self.state.host_count() as usize];
            let mut add = |host: u64| urls.get_mut(host as usize).into_iter().for_each(|urls| *urls += 1);
            match &self.prepared {
                Some(prepared) => {
                    for block in 0..prepared.blocks() {
                        self.running.check()?;
                        let shown =
                            RowSet::passing((prepared, block), Stored::Kind, &RowSet::All, |kind| kind > 0)?;
                        let hosts = shown.values(prepared, block, Stored::Host)?.into_iter();
                        let places = shown.places(prepared.ids(block).len());
                        places.zip(hosts).filter(|(row, _)| row.is_some()).for_each(|(_, host)| add(host));
                    }
                }
                None => self.pages().try_for_each(|page| page.map(|page| add(page.host.0.into())))?,
            }
            Ok(urls)
        };
        once(&self.urls_of_hosts, count).map(Vec::as_slice)
    }

    pub(crate) fn host_of(&self, id: HostId) -> Found<Option<HostRow>> {
        if id.0 >= self.state.host_count() {
            return Ok(None);
        }
        Ok(Some(self.host_row(id, self.state.host_name(id)?, &self.state.host(id)?)))
    }

    /// The captures of all visible pages, in order of arrival.
    pub(crate) fn all_captures(&self) -> impl Iterator<Item = Found<CaptureRow>> + '_ {
        let mut known: HashMap<UrlId, bool> = HashMap::new();
        self.state.captures().filter_map(move |found| {
            let (id, capture) = match found {
                Ok(found) => found,
                Err(error) => return Some(Err(error.into())),
            };
            let is_page = match known.get(&capture.url) {
                Some(is_page) => *is_page,
                None => {
                    let is_page = match self.page(capture.url) {
                        Ok(page) => page.is_some(),
                        Err(error) => return Some(Err(error)),
                    };
                    if known.len() >= PAGES_REMEMBERED {
                        known.clear();
                    }
                    known.insert(capture.url, is_page);
                    is_page
                }
            };
            if let Err(late) = self.running.check_row() {
                return Some(Err(late.into()));
            }
            match self.access.shows(self.state, &capture) {
                Ok(is_shown) => (is_shown && is_page).then(|| Ok(self.capture_row(id, &capture))),
                Err(error) => Some(Err(error.into())),
            }
        })
    }

    /// The captures that a plan may select; with columns, only these are read.
    pub(crate) fn chosen_captures(&self, plan: &Plan) -> Found<Chosen<'_, CaptureRow>> {
        let tested = self.chosen(plan, &Hits::default(), self.state.totals().captures)?;
        let Some((columnar, are_selected)) = tested else {
            return Ok(Chosen { rows: Box::new(self.all_captures()), are_selected: false });
        };
        let rows = by_block(columnar.prepared.blocks(), move |block| {
            let ids = columnar.rows(block)?.of_ids(columnar.prepared.ids(block));
            let ids: Vec<CaptureId> = ids.into_iter().map(CaptureId).collect();
            let captures = self.state.captures_of(&ids)?;
            Ok(ids.iter().zip(&captures).map(|(id, capture)| self.capture_row(*id, capture)).collect())
        });
        Ok(Chosen { rows: Box::new(rows), are_selected })
    }

    /// The rows of the given captures, in the same order.
    pub(crate) fn capture_rows(&self, ids: Vec<u32>) -> Found<Vec<Row>> {
        let ids: Vec<_> = ids.into_iter().map(CaptureId).collect();
        let captures = self.state.captures_of(&ids)?;
        Ok(ids.iter().zip(&captures).map(|(id, it)| Row::Capture(self.capture_row(*id, it))).collect())
    }

    pub(crate) fn history_of(&self, page: UrlId) -> Found<impl Iterator<Item = Found<CaptureRow>> + '_> {
        let history = self.access.history(self.state, page)?;
        Ok(history.map(|found| match found {
            Ok((id, capture)) => Ok(self.capture_row(id, &capture)),
            Err(error) => Err(error.into()),
        }))
    }

    fn capture_row(&self, id: CaptureId, capture: &Capture) -> CaptureRow {
        capture_row(self.state, id, capture)
    }
}

/// The error for a capture whose records cannot be read.
pub(crate) fn unreadable(store: &Store, capture: &Capture, error: &dyn fmt::Display) -> RowsError {
    let url = store.state().url(capture.url).unwrap_or_default();
    let time = DateTime::from_timestamp_micros(capture.time).unwrap_or_default();
    Unreadable(format!("the capture of {url} of {} cannot be read: {error}", time.format("%FT%TZ"))).into()
}

/// Reads the records of a capture.
pub(crate) fn record_of(store: &Store, id: CaptureId) -> Found<Record> {
    let capture = store.state().capture(id)?;
    read_record(store, &capture).map_err(|error| unreadable(store, &capture, &error))
}

fn read_record(store: &Store, capture: &Capture) -> Result<Record, StoreError> {
    let fields = match capture.kind {
        CaptureKind::Failed => store.record(capture.location)?.fields(),
        _ => store.metadata(capture)?,
    };
    let lines = fields.iter().filter(|(name, _)| name == FIELD_HTTP_HEAD).map(|(_, line)| line.as_str());
    let lines: Vec<&str> = lines.collect();
    let head = match capture.kind {
        CaptureKind::Failed => HttpHead::parse(&[]),
        CaptureKind::NotModified | CaptureKind::Identical
            if !lines.is_empty() || capture.kind == CaptureKind::NotModified =>
        {
            HttpHead::parse(lines.join("\r\n").as_bytes())
        }
        _ => store.http_head(capture.location)?,
    };
    let has_time = fields.iter().any(|(name, _)| name == FIELD_FETCH_MS);
    let facts = CrawlerFacts::from_fields(&fields);
    Ok(Record {
        headers: head.fields,
        response_ms: has_time.then_some(facts.fetch_ms).filter(|_| capture.kind != CaptureKind::Failed),
        failure: facts.error.or(facts.erased.map(|erased| erased.sentence())),
        hops: facts.hops,
        session: facts.session.map(Session::name),
        robots: facts.robots_ignored.map(|_| ROBOTS_IGNORED),
        title: facts.title,
        language: facts.language.map(|tag| tag.split('-').next().unwrap_or_default().to_lowercase()),
    })
}

/// Converts a capture to a row.
pub(crate) fn capture_row(state: &State, id: CaptureId, capture: &Capture) -> CaptureRow {
    let kind = (prepared::capture_kind(capture) as usize).checked_sub(1);
    CaptureRow {
        id,
        page: capture.url,
        time: DateTime::<Utc>::from_timestamp_micros(capture.time).unwrap_or_default(),
        is_content: is_content(capture),
        kind: kind.and_then(|kind| CAPTURE_KINDS.get(kind)).copied().unwrap_or_default(),
        status: Some(capture.status).filter(|status| *status > 0),
        content_type: state.mime(capture.mime).to_owned(),
        size: prepared::size(capture),
        stored: capture.location.length,
        digest: capture.digest,
        content_changed: capture_flags::content_changed(capture),
        bytes_changed: capture_flags::bytes_changed(capture),
    }
}
