//! Hubs and authorities (Kleinberg, "Authoritative sources in a hyperlinked environment", 1999).

use super::super::graph::Graph;
use super::{Ranking, fill, normalise, pull};

/// Returns authorities, which are high for pages that good hubs link to, and hubs, which are high for pages that link to
/// good authorities; each with sum 1.
///
/// Iterates until the authorities change by at most `tolerance` (L1) or `iterations_max` is reached. An iteration has a
/// sweep over the graph and one over its inverse; the residual of both results is the last change of the authorities.
#[must_use]
pub fn hits(graph: &Graph, tolerance: f64, iterations_max: u32) -> (Ranking, Ranking) {
    let pages = graph.pages();
    let back = graph.transposed();
    let mut authorities = vec![1.0 / pages.max(1) as f64; pages];
    let mut hubs = vec![0.0; pages];
    let mut next = vec![0.0; pages];
    let (mut iterations, mut residual) = (0, f64::INFINITY);
    while iterations < iterations_max && residual > tolerance && pages > 0 {
        fill(&mut hubs, |page| (pull(graph, page, &authorities), 0.0));
        normalise(&mut hubs);
        fill(&mut next, |page| (pull(&back, page, &hubs), 0.0));
        normalise(&mut next);
        residual = authorities.iter().zip(&next).map(|(before, after)| (before - after).abs()).sum();
        std::mem::swap(&mut authorities, &mut next);
        iterations += 1;
    }
    let operations = 2 * u64::from(iterations) * graph.arcs() as u64;
    let ranking = |values| Ranking { values, iterations, residual, operations };
    (ranking(authorities), ranking(hubs))
}
