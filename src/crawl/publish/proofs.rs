//! Verification of queued notices by a run: a notice counts if its key is found on its host.
//!
//! A run fetches the key files first, politely and as captures like any other, so that the archive holds the proof.
//! Then the pages of verified notices are announced as `archive publish` does. A notice is removed once the
//! announcement is durable: after a crash it is verified again, and its pages are queued already.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::PathBuf;

use archive_base::runs::Tallies;
use archive_books::ledger::{Credits, Published};
use archive_storage::{CaptureKind, State, StateError, Store, UrlId};
use chrono::{DateTime, Utc};
use url::Url;

use super::notices::{FOLDER, KEPT, Notice, queued};
use super::{Announcement, PublishError, publish};

/// Maximum number of key files that a run fetches.
pub const KEYS_MAX: usize = 100;

/// Queued notices, and the key files to be fetched before they count.
#[derive(Debug, Default)]
pub struct Pending {
    waiting: Vec<(PathBuf, Notice)>,
    /// Notices that will never count.
    dropped: Vec<PathBuf>,
    /// Key files to fetch.
    pub keys: Vec<UrlId>,
}

/// Outcome of the notices.
#[derive(Debug, Default)]
pub struct NoticeOutcome {
    /// Pages that are queued because of the notices.
    pub pages: Tallies,
    /// Number of notices that did not count: no matching key, too old, or malformed.
    pub dropped: usize,
    /// Number of notices whose key file could not be fetched yet.
    pub waiting: usize,
}

impl Pending {
    /// Examines the queue. At most `keys_max` key files, and no more than [`KEYS_MAX`], are to be fetched.
    ///
    /// # Errors
    /// When the store or the queue fails.
    pub fn begin(store: &mut Store, keys_max: usize, now: DateTime<Utc>) -> Result<Self, PublishError> {
        let mut pending = Self::default();
        let notices = queued(store.path()).map_err(|error| failed(store, error))?;
        if notices.is_empty() {
            return Ok(pending);
        }
        let mut credits = Credits::open(store.state())?;
        let (mut queue, mut taken) = (credits.published(store.state())?, HashSet::new());
        for (path, notice) in notices {
            let Some(notice) = notice.filter(|notice| now - notice.time < KEPT) else {
                pending.dropped.push(path);
                continue;
            };
            if let Some(proof) = &notice.proof {
                if taken.len() >= keys_max.min(KEYS_MAX) {
                    pending.waiting.push((path, notice));
                    continue;
                }
                let (state, time) = (store.state_mut(), notice.time.timestamp());
                let (Published::Queued(id) | Published::Waiting(id) | Published::Known(id)) =
                    credits.publish(state, &mut queue, &proof.at, time, now)?
                else {
                    pending.dropped.push(path);
                    continue;
                };
                if capture_since(state, id, &notice)?.is_none() && taken.insert(id) {
                    pending.keys.push(id);
                }
            }
            pending.waiting.push((path, notice));
        }
        credits.set_published(store.state_mut(), &queue)?;
        credits.save(store.state_mut())?;
        credits.write_remarks::<PublishError>(store)?;
        Ok(pending)
    }

    /// Announces the pages of verified notices, and removes notices that are finished.
    ///
    /// # Errors
    /// When the store or the queue fails.
    pub fn settle(self, store: &mut Store, now: DateTime<Utc>) -> Result<NoticeOutcome, PublishError> {
        let Self { waiting, mut dropped, .. } = self;
        let (mut taken, mut done) = (NoticeOutcome::default(), Vec::new());
        let mut credits = Credits::open(store.state())?;
        for (path, notice) in waiting {
            match is_proven(store, &notice)? {
                None => taken.waiting += 1,
                Some(false) => dropped.push(path),
                Some(true) => {
                    // Fetch times are in whole seconds: a fetch just before the notice must not count as one after it.
                    let (urls, modified) = (notice.urls.iter(), Some(notice.time.timestamp() + 1));
                    let urls =
                        urls.filter_map(|url| Some(Announcement { url: Url::parse(url).ok()?, modified }));
                    let urls: Vec<_> = urls.collect();
                    let outcome = publish(store.state_mut(), &mut credits, &urls, None, now)?;
                    let first = || notice.urls.first().cloned().unwrap_or_default();
                    if outcome.queued > 0 {
                        taken.pages.count(notice.kind.name(), outcome.queued as u64, notice.time, first);
                    }
                    done.push(path);
                }
            }
        }
        taken.dropped = dropped.len();
        dropped.append(&mut done);
        if !dropped.is_empty() {
            credits.write_remarks::<PublishError>(store)?;
            store.checkpoint()?;
        }
        for path in dropped {
            fs::remove_file(path).map_err(|error| failed(store, error))?;
        }
        Ok(taken)
    }
}

fn failed(store: &Store, source: io::Error) -> PublishError {
    PublishError::Queue { path: store.path().join(FOLDER), source }
}

/// The newest answer of a page since a notice arrived.
fn capture_since(
    state: &State,
    id: UrlId,
    notice: &Notice,
) -> Result<Option<archive_storage::Capture>, StateError> {
    for capture in state.history(id)? {
        let (_, capture) = capture?;
        if capture.time < notice.time.timestamp_micros() {
            return Ok(None);
        }
        if capture.kind != CaptureKind::Failed {
            return Ok(Some(capture));
        }
    }
    Ok(None)
}

/// Whether a notice counts; `None` while its key file has not been fetched.
fn is_proven(store: &Store, notice: &Notice) -> Result<Option<bool>, PublishError> {
    let state = store.state();
    let Some(proof) = &notice.proof else {
        // An unverified ping must not make new URLs known.
        return Ok(Some(match notice.urls.first() {
            Some(url) => state.find(url)?.is_some(),
            None => false,
        }));
    };
    let Some(id) = state.find(&proof.at)? else { return Ok(Some(false)) };
    let Some(capture) = capture_since(state, id, notice)? else { return Ok(None) };
    let Some(original) = store.original(&capture)?.filter(|original| original.status == 200) else {
        return Ok(Some(false));
    };
    // An unreadable capture proves nothing.
    let payload = store.payload(&original).ok().flatten();
    Ok(Some(payload.is_some_and(|payload| payload.trim_ascii() == proof.key.as_bytes())))
}
