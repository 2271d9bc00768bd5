//! Starts a run: fills the frontier.

use std::collections::HashSet;
use std::time::Instant;

use archive_base::access::Access;
use archive_books::ledger::{Candidate, LEVEL_FIRST, LEVEL_SEED, authority, page_flags};
use archive_storage::address::canonical;
use archive_storage::{Capture, CaptureKind, UrlId};
use archive_web::fetch::logins::{Login, LoginWay};

use super::super::manners::set_of_host;
use super::super::options::Purpose;
use super::super::seeds::Seed;
use super::{CrawlError, EngineRun, answers};

/// Pages that earlier runs left come after those that were never asked for.
const LEVEL_PUT_OFF: u8 = 1;

impl EngineRun<'_> {
    /// Fills the frontier, and makes the seeds durable before anything is fetched.
    pub(super) fn begin(&mut self, plan: Purpose) -> Result<(), CrawlError> {
        let now = Instant::now();
        if self.recorder.state().totals().captures > 0 {
            self.frontier.resume(now);
        }
        self.resume_pauses(now);
        if let Some(monitor) = &self.monitor {
            let address = monitor.address();
            self.notice(format!("the state of the crawl is served at http://{address}/status and /metrics"));
        }
        self.tell_of_logins();
        match plan {
            Purpose::Discover { mut seeds, scope } => {
                // Every node has the whole list of seeds.
                seeds.retain(|seed| !self.recorder.credits().is_abroad(&canonical(&seed.url)));
                let urls: Vec<String> = seeds.iter().map(|seed| canonical(&seed.url)).collect();
                let (credits, state) = self.recorder.books();
                credits.set_scope(state, scope)?;
                let ids = credits.add_seeds(state, &urls)?;
                self.take_manners(&seeds)?;
                for &id in &ids {
                    self.seek_seed(id, now)?;
                }
                self.ordering = self.policy.order.begin(self.recorder.state(), &ids)?;
                self.begin_focus(&ids)?;
                self.read_settings()?;
                self.enqueue_waiting()?;
                self.take_failed(&ids)?;
                self.take_put_off()?;
                self.take_published()?;
            }
            Purpose::Refresh { pages } => {
                self.take_manners(&[])?;
                self.recorder.store_mut().expect(pages.iter().copied())?;
                self.read_settings()?;
                let count = pages.len().max(1);
                for (rank, url) in pages.into_iter().enumerate() {
                    let host = self.recorder.state().page(url)?.host;
                    // The most urgent page gets the highest level below requisites, the least urgent the lowest.
                    let level = 1 + (count - 1 - rank) * 252 / count;
                    self.candidates.push(Candidate { url, host, level: level as u8 });
                }
            }
            Purpose::Subscribe { .. } => {}
        }
        for candidate in std::mem::take(&mut self.candidates) {
            self.enqueue(candidate, now)?;
        }
        tracing::info!(queued = self.frontier.queued(), "the run has begun");
        self.checkpoint()
    }

    /// Says where log-ins are shown, and whether everybody may see what they open.
    fn tell_of_logins(&mut self) {
        let access = Access::read(self.recorder.store().path());
        let now = self.options.fetch.clock.now().timestamp_micros();
        for Login { hosts, way } in self.logins.clone().all() {
            if let LoginWay::Proxy { .. } = way {
                continue;
            }
            let is_open = access.as_ref().is_ok_and(|access| access.hiding(&hosts.url(), now).is_none());
            let shown = if is_open { "; access.toml shows everybody what it opens" } else { "" };
            self.notice(format!("a log-in ({}) is shown at {hosts}{shown}", way.kind()));
        }
    }

    /// Keeps how servers are to be treated, and takes over the delays of hosts, also those that earlier seeds had.
    fn take_manners(&mut self, seeds: &[Seed]) -> Result<(), CrawlError> {
        let given = self.options.manners.clone();
        let mut manners = given.clone().unwrap_or_default();
        let mut named = HashSet::new();
        for seed in seeds {
            let host = authority(&canonical(&seed.url)).to_owned();
            // Of several seeds of a host, any may say it.
            let is_first = named.insert(host.clone());
            if is_first || seed.delay.is_some() {
                set_of_host(&mut manners.delays, &host, seed.delay);
            }
            if is_first || seed.bytes.is_some() {
                set_of_host(&mut manners.bytes, &host, seed.bytes);
            }
        }
        for (name, delay) in &manners.delays {
            if let Some(host) = self.recorder.state().find_host(name)? {
                self.seed_delays.insert(host, *delay);
                self.frontier.set_delay(host, Some(*delay));
            }
        }
        for (name, bytes) in &manners.bytes {
            if let Some(host) = self.recorder.state().find_host(name)? {
                self.counted.set_bytes(host, *bytes);
            }
        }
        if given.is_some() {
            manners.keep(self.recorder.state_mut())?;
        }
        Ok(())
    }

    /// Queues everything that is to be fetched and never was.
    pub(super) fn enqueue_waiting(&mut self) -> Result<(), CrawlError> {
        let now = Instant::now();
        let Self { recorder, frontier, ordering, focus, policy, counted, decisions, .. } = self;
        let (credits, state, budgets) = (recorder.credits(), recorder.state(), policy.budgets);
        let mut refused = Vec::new();
        credits.waiting(state, |candidate| {
            let level = answers::level(ordering.as_ref(), focus.as_ref(), &candidate);
            let entered = match (budgets.early(state, credits, &candidate, counted, decisions)?, level) {
                (Some(why), _) | (None, Err(why)) => Err(why),
                (None, Ok(level)) => frontier.push(candidate.url, candidate.host, level, now),
            };
            if let Err(why) = entered {
                refused.push((candidate.url, why));
            }
            Ok(())
        })?;
        for (url, why) in refused {
            recorder.put_off(url, why)?;
        }
        Ok(())
    }

    /// Queues seeds that failed in an earlier run: the cause may be gone.
    fn take_failed(&mut self, seeds: &[UrlId]) -> Result<(), CrawlError> {
        for &url in seeds {
            let newest = self.recorder.state().history(url)?.next().transpose()?;
            if newest.is_some_and(|(_, capture)| is_failure(&capture)) {
                let host = self.recorder.state().page(url)?.host;
                self.candidates.push(Candidate { url, host, level: LEVEL_SEED });
            }
        }
        Ok(())
    }

    /// Queues the pages that earlier runs left because of their servers.
    fn take_put_off(&mut self) -> Result<(), CrawlError> {
        let left = self.put_off.find(self.recorder.state())?.into_iter();
        self.candidates.extend(left.map(|(url, host)| Candidate { url, host, level: LEVEL_PUT_OFF }));
        Ok(())
    }

    /// Queues announced pages, before new ones are discovered.
    fn take_published(&mut self) -> Result<(), CrawlError> {
        let (credits, state) = self.recorder.books();
        let queue = credits.published(state)?;
        credits.set_published(state, &queue)?;
        for url in queue {
            let page = self.recorder.state().page(url)?;
            if page.flags.has_any(page_flags::FETCHED) {
                self.candidates.push(Candidate { url, host: page.host, level: LEVEL_FIRST });
            }
        }
        Ok(())
    }
}

/// Whether a fetch failed, or the server had no answer at the time.
fn is_failure(capture: &Capture) -> bool {
    capture.kind == CaptureKind::Failed || capture.status == 429 || capture.status >= 500
}
