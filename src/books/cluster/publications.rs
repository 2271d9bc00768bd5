//! Files for all nodes, published under ascending version numbers. This module does not interpret them.
//!
//! Of a list of orders all versions count, in ascending order, and each partition reports its progress.

use std::collections::BTreeMap;
use std::fmt;

use archive_base::remote;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::store::{Cluster, ClusterStore, gone, json, numbered};
use super::{ClusterError, Partition};

/// Folder of files that hold on all nodes.
const FILES: &str = "files";

/// Folder of the archives' reports about orders.
const REPORTS: &str = "reports";

/// Maximum number of published files.
pub const FILES_MAX: usize = 1000;

/// Maximum number of orders in a list.
pub const ORDERS_MAX: u64 = 10_000;

/// The newest version of a published file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileVersion {
    /// Version number, from 1.
    pub number: u64,
    /// Whether the file was removed, which an empty object indicates.
    pub is_removed: bool,
}

impl fmt::Display for FileVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {}{}", self.number, if self.is_removed { " (removed)" } else { "" })
    }
}

/// The published files of a cluster.
#[derive(Debug)]
pub struct Publications {
    shared: ClusterStore,
    cluster: Cluster,
    /// Newest versions, by file name.
    pub newest: BTreeMap<String, FileVersion>,
}

impl Publications {
    /// Lists the published files of a cluster.
    ///
    /// # Errors
    /// If there is no cluster, the store fails, or there are more than [`FILES_MAX`] files.
    pub fn look(url: &str) -> Result<Self, ClusterError> {
        let shared = ClusterStore::open(url)?;
        let (cluster, listed) = remote::runtime()?.block_on(async {
            Ok::<_, ClusterError>((shared.begun(url).await?, shared.list(FILES).await?))
        })?;
        let mut newest: BTreeMap<String, FileVersion> = BTreeMap::new();
        for (name, bytes) in listed {
            let Some((file, number)) = name.split_once('/') else { continue };
            let Ok(number) = number.parse() else { continue };
            if newest.get(file).is_none_or(|known| known.number < number) {
                newest.insert(file.to_owned(), FileVersion { number, is_removed: bytes == 0 });
            }
        }
        if newest.len() > FILES_MAX {
            return Err(ClusterError::TooManyFiles);
        }
        Ok(Self { shared, cluster, newest })
    }

    /// Publishes a new version of a file, and returns its number. An empty version removes the file.
    ///
    /// # Errors
    /// If the store fails, another program has just published the same version, or there are [`FILES_MAX`] other files.
    pub fn publish(&mut self, file: &str, bytes: Vec<u8>) -> Result<u64, ClusterError> {
        if self.newest.len() >= FILES_MAX && !self.newest.contains_key(file) {
            return Err(ClusterError::TooManyFiles);
        }
        let number = self.number(file).saturating_add(1);
        let is_removed = bytes.is_empty();
        let name = object(file, number);
        match remote::runtime()?.block_on(self.shared.create(&name, bytes.into())) {
            Err(ClusterError::Conflict { .. }) => {
                return Err(ClusterError::Published(file.to_owned(), number));
            }
            created => created?,
        }
        self.newest.insert(file.to_owned(), FileVersion { number, is_removed });
        Ok(number)
    }

    /// Returns the number of the newest version of a file; 0 if it was never published.
    fn number(&self, file: &str) -> u64 {
        self.newest.get(file).map_or(0, |version| version.number)
    }

    /// Returns the bytes of the newest version of a file.
    ///
    /// # Errors
    /// If it is longer than `bytes_max`, or the store fails.
    pub fn read(&self, file: &str, bytes_max: u64) -> Result<Vec<u8>, ClusterError> {
        let name = object(file, self.number(file));
        let bytes = remote::runtime()?.block_on(self.shared.read(&name, bytes_max))?;
        Ok(bytes.ok_or_else(|| gone(name))?.into())
    }

    /// Returns the partition with this number.
    #[must_use]
    pub fn partition(&self, number: u16) -> Partition {
        self.cluster.partition(number)
    }

    /// Returns the number of the newest order in a list; 0 if there is none.
    ///
    /// # Errors
    /// If there are more than [`ORDERS_MAX`].
    pub fn newest_order(&self, list: &str) -> Result<u64, ClusterError> {
        let number = self.number(list);
        if number > ORDERS_MAX { Err(ClusterError::TooManyOrders(list.to_owned())) } else { Ok(number) }
    }

    /// Returns the bytes of an order; `None` if it was removed.
    ///
    /// # Errors
    /// If it is longer than `bytes_max`, or the store fails.
    pub fn order(&self, list: &str, number: u64, bytes_max: u64) -> Result<Option<Vec<u8>>, ClusterError> {
        let order = remote::runtime()?.block_on(self.shared.read(&object(list, number), bytes_max))?;
        Ok(order.map(Vec::from).filter(|bytes| !bytes.is_empty()))
    }

    /// Appends an order to a list, with a number greater than all existing ones and `carried_out`. Returns its number.
    ///
    /// # Errors
    /// As [`Publications::publish`], and if there are [`ORDERS_MAX`] orders.
    pub fn add_order(&mut self, list: &str, bytes: &[u8], carried_out: u64) -> Result<u64, ClusterError> {
        let last = self.newest_order(list)?.max(carried_out);
        if last >= ORDERS_MAX {
            return Err(ClusterError::TooManyOrders(list.to_owned()));
        }
        let mut taken = (last > 0).then_some(last);
        loop {
            if let Some(number) = taken {
                self.newest.insert(list.to_owned(), FileVersion { number, is_removed: false });
            }
            match self.publish(list, bytes.to_vec()) {
                // Another order was added in the meantime, and precedes this one.
                Err(ClusterError::Published(_, number)) if number < ORDERS_MAX => taken = Some(number),
                published => return published,
            }
        }
    }

    /// Returns the latest reports of the partitions' archives.
    ///
    /// # Errors
    /// If the store fails, or a report is damaged.
    pub fn reports<T: DeserializeOwned>(&self) -> Result<BTreeMap<u16, T>, ClusterError> {
        remote::runtime()?.block_on(async {
            let mut reports = BTreeMap::new();
            for partition in 1..=self.cluster.partitions {
                if let Some(([_], report)) = self.shared.newest(&report_folder(partition)).await? {
                    reports.insert(partition, report);
                }
            }
            Ok(reports)
        })
    }

    /// Publishes a report about a partition. `epoch` is that of the last node that wrote to the archive. Does nothing
    /// if the report is unchanged, or if a newer node has another archive.
    ///
    /// # Errors
    /// If the store fails.
    pub fn add_report<T>(&self, partition: u16, epoch: u64, report: &T) -> Result<(), ClusterError>
    where
        T: Serialize + DeserializeOwned + PartialEq,
    {
        remote::runtime()?.block_on(async {
            let folder = report_folder(partition);
            let newest = self.shared.newest::<1, T>(&folder).await?;
            if newest.as_ref().is_some_and(|(_, known)| known == report)
                || self.shared.newest_epoch(partition).await?.0 > epoch
            {
                return Ok(());
            }
            let number = newest.map_or(0, |([number], _)| number).saturating_add(1);
            let name = numbered(&folder, number);
            match self.shared.create(&name, json(&name, report)?).await {
                // Another program has just reported for the same archive; anything missing is reported next time.
                Err(ClusterError::Conflict { .. }) => Ok(()),
                Err(error) => Err(error),
                Ok(()) => self.shared.delete_below(&folder, number).await,
            }
        })
    }
}

/// Name of a version of a file, or of an order of a list.
fn object(file: &str, version: u64) -> String {
    numbered(&format!("{FILES}/{file}"), version)
}

fn report_folder(partition: u16) -> String {
    format!("{REPORTS}/{partition}")
}
