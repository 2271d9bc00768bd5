//! Why a node cannot take part, or cannot continue.

use std::time::Duration;

use super::{ADDRESS_DELAY_MAX, BatchError, FILES_MAX, Mode, ORDERS_MAX};
use crate::remote::RemoteError;

/// Why a node cannot take part, or cannot continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The object store cannot be used, does not answer, or refuses.
    #[error("the object store of the cluster: {0}")]
    Remote(#[from] RemoteError),
    /// The thread cannot be started.
    #[error("cannot start the thread that talks to the object store: {0}")]
    Start(#[from] std::io::Error),
    /// The thread that talks to the object store ended before its time.
    #[error("the thread that talks to the object store has ended unexpectedly")]
    ThreadEnded,
    /// There is no cluster.
    #[error("there is no cluster in {0}; `archive crawl --cluster URL --partition 1/N` begins one")]
    None(String),
    /// The cluster has another number of partitions.
    #[error(
        "this cluster has {found} partitions, not {asked}; with another number sites would belong to other partitions: begin another cluster"
    )]
    Count {
        /// By `cluster.json`.
        found: u16,
        /// As it was typed.
        asked: u16,
    },
    /// The cluster has another mode.
    #[error(
        "this cluster has the mode {found}, not {asked}; all nodes have the same mode: leave --cluster-mode out"
    )]
    Mode {
        /// By `cluster.json`.
        found: Mode,
        /// As it was typed.
        asked: Mode,
    },
    /// Nodes take turns at an address, and this delay does not fit into one.
    #[error(
        "in a cluster --address-delay is at most {} s, because nodes take turns at an address; give a longer --delay in its place",
        ADDRESS_DELAY_MAX.as_secs()
    )]
    AddressDelay,
    /// A partition that no node has begun, or that does not exist.
    #[error("no node has begun partition {0} of this cluster; `archive cluster status` shows its partitions")]
    NotBegun(u16),
    /// A node that was asked to end has not.
    #[error(
        "the node '{node}' has not left partition {partition} within {} s; if it is gone, another one may take the partition over, after it has waited 15 s",
        .waited.as_secs()
    )]
    NotDrained {
        /// Which partition.
        partition: u16,
        /// Who has it.
        node: String,
        /// How long the request was waited for.
        waited: Duration,
    },
    /// A partition has no node after its last one was asked to end.
    #[error(
        "no node has taken partition {partition} within {} s; `archive node` takes it on any machine that has its archive or a copy of it",
        .waited.as_secs()
    )]
    NotTaken {
        /// Which partition.
        partition: u16,
        /// How long was waited.
        waited: Duration,
    },
    /// An object cannot be read.
    #[error("{name} is damaged: {why}")]
    Damaged {
        /// The object.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// A batch is not valid.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// An object that is written once was written by another node.
    #[error(
        "{name} is already there with other content: two nodes have written for one partition; continue with the archive of the other node"
    )]
    Conflict {
        /// The object.
        name: String,
    },
    /// Somebody else has published a file at this moment.
    #[error("somebody else has just published version {1} of {0}; look at it, then publish again")]
    Published(String, u64),
    /// There are too many files.
    #[error("at most {FILES_MAX} files can be published in a cluster, also those that were removed")]
    TooManyFiles,
    /// There are too many orders.
    #[error("{0}: at most {ORDERS_MAX} can be published in a cluster")]
    TooManyOrders(String),
    /// Another node begins at this moment.
    #[error("another node is taking partition {0} over at this moment; leave the partition to it")]
    Beginning(u16),
    /// Another node has taken the partition over.
    #[error(
        "the node '{node}' has taken partition {partition} over (epoch {newest}, this one had {epoch}); nothing more is written here: continue with the archive of that node"
    )]
    Superseded {
        /// Which partition.
        partition: u16,
        /// This node's epoch.
        epoch: u64,
        /// The newest.
        newest: u64,
        /// Who has it.
        node: String,
    },
    /// The archive is older than what its partition has published.
    #[error(
        "partition {partition} has exchanged batches that this archive knows nothing of ({what}): it is another archive or an old copy; continue with the archive of the last node"
    )]
    Behind {
        /// Which partition.
        partition: u16,
        /// What the archive knows nothing of.
        what: String,
    },
}

impl ClusterError {
    /// Whether another attempt may succeed.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Remote(error) if error.is_passing())
    }
}
