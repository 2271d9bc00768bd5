//! Sites by their prepared columns: which of them match conditions on numbers, and which come first.

use std::cmp::Ordering;

use archive_books::prepared::{PreparedError, SiteColumn, SiteSums, Sites};
use archive_grammar::{Direction, Target};
use archive_storage::SiteId;

use super::columnar::BEST_MAX;
use super::columns::Column;
use super::expr::Expr;
use super::filter::{Filter, Ranges};
use super::plan::Plan;
use super::prefilter::plain;
use super::top::Top;

/// A numeric column of sites, and how its stored values are converted.
#[derive(Clone, Copy)]
pub(super) struct SiteNumber(SiteColumn, fn(u64) -> f64);

/// A condition on a number of sites.
pub(super) type SiteTest = (SiteNumber, Ranges<f64>);

/// Conditions on numbers of sites that a filter implies, and whether they are equivalent to it.
pub(super) fn site_tests(filter: &Filter) -> (Vec<SiteTest>, bool) {
    match filter {
        Filter::All(parts) => {
            let (tests, are_exact): (Vec<_>, Vec<_>) = parts.iter().map(site_tests).unzip();
            (tests.concat(), !are_exact.contains(&false))
        }
        Filter::Number(expr, ranges) => {
            let test = site_number(expr).map(|number| (number, ranges.clone()));
            (test.iter().cloned().collect(), test.is_some())
        }
        _ => (Vec::new(), false),
    }
}

fn site_number(expr: &Expr) -> Option<SiteNumber> {
    let count = |column| SiteNumber(column, |value| value as f64);
    Some(match plain(expr)? {
        Column::Importance => SiteNumber(SiteColumn::ByLinks, f64::from_bits),
        Column::Captured => SiteNumber(SiteColumn::Captures, |captures| captures.min(1) as f64),
        Column::Pages => count(SiteColumn::Pages),
        Column::Captures => count(SiteColumn::Captures),
        Column::Html => count(SiteColumn::Html),
        Column::Xml => count(SiteColumn::Xml),
        _ => return None,
    })
}

impl SiteNumber {
    pub(super) fn of(self, site: &SiteSums) -> f64 {
        self.1(site.value(self.0))
    }

    fn of_all(self, sites: &Sites) -> Result<Vec<f64>, PreparedError> {
        sites.map(self.0, self.1)
    }
}

/// Returns the sites of a plan's answer, and how many sites match, if numbers decide this.
pub(super) fn best_sites(plan: &Plan, sites: &Sites) -> Result<Option<(Vec<SiteId>, u64)>, PreparedError> {
    let order: Option<Vec<_>> =
        plan.order.iter().map(|(expr, way)| Some((site_number(expr)?, *way))).collect();
    let (tests, are_exact) = plan.filter.as_ref().map_or((Vec::new(), true), site_tests);
    let of_rows = plan.target == Target::Sites && plan.groups.is_none() && plan.sample.is_none();
    let limit = plan.last_row().filter(|limit| of_rows && are_exact && *limit <= BEST_MAX);
    let Some((order, limit)) = order.filter(|order| !order.is_empty()).zip(limit) else { return Ok(None) };
    let mut tested = Vec::new();
    for (number, ranges) in tests {
        tested.push((number.of_all(sites)?, ranges));
    }
    let mut keys = Vec::new();
    for (number, way) in order {
        keys.push((number.of_all(sites)?, way));
    }
    let before = |left: &usize, right: &usize| {
        let orders = keys.iter().map(|(values, way)| match way {
            Direction::Ascending => values[*left].total_cmp(&values[*right]),
            Direction::Descending => values[*right].total_cmp(&values[*left]),
        });
        orders.fold(Ordering::Equal, Ordering::then).then(left.cmp(right))
    };
    let (mut top, mut matched) = (Top::new(Some(limit), before), 0);
    for site in 0..keys.first().map_or(0, |(values, _)| values.len()) {
        if tested.iter().all(|(values, ranges)| ranges.has(&values[site])) {
            matched += 1;
            top.push(site);
        }
    }
    Ok(Some((top.into_sorted().into_iter().map(|site| SiteId(site as u32)).collect(), matched)))
}
