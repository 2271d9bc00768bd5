//! Conditions ready to run: every literal resolved, every field known to be of the right type.
//!
//! Invariant: a test of a field of which nothing is known is false, and `not` turns that into true: `status != 404`
//! holds for a page that was never fetched. Only `= ""` asks for just that: a text of which nothing is known.

use std::borrow::Cow;
use std::ops::Bound;

use chrono::{DateTime, Utc};

use super::columns::Column;
use super::glob::Glob;
use super::rows::{PageType, RowsError};
use crate::ledger::host_name;

/// A condition ready to run.
#[derive(Clone, Debug)]
pub(crate) enum Filter {
    Any(Vec<Filter>),
    All(Vec<Filter>),
    Not(Box<Filter>),
    Known(Column),
    Number(Column, Ranges<f64>),
    Time(Column, Ranges<DateTime<Utc>>),
    Text(Column, TextTest),
    Type(Vec<PageType>),
    /// The page matches the full-text search of this index in the plan.
    Hit(usize),
}

/// Values between bounds; a value is in when any range has it.
#[derive(Clone, Debug)]
pub(crate) struct Ranges<T>(pub(crate) Vec<(Bound<T>, Bound<T>)>);

impl<T: PartialOrd> Ranges<T> {
    fn has(&self, value: &T) -> bool {
        self.0.iter().any(|range| std::ops::RangeBounds::contains(range, value))
    }
}

/// A test of a text.
#[derive(Clone, Debug)]
pub(crate) enum TextTest {
    /// One of these, in small letters where the field folds case.
    Is(Vec<String>),
    Between(Ranges<String>),
    Fits(Glob),
    /// All or any of these are somewhere in it.
    Contains {
        all: bool,
        texts: Vec<String>,
    },
}

/// A row as filters see it.
pub(crate) trait Subject {
    fn number(&self, column: Column) -> Result<Option<f64>, RowsError>;
    fn time(&self, column: Column) -> Option<DateTime<Utc>>;
    fn text(&self, column: Column) -> Result<Option<Cow<'_, str>>, RowsError>;
    fn kind(&self) -> Option<PageType>;
    fn hit(&self, search: usize) -> bool;
    fn known(&self, column: Column) -> Result<bool, RowsError>;
}

impl Filter {
    /// Whether the condition holds for a row.
    pub(crate) fn holds(&self, subject: &dyn Subject) -> Result<bool, RowsError> {
        Ok(match self {
            Self::All(parts) => {
                for part in parts {
                    if !part.holds(subject)? {
                        return Ok(false);
                    }
                }
                true
            }
            Self::Any(parts) => {
                for part in parts {
                    if part.holds(subject)? {
                        return Ok(true);
                    }
                }
                false
            }
            Self::Not(part) => !part.holds(subject)?,
            Self::Known(column) => subject.known(*column)?,
            Self::Number(column, ranges) => {
                subject.number(*column)?.is_some_and(|number| ranges.has(&number))
            }
            Self::Time(column, ranges) => subject.time(*column).is_some_and(|time| ranges.has(&time)),
            Self::Text(column, test) => match subject.text(*column)? {
                Some(text) => test.holds(&text, *column),
                // An empty text says as little as none.
                None => matches!(test, TextTest::Is(wanted) if wanted.iter().any(String::is_empty)),
            },
            Self::Type(asked) => subject.kind().is_some_and(|kind| asked.iter().any(|asked| kind.is(*asked))),
            Self::Hit(search) => subject.hit(*search),
        })
    }

    /// The parts of `and` and `or` with the cheap ones first: numbers before searches before texts.
    pub(crate) fn cheapest_first(mut self) -> Self {
        if let Self::Any(parts) | Self::All(parts) = &mut self {
            parts.sort_by_key(Self::cost);
        }
        self
    }

    fn cost(&self) -> u32 {
        match self {
            Self::Number(..) | Self::Time(..) | Self::Type(_) => 1,
            Self::Hit(_) => 2,
            Self::Known(_) | Self::Text(..) => 10,
            Self::Not(part) => part.cost(),
            Self::Any(parts) | Self::All(parts) => parts.iter().map(Self::cost).sum(),
        }
    }
}

impl TextTest {
    /// Whether it holds for a text of this column; that of a host with a port may also do without the port.
    fn holds(&self, text: &str, column: Column) -> bool {
        let folds_case = column.folds_case();
        self.holds_for(text, folds_case)
            || column == Column::Host && self.holds_for(host_name(text), folds_case)
    }

    fn holds_for(&self, text: &str, folds_case: bool) -> bool {
        if let Self::Fits(glob) = self {
            return glob.matches(text);
        }
        let text = folded(text, folds_case);
        match self {
            Self::Is(wanted) => wanted.iter().any(|wanted| *wanted == text),
            Self::Between(ranges) => ranges.has(&text.into_owned()),
            Self::Contains { all: true, texts } => texts.iter().all(|wanted| text.contains(wanted)),
            Self::Contains { all: false, texts } => texts.iter().any(|wanted| text.contains(wanted)),
            Self::Fits(glob) => glob.matches(&text),
        }
    }
}

/// The text as tests compare it.
pub(crate) fn folded(text: &str, folds_case: bool) -> Cow<'_, str> {
    if folds_case && text.chars().any(|c| !c.is_lowercase() && c.is_alphabetic()) {
        Cow::Owned(text.to_lowercase())
    } else {
        Cow::Borrowed(text)
    }
}
