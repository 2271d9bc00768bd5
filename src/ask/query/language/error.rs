//! Why a query cannot be answered.

use std::time::Duration;

use archive_base::error::{Classified, ErrorKind};
use archive_books::search;

/// Why rows could not be read: the store's own error, boxed.
pub type RowsError = Box<dyn std::error::Error + Send + Sync>;

/// What was read of a store.
pub(crate) type Found<T> = Result<T, RowsError>;

/// The query has timed out.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the request timed out after {} s: narrow it down, or raise the time limit", limit.as_secs_f64())]
pub struct Late {
    /// The timeout.
    pub limit: Duration,
}

/// Why a query could not be answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The query's text is invalid.
    #[error("in the query, {0}")]
    Query(#[from] archive_grammar::ParseError),
    /// The query selects sites where pages are wanted.
    #[error("the query selects sites: select their pages, as in 'page site = \"example.org\"'")]
    Sites,
    /// The query selects something else where pages are wanted.
    #[error(
        "the query selects {what}, but pages are needed here: select pages, as in 'page site = \"example.org\"'"
    )]
    NotPages {
        /// What the query selects.
        what: &'static str,
    },
    /// The query's groups, or the rows to be sorted, do not fit into memory and temporary files.
    #[error(
        "the groups or rows of this query need more than {} MiB: select fewer rows, add `limit N`, or group by something with fewer values", (*memory as u64 + disk) >> 20
    )]
    TooMuch {
        /// Memory limit in bytes.
        memory: usize,
        /// Limit of temporary files in bytes.
        disk: u64,
    },
    /// A series has too many periods, or more groups than fit into memory.
    #[error(
        "this series has more than {periods_max} periods, or more groups than fit into memory: choose longer periods, a shorter time or fewer groups"
    )]
    LongSeries {
        /// Maximum number of periods.
        periods_max: usize,
    },
    /// An operation on a temporary file failed.
    #[error("a temporary file in {} cannot be used", std::env::temp_dir().display())]
    Spill(#[source] std::io::Error),
    /// The query searches text, but the archive has no index.
    #[error(
        "this archive has no full-text index, which `text contains` and `near` need; `archive crawl` without --no-full-text makes it"
    )]
    NoIndex,
    /// The query searches text as of a time, but the archive has no index of older versions.
    #[error(transparent)]
    NoVersions(search::SearchError),
    /// Too many pages match for which only other archives can decide whether they count.
    #[error(
        "more than {most} matching pages have no capture here, and other archives may have captured them: add `captures > 0`"
    )]
    TooManyDoubtful {
        /// The limit on their number.
        most: usize,
    },
    /// The query needs something that archives on other machines cannot answer together.
    #[error(
        "{what} cannot be queried across archives on other machines: query local folders, or each archive by itself"
    )]
    NotElsewhere {
        /// What the query needs.
        what: &'static str,
    },
    /// Each of several archives is to select by itself, but the query needs something that only all of them together
    /// know.
    #[error(
        "each archive selects its rows independently, so limit, offset, sample, the score (add `order by url` to a text search) and relations to another query are not allowed"
    )]
    NotOfEach,
    /// Several archives are exported, some of them on other machines, but the query selects only part of what matches.
    #[error(
        "an export from nodes contains everything that matches: leave out limit, offset and sample, or export local folders"
    )]
    NotWhole,
    /// The query timed out.
    #[error(transparent)]
    Late(#[from] Late),
    /// The store cannot be read.
    #[error("cannot read the archive")]
    Rows(#[source] RowsError),
    /// The index cannot be read.
    #[error("cannot read the full-text index")]
    Search(#[source] RowsError),
}

impl Classified for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Late(_) => ErrorKind::Stopped,
            // The query itself is at fault, rather than the store or index.
            Self::Query(_)
            | Self::Sites
            | Self::NotPages { .. }
            | Self::LongSeries { .. }
            | Self::NotElsewhere { .. }
            | Self::NotOfEach
            | Self::NotWhole => ErrorKind::Usage,
            error => ErrorKind::of_causes(error),
        }
    }
}

impl From<RowsError> for Error {
    fn from(error: RowsError) -> Self {
        error.downcast::<Late>().map_or_else(Self::Rows, |late| Self::Late(*late))
    }
}
