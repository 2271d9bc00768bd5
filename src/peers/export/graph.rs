//! The link graph in the BV format of the WebGraph framework (Boldi and Vigna, "The WebGraph Framework I", WWW 2004).
//!
//! Pages are numbered in the order of their URLs, as in the graphs of the Laboratory for Web Algorithmics: neighbouring
//! pages have similar links, which makes the format compact. `NAME.urls.gz` lists the URLs of the pages, one per line.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use archive_base::files::{FileError, WholeFile, is_standard_output};
use archive_books::stored_graph::{self, Books as _, JoinError, Joined, Outline, PageGraph};
use archive_math::graphs::write_bv;
use archive_math::importance::Graph;
use archive_storage::{SegmentId, Store, UrlId};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::rows::{ExportRows, RowPieces, RowSender, RowStop};
use super::{ExportError, ExportPart, Exported, Selection, Settings, expect_some, nothing};

/// Extensions of a graph's files. Readers open the properties first, so these are published last.
const ENDINGS: [&str; 4] = ["graph", "offsets", "urls.gz", "properties"];

/// Writes the pages of selections, and the links among them that carry importance, as files named `output` with the
/// four extensions. Several archives are joined into one graph with common page numbers; if some of them are nodes,
/// `outlines` holds the outlines of all parts, in their order.
///
/// Takes about 120 bytes of memory per page and 12 per link and, for several archives, as much per known URL as ranking
/// them.
///
/// # Errors
/// If an archive cannot be read, the files cannot be written, or `output` already has an extension.
pub fn write(
    parts: &[ExportPart<'_>],
    outlines: &[Outline],
    output: &Path,
    settings: Settings,
) -> Result<Exported, ExportError> {
    if output.extension().is_some() || output.file_name().is_none() || is_standard_output(output) {
        return Err(ExportError::GraphName(output.to_owned()));
    }
    expect_some(parts, settings)?;
    let (graph, ids) = match parts {
        [ExportPart::Folder(store, selection)] => {
            let pages = PageGraph::among(store.state(), |page| selection.has_page(page))?;
            (pages.graph, vec![pages.urls.into_iter().map(|page| page.0).collect()])
        }
        _ if outlines.is_empty() => Joined::graph(&folders(parts)?)?,
        _ => Joined::graph(outlines)?,
    };
    let order = order(parts, outlines, &ids)?;
    if order.is_empty() && !settings.allow_empty {
        return Err(nothing(parts));
    }
    let failed = |source| ExportError::Write(FileError::at(output)(source));
    let folder = GraphFolder::begin(output).map_err(failed)?;
    let part = folder.path.join(output.file_name().unwrap_or_default());
    let rows = compress(&graph, &order, &part).map_err(failed)?;
    name_pages(&order, &part.with_extension("urls.gz")).map_err(failed)?;
    let bytes = publish(&part, output).map_err(failed)?;
    Ok(Exported { rows, records: 0, bytes })
}

fn folders<'a>(parts: &[ExportPart<'a>]) -> Result<Vec<stored_graph::Folder<'a>>, JoinError> {
    let stores = parts.iter().filter_map(|part| match part {
        ExportPart::Folder(store, _) => Some(*store),
        ExportPart::Node(_) => None,
    });
    stores.map(stored_graph::Folder::of).collect()
}

/// Returns the pages of the selections, sorted by URL, with their numbers in the graph. `ids` holds their numbers in
/// their archives.
fn order(
    parts: &[ExportPart<'_>],
    outlines: &[Outline],
    ids: &[Vec<u32>],
) -> Result<Vec<(String, u32)>, ExportError> {
    let (mut named, mut first) = (Vec::new(), 0_u32);
    for (place, (part, ids)) in parts.iter().zip(ids).enumerate() {
        let numbered = (first..).zip(ids);
        match part {
            ExportPart::Folder(store, selection) => {
                let mut urls = store.state().url_cursor();
                for (number, &id) in numbered.filter(|(_, id)| selection.has_page(UrlId(**id))) {
                    named.push((urls.get(UrlId(id))?.to_owned(), number));
                }
            }
            ExportPart::Node(sender) => {
                let mut urls = match outlines.get(place) {
                    Some(outline) => receive(&**sender, outline)?,
                    None => HashMap::new(),
                };
                named.extend(numbered.filter_map(|(number, id)| Some((urls.remove(id)?, number))));
            }
        }
        first += ids.len() as u32;
    }
    named.sort_unstable();
    Ok(named)
}

/// Sends the numbers and URLs of a selection's pages, beginning with page `from`.
pub(super) fn send(
    (store, selection): (&Store, &Selection),
    from: u64,
    out: &mut RowPieces<'_>,
) -> Result<(), RowStop> {
    let Ok(from) = u32::try_from(from) else { return Ok(()) };
    let mut urls = store.state().url_cursor();
    for page in store.state().pages(UrlId(from)) {
        let (id, _) = page?;
        if selection.has_page(id) {
            out.begin((SegmentId(0), id.0.into()))?;
            out.add(format!("{}\t{}\n", id.0, urls.get(id)?).as_bytes())?;
        }
    }
    Ok(())
}

/// Returns the URLs of a node's pages by their numbers in its outline. Pages found since then are skipped.
fn receive(sender: &dyn RowSender, outline: &Outline) -> Result<HashMap<u32, String>, ExportError> {
    let senseless = || sender.senseless("these are not the pages that it sent before");
    let mut urls = HashMap::new();
    let state = sender.send(ExportRows::Pages, &mut |piece| {
        for line in BufReader::new(piece).lines() {
            let line = line.map_err(|_| senseless())?;
            let (id, url) = line.split_once('\t').ok_or_else(senseless)?;
            let id: u32 = id.parse().map_err(|_| senseless())?;
            if id >= outline.url_count() {
                continue;
            }
            if !outline.has_url(id, url) {
                return Err(senseless());
            }
            urls.insert(id, url.to_owned());
        }
        Ok(())
    })?;
    outline.check(state).map_err(|_| senseless())?;
    Ok(urls)
}

/// Writes the links among the ordered pages, and returns their number.
fn compress(graph: &Graph, order: &[(String, u32)], part: &Path) -> io::Result<u64> {
    let mut places = vec![None; graph.pages()];
    for (place, (_, number)) in (0_u32..).zip(order) {
        places[*number as usize] = Some(place);
    }
    let mut links = 0;
    let lists = order.iter().map(|(_, number)| {
        let targets = graph.targets(*number as usize).iter();
        let mut targets: Vec<u32> = targets.filter_map(|&target| places[target as usize]).collect();
        targets.sort_unstable();
        links += targets.len() as u64;
        targets
    });
    write_bv(part, lists)?;
    Ok(links)
}

fn name_pages(order: &[(String, u32)], path: &Path) -> io::Result<()> {
    let mut out = GzEncoder::new(BufWriter::new(File::create(path)?), Compression::default());
    for (url, _) in order {
        writeln!(out, "{url}")?;
    }
    out.finish()?.flush()
}

/// The folder of an unfinished graph. The lock keeps two exports of one name apart; what a crash leaves is removed by
/// the next export.
struct GraphFolder {
    path: PathBuf,
    _lock: WholeFile,
}

impl GraphFolder {
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

impl Drop for GraphFolder {
    fn drop(&mut self) {
        // If this fails, the next export removes it.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Makes the files durable, gives them their names and returns their bytes. The old properties are removed first and
/// the new ones come last: without them no reader takes the other files for a graph.
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
