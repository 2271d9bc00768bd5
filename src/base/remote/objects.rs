//! Operations on single objects that every user of a store needs.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, TryStreamExt};
use object_store::path::Path as ObjectPath;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutMode};

use super::{RemoteError, Time};

/// Maximum number of objects in a listing.
pub const LIST_MAX: usize = 1_000_000;

/// Maximum number of attempts to create an object if the creation fails and the object is not there, and the initial
/// pause.
const TRIALS_MAX: u32 = 5;
const PAUSE: Duration = Duration::from_millis(300);

/// Reads an object of at most `bytes_max` bytes.
///
/// # Errors
/// If it does not exist, is longer, or cannot be read.
pub async fn read(store: &dyn ObjectStore, path: &ObjectPath, bytes_max: u64) -> Result<Bytes, RemoteError> {
    let failed = |error| RemoteError::of(path.as_ref(), error);
    let too_long = || RemoteError::TooLong { what: path.to_string(), bytes_max };
    let found = store.get(path).await.map_err(failed)?;
    if found.meta.size > bytes_max {
        return Err(too_long());
    }
    let (mut stream, mut bytes) = (found.into_stream(), BytesMut::new());
    while let Some(piece) = stream.try_next().await.map_err(failed)? {
        bytes.extend_from_slice(&piece);
        if bytes.len() as u64 > bytes_max {
            return Err(too_long());
        }
    }
    Ok(bytes.freeze())
}

/// Returns the objects below a prefix, in no particular order.
///
/// # Errors
/// If there are more than [`LIST_MAX`], or the store fails.
pub async fn list(store: &dyn ObjectStore, prefix: &ObjectPath) -> Result<Vec<ObjectMeta>, RemoteError> {
    let (mut stream, mut found) = (store.list(Some(prefix)), Vec::new());
    while let Some(object) = stream.next().await {
        found.push(object.map_err(|error| RemoteError::of(prefix.as_ref(), error))?);
        if found.len() > LIST_MAX {
            return Err(RemoteError::TooMany(prefix.to_string()));
        }
    }
    Ok(found)
}

/// Creates an object unless there is one: of several concurrent attempts, one succeeds. Attempts with the same bytes
/// count as one, so the bytes should identify their writer.
///
/// Servers and networks lose answers, so the object is read back after a failure. If it has the expected bytes, the
/// creation has succeeded.
///
/// # Errors
/// [`RemoteError::Exists`] if there is another object; also any error of the store.
pub async fn create(
    store: &dyn ObjectStore,
    time: &dyn Time,
    path: &ObjectPath,
    bytes: Bytes,
) -> Result<(), RemoteError> {
    let mut trial = 1;
    loop {
        let put = store.put_opts(path, bytes.clone().into(), PutMode::Create.into()).await;
        let Err(error) = put else { return Ok(()) };
        let error = RemoteError::of(path.as_ref(), error);
        match read(store, path, bytes.len() as u64).await {
            Ok(found) if found == bytes => return Ok(()),
            Ok(_) | Err(RemoteError::TooLong { .. }) => return Err(RemoteError::Exists(path.to_string())),
            // The concurrent creation of another writer has failed, too.
            Err(RemoteError::Missing(_)) if matches!(error, RemoteError::Exists(_)) || error.is_passing() => {
            }
            Err(again) if again.is_passing() => {}
            Err(_) => return Err(error),
        }
        if trial == TRIALS_MAX {
            return Err(error);
        }
        time.sleep(PAUSE * trial).await;
        trial += 1;
    }
}

/// Checks that a store refuses to overwrite an object when asked. Some services overwrite it nevertheless, and users of
/// [`create`] would lose objects there. Leaves an object with these bytes.
///
/// # Errors
/// [`RemoteError::Unconditional`] if it overwrites objects; also any error of the store.
pub async fn check_creation(
    store: &dyn ObjectStore,
    time: &dyn Time,
    path: &ObjectPath,
    bytes: Bytes,
) -> Result<(), RemoteError> {
    match create(store, time, path, bytes.clone()).await {
        Ok(()) | Err(RemoteError::Exists(_)) => {}
        Err(error) => return Err(error),
    }
    let mut trial = 1;
    loop {
        let put = store.put_opts(path, bytes.clone().into(), PutMode::Create.into()).await;
        let Err(error) = put else { return Err(RemoteError::Unconditional) };
        match RemoteError::of(path.as_ref(), error) {
            RemoteError::Exists(_) => return Ok(()),
            error if trial == TRIALS_MAX || !error.is_passing() => return Err(error),
            _ => {}
        }
        time.sleep(PAUSE * trial).await;
        trial += 1;
    }
}
