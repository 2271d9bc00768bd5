//! Graphs to rank: real ones from files, and generated ones of sizes beyond any memory.

mod arcs;
mod bv;
mod generate;
pub mod parts;
pub mod random;
pub mod slices;

use std::path::{Path, PathBuf};

pub use arcs::host_of;
pub use bv::write as write_bv;
pub use generate::HostWeb;

use crate::importance::{Graph, GraphError};

/// Why a graph cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// A file system operation failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A line is not an arc.
    #[error("{}: line {line} is not `source TAB target [TAB weight]`", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
    },
    /// A file's size or content does not fit the graph.
    #[error("{}: {what}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        what: String,
    },
    /// The arcs do not form a graph.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The name of a generated graph is invalid.
    #[error(
        "'{0}' is not a generated graph; write generate:MODEL:PAGES[:LINKS[:SEED]] with MODEL web, copy, cooper-frieze[@ALPHA,BETA,GAMMA,DELTA], random or kron"
    )]
    Name(String),
}

impl ReadError {
    fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.into(), source }
    }
}

/// A graph, and what else is known about its pages.
#[derive(Debug)]
pub struct Recorded {
    /// The links.
    pub graph: Graph,
    /// Host of each page, if the folder has URLs or the generator makes hosts.
    pub hosts: Option<Vec<u32>>,
    /// URL or name of each page, if the folder has them.
    pub urls: Option<Vec<String>>,
}

/// Reads a graph: `generate:…`, the basename of a graph in BV format (optionally with `NAME.urls.gz`), or a folder with
/// `arcs.tsv.gz` and optionally `urls.txt.gz`.
///
/// # Errors
/// When the path is none of these, or the files are damaged.
pub fn read(path: &Path) -> Result<Recorded, ReadError> {
    if let Some(name) = path.to_str().and_then(|name| name.strip_prefix("generate:")) {
        return generate::from_name(name);
    }
    if path.with_extension("graph").is_file() {
        return named(path);
    }
    // The folder of a BV graph, named like its files.
    if let Some(name) = path.file_name() {
        let inside = path.join(name);
        if inside.with_extension("graph").is_file() {
            return named(&inside);
        }
    }
    arcs::read(path)
}

/// Reads a graph in BV format, and the names of its pages if their file exists.
fn named(basename: &Path) -> Result<Recorded, ReadError> {
    let graph = bv::read(basename)?;
    let urls = arcs::names(&basename.with_extension("urls.gz"))?;
    Ok(Recorded { hosts: arcs::hosts(&urls, graph.pages()), graph, urls })
}

/// Opens a web to crawl: generated page by page if the model allows it, so that its size is not limited by memory;
/// otherwise as [`read`].
///
/// # Errors
/// As [`read`].
pub fn open(path: &Path) -> Result<Box<dyn LinkSource>, ReadError> {
    match path.to_str().and_then(|name| name.strip_prefix("generate:")) {
        Some(name) => generate::open(name),
        None => Ok(Box::new(read(path)?)),
    }
}

/// A web whose links are looked up page by page: a graph in memory, or one generated on the fly.
pub trait LinkSource: Send + Sync {
    /// Number of pages.
    fn pages(&self) -> usize;

    /// Returns the links of a page, ascending and each target once; `buffer` may be used to hold them.
    fn links<'a>(&'a self, page: u32, buffer: &'a mut Vec<u32>) -> &'a [u32];

    /// Whether two pages are on the same host.
    fn same_host(&self, a: u32, b: u32) -> bool;
}

impl LinkSource for Recorded {
    fn pages(&self) -> usize {
        self.graph.pages()
    }

    fn links<'a>(&'a self, page: u32, _buffer: &'a mut Vec<u32>) -> &'a [u32] {
        self.graph.targets(page as usize)
    }

    fn same_host(&self, a: u32, b: u32) -> bool {
        self.hosts.as_ref().is_none_or(|hosts| hosts[a as usize] == hosts[b as usize])
    }
}

/// Returns the folder `name` of real data for tests, if it exists; without it, a test is skipped.
#[cfg(test)]
pub(crate) fn test_data(name: &str) -> Option<PathBuf> {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("ARCHIVE_TEST_DATA").map_or_else(default, Into::into).join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(std::env::var_os("CI").is_none_or(|value| value != "true"), "{} is missing", folder.display());
    eprintln!("skipped: {} is missing", folder.display());
    None
}

#[cfg(test)]
mod tests;
