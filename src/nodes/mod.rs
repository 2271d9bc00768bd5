//! Archives of other machines, together with folders, asked as one archive.
//!
//! Each archive answers for its share in lines of JSON (`wire`): the folders in this process, the others over HTTP from `archive serve`
//! (`node`). The shares are merged here (`asked`) into the answer that folders of this machine would give.
//!
//! Each round asks all archives at once: for the sites that each knows and has captured, which decide the one archive that answers
//! for a site; for the pages that relations name; for their portions of the answer ([`crate::query::Portion`]); and, of pages that
//! were only linked to, whether others know them. A node that does not answer, or whose answer makes no sense, is left out and
//! named, and the others are asked again without it.

mod answer;
mod asked;
mod credentials;
mod exported;
mod known;
mod node;
mod planned;
mod ranked;
mod reviewed;
mod search;
mod wire;

use std::time::Duration;

pub use answer::answer;
pub use asked::{Asked, Source};
pub use credentials::Credentials;
pub use exported::{Chosen, ExportPlace, ExportRows, Exported, Sender, Wanted};
pub use known::{Known, Missing};
pub use node::{Http, Node, origin};
pub use planned::{Copies, CopiesSent, CopiesWanted};
pub use wire::{Ask, Head, LINE_BYTES_MAX, Line, REQUEST_BYTES_MAX, URLS_MAX, VERSION};

use crate::decisions::DecisionsError;
use crate::find::FindError;
use crate::graphs::JoinError;
use crate::ledger::{AnsweringError, CreditError};
use crate::query::{self, ArchiveRowsError, RowsError};
use crate::replay;
use crate::review::next::NextError;
use crate::selection::freshness::CopiesError;
use archive_storage::StateError;

/// Archives that are asked as one.
pub const ARCHIVES_MAX: usize = 256;

/// Bytes of all answers in one round.
pub const ANSWERS_BYTES_MAX: u64 = 512 << 20;

/// Why a node is left out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// It, or the way to it, failed.
    #[error("{0}")]
    Failed(String),
    /// It took too long.
    #[error("it did not answer within {} seconds", .0.as_secs_f64())]
    Late(Duration),
    /// It sent something other than an answer.
    #[error("it answered HTTP {status}{}{what}", if what.is_empty() { "" } else { ": " })]
    Refused {
        /// The status.
        status: u16,
        /// What it said.
        what: String,
    },
    /// It asks for an account.
    #[error("it asks for a name and a password: give them in a file, --credentials")]
    Unknown,
    /// It is another program, or another version of this one.
    #[error(
        "it speaks version {0} of the protocol between archives, and this program version {VERSION}: use the same version of the program everywhere"
    )]
    Version(u32),
    /// A line of its answer is too long.
    #[error("its answer has a line longer than {} MiB", LINE_BYTES_MAX >> 20)]
    LongLine,
    /// All answers together are too long.
    #[error("the answers are longer than {} MiB: ask for less", .0 >> 20)]
    TooLong(u64),
    /// It makes no sense.
    #[error("its answer makes no sense: {0}")]
    Senseless(String),
}

/// Why several archives do not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The question is wrong, or a folder cannot be read.
    #[error(transparent)]
    Query(#[from] query::Error),
    /// A folder cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// A folder cannot be read.
    #[error(transparent)]
    Rows(#[from] ArchiveRowsError),
    /// A folder cannot be read.
    #[error(transparent)]
    Credit(#[from] CreditError),
    /// A folder cannot be searched.
    #[error(transparent)]
    Find(#[from] FindError),
    /// A folder's links cannot be read.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// A folder's captures cannot be read.
    #[error(transparent)]
    Replay(#[from] replay::Error),
    /// A folder's copies cannot be read.
    #[error(transparent)]
    Copies(#[from] CopiesError),
    /// A folder's decisions cannot be read.
    #[error(transparent)]
    Decisions(#[from] DecisionsError),
    /// A folder's sites cannot be put in order.
    #[error(transparent)]
    Next(#[from] NextError),
    /// What was asked for is impossible.
    #[error("{0}")]
    Wrong(String),
    /// An answer could not be received.
    #[error("{0}")]
    Taken(#[source] RowsError),
    /// A node.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// A node that answered before.
    #[error("{name} does not answer any more: {error}")]
    Lost {
        /// As it was named.
        name: String,
        /// Why.
        error: NodeError,
    },
    /// Two archives have captured pages of one site.
    #[error("{} and {} have both captured pages of {site}; ask each alone", names[0], names[1])]
    Overlap {
        /// The site.
        site: String,
        /// The archives.
        names: [String; 2],
    },
    /// Too many archives.
    #[error("more than {ARCHIVES_MAX} archives cannot be asked as one")]
    TooMany,
    /// All are missing.
    #[error("none of these archives can be read: {0}")]
    Nobody(String),
}

impl AskError {
    /// Whether the time was over.
    #[must_use]
    pub fn is_late(&self) -> bool {
        match self {
            Self::Query(error) => error.is_late(),
            Self::Find(error) => error.is_late(),
            _ => false,
        }
    }

    /// Whether it is a mistake in what was asked, not in what was found.
    #[must_use]
    pub fn is_mistake(&self) -> bool {
        match self {
            Self::Query(error) => error.is_mistake(),
            Self::Wrong(_) => true,
            _ => false,
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
