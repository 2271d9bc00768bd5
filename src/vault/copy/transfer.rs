//! Uploads files and downloads objects, on a few threads and in bounded memory.

use std::io::{self, Read};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use archive_base::control::Control;
use archive_base::remote::RemoteError;
use archive_storage::Digest;
use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::path::Path as ObjectPath;
use object_store::{GetResultPayload, ObjectStoreExt, WriteMultipart};
use sha2::{Digest as _, Sha256};

use super::manifest::hex;
use super::snapshot::Local;
use super::{CopiedFile, CopyError, Remote};

/// Number of threads that read files, compute digests and wait for the store.
const THREADS: usize = 4;

/// Bytes that are read, sent or received at once. A longer file is sent in parts of this size, or of a larger size if
/// there would be too many parts.
const PART_BYTES: u64 = 8 << 20;
const PARTS_MAX: u64 = 10_000;

/// Number of parts of a file in flight while the next is read. Thus at most 4 × 3 parts are in memory, about 100 MB.
const PARTS_UNDER_WAY: usize = 2;

/// Maximum number of attempts of a transfer, on top of the store's own retries.
const TRIALS_MAX: u32 = 3;

/// Applies `work` to all items, and returns the results in their order. The first failure ends it.
pub(super) fn each<T: Sync, R: Send>(
    items: &[T],
    control: &Control,
    work: impl Fn(&T) -> Result<R, CopyError> + Sync,
) -> Result<Vec<R>, CopyError> {
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let done = Mutex::new(Vec::with_capacity(items.len()));
    let failure = Mutex::new(None);
    let run = || {
        while !failed.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return };
            let outcome = if control.is_stopped() { Err(CopyError::Stopped) } else { work(item) };
            match outcome {
                Ok(result) => done.lock().unwrap_or_else(PoisonError::into_inner).push((at, result)),
                Err(error) => {
                    failed.store(true, Ordering::Relaxed);
                    failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            }
        }
    };
    thread::scope(|scope| {
        (0..THREADS.min(items.len())).for_each(|_| {
            scope.spawn(run);
        });
    });
    if let Some(error) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(at, _)| *at);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

/// Retries an operation while it fails with a transient error of the store.
pub(super) fn again<T>(mut work: impl FnMut() -> Result<T, CopyError>) -> Result<T, CopyError> {
    let mut trial = 1;
    loop {
        match work() {
            Err(CopyError::Remote { source, .. }) if source.is_passing() && trial < TRIALS_MAX => trial += 1,
            outcome => return outcome,
        }
    }
}

/// Reads a file piece by piece.
pub(super) fn read(
    local: &Local,
    control: &Control,
    piece_bytes: u64,
    take: &mut dyn FnMut(Bytes) -> Result<(), CopyError>,
) -> Result<(), CopyError> {
    let mut file = local.open()?;
    let mut left = local.bytes;
    while left > 0 {
        if control.is_stopped() {
            return Err(CopyError::Stopped);
        }
        let mut piece = Vec::new();
        let wanted = left.min(piece_bytes);
        file.by_ref().take(wanted).read_to_end(&mut piece).map_err(CopyError::io(&local.path()))?;
        if piece.len() as u64 != wanted {
            return Err(local.changed("has become shorter"));
        }
        left -= wanted;
        take(piece.into())?;
    }
    Ok(())
}

/// Returns the SHA-256 of a file.
pub(super) fn digest(local: &Local, control: &Control) -> Result<String, CopyError> {
    let mut hasher = Sha256::new();
    read(local, control, PART_BYTES, &mut |piece| {
        hasher.update(&piece);
        Ok(())
    })?;
    Ok(hex(&Digest::from_sha256(hasher.finalize().into())))
}

/// Uploads a file with this digest. `count` gets the number of uploaded bytes.
pub(super) fn upload(
    remote: &Remote,
    local: &Local,
    (object, sha256): (&ObjectPath, &str),
    control: &Control,
    count: &(dyn Fn(u64) + Sync),
) -> Result<(), CopyError> {
    again(|| {
        if local.bytes <= PART_BYTES {
            put(remote, local, (object, sha256), control)
        } else {
            put_in_parts(remote, local, (object, sha256), control)
        }
    })?;
    count(local.bytes);
    Ok(())
}

const NOT_CLOSED_SO: &str = "is damaged, or has changed meanwhile";

fn put(
    remote: &Remote,
    local: &Local,
    (object, sha256): (&ObjectPath, &str),
    control: &Control,
) -> Result<(), CopyError> {
    let mut content = Bytes::new();
    read(local, control, PART_BYTES, &mut |piece| {
        content = piece;
        Ok(())
    })?;
    if hex(&Digest::sha256(&content)) != sha256 {
        return Err(local.changed(NOT_CLOSED_SO));
    }
    let put = async { remote.store.put(object, content.into()).await };
    remote.wait(async { put.await.map_err(|error| RemoteError::of(object.as_ref(), error)) })?;
    Ok(())
}

fn put_in_parts(
    remote: &Remote,
    local: &Local,
    (object, sha256): (&ObjectPath, &str),
    control: &Control,
) -> Result<(), CopyError> {
    let failed = |error| remote.failed(RemoteError::of(object.as_ref(), error));
    let part_bytes = PART_BYTES.max(local.bytes.div_ceil(PARTS_MAX));
    let runtime = &remote.runtime;
    let begun = runtime.block_on(remote.store.put_multipart(object)).map_err(failed)?;
    let mut parts =
        WriteMultipart::new_with_chunk_size(begun, usize::try_from(part_bytes).unwrap_or(usize::MAX));
    let mut hasher = Sha256::new();
    let sent = read(local, control, part_bytes, &mut |piece| {
        hasher.update(&piece);
        runtime
            .block_on(async {
                parts.wait_for_capacity(PARTS_UNDER_WAY).await?;
                parts.put(piece);
                Ok::<_, object_store::Error>(())
            })
            .map_err(failed)
    });
    let sent = sent.and_then(|()| {
        let is_same = hex(&Digest::from_sha256(hasher.finalize().into())) == sha256;
        if is_same { Ok(()) } else { Err(local.changed(NOT_CLOSED_SO)) }
    });
    match sent {
        Ok(()) => runtime.block_on(parts.finish()).map(drop).map_err(failed),
        Err(error) => {
            // The documentation explains what to do about parts that stay; the first error is reported.
            let _ = runtime.block_on(parts.abort());
            Err(error)
        }
    }
}

/// Downloads an object and passes its bytes to `take`, never more than the file has. Returns what is wrong with the
/// object, if anything; failures of the store are errors.
pub(super) fn download(
    remote: &Remote,
    entry: &CopiedFile,
    control: &Control,
    take: &mut dyn FnMut(&[u8]) -> Result<(), CopyError>,
) -> Result<Option<String>, CopyError> {
    let object = entry.object();
    let failed = |error| remote.failed(RemoteError::of(object.as_ref(), error));
    let found = match remote.runtime.block_on(remote.store.get(&object)) {
        Err(object_store::Error::NotFound { .. }) => return Ok(Some("is not there".to_owned())),
        found => found.map_err(failed)?,
    };
    if found.meta.size != entry.bytes {
        return Ok(Some(format!("has {} bytes instead of {}", found.meta.size, entry.bytes)));
    }
    let (mut left, mut hasher) = (entry.bytes, Sha256::new());
    let mut piece = |bytes: &[u8]| {
        if control.is_stopped() {
            return Err(CopyError::Stopped);
        }
        let Some(rest) = left.checked_sub(bytes.len() as u64) else { return Ok(false) };
        left = rest;
        hasher.update(bytes);
        take(bytes).map(|()| true)
    };
    let is_no_longer = match found.payload {
        GetResultPayload::File(file, path) => read_pieces(file, &mut piece, &|error| {
            remote
                .failed(RemoteError::Failed { what: path.display().to_string(), problem: error.to_string() })
        })?,
        GetResultPayload::Stream(mut stream) => loop {
            match remote.runtime.block_on(stream.try_next()).map_err(failed)? {
                Some(bytes) if piece(&bytes)? => {}
                Some(_) => break false,
                None => break true,
            }
        },
    };
    if !is_no_longer || left > 0 {
        return Ok(Some(format!("does not have {} bytes", entry.bytes)));
    }
    let is_same = hex(&Digest::from_sha256(hasher.finalize().into())) == entry.sha256;
    Ok((!is_same).then(|| "does not have its digest".to_owned()))
}

/// Passes the bytes of a file to `take`. Returns whether `take` accepted them all.
fn read_pieces(
    mut file: std::fs::File,
    take: &mut dyn FnMut(&[u8]) -> Result<bool, CopyError>,
    failed: &dyn Fn(io::Error) -> CopyError,
) -> Result<bool, CopyError> {
    let mut buffer = vec![0; PART_BYTES as usize / 8];
    loop {
        match file.read(&mut buffer).map_err(failed)? {
            0 => return Ok(true),
            count if !take(buffer.split_at(count).0)? => return Ok(false),
            _ => {}
        }
    }
}
