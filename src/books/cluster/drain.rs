//! Asks a node to leave its partition to another node.

use std::time::Duration;

use archive_base::remote;

use super::store::ClusterStore;
use super::{ClusterError, NodeStatus};

/// The result of a drain.
#[derive(Clone, Debug)]
pub struct Drained {
    /// Last status of the node.
    pub status: NodeStatus,
    /// Whether the node had ended before it was asked.
    pub had_ended: bool,
}

/// Asks the node of a partition to end, and waits until it has published its last status.
///
/// The node makes everything durable and sends all remaining batches, so its successor need not wait for a lease. If an
/// `heir` is named, other nodes leave the partition to it for a minute.
///
/// # Errors
/// If the store fails, there is no cluster, no node has the partition, or its node does not end within `patience`.
pub fn drain(
    url: &str,
    partition: u16,
    heir: Option<&str>,
    patience: Duration,
) -> Result<Drained, ClusterError> {
    let shared = ClusterStore::open(url)?;
    remote::runtime()?.block_on(async {
        let cluster = shared.begun(url).await?;
        let (epoch, _) = match partition {
            1.. if partition <= cluster.partitions => shared.newest_epoch(partition).await?,
            _ => (0, false),
        };
        if epoch == 0 {
            return Err(ClusterError::NotBegun(partition));
        }
        let last = async || {
            let has_ended = |status: &NodeStatus| status.epoch >= epoch && status.activity.is_over();
            Ok(shared.status(partition).await?.filter(has_ended))
        };
        if let Some(status) = last().await? {
            return Ok(Drained { status, had_ended: true });
        }
        shared.ask_to_end(partition, epoch, heir).await?;
        if let Some(status) = shared.wait_for(patience, last).await? {
            return Ok(Drained { status, had_ended: false });
        }
        let node = shared.epoch(partition, epoch).await?.map_or_else(String::new, |epoch| epoch.node);
        Err(ClusterError::NotDrained { partition, node, waited: patience })
    })
}
