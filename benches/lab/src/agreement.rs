//! Agreement of two rankings of the same pages.

use archive_math::graphs::random::Random;
use archive_math::importance::rank::PageRank;
use archive_math::importance::{Graph, GraphError};

use super::LabError;

/// Number of pairs of pages compared for Kendall's tau.
const PAIRS: u32 = 200_000;

/// Returns Kendall's tau from a sample of pairs: 1 for the same order, 0 for unrelated orders, -1 for the opposite
/// order.
#[must_use]
pub fn tau(a: &[f64], b: &[f64]) -> f64 {
    let pages = a.len().min(b.len()) as u32;
    if pages < 2 {
        return 1.0;
    }
    let mut random = Random::new(1);
    let (mut agree, mut pairs) = (0, 0);
    for _ in 0..PAIRS {
        let (one, other) = (random.below(pages) as usize, random.below(pages) as usize);
        if one != other {
            agree += (a[one].total_cmp(&a[other]) as i64) * (b[one].total_cmp(&b[other]) as i64);
            pairs += 1;
        }
    }
    agree as f64 / f64::from(pairs.max(1))
}

/// Returns the number of the `count` best pages by `a` that are also among the `count` best by `b`.
#[must_use]
pub fn top(a: &[f64], b: &[f64], count: usize) -> usize {
    let best = |values: &[f64]| {
        let mut pages = best_first(values);
        pages.truncate(count);
        pages.sort_unstable();
        pages
    };
    let by_b = best(b);
    best(a).iter().filter(|&page| by_b.binary_search(page).is_ok()).count()
}

/// Returns the indices of the values, from the highest to the lowest.
pub(crate) fn best_first(values: &[f64]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..values.len()).collect();
    places.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
    places
}

/// Returns the graph of some pages of `graph`, numbered in this order, and of the links among them.
pub(crate) fn part(graph: &Graph, pages: &[u32]) -> Result<Graph, GraphError> {
    let mut numbers = vec![u32::MAX; graph.pages()];
    pages.iter().zip(0..).for_each(|(&page, number)| numbers[page as usize] = number);
    let links = |(&page, from): (&u32, u32)| {
        let inside = graph.targets(page as usize).iter().map(|&target| numbers[target as usize]);
        inside.filter(|&to| to != u32::MAX).map(move |to| (from, to)).collect::<Vec<_>>()
    };
    let arcs: Vec<(u32, u32)> = pages.iter().zip(0..).flat_map(links).collect();
    Graph::from_arcs(pages.len(), &arcs)
}

/// Returns Kendall's tau between the PageRank that a crawler can compute from the pages it visited and the `importance`
/// of these pages in the whole graph.
///
/// Orders that gather importance fast leave a misleading visited part (Boldi, Santini, Vigna, "Paradoxical effects in
/// PageRank incremental computations", 2005).
///
/// # Errors
/// None for pages of the graph.
pub fn visited_tau(graph: &Graph, visited: &[u32], importance: &[f64]) -> Result<f64, LabError> {
    let mut pages = visited.to_vec();
    pages.sort_unstable();
    pages.dedup();
    let found = PageRank { tolerance: 1e-8, ..PageRank::default() }.run(part(graph, &pages)?)?.values;
    let exact: Vec<f64> = pages.iter().map(|&page| importance[page as usize]).collect();
    Ok(tau(&found, &exact))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agreement_is_known_where_it_is_plain() {
        let values: Vec<f64> = (0..300).map(f64::from).collect();
        let opposite: Vec<f64> = values.iter().map(|value| -value).collect();
        assert_eq!((tau(&values, &values), tau(&values, &opposite)), (1.0, -1.0));
        assert_eq!((top(&values, &values, 10), top(&values, &opposite, 10)), (10, 0));
        assert_eq!(top(&values, &opposite, 160), 20);
    }

    #[test]
    fn the_whole_graph_agrees_with_itself_and_a_part_less() {
        let graph = archive_math::graphs::read(std::path::Path::new("generate:copy:3000:6:2")).unwrap().graph;
        let importance = super::super::orders::true_importance(&graph, 1).unwrap();
        let all: Vec<u32> = (0..3000).rev().collect();
        let whole = visited_tau(&graph, &all, &importance).unwrap();
        let part = visited_tau(&graph, &all[..600], &importance).unwrap();
        // Pages without in-links have the same rank and carry no information.
        assert!(whole > part && whole > 0.5, "{whole} and {part}");
    }
}
