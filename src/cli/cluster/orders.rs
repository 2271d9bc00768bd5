//! Decisions and erasures that are ordered for all partitions of a cluster; each partition carries them out for its own
//! sites.

use archive_books::cluster::Publications;
use archive_peers::share::orders::{Order, OrderList};
use archive_peers::share::{ListProgress, OrderProgress, ShareError};

use crate::cli::{Failure, Result, output, usage};

/// Maximum number of partitions named in a message.
const NAMED_MAX: usize = 10;

/// Maximum number of orders shown of each list; the newest are shown.
const SHOWN_MAX: u64 = 20;

/// Publication of an order to a cluster, instead of a change to one archive.
#[derive(clap::Args)]
pub(crate) struct OrderArgs {
    /// URL of the object store that the nodes share: instead of changing one archive, publish the order for all
    /// partitions of the cluster that it concerns; their archives carry it out (`archive cluster share`)
    #[arg(long, value_name = "URL")]
    pub(crate) cluster: Option<String>,
}

/// Publishes an order, and prints which partitions it is for.
pub(crate) fn publish(url: &str, order: &Order, json: bool) -> Result<()> {
    let mut published = Publications::look(url)?;
    let number = order.publish(&mut published).map_err(|error| match error {
        ShareError::Order(problem) => usage(format!("{problem}; nothing was published")),
        error => Failure::from(error),
    })?;
    let (list, partitions): (_, Vec<u16>) =
        (order.list().name(), order.partitions(&published).into_iter().collect());
    output::summary(json, &object! { list, number, partitions: &partitions }, || {
        let whole = partitions.len() == usize::from(published.partition(1).count);
        let partitions = if whole {
            "all partitions".to_owned()
        } else {
            named(partitions.iter().map(u16::to_string).collect())
        };
        format!("{list}: order {number} is published, for {partitions}")
    })
}

fn named(mut partitions: Vec<String>) -> String {
    let more = partitions.len().saturating_sub(NAMED_MAX);
    let what = if partitions.len() == 1 { "partition" } else { "partitions" };
    partitions.truncate(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{what} {}{more}", partitions.join(", "))
}

/// Prints how far the partitions have got with a list, if it has any orders.
pub(super) fn show_progress(progress: &ListProgress) -> Result<()> {
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
    say!("{}: {}, {carried}", list.name(), output::count(*orders, "order"))?;
    let newest = set_aside.iter().rev().take(SHOWN_MAX as usize);
    newest.rev().try_for_each(|(order, by)| {
        let by = named(by.iter().map(u16::to_string).collect());
        say!("  order {order}: set aside by {by}, which cannot answer its query: erase there by `--urls`, or order it again once it can")
    })
}

/// Lists the newest orders of each list, or all of them as JSON.
pub(super) fn show(published: &Publications, json: bool) -> Result<()> {
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
            say!("  order {number}: {what}")?;
        }
    }
    Ok(())
}
