//! Computes the PageRank of a small graph, with a proven error bound.
//!
//!     cargo run --release --example rank_graph

use archive_math::importance::Graph;
use archive_math::importance::rank::PageRank;

/// Links as (from, to): every other node links to 0; 0 links only to 1, and 2 also links to 1.
const LINKS: [(u32, u32); 6] = [(0, 1), (1, 0), (2, 0), (2, 1), (3, 0), (4, 0)];

fn main() -> anyhow::Result<()> {
    let graph = Graph::from_arcs(5, &LINKS)?;
    let ranking = PageRank { tolerance: 1e-9, ..PageRank::default() }.run(graph)?;
    for (page, value) in ranking.values.iter().enumerate() {
        println!("page {page}: {value:.6}");
    }
    println!("{} sweeps, error at most {:.1e}", ranking.iterations, ranking.residual);
    Ok(())
}
