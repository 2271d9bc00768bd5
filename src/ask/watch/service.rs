//! Watches within a refresh: the pages they wait for, and their reports once these are fetched.

use std::collections::HashSet;
use std::path::PathBuf;

use archive_storage::{Store, UrlId};
use chrono::{DateTime, Utc};

use super::{Watch, WatchError, WatchReport, keep};

/// A watch whose report is due, and the pages to be fetched before.
#[derive(Clone, Debug)]
pub struct Awaited {
    /// The watch.
    pub watch: Watch,
    /// Its pages that are to be fetched.
    pub pages: Vec<UrlId>,
    /// Pages fetched since this time need not be fetched again, so that an incomplete run can be continued.
    pub fetched_from: DateTime<Utc>,
}

/// Outcome of a report.
#[derive(Debug)]
pub enum Delivery {
    /// It was made and stored.
    Made {
        /// The report.
        report: WatchReport,
        /// The output file of the watch, if it was not permitted to be written.
        withheld: Option<PathBuf>,
    },
    /// Not all of its pages could be fetched yet. The next run tries again, until a whole period has been missed.
    Postponed {
        /// The watch.
        watch: Watch,
        /// Number of pages not fetched.
        missing: usize,
    },
    /// It could not be made.
    Failed {
        /// The watch.
        watch: Watch,
        /// The reason.
        error: WatchError,
    },
}

/// Determines the pages that watches wait for; also returns watches whose query fails, with the error.
#[must_use]
pub fn await_pages(
    watches: Vec<Watch>,
    store: &Store,
    now: DateTime<Utc>,
) -> (Vec<Awaited>, Vec<(Watch, WatchError)>) {
    let (mut awaited, mut failed) = (Vec::new(), Vec::new());
    for watch in watches {
        // A report requested before it is due waits for pages fetched from now on.
        let fetched_from = watch.due_at().min(now);
        match unfetched(&watch, store, fetched_from, now) {
            Ok(pages) => awaited.push(Awaited { watch, pages, fetched_from }),
            Err(error) => failed.push((watch, error)),
        }
    }
    (awaited, failed)
}

/// The pages of a watch that were not fetched since `fetched_from`.
fn unfetched(
    watch: &Watch,
    store: &Store,
    fetched_from: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<Vec<UrlId>, WatchError> {
    let mut pages = watch.pages(store, now)?;
    let mut outcome = Ok(());
    pages.retain(|page| match store.state().visit(*page) {
        Ok(visit) => visit.is_none_or(|visit| i64::from(visit.last_attempt) < fetched_from.timestamp()),
        Err(error) => {
            outcome = Err(error);
            false
        }
    });
    outcome?;
    Ok(pages)
}

/// All pages that watches wait for, without duplicates, in the order of the watches.
#[must_use]
pub fn pages_of(awaited: &[Awaited]) -> Vec<UrlId> {
    let mut taken = HashSet::new();
    awaited.iter().flat_map(|awaited| &awaited.pages).copied().filter(|page| taken.insert(*page)).collect()
}

/// Makes the reports of watches after a run, each up to `now`. Output files are written only below the folders in
/// `outputs`.
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
    let report = match WatchReport::of(&watch, store, fetched_from, now) {
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
