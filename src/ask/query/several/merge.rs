//! The rows of several archives as those of one.
//!
//! The ids of pages, sites, hosts and captures continue from archive to archive; everything else is asked of the archive
//! that an id belongs to. So whatever runs over [`Rows`] groups, orders and relates the rows of all archives as if they
//! were of one.
//!
//! One archive answers for each site: the one that has captured pages of it, otherwise the first that knows it. A page that
//! an archive knows from links alone may have been captured by another: it is one row, of the archive that answers for its
//! site, or of the first that knows the page if that one does not. Links lead to that row.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use archive_base::access::Access;
use archive_books::ledger::{self, AnsweringError};
use archive_books::prepared::Facts;
use archive_books::search::{self, IndexView, Readers};
use archive_books::topics::LinkWords;
use archive_storage::{CaptureId, HostId, SiteId, State, Store, UrlId};
use archive_web::parse::{DocumentFacts, Structure, Validity};
use chrono::{DateTime, Utc};

use crate::query::columns::{ArchiveRows, ArchiveRowsError};
use crate::query::language::{Found, Plan, Value};
use crate::query::rows::{
    CaptureRow, Chosen, DocumentReader, Each, Hits, HostRow, LinkRow, PageDetail, PageRow, PageText, Record,
    ResponseField, Row, Rows, Running, SaidTimes, SiteRow,
};
use crate::query::several::part::{FirstIds, Member};

/// Maximum number of link targets of each archive whose rows are cached.
const TARGETS_REMEMBERED: usize = 1 << 18;

/// More than the number of links in any archive.
const LINKS: u64 = 1 << 48;

/// The pages and sites of one archive, or of several that have captured different sites.
#[derive(Debug)]
pub struct Together<'a> {
    pub(crate) parts: Vec<Member<'a>>,
    /// The archive's index, if it is one of several and the others are queried elsewhere.
    place: Option<usize>,
    running: Arc<Running>,
}

impl<'a> Together<'a> {
    /// The rows of these archives, without what `access` hides in each.
    ///
    /// # Errors
    /// When one of them cannot be read, and when two have captured pages of one site.
    pub fn new(archives: Vec<(&'a Store, Access)>) -> Result<Self, ArchiveRowsError> {
        let states: Vec<&State> = archives.iter().map(|(store, _)| store.state()).collect();
        let answering = match states.as_slice() {
            [only] => vec![vec![0; only.site_count() as usize]],
            _ => answering(&archives)?,
        };
        let (mut parts, mut next, has_others) = (Vec::new(), FirstIds::default(), archives.len() > 1);
        for ((store, access), answering) in archives.into_iter().zip(answering) {
            let (first, state) = (next, store.state());
            let after = |first: u32, count: u64| {
                u32::try_from(u64::from(first) + count).map_err(|_| ArchiveRowsError::TooMany)
            };
            next = FirstIds {
                url: after(first.url, state.url_count().into())?,
                host: after(first.host, state.host_count().into())?,
                site: after(first.site, state.site_count().into())?,
                capture: after(first.capture, state.totals().captures)?,
                link: first.link + LINKS,
            };
            let mut rows = ArchiveRows::new(store, access)?;
            rows.has_others = has_others;
            parts.push(Member { rows, first, answering, targets: RefCell::default() });
        }
        Ok(Self { parts, place: None, running: Arc::default() })
    }

    /// One of several archives, with its index among them, if the others are queried elsewhere: it answers as it would among
    /// them.
    ///
    /// # Errors
    /// As [`Together::new`].
    pub fn part(store: &'a Store, access: Access, place: usize) -> Result<Self, ArchiveRowsError> {
        let mut part = Self { place: Some(place), ..Self::new(vec![(store, access)])? };
        part.parts.iter_mut().for_each(|part| part.rows.has_others = true);
        Ok(part)
    }

    /// Sets the query that runs over these rows, with its limits.
    pub fn run_within(&mut self, running: Running) {
        self.running = Arc::new(running);
        self.parts.iter_mut().for_each(|part| part.rows.running = Arc::clone(&self.running));
    }

    /// Sets the time that estimates refer to; by default, that of opening.
    pub(crate) fn expect_at(&mut self, now: DateTime<Utc>) {
        self.parts.iter_mut().for_each(|part| part.rows.now = now);
    }

    /// Whether these are several archives, or one of several.
    #[must_use]
    pub fn are_several(&self) -> bool {
        self.parts.len() > 1 || self.place.is_some()
    }

    /// The full-text indexes of the archives as one, as of an instant or as they are now; those in `open` are not opened
    /// again.
    ///
    /// # Errors
    /// When an archive has none, or it cannot be read.
    pub fn views(
        &self,
        before: Option<DateTime<Utc>>,
        open: Option<&Readers>,
    ) -> Result<Vec<IndexView<'a>>, search::SearchError> {
        let view = |part: &Member<'a>| IndexView::of(part.rows.store, &part.rows.access, before, open);
        let mut views = self.parts.iter().map(view).collect::<Result<Vec<_>, _>>()?;
        IndexView::join(&mut views);
        Ok(views)
    }

    /// The archive of a page, its index, and the page's id there.
    #[must_use]
    pub fn origin(&self, page: UrlId) -> (&'a Store, usize, UrlId) {
        // The first one begins at 0.
        let index = self.parts.partition_point(|part| part.first.url <= page.0).saturating_sub(1);
        let part = &self.parts[index];
        (part.rows.store, index, part.page(page))
    }

    /// What may be shown of an archive.
    pub(crate) fn access(&self, archive: usize) -> &Access {
        &self.parts[archive].rows.access
    }

    /// The rows of some pages, sorted by id: reading many together is cheaper than one by one.
    pub fn pages_of(&self, mut ids: Vec<UrlId>) -> impl Iterator<Item = Found<PageRow>> + '_ {
        ids.sort_unstable();
        let mut rest = ids;
        self.parts.iter().enumerate().flat_map(move |(index, part)| {
            let later = self
                .parts
                .get(index + 1)
                .map_or(usize::MAX, |next| rest.partition_point(|id| id.0 < next.first.url));
            let own: Vec<UrlId> = rest.drain(..later.min(rest.len())).map(|id| part.page(id)).collect();
            part.rows.pages_of(own).map(|row| row.map(|row| part.up(row)))
        })
    }

    /// Returns those of the given pages (sorted by id) that meet a plan's conditions, with only their type, site, last
    /// capture and language; `None` if the columns of an archive do not decide all conditions.
    ///
    /// # Errors
    /// When the columns cannot be read.
    pub fn found_of(&self, plan: &Plan, ids: &[UrlId]) -> Found<Option<Vec<(UrlId, Facts)>>> {
        self.only_archive().map_or(Ok(None), |only| only.found_of(plan, ids))
    }

    /// The row of a page that the archive at `index` knows by this id: of that archive, or of the one that answers for the
    /// page. `None` if the archive does not have the id: an index may be ahead of what the store has saved.
    ///
    /// # Errors
    /// When an archive cannot be read.
    pub fn row_of(&self, index: usize, id: UrlId) -> Found<Option<UrlId>> {
        let part = &self.parts[index];
        let state = part.rows.state;
        if !part.has(id) {
            return Ok(None);
        }
        let site = state.host(state.page(id)?.host)?.site;
        let owner = part.answering.get(site.index()).copied().unwrap_or(index);
        if owner == index {
            return Ok(Some(part.page_above(id)));
        }
        let url = state.url(id)?;
        for other in std::iter::once(owner).chain(0..self.parts.len()) {
            if other == index {
                break;
            }
            if let Some(found) = self.parts[other].rows.state.find(&url)? {
                return Ok(Some(self.parts[other].page_above(found)));
            }
        }
        Ok(Some(part.page_above(id)))
    }

    /// The archive that an id belongs to, given where the ids of each archive begin.
    fn of(&self, id: u32, first: impl Fn(&FirstIds) -> u32) -> &Member<'a> {
        // The first one begins at 0.
        let after = self.parts.partition_point(|part| first(&part.first) <= id);
        &self.parts[after.saturating_sub(1)]
    }

    fn of_capture(&self, capture: CaptureId) -> (&ArchiveRows<'a>, CaptureId) {
        let part = self.of(capture.0, |first| first.capture);
        (&part.rows, CaptureId(capture.0 - part.first.capture))
    }

    /// Asks each archive about its own captures; neighbouring ones are asked together.
    fn of_captures<T>(
        &self,
        captures: &[CaptureId],
        read: impl Fn(&ArchiveRows<'a>, &[CaptureId]) -> Found<Vec<T>>,
    ) -> Found<Vec<T>> {
        let archive = |capture: &CaptureId| std::ptr::from_ref(self.of_capture(*capture).0);
        let mut all = Vec::with_capacity(captures.len());
        for run in captures.chunk_by(|left, right| archive(left) == archive(right)) {
            let own: Vec<CaptureId> = run.iter().map(|capture| self.of_capture(*capture).1).collect();
            all.append(&mut read(self.of_capture(run[0]).0, &own)?);
        }
        Ok(all)
    }

    fn only_archive(&self) -> Option<&ArchiveRows<'a>> {
        if let [only] = self.parts.as_slice() {
            Some(&only.rows).filter(|_| self.place.is_none())
        } else {
            None
        }
    }

    /// The rows of all archives that `take` keeps, archive by archive.
    fn each<'s, T: 's, R: 's>(
        &'s self,
        rows: impl Fn(&'s ArchiveRows<'a>) -> Each<'s, T> + 's,
        take: impl Fn(usize, &'s Member<'a>, T) -> Found<Option<R>> + Copy + 's,
    ) -> Each<'s, R> {
        Box::new(self.parts.iter().enumerate().flat_map(move |(index, part)| {
            rows(&part.rows).filter_map(move |row| row.and_then(|row| take(index, part, row)).transpose())
        }))
    }

    /// A page as a row of this archive, if it is one.
    fn page_row(&self, index: usize, part: &Member<'a>, row: PageRow) -> Found<Option<PageRow>> {
        let own = part.up(row);
        let is_own = part.answers(index, row.site) || self.row_of(index, row.id)? == Some(own.id);
        Ok(is_own.then_some(own))
    }

    /// A site as a row of this archive, if it answers for it.
    fn site_row(&self, index: usize, part: &Member<'a>, row: SiteRow) -> Found<Option<SiteRow>> {
        let id = SiteId(row.id.0 + part.first.site);
        Ok(part.answers(index, row.id).then_some(SiteRow { id, ..row }))
    }

    /// The rows that the archives choose, one archive after the other, as far as `take` keeps them.
    fn chosen<'s, T: 's>(
        &'s self,
        choose: impl Fn(&'s ArchiveRows<'a>) -> Found<Chosen<'s, T>>,
        take: impl Fn(usize, &'s Member<'a>, T) -> Found<Option<T>> + Copy + 's,
    ) -> Found<Chosen<'s, T>> {
        let (mut all, mut are_selected): (Vec<Each<'s, T>>, _) = (Vec::new(), true);
        for (index, part) in self.parts.iter().enumerate() {
            let chosen = choose(&part.rows)?;
            are_selected &= chosen.are_selected;
            let own =
                chosen.rows.filter_map(move |row| row.and_then(|row| take(index, part, row)).transpose());
            all.push(Box::new(own));
        }
        Ok(Chosen { rows: Box::new(all.into_iter().flatten()), are_selected })
    }

    /// Passes the links of all archives to a function; see [`Rows::links_for`].
    fn each_link(&self, plan: Option<&Plan>, visit: &mut dyn FnMut(LinkRow, bool) -> Found<()>) -> Found<()> {
        self.parts.iter().enumerate().try_for_each(|(index, part)| {
            part.rows.all_links(plan, &mut |link, is_selected| {
                let row = LinkRow {
                    id: link.id + part.first.link,
                    source: part.page_above(link.source),
                    target: self.target(index, part, link.target)?,
                    ..link
                };
                visit(row, is_selected)
            })
        })
    }

    /// The row that a link of an archive leads to.
    fn target(&self, index: usize, part: &Member<'a>, id: UrlId) -> Found<UrlId> {
        if !self.are_several() {
            return Ok(id);
        }
        if let Some(known) = part.targets.borrow().get(&id) {
            return Ok(*known);
        }
        let row = self.row_of(index, id)?.unwrap_or(part.page_above(id));
        let mut targets = part.targets.borrow_mut();
        if targets.len() >= TARGETS_REMEMBERED {
            targets.clear();
        }
        targets.insert(id, row);
        Ok(row)
    }
}

/// Returns which archive answers for each site, by archive and by the site's id there.
///
/// # Errors
/// When one of them cannot be read, and when two have captured pages of one site.
pub fn answering(archives: &[(&Store, Access)]) -> Result<Vec<Vec<usize>>, ArchiveRowsError> {
    let states: Vec<&State> = archives.iter().map(|(store, _)| store.state()).collect();
    ledger::answering(&states).map_err(|error| match error {
        AnsweringError::Overlap { site, archives: both } => {
            ArchiveRowsError::Overlap { site, paths: both.map(|one| archives[one].0.path().to_owned()) }
        }
        AnsweringError::State(error) => error.into(),
    })
}

impl Rows for Together<'_> {
    fn only(&self) -> Option<&dyn Rows> {
        self.only_archive().map(|only| only as &dyn Rows)
    }

    fn pages(&self) -> Each<'_, PageRow> {
        match self.only_archive() {
            Some(only) => only.pages(),
            None => self.each(|rows| rows.pages(), |index, part, row| self.page_row(index, part, row)),
        }
    }

    fn pages_for(&self, plan: &Plan, hits: &Hits<'_>) -> Found<Chosen<'_, PageRow>> {
        if let Some(only) = self.only_archive() {
            return only.pages_for(plan, hits);
        }
        // What was found has other numbers in each of them.
        let hits = Hits::default();
        self.chosen(|rows| rows.pages_for(plan, &hits), |index, part, row| self.page_row(index, part, row))
    }

    fn page(&self, id: UrlId) -> Found<Option<PageRow>> {
        let part = self.of(id.0, |first| first.url);
        Ok(part.rows.page(part.page(id))?.map(|row| part.up(row)))
    }

    fn text(&self, page: &PageRow, text: PageText) -> Found<Option<Cow<'_, str>>> {
        let part = self.of(page.id.0, |first| first.url);
        part.rows.text(&part.down(page), text)
    }

    fn sites(&self) -> Each<'_, SiteRow> {
        self.each(|rows| rows.sites(), |index, part, row| self.site_row(index, part, row))
    }

    fn sites_for(&self, plan: &Plan) -> Found<Chosen<'_, SiteRow>> {
        self.chosen(|rows| rows.sites_for(plan), |index, part, row| self.site_row(index, part, row))
    }

    fn running(&self) -> &Running {
        &self.running
    }

    fn own_number(&self, row: &Row) -> (usize, u64) {
        let of = |id: u32, first: fn(&FirstIds) -> u32| {
            let place = self.parts.partition_point(|part| first(&part.first) <= id).saturating_sub(1);
            (place, u64::from(id - first(&self.parts[place].first)))
        };
        let (place, number) = match row {
            Row::Page(page) => of(page.id.0, |first| first.url),
            Row::Site(site) => of(site.id.0, |first| first.site),
            Row::Host(host) => of(host.id.0, |first| first.host),
            Row::Capture(capture) => of(capture.id.0, |first| first.capture),
            Row::Link(link) => ((link.id / LINKS) as usize, link.id % LINKS),
        };
        (self.place.unwrap_or(place), number)
    }

    fn document(&self, capture: CaptureId, read: &mut DocumentReader<'_>) -> Found<()> {
        let (rows, capture) = self.of_capture(capture);
        rows.document(capture, read)
    }

    fn link_words(&self, capture: CaptureId) -> Found<Vec<LinkWords>> {
        let (rows, capture) = self.of_capture(capture);
        rows.link_words(capture)
    }

    fn structure(&self, capture: CaptureId) -> Found<Option<Structure>> {
        let (rows, capture) = self.of_capture(capture);
        rows.structure(capture)
    }

    fn validities(&self, captures: &[CaptureId]) -> Found<Vec<Option<Validity>>> {
        self.of_captures(captures, ArchiveRows::validities)
    }

    fn noted(&self, capture: CaptureId, asked: ResponseField<'_>) -> Found<Option<Value>> {
        let (rows, capture) = self.of_capture(capture);
        rows.noted(capture, asked)
    }

    fn software(&self, capture: CaptureId) -> Found<Option<String>> {
        let (rows, capture) = self.of_capture(capture);
        rows.software(capture)
    }

    fn find(&self, url: &str) -> Found<Option<UrlId>> {
        for (index, part) in self.parts.iter().enumerate() {
            if let Some(id) = part.rows.find(url)? {
                return self.target(index, part, id).map(Some);
            }
        }
        Ok(None)
    }

    fn page_detail(&self, page: &PageRow, detail: PageDetail) -> Found<Value> {
        let part = self.of(page.id.0, |first| first.url);
        part.rows.page_detail(&part.down(page), detail)
    }

    fn hosts(&self) -> Each<'_, HostRow> {
        self.each(
            |rows| rows.hosts(),
            |index, part, row| Ok(part.answers(index, row.site).then(|| part.host(row))),
        )
    }

    fn host(&self, host: HostId) -> Found<Option<HostRow>> {
        let part = self.of(host.0, |first| first.host);
        Ok(part.rows.host(HostId(host.0 - part.first.host))?.map(|row| part.host(row)))
    }

    fn host_urls(&self, host: HostId) -> Found<u32> {
        let part = self.of(host.0, |first| first.host);
        part.rows.host_urls(HostId(host.0 - part.first.host))
    }

    fn captures(&self) -> Each<'_, CaptureRow> {
        self.each(|rows| rows.captures(), |_, part, row| Ok(Some(part.capture(row))))
    }

    fn captures_for(&self, plan: &Plan) -> Found<Chosen<'_, CaptureRow>> {
        self.chosen(|rows| rows.captures_for(plan), |_, part, row| Ok(Some(part.capture(row))))
    }

    fn history(&self, page: UrlId) -> Found<Each<'_, CaptureRow>> {
        let part = self.of(page.0, |first| first.url);
        let history = part.rows.history(part.page(page))?;
        Ok(Box::new(history.map(|row| row.map(|row| part.capture(row)))))
    }

    fn links(&self, visit: &mut dyn FnMut(LinkRow) -> Found<()>) -> Found<()> {
        self.each_link(None, &mut |link, _| visit(link))
    }

    fn links_for(&self, plan: &Plan, visit: &mut dyn FnMut(LinkRow, bool) -> Found<()>) -> Found<()> {
        self.each_link(Some(plan), visit)
    }

    fn document_facts(&self, captures: &[CaptureId]) -> Found<Vec<Option<DocumentFacts>>> {
        self.of_captures(captures, ArchiveRows::document_facts)
    }

    fn said(
        &self,
        pages: &[(UrlId, String)],
        before: Option<DateTime<Utc>>,
    ) -> Found<Vec<Option<SaidTimes>>> {
        let part = |(page, _): &(UrlId, String)| self.of(page.0, |first| first.url);
        let mut all = Vec::with_capacity(pages.len());
        for run in pages.chunk_by(|left, right| std::ptr::eq(part(left), part(right))) {
            let part = part(&run[0]);
            let own = run.iter().map(|(page, phrase)| (part.page(*page), phrase.clone()));
            all.append(&mut part.rows.said(&own.collect::<Vec<_>>(), before)?);
        }
        Ok(all)
    }

    fn records(&self, captures: &[CaptureId]) -> Found<Vec<Record>> {
        self.of_captures(captures, ArchiveRows::records)
    }
}
