//! The rows that queries run over: what the store knows of pages, sites, hosts, captures and links.
//!
//! [`Rows`] is lazy where it pays: a row holds the numbers, which are stored together; texts are looked up only when a
//! condition or column needs them.

pub(crate) mod ahead;
pub(crate) mod as_of;
pub(crate) mod details;
pub(crate) mod digests;
pub(crate) mod full_text;
pub(crate) mod history;
pub(crate) mod hits;
pub(crate) mod limits;
pub(crate) mod payloads;
pub(crate) mod sample;
pub mod score;
pub(crate) mod seen;
pub(crate) mod subject;
pub(crate) mod top;

use std::borrow::Cow;
use std::collections::HashSet;

use archive_base::decisions::Decisions;
use archive_books::topics::LinkWords;
use archive_grammar::Relation;
use archive_storage::{CaptureId, HostId, SiteId, UrlId};
use archive_web::parse::{DocumentFacts, DocumentKind, Structure, Validity};
use chrono::{DateTime, Utc};

use crate::query::language::{Context, Found, Plan, RowsError, Value, Zone};

pub(crate) use as_of::AsOf;
pub(crate) use details::{CaptureRow, HostRow, LinkRow, PageDetail, Record, ResponseField, seconds};
pub(crate) use digests::{FoundDigest, PageDigest, digest_of, hexadecimal};
pub(crate) use full_text::FullText;
pub(crate) use history::{changed, newest};
pub(crate) use hits::{Hits, KnownScores, SearchResult};
pub(crate) use limits::{Limits, Running, UnreadRows, Unreadable};
pub(crate) use sample::lot;
pub(crate) use score::combined;
pub(crate) use seen::{CheckTally, Seen, Tally, source};
pub(crate) use subject::World;
pub(crate) use top::Top;

/// The first and the last time of something.
pub type SaidTimes = (DateTime<Utc>, DateTime<Utc>);

/// Rows as they are read.
pub(crate) type Each<'a, T> = Box<dyn Iterator<Item = Found<T>> + 'a>;

/// A page: one URL that the archive knows, fetched or not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageRow {
    /// The page's id.
    pub id: UrlId,
    /// The page's host.
    pub host: HostId,
    /// The host's site.
    pub site: SiteId,
    /// Type of the newest content; `None` without one.
    pub kind: Option<DocumentKind>,
    /// HTTP status of the newest answer; `None` without one.
    pub status: Option<u16>,
    /// HTTP status of the newest content; `None` without one, or if it came without an answer.
    pub content_status: Option<u16>,
    /// Importance; the mean over all known pages is 1.
    pub importance: f64,
    /// Number of captures with content.
    pub captures: u32,
    /// Number of attempts, whatever came of them.
    pub attempts: u32,
    /// Number of captures that differ from the one before.
    pub versions: u32,
    /// Time of the first capture with content.
    pub first_seen: Option<DateTime<Utc>>,
    /// Time of the newest capture with content.
    pub last_seen: Option<DateTime<Utc>>,
    /// Time of the newest answer.
    pub last_answer: Option<DateTime<Utc>>,
    /// Time of the newest attempt.
    pub last_attempt: Option<DateTime<Utc>>,
    /// Time of the first attempt since the newest content; `None` while that is there.
    pub failing_since: Option<DateTime<Utc>>,
    /// Time of the first capture of the newest version.
    pub changed: Option<DateTime<Utc>>,
    /// Number of links from the nearest seed.
    pub depth: Option<u32>,
}

/// A site: a group of hosts, by default one registrable domain.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteRow {
    /// The site's id.
    pub id: SiteId,
    /// The site's name, for example `example.org`.
    pub name: String,
    /// Importance; the mean over all known sites is 1.
    pub importance: f64,
    /// Number of pages that were captured at least once.
    pub pages: u64,
    /// Number of captures of all its pages.
    pub captures: u64,
    /// Number of captured HTML pages.
    pub html: u64,
    /// Number of captured XML pages, including feeds and sitemaps.
    pub xml: u64,
    /// Time of the first capture of any of its pages.
    pub first_seen: Option<DateTime<Utc>>,
    /// Time of the newest capture of any of its pages.
    pub last_seen: Option<DateTime<Utc>>,
}

impl SiteRow {
    /// Number of captured pages that are neither HTML nor XML.
    #[must_use]
    pub fn other(&self) -> u64 {
        self.pages.saturating_sub(self.html).saturating_sub(self.xml)
    }
}

/// The texts of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PageText {
    /// The URL.
    Url,
    /// The host's name.
    Host,
    /// The site's name.
    Site,
    /// The title of the newest content.
    Title,
    /// The language of the newest version: the primary subtag of its BCP 47 tag.
    Language,
    /// The content type of the newest content, for example `text/html`.
    ContentType,
}

/// A row of any kind.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "as their types")]
pub enum Row {
    Page(PageRow),
    Site(SiteRow),
    Host(HostRow),
    Capture(CaptureRow),
    Link(LinkRow),
}

impl Row {
    /// The id, unique among rows of the same kind.
    pub(crate) fn id(&self) -> u64 {
        match self {
            Self::Page(page) => page.id.0.into(),
            Self::Site(site) => site.id.0.into(),
            Self::Host(host) => host.id.0.into(),
            Self::Capture(capture) => capture.id.0.into(),
            Self::Link(link) => link.id,
        }
    }
}

/// Rows that a plan may select.
pub struct Chosen<'a, T> {
    /// The rows.
    pub rows: Box<dyn Iterator<Item = Result<T, RowsError>> + 'a>,
    /// Whether the plan's conditions are known to hold for all of them.
    pub are_selected: bool,
}

/// A bucket: rows of the same group. A group may have several buckets.
#[derive(Debug)]
pub struct Bucket {
    /// One of the rows; the others have the same keys.
    pub row: Row,
    /// Number of rows.
    pub count: u64,
    /// One entry per aggregate of the plan; `None` if it needs no sums.
    pub sums: Vec<Option<Sum>>,
}

/// Aggregates of one field over some rows.
#[derive(Debug)]
pub struct Sum {
    /// Number of rows with a known value.
    pub known: u64,
    /// The sum; meaningless for times.
    pub sum: f64,
    /// The smallest value.
    pub least: Value,
    /// The greatest value.
    pub most: Value,
}

/// Reads the tree of an XML document.
pub type DocumentReader<'a> = dyn FnMut(&roxmltree::Document<'_>) -> Result<(), RowsError> + 'a;

/// What a store knows of pages, sites, hosts, captures and links.
///
/// Every method fails when the store cannot be read; callers stop at an item that is an error. Implementers may return
/// pages and sites in any order, each once. Callers must not expect two iterations to agree while a crawl runs.
pub trait Rows {
    /// The rows of a single archive that these rows are exactly, if they are: what only one archive can answer, and what
    /// it answers faster, is asked of it.
    fn only(&self) -> Option<&dyn Rows> {
        None
    }

    /// The rows that these rows are a view of, if they are: what the view does not change is asked of them.
    fn under(&self) -> Option<&dyn Rows> {
        self.only()
    }

    /// All pages.
    fn pages(&self) -> Box<dyn Iterator<Item = Result<PageRow, RowsError>> + '_>;

    /// Returns all pages, except those that the store can exclude cheaply for a plan whose searches found `hits`.
    fn pages_for(&self, plan: &Plan, hits: &Hits<'_>) -> Result<Chosen<'_, PageRow>, RowsError> {
        let _ = (plan, hits);
        Ok(Chosen { rows: self.pages(), are_selected: false })
    }

    /// Returns the buckets of rows that a plan groups when its searches found `hits`, without groups that are not in
    /// its answer, and the number of these groups; `None` if the store has no fast way.
    fn buckets_for(&self, plan: &Plan, hits: &Hits<'_>) -> Result<Option<(Vec<Bucket>, u64)>, RowsError> {
        self.only().map_or(Ok(None), |only| only.buckets_for(plan, hits))
    }

    /// Returns the rows of a plan's answer when its searches found `hits`, unordered, and how many rows match in all;
    /// `None` if the store has no fast way.
    fn best_for(&self, plan: &Plan, hits: &Hits<'_>) -> Result<Option<(Vec<Row>, u64)>, RowsError> {
        self.only().map_or(Ok(None), |only| only.best_for(plan, hits))
    }

    /// Returns the sample that a plan draws from the matching rows, in order of the draw; `None` if the store has no
    /// fast way.
    fn drawn_for(&self, plan: &Plan, hits: &Hits<'_>) -> Result<Option<Vec<Row>>, RowsError> {
        self.only().map_or(Ok(None), |only| only.drawn_for(plan, hits))
    }

    /// The query that runs over these rows: its limits and statistics.
    fn running(&self) -> &Running {
        self.under().map_or(&limits::USUAL, |rows| rows.running())
    }

    /// The index of a row's archive, if there are several, and the row's id there.
    fn own_number(&self, row: &Row) -> (usize, u64) {
        self.under().map_or((0, row.id()), |rows| rows.own_number(row))
    }

    /// Returns one page; `None` if the store does not have this id (an index may be ahead of what the store has saved).
    fn page(&self, id: UrlId) -> Result<Option<PageRow>, RowsError>;

    /// Returns a text of a page; `None` if unknown.
    fn text(&self, page: &PageRow, text: PageText) -> Result<Option<Cow<'_, str>>, RowsError>;

    /// All sites.
    fn sites(&self) -> Box<dyn Iterator<Item = Result<SiteRow, RowsError>> + '_>;

    /// Returns all sites, except those that the store can exclude cheaply for a plan.
    fn sites_for(&self, plan: &Plan) -> Result<Chosen<'_, SiteRow>, RowsError> {
        let _ = plan;
        Ok(Chosen { rows: self.sites(), are_selected: false })
    }

    /// Passes the tree of a capture's XML document to `read`; does nothing if the capture has none.
    fn document(&self, capture: CaptureId, read: &mut DocumentReader<'_>) -> Result<(), RowsError> {
        self.under().map_or(Ok(()), |rows| rows.document(capture, read))
    }

    /// Returns the links of a capture's document with what stands around them.
    fn link_words(&self, capture: CaptureId) -> Result<Vec<LinkWords>, RowsError> {
        self.under().map_or(Ok(Vec::new()), |rows| rows.link_words(capture))
    }

    /// Returns the pages found by a search of a plan (see `hits`) whose documents meet the search's condition, sorted
    /// by id and without those that the plan excludes anyway; `None` if they are better read row by row.
    fn documents_for(
        &self,
        plan: &Plan,
        hits: &Hits<'_>,
        search: usize,
    ) -> Result<Option<Vec<UrlId>>, RowsError> {
        self.only().map_or(Ok(None), |only| only.documents_for(plan, hits, search))
    }

    /// Returns the structure of a capture's XML document; `None` if the capture has none.
    fn structure(&self, capture: CaptureId) -> Result<Option<Structure>, RowsError> {
        self.under().map_or(Ok(None), |rows| rows.structure(capture))
    }

    /// Returns whether the XML documents of some captures are valid against their document types; `None` for captures
    /// without one.
    fn validities(&self, captures: &[CaptureId]) -> Result<Vec<Option<Validity>>, RowsError> {
        self.under().map_or_else(|| Ok(vec![None; captures.len()]), |rows| rows.validities(captures))
    }

    /// Names of additional numeric columns of pages, for example of an importance computed offline; lower-case letters
    /// and `_`.
    fn page_columns(&self) -> &[String] {
        self.under().map_or(&[], |rows| rows.page_columns())
    }

    /// Returns the number of a page in the column at `index` of [`Rows::page_columns`].
    fn page_number(&self, page: UrlId, index: usize) -> Result<Option<f64>, RowsError> {
        self.under().map_or(Ok(None), |rows| rows.page_number(page, index))
    }

    /// Names of additional numeric columns of sites.
    fn site_columns(&self) -> &[String] {
        self.under().map_or(&[], |rows| rows.site_columns())
    }

    /// Returns the number of a site in the column at `index` of [`Rows::site_columns`].
    fn site_number(&self, site: SiteId, index: usize) -> Result<Option<f64>, RowsError> {
        self.under().map_or(Ok(None), |rows| rows.site_number(site, index))
    }

    /// Names of topics.
    fn topics(&self) -> &[String] {
        self.only().map_or(&[], |only| only.topics())
    }

    /// Returns the probability that a page is about the topic of this name; `None` for a page without text. Reads its
    /// newest version.
    fn topic(&self, page: UrlId, name: &str) -> Result<Option<f64>, RowsError> {
        self.only().map_or(Ok(None), |only| only.topic(page, name))
    }

    /// The decisions of people on pages, hosts and sites.
    fn decisions(&self) -> Option<&Decisions> {
        self.only().and_then(|only| only.decisions())
    }

    /// Returns the page at a canonical URL.
    fn find(&self, url: &str) -> Result<Option<UrlId>, RowsError> {
        self.under().map_or(Ok(None), |rows| rows.find(url))
    }

    /// Looks up a detail of a page.
    fn page_detail(&self, page: &PageRow, detail: PageDetail) -> Result<Value, RowsError> {
        self.under().map_or(Ok(Value::Empty), |rows| rows.page_detail(page, detail))
    }

    /// All hosts.
    fn hosts(&self) -> Box<dyn Iterator<Item = Result<HostRow, RowsError>> + '_> {
        Box::new(std::iter::empty())
    }

    /// One host.
    fn host(&self, host: HostId) -> Result<Option<HostRow>, RowsError> {
        self.under().map_or(Ok(None), |rows| rows.host(host))
    }

    /// Returns how many URLs of a host are known, captured or not.
    fn host_urls(&self, host: HostId) -> Result<u32, RowsError> {
        self.under().map_or(Ok(0), |rows| rows.host_urls(host))
    }

    /// The captures of all pages.
    fn captures(&self) -> Box<dyn Iterator<Item = Result<CaptureRow, RowsError>> + '_> {
        Box::new(std::iter::empty())
    }

    /// Returns the captures of all pages, except those that the store can exclude cheaply for a plan.
    fn captures_for(&self, plan: &Plan) -> Result<Chosen<'_, CaptureRow>, RowsError> {
        let _ = plan;
        Ok(Chosen { rows: self.captures(), are_selected: false })
    }

    /// Returns a page's captures from the newest to the oldest.
    fn history(
        &self,
        page: UrlId,
    ) -> Result<Box<dyn Iterator<Item = Result<CaptureRow, RowsError>> + '_>, RowsError> {
        let _ = page;
        Ok(Box::new(std::iter::empty()))
    }

    /// Passes the links of the newest version of each page to a function, and stops if that fails.
    fn links(&self, visit: &mut dyn FnMut(LinkRow) -> Result<(), RowsError>) -> Result<(), RowsError> {
        let _ = visit;
        Ok(())
    }

    /// Like [`Rows::links`], without links that the store can exclude cheaply for a plan; the function is told whether the
    /// plan's conditions are known to hold.
    fn links_for(
        &self,
        plan: &Plan,
        visit: &mut dyn FnMut(LinkRow, bool) -> Result<(), RowsError>,
    ) -> Result<(), RowsError> {
        let _ = plan;
        self.links(&mut |link| visit(link, false))
    }

    /// Returns the pages that links relate to one of `others`, if the store has a faster way than [`Rows::links`].
    fn linked(
        &self,
        relation: Relation,
        others: &HashSet<UrlId>,
    ) -> Result<Option<HashSet<UrlId>>, RowsError> {
        self.only().map_or(Ok(None), |only| only.linked(relation, others))
    }

    /// Returns the content digests of fetched pages, if the store has a faster way than [`Rows::history`]: at least
    /// those of all pages whose content is in `wanted` or, without it, equals that of another page.
    fn contents_alike(
        &self,
        wanted: Option<&HashSet<FoundDigest>>,
    ) -> Result<Option<Vec<PageDigest>>, RowsError> {
        self.only().map_or(Ok(None), |only| only.contents_alike(wanted))
    }

    /// Returns the newest capture of a page to show (instead of a 304, the capture that it confirms), if the store has
    /// a faster way than [`Rows::history`].
    fn newest(&self, page: &PageRow) -> Result<Option<CaptureId>, RowsError> {
        let _ = page;
        Ok(None)
    }

    /// Returns what was noted of a capture's response at recording time; `None` if its record has to be read.
    fn noted(&self, capture: CaptureId, asked: ResponseField<'_>) -> Result<Option<Value>, RowsError> {
        self.under().map_or(Ok(None), |rows| rows.noted(capture, asked))
    }

    /// Returns the program that wrote a capture's segment; `None` if unknown.
    fn software(&self, capture: CaptureId) -> Result<Option<String>, RowsError> {
        self.under().map_or(Ok(None), |rows| rows.software(capture))
    }

    /// Reads the records of some captures, which is slow.
    fn records(&self, captures: &[CaptureId]) -> Result<Vec<Record>, RowsError> {
        let none = || Ok(vec![Record::default(); captures.len()]);
        self.under().map_or_else(none, |rows| rows.records(captures))
    }

    /// Reads what the documents of some captures say of themselves, and what their bytes are; `None` for captures without
    /// a payload. Slow.
    fn document_facts(&self, captures: &[CaptureId]) -> Result<Vec<Option<DocumentFacts>>, RowsError> {
        self.under().map_or_else(|| Ok(vec![None; captures.len()]), |rows| rows.document_facts(captures))
    }

    /// Returns the first and the last capture of some pages that has a phrase, by all their versions before an instant.
    /// Slow.
    fn said(
        &self,
        pages: &[(UrlId, String)],
        before: Option<DateTime<Utc>>,
    ) -> Result<Vec<Option<SaidTimes>>, RowsError> {
        self.under().map_or_else(|| Ok(vec![None; pages.len()]), |rows| rows.said(pages, before))
    }

    /// Reads the record of one capture.
    fn record(&self, capture: CaptureId) -> Result<Record, RowsError> {
        Ok(self.records(&[capture])?.pop().unwrap_or_default())
    }
}

impl<'a> Context<'a> {
    /// The context of a query over `rows`, asked here and now.
    pub fn of(rows: &'a dyn Rows) -> Self {
        Self {
            page_columns: rows.page_columns(),
            site_columns: rows.site_columns(),
            topics: rows.topics(),
            ..Self::bare(Utc::now(), Zone::Local)
        }
    }
}
