//! Why the books cannot be kept.

use archive_math::importance::Imbalance;
use archive_storage::StateError;

use super::rules::SiteRule;

/// Why crediting fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreditError {
    /// The store failed.
    #[error(transparent)]
    State(#[from] StateError),
    /// A setting in the catalogue cannot be read.
    #[error(
        "the setting '{0}' of the archive cannot be read; remove its folder `state`; it is then rebuilt from the segments"
    )]
    Setting(&'static str),
    /// The rule for sites was fixed when the archive was created, and is another one.
    #[error(
        "the sites of this archive are by {now}, not by {wanted}; begin another archive, or leave --sites as it is"
    )]
    Sites {
        /// The archive's rule.
        now: SiteRule,
        /// The requested rule.
        wanted: SiteRule,
    },
    /// Cash was lost or created.
    #[error(transparent)]
    Imbalance(#[from] Imbalance),
    /// The archive is another partition of a cluster, or none.
    #[error(transparent)]
    Partition(#[from] PartitionError),
    /// A batch for another partition cannot be compressed.
    #[error("cannot pack what is for another partition: {0}")]
    Batch(std::io::Error),
    /// A batch has an impossible amount of cash.
    #[error(
        "batch {number} from partition {from} carries more cash than all other partitions can have; nothing of it was applied"
    )]
    TooMuchCash {
        /// Its sender.
        from: u16,
        /// Its number.
        number: u64,
    },
}

/// Why an archive cannot have a partition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PartitionError {
    /// It has another partition.
    #[error("this archive is partition {now} of the cluster {cluster}, not {wanted} of {wanted_cluster}")]
    Other {
        /// The archive's partition.
        now: String,
        /// Its cluster.
        cluster: String,
        /// The requested partition.
        wanted: String,
        /// Its cluster.
        wanted_cluster: String,
    },
    /// It was created outside a cluster, and is not empty.
    #[error(
        "this archive knows pages already, and was not begun as a partition of a cluster; begin a new one for the partition"
    )]
    NotEmpty,
    /// It is a partition, but was opened without naming one.
    #[error("the archive is a partition of a cluster; give --cluster and --partition {0}")]
    Alone(String),
}
