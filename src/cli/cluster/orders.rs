//! Decisions and erasures that are ordered for all partitions of a cluster; each partition carries them out for its own
//! sites.

use std::path::Path;

use archive_base::decisions::Decision;
use archive_books::cluster::{Partition, Publications};
use archive_peers::share::orders::{self, Order, OrderDone, OrderList};
use archive_peers::share::{ListProgress, OrderProgress, ShareError};
use archive_storage::Store;
use archive_web::fetch;
use serde::Serialize;

use super::super::open::SegmentArgs;
use super::super::{UsageError, open, output};

/// Maximum number of partitions named in a message.
const NAMED_MAX: usize = 10;

/// Maximum number of orders shown of each list; the newest are shown.
const SHOWN_MAX: u64 = 20;

/// Maximum number of conflicts named in a message.
pub(crate) const CONFLICTS_NAMED_MAX: usize = 20;

/// Publication of an order to a cluster, instead of a change to one archive.
#[derive(clap::Args)]
pub(crate) struct OrderArgs {
    /// URL of the object store that the nodes share: instead of changing one archive, publish the order for all
    /// partitions of the cluster that it concerns; their archives carry it out (`archive cluster share`)
    #[arg(long, value_name = "URL")]
    pub(crate) cluster: Option<String>,
}

#[derive(Serialize)]
struct Published<'a> {
    list: &'a str,
    number: u64,
    partitions: &'a [u16],
}

/// Publishes an order, and prints which partitions it is for.
pub(crate) fn publish(url: &str, order: &Order, json: bool) -> anyhow::Result<()> {
    let mut published = Publications::look(url)?;
    let number = order.publish(&mut published).map_err(|error| match error {
        ShareError::Order(problem) => UsageError(format!("{problem}; nothing was published")).into(),
        error => anyhow::Error::from(error),
    })?;
    let (list, partitions): (_, Vec<u16>) =
        (order.list().name(), order.partitions(&published).into_iter().collect());
    if json {
        return output::json_line(&Published { list, number, partitions: &partitions });
    }
    let whole = partitions.len() == usize::from(published.partition(1).count);
    let partitions = if whole {
        "all partitions".to_owned()
    } else {
        named(partitions.iter().map(u16::to_string).collect())
    };
    output::line(&format!("{list}: order {number} is published, for {partitions}"))
}

fn named(mut partitions: Vec<String>) -> String {
    let more = partitions.len().saturating_sub(NAMED_MAX);
    let what = if partitions.len() == 1 { "partition" } else { "partitions" };
    partitions.truncate(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{what} {}{more}", partitions.join(", "))
}

/// Opens an archive for writing. If it is to work in a cluster, it first carries out the cluster's orders; `wanted` is
/// its partition if it may not have one yet.
pub(crate) fn own(
    path: &Path,
    segments: SegmentArgs,
    fetch: &fetch::Settings,
    cluster: Option<&str>,
    wanted: Option<&Partition>,
) -> anyhow::Result<Store> {
    let mut store = open::own(path, segments, Some(fetch))?;
    let Some(cluster) = cluster else { return Ok(store) };
    let mut published = Publications::look(cluster)?;
    if !orders::are_waiting(&published, path)? {
        return Ok(store);
    }
    // Readers do not see a new archive before its first checkpoint.
    store.checkpoint_waiting()?;
    drop(store);
    let mut failed = None;
    carry_out(&mut published, path, wanted, &mut |heard| match heard {
        Heard::Done(text) | Heard::LeftOut(text) => output::note(format_args!("{text}")),
        Heard::Failed(text) => failed = Some(text),
    })?;
    // Otherwise erased pages would be fetched again, or decisions ignored.
    failed.map_or_else(|| open::own(path, segments, Some(fetch)), |why| anyhow::bail!("{why}"))
}

/// Messages about orders for the user.
pub(super) enum Heard {
    /// An order was carried out.
    Done(String),
    /// An order was skipped in part or entirely.
    LeftOut(String),
    /// An order could not be carried out, and will be retried.
    Failed(String),
}

/// Carries out the orders that an archive has not carried out yet.
pub(super) fn carry_out(
    published: &mut Publications,
    archive: &Path,
    wanted: Option<&Partition>,
    hear: &mut dyn FnMut(Heard),
) -> Result<(), ShareError> {
    let (shown, options) = (archive.display(), open::erase_options());
    orders::carry_out(published, archive, wanted, &options, &mut |list, number, done| {
        let order = format!("{shown}: {}: order {number}", list.name());
        let OrderDone { outcome, conflicts, copies } = match done {
            Ok(done) => done,
            Err(error) if error.is_for_good() => {
                let text = format!("{order} is set aside, so it erases nothing here: {error}");
                return hear(Heard::LeftOut(text));
            }
            Err(error) => {
                let waits = if error.is_locked() { "waits" } else { "is not carried out" };
                return hear(Heard::Failed(format!("{order} {waits}: {error}")));
            }
        };
        let what = match list {
            OrderList::Erasures if outcome.named > 0 => {
                output::count(outcome.named, "page") + " that match its query are named by further orders"
            }
            OrderList::Decisions => output::count(outcome.taken, "decision") + " taken in",
            OrderList::Erasures => output::count(outcome.taken, "page") + " erased",
        };
        hear(Heard::Done(format!("{order}: {what}")));
        for (subject, Decision { by, .. }) in conflicts.iter().take(CONFLICTS_NAMED_MAX) {
            let text = format!("{order}: {subject} is left alone: {by} has decided since the export");
            hear(Heard::LeftOut(text));
        }
        for place in copies {
            output::note(format_args!("{}", output::copies_hold(&place.url)));
        }
    })
}

/// Prints how far the partitions have got with a list, if it has any orders.
pub(super) fn show_progress(progress: &ListProgress) -> anyhow::Result<()> {
    let ListProgress { list, orders, carried_out_by, waiting, set_aside, .. } = progress;
    if *orders == 0 {
        return Ok(());
    }
    let carried = if waiting.is_empty() {
        "carried out by all partitions".to_owned()
    } else {
        let all = usize::from(*carried_out_by) + waiting.len();
        let behind = |(partition, waiting): (&u16, &u64)| match (orders, waiting) {
            (1, _) => partition.to_string(),
            (_, 1) => format!("{partition} (1 waits)"),
            (_, waiting) => format!("{partition} ({waiting} wait)"),
        };
        let behind = named(waiting.iter().map(behind).collect());
        format!("carried out by {carried_out_by} of {all} partitions, not yet by {behind}")
    };
    output::line(&format!("{}: {}, {carried}", list.name(), output::count(*orders, "order")))?;
    let newest = set_aside.iter().rev().take(SHOWN_MAX as usize);
    newest.rev().try_for_each(|(order, by)| {
        let by = named(by.iter().map(u16::to_string).collect());
        output::line(&format!("  order {order}: set aside by {by}, which cannot answer its query: erase there by `--urls`, or order it again once it can"))
    })
}

/// Lists the newest orders of each list, or all of them as JSON.
pub(super) fn show(published: &Publications, json: bool) -> anyhow::Result<()> {
    for progress in ListProgress::look(published)? {
        if json {
            (1..=progress.orders).try_for_each(|number| output::json_line(&progress.order(number)))?;
            continue;
        }
        show_progress(&progress)?;
        for number in progress.orders.saturating_sub(SHOWN_MAX) + 1..=progress.orders {
            let OrderProgress { outcome, waits_for, set_aside_by, .. } = progress.order(number);
            let what = match progress.list {
                OrderList::Decisions if outcome.left > 0 => {
                    format!("{} in conflict, left out", output::count(outcome.left, "decision"))
                }
                OrderList::Decisions => continue,
                OrderList::Erasures if outcome.named > 0 => {
                    output::count(outcome.named, "page") + " that match its query are named by further orders"
                }
                OrderList::Erasures if !set_aside_by.is_empty() => continue,
                OrderList::Erasures if outcome.taken == 0 && waits_for.is_empty() => {
                    "no partition has any of its pages".to_owned()
                }
                OrderList::Erasures if waits_for.is_empty() => {
                    output::count(outcome.taken, "page") + " erased"
                }
                OrderList::Erasures => output::count(outcome.taken, "page") + " erased so far",
            };
            output::line(&format!("  order {number}: {what}"))?;
        }
    }
    Ok(())
}
