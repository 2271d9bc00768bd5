//! Orders: decisions and erasures for the partition of their site, in whatever archive it is.
//!
//! The cluster has two lists of orders, which are carried out one after the other. `orders.json` in an archive's folder
//! records its progress. Orders are idempotent, so the record is written after carrying them out, and an archive that
//! was restored from a copy carries out those that the copy lacks. The archive of a partition reports its record.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use archive_base::decisions::{
    ComparedImport, Decision, DecisionContent, DecisionImport, Decisions, Subject, check_name,
};
use archive_base::erased::{Erased, FORGOTTEN};
use archive_books::cluster::{ClusterError, Mode, Partition, Publications};
use archive_books::ledger::Credits;
use archive_storage::address::{canonical, is_url_in_bounds, site_of};
use archive_storage::{NAME_BYTES_MAX, Store};
use archive_vault::copy::{self, CopyPlace};
use archive_vault::erase;
use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use url::Url;

use super::erasures::{self, Erasure};
use super::{ShareError, read_record, write_record};

const FILE: &str = copy::HELD_FIRST;

/// Maximum bytes of an archive's record.
const NOTE_BYTES_MAX: u64 = 1 << 20;

/// Maximum bytes of an order; a longer one is neither published nor carried out.
pub const ORDER_BYTES_MAX: u64 = 16 << 20;

/// Number of the newest orders of each list whose outcomes an archive records and reports.
pub const OUTCOMES_MAX: usize = 1000;

/// A list of orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OrderList {
    /// Decisions of people.
    Decisions,
    /// Erasures.
    Erasures,
}

// In the order in which archives process them.
archive_base::names! { OrderList: Decisions "decisions", Erasures "erasures" }

/// An order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// An order of the first list.
    Decide(Resolution),
    /// An order of the second list.
    Erase(Erasure),
}

/// Decisions to make or to undo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resolution {
    /// Makes new decisions.
    Import(DecisionImport),
    /// Undoes the decisions of an earlier order.
    Undo {
        /// Number of that order.
        order: u64,
        /// When it is undone, to the second.
        #[serde(with = "archive_base::instant")]
        time: DateTime<Utc>,
        /// Who undoes it.
        by: String,
    },
}

/// The outcome of an order in an archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderOutcome {
    /// Decisions that the archive has, or pages that have tombstones.
    pub taken: u64,
    /// Decisions that were left out because they conflict with others.
    #[serde(default)]
    pub left: u64,
    /// Pages that match the query of an erasure, which further orders name.
    #[serde(default)]
    pub named: u64,
}

/// Progress of an archive with a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListStanding {
    /// Number of the last order that was carried out; 0 if none was.
    pub number: u64,
    /// Outcomes of the newest orders.
    pub outcomes: BTreeMap<u64, OrderOutcome>,
    /// Orders whose query the archive can never answer.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub set_aside: BTreeSet<u64>,
}

/// Progress of an archive with the lists, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Carried(pub BTreeMap<String, ListStanding>);

impl Carried {
    fn read(archive: &Path) -> Result<Self, ShareError> {
        read_record(&archive.join(FILE), NOTE_BYTES_MAX)
    }

    fn write(&self, archive: &Path) -> Result<(), ShareError> {
        write_record(&archive.join(FILE), self)
    }

    /// Number of the last order of a list that was carried out; 0 if none was.
    #[must_use]
    pub fn number(&self, list: OrderList) -> u64 {
        self.0.get(list.name()).map_or(0, |standing| standing.number)
    }

    /// Outcome of an order; `None` if it is not known, or no longer recorded.
    #[must_use]
    pub fn outcome(&self, list: OrderList, number: u64) -> Option<OrderOutcome> {
        self.0.get(list.name())?.outcomes.get(&number).copied()
    }

    /// Orders of a list that were set aside.
    pub fn set_aside(&self, list: OrderList) -> impl Iterator<Item = u64> + '_ {
        self.0.get(list.name()).into_iter().flat_map(|standing| standing.set_aside.iter().copied())
    }

    /// Records the outcome of the next order; `None` sets it aside.
    fn add(&mut self, list: OrderList, number: u64, outcome: Option<OrderOutcome>) {
        let standing = self.0.entry(list.name().to_owned()).or_default();
        standing.number = number;
        let Some(outcome) = outcome else {
            standing.set_aside.insert(number);
            return;
        };
        standing.set_aside.remove(&number);
        standing.outcomes.insert(number, outcome);
        while standing.outcomes.len() > OUTCOMES_MAX {
            standing.outcomes.pop_first();
        }
    }
}

/// What an archive did with an order.
#[derive(Debug, Default)]
pub struct OrderDone {
    /// Counts.
    pub outcome: OrderOutcome,
    /// Decisions that were left out, with the decisions that they conflict with.
    pub conflicts: Vec<(Subject, Decision)>,
    /// Copies that still contain erased captures.
    pub copies: Vec<CopyPlace>,
}

impl Order {
    fn of(list: OrderList, bytes: &[u8]) -> Result<Self, String> {
        fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
            serde_json::from_slice(bytes).map_err(|error| error.to_string())
        }
        let order = match list {
            OrderList::Decisions => Self::Decide(read(bytes)?),
            OrderList::Erasures => Self::Erase(read(bytes)?),
        };
        order.check()?;
        Ok(order)
    }

    /// Returns the list that it belongs to.
    #[must_use]
    pub fn list(&self) -> OrderList {
        match self {
            Self::Decide(_) => OrderList::Decisions,
            Self::Erase(_) => OrderList::Erasures,
        }
    }

    fn check(&self) -> Result<(), String> {
        match self {
            Self::Decide(Resolution::Import(import)) => import.check().map_err(|error| error.to_string()),
            Self::Decide(Resolution::Undo { by, .. }) => check_name(by).map_err(|error| error.to_string()),
            Self::Erase(erasure) => erasure.check(),
        }
    }

    /// Publishes the order, and returns its number.
    ///
    /// # Errors
    /// If it is invalid or longer than [`ORDER_BYTES_MAX`], or the store fails.
    pub fn publish(&self, published: &mut Publications) -> Result<u64, ShareError> {
        self.check().map_err(ShareError::Order)?;
        if let Self::Erase(erasure) = self {
            erasure.check_query().map_err(|error| ShareError::Order(error.to_string()))?;
        }
        let list = self.list();
        if let Self::Decide(Resolution::Undo { order, .. }) = self
            && !matches!(read(published, list, *order)?, Some(Self::Decide(Resolution::Import(_))))
        {
            return Err(ShareError::Order(format!(
                "order {order} of the list {} decides nothing",
                list.name()
            )));
        }
        let bytes = match self {
            Self::Decide(resolution) => serde_json::to_vec(resolution),
            Self::Erase(erasure) => serde_json::to_vec(erasure),
        };
        let bytes = bytes.map_err(|error| ShareError::Order(error.to_string()))?;
        if bytes.len() as u64 > ORDER_BYTES_MAX {
            return Err(ShareError::Order(format!(
                "it is longer than {ORDER_BYTES_MAX} bytes; publish it in parts"
            )));
        }
        // A number that an archive has carried out is not reused, even if its order was removed from the store.
        let mut carried_out = 0;
        for report in published.reports::<Carried>()?.values() {
            carried_out = report.number(list).max(carried_out);
        }
        Ok(published.add_order(list.name(), &bytes, carried_out)?)
    }

    /// Returns the numbers of the partitions concerned: all of them if the order names a page by its digest, or has a
    /// query.
    #[must_use]
    pub fn partitions(&self, published: &Publications) -> BTreeSet<u16> {
        let any = published.partition(1);
        match self {
            _ if any.mode == Mode::Crossover => (1..=any.count).collect(),
            Self::Decide(Resolution::Import(import)) => {
                import.rows.iter().map(|row| any.of_site(site_of(&name(&row.said.on)))).collect()
            }
            Self::Erase(erasure)
                if erasure.query.is_none() && !erasure.urls.iter().any(|url| url.starts_with(FORGOTTEN)) =>
            {
                erasure.urls.iter().map(|url| of_url(&any, url)).collect()
            }
            _ => (1..=any.count).collect(),
        }
    }
}

/// Reads an order of a list; returns `None` if it was removed from the store.
pub(super) fn read(
    published: &Publications,
    list: OrderList,
    number: u64,
) -> Result<Option<Order>, ShareError> {
    let Some(bytes) = published.order(list.name(), number, ORDER_BYTES_MAX)? else { return Ok(None) };
    let name = list.name();
    let damaged = |why| {
        let why =
            format!("{why}; put an empty object in its place in the store, then publish the order again");
        ClusterError::Damaged { name: format!("files/{name}/{number:010}"), why }
    };
    Ok(Some(Order::of(list, &bytes).map_err(damaged)?))
}

/// Whether an archive has orders to carry out.
///
/// # Errors
/// If its record cannot be read, or there are too many orders.
pub fn are_waiting(published: &Publications, archive: &Path) -> Result<bool, ShareError> {
    let carried = Carried::read(archive)?;
    for list in OrderList::EACH {
        if published.newest_order(list.name())? > carried.number(list) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Carries out the pending orders for the partition that the archive has or is to have. `report` gets the result of
/// each. A list ends with the first order that fails, unless it [fails for good](ShareError::is_for_good): such an
/// order is set aside.
///
/// # Errors
/// If the archive cannot be read or is no partition of this cluster, or the store fails.
pub fn carry_out(
    published: &mut Publications,
    archive: &Path,
    wanted: Option<&Partition>,
    options: &erase::EraseOptions,
    report: &mut dyn FnMut(OrderList, u64, Result<OrderDone, ShareError>),
) -> Result<(), ShareError> {
    if OrderList::EACH.iter().all(|list| !published.newest.contains_key(list.name())) {
        return Ok(());
    }
    let store = Store::read_only(archive)?;
    let own = wanted.cloned().map_or_else(|| Credits::partition_of(store.state()), |own| Ok(Some(own)))?;
    let partition =
        own.filter(|own| published.partition(own.number) == *own).ok_or(ShareError::NoPartition)?;
    let epoch = Credits::epoch(store.state())?;
    drop(store);
    let mut carried = Carried::read(archive)?;
    for list in OrderList::EACH {
        let mut is_noted = true;
        // One order may lead to further ones.
        while carried.number(list) < published.newest_order(list.name())? {
            let number = carried.number(list).saturating_add(1);
            let done = match read(published, list, number) {
                Ok(Some(Order::Decide(resolution))) => decide(published, archive, &partition, &resolution),
                Ok(Some(Order::Erase(erasure))) => match &erasure.query {
                    Some(query) => {
                        erasures::select(published, archive, &partition, (number, &erasure), query)
                    }
                    None => erasures::carry_out(archive, &partition, &erasure, options),
                },
                Ok(None) => {
                    carried.0.entry(list.name().to_owned()).or_default().number = number;
                    is_noted = false;
                    continue;
                }
                Err(error) => Err(error),
            };
            let outcome = match &done {
                Ok(done) => Some(done.outcome),
                Err(error) if error.is_for_good() => None,
                Err(_) => {
                    report(list, number, done);
                    break;
                }
            };
            report(list, number, done);
            carried.add(list, number, outcome);
            carried.write(archive)?;
            is_noted = true;
        }
        if !is_noted {
            carried.write(archive)?;
        }
    }
    Ok(published.add_report(partition.number, epoch, &carried)?)
}

/// Makes the decisions about a partition's sites.
fn decide(
    published: &Publications,
    archive: &Path,
    partition: &Partition,
    resolution: &Resolution,
) -> Result<OrderDone, ShareError> {
    let import = match resolution {
        Resolution::Import(import) => import.clone(),
        Resolution::Undo { order, .. } => match read(published, OrderList::Decisions, *order)? {
            Some(Order::Decide(Resolution::Import(import))) => import,
            _ => return Ok(OrderDone::default()),
        },
    };
    let erased = Erased::read(archive)?;
    let is_forgotten = |on: &Subject| matches!(on, Subject::Page(url) if erased.of(url).is_some_and(|entry| entry.url.is_none()));
    let rows = import.rows.into_iter().filter(|row| {
        let on = &row.said.on;
        is_for(partition, partition.of_site(site_of(&name(on)))) && !is_forgotten(on)
    });
    let import = DecisionImport { rows: rows.collect(), ..import };
    if import.rows.is_empty() {
        return Ok(OrderDone::default());
    }
    loop {
        let mut known = Decisions::read(archive)?;
        let length = known.log().len();
        let compared = match resolution {
            Resolution::Import(_) => import.compare(&known),
            Resolution::Undo { time, by, .. } => undone(&import, &known, *time, by),
        };
        let ComparedImport { new, had, conflicts } = compared;
        let outcome =
            OrderOutcome { taken: (new.len() + had) as u64, left: conflicts.len() as u64, named: 0 };
        let conflicts = conflicts.into_iter().map(|(row, other)| (import.rows[row].said.on.clone(), other));
        let done = OrderDone { outcome, conflicts: conflicts.collect(), ..OrderDone::default() };
        // Someone else may have made decisions in the meantime.
        let is_changed = |now: &Decisions| (now.log().len() != length).then_some(());
        if new.is_empty() || known.add_unless(archive, new, is_changed)?.is_ok() {
            return Ok(done);
        }
    }
}

/// Undoes those decisions of an order that are in effect.
fn undone(import: &DecisionImport, known: &Decisions, time: DateTime<Utc>, by: &str) -> ComparedImport {
    let numbers: BTreeSet<u64> = import.among(known).into_values().collect();
    let (had, left): (Vec<u64>, Vec<u64>) = numbers.into_iter().partition(|number| known.is_undone(*number));
    let undo = |number| Decision { time, by: by.to_owned(), what: DecisionContent::Undoes(number) };
    ComparedImport { new: left.into_iter().map(undo).collect(), had: had.len(), conflicts: Vec::new() }
}

/// Whether a partition may fetch pages that belong to partition `owner`.
pub(super) fn is_for(partition: &Partition, owner: u16) -> bool {
    partition.mode == Mode::Crossover || owner == partition.number
}

/// Returns the site or host that a subject names or belongs to.
fn name(subject: &Subject) -> String {
    match subject {
        Subject::Site(name) | Subject::Host(name) => name.clone(),
        Subject::Folder(url) | Subject::Page(url) => host(url),
    }
}

fn host(url: &str) -> String {
    Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
}

/// Returns the partition that a URL belongs to.
pub(super) fn of_url(any: &Partition, url: &str) -> u16 {
    any.of_site(site_of(&host(url)))
}

/// Whether a text is a URL in the canonical form that archives use.
pub(super) fn is_canonical(text: &str) -> bool {
    is_url_in_bounds(text, NAME_BYTES_MAX)
        && Url::parse(text).is_ok_and(|url| url.has_host() && canonical(&url) == text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use archive_books::cluster::ORDERS_MAX;

    #[test]
    fn the_note_of_as_many_orders_as_there_can_be_is_read_again_and_has_the_newest() {
        let (archive, mut carried) = (tempfile::tempdir().unwrap(), Carried::default());
        let first = u64::MAX - OUTCOMES_MAX as u64;
        for (list, number) in
            OrderList::EACH.into_iter().flat_map(|list| (first..=u64::MAX).map(move |n| (list, n)))
        {
            carried.add(
                list,
                number,
                Some(OrderOutcome { taken: u64::MAX, left: u64::MAX, named: u64::MAX }),
            );
        }
        for standing in carried.0.values_mut() {
            standing.set_aside = (u64::MAX - ORDERS_MAX..u64::MAX).collect();
        }
        carried.write(archive.path()).unwrap();
        assert_eq!(Carried::read(archive.path()).unwrap(), carried);
        let known = |number| carried.outcome(OrderList::Erasures, number).is_some();
        assert_eq!(
            (known(first), known(first + 1), carried.number(OrderList::Erasures)),
            (false, true, u64::MAX)
        );
    }
}
