//! Per-site sums for reviewers, from one pass over the tables of pages and visits.

use std::collections::HashMap;

use archive_base::access::Access;
use archive_base::error::Failure;
use archive_books::ledger::{Refusal, aliases, page_flags as flags};
use archive_books::prepared::Pages;
use archive_storage::{Page, SiteId, State, UrlId, Visit};
use archive_web::parse::DocumentKind;

use super::past::CaptureSums;
use super::words;

/// A version has shrunk if it keeps less of its page than this,
const SHRUNK: f64 = 1.0 / 3.0;
/// and if the page had at least this many bytes.
const SHRUNK_BYTES_MIN: u32 = 2048;

/// Minimum number of pages of a site with the same content to be taken for error pages,
const SAME_MIN: u32 = 4;
/// if they are not longer than this.
const SAME_BYTES_MAX: u32 = 16 << 10;

/// Maximum number of different contents that are compared; further contents are ignored.
const CONTENTS_MAX: usize = 1 << 21;

/// Maximum number of pages listed as evidence of what is wrong with a site.
const SUSPECTS_MAX: usize = 3;

/// What may have happened to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happened {
    /// It appeared.
    New,
    /// Its content changed.
    Changed,
    /// It is reported gone.
    Gone,
    /// It, or its server, fails.
    Failing,
    /// It requires a login.
    Login,
    /// It redirects to another site.
    Moved,
    /// It has the same content as many other pages of its site.
    Same,
    /// It has lost most of its content.
    Shrunk,
    /// robots.txt forbids it now, and did not before.
    Closed,
}

const HAPPENED: usize = Happened::Closed as usize + 1;

/// Totals of some pages of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PageTally {
    pub(super) pages: u32,
    /// Sum of their importance.
    pub(super) importance: f64,
    /// Number of them that have lost their account, and with it their importance.
    lost: u32,
    /// Number of them whose account is that of another page of the site, which has their importance.
    joined: u32,
}

/// The account that holds a page's importance.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ImportanceAccount {
    Own(f64),
    Lost,
    Joined,
}

/// Sums over the pages of a site.
#[derive(Clone, Debug, Default)]
pub(super) struct SiteTotals {
    /// Time of the last decision on it, seconds since 1970; 0 for never. Earlier events are not reported.
    pub(super) since: u32,
    /// Its known pages, captured or not.
    pub(super) all: PageTally,
    pub(super) captured: PageTally,
    happened: [PageTally; HAPPENED],
    /// Number of pages that were requested, or would have been, without any result.
    pub(super) empty: u32,
    /// Number of pages in the crawl's scope.
    pub(super) in_scope: u32,
    /// Number of images, style sheets and scripts of its pages, and how many of them are missing.
    pub(super) requisites: u32,
    pub(super) requisites_missing: u32,
    /// Time of the last change of its robots.txt.
    robots_changed: u32,
    /// Its most important captured page.
    pub(super) best: Option<(UrlId, f64)>,
    /// The most important pages to which something happened.
    pub(super) suspects: Vec<(UrlId, f64)>,
}

impl SiteTotals {
    /// Totals of the pages to which this happened.
    pub(super) fn of(&self, what: Happened) -> PageTally {
        self.happened[what as usize]
    }

    fn note(&mut self, what: Happened, id: UrlId, account: ImportanceAccount) {
        self.happened[what as usize].add(account);
        if matches!(what, Happened::New | Happened::Changed) {
            return;
        }
        self.suspect(id, account.importance());
    }

    fn suspect(&mut self, id: UrlId, importance: f64) {
        let place = self.suspects.partition_point(|(_, other)| *other >= importance);
        if place < SUSPECTS_MAX {
            self.suspects.insert(place, (id, importance));
            self.suspects.truncate(SUSPECTS_MAX);
        }
    }

    /// Gives pages that have lost their account the mean importance of the others, or that of their site, and pages
    /// that share an account their part of it.
    fn settle(&mut self, site_importance: f64) {
        if self.robots_changed <= self.since {
            self.happened[Happened::Closed as usize] = PageTally::default();
        }
        let with_account = self.all.pages - self.all.lost - self.all.joined;
        let mean = |pages: u32, otherwise: f64| {
            if with_account > 0 { self.all.importance / f64::from(pages) } else { otherwise }
        };
        let (own, part) = (mean(with_account, site_importance), mean(with_account + self.all.joined, 0.0));
        for tally in [&mut self.all, &mut self.captured] {
            tally.importance += f64::from(tally.lost) * own;
        }
        for tally in &mut self.happened {
            tally.importance += f64::from(tally.lost) * own + f64::from(tally.joined) * part;
        }
    }
}

impl PageTally {
    fn add(&mut self, account: ImportanceAccount) {
        self.pages += 1;
        self.importance += account.importance();
        self.lost += u32::from(account == ImportanceAccount::Lost);
        self.joined += u32::from(account == ImportanceAccount::Joined);
    }
}

impl ImportanceAccount {
    fn importance(self) -> f64 {
        if let Self::Own(importance) = self { importance } else { 0.0 }
    }
}

/// Pages by site and content, up to a limit.
#[derive(Debug)]
struct PagesByContent {
    most: usize,
    pages: HashMap<(SiteId, u64), (UrlId, PageTally)>,
}

impl PagesByContent {
    fn new(most: usize) -> Self {
        Self { most, pages: HashMap::new() }
    }

    /// Adds a page. An alias of another page adds to the number, but has no importance of its own.
    fn add(&mut self, site: SiteId, signature: u64, page: UrlId, importance: Option<f64>) {
        let key = (site, signature);
        if signature == 0 || (self.pages.len() >= self.most && !self.pages.contains_key(&key)) {
            return;
        }
        let (_, tally) = self.pages.entry(key).or_insert((page, PageTally::default()));
        tally.pages += 1;
        tally.importance += importance.unwrap_or(0.0);
    }

    /// Groups of pages with the same content within a site: the site, one of the pages, and the totals.
    fn alike(&self) -> impl Iterator<Item = (SiteId, UrlId, PageTally)> + '_ {
        let alike = self.pages.iter().filter(|(_, (_, tally))| tally.pages >= SAME_MIN);
        alike.map(|((site, _), (first, tally))| (*site, *first, *tally))
    }
}

struct Pass<'a> {
    pages: Pages<'a>,
    past: Vec<CaptureSums>,
    /// The pages that URLs without an account of their own stand for.
    stands_for: HashMap<UrlId, UrlId>,
    is_login: HashMap<UrlId, bool>,
    contents: PagesByContent,
    sites: Vec<SiteTotals>,
}

/// Sums over the pages of each site, by site number; `since` has the time of the last decision on each.
pub(super) fn gather(state: &State, access: &Access, since: &[u32]) -> Result<Vec<SiteTotals>, Failure> {
    let sites = since.iter().map(|&since| SiteTotals { since, ..SiteTotals::default() }).collect();
    let stands_for = aliases(state)?.into_iter().map(|(page, alias)| (alias, page)).collect();
    let mut pass = Pass {
        pages: Pages::open(state)?,
        past: CaptureSums::of_all(state)?,
        stands_for,
        is_login: HashMap::new(),
        contents: PagesByContent::new(CONTENTS_MAX),
        sites,
    };
    pass.pages.expect_all()?;
    for known in state.pages_with_visits() {
        let (id, page, visit) = known?;
        if access.shows_page(state, visit.as_ref())? {
            pass.see(id, &page, visit.as_ref())?;
        }
    }
    pass.finish(state)
}

impl Pass<'_> {
    fn see(&mut self, id: UrlId, page: &Page, visit: Option<&Visit>) -> Result<(), Failure> {
        let visit = visit.filter(|visit| visit.captures > 0);
        if page.flags.has_any(flags::REQUISITE) {
            return self.see_requisite(id, page, visit);
        }
        let number = self.pages.site_of(id, page)?;
        if page.flags.has_any(flags::ROBOTS) {
            if let (Some(site), Some(visit)) = (self.sites.get_mut(number.index()), visit) {
                site.robots_changed = site.robots_changed.max(visit.last_changed);
            }
            return Ok(());
        }
        if !flags::is_page(page.flags) {
            return Ok(());
        }
        let happened = match visit {
            Some(visit) => self.happened(id, page, visit, number)?,
            None => None,
        };
        let account = self.account(id, page, visit, number)?;
        let past = CaptureSums::of(&self.past, id);
        let Some(site) = self.sites.get_mut(number.index()) else { return Ok(()) };
        site.in_scope += u32::from(page.flags.has_any(flags::IN_SCOPE));
        if happened.is_none() && !past.was_good() {
            site.empty += u32::from(is_empty(page, past, site.since));
        }
        // An alias of another page of the site counts with that page.
        if happened.is_none_or(|what| what == Happened::Changed)
            && !matches!(account, ImportanceAccount::Own(_))
        {
            return Ok(());
        }
        site.all.add(account);
        let Some(visit) = visit.filter(|_| happened.is_some() || past.was_good()) else { return Ok(()) };
        site.captured.add(account);
        if let ImportanceAccount::Own(own) = account
            && site.best.is_none_or(|(_, best)| own > best)
        {
            site.best = Some((id, own));
        }
        if visit.first_seen > site.since {
            site.note(Happened::New, id, account);
        }
        if let Some(what) = happened {
            site.note(what, id, account);
        }
        Ok(())
    }

    fn account(
        &self,
        id: UrlId,
        page: &Page,
        visit: Option<&Visit>,
        number: SiteId,
    ) -> Result<ImportanceAccount, Failure> {
        if let Some(own) = self.pages.credits().importance(page, visit) {
            return Ok(ImportanceAccount::Own(own));
        }
        let Some(&other) = self.stands_for.get(&id) else { return Ok(ImportanceAccount::Lost) };
        let of_other = self.pages.site_of(other, &self.pages.state().page(other)?)?;
        Ok(if of_other == number { ImportanceAccount::Joined } else { ImportanceAccount::Lost })
    }

    /// What happened to a captured page since the last decision on its site, if anything.
    fn happened(
        &mut self,
        id: UrlId,
        page: &Page,
        visit: &Visit,
        number: SiteId,
    ) -> Result<Option<Happened>, Failure> {
        let Some(since) = self.sites.get(number.index()).map(|site| site.since) else { return Ok(None) };
        let past = CaptureSums::of(&self.past, id);
        if past.failing_since > 0 {
            let what = self.failure(id, page, visit, number)?;
            // A page that never existed is not missed, except behind a login.
            let counts = past.was_good() || what == Some(Happened::Login);
            return Ok(what.filter(|_| counts && past.failing_since > since));
        }
        if flags::refusal_code(page.flags) == Refusal::Robots.code() {
            return Ok(Some(Happened::Closed));
        }
        let is_document = DocumentKind::from_code(visit.kind) == DocumentKind::Html;
        if !is_document || visit.last_changed <= since {
            return Ok(None);
        }
        if past.bytes <= SAME_BYTES_MAX {
            let own = self.pages.credits().importance(page, Some(visit));
            self.contents.add(number, visit.signature, id, own);
        }
        let is_shrunk = past.kept() < SHRUNK && past.bytes_before >= SHRUNK_BYTES_MIN;
        Ok(if is_shrunk { Some(Happened::Shrunk) } else { (visit.versions > 1).then_some(Happened::Changed) })
    }

    /// What is wrong with a page whose newest capture failed.
    fn failure(
        &mut self,
        id: UrlId,
        page: &Page,
        visit: &Visit,
        number: SiteId,
    ) -> Result<Option<Happened>, Failure> {
        Ok(match visit.status {
            401 | 403 => Some(Happened::Login),
            404 | 410 => Some(Happened::Gone),
            300..=399 if page.flags.has_any(flags::ALIAS) => {
                let Some(&target) = self.stands_for.get(&id) else { return Ok(None) };
                if self.asks_to_log_in(target)? {
                    return Ok(Some(Happened::Login));
                }
                let other = self.pages.site_of(target, &self.pages.state().page(target)?)?;
                (other != number).then_some(Happened::Moved)
            }
            300..=399 => None,
            _ => Some(Happened::Failing),
        })
    }

    fn asks_to_log_in(&mut self, target: UrlId) -> Result<bool, Failure> {
        if let Some(known) = self.is_login.get(&target) {
            return Ok(*known);
        }
        let is_login = words::is_login(&self.pages.state().url(target)?);
        self.is_login.insert(target, is_login);
        Ok(is_login)
    }

    fn see_requisite(&mut self, id: UrlId, page: &Page, visit: Option<&Visit>) -> Result<(), Failure> {
        let Some(via) = page.via else { return Ok(()) };
        let state = self.pages.state();
        let number = self.pages.site_of(via, &state.page(via)?)?;
        let Some(site) = self.sites.get_mut(number.index()) else { return Ok(()) };
        let past = CaptureSums::of(&self.past, id);
        let is_redirect = visit.is_some_and(|visit| (300..400).contains(&visit.status));
        site.requisites += 1;
        let is_missing = if past.was_good() || visit.is_some() {
            past.failing_since > site.since && !is_redirect
        } else {
            // The time of other obstacles is not recorded.
            site.since == 0 && flags::refusal_code(page.flags) != 0
        };
        site.requisites_missing += u32::from(is_missing);
        Ok(())
    }

    fn finish(mut self, state: &State) -> Result<Vec<SiteTotals>, Failure> {
        for (number, first, alike) in self.contents.alike() {
            let Some(site) = self.sites.get_mut(number.index()) else { continue };
            let same = &mut site.happened[Happened::Same as usize];
            same.pages += alike.pages;
            same.importance += alike.importance;
            site.suspect(first, alike.importance);
        }
        for (site, known) in self.sites.iter_mut().zip(state.sites()) {
            site.settle(self.pages.credits().site_importance(&known?.2));
        }
        Ok(self.sites)
    }
}

/// Whether a page without a good capture was requested, or would have been.
fn is_empty(page: &Page, past: CaptureSums, since: u32) -> bool {
    if page.flags.has_any(flags::FETCHED) {
        return past.failing_since > since;
    }
    let refusal = Refusal::from_code(flags::refusal_code(page.flags));
    // The time of the refusal is not recorded.
    since == 0 && matches!(refusal, Some(Refusal::Robots | Refusal::RobotsUnreachable | Refusal::Unresolved))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_compared_as_far_as_there_is_room() {
        let mut contents = PagesByContent::new(2);
        for page in 0..SAME_MIN {
            contents.add(SiteId(0), 7, UrlId(page), (page > 0).then_some(2.0));
            contents.add(SiteId(0), 8, UrlId(10 + page), None);
            // There is no room for the first, and the second has no signature.
            contents.add(SiteId(1), 7, UrlId(20 + page), None);
            contents.add(SiteId(0), 0, UrlId(30 + page), None);
        }
        let mut alike: Vec<_> = contents.alike().collect();
        alike.sort_by_key(|(_, first, _)| *first);
        assert_eq!(alike.iter().map(|(_, first, _)| first.0).collect::<Vec<_>>(), [0, 10]);
        assert_eq!((alike[0].2.pages, alike[0].2.importance), (SAME_MIN, 6.0));
    }

    #[test]
    fn pages_without_an_account_count_as_others_do() {
        let mut site = SiteTotals::default();
        for account in [
            ImportanceAccount::Own(3.0),
            ImportanceAccount::Own(1.0),
            ImportanceAccount::Lost,
            ImportanceAccount::Joined,
            ImportanceAccount::Joined,
        ] {
            site.all.add(account);
        }
        site.note(Happened::Gone, UrlId(2), ImportanceAccount::Lost);
        site.note(Happened::Login, UrlId(3), ImportanceAccount::Joined);
        site.settle(9.0);
        // A page without an account is worth the mean of those with one; one that joined another page has a part of
        // all.
        assert_eq!((site.all.importance, site.of(Happened::Gone).importance), (6.0, 2.0));
        assert_eq!(site.of(Happened::Login).importance, 1.0);
        let mut gone = SiteTotals::default();
        gone.all.add(ImportanceAccount::Lost);
        gone.settle(9.0);
        assert_eq!(gone.all.importance, 9.0);
    }
}
