//! A run that shares its requests with other crawls of the machine.

use std::time::{Duration, Instant};

use archive_books::cluster::Slots;
use crossbeam::channel::RecvTimeoutError;
use crossbeam::select;

use super::super::process::ProcessedJob;
use super::{CrawlError, EngineRun};

impl EngineRun<'_> {
    /// Whether one more request may be sent, as far as the other crawls are concerned.
    pub(super) fn has_slot(&mut self, now: Instant) -> bool {
        let Some(slots) = &mut self.slots else { return true };
        slots.may_ask(self.frontier.best_level(now))
    }

    /// Returns unused slots to the other crawls.
    pub(super) fn leave_slots(&mut self) {
        if let Some(slots) = &mut self.slots {
            slots.may_ask(0);
        }
    }

    /// Returns the next finished job; `None` after a timeout, or if a slot was granted first.
    pub(super) fn next_done(&mut self, wait: Duration) -> Result<Option<ProcessedJob>, CrawlError> {
        let Some(slots) = self.slots.as_ref().filter(|slots| !slots.is_over()) else {
            // Far cheaper than waiting for two channels: a finished thread need not wake this one at once.
            return match self.done.recv_timeout(wait) {
                Ok(done) => Ok(Some(done)),
                Err(RecvTimeoutError::Timeout) => Ok(None),
                Err(RecvTimeoutError::Disconnected) => Err(CrawlError::ThreadEnded),
            };
        };
        select! {
            recv(self.done) -> done => done.map(Some).map_err(|_| CrawlError::ThreadEnded),
            recv(slots.granted) -> granted => {
                self.slots.iter_mut().for_each(|slots| slots.heard(granted.is_ok()));
                Ok(None)
            }
            default(wait) => Ok(None),
        }
    }

    /// Whether there is something to request, once other crawls of this machine free a slot.
    pub(super) fn waits_for_slot(&self) -> bool {
        self.slots.as_ref().is_some_and(Slots::is_waiting)
    }
}
