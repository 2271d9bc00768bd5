//! Removes old copies and objects that no copy needs. The parent module explains why this is safe.

use std::collections::HashSet;
use std::path::Path;

use archive_base::erased::Erased;
use archive_base::remote::{self, RemoteError};
use futures_util::{StreamExt, stream};
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStoreExt, PutPayload};
use serde::Serialize;

use super::manifest::{self, brought_by};
use super::{CopyError, Manifest, Remote};

/// Number of the newest removed manifests whose empty objects stay. A writer further behind has missed as many copies.
const EMPTY_MAX: u64 = 1000;

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Removed {
    /// Number of copies.
    #[serde(rename = "removed_copies")]
    pub copies: u64,
    /// Number of objects that no remaining copy needs.
    #[serde(rename = "removed")]
    pub objects: u64,
    /// Bytes of the objects.
    #[serde(rename = "removed_bytes")]
    pub bytes: u64,
}

/// Keeps the newest `keep` of the copies up to `newest`, and removes objects uploaded by copies up to `newest` that the
/// kept copies do not need.
///
/// # Errors
/// If a kept copy cannot be read, nothing is removed. If the store fails, the next command removes the rest.
pub fn prune(remote: &Remote, newest: u64, keep: u64) -> Result<Removed, CopyError> {
    let numbers: Vec<u64> = remote.numbers()?.into_iter().filter(|number| *number <= newest).collect();
    let surplus = numbers.len().saturating_sub(usize::try_from(keep.max(1)).unwrap_or(usize::MAX));
    let (old, kept) = numbers.split_at_checked(surplus).unwrap_or_default();
    let mut named: HashSet<ObjectPath> = HashSet::new();
    // The kept manifests are read first; if one cannot be read, nothing is removed.
    for number in kept {
        match remote.manifest(*number) {
            Ok(manifest) => named.extend(manifest.files.iter().map(super::CopiedFile::object)),
            // Another command has removed it in the meantime.
            Err(CopyError::NoCopy { .. }) if *number != newest => {}
            Err(error) => return Err(error),
        }
    }
    // A copy must be gone before its objects are removed.
    for number in old {
        let path = manifest::manifest(*number);
        let emptied = async { remote.store.put(&path, PutPayload::new()).await };
        remote.wait(async { emptied.await.map_err(|error| RemoteError::of(path.as_ref(), error)) })?;
    }
    remove(remote, manifest::emptied(remote, newest.saturating_sub(EMPTY_MAX))?)?;
    let listed = remote.wait(remote::list(remote.store.as_ref(), &manifest::objects()))?;
    let is_needless = |object: &ObjectPath| {
        brought_by(object).is_some_and(|number| number <= newest) && !named.contains(object)
    };
    let needless: Vec<_> = listed.into_iter().filter(|object| is_needless(&object.location)).collect();
    let removed = Removed {
        copies: old.len() as u64,
        objects: needless.len() as u64,
        bytes: needless.iter().map(|object| object.size).sum(),
    };
    remove(remote, needless.into_iter().map(|object| object.location).collect())?;
    Ok(removed)
}

/// Returns how many copies a crawl should keep: `keep`, or one if there is a copy older than the archive's newest
/// erase.
///
/// # Errors
/// If the list of erased URLs or the oldest copy cannot be read.
pub fn keep_after_erase(remote: &Remote, archive: &Path, keep: u64) -> Result<u64, CopyError> {
    let erased = Erased::read(archive)?;
    let Some(newest) = erased.entries().map(|entry| &entry.time).max() else { return Ok(keep) };
    let Some(oldest) = remote.numbers()?.first().copied() else { return Ok(keep) };
    let holds = |copy: Manifest| copy.time <= *newest;
    match remote.manifest(oldest).map(holds) {
        Ok(true) => Ok(1),
        // Another command has removed it in the meantime.
        Ok(false) | Err(CopyError::NoCopy { .. }) => Ok(keep),
        Err(error) => Err(error),
    }
}

/// Removes objects. Objects that are already gone are no error.
fn remove(remote: &Remote, objects: Vec<ObjectPath>) -> Result<(), CopyError> {
    let mut removed = remote.store.delete_stream(stream::iter(objects).map(Ok).boxed());
    remote.wait(async {
        while let Some(outcome) = removed.next().await {
            match outcome.map_err(|error| RemoteError::of("an object that is not needed", error)) {
                Ok(_) | Err(RemoteError::Missing(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    })
}
