//! Watches within a refresh: which pages they wait for, and their reports once these are fetched.

use std::collections::HashSet;
use std::path::PathBuf;

use archive_storage::{Store, UrlId};
use chrono::{DateTime, Utc};

use super::{Report, Watch, WatchError, keep};

/// A watch whose report is wanted, and the pages that are to be fetched before.
#[derive(Clone, Debug)]
pub struct Awaited {
    /// The watch.
    pub watch: Watch,
    /// Its pages that are to be fetched.
    pub pages: Vec<UrlId>,
    /// What was fetched from this time on need not be fetched again: a run that could not fetch all is continued.
    pub fetched_from: DateTime<Utc>,
}

/// The outcome of a report.
#[derive(Debug)]
pub enum Delivery {
    /// It was made and kept.
    Made {
        /// The report.
        report: Report,
        /// The watch's own file, if it was not permitted to write that.
        withheld: Option<PathBuf>,
    },
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
        // A report without awaited pages is made now.
        let fetched_from = watch.due_at().min(now);
        match unfetched(&watch, store, fetched_from, now) {
            Ok(pages) => awaited.push(Awaited { watch, pages, fetched_from }),
            Err(error) => failed.push((watch, error)),
        }
    }
    (awaited, failed)
}

/// The pages of a watch that were not fetched from a time on.
fn unfetched(
    watch: &Watch,
    store: &Store,
    fetched_from: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<Vec<UrlId>, WatchError> {
    let mut pages = watch.pages(store, now)?;
    let mut outcome = Ok(());
    pages.retain(|page| match store.state().visit(*page) {
        Ok(visit) => visit.is_none_or(|visit| i64::from(visit.last_seen) < fetched_from.timestamp()),
        Err(error) => {
            outcome = Err(error);
            false
        }
    });
    outcome?;
    Ok(pages)
}

/// The pages that somebody waits for, each once, the first watch's first.
#[must_use]
pub fn pages_of(awaited: &[Awaited]) -> Vec<UrlId> {
    let mut taken = HashSet::new();
    awaited.iter().flat_map(|awaited| &awaited.pages).copied().filter(|page| taken.insert(*page)).collect()
}

/// Makes the reports of watches after a run; `now` is where they end. Files of their own are written below the folders
/// `outputs` only.
#[must_use]
pub fn deliver(
    awaited: Vec<Awaited>,
    store: &Store,
    now: DateTime<Utc>,
    outputs: &[PathBuf],
) -> Vec<Delivery> {
    awaited.into_iter().map(|awaited| deliver_one(awaited, store, now, outputs)).collect()
}

fn deliver_one(awaited: Awaited, store: &Store, now: DateTime<Utc>, outputs: &[PathBuf]) -> Delivery {
    let Awaited { watch, fetched_from, .. } = awaited;
    let report = match Report::of(&watch, store, fetched_from, now) {
        Ok(report) => report,
        Err(error) => return Delivery::Failed { watch, error },
    };
    if report.not_fetched > 0 && !watch.is_overdue(now) {
        return Delivery::Postponed { watch, missing: report.not_fetched };
    }
    match keep(store.path(), &watch, &report, outputs) {
        Ok(withheld) => Delivery::Made { report, withheld },
        Err(error) => Delivery::Failed { watch, error },
    }
}
