//! Decisions and erasures that are ordered for all partitions of a cluster, and carried out by each for its sites.

use std::collections::BTreeMap;
use std::path::Path;

use archive::cluster::{Partition, Publications};
use archive::decisions::Decision;
use archive::fetch;
use archive::share::ShareError;
use archive::share::orders::{self, Carried, Done, List, Order, Outcome};
use archive_storage::Store;
use serde::Serialize;

use super::super::open::SegmentArgs;
use super::super::{UsageError, open, output};

/// Partitions that are named.
const NAMED_MAX: usize = 10;

/// Orders of each list that are shown, the newest.
const SHOWN_MAX: u64 = 20;

/// Conflicts that are named.
pub(crate) const CONFLICTS_NAMED_MAX: usize = 20;

/// Where an order is given, in the place of an archive.
#[derive(clap::Args)]
pub(crate) struct OrderArgs {
    /// In the place of an archive: publish it for the partitions of a cluster that it concerns, whose archives take it over
    /// (`archive cluster share`); URL of the object store that the nodes share
    #[arg(long, value_name = "URL")]
    pub(crate) cluster: Option<String>,
}

#[derive(Serialize)]
struct Published<'a> {
    list: &'a str,
    number: u64,
    partitions: &'a [u16],
}

/// Publishes an order, and says where it goes.
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
    let partitions = if whole { "all partitions".to_owned() } else { named(&partitions) };
    output::line(&format!("{list}: order {number} is published, for {partitions}"))
}

fn named(partitions: &[u16]) -> String {
    let named: Vec<String> = partitions.iter().take(NAMED_MAX).map(u16::to_string).collect();
    let more = partitions.len() - named.len();
    let what = if partitions.len() == 1 { "partition" } else { "partitions" };
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{what} {}{more}", named.join(", "))
}

/// Opens an archive to change it, once it has carried out the orders of its cluster, if it is to work in one; `wanted` is its partition
/// if it may not have it yet.
pub(crate) fn own(
    path: &Path,
    segments: SegmentArgs,
    fetch: &fetch::Settings,
    cluster: Option<&str>,
    wanted: Option<&Partition>,
) -> anyhow::Result<Store> {
    let mut store = open::own(path, segments, Some(fetch))?;
    let Some(cluster) = cluster else { return Ok(store) };
    let published = Publications::look(cluster)?;
    if !orders::are_waiting(&published, path)? {
        return Ok(store);
    }
    // A new archive is none to readers yet.
    store.checkpoint_waiting()?;
    drop(store);
    let mut failed = None;
    carry_out(&published, path, wanted, &mut |heard| match heard {
        Heard::Done(text) | Heard::LeftOut(text) => output::note(format_args!("{text}")),
        Heard::Failed(text) => failed = Some(text),
    })?;
    // What must go would be fetched again, or what was decided be ignored.
    failed.map_or_else(|| open::own(path, segments, Some(fetch)), |why| anyhow::bail!("{why}"))
}

/// What people are to know of orders.
pub(super) enum Heard {
    /// One was carried out.
    Done(String),
    /// Something of it was left out.
    LeftOut(String),
    /// It could not be carried out, and is tried again.
    Failed(String),
}

/// Lets an archive carry out the orders that it has not.
pub(super) fn carry_out(
    published: &Publications,
    archive: &Path,
    wanted: Option<&Partition>,
    hear: &mut dyn FnMut(Heard),
) -> Result<(), ShareError> {
    let (shown, options) = (archive.display(), open::options(SegmentArgs::default(), None));
    orders::carry_out(published, archive, wanted, &options, &mut |list, number, done| {
        let order = format!("{shown}: {}: order {number}", list.name());
        let Done { outcome, conflicts, copies } = match done {
            Ok(done) => done,
            Err(error) => {
                let waits = if error.is_locked() { "waits" } else { "is not carried out" };
                return hear(Heard::Failed(format!("{order} {waits}: {error}")));
            }
        };
        let what = match list {
            List::Decisions => output::count(outcome.taken, "decision") + " taken in",
            List::Erasures => output::count(outcome.taken, "page") + " erased",
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

/// Says of each list how far the partitions are.
pub(super) fn show(published: &Publications) -> anyhow::Result<()> {
    let reports: BTreeMap<u16, Carried> = published.reports()?;
    for list in List::EACH {
        let newest = published.newest_order(list.name())?;
        if newest == 0 {
            continue;
        }
        let count = published.partition(1).count;
        let is_behind = |number: &u16| reports.get(number).is_none_or(|report| report.number(list) < newest);
        let behind: Vec<u16> = (1..=count).filter(is_behind).collect();
        let carried = match behind.as_slice() {
            [] => "carried out by all partitions".to_owned(),
            behind => format!("not yet carried out by {}", named(behind)),
        };
        output::line(&format!("{}: {}, {carried}", list.name(), output::count(newest, "order")))?;
        for number in newest.saturating_sub(SHOWN_MAX) + 1..=newest {
            let outcomes = reports.values().filter_map(|report| report.outcome(list, number));
            let sum = outcomes.fold(Outcome::default(), |sum, one| Outcome {
                taken: sum.taken.saturating_add(one.taken),
                left: sum.left.saturating_add(one.left),
            });
            let what = match list {
                List::Decisions if sum.left > 0 => {
                    format!("{} in conflict, left out", output::count(sum.left, "decision"))
                }
                List::Decisions => continue,
                List::Erasures if sum.taken == 0 && behind.is_empty() => {
                    "no partition has any of its pages".to_owned()
                }
                List::Erasures => output::count(sum.taken, "page") + " erased",
            };
            output::line(&format!("  order {number}: {what}"))?;
        }
    }
    Ok(())
}
