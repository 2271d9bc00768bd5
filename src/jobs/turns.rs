//! Takes turns with the other nodes of a cluster while pages of one of its partitions are fetched again.

use archive_books::cluster::Member;
use archive_books::ledger::Credits;
use archive_storage::Store;

use super::{Failure, Hear, JobEvent};

/// The cluster with whose nodes a run takes turns at addresses that they ask, too.
#[derive(Clone, Debug, Default)]
pub struct ClusterTurns {
    /// URL of the object store that the nodes share; `None` to take no turns.
    pub cluster: Option<String>,
    /// Name of this node; `None` for the machine's name.
    pub node: Option<String>,
}

impl ClusterTurns {
    /// Returns the archive's membership in its cluster if it is to take turns with the other nodes.
    pub(super) fn member(&self, store: &mut Store, hear: &mut Hear<'_>) -> Result<Option<Member>, Failure> {
        let path = store.path().display();
        match (&self.cluster, Credits::partition_of(store.state())?) {
            (Some(url), Some(partition)) => {
                let member = Member::again(url, &partition, self.node.as_deref())?;
                Credits::join_cluster(store.state_mut(), Some(&member.partition))?;
                return Ok(Some(member));
            }
            (Some(_), None) => {
                let problem = format!("{path} is not a partition of a cluster; omit --cluster");
                return Err(Failure::usage(problem));
            }
            // The crawls may be finished and the object store gone: that must not prevent refreshes of the archive.
            (None, Some(own)) if own.count > 1 => hear(JobEvent::Notice(format!(
                "{path} is partition {own} of a cluster, whose other nodes may ask the same addresses at the same time; to take turns with them, give --cluster URL"
            ))),
            (None, _) => {}
        }
        Ok(None)
    }
}
