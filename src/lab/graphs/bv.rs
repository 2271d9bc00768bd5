//! Graphs in the WebGraph framework's BV format.

use std::path::Path;

use webgraph::prelude::{BvGraphSeq, NodeLabelsLender, SequentialLabeling};

use super::ReadError;
use crate::importance::{Graph, GraphBuilder};

/// Reads the graph with this basename from beginning to end; no offsets are needed.
pub(super) fn read(basename: &Path) -> Result<Graph, ReadError> {
    let content = |what: String| ReadError::Content { path: basename.into(), what };
    let stored = BvGraphSeq::with_basename(basename).load().map_err(|error| content(format!("{error:#}")))?;
    let pages = stored.num_nodes();
    if pages > u32::MAX as usize {
        return Err(content(format!("{pages} pages are too many")));
    }
    let mut builder = GraphBuilder::new(pages, false);
    if let Some(arcs) = stored.get_num_arcs() {
        builder.reserve(arcs.min(Graph::ARCS_MAX as u64) as usize);
    }
    for (from, to) in stored.iter().into_pairs() {
        builder.push(from as u32, to as u32, 1.0)?;
    }
    Ok(builder.finish())
}
