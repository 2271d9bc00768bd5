//! Several archives asked as one: folders of this machine, and archives on other machines (nodes).
//!
//! A question goes from a [`Root`] to its leaves, the archives. Each answers for its share with rows, and an end with
//! what is known only then; the root merges the shares into the answer that local folders alone would give. `ask` has
//! all kinds of questions, and the protocol for leaves on other machines: they are asked over HTTP (`node`) and answer
//! through `archive serve`. A folder answers by the same function without a wire.
//!
//! Each round asks all archives at once: for the sites that each knows and has captured, which determine the one
//! archive that answers for a site; for the pages that relations name; for their portions of the answer
//! ([`archive_ask::query::Portion`]); and, for pages that were only linked to, whether other archives know them. A node that
//! does not answer, or whose answer is invalid, is left out and reported, and the others are asked again without it.

mod ask;
mod copies;
mod credentials;
mod export;
mod node;
mod outlines;
mod query;
mod review;
mod root;
mod roster;
mod search;

use std::time::Duration;

use archive_ask::find::FindError;
use archive_ask::query::{ArchiveRowsError, RowsError};
use archive_base::decisions::DecisionsError;
use archive_base::error::{Classified, ErrorKind, Failure};
use archive_books::ledger::{AnsweringError, CreditError};
use archive_books::stored_graph::{JoinError, OutlineError};
use archive_storage::StateError;

pub use ask::{AnswerLine, Ask, AskedFolder, LINE_BYTES_MAX, REQUEST_BYTES_MAX, URLS_MAX, VERSION};
pub use copies::CopySample;
pub use credentials::Credentials;
pub use node::{Http, Node, origin};
pub use query::QueryInput;
pub use root::{LeafArchive, Root};
pub use roster::{Missing, Roster};

use crate::export::ExportError;

/// Maximum number of archives queried as one.
pub(crate) const ARCHIVES_MAX: usize = 256;

/// Maximum size of all answers in one round, in bytes.
pub const ANSWERS_BYTES_MAX: u64 = 512 << 20;

/// Why a node is left out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// The node, or the connection to it, failed.
    #[error("{0}")]
    Failed(String),
    /// It did not answer in time.
    #[error("it did not answer within {} seconds", .0.as_secs_f64())]
    Late(Duration),
    /// It answered with an HTTP error.
    #[error("it answered HTTP {status}{}{what}", if what.is_empty() { "" } else { ": " })]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The error message that it sent.
        what: String,
    },
    /// It requires an account.
    #[error("it asks for a name and a password: give them in a file, --credentials")]
    Unknown,
    /// It speaks another version of the protocol.
    #[error(
        "it uses version {0} of the protocol between archives, but this program uses version {VERSION}: use the same version of the program everywhere"
    )]
    Version(u32),
    /// A line of its answer is too long.
    #[error("its answer has a line longer than {} MiB", LINE_BYTES_MAX >> 20)]
    LongLine,
    /// All answers of the round together are too long.
    #[error("the answers are longer than {} MiB: narrow the query down", .0 >> 20)]
    TooLong(u64),
    /// Its answer is invalid.
    #[error("its answer is invalid: {0}")]
    Senseless(String),
}

impl NodeError {
    fn senseless(what: &str) -> Self {
        Self::Senseless(what.to_owned())
    }
}

/// Why several archives cannot be queried.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The query is wrong, or a folder cannot be read.
    #[error(transparent)]
    Query(#[from] archive_ask::query::Error),
    /// A folder cannot be searched.
    #[error(transparent)]
    Find(#[from] FindError),
    /// The request is impossible.
    #[error("{0}")]
    Wrong(String),
    /// An answer could not be received.
    #[error("{0}")]
    Taken(#[source] RowsError),
    /// A node failed.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// A node that answered before does not answer any more.
    #[error("{name} does not answer any more: {error}")]
    Lost {
        /// The node's name, as given by the user.
        name: String,
        /// Why it does not answer.
        error: NodeError,
    },
    /// Two archives have captured pages of the same site.
    #[error("{} and {} have both captured pages of {site}; query each by itself", names[0], names[1])]
    Overlap {
        /// The site.
        site: String,
        /// The archives.
        names: [String; 2],
    },
    /// There are too many archives.
    #[error("at most {ARCHIVES_MAX} archives can be queried together")]
    TooMany,
    /// No archive is available.
    #[error("none of these archives can be read: {0}")]
    Nobody(String),
    /// Anything else.
    #[error(transparent)]
    Other(#[from] Failure),
}

archive_base::passes_on! {
    AskError: StateError, ArchiveRowsError, CreditError, JoinError, archive_replay::ReplayError,
    DecisionsError, ExportError, OutlineError
}

impl Classified for AskError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Query(error) => error.kind(),
            Self::Find(error) => error.kind(),
            Self::Wrong(_) => ErrorKind::Usage,
            error => ErrorKind::of_causes(error),
        }
    }
}

impl From<AnsweringError> for AskError {
    fn from(error: AnsweringError) -> Self {
        match error {
            AnsweringError::State(error) => error.into(),
            error @ AnsweringError::Overlap { .. } => Self::Taken(error.into()),
        }
    }
}
