//! What a root asks a leaf, and the protocol between them, which is all here.
//!
//! A request is a JSON document with one question ([`Ask`]). The answer is a stream of JSON lines: the head, with the
//! version; the rows; and the end, with what is known only then. A question that fails has no end. Each kind of question
//! says which rows and which end it has, and how a folder answers it ([`AskKind`]); a folder is asked without a wire.

use archive_ask::find::{
    BestPages, CaptureTimes, Linked, PageTextCache, SearchRequest, Shown, WordStatistics,
};
use archive_ask::query::{Limits, Portion};
use archive_ask::review::SamplePage;
use archive_base::access::Access;
use archive_books::cluster::Partition;
use archive_books::ledger::Credits;
use archive_books::search::{Fit, Statistics};
use archive_books::stored_graph::OutlineRows;
use archive_replay::Values;
use archive_storage::Store;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::copies::EncodedCopies;
use super::node::one_line;
use super::query::{QueryInput, QueryText};
use super::review::{EncodedRank, EncodedRow};
use super::{AskError, NodeError};
use crate::export::{ExportPlace, ExportRows};

/// Version of requests and answers; other versions are refused.
pub const VERSION: u32 = 2;

/// Maximum size of a request in bytes.
pub const REQUEST_BYTES_MAX: usize = 16 << 20;

/// Maximum length of a line of an answer in bytes.
pub const LINE_BYTES_MAX: usize = 16 << 20;

/// Maximum number of URLs, sites or pages in one request.
pub const URLS_MAX: usize = 50_000;

/// A kind of question to one archive.
pub(super) trait AskKind: Into<AskAny> {
    /// A row of its answer.
    type Row: Serialize + DeserializeOwned;
    /// What ends its answer.
    type End: Serialize + DeserializeOwned;
}

/// Receives the rows of an answer as they come.
pub(super) type Take<'a, K> = &'a mut dyn FnMut(<K as AskKind>::Row) -> Result<(), AskError>;

/// What ends an answer, or why there is none.
pub(super) type EndOf<K> = Result<<K as AskKind>::End, AskError>;

/// How a folder answers a kind of question.
pub(super) trait LeafAnswer: AskKind {
    /// Answers, as far as the folder may be seen.
    fn answer(self, folder: &AskedFolder<'_>, take: Take<'_, Self>) -> EndOf<Self>;
}

/// Declares all kinds of questions: the name in requests, the type with what is asked, and after the arrow what a row of
/// the answer is, and its end.
macro_rules! kinds {
    ($(
        $(#[$comment:meta])+
        $name:ident: $kind:ident { $($(#[$note:meta])* $field:ident: $what:ty),* $(,)? } -> $row:ty, $end:ty;
    )+) => {
        /// A question of any kind.
        #[derive(Clone, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub(super) enum AskAny {
            $($name($kind)),+
        }

        impl AskAny {
            fn answer(self, folder: &AskedFolder<'_>, write: &mut WriteLine<'_>) -> Result<(), AskError> {
                match self {
                    $(Self::$name(kind) => lines(kind, folder, write)),+
                }
            }
        }

        $(
            $(#[$comment])+
            #[derive(Clone, Debug, Serialize, Deserialize)]
            #[serde(deny_unknown_fields)]
            pub(super) struct $kind {
                $($(#[$note])* pub(super) $field: $what),*
            }

            impl AskKind for $kind {
                type Row = $row;
                type End = $end;
            }

            impl From<$kind> for AskAny {
                fn from(kind: $kind) -> Self {
                    Self::$name(kind)
                }
            }
        )+
    };
}

kinds! {
    /// The sites that it knows, each with whether pages of it were captured; then the times of captures, if older
    /// versions can be searched.
    Sites: KnownSites {} -> (String, bool), Option<CaptureTimes>;

    /// Term statistics of a query.
    Words: QueryWords { of: QueryText } -> NoRow, Statistics;

    /// Its portions of the answer to a query; then the number of matching rows apart from those in doubt, if it is
    /// known.
    Portions: QueryPortions {
        input: QueryInput,
        /// Number of rows if the query has no limit.
        limit: Option<usize>,
        /// The archive's place among all.
        place: usize,
    } -> Portion, Option<u64>;

    /// The pages that its pages at some URLs link to.
    Targets: LinkTargets { urls: Vec<String> } -> String, ();

    /// Which of some URLs belong to pages that it shows, by their indexes.
    Known: ShownUrls { urls: Vec<String> } -> usize, ();

    /// Its rows of the answer to a capture query, the parameters of a CDX server, in the order of keys and times.
    Captures: CaptureRows { query: String } -> Values, ();

    /// Term statistics of a search.
    FindWords: FindWords { wanted: SearchRequest } -> NoRow, WordStatistics;

    /// Link data on pages of which it has no captures.
    FindLinked: FindLinked {
        wanted: SearchRequest,
        /// Term statistics, summed over all archives.
        words: Statistics,
    } -> Linked, ();

    /// The best pages of a search.
    FindBest: FindBest {
        wanted: SearchRequest,
        /// Term statistics, summed over all archives.
        words: Statistics,
        /// Link data from other archives, by URL.
        linked: Vec<(String, Fit)>,
    } -> NoRow, BestPages;

    /// What is shown of the results that have these numbers, in this order.
    FindShown: FindShown {
        wanted: SearchRequest,
        /// Term statistics, summed over all archives.
        words: Statistics,
        pages: Vec<u32>,
    } -> Shown, ();

    /// Rows of its outline, the input for a ranking; then the number of the first row left for another answer.
    Outline: OutlinePieces {
        rows: OutlineRows,
        /// Number of the first row.
        from: u32,
        /// Maximum size of the rows in bytes; the answer ends with the row that exceeds it.
        room: u64,
    } -> RowBytes, Option<u32>;

    /// The URLs of those pages with these numbers that may be shown, each with its number.
    Urls: PageUrls { pages: Vec<u32> } -> (u32, String), ();

    /// Rows of an export; then the position of the first row left for another answer.
    Export: ExportPieces {
        rows: ExportRows,
        /// Pages to export; `None` for all.
        chosen: Option<QueryInput>,
        /// Position of the first row; `None` to start at the beginning.
        from: Option<ExportPlace>,
        /// Maximum size of the rows in bytes; the answer ends with the row that exceeds it.
        room: u64,
    } -> RowBytes, Option<ExportPlace>;

    /// Copies of pages.
    Copies: PageCopies {
        /// Pages whose copies are wanted; `None` for all.
        chosen: Option<QueryInput>,
        /// Reference time, microseconds since 1970.
        now: i64,
        /// Number of copies to skip and step between the copies to send; `None` to only count them.
        every: Option<(usize, usize)>,
    } -> NoRow, EncodedCopies;

    /// Its sites that wait for review, in order: all, or those that a query finds.
    Waiting: WaitingSites {
        query: Option<String>,
        /// Reference time of the query, microseconds since 1970.
        now: i64,
    } -> EncodedRank, ();

    /// Descriptions of sites that wait for review.
    Reviewed: SiteReviews { sites: Vec<String> } -> EncodedRow, ();

    /// Sample pages by which to judge sites, each list with its site.
    Samples: SiteSamples { sites: Vec<String> } -> (String, Vec<SamplePage>), ();
}

/// Receives the lines of an answer, without line feeds.
type WriteLine<'a> = dyn FnMut(&[u8]) -> Result<(), AskError> + 'a;

/// Answers with lines: all except the head.
fn lines<K: LeafAnswer>(
    kind: K,
    folder: &AskedFolder<'_>,
    write: &mut WriteLine<'_>,
) -> Result<(), AskError> {
    let end = kind.answer(folder, &mut |row| write(&json(&AnswerLine::<K::Row, K::End>::Row(row))?))?;
    write(&json(&AnswerLine::<K::Row, K::End>::End(end))?)
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, AskError> {
    serde_json::to_vec(value).map_err(|error| AskError::Taken(error.into()))
}

/// An archive in a folder, as a question sees it.
#[derive(Clone, Copy, Debug)]
pub struct AskedFolder<'a> {
    /// The archive.
    pub store: &'a Store,
    /// What may be seen of it.
    pub access: &'a Access,
    /// Limits for an answer.
    pub limits: Limits,
    /// A cache that makes searches cheaper.
    pub kept: Option<&'a PageTextCache>,
}

/// A question to an archive.
#[derive(Debug)]
pub struct Ask(AskAny);

/// A request.
#[derive(Serialize, Deserialize)]
struct AskRequest {
    version: u32,
    ask: AskAny,
}

/// The version alone, of a request or an answer.
#[derive(Debug, Deserialize)]
struct Versioned {
    version: u32,
}

impl Ask {
    /// Parses a request.
    ///
    /// # Errors
    /// When it is not a request, or has another protocol version.
    pub fn read(bytes: &[u8]) -> Result<Self, AskError> {
        let wrong = |error: serde_json::Error| AskError::Wrong(format!("this is not a request: {error}"));
        let Versioned { version } = serde_json::from_slice(bytes).map_err(wrong)?;
        if version != VERSION {
            return Err(AskError::Wrong(format!(
                "this is version {version} of the protocol between archives, and this program speaks version {VERSION}"
            )));
        }
        Ok(Self(serde_json::from_slice::<AskRequest>(bytes).map_err(wrong)?.ask))
    }

    /// Answers from a folder whose application and replay have these origins; passes each line to `write`.
    ///
    /// # Errors
    /// When the question is wrong or the archive cannot be read, and the errors of `write`.
    pub fn answer(
        self,
        folder: &AskedFolder<'_>,
        origins: [String; 2],
        write: &mut WriteLine<'_>,
    ) -> Result<(), AskError> {
        write(&json(&AnswerHead { origins: Some(origins), ..AnswerHead::of(folder.store)? })?)?;
        self.0.answer(folder, write)
    }
}

/// The request with a question.
pub(super) fn request(ask: AskAny) -> Result<Vec<u8>, NodeError> {
    let request = AskRequest { version: VERSION, ask };
    serde_json::to_vec(&request).map_err(|error| NodeError::Failed(error.to_string()))
}

/// The first line of an answer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct AnswerHead {
    pub(super) version: u32,
    /// The cluster partition that the archive holds.
    pub(super) partition: Option<Partition>,
    /// Origins of its application and of its replay, as seen by the client.
    #[serde(default)]
    pub(super) origins: Option<[String; 2]>,
    /// Identity of the state that numbers its URLs and sites.
    #[serde(default)]
    pub(super) state: Option<u64>,
}

impl AnswerHead {
    pub(super) fn of(store: &Store) -> Result<Self, AskError> {
        Ok(Self {
            version: VERSION,
            partition: Credits::partition_of(store.state())?,
            origins: None,
            state: Some(store.state().identity()),
        })
    }

    /// Parses a head, of this version only.
    pub(super) fn read(line: &[u8]) -> Result<Self, NodeError> {
        let Versioned { version } = read(line)?;
        if version == VERSION { read(line) } else { Err(NodeError::Version(version)) }
    }
}

/// A line after the head.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerLine<Row, End> {
    /// A row.
    Row(Row),
    /// The end.
    End(End),
}

impl<Row: DeserializeOwned, End: DeserializeOwned> AnswerLine<Row, End> {
    /// Parses a line.
    ///
    /// # Errors
    /// When it is none of this kind of answer.
    pub fn read(line: &[u8]) -> Result<Self, NodeError> {
        read(line)
    }
}

fn read<T: DeserializeOwned>(line: &[u8]) -> Result<T, NodeError> {
    serde_json::from_slice(line).map_err(|error| NodeError::Senseless(one_line(&error.to_string())))
}

/// The row of an answer that has only an end.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum NoRow {}

/// Bytes of rows; on the wire in Base64.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct RowBytes(pub(super) Vec<u8>);

impl TryFrom<String> for RowBytes {
    type Error = base64::DecodeError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Ok(Self(BASE64_STANDARD.decode(text)?))
    }
}

impl From<RowBytes> for String {
    fn from(RowBytes(bytes): RowBytes) -> Self {
        BASE64_STANDARD.encode(bytes)
    }
}

/// Refuses a question about more than [`URLS_MAX`] of something.
pub(super) fn expect_few<T>(all: &[T], refused: &str) -> Result<(), AskError> {
    if all.len() <= URLS_MAX {
        Ok(())
    } else {
        Err(AskError::Wrong(format!("more than {URLS_MAX} {refused} at once")))
    }
}

/// The time that a number of microseconds since 1970 stands for.
pub(super) fn instant(micros: i64) -> Result<DateTime<Utc>, AskError> {
    let wrong = || AskError::Wrong("`now` is not a valid time".to_owned());
    DateTime::from_timestamp_micros(micros).ok_or_else(wrong)
}
