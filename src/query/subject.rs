//! Rows as filters and columns see them.

use std::borrow::Cow;

use chrono::{DateTime, Utc};

use super::columns::{Column, ColumnKind};
use super::filter::Subject;
use super::rows::{PageRow, PageType, Rows, RowsError, SiteRow};
use super::value::Value;

/// A page, with what the searches of the plan found of it.
pub(crate) struct PageSubject<'a> {
    pub(crate) rows: &'a dyn Rows,
    pub(crate) row: PageRow,
    pub(crate) score: f64,
    /// For each search of the plan, whether it found this page.
    pub(crate) hits: &'a dyn Fn(usize) -> bool,
}

/// A site.
pub(crate) struct SiteSubject<'a> {
    pub(crate) rows: &'a dyn Rows,
    pub(crate) row: SiteRow,
}

impl Subject for PageSubject<'_> {
    fn number(&self, column: Column) -> Result<Option<f64>, RowsError> {
        Ok(match column {
            Column::Importance => Some(self.row.importance),
            Column::Score => Some(self.score),
            Column::Status => self.row.status.map(f64::from),
            Column::Captures => Some(f64::from(self.row.captures)),
            Column::Captured => Some(f64::from(u8::from(self.row.captures > 0))),
            Column::Versions => Some(f64::from(self.row.versions)),
            Column::Depth => self.row.depth.map(f64::from),
            Column::Named(index) => self.rows.page_number(self.row.id, index)?,
            _ => None,
        })
    }

    fn time(&self, column: Column) -> Option<DateTime<Utc>> {
        match column {
            Column::FirstSeen => self.row.first_seen,
            Column::LastSeen => self.row.last_seen,
            Column::Changed => self.row.changed,
            _ => None,
        }
    }

    fn text(&self, column: Column) -> Result<Option<Cow<'_, str>>, RowsError> {
        match column.page_text() {
            Some(text) => self.rows.text(&self.row, text),
            None => Ok(None),
        }
    }

    fn kind(&self) -> Option<PageType> {
        self.row.kind
    }

    fn hit(&self, search: usize) -> bool {
        (self.hits)(search)
    }

    fn known(&self, column: Column) -> Result<bool, RowsError> {
        known(self, column)
    }
}

impl Subject for SiteSubject<'_> {
    fn number(&self, column: Column) -> Result<Option<f64>, RowsError> {
        Ok(match column {
            Column::Importance => Some(self.row.importance),
            Column::Pages => Some(self.row.pages as f64),
            Column::Captures => Some(self.row.captures as f64),
            Column::Captured => Some(f64::from(u8::from(self.row.captures > 0))),
            Column::Html => Some(self.row.html as f64),
            Column::Xml => Some(self.row.xml as f64),
            Column::Other => Some(self.row.other() as f64),
            Column::Named(index) => self.rows.site_number(self.row.id, index)?,
            _ => None,
        })
    }

    fn time(&self, column: Column) -> Option<DateTime<Utc>> {
        match column {
            Column::FirstSeen => self.row.first_seen,
            Column::LastSeen => self.row.last_seen,
            _ => None,
        }
    }

    fn text(&self, column: Column) -> Result<Option<Cow<'_, str>>, RowsError> {
        Ok((column == Column::Site).then_some(Cow::Borrowed(self.row.name.as_str())))
    }

    fn kind(&self) -> Option<PageType> {
        None
    }

    fn hit(&self, _search: usize) -> bool {
        false
    }

    fn known(&self, column: Column) -> Result<bool, RowsError> {
        known(self, column)
    }
}

/// An empty text says as little as none.
fn known(subject: &dyn Subject, column: Column) -> Result<bool, RowsError> {
    Ok(match column.kind() {
        ColumnKind::Number => subject.number(column)?.is_some(),
        ColumnKind::Time => subject.time(column).is_some(),
        ColumnKind::Text => subject.text(column)?.is_some_and(|text| !text.is_empty()),
        ColumnKind::Type => subject.kind().is_some(),
    })
}

/// The value of a row's field.
pub(crate) fn value(subject: &dyn Subject, column: Column) -> Result<Value, RowsError> {
    Ok(match column.kind() {
        ColumnKind::Number if counts(column) => match subject.number(column)? {
            Some(number) => Value::Integer(number as u64),
            None => Value::Empty,
        },
        ColumnKind::Number => match subject.number(column)? {
            Some(number) if number.is_finite() => Value::Number(number),
            _ => Value::Empty,
        },
        ColumnKind::Time => subject.time(column).into(),
        ColumnKind::Text => match subject.text(column)? {
            Some(text) if !text.is_empty() => Value::Text(text.into_owned()),
            _ => Value::Empty,
        },
        ColumnKind::Type => subject.kind().map_or(Value::Empty, |kind| Value::Text(kind.name().to_owned())),
    })
}

/// Whether a number is a whole one.
fn counts(column: Column) -> bool {
    !matches!(column, Column::Importance | Column::Score | Column::Named(_))
}
