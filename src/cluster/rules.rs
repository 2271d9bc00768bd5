//! Access rules that hold on all nodes: published under ever higher numbers, and taken over by the archives of each node.

use std::path::Path;
use std::sync::Arc;

use super::ClusterError;
use super::shared::Shared;
use crate::access::{self, Access, AccessError};
use crate::files::{self, WholeFile};
use crate::remote::{self, MachineTime};

/// What the rules of a cluster begin with in an archive: a file that begins otherwise is of the archive's own.
const MARK: &str = "# Access rules of the cluster, version ";

/// Bytes of published rules, at most: with the mark, an archive reads them.
pub const RULES_BYTES_MAX: u64 = access::BYTES_MAX - 128;

/// What became of the rules of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It has these rules already.
    Had,
    /// It has them now.
    Over,
    /// It has rules of its own, which stay.
    Refused,
}

/// Access rules as they were published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterRules {
    /// Which version, from 1.
    pub version: u64,
    /// What stands in the file.
    pub text: String,
}

/// Publishes access rules, which replace those before; returns their version.
///
/// # Errors
/// When there is no cluster, the store fails, or somebody else publishes rules at this moment; and where `text` has a mistake.
pub fn publish_rules(url: &str, text: &str) -> Result<u64, ClusterError> {
    remote::runtime()?.block_on(async {
        let shared = shared(url).await?;
        let version = shared.newest_rules().await? + 1;
        check(version, text)?;
        shared.create_rules(version, text).await?;
        Ok(version)
    })
}

/// The access rules of a cluster, if any were published.
///
/// # Errors
/// When there is no cluster, the store fails, and when the rules are none.
pub fn newest_rules(url: &str) -> Result<Option<ClusterRules>, ClusterError> {
    remote::runtime()?.block_on(async {
        let shared = shared(url).await?;
        match shared.newest_rules().await? {
            0 => Ok(None),
            version => {
                let text = shared.rules(version).await?;
                check(version, &text)?;
                Ok(Some(ClusterRules { version, text }))
            }
        }
    })
}

/// While a file of rules has a mistake or is too long, its archive shows nothing: none of that is taken over.
fn check(version: u64, text: &str) -> Result<(), ClusterError> {
    let damaged = |why| ClusterError::Damaged { name: format!("version {version} of the access rules"), why };
    if text.len() as u64 > RULES_BYTES_MAX {
        return Err(damaged(format!("it is longer than {RULES_BYTES_MAX} bytes")));
    }
    Access::of_text(Path::new(access::FILE), text)
        .map_err(|error: AccessError| damaged(error.to_string()))?;
    Ok(())
}

/// The object store of a cluster that has begun.
async fn shared(url: &str) -> Result<Shared, ClusterError> {
    let shared = Shared::new(remote::open(url)?, Arc::new(MachineTime));
    shared.cluster().await?.ok_or_else(|| ClusterError::None(url.to_owned()))?;
    Ok(shared)
}

impl ClusterRules {
    /// Gives an archive these rules, unless it has some that did not come from a cluster.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn take_over(&self, archive: &Path) -> std::io::Result<Taken> {
        let path = archive.join(access::FILE);
        let text = format!("{MARK}{}: changes to this file are lost\n{}", self.version, self.text);
        match files::read_if_there(&path, access::BYTES_MAX)? {
            Some(known) if known == text.as_bytes() => Ok(Taken::Had),
            Some(known) if !known.starts_with(MARK.as_bytes()) => Ok(Taken::Refused),
            _ => WholeFile::replace(&path, text.as_bytes()).map(|()| Taken::Over),
        }
    }
}
