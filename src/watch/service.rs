//! Watches within a refresh: which pages they wait for, and their reports once these are fetched.

use std::collections::HashSet;

use archive_storage::{Store, UrlId};
use chrono::{DateTime, Utc};

use super::{Report, Watch, WatchError, keep};

/// A watch whose report is due, and the pages that are to be fetched before.
#[derive(Clone, Debug)]
pub struct Awaited {
    /// The watch.
    pub watch: Watch,
    /// Its pages.
    pub pages: Vec<UrlId>,
}

/// What became of a report.
#[derive(Debug)]
pub enum Delivery {
    /// It was made and kept.
    Made(Report),
    /// Not all of its pages could be fetched yet: the next run tries again, until a whole period has been missed.
    Postponed {
        /// The watch.
        watch: Watch,
        /// Pages that are missing.
        missing: usize,
    },
    /// It could not be made.
    Failed {
        /// The watch.
        watch: Watch,
        /// Why.
        error: WatchError,
    },
}

/// The watches of `watches` that wait, with their pages; and those whose query fails, with the reason.
#[must_use]
pub fn await_pages(
    watches: Vec<Watch>,
    store: &Store,
    now: DateTime<Utc>,
) -> (Vec<Awaited>, Vec<(Watch, WatchError)>) {
    let (mut awaited, mut failed) = (Vec::new(), Vec::new());
    for watch in watches {
        match watch.pages(store, now) {
            Ok(pages) => awaited.push(Awaited { watch, pages }),
            Err(error) => failed.push((watch, error)),
        }
    }
    (awaited, failed)
}

/// The pages that somebody waits for, each once, the first watch's first.
#[must_use]
pub fn pages_of(awaited: &[Awaited]) -> Vec<UrlId> {
    let mut taken = HashSet::new();
    awaited.iter().flat_map(|awaited| &awaited.pages).copied().filter(|page| taken.insert(*page)).collect()
}

/// Makes the reports of watches after a run that fetched from `begun` on; `now` is where they end.
#[must_use]
pub fn deliver(
    awaited: Vec<Awaited>,
    store: &Store,
    begun: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Vec<Delivery> {
    awaited.into_iter().map(|awaited| deliver_one(awaited.watch, store, begun, now)).collect()
}

fn deliver_one(watch: Watch, store: &Store, begun: DateTime<Utc>, now: DateTime<Utc>) -> Delivery {
    let report = match Report::of(&watch, store, begun, now) {
        Ok(report) => report,
        Err(error) => return Delivery::Failed { watch, error },
    };
    if report.not_fetched > 0 && !watch.is_overdue(now) {
        return Delivery::Postponed { watch, missing: report.not_fetched };
    }
    match keep(store.path(), &watch, &report) {
        Ok(()) => Delivery::Made(report),
        Err(error) => Delivery::Failed { watch, error },
    }
}
