//! Files that hold on all nodes, published under ever higher numbers; what they say is no matter of this room.
//!
//! Of a list of orders all versions count, in their order, and each partition reports how far it is.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::shared::{Cluster, Shared};
use super::{ClusterError, Partition};
use crate::remote::{self, MachineTime};

/// Files that can be published, at most.
pub const FILES_MAX: usize = 1000;

/// Orders in a list, at most.
pub const ORDERS_MAX: u64 = 10_000;

/// The newest version of a published file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// From 1.
    pub number: u64,
    /// Whether it says that the file is no more: an empty object does.
    pub is_removed: bool,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {}{}", self.number, if self.is_removed { " (removed)" } else { "" })
    }
}

/// What is published in a cluster.
#[derive(Debug)]
pub struct Publications {
    shared: Shared,
    cluster: Cluster,
    /// The newest versions by the names of files.
    pub newest: BTreeMap<String, Version>,
}

impl Publications {
    /// Looks at a cluster that has begun.
    ///
    /// # Errors
    /// When there is no cluster, the store fails, and when there are more than [`FILES_MAX`] files.
    pub fn look(url: &str) -> Result<Self, ClusterError> {
        let shared = Shared::new(remote::open(url)?, Arc::new(MachineTime));
        let (cluster, newest) = remote::runtime()?.block_on(async {
            Ok::<_, ClusterError>((shared.begun(url).await?, shared.published().await?))
        })?;
        if newest.len() > FILES_MAX {
            return Err(ClusterError::TooManyFiles);
        }
        Ok(Self { shared, cluster, newest })
    }

    /// Publishes a file, which replaces its versions before; returns the number of the new one. Without bytes, the file is no more.
    ///
    /// # Errors
    /// When the store fails, somebody else publishes the file at this moment, and when there are [`FILES_MAX`] others.
    pub fn publish(&mut self, file: &str, bytes: Vec<u8>) -> Result<u64, ClusterError> {
        if self.newest.len() >= FILES_MAX && !self.newest.contains_key(file) {
            return Err(ClusterError::TooManyFiles);
        }
        let number = self.number(file).saturating_add(1);
        let is_removed = bytes.is_empty();
        remote::runtime()?.block_on(self.shared.publish_file(file, number, bytes.into()))?;
        self.newest.insert(file.to_owned(), Version { number, is_removed });
        Ok(number)
    }

    /// The number of the newest version of a file; 0 if it was never published.
    fn number(&self, file: &str) -> u64 {
        self.newest.get(file).map_or(0, |version| version.number)
    }

    /// The bytes of the newest version of a file.
    ///
    /// # Errors
    /// When it is longer than `bytes_max`, and when the store fails.
    pub fn read(&self, file: &str, bytes_max: u64) -> Result<Vec<u8>, ClusterError> {
        let number = self.number(file);
        Ok(remote::runtime()?.block_on(self.shared.published_file(file, number, bytes_max))?.into())
    }

    /// The partition of this number.
    #[must_use]
    pub fn partition(&self, number: u16) -> Partition {
        let Cluster { cluster, partitions, mode } = self.cluster.clone();
        Partition { cluster, number, count: partitions, mode }
    }

    /// The number of the newest order in a list; 0 if there is none.
    ///
    /// # Errors
    /// When there are more than [`ORDERS_MAX`].
    pub fn newest_order(&self, list: &str) -> Result<u64, ClusterError> {
        let number = self.number(list);
        if number > ORDERS_MAX { Err(ClusterError::TooManyOrders(list.to_owned())) } else { Ok(number) }
    }

    /// The bytes of an order; none if it was taken out of the store.
    ///
    /// # Errors
    /// When it is longer than `bytes_max`, and when the store fails.
    pub fn order(&self, list: &str, number: u64, bytes_max: u64) -> Result<Option<Vec<u8>>, ClusterError> {
        let order = remote::runtime()?.block_on(self.shared.order(list, number, bytes_max))?;
        Ok(order.map(Vec::from).filter(|bytes| !bytes.is_empty()))
    }

    /// Adds an order to a list, after all that are there and after number `carried_out`; returns its number.
    ///
    /// # Errors
    /// As [`Publications::publish`], and when there are [`ORDERS_MAX`].
    pub fn add_order(&mut self, list: &str, bytes: &[u8], carried_out: u64) -> Result<u64, ClusterError> {
        let last = self.newest_order(list)?.max(carried_out);
        if last >= ORDERS_MAX {
            return Err(ClusterError::TooManyOrders(list.to_owned()));
        }
        let mut taken = (last > 0).then_some(last);
        loop {
            if let Some(number) = taken {
                self.newest.insert(list.to_owned(), Version { number, is_removed: false });
            }
            match self.publish(list, bytes.to_vec()) {
                // Another order was added at this moment, and comes before this one.
                Err(ClusterError::Published(_, number)) if number < ORDERS_MAX => taken = Some(number),
                published => return published,
            }
        }
    }

    /// What the archives of partitions have reported last.
    ///
    /// # Errors
    /// When the store fails, or a report is damaged.
    pub fn reports<T: DeserializeOwned>(&self) -> Result<BTreeMap<u16, T>, ClusterError> {
        remote::runtime()?.block_on(async {
            let mut reports = BTreeMap::new();
            for partition in 1..=self.cluster.partitions {
                if let Some((_, report)) = self.shared.newest_report(partition).await? {
                    reports.insert(partition, report);
                }
            }
            Ok(reports)
        })
    }

    /// Reports something of a partition, for an archive that a node of this epoch has written to last, unless it was reported before, or
    /// a newer node has another archive.
    ///
    /// # Errors
    /// When the store fails.
    pub fn add_report<T>(&self, partition: u16, epoch: u64, report: &T) -> Result<(), ClusterError>
    where
        T: Serialize + DeserializeOwned + PartialEq,
    {
        remote::runtime()?.block_on(async {
            let newest = self.shared.newest_report::<T>(partition).await?;
            if newest.as_ref().is_some_and(|(_, known)| known == report)
                || self.shared.newest_epoch(partition).await?.0 > epoch
            {
                return Ok(());
            }
            self.shared
                .add_report(partition, newest.map_or(1, |(number, _)| number.saturating_add(1)), report)
                .await
        })
    }
}
