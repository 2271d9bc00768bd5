//! Several nodes crawl one archive together: what they share, and how they hand links and cash to each other.
//!
//! Every site belongs to one partition, and every partition is an archive of its own that one node crawls. The nodes know
//! nothing of each other; they share only an object store, in which every object is written by one node, and once under
//! its name:
//!
//! | object | written | what |
//! |---|---|---|
//! | `cluster.json` | once, by the first node | how many partitions there are, and the mode |
//! | `epochs/P/E` | once, by the node that takes partition P over | who that is |
//! | `epochs/P/E.drain` | by any program that asks that node to end | the name of the node that is to be next, or nothing; see [`drain`] |
//! | `status/P/E/N` | again and again, by that node | how far it is: the highest number counts; see [`Status`] |
//! | `addresses/P/E/N` | again and again, by that node | hashes of the N addresses that it asks, ever more; see [`Turns`] |
//! | `files/NAME/N` | once, by any program | version N of a file that holds on all nodes: the highest counts; of `decisions` and `erasures` all count; see [`Publications`] |
//! | `reports/P/N` | again and again, by a program that has the archive of P | which decisions and erasures the archive has taken over: the highest number counts |
//! | `exchange/TO/FROM/N` | once, by the owner of FROM | links and cash for TO; see [`Batch`] |
//!
//! Invariants:
//!
//! * Batches have numbers without gaps. What leaves, its number and the books without it are committed together, before
//!   the batch is written; what came in, its number and the books with it are committed together and reported, before the batch is removed.
//!   So a crash repeats bytes that are the same, and nothing else.
//! * All cash of all partitions and of the batches on their way is [`Partition::initial_cash`] for each partition, exactly
//!   ([`audit`]).
//! * What is published again has another name: a write that was given up and arrives late undoes nothing.
//! * A node writes only while it is sure that no other node has taken its partition over ([`Node`]).
//!
//! This room knows nothing of states and books: the ledger makes batches and applies them.

mod audit;
mod balance;
mod batch;
mod drain;
mod error;
mod member;
mod node;
mod publications;
mod shared;
#[cfg(test)]
mod simulation;
mod slots;
mod standing;
mod status;
mod turns;
mod vacancies;
mod worker;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::importance::Cash;

pub use audit::{Audit, InFlight, audit};
pub use balance::{Balance, Move, moved, plan};
pub use batch::{BATCH_BYTES_MAX, BATCH_PAGES_MAX, Batch, BatchError, Named, PART_MAX, Route};
pub use drain::{Drained, drain};
pub use error::ClusterError;
pub use member::{Asked, Member};
pub use node::{Commit, Event, Node};
pub use publications::{FILES_MAX, ORDERS_MAX, Publications, Version};
pub use slots::{Slots, SlotsOfMachine};
pub use standing::{ExchangeState, Rest};
pub use status::{Activity, Progress, Status};
pub use turns::{ADDRESS_DELAY_MAX, Clock, Look, Turns};
pub use vacancies::{SILENT_AFTER, Vacancies, Vacancy, View};

/// Partitions of a cluster, at most: each node looks at the status of all.
pub const PARTITIONS_MAX: u16 = 256;

/// Which part of the web an archive has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    /// Which cluster, by the name that it drew when it began.
    pub cluster: String,
    /// Its number, from 1.
    pub number: u16,
    /// How many there are.
    pub count: u16,
    /// What happens to links to other partitions.
    pub mode: Mode,
}

impl Partition {
    /// The number of the partition that a site belongs to, by its registrable domain: XXH3 (64 bits, without a key) of its
    /// name, modulo their count, plus 1.
    #[must_use]
    pub fn of_site(&self, site: &str) -> u16 {
        // The remainder is less than a u16.
        (xxh3_64(site.as_bytes()) % u64::from(self.count.max(1))) as u16 + 1
    }

    /// Of each cluster that has one of these, how many partitions there are, and the numbers of the others, if there are others.
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

    /// What a partition begins with: an equal part of all cash, without the rest of the division.
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

/// What happens to links to other partitions (Cho and Garcia-Molina, "Parallel Crawlers", WWW 2002).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// They are not followed.
    Firewall,
    /// A node follows them when nothing of its own partition waits.
    Crossover,
    /// They are handed to the partition that they lead to.
    #[default]
    Exchange,
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "firewall" => Ok(Self::Firewall),
            "crossover" => Ok(Self::Crossover),
            "exchange" => Ok(Self::Exchange),
            _ => Err(format!("'{text}' is not a mode; there are firewall, crossover and exchange")),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Firewall => "firewall",
            Self::Crossover => "crossover",
            Self::Exchange => "exchange",
        })
    }
}

/// How far the batches from one partition to another have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The number of the last one; the first is 1.
    pub number: u64,
    /// Units of cash in all of them.
    pub cash: u128,
    /// Pages named in all of them.
    pub pages: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Mark {
    /// Counts one more batch.
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
    /// By where it went.
    pub sent: BTreeMap<u16, Mark>,
    /// By where it came from.
    pub received: BTreeMap<u16, Mark>,
    /// How often the state of the archive was rebuilt from its segments, which do not have what others have named: they
    /// name it again.
    pub rebuilds: u32,
    /// By other partition, the number of its rebuilds for which everything was named again.
    pub told: BTreeMap<u16, u32>,
}

impl Marks {
    /// The cash that a partition that began with `initial` must have; none if that is negative or more than there is.
    #[must_use]
    pub fn total(&self, initial: Cash) -> Option<Cash> {
        let sum = |marks: &BTreeMap<u16, Mark>| {
            marks.values().try_fold(0u128, |sum, mark| sum.checked_add(mark.cash))
        };
        let have = u128::from(initial.units()).checked_add(sum(&self.received)?)?;
        let units = u64::try_from(have.checked_sub(sum(&self.sent)?)?).ok()?;
        (units <= Cash::WHOLE.units()).then(|| Cash::from_units(units))
    }

    /// Whether no number is beyond that of `other`.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        let within = |marks: &BTreeMap<u16, Mark>, other: &BTreeMap<u16, Mark>| {
            marks.iter().all(|(with, mark)| {
                mark.number == 0 || other.get(with).is_some_and(|other| mark.number <= other.number)
            })
        };
        within(&self.sent, &other.sent) && within(&self.received, &other.received)
    }

    /// The number of the last batch to a partition.
    #[must_use]
    pub fn sent_to(&self, to: u16) -> u64 {
        self.sent.get(&to).map_or(0, |mark| mark.number)
    }

    /// The number of the last batch from a partition.
    #[must_use]
    pub fn received_from(&self, from: u16) -> u64 {
        self.received.get(&from).map_or(0, |mark| mark.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(count: u16) -> Partition {
        Partition { cluster: "c".to_owned(), number: 1, count, mode: Mode::default() }
    }

    #[test]
    fn sites_stay_where_they_are() {
        // The hash is part of what nodes of different versions agree on.
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
