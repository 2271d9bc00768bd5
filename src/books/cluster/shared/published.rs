//! Published files and orders, and the reports of archives about them.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::super::{ClusterError, Version};
use super::{LOOKS_MAX, Shared, gone, json, numbered};

/// Folder of files that hold on all nodes.
const FILES: &str = "files";

/// Folder of the archives' reports about published orders.
const REPORTS: &str = "reports";

impl Shared {
    /// Returns the newest versions of published files, by name.
    pub(in super::super) async fn published(&self) -> Result<BTreeMap<String, Version>, ClusterError> {
        let mut newest: BTreeMap<String, Version> = BTreeMap::new();
        for (name, bytes) in self.list(FILES).await? {
            let Some((file, number)) = name.split_once('/') else { continue };
            let Ok(number) = number.parse() else { continue };
            if newest.get(file).is_none_or(|known| known.number < number) {
                newest.insert(file.to_owned(), Version { number, is_removed: bytes == 0 });
            }
        }
        Ok(newest)
    }

    pub(in super::super) async fn publish_file(
        &self,
        file: &str,
        version: u64,
        bytes: Bytes,
    ) -> Result<(), ClusterError> {
        match self.create(&numbered(&format!("{FILES}/{file}"), version), bytes).await {
            Err(ClusterError::Conflict { .. }) => Err(ClusterError::Published(file.to_owned(), version)),
            created => created,
        }
    }

    pub(in super::super) async fn published_file(
        &self,
        file: &str,
        version: u64,
        bytes_max: u64,
    ) -> Result<Bytes, ClusterError> {
        let name = numbered(&format!("{FILES}/{file}"), version);
        self.read(&name, bytes_max).await?.ok_or_else(|| gone(name))
    }

    /// Returns an order; `None` if it was removed.
    pub(in super::super) async fn order(
        &self,
        list: &str,
        number: u64,
        bytes_max: u64,
    ) -> Result<Option<Bytes>, ClusterError> {
        Ok(self.read(&numbered(&format!("{FILES}/{list}"), number), bytes_max).await?)
    }

    /// Returns the newest report of a partition, with its number.
    pub(in super::super) async fn newest_report<T: DeserializeOwned>(
        &self,
        partition: u16,
    ) -> Result<Option<(u64, T)>, ClusterError> {
        let folder = format!("{REPORTS}/{partition}");
        for _ in 0..LOOKS_MAX {
            let number = self.highest(&folder).await?;
            if number == 0 {
                return Ok(None);
            }
            if let Some(report) = self.read_json(&numbered(&folder, number)).await? {
                return Ok(Some((number, report)));
            }
        }
        Err(gone(folder))
    }

    /// Writes a report, and removes older ones.
    pub(in super::super) async fn add_report(
        &self,
        partition: u16,
        number: u64,
        report: &impl Serialize,
    ) -> Result<(), ClusterError> {
        let folder = format!("{REPORTS}/{partition}");
        let name = numbered(&folder, number);
        match self.create(&name, json(&name, report)?).await {
            // Another program has just reported for the same archive; anything missing is reported next time.
            Err(ClusterError::Conflict { .. }) => Ok(()),
            created => {
                created?;
                self.delete_below(&folder, number).await
            }
        }
    }
}
