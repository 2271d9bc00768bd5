//! Graphs in the WebGraph framework's BV format.

use std::path::Path;

use archive_storage::quietly;
use webgraph::prelude::{BvGraphSeq, NodeLabelsLender, SequentialLabeling};

use super::ReadError;
use crate::importance::{Graph, GraphBuilder};

/// Parts of the encoding; the properties say how many bits each takes.
const PARTS: [&str; 5] = ["outdegrees", "blocks", "intervals", "residuals", "references"];

/// Reads the graph with this basename from beginning to end; no offsets are needed.
pub(super) fn read(basename: &Path) -> Result<Graph, ReadError> {
    let content = |what: String| ReadError::Content { path: basename.into(), what };
    let stored = BvGraphSeq::with_basename(basename).load().map_err(|error| content(format!("{error:#}")))?;
    let pages = stored.num_nodes();
    if pages > u32::MAX as usize {
        return Err(content(format!("{pages} pages are too many")));
    }
    check_length(basename)?;
    let arcs = stored.get_num_arcs();
    let decode = || {
        let mut builder = GraphBuilder::new(pages, false);
        builder.reserve(arcs.unwrap_or(0).min(Graph::ARCS_MAX as u64) as usize);
        for (from, to) in stored.iter().into_pairs() {
            builder.push(from as u32, to as u32, 1.0)?;
        }
        Ok::<_, ReadError>(builder.finish())
    };
    // The decoder panics at bits that are no code.
    let graph = quietly(decode).ok_or_else(|| content("the graph is damaged".into()))??;
    match arcs {
        Some(arcs) if arcs != graph.arcs() as u64 => {
            Err(content(format!("there are {} arcs, the properties say {arcs}", graph.arcs())))
        }
        _ => Ok(graph),
    }
}

/// Whether the file of the graph is as long as its properties say, if they do.
fn check_length(basename: &Path) -> Result<(), ReadError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| ReadError::Io { path, source }
    };
    let path = basename.with_extension("properties");
    let properties = std::fs::read(&path).map_err(io(&path))?;
    let properties = String::from_utf8_lossy(&properties);
    let bits = |part: &str| {
        let values = properties.lines().filter_map(|line| line.split_once('='));
        let mut values = values.filter(|(name, _)| name.strip_prefix("bitsfor") == Some(part));
        values.next().and_then(|(_, value)| value.trim().parse::<u64>().ok())
    };
    let Some(bits) = PARTS.iter().map(|part| bits(part)).sum::<Option<u64>>() else { return Ok(()) };
    let path = basename.with_extension("graph");
    let length = std::fs::metadata(&path).map_err(io(&path))?.len();
    if length < bits.div_ceil(8) {
        let what = format!("is cut off: {length} bytes, the properties say {}", bits.div_ceil(8));
        return Err(ReadError::Content { path, what });
    }
    Ok(())
}
