//! The link graph in the WebGraph framework's BV format (Boldi and Vigna, "The WebGraph Framework I", WWW 2004).
//!
//! Pages are numbered in the order of their URLs, as in the graphs of the Laboratory for Web Algorithmics: neighbours have
//! similar links, which is what the format lives on. `NAME.urls.gz` names the pages, a line each.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use archive_storage::{State, Store, UrlId};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::{ExportError, Exported, Selection, Settings};
use crate::files::{WholeFile, is_standard_output};
use crate::graphs::{PageGraph, write_bv};
use crate::importance::Graph;

/// The files of a graph. Readers open the properties first, so these come last.
const ENDINGS: [&str; 4] = ["graph", "offsets", "urls.gz", "properties"];

/// Writes the pages of a selection and the links among them that carry importance, as files `output` with four endings.
///
/// Takes some 120 bytes of memory a page and 12 a link.
///
/// # Errors
/// When the archive cannot be read or the files not be written, and when `output` has its own ending.
pub fn write(
    store: &Store,
    selection: &Selection,
    output: &Path,
    settings: Settings,
) -> Result<Exported, ExportError> {
    if output.extension().is_some() || output.file_name().is_none() || is_standard_output(output) {
        return Err(ExportError::GraphName(output.to_owned()));
    }
    selection.check(store, settings.allow_empty)?;
    let pages = PageGraph::among(store.state(), |page| selection.has_page(page))?;
    let order = order(store.state(), &pages.urls)?;
    let failed = |source| ExportError::Write { path: output.to_owned(), source };
    let folder = Folder::begin(output).map_err(failed)?;
    let part = folder.path.join(output.file_name().unwrap_or_default());
    compress(&pages.graph, &order, &part).map_err(failed)?;
    name_pages(&order, &part.with_extension("urls.gz")).map_err(failed)?;
    let bytes = publish(&part, output).map_err(failed)?;
    Ok(Exported { rows: pages.graph.arcs() as u64, records: 0, bytes })
}

/// The pages in the order of their URLs, with their numbers in the graph.
fn order(state: &State, pages: &[UrlId]) -> Result<Vec<(String, u32)>, ExportError> {
    let mut urls = state.url_cursor();
    let named = (0..).zip(pages).map(|(number, &page)| Ok((urls.get(page)?.to_owned(), number)));
    let mut named = named.collect::<Result<Vec<(String, u32)>, ExportError>>()?;
    named.sort_unstable();
    Ok(named)
}

fn compress(graph: &Graph, order: &[(String, u32)], part: &Path) -> io::Result<()> {
    let mut places = vec![0; order.len()];
    for (place, (_, number)) in (0_u32..).zip(order) {
        places[*number as usize] = place;
    }
    let lists = order.iter().map(|(_, number)| {
        let targets = graph.targets(*number as usize).iter();
        let mut targets: Vec<u32> = targets.map(|&target| places[target as usize]).collect();
        targets.sort_unstable();
        targets
    });
    write_bv(part, lists)
}

fn name_pages(order: &[(String, u32)], path: &Path) -> io::Result<()> {
    let mut out = GzEncoder::new(BufWriter::new(File::create(path)?), Compression::default());
    for (url, _) in order {
        writeln!(out, "{url}")?;
    }
    out.finish()?.flush()
}

/// The folder of an unfinished graph. The lock keeps two exports of one name apart; what a crash has left is removed by the
/// next.
struct Folder {
    path: PathBuf,
    _lock: WholeFile,
}

impl Folder {
    fn begin(output: &Path) -> io::Result<Self> {
        let path = output.with_extension("graph-part");
        let lock = WholeFile::begin(&path)?;
        if path.is_dir() && !path.is_symlink() {
            fs::remove_dir_all(&path)?;
        }
        fs::create_dir(&path)?;
        Ok(Self { path, _lock: lock })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If it cannot be removed, the next export does it.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Makes the files durable and gives them their names; returns their bytes. The old properties are removed first and the
/// new ones come last: without them no reader takes the others for a graph.
fn publish(part: &Path, output: &Path) -> io::Result<u64> {
    let files: Vec<(PathBuf, PathBuf)> =
        ENDINGS.map(|ending| (part.with_extension(ending), output.with_extension(ending))).into();
    let mut bytes = 0;
    for (from, _) in &files {
        let file = File::open(from)?;
        file.sync_all()?;
        bytes += file.metadata()?.len();
    }
    if let Some((_, properties)) = files.last().filter(|(_, properties)| properties.exists()) {
        fs::remove_file(properties)?;
    }
    for (from, to) in &files {
        fs::rename(from, to)?;
    }
    Ok(bytes)
}
