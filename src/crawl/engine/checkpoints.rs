//! Checkpoints while a crawl goes on, and what is told of it.

use std::time::{Duration, Instant};

use archive_storage::Checkpointed;

use super::super::options::Status;
use super::{CrawlError, Run};

/// Sites in the report.
const TOP_SITES: usize = 5;

/// How often the most important sites are looked up for the report.
const TOP_SITES_EVERY: Duration = Duration::from_secs(2);

/// Looking them up, which is a pass over all sites, takes at most this part of the time.
const TOP_SITES_PART: u32 = 50;

impl Run<'_> {
    pub(super) fn checkpoint_is_due(&self) -> bool {
        self.checkpoints.is_due(|| self.store.state().dirty_bytes() > self.options.memory.state())
    }

    /// Makes everything so far durable and lets a restart begin from here. While readers are in the way of the state, only
    /// the records are made durable, and the index does not get ahead of the state.
    pub(super) fn checkpoint(&mut self) -> Result<(), CrawlError> {
        let begun = Instant::now();
        self.balance_books()?;
        let checkpointed = match self.store.checkpoint() {
            Err(error) if self.may_wait_for_room(&error) => {
                self.disk_is_full();
                // Nothing hurries: the crawl stands still until there is room.
                self.checkpoints.ended(begun, Checkpointed::Done);
                return Ok(());
            }
            checkpointed => checkpointed?,
        };
        self.checkpoint_deferred = checkpointed == Checkpointed::Deferred;
        self.status.checkpoints += 1;
        tracing::info!(
            captures = self.store.state().totals().captures,
            deferred = self.checkpoint_deferred,
            milliseconds = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            "checkpoint"
        );
        self.status.acknowledged = self.status.captures;
        if let Some(index) = self.index.as_mut().filter(|_| !self.checkpoint_deferred) {
            index.checkpoint(self.store.state().totals().captures)?;
        }
        self.checkpoints.ended(begun, checkpointed);
        Ok(())
    }

    /// Puts the books into the state: balanced, and audited over all accounts now and then.
    fn balance_books(&mut self) -> Result<(), CrawlError> {
        let captures = self.store.state().totals().captures;
        let urls = u64::from(self.store.state().url_count());
        self.credits.balance(self.store.state())?;
        // A pass over all accounts costs about as much as crediting a page in thirty of them.
        if (captures - self.audited_at) * 30 >= urls {
            self.credits.audit(self.store.state())?;
            self.audited_at = captures;
        }
        Ok(self.credits.save(self.store.state_mut())?)
    }

    pub(super) fn report(&mut self, report: &mut dyn FnMut(&Status)) -> Result<(), CrawlError> {
        self.status.elapsed = self.elapsed();
        self.status.queued = self.frontier.queued();
        self.status.active = self.frontier.active();
        self.status.hosts_active = self.frontier.hosts_active();
        let now = Instant::now();
        if self.top_sites_at.is_none_or(|at| now >= at) {
            self.status.top_sites = self.credits.top_sites(self.store.state(), TOP_SITES)?;
            let pause = TOP_SITES_EVERY.max(now.elapsed() * TOP_SITES_PART);
            self.top_sites_at = Some(Instant::now() + pause);
        }
        report(&self.status);
        self.status.notices.clear();
        if let Some(monitor) = &self.monitor {
            monitor.publish(&self.status);
        }
        Ok(())
    }
}
