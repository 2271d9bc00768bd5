//! The protocol between archives: a request is one JSON text, an answer is lines of JSON. The first line has the version, the last
//! one says that the answer is whole.

use serde::{Deserialize, Serialize};

use super::exported::{ExportPlace, Wanted};
use super::planned::{CopiesSent, CopiesWanted};
use super::reviewed::{PlaceSent, RowSent};
use crate::cluster::Partition;
use crate::find::{self, Best, Linked, Shown, Times, Words};
use crate::graphs::OutlineRows;
use crate::query::Portion;
use crate::replay::Values;
use crate::review::Sample;
use crate::search::{Fit, Statistics};

/// The version of requests and answers: others are refused.
pub const VERSION: u32 = 1;

/// Bytes of a request, at most.
pub const REQUEST_BYTES_MAX: usize = 16 << 20;

/// Bytes of a line of an answer, at most.
pub const LINE_BYTES_MAX: usize = 16 << 20;

/// URLs in one request, at most.
pub const URLS_MAX: usize = 50_000;

/// What an archive is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Ask {
    /// The sites that it knows, and the times as of which it can be searched.
    Sites {},
    /// Its portions of the answer to a query.
    Portions {
        /// The query.
        query: String,
        /// The time from which `30 days ago` counts, microseconds since 1970. Days and hours without a zone are in UTC.
        now: i64,
        /// Rows, where the query has no limit.
        limit: Option<usize>,
        /// How often the words that it searches for are in all archives.
        words: Option<Statistics>,
        /// Which of its inner queries is asked: its place among the searches of each level.
        #[serde(default)]
        inner: Vec<usize>,
        /// For each of its relations, the URLs of the pages that all archives have found ([`Plan::with_related`]).
        ///
        /// [`Plan::with_related`]: crate::query::Plan::with_related
        #[serde(default)]
        related: Vec<Vec<String>>,
        /// The archive's place among all.
        #[serde(default)]
        place: usize,
    },
    /// How often the words of a query occur there.
    Words {
        /// The query.
        query: String,
        /// As in [`Ask::Portions`].
        now: i64,
        /// As in [`Ask::Portions`].
        #[serde(default)]
        inner: Vec<usize>,
    },
    /// Which pages its pages at some URLs link to.
    Targets {
        /// The URLs, [`URLS_MAX`] at most.
        urls: Vec<String>,
    },
    /// How often the words of a search occur there.
    FindWords {
        /// The search.
        wanted: find::Wanted,
    },
    /// What links say of pages of which nothing was captured there.
    FindLinked {
        /// The search.
        wanted: find::Wanted,
        /// How often its words are in all archives.
        words: Statistics,
    },
    /// The best pages.
    FindBest {
        /// The search.
        wanted: find::Wanted,
        /// How often its words are in all archives.
        words: Statistics,
        /// What links of other archives say, by URLs.
        linked: Vec<(String, Fit)>,
    },
    /// What results show of pages.
    FindShown {
        /// The search.
        wanted: find::Wanted,
        /// How often its words are in all archives.
        words: Statistics,
        /// Their numbers.
        pages: Vec<u32>,
    },
    /// Its rows of the answer to a query for captures.
    Captures {
        /// Parameters of the CDX server.
        query: String,
    },
    /// Which of some URLs belong to pages that it shows.
    Known {
        /// The URLs, [`URLS_MAX`] at most.
        urls: Vec<String>,
    },
    /// Rows of what a ranking needs of it.
    Outline {
        /// Which rows.
        rows: OutlineRows,
        /// The number of the first one.
        from: u32,
        /// Bytes of them; the answer ends with the row that goes beyond.
        room: u64,
    },
    /// The URLs of pages.
    Urls {
        /// Their numbers, [`URLS_MAX`] at most.
        pages: Vec<u32>,
    },
    /// Rows of an export.
    Export(Wanted),
    /// Copies of pages.
    Copies(CopiesWanted),
    /// Its sites that wait for a reviewer, in order.
    Waiting {
        /// Only those that this finds; none for all.
        query: Option<String>,
        /// As in [`Ask::Portions`].
        now: i64,
    },
    /// All that is said of sites that wait for a reviewer.
    Reviewed {
        /// Their names, [`URLS_MAX`] at most.
        sites: Vec<String>,
    },
    /// Pages by which to judge sites.
    Samples {
        /// Their names, [`URLS_MAX`] at most.
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
    /// Of the answer.
    pub version: u32,
    /// Which part of a cluster's web it has.
    pub partition: Option<Partition>,
    /// The origins of its application and its replay, as seen by the client.
    #[serde(default)]
    pub origins: Option<[String; 2]>,
    /// The state by which it numbers URLs and sites.
    #[serde(default)]
    pub state: Option<u64>,
}

/// A further line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// A site, and whether pages of it were captured.
    Site(String, bool),
    /// Times of captures, if older versions can be searched.
    Times(Option<Times>),
    /// A portion of an answer to a query.
    Portion(Portion),
    /// How often words occur there.
    Words(Statistics),
    /// How often the words of a search occur there.
    Found(Words),
    /// What links say of a page.
    Linked(Linked),
    /// The best pages.
    Best(Best),
    /// A result, in the order in which results were asked for.
    Shown(Shown),
    /// The URL of a page that is linked to.
    Target(String),
    /// A capture, in the order of keys and times.
    Capture(Values),
    /// The place in the request of a URL that is known.
    Known(u32),
    /// Rows of an outline, in Base64.
    Outline(String),
    /// The number of the first row that was left for another answer.
    Next(u32),
    /// The number of a page, and its URL.
    Url(u32, String),
    /// Rows of an export, in Base64.
    Rows(String),
    /// Copies of pages.
    Copies(CopiesSent),
    /// The first row of an export that was left for another answer.
    Place(ExportPlace),
    /// The next site that waits for a reviewer.
    Waiting(PlaceSent),
    /// All that is said of such a site.
    Reviewed(RowSent),
    /// Pages by which to judge a site.
    Samples(String, Vec<Sample>),
    /// The last one, with how many rows match besides those in doubt.
    End {
        /// None if it is not known.
        matched: Option<u64>,
    },
}
