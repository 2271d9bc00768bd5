//! The links of the page being credited: their targets, what they say of these, and their weights.

use std::borrow::Cow;
use std::collections::HashSet;

use archive_math::importance::Weight;
use archive_storage::{Page, State, UrlId};
use archive_web::parse::Link;

use super::aliases::account_of;
use super::credit::Credits;
use super::error::CreditError;
use super::facts::{CrawlerFacts, LINKS_PER_PAGE_MAX};
use super::link_code::LinkCode;
use super::page_flags as flags;
use super::refusal::Refusal;
use super::waiting_list::{hangs_on_links, refuse_in};
use crate::cluster::PART_MAX;

/// Maximum depth of requisites of requisites: a theme's style sheet may import a chain of others, which refer to
/// images.
pub const REQUISITE_DEPTH_MAX: u16 = PART_MAX as u16;

/// A link of the page being credited.
#[derive(Debug, Clone, Copy)]
pub(super) struct CreditedLink {
    /// Target of the link.
    pub(super) link: UrlId,
    /// Page that is paid for it: another one if the target is a redirect or duplicate.
    pub(super) account: UrlId,
    /// Code stored in the link log.
    pub(super) code: LinkCode,
    /// Weight; [`Weight::NONE`] if nobody is paid.
    pub(super) weight: Weight,
    /// Bonus for the page, as a multiple of what the link pays.
    pub(super) bonus: f64,
}

/// What a link, redirect or other partition says of a URL.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mention<'a> {
    pub(super) url: &'a str,
    /// Page with the link.
    pub(super) via: Option<UrlId>,
    /// Links from the nearest seed.
    pub(super) depth: u8,
    /// The kind of link.
    pub(super) hop: u8,
    /// Whether it is linked as a page.
    pub(super) is_page: bool,
    /// Number of consecutive requisite links that lead to it from a page; 0 for no requisite.
    pub(super) part: u16,
    /// Why the link is not followed, if so.
    pub(super) unfollowed: Option<Refusal>,
}

impl Credits {
    /// Resolves a page's links to ids, and opens accounts for pages seen for the first time.
    pub(super) fn resolve_links(
        &mut self,
        state: &mut State,
        source: UrlId,
        from: &Page,
        facts: &CrawlerFacts,
    ) -> Result<(), CreditError> {
        let mut targets = std::mem::take(&mut self.targets);
        targets.clear();
        // Targets, once a link was taken without a parameter: others may mean the same page.
        let mut met: Option<HashSet<UrlId>> = None;
        state.expect_urls(facts.links.iter().map(|link| link.hash))?;
        for (place, link) in facts.links.iter().enumerate() {
            let unfollowed = if facts.copies.is_some() {
                Some(Refusal::SameContent)
            } else {
                (link.nofollow && self.obey_nofollow).then_some(Refusal::NoFollow)
            };
            let may_test = unfollowed.is_none() && facts.imported.is_none() && !facts.robots;
            let (url, hash, proposed) = self.link_meant(state, link, may_test)?;
            let target = self.intern(state, &url, hash)?;
            if matches!(url, Cow::Owned(_)) && met.is_none() {
                met = Some(targets.iter().map(|target: &CreditedLink| target.link).collect());
            }
            if met.as_mut().is_some_and(|met| !met.insert(target)) {
                continue;
            }
            let mention = mention_of(&url, source, from, link, unfollowed);
            self.note_mention(state, target, &mention)?;
            if let Some(proposed) = proposed {
                self.open_test(state, target, proposed, &mention)?;
            }
            let code = LinkCode::new(link.kind, link.nofollow, link.template);
            let credited = self.target(state, from, target, code, Some(&url))?;
            let said = facts.favoured.get(&place).copied().unwrap_or(0.0);
            targets.push(CreditedLink { bonus: credited.bonus.max(said), ..credited });
        }
        self.targets = targets;
        Ok(())
    }

    /// Like `resolve_links`, with the page's stored links.
    pub(super) fn resolve_known_links(
        &mut self,
        state: &State,
        source: UrlId,
        from: &Page,
    ) -> Result<(), CreditError> {
        self.targets.clear();
        for link in state.links(source)?.links {
            let target = self.target(state, from, link.target, LinkCode::from_byte(link.kind), None)?;
            self.targets.push(target);
        }
        Ok(())
    }

    /// Returns the page whose account a URL uses, fetched or not.
    fn payee(&self, state: &State, id: UrlId) -> Result<Option<UrlId>, CreditError> {
        if let Some(payee) = account_of(state, id)? {
            return Ok(Some(payee));
        }
        let stand_in = self.stand_in(state, id)?;
        Ok(stand_in.map_or(Ok(None), |stand_in| account_of(state, stand_in))?)
    }

    /// Returns the payee and weight of a link. A robots.txt has no account: its share stays with the virtual page.
    fn target(
        &self,
        state: &State,
        from: &Page,
        link: UrlId,
        code: LinkCode,
        url: Option<&str>,
    ) -> Result<CreditedLink, CreditError> {
        let payee = if code.carries_cash() { self.payee(state, link)? } else { None };
        let weight = match payee {
            Some(page) => self.rules.weights.of(code.traits(state.page(page)?.host != from.host)),
            None => Weight::NONE,
        };
        let mut bonus = payee.and_then(|page| self.favoured.get(&page).copied()).unwrap_or(0.0);
        if let Some(page) = payee.filter(|_| !self.favoured_sites.is_empty()) {
            let site = self.site(state, page)?.and_then(|site| self.favoured_sites.get(&site));
            bonus = site.map_or(bonus, |site| bonus.max(*site));
        }
        if weight != Weight::NONE && !self.rules.favours.is_empty() {
            let url = url.map_or_else(|| state.url(link).map(Cow::Owned), |url| Ok(Cow::Borrowed(url)))?;
            bonus = f64::max(bonus, self.rules.bonus(&url, code.kind()));
        }
        Ok(CreditedLink { link, account: payee.unwrap_or(link), code, weight, bonus })
    }

    /// Notes what a link says about its target: that it is a page or a requisite, its distance from a seed, and how it
    /// was found.
    ///
    /// A page found only by links that are not followed is refused until another link leads to it.
    pub(super) fn note_mention(
        &mut self,
        state: &mut State,
        target: UrlId,
        mention: &Mention<'_>,
    ) -> Result<(), CreditError> {
        let &Mention { url, via, depth, hop, is_page, part, unfollowed } = mention;
        let mut page = state.page(target)?;
        let before = page;
        if page.flags.has_any(flags::ROBOTS) {
            return Ok(());
        }
        let is_known = page.flags.has_any(flags::ACCOUNT | flags::REQUISITE);
        if !is_known || depth < page.depth {
            (page.depth, page.via, page.hop) = (depth, via, hop);
        }
        let opened = is_page && self.open_account(&mut page);
        match unfollowed {
            Some(why) if opened && !page.flags.has_any(flags::SEED) => {
                refuse_in(&mut page, Some(why));
                if why == Refusal::SameContent && self.unfollowed.len() < LINKS_PER_PAGE_MAX {
                    self.unfollowed.push(target);
                }
            }
            None if is_page && hangs_on_links(&page) => refuse_in(&mut page, None),
            _ => {}
        }
        if opened || page.depth < before.depth {
            let inside = self.is_inside(state, url, &page)?;
            page.flags.set(flags::IN_SCOPE, inside || page.flags.has_any(flags::SEED));
        }
        if !page.flags.has_any(flags::IN_SCOPE) {
            let is_part = (1..=REQUISITE_DEPTH_MAX).contains(&part);
            if is_part && !page.flags.has_any(flags::REQUISITE) {
                page.flags = flags::with_requisite_depth(page.flags, part);
            }
        } else if page.flags.has_any(flags::ACCOUNT) {
            // A page of the crawl counts as a page, even if it was known as a requisite before.
            page.flags = flags::with_requisite_depth(page.flags, 0);
        }
        if page != before {
            state.set_page(target, &page)?;
            if let Some(transfers) = &mut self.transfers {
                transfers.note_changed(target, &page);
            }
        }
        if opened && page.flags.has_any(flags::FETCHED) {
            // It was captured before as a requisite, so its links are known.
            let kept = std::mem::take(&mut self.targets);
            self.resolve_known_links(state, target, &page)?;
            self.pay_pages(state, target)?;
            self.targets = kept;
        }
        Ok(())
    }
}

/// Returns what a link says of the URL that it means.
fn mention_of<'a>(
    url: &'a str,
    source: UrlId,
    from: &Page,
    link: &Link,
    unfollowed: Option<Refusal>,
) -> Mention<'a> {
    let step = u8::from(matches!(link.kind.hop(), 'L' | 'M' | 'X'));
    let part = if link.kind.is_requisite() { flags::requisite_depth(from.flags) + 1 } else { 0 };
    Mention {
        url,
        via: Some(source),
        depth: from.depth.saturating_add(step),
        hop: link.kind.hop() as u8,
        is_page: link.kind.carries_cash(),
        part,
        unfollowed,
    }
}
