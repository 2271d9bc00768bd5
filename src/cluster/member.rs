//! Finding a cluster and a place in it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

use object_store::ObjectStore;

use super::node::check_newest;
use super::shared::{Cluster, Shared};
use super::{ClusterError, Mode, Partition};
use crate::remote::{self, MachineTime};

/// What the user asked for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The object store.
    pub url: String,
    /// The number of the partition, from 1 to `count`.
    pub number: u16,
    /// How many partitions there are.
    pub count: u16,
    /// The mode, if one was given.
    pub mode: Option<Mode>,
    /// What the node is called; by default the machine's name.
    pub node: Option<String>,
    /// The epoch after which the partition is to be taken, if it is not whichever is the last.
    pub after: Option<u64>,
}

/// A node's place in a cluster.
#[derive(Clone, Debug)]
pub struct Member {
    /// Which part of the web it has.
    pub partition: Partition,
    /// What it is called.
    pub node: String,
    /// As in [`Asked`].
    pub(super) after: Option<u64>,
    pub(super) store: Arc<dyn ObjectStore>,
}

impl Member {
    /// Finds the cluster at a URL; begins it if there is none.
    ///
    /// # Errors
    /// When the store cannot be used, or the cluster differs from what was asked for.
    pub fn find(asked: &Asked) -> Result<Self, ClusterError> {
        let (store, runtime) = (remote::open(&asked.url)?, remote::runtime()?);
        let shared = Shared::new(Arc::clone(&store), Arc::new(MachineTime));
        let begun = Cluster {
            cluster: format!("{:016x}", fastrand::u64(..)),
            partitions: asked.count,
            mode: asked.mode.unwrap_or_default(),
        };
        let cluster = runtime.block_on(shared.join(&begun))?;
        Self::of(store, cluster, asked)
    }

    /// A place in a cluster, if that is the one that was asked for.
    fn of(store: Arc<dyn ObjectStore>, cluster: Cluster, asked: &Asked) -> Result<Self, ClusterError> {
        let Cluster { cluster, partitions, mode } = cluster;
        if partitions != asked.count {
            return Err(ClusterError::Count { found: partitions, asked: asked.count });
        }
        if let Some(asked) = asked.mode.filter(|asked| *asked != mode) {
            return Err(ClusterError::Mode { found: mode, asked });
        }
        let partition = Partition { cluster, number: asked.number, count: partitions, mode };
        let node = asked.node.clone().or_else(|| one_line("/proc/sys/kernel/hostname"));
        Ok(Self { partition, node: node.unwrap_or_else(|| "node".to_owned()), after: asked.after, store })
    }
}

impl Member {
    /// Finds the cluster at a URL for an archive that has a partition already; begins none.
    ///
    /// # Errors
    /// When there is none, the store cannot be used, or the cluster has another number of partitions or another mode.
    pub fn again(url: &str, partition: &Partition, node: Option<&str>) -> Result<Self, ClusterError> {
        let store = remote::open(url)?;
        let shared = Shared::new(Arc::clone(&store), Arc::new(MachineTime));
        let cluster = remote::runtime()?.block_on(shared.begun(url))?;
        let asked = Asked {
            url: url.to_owned(),
            number: partition.number,
            count: partition.count,
            mode: Some(partition.mode),
            node: node.map(str::to_owned),
            after: None,
        };
        Self::of(store, cluster, &asked)
    }

    /// The same place, for the node after that of an epoch: if another one has taken the partition since, it is left to that one.
    #[must_use]
    pub fn after(self, epoch: u64) -> Self {
        Self { after: Some(epoch), ..self }
    }

    /// Makes sure that no newer node has the partition.
    ///
    /// # Errors
    /// When one has, and when the store cannot be read.
    pub fn check_epoch(&self, epoch: u64) -> Result<(), ClusterError> {
        let shared = Shared::new(Arc::clone(&self.store), Arc::new(MachineTime));
        remote::runtime()?.block_on(check_newest(&shared, self.partition.number, epoch)).map(drop)
    }
}

/// Identifies the folder of an archive, so that the process that owns the archive there knows that no other process does.
pub(super) fn place(archive: &Path) -> String {
    let Some(boot) = one_line("/proc/sys/kernel/random/boot_id") else { return String::new() };
    fs::metadata(archive)
        .map_or_else(|_| String::new(), |folder| format!("{boot}:{}:{}", folder.dev(), folder.ino()))
}

fn one_line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
