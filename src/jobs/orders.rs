//! Carries out the orders of a cluster in one of its archives: decisions and erasures.

use std::path::Path;

use archive_base::decisions::Decision;
use archive_base::texts::count;
use archive_books::cluster::{Partition, Publications};
use archive_peers::share::ShareError;
use archive_peers::share::orders::{self, OrderDone, OrderList};

use super::open::erase_options;
use super::{Failure, Hear, JobEvent, erase};

/// Maximum number of conflicts named for an order.
pub const CONFLICTS_NAMED_MAX: usize = 20;

/// What became of an order, in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderNews {
    /// It was carried out.
    Done(String),
    /// Part of it was left out, or all of it.
    LeftOut(String),
    /// It could not be carried out, and will be tried again.
    Failed(String),
    /// Something else to know.
    Notice(String),
}

/// Carries out all orders before an archive is opened for fetching: otherwise erased pages would be fetched again, or
/// decisions ignored.
pub(super) fn carry_out_all(
    published: &mut Publications,
    archive: &Path,
    partition: Option<&Partition>,
    hear: &mut Hear<'_>,
) -> Result<(), Failure> {
    let mut failed = None;
    carry_out(published, archive, partition, &mut |news| match news {
        OrderNews::Done(text) | OrderNews::LeftOut(text) | OrderNews::Notice(text) => {
            hear(JobEvent::Notice(text));
        }
        OrderNews::Failed(text) => failed = Some(text),
    })?;
    failed.map_or(Ok(()), |why| Err(Failure::failed(why)))
}

/// Carries out the orders that an archive has not carried out yet; `partition` is its partition if it may not have one
/// yet.
///
/// # Errors
/// If the archive is no partition of the cluster, or the object store fails.
pub fn carry_out(
    published: &mut Publications,
    archive: &Path,
    partition: Option<&Partition>,
    tell: &mut dyn FnMut(OrderNews),
) -> Result<(), ShareError> {
    let shown = archive.display();
    orders::carry_out(published, archive, partition, &erase_options(), &mut |list, number, done| {
        let order = format!("{shown}: {}: order {number}", list.name());
        let OrderDone { outcome, conflicts, copies } = match done {
            Ok(done) => done,
            Err(error) if error.is_for_good() => {
                let text = format!("{order} is set aside, so it erases nothing here: {error}");
                return tell(OrderNews::LeftOut(text));
            }
            Err(error) => {
                let waits = if error.is_locked() { "waits" } else { "is not carried out" };
                return tell(OrderNews::Failed(format!("{order} {waits}: {error}")));
            }
        };
        let what = match list {
            OrderList::Erasures if outcome.named > 0 => {
                count(outcome.named, "page") + " that match its query are named by further orders"
            }
            OrderList::Decisions => count(outcome.taken, "decision") + " taken in",
            OrderList::Erasures => count(outcome.taken, "page") + " erased",
        };
        tell(OrderNews::Done(format!("{order}: {what}")));
        for (subject, Decision { by, .. }) in conflicts.iter().take(CONFLICTS_NAMED_MAX) {
            let text = format!("{order}: {subject} is left alone: {by} has decided since the export");
            tell(OrderNews::LeftOut(text));
        }
        for place in copies {
            tell(OrderNews::Notice(erase::copies_hold(&place.url)));
        }
    })
}
