//! Folders with a list of arcs, as network collections publish them.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::{ReadError, Recorded};
use crate::importance::Graph;

/// Reads `arcs.tsv.gz` (source, target and perhaps weight, from 0) and, if there, `urls.txt.gz` (line i from 0 is page i).
pub(super) fn read(folder: &Path) -> Result<Recorded, ReadError> {
    let path = folder.join("arcs.tsv.gz");
    let mut arcs: Vec<(u32, u32, f32)> = Vec::new();
    let mut pages = 0;
    let mut weighted = false;
    for (number, line) in lines(&path)?.enumerate() {
        let line = line.map_err(|source| ReadError::Io { path: path.clone(), source })?;
        let Some((arc, has_weight)) = parse(&line) else {
            return Err(ReadError::Line { path, line: number + 1 });
        };
        weighted |= has_weight;
        pages = pages.max(arc.0 as usize + 1).max(arc.1 as usize + 1);
        arcs.push(arc);
    }
    let path = folder.join("urls.txt.gz");
    let urls = if path.is_file() {
        let read: Result<Vec<String>, _> = lines(&path)?.collect();
        Some(read.map_err(|source| ReadError::Io { path, source })?)
    } else {
        None
    };
    if let Some(urls) = &urls {
        pages = pages.max(urls.len());
    }
    let hosts = urls
        .as_ref()
        .filter(|urls| urls.len() == pages)
        .map(|urls| numbered(urls.iter().map(|url| host_of(url))));
    if pages == 0 {
        let path = folder.join("arcs.tsv.gz");
        return Err(ReadError::Content { path, what: "there are no arcs".to_owned() });
    }
    let graph = if weighted {
        Graph::from_weighted_arcs(pages, &arcs)?
    } else {
        let arcs: Vec<(u32, u32)> = arcs.into_iter().map(|(from, to, _)| (from, to)).collect();
        Graph::from_arcs(pages, &arcs)?
    };
    Ok(Recorded { graph, hosts, urls })
}

/// The host in a URL; a name stays as it is.
pub(super) fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or(rest)
}

/// Gives equal names equal numbers, in order of appearance.
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

/// An arc (without a weight it weighs 1) and whether it has a weight. Weights have to be positive.
fn parse(line: &str) -> Option<((u32, u32, f32), bool)> {
    let mut fields = line.split('\t');
    let from = fields.next()?.parse().ok()?;
    let to = fields.next()?.parse().ok()?;
    let weight = match fields.next() {
        Some(weight) => Some(weight.parse().ok().filter(|&weight: &f32| weight > 0.0 && weight.is_finite())?),
        None => None,
    };
    Some(((from, to, weight.unwrap_or(1.0)), weight.is_some()))
}
