//! The protocol between archives: a request is a JSON document, an answer consists of JSON lines. The first line states
//! the version, the last one marks the answer as complete.

use archive_ask::find::{self, Best, Linked, Shown, Times, Words};
use archive_ask::query::Portion;
use archive_ask::review::Sample;
use archive_books::cluster::Partition;
use archive_books::search::{Fit, Statistics};
use archive_books::stored_graph::OutlineRows;
use archive_replay::Values;
use serde::{Deserialize, Serialize};

use super::exported::Wanted;
use super::planned::{CopiesSent, CopiesWanted};
use super::reviewed::{PlaceSent, RowSent};
use crate::export::ExportPlace;

/// Version of requests and answers; other versions are refused.
pub const VERSION: u32 = 1;

/// Maximum size of a request in bytes.
pub const REQUEST_BYTES_MAX: usize = 16 << 20;

/// Maximum length of a line of an answer in bytes.
pub const LINE_BYTES_MAX: usize = 16 << 20;

/// Maximum number of URLs in one request.
pub const URLS_MAX: usize = 50_000;

/// A request to an archive.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Ask {
    /// The sites that it knows, and the times as of which it can be searched.
    Sites {},
    /// Its portions of the answer to a query.
    Portions {
        /// The query.
        query: String,
        /// Reference time for expressions such as `30 days ago`, microseconds since 1970. Days and hours without a time
        /// zone are in UTC.
        now: i64,
        /// Number of rows if the query has no limit.
        limit: Option<usize>,
        /// Term statistics of its searches, summed over all archives.
        words: Option<Statistics>,
        /// Path to the inner query that is asked: its index among the searches at each level.
        #[serde(default)]
        inner: Vec<usize>,
        /// For each of its relations, the URLs of the pages found by all archives ([`Plan::with_related`]).
        ///
        /// [`Plan::with_related`]: archive_ask::query::Plan::with_related
        #[serde(default)]
        related: Vec<Vec<String>>,
        /// The archive's place among all.
        #[serde(default)]
        place: usize,
    },
    /// Term statistics of a query.
    Words {
        /// The query.
        query: String,
        /// As in [`Ask::Portions`].
        now: i64,
        /// As in [`Ask::Portions`].
        #[serde(default)]
        inner: Vec<usize>,
    },
    /// The pages that its pages at some URLs link to.
    Targets {
        /// The URLs, at most [`URLS_MAX`].
        urls: Vec<String>,
    },
    /// Term statistics of a search.
    FindWords {
        /// The search.
        wanted: find::Wanted,
    },
    /// Link data on pages of which it has no captures.
    FindLinked {
        /// The search.
        wanted: find::Wanted,
        /// Term statistics, summed over all archives.
        words: Statistics,
    },
    /// The best pages of a search.
    FindBest {
        /// The search.
        wanted: find::Wanted,
        /// Term statistics, summed over all archives.
        words: Statistics,
        /// Link data from other archives, by URL.
        linked: Vec<(String, Fit)>,
    },
    /// The display data of search results.
    FindShown {
        /// The search.
        wanted: find::Wanted,
        /// Term statistics, summed over all archives.
        words: Statistics,
        /// Numbers of the pages.
        pages: Vec<u32>,
    },
    /// Its rows of the answer to a capture query.
    Captures {
        /// CDX server parameters.
        query: String,
    },
    /// Which of some URLs belong to pages that it shows.
    Known {
        /// The URLs, at most [`URLS_MAX`].
        urls: Vec<String>,
    },
    /// Rows of its outline, the input for a ranking.
    Outline {
        /// Kind of rows.
        rows: OutlineRows,
        /// Number of the first row.
        from: u32,
        /// Maximum size of the rows in bytes; the answer ends with the row that exceeds it.
        room: u64,
    },
    /// The URLs of pages.
    Urls {
        /// Numbers of the pages, at most [`URLS_MAX`].
        pages: Vec<u32>,
    },
    /// Rows of an export.
    Export(Wanted),
    /// Copies of pages.
    Copies(CopiesWanted),
    /// Its sites that wait for review, in order.
    Waiting {
        /// Query that selects the sites; `None` for all.
        query: Option<String>,
        /// As in [`Ask::Portions`].
        now: i64,
    },
    /// Descriptions of sites that wait for review.
    Reviewed {
        /// Names of the sites, at most [`URLS_MAX`].
        sites: Vec<String>,
    },
    /// Sample pages by which to judge sites.
    Samples {
        /// Names of the sites, at most [`URLS_MAX`].
        sites: Vec<String>,
    },
}

/// A request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Request<A> {
    pub(super) version: u32,
    pub(super) ask: A,
}

/// The version alone, of a request or an answer.
#[derive(Debug, Deserialize)]
pub(super) struct Versioned {
    pub(super) version: u32,
}

/// The first line of an answer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Head {
    /// Protocol version of the answer.
    pub version: u32,
    /// The cluster partition that the archive holds.
    pub partition: Option<Partition>,
    /// Origins of its application and of its replay, as seen by the client.
    #[serde(default)]
    pub origins: Option<[String; 2]>,
    /// Identity of the state that numbers its URLs and sites.
    #[serde(default)]
    pub state: Option<u64>,
}

/// A line after the head.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// A site, and whether pages of it were captured.
    Site(String, bool),
    /// Times of captures, if older versions can be searched.
    Times(Option<Times>),
    /// A portion of an answer to a query.
    Portion(Portion),
    /// Term statistics of a query.
    Words(Statistics),
    /// Term statistics of a search.
    Found(Words),
    /// Link data on a page.
    Linked(Linked),
    /// The best pages.
    Best(Best),
    /// A search result; results come in the order in which they were requested.
    Shown(Shown),
    /// The URL of a page that is linked to.
    Target(String),
    /// A capture, in the order of keys and times.
    Capture(Values),
    /// Index in the request of a URL that is known.
    Known(u32),
    /// Rows of an outline, in Base64.
    Outline(String),
    /// Number of the first row left for another answer.
    Next(u32),
    /// Number and URL of a page.
    Url(u32, String),
    /// Rows of an export, in Base64.
    Rows(String),
    /// Copies of pages.
    Copies(CopiesSent),
    /// Position of the first row of an export left for another answer.
    Place(ExportPlace),
    /// The next site that waits for review.
    Waiting(PlaceSent),
    /// Description of a site that waits for review.
    Reviewed(RowSent),
    /// Sample pages by which to judge a site.
    Samples(String, Vec<Sample>),
    /// The last line, with the number of matching rows apart from those in doubt.
    End {
        /// `None` if it is unknown.
        matched: Option<u64>,
    },
}
