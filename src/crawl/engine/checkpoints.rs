//! Checkpoints during a crawl, and reports of its progress.

use std::time::{Duration, Instant};

use archive_storage::Checkpointed;

use super::super::options::{CookieUse, CrawlStatus};
use super::{CrawlError, EngineRun};

/// Number of sites in the report.
const TOP_SITES: usize = 5;

/// Interval between lookups of the most important sites for the report.
const TOP_SITES_EVERY: Duration = Duration::from_secs(2);

/// These lookups, each a pass over all sites, take at most one part in this many of the time.
const TOP_SITES_PART: u32 = 50;

impl EngineRun<'_> {
    /// Makes everything so far durable; on a full disk, the crawl pauses until there is space.
    pub(super) fn checkpoint(&mut self) -> Result<(), CrawlError> {
        let checkpointed = match self.recorder.checkpoint() {
            Err(error) if self.may_wait_for_room(&error) => {
                self.disk_is_full();
                return Ok(());
            }
            checkpointed => checkpointed?,
        };
        self.status.checkpoints += 1;
        self.status.acknowledged = self.status.captures;
        if checkpointed == Checkpointed::Done {
            self.keep_cookies()?;
            self.report_to_peers()?;
            self.checkpoint_is_made()?;
        }
        Ok(())
    }

    /// Keeps the cookies for later runs, if the archive was told so.
    pub(super) fn keep_cookies(&self) -> Result<(), CrawlError> {
        let now = self.options.fetch.clock.now().timestamp();
        match self.cookies.as_ref().filter(|_| self.options.cookies == CookieUse::Kept) {
            Some(cookies) => cookies.write(self.recorder.store().path(), now).map_err(CrawlError::Secrets),
            None => Ok(()),
        }
    }

    /// Looks up what of the pages to be read was read. A refresh reads them again, and does not know.
    pub(super) fn count_gathered(&mut self) {
        let ledger = self.recorder.credits().pages();
        self.status.clock = ledger.clock();
        if self.discovering {
            self.status.read = ledger.read_pages();
            self.status.gathered = ledger.gathered(self.frontier.queued());
        }
    }

    pub(super) fn report(&mut self, report: &mut dyn FnMut(&CrawlStatus)) -> Result<(), CrawlError> {
        self.status.elapsed = self.elapsed();
        // At the end, pages that were put off are counted by themselves.
        let put_off = if self.status.waiting > 0 { self.later.queued_again() } else { 0 };
        self.status.queued = self.frontier.queued().saturating_sub(put_off);
        self.status.active = self.frontier.active();
        self.status.hosts_active = self.frontier.hosts_active();
        self.status.hosts_waiting = self.frontier.hosts_waiting();
        self.count_gathered();
        self.count_exchanged();
        let now = Instant::now();
        if self.top_sites_at.is_none_or(|at| now >= at) {
            self.status.top_sites = self.recorder.credits().top_sites(self.recorder.state(), TOP_SITES)?;
            let pause = TOP_SITES_EVERY.max(now.elapsed() * TOP_SITES_PART);
            self.top_sites_at = Some(Instant::now() + pause);
        }
        report(&self.status);
        self.status.notices.clear();
        self.refresh_account(now);
        if let Some(monitor) = &self.monitor {
            monitor.publish(&self.status);
        }
        Ok(())
    }
}
