//! The table of fields and functions in words: what `archive help query` and `docs/query.md` show.

use archive_grammar::Target;

use super::columns::{Column, ColumnKind, Cost, KNOWN, plural, shown};
use super::expr::Function;
use super::groups::Gather;

/// Every kind of row with its fields: name, sort of values, meaning.
pub fn fields() -> impl Iterator<Item = (&'static str, Vec<(String, &'static str, String)>)> {
    let targets = [Target::Pages, Target::Sites, Target::Hosts, Target::Captures, Target::Links];
    targets.into_iter().map(|target| {
        let own = KNOWN.iter().filter(move |known| known.of.contains(&target));
        let rows = own.map(|known| {
            let costs = if known.cost == Cost::Record { " (reads records)" } else { "" };
            let choices = if known.column == Column::Type || known.kind != ColumnKind::Choice {
                String::new()
            } else {
                format!(": {}", known.column.choices().join(", "))
            };
            (shown(known.name), sort(known.kind), format!("{}{choices}{costs}", known.meaning))
        });
        (plural(target), rows.collect())
    })
}

/// Every function with its meaning.
pub fn functions() -> impl Iterator<Item = (&'static str, &'static str)> {
    let of_records = [
        ("header", "a header of the answer, as in header(\"server\") (reads records)"),
        ("topic", "how probably a page is of a topic, 0 to 1, as in topic(maps) (reads records)"),
    ];
    Function::NAMES.into_iter().chain(of_records).chain(Gather::NAMES)
}

fn sort(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Text => "text",
        ColumnKind::Choice => "word",
        ColumnKind::Number => "number",
        ColumnKind::Span => "duration",
        ColumnKind::Time => "time",
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::{fields, functions};

    /// `docs/query.md` says what the tables say. With `ARCHIVE_TEST_UPDATE=1` it is made to.
    #[test]
    fn the_reference_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/query.md");
        let written = std::fs::read_to_string(path).unwrap();
        let mut tables = String::new();
        for (rows, fields) in fields() {
            let rows = if rows == "captures" { "captures and versions" } else { rows };
            writeln!(tables, "\nOf {rows}:\n\n| field | | |\n|---|---|---|").unwrap();
            for (name, sort, meaning) in fields {
                writeln!(tables, "| `{name}` | {sort} | {meaning} |").unwrap();
            }
        }
        let mut calls = "\n| function | |\n|---|---|\n".to_owned();
        for (name, meaning) in functions() {
            writeln!(calls, "| `{name}` | {meaning} |").unwrap();
        }
        let made = with(&with(&written, "fields", &tables), "functions", &calls);
        if std::env::var("ARCHIVE_TEST_UPDATE").is_ok() {
            std::fs::write(path, &made).unwrap();
        }
        assert!(made == written, "ARCHIVE_TEST_UPDATE=1 brings docs/query.md up to date");
    }

    /// A text with another part between two marks.
    fn with(text: &str, mark: &str, part: &str) -> String {
        let (before, rest) = text.split_once(&format!("<!-- {mark}:")).unwrap();
        let (begin, rest) = rest.split_once("-->\n").unwrap();
        let (_, after) = rest.split_once(&format!("<!-- end of {mark} -->")).unwrap();
        format!("{before}<!-- {mark}:{begin}-->\n{part}\n<!-- end of {mark} -->{after}")
    }
}
