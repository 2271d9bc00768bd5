//! The tables of fields and functions as text, for `archive help query` and `docs/query.md`.

use archive_grammar::QueryRows;
use serde::Serialize;

use crate::query::language::aggregate::Gather;
use crate::query::language::expr::Function;
use crate::query::language::fields::{Column, ColumnKind, Cost, KNOWN, plural, shown};

/// The description of a field.
#[derive(Clone, Debug, Serialize)]
pub struct FieldHelp {
    /// The name in queries.
    pub name: String,
    /// The type of the values.
    pub sort: &'static str,
    /// What the field means, with its values if these are a few words.
    pub meaning: String,
    /// The possible values, if these are a few words.
    pub choices: Vec<&'static str>,
}

/// The kinds of rows, in the plural, each with its fields.
pub fn fields() -> impl Iterator<Item = (&'static str, Vec<FieldHelp>)> {
    let targets =
        [QueryRows::Pages, QueryRows::Sites, QueryRows::Hosts, QueryRows::Captures, QueryRows::Links];
    targets.into_iter().map(|target| {
        let own = KNOWN.iter().filter(move |known| known.of.contains(&target));
        let rows = own.map(|known| {
            let costs = if known.cost == Cost::Record { " (may read records)" } else { "" };
            let choices = known.column.choices();
            let listed = if known.column == Column::Type || choices.is_empty() {
                String::new()
            } else {
                format!(": {}", choices.join(", "))
            };
            let meaning = format!("{}{listed}{costs}", known.meaning);
            FieldHelp { name: shown(known.name), sort: sort(known.kind), meaning, choices }
        });
        (plural(target), rows.collect())
    })
}

/// The functions with their meanings.
pub fn functions() -> impl Iterator<Item = (&'static str, &'static str)> {
    let with_more = [
        ("header", "a header of the answer, as in header(\"server\") (may read records)"),
        (
            "part",
            "what a regular expression, or its first group, finds in a text, as in part(url, \"id=(\\d+)\")",
        ),
        ("label", "a label of a host: label(host, 1) is the last, label(host, -1) the first"),
        (
            "first_said",
            "the first capture with these words, as in first_said(\"opening hours\") (reads all versions)",
        ),
        ("last_said", "the last capture with these words (reads all versions)"),
        ("topic", "how probably a page is of a topic, 0 to 1, as in topic(maps) (reads records)"),
        (
            "shared",
            "the share of a page's text that stands in this one, 0 to 1, as in shared(\"www.example.org\") (reads records)",
        ),
    ];
    Function::NAMES.into_iter().chain(with_more).chain(Gather::NAMES)
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

    use super::{FieldHelp, fields, functions};

    /// Checks that `docs/query.md` agrees with the tables. `ARCHIVE_TEST_UPDATE=1` updates it.
    #[test]
    fn the_reference_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/query.md");
        let written = std::fs::read_to_string(path).unwrap();
        let mut tables = String::new();
        for (rows, fields) in fields() {
            let rows = if rows == "captures" { "captures and versions" } else { rows };
            writeln!(tables, "\nOf {rows}:\n\n| field | | |\n|---|---|---|").unwrap();
            for FieldHelp { name, sort, meaning, .. } in fields {
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

    /// Replaces the part of a text between two marks.
    fn with(text: &str, mark: &str, part: &str) -> String {
        let (before, rest) = text.split_once(&format!("<!-- {mark}:")).unwrap();
        let (begin, rest) = rest.split_once("-->\n").unwrap();
        let (_, after) = rest.split_once(&format!("<!-- end of {mark} -->")).unwrap();
        format!("{before}<!-- {mark}:{begin}-->\n{part}\n<!-- end of {mark} -->{after}")
    }
}
