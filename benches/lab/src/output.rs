//! Output of results: JSON lines for scripts, tables for people, and the progress of long commands.

use std::io::{self, Write as _};

use comfy_table::{CellAlignment, Table, presets};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

/// Prints `value` as one line of JSON.
pub(crate) fn json_line(value: &impl Serialize) -> anyhow::Result<()> {
    line(&serde_json::to_string(value)?)
}

/// Prints one line of text.
pub(crate) fn line(text: &str) -> anyhow::Result<()> {
    Ok(writeln!(io::stdout().lock(), "{text}")?)
}

/// Creates a table with these headings.
pub(crate) fn table(headings: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(headings);
    table
}

/// Prints a finished table, in which columns with these indices are aligned to the right.
pub(crate) fn print(mut table: Table, right: &[usize]) -> anyhow::Result<()> {
    for column in right {
        if let Some(column) = table.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().try_for_each(|row| line(row.trim_end()))
}

/// Returns a progress bar on standard error, if that is a terminal, that counts to `total`; `what` names the counted
/// things.
pub(crate) fn counting(total: u64, what: &'static str) -> ProgressBar {
    // The template is fixed text, so a mistake in it would show in the first run.
    let style = ProgressStyle::with_template("{bar:30} {human_pos}/{human_len} {msg}  {elapsed}")
        .expect("the template is well-formed");
    ProgressBar::new(total).with_style(style).with_message(what)
}

/// Whether the reader of the output has closed it.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
