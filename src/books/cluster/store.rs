//! The object store that the nodes share, and the names of its objects.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use archive_base::remote::{self, MachineTime, RemoteError, Time};
use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::batch::BatchFault;
use super::spans::{LEASE_SECONDS, LEASE_SECONDS_MIN};
use super::status::NodeStatus;
use super::turns::{Announced, Clock};
use super::{BATCH_BYTES_MAX, Batch, ClusterError, Division, Mode, PARTITIONS_MAX, Partition, Route, Spans};

/// The object with the number of partitions.
const CLUSTER: &str = "cluster.json";

/// Folder of the addresses that nodes ask.
const ADDRESSES: &str = "addresses";

/// Suffix of an epoch's name for a request to its node to end.
const DRAIN: &str = ".drain";

/// Maximum bytes of an object that is neither a batch nor a published file.
const SMALL_BYTES_MAX: u64 = 1 << 20;

/// Maximum number of attempts to read an object that is replaced by a newer one in the meantime.
const LOOKS_MAX: u32 = 5;

/// Interval between two looks for what another node does.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Content of `cluster.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cluster {
    /// Random name, drawn when the cluster began.
    pub(super) cluster: String,
    pub(super) partitions: u16,
    pub(super) mode: Mode,
    #[serde(default, skip_serializing_if = "Division::is_usual")]
    pub(super) by: Division,
    /// Seconds of a lease, if it is not the usual one; written by hand only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lease_seconds: Option<u8>,
}

impl Cluster {
    pub(super) fn spans(&self) -> Spans {
        self.lease_seconds.map_or_else(Spans::default, Spans::of)
    }

    pub(super) fn partition(&self, number: u16) -> Partition {
        let (cluster, by) = (self.cluster.clone(), self.by.clone());
        Partition { cluster, number, count: self.partitions, mode: self.mode, by }
    }
}

/// The node that has taken over a partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Epoch {
    pub(super) node: String,
    /// Identifies the folder of its archive, so that a node that holds its lock need not wait for the previous one;
    /// empty if unknown.
    pub(super) place: String,
    pub(super) time: String,
}

/// Lengths of the batches for a partition that are in the store, by sender and number.
pub(super) type IncomingBatches = BTreeMap<u16, BTreeMap<u64, u64>>;

/// The newest status of each partition, with its epoch and number.
pub(super) type StatusCache = BTreeMap<u16, ((u64, u64), NodeStatus)>;

/// The object store, and the clock for its timeouts.
#[derive(Clone, Debug)]
pub(super) struct ClusterStore {
    store: Arc<dyn ObjectStore>,
    pub(super) time: Arc<dyn Time>,
    /// The usual spans, until the cluster is known.
    pub(super) spans: Spans,
}

impl ClusterStore {
    pub(super) fn new(store: Arc<dyn ObjectStore>, time: Arc<dyn Time>) -> Self {
        Self { store, time, spans: Spans::default() }
    }

    /// Opens the store at a URL, with the clock of the machine.
    pub(super) fn open(url: &str) -> Result<Self, ClusterError> {
        Ok(Self::new(remote::open(url)?, Arc::new(MachineTime)))
    }

    /// Waits for a write for at most [`Spans::write_max`].
    async fn write<T>(
        &self,
        name: &str,
        done: impl Future<Output = Result<T, RemoteError>>,
    ) -> Result<T, RemoteError> {
        let late = || RemoteError::Failed { what: name.to_owned(), problem: "no answer in time".to_owned() };
        remote::within(&*self.time, self.spans.write_max(), done).await.ok_or_else(late)?
    }

    /// Writes an object; fails if it exists with other content.
    pub(super) async fn create(&self, name: &str, bytes: Bytes) -> Result<(), ClusterError> {
        match self.write(name, remote::create(&*self.store, &*self.time, &Path::from(name), bytes)).await {
            Err(RemoteError::Exists(_)) => Err(ClusterError::Conflict { name: name.to_owned() }),
            created => Ok(created?),
        }
    }

    pub(super) async fn read(&self, name: &str, bytes_max: u64) -> Result<Option<Bytes>, RemoteError> {
        match remote::read(&*self.store, &Path::from(name), bytes_max).await {
            Err(RemoteError::Missing(_)) => Ok(None),
            read => read.map(Some),
        }
    }

    async fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, ClusterError> {
        let Some(bytes) = self.read(name, SMALL_BYTES_MAX).await? else { return Ok(None) };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| damaged(name, &error))
    }

    pub(super) async fn delete(&self, name: &str) -> Result<(), ClusterError> {
        let path = Path::from(name);
        let delete = async { self.store.delete(&path).await.map_err(|error| RemoteError::of(name, error)) };
        match self.write(name, delete).await {
            Ok(()) | Err(RemoteError::Missing(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Lists the names below a folder, with their lengths.
    pub(super) async fn list(&self, folder: &str) -> Result<Vec<(String, u64)>, ClusterError> {
        let listed = remote::list(&*self.store, &Path::from(folder)).await?;
        let below = |name: &str| Some(name.strip_prefix(folder)?.strip_prefix('/')?.to_owned());
        Ok(listed.iter().filter_map(|object| Some((below(object.location.as_ref())?, object.size))).collect())
    }

    /// Returns the newest object in a folder, by the numbers that its name consists of, with these numbers.
    pub(super) async fn newest<const N: usize, T: DeserializeOwned>(
        &self,
        folder: &str,
    ) -> Result<Option<([u64; N], T)>, ClusterError> {
        for _ in 0..LOOKS_MAX {
            let names = self.list(folder).await?;
            let found = names.iter().filter_map(|(name, _)| Some((numbers(name)?, name)));
            let Some((numbers, name)) = found.max() else { return Ok(None) };
            if let Some(object) = self.read_json(&format!("{folder}/{name}")).await? {
                return Ok(Some((numbers, object)));
            }
        }
        Err(gone(folder.to_owned()))
    }

    /// Returns the highest number that is a name in a folder; 0 if there is none.
    async fn highest(&self, folder: &str) -> Result<u64, ClusterError> {
        Ok(self.list(folder).await?.iter().filter_map(|(name, _)| name.parse().ok()).max().unwrap_or(0))
    }

    /// Returns the cluster, if there is one.
    pub(super) async fn cluster(&self) -> Result<Option<Cluster>, ClusterError> {
        let found: Option<Cluster> = self.read_json(CLUSTER).await?;
        match found {
            Some(Cluster { partitions, .. }) if !(1..=PARTITIONS_MAX).contains(&partitions) => {
                Err(ClusterError::Damaged {
                    name: CLUSTER.to_owned(),
                    why: format!("it has {partitions} partitions"),
                })
            }
            Some(Cluster { lease_seconds: Some(seconds), .. })
                if !(LEASE_SECONDS_MIN..=LEASE_SECONDS).contains(&seconds) =>
            {
                Err(ClusterError::Damaged {
                    name: CLUSTER.to_owned(),
                    why: format!("its leases last {seconds} s"),
                })
            }
            Some(Cluster { partitions, by, .. }) if by.outside(partitions).is_some() => {
                let domain = by.outside(partitions).unwrap_or_default();
                let why = format!("it gives {domain} to a partition that it does not have");
                Err(ClusterError::Damaged { name: CLUSTER.to_owned(), why })
            }
            found => Ok(found),
        }
    }

    /// Returns the cluster, or an error with `url` if there is none.
    pub(super) async fn begun(&self, url: &str) -> Result<Cluster, ClusterError> {
        self.cluster().await?.ok_or_else(|| ClusterError::None(url.to_owned()))
    }

    /// Returns the cluster. If there is none, begins it after checking that the store is reliable.
    pub(super) async fn join(&self, wanted: &Cluster) -> Result<Cluster, ClusterError> {
        if let Some(found) = self.cluster().await? {
            return Ok(found);
        }
        let bytes = json(CLUSTER, wanted)?;
        let path = Path::from(CLUSTER);
        self.write(CLUSTER, remote::check_creation(&*self.store, &*self.time, &path, bytes)).await?;
        self.cluster().await?.ok_or_else(|| RemoteError::Missing(CLUSTER.to_owned()).into())
    }

    /// Returns the newest epoch of a partition, 0 if it was never taken, and whether its node is asked to end.
    pub(super) async fn newest_epoch(&self, partition: u16) -> Result<(u64, bool), ClusterError> {
        let names = self.list(&format!("epochs/{partition}")).await?;
        let newest = names.iter().filter_map(|(name, _)| name.parse().ok()).max().unwrap_or(0);
        let asked = format!("{newest:010}{DRAIN}");
        Ok((newest, names.iter().any(|(name, _)| *name == asked)))
    }

    /// Asks the node of an epoch to end, so that another node, `heir` if given, can have the partition.
    pub(super) async fn ask_to_end(
        &self,
        partition: u16,
        epoch: u64,
        heir: Option<&str>,
    ) -> Result<(), ClusterError> {
        let name = format!("{}{DRAIN}", epoch_name(partition, epoch));
        self.put(&name, Bytes::copy_from_slice(heir.unwrap_or_default().as_bytes())).await
    }

    /// Returns the newest epochs of all partitions that were ever taken, with the length of the request to end, 0 if
    /// there is none.
    pub(super) async fn newest_epochs(&self) -> Result<BTreeMap<u16, (u64, u64)>, ClusterError> {
        let mut newest = BTreeMap::new();
        for (name, bytes) in self.list("epochs").await? {
            let Some((partition, number)) = name.split_once('/') else { continue };
            let (number, bytes) = number.strip_suffix(DRAIN).map_or((number, 0), |number| (number, bytes));
            if let (Ok(partition), Ok(number)) = (partition.parse(), number.parse::<u64>()) {
                let most = newest.entry(partition).or_default();
                *most = (number, bytes).max(*most);
            }
        }
        Ok(newest)
    }

    /// Returns the node that is to have a partition next, if the request to end names one.
    pub(super) async fn heir(&self, partition: u16, epoch: u64) -> Result<Option<String>, ClusterError> {
        let asked = self.read(&format!("{}{DRAIN}", epoch_name(partition, epoch)), SMALL_BYTES_MAX).await?;
        Ok(asked.map(|name| String::from_utf8_lossy(&name).into_owned()).filter(|name| !name.is_empty()))
    }

    pub(super) async fn epoch(&self, partition: u16, number: u64) -> Result<Option<Epoch>, ClusterError> {
        self.read_json(&epoch_name(partition, number)).await
    }

    /// Takes over a partition.
    pub(super) async fn take_epoch(
        &self,
        partition: u16,
        number: u64,
        epoch: &Epoch,
    ) -> Result<(), ClusterError> {
        let name = epoch_name(partition, number);
        match self.create(&name, json(&name, epoch)?).await {
            Err(ClusterError::Conflict { .. }) => Err(ClusterError::Beginning(partition)),
            taken => taken,
        }
    }

    /// Returns the newest status of a partition.
    pub(super) async fn status(&self, partition: u16) -> Result<Option<NodeStatus>, ClusterError> {
        let newest = self.newest::<2, _>(&format!("status/{partition}")).await?;
        Ok(newest.map(|(_, status)| status))
    }

    /// Returns the status of every partition, in order. `known` caches them; only changed ones are read, because a
    /// status never changes under its name.
    pub(super) async fn statuses(
        &self,
        count: u16,
        known: &mut StatusCache,
    ) -> Result<Vec<Option<NodeStatus>>, ClusterError> {
        for _ in 0..LOOKS_MAX {
            let mut newest: BTreeMap<u16, (u64, u64)> = BTreeMap::new();
            for (name, _) in self.list("status").await? {
                if let Some([partition, epoch, number]) = numbers(&name)
                    && let Ok(partition) = u16::try_from(partition)
                {
                    let most = newest.entry(partition).or_default();
                    *most = (epoch, number).max(*most);
                }
            }
            let mut is_whole = true;
            for (&partition, &(epoch, number)) in &newest {
                if known.get(&partition).is_some_and(|(version, _)| *version == (epoch, number)) {
                    continue;
                }
                match self.read_json(&status_name(partition, epoch, number)).await? {
                    Some(status) => drop(known.insert(partition, ((epoch, number), status))),
                    None => is_whole = false,
                }
            }
            if is_whole {
                known.retain(|partition, _| newest.contains_key(partition));
                let status = |partition| known.get(&partition).map(|(_, status)| status.clone());
                return Ok((1..=count).map(status).collect());
            }
        }
        Err(gone("status".to_owned()))
    }

    /// Publishes a status, each time under a higher number. Returns the time of the store's clock, if known.
    ///
    /// An abandoned write may still arrive. Under a common name it would undo newer statuses; under its own number it
    /// no longer counts.
    pub(super) async fn publish(
        &self,
        status: &NodeStatus,
        number: u64,
    ) -> Result<Option<Clock>, ClusterError> {
        let name = status_name(status.partition, status.epoch, number);
        let begun = self.time.now();
        self.put(&name, json(&name, status)?).await?;
        let ended = self.time.now();
        let path = Path::from(name.as_str());
        let head = async { self.store.head(&path).await.map_err(|error| RemoteError::of(&name, error)) };
        let written = self.write(&name, head).await?.last_modified.timestamp();
        Ok(u64::try_from(written).ok().and_then(|second| Clock::read(begun, ended, second)))
    }

    /// Calls `look` every half second until it finds something; returns `None` after `patience`.
    pub(super) async fn wait_for<T>(
        &self,
        patience: Duration,
        look: impl AsyncFn() -> Result<Option<T>, ClusterError>,
    ) -> Result<Option<T>, ClusterError> {
        let begun = self.time.now();
        loop {
            let found = look().await?;
            if found.is_some() || self.time.now() >= begun + patience {
                return Ok(found);
            }
            self.time.sleep(LOOK_EVERY).await;
        }
    }

    async fn put(&self, name: &str, bytes: Bytes) -> Result<(), ClusterError> {
        let path = Path::from(name);
        let put =
            async { self.store.put(&path, bytes.into()).await.map_err(|error| RemoteError::of(name, error)) };
        self.write(name, put).await?;
        Ok(())
    }

    /// Removes the statuses of a node with lower numbers.
    pub(super) async fn forget_statuses(&self, node: (u16, u64), number: u64) -> Result<(), ClusterError> {
        self.delete_below(&status_folder(node.0, node.1), number).await
    }

    pub(super) async fn delete_below(&self, folder: &str, limit: u64) -> Result<(), ClusterError> {
        for (name, _) in self.list(folder).await? {
            if name.parse::<u64>().is_ok_and(|number| number < limit) {
                self.delete(&format!("{folder}/{name}")).await?;
            }
        }
        Ok(())
    }

    /// Publishes the growing list of a node's addresses; the number of the object is their count.
    pub(super) async fn announce_addresses(
        &self,
        (partition, epoch): (u16, u64),
        addresses: &[u64],
    ) -> Result<(), ClusterError> {
        let bytes: Vec<u8> = addresses.iter().flat_map(|address| address.to_le_bytes()).collect();
        let name = numbered(&addresses_folder(partition, epoch), addresses.len() as u64);
        self.put(&name, bytes.into()).await
    }

    /// Removes the lists of a node with fewer than `count` addresses.
    pub(super) async fn forget_addresses(&self, node: (u16, u64), count: u64) -> Result<(), ClusterError> {
        self.delete_below(&addresses_folder(node.0, node.1), count).await
    }

    /// Returns the nodes that have announced addresses, by partition and epoch, with the number of addresses.
    pub(super) async fn announced_addresses(&self) -> Result<Announced, ClusterError> {
        let mut announced = Announced::new();
        for (name, _) in self.list(ADDRESSES).await? {
            if let Some([partition, epoch, count]) = numbers(&name)
                && let Ok(partition) = u16::try_from(partition)
            {
                let most = announced.entry((partition, epoch)).or_default();
                *most = count.max(*most);
            }
        }
        Ok(announced)
    }

    /// Returns the addresses of a node from its list of `count` addresses.
    pub(super) async fn addresses(
        &self,
        (partition, epoch): (u16, u64),
        count: u64,
    ) -> Result<Vec<u64>, ClusterError> {
        let name = numbered(&addresses_folder(partition, epoch), count);
        let bytes = self.read(&name, SMALL_BYTES_MAX).await?.ok_or_else(|| gone(name.clone()))?;
        let (addresses, rest) = bytes.as_chunks();
        if !rest.is_empty() {
            return Err(ClusterError::Damaged { name, why: "it ends within an address".to_owned() });
        }
        Ok(addresses.iter().map(|address| u64::from_le_bytes(*address)).collect())
    }

    /// Returns the batches for a partition that are in the store; objects with other names are ignored.
    pub(super) async fn incoming(&self, to: u16) -> Result<IncomingBatches, ClusterError> {
        let mut incoming = IncomingBatches::new();
        for (name, bytes) in self.list(&format!("exchange/{to}")).await? {
            if let Some([from, number]) = numbers(&name)
                && let Ok(from) = u16::try_from(from)
            {
                incoming.entry(from).or_default().insert(number, bytes);
            }
        }
        Ok(incoming)
    }

    /// Returns the number of the last batch from one partition to another that is in the store; 0 if there is none.
    pub(super) async fn last_batch(&self, from: u16, to: u16) -> Result<u64, ClusterError> {
        self.highest(&format!("exchange/{to}/{from}")).await
    }

    /// Returns the bytes of a batch.
    pub(super) async fn batch_bytes(&self, route: &Route) -> Result<Option<Bytes>, ClusterError> {
        match self.read(&route.name(), BATCH_BYTES_MAX as u64).await {
            Err(RemoteError::TooLong { .. }) => Err(route.refuse(BatchFault::TooLong).into()),
            read => Ok(read?),
        }
    }

    /// Returns the batch of `route`, if it is there; `stored` has the listed batches of its sender.
    pub(super) async fn next_batch(
        &self,
        route: &Route,
        stored: &BTreeMap<u64, u64>,
        partition: &Partition,
    ) -> Result<Option<(Batch, usize)>, ClusterError> {
        let Some(&last) = stored.keys().next_back().filter(|last| **last >= route.number) else {
            return Ok(None);
        };
        // A listing may have missed an object while it was being written; only reading it is conclusive.
        let bytes = self.batch_bytes(route).await?.ok_or_else(|| route.refuse(BatchFault::Missing(last)))?;
        Ok(Some((Batch::read(&bytes, route, partition)?, bytes.len())))
    }
}

fn damaged(name: &str, error: &serde_json::Error) -> ClusterError {
    ClusterError::Damaged { name: name.to_owned(), why: error.to_string() }
}

/// Error for a listed object that is gone because a newer one has replaced it; a retry sees the newer one.
pub(super) fn gone(what: String) -> ClusterError {
    RemoteError::Failed { what, problem: "it is listed, but gone when it is read".to_owned() }.into()
}

pub(super) fn json(name: &str, value: &impl Serialize) -> Result<Bytes, ClusterError> {
    Ok(serde_json::to_vec(value).map_err(|error| damaged(name, &error))?.into())
}

/// Parses the numbers that a name consists of.
fn numbers<const N: usize>(name: &str) -> Option<[u64; N]> {
    let numbers: Option<Vec<u64>> = name.split('/').map(|number| number.parse().ok()).collect();
    numbers?.try_into().ok()
}

fn epoch_name(partition: u16, number: u64) -> String {
    format!("epochs/{partition}/{number:010}")
}

fn addresses_folder(partition: u16, epoch: u64) -> String {
    format!("{ADDRESSES}/{partition}/{epoch:010}")
}

fn status_folder(partition: u16, epoch: u64) -> String {
    format!("status/{partition}/{epoch:010}")
}

fn status_name(partition: u16, epoch: u64, number: u64) -> String {
    numbered(&status_folder(partition, epoch), number)
}

pub(super) fn numbered(folder: &str, number: u64) -> String {
    format!("{folder}/{number:010}")
}
