//! The archive as of a time: rows built from the captures before it.
//!
//! Pages are those that were captured by then. The fields of pages and their sites are based on those captures;
//! importance, depth and how a page was found are current, as are columns computed offline.

use std::borrow::Cow;
use std::collections::HashMap;

use archive_base::decisions::Decisions;
use archive_storage::{SiteId, UrlId};
use archive_web::parse::DocumentKind;
use chrono::TimeDelta;

use crate::query::language::{ERASED, FAILED, Found, Instant, NOT_MODIFIED};
use crate::query::rows::details::{CaptureRow, Record};
use crate::query::rows::history::newest;
use crate::query::rows::{Each, PageRow, PageText, Rows, SaidTimes, SiteRow};

/// Rows as of a time.
pub(crate) struct AsOf<'a> {
    pub(crate) rows: &'a dyn Rows,
    /// The first instant that does not count.
    pub(crate) before: Instant,
}

impl AsOf<'_> {
    /// A page as it was then; `None` if it was not captured by then.
    pub(crate) fn row(&self, page: PageRow) -> Found<Option<PageRow>> {
        let Some(last) = page.last_attempt else { return Ok(None) };
        if page.captures == page.attempts && page.first_seen.is_some_and(|first| first >= self.before) {
            return Ok(None);
        }
        // Rows have whole seconds, captures do not.
        if last + TimeDelta::seconds(1) <= self.before {
            return Ok(Some(page));
        }
        let mut then: Option<PageRow> = None;
        let (mut content_type, mut is_confirmed) = (None, false);
        for capture in self.history(page.id)? {
            let capture = capture?;
            let time = Some(whole_second(capture.time));
            let row = then.get_or_insert(PageRow {
                kind: None,
                status: None,
                content_status: None,
                captures: 0,
                attempts: 0,
                versions: 0,
                first_seen: None,
                last_seen: None,
                last_answer: None,
                last_attempt: time,
                failing_since: None,
                changed: None,
                ..page
            });
            row.attempts += 1;
            row.versions += u32::from(capture.bytes_changed);
            if capture.content_changed {
                row.changed = row.changed.or(time);
            }
            if row.last_answer.is_none() && capture.kind != FAILED && capture.kind != ERASED {
                is_confirmed = capture.kind == NOT_MODIFIED;
                (row.last_answer, row.status) = (time, capture.status.filter(|_| !is_confirmed));
            }
            if !capture.is_content {
                if row.captures == 0 {
                    row.failing_since = time;
                }
                continue;
            }
            row.captures += 1;
            row.first_seen = time;
            row.last_seen = row.last_seen.or(time);
            if capture.kind != NOT_MODIFIED && content_type.is_none() {
                row.content_status = capture.status;
                if is_confirmed {
                    row.status = capture.status;
                }
                content_type = Some(capture.content_type);
            }
        }
        if let Some(row) = then.as_mut().filter(|row| row.captures > 0) {
            let content_type = content_type.unwrap_or_default();
            let is_todays = self.rows.text(&page, PageText::ContentType)?.unwrap_or_default() == content_type;
            let is_unknown = is_todays || content_type.is_empty();
            row.kind = page.kind.filter(|_| is_unknown).or(Some(DocumentKind::of(&content_type, &[])));
        }
        Ok(then)
    }

    /// The newest content of a page that is not a 304.
    fn content(&self, page: UrlId) -> Found<Option<CaptureRow>> {
        let is_meant = |it: &CaptureRow| it.is_content && it.kind != NOT_MODIFIED;
        self.history(page)?.find(|capture| capture.as_ref().map_or(true, is_meant)).transpose()
    }

    /// Its record. The title of a redirect is the server's, not the page's.
    fn document(&self, page: UrlId) -> Found<Option<Record>> {
        let Some(content) = self.content(page)? else { return Ok(None) };
        let record = self.rows.record(content.id)?;
        let is_redirect = content.status.is_some_and(|status| (300..400).contains(&status));
        Ok(Some(if is_redirect { Record { title: None, ..record } } else { record }))
    }
}

impl Rows for AsOf<'_> {
    fn under(&self) -> Option<&dyn Rows> {
        Some(self.rows)
    }

    fn pages(&self) -> Each<'_, PageRow> {
        let rows = self.rows.pages().filter_map(|page| match page {
            Ok(page) => self.row(page).transpose(),
            Err(error) => Some(Err(error)),
        });
        Box::new(rows)
    }

    fn page(&self, id: UrlId) -> Found<Option<PageRow>> {
        self.rows.page(id)?.map_or(Ok(None), |page| self.row(page))
    }

    fn text(&self, page: &PageRow, text: PageText) -> Found<Option<Cow<'_, str>>> {
        let is_todays = self.rows.page(page.id)?.is_some_and(|today| today == *page);
        match text {
            PageText::Url | PageText::Host | PageText::Site => self.rows.text(page, text),
            _ if is_todays => self.rows.text(page, text),
            PageText::Title => Ok(self.document(page.id)?.and_then(|record| record.title).map(Cow::Owned)),
            PageText::Language => {
                Ok(self.document(page.id)?.and_then(|record| record.language).map(Cow::Owned))
            }
            PageText::ContentType => {
                let content_type = newest(self, page)?.map(|capture| capture.content_type);
                Ok(content_type.filter(|text| !text.is_empty()).map(Cow::Owned))
            }
        }
    }

    fn sites(&self) -> Each<'_, SiteRow> {
        let sites = || -> Found<Vec<SiteRow>> {
            let mut sums: HashMap<SiteId, SiteRow> = HashMap::new();
            for page in self.pages() {
                let page = page?;
                let sum = sums.entry(page.site).or_insert_with(|| SiteRow {
                    id: page.site,
                    name: String::new(),
                    importance: 0.0,
                    pages: 0,
                    captures: 0,
                    html: 0,
                    xml: 0,
                    first_seen: None,
                    last_seen: None,
                });
                if page.captures == 0 {
                    continue;
                }
                sum.pages += 1;
                sum.captures += u64::from(page.captures);
                sum.html += u64::from(page.kind == Some(DocumentKind::Html));
                sum.xml += u64::from(page.kind.is_some_and(DocumentKind::is_xml));
                sum.first_seen = [sum.first_seen, page.first_seen].into_iter().flatten().min();
                sum.last_seen = sum.last_seen.max(page.last_seen);
            }
            let mut sites = Vec::new();
            for today in self.rows.sites() {
                let today = today?;
                if let Some(then) = sums.remove(&today.id) {
                    sites.push(SiteRow { name: today.name, importance: today.importance, ..then });
                }
            }
            Ok(sites)
        };
        match sites() {
            Ok(sites) => Box::new(sites.into_iter().map(Ok)),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }

    fn captures(&self) -> Each<'_, CaptureRow> {
        Box::new(
            self.rows.captures().filter(|capture| capture.as_ref().map_or(true, |it| it.time < self.before)),
        )
    }

    fn decisions(&self) -> Option<&Decisions> {
        self.rows.decisions()
    }

    fn said(&self, pages: &[(UrlId, String)], before: Option<Instant>) -> Found<Vec<Option<SaidTimes>>> {
        let before = before.map_or(self.before, |before| before.min(self.before));
        self.rows.said(pages, Some(before))
    }

    fn history(&self, page: UrlId) -> Found<Each<'_, CaptureRow>> {
        let history = self.rows.history(page)?;
        Ok(Box::new(history.skip_while(|capture| capture.as_ref().is_ok_and(|it| it.time >= self.before))))
    }
}

/// Rounds down to whole seconds, as in rows of pages.
fn whole_second(time: Instant) -> Instant {
    Instant::from_timestamp(time.timestamp(), 0).unwrap_or(time)
}
