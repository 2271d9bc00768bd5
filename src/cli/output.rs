//! Formats results and messages: JSON lines for scripts, tables and sentences for people.
//!
//! All text for people passes through here. Titles, URLs, records and file names may be untrusted: characters that
//! would control a terminal are written as escapes such as `\u{1b}`. Data is not altered: JSON has its own escapes, and
//! bytes change only on their way to a terminal.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, IsTerminal, Write};

pub(crate) use archive_base::texts::count;
use chrono::{DateTime, Local, SecondsFormat, Utc};
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Width, presets};
use indicatif::HumanCount;
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{Failure, Result, progress};

/// Columns of a table up to this width keep their width, in characters.
const NARROW: usize = 20;

/// Minimum width left for each wide column; with less, narrow columns shrink as well.
const WIDE_MIN: usize = 8;

/// Padding around the content of a column, in characters.
const PADDING: usize = 2;

/// Prints `value` as one line of JSON.
pub(crate) fn json_line(value: &impl Serialize) -> Result<()> {
    let mut line = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut line, Harmless))?;
    line.push(b'\n');
    write(&line)
}

/// Prints a result as one line: JSON for programs, or a sentence for people.
pub(crate) fn summary(json: bool, value: &impl Serialize, sentence: impl FnOnce() -> String) -> Result<()> {
    if json { json_line(value) } else { line(&sentence()) }
}

/// How many things are wrong; what is said if none is.
pub(crate) fn wrong(findings: u64, none: &str) -> String {
    match findings {
        0 => none.to_owned(),
        1 => "1 thing is wrong".to_owned(),
        count => format!("{} things are wrong", HumanCount(count)),
    }
}

/// Formats JSON without characters that control terminals. JSON itself only escapes those below U+0020.
struct Harmless;

impl Formatter for Harmless {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, text: &str) -> io::Result<()> {
        for part in text.split_inclusive(steers) {
            let plain = part.trim_end_matches(steers);
            writer.write_all(plain.as_bytes())?;
            // None of these characters is above U+FFFF.
            part.chars()
                .skip(plain.chars().count())
                .try_for_each(|c| write!(writer, "\\u{:04x}", c as u32))?;
        }
        Ok(())
    }
}

/// Prints one line of text.
pub(crate) fn line(text: &str) -> Result<()> {
    write(format!("{}\n", visible(text)).as_bytes())
}

/// Whether standard output is a terminal and colours are not turned off (<https://no-color.org>).
pub(crate) fn has_colours() -> bool {
    let is_off = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stdout().is_terminal() && !is_off
}

/// Prints one line of pieces, each with an optional colour number (ECMA-48, SGR).
pub(crate) fn coloured_line(pieces: &[(Option<u8>, &str)]) -> Result<()> {
    let mut line = String::new();
    for (colour, text) in pieces {
        match colour {
            Some(colour) => line.push_str(&format!("\u{1b}[{colour}m{}\u{1b}[0m", visible(text))),
            None => line.push_str(&visible(text)),
        }
    }
    line.push('\n');
    write(line.as_bytes())
}

/// Prints text unchanged, except on a terminal.
pub(crate) fn text(text: &str) -> Result<()> {
    if !io::stdout().is_terminal() {
        return write(text.as_bytes());
    }
    write(visible_lines(text).as_bytes())
}

/// Prints the content of a page unchanged. A terminal gets no binary content, and text in the form of [`text`].
pub(crate) fn content(bytes: &[u8]) -> Result<()> {
    if !io::stdout().is_terminal() {
        return write(bytes);
    }
    // curl detects binary content by the same test.
    if bytes.contains(&0) {
        fail!("this is binary content, which can disturb a terminal; write it to a file with > FILE");
    }
    text(&String::from_utf8_lossy(bytes))
}

/// Prints bytes unchanged.
pub(crate) fn write(bytes: &[u8]) -> Result<()> {
    let write = || io::stdout().lock().write_all(bytes);
    Ok(if io::stdout().is_terminal() { progress::aside(write) } else { write() }?)
}

/// Prints a message on standard error. A closed standard error is not a failure.
pub(crate) fn note(message: fmt::Arguments<'_>) {
    let message = format!("archive: {}\n", visible_lines(&message.to_string()));
    let _ = progress::aside(|| io::stderr().lock().write_all(message.as_bytes()));
}

/// A time for people, in their zone, to the second.
pub(crate) fn local(time: DateTime<Utc>) -> String {
    time.with_timezone(&Local).format("%Y-%m-%d %H:%M:%S").to_string()
}

/// As [`local`]; `-` for no time.
pub(crate) fn local_or_none(time: Option<DateTime<Utc>>) -> String {
    time.map_or("-".to_owned(), local)
}

/// As [`local`], to the minute.
pub(crate) fn minute(time: DateTime<Utc>) -> String {
    time.with_timezone(&Local).format("%Y-%m-%d %H:%M").to_string()
}

/// A time for programs, to the second.
pub(crate) fn utc(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// As [`utc`], to the microsecond.
pub(crate) fn utc_micros(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// Escapes text for a terminal, in one line.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if steers(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// As [`visible`], for text of several lines.
fn visible_lines(text: &str) -> String {
    let lines = text.split_inclusive('\n').map(|line| match line.strip_suffix('\n') {
        Some(line) => format!("{}\n", visible(line.strip_suffix('\r').unwrap_or(line))),
        None => visible(line).into_owned(),
    });
    lines.collect()
}

/// Whether a character controls a terminal (C0, DEL, C1) or the direction of the text after it.
fn steers(c: char) -> bool {
    c.is_control() && c != '\t'
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A table that fits the width of the terminal, or is as wide as necessary elsewhere.
pub(crate) struct Table {
    /// The rows; the first one contains the headings.
    rows: Vec<Vec<String>>,
    /// Columns aligned at their right end.
    right: Vec<usize>,
}

/// An empty table with `headings`; the columns in `right`, counted from 0, are aligned at their right end.
pub(crate) fn table(headings: &[&str], right: &[usize]) -> Table {
    let mut table = Table { rows: Vec::new(), right: right.to_vec() };
    table.add_row(headings.iter().copied());
    table
}

impl Table {
    /// Adds a row, with one cell per column.
    pub(crate) fn add_row(&mut self, cells: impl IntoIterator<Item: Into<String>>) {
        self.rows.push(cells.into_iter().map(|cell| visible(&cell.into()).into_owned()).collect());
    }

    /// Computes the widths of the columns for `room` characters. Narrow columns keep their width if that leaves enough
    /// for the others, which share the rest.
    fn widths(&self, room: usize) -> Vec<usize> {
        let columns = self.rows.first().map_or(0, Vec::len);
        let natural: Vec<usize> = (0..columns)
            .map(|column| self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max())
            .map(Option::unwrap_or_default)
            .collect();
        let kept: usize = natural.iter().filter(|width| **width <= NARROW).sum();
        let wide = natural.iter().filter(|width| **width > NARROW).count();
        let keeps = kept + wide * WIDE_MIN <= room;
        let mut order: Vec<usize> = (0..columns).collect();
        order.sort_by_key(|column| natural[*column]);
        let (mut widths, mut left) = (vec![0; columns], room);
        for (place, column) in order.into_iter().enumerate() {
            let share = left / (columns - place);
            let own = natural[column];
            widths[column] = if keeps && own <= NARROW { own } else { own.min(share).max(1) };
            left = left.saturating_sub(widths[column]);
        }
        widths
    }

    fn render(&self, columns: Option<usize>) -> String {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING);
        let mut rows = self.rows.clone();
        if let Some(columns) = columns {
            let count = rows.first().map_or(0, Vec::len);
            let widths = self.widths(columns.saturating_sub(count * PADDING));
            for (cell, width) in rows.iter_mut().flat_map(|row| row.iter_mut().zip(&widths)) {
                let words: Vec<Cow<'_, str>> = cell.split(' ').map(|word| shortened(word, *width)).collect();
                *cell = words.join(" ");
            }
            table.set_content_arrangement(ContentArrangement::Dynamic);
            table.set_width(u16::try_from(columns).unwrap_or(u16::MAX));
            let fixed = |width: &usize| {
                let width = u16::try_from(width + PADDING).unwrap_or(u16::MAX);
                ColumnConstraint::Absolute(Width::Fixed(width))
            };
            table.set_header(rows.remove(0)).set_constraints(widths.iter().map(fixed));
        } else {
            table.set_header(rows.remove(0));
        }
        table.add_rows(rows);
        for column in &self.right {
            if let Some(column) = table.column_mut(*column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }
}

/// Prints a finished table.
pub(crate) fn print(table: &Table) -> Result<()> {
    // Without a terminal there is no width.
    let columns = terminal_size::terminal_size_of(io::stdout()).map(|(columns, _)| usize::from(columns.0));
    write(table.render(columns.filter(|columns| *columns > 0)).as_bytes())
}

/// A list of results: lines of JSON for programs, as they come, or a table for people at the end.
pub(crate) struct Listing(Option<Table>);

impl Listing {
    /// Begins a list; for people with the headings and right-aligned columns of [`table`].
    pub(crate) fn new(json: bool, headings: &[&str], right: &[usize]) -> Self {
        Self((!json).then(|| table(headings, right)))
    }

    /// Adds a result: as a value, or as the cells of a row.
    pub(crate) fn add<T: Serialize, R: IntoIterator<Item = String>>(
        &mut self,
        value: T,
        cells: impl FnOnce(T) -> R,
    ) -> Result<()> {
        match &mut self.0 {
            None => json_line(&value),
            Some(table) => {
                table.add_row(cells(value));
                Ok(())
            }
        }
    }

    /// Prints the table.
    pub(crate) fn end(self) -> Result<()> {
        self.0.as_ref().map_or(Ok(()), print)
    }
}

/// Shortens a word that is too wide in the middle: the two ends of a URL say most.
fn shortened(word: &str, width: usize) -> Cow<'_, str> {
    if word.width() <= width {
        return Cow::Borrowed(word);
    }
    let fits = |room: usize| {
        let mut used = 0;
        move |c: &char| {
            used += c.width().unwrap_or(0);
            used <= room
        }
    };
    let room = width.saturating_sub(1);
    let head: String = word.chars().take_while(fits(room.div_ceil(2))).collect();
    let tail: Vec<char> = word.chars().rev().take_while(fits(room / 2)).collect();
    Cow::Owned(format!("{head}…{}", tail.iter().rev().collect::<String>()))
}

/// Whether `error` only means that the reader of our output went away, which is no failure.
pub(crate) fn is_broken_pipe(error: &Failure) -> bool {
    error.causes().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
            || cause
                .downcast_ref::<serde_json::Error>()
                .is_some_and(|e| e.io_error_kind() == Some(io::ErrorKind::BrokenPipe))
    })
}

#[cfg(test)]
mod tests {
    use super::{Harmless, Serializer, shortened, table, visible};
    use serde::Serialize;

    const EVIL: &str = "a\u{1b}[31m\u{9b}b\u{7f}\u{202e}\u{2066}c\n";

    #[test]
    fn what_steers_a_terminal_is_shown() {
        assert_eq!(visible("plain é \u{65e5}\t"), "plain é \u{65e5}\t");
        assert_eq!(visible(EVIL), "a\\u{1b}[31m\\u{9b}b\\u{7f}\\u{202e}\\u{2066}c\\n");
    }

    #[test]
    fn json_is_harmless_and_says_the_same() {
        let mut json = Vec::new();
        let text = format!("{EVIL}{EVIL}\u{200f}");
        text.serialize(&mut Serializer::with_formatter(&mut json, Harmless)).unwrap();
        assert!(json.iter().all(|byte| (b' '..=b'~').contains(byte)), "{:?}", String::from_utf8_lossy(&json));
        assert_eq!(serde_json::from_slice::<String>(&json).unwrap(), text);
    }

    #[test]
    fn long_words_are_cut_in_the_middle() {
        assert_eq!(shortened("http://example.org/", 19), "http://example.org/");
        assert_eq!(shortened("http://example.org/", 10), "http:…org/");
        assert_eq!(shortened("\u{65e5}\u{672c}\u{8a9e}\u{65e5}\u{672c}", 6), "\u{65e5}…\u{672c}");
        assert_eq!(shortened("abc", 1), "…");
    }

    #[test]
    fn tables_fit_and_cut_only_what_is_wide() {
        let url = format!("http://www.example.org/{}/end.html", "folder/".repeat(9));
        let mut long = table(&["importance", "url", "last seen"], &[]);
        long.add_row(["12.00".to_owned(), url.clone(), "2026-01-31 10:00".to_owned()]);
        assert!(long.render(None).contains(&url));
        for columns in [40, 60, 80] {
            let shown = long.render(Some(columns));
            assert!(shown.lines().all(|line| line.chars().count() <= columns), "{columns}:\n{shown}");
            assert!(columns < 60 || shown.lines().count() == 2, "{columns}:\n{shown}");
            assert!(shown.contains('…'), "{shown}");
        }
        assert!(long.render(Some(200)).contains(&url));
        // Words stay whole.
        let mut words = table(&["", ""], &[]);
        words.add_row(["why", "the host name of it cannot be resolved by anybody at all today"]);
        assert!(!words.render(Some(40)).contains('…'));
    }
}
