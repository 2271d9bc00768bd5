//! Finds a cluster and a node's place in it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use archive_base::remote;

use super::node::check_newest;
use super::store::{Cluster, ClusterStore};
use super::{ClusterError, Division, Mode, Partition, Spans};

/// A node's place in a cluster.
#[derive(Clone, Debug)]
pub struct Member {
    /// The part of the web that it covers.
    pub partition: Partition,
    /// Name of the node.
    pub node: String,
    /// If given, the partition is taken over only if this is its newest epoch.
    pub(super) after: Option<u64>,
    pub(super) shared: ClusterStore,
}

impl Member {
    /// Finds the cluster at a URL, or begins it if there is none, for a partition and a number of partitions. By default
    /// the node has the name of the machine.
    ///
    /// # Errors
    /// If the store cannot be used, or the cluster differs from the request.
    pub fn find(
        url: &str,
        (number, count): (u16, u16),
        (mode, by): (Option<Mode>, Option<&Division>),
        node: Option<&str>,
    ) -> Result<Self, ClusterError> {
        let shared = ClusterStore::open(url)?;
        if let Some(domain) = by.and_then(|by| by.outside(count)) {
            return Err(ClusterError::Outside { domain: domain.to_owned(), count });
        }
        let begun = Cluster {
            cluster: format!("{:016x}", fastrand::u64(..)),
            partitions: count,
            mode: mode.unwrap_or_default(),
            by: by.cloned().unwrap_or_default(),
            lease_seconds: None,
        };
        let cluster = remote::runtime()?.block_on(shared.join(&begun))?;
        Self::of(shared, &cluster, (number, count), (mode, by), node)
    }

    /// Finds the cluster at a URL for an archive that already has a partition. Does not begin a cluster.
    ///
    /// # Errors
    /// If there is none, the store cannot be used, or the cluster differs from the partition's.
    pub fn again(url: &str, partition: &Partition, node: Option<&str>) -> Result<Self, ClusterError> {
        let shared = ClusterStore::open(url)?;
        let cluster = remote::runtime()?.block_on(shared.begun(url))?;
        let place = (partition.number, partition.count);
        Self::of(shared, &cluster, place, (Some(partition.mode), Some(&partition.by)), node)
    }

    /// Returns the requested place in a cluster, if the cluster matches the request.
    fn of(
        mut shared: ClusterStore,
        cluster: &Cluster,
        (number, count): (u16, u16),
        (mode, by): (Option<Mode>, Option<&Division>),
        node: Option<&str>,
    ) -> Result<Self, ClusterError> {
        if cluster.partitions != count {
            return Err(ClusterError::Count { found: cluster.partitions, asked: count });
        }
        if let Some(asked) = mode.filter(|asked| *asked != cluster.mode) {
            return Err(ClusterError::Mode { found: cluster.mode, asked });
        }
        if let Some(asked) = by.filter(|asked| **asked != cluster.by) {
            return Err(ClusterError::Division { found: cluster.by.clone(), asked: asked.clone() });
        }
        let partition = cluster.partition(number);
        shared.spans = cluster.spans();
        let node = node.map(str::to_owned).or_else(|| one_line("/proc/sys/kernel/hostname"));
        Ok(Self { partition, node: node.unwrap_or_else(|| "node".to_owned()), after: None, shared })
    }

    /// Returns how long leases and turns of its cluster last.
    #[must_use]
    pub fn spans(&self) -> Spans {
        self.shared.spans
    }

    /// Restricts the place to the node after `epoch`: if another node has taken over the partition since, that node
    /// keeps it.
    #[must_use]
    pub fn after(self, epoch: u64) -> Self {
        Self { after: Some(epoch), ..self }
    }

    /// Checks that no newer node has the partition.
    ///
    /// # Errors
    /// If there is a newer node, or the store cannot be read.
    pub fn check_epoch(&self, epoch: u64) -> Result<(), ClusterError> {
        remote::runtime()?.block_on(check_newest(&self.shared, self.partition.number, epoch)).map(drop)
    }
}

/// Identifies the folder of an archive, so that the process that owns it can tell that no other process uses it.
pub(super) fn place(archive: &Path) -> String {
    let Some(boot) = one_line("/proc/sys/kernel/random/boot_id") else { return String::new() };
    fs::metadata(archive)
        .map_or_else(|_| String::new(), |folder| format!("{boot}:{}:{}", folder.dev(), folder.ino()))
}

fn one_line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_divides_sites_as_its_first_node_said() {
        let store = tempfile::tempdir().unwrap();
        let url = format!("file://{}", store.path().display());
        let by = |text: &str| text.parse::<Division>().unwrap();
        let find = |division: Option<&Division>| Member::find(&url, (1, 2), (None, division), None);
        let outside = find(Some(&by("country:de=2,fr=3"))).unwrap_err();
        assert!(
            matches!(&outside, ClusterError::Outside { domain, count: 2 } if domain == "fr"),
            "{outside}"
        );
        assert!(!store.path().join("cluster.json").exists());
        let country = by("country:de=2");
        for asked in [Some(&country), None] {
            assert_eq!(find(asked).unwrap().partition.by, country);
        }
        for other in ["site", "country", "country:de=1"] {
            assert!(matches!(find(Some(&by(other))), Err(ClusterError::Division { .. })), "{other}");
        }
        let partition = find(None).unwrap().partition;
        assert_eq!(Member::again(&url, &partition, None).unwrap().partition, partition);
        let usual = Partition { by: Division::Site, ..partition };
        assert!(matches!(Member::again(&url, &usual, None), Err(ClusterError::Division { .. })));
        // One that was written by hand, or by another version.
        for (says, is_known) in [("country:de=2", true), ("country:de=3", false), ("language", false)] {
            let cluster = format!(r#"{{"cluster":"c","partitions":2,"mode":"exchange","by":"{says}"}}"#);
            fs::write(store.path().join("cluster.json"), cluster).unwrap();
            match find(None) {
                Ok(_) => assert!(is_known, "{says}"),
                Err(error) => assert!(!is_known && matches!(error, ClusterError::Damaged { .. }), "{error}"),
            }
        }
    }
}
