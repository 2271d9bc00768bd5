//! Audits a cluster: whether all cash is there, and what is in flight.

use archive_base::remote;
use archive_math::importance::Cash;
use serde::Serialize;

use super::store::{ClusterStore, StatusCache};
use super::{Batch, ClusterError, ClusterMeasures, Division, Mode, NodeStatus, Partition, Route};

/// Maximum number of reads of the store while something moves in between.
const LOOKS_MAX: u32 = 20;

/// What is in flight from one partition to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct InFlight {
    /// The sending partition.
    pub from: u16,
    /// The receiving partition.
    pub to: u16,
    /// Number of batches.
    pub batches: u64,
    /// Units of cash according to both statuses.
    pub cash: i128,
    /// Units of cash in batches that are in the store.
    pub found: u128,
    /// Number of batches that the sender has yet to write.
    pub unwritten: u64,
}

/// The state of a cluster.
#[derive(Clone, Debug, Serialize)]
pub struct ClusterAudit {
    /// Number of partitions.
    pub partitions: u16,
    /// The mode.
    pub mode: Mode,
    /// What decides which partition a site belongs to.
    pub by: Division,
    /// Statuses of the partitions, in order; `None` if a partition was never begun.
    pub told: Vec<Option<NodeStatus>>,
    /// How well the nodes divide the work.
    pub measures: ClusterMeasures,
    /// What is in flight.
    pub in_flight: Vec<InFlight>,
    /// Units of cash that must exist.
    pub expected: u128,
    /// Units of cash in the books of all partitions and in batches.
    pub found: u128,
    /// Partitions whose books differ from their initial cash plus what they received, less what they sent.
    pub wrong_books: Vec<u16>,
    /// Whether everything is there, to the last unit; `None` while batches have yet to be written.
    pub is_exact: Option<bool>,
}

/// Audits a cluster.
///
/// # Errors
/// If the store cannot be read, or there is no cluster.
pub fn audit(url: &str) -> Result<ClusterAudit, ClusterError> {
    let shared = ClusterStore::open(url)?;
    let audited = remote::runtime()?.block_on(audit_in(&shared))?;
    audited.ok_or_else(|| ClusterError::None(url.to_owned()))
}

/// Audits the cluster in a store; returns `None` if there is none.
pub(super) async fn audit_in(shared: &ClusterStore) -> Result<Option<ClusterAudit>, ClusterError> {
    let Some(cluster) = shared.cluster().await? else { return Ok(None) };
    let partition = cluster.partition(1);
    let (mut looks, mut known) = (0, StatusCache::new());
    loop {
        looks += 1;
        let statuses = shared.statuses(cluster.partitions, &mut known).await?;
        let in_flight = look(shared, &partition, &statuses).await?;
        // A batch may have been received before its sender published it, or since the read; the next look sees both.
        let has_moved = shared.statuses(cluster.partitions, &mut known).await? != statuses;
        if !has_moved || looks >= LOOKS_MAX {
            return Ok(Some(add_up(&partition, statuses, in_flight)));
        }
    }
}

/// Returns what is in flight according to the statuses, and how much of it is in the store.
async fn look(
    shared: &ClusterStore,
    partition: &Partition,
    statuses: &[Option<NodeStatus>],
) -> Result<Vec<InFlight>, ClusterError> {
    let mut in_flight = Vec::new();
    for sender in statuses.iter().flatten() {
        for (&to, sent) in &sender.marks.sent {
            let receiver = statuses.get(usize::from(to).wrapping_sub(1)).and_then(Option::as_ref);
            let received = receiver.and_then(|status| status.marks.received.get(&sender.partition).copied());
            let received = received.unwrap_or_default();
            if received == *sent {
                continue;
            }
            let cash = i128::try_from(sent.cash).unwrap_or(i128::MAX)
                - i128::try_from(received.cash).unwrap_or(i128::MAX);
            let batches = sent.number.saturating_sub(received.number);
            let mut pair = InFlight { from: sender.partition, to, batches, cash, found: 0, unwritten: 0 };
            for number in received.number + 1..=sent.number {
                let route = Route { cluster: partition.cluster.clone(), from: sender.partition, to, number };
                match shared.batch_bytes(&route).await? {
                    Some(bytes) => {
                        let batch = Batch::read_any(&bytes, &route).map_err(|why| route.refuse(why))?;
                        pair.found += u128::from(batch.cash());
                    }
                    None => pair.unwritten += 1,
                }
            }
            in_flight.push(pair);
        }
    }
    Ok(in_flight)
}

fn add_up(
    partition: &Partition,
    statuses: Vec<Option<NodeStatus>>,
    in_flight: Vec<InFlight>,
) -> ClusterAudit {
    let initial = partition.initial_cash();
    let books = |status: &Option<NodeStatus>| {
        u128::from(status.as_ref().map_or(initial.units(), |status| status.total))
    };
    let wrong = |status: &&NodeStatus| status.marks.total(initial).map(Cash::units) != Some(status.total);
    let expected = u128::from(initial.units()) * u128::from(partition.count);
    let found =
        statuses.iter().map(books).sum::<u128>() + in_flight.iter().map(|pair| pair.found).sum::<u128>();
    let wrong_books: Vec<u16> =
        statuses.iter().flatten().filter(wrong).map(|status| status.partition).collect();
    let is_unwritten = in_flight.iter().any(|pair| pair.unwritten > 0);
    let is_same = in_flight.iter().all(|pair| u128::try_from(pair.cash) == Ok(pair.found));
    let is_exact = found == expected && wrong_books.is_empty() && is_same;
    ClusterAudit {
        partitions: partition.count,
        mode: partition.mode,
        by: partition.by.clone(),
        measures: ClusterMeasures::of(partition.mode, statuses.iter().flatten()),
        told: statuses,
        in_flight,
        expected,
        found,
        wrong_books,
        is_exact: if is_unwritten { None } else { Some(is_exact) },
    }
}
