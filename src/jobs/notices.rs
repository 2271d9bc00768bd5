//! Handles the notices received by `archive serve --pings` at the start of a run: fetches their keys, and announces the
//! proven ones.

use std::time::Duration;

use archive_base::control::Control;
use archive_base::runs::{RunReport, Tallies};
use archive_base::texts::count;
use archive_crawl::publish::{NoticeOutcome, Pending};
use archive_crawl::{CrawlOptions, EndReason, HarvestRules, Purpose};
use archive_storage::Store;

use super::{Failure, Hear, JobEvent};

/// Maximum time for fetching key files, in absolute terms and as a fraction of the run; slower ones wait for the next
/// run.
const KEYS_TIME: (Duration, u32) = (Duration::from_secs(60), 10);

/// Longest wait for the server of a key file that says "later"; a run with less patience waits less.
const KEYS_PATIENCE: Duration = Duration::from_secs(5);

/// As `KEYS_TIME` in a cluster, where addresses are first announced to other nodes and may have to take turns.
const KEYS_TIME_IN_CLUSTER: (Duration, u32) = (Duration::from_secs(300), 2);

/// Processes the waiting notices with at most `keys_max` requests. Returns the number of key files requested, and the
/// pages that are now fetched first.
pub(super) fn settle(
    store: &mut Store,
    options: &CrawlOptions,
    keys_max: usize,
    stop: &Control,
    hear: &mut Hear<'_>,
) -> Result<(usize, Tallies), Failure> {
    let pending = Pending::begin(store, keys_max, options.fetch.clock.now())?;
    let keys = pending.keys.len();
    if keys > 0 {
        let (most, part) = if options.cluster.is_some() { KEYS_TIME_IN_CLUSTER } else { KEYS_TIME };
        let time = options.time.map_or(most, |time| (time / part).min(most));
        // Key files are not part of a harvest.
        let harvest = HarvestRules::default();
        let patience = Some(options.patience.map_or(KEYS_PATIENCE, |own| own.min(KEYS_PATIENCE)).min(time));
        let account = Some(RunReport::begins("pings", options.fetch.clock.now()));
        let options =
            CrawlOptions { account, time: Some(time), patience, limit: None, harvest, ..options.clone() };
        let keys = Purpose::Refresh { pages: pending.keys.clone() };
        let (end, _) = archive_crawl::run(store, keys, &options, stop, &mut |_| {})?;
        if end == EndReason::Drained {
            stop.stop();
        }
    }
    let NoticeOutcome { pages, dropped, waiting } = pending.settle(store, options.fetch.clock.now())?;
    let found: u64 = pages.0.iter().map(|tally| tally.count).sum();
    if found > 0 || dropped > 0 || waiting > 0 {
        hear(JobEvent::Notice(format!(
            "notices: {} to be fetched first; {dropped} rejected (invalid or too old), {waiting} not yet checked",
            count(found, "page"),
        )));
    }
    Ok((keys, pages))
}
