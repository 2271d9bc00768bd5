//! The link graph as a table: for every page its newest links, a line each.

use std::io::Write;

use super::{ExportError, Exported, Part, lost};
use crate::ledger::LinkCode;
use crate::parse::LinkKind;

/// URLs that are kept of those that were read, some 60 bytes each: links lead everywhere.
const URLS_KEPT: usize = 1 << 21;

/// Links between two reports of progress.
const REPORT_EVERY: u64 = 100_000;

/// Writes `source`, `target` and `kind`, separated by tabs, under a line with these names. No URL has a tab in it.
pub(super) fn write(
    parts: &[Part<'_>],
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported, ExportError> {
    out.write_all(b"source\ttarget\tkind\n").map_err(lost)?;
    let mut exported = Exported::default();
    parts.iter().try_for_each(|part| write_part(part, &mut exported, out, progress))?;
    Ok(exported)
}

fn write_part(
    (store, selection): &Part<'_>,
    exported: &mut Exported,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> Result<(), ExportError> {
    let state = store.state();
    let mut urls = state.url_cache(URLS_KEPT);
    let (mut page, mut lines) = (String::new(), String::new());
    state.newest_links(|(source, ..), links| {
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
        out.write_all(lines.as_bytes()).map_err(lost)?;
        let reports = exported.rows / REPORT_EVERY;
        exported.rows += links.len() as u64;
        if exported.rows / REPORT_EVERY > reports {
            progress(exported.rows);
        }
        Ok(())
    })
}
