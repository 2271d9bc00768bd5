//! Moves partitions between nodes, so that important pages wait equally long everywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use archive_base::remote;
use serde::Serialize;

use super::store::{ClusterStore, StatusCache};
use super::{ClusterError, NodeActivity, NodeStatus};

/// Nodes are balanced if their difference is at most the mean divided by this.
const TOLERANCE: u64 = 20;

/// The waiting cash of the nodes, and the moves that would balance it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Balance {
    /// Units of cash of waiting pages, by node.
    pub before: BTreeMap<String, u64>,
    /// Units of cash after all moves, by node.
    pub after: BTreeMap<String, u64>,
    /// The moves, in this order.
    pub moves: Vec<PartitionMove>,
}

/// The move of a partition to another node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartitionMove {
    /// Number of the partition.
    pub partition: u16,
    /// Epoch of its current node.
    pub epoch: u64,
    /// The current node.
    pub from: String,
    /// The next node.
    pub to: String,
}

/// Plans moves for the cluster at a URL. Its nodes are those that have partitions, and `more`.
///
/// # Errors
/// If there is no cluster, or the store cannot be read.
pub fn plan(url: &str, more: &[String]) -> Result<Balance, ClusterError> {
    let shared = ClusterStore::open(url)?;
    let statuses = remote::runtime()?.block_on(async {
        let cluster = shared.begun(url).await?;
        shared.statuses(cluster.partitions, &mut StatusCache::new()).await
    })?;
    Ok(Balance::of(statuses.iter().flatten(), more))
}

/// Waits until a drained partition has its next node, and returns the node's name.
///
/// # Errors
/// If there is none within `patience`, or the store cannot be read.
pub fn moved(url: &str, moved: &PartitionMove, patience: Duration) -> Result<String, ClusterError> {
    let shared = ClusterStore::open(url)?;
    remote::runtime()?.block_on(async {
        let next = async || {
            let (newest, _) = shared.newest_epoch(moved.partition).await?;
            let epoch =
                if newest > moved.epoch { shared.epoch(moved.partition, newest).await? } else { None };
            Ok(epoch.map(|epoch| epoch.node))
        };
        let node = shared.wait_for(patience, next).await?;
        node.ok_or(ClusterError::NotTaken { partition: moved.partition, waited: patience })
    })
}

impl Balance {
    /// Moves one partition after the other from the node with the most to the node with the least cash, as long as this
    /// reduces their difference; moves no partition twice.
    fn of<'a>(statuses: impl Iterator<Item = &'a NodeStatus>, more: &[String]) -> Self {
        let is_there =
            |status: &&NodeStatus| matches!(status.activity, NodeActivity::Running | NodeActivity::Idle);
        let mut held: BTreeMap<&str, Vec<&NodeStatus>> =
            more.iter().map(|node| (node.as_str(), Vec::new())).collect();
        statuses.filter(is_there).for_each(|status| held.entry(&status.node).or_default().push(status));
        let load = |held: &[&NodeStatus]| held.iter().map(|status| status.progress.waiting_cash).sum::<u64>();
        let loads = |held: &BTreeMap<&str, Vec<&NodeStatus>>| -> BTreeMap<String, u64> {
            held.iter().map(|(node, held)| ((*node).to_owned(), load(held))).collect()
        };
        let before = loads(&held);
        let tolerated = before.values().sum::<u64>() / held.len().max(1) as u64 / TOLERANCE;
        let (mut moves, mut is_moved) = (Vec::new(), BTreeSet::new());
        loop {
            let most = held.iter().max_by_key(|(_, held)| load(held)).map(|(node, _)| *node);
            let least = held.iter().min_by_key(|(_, held)| load(held)).map(|(node, _)| *node);
            let (Some(from), Some(to)) = (most, least) else { break };
            let gap = load(&held[from]) - load(&held[to]);
            let rest = |status: &&NodeStatus| gap.abs_diff(2 * status.progress.waiting_cash);
            let candidates = held[from].iter().filter(|status| !is_moved.contains(&status.partition));
            let best = candidates.copied().min_by_key(rest).filter(|status| rest(status) < gap);
            let Some(best) = best.filter(|_| gap > tolerated) else { break };
            let NodeStatus { partition, epoch, .. } = *best;
            is_moved.insert(partition);
            moves.push(PartitionMove { partition, epoch, from: from.to_owned(), to: to.to_owned() });
            held.entry(from).or_default().retain(|status| status.partition != partition);
            held.entry(to).or_default().push(best);
        }
        Self { before, after: loads(&held), moves }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Marks, NodeProgress};
    use super::*;

    fn status(partition: u16, node: &str, waiting_cash: u64) -> NodeStatus {
        NodeStatus {
            partition,
            epoch: 7,
            node: node.to_owned(),
            time: String::new(),
            activity: NodeActivity::Running,
            total: 0,
            marks: Marks::default(),
            progress: NodeProgress { waiting_cash, ..NodeProgress::default() },
        }
    }

    #[test]
    fn what_waits_becomes_level_with_few_moves() {
        let one = [8, 1, 5, 2, 4].into_iter().zip(1..).map(|(cash, number)| status(number, "a", cash * 1000));
        let mut all: Vec<NodeStatus> = one.collect();
        let balance = Balance::of(all.iter(), &["b".to_owned()]);
        assert_eq!(balance.before, [("a".to_owned(), 20_000), ("b".to_owned(), 0)].into());
        assert_eq!(balance.after.values().max(), Some(&10_000), "{balance:?}");
        assert!(
            balance.moves.len() <= 2 && balance.moves.iter().all(|one| (one.epoch, &*one.to) == (7, "b"))
        );

        // A balanced cluster, a node that has ended, and a partition that outweighs all others.
        assert!(Balance::of(all.iter(), &[]).moves.is_empty());
        all[0].activity = NodeActivity::Drained;
        assert_eq!(Balance::of(all.iter(), &[]).before["a"], 12_000);
        let large = [status(1, "a", 100), status(2, "b", 7), status(3, "a", 0)];
        assert!(Balance::of(large.iter(), &[]).moves.is_empty());
        let nothing = [status(1, "a", 0), status(2, "a", 0)];
        assert!(Balance::of(nothing.iter(), &["b".to_owned()]).moves.is_empty());
    }
}
