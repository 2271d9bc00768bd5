//! Makes copies.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use archive_base::control::Control;
use archive_base::remote::{self, MachineTime, RemoteError};
use bytes::Bytes;
use chrono::{SecondsFormat, Utc};
use object_store::path::Path as ObjectPath;
use serde::Serialize;

use super::manifest::{self, brought_by, object};
use super::snapshot::{Local, Snapshot};
use super::{CopiedFile, CopyError, CopyProgress, Manifest, Remote, places, transfer};

/// Explains the copies to people without this program.
const README: &str = "README.txt";
const README_TEXT: &str = include_str!("README.txt");

/// The result of making a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CopySummary {
    /// Number of the copy, or of the newest one if nothing has changed since.
    pub number: u64,
    /// Whether a new copy was made.
    pub is_new: bool,
    /// Number of captures in the copy.
    pub captures: u64,
    /// Number of files in the copy.
    pub files: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Number of objects that this command uploaded.
    pub sent: u64,
    /// Bytes of these objects.
    pub sent_bytes: u64,
}

/// Copies the archive in `archive`, as of its last checkpoint, even while it is being written to. `adopt` allows
/// continuing copies that the archive does not know of. `may_copy` is called after the existing copies were listed: if
/// another node has taken over the partition and copies it, either `may_copy` fails or the number is already taken.
///
/// # Errors
/// If the archive cannot be read, the store fails or has copies of another archive, `may_copy` fails, or a concurrent
/// copy got the number. What was uploaded serves the next copy.
pub fn send(
    archive: &Path,
    remote: &Remote,
    adopt: bool,
    control: &Control,
    progress: CopyProgress<'_>,
    may_copy: &dyn Fn() -> Result<(), CopyError>,
) -> Result<CopySummary, CopyError> {
    let last = remote.numbers()?.last().copied();
    may_copy()?;
    let base = last.map(|number| remote.manifest(number)).transpose()?;
    let series = series(archive, remote, base.as_ref(), adopt)?;
    let readme = ObjectPath::from(README);
    remote.wait(remote::check_creation(
        remote.store.as_ref(),
        &MachineTime,
        &readme,
        Bytes::from_static(README_TEXT.as_bytes()),
    ))?;
    places::note(archive, &remote.url, &series)?;
    let snapshot = Snapshot::take(archive)?;
    let digests = digests(&snapshot.files, control, progress)?;
    let number = last.unwrap_or(0) + 1;
    let mut plan = Upload::of(remote, base.as_ref(), number)?;
    let files: Vec<CopiedFile> =
        snapshot.files.iter().zip(&digests).map(|(local, sha256)| plan.entry(local, sha256)).collect();
    let mut copied = CopySummary {
        number,
        captures: snapshot.captures,
        files: files.len() as u64,
        bytes: files.iter().map(|file| file.bytes).sum(),
        ..CopySummary::default()
    };
    if let Some(base) = base.as_ref().filter(|base| base.files == files) {
        copied.number = base.number;
    } else {
        (copied.sent, copied.sent_bytes) = plan.carry_out(remote, control, progress)?;
        plan.check(remote)?;
        let time = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
        let manifest = Manifest { number, series, copy: random(), time, captures: snapshot.captures, files };
        publish(remote, &manifest)?;
        copied.is_new = true;
    }
    Ok(copied)
}

/// Returns the series of this archive's copies in this place.
fn series(
    archive: &Path,
    remote: &Remote,
    base: Option<&Manifest>,
    adopt: bool,
) -> Result<String, CopyError> {
    let known = places::places(archive).map_err(CopyError::io(&archive.join(places::FILE)))?;
    let known = known.into_iter().find(|place| place.url == remote.url);
    match (base, known) {
        (None, Some(place)) => Ok(place.series),
        (None, None) => Ok(random()),
        (Some(base), Some(place)) if base.series == place.series => Ok(place.series),
        (Some(base), _) if adopt => Ok(base.series.clone()),
        (Some(base), _) => Err(CopyError::Foreign { url: remote.url.clone(), time: base.time.clone() }),
    }
}

/// Returns random text.
fn random() -> String {
    format!("{:032x}", fastrand::u128(..))
}

/// Returns the digests of all files, as recorded or computed.
fn digests(files: &[Local], control: &Control, progress: CopyProgress<'_>) -> Result<Vec<String>, CopyError> {
    let done = AtomicU64::new(0);
    let total = files.iter().filter(|local| local.sha256.is_none()).map(|local| local.bytes).sum();
    transfer::each(files, control, |local| match &local.sha256 {
        Some(sha256) => Ok(sha256.clone()),
        None => {
            let sha256 = transfer::digest(local, control)?;
            progress(done.fetch_add(local.bytes, Ordering::Relaxed) + local.bytes, total);
            Ok(sha256)
        }
    })
}

/// The objects that a copy has to upload.
struct Upload<'a> {
    number: u64,
    /// Existing objects of the previous copy: the copy that uploaded them, by digest.
    named: HashMap<&'a str, u64>,
    /// Lengths of objects uploaded by unfinished copies of the same number.
    brought: HashMap<ObjectPath, u64>,
    missing: BTreeMap<String, &'a Local>,
}

impl<'a> Upload<'a> {
    fn of(remote: &Remote, base: Option<&'a Manifest>, number: u64) -> Result<Self, CopyError> {
        let listed = remote.wait(remote::list(remote.store.as_ref(), &manifest::objects()))?;
        let there: HashMap<ObjectPath, u64> =
            listed.into_iter().map(|object| (object.location, object.size)).collect();
        let named = base.map(|base| base.files.as_slice()).unwrap_or_default();
        // Objects that are missing or incomplete in the store are uploaded again.
        let named = named.iter().filter(|file| there.get(&file.object()) == Some(&file.bytes));
        let named = named.map(|file| (file.sha256.as_str(), file.copy)).collect();
        let brought = there.into_iter().filter(|(object, _)| brought_by(object) == Some(number)).collect();
        Ok(Self { number, named, brought, missing: BTreeMap::new() })
    }

    /// Returns the manifest's entry for a file.
    fn entry(&mut self, local: &'a Local, sha256: &str) -> CopiedFile {
        let named = self.named.get(sha256).copied();
        if named.is_none() && self.brought.get(&object(self.number, sha256)) != Some(&local.bytes) {
            self.missing.insert(sha256.to_owned(), local);
        }
        let copy = named.unwrap_or(self.number);
        CopiedFile { path: local.name.clone(), bytes: local.bytes, sha256: sha256.to_owned(), copy }
    }

    /// Uploads the missing objects. Returns their number and bytes.
    fn carry_out(
        &self,
        remote: &Remote,
        control: &Control,
        progress: CopyProgress<'_>,
    ) -> Result<(u64, u64), CopyError> {
        let total = self.missing.values().map(|local| local.bytes).sum();
        let done = AtomicU64::new(0);
        let count = |bytes| progress(done.fetch_add(bytes, Ordering::Relaxed) + bytes, total);
        let mut missing: Vec<_> = self.missing.iter().collect();
        // The longest files come first, so that the threads end at about the same time.
        missing.sort_unstable_by_key(|(_, local)| std::cmp::Reverse(local.bytes));
        transfer::each(&missing, control, |(sha256, local)| {
            let object = object(self.number, sha256);
            transfer::upload(remote, local, (&object, sha256), control, &count)
        })?;
        Ok((missing.len() as u64, total))
    }

    /// Checks that the store has what was sent: an acknowledgement alone is no copy.
    fn check(&self, remote: &Remote) -> Result<(), CopyError> {
        if self.missing.is_empty() {
            return Ok(());
        }
        let listed = remote.wait(remote::list(remote.store.as_ref(), &manifest::brought(self.number)))?;
        let there: HashMap<ObjectPath, u64> =
            listed.into_iter().map(|object| (object.location, object.size)).collect();
        let is_there = |(sha256, local): &(&String, &&Local)| {
            there.get(&object(self.number, sha256)) == Some(&local.bytes)
        };
        let lost: Vec<_> = self.missing.iter().filter(|sent| !is_there(sent)).collect();
        match lost.first() {
            None => Ok(()),
            Some((first, _)) => {
                Err(absent(remote, (lost.len(), self.missing.len()), &object(self.number, first)))
            }
        }
    }
}

fn absent(remote: &Remote, (count, total): (usize, usize), object: &ObjectPath) -> CopyError {
    CopyError::Absent { url: remote.url.clone(), count, total, object: object.to_string() }
}

/// Writes the manifest, which completes the copy, and reads it again.
fn publish(remote: &Remote, manifest: &Manifest) -> Result<(), CopyError> {
    let number = manifest.number;
    let bytes = manifest.encode().map_err(|error| CopyError::Manifest {
        url: remote.url.clone(),
        number,
        problem: error.to_string(),
    })?;
    let path = manifest::manifest(number);
    match remote.runtime.block_on(remote::create(remote.store.as_ref(), &MachineTime, &path, bytes)) {
        Ok(()) if remote.manifest(number)? == *manifest => Ok(()),
        Ok(()) => Err(absent(remote, (1, 1), &path)),
        Err(RemoteError::Exists(_)) => Err(CopyError::Overtaken { url: remote.url.clone(), number }),
        Err(error) => Err(remote.failed(error)),
    }
}
