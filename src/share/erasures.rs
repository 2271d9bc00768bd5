//! Erasures that are ordered for all nodes: each archive erases what it has of the pages, and fetches none of them again.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use archive_storage::segment::{self, SegmentOptions};
use archive_storage::{Owner, State, StateError, Store, UrlId};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::ShareError;
use super::orders::{Done, is_canonical, is_for, of_url};
use crate::cluster::Partition;
use crate::erased::{Erased, FORGOTTEN, REASON_BYTES_MAX, digest_of, forgotten_name};
use crate::exchange::erase::{self, ErasePlan, Order};
use crate::ledger::{capture_flags, name_as_robots_txt};

/// Pages that are to be erased, or may be fetched again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Erasure {
    /// When it was ordered.
    #[serde(with = "crate::instant")]
    pub time: DateTime<Utc>,
    /// Canonical URLs, or `urn:sha256:…` of them.
    pub urls: Vec<String>,
    /// How they are erased; none if they may be fetched again.
    pub erase: Option<Order>,
}

impl Erasure {
    /// Names pages by their digests only, if their URLs are to be forgotten: orders stay in the store.
    #[must_use]
    pub fn new(time: DateTime<Utc>, mut urls: Vec<String>, erase: Option<Order>) -> Self {
        if erase.as_ref().is_some_and(|order| order.forget_url) {
            urls.iter_mut().for_each(|url| *url = forgotten_name(url));
        }
        Self { time, urls, erase }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let reason = self.erase.as_ref().map(|order| order.reason.as_str());
        if let Some(reason) = reason
            && (reason.is_empty() || reason.len() > REASON_BYTES_MAX || reason.contains(char::is_control))
        {
            return Err(format!("its reason does not have 1 to {REASON_BYTES_MAX} bytes of text"));
        }
        let is_digest = |text: &str| {
            text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let is_name = |url: &str| url.strip_prefix(FORGOTTEN).map_or_else(|| is_canonical(url), is_digest);
        match self.urls.iter().find(|url| !is_name(url)) {
            Some(wrong) => Err(format!(
                "'{}' is not a URL as archives write it",
                wrong.chars().take(200).collect::<String>()
            )),
            None if self.urls.is_empty() => Err("it names no page".to_owned()),
            None => Ok(()),
        }
    }
}

/// Erases from an archive what an order says, and lets nothing of it come back.
pub(super) fn carry_out(
    archive: &Path,
    partition: &Partition,
    erasure: &Erasure,
    options: &SegmentOptions,
) -> Result<Done, ShareError> {
    segment::check_repaired(archive)?;
    erase::resume(archive, options, &mut |_, _| {})?;
    // Until the plan is made nothing else is captured.
    let owner = Owner::of(archive)?;
    let store = Store::read_only(archive)?;
    let known = known(store.state(), &erasure.urls)?;
    // Another partition's page may have been imported here.
    let is_own = |url: &str| {
        url.starts_with(FORGOTTEN) || is_for(partition, of_url(partition, url)) || known.contains_key(url)
    };
    let mut erased = Erased::read(archive)?;
    for url in erasure.urls.iter().filter(|url| is_own(url)) {
        match &erasure.erase {
            Some(order) if erased.of(url).is_none() => {
                erased.add(url, order.forget_url, erasure.time, &order.reason);
            }
            Some(_) => {}
            None => drop(erased.lift(url)),
        }
    }
    erased.write(archive)?;
    let Some(order) = &erasure.erase else { return Ok(Done::default()) };
    let pages: BTreeSet<UrlId> = known.into_values().collect();
    let plan = ErasePlan::of(&store, pages.clone(), order.clone())?;
    drop((store, owner));
    let mut done = Done::default();
    if !plan.is_empty() {
        done.copies = erase::run(archive, options, &plan, &mut |_, _| {})?.copies;
    }
    let store = Store::read_only(archive)?;
    for page in pages {
        let is_gone = store
            .state()
            .history(page)?
            .any(|found| found.is_ok_and(|(_, capture)| capture_flags::is_erased(&capture)));
        done.outcome.taken += u64::from(is_gone);
    }
    Ok(done)
}

/// The pages of an archive that were captured under some names.
fn known(state: &State, names: &[String]) -> Result<HashMap<String, UrlId>, StateError> {
    let mut found = HashMap::new();
    let mut add = |name: &str, page: Option<UrlId>| -> Result<(), StateError> {
        if let Some(page) = page
            && state.visit(page)?.is_some_and(|visit| visit.last_capture.is_some())
        {
            found.insert(name.to_owned(), page);
        }
        Ok(())
    };
    let mut digests = HashSet::new();
    for name in names {
        add(name, state.find(name)?)?;
        match name.strip_prefix(FORGOTTEN) {
            Some(digest) => drop(digests.insert(digest)),
            // It may have been fetched only because the robots.txt of another host redirects to it.
            None => add(&name_as_robots_txt(name), state.find(&name_as_robots_txt(name))?)?,
        }
    }
    if !digests.is_empty() {
        let mut urls = state.url_cursor();
        for page in (0..state.url_count()).map(UrlId) {
            let digest = digest_of(urls.get(page)?);
            if digests.contains(digest.as_str()) {
                add(&format!("{FORGOTTEN}{digest}"), Some(page))?;
            }
        }
    }
    Ok(found)
}
