//! The robots rules of a host: from the archive, from the network, or by redirect from another host.

use std::sync::Arc;
use std::time::{Duration, Instant};

use archive_base::decisions::RobotsDecision;
use archive_books::ledger::{Refusal, fetched_url, is_own_robots_txt, name_as_robots_txt, page_flags};
use archive_books::recorder::RecorderError;
use archive_choose::stored_robots::{self, REDIRECTS_MAX};
use archive_storage::address::url_hash;
use archive_storage::{Capture, CaptureId, HostId, UrlId};
use archive_web::fetch::robots::Robots;
use archive_web::fetch::{FetchError, Job, Place};
use archive_web::parse::ParseLimits;
use url::Url;

use super::super::process::{FetchTag, JobTag};
use super::super::robots_cache::HostRules;
use super::{CrawlError, EngineRun};

/// Robots rules are fetched again after this time; if that fails, the known ones stay in force (RFC 9309 section 2.4).
const ROBOTS_AGE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Maximum number of requests for robots.txt in a run with a limit of pages: a base, and more for each page of the
/// limit. Links may lead to any number of hosts without pages.
const REQUESTS_MAX: u64 = 1000;
const REQUESTS_PER_PAGE_MAX: u64 = 100;

/// By whose decision robots.txt is ignored where nobody decided on a host.
const OF_RUN: &str = "option --robots of the run";

/// Stands for a file that cannot be read: nothing is allowed.
const CLOSED: &[u8] = b"User-agent: *\nDisallow: /";

/// What is known about a URL requested as a robots.txt.
enum RobotsTxtAnswer {
    /// No valid answer.
    Unknown,
    Rules(HostRules),
    /// Canonical URL of a redirect.
    Moved(String),
}

impl EngineRun<'_> {
    pub(super) fn host_name(&self, host: HostId) -> Result<String, CrawlError> {
        Ok(self.recorder.state().host_name(host)?)
    }

    /// Whether a host is asked over https first: the scheme of its most wanted URL decides.
    pub(super) fn is_secure(&mut self, host: HostId) -> Result<bool, CrawlError> {
        let url = self.frontier.best(host).or_else(|| self.robots.sought(host));
        Ok(url
            .map(|url| self.recorder.state().url(url))
            .transpose()?
            .is_some_and(|url| url.starts_with("https:")))
    }

    /// Returns the URLs of a host's robots.txt, over its own scheme and over the other one.
    fn robots_urls(&mut self, host: HostId) -> Result<[String; 2], CrawlError> {
        let name = self.host_name(host)?;
        let mut schemes = ["http", "https"];
        if self.is_secure(host)? != self.robots.is_asked_otherwise(host) {
            schemes.reverse();
        }
        Ok(schemes.map(|scheme| format!("{scheme}://{name}/robots.txt")))
    }

    /// Returns why a URL of a host may not be fetched.
    pub(super) fn forbidden(&mut self, host: HostId, url: &Url) -> Result<Option<Refusal>, CrawlError> {
        Ok(match self.robots.rules(host) {
            Some(HostRules::Given { file, .. }) => {
                (!self.rules_of(file)?.check(url).allowed).then_some(Refusal::Robots)
            }
            Some(HostRules::Free) => None,
            Some(HostRules::Closed) | None => Some(Refusal::RobotsUnreachable),
        })
    }

    /// Whether anything may be fetched in this run although robots.txt forbids it.
    pub(super) fn may_ignore_robots(&self) -> bool {
        self.options.robots != RobotsDecision::Obey || !self.decisions.is_empty()
    }

    /// Returns by whose decision a URL that robots.txt forbids is fetched all the same; `None` if it is not.
    pub(super) fn robots_ignored(
        &self,
        host: HostId,
        id: UrlId,
        url: &Url,
    ) -> Result<Option<String>, CrawlError> {
        if !self.may_ignore_robots() {
            return Ok(None);
        }
        let is_part = self.recorder.state().page(id)?.flags.has_any(page_flags::REQUISITE);
        let decided = self.decided(host, url.as_str())?.robots;
        let what = decided.as_ref().map_or(self.options.robots, |decided| decided.what);
        let origin = || decided.map_or_else(|| OF_RUN.to_owned(), |decided| decided.origin());
        Ok(what.ignores(is_part).then(origin))
    }

    /// Whether a host is asked although its robots.txt cannot be had.
    pub(super) fn is_asked_unread(&self, host: HostId) -> Result<bool, CrawlError> {
        if !self.may_ignore_robots() {
            return Ok(false);
        }
        let state = self.recorder.state();
        let site = state.site_name(state.host(host)?.site)?;
        let decided = self.decisions.of_host(&state.host_name(host)?, &site).robots;
        Ok(decided.map_or(self.options.robots, |decided| decided.what) == RobotsDecision::Ignore)
    }

    /// Returns the rules in a capture, from memory or from the archive.
    fn rules_of(&mut self, file: CaptureId) -> Result<Arc<Robots>, CrawlError> {
        if let Some(robots) = self.robots.file(file) {
            return Ok(robots);
        }
        let (capture, name) = (self.recorder.state().capture(file)?, &self.options.policy.robots_name);
        // Without a readable file, nothing is allowed.
        let robots = stored_robots::read(self.recorder.store(), &capture, name)?;
        Ok(self.robots.keep(file, robots.unwrap_or_else(|| Robots::parse(CLOSED, name))))
    }

    /// Returns the archive's answer for a URL requested as a robots.txt, if it is recent enough not to be fetched
    /// again, and how long it remains valid. An answer whose records are lost counts as unknown.
    fn answer(&mut self, url: &str) -> Result<(RobotsTxtAnswer, Duration), CrawlError> {
        let unknown = (RobotsTxtAnswer::Unknown, ROBOTS_AGE_MAX);
        let Some((id, capture)) = stored_robots::answer(self.recorder.store(), url, i64::MAX)? else {
            return Ok(unknown);
        };
        let age = self.options.fetch.clock.now().timestamp() - stored_robots::seconds(&capture);
        let age = Duration::from_secs(u64::try_from(age).unwrap_or(0));
        let Some(holds) = ROBOTS_AGE_MAX.checked_sub(age).filter(|holds| !holds.is_zero()) else {
            return Ok(unknown);
        };
        let answer = match self.stored_answer(url, id, &capture) {
            Err(CrawlError::Recorder(RecorderError::Store(lost))) if lost.is_lost() => {
                RobotsTxtAnswer::Unknown
            }
            answer => answer?,
        };
        Ok((answer, holds))
    }

    /// Returns what a capture of a robots.txt says.
    fn stored_answer(
        &mut self,
        url: &str,
        id: CaptureId,
        capture: &Capture,
    ) -> Result<RobotsTxtAnswer, CrawlError> {
        let is_of_this_run = id >= self.first_capture;
        Ok(match capture.status {
            200..=299 => {
                let delay = self.rules_of(id)?.crawl_delay();
                RobotsTxtAnswer::Rules(HostRules::Given { file: id, delay })
            }
            300..=399 => match stored_robots::redirect(self.recorder.store(), url, capture)? {
                Some(target) if target.len() <= ParseLimits::default().url_bytes_max => {
                    RobotsTxtAnswer::Moved(target)
                }
                _ => RobotsTxtAnswer::Rules(HostRules::Free),
            },
            // The next run retries temporary failures. 429 asks for fewer requests; there may be a file.
            0..=199 | 429 | 500.. if !is_of_this_run => RobotsTxtAnswer::Unknown,
            0..=199 | 429 | 500.. => RobotsTxtAnswer::Rules(HostRules::Closed),
            _ => RobotsTxtAnswer::Rules(HostRules::Free),
        })
    }

    /// Finds the rules of a host: the answer for its robots.txt, or for what that redirects to. If that has to be
    /// fetched first, the host waits for it.
    fn look_up(&mut self, host: HostId, now: Instant) -> Result<(), CrawlError> {
        let [own, other] = self.robots_urls(host)?;
        let is_settled = |answer: &RobotsTxtAnswer| {
            !matches!(answer, RobotsTxtAnswer::Unknown | RobotsTxtAnswer::Rules(HostRules::Closed))
        };
        let knows_other = !is_settled(&self.answer(&own)?.0) && is_settled(&self.answer(&other)?.0);
        let mut url = if knows_other { other } else { own };
        let (mut before, mut holds) = (None, ROBOTS_AGE_MAX);
        for _ in 0..=REDIRECTS_MAX {
            let (answer, its) = self.answer(&url)?;
            holds = holds.min(its);
            match answer {
                RobotsTxtAnswer::Rules(rules) => return self.settle_for(host, rules, holds, now),
                RobotsTxtAnswer::Moved(target) => before = Some(std::mem::replace(&mut url, target)),
                RobotsTxtAnswer::Unknown => return self.seek(host, &url, before.as_deref(), now),
            }
        }
        // Longer chains of redirects count as no robots.txt.
        self.settle_for(host, HostRules::Free, holds, now)
    }

    /// Makes a host wait for the answer of a URL requested as a robots.txt, to which `before` redirects.
    fn seek(
        &mut self,
        host: HostId,
        url: &str,
        before: Option<&str>,
        now: Instant,
    ) -> Result<(), CrawlError> {
        let (name, is_own) = (name_as_robots_txt(url), is_own_robots_txt(url));
        let (credits, state) = self.recorder.books();
        let id = credits.intern(state, &name, url_hash(&name))?;
        let mut page = self.recorder.state().page(id)?;
        if let Some(before) = before.filter(|_| !is_own) {
            (page.via, page.hop) = (self.recorder.state().find(&name_as_robots_txt(before))?, b'R');
            self.recorder.state_mut().set_page(id, &page)?;
        }
        if self.frontier.want_robots(page.host, now) {
            self.robots.wait(host, id, page.host, is_own);
            return Ok(());
        }
        self.settle_robots(host, HostRules::Closed, now)
    }

    /// Requests a host's robots.txt, or what the robots.txt of another host redirects to.
    pub(super) fn robots_job(
        &mut self,
        host: HostId,
        place: Place,
        now: Instant,
    ) -> Result<Option<Job<JobTag>>, CrawlError> {
        let is_wanted = self.frontier.best(host).is_some() || self.robots.needs_rules(host);
        if is_wanted && !self.frontier.knows_robots(host, now) && !self.robots.waits(host) {
            self.look_up(host, now)?;
        }
        while let Some((id, is_free)) = self.robots.take_sought(host) {
            match Url::parse(fetched_url(&self.recorder.state().url(id)?)) {
                Ok(url) if is_free || self.forbidden(host, &url)?.is_none() => {
                    self.count_robots();
                    if self.robots.is_ready(host) {
                        self.frontier.want_robots(host, now);
                    }
                    return Ok(Some(self.fetch_job(host, id, url, place, true)?));
                }
                // A forbidden URL gives no answer, and without one nothing is allowed.
                _ => {
                    for waiting in self.robots.answered(id) {
                        self.settle_robots(waiting, HostRules::Closed, now)?;
                    }
                }
            }
        }
        self.frontier.cancelled(host, now);
        Ok(None)
    }

    fn count_robots(&mut self) {
        self.robots_requests += 1;
        if let (true, Some(limit)) = (self.robots_are_spent(), self.options.limit) {
            self.notice(format!(
                "{} requests for robots.txt gave no more than {} pages; so the run ends before its limit of {limit}",
                self.robots_requests, self.status.pages
            ));
        }
    }

    /// Whether a run with a limit of pages has used up its requests for robots.txt.
    pub(super) fn robots_are_spent(&self) -> bool {
        let most = |pages: u64| REQUESTS_MAX.saturating_add(pages.saturating_mul(REQUESTS_PER_PAGE_MAX));
        self.options.limit.is_some_and(|pages| self.robots_requests >= most(pages))
    }

    /// Lets all hosts continue that waited for a URL requested as a robots.txt, after its last attempt.
    pub(super) fn robots_fetched(&mut self, id: UrlId, now: Instant) -> Result<(), CrawlError> {
        for host in self.robots.answered(id) {
            self.look_up(host, now)?;
        }
        Ok(())
    }

    /// Requests a seed that is a robots.txt; nothing else would, if no page of its host waits.
    pub(super) fn seek_seed(&mut self, id: UrlId, now: Instant) -> Result<(), CrawlError> {
        let url = self.recorder.state().url(id)?;
        if is_own_robots_txt(&url) && matches!(self.answer(&url)?.0, RobotsTxtAnswer::Unknown) {
            let host = self.recorder.state().page(id)?.host;
            self.robots.wait(host, id, host, true);
            self.frontier.want_robots(host, now);
        }
        Ok(())
    }

    /// Whether a robots.txt, after a failed connection, is now requested over the other scheme. The target of a
    /// redirect is not: that file exists and is unreachable (RFC 9309 section 2.3.1.4).
    pub(super) fn ask_otherwise(&mut self, tag: &FetchTag, error: &FetchError) -> Result<bool, CrawlError> {
        let no_connection = match error {
            FetchError::NoConnection(_) | FetchError::Tls(_) | FetchError::Certificate(_) => true,
            FetchError::Proxy { fault, .. } => !fault.is_of_proxy(),
            _ => false,
        };
        // If the host has a port, only one scheme can be meant.
        Ok(no_connection
            && tag.url.port().is_none()
            && self.robots_urls(tag.host)?[0] == tag.url.as_str()
            && self.robots.ask_otherwise(tag.host))
    }

    /// Sets the rules of a host as of now.
    pub(super) fn settle_robots(
        &mut self,
        host: HostId,
        rules: HostRules,
        now: Instant,
    ) -> Result<(), CrawlError> {
        self.settle_for(host, rules, ROBOTS_AGE_MAX, now)
    }

    /// Sets the rules of a host for a time. If nothing may be fetched there, hosts waiting for its answers get none
    /// either.
    fn settle_for(
        &mut self,
        host: HostId,
        rules: HostRules,
        holds: Duration,
        now: Instant,
    ) -> Result<(), CrawlError> {
        let mut settled = vec![(host, rules)];
        while let Some((host, rules)) = settled.pop() {
            let rules = self.robots.set_rules(host, rules);
            match rules {
                HostRules::Closed if !self.is_asked_unread(host)? => {
                    let left = self.frontier.give_up(host, Refusal::RobotsUnreachable);
                    self.put_off.note_unasked(self.recorder.state(), &left)?;
                    for &url in &left {
                        self.recorder.put_off(url, Refusal::RobotsUnreachable)?;
                    }
                    self.count_refused(Refusal::RobotsUnreachable, &left);
                    settled
                        .extend(self.robots.abandon(host).into_iter().map(|host| (host, HostRules::Closed)));
                }
                HostRules::Closed | HostRules::Given { .. } | HostRules::Free => {
                    self.set_delay(host)?;
                    self.frontier.robots_known(host, now, holds);
                    if self.robots.is_ready(host) {
                        self.frontier.want_robots(host, now);
                    }
                }
            }
        }
        Ok(())
    }
}
