//! Which node of a graph is important? PageRank of a small graph, with a proven bound of the error.
//!
//!     cargo run --release --example rank_graph

use archive::importance::Graph;
use archive::importance::rank::PageRank;

/// Who links to whom: everybody to 0, and 0 back to 1 alone.
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
