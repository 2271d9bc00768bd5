//! What a run does first with the notices that `archive serve --pings` took: it fetches their keys, and announces what is proven.

use std::time::Duration;

use archive::crawl::{self, Options, Purpose};
use archive::publish::{Pending, Taken};
use archive::recorder::Control;
use archive::runs::Tallies;
use archive_storage::Store;

use super::output;

/// Key files are fetched within this time; what is slower waits for the next run.
const KEYS_TIME_MAX: Duration = Duration::from_secs(60);

/// Of the time of a run, key files may take a tenth.
const TIME_FOR_KEYS: u32 = 10;

/// Looks at the notices that wait, with `keys_max` requests at most; the key files that were asked for, and the pages that are
/// now fetched first.
pub(crate) fn settle(
    store: &mut Store,
    options: &Options,
    keys_max: usize,
    stop: &Control,
) -> anyhow::Result<(usize, Tallies)> {
    let pending = Pending::begin(store, keys_max, options.fetch.clock.now())?;
    let keys = pending.keys.len();
    if keys > 0 {
        let time = options.time.map_or(KEYS_TIME_MAX, |time| (time / TIME_FOR_KEYS).min(KEYS_TIME_MAX));
        // These are not pages of a harvest.
        let harvest = crawl::HarvestRules::default();
        let options = Options { name: "pings", time: Some(time), limit: None, harvest, ..options.clone() };
        crawl::run(store, Purpose::Refresh { pages: pending.keys.clone() }, &options, stop, &mut |_| {})?;
    }
    let Taken { pages, dropped, waiting } = pending.settle(store, options.fetch.clock.now())?;
    let found: u64 = pages.0.iter().map(|tally| tally.count).sum();
    if found > 0 || dropped > 0 || waiting > 0 {
        output::note(format_args!(
            "notices: {} to be fetched first; {} without a right key or too old, {} still to be checked",
            output::count(found, "page"),
            dropped,
            waiting
        ));
    }
    Ok((keys, pages))
}
