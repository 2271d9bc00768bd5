//! What results look like: JSON lines for scripts, tables for people.

use std::io::{self, IsTerminal, Write};

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;

/// Prints `value` as one line of JSON.
pub(crate) fn json_line(value: &impl Serialize) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, value)?;
    out.write_all(b"\n")?;
    Ok(())
}

/// An empty table with `headers` that fits the terminal.
pub(crate) fn table(headers: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if io::stdout().is_terminal() {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    table.set_header(headers);
    table
}

/// Aligns columns, which count from 0.
pub(crate) fn align(table: &mut Table, columns: &[usize], alignment: CellAlignment) {
    for number in columns {
        if let Some(column) = table.column_mut(*number) {
            column.set_cell_alignment(alignment);
        }
    }
}

/// Prints one line of text.
pub(crate) fn line(text: &str) -> anyhow::Result<()> {
    writeln!(io::stdout().lock(), "{text}")?;
    Ok(())
}

/// Prints text as it is.
pub(crate) fn text(text: &str) -> anyhow::Result<()> {
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

/// Prints a finished table.
pub(crate) fn print(table: &Table) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    for text in table.lines() {
        writeln!(out, "{}", text.trim_end())?;
    }
    Ok(())
}

/// Text from strangers as a terminal may see it: without control characters, which could steer it, and without marks that
/// turn the direction of what follows.
pub(crate) fn harmless(text: &str) -> String {
    let steers = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if steers(c) { ' ' } else { c }).collect()
}

/// Whether `error` only says that the reader of our output went away, which is no failure.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
            || cause
                .downcast_ref::<serde_json::Error>()
                .is_some_and(|e| e.io_error_kind() == Some(io::ErrorKind::BrokenPipe))
    })
}
