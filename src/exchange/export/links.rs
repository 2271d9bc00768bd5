//! The link graph as a table: for every page its newest links, a line each.

use std::io::Write;

use archive_storage::Store;

use super::{ExportError, Exported, Selection, lost};
use crate::ledger::LinkCode;
use crate::parse::LinkKind;

/// Links between two reports of progress.
const REPORT_EVERY: u64 = 100_000;

/// Writes `source`, `target` and `kind`, separated by tabs, under a line with these names. No URL has a tab in it.
pub(super) fn write(
    store: &Store,
    selection: &Selection,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported, ExportError> {
    let state = store.state();
    out.write_all(b"source\ttarget\tkind\n").map_err(lost)?;
    let mut exported = Exported::default();
    let mut targets = state.url_cursor();
    state.newest_links(|source, links| {
        if !selection.has_page(source) {
            return Ok(());
        }
        let page = state.url(source)?;
        for link in links {
            let kind = LinkCode::from_byte(link.kind).kind().map_or("other", LinkKind::context);
            let target = targets.get(link.target)?;
            writeln!(out, "{page}\t{target}\t{kind}").map_err(lost)?;
            exported.rows += 1;
            if exported.rows.is_multiple_of(REPORT_EVERY) {
                progress(exported.rows);
            }
        }
        Ok::<_, ExportError>(())
    })?;
    Ok(exported)
}
