//! Subscribes a refresh to the hubs that pages of watches name.

use std::collections::BTreeSet;

use archive_ask::watch;
use archive_base::control::Control;
use archive_base::texts::count;
use archive_crawl::publish::hubs::{self, HubOutcome};
use archive_crawl::{CrawlOptions, Purpose};
use archive_storage::Store;
use chrono::{DateTime, Utc};

use super::super::{Failure, Hear, JobEvent};

/// Subscribes to the hubs named by the watches' pages that this run has fetched, and renews subscriptions whose lease
/// is about to end. Returns whether this included a run in the archive's cluster.
pub(super) fn subscribe(
    callback: Option<&str>,
    store: &mut Store,
    options: CrawlOptions,
    begun: DateTime<Utc>,
    stop: &Control,
    hear: &mut Hear<'_>,
) -> Result<bool, Failure> {
    let Some(callback) = callback else { return Ok(false) };
    let now = options.fetch.clock.now();
    let mut pages = BTreeSet::new();
    for watch in watch::list(store.path())? {
        match watch.pages(store, now) {
            Ok(found) => pages.extend(found),
            Err(error) => {
                let text = format!("no hubs were asked: the watch '{}' fails: {error}", watch.name);
                hear(JobEvent::Notice(text));
                return Ok(false);
            }
        }
    }
    hubs::look(store, &pages, begun)?;
    let takes_turns = options.cluster.is_some() && hubs::are_due(store.path(), now)?;
    let asked = if takes_turns {
        let options = CrawlOptions { full_text: false, status: None, ..options };
        let plan = Purpose::Subscribe { callback: callback.to_owned() };
        archive_crawl::run(store, plan, &options, stop, &mut |_| {})?.1.hubs
    } else {
        hubs::ask(store.path(), callback, &options.fetch, options.politeness.host_delay, stop)?
    };
    outcome(&asked).into_iter().for_each(|notice| hear(JobEvent::Notice(notice)));
    Ok(takes_turns)
}

/// What hubs answered; a sentence each.
fn outcome(asked: &HubOutcome) -> Vec<String> {
    let mut notices = Vec::new();
    if *asked != HubOutcome::default() {
        let taken = count(asked.taken, "hub");
        notices.push(format!("subscriptions: requested from {taken}, {} failed", asked.failed.len()));
    }
    if asked.waiting > 0 {
        let wait = if asked.waiting == 1 {
            "was not asked in time, and waits"
        } else {
            "were not asked in time, and wait"
        };
        notices.push(format!("{} {wait} for the next run", count(asked.waiting, "hub")));
    }
    notices.extend(asked.failed.iter().map(|(hub, why)| format!("{hub}: {why}")));
    notices
}
