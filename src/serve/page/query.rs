//! The query page: an input with completion, errors below it, and the answer as a table, JSON or CSV.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write as _};
use std::sync::LazyLock;

use archive_ask::query::{self, Answer, Error, Heading, Plan, Question, Running, Value};
use archive_ask::review::guarded;
use archive_base::error::{Classified, ErrorKind};
use archive_peers::nodes::Missing;
use bytes::Bytes;
use chrono::Utc;
use maud::{Markup, html};
use serde_json::{Map, Value as Json, json};

use super::{ArchiveRequest, PageProblem, PageRequest, Reply, Speech, front, ready};
use crate::serve::ask::{TIME_MAX, limits};
use crate::serve::spool::Unsent;

/// Number of rows shown, unless the query has a limit.
pub(super) const ROWS: usize = 100;

/// Maximum length of an answer as CSV or JSON in bytes.
const BYTES_MAX: u64 = 512 << 20;

/// Maximum size of the rows on a page in bytes: in memory, where their markup takes a few times as many.
const SHOWN_BYTES_MAX: usize = 16 << 20;

const TOO_LONG: &str = "this answer is too long, or many others are being sent: add `limit N`, select less, or use `archive query`";

/// From this number on, digits are grouped.
const UNGROUPED: u64 = 10_000;

/// Maximum length of a text that is displayed without wrapping, in bytes.
const SHORT_BYTES: usize = 24;

const EXAMPLES: [&str; 5] = [
    "site importance > 1 order by importance",
    "page type = xml and importance > 2 order by importance",
    "count pages group by type",
    "page status = 404 and captures > 0 select url, via",
    "page changed since 30 days ago order by changed",
];

/// The completion script with its vocabulary.
static SCRIPT: LazyLock<Bytes> = LazyLock::new(|| {
    let word = |name: &str, meaning: &str| json!({ "name": name, "meaning": meaning });
    let plain = |names: &[&str]| names.iter().map(|name| word(name, "")).collect::<Vec<_>>();
    let functions: Vec<Json> =
        query::functions().map(|(name, meaning)| word(&format!("{name}("), meaning)).collect();
    let fields: BTreeMap<_, _> = query::fields().collect();
    let (rows, keywords) = (plain(archive_grammar::targets()), plain(&archive_grammar::keywords()));
    let words = json!({ "rows": rows, "fields": fields, "functions": functions, "keywords": keywords });
    format!("const VOCABULARY = {words};\n{}", include_str!("query.js")).into()
});

pub(super) fn script() -> Reply {
    Reply::of(200, "text/javascript", SCRIPT.clone())
}

pub(super) fn page(asked: &ArchiveRequest<'_>) -> Result<Reply, PageProblem> {
    query(asked, |text, rows| {
        let opened = asked.opened;
        let mut question = match Question::new(opened.store, opened.access.clone(), text, Utc::now()) {
            Err(error) if error.kind() == ErrorKind::Usage => return Ok(Err(error.to_string())),
            question => question?.within(Running::new(limits(), false)),
        };
        question.plan.limit_if_unlimited(ROWS);
        rows.begin(question.plan.headings())?;
        match question.each(&mut |row| rows.take(row).map_err(Error::Spill)) {
            Err(
                error @ (Error::NoIndex
                | Error::NoVersions(_)
                | Error::TooMuch { .. }
                | Error::LongSeries { .. }
                | Error::Late(_)),
            ) => Ok(Err(error.to_string())),
            matched => Ok(Ok((Some(matched?), Missing::rows(question.unread())))),
        }
    })
}

/// How many rows matched, if that is known, and the archives that are missing from the answer; or the mistake in the query.
type Answered = Result<(Option<u64>, Vec<Missing>), String>;

/// The page for a query whose rows `ask` gives.
pub(super) fn query(
    asked: &PageRequest<'_>,
    ask: impl FnOnce(&str, &mut GivenRows) -> Result<Answered, PageProblem>,
) -> Result<Reply, PageProblem> {
    let t = asked.speech;
    let text = match (asked.parameter("q"), ready::chosen(asked)) {
        ("", Some(Ok(query))) => query,
        ("", Some(Err(missing))) => return Ok(mistaken(asked, "", missing)),
        (text, _) => text.to_owned(),
    };
    let text = text.as_str();
    if text.is_empty() {
        return Ok(asked.reply(t.say("Query"), &Json::Null, || shown(t, "", None, None)).with_script(None));
    }
    let mut rows = GivenRows::of(asked);
    let answered = ask(text, &mut rows).and_then(|answered| {
        rows.end()?;
        Ok(answered)
    });
    let (matched, missing) = match answered {
        Err(_) if rows.is_over() => return Ok(mistaken(asked, text, TOO_LONG)),
        Err(problem) => return Err(problem),
        Ok(Err(mistake)) => return Ok(mistaken(asked, text, &mistake)),
        Ok(Ok(answered)) => answered,
    };
    let GivenRows { headings, out, .. } = rows;
    let reply = match out {
        RowForm::Csv(out) => {
            out.into_inner().map_err(csv::IntoInnerError::into_error)?.reply("text/csv; charset=utf-8")?
        }
        RowForm::Json(out) => out
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?
            .reply("application/json")?
            .with_script(None),
        RowForm::Shown(rows, _) => {
            let answer = Answer { headings, rows, matched };
            let content = shown(t, text, Some((&answer, missing.as_slice())), None);
            Reply::html(200, t, t.say("Query"), Some(asked), &content).with_script(None)
        }
    };
    Ok(reply.without(&missing))
}

/// The rows of an answer in the form that was asked for. As data they are written as they come.
pub(super) struct GivenRows {
    headings: Vec<Heading>,
    count: u64,
    out: RowForm,
}

enum RowForm {
    /// For a page, with their size by estimate.
    Shown(Vec<Vec<Value>>, usize),
    Csv(Box<csv::Writer<Unsent>>),
    Json(BufWriter<Unsent>),
}

impl GivenRows {
    fn of(asked: &PageRequest<'_>) -> Self {
        let unsent = || Unsent::new(&asked.server.limits.files, BYTES_MAX, TIME_MAX);
        let out = match asked.parameter("format") {
            "csv" => RowForm::Csv(Box::new(csv::Writer::from_writer(unsent()))),
            _ if asked.wants_json => RowForm::Json(BufWriter::new(unsent())),
            _ => RowForm::Shown(Vec::new(), 0),
        };
        Self { headings: Vec::new(), count: 0, out }
    }

    /// Begins with the headings.
    pub(super) fn begin(&mut self, headings: &[Heading]) -> io::Result<()> {
        self.headings = headings.to_vec();
        match &mut self.out {
            RowForm::Shown(..) => Ok(()),
            RowForm::Csv(out) => Ok(out.write_record(headings.iter().map(|heading| &heading.name))?),
            RowForm::Json(out) => out.write_all(b"["),
        }
    }

    /// Takes the next row.
    pub(super) fn take(&mut self, row: Vec<Value>) -> io::Result<()> {
        self.count += 1;
        match &mut self.out {
            RowForm::Shown(rows, bytes) => {
                *bytes += row.iter().map(Value::bytes).sum::<usize>();
                rows.push(row);
                if self.is_over() { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(()) }
            }
            RowForm::Csv(out) => Ok(out.write_record(row.iter().map(as_text))?),
            RowForm::Json(out) => {
                if self.count > 1 {
                    out.write_all(b",")?;
                }
                Ok(serde_json::to_writer(out, &as_object(&self.headings, row))?)
            }
        }
    }

    fn end(&mut self) -> io::Result<()> {
        match &mut self.out {
            RowForm::Shown(..) => Ok(()),
            RowForm::Csv(out) => out.flush(),
            RowForm::Json(out) => out.write_all(b"]\n").and_then(|()| out.flush()),
        }
    }

    /// Whether the answer is too long for its form.
    fn is_over(&self) -> bool {
        match &self.out {
            RowForm::Shown(_, bytes) => *bytes > SHOWN_BYTES_MAX,
            RowForm::Csv(out) => out.get_ref().is_over(),
            RowForm::Json(out) => out.get_ref().is_over(),
        }
    }
}

fn mistaken(asked: &PageRequest<'_>, text: &str, mistake: &str) -> Reply {
    if asked.wants_json {
        return Reply::no_data(400, mistake);
    }
    let t = asked.speech;
    let content = shown(t, text, None, Some(mistake));
    Reply::html(400, t, t.say("Query"), Some(asked), &content).with_script(None)
}

fn shown(t: Speech, text: &str, answer: Option<(&Answer, &[Missing])>, mistake: Option<&str>) -> Markup {
    html! {
        h1 { (t.say("Query")) }
        form .query action="/query" {
            (t.kept())
            label for="query" { (t.say("Ask the archive")) }
            div .completed {
                textarea #query name="q" rows="3" spellcheck="false" autocomplete="off" aria-describedby=[mistake.map(|_| "mistake")] { (text) }
                ul #words role="listbox" aria-label=(t.say("Words that fit")) hidden {}
            }
            button { (t.say("Ask")) }
        }
        script src="/query.js" defer {}
        @if let Some(mistake) = mistake {
            @let (what, place) = mistake.split_once('\n').unwrap_or((mistake, ""));
            div #mistake .mistake role="alert" tabindex="0" { p lang="en" { (what) } @if !place.is_empty() { pre lang="en" { (place) } } }
        }
        @match answer {
            Some((answer, missing)) => { (front::missing(t, missing)) (rows(t, text, answer)) }
            None => {
                (ready::form(t))
                h2 { (t.say("Examples")) }
                ul { @for example in EXAMPLES { li { a href=(t.query_of(example)) { code { (example) } } } } }
            }
        }
    }
}

fn rows(t: Speech, text: &str, answer: &Answer) -> Markup {
    let shown = answer.rows.len() as u64;
    let as_format = |format| t.address("/query", &[("q", text), ("format", format)]);
    html! {
        p {
            @match answer.matched {
                Some(matched) => (t.fill("{} of {} rows", &[&t.count(shown), &t.count(matched)])),
                None => (t.counted(shown, "{} row", "{} rows")),
            }
            " · " a href=(as_format("json")) { "JSON" } " · " a href=(as_format("csv")) { "CSV" }
        }
        @if answer.rows.is_empty() && Plan::of_several(text, Utc::now()).is_ok_and(|plan| plan.asks_elements()) {
            p { (t.say("Elements such as //title are those of XML documents and feeds; HTML pages are found by “text contains” and “title contains”.")) }
        }
        div .wide role="region" aria-label=(t.say("Answer")) tabindex="0" {
            table {
                thead { tr {
                    @for (column, heading) in answer.headings.iter().enumerate() {
                        th .number[are_numbers(answer, column)] scope="col" { code { (heading.name) } }
                    }
                } }
                tbody {
                    @for row in &answer.rows {
                        tr { @for (heading, value) in answer.headings.iter().zip(row) { (cell(t, &heading.name, value)) } }
                    }
                }
            }
        }
    }
}

/// Whether a column contains numbers, which are right-aligned.
fn are_numbers(answer: &Answer, column: usize) -> bool {
    let mut values = answer.rows.iter().filter_map(|row| row.get(column));
    values.any(|value| matches!(value, Value::Integer(_) | Value::Number(_)))
}

fn cell(t: Speech, heading: &str, value: &Value) -> Markup {
    html! {
        @match value {
            Value::Empty => td { "–" },
            // Digits of small numbers are not grouped: they may be years.
            Value::Integer(number @ ..UNGROUPED) => td .number { (number) },
            Value::Integer(number) => td .number { (t.count(*number)) },
            Value::Number(number) => td .number { (t.decimal(*number, 2)) },
            Value::Time(time) => td { (t.moment(Some(*time))) },
            Value::Text(text) if heading == "site" => td { a href=(t.site_of(text)) { (text) } },
            Value::Text(text) if text.starts_with("http://") || text.starts_with("https://") => {
                td .url { a href=(t.page_of(text)) { (text) } }
            }
            Value::Text(text) => td .text[text.len() > SHORT_BYTES] { (text) },
        }
    }
}

/// A row as an object, keyed by heading.
fn as_object(headings: &[Heading], row: Vec<Value>) -> Map<String, Json> {
    let value = |value: Value| serde_json::to_value(value).unwrap_or(Json::Null);
    headings.iter().zip(row).map(|(heading, cell)| (heading.name.clone(), value(cell))).collect()
}

/// A value as a cell of a table for spreadsheets.
fn as_text(value: &Value) -> String {
    match serde_json::to_value(value) {
        Ok(Json::String(text)) => guarded(&text),
        Ok(Json::Null) | Err(_) => String::new(),
        Ok(other) => other.to_string(),
    }
}
