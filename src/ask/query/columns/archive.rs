//! The rows of an archive on disk.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use archive_base::access::Access;
use archive_base::decisions::{Decisions, DecisionsError};
use archive_books::change::Checks;
use archive_books::columns::{self, ColumnError, RowKind, SavedColumn, TREND};
use archive_books::ledger::CreditError;
use archive_books::prepared::{Answers, BySite, Pages, Prepared, PreparedError, SiteSums};
use archive_books::topics::TopicError;
use archive_books::trends::Trends;
use archive_choose::Timetable;
use archive_grammar::QueryRows;
use archive_math::refresh::rate::RatePrior;
use archive_storage::{
    Page, SegmentId, SiteId, State, StateError, Store, TextCache, TitleCursor, UrlId, Visit,
};
use chrono::{DateTime, Utc};

use crate::query::columns::page_batch::PageBatch;
use crate::query::columns::topics::Topics;
use crate::query::language::{Found, Plan};
use crate::query::rows::{Row, Rows as _, Running};

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

impl archive_base::error::Classified for ArchiveRowsError {}

/// The rows of an archive as of its last checkpoint.
#[derive(Debug)]
pub struct ArchiveRows<'a> {
    pub(crate) store: &'a Store,
    pub(crate) state: &'a State,
    pub(crate) access: Access,
    pub(crate) pages: Pages<'a>,
    /// Prepared columns of pages; `None` if this checkpoint has none, or if access rules need the captures of each
    /// page.
    pub(crate) prepared: Option<Prepared>,
    /// Prepared columns of captures, opened on first use.
    pub(crate) captures: OnceLock<Option<Prepared>>,
    /// Prepared columns of sites, opened on first use.
    pub(crate) sites: OnceLock<Option<Prepared>>,
    /// What responses said, opened on first use.
    pub(crate) answers: OnceLock<Option<Answers>>,
    /// The results of checking documents, opened on first use.
    pub(crate) checks: OnceLock<Option<Checks>>,
    /// The pages of each site, opened on first use.
    pub(crate) by_site: OnceLock<Option<BySite>>,
    /// The newest captures of the block of pages that was read last.
    pub(crate) newest: RefCell<Option<(u32, Vec<u64>)>>,
    /// Cache of the programs that wrote the segments.
    pub(crate) software: RefCell<HashMap<SegmentId, Option<String>>>,
    /// Text readers; texts are mostly read row by row.
    pub(crate) texts: RefCell<Texts<'a>>,
    /// The current batch of pages: the fields of a row are mostly needed before the next row is read.
    pub(crate) batch: RefCell<PageBatch>,
    /// Columns computed offline, followed by [`PAGE_COLUMNS`].
    pub(crate) page_columns: NamedColumns,
    /// Columns computed offline, followed by [`SITE_COLUMNS`].
    pub(crate) site_columns: NamedColumns,
    /// Computed on first use.
    pub(crate) site_sums: OnceLock<Vec<SiteSums>>,
    /// The change of the importance of pages and of sites, computed on first use.
    trends: OnceLock<[SavedColumn; 2]>,
    pub(crate) decisions: Decisions,
    pub(crate) topics: Topics,
    /// How many URLs each host has; counted on first use.
    pub(crate) urls_of_hosts: OnceLock<Vec<u32>>,
    /// The prior of the change rate, estimated from all visits; computed on first use.
    pub(crate) prior: OnceLock<RatePrior>,
    /// When pages are due; computed on first use.
    pub(crate) timetable: OnceLock<Timetable>,
    /// The time that estimates refer to.
    pub(crate) now: DateTime<Utc>,
    /// The query that runs over these rows.
    pub(crate) running: Arc<Running>,
    /// Whether other archives are queried together with this one: then one of them may be responsible for a site.
    pub(crate) has_others: bool,
}

/// Minimum number of records per parallel task.
pub(crate) const RECORDS_OF_PART: usize = 16;

/// Maximum number of cached URLs; the caches of host names and of site names may each take as many bytes.
const NAMES_KEPT: usize = 1 << 17;

/// Sum and maximum of the importance of a site's pages, in addition to the importance from links between sites, and its
/// change.
const SITE_COLUMNS: [&str; 3] = ["importance_sum", "importance_max", TREND];

/// The change of a page's importance.
const PAGE_COLUMNS: [&str; 1] = [TREND];

/// Columns computed offline. `names` repeats their names in the form that plans need.
#[derive(Debug)]
pub(crate) struct NamedColumns {
    pub(crate) names: Vec<String>,
    pub(crate) columns: Vec<SavedColumn>,
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
}

/// Returns what a cell holds, and makes it on first use.
pub(crate) fn once<T, E>(cell: &OnceLock<T>, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
    match cell.get() {
        Some(made) => Ok(made),
        None => make().map(|made| cell.get_or_init(|| made)),
    }
}

/// Readers of an archive's texts.
#[derive(Debug)]
pub(crate) struct Texts<'a> {
    pub(crate) urls: TextCache<'a>,
    pub(crate) hosts: TextCache<'a>,
    pub(crate) sites: TextCache<'a>,
    pub(crate) titles: TitleCursor<'a>,
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
            sites: OnceLock::new(),
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
            page_columns: NamedColumns::read(store, RowKind::Page)?.with(&PAGE_COLUMNS),
            site_columns: NamedColumns::read(store, RowKind::Site)?.with(&SITE_COLUMNS),
            decisions: Decisions::read(store.path())?,
            topics: Topics::of(store.path())?,
            site_sums: OnceLock::new(),
            urls_of_hosts: OnceLock::new(),
            trends: OnceLock::new(),
            prior: OnceLock::new(),
            timetable: OnceLock::new(),
            now: Utc::now(),
            running: Arc::default(),
            has_others: false,
        })
    }

    /// Returns the page and its visit record, from the current batch if possible.
    pub(crate) fn known(&self, id: UrlId) -> Result<(Page, Option<Visit>), StateError> {
        match self.batch.borrow_mut().known(self.state, id)? {
            Some(known) => Ok(known),
            None => Ok((self.state.page(id)?, self.state.visit(id)?)),
        }
    }

    /// A column of pages, by its index in the names.
    pub(crate) fn page_column(&self, index: usize) -> Found<&SavedColumn> {
        match self.page_columns.columns.get(index) {
            Some(column) => Ok(column),
            None => self.trends().map(|[pages, _]| pages),
        }
    }

    /// The change of the importance of pages and of sites.
    pub(crate) fn trends(&self) -> Found<&[SavedColumn; 2]> {
        once(&self.trends, || Ok(Trends::read(self.store.path())?.columns(self.state, self.now)?))
    }

    /// Returns the rows of a plan with these ids, in the given order.
    pub(crate) fn rows_of(&self, plan: &Plan, ids: Vec<u32>) -> Found<Vec<Row>> {
        if plan.target != QueryRows::Pages {
            return match plan.target {
                QueryRows::Sites => {
                    let sites = self.sites_of(ids.into_iter().map(SiteId).collect())?;
                    sites.map(|site| site.map(Row::Site)).collect()
                }
                _ => self.capture_rows(ids),
            };
        }
        let pages = ids.into_iter().filter_map(|id| self.page(UrlId(id)).transpose());
        pages.map(|page| page.map(Row::Page)).collect()
    }

    pub(crate) fn visit(&self, id: UrlId) -> Result<Option<Visit>, StateError> {
        Ok(self.known(id)?.1)
    }
}
