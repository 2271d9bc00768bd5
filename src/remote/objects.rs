//! Operations on single objects that every user of a store needs.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, TryStreamExt};
use object_store::path::Path as ObjectPath;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutMode};

use super::{RemoteError, Time};

/// Objects that are listed at most.
pub const LIST_MAX: usize = 1_000_000;

/// How often an object is created again whose creation failed and that is not there either, and the pause before.
const TRIALS_MAX: u32 = 5;
const PAUSE: Duration = Duration::from_millis(300);

/// Reads an object of at most this many bytes.
///
/// # Errors
/// When it is not there, is longer, or cannot be read.
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

/// The objects below a prefix, in no order.
///
/// # Errors
/// When there are more than [`LIST_MAX`], and when the store fails.
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

/// Puts an object in a place where none may be: of several that do so at once, one succeeds. Two with the same bytes count as
/// one, so the bytes should say whose they are.
///
/// Servers and networks lose answers: after a failure the object is read back, and if it is the one that was to be created, it
/// was.
///
/// # Errors
/// [`RemoteError::Exists`] when another object is there, and what the store reports.
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
            // What somebody else was creating at that moment came to nothing either.
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

/// Makes sure that a store refuses to put an object where one is: some services overwrite it even when asked not to, and what
/// relies on [`create`] would lose objects there. Leaves an object with these bytes.
///
/// # Errors
/// [`RemoteError::Unconditional`] when it does not, and what the store reports.
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
