//! Several nodes crawl one archive together: the objects they share, and how they exchange links and cash.
//!
//! Every site belongs to one partition, and every partition is a separate archive that one node crawls. The nodes do
//! not communicate directly; they share only an object store, in which every object is written by one node, and only
//! once under its name:
//!
//! | object | written | content |
//! |---|---|---|
//! | `cluster.json` | once, by the first node | the number of partitions, what decides which sites they have, the mode, and how long a lease is |
//! | `epochs/P/E` | once, by the node that takes over partition P | that node |
//! | `epochs/P/E.drain` | by any program that asks that node to end | the name of the node that is to be next, or nothing; see [`drain`] |
//! | `status/P/E/N` | repeatedly, by that node | its progress: the highest number counts; see [`NodeStatus`] |
//! | `addresses/P/E/N` | repeatedly, by that node | hashes of the N addresses that it asks, a growing list; see [`Turns`] |
//! | `files/NAME/N` | once, by any program | version N of a file for all nodes; the newest counts (for orders, all); see [`Publications`] |
//! | `reports/P/N` | repeatedly, by a program that has the archive of P | orders that the archive has carried out: the highest N counts |
//! | `exchange/TO/FROM/N` | once, by the owner of FROM | links and cash for TO; see [`Batch`] |
//!
//! Invariants:
//!
//! * Batches have numbers without gaps. An outgoing batch, its number and the books without its cash are committed
//!   together, before the batch is written. The content of an incoming batch, its number and the books with its cash
//!   are committed together and reported, before the batch is removed. So after a crash the same bytes are written
//!   again, and nothing else.
//! * The cash of all partitions and of all batches in flight adds up to exactly [`Partition::initial_cash`] for each
//!   partition ([`audit`]).
//! * Republished objects get another name, so an abandoned write that arrives late undoes nothing.
//! * A node writes only while it is sure that no other node has taken over its partition ([`ClusterNode`]).
//!
//! This module knows nothing about states and books: the ledger makes batches and applies them.

mod audit;
mod balance;
mod batch;
mod division;
mod drain;
mod error;
mod exchange;
mod measures;
mod member;
mod node;
mod publications;
#[cfg(test)]
mod simulation;
mod slots;
mod spans;
mod status;
mod store;
mod turns;
mod vacancies;
mod worker;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use archive_math::importance::Cash;
use serde::{Deserialize, Serialize};

pub use audit::{ClusterAudit, InFlight, audit};
pub use balance::{Balance, PartitionMove, moved, plan};
pub(crate) use batch::BATCH_BYTES_MAX;
pub use batch::{Batch, BatchError, Named, PART_MAX, Route};
pub use division::Division;
pub use drain::{Drained, drain};
pub use error::ClusterError;
pub use exchange::{ExchangeState, NextStep};
pub use measures::ClusterMeasures;
pub use member::Member;
pub use node::{ClusterNode, NodeCommit, NodeEvent};
pub use publications::{FILES_MAX, FileVersion, ORDERS_MAX, Publications};
pub use slots::{Slots, SlotsOfMachine};
pub use spans::Spans;
pub use status::{NodeActivity, NodeProgress, NodeStatus};
pub use turns::{Clock, Look, Turns};
pub use vacancies::{Vacancies, Vacancy, VacancyView};

/// Maximum number of partitions of a cluster; each node reads the status of all.
pub const PARTITIONS_MAX: u16 = 256;

/// The part of the web that an archive covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    /// Random name of the cluster, drawn when it began.
    pub cluster: String,
    /// Number of the partition, from 1.
    pub number: u16,
    /// Number of partitions.
    pub count: u16,
    /// How links to other partitions are handled.
    pub mode: Mode,
    /// What decides which sites belong to it.
    #[serde(default, skip_serializing_if = "Division::is_usual")]
    pub by: Division,
}

impl Partition {
    /// Returns the number of the partition that a site belongs to, by its registrable domain; see [`Division`].
    #[must_use]
    pub fn of_site(&self, site: &str) -> u16 {
        self.by.partition(site, self.count)
    }

    /// Returns, for each cluster that `partitions` covers only partly, the number of its partitions and the numbers of
    /// the missing ones.
    pub fn others<'a>(partitions: impl Iterator<Item = &'a Self>) -> Vec<(u16, String)> {
        let mut clusters: BTreeMap<&str, (u16, BTreeSet<u16>)> = BTreeMap::new();
        for one in partitions {
            let (_, numbers) = clusters.entry(&one.cluster).or_insert((one.count, BTreeSet::new()));
            numbers.insert(one.number);
        }
        let others = clusters.into_values().map(|(count, numbers)| {
            let others = (1..=count).filter(|number| !numbers.contains(number));
            (count, others.map(|number| number.to_string()).collect::<Vec<_>>().join(", "))
        });
        others.filter(|(_, others)| !others.is_empty()).collect()
    }

    /// Returns the cash that a partition begins with: an equal share of all cash, without the remainder of the
    /// division.
    #[must_use]
    pub fn initial_cash(&self) -> Cash {
        Cash::from_units(Cash::WHOLE.units() / u64::from(self.count.max(1)))
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.count)
    }
}

/// How links to other partitions are handled (Cho and Garcia-Molina, "Parallel Crawlers", WWW 2002).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// They are not followed.
    Firewall,
    /// A node follows them when no page of its own partition is waiting.
    Crossover,
    /// They are handed to the partition that they belong to.
    #[default]
    Exchange,
}

archive_base::names! { Mode: Firewall "firewall", Crossover "crossover", Exchange "exchange" }

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::EACH.into_iter().find(|mode| mode.name() == text);
        known.ok_or_else(|| format!("'{text}' is not a mode; the modes are firewall, crossover and exchange"))
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Totals of the batches from one partition to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Number of the last batch; the first is 1.
    pub number: u64,
    /// Units of cash in all batches.
    pub cash: u128,
    /// Number of pages named in all batches.
    pub pages: u64,
    /// Bytes of all batches.
    pub bytes: u64,
}

impl Mark {
    /// Adds a batch.
    pub fn count(&mut self, batch: &Batch, bytes: usize) {
        self.number = batch.route.number;
        self.cash += u128::from(batch.cash());
        self.pages += batch.named() as u64;
        self.bytes += bytes as u64;
    }
}

/// What a partition has sent and received, by the numbers of the other partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks {
    /// By receiver.
    pub sent: BTreeMap<u16, Mark>,
    /// By sender.
    pub received: BTreeMap<u16, Mark>,
    /// Number of times the state of the archive was rebuilt from its segments. These do not contain the pages that
    /// other partitions have named, so the others name them again.
    pub rebuilds: u32,
    /// By other partition, the number of its rebuilds after which everything was named again.
    pub told: BTreeMap<u16, u32>,
}

impl Marks {
    /// Returns the cash that a partition that began with `initial` must have; `None` if it is negative or exceeds all
    /// cash.
    #[must_use]
    pub fn total(&self, initial: Cash) -> Option<Cash> {
        let sum = |marks: &BTreeMap<u16, Mark>| {
            marks.values().try_fold(0u128, |sum, mark| sum.checked_add(mark.cash))
        };
        let have = u128::from(initial.units()).checked_add(sum(&self.received)?)?;
        let units = u64::try_from(have.checked_sub(sum(&self.sent)?)?).ok()?;
        (units <= Cash::WHOLE.units()).then(|| Cash::from_units(units))
    }

    /// Pages and bytes in all batches that were sent.
    #[must_use]
    pub fn sent_in_all(&self) -> (u64, u64) {
        self.sent.values().fold((0, 0), |(pages, bytes), mark| (pages + mark.pages, bytes + mark.bytes))
    }

    /// Whether no number exceeds that of `other`.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        let within = |marks: &BTreeMap<u16, Mark>, other: &BTreeMap<u16, Mark>| {
            marks.iter().all(|(with, mark)| {
                mark.number == 0 || other.get(with).is_some_and(|other| mark.number <= other.number)
            })
        };
        within(&self.sent, &other.sent) && within(&self.received, &other.received)
    }

    /// Number of the last batch to a partition.
    pub(crate) fn sent_to(&self, to: u16) -> u64 {
        self.sent.get(&to).map_or(0, |mark| mark.number)
    }

    /// Number of the last batch from a partition.
    pub(crate) fn received_from(&self, from: u16) -> u64 {
        self.received.get(&from).map_or(0, |mark| mark.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(count: u16) -> Partition {
        Partition { cluster: "c".to_owned(), number: 1, count, mode: Mode::default(), by: Division::Site }
    }

    #[test]
    fn sites_stay_where_they_are() {
        // Nodes of different versions must agree on the hash.
        let of = |site: &str| partition(8).of_site(site);
        assert_eq!((of("example.org"), of("example.com"), of("127.0.0.1")), (6, 4, 5));
        let mut sites = [0; 8];
        (0..8000).for_each(|site| sites[usize::from(of(&format!("s{site}.test"))) - 1] += 1);
        assert!(sites.iter().all(|sites| (900..1100).contains(sites)), "{sites:?}");
        assert!((0..100).all(|site| partition(1).of_site(&format!("s{site}.test")) == 1));
    }

    #[test]
    fn a_total_is_what_was_received_less_what_was_sent() {
        let initial = partition(4).initial_cash();
        assert_eq!(initial.units(), 1 << 58);
        let mark = |cash| Mark { number: 1, cash, ..Mark::default() };
        let marks = |sent, received| Marks {
            sent: [(2, mark(sent))].into(),
            received: [(2, mark(received))].into(),
            ..Marks::default()
        };
        assert_eq!(marks(10, 7).total(initial).map(Cash::units), Some((1 << 58) - 3));
        assert_eq!(marks(u128::from(u64::MAX) * 5, u128::from(u64::MAX) * 5).total(initial), Some(initial));
        assert_eq!(marks((1 << 58) + 1, 0).total(initial), None);
        assert_eq!(marks(0, 1 << 60).total(initial), None);
        assert_eq!(marks(u128::MAX, u128::MAX).total(initial), None);
    }
}
