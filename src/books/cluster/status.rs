//! The report of a node about its partition.

use serde::{Deserialize, Serialize};

use super::Marks;

/// What a node is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeActivity {
    /// It has work.
    #[default]
    Running,
    /// Nothing is waiting in its partition; it waits for what others send.
    Idle,
    /// It has ended because nothing is waiting anywhere.
    Complete,
    /// It has ended for another reason; what others send waits for its next run.
    Ended(String),
    /// It has ended because it was asked to leave its partition to another node, which all others wait for.
    Drained,
}

impl NodeActivity {
    /// Whether it will do nothing until others send something.
    pub(crate) fn is_quiet(&self) -> bool {
        !matches!(self, Self::Running | Self::Drained)
    }

    /// Whether the node has ended because it reached a limit, or because nothing is left.
    pub(crate) fn has_had_enough(&self) -> bool {
        match self {
            Self::Complete => true,
            Self::Ended(why) => why != "stopped",
            Self::Running | Self::Idle | Self::Drained => false,
        }
    }

    /// Whether the node has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Complete | Self::Ended(_) | Self::Drained)
    }
}

/// Numbers of a run for others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeProgress {
    /// Waiting URLs of the partition.
    pub waiting: u64,
    /// Approximate cash of the waiting URLs, in units.
    #[serde(default)]
    pub waiting_cash: u64,
    /// Pages fetched in this run.
    pub pages: u64,
    /// Those of them that belong to other partitions.
    #[serde(default)]
    pub abroad: u64,
    /// Pages that were read, in this run or before.
    #[serde(default)]
    pub read: u64,
    /// Pages that are known, of other partitions too.
    #[serde(default)]
    pub known: u64,
    /// Share of the importance of the known pages that the read ones have, in millionths.
    #[serde(default)]
    pub gathered_ppm: u32,
    /// Captures in the archive.
    pub captures: u64,
}

/// The report of a node about its partition as of its last checkpoint, or of one some seconds earlier if the last one
/// had nothing that others wait for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Number of the partition.
    pub partition: u16,
    /// Epoch of the node.
    pub epoch: u64,
    /// Name of the node.
    pub node: String,
    /// When it was made (RFC 3339).
    pub time: String,
    /// What the node is doing.
    pub activity: NodeActivity,
    /// Units of cash in the books of the archive.
    pub total: u64,
    /// What was sent and received durably.
    pub marks: Marks,
    /// Numbers of the run.
    pub progress: NodeProgress,
}

/// Whether nothing is waiting in any partition, nothing is in flight, and nothing has to be named again, except for
/// partitions that have ended or are `left`. `all` has all partitions in order.
pub(super) fn is_quiet(all: &[Option<NodeStatus>], left: &[u16]) -> bool {
    let Some(all) = all.iter().map(Option::as_ref).collect::<Option<Vec<_>>>() else { return false };
    let is_alone = |status: &NodeStatus| {
        matches!(status.activity, NodeActivity::Ended(_)) || left.contains(&status.partition)
    };
    all.iter().all(|status| status.activity.is_quiet())
        && all.iter().all(|from| {
            all.iter().filter(|to| to.partition != from.partition).all(|to| {
                let is_received = from.marks.sent_to(to.partition) == to.marks.received_from(from.partition);
                (is_received || is_alone(to)) && (has_named(from, to) || is_alone(from))
            })
        })
}

/// Returns the partitions that have ended as complete and have got work since: something was sent to them, or they have
/// to name everything again to a partition that was rebuilt.
pub(super) fn left(all: &[Option<NodeStatus>]) -> Vec<u16> {
    let all = || all.iter().flatten();
    let has_more = |one: &&NodeStatus| {
        all().filter(|other| other.partition != one.partition).any(|other| {
            other.marks.sent_to(one.partition) > one.marks.received_from(other.partition)
                || !has_named(one, other)
        })
    };
    let complete = all().filter(|one| one.activity == NodeActivity::Complete);
    complete.filter(has_more).map(|one| one.partition).collect()
}

/// Whether a partition has named everything to another partition since that was rebuilt.
fn has_named(from: &NodeStatus, to: &NodeStatus) -> bool {
    from.marks.told.get(&to.partition).copied().unwrap_or(0) >= to.marks.rebuilds
}

#[cfg(test)]
mod tests {
    use super::super::Mark;
    use super::*;

    fn status(partition: u16, activity: NodeActivity, sent: u64, received: u64) -> Option<NodeStatus> {
        let marks = |number| [(3 - partition, Mark { number, ..Mark::default() })].into();
        Some(NodeStatus {
            partition,
            epoch: 1,
            node: String::new(),
            time: String::new(),
            activity,
            total: 0,
            marks: Marks { sent: marks(sent), received: marks(received), ..Marks::default() },
            progress: NodeProgress::default(),
        })
    }

    #[test]
    fn it_is_quiet_when_all_are_and_all_has_arrived() {
        use NodeActivity::{Complete, Drained, Ended, Idle, Running};
        let ended = || Ended("limit".to_owned());
        for (a, b, expected) in [
            (status(1, Idle, 2, 3), status(2, Idle, 3, 2), true),
            (status(1, Idle, 2, 3), status(2, Complete, 3, 2), true),
            (status(1, Idle, 2, 3), status(2, Running, 3, 2), false),
            (status(1, Idle, 2, 3), status(2, Drained, 3, 2), false),
            (status(1, Idle, 2, 2), status(2, Idle, 3, 2), false),
            (status(1, Idle, 2, 3), status(2, Idle, 3, 1), false),
            (status(1, Idle, 2, 3), status(2, Complete, 3, 1), false),
            (status(1, Idle, 2, 3), status(2, ended(), 3, 1), true),
            (status(1, Idle, 2, 2), status(2, ended(), 3, 2), false),
            (status(1, Idle, 0, 0), None, false),
        ] {
            assert_eq!(is_quiet(&[a.clone(), b.clone()], &[]), expected, "{a:?} {b:?}");
        }
        // One partition had ended before something was sent to it.
        let all = [status(1, Idle, 3, 3), status(2, Complete, 3, 2)];
        assert_eq!((left(&all), is_quiet(&all, &[]), is_quiet(&all, &[2])), (vec![2], false, true));
        for (a, b) in [(Idle, Idle), (Idle, ended()), (Running, Idle)] {
            assert!(left(&[status(1, a, 3, 3), status(2, b, 3, 2)]).is_empty());
        }
        // One partition was rebuilt, and the other has yet to name everything again.
        let [mut a, mut b] = [status(1, Idle, 2, 3), status(2, Complete, 3, 2)];
        a.as_mut().unwrap().marks.rebuilds = 1;
        assert!(!is_quiet(&[a.clone(), b.clone()], &[]));
        assert_eq!(left(&[a.clone(), b.clone()]), [2]);
        b.as_mut().unwrap().marks.told.insert(1, 1);
        assert!(is_quiet(&[a, b], &[]));
    }
}
