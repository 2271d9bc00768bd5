//! The BV format of the WebGraph framework (Boldi and Vigna, "The WebGraph Framework I: Compression Techniques", WWW
//! 2004).
//!
//! `NAME.properties` is text; `NAME.graph` is a bit stream. For each page it has the number of its links, which of them
//! are copied from a page shortly before it, intervals of consecutive targets, and gaps between the others.
//! `NAME.offsets` says where each list begins, for random access: it is written but not read.

mod bits;
mod codes;
mod lists;
mod properties;
#[cfg(test)]
mod tests;
mod write;

use std::fs::File;
use std::path::Path;

use self::bits::BitError;
use self::lists::Lists;
use self::properties::Properties;
use super::ReadError;
use crate::importance::{Graph, GraphBuilder};

pub use self::write::write;

/// Number of links allowed in a graph of any file size. Copies make files short: without a limit, a file of a few bytes
/// could fill the memory.
const ARCS_ALWAYS: u64 = 1 << 24;

/// Number of further links allowed per bit of the file. Graphs of pages have less than one.
const ARCS_PER_BIT: u64 = 1 << 10;

/// Reads the whole graph with this basename.
pub(super) fn read(basename: &Path) -> Result<Graph, ReadError> {
    let name = basename.with_extension("properties");
    let text = std::fs::read(&name).map_err(ReadError::io(&name))?;
    let properties = Properties::parse(&String::from_utf8_lossy(&text))
        .map_err(|what| ReadError::Content { path: name.clone(), what })?;
    let path = basename.with_extension("graph");
    let file = File::open(&path).map_err(ReadError::io(&path))?;
    let length = file.metadata().map_err(ReadError::io(&path))?.len();
    let damaged = |what: String| ReadError::Content { path: path.clone(), what };
    let (pages, arcs, bits) = (properties.pages, properties.arcs, length.saturating_mul(8));
    // The shortest list has one bit.
    if u64::from(pages) > bits {
        return Err(damaged(format!("is cut off: {length} bytes are too few for {pages} pages")));
    }
    let arcs_max = arcs.unwrap_or(u64::MAX).min(ARCS_ALWAYS + ARCS_PER_BIT.saturating_mul(bits));
    let mut builder = GraphBuilder::new(pages as usize, false);
    builder.reserve(arcs.unwrap_or(0).min(bits).min(Graph::ARCS_MAX as u64) as usize);
    let mut lists = Lists::new(file, properties, arcs_max);
    loop {
        let page = lists.page();
        match lists.next() {
            Ok(Some(targets)) => builder.push_row(page, targets)?,
            Ok(None) => break,
            Err(BitError::Io(source)) => return Err(ReadError::Io { path, source }),
            Err(BitError::End) => {
                return Err(damaged(format!(
                    "is cut off: {length} bytes end before the links of page {page} do"
                )));
            }
            Err(BitError::Damaged(what)) => {
                return Err(damaged(format!("the graph is damaged at page {page}: {what}")));
            }
        }
    }
    let graph = builder.finish();
    match arcs {
        Some(arcs) if arcs != graph.arcs() as u64 => {
            Err(damaged(format!("there are {} arcs, the properties say {arcs}", graph.arcs())))
        }
        _ => Ok(graph),
    }
}
