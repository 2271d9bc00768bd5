//! What was learned about parameters, put to use: links are taken without those that make no difference, suspect ones
//! are tested, and what captures show is noted.

use std::borrow::Cow;

use archive_storage::address::{
    Parameter, is_suspect, may_have_parameters, parameters, url_hash, was_dropped, without_parameters,
};
use archive_storage::{HostId, Page, PageFlags, State, StateError, UrlId};
use archive_web::parse::{Link, LinkKind};

use super::{ParameterTest, Parameters, Proposed, TESTED_FIRST, TESTS_MAX, TestResult, Tested, is_named};
use crate::ledger::aliases::account_of;
use crate::ledger::authority::authority;
use crate::ledger::credit::Credits;
use crate::ledger::error::CreditError;
use crate::ledger::facts::CrawlerFacts;
use crate::ledger::links::{CreditedLink, Mention};
use crate::ledger::outcome::FetchOutcome;
use crate::ledger::page_flags as flags;
use crate::ledger::settings::read_policy;
use crate::ledger::waiting_list::Candidate;

impl Credits {
    /// Returns the URL that stands for one that waits to be fetched, as parameters of it make no difference.
    ///
    /// # Errors
    /// When the store fails.
    pub fn meant(&self, state: &State, id: UrlId, url: &str) -> Result<Option<String>, StateError> {
        let page = state.page(id)?;
        Ok(if self.is_asked_for(id, &page) { None } else { self.parameters.meant(page.host, url) })
    }

    /// Whether a page that waits to be fetched is to wait for tests of its parameters: they may make no difference.
    ///
    /// # Errors
    /// When the store fails.
    pub fn awaits_tests(&self, state: &State, id: UrlId, url: &str) -> Result<bool, StateError> {
        let page = state.page(id)?;
        let known = self.parameters.hosts.get(&page.host.0);
        Ok(known.is_some_and(|known| known.is_testing(url)) && !self.is_asked_for(id, &page))
    }

    /// Whether a page is fetched under its own URL whatever its parameters are.
    fn is_asked_for(&self, id: UrlId, page: &Page) -> bool {
        let is_tested = self.parameters.hosts.get(&page.host.0).is_some_and(|known| known.tests(id));
        is_tested || page.flags.has_any(flags::SEED | flags::FETCHED) || page.hop == b'R'
    }

    /// Whether a test has ended since the last call.
    pub fn has_ended_tests(&mut self) -> bool {
        std::mem::take(&mut self.parameters.has_ended)
    }

    /// Gives up the tests of the host of a page.
    ///
    /// # Errors
    /// When the store fails.
    pub fn give_up_tests(&mut self, state: &State, id: UrlId) -> Result<(), StateError> {
        self.parameters.keep_tests(state.page(id)?.host, |_| false);
        self.parameters.has_ended = true;
        Ok(())
    }

    /// Returns a page that has waited for tests, if it still is to be fetched.
    ///
    /// # Errors
    /// When the store fails.
    pub fn has_waited(&self, state: &State, id: UrlId) -> Result<Option<Candidate>, StateError> {
        Ok(self.candidate(id, &state.page(id)?))
    }

    /// Returns the URL under which the archive may have a page whose own URL it does not know: without parameters that
    /// make no difference, or without those that earlier versions dropped.
    ///
    /// # Errors
    /// When the store fails.
    pub fn known_as(state: &State, url: &str) -> Result<Option<UrlId>, CreditError> {
        if !may_have_parameters(url) {
            return Ok(None);
        }
        if let Some(host) = state.find_host(authority(url))? {
            let parameters = Parameters::open(state, read_policy(state)?.dropped_parameters)?;
            if let Some(id) = parameters.meant(host, url).map_or(Ok(None), |meant| state.find(&meant))? {
                return Ok(Some(id));
            }
        }
        let former = without_parameters(url, was_dropped);
        Ok(former.map_or(Ok(None), |former| state.find(&former))?)
    }

    /// Returns the page that stands for one that was never fetched, as parameters of its URL make no difference.
    ///
    /// # Errors
    /// When the store fails.
    pub fn stand_in(&self, state: &State, id: UrlId) -> Result<Option<UrlId>, CreditError> {
        let Page { host, flags, .. } = state.page(id)?;
        let is_alias = flags.has_any(flags::ALIAS) && !flags.has_any(flags::FETCHED);
        Ok(if is_alias { self.parameters.standing_for(state, host, id)? } else { None })
    }

    /// Returns what is known about the tested parameters of a host.
    #[must_use]
    pub fn tested(&self, host: HostId) -> Vec<Tested> {
        let names = self.parameters.hosts.get(&host.0).map(|known| &known.names);
        let tested = names.into_iter().flatten().map(|(name, evidence)| Tested {
            name: name.clone(),
            same: evidence.same,
            different: evidence.different,
            is_dropped: evidence.is_dropped(),
        });
        tested.filter(|tested| tested.same + tested.different > 0).collect()
    }

    /// Lets `meant` stand for a page that waits to be fetched: it gets its cash, and is fetched instead.
    ///
    /// # Errors
    /// When the store fails.
    pub fn let_stand_for(
        &mut self,
        state: &mut State,
        id: UrlId,
        meant: &str,
    ) -> Result<Option<Candidate>, CreditError> {
        let mut page = state.page(id)?;
        let target = self.intern(state, meant, url_hash(meant))?;
        let mention = Mention {
            url: meant,
            via: page.via,
            depth: page.depth,
            hop: page.hop,
            is_page: page.flags.has_any(flags::ACCOUNT),
            part: flags::requisite_depth(page.flags),
            unfollowed: None,
        };
        self.note_mention(state, target, &mention)?;
        if page.flags.has_any(flags::ACCOUNT) {
            match account_of(state, target)?.filter(|payee| *payee != id) {
                Some(payee) => self.merge_into(state, id, &mut page, payee)?,
                None => self.close(state, id, &mut page)?,
            }
            page.flags.set(flags::ALIAS, true);
        }
        page.flags = flags::with_requisite_depth(page.flags, 0);
        state.set_page(id, &page)?;
        Ok(self.candidate(target, &state.page(target)?))
    }

    /// Takes up again a page for which another one stood by mistake.
    ///
    /// # Errors
    /// When the store fails.
    pub fn stand_alone(&mut self, state: &mut State, id: UrlId) -> Result<Option<Candidate>, CreditError> {
        let mut page = state.page(id)?;
        page.flags.set(flags::ALIAS, false);
        self.open_account(&mut page);
        state.set_page(id, &page)?;
        Ok(self.candidate(id, &page))
    }

    /// Returns hosts whose links were taken without a parameter that matters, since the last call.
    pub fn take_misled(&mut self) -> Vec<HostId> {
        self.parameters.is_changed |= !self.parameters.misled.is_empty();
        std::mem::take(&mut self.parameters.misled).into_iter().map(HostId).collect()
    }

    /// Reads the links of a page again, as its newest version has them.
    ///
    /// # Errors
    /// When the store fails.
    pub fn link_again(
        &mut self,
        state: &mut State,
        id: UrlId,
        facts: &CrawlerFacts,
        candidates: &mut Vec<Candidate>,
    ) -> Result<(), CreditError> {
        let page = state.page(id)?;
        self.resolve_links(state, id, &page, facts)?;
        self.store_links(state, id)?;
        Ok(self.add_candidates(state, candidates, None)?)
    }

    /// Returns pages of new tests that were fetched before: what they are is to be noted.
    pub fn take_known_tests(&mut self) -> Vec<UrlId> {
        std::mem::take(&mut self.parameters.known)
    }

    /// Notes the newest version of a page of tests that was fetched before.
    ///
    /// # Errors
    /// When the store fails.
    pub fn note_known(
        &mut self,
        state: &State,
        id: UrlId,
        status: u16,
        facts: &CrawlerFacts,
    ) -> Result<(), CreditError> {
        let host = state.page(id)?.host;
        self.note_found(host, id, status, facts);
        Ok(())
    }

    /// Returns the URL that a link means, with its hash, and the test that the link is good for.
    ///
    /// The target of a redirect is what the server wants to be asked for.
    pub(in crate::ledger) fn link_meant<'a>(
        &mut self,
        state: &State,
        link: &'a Link,
        may_test: bool,
    ) -> Result<(Cow<'a, str>, u64, Option<Proposed>), CreditError> {
        let as_written = (Cow::Borrowed(link.url.as_str()), link.hash, None);
        let is_told = |parameter: Parameter<'_>| {
            is_suspect(&parameter) || is_named(&self.parameters.dropped, parameter.name)
        };
        let may_differ = may_have_parameters(&link.url) && parameters(&link.url).any(is_told);
        if link.kind == LinkKind::Redirect || !may_differ {
            return Ok(as_written);
        }
        let Some(host) = state.find_host(authority(&link.url))? else { return Ok(as_written) };
        let meant = self.parameters.meant(host, &link.url);
        if meant.is_some() && is_fetched(state, &link.url)? {
            return Ok(as_written);
        }
        // Of hosts that are only linked to, nothing will be found.
        let may_test = may_test
            && link.kind.carries_cash()
            && !link.kind.is_requisite()
            && state.host(host)?.captures > 0;
        let proposed = if may_test { self.parameters.meet(host, &link.url) } else { None };
        Ok(match meant {
            Some(meant) if proposed.is_none() => {
                let hash = url_hash(&meant);
                (Cow::Owned(meant), hash, None)
            }
            _ => (as_written.0, as_written.1, proposed),
        })
    }

    /// Opens a test of a link's target: it is fetched with and without parameters.
    pub(in crate::ledger) fn open_test(
        &mut self,
        state: &mut State,
        target: UrlId,
        proposed: Proposed,
        mention: &Mention<'_>,
    ) -> Result<(), CreditError> {
        let Proposed { without, names } = proposed;
        let page = state.page(target)?;
        if page.flags.has_any(flags::FETCHED) || !is_wanted(page.flags) {
            return Ok(());
        }
        let other = self.intern(state, &without, url_hash(&without))?;
        self.note_mention(state, other, &Mention { url: &without, ..*mention })?;
        if other == target || !is_wanted(state.page(other)?.flags) {
            return Ok(());
        }
        let Some(known) = self.parameters.hosts.get_mut(&page.host.0) else { return Ok(()) };
        let urls = [target.0, other.0];
        if known.tests.iter().any(|test| test.urls == urls) {
            return Ok(());
        }
        for (name, _) in &names {
            if let Some(evidence) = known.names.get_mut(name) {
                evidence.begun += 1;
                evidence.next = evidence.met + if evidence.begun < TESTED_FIRST { 1 } else { evidence.met };
            }
        }
        if known.tests.len() >= TESTS_MAX {
            known.tests.remove(0);
            self.parameters.has_ended = true;
        }
        known.tests.push(ParameterTest { names, urls, found: [None; 2] });
        self.parameters.opened.extend([target, other]);
        if state.page(other)?.flags.has_any(flags::FETCHED) {
            self.parameters.known.push(other);
        }
        Ok(())
    }

    /// Notes what a capture shows to the tests of its page.
    pub(in crate::ledger) fn weigh(
        &mut self,
        state: &State,
        id: UrlId,
        outcome: &FetchOutcome,
    ) -> Result<(), CreditError> {
        let host = state.page(id)?.host;
        if self.parameters.hosts.get(&host.0).is_none_or(|known| known.tests.is_empty()) {
            return Ok(());
        }
        let redirect = self.targets.iter().find(|target| target.code.kind() == Some(LinkKind::Redirect));
        match (outcome.document_status(), redirect) {
            (300..400, Some(&CreditedLink { link: to, .. })) => {
                let page = state.page(to)?;
                if page.host != host {
                    self.parameters.give_up(host, id);
                } else if self.parameters.follow(host, id, to) && page.flags.has_any(flags::FETCHED) {
                    self.parameters.known.push(to);
                }
                self.parameters.conclude(host);
            }
            (status, _) => self.note_found(host, id, status, &outcome.facts),
        }
        Ok(())
    }

    fn note_found(&mut self, host: HostId, id: UrlId, status: u16, facts: &CrawlerFacts) {
        let content = facts.similarity.or(facts.signature);
        match (status, content) {
            (200, Some(content)) => self.parameters.find(host, id, TestResult::Page(content)),
            (400..500, _) if status != 429 => self.parameters.find(host, id, TestResult::Nothing),
            _ => self.parameters.give_up(host, id),
        }
    }
}

fn is_wanted(of: PageFlags) -> bool {
    of.has_any(flags::IN_SCOPE) && !of.has_any(flags::ALIAS) && flags::refusal_code(of) == 0
}

fn is_fetched(state: &State, url: &str) -> Result<bool, CreditError> {
    let Some(id) = state.find(url)? else { return Ok(false) };
    Ok(state.page(id)?.flags.has_any(flags::FETCHED))
}
