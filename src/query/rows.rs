//! The rows that queries run over: what the store knows of pages and sites.
//!
//! [`Rows`] is lazy where it pays: a row holds the numbers, which lie together in the store, and texts are asked for
//! only when a condition or column needs them.

use std::borrow::Cow;
use std::collections::HashSet;

use archive_grammar::Relation;
use archive_storage::{CaptureId, HostId, SiteId, UrlId};
use chrono::{DateTime, Utc};

use super::Plan;
use super::details::{Asked, CaptureRow, HostRow, LinkRow, PageDetail, Record};
use super::digests::{Digest, PageDigest};
use super::hits::Hits;
use super::running::{self, Running};
use super::value::Value;
use crate::decisions::Decisions;
use crate::parse::{Structure, Validity};

/// Why rows could not be read: a store's own error, boxed.
pub type RowsError = Box<dyn std::error::Error + Send + Sync>;

/// What a page is, by its newest capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PageType {
    /// HTML and XHTML pages.
    Html,
    /// XML documents that are neither feeds nor sitemaps.
    Xml,
    /// RSS and Atom feeds.
    Feed,
    /// Sitemaps and sitemap indexes.
    Sitemap,
    /// Style sheets.
    Style,
    /// Scripts.
    Script,
    /// Images.
    Image,
    /// Plain text, robots.txt among it.
    Text,
    /// PDF documents.
    Pdf,
    /// Everything else.
    Other,
}

impl PageType {
    /// Every type.
    pub const EACH: [Self; 10] = [
        Self::Html,
        Self::Xml,
        Self::Feed,
        Self::Sitemap,
        Self::Style,
        Self::Script,
        Self::Image,
        Self::Text,
        Self::Pdf,
        Self::Other,
    ];

    /// Its name in queries and answers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Xml => "xml",
            Self::Feed => "feed",
            Self::Sitemap => "sitemap",
            Self::Style => "style",
            Self::Script => "script",
            Self::Image => "image",
            Self::Text => "text",
            Self::Pdf => "pdf",
            Self::Other => "other",
        }
    }

    /// Whether a query for the type `asked` means pages of this type: `xml` means feeds and sitemaps too.
    #[must_use]
    pub fn is(self, asked: Self) -> bool {
        self == asked || asked == Self::Xml && matches!(self, Self::Feed | Self::Sitemap)
    }
}

/// A page: one URL that the archive knows, fetched or not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageRow {
    /// Its number.
    pub id: UrlId,
    /// Its host.
    pub host: HostId,
    /// Its host's site.
    pub site: SiteId,
    /// What its newest capture is; none before the first.
    pub kind: Option<PageType>,
    /// The HTTP status of its newest capture; none before the first, or when nothing answered.
    pub status: Option<u16>,
    /// Its importance, mean 1 over all known pages.
    pub importance: f64,
    /// How often it was captured.
    pub captures: u32,
    /// How many of the captures differ from the one before.
    pub versions: u32,
    /// The time of its first capture.
    pub first_seen: Option<DateTime<Utc>>,
    /// The time of its newest capture.
    pub last_seen: Option<DateTime<Utc>>,
    /// The time of the first capture of its newest version.
    pub changed: Option<DateTime<Utc>>,
    /// Links from the nearest seed.
    pub depth: Option<u32>,
}

/// A site: a group of hosts, by default one registrable domain.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteRow {
    /// Its number.
    pub id: SiteId,
    /// Its name, for example `example.org`.
    pub name: String,
    /// Its importance, mean 1 over all known sites.
    pub importance: f64,
    /// Its pages that were captured at least once.
    pub pages: u64,
    /// Captures of all its pages.
    pub captures: u64,
    /// Its captured HTML pages.
    pub html: u64,
    /// Its captured XML pages, feeds and sitemaps included.
    pub xml: u64,
    /// The time of the first capture of any of its pages.
    pub first_seen: Option<DateTime<Utc>>,
    /// The time of the newest capture of any of its pages.
    pub last_seen: Option<DateTime<Utc>>,
}

impl SiteRow {
    /// Its captured pages that are neither HTML nor XML.
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
    /// The title of the newest capture.
    Title,
    /// The language of the newest version: the primary subtag of its BCP 47 tag.
    Language,
    /// The content type of the newest capture, for example `text/html`.
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
    /// A number that identifies it among others of its kind.
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
    /// Whether its conditions are known to hold for all of them.
    pub are_selected: bool,
}

/// Rows that are of one group.
#[derive(Debug)]
pub struct Sort {
    /// One of them, which has the same keys as the others.
    pub row: Row,
    /// How many they are.
    pub count: u64,
    /// Their sums, for each aggregate of the plan that is of a field.
    pub sums: Vec<Option<Sum>>,
}

/// The sums of one field over some rows.
#[derive(Debug)]
pub struct Sum {
    /// How many have a known value.
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

/// What a store knows of pages and sites.
///
/// Implementers may give pages and sites in any order, each once. Callers must not expect two iterations to agree while
/// a crawl runs.
pub trait Rows {
    /// All pages.
    ///
    /// # Errors
    /// An item is an error when the store cannot be read; callers stop there.
    fn pages(&self) -> Box<dyn Iterator<Item = Result<PageRow, RowsError>> + '_>;

    /// All pages, without those of which the store knows at once that a plan does not select them when its searches found `hits`.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn pages_for(&self, plan: &Plan, hits: &Hits<'_>) -> Result<Chosen<'_, PageRow>, RowsError> {
        let _ = (plan, hits);
        Ok(Chosen { rows: self.pages(), are_selected: false })
    }

    /// All rows that a plan groups when its searches found `hits`, without groups that are not in its answer, and how many
    /// these are; none when the store does not know at once.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn sorts_for(&self, plan: &Plan, hits: &Hits<'_>) -> Result<Option<(Vec<Sort>, u64)>, RowsError> {
        let _ = (plan, hits);
        Ok(None)
    }

    /// The rows that a plan selects when its searches found `hits`, and wants in its answer, in no order, and how many it selects
    /// in all; none when the store does not know at once.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn best_for(&self, plan: &Plan, hits: &Hits<'_>) -> Result<Option<(Vec<Row>, u64)>, RowsError> {
        let _ = (plan, hits);
        Ok(None)
    }

    /// The sample that a plan draws from the rows that it selects, by their places in the draw; none when the store does not know at
    /// once.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn drawn_for(&self, plan: &Plan, hits: &Hits<'_>) -> Result<Option<Vec<Row>>, RowsError> {
        let _ = (plan, hits);
        Ok(None)
    }

    /// The query that runs over them: what it may take, and what is seen of it.
    fn running(&self) -> &Running {
        &running::USUAL
    }

    /// The place of a row's archive, if there are several, and its number there.
    fn own_number(&self, row: &Row) -> (usize, u64) {
        (0, row.id())
    }

    /// One page, or none when the number is not of this store (an index may be ahead of what the store has saved).
    ///
    /// # Errors
    /// When the store cannot be read.
    fn page(&self, id: UrlId) -> Result<Option<PageRow>, RowsError>;

    /// A text of a page; none when unknown.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn text(&self, page: &PageRow, text: PageText) -> Result<Option<Cow<'_, str>>, RowsError>;

    /// All sites.
    ///
    /// # Errors
    /// An item is an error when the store cannot be read; callers stop there.
    fn sites(&self) -> Box<dyn Iterator<Item = Result<SiteRow, RowsError>> + '_>;

    /// All sites, without those of which the store knows at once that a plan does not select them.
    ///
    /// # Errors
    /// As [`Rows::sites`].
    fn sites_for(&self, plan: &Plan) -> Box<dyn Iterator<Item = Result<SiteRow, RowsError>> + '_> {
        let _ = plan;
        self.sites()
    }

    /// Passes the tree of an XML document that a capture brought to `read`; does nothing for other captures.
    ///
    /// # Errors
    /// When the store cannot be read, and what `read` reports.
    fn document(&self, capture: CaptureId, read: &mut DocumentReader<'_>) -> Result<(), RowsError> {
        let _ = (capture, read);
        Ok(())
    }

    /// Of the pages that a search of a plan found as `hits` say, those in whose documents its condition holds, by rising number and
    /// without those that the plan does not select anyway; none when the store rather reads them row by row.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn documents_for(
        &self,
        plan: &Plan,
        hits: &Hits<'_>,
        search: usize,
    ) -> Result<Option<Vec<UrlId>>, RowsError> {
        let _ = (plan, hits, search);
        Ok(None)
    }

    /// The facts of the XML document that a capture brought as a whole; none for other captures.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn structure(&self, capture: CaptureId) -> Result<Option<Structure>, RowsError> {
        let _ = capture;
        Ok(None)
    }

    /// Whether the XML documents that some captures brought are valid by their document types; none for other captures.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn validities(&self, captures: &[CaptureId]) -> Result<Vec<Option<Validity>>, RowsError> {
        Ok(vec![None; captures.len()])
    }

    /// No page is more important than this. Used to stop early; infinity, the default, never does.
    fn importance_max(&self) -> f64 {
        f64::INFINITY
    }

    /// Names of further numbers of pages, for example of an importance computed off line; small letters and `_`.
    fn page_columns(&self) -> &[String] {
        &[]
    }

    /// The number of a page in the column at `index` of [`Rows::page_columns`].
    ///
    /// # Errors
    /// When the store cannot be read.
    fn page_number(&self, page: UrlId, index: usize) -> Result<Option<f64>, RowsError> {
        let _ = (page, index);
        Ok(None)
    }

    /// Names of further numbers of sites.
    fn site_columns(&self) -> &[String] {
        &[]
    }

    /// The number of a site in the column at `index` of [`Rows::site_columns`].
    ///
    /// # Errors
    /// When the store cannot be read.
    fn site_number(&self, site: SiteId, index: usize) -> Result<Option<f64>, RowsError> {
        let _ = (site, index);
        Ok(None)
    }

    /// Names of topics.
    fn topics(&self) -> &[String] {
        &[]
    }

    /// How probably a page is of the topic with this name; none for one without text. Costs reading its newest version.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn topic(&self, page: UrlId, name: &str) -> Result<Option<f64>, RowsError> {
        let _ = (page, name);
        Ok(None)
    }

    /// What people decided on pages, hosts and sites.
    fn decisions(&self) -> Option<&Decisions> {
        None
    }

    // Besides pages and sites. By default these are unknown, or empty.

    /// The page at a canonical URL.
    ///
    /// # Errors
    /// When the store cannot be read; so may each of the following.
    fn find(&self, url: &str) -> Result<Option<UrlId>, RowsError> {
        let _ = url;
        Ok(None)
    }

    /// What is looked up of a page.
    fn page_detail(&self, page: &PageRow, detail: PageDetail) -> Result<Value, RowsError> {
        let _ = (page, detail);
        Ok(Value::Empty)
    }

    /// All hosts.
    fn hosts(&self) -> Box<dyn Iterator<Item = Result<HostRow, RowsError>> + '_> {
        Box::new(std::iter::empty())
    }

    /// One host.
    fn host(&self, host: HostId) -> Result<Option<HostRow>, RowsError> {
        let _ = host;
        Ok(None)
    }

    /// The captures of all pages.
    fn captures(&self) -> Box<dyn Iterator<Item = Result<CaptureRow, RowsError>> + '_> {
        Box::new(std::iter::empty())
    }

    /// The captures of all pages, without those of which the store knows at once that a plan does not select them.
    fn captures_for(&self, plan: &Plan) -> Result<Chosen<'_, CaptureRow>, RowsError> {
        let _ = plan;
        Ok(Chosen { rows: self.captures(), are_selected: false })
    }

    /// A page's captures from the newest to the oldest.
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

    /// The pages that links relate to one of `others`, if the store knows a shorter way to them than by [`Rows::links`].
    fn linked(
        &self,
        relation: Relation,
        others: &HashSet<UrlId>,
    ) -> Result<Option<HashSet<UrlId>>, RowsError> {
        let _ = (relation, others);
        Ok(None)
    }

    /// The digests of pages that were found, if the store knows a shorter way to them than by [`Rows::history`]: at least those of all pages
    /// whose content is among some, or that of another page.
    fn contents_alike(
        &self,
        _wanted: Option<&HashSet<Digest>>,
    ) -> Result<Option<Vec<PageDigest>>, RowsError> {
        Ok(None)
    }

    /// The newest capture of a page that is shown, in place of a 304 the capture that it confirms, if that is known in a shorter way than
    /// by [`Rows::history`].
    fn newest(&self, page: &PageRow) -> Result<Option<CaptureId>, RowsError> {
        let _ = page;
        Ok(None)
    }

    /// What was noted of the answer of a capture when it was recorded; none if its record has to be read.
    fn noted(&self, capture: CaptureId, asked: Asked<'_>) -> Result<Option<Value>, RowsError> {
        let _ = (capture, asked);
        Ok(None)
    }

    /// The program that wrote the segment of a capture; none if nothing is known of it.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn software(&self, capture: CaptureId) -> Result<Option<String>, RowsError> {
        let _ = capture;
        Ok(None)
    }

    /// What the records of some captures say: costs reading them.
    fn records(&self, captures: &[CaptureId]) -> Result<Vec<Record>, RowsError> {
        Ok(vec![Record::default(); captures.len()])
    }

    /// What the records of one capture say.
    fn record(&self, capture: CaptureId) -> Result<Record, RowsError> {
        Ok(self.records(&[capture])?.pop().unwrap_or_default())
    }
}
