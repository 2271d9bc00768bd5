//! Rows with the values of their fields, whether they are of an archive or came from several, and what is made of them.

use std::borrow::Cow;

use serde_json::json;

use super::field::Field;
use super::query::{Order, Output, Query};
use super::{ANSWER_MAX, Error, ROWS_MAX, Response, mistake};
use crate::replay::address::time_of;

/// Rows of one kind.
pub(super) trait Table {
    type Row;

    /// The value of a field, if there is one.
    fn value<'r>(&'r self, row: &'r Self::Row, field: Field) -> Result<Option<Cow<'r, str>>, Error>;

    /// When a row was captured, in seconds since 1970.
    fn second(&self, row: &Self::Row) -> i64;

    /// The line of a CDXJ file; `fields` of its object, but for the two that stand before it.
    fn cdxj(&self, row: &Self::Row, fields: Option<&[Field]>) -> Result<String, Error> {
        let fields = fields.unwrap_or(&Field::CDX).iter();
        let fields = fields.filter(|field| !matches!(field, Field::UrlKey | Field::Timestamp));
        let before = |field| Ok::<_, Error>(self.value(row, field)?.unwrap_or_default());
        let (key, time) = (before(Field::UrlKey)?, before(Field::Timestamp)?);
        Ok(format!("{key} {time} {}", object(self, row, fields)?))
    }
}

/// The values of a capture's `Field::CDX`, as an archive sends them to one that merges.
pub type Values = [Option<String>; Field::CDX.len()];

/// Rows that several archives sent.
pub(super) struct Sent;

impl Table for Sent {
    type Row = Values;

    fn value<'r>(&'r self, row: &'r Values, field: Field) -> Result<Option<Cow<'r, str>>, Error> {
        let place = Field::CDX.iter().position(|known| *known == field);
        Ok(place.and_then(|place| row[place].as_deref()).map(Cow::Borrowed))
    }

    fn second(&self, row: &Values) -> i64 {
        row[1].as_deref().map_or(0, |stamp| time_of(stamp).timestamp())
    }
}

/// The answer to a query from the rows that it means, which stand by key and time.
pub(super) fn answer<T: Table>(table: &T, query: &Query, found: Vec<T::Row>) -> Result<Response, Error> {
    if found.len() > ROWS_MAX {
        return Ok(mistake(&too_many()));
    }
    let kept = collapse(table, query, found)?;
    let kept = order(table, query, kept);
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
        line(table, query, row, &mut text)?;
    }
    let media_type = match query.output {
        Output::Json => "text/x-ndjson; charset=utf-8",
        Output::Cdxj => "text/x-cdxj; charset=utf-8",
        Output::Text => "text/plain; charset=utf-8",
    };
    Ok(Response::text(200, media_type, text))
}

/// Why there is no answer.
pub(super) fn too_many() -> String {
    format!("there are more than {ROWS_MAX} captures; ask for fewer with from, to or a longer prefix")
}

/// Only the first of neighbours that are alike.
fn collapse<T: Table>(table: &T, query: &Query, found: Vec<T::Row>) -> Result<Vec<T::Row>, Error> {
    if query.collapses.is_empty() {
        return Ok(found);
    }
    let (mut kept, mut last) = (Vec::new(), None);
    for row in found {
        let mut token = Vec::new();
        for (field, length) in &query.collapses {
            let value = table.value(&row, *field)?.unwrap_or_default();
            token.push(value.chars().take(*length).collect::<String>());
        }
        if last.as_ref() != Some(&token) {
            last = Some(token);
            kept.push(row);
        }
    }
    Ok(kept)
}

fn order<T: Table>(table: &T, query: &Query, mut rows: Vec<T::Row>) -> Vec<T::Row> {
    match query.order {
        Order::Key => {}
        Order::Reverse => rows.reverse(),
        // Stable: of two as near the older one first.
        Order::Closest(time) => rows.sort_by_cached_key(|row| (table.second(row) - time).abs()),
    }
    rows
}

/// One line of an answer.
fn line<T: Table>(table: &T, query: &Query, row: &T::Row, text: &mut String) -> Result<(), Error> {
    match query.output {
        Output::Text => {
            let fields = query.fields.as_deref().unwrap_or(&Field::CDX);
            let mut values = Vec::with_capacity(fields.len());
            for field in fields {
                values.push(table.value(row, *field)?.unwrap_or("-".into()));
            }
            text.push_str(&values.join(" "));
        }
        Output::Json => {
            text.push_str(&object(table, row, query.fields.as_deref().unwrap_or(&Field::CDX).iter())?);
        }
        Output::Cdxj => text.push_str(&table.cdxj(row, query.fields.as_deref())?),
    }
    text.push('\n');
    Ok(())
}

/// The fields of a row that there are, as a JSON object in their order.
fn object<'f, T: Table + ?Sized>(
    table: &T,
    row: &T::Row,
    fields: impl Iterator<Item = &'f Field>,
) -> Result<String, Error> {
    let mut object = "{".to_owned();
    for field in fields {
        if let Some(value) = table.value(row, *field)? {
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
