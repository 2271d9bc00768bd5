//! Finds partitions without a node, by observing a cluster over time.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use archive_base::remote;

use super::status::left;
use super::store::{ClusterStore, StatusCache};
use super::{ClusterError, Member, NodeStatus};

/// A node that has published nothing for this long is gone; a running node publishes its status at least every 30
/// seconds.
pub(crate) const SILENT_AFTER: Duration = Duration::from_secs(120);

/// How long a partition is reserved for the node named as its heir.
const HEIR_TIME: Duration = Duration::from_secs(60);

/// A partition that a node may take over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vacancy {
    /// Number of the partition.
    pub number: u16,
    /// Epoch of the last node; 0 if the partition was never begun.
    pub epoch: u64,
    /// Epoch of the last node that published a status. An archive that knows only older epochs must not be continued.
    pub published: u64,
    /// Whether the last node is surely gone. If not, the partition may be taken over only by a node that knows this
    /// from elsewhere.
    pub is_sure: bool,
    /// The node that the partition is reserved for.
    pub heir: Option<String>,
}

/// What was observed of the partitions of a cluster.
#[derive(Debug)]
pub struct Vacancies {
    shared: ClusterStore,
    count: u16,
    known: StatusCache,
    /// By partition, the epoch and number of its newest status, and since when it is the newest.
    pulses: HashMap<u16, ((u64, u64), Instant)>,
}

/// The result of a look at all partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VacancyView {
    /// Partitions that may be without a node.
    pub vacant: Vec<Vacancy>,
    /// Whether every node has ended, for reasons that do not require another one.
    pub is_over: bool,
}

impl Vacancies {
    /// Observes the cluster of a member.
    #[must_use]
    pub fn of(member: &Member) -> Self {
        let shared = member.shared.clone();
        Self { shared, count: member.partition.count, known: StatusCache::new(), pulses: HashMap::new() }
    }

    /// Looks at all partitions.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn look(&mut self, now: Instant) -> Result<VacancyView, ClusterError> {
        let Self { shared, count, known, pulses } = self;
        let (all, epochs) = remote::runtime()?.block_on(async {
            let all = shared.statuses(*count, known).await?;
            Ok::<_, ClusterError>((all, shared.newest_epochs().await?))
        })?;
        let left = left(&all);
        let mut view = VacancyView { vacant: Vec::new(), is_over: true };
        for number in 1..=*count {
            let (epoch, asked_bytes) = epochs.get(&number).copied().unwrap_or((0, 0));
            let last = known.get(&number);
            let published = last.map_or(0, |((epoch, _), _)| *epoch);
            let last = last.filter(|_| published == epoch);
            let newest = (epoch, last.map_or(0, |((_, number), _)| *number));
            let status = last.map(|(_, status)| status);
            let pulse = pulses.entry(number).or_insert((newest, now));
            if pulse.0 != newest {
                *pulse = (newest, now);
            }
            let is_silent = now.saturating_duration_since(pulse.1) >= SILENT_AFTER;
            let is_left = left.contains(&number);
            view.is_over &= !is_left && status.is_some_and(|status| status.activity.has_had_enough());
            if let Some(is_sure) = is_vacant(epoch, status, is_silent, is_left) {
                let is_promised = asked_bytes > 0 && now.saturating_duration_since(pulse.1) < HEIR_TIME;
                let heir =
                    if is_promised { remote::runtime()?.block_on(shared.heir(number, epoch))? } else { None };
                view.vacant.push(Vacancy { number, epoch, published, is_sure, heir });
            }
        }
        Ok(view)
    }

    /// Asks the node of a partition to end.
    ///
    /// # Errors
    /// If the store fails.
    pub fn ask_to_end(&self, partition: u16) -> Result<(), ClusterError> {
        remote::runtime()?.block_on(async {
            let (epoch, _) = self.shared.newest_epoch(partition).await?;
            self.shared.ask_to_end(partition, epoch, None).await
        })
    }
}

/// Returns, if a partition may be without a node, whether this is sure; `None` if it has a node or needs none.
/// `is_left` if it got work after it had ended as complete.
fn is_vacant(epoch: u64, status: Option<&NodeStatus>, is_silent: bool, is_left: bool) -> Option<bool> {
    match status.map(|status| &status.activity) {
        _ if epoch == 0 => Some(true),
        Some(activity) if activity.is_over() => (is_left || !activity.has_had_enough()).then_some(true),
        _ => Some(is_silent),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Marks, NodeActivity, NodeProgress};
    use super::*;

    #[test]
    fn a_partition_is_vacant_when_its_node_is_gone_and_not_done() {
        let status = |activity| NodeStatus {
            partition: 1,
            epoch: 1,
            node: String::new(),
            time: String::new(),
            activity,
            total: 0,
            marks: Marks::default(),
            progress: NodeProgress::default(),
        };
        for (activity, is_silent, expected) in [
            (NodeActivity::Running, false, Some(false)),
            (NodeActivity::Running, true, Some(true)),
            (NodeActivity::Idle, true, Some(true)),
            (NodeActivity::Drained, false, Some(true)),
            (NodeActivity::Ended("stopped".to_owned()), false, Some(true)),
            (NodeActivity::Ended("limit".to_owned()), true, None),
            (NodeActivity::Complete, true, None),
        ] {
            assert_eq!(
                is_vacant(1, Some(&status(activity.clone())), is_silent, false),
                expected,
                "{activity:?}"
            );
        }
        assert_eq!(is_vacant(1, Some(&status(NodeActivity::Complete)), false, true), Some(true));
        let begun = |epoch| is_vacant(epoch, None, false, false);
        assert_eq!((begun(0), begun(1)), (Some(true), Some(false)));
    }
}
