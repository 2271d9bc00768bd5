//! Progress of a cluster's partitions with its orders.

use std::collections::BTreeMap;

use archive_books::cluster::Publications;
use serde::Serialize;

use super::ShareError;
use super::orders::{Carried, OrderList, OrderOutcome};

/// Progress of the partitions with a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListProgress {
    /// The list.
    pub list: OrderList,
    /// Number of the last order; 0 if there is none.
    pub orders: u64,
    /// Number of partitions that have carried out all orders.
    pub carried_out_by: u16,
    /// Number of orders that each of the other partitions has yet to carry out.
    pub waiting: BTreeMap<u16, u64>,
    /// Orders that partitions have set aside because their archives can never answer the query, with these partitions.
    pub set_aside: BTreeMap<u64, Vec<u16>>,
    #[serde(skip)]
    reports: BTreeMap<u16, Carried>,
}

/// Progress of the partitions with an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OrderProgress {
    /// The list that contains the order.
    pub list: OrderList,
    /// Number of the order in the list.
    pub order: u64,
    /// Total outcome in all archives that have reported.
    #[serde(flatten)]
    pub outcome: OrderOutcome,
    /// Partitions that have yet to carry it out.
    pub waits_for: Vec<u16>,
    /// Partitions that have set it aside.
    pub set_aside_by: Vec<u16>,
}

impl ListProgress {
    /// Returns the progress with both lists.
    ///
    /// # Errors
    /// If the store fails, a report is damaged, or there are too many orders.
    pub fn look(published: &Publications) -> Result<Vec<Self>, ShareError> {
        let (reports, count) = (published.reports::<Carried>()?, published.partition(1).count);
        let mut both = Vec::new();
        for list in OrderList::EACH {
            let orders = published.newest_order(list.name())?;
            let behind = |number: u16| {
                let carried_out = reports.get(&number).map_or(0, |report| report.number(list));
                Some((number, orders.saturating_sub(carried_out))).filter(|(_, waiting)| *waiting > 0)
            };
            let waiting: BTreeMap<u16, u64> = (1..=count).filter_map(behind).collect();
            let carried_out_by = count.saturating_sub(u16::try_from(waiting.len()).unwrap_or(count));
            let mut set_aside: BTreeMap<u64, Vec<u16>> = BTreeMap::new();
            for (partition, report) in &reports {
                for order in report.set_aside(list) {
                    set_aside.entry(order).or_default().push(*partition);
                }
            }
            both.push(Self { list, orders, carried_out_by, waiting, set_aside, reports: reports.clone() });
        }
        Ok(both)
    }

    /// Returns the progress with an order of the list.
    #[must_use]
    pub fn order(&self, order: u64) -> OrderProgress {
        let outcomes = self.reports.values().filter_map(|report| report.outcome(self.list, order));
        let outcome = outcomes.fold(OrderOutcome::default(), |sum, one| OrderOutcome {
            taken: sum.taken.saturating_add(one.taken),
            left: sum.left.saturating_add(one.left),
            named: sum.named.saturating_add(one.named),
        });
        let waits = |(_, waiting): &(&u16, &u64)| self.orders.saturating_sub(**waiting) < order;
        let waits_for = self.waiting.iter().filter(waits).map(|(number, _)| *number).collect();
        let set_aside_by = self.set_aside.get(&order).cloned().unwrap_or_default();
        OrderProgress { list: self.list, order, outcome, waits_for, set_aside_by }
    }
}
