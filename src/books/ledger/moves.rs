//! Seeds that have moved: the site that a seed leads to is the seed's site.
//!
//! What a seed redirects to belongs to the crawl, and when the redirects end in a page outside the scope, the rule of
//! the seed gets a counterpart for the place of that page.

use archive_storage::address::site_of;
use archive_storage::{Page, State, UrlId};
use regex::escape;
use url::Url;

use super::authority::{authority, host_name};
use super::credit::{Credits, REDIRECTS_MAX};
use super::error::CreditError;
use super::outcome::{FetchOutcome, canonical_of};
use super::page_flags as flags;
use super::scope::{CrawlScope, ScopeKind, ScopeRule};

impl ScopeRule {
    /// Returns the counterpart of the rule for the place that its seed leads to.
    fn moved_to(&self, url: &str) -> Self {
        let kind = match &self.kind {
            ScopeKind::Regex(pattern) => ScopeKind::Regex(moved_pattern(pattern, &self.seed, url)),
            kind => kind.clone(),
        };
        let moved_from = Some(self.moved_from.clone().unwrap_or_else(|| self.seed.clone()));
        Self { kind, seed: url.to_owned(), max_depth: self.max_depth, moved_from }
    }
}

/// Returns a pattern with the folder of one URL, or else its host, replaced by that of another.
fn moved_pattern(pattern: &str, from: &str, to: &str) -> String {
    let (Ok(from), Ok(to)) = (Url::parse(from), Url::parse(to)) else { return pattern.to_owned() };
    let folder = |url: &Url| url.join(".").map(String::from).unwrap_or_default();
    let host = |url: &Url| url.host_str().unwrap_or_default().to_owned();
    for (from, to) in [(folder(&from), folder(&to)), (host(&from), host(&to))] {
        for spelled in [escape(&from), from.replace('.', "\\."), from] {
            if !spelled.is_empty() && pattern.contains(&spelled) {
                return pattern.replace(&spelled, &escape(&to));
            }
        }
    }
    pattern.to_owned()
}

impl CrawlScope {
    /// Returns the rules for places that seeds have moved to, with the seeds.
    pub fn moved(&self) -> impl Iterator<Item = (&str, &ScopeRule)> {
        self.rules().iter().filter_map(|rule| Some((rule.moved_from.as_deref()?, rule)))
    }

    /// Returns the place that a seed has moved to, given its canonical URL.
    #[must_use]
    pub fn moved_to(&self, seed: &str) -> Option<&str> {
        self.moved().find(|(from, _)| canonical_of(from) == seed).map(|(_, rule)| rule.seed.as_str())
    }
}

impl Credits {
    /// Adds the rules of seeds that have moved to those of a scope.
    pub(super) fn with_moved(&self, scope: CrawlScope) -> CrawlScope {
        if self.leave_moved_seeds {
            return scope;
        }
        let mut rules = scope.rules().to_vec();
        for (from, moved) in self.scope.moved() {
            let seed = scope.rules().iter().find(|rule| rule.seed == from && rule.moved_from.is_none());
            let is_there = |rule: &ScopeRule| rule.seed == moved.seed && rule.moved_from == moved.moved_from;
            if let Some(seed) = seed.filter(|_| !scope.rules().iter().any(is_there)) {
                rules.push(seed.moved_to(&moved.seed));
            }
        }
        CrawlScope::from_rules(rules)
    }

    /// Returns the seed that leads to a page through redirects alone.
    pub(super) fn seed_before(&self, state: &State, page: &Page) -> Result<Option<UrlId>, CreditError> {
        let mut step = *page;
        for _ in 0..REDIRECTS_MAX {
            let Some(before) = step.via.filter(|_| step.hop == b'R') else { return Ok(None) };
            step = state.page(before)?;
            if step.flags.has_any(flags::SEED) {
                return Ok((!self.leave_moved_seeds).then_some(before));
            }
        }
        Ok(None)
    }

    /// Extends the scope to the place of a page that was just captured, if a seed led to it from another place.
    pub(super) fn follow_seed(
        &mut self,
        state: &mut State,
        id: UrlId,
        outcome: &FetchOutcome,
    ) -> Result<(), CreditError> {
        let page = state.page(id)?;
        if page.hop != b'R' || !outcome.is_page() || (300..400).contains(&outcome.document_status()) {
            return Ok(());
        }
        let Some(seed) = self.seed_before(state, &page)? else { return Ok(()) };
        let (seed, host) = (state.url(seed)?, authority(&outcome.url));
        if self.scope.contains(&outcome.url, host, site_of(host_name(host)), page.depth) {
            return Ok(());
        }
        let of_seed = self.scope.rules().iter().filter(|rule| canonical_of(&rule.seed) == seed);
        let moved: Vec<ScopeRule> = of_seed.map(|rule| rule.moved_to(&outcome.url)).collect();
        if moved.is_empty() {
            return Ok(());
        }
        self.moved.extend(moved.iter().cloned());
        let rules = self.scope.rules().iter().cloned().chain(moved).collect();
        self.set_scope(state, CrawlScope::from_rules(rules))
    }

    /// Returns the rules for seeds that have moved, since the last call.
    pub fn take_moved(&mut self) -> Vec<ScopeRule> {
        std::mem::take(&mut self.moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_moves_with_its_seed() {
        for (pattern, seed, to, expected) in [
            (
                "^http://old\\.test/docs/",
                "http://old.test/docs/",
                "https://new.test/d/x",
                "^https://new\\.test/d/",
            ),
            (
                "^https?://(www\\.)?old\\.test/",
                "http://old.test/a",
                "http://new.test/",
                "^https?://(www\\.)?new\\.test/",
            ),
            (
                "^http://old.test/.*pdf",
                "http://old.test/",
                "http://new.test/b/",
                "^http://new\\.test/b/.*pdf",
            ),
            ("/news/", "http://old.test/news/", "http://new.test/", "/news/"),
        ] {
            assert_eq!(moved_pattern(pattern, seed, to), expected);
        }
    }
}
