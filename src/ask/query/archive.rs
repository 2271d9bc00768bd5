//! The rows of an archive on disk.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use archive_base::access::Access;
use archive_base::decisions::{Decisions, DecisionsError};
use archive_books::change::{Checks, structure, validate, with_tree};
use archive_books::columns::{self, Column, ColumnError, RowKind};
use archive_books::ledger::{CreditError, language};
use archive_books::prepared::{
    Answers, BySite, Column as Stored, Pages, Prepared, PreparedError, SiteSums, newest_contents,
};
use archive_books::topics::TopicError;
use archive_choose::Timetable;
use archive_grammar::{Relation, Target};
use archive_math::refresh::rate::RatePrior;
use archive_storage::{
    CaptureId, HostId, Page, SegmentId, SiteId, State, StateError, Store, TextCache, TitleCursor, UrlId,
    Visit,
};
use archive_web::parse::{Structure, Validity};
use chrono::{DateTime, Utc};
use rayon::prelude::*;

use super::Plan;
use super::answered;
use super::archive_pages::row;
use super::batch::Batch;
use super::best_sites;
use super::captures::{record_of, unreadable};
use super::columnar::Best;
use super::details::{Asked, CaptureRow, HostRow, LinkRow, PageDetail, Record};
use super::digests::{Digest, PageDigest};
use super::explain::source;
use super::group_columns::{Counted, Wanted};
use super::hits::Hits;
use super::prefilter::Test;
use super::rows::{Chosen, DocumentReader, Each, Found, PageRow, PageText, Row, Rows, SiteRow, Sort};
use super::running::Running;
use super::topics::Topics;
use super::value::Value;

/// Why the rows of an archive cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveRowsError {
    /// The state cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// The importance credits cannot be read.
    #[error(transparent)]
    Credit(#[from] CreditError),
    /// A column computed offline cannot be read.
    #[error(transparent)]
    Column(#[from] ColumnError),
    /// The topics folder cannot be read.
    #[error(transparent)]
    Topic(#[from] TopicError),
    /// The decisions of people cannot be read.
    #[error(transparent)]
    Decisions(#[from] DecisionsError),
    /// Two archives have captured pages of the same site.
    #[error(
        "{} and {} have both captured pages of {site}: archives can only be queried together if no site is in more than one of them; query each by itself",
        paths[0].display(),
        paths[1].display()
    )]
    Overlap {
        /// The site.
        site: String,
        /// The archives.
        paths: [PathBuf; 2],
    },
    /// The archives together have more URLs or captures than ids allow.
    #[error("together these archives have too many URLs or captures; query fewer of them")]
    TooMany,
    /// The prepared columns cannot be read.
    #[error(transparent)]
    Prepared(#[from] PreparedError),
}

/// The rows of an archive as of its last checkpoint.
#[derive(Debug)]
pub struct ArchiveRows<'a> {
    pub(super) store: &'a Store,
    pub(super) state: &'a State,
    pub(super) access: Access,
    pub(super) pages: Pages<'a>,
    /// Prepared columns of pages; `None` if this checkpoint has none, or if access rules need the captures of each
    /// page.
    pub(super) prepared: Option<Prepared>,
    /// Prepared columns of captures, opened on first use.
    pub(super) captures: OnceLock<Option<Prepared>>,
    /// What responses said, opened on first use.
    pub(super) answers: OnceLock<Option<Answers>>,
    /// The results of checking documents, opened on first use.
    pub(super) checks: OnceLock<Option<Checks>>,
    /// The pages of each site, opened on first use.
    pub(super) by_site: OnceLock<Option<BySite>>,
    /// The newest captures of the block of pages that was read last.
    newest: RefCell<Option<(u32, Vec<u64>)>>,
    /// Cache of the programs that wrote the segments.
    pub(super) software: RefCell<HashMap<SegmentId, Option<String>>>,
    /// Text readers; texts are mostly read row by row.
    pub(super) texts: RefCell<Texts<'a>>,
    /// The current batch of pages: the fields of a row are mostly needed before the next row is read.
    pub(super) batch: RefCell<Batch>,
    pub(super) page_columns: NamedColumns,
    /// Columns computed offline, followed by [`SITE_COLUMNS`].
    site_columns: NamedColumns,
    /// Computed on first use.
    pub(super) site_sums: OnceLock<Vec<SiteSums>>,
    decisions: Decisions,
    pub(super) topics: Topics,
    /// The prior of the change rate, estimated from all visits; computed on first use.
    pub(super) prior: OnceLock<RatePrior>,
    /// When pages are due; computed on first use.
    pub(super) timetable: OnceLock<Timetable>,
    /// The time that estimates refer to.
    pub(super) now: DateTime<Utc>,
    /// The query that runs over these rows.
    pub(super) running: Arc<Running>,
    /// Whether other archives are queried together with this one: then one of them may be responsible for a site.
    pub(super) has_others: bool,
}

/// Minimum number of records per parallel task.
const RECORDS_OF_PART: usize = 16;

/// Maximum number of cached URLs; the caches of host names and of site names may each take as many bytes.
const NAMES_KEPT: usize = 1 << 17;

/// Sum and maximum of the importance of a site's pages, in addition to the importance from links between sites.
const SITE_COLUMNS: [&str; 2] = ["importance_sum", "importance_max"];

/// Columns computed offline. `names` repeats their names in the form that plans need.
#[derive(Debug)]
pub(super) struct NamedColumns {
    names: Vec<String>,
    columns: Vec<Column>,
}

impl NamedColumns {
    fn read(store: &Store, kind: RowKind) -> Result<Self, ColumnError> {
        let columns = columns::read_all(store.path(), kind)?;
        Ok(Self { names: columns.iter().map(|column| column.name.clone()).collect(), columns })
    }

    /// Adds names whose values are stored elsewhere.
    fn with(mut self, names: &[&str]) -> Self {
        self.names.extend(names.iter().map(|&name| name.to_owned()));
        self
    }

    pub(super) fn get(&self, index: usize, id: usize) -> Option<f64> {
        self.columns.get(index).and_then(|column| column.get(id))
    }
}

/// Returns what a cell holds, and makes it on first use.
pub(super) fn once<T, E>(cell: &OnceLock<T>, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
    match cell.get() {
        Some(made) => Ok(made),
        None => make().map(|made| cell.get_or_init(|| made)),
    }
}

/// Readers of an archive's texts.
#[derive(Debug)]
pub(super) struct Texts<'a> {
    urls: TextCache<'a>,
    hosts: TextCache<'a>,
    pub(super) sites: TextCache<'a>,
    titles: TitleCursor<'a>,
}

impl<'a> ArchiveRows<'a> {
    /// The rows of `store`, without pages whose newest capture `access` hides.
    ///
    /// # Errors
    /// When its state or columns cannot be read.
    pub fn new(store: &'a Store, access: Access) -> Result<Self, ArchiveRowsError> {
        let state = store.state();
        let prepared = if access.is_unlimited() { Prepared::open(store)? } else { None };
        Ok(Self {
            store,
            state,
            access,
            pages: Pages::open(state)?,
            prepared,
            captures: OnceLock::new(),
            newest: RefCell::default(),
            software: RefCell::default(),
            answers: OnceLock::new(),
            checks: OnceLock::new(),
            by_site: OnceLock::new(),
            texts: RefCell::new(Texts {
                urls: state.url_cache(NAMES_KEPT),
                hosts: state.host_name_cache(NAMES_KEPT),
                sites: state.site_name_cache(NAMES_KEPT),
                titles: state.title_cursor(),
            }),
            batch: RefCell::default(),
            page_columns: NamedColumns::read(store, RowKind::Page)?,
            site_columns: NamedColumns::read(store, RowKind::Site)?.with(&SITE_COLUMNS),
            decisions: Decisions::read(store.path())?,
            topics: Topics::of(store.path())?,
            site_sums: OnceLock::new(),
            prior: OnceLock::new(),
            timetable: OnceLock::new(),
            now: Utc::now(),
            running: Arc::default(),
            has_others: false,
        })
    }

    /// Returns the page and its visit record, from the current batch if possible.
    pub(super) fn known(&self, id: UrlId) -> Result<(Page, Option<Visit>), StateError> {
        match self.batch.borrow_mut().known(self.state, id)? {
            Some(known) => Ok(known),
            None => Ok((self.state.page(id)?, self.state.visit(id)?)),
        }
    }

    /// Returns the rows of a plan with these ids, in the given order.
    pub(super) fn rows_of(&self, plan: &Plan, ids: Vec<u32>) -> Found<Vec<Row>> {
        if plan.target != Target::Pages {
            return self.capture_rows(ids);
        }
        let pages = ids.into_iter().filter_map(|id| self.page(UrlId(id)).transpose());
        pages.map(|page| page.map(Row::Page)).collect()
    }

    fn visit(&self, id: UrlId) -> Result<Option<Visit>, StateError> {
        Ok(self.known(id)?.1)
    }
}

impl Rows for ArchiveRows<'_> {
    fn pages(&self) -> Each<'_, PageRow> {
        Box::new(self.facts(Test::All(Vec::new())).map(|page| page.map(|(id, facts)| row(id, &facts))))
    }

    fn pages_for(&self, plan: &Plan, hits: &Hits<'_>) -> Found<Chosen<'_, PageRow>> {
        let (test, are_selected) = match self.tested(plan, hits)? {
            Some((mut columnar, is_exact)) => {
                columnar.test.prepare()?;
                (columnar.test, is_exact)
            }
            None => (Test::All(Vec::new()), false),
        };
        self.running.note(|seen| {
            let columns = self.prepared.as_ref().map(|_| test.columns());
            seen.source(source("pages", columns, are_selected), self.state.url_count().into());
        });
        let pages = self.facts(test).map(|page| page.map(|(id, facts)| row(id, &facts)));
        Ok(Chosen { rows: Box::new(pages), are_selected })
    }

    fn sorts_for(&self, plan: &Plan, hits: &Hits<'_>) -> Found<Option<(Vec<Sort>, u64)>> {
        let Some(wanted) = Wanted::of(plan) else { return Ok(None) };
        let Some(columnar) = self.columnar(plan, hits)? else { return Ok(None) };
        let Some((counted, left_out)) = columnar.sorted(&wanted)? else { return Ok(None) };
        columnar.note(plan, wanted.columns());
        let rows = match plan.target {
            Target::Pages => {
                let page = |counted: &Counted| row(UrlId(counted.last), &wanted.facts(&counted.values));
                counted.iter().map(|counted| Row::Page(page(counted))).collect()
            }
            _ => self.capture_rows(counted.iter().map(|counted| counted.last).collect())?,
        };
        let sorts = rows.into_iter().zip(counted);
        let sorts = sorts.map(|(row, Counted { count, sums, .. })| Sort { row, count, sums });
        Ok(Some((sorts.collect(), left_out)))
    }

    fn best_for(&self, plan: &Plan, hits: &Hits<'_>) -> Found<Option<(Vec<Row>, u64)>> {
        if plan.target == Target::Sites {
            return self.best_sites(plan);
        }
        let Some(best) = Best::of(plan) else { return self.first_by_keys(plan, hits) };
        let Some(columnar) = self.columnar(plan, hits)? else { return Ok(None) };
        let (ids, count) = columnar.best(&best, hits)?;
        columnar.note(plan, best.columns());
        Ok(Some((self.rows_of(plan, ids)?, count)))
    }

    fn drawn_for(&self, plan: &Plan, hits: &Hits<'_>) -> Found<Option<Vec<Row>>> {
        let Some(sample) = plan.sample else { return Ok(None) };
        let Some(columnar) = self.columnar(plan, hits)? else { return Ok(None) };
        let (ids, count) = columnar.drawn(sample)?;
        columnar.note(plan, Vec::new());
        self.running.note(|seen| seen.selected(count));
        self.rows_of(plan, ids).map(Some)
    }

    fn page(&self, id: UrlId) -> Found<Option<PageRow>> {
        if id.0 >= self.state.url_count() {
            return Ok(None);
        }
        let (page, visit) = self.known(id)?;
        if !self.access.shows_page(self.state, visit.as_ref())? {
            return Ok(None);
        }
        Ok(self.pages.facts(id, &page, visit.as_ref())?.map(|facts| row(id, &facts)))
    }

    fn text(&self, page: &PageRow, text: PageText) -> Found<Option<Cow<'_, str>>> {
        let state = self.state;
        let mut texts = self.texts.borrow_mut();
        let text = match text {
            PageText::Url => Some(texts.urls.get(page.id.0)?.to_owned()),
            PageText::Host => Some(texts.hosts.get(page.host.0)?.to_owned()),
            PageText::Site => Some(texts.sites.get(page.site.0)?.to_owned()),
            PageText::Title => {
                let title = self.visit(page.id)?.and_then(|visit| visit.title);
                title.map(|position| texts.titles.get(position).map(str::to_owned)).transpose()?
            }
            PageText::Language => {
                let number = self.visit(page.id)?.map_or(0, |visit| visit.language);
                language(state, number)
            }
            PageText::ContentType => {
                let content = newest_contents(state, &[page.id])?.pop();
                content
                    .map(|(_, content)| state.mime(content.mime).to_owned())
                    .filter(|mime| !mime.is_empty())
            }
        };
        Ok(text.map(Cow::Owned))
    }

    fn page_columns(&self) -> &[String] {
        &self.page_columns.names
    }

    fn page_number(&self, page: UrlId, index: usize) -> Found<Option<f64>> {
        Ok(self.page_columns.get(index, page.index()))
    }

    fn site_columns(&self) -> &[String] {
        &self.site_columns.names
    }

    fn site_number(&self, site: SiteId, index: usize) -> Found<Option<f64>> {
        let Some(computed) = index.checked_sub(self.site_columns.columns.len()) else {
            return Ok(self.site_columns.get(index, site.index()));
        };
        let sums = self.site_sums()?.get(site.index());
        Ok(sums.map(|sums| if computed == 0 { sums.importance } else { sums.importance_max }))
    }

    fn sites(&self) -> Each<'_, SiteRow> {
        self.site_rows(Vec::new())
    }

    fn sites_for(&self, plan: &Plan) -> Each<'_, SiteRow> {
        let tests = plan.filter.as_ref().map(|filter| best_sites::site_tests(filter).0).unwrap_or_default();
        let named = match self.named_sites(plan) {
            Ok(named) => named,
            Err(error) => return Box::new(std::iter::once(Err(error))),
        };
        let all = self.state.site_count().into();
        let how = match (&named, tests.is_empty()) {
            (Some(_), _) => ", by their names",
            (None, true) => "",
            (None, false) => ", by their numbers",
        };
        self.running.note(|seen| seen.source(format!("the table of sites{how}"), all));
        match named {
            Some(named) => Box::new(named.into_iter().map(Ok)),
            None => self.site_rows(tests),
        }
    }

    fn topics(&self) -> &[String] {
        self.topics.names()
    }

    fn topic(&self, page: UrlId, name: &str) -> Found<Option<f64>> {
        Ok(self.topics.probability(self.store, page, name)?)
    }

    fn decisions(&self) -> Option<&Decisions> {
        Some(&self.decisions).filter(|decisions| !decisions.is_empty())
    }

    // Implemented in `captures` and elsewhere.

    fn find(&self, url: &str) -> Found<Option<UrlId>> {
        Ok(self.state.find(url)?)
    }

    fn page_detail(&self, page: &PageRow, detail: PageDetail) -> Found<Value> {
        self.page_detail_of(page, detail)
    }

    fn hosts(&self) -> Each<'_, HostRow> {
        let shown = self
            .state
            .hosts()
            .filter(|host| host.as_ref().map_or(true, |(id, ..)| self.state.shows_host(*id)));
        Box::new(shown.map(|host| {
            let (id, name, host) = host?;
            Ok(self.host_row(id, name, &host))
        }))
    }

    fn host(&self, host: HostId) -> Found<Option<HostRow>> {
        self.host_of(host)
    }

    fn captures(&self) -> Each<'_, CaptureRow> {
        Box::new(self.all_captures())
    }

    fn captures_for(&self, plan: &Plan) -> Found<Chosen<'_, CaptureRow>> {
        self.chosen_captures(plan)
    }

    fn history(&self, page: UrlId) -> Found<Each<'_, CaptureRow>> {
        Ok(Box::new(self.history_of(page)?))
    }

    fn links(&self, visit: &mut dyn FnMut(LinkRow) -> Found<()>) -> Found<()> {
        self.all_links(visit)
    }

    fn linked(&self, relation: Relation, others: &HashSet<UrlId>) -> Found<Option<HashSet<UrlId>>> {
        self.pages_linked(relation, others)
    }

    fn contents_alike(&self, wanted: Option<&HashSet<Digest>>) -> Found<Option<Vec<PageDigest>>> {
        self.digests_alike(wanted)
    }

    fn newest(&self, page: &PageRow) -> Found<Option<CaptureId>> {
        let Some(prepared) = self.prepared.as_ref().filter(|_| page.attempts > 0) else { return Ok(None) };
        let (block, row) = prepared.block_of(page.id.0);
        let mut newest = self.newest.borrow_mut();
        if newest.as_ref().is_none_or(|(read, _)| *read != block) {
            *newest = Some((block, prepared.values(block, Stored::Newest)?));
        }
        let value = newest.as_ref().and_then(|(_, values)| values.get(row as usize)).copied();
        Ok(value.and_then(|value| value.checked_sub(1)).map(|capture| CaptureId(capture as u32)))
    }

    fn noted(&self, capture: CaptureId, asked: Asked<'_>) -> Found<Option<Value>> {
        let answers = self.answers()?;
        answers.map_or(Ok(None), |answers| answered::noted(answers, capture, asked))
    }

    fn software(&self, capture: CaptureId) -> Found<Option<String>> {
        self.software_of(self.state.capture(capture)?.location.segment)
    }

    fn records(&self, captures: &[CaptureId]) -> Found<Vec<Record>> {
        let (store, running) = (self.store, &self.running);
        let record = |capture: &CaptureId| -> Found<Record> {
            running.check()?;
            record_of(store, *capture)
        };
        captures.par_iter().with_min_len(RECORDS_OF_PART).map(record).collect()
    }

    fn document(&self, capture: CaptureId, read: &mut DocumentReader<'_>) -> Found<()> {
        let capture = self.state.capture(capture)?;
        let read = with_tree(self.store, &self.access, &capture, read);
        read.map_err(|error| unreadable(self.store, &capture, &error))?.unwrap_or(Ok(()))
    }

    fn documents_for(&self, plan: &Plan, hits: &Hits<'_>, search: usize) -> Found<Option<Vec<UrlId>>> {
        self.documents_that(plan, hits, search)
    }

    fn structure(&self, capture: CaptureId) -> Found<Option<Structure>> {
        let capture = self.state.capture(capture)?;
        structure(self.store, &capture).map_err(|error| unreadable(self.store, &capture, &error))
    }

    fn validities(&self, captures: &[CaptureId]) -> Found<Vec<Option<Validity>>> {
        let (state, store, access, running) = (self.state, self.store, &self.access, &self.running);
        // Reading ahead records also gets here, with no documents to check.
        let known = if captures.is_empty() { None } else { self.checks()? };
        let validity = |capture: &CaptureId| -> Found<Option<Validity>> {
            running.check()?;
            if let Some((answers, checks)) = known
                && let Some(validity) = checks.found(answers, state, *capture)?
            {
                return Ok(Some(validity));
            }
            running.note(|seen| seen.documents_parsed += 1);
            let capture = state.capture(*capture)?;
            let found =
                validate(store, access, &capture).map_err(|error| unreadable(store, &capture, &error))?;
            Ok(found.map(|found| found.validity()))
        };
        captures.par_iter().with_min_len(RECORDS_OF_PART).map(validity).collect()
    }
}
