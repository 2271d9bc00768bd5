//! Asking a node to leave its partition to another one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::shared::Shared;
use super::{ClusterError, Status};
use crate::remote::{self, MachineTime};

/// How often the node is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What came of it.
#[derive(Clone, Debug)]
pub struct Drained {
    /// The last that the node has told.
    pub status: Status,
    /// Whether it had ended before it was asked.
    pub had_ended: bool,
}

/// Asks the node that has a partition to end, and waits until it has told its last.
///
/// The node makes everything durable and sends what is to be sent; the next one has to wait for no lease. All others wait for the
/// next one.
///
/// # Errors
/// When the store fails, there is no cluster, nobody has the partition, or its node does not end within `patience`.
pub fn drain(url: &str, partition: u16, patience: Duration) -> Result<Drained, ClusterError> {
    let shared = Shared::new(remote::open(url)?, Arc::new(MachineTime));
    remote::runtime()?.block_on(async {
        let cluster = shared.cluster().await?.ok_or_else(|| ClusterError::None(url.to_owned()))?;
        let (epoch, _) = match partition {
            1.. if partition <= cluster.partitions => shared.newest_epoch(partition).await?,
            _ => (0, false),
        };
        if epoch == 0 {
            return Err(ClusterError::NotBegun(partition));
        }
        let has_ended = |status: &Status| status.epoch >= epoch && status.activity.is_over();
        if let Some(status) = shared.status(partition).await?.filter(has_ended) {
            return Ok(Drained { status, had_ended: true });
        }
        shared.ask_to_end(partition, epoch).await?;
        let asked = Instant::now();
        while asked.elapsed() < patience {
            shared.time.sleep(LOOK_EVERY).await;
            if let Some(status) = shared.status(partition).await?.filter(has_ended) {
                return Ok(Drained { status, had_ended: false });
            }
        }
        let node = shared.epoch(partition, epoch).await?.map_or_else(String::new, |epoch| epoch.node);
        Err(ClusterError::NotDrained { partition, node, waited: patience })
    })
}
