//! `archive query`: finds and counts whatever matches a query.

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use archive_ask::query::{self, Answer, ColumnKind, Heading, Limits, Plan, Question, Running, Value};
use archive_ask::review::guarded;
use archive_base::access::Access;
use archive_grammar::TEXT_BYTES_MAX;
use archive_storage::Store;
use chrono::Utc;
use indicatif::{HumanBytes, HumanCount};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::options::{AskArgs, TimeArgs, query_memory};
use super::{Result, input, output, usage};

/// Initial buffer size for CSV: enough for most records.
const CSV_BYTES: usize = 1 << 10;

/// Number of rows in a table if the query has no limit.
const TABLE_ROWS_USUAL: usize = 100;

/// Text in a table for a page or site that was never captured.
pub(crate) const ONLY_LINKED: &str = "only linked to";

/// Why a query for elements may find nothing.
const OF_XML: &str = "elements such as //title are those of XML documents and feeds; HTML pages are found by `text contains` and `title contains`";

/// Examples and the structure of a query; `archive help query` also lists the fields.
const HELP: &str = "Examples:
  archive query 'site importance > 10'
  archive query 'page importance > 2 and type = xml order by importance desc limit 20'
  archive query 'page text contains \"open access\" order by score limit 10'
  archive query 'host = \"example.org\" and not (status >= 400 or url ~ \"*/archive/*\")'
  archive query 'last seen < 30 days ago and captures > 1 select url, last seen' --csv
  archive query 'count pages group by type'
  archive query 'capture size > 1MB select host, count, sum(size) group by host having count > 9'
  archive query 'page links to (page status = 404) and site.importance > 2'
  archive query 'link target.status >= 400 select source, target'
  archive query 'page changed since 7 days ago sample 20'
  archive query 'count pages type = pdf as of 2026-01-31'
  archive query 'page type = html and text matches \"[\\w.]+@[\\w.]+\" select url, part(text, \"[\\w.]+@[\\w.]+\")'
  archive query 'page lost title or lost text select url'
  archive query 'count versions per month group by site'
  archive query --explain 'page title contains rose'   # the steps of the query, with counts

Rows: page (the default), site, host, capture, version (a capture with new bytes), link
Conditions: = != < <= > >=, ~ \"*/glob?\", matches \"regular expression\", starts with, ends
  with, in (…), between … and …, contains \"…\", is empty, changed since … until …,
  within 7 days; joined by and, or, not and parentheses
Relations of pages: links to, linked from, redirects to, same content as \"URL\" or (query);
  duplicates
Values: numbers (10k, 2.5M), sizes (1MB, 64KiB), \"text\", words, dates (2026-01-31,
  2026-01-31T10:00Z, 30 days ago, today; without a zone they are local), durations (30 days),
  and + - * / of them between spaces. A date means the whole day. A host matches on every
  port unless the value has one (\"example.org:8080\"); = \"\" finds rows without such a text.
Clauses: select FIELD [as NAME], …   group by FIELD, …   per month [of TIME]
  having CONDITION
  order by FIELD [asc|desc], …   limit N   offset N   sample N [seed S]   as of TIME
Without an order, captured rows come first, then those only linked to; the largest groups
come first. `count pages …` is short for `page … select count`,
`sum(size) captures …` for `capture … select sum(size)`.";

/// Width of the help text in columns.
const HELP_COLUMNS: usize = 92;

/// [`HELP`], followed by every field and function.
fn long_help() -> String {
    let mut help = HELP.to_owned();
    let mut paragraph = |title: &str, rows: &mut dyn Iterator<Item = (String, String)>| {
        help.push_str("\n\n");
        help.push_str(title);
        for (name, meaning) in rows {
            let mut line = format!("\n  {name:<15}");
            for word in meaning.split(' ') {
                if line.chars().count() + 1 + word.chars().count() > HELP_COLUMNS {
                    help.push_str(&line);
                    line = format!("\n{:17}", "");
                }
                line.push(' ');
                line.push_str(word);
            }
            help.push_str(&line);
        }
    };
    for (rows, fields) in query::fields() {
        let title = match rows {
            "captures" => "Fields of captures and versions:".to_owned(),
            rows => format!("Fields of {rows}:"),
        };
        paragraph(&title, &mut fields.into_iter().map(|field| (field.name, field.meaning)));
    }
    let functions = query::functions().map(|(name, meaning)| (format!("{name}()"), meaning.to_owned()));
    paragraph("Functions:", &mut { functions });
    help.push_str(
        "\n\nFields of related rows: site. and host. of a page; page., site. and host. of a capture; source. and
target. of a link, as in site.importance. Columns stored by `archive rank --save` are fields, too.
Texts of pages are searched with `text contains`. More: docs/query.md",
    );
    help
}

/// Find and count pages, sites, hosts, captures and links.
#[derive(clap::Args)]
#[command(after_help = HELP, after_long_help = long_help())]
pub(crate) struct Args {
    /// Query; - reads it from standard input
    #[arg(required = true, num_args = 1.., value_name = "QUERY")]
    query: Vec<String>,
    #[command(flatten)]
    ask: AskArgs,
    #[command(flatten)]
    time: TimeArgs,
    /// Memory for groups and for rows that wait to be sorted; the rest goes to temporary files ($TMPDIR)
    #[arg(long, value_name = "SIZE", value_parser = query_memory, default_value = "256MiB")]
    memory: usize,
    /// One JSON object per row
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print CSV with a header, unescaped (for spreadsheets, see `archive review export`)
    #[arg(long)]
    csv: bool,
    /// Run the query, but print its steps instead of the answer: the rows that each step read and kept, and its time
    #[arg(long, conflicts_with = "csv")]
    explain: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let text = match args.query.as_slice() {
        [only] if only == "-" => {
            let bytes = input::read(Path::new("-"), TEXT_BYTES_MAX as u64)?;
            String::from_utf8(bytes)
                .map_err(|error| usage(format!("the query is not UTF-8 text: {error}")))?
        }
        words => words.join(" "),
    };
    let limits = Limits { memory: args.memory, ..args.time.limits() };
    let answering = args.ask.open()?;
    let is_table = !args.json && !args.csv;
    let limit = (is_table && !args.explain).then_some(TABLE_ROWS_USUAL);
    if let Some(mut asked) = answering.asked(&args.ask.nodes, limits)? {
        if args.explain {
            refuse!("--explain works only for local archives: run it on the node's own machine");
        }
        let (answer, is_cut) = asked.query(&text, Utc::now(), limit)?;
        let code = answering.exit_code_of(&asked);
        if answer.rows.is_empty()
            && Plan::of_several(&text, Utc::now()).is_ok_and(|plan| plan.asks_elements())
        {
            note!("{OF_XML}");
        }
        if is_table {
            show(&answer, is_cut)?;
        } else {
            let printer = Printer::new(args.csv, &answer.headings)?;
            answer.rows.iter().try_for_each(|row| printer.print(row))?;
        }
        return Ok(code);
    }
    let question = Question::of(answering.archives(), &text, Utc::now())?;
    let mut question = question.within(Running::new(limits, args.explain));
    let is_cut = limit.is_some_and(|limit| question.plan.limit_if_unlimited(limit));
    let is_empty = if args.explain {
        explain(&question, args.json)?;
        false
    } else if is_table {
        let answer = question.answer()?;
        show(&answer, is_cut)?;
        answer.rows.is_empty()
    } else {
        print_each(&question, args.csv)? == 0
    };
    if is_empty && question.plan.asks_elements() {
        note!("{OF_XML}");
    }
    Ok(answering.exit_code_without(question.unread().as_ref()))
}

/// Prints the rows of the answer for programs as soon as they are known; returns their number.
fn print_each(question: &Question<'_>, csv: bool) -> Result<u64> {
    let printer = Printer::new(csv, question.plan.headings())?;
    let (mut failed, mut rows) = (None, 0);
    let ended = question.each(&mut |row| {
        rows += 1;
        printer.print(&row).map_err(|error| {
            failed = Some(error);
            query::Error::Rows("a row was refused".into())
        })
    });
    failed.map_or(Ok(()), Err)?;
    ended?;
    Ok(rows)
}

/// Answers a query, and prints how it was answered.
fn explain(question: &Question<'_>, json: bool) -> Result<()> {
    let began = Instant::now();
    question.each(&mut |_| Ok(()))?;
    let seconds = began.elapsed().as_secs_f64();
    let Some(seen) = question.seen() else { return Ok(()) };
    if json {
        return output::json_line(&object! { seconds, #[serde(flatten)] seen: &seen });
    }
    let mut table = output::table(&["step", "what", "rows in", "rows out", "time"], &[2, 3, 4]);
    for step in &seen.steps {
        table.add_row([
            format!("{}{}", "  ".repeat(step.level), step.step),
            step.what.clone(),
            step.rows_in.map_or_else(|| "-".to_owned(), |rows| HumanCount(rows).to_string()),
            HumanCount(step.rows_out).to_string(),
            shown_time(step.seconds),
        ]);
    }
    output::print(&table)?;
    let mut sums = vec![
        format!("{} in all", shown_time(seconds)),
        format!("{} read", output::count(seen.records_read, "record")),
        format!("{} parsed", output::count(seen.documents_parsed, "XML document")),
    ];
    if seen.spilled_bytes > 0 {
        sums.push(format!("{} of temporary files", HumanBytes(seen.spilled_bytes)));
    }
    output::line(&sums.join(", "))
}

fn shown_time(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.2} ms", seconds * 1000.0) } else { format!("{seconds:.2} s") }
}

/// Prints the answer to a query as a table.
pub(crate) fn print(archives: Vec<(&Store, Access)>, text: &str) -> Result<()> {
    let mut question = Question::of(archives, text, Utc::now())?;
    let is_cut = question.plan.limit_if_unlimited(TABLE_ROWS_USUAL);
    show(&question.answer()?, is_cut)
}

fn show(answer: &Answer, is_cut: bool) -> Result<()> {
    if answer.rows.is_empty() {
        note!("nothing matches");
        return Ok(());
    }
    let names: Vec<String> = answer.headings.iter().map(|heading| heading.name.replace('_', " ")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let is_number = |heading: &Heading| matches!(heading.kind, ColumnKind::Number | ColumnKind::Span);
    let numbers = answer.headings.iter().enumerate().filter(|(_, heading)| is_number(heading));
    let mut table = output::table(&names, &numbers.map(|(index, _)| index).collect::<Vec<_>>());
    for row in &answer.rows {
        table.add_row(answer.headings.iter().zip(row).map(|(heading, value)| match value {
            Value::Empty if heading.name == "last_seen" => ONLY_LINKED.to_owned(),
            value => for_people(value, heading.kind),
        }));
    }
    output::print(&table)?;
    let shown = answer.rows.len() as u64;
    match answer.matched {
        Some(matched) if is_cut && matched > shown => {
            note!("{} of {} rows; add `limit N` to see more", HumanCount(shown), HumanCount(matched));
        }
        None if is_cut && answer.rows.len() == TABLE_ROWS_USUAL => {
            note!("the first {} rows; add `limit N` to see more", HumanCount(shown));
        }
        _ => {}
    }
    Ok(())
}

/// Prints rows for programs as they arrive, as JSON or CSV.
struct Printer<'a> {
    headings: &'a [Heading],
    csv: bool,
}

impl<'a> Printer<'a> {
    fn new(csv: bool, headings: &'a [Heading]) -> Result<Self> {
        if csv {
            write_csv(headings.iter().map(|heading| heading.name.clone()))?;
        }
        Ok(Self { headings, csv })
    }

    fn print(&self, row: &[Value]) -> Result<()> {
        match self.csv {
            true => write_csv(row.iter().map(|value| match value {
                Value::Text(text) => guarded(text),
                value => for_data(value),
            })),
            false => output::json_line(&Object { headings: self.headings, row }),
        }
    }
}

fn write_csv(record: impl Iterator<Item = String>) -> Result<()> {
    let mut out = csv::WriterBuilder::new().buffer_capacity(CSV_BYTES).from_writer(Vec::new());
    out.write_record(record).map_err(io::Error::from)?;
    let bytes = out.into_inner().map_err(csv::IntoInnerError::into_error)?;
    output::text(&String::from_utf8_lossy(&bytes))
}

/// A row as an object whose members have the order of the columns.
struct Object<'a> {
    headings: &'a [Heading],
    row: &'a [Value],
}

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.row.len()))?;
        for (heading, value) in self.headings.iter().zip(self.row) {
            map.serialize_entry(&heading.name, value)?;
        }
        map.end()
    }
}

fn for_data(value: &Value) -> String {
    match value {
        Value::Empty => String::new(),
        Value::Integer(count) => count.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::Time(time) => output::utc(*time),
    }
}

fn for_people(value: &Value, kind: ColumnKind) -> String {
    const DAY: f64 = 86_400.0;
    match value {
        Value::Integer(_) | Value::Number(_) if kind == ColumnKind::Span => match value.as_number() {
            Some(seconds) if seconds.abs() >= DAY => format!("{:.1} days", seconds / DAY),
            seconds => format!("{:.3} s", seconds.unwrap_or_default()),
        },
        Value::Empty => "-".to_owned(),
        Value::Integer(count) => count.to_string(),
        Value::Number(number) => format!("{number:.2}"),
        Value::Text(text) => text.clone(),
        Value::Time(time) => output::minute(*time),
    }
}

#[cfg(test)]
mod tests {
    use archive_ask::query::{ColumnKind, Heading, Value};
    use chrono::{TimeZone, Utc};

    use super::{Object, for_data, for_people};

    #[test]
    fn data_is_exact_and_in_order() {
        let heading = |name: &str| Heading { name: name.to_owned(), kind: ColumnKind::Number };
        let headings = [heading("url"), heading("importance"), heading("captures"), heading("changed")];
        let row = [
            Value::Text("http://a.example/\u{1b}[31m".to_owned()),
            Value::Number(0.1 + 0.2),
            Value::Integer(u64::MAX),
            Value::Empty,
        ];
        assert_eq!(
            serde_json::to_string(&Object { headings: &headings, row: &row }).unwrap(),
            "{\"url\":\"http://a.example/\\u001b[31m\",\"importance\":0.30000000000000004,\
             \"captures\":18446744073709551615,\"changed\":null}"
        );
        assert_eq!(for_data(&row[1]), "0.30000000000000004");
        let time = Value::Time(Utc.with_ymd_and_hms(2026, 1, 31, 10, 0, 0).unwrap());
        assert_eq!(for_data(&time), "2026-01-31T10:00:00Z");
        assert_eq!(for_people(&row[3], ColumnKind::Time), "-");
        assert_eq!(for_people(&Value::Number(0.25), ColumnKind::Span), "0.250 s");
        assert_eq!(for_people(&Value::Integer(129_600), ColumnKind::Span), "1.5 days");
    }
}
