//! What a role may know of an archive: makes the [`Veil`] through which it sees the state.
//!
//! Access rules hide captures. What the state tells of a page, host or site may come from a hidden capture: titles,
//! statuses, dates, counts, links, even that a URL exists. Here all of this is computed again from the captures that
//! are shown, as for an archive that never had the others. So there is one place that decides what a role may know, and
//! those who read the state need not ask. Importance stays that of all links.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use archive_base::access::Access;
use archive_storage::address::surt;
use archive_storage::{
    Capture, CaptureId, LinkList, LinkTarget, Page, State, StateError, Store, StoreError, Totals, UrlId,
    Veil, Visit,
};

use crate::ledger::{
    self, CrawlerFacts, CreditError, Credits, LinkCode, SiteRule, capture_flags, page_flags as flags,
};
use crate::search::is_searched;

/// Shown versions of pages with hidden ones that are described from their records. What is known of further ones is what
/// histories tell: no title, no links.
const READ_MAX: usize = 1 << 15;

/// Rounds in which changes of depth are passed on: ways from seeds are shorter, but for traps.
const ROUNDS_MAX: usize = 32;

/// Returns what `access` hides of a state, and when it will hide less (microseconds since 1970); `None` if it hides
/// nothing.
///
/// # Errors
/// When the state cannot be read.
pub fn of(store: &Store, access: &Access) -> Result<Option<(Veil, Option<i64>)>, CreditError> {
    // Without rules nothing is read: the URLs of a large archive take seconds.
    if access.is_unlimited() {
        return Ok(None);
    }
    let state = store.state();
    let Hidden { captures, ends } = Hidden::of(state, access)?;
    if !captures.contains(&true) {
        return Ok(None);
    }
    let veil = Veil::over(captures);
    let mut making = Making { state, veil, changes: BTreeMap::new(), lists: Vec::new(), left: READ_MAX };
    making.take_pages(store)?;
    making.take_links()?;
    making.take_sums()?;
    Ok(Some((making.veil, ends)))
}

/// Shows an archive as `access` does from now on.
///
/// # Errors
/// When the state cannot be read.
pub fn lay(store: &mut Store, access: &Access) -> Result<(), CreditError> {
    if let Some((veil, _)) = of(store, access)? {
        store.state_mut().set_veil(Arc::new(veil));
    }
    Ok(())
}

/// The captures that are hidden.
struct Hidden {
    captures: Vec<bool>,
    /// When the first of them will be shown.
    ends: Option<i64>,
}

impl Hidden {
    fn of(state: &State, access: &Access) -> Result<Self, StateError> {
        // Most URLs have the same rules as many others.
        let (mut sets, mut numbers) = (vec![Vec::new()], HashMap::from([(Vec::new(), 0)]));
        let mut rules_of = Vec::with_capacity(state.url_count() as usize);
        state.scan_urls(0..state.url_count(), |_, url| {
            let rules = access.covering(&surt(url));
            let next = sets.len();
            let number = *numbers.entry(rules).or_insert_with_key(|rules| {
                sets.push(rules.clone());
                next
            });
            rules_of.push(number as u32);
            Ok(())
        })?;
        let (mut captures, mut copies, mut ends) = (Vec::new(), Vec::new(), None::<i64>);
        for found in state.captures() {
            let (id, capture) = found?;
            let rules = rules_of.get(capture.url.index()).and_then(|number| sets.get(*number as usize));
            let (is_hidden, until) = access.hiding_until(rules.map_or(&[], Vec::as_slice), capture.time);
            ends = ends.into_iter().chain(until).min();
            captures.push(is_hidden);
            copies.extend(capture.original.map(|original| (id, original)));
        }
        // A copy is hidden whenever the capture that holds its payload is.
        let own = captures.clone();
        for (copy, original) in copies {
            captures[copy.index()] |= own.get(original.index()).copied().unwrap_or(false);
        }
        Ok(Self { captures, ends })
    }
}

/// What changes in the counts of a page's host and site.
#[derive(Default)]
struct CountChange {
    captures: u32,
    contents: u32,
    fetched: u32,
    failures: u32,
    bytes: u64,
    stored: u64,
}

/// A URL that was not found as is stored.
struct VeiledUrl {
    page: Page,
    visit: Option<Visit>,
    /// Its first shown capture.
    first: Option<CaptureId>,
}

/// A link of a shown page.
struct Linking {
    source: UrlId,
    kind: u8,
    /// The capture since when it is there.
    since: CaptureId,
}

struct Making<'a> {
    state: &'a State,
    veil: Veil,
    /// By page with hidden captures.
    changes: BTreeMap<UrlId, CountChange>,
    /// The links of the shown versions of these pages.
    lists: Vec<(UrlId, CaptureId, Vec<LinkTarget>)>,
    /// Number of versions that may still be read.
    left: usize,
}

impl Making<'_> {
    /// Computes the visits of pages that lose captures.
    fn take_pages(&mut self, store: &Store) -> Result<(), StateError> {
        let mut pages = BTreeSet::new();
        for found in self.state.captures() {
            let (id, capture) = found?;
            if self.veil.hides(id) {
                pages.insert(capture.url);
            } else {
                let (first, last) = self.veil.span.unwrap_or((capture.time, capture.time));
                self.veil.span = Some((first.min(capture.time), last.max(capture.time)));
            }
        }
        pages.into_iter().try_for_each(|id| self.take_page(store, id))
    }

    fn take_page(&mut self, store: &Store, id: UrlId) -> Result<(), StateError> {
        let (mut page, before) = (self.state.page(id)?, self.state.visit(id)?.unwrap_or_default());
        let mut all = self.state.history(id)?.collect::<Result<Vec<_>, _>>()?;
        all.reverse();
        let newest = |is_meant: fn(&Capture) -> bool, all: &[(CaptureId, Capture)]| {
            all.iter().rev().find(|(_, capture)| is_meant(capture)).copied()
        };
        if newest(is_searched, &all).is_some_and(|(newest, _)| self.veil.hides(newest)) {
            self.veil.unread.insert(id);
        }
        let mut change = CountChange::default();
        for (_, capture) in all.iter().filter(|(id, _)| self.veil.hides(*id)) {
            change.add(capture);
        }
        // The flags of a capture compare it with the one before.
        let parted = all.windows(2).filter(|pair| self.veil.hides(pair[0].0)).map(|pair| pair[1].0);
        let parted: Vec<CaptureId> = parted.collect();
        let mut kept = all.clone();
        kept.retain(|(id, _)| !self.veil.hides(*id));
        let mut visit = ledger::visit_without(&before, &mut kept, &parted, &mut self.veil.flags);
        if let Some(visit) = &mut visit {
            let facts = self.read_versions(store, id, &kept)?;
            // An error page has links only as long as there is no other.
            let described = |all: &[_]| newest(ledger::is_content, all).or(newest(ledger::is_answer, all));
            if described(&kept).map(|(id, _)| id) != described(&all).map(|(id, _)| id) {
                (visit.title, visit.links, visit.signature) = (None, None, 0);
                (visit.language, visit.kind) = (0, 0);
                if let Some(facts) = facts {
                    self.describe(visit, &facts, id);
                }
            }
            let told = newest(ledger::tells, &all).filter(|(id, _)| self.veil.hides(*id));
            if let Some((_, told)) = told.and_then(|_| newest(ledger::tells, &kept)) {
                set_account(&mut page, (300..400).contains(&told.status), matches!(told.status, 404 | 410));
            }
        } else {
            let first = |id: UrlId| self.state.page(id).ok()?.visit;
            let was_linked = page.via.is_some_and(|via| first(via).is_some() && first(via) < page.visit);
            let was_counted = was_linked || all.first().is_some_and(|(_, first)| ledger::is_content(first));
            (page.visit, change.fetched) = (None, u32::from(was_counted));
            page.flags.set(flags::FETCHED, false);
            set_account(&mut page, false, false);
        }
        change.contents = before.contents.saturating_sub(visit.map_or(0, |visit| visit.contents));
        self.changes.insert(id, change);
        self.veil.pages.insert(id, (page, visit));
        Ok(())
    }

    /// Reads the links of a page's versions; returns the facts of the newest.
    fn read_versions(
        &mut self,
        store: &Store,
        id: UrlId,
        kept: &[(CaptureId, Capture)],
    ) -> Result<Option<CrawlerFacts>, StateError> {
        let are_contents = kept.iter().any(|(_, capture)| ledger::is_content(capture));
        let is_meant = if are_contents { ledger::is_content } else { ledger::is_answer };
        let mut newest = None;
        for (version, capture) in kept.iter().filter(|(_, capture)| is_meant(capture)) {
            let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
            self.left = left;
            // Of a version whose record cannot be read, nothing more is known.
            newest = facts_of(store, capture).ok();
            let mut links = Vec::new();
            for link in newest.iter().flat_map(|facts| &facts.links) {
                let kind = LinkCode::new(link.kind, link.nofollow, link.template).to_byte();
                links.extend(self.state.find(&link.url)?.map(|target| LinkTarget { target, kind }));
            }
            let before = self.lists.last().filter(|(before, ..)| *before == id);
            if before.is_none_or(|(.., before)| *before != links) {
                self.lists.push((id, *version, links));
            }
        }
        Ok(newest)
    }

    /// Describes a page by the facts of its newest version, whose links were read last.
    fn describe(&mut self, visit: &mut Visit, facts: &CrawlerFacts, id: UrlId) {
        let Some(kind) = facts.document else { return };
        if visit.contents > 0 {
            visit.kind = kind.code();
            let title = facts.title.clone().filter(|_| !(300..400).contains(&visit.content_status));
            visit.title = title.map(|title| self.veil.add_title(title));
            let language = facts.language.as_deref().unwrap_or_default();
            visit.language = ledger::language_number(self.state, language);
        }
        let links = self.lists.last().filter(|(source, _, links)| *source == id && !links.is_empty());
        visit.links = links.cloned().map(|(.., links)| self.veil.add_links(id, links));
    }

    /// Finds the URLs that only hidden captures name, and through which other pages the others were found.
    fn take_links(&mut self) -> Result<(), StateError> {
        let (state, mut open) = (self.state, BTreeMap::new());
        for found in state.pages(UrlId(0)) {
            let (id, page) = found?;
            let own = self.veil.pages.get(&id).copied();
            let is_gone = own.is_some_and(|(_, visit)| visit.is_none());
            if is_gone || page.via.is_some_and(|via| self.changes.contains_key(&via)) {
                let (mut page, visit) = own.map_or_else(|| Ok((page, state.visit(id)?)), Ok)?;
                page.via = page.via.filter(|via| !self.changes.contains_key(via));
                open.insert(id, VeiledUrl { first: self.first(visit.as_ref())?, page, visit });
            }
        }
        let (linking, links) = self.linking(&open)?;
        self.veil.totals.links = links;
        let mut depths = HashMap::new();
        for _ in 0..ROUNDS_MAX {
            let before = depths.clone();
            for (id, found) in &mut open {
                self.find(*id, found, linking.get(id).map_or(&[], Vec::as_slice), &depths)?;
                depths.insert(*id, found.page.depth);
            }
            if depths == before {
                break;
            }
        }
        for (id, VeiledUrl { page, visit, .. }) in open {
            self.veil.pages.insert(id, (page, visit));
        }
        self.take_depths(depths)
    }

    /// Chooses the shown link through which the books say that a page was found: the first of those nearest to a seed.
    fn find(
        &mut self,
        id: UrlId,
        found: &mut VeiledUrl,
        linking: &[Linking],
        depths: &HashMap<UrlId, u8>,
    ) -> Result<(), StateError> {
        let depth_of = |id: UrlId| {
            depths.get(&id).copied().map_or_else(|| self.state.page(id).map(|page| page.depth), Ok)
        };
        let page = &mut found.page;
        if let Some(via) = page.via.filter(|_| linking.is_empty()) {
            page.depth = depth_of(via)?.saturating_add(step_of(page.hop));
            return Ok(());
        }
        let mut best: Option<(u8, &Linking)> = None;
        // A page that was captured before others linked to it was not found by a link. Of a URL without an account, the
        // books keep the last link.
        let has_account = page.flags.has_any(flags::ACCOUNT | flags::REQUISITE);
        let is_linked = found.first.is_none_or(|first| linking.iter().any(|link| link.since < first));
        for link in linking.iter().filter(|_| is_linked || !has_account) {
            let hop = LinkCode::from_byte(link.kind).kind().map_or(0, |kind| kind.hop() as u8);
            let depth = depth_of(link.source)?.saturating_add(step_of(hop));
            if !has_account || best.is_none_or(|(least, _)| depth < least) {
                best = Some((depth, link));
            }
        }
        if let Some((depth, link)) = best {
            let kind = LinkCode::from_byte(link.kind).kind();
            page.hop = kind.map_or(page.hop, |kind| kind.hop() as u8);
            (page.via, page.depth) = (Some(link.source), depth);
            return Ok(());
        }
        let is_sure = page.flags.has_any(flags::SEED | flags::PUBLISHED) && !self.changes.contains_key(&id);
        if page.via.is_some() || found.visit.is_some() || is_sure {
            page.depth = if page.via.is_some() { page.depth } else { 0 };
        } else {
            self.veil.unknown.insert(id);
            // As a robots.txt, it is no page.
            *page = Page { visit: None, flags: flags::ROBOTS, ..*page };
        }
        Ok(())
    }

    /// Passes changed depths on to the pages that were found through others.
    fn take_depths(&mut self, depths: HashMap<UrlId, u8>) -> Result<(), StateError> {
        let state = self.state;
        let mut changed = HashMap::new();
        for (id, depth) in depths {
            if state.page(id)?.depth != depth {
                changed.insert(id, depth);
            }
        }
        for _ in 0..ROUNDS_MAX {
            let mut next = HashMap::new();
            if changed.is_empty() {
                break;
            }
            for found in state.pages(UrlId(0)) {
                let (id, page) = found?;
                let own = self.veil.pages.get(&id).copied();
                let (mut page, visit) = own.unwrap_or((page, None));
                let depth = page
                    .via
                    .and_then(|via| changed.get(&via))
                    .map(|depth| depth.saturating_add(step_of(page.hop)));
                if let Some(depth) = depth.filter(|depth| *depth != page.depth) {
                    page.depth = depth;
                    let visit = if own.is_some() { visit } else { state.visit(id)? };
                    self.veil.pages.insert(id, (page, visit));
                    next.insert(id, depth);
                }
            }
            changed = next;
        }
        Ok(())
    }

    /// The first shown capture of a page.
    fn first(&self, visit: Option<&Visit>) -> Result<Option<CaptureId>, StateError> {
        let Some(newest) = visit.and_then(|visit| visit.last_capture) else { return Ok(None) };
        let mut first = newest;
        for found in self.state.history_from(newest) {
            let (id, _) = found?;
            first = if self.veil.hides(id) { first } else { first.min(id) };
        }
        Ok(Some(first))
    }

    /// The links of shown pages to each of some URLs, and the number of all shown links.
    fn linking(
        &self,
        open: &BTreeMap<UrlId, VeiledUrl>,
    ) -> Result<(HashMap<UrlId, Vec<Linking>>, u64), StateError> {
        let (mut linking, mut count) = (HashMap::<_, Vec<Linking>>::new(), 0);
        let mut take = |source: UrlId, since: CaptureId, links: &[LinkTarget]| {
            for link in links.iter().filter(|link| link.target != source && open.contains_key(&link.target)) {
                linking.entry(link.target).or_default().push(Linking { source, kind: link.kind, since });
            }
        };
        for (source, since, links) in &self.lists {
            count += links.len() as u64;
            take(*source, *since, links);
        }
        let (mut all, mut list, mut listed) = (self.state.all_links(), LinkList::default(), HashSet::new());
        while all.read_next(&mut list)? {
            let Some(source) = list.source.filter(|source| !self.changes.contains_key(source)) else {
                continue;
            };
            count += list.links.len() as u64;
            if list.links.iter().any(|link| open.contains_key(&link.target)) {
                // Which version a list is of is not stored: the first is of the first, others are taken for the newest's.
                let visit = self.state.visit(source)?;
                let first = if listed.insert(source) { self.first(visit.as_ref())? } else { None };
                let since = first.or(visit.and_then(|visit| visit.last_capture));
                since.into_iter().for_each(|since| take(source, since, &list.links));
            }
        }
        linking.values_mut().for_each(|links| links.sort_by_key(|link| link.since));
        Ok((linking, count))
    }

    /// Takes what is hidden from the sums of hosts and sites and from the totals.
    fn take_sums(&mut self) -> Result<(), CreditError> {
        let (state, mut hosts_named, mut shown_sites) = (self.state, HashSet::new(), HashSet::new());
        let credits = Credits::open(state)?;
        let is_by_path = matches!(credits.rules().sites, SiteRule::Path(_));
        for found in state.pages(UrlId(0)) {
            let (id, page) = found?;
            // Of a robots.txt, the archive knows before it has asked for it.
            let visit = self.veil.pages.get(&id).map_or(page.visit.is_some(), |(_, visit)| visit.is_some());
            if !self.veil.unknown.contains(&id) && (visit || !page.flags.has_any(flags::ROBOTS)) {
                hosts_named.insert(page.host);
                if is_by_path {
                    shown_sites.extend(credits.site(state, id)?);
                }
            }
        }
        let Totals { links, .. } = self.veil.totals;
        let mut totals = Totals { links, ..state.totals() };
        totals.urls = totals.urls.saturating_sub(self.veil.unknown.len() as u64);
        let (mut hosts, mut sites) = (BTreeMap::new(), BTreeMap::new());
        for (id, change) in &self.changes {
            let page = state.page(*id)?;
            totals.fetched -= u64::from(self.veil.pages.get(id).is_some_and(|(_, visit)| visit.is_none()));
            totals.captures -= u64::from(change.captures);
            totals.payload_bytes = totals.payload_bytes.saturating_sub(change.bytes);
            totals.stored_bytes = totals.stored_bytes.saturating_sub(change.stored);
            if page.host == Page::HOST_UNKNOWN || page.flags.has_any(flags::ROBOTS) {
                continue;
            }
            let mut host = hosts.get(&page.host).copied().map_or_else(|| state.host(page.host), Ok)?;
            let mut site = sites.get(&host.site).copied().map_or_else(|| state.site(host.site), Ok)?;
            host.captures = host.captures.saturating_sub(change.captures);
            host.contents = host.contents.saturating_sub(change.contents);
            host.fetched = host.fetched.saturating_sub(change.fetched);
            host.failures = host.failures.saturating_sub(change.failures);
            host.bytes = host.bytes.saturating_sub(change.bytes);
            site.captures = site.captures.saturating_sub(change.captures);
            site.fetched = site.fetched.saturating_sub(change.fetched);
            site.bytes = site.bytes.saturating_sub(change.bytes);
            sites.insert(host.site, site);
            hosts.insert(page.host, host);
        }
        for found in state.hosts() {
            let (id, _, host) = found?;
            if hosts_named.contains(&id) {
                shown_sites.insert(host.site);
                self.veil.hosts.extend(hosts.get(&id).map(|host| (id, Some(*host))));
            } else {
                self.veil.hosts.insert(id, None);
                totals.hosts -= 1;
            }
        }
        for found in state.sites() {
            let (id, ..) = found?;
            if shown_sites.contains(&id) {
                self.veil.sites.extend(sites.get(&id).map(|site| (id, Some(*site))));
            } else {
                self.veil.sites.insert(id, None);
                totals.sites -= 1;
            }
        }
        self.veil.totals = totals;
        Ok(())
    }
}

impl CountChange {
    fn add(&mut self, capture: &Capture) {
        self.captures += 1;
        self.stored += u64::from(capture.location.length);
        if capture_flags::is_erased(capture) {
            return;
        }
        self.failures += u32::from(!ledger::is_answer(capture));
        self.bytes += u64::from(capture.length);
    }
}

/// Sets what a page is in the graph of links by what it was found to be.
fn set_account(page: &mut Page, is_redirect: bool, is_gone: bool) {
    if page.flags.has_any(flags::PAGE) {
        page.flags.set(flags::PAGE, false);
        let own = if is_gone { flags::VANISHED } else { flags::ACCOUNT };
        page.flags.set(if is_redirect { flags::ALIAS } else { own }, true);
    }
}

/// Links that a hop adds to the way from a seed.
fn step_of(hop: u8) -> u8 {
    u8::from(matches!(hop, b'L' | b'M' | b'X'))
}

/// The facts of a version: those of the capture that holds its payload. Links say something of that capture's page only.
fn facts_of(store: &Store, capture: &Capture) -> Result<CrawlerFacts, StoreError> {
    let holder = store.original(capture)?.unwrap_or(*capture);
    let mut facts = CrawlerFacts::from_fields(&store.metadata(&holder)?);
    if holder.url != capture.url {
        facts.links.clear();
    }
    Ok(facts)
}
