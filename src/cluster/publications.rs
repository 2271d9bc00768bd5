//! Files that hold on all nodes, published under ever higher numbers; what they say is no matter of this room.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::ClusterError;
use super::shared::Shared;
use crate::remote::{self, MachineTime};

/// Files that can be published, at most.
pub const FILES_MAX: usize = 1000;

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
        let newest = remote::runtime()?.block_on(async {
            shared.begun(url).await?;
            shared.published().await
        })?;
        if newest.len() > FILES_MAX {
            return Err(ClusterError::TooManyFiles);
        }
        Ok(Self { shared, newest })
    }

    /// Publishes a file, which replaces its versions before; returns the number of the new one. Without bytes, the file is no more.
    ///
    /// # Errors
    /// When the store fails, somebody else publishes the file at this moment, and when there are [`FILES_MAX`] others.
    pub fn publish(&mut self, file: &str, bytes: Vec<u8>) -> Result<u64, ClusterError> {
        if self.newest.len() >= FILES_MAX && !self.newest.contains_key(file) {
            return Err(ClusterError::TooManyFiles);
        }
        let number = self.number(file) + 1;
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
}
