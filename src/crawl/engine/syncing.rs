//! Records are made durable by a thread of its own while the crawl goes on: a disk takes as long for it as a hundred pages.
//!
//! Invariant: one sync is under way at most, so that they end in the order in which they began.

use std::thread::{self, Scope};
use std::time::Instant;

use archive_storage::{PendingSync, StoreError};
use crossbeam::channel::{Receiver, Sender, bounded};

use super::{CrawlError, Run};

/// The handle of the syncing thread.
pub(super) struct Syncing {
    orders: Sender<PendingSync>,
    outcomes: Receiver<(PendingSync, Result<(), StoreError>)>,
    /// Captures of the run when the sync under way began.
    captures: Option<u64>,
    begun: Instant,
}

impl Syncing {
    /// Starts the thread; it ends with the handle.
    pub(super) fn start<'scope>(scope: &'scope Scope<'scope, '_>) -> std::io::Result<Self> {
        let (orders, queue) = bounded::<PendingSync>(1);
        let (done, outcomes) = bounded(1);
        thread::Builder::new().name("sync".to_owned()).spawn_scoped(scope, move || {
            for sync in queue {
                let outcome = sync.carry_out();
                if done.send((sync, outcome)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { orders, outcomes, captures: None, begun: Instant::now() })
    }
}

impl Run<'_> {
    /// Begins a sync if it is time for one. Whether captures have become durable since the last look.
    pub(super) fn sync_beside(&mut self) -> Result<bool, CrawlError> {
        let ended = self.syncing.outcomes.try_recv().ok();
        let has_ended = ended.is_some();
        if let Some((sync, outcome)) = ended {
            self.sync_ended(&sync, outcome)?;
        }
        if self.syncing.captures.is_none() && self.syncing.begun.elapsed() >= self.options.sync_every {
            self.begin_sync()?;
        }
        Ok(has_ended)
    }

    /// Begins a sync of everything so far, unless one is under way.
    pub(super) fn begin_sync(&mut self) -> Result<(), CrawlError> {
        if self.syncing.captures.is_some() {
            return Ok(());
        }
        let sync = self.store.sync_handle()?;
        self.syncing.captures = Some(self.status.captures);
        self.syncing.begun = Instant::now();
        self.syncing.orders.send(sync).map_err(|_| CrawlError::ThreadEnded)
    }

    /// Waits for the sync under way, if there is one.
    pub(super) fn wait_for_sync(&mut self) -> Result<(), CrawlError> {
        if self.syncing.captures.is_some() {
            let (sync, outcome) = self.syncing.outcomes.recv().map_err(|_| CrawlError::ThreadEnded)?;
            self.sync_ended(&sync, outcome)?;
        }
        Ok(())
    }

    fn sync_ended(&mut self, sync: &PendingSync, outcome: Result<(), StoreError>) -> Result<(), CrawlError> {
        outcome?;
        self.store.synced(sync);
        let captures = self.syncing.captures.take().unwrap_or(0);
        self.status.acknowledged = self.status.acknowledged.max(captures);
        Ok(())
    }
}
