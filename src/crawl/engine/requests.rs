//! Turns the frontier's picks into jobs for the fetcher.

use std::sync::Arc;
use std::time::Instant;

use archive_base::decisions::{CurrentDecisions, DecisionVerdict};
use archive_books::cluster::Slots;
use archive_books::ledger::{LEVEL_REQUISITE, NearDuplicates, REDIRECTS_MAX, Refusal, page_flags as flags};
use archive_storage::address::method_of;
use archive_storage::{HostId, Page, UrlId};
use archive_web::fetch::robots::ROBOTS_BYTES_MAX;
use archive_web::fetch::{CookieContext, Endpoint, FetchRequest, FetchTask, Job, Place};
use url::Url;

use super::super::frontier::Pick;
use super::super::previous;
use super::super::process::{FetchTag, JobTag};
use super::super::traps::endless_path;
use super::{CrawlError, EngineRun};

impl EngineRun<'_> {
    /// Submits as many requests as may be in flight.
    pub(super) fn hand_out(&mut self, now: Instant) -> Result<(), CrawlError> {
        self.queue_tested(now)?;
        while self.under_way < self.operation.workers && !self.robots_are_spent() {
            self.frontier.set_floor(if self.is_full() { LEVEL_REQUISITE } else { 0 });
            if !self.has_slot(now) {
                return Ok(());
            }
            let Some(pick) = self.frontier.next(now) else { return Ok(()) };
            let job = match pick {
                Pick::Resolve(host) => self.resolve_job(host)?,
                Pick::Robots(host, place) => self.robots_job(host, place, now)?,
                Pick::Page(host, url, place) => self.page_job(host, url, place, now)?,
            };
            if let Some(job) = job {
                self.under_way += 1;
                self.slots.iter_mut().for_each(Slots::take);
                self.fetcher.submit(job).map_err(|_| CrawlError::ThreadEnded)?;
            }
        }
        Ok(())
    }

    /// Whether the limit of pages is reached, so that only requisites may still be fetched.
    fn is_full(&self) -> bool {
        self.options.limit.is_some_and(|limit| self.status.pages + self.pages_under_way >= limit)
    }

    fn resolve_job(&mut self, host: HostId) -> Result<Option<Job<JobTag>>, CrawlError> {
        let site = self.recorder.state().host(host)?.site;
        if !self.frontier.may_resolve(host, site) {
            return Ok(None);
        }
        let authority = self.host_name(host)?;
        let authority = authority.as_str();
        let usual = if self.is_secure(host)? { 443 } else { 80 };
        let (name, port) = match authority.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, port.parse().unwrap_or(usual)),
            _ => (authority, usual),
        };
        let task = FetchTask::Resolve { host: name.to_owned(), port };
        Ok(Some(Job { task, tag: JobTag::Resolve(host) }))
    }

    fn page_job(
        &mut self,
        host: HostId,
        id: UrlId,
        place: Place,
        now: Instant,
    ) -> Result<Option<Job<JobTag>>, CrawlError> {
        let known = self.recorder.state().page(id)?.flags;
        let is_left_out = self.discovering && !known.has_any(flags::IN_SCOPE | flags::REQUISITE);
        if is_left_out || (flags::is_page(known) && self.is_full()) {
            // While it waited, the scope was narrowed, or a requisite became a page.
            self.frontier.cancelled(host, now);
            return Ok(None);
        }
        let url = self.recorder.state().url(id)?;
        if self.is_meant_otherwise(host, id, &url, now)? || self.awaits_tests(host, id, &url, now)? {
            return Ok(None);
        }
        let verdict = match Url::parse(&url) {
            // Only `GET` is sent.
            Ok(_) if method_of(&url).is_some() => Err(Refusal::Unfetchable),
            Ok(parsed) => self.refused(host, id, &parsed)?.map_or(Ok(parsed), Err),
            Err(_) => Err(Refusal::Unfetchable),
        };
        let parsed = match verdict {
            Ok(parsed) => parsed,
            Err(why) => {
                if matches!(why, Refusal::PagesPerHost | Refusal::PagesPerSite) {
                    // Budgets grow with a site's importance: until then, the page keeps its cash.
                    self.recorder.put_off(id, why)?;
                } else {
                    let (credits, state) = self.recorder.books();
                    credits.refuse(state, id, why)?;
                }
                self.later.forget(id);
                self.count_refused(why, &[id]);
                self.frontier.cancelled(host, now);
                return Ok(None);
            }
        };
        Ok(Some(self.fetch_job(host, id, parsed, place, false)?))
    }

    /// Returns why a URL whose turn has come is not fetched after all.
    fn refused(&mut self, host: HostId, id: UrlId, url: &Url) -> Result<Option<Refusal>, CrawlError> {
        if let Some(why) = self.forbidden(host, url)?
            && self.robots_ignored(host, id, url)?.is_none()
        {
            return Ok(Some(why));
        }
        if self.erased.of(url.as_str()).is_some() {
            return Ok(Some(Refusal::Erased));
        }
        let verdict = self.decided(host, url.as_str())?.verdict.map(|(verdict, ..)| verdict);
        if verdict.is_some_and(DecisionVerdict::ends_fetching) {
            return Ok(Some(Refusal::Decided));
        }
        // A session that is ended gives no more pages.
        if self.logins.is_log_out(url)
            || self.operation.ignored.iter().any(|pattern| pattern.is_match(url.as_str()))
        {
            return Ok(Some(Refusal::Ignored));
        }
        let flags = self.recorder.state().page(id)?.flags;
        // People chose seeds and what is to be kept.
        if flags.has_any(flags::SEED) || verdict == Some(DecisionVerdict::Keep) {
            return Ok(None);
        }
        let spent = self.policy.budgets.bytes_spent(self.recorder.state(), host, &self.counted)?;
        // Requisites belong to their page.
        if spent.is_some() || !flags::is_page(flags) {
            return Ok(spent);
        }
        if let Some(trap) = endless_path(url) {
            return Ok(Some(trap));
        }
        // A page that was fetched before is neither a new variation nor a new page.
        if flags.has_any(flags::FETCHED) {
            return Ok(None);
        }
        let variations = self.policy.query_variations;
        if let Some(trap) = self.variations.count(self.recorder.state(), url.as_str(), variations)? {
            return Ok(Some(trap));
        }
        let (state, credits) = (self.recorder.state(), self.recorder.credits());
        Ok(self.policy.budgets.spent(state, credits, host, &self.counted, &self.decisions)?)
    }

    /// Returns people's decisions on a URL of this host.
    pub(super) fn decided(&self, host: HostId, url: &str) -> Result<CurrentDecisions, CrawlError> {
        if self.decisions.is_empty() {
            return Ok(CurrentDecisions::default());
        }
        let state = self.recorder.state();
        let site = state.site_name(state.host(host)?.site)?;
        Ok(self.decisions.of_page(url, &state.host_name(host)?, &site))
    }

    /// Says on behalf of which page a URL is asked for, as browsers do: the page that shows or links it, or what redirects
    /// to it. No browser follows the lists of robots.txt and sitemaps; from other sites, they get no cookies.
    fn ask_on_behalf(&self, request: &mut FetchRequest, page: &Page) -> Result<(), CrawlError> {
        let state = self.recorder.state();
        let mut step = *page;
        for _ in 0..REDIRECTS_MAX {
            match step.via.filter(|_| step.hop == b'R') {
                Some(before) => step = state.page(before)?,
                None => break,
            }
        }
        let via = step.via.map(|via| state.url(via)).transpose()?.and_then(|via| Url::parse(&via).ok());
        let is_part = page.flags.has_any(flags::REQUISITE);
        let is_of_browsers = is_part || matches!(step.hop, b'L' | b'E' | b'B');
        request.cookies = CookieContext::of(&request.url, via.as_ref(), is_part);
        match via {
            Some(via) if is_of_browsers => request.set_referer(&via),
            _ if request.cookies != CookieContext::SameSite => request.cookies = CookieContext::None,
            _ => {}
        }
        Ok(())
    }

    pub(super) fn fetch_job(
        &mut self,
        host: HostId,
        id: UrlId,
        url: Url,
        place: Place,
        robots: bool,
    ) -> Result<Job<JobTag>, CrawlError> {
        let state = self.recorder.state();
        let page = state.page(id)?;
        let visit = state.visit(id)?;
        let mut request = FetchRequest::new(url.clone());
        let mut previous = None;
        if robots {
            request.body_bytes_max = Some(ROBOTS_BYTES_MAX as u64);
        } else if visit.is_some_and(|visit| visit.captures > 0)
            && let Some((stored, validators)) = previous::find(self.recorder.store(), id)?
        {
            // A 304 would say nothing of the page that came back in the place of a redirect.
            if visit.is_some_and(|visit| !(300..400).contains(&visit.content_status)) {
                request.if_none_match = validators.etag;
                request.if_modified_since = validators.last_modified;
            }
            previous = Some(stored);
        }
        let is_page = !robots && flags::is_page(page.flags);
        if is_page {
            self.pages_under_way += 1;
            self.counted.begin(self.recorder.state(), host)?;
        }
        let contents = self.recorder.state().host(host)?.extension;
        let (via, hops) = previous::discovery_path(self.recorder.state(), id, &page)?;
        if !robots {
            self.ask_on_behalf(&mut request, &page)?;
        }
        let robots_ignored = match robots || !self.may_ignore_robots() {
            false if self.forbidden(host, &url)?.is_some() => self.robots_ignored(host, id, &url)?,
            _ => None,
        };
        let secure = url.scheme() == "https";
        let port = url.port_or_known_default().unwrap_or(80);
        let name: Arc<str> = Arc::from(url.host_str().unwrap_or_default());
        let tag = FetchTag {
            host,
            id,
            robots,
            robots_ignored,
            page: is_page,
            is_recorded: false,
            is_behind_wall: self.walls.has(id),
            via,
            hops,
            importance: self.recorder.credits().importance(&page, visit.as_ref()),
            previous,
            near_duplicates: is_page.then(|| NearDuplicates::from_bytes(&contents)),
            url,
        };
        let endpoint = Endpoint { secure, host: name, port, place };
        let task = FetchTask::Fetch { endpoint, request: Box::new(request) };
        Ok(Job { task, tag: JobTag::Fetch(Box::new(tag)) })
    }
}
