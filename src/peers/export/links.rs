//! The link graph as a table: the newest links of every page, one per line.

use std::io::{BufRead as _, BufReader, Write};

use archive_books::ledger::LinkCode;
use archive_storage::{LinksPosition, SegmentId, StateError, Store};
use archive_web::parse::LinkKind;

use super::rows::{ExportRows, RowPieces, RowStop};
use super::walk::START;
use super::{ExportError, ExportPart, Exported, Selection, lost};

/// Number of URLs that are cached, about 60 bytes each, because link targets come in no order.
const URLS_KEPT: usize = 1 << 21;

/// Number of links between two progress reports.
const REPORT_EVERY: u64 = 100_000;

/// Writes `source`, `target` and `kind`, separated by tabs, after a header line with these names. No URL contains a
/// tab.
pub(super) fn write(
    parts: &[ExportPart<'_>],
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported, ExportError> {
    out.write_all(b"source\ttarget\tkind\n").map_err(lost)?;
    let mut exported = Exported::default();
    let mut add = |lines: &[u8], count: usize| {
        out.write_all(lines).map_err(lost)?;
        let reports = exported.rows / REPORT_EVERY;
        exported.rows += count as u64;
        if exported.rows / REPORT_EVERY > reports {
            progress(exported.rows);
        }
        Ok::<_, ExportError>(())
    };
    for part in parts {
        match part {
            ExportPart::Folder(store, selection) => {
                each_page((store, selection), START.1, &mut |_, lines, count| add(lines, count))?;
            }
            ExportPart::Node(sender) => drop(sender.send(ExportRows::Links, &mut |piece| {
                let (mut lines, mut line) = (BufReader::new(piece), Vec::new());
                while lines.read_until(b'\n', &mut line).map_err(lost)? > 0 {
                    let columns = line.iter().filter(|byte| **byte == b'\t').count() + 1;
                    if columns != COLUMNS || line.last() != Some(&b'\n') {
                        return Err(sender.senseless("these are no links"));
                    }
                    add(&line, 1)?;
                    line.clear();
                }
                Ok(())
            })?),
        }
    }
    Ok(exported)
}

/// Receives the lines of a page.
type TakeLinks<'a, E> = dyn FnMut(u64, &[u8], usize) -> Result<(), E> + 'a;

/// Number of columns of a line.
const COLUMNS: usize = 3;

/// Sends the links of pages whose link lists are at a position or after it.
pub(super) fn send(
    part: (&Store, &Selection),
    (segment, from): (SegmentId, u64),
    out: &mut RowPieces<'_>,
) -> Result<(), RowStop> {
    each_page(part, from, &mut |place, lines, _| {
        out.begin((segment, place))?;
        Ok(out.add(lines)?)
    })
}

/// Calls `take` for each page from a position on, with the position of its link list, its lines and their number.
fn each_page<E: From<ExportError> + From<StateError>>(
    (store, selection): (&Store, &Selection),
    from: u64,
    take: &mut TakeLinks<'_, E>,
) -> Result<(), E> {
    let state = store.state();
    let mut urls = state.url_cache(URLS_KEPT);
    let (mut page, mut lines) = (String::new(), String::new());
    state.newest_links_from(LinksPosition(from), |(source, _, visit), links| {
        if !selection.has_page(source) {
            return Ok(());
        }
        page.clear();
        page.push_str(urls.get(source.0)?);
        lines.clear();
        for link in links {
            let kind = LinkCode::from_byte(link.kind).kind().map_or("other", LinkKind::context);
            for part in [&page, "\t", urls.get(link.target.0)?, "\t", kind, "\n"] {
                lines.push_str(part);
            }
        }
        take(visit.links.map_or(0, |place| place.0), lines.as_bytes(), links.len())
    })
}
