//! Rows with the values of their fields, from one archive or merged from several, and how they are answered.

use std::borrow::Cow;

use archive_storage::address::method_of;
use serde_json::json;

use super::field::CdxField;
use super::query::{CdxOrder, CdxOutput, CdxQuery};
use super::{ANSWER_MAX, ROWS_MAX, ReplayError, Response, mistake};
use crate::address::time_of;

/// Rows from one kind of source.
pub(super) trait CdxSource {
    type Row;

    /// The value of a field, if it has one.
    fn value<'r>(&'r self, row: &'r Self::Row, field: CdxField) -> Result<Option<Cow<'r, str>>, ReplayError>;

    /// Capture time of a row, in seconds since 1970.
    fn second(&self, row: &Self::Row) -> i64;

    /// The row as a CDXJ line; `fields` selects the members of its JSON object, besides the two leading fields.
    fn cdxj(&self, row: &Self::Row, fields: Option<&[CdxField]>) -> Result<String, ReplayError> {
        let fields = fields.unwrap_or(&CdxField::JSON).iter();
        let fields = fields.filter(|field| !matches!(field, CdxField::UrlKey | CdxField::Timestamp));
        let before = |field| Ok::<_, ReplayError>(self.value(row, field)?.unwrap_or_default());
        let (key, time) = (before(CdxField::UrlKey)?, before(CdxField::Timestamp)?);
        Ok(format!("{key} {time} {}", object(self, row, fields)?))
    }
}

/// The values of a capture's `Field::CDX`, as an archive sends them to be merged.
pub type Values = [Option<String>; CdxField::CDX.len()];

/// Rows sent by several archives.
pub(super) struct SentRows;

impl CdxSource for SentRows {
    type Row = Values;

    fn value<'r>(&'r self, row: &'r Values, field: CdxField) -> Result<Option<Cow<'r, str>>, ReplayError> {
        if field == CdxField::Method {
            return Ok(row[0].as_deref().and_then(method_in));
        }
        let place = CdxField::CDX.iter().position(|known| *known == field);
        Ok(place.and_then(|place| row[place].as_deref()).map(Cow::Borrowed))
    }

    fn second(&self, row: &Values) -> i64 {
        row[1].as_deref().map_or(0, |stamp| time_of(stamp).timestamp())
    }
}

/// The method that the key of a capture names.
pub(super) fn method_in(key: &str) -> Option<Cow<'static, str>> {
    Some(method_of(key)?.to_ascii_uppercase().into())
}

/// Answers a query from its rows, which are sorted by key and time.
pub(super) fn answer<T: CdxSource>(
    table: &T,
    query: &CdxQuery,
    found: Vec<T::Row>,
) -> Result<Response, ReplayError> {
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
        CdxOutput::Json => "text/x-ndjson; charset=utf-8",
        CdxOutput::Cdxj => "text/x-cdxj; charset=utf-8",
        CdxOutput::Text => "text/plain; charset=utf-8",
    };
    Ok(Response::text(200, media_type, text))
}

/// Error message for a query that selects too many captures.
pub(super) fn too_many() -> String {
    format!("there are more than {ROWS_MAX} captures; ask for fewer with from, to or a longer prefix")
}

/// Keeps only the first of consecutive rows with equal values.
fn collapse<T: CdxSource>(
    table: &T,
    query: &CdxQuery,
    found: Vec<T::Row>,
) -> Result<Vec<T::Row>, ReplayError> {
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

fn order<T: CdxSource>(table: &T, query: &CdxQuery, mut rows: Vec<T::Row>) -> Vec<T::Row> {
    match query.order {
        CdxOrder::Key => {}
        CdxOrder::Reverse => rows.reverse(),
        // The sort is stable: of two at the same distance, the older one comes first.
        CdxOrder::Closest(time) => rows.sort_by_cached_key(|row| (table.second(row) - time).abs()),
    }
    rows
}

/// Writes one line of an answer.
fn line<T: CdxSource>(
    table: &T,
    query: &CdxQuery,
    row: &T::Row,
    text: &mut String,
) -> Result<(), ReplayError> {
    match query.output {
        CdxOutput::Text => {
            let fields = query.fields.as_deref().unwrap_or(&CdxField::CDX);
            let mut values = Vec::with_capacity(fields.len());
            for field in fields {
                values.push(table.value(row, *field)?.unwrap_or("-".into()));
            }
            text.push_str(&values.join(" "));
        }
        CdxOutput::Json => {
            text.push_str(&object(table, row, query.fields.as_deref().unwrap_or(&CdxField::JSON).iter())?);
        }
        CdxOutput::Cdxj => text.push_str(&table.cdxj(row, query.fields.as_deref())?),
    }
    text.push('\n');
    Ok(())
}

/// Formats the fields of a row that have values as a JSON object, in their order.
fn object<'f, T: CdxSource + ?Sized>(
    table: &T,
    row: &T::Row,
    fields: impl Iterator<Item = &'f CdxField>,
) -> Result<String, ReplayError> {
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

/// Appends a text as a JSON string.
fn push_text(json: &mut String, text: &str) {
    // Fast path: nearly all texts are plain, and an answer has several hundred thousand of them.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\')) {
        json.extend(["\"", text, "\""]);
    } else {
        json.push_str(&json!(text).to_string());
    }
}
