//! The table of fields and functions in words: what `archive help query` and `docs/query.md` show.

use archive_grammar::Target;

use super::columns::{Column, ColumnKind, Cost, KNOWN, plural, shown};
use super::expr::Function;
use super::groups::Gather;

/// Every kind of row with its fields: name, sort of values, meaning; for people who read `width` characters a line or more.
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
    let header = [("header", "a header of the answer, as in header(\"server\") (reads records)")];
    Function::NAMES.into_iter().chain(header).chain(Gather::NAMES)
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
