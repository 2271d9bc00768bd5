//! A node that has a partition: what a crawl passes to it, and what it reports back.
//!
//! A node holds its partition as long as it has no newer epoch. It checks this before it writes, and the result holds
//! for a lease by the monotonic clock ([`super::Spans`]). A node that takes over a partition waits longer before it writes,
//! unless the previous node has ended, or used the same archive, whose lock this node now holds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use archive_base::remote::{self, MachineTime, Time};
use bytes::Bytes;
use chrono::SecondsFormat;
use tokio::sync::mpsc::{self, Receiver, UnboundedSender};

use super::member::place;
use super::status::{NodeActivity, NodeProgress, NodeStatus};
use super::store::{ClusterStore, Epoch};
use super::turns::Look;
use super::worker::StoreWorker;
use super::{Batch, ClusterError, Marks, Member, Partition};

/// Maximum number of events waiting for the crawl.
const EVENTS_MAX: usize = 64;

/// What a checkpoint has made durable.
#[derive(Debug)]
pub struct NodeCommit {
    /// Batches that are not known to be in the store, in order, without those passed before.
    pub outbox: Vec<(u16, u64, Bytes)>,
    /// What the node is doing.
    pub activity: NodeActivity,
    /// Units of cash in the books.
    pub total: u64,
    /// What was sent and received.
    pub marks: Marks,
    /// Numbers for the status.
    pub progress: NodeProgress,
}

/// A message to the crawl.
#[derive(Debug)]
pub enum NodeEvent {
    /// This node may write from now on.
    Begun,
    /// A batch is in the store.
    Sent(u16, u64),
    /// The next batch from a partition, and its length in bytes.
    Received(Box<Batch>, usize),
    /// Other partitions whose archives were rebuilt again, with their numbers of rebuilds.
    Rebuilt(BTreeMap<u16, u32>),
    /// Nothing is waiting here, but these partitions have work or were never begun.
    WaitsFor(Vec<u16>),
    /// Nothing is waiting here, but these partitions had ended and were sent something since. The duration is how long
    /// the node waits for them.
    Left(Vec<u16>, Duration),
    /// While this node's marks are as given, nothing is waiting anywhere.
    Quiet(Marks),
    /// These addresses of this node have been in the store since the given time.
    Announced(Vec<u64>, Instant),
    /// The addresses that other nodes ask, and the time.
    Looked(Look),
    /// These partitions have no work until others send some.
    Hungry(BTreeSet<u16>),
    /// This node is asked to end, so that another node can have its partition.
    Drain,
    /// The store does not answer; `None` if it does again.
    Trouble(Option<String>),
    /// The node cannot continue.
    Failed(ClusterError),
}

/// A message from a crawl to its node.
pub(super) enum ToNode {
    Commit(Box<NodeCommit>),
    Addresses(Vec<u64>),
}

/// A running node.
#[derive(Debug)]
pub struct ClusterNode {
    commits: UnboundedSender<ToNode>,
    events: Receiver<NodeEvent>,
    thread: Option<JoinHandle<()>>,
    /// Epoch of the node.
    pub epoch: u64,
    /// Whether it has to wait for the previous node; [`NodeEvent::Begun`] reports the end of the wait.
    pub waits: bool,
    /// Whether the crawl of the partition was unfinished when this node took over.
    pub is_unfinished: bool,
}

impl ClusterNode {
    /// Takes over the partition for the archive in a folder, which this process owns. `known` is the epoch of the last
    /// node that wrote to the archive.
    ///
    /// # Errors
    /// If the archive is older than what the partition has exchanged, or the store fails.
    pub fn start(member: &Member, archive: &Path, marks: &Marks, known: u64) -> Result<Self, ClusterError> {
        let mine =
            Epoch { node: member.node.clone(), place: place(archive), time: time_of_day(&MachineTime) };
        let runtime = remote::runtime()?;
        let known = (marks, known, member.after);
        let (shared, partition) = (member.shared.clone(), member.partition.clone());
        let (mut node, worker) = runtime.block_on(Self::take_over(shared, partition, mine, known))?;
        let work = move || runtime.block_on(worker.work());
        node.thread = Some(thread::Builder::new().name("cluster".to_owned()).spawn(work)?);
        Ok(node)
    }

    /// Takes over the partition; if `after` is given, only if it is the newest epoch. The returned worker, which talks
    /// to the store, has yet to be started.
    pub(super) async fn take_over(
        shared: ClusterStore,
        partition: Partition,
        mine: Epoch,
        (marks, known, after): (&Marks, u64, Option<u64>),
    ) -> Result<(Self, StoreWorker), ClusterError> {
        let (before, _) = shared.newest_epoch(partition.number).await?;
        if after.is_some_and(|after| after != before) {
            // Another machine has taken it over at the same time.
            return Err(ClusterError::Beginning(partition.number));
        }
        check_fresh(&shared, &partition, marks, known).await?;
        let last = shared.status(partition.number).await?.filter(|status| status.epoch == before);
        let is_over = |status: &NodeStatus| status.activity.is_over();
        let waits = before > 0
            && !last.as_ref().is_some_and(is_over)
            && !is_here(&shared, partition.number, before, &mine).await?;
        let is_unfinished = !last.is_some_and(|status| status.activity.has_had_enough());
        let epoch = before + 1;
        let held = shared.time.now();
        shared.take_epoch(partition.number, epoch, &mine).await?;
        let begins = if waits { shared.time.now() + shared.spans.takeover() } else { held };
        let (commits, queue) = mpsc::unbounded_channel();
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let own = Lease { partition, node: mine.node, epoch, known, held, begins };
        let worker = StoreWorker::new(shared, own, marks.clone(), queue, sender);
        Ok((Self { commits, events, thread: None, epoch, waits, is_unfinished }, worker))
    }

    /// Passes what a checkpoint has made durable.
    ///
    /// # Errors
    /// If the thread has ended; its last event has the reason.
    pub fn commit(&self, commit: NodeCommit) -> Result<(), ClusterError> {
        self.commits.send(ToNode::Commit(Box::new(commit))).map_err(|_| ClusterError::ThreadEnded)
    }

    /// Announces addresses to other nodes before they are asked. [`NodeEvent::Announced`] reports since when the others can
    /// see them.
    pub fn announce_addresses(&self, addresses: Vec<u64>) {
        // A thread that has failed has sent an event.
        drop(self.commits.send(ToNode::Addresses(addresses)));
    }

    /// Returns the next event, if one has arrived.
    #[must_use]
    pub fn event(&mut self) -> Option<NodeEvent> {
        self.events.try_recv().ok()
    }

    /// Sends the remaining data and ends. Returns the events received in the meantime.
    #[must_use]
    pub fn finish(mut self) -> Vec<NodeEvent> {
        let thread = self.thread.take();
        let (mut events, mut last) = (self.leave(), Vec::new());
        while let Some(event) = events.blocking_recv() {
            last.push(event);
        }
        // A thread that has failed has sent an event.
        drop(thread.map(JoinHandle::join));
        last
    }

    /// Passes nothing more to the worker, which sends the remaining data; then the events end.
    pub(super) fn leave(self) -> Receiver<NodeEvent> {
        self.events
    }
}

/// A partition that was taken over.
pub(super) struct Lease {
    pub(super) partition: Partition,
    pub(super) node: String,
    pub(super) epoch: u64,
    /// Epoch of the node that wrote to the archive before.
    pub(super) known: u64,
    /// Since when this node is sure to hold its partition.
    pub(super) held: Instant,
    /// When it may begin to write.
    pub(super) begins: Instant,
}

/// Refuses an archive that lacks something that its partition has exchanged, or that another archive has replaced: a
/// node publishes nothing before its archive has recorded its epoch.
pub(super) async fn check_fresh(
    shared: &ClusterStore,
    partition: &Partition,
    marks: &Marks,
    known: u64,
) -> Result<(), ClusterError> {
    let behind = |what: String| ClusterError::Behind { partition: partition.number, what };
    if let Some(status) = shared.status(partition.number).await?
        && (!status.marks.is_within(marks) || status.epoch > known)
    {
        return Err(behind(format!("by the status of epoch {}", status.epoch)));
    }
    for to in (1..=partition.count).filter(|to| *to != partition.number) {
        let last = shared.last_batch(partition.number, to).await?;
        if last > marks.sent_to(to) {
            return Err(behind(format!("number {last} to partition {to}")));
        }
    }
    Ok(())
}

/// Checks that an epoch is the newest of its partition. Returns whether its node is asked to end.
pub(super) async fn check_newest(
    shared: &ClusterStore,
    partition: u16,
    epoch: u64,
) -> Result<bool, ClusterError> {
    let (newest, is_asked) = shared.newest_epoch(partition).await?;
    if newest == epoch {
        return Ok(is_asked);
    }
    let node = shared.epoch(partition, newest).await?.map_or_else(String::new, |epoch| epoch.node);
    Err(ClusterError::Superseded { partition, epoch, newest, node })
}

/// Whether the previous node of the partition had the same archive, and hence has ended.
async fn is_here(
    shared: &ClusterStore,
    partition: u16,
    before: u64,
    mine: &Epoch,
) -> Result<bool, ClusterError> {
    let before = shared.epoch(partition, before).await?;
    Ok(before.is_some_and(|epoch| !mine.place.is_empty() && epoch.place == mine.place))
}

pub(super) fn time_of_day(time: &dyn Time) -> String {
    time.of_day().to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_is_over_at_once_has_published_its_end() {
        let store = tempfile::tempdir().unwrap();
        let url = format!("file://{}", store.path().display());
        for number in 1..=30 {
            let member = Member::find(&url, (number, 30), (None, None), None).unwrap();
            let node = ClusterNode::start(&member, store.path(), &Marks::default(), 0).unwrap();
            let activity = NodeActivity::Ended("limit".to_owned());
            let (marks, progress) = (Marks::default(), NodeProgress::default());
            node.commit(NodeCommit { outbox: Vec::new(), activity, total: 0, marks, progress }).unwrap();
            assert!(!node.finish().iter().any(|event| matches!(event, NodeEvent::Failed(_))));
            let status = remote::runtime().unwrap().block_on(member.shared.status(number)).unwrap();
            assert!(status.is_some(), "{number}");
        }
    }

    #[test]
    fn a_partition_that_another_node_has_begun_meanwhile_is_left_to_it() {
        let store = tempfile::tempdir().unwrap();
        let url = format!("file://{}", store.path().display());
        let member = Member::find(&url, (1, 2), (None, None), None).unwrap().after(0);
        let start = |member: &Member| ClusterNode::start(member, store.path(), &Marks::default(), 0);
        let first = start(&member).unwrap();
        assert!(matches!(start(&member), Err(ClusterError::Beginning(1))));
        member.check_epoch(1).unwrap();
        drop(first.finish());
        let later = Member { after: Some(1), ..member };
        assert_eq!(start(&later).unwrap().epoch, 2);
    }

    #[test]
    fn an_archive_that_another_one_has_replaced_is_refused() {
        let store = tempfile::tempdir().unwrap();
        let url = format!("file://{}", store.path().display());
        let member = Member::find(&url, (1, 2), (None, None), None).unwrap();
        // Both archives have the same marks, but the second one was written by the newest node.
        for (known, is_taken) in [(0, true), (0, false), (1, true), (1, false), (2, true)] {
            let node = match ClusterNode::start(&member, store.path(), &Marks::default(), known) {
                Ok(node) => node,
                Err(error) => {
                    assert!(matches!(error, ClusterError::Behind { .. }) && !is_taken, "{known}: {error}");
                    continue;
                }
            };
            assert!(is_taken, "{known}");
            let (marks, progress, activity) =
                (Marks::default(), NodeProgress::default(), NodeActivity::Drained);
            node.commit(NodeCommit { outbox: Vec::new(), activity, total: 0, marks, progress }).unwrap();
            assert!(!node.finish().iter().any(|event| matches!(event, NodeEvent::Failed(_))));
        }
    }
}
