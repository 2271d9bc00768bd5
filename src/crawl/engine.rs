//! The loop that drives a run: picks, hands out, takes back, stores, credits, checkpoints.
//!
//! It runs on the caller's thread and owns the store, the books and the frontier. Network and processing threads only
//! see values that are handed to them; all channels are bounded by the number of requests under way, so a slow stage
//! slows the ones before it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use archive_storage::address::canonical;
use archive_storage::segment::CaptureBody;
use archive_storage::{HostId, Store, StoreError, UrlId};
use chrono::Utc;
use crossbeam::channel::{Receiver, RecvTimeoutError, bounded};
use url::Url;

use super::frontier::{Frontier, Pick};
use super::options::{End, Options, Plan, Status};
use super::process::{Done, FetchTag, Previous, Processed, Reading, Tag, failed_group, work};
use super::robots_cache::{Next, RobotsCache, Rules};
use crate::fetch::robots::Robots;
use crate::fetch::{Endpoint, FetchError, Fetcher, Job, Request, Task};
use crate::ledger::{Candidate, CreditError, Credits, Kind, LEVEL_REQUISITE};
use crate::parse::Limits;
use crate::search;

/// How often the caller is told how far the run is.
const REPORT_EVERY: Duration = Duration::from_millis(200);

/// How often the most important sites are looked up for the report.
const TOP_SITES_EVERY: Duration = Duration::from_secs(2);

/// Sites in the report.
const TOP_SITES: usize = 5;

/// After a stop, requests under way get this long.
const STOP_GRACE: Duration = Duration::from_secs(10);

/// Attempts at one URL in one run, when what kept it away may pass.
const ATTEMPTS_MAX: u8 = 3;

/// Before the second attempt; each further one waits four times as long.
const RETRY_PAUSE: Duration = Duration::from_secs(2);

/// A server that asks for more than this is left alone until the next run.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(300);

/// Robots rules are fetched anew after this time (RFC 9309 section 2.4).
const ROBOTS_AGE_MAX_HOURS: i64 = 24;

/// A Crawl-delay longer than this is taken for this long.
const CRAWL_DELAY_MAX: Duration = Duration::from_secs(60);

/// Smaller payloads are stored again rather than referred to: the reference would be as long.
const DEDUPLICATED_BYTES_MIN: u64 = 512;

/// Why a run broke off.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CrawlError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The books failed.
    #[error(transparent)]
    Credit(#[from] CreditError),
    /// The full-text index failed.
    #[error(transparent)]
    Search(#[from] search::Error),
    /// No threads or sockets.
    #[error("cannot start fetching: {0}")]
    Start(#[from] std::io::Error),
    /// A thread ended before its time.
    #[error("a thread of the crawl has ended unexpectedly")]
    ThreadEnded,
}

/// Runs a plan on a store until nothing is left to do, a limit is reached, or `stop` is raised.
///
/// `report` is called a few times a second. When it returns, everything the status counts is durable.
///
/// # Errors
/// When the store, the index or a thread fails; what was acknowledged before is not lost.
pub fn run(
    store: &mut Store,
    plan: Plan,
    options: &Options,
    stop: &AtomicBool,
    report: &mut dyn FnMut(&Status),
) -> Result<(End, Status), CrawlError> {
    let (answer_sender, answers) = bounded(options.workers + 1);
    let (done_sender, done) = bounded(options.workers + 1);
    let fetcher = Fetcher::start(options.fetch.clone(), answer_sender)?;
    let index = if options.full_text { Some(super::indexer::Indexer::open(store)?) } else { None };
    let credits = Credits::open(store.state())?;
    thread::scope(|scope| {
        for number in 0..options.threads.max(1) {
            let (answers, done, encoder) = (answers.clone(), done_sender.clone(), store.encoder()?);
            let limits = Limits { robot: options.robots_name.to_ascii_lowercase(), ..Limits::default() };
            let reading = Reading { limits, full_text: options.full_text };
            thread::Builder::new()
                .name(format!("process-{number}"))
                .spawn_scoped(scope, move || work(&answers, &done, &encoder, &reading))?;
        }
        drop(done_sender);
        drop(answers);
        let mut run = Run {
            store,
            options,
            credits,
            frontier: Frontier::new(options.politeness.clone()),
            robots: RobotsCache::default(),
            fetcher,
            done,
            index,
            attempts: HashMap::new(),
            candidates: Vec::new(),
            discovering: matches!(plan, Plan::Discover { .. }),
            under_way: 0,
            started: Instant::now(),
            status: Status::default(),
            checkpoint_at: Instant::now(),
            audited_at: 0,
            top_sites_at: None,
        };
        run.begin(plan)?;
        let end = run.drive(stop, report)?;
        run.finish(report)?;
        Ok((end, run.status))
    })
}

/// One run under way.
struct Run<'a> {
    store: &'a mut Store,
    options: &'a Options,
    credits: Credits,
    frontier: Frontier,
    robots: RobotsCache,
    fetcher: Fetcher<Tag>,
    done: Receiver<Done>,
    index: Option<super::indexer::Indexer>,
    attempts: HashMap<UrlId, u8>,
    candidates: Vec<Candidate>,
    /// Whether new pages are fetched, or only those of the plan and their requisites.
    discovering: bool,
    under_way: usize,
    started: Instant,
    status: Status,
    checkpoint_at: Instant,
    /// Captures at the last audit of the books.
    audited_at: u64,
    top_sites_at: Option<Instant>,
}

impl Run<'_> {
    /// Fills the frontier, and makes the seeds durable before anything is fetched.
    fn begin(&mut self, plan: Plan) -> Result<(), CrawlError> {
        let now = Instant::now();
        match plan {
            Plan::Discover { seeds, scope } => {
                self.credits.set_scope(self.store.state_mut(), scope)?;
                let urls: Vec<String> = seeds.iter().map(|seed| canonical(&seed.url)).collect();
                let ids = self.credits.add_seeds(self.store.state_mut(), &urls)?;
                for (seed, id) in seeds.iter().zip(ids) {
                    if let Some(delay) = seed.delay {
                        let host = self.store.state().page(id).map_err(CreditError::from)?.host;
                        self.frontier.set_delay(host, delay);
                    }
                }
                self.candidates = self.credits.waiting(self.store.state())?;
            }
            Plan::Refresh { pages } => {
                let count = pages.len().max(1);
                for (rank, url) in pages.into_iter().enumerate() {
                    let host = self.store.state().page(url).map_err(CreditError::from)?.host;
                    // The most urgent page is on the highest level below requisites, the least urgent on the lowest.
                    let level = 1 + (count - 1 - rank) * 252 / count;
                    self.candidates.push(Candidate { url, host, level: level as u8 });
                }
            }
        }
        for candidate in std::mem::take(&mut self.candidates) {
            self.frontier.push(candidate.url, candidate.host, candidate.level, now);
        }
        self.checkpoint()
    }

    fn drive(&mut self, stop: &AtomicBool, report: &mut dyn FnMut(&Status)) -> Result<End, CrawlError> {
        let mut reported = Instant::now();
        let mut ending: Option<(End, Instant)> = None;
        loop {
            let now = Instant::now();
            if ending.is_none() {
                ending = self.should_end(stop).map(|end| (end, now));
                if ending.is_none() {
                    self.hand_out(now)?;
                }
            }
            match ending {
                Some((end, since)) if self.under_way == 0 || now - since > STOP_GRACE => return Ok(end),
                None if self.under_way == 0 && !self.wake_later() => return Ok(End::Complete),
                _ => {}
            }
            let wake = self.frontier.next_wake().filter(|_| ending.is_none());
            let wait = wake.map_or(REPORT_EVERY, |time| time.saturating_duration_since(now).min(REPORT_EVERY));
            match self.done.recv_timeout(wait) {
                Ok(first) => {
                    self.take_back(first)?;
                    // Whatever else has arrived is dealt with before the next look at the clock.
                    for _ in 0..self.options.workers {
                        let Ok(next) = self.done.try_recv() else { break };
                        self.take_back(next)?;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(CrawlError::ThreadEnded),
            }
            if self.checkpoint_at.elapsed() >= self.options.checkpoint_every {
                self.checkpoint()?;
            }
            if reported.elapsed() >= REPORT_EVERY {
                reported = Instant::now();
                self.report(report)?;
            }
        }
    }

    fn finish(&mut self, report: &mut dyn FnMut(&Status)) -> Result<(), CrawlError> {
        self.checkpoint()?;
        if let Some(index) = self.index.take() {
            index.finish(self.store.state().totals().captures)?;
        }
        self.top_sites_at = None;
        self.report(report)
    }

    fn should_end(&self, stop: &AtomicBool) -> Option<End> {
        let limit = self.options.limit.unwrap_or(u64::MAX);
        if stop.load(Ordering::Relaxed) {
            Some(End::Stopped)
        } else if self.status.captures >= limit {
            Some(End::Limit)
        } else if self.options.time.is_some_and(|time| self.started.elapsed() >= time) {
            Some(End::Time)
        } else {
            None
        }
    }

    /// Whether anything can still happen once nothing is under way.
    fn wake_later(&mut self) -> bool {
        let now = Instant::now();
        for host in self.robots.take_waiting() {
            // Redirects of robots.txt that lead nowhere count as none at all.
            self.settle_robots(host, &Rules::Free, now);
        }
        self.frontier.next_wake().is_some()
    }

    /// Hands out as many requests as may be under way.
    fn hand_out(&mut self, now: Instant) -> Result<(), CrawlError> {
        let limit = self.options.limit.unwrap_or(u64::MAX);
        while self.under_way < self.options.workers && self.status.captures + (self.under_way as u64) < limit {
            let Some(pick) = self.frontier.next(now) else { return Ok(()) };
            let job = match pick {
                Pick::Resolve(host) => Some(self.resolve_job(host)?),
                Pick::Robots(host, address) => self.robots_job(host, address, now)?,
                Pick::Page(host, url, address) => self.page_job(host, url, address, now)?,
            };
            if let Some(job) = job {
                self.under_way += 1;
                self.fetcher.submit(job).map_err(|_| CrawlError::ThreadEnded)?;
            }
        }
        Ok(())
    }

    fn resolve_job(&self, host: HostId) -> Result<Job<Tag>, CrawlError> {
        let authority = self.host_name(host)?;
        let authority = authority.as_str();
        let (name, port) = match authority.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, port.parse().unwrap_or(80)),
            _ => (authority, 80),
        };
        Ok(Job { task: Task::Resolve { host: name.to_owned(), port }, tag: Tag::Resolve(host) })
    }

    /// Asks for a robots.txt, unless a young one is in the archive.
    fn robots_job(
        &mut self,
        host: HostId,
        address: std::net::SocketAddr,
        now: Instant,
    ) -> Result<Option<Job<Tag>>, CrawlError> {
        let usual = self.robots_url(host)?;
        if self.robots.moved_to(host).is_none()
            && let Some(rules) = self.stored_rules(&usual)?
        {
            self.frontier.completed(host, now, Duration::ZERO, None);
            self.settle_robots(host, &rules, now);
            return Ok(None);
        }
        let url = self.robots.moved_to(host).map_or(usual, str::to_owned);
        let Ok(parsed) = Url::parse(&url) else {
            self.frontier.completed(host, now, Duration::ZERO, None);
            self.settle_robots(host, &Rules::Free, now);
            return Ok(None);
        };
        let id = self.credits.know_robots(self.store.state_mut(), &url)?;
        Ok(Some(self.fetch_job(host, id, parsed, address, true)?))
    }

    fn page_job(
        &mut self,
        host: HostId,
        id: UrlId,
        address: std::net::SocketAddr,
        now: Instant,
    ) -> Result<Option<Job<Tag>>, CrawlError> {
        let url = self.store.state().url(id).map_err(CreditError::from)?;
        let parsed = Url::parse(&url).ok().filter(|url| self.is_allowed(host, url));
        let Some(parsed) = parsed else {
            self.credits.refuse(self.store.state_mut(), id)?;
            self.status.refused += 1;
            self.frontier.cancelled(host, now);
            return Ok(None);
        };
        Ok(Some(self.fetch_job(host, id, parsed, address, false)?))
    }

    fn fetch_job(
        &mut self,
        host: HostId,
        id: UrlId,
        url: Url,
        address: std::net::SocketAddr,
        robots: bool,
    ) -> Result<Job<Tag>, CrawlError> {
        let state = self.store.state();
        let page = state.page(id).map_err(CreditError::from)?;
        let visit = state.visit(id).map_err(CreditError::from)?;
        let mut request = Request::new(url.clone());
        let mut previous = None;
        if !robots
            && visit.is_some_and(|visit| visit.captures > 0)
            && let Some(stored) = super::previous::find(self.store, id)?
        {
            request.if_none_match = stored.etag;
            request.if_modified_since = stored.last_modified;
            previous = Some(stored.previous);
        }
        let (via, hops) = super::previous::way(self.store.state(), id, &page)?;
        let secure = url.scheme() == "https";
        let port = url.port_or_known_default().unwrap_or(80);
        let mut target = address;
        if !self.options.fetch.is_redirected(url.host_str().unwrap_or_default(), port) {
            target.set_port(port);
        }
        let name: Arc<str> = Arc::from(url.host_str().unwrap_or_default());
        let tag = FetchTag {
            host,
            id,
            robots,
            attempt: self.attempts.get(&id).copied().unwrap_or(0),
            via,
            hops,
            importance: self.credits.importance(&page, visit.as_ref()),
            previous,
            url,
        };
        let task = Task::Fetch { endpoint: Endpoint::new(secure, name, target), request };
        Ok(Job { task, tag: Tag::Fetch(Box::new(tag)) })
    }

    fn take_back(&mut self, done: Done) -> Result<(), CrawlError> {
        self.under_way -= 1;
        let now = Instant::now();
        match done {
            Done::Resolved(host, Ok(address)) => {
                self.frontier.resolved(host, Some(address), now);
            }
            Done::Resolved(host, Err(error)) => self.unresolved(host, &error, now)?,
            Done::Fetched(tag, Ok(processed)) => self.fetched(&tag, *processed, now)?,
            Done::Fetched(tag, Err(error)) => self.failed(&tag, &error, now)?,
            Done::Broken(_, error) => return Err(StoreError::from(error).into()),
        }
        Ok(())
    }

    fn fetched(&mut self, tag: &FetchTag, mut processed: Processed, now: Instant) -> Result<(), CrawlError> {
        let pause = processed.retry_after.map(|asked| asked.max(RETRY_PAUSE).min(RETRY_AFTER_MAX));
        self.frontier.completed(tag.host, now, processed.elapsed, pause);
        self.status.bytes += processed.received_bytes;
        if pause.is_some() && !tag.robots && self.try_again(tag, now) {
            return Ok(());
        }
        if processed.outcome.kind == Kind::Response {
            self.deduplicate(&mut processed)?;
        }
        let location = self.store.append(&processed.encoded)?;
        let mut candidates = std::mem::take(&mut self.candidates);
        self.credits.credit(self.store.state_mut(), &processed.outcome, location, &mut candidates)?;
        for candidate in candidates.drain(..) {
            if self.discovering || candidate.level == LEVEL_REQUISITE {
                self.frontier.push(candidate.url, candidate.host, candidate.level, now);
            }
        }
        self.candidates = candidates;
        if tag.robots {
            self.robots_fetched(tag, processed.outcome.status, processed.robots, processed.location, now)?;
            return Ok(());
        }
        self.status.captures += 1;
        self.status.unchanged += u64::from(processed.outcome.kind != Kind::Response);
        self.status.errors += u64::from(processed.outcome.status >= 400);
        if let (Some(index), Some(document)) = (&mut self.index, processed.document)
            && processed.outcome.kind != Kind::NotModified
        {
            index.add(document)?;
        }
        Ok(())
    }

    /// Stores a payload that is already in the archive as a revisit of the capture that has it.
    fn deduplicate(&mut self, processed: &mut Processed) -> Result<(), CrawlError> {
        let outcome = &mut processed.outcome;
        if outcome.payload_bytes < DEDUPLICATED_BYTES_MIN {
            return Ok(());
        }
        let CaptureBody::Response { http, truncated: None } = &processed.encoded.group().body else { return Ok(()) };
        let found = self.store.state().by_digest(&outcome.digest).map_err(CreditError::from)?;
        let Some(original) = found else { return Ok(()) };
        let original = self.store.state().capture(original).map_err(CreditError::from)?;
        let Some(stored) = super::previous::of_capture(self.store, &original)? else { return Ok(()) };
        let (head, _) = archive_storage::warc::split(http);
        let Previous { original_url, original_time, record_digest, .. } = stored.previous;
        let mut group = processed.encoded.group().clone();
        group.body = CaptureBody::Identical { head, original_url, original_time };
        group.payload_digest = Some(record_digest);
        outcome.kind = Kind::Identical;
        processed.encoded = self.store.encoder()?.encode(group).map_err(StoreError::from)?;
        Ok(())
    }

    fn failed(&mut self, tag: &FetchTag, error: &FetchError, now: Instant) -> Result<(), CrawlError> {
        let wait = RETRY_PAUSE * 4u32.pow(u32::from(tag.attempt));
        self.frontier.completed(tag.host, now, Duration::ZERO, error.is_passing().then_some(wait));
        if error.is_passing() && self.try_again(tag, now) {
            return Ok(());
        }
        if tag.robots {
            self.settle_robots(tag.host, &Rules::Closed, now);
        }
        self.store_failure(tag, error)
    }

    fn store_failure(&mut self, tag: &FetchTag, error: &FetchError) -> Result<(), CrawlError> {
        let (outcome, group) = failed_group(tag, error);
        let encoded = self.store.encoder()?.encode(group).map_err(StoreError::from)?;
        let location = self.store.append(&encoded)?;
        self.credits.credit(self.store.state_mut(), &outcome, location, &mut self.candidates)?;
        self.candidates.clear();
        self.status.errors += 1;
        Ok(())
    }

    /// Puts a URL back for another attempt, unless it had its share.
    fn try_again(&mut self, tag: &FetchTag, now: Instant) -> bool {
        if tag.attempt + 1 >= ATTEMPTS_MAX {
            return false;
        }
        self.attempts.insert(tag.id, tag.attempt + 1);
        if tag.robots {
            self.frontier.want_robots(tag.host, now);
        } else {
            self.frontier.push(tag.id, tag.host, 1, now);
        }
        true
    }

    /// A host without an address: its best URL is recorded as failed, the others wait for the next run.
    fn unresolved(&mut self, host: HostId, error: &FetchError, now: Instant) -> Result<(), CrawlError> {
        let urls = self.frontier.resolved(host, None, now);
        for settled in self.robots.set(host, &Rules::Closed) {
            self.frontier.robots_known(settled, now);
        }
        let Some(&id) = urls.last() else { return Ok(()) };
        let url = self.store.state().url(id).map_err(CreditError::from)?;
        let Ok(url) = Url::parse(&url) else { return Ok(()) };
        let page = self.store.state().page(id).map_err(CreditError::from)?;
        let (via, hops) = super::previous::way(self.store.state(), id, &page)?;
        let tag =
            FetchTag { host, id, url, robots: false, attempt: 0, via, hops, importance: None, previous: None };
        self.store_failure(&tag, error)
    }
}

/// Robots rules, checkpoints and reports.
impl Run<'_> {
    fn host_name(&self, host: HostId) -> Result<String, CrawlError> {
        Ok(self.store.state().host_name(host).map_err(CreditError::from)?)
    }

    fn robots_url(&self, host: HostId) -> Result<String, CrawlError> {
        Ok(format!("http://{}/robots.txt", self.host_name(host)?))
    }

    fn is_allowed(&self, host: HostId, url: &Url) -> bool {
        match self.robots.get(host) {
            Some(Rules::Given(robots)) => robots.check(url).allowed,
            Some(Rules::Free) => true,
            Some(Rules::Closed) | None => false,
        }
    }

    /// The rules in the archive, if they are young enough to be used without asking again.
    fn stored_rules(&self, url: &str) -> Result<Option<Rules>, CrawlError> {
        let state = self.store.state();
        let Some(id) = state.find(url).map_err(CreditError::from)? else { return Ok(None) };
        let Some(visit) = state.visit(id).map_err(CreditError::from)? else { return Ok(None) };
        let age = Utc::now().timestamp() - i64::from(visit.last_seen);
        if age > ROBOTS_AGE_MAX_HOURS * 3600 {
            return Ok(None);
        }
        if (400..500).contains(&visit.status) && visit.status != 429 {
            return Ok(Some(Rules::Free));
        }
        if visit.status != 200 {
            return Ok(None);
        }
        let Some(capture) = self.store.newest_version(id)? else { return Ok(None) };
        let payload = self.store.payload(&capture)?;
        Ok(payload.map(|payload| Rules::Given(Arc::new(Robots::parse(&payload, &self.options.robots_name)))))
    }

    fn robots_fetched(
        &mut self,
        tag: &FetchTag,
        status: u16,
        robots: Option<Robots>,
        location: Option<String>,
        now: Instant,
    ) -> Result<(), CrawlError> {
        let rules = match (status, robots, location) {
            (200..=299, robots, _) => Rules::Given(Arc::new(robots.unwrap_or_default())),
            (300..=399, _, Some(location)) => return self.robots_moved(tag, &location, now),
            (429 | 500..=599, ..) => Rules::Closed,
            _ => Rules::Free,
        };
        self.settle_robots(tag.host, &rules, now);
        Ok(())
    }

    fn robots_moved(&mut self, tag: &FetchTag, location: &str, now: Instant) -> Result<(), CrawlError> {
        let own = self.host_name(tag.host)?;
        let target = tag.url.join(location).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let next = match target {
            Some(url) => self.robots.redirect(tag.host, &own, canonical(&url)),
            None => Next::Nowhere,
        };
        match next {
            Next::SameHost(_) => self.frontier.want_robots(tag.host, now),
            Next::Nowhere => self.settle_robots(tag.host, &Rules::Free, now),
            Next::OtherHost(url) => {
                let other = self.credits.know_robots(self.store.state_mut(), &url)?;
                let other = self.store.state().page(other).map_err(CreditError::from)?.host;
                if let Some(rules) = self.robots.get(other).cloned() {
                    self.settle_robots(tag.host, &rules, now);
                } else {
                    self.robots.wait(tag.host, other);
                    self.frontier.want_robots(other, now);
                }
            }
        }
        Ok(())
    }

    /// Sets the rules of a host and of all that waited for them.
    fn settle_robots(&mut self, host: HostId, rules: &Rules, now: Instant) {
        for host in self.robots.set(host, rules) {
            match rules {
                Rules::Closed => drop(self.frontier.give_up(host)),
                Rules::Given(robots) => {
                    let asked = robots.crawl_delay();
                    // A crawl without delays is of one's own servers: a person has said so.
                    let own = self.options.politeness.host_delay;
                    if let Some(delay) = asked.filter(|delay| !own.is_zero() && *delay > own) {
                        self.frontier.set_delay(host, delay.min(CRAWL_DELAY_MAX));
                    }
                    self.frontier.robots_known(host, now);
                }
                Rules::Free => self.frontier.robots_known(host, now),
            }
        }
    }

    /// Makes everything so far durable and lets a restart begin from here.
    fn checkpoint(&mut self) -> Result<(), CrawlError> {
        let captures = self.store.state().totals().captures;
        let urls = u64::from(self.store.state().url_count());
        // A pass over all accounts costs about as much as crediting a page in thirty of them.
        if (captures - self.audited_at) * 30 >= urls {
            self.credits.audit(self.store.state())?;
            self.audited_at = captures;
        }
        self.credits.save(self.store.state_mut())?;
        self.store.checkpoint()?;
        if let Some(index) = &mut self.index {
            index.checkpoint(captures)?;
        }
        self.checkpoint_at = Instant::now();
        Ok(())
    }

    fn report(&mut self, report: &mut dyn FnMut(&Status)) -> Result<(), CrawlError> {
        self.status.elapsed = self.started.elapsed();
        self.status.queued = self.frontier.queued();
        self.status.active = self.frontier.active();
        self.status.hosts_active = self.frontier.hosts_active();
        if self.top_sites_at.is_none_or(|at| at.elapsed() >= TOP_SITES_EVERY) {
            self.top_sites_at = Some(Instant::now());
            self.status.top_sites = self.credits.top_sites(self.store.state(), TOP_SITES)?;
        }
        report(&self.status);
        Ok(())
    }
}
