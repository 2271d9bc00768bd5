//! Folders with a list of arcs, as published by network collections.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::{ReadError, Recorded};
use crate::importance::{Graph, GraphBuilder};

/// A link. Weights are positive; a link without one weighs 1.
struct Arc {
    from: u32,
    to: u32,
    weight: Option<f32>,
}

/// Reads `arcs.tsv.gz` (source, target and optionally weight; pages from 0) and, if it exists, `urls.txt.gz` (line i,
/// from 0, is page i).
pub(super) fn read(folder: &Path) -> Result<Recorded, ReadError> {
    let urls = names(&folder.join("urls.txt.gz"))?;
    let path = folder.join("arcs.tsv.gz");
    let pages_min = urls.as_ref().map_or(0, Vec::len);
    let graph = match in_order(&path, pages_min)? {
        Some(graph) => graph,
        None => in_any_order(&path, pages_min)?,
    };
    if graph.pages() == 0 {
        return Err(ReadError::Content { path, what: "there are no arcs".to_owned() });
    }
    Ok(Recorded { hosts: hosts(&urls, graph.pages()), graph, urls })
}

/// Reads the name of each page, one per line; `None` if the file does not exist.
pub(super) fn names(path: &Path) -> Result<Option<Vec<String>>, ReadError> {
    if !path.is_file() {
        return Ok(None);
    }
    let read: Result<Vec<String>, _> = lines(path)?.collect();
    read.map(Some).map_err(|source| ReadError::Io { path: path.into(), source })
}

/// Returns the host of each page, if each has a name.
pub(super) fn hosts(urls: &Option<Vec<String>>, pages: usize) -> Option<Vec<u32>> {
    let urls = urls.as_ref().filter(|urls| urls.len() == pages)?;
    Some(numbered(urls.iter().map(|url| host_of(url))))
}

/// Reads the graph, if arcs are sorted by source and target, and all have weights or none has: this takes no more
/// memory than the result. `None` if they are not.
fn in_order(path: &Path, pages_min: usize) -> Result<Option<Graph>, ReadError> {
    let mut arcs = arcs(path)?.peekable();
    let weighted = matches!(arcs.peek(), Some(Ok(Arc { weight: Some(_), .. })));
    let mut builder = GraphBuilder::growing(weighted);
    builder.grow(pages_min);
    let mut last = (0, 0);
    for arc in arcs {
        let Arc { from, to, weight } = arc?;
        if (from, to) < last || weight.is_some() != weighted {
            return Ok(None);
        }
        last = (from, to);
        builder.push(from, to, weight.unwrap_or(1.0))?;
    }
    Ok(Some(builder.finish()))
}

fn in_any_order(path: &Path, pages_min: usize) -> Result<Graph, ReadError> {
    let mut found: Vec<(u32, u32, f32)> = Vec::new();
    let mut pages = pages_min;
    let mut weighted = false;
    for arc in arcs(path)? {
        let Arc { from, to, weight } = arc?;
        weighted |= weight.is_some();
        pages = pages.max(from.max(to) as usize + 1);
        found.push((from, to, weight.unwrap_or(1.0)));
    }
    let graph = Graph::from_weighted_arcs(pages, &found)?;
    Ok(if weighted { graph } else { graph.unweighted() })
}

/// Reads the arcs of a list.
fn arcs(path: &Path) -> Result<impl Iterator<Item = Result<Arc, ReadError>> + use<>, ReadError> {
    let path = path.to_owned();
    Ok(lines(&path)?.enumerate().map(move |(number, line)| {
        let line = line.map_err(|source| ReadError::Io { path: path.clone(), source })?;
        parse(&line).ok_or_else(|| ReadError::Line { path: path.clone(), line: number + 1 })
    }))
}

/// Returns the host of a URL; a name is returned unchanged.
#[must_use]
pub fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or(rest)
}

/// Assigns equal names equal numbers, in order of appearance.
pub(super) fn numbered<'a>(names: impl Iterator<Item = &'a str>) -> Vec<u32> {
    let mut numbers = HashMap::new();
    names
        .map(|name| {
            let next = numbers.len() as u32;
            *numbers.entry(name.to_owned()).or_insert(next)
        })
        .collect()
}

fn lines(path: &Path) -> Result<impl Iterator<Item = std::io::Result<String>> + use<>, ReadError> {
    let file = File::open(path).map_err(|source| ReadError::Io { path: path.into(), source })?;
    Ok(BufReader::new(MultiGzDecoder::new(BufReader::new(file))).lines())
}

/// Parses a line of the list: two or three fields.
fn parse(line: &str) -> Option<Arc> {
    let mut fields = line.split('\t');
    let from = fields.next()?.parse().ok()?;
    let to = fields.next()?.parse().ok()?;
    let weight = match fields.next() {
        Some(weight) => Some(weight.parse().ok().filter(|&weight: &f32| weight > 0.0 && weight.is_finite())?),
        None => None,
    };
    Some(Arc { from, to, weight })
}
