//! The CDX server: which captures there are, as lines for programs. Parameters and their meaning are those of pywb and OpenWayback.
//!
//! One URL is looked up; `prefix`, `host` and `domain` take a pass over the names of all URLs.

mod field;
mod filter;
mod query;
mod rows;

use serde_json::json;

use self::field::Field;
use self::query::{Order, Output, Query};
use self::rows::{Row, Rows};
use super::{Asked, Error, Response};

/// Captures that one query may look at.
pub(super) const ROWS_MAX: usize = 250_000;

/// Captures of one answer, and of a page if no size is asked for.
pub(super) const ANSWER_MAX: usize = 100_000;
const PAGE_ROWS: usize = 10_000;

impl Asked<'_> {
    /// `/cdx?…`
    pub(super) fn cdx(&self, query: &str) -> Result<Response, Error> {
        let query = match Query::parse(query) {
            Ok(query) => query,
            Err(problem) => return Ok(mistake(&problem)),
        };
        let rows = Rows::new(self.store, self.access, ROWS_MAX);
        let Some(found) = rows.gather(&query)? else {
            return Ok(mistake(&format!(
                "there are more than {ROWS_MAX} captures; ask for fewer with from, to or a longer prefix"
            )));
        };
        let mut kept = Vec::new();
        for row in found {
            let mut passes = true;
            for filter in &query.filters {
                passes = passes && filter.passes(&rows, &row)?;
            }
            if passes {
                kept.push(row);
            }
        }
        let kept = collapse(&rows, &query, kept)?;
        let kept = order(&query, kept);
        if query.counts_pages {
            let pages = kept.len().div_ceil(query.page_rows).max(1);
            let counted = json!({ "pages": pages, "pageSize": query.page_rows, "blocks": pages });
            return Ok(Response::text(200, "application/json", format!("{counted}\n")));
        }
        let (skipped, count) = match query.page {
            Some(page) => (page.saturating_mul(query.page_rows), query.page_rows),
            None => (0, ANSWER_MAX),
        };
        let shown = kept.iter().take(query.limit).skip(skipped).take(count.min(ANSWER_MAX));
        let mut text = String::new();
        for row in shown {
            line(&rows, &query, row, &mut text)?;
        }
        let media_type = match query.output {
            Output::Json => "text/x-ndjson; charset=utf-8",
            Output::Cdxj => "text/x-cdxj; charset=utf-8",
            Output::Text => "text/plain; charset=utf-8",
        };
        Ok(Response::text(200, media_type, text))
    }
}

/// The host that a query for captures is about.
pub(super) fn host_asked(query: &str) -> Result<String, String> {
    Query::parse(query).map(|query| query.host)
}

fn mistake(problem: &str) -> Response {
    Response::text(400, "text/plain; charset=utf-8", format!("{problem}\n"))
}

/// Only the first of neighbours that are alike.
fn collapse(rows: &Rows<'_>, query: &Query, found: Vec<Row>) -> Result<Vec<Row>, Error> {
    if query.collapses.is_empty() {
        return Ok(found);
    }
    let (mut kept, mut last) = (Vec::new(), None);
    for row in found {
        let mut token = Vec::new();
        for (field, length) in &query.collapses {
            let value = rows.value(&row, *field)?.unwrap_or_default();
            token.push(value.chars().take(*length).collect::<String>());
        }
        if last.as_ref() != Some(&token) {
            last = Some(token);
            kept.push(row);
        }
    }
    Ok(kept)
}

fn order(query: &Query, mut rows: Vec<Row>) -> Vec<Row> {
    match query.order {
        Order::Key => {}
        Order::Reverse => rows.reverse(),
        // Stable: of two as near the older one first.
        Order::Closest(time) => rows.sort_by_key(|row| (row.capture.time.div_euclid(1_000_000) - time).abs()),
    }
    rows
}

/// One line of an answer.
fn line(rows: &Rows<'_>, query: &Query, row: &Row, text: &mut String) -> Result<(), Error> {
    match query.output {
        Output::Text => {
            let fields = query.fields.as_deref().unwrap_or(&Field::CDX);
            let mut values = Vec::with_capacity(fields.len());
            for field in fields {
                values.push(rows.value(row, *field)?.unwrap_or("-".into()));
            }
            text.push_str(&values.join(" "));
        }
        Output::Json => {
            text.push_str(&object(rows, row, query.fields.as_deref().unwrap_or(&Field::CDX).iter())?);
        }
        Output::Cdxj => text.push_str(&rows.cdxj(row, query.fields.as_deref())?),
    }
    text.push('\n');
    Ok(())
}

/// The fields of a row that there are, as a JSON object in their order.
fn object<'f>(rows: &Rows<'_>, row: &Row, fields: impl Iterator<Item = &'f Field>) -> Result<String, Error> {
    let mut object = "{".to_owned();
    for field in fields {
        if let Some(value) = rows.value(row, *field)? {
            object.push_str(if object.len() > 1 { ", " } else { "" });
            push_text(&mut object, field.name());
            object.push_str(": ");
            push_text(&mut object, &value);
        }
    }
    object.push('}');
    Ok(object)
}

/// Adds a text as JSON has it.
fn push_text(json: &mut String, text: &str) {
    // Nearly all are plain, and some hundred thousand of them in one answer.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\')) {
        json.extend(["\"", text, "\""]);
    } else {
        json.push_str(&json!(text).to_string());
    }
}
