//! Makes records durable on a thread of its own while recording continues: one sync takes a disk as long as recording a
//! hundred pages.
//!
//! Invariant: at most one sync is in progress, so they end in the order in which they started.

use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use archive_storage::{PendingSync, Store, StoreError};
use crossbeam::channel::{Receiver, Sender, bounded};

use super::RecorderError;

/// The handle of the syncing thread.
pub(super) struct Syncing {
    orders: Sender<PendingSync>,
    outcomes: Receiver<(PendingSync, Result<(), StoreError>)>,
    /// The caller's mark for the sync in progress.
    under_way: Option<u64>,
    begun: Instant,
}

impl Syncing {
    /// Starts the thread; it ends with the handle.
    pub(super) fn start<'scope>(scope: &'scope Scope<'scope, '_>) -> Result<Self, RecorderError> {
        let (orders, queue) = bounded::<PendingSync>(1);
        let (done, outcomes) = bounded(1);
        let sync = move || {
            for sync in queue {
                let outcome = sync.carry_out();
                if done.send((sync, outcome)).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("sync".to_owned());
        thread.spawn_scoped(scope, sync).map_err(RecorderError::Thread)?;
        Ok(Self { orders, outcomes, under_way: None, begun: Instant::now() })
    }

    /// Time since the last sync was started.
    pub(super) fn since_last(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Starts a sync of everything so far, unless one is in progress.
    pub(super) fn begin(&mut self, store: &mut Store, mark: u64) -> Result<(), RecorderError> {
        if self.under_way.is_some() {
            return Ok(());
        }
        let sync = store.sync_handle()?;
        (self.under_way, self.begun) = (Some(mark), Instant::now());
        self.orders.send(sync).map_err(|_| RecorderError::ThreadEnded)
    }

    /// Records a sync that has ended, and returns its mark.
    pub(super) fn look(&mut self, store: &mut Store) -> Result<Option<u64>, RecorderError> {
        match self.outcomes.try_recv() {
            Ok(ended) => self.ended(store, ended),
            Err(_) => Ok(None),
        }
    }

    /// Waits for the sync in progress, if there is one.
    pub(super) fn wait(&mut self, store: &mut Store) -> Result<(), RecorderError> {
        if self.under_way.is_some() {
            let ended = self.outcomes.recv().map_err(|_| RecorderError::ThreadEnded)?;
            self.ended(store, ended)?;
        }
        Ok(())
    }

    fn ended(
        &mut self,
        store: &mut Store,
        (sync, outcome): (PendingSync, Result<(), StoreError>),
    ) -> Result<Option<u64>, RecorderError> {
        outcome?;
        store.synced(&sync);
        Ok(self.under_way.take())
    }
}
