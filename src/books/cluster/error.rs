//! Errors of a node.

use std::time::Duration;

use archive_base::remote::RemoteError;

use super::{BatchError, Division, FILES_MAX, Mode, ORDERS_MAX};

/// Why a node cannot join a cluster, or cannot continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The object store cannot be used, does not answer, or refuses access.
    #[error("the object store of the cluster: {0}")]
    Remote(#[from] RemoteError),
    /// The thread cannot be started.
    #[error("cannot start the thread that talks to the object store: {0}")]
    Start(#[from] std::io::Error),
    /// The thread that talks to the object store ended unexpectedly.
    #[error("the thread that talks to the object store has ended unexpectedly")]
    ThreadEnded,
    /// There is no cluster.
    #[error("there is no cluster in {0}; `archive crawl --cluster URL --partition 1/N` begins one")]
    None(String),
    /// The cluster has another number of partitions.
    #[error(
        "this cluster has {found} partitions, not {asked}; the number cannot be changed, because sites would move to other partitions: begin another cluster"
    )]
    Count {
        /// The number in `cluster.json`.
        found: u16,
        /// The requested number.
        asked: u16,
    },
    /// The cluster has another mode.
    #[error(
        "this cluster has the mode {found}, not {asked}; all nodes must use the same mode: omit --cluster-mode"
    )]
    Mode {
        /// The mode in `cluster.json`.
        found: Mode,
        /// The requested mode.
        asked: Mode,
    },
    /// The cluster divides sites by something else.
    #[error(
        "this cluster divides sites by {found}, not by {asked}; that cannot be changed, because sites would move to other partitions: omit --partition-by, or begin another cluster"
    )]
    Division {
        /// What `cluster.json` says.
        found: Division,
        /// What was requested.
        asked: Division,
    },
    /// A domain is given to a partition that does not exist.
    #[error("--partition-by gives {domain} to a partition that does not exist; there are {count}")]
    Outside {
        /// The top-level domain.
        domain: String,
        /// The number of partitions.
        count: u16,
    },
    /// The delay of an address does not fit into the turns that nodes take at it.
    #[error(
        "in a cluster --address-delay is at most {} s, because nodes take turns at an address; use a longer --delay instead",
        .0.as_secs_f64()
    )]
    AddressDelay(Duration),
    /// A partition does not exist, or no node has begun it.
    #[error("no node has begun partition {0} of this cluster; `archive cluster status` shows its partitions")]
    NotBegun(u16),
    /// A node that was asked to end has not ended.
    #[error(
        "the node '{node}' has not left partition {partition} within {} s; if it is gone, another node can take over the partition after waiting 15 s",
        .waited.as_secs()
    )]
    NotDrained {
        /// The partition.
        partition: u16,
        /// Name of its node.
        node: String,
        /// How long the caller waited.
        waited: Duration,
    },
    /// No node has taken over a partition after its last node was asked to end.
    #[error(
        "no node has taken partition {partition} within {} s; `archive node` takes it on any machine that has its archive or a copy of it",
        .waited.as_secs()
    )]
    NotTaken {
        /// The partition.
        partition: u16,
        /// How long the caller waited.
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
    /// An object that is written only once already exists with other content.
    #[error(
        "{name} already exists with different content: two nodes have written to the same partition; continue with the archive of the other node"
    )]
    Conflict {
        /// The object.
        name: String,
    },
    /// Another program has just published the same version of a file.
    #[error("somebody else has just published version {1} of {0}; look at it, then publish again")]
    Published(String, u64),
    /// There are too many files.
    #[error("at most {FILES_MAX} files can be published in a cluster, also those that were removed")]
    TooManyFiles,
    /// There are too many orders.
    #[error("{0}: at most {ORDERS_MAX} can be published in a cluster")]
    TooManyOrders(String),
    /// Another node is taking over the partition.
    #[error("another node is taking over partition {0} right now; leave the partition to it")]
    Beginning(u16),
    /// Another node has taken over the partition.
    #[error(
        "the node '{node}' has taken partition {partition} over (epoch {newest}, this one had {epoch}); nothing more is written here: continue with the archive of that node"
    )]
    Superseded {
        /// The partition.
        partition: u16,
        /// Epoch of this node.
        epoch: u64,
        /// The newest epoch.
        newest: u64,
        /// Name of the node with the newest epoch.
        node: String,
    },
    /// The archive is older than what its partition has exchanged.
    #[error(
        "partition {partition} has exchanged batches that this archive does not have ({what}): it is another archive or an old copy; continue with the archive of the last node"
    )]
    Behind {
        /// The partition.
        partition: u16,
        /// What the archive lacks.
        what: String,
    },
}

impl ClusterError {
    /// Whether a retry may succeed.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Remote(error) if error.is_passing())
    }
}
