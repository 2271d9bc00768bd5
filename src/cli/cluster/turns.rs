//! Commands that fetch pages of a partition, and take turns with the other nodes of its cluster.

use std::path::Path;

use archive_books::cluster::Member;
use archive_books::ledger::Credits;
use archive_crawl::Options;
use archive_storage::Store;

use super::super::open::SegmentArgs;
use super::super::{UsageError, output};
use super::orders;

/// Coordination of requests with other nodes that fetch from the same addresses.
#[derive(clap::Args)]
pub(crate) struct TurnsArgs {
    /// URL of the object store that the nodes of the archive's cluster share: takes turns with them at addresses from
    /// which they fetch, too (docs/cluster.md)
    #[arg(long, value_name = "URL")]
    cluster: Option<String>,
    /// Name of this node [default: the machine's name]
    #[arg(long, value_name = "NAME", requires = "cluster")]
    node: Option<String>,
}

impl TurnsArgs {
    /// Opens an archive for fetching its pages again, after carrying out the orders of its cluster.
    pub(crate) fn own(&self, path: &Path, options: &Options) -> anyhow::Result<Store> {
        orders::own(path, SegmentArgs::default(), &options.fetch, self.cluster.as_deref(), None)
    }

    /// Returns the archive's membership in its cluster if it is to take turns with the other nodes.
    pub(crate) fn place(&self, store: &mut Store) -> anyhow::Result<Option<Member>> {
        let (path, partition) = (store.path().to_owned(), Credits::partition_of(store.state())?);
        match (&self.cluster, partition) {
            (Some(url), Some(partition)) => {
                let member = Member::again(url, &partition, self.node.as_deref())?;
                Credits::join_cluster(store.state_mut(), Some(&member.partition))?;
                return Ok(Some(member));
            }
            (Some(_), None) => {
                let path = path.display();
                return Err(
                    UsageError(format!("{path} is not a partition of a cluster; omit --cluster")).into()
                );
            }
            // The crawls may be finished and the object store gone: that must not prevent refreshes of the archive.
            (None, Some(own)) if own.count > 1 => output::note(format_args!(
                "{} is partition {own} of a cluster, whose other nodes may ask the same addresses at the same time; to take turns with them, give --cluster URL",
                path.display()
            )),
            (None, _) => {}
        }
        Ok(None)
    }
}
