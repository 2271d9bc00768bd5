//! What a role may know of an archive: makes the [`Veil`] through which it sees the state.
//!
//! Access rules hide captures. What the state tells of a page, host or site may come from a hidden capture: titles,
//! statuses, dates, counts, links, even that a URL exists. Here all of this is computed again from the captures that
//! are shown, as for an archive that never had the others. So there is one place that decides what a role may know, and
//! those who read the state need not ask. Importance stays that of all links.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use archive_storage::address::surt;
use archive_storage::{
    Capture, CaptureId, LinkList, LinkTarget, Page, State, StateError, Store, StoreError, Totals, UrlId,
    Veil, Visit,
};

use crate::access::Access;
use crate::ledger::{
    self, CreditError, Credits, Facts, LinkCode, SiteRule, capture_flags, page_flags as flags,
};
use crate::search::is_searched;

/// Pages with hidden newest versions whose older versions are described from their records. What is known of the others
/// is what their histories tell: no title, no links.
const DESCRIBED_MAX: usize = 1 << 14;

/// Returns what `access` hides of a state, and when it will hide less (microseconds since 1970); `None` if it hides
/// nothing.
///
/// # Errors
/// When the state cannot be read.
pub fn of(store: &Store, access: &Access) -> Result<Option<(Veil, Option<i64>)>, CreditError> {
    let state = store.state();
    let Hidden { captures, ends } = Hidden::of(state, access)?;
    if !captures.contains(&true) {
        return Ok(None);
    }
    let mut making = Making { state, veil: Veil::over(captures), changes: BTreeMap::new() };
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
            let hiding = access.hiding_until(rules.map_or(&[], Vec::as_slice), capture.time);
            ends = ends.into_iter().chain(hiding.flatten()).min();
            captures.push(hiding.is_some());
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
struct Change {
    captures: u32,
    contents: u32,
    fetched: u32,
    failures: u32,
    bytes: u64,
    stored: u64,
}

struct Making<'a> {
    state: &'a State,
    veil: Veil,
    /// By page.
    changes: BTreeMap<UrlId, Change>,
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
        for (number, id) in pages.into_iter().enumerate() {
            self.take_page(store, id, number < DESCRIBED_MAX)?;
        }
        Ok(())
    }

    fn take_page(&mut self, store: &Store, id: UrlId, is_described: bool) -> Result<(), StateError> {
        let (mut page, before) = (self.state.page(id)?, self.state.visit(id)?.unwrap_or_default());
        let mut all = self.state.history(id)?.collect::<Result<Vec<_>, _>>()?;
        all.reverse();
        let newest = |is_meant: fn(&Capture) -> bool, all: &[(CaptureId, Capture)]| {
            all.iter().rev().find(|(_, capture)| is_meant(capture)).copied()
        };
        if newest(is_searched, &all).is_some_and(|(newest, _)| self.veil.hides(newest)) {
            self.veil.unread.insert(id);
        }
        let mut change = Change::default();
        for (_, capture) in all.iter().filter(|(id, _)| self.veil.hides(*id)) {
            change.add(capture);
        }
        // The flags of a capture compare it with the one before.
        let parted = all.windows(2).filter(|pair| self.veil.hides(pair[0].0)).map(|pair| pair[1].0);
        let parted: Vec<CaptureId> = parted.collect();
        let mut kept = all.clone();
        kept.retain(|(id, _)| !self.veil.hides(*id));
        let visit = ledger::visit_without(&before, &mut kept, &parted, &mut self.veil.flags);
        let visit = match visit {
            Some(mut visit) => {
                let shown = newest(ledger::tells, &kept);
                if shown.map(|(id, _)| id) != newest(ledger::tells, &all).map(|(id, _)| id) {
                    (visit.title, visit.links, visit.signature) = (None, None, 0);
                    (visit.language, visit.kind) = (0, 0);
                    if let Some((_, shown)) = shown.filter(|_| is_described) {
                        // A page whose record cannot be read has no title.
                        let facts = facts_of(store, &shown).ok().flatten();
                        facts.map(|facts| self.describe(&mut visit, &facts, id)).transpose()?;
                    }
                }
                Some(visit)
            }
            None => {
                (page.visit, change.fetched) = (None, u32::from(page.flags.has_any(flags::ACCOUNT)));
                page.flags.set(flags::FETCHED, false);
                None
            }
        };
        change.contents = before.contents.saturating_sub(visit.map_or(0, |visit| visit.contents));
        self.changes.insert(id, change);
        self.veil.pages.insert(id, (page, visit));
        Ok(())
    }

    /// Describes a page by the facts of a version.
    fn describe(&mut self, visit: &mut Visit, facts: &Facts, id: UrlId) -> Result<(), StateError> {
        let Some(kind) = facts.document else { return Ok(()) };
        visit.kind = kind.code();
        let title = facts.title.clone().filter(|_| !(300..400).contains(&visit.content_status));
        visit.title = title.map(|title| self.veil.add_title(title));
        visit.language = ledger::language_number(self.state, facts.language.as_deref().unwrap_or_default());
        let mut links = Vec::new();
        for link in &facts.links {
            let kind = LinkCode::new(link.kind, link.nofollow, link.template).to_byte();
            links.extend(self.state.find(&link.url)?.map(|target| LinkTarget { target, kind }));
        }
        visit.links = (!links.is_empty()).then(|| self.veil.add_links(id, links));
        Ok(())
    }

    /// Finds the URLs that only hidden captures name, and through which other pages the others were found.
    fn take_links(&mut self) -> Result<(), StateError> {
        let (state, mut open) = (self.state, BTreeMap::new());
        for found in state.pages(UrlId(0)) {
            let (id, mut page) = found?;
            let own = self.veil.pages.get(&id);
            if own.is_some_and(|(_, visit)| visit.is_none())
                || page.via.is_some_and(|via| self.is_changed(via))
            {
                let visit = match own {
                    Some((own, visit)) => {
                        page = *own;
                        *visit
                    }
                    None => state.visit(id)?,
                };
                open.insert(id, (page, visit));
            }
        }
        let (linking, links) = self.linking(&open)?;
        self.veil.totals.links = links;
        let mut depths = HashMap::new();
        for (id, (mut page, visit)) in open {
            let was_captured = self.changes.contains_key(&id);
            let is_sure = page.flags.has_any(flags::SEED | flags::PUBLISHED) && !was_captured;
            let before = page.via.filter(|via| !self.is_changed(*via));
            // A page that was captured before another one linked to it was not found by that link.
            let source = linking.get(&id).filter(|(source, _)| {
                let first = |id: UrlId| state.page(id).ok()?.visit;
                visit.is_none() || first(*source) < first(id)
            });
            match source {
                _ if before.is_some() => {}
                Some((source, kind)) => {
                    let hop = LinkCode::from_byte(*kind).kind().map_or(page.hop, |kind| kind.hop() as u8);
                    let depth = depths
                        .get(source)
                        .copied()
                        .map_or_else(|| state.page(*source).map(|it| it.depth), Ok)?;
                    (page.via, page.hop, page.depth) = (Some(*source), hop, depth.saturating_add(1));
                }
                None if visit.is_some() || is_sure => (page.via, page.depth) = (None, 0),
                None => {
                    self.veil.unknown.insert(id);
                    // As a robots.txt, it is no page.
                    page = Page { via: None, visit: None, flags: flags::ROBOTS, ..page };
                }
            }
            depths.insert(id, page.depth);
            self.veil.pages.insert(id, (page, visit));
        }
        Ok(())
    }

    /// Whether the newest links of a page are not those that are stored.
    fn is_changed(&self, id: UrlId) -> bool {
        let shown = self.veil.pages.get(&id);
        shown.is_some_and(|(_, visit)| {
            let stored = self.state.visit(id).ok().flatten().and_then(|visit| visit.links);
            visit.is_none_or(|visit| visit.links != stored)
        })
    }

    /// The first shown page that links to each of some URLs, with the kind of link, and the number of all shown links.
    fn linking<T>(
        &self,
        open: &BTreeMap<UrlId, T>,
    ) -> Result<(HashMap<UrlId, (UrlId, u8)>, u64), StateError> {
        let (mut linking, mut count) = (HashMap::new(), 0);
        let mut take = |list: &LinkList, source: UrlId| {
            count += list.links.len() as u64;
            for link in
                list.links.iter().filter(|link| open.contains_key(&link.target) && link.target != source)
            {
                linking.entry(link.target).or_insert((source, link.kind));
            }
        };
        let (mut all, mut list) = (self.state.all_links(), LinkList::default());
        while all.read_next(&mut list)? {
            let Some(source) = list.source else { continue };
            match self.veil.pages.get(&source) {
                // Which version an older list is of is not known.
                Some((_, visit)) if visit.is_none_or(|visit| visit.links != list.position) => {}
                _ => take(&list, source),
            }
        }
        for list in self.veil.lists() {
            list.source.into_iter().for_each(|source| take(list, source));
        }
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

impl Change {
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

/// The facts of a version: those of the capture that holds its payload. Links say something of that capture's page only.
fn facts_of(store: &Store, capture: &Capture) -> Result<Option<Facts>, StoreError> {
    let holder = store.original(capture)?.unwrap_or(*capture);
    let mut facts = Facts::from_fields(&store.metadata(&holder)?);
    if holder.url != capture.url {
        facts.links.clear();
    }
    Ok(Some(facts))
}
