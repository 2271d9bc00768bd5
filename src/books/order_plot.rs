//! How early an archive found the importance that its pages have: the plot by which papers compare crawl orders (Cho,
//! Garcia-Molina, Page 1998; Alam, Ha, Lee 2009, section 4), of crawls that took place.
//!
//! Nothing is stored for it: pages have the time of their first capture and their present importance.

use std::ops::RangeInclusive;

use archive_storage::Store;
use serde::Serialize;

use crate::prepared::{Column, Error, Pages, Prepared};

/// Maximum number of pages looked at in prepared columns; if there are more, every n-th is. A page takes 12 bytes.
pub const PAGES_MAX: u64 = 1 << 20;

/// Maximum number of pages looked at in the tables of the state.
pub const TABLE_PAGES_MAX: u64 = 1 << 16;

/// Maximum number of points.
const POINTS_MAX: usize = 200;

/// The share of the importance of all fetched pages that the first of them had. Redirects and what is no page are left
/// out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OrderPlot {
    /// Number of pages fetched; in large archives an estimate.
    pub pages: u64,
    /// Number of pages that each one looked at stands for.
    pub each_page_of: u64,
    /// Mean of the share over the crawl, after each page; .5 in a random order.
    pub mean_importance: f64,
    /// The same in the best order.
    pub best_mean_importance: f64,
    /// Points of the curves, in the order of pages; the first has none, the last has all.
    pub points: Vec<OrderPoint>,
}

/// What the first pages had.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OrderPoint {
    /// Number of pages fetched.
    pub pages: u64,
    /// Their share of the importance.
    pub importance: f64,
    /// The share that as many of the most important pages have.
    pub best_importance: f64,
}

/// A page: when it was fetched first, in seconds since 1970, and its importance. Pages with equal times are taken as
/// fetched in random order, unless they are told apart by a number.
type Fetched = ((u32, u32), f32);

impl OrderPlot {
    /// Makes the plot of the last checkpoint, of the pages that were fetched first in these seconds since 1970, if given.
    ///
    /// # Errors
    /// When the archive cannot be read.
    pub fn of(store: &Store, within: Option<&RangeInclusive<u32>>) -> Result<Self, Error> {
        Self::of_at_most(store, within, [PAGES_MAX, TABLE_PAGES_MAX])
    }

    /// The same, with other limits for prepared columns and for tables.
    ///
    /// # Errors
    /// As [`OrderPlot::of`].
    pub fn of_at_most(
        store: &Store,
        within: Option<&RangeInclusive<u32>>,
        [most, most_of_tables]: [u64; 2],
    ) -> Result<Self, Error> {
        let is_meant = |first: u32, captures: u64, status: u64| {
            captures > 0
                && !(300..400).contains(&status)
                && within.is_none_or(|within| within.contains(&first))
        };
        let (each_page_of, fetched) = match Prepared::open(store)? {
            Some(prepared) => from_columns(&prepared, most, is_meant)?,
            None => from_tables(store, most_of_tables, is_meant)?,
        };
        Ok(Self::of_pages(fetched, each_page_of))
    }

    fn of_pages(mut fetched: Vec<Fetched>, each_page_of: u64) -> Self {
        let pages = fetched.len();
        let places: Vec<usize> =
            (0..=POINTS_MAX.min(pages)).map(|at| at * pages / POINTS_MAX.min(pages).max(1)).collect();
        fetched.sort_unstable_by(|one, other| other.1.total_cmp(&one.1));
        let (best_mean_importance, best) = shares(&fetched, &places);
        fetched.sort_unstable_by_key(|(first, _)| *first);
        for together in fetched.chunk_by_mut(|one, next| one.0 == next.0) {
            let sum: f64 = together.iter().map(|(_, importance)| f64::from(*importance)).sum();
            let mean = (sum / together.len() as f64) as f32;
            together.iter_mut().for_each(|(_, importance)| *importance = mean);
        }
        let (mean_importance, found) = shares(&fetched, &places);
        let points = places.iter().zip(found.into_iter().zip(best));
        let points = points.map(|(place, (importance, best_importance))| OrderPoint {
            pages: *place as u64 * each_page_of,
            importance,
            best_importance,
        });
        let (pages, points) = (pages as u64 * each_page_of, points.collect());
        Self { pages, each_page_of, mean_importance, best_mean_importance, points }
    }
}

/// Returns the mean share of importance after each page, and the shares after the given numbers of pages, which ascend.
fn shares(fetched: &[Fetched], places: &[usize]) -> (f64, Vec<f64>) {
    let whole: f64 = fetched.iter().map(|(_, importance)| f64::from(*importance)).sum();
    let share = |sum: f64| if whole > 0.0 { sum / whole } else { 0.0 };
    let (mut sum, mut area, mut found) = (0.0, 0.0, Vec::with_capacity(places.len()));
    let mut places = places.iter().peekable();
    while places.next_if(|place| **place == 0).is_some() {
        found.push(0.0);
    }
    for (number, (_, importance)) in (1..).zip(fetched) {
        sum += f64::from(*importance);
        area += share(sum);
        while places.next_if(|place| **place == number).is_some() {
            found.push(share(sum));
        }
    }
    (area / fetched.len().max(1) as f64, found)
}

/// Number of rows that each one looked at stands for, if `most` may be.
fn step(rows: u64, most: u64) -> u64 {
    rows.div_ceil(most).max(1)
}

fn from_columns(
    prepared: &Prepared,
    most: u64,
    is_meant: impl Fn(u32, u64, u64) -> bool,
) -> Result<(u64, Vec<Fetched>), Error> {
    let rows: u64 = (0..prepared.blocks()).map(|block| prepared.ids(block).len() as u64).sum();
    let each = step(rows, most);
    let mut fetched = Vec::new();
    for block in 0..prepared.blocks() {
        let ids = prepared.ids(block);
        let taken: Vec<u32> =
            ids.clone().filter(|id| u64::from(*id).is_multiple_of(each)).map(|id| id - ids.start).collect();
        let values = |column| match each {
            1 => prepared.values(block, column),
            _ => prepared.pick(block, column, &taken),
        };
        let (firsts, captures) = (values(Column::FirstSeen)?, values(Column::Captures)?);
        let (statuses, importance) = (values(Column::Status)?, values(Column::Importance)?);
        let rows = firsts.into_iter().zip(captures).zip(statuses.into_iter().zip(importance));
        let rows =
            rows.filter(|((first, captures), (status, _))| is_meant(*first as u32, *captures, *status));
        fetched.extend(
            rows.map(|((first, _), (_, importance))| ((first as u32, 0), f64::from_bits(importance) as f32)),
        );
    }
    Ok((each, fetched))
}

fn from_tables(
    store: &Store,
    most: u64,
    is_meant: impl Fn(u32, u64, u64) -> bool,
) -> Result<(u64, Vec<Fetched>), Error> {
    let state = store.state();
    let each = step(u64::from(state.visit_count()), most);
    let (pages, mut fetched) = (Pages::open(state)?, Vec::new());
    for (number, visit) in (0..).zip(state.visits_with_pages((0..).step_by(each as usize))) {
        let (id, page, visit) = visit?;
        if let Some(facts) = pages.facts(id, &page, Some(&visit))?
            && is_meant(facts.first_seen, facts.captures.into(), facts.status.into())
        {
            fetched.push(((facts.first_seen, number), facts.importance as f32));
        }
    }
    Ok((each, fetched))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_the_order_and_of_the_best() {
        // Importance 1, 4, 2, 3 in the order of their first captures.
        let fetched = vec![((20, 0), 4.0), ((10, 0), 1.0), ((30, 1), 3.0), ((30, 0), 2.0)];
        let plot = OrderPlot::of_pages(fetched.clone(), 3);
        let of = |pages, importance, best_importance| OrderPoint { pages, importance, best_importance };
        assert_eq!(
            plot.points,
            [of(0, 0.0, 0.0), of(3, 0.1, 0.4), of(6, 0.5, 0.7), of(9, 0.7, 0.9), of(12, 1.0, 1.0)]
        );
        assert!(
            (plot.mean_importance - 2.3 / 4.0).abs() < 1e-9
                && (plot.best_mean_importance - 3.0 / 4.0).abs() < 1e-9
        );
        assert_eq!((plot.pages, plot.each_page_of), (12, 3));
        assert_eq!(
            [0, PAGES_MAX, PAGES_MAX + 1, 2 * PAGES_MAX + 1].map(|rows| step(rows, PAGES_MAX)),
            [1, 1, 2, 3]
        );
        // Who came first within a second is not known.
        let together = fetched.into_iter().map(|(first, importance)| ((first.0, 0), importance)).collect();
        assert!((OrderPlot::of_pages(together, 3).points[3].importance - 0.75).abs() < 1e-9);
    }

    #[test]
    fn nothing_and_much_are_plots_too() {
        let none = OrderPlot::of_pages(Vec::new(), 1);
        assert_eq!((none.pages, none.mean_importance, none.points.len()), (0, 0.0, 1));
        let unknown = OrderPlot::of_pages(vec![((0, 0), 0.0); 3], 1);
        assert!(unknown.points.iter().all(|at| at.importance == 0.0));
        let many = OrderPlot::of_pages((0..100_001).map(|at| ((at, 0), 1.0)).collect(), 1);
        assert_eq!(many.points.len(), POINTS_MAX + 1);
        assert!(many.points.iter().all(|at| (at.importance - at.pages as f64 / 100_001.0).abs() < 1e-9));
        assert!((many.mean_importance - 0.5).abs() < 1e-3);
    }
}
