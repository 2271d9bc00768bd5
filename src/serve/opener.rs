//! The archive as requests read it: opened for a short time and shared by all requests during that time.
//!
//! A checkpoint of a crawl waits until there is no reader. So the open archive is shared for two seconds, or until a
//! checkpoint is waiting, and then released, even if nobody requests it, and stays unopened for a moment. Thus a
//! concurrent crawl misses no checkpoint and hardly waits for one, and the next request sees it. Indexes, open segments
//! and dictionaries are kept between checkpoints.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use archive_ask::find::PageTextCache;
use archive_base::access::{Access, AccessError, Role};
use archive_books::ledger::CreditError;
use archive_books::veil;
use archive_storage::{Store, StoreError, Veil};
use chrono::Utc;

use super::cache::ArchiveCache;

/// How long requests share the open archive if no checkpoint announces itself: on a full disk it cannot.
const SHARED: Duration = Duration::from_secs(2);

/// How long a veil may hide what an embargo no longer does: where one ends every second, requests would only make veils.
const MADE_ANEW: Duration = Duration::from_secs(60);

/// Maximum age of access rules.
const RULES: Duration = Duration::from_millis(250);

/// How long the archive then stays unopened: twice the polling interval of a waiting checkpoint.
const GAP: Duration = Duration::from_millis(10);

/// How long it is kept without requests: erased files must not stay open.
const KEPT: Duration = Duration::from_secs(10);

/// How long a new request waits for earlier ones to finish, so that a checkpoint can proceed. All other requests wait with
/// it.
const WAIT_MAX: Duration = Duration::from_millis(250);

/// Polling interval of waiting requests.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Why the archive cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Its segments or state cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its access rules cannot be read.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// What they hide cannot be found out.
    #[error(transparent)]
    Hidden(#[from] CreditError),
}

/// An archive as of a checkpoint, with its access rules.
#[derive(Debug)]
pub(super) struct OpenedArchive {
    store: Arc<Store>,
    access: Access,
    /// The archive as unknown people and each role see it, opened on first use.
    views: [OnceLock<RoleArchive>; VIEWS],
}

/// Number of views: of people without a role, and of each role.
const VIEWS: usize = 1 + Role::EACH.len();

/// An archive as a role sees it.
#[derive(Debug)]
struct RoleArchive {
    /// The archive behind its veil; `None` if it is the archive itself, of which nothing is hidden.
    store: Option<Store>,
}

/// A veil that was made for a role, and what it was made of.
#[derive(Debug)]
struct MadeVeil {
    veil: Option<Arc<Veil>>,
    state: (u64, u64, u64),
    access: Access,
    /// When it hides too much.
    ends: Option<i64>,
    since: Instant,
}

impl OpenedArchive {
    fn new(store: Arc<Store>, archive: &Path) -> Result<Arc<Self>, OpenError> {
        Ok(Arc::new(Self { store, access: Access::read(archive)?, views: Default::default() }))
    }

    /// All of the archive, for what is told to nobody.
    pub(super) fn whole(&self) -> &Store {
        &self.store
    }
}

/// An open archive for one request, restricted to what its role may see.
pub(super) struct RoleView<'a> {
    pub(super) store: &'a Store,
    pub(super) access: Access,
    /// Number of access rules, whomever they concern.
    pub(super) rules: usize,
    /// Cache of recent answers.
    pub(super) cache: &'a ArchiveCache,
}

/// Opens an archive for requests.
#[derive(Debug)]
pub(super) struct ArchiveOpener {
    path: PathBuf,
    current: Mutex<Option<CurrentArchive>>,
    /// Cache of recent answers.
    pub(super) cache: ArchiveCache,
    /// The veils of the last checkpoint, by role.
    veils: Mutex<[Option<MadeVeil>; VIEWS]>,
}

/// The archive as last opened.
#[derive(Debug)]
struct CurrentArchive {
    opened: Arc<OpenedArchive>,
    since: Instant,
    /// When the access rules were read.
    ruled: Instant,
    /// Since when checkpoints may proceed and nothing may be read.
    paused: Option<Instant>,
}

impl CurrentArchive {
    /// Whether requests may still share it: its time is not over, and no checkpoint is waiting.
    fn is_shared(&self) -> bool {
        self.paused.is_none() && self.since.elapsed() < SHARED && !self.opened.store.is_awaited()
    }

    /// Lets checkpoints proceed, once no request uses it any more.
    fn pause(&mut self) -> Result<(), OpenError> {
        if self.paused.is_none()
            && let Some(opened) = Arc::get_mut(&mut self.opened)
            && let Some(store) = Arc::get_mut(&mut opened.store)
        {
            opened.views = Default::default();
            store.pause()?;
            self.paused = Some(Instant::now());
        }
        Ok(())
    }
}

impl ArchiveOpener {
    pub(super) fn new(path: &Path, kept: Arc<PageTextCache>) -> Self {
        let (current, veils) = (Mutex::default(), Mutex::default());
        Self { path: path.to_owned(), current, cache: ArchiveCache::new(kept), veils }
    }

    /// The archive's folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The current archive; to be released soon.
    pub(super) fn open(&self) -> Result<Arc<OpenedArchive>, OpenError> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(now) = current.as_mut().filter(|now| now.is_shared()) {
            if now.ruled.elapsed() >= RULES {
                let opened = OpenedArchive::new(Arc::clone(&now.opened.store), &self.path)?;
                if opened.access.rules() != now.opened.access.rules() {
                    now.opened = opened;
                }
                now.ruled = Instant::now();
            }
            return Ok(Arc::clone(&now.opened));
        }
        let store = match current.take() {
            Some(earlier) => self.anew(earlier)?,
            None => Store::read_only(&self.path)?,
        };
        let opened = OpenedArchive::new(Arc::new(store), &self.path)?;
        let now = Instant::now();
        *current = Some(CurrentArchive { opened: Arc::clone(&opened), since: now, ruled: now, paused: None });
        Ok(opened)
    }

    /// The archive as a role may see it. Where rules hide something, it is opened once more, behind a veil.
    pub(super) fn seen<'a>(
        &'a self,
        opened: &'a OpenedArchive,
        role: Option<Role>,
    ) -> Result<RoleView<'a>, OpenError> {
        let (access, cache) = (opened.access.to(role), &self.cache);
        let rules = access.rules().len();
        if access.is_unlimited() {
            return Ok(RoleView { store: &opened.store, access, rules, cache });
        }
        let place = role.map_or(0, |role| 1 + role as usize);
        let view = match opened.views[place].get() {
            Some(view) => view,
            None => {
                let view = self.view(&opened.store, &access, place)?;
                opened.views[place].get_or_init(|| view)
            }
        };
        Ok(match &view.store {
            Some(store) => RoleView { store, access, rules, cache },
            // As without rules, it is answered from columns and caches.
            None => RoleView { store: &opened.store, access: Access::unlimited().to(role), rules, cache },
        })
    }

    fn view(&self, shared: &Store, access: &Access, place: usize) -> Result<RoleArchive, OpenError> {
        let mut store = Store::read_only(&self.path)?;
        let state_of = |store: &Store| {
            let state = store.state();
            (state.identity(), state.generation(), state.checkpoint_number())
        };
        let state = state_of(&store);
        // One request makes it; others wait for it.
        let mut veils = self.veils.lock().unwrap_or_else(PoisonError::into_inner);
        let known = veils[place].take().filter(|known| known.is_of(state, access));
        let made = match known {
            Some(known) => known,
            None => {
                let (veil, ends) = veil::of(&store, access)?.unzip();
                let (access, since) = (access.clone(), Instant::now());
                MadeVeil { veil: veil.map(Arc::new), state, access, ends: ends.flatten(), since }
            }
        };
        let veil = veils[place].insert(made).veil.clone();
        if veil.is_none() && state == state_of(shared) {
            return Ok(RoleArchive { store: None });
        }
        if let Some(veil) = veil {
            store.state_mut().set_veil(veil);
        }
        Ok(RoleArchive { store: Some(store) })
    }

    /// Opens the archive separately for a long operation, so that requests do not wait for it as they would if it were
    /// shared.
    pub(super) fn alone(&self) -> Result<Arc<OpenedArchive>, OpenError> {
        OpenedArchive::new(Arc::new(Store::read_only(&self.path)?), &self.path)
    }

    /// Reopens the archive after a moment in which nobody had it open. If there was no checkpoint since, what was read
    /// of it remains valid.
    fn anew(&self, mut earlier: CurrentArchive) -> Result<Store, OpenError> {
        let begun = Instant::now();
        earlier.pause()?;
        while earlier.paused.is_none() && begun.elapsed() < WAIT_MAX {
            thread::sleep(LOOK_EVERY);
            earlier.pause()?;
        }
        let CurrentArchive { opened, paused, .. } = earlier;
        let alone = paused.and_then(|_| Arc::into_inner(Arc::into_inner(opened)?.store));
        thread::sleep(GAP.saturating_sub(paused.map_or(Duration::ZERO, |since| since.elapsed())));
        let Some(mut store) = alone else { return Ok(Store::read_only(&self.path)?) };
        store.refresh()?;
        Ok(store)
    }

    /// Lets checkpoints proceed when the shared time is over or one is waiting, and closes an unused archive. Returns
    /// whether a checkpoint may still have to wait.
    pub(super) fn look(&self) -> bool {
        // The request that holds the lock takes care of this.
        let Ok(mut current) = self.current.try_lock() else { return true };
        let is_over = current.as_mut().is_some_and(|now| {
            let is_kept = now.is_shared() || now.pause().is_ok();
            !is_kept || now.paused.is_some_and(|since| since.elapsed() >= KEPT)
        });
        if is_over {
            *current = None;
        }
        current.as_ref().is_some_and(|now| now.paused.is_none())
    }
}

impl MadeVeil {
    fn is_of(&self, state: (u64, u64, u64), access: &Access) -> bool {
        let is_over = self.ends.is_some_and(|ends| Utc::now().timestamp_micros() >= ends);
        self.state == state
            && self.access.rules() == access.rules()
            && (!is_over || self.since.elapsed() < MADE_ANEW)
    }
}

#[cfg(test)]
mod tests {
    use archive_storage::Store;
    use archive_storage::segment::SegmentOptions;

    use super::*;

    #[test]
    fn a_waiting_checkpoint_is_let_through_before_the_shared_time_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::own(folder.path(), SegmentOptions::default()).unwrap();
        store.checkpoint_waiting().unwrap();
        let archive = ArchiveOpener::new(folder.path(), Arc::default());
        let opened = archive.open().unwrap();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| store.checkpoint_waiting().unwrap());
            while !opened.store.is_awaited() {
                thread::sleep(LOOK_EVERY);
            }
            // Not before the request has finished.
            assert!(archive.look());
            drop(opened);
            assert!(!archive.look());
            waiting.join().unwrap();
        });
        assert!(!archive.open().unwrap().store.is_awaited());
    }
}
