//! The archive as requests read it: opened for a moment, shared by all requests of that moment.
//!
//! A checkpoint of a crawl waits until no reader is there. So what is opened is shared for a quarter of a second and given up then, also
//! when nobody asks, and for a moment nobody has it: a crawl beside the server loses no checkpoint, and the next
//! request sees it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use archive_storage::{Store, StoreError};

use crate::access::{Access, AccessError};

/// So long requests share what is opened: also the age of access rules at most.
const SHARED: Duration = Duration::from_millis(250);

/// So long nobody has the archive then: twice as long as a waiting checkpoint needs to look again.
const GAP: Duration = Duration::from_millis(10);

/// So long a new request waits for those before it to end, for a checkpoint's sake.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// How often waiting requests look again.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Why the archive cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Its segments or state.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What may be shown.
    #[error(transparent)]
    Access(#[from] AccessError),
}

/// An archive as of one checkpoint, and what may be shown of it.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) store: Store,
    pub(super) access: Access,
}

/// What opens an archive for requests.
#[derive(Debug)]
pub(super) struct Archive {
    path: PathBuf,
    current: Mutex<Option<(Arc<Opened>, Instant)>>,
}

impl Archive {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), current: Mutex::default() }
    }

    /// Its folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The archive as it is now; give it back soon.
    pub(super) fn open(&self) -> Result<Arc<Opened>, OpenError> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((opened, since)) = current.as_ref()
            && since.elapsed() < SHARED
        {
            return Ok(Arc::clone(opened));
        }
        if let Some((opened, _)) = current.take() {
            let begun = Instant::now();
            while Arc::strong_count(&opened) > 1 && begun.elapsed() < WAIT_MAX {
                thread::sleep(LOOK_EVERY);
            }
            drop(opened);
            thread::sleep(GAP);
        }
        let opened =
            Arc::new(Opened { store: Store::read_only(&self.path)?, access: Access::read(&self.path)? });
        *current = Some((Arc::clone(&opened), Instant::now()));
        Ok(opened)
    }

    /// Gives up what nobody shares any more.
    pub(super) fn look(&self) {
        // Whoever holds the lock looks itself.
        if let Ok(mut current) = self.current.try_lock() {
            current.take_if(|(_, since)| since.elapsed() >= SHARED);
        }
    }
}
