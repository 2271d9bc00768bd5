//! Calculations of a checked query: fields, values, functions, and what was gathered of a group.

use archive_grammar::Sign;
use chrono::{Datelike, Local, TimeDelta};

use super::Instant;
use super::columns::{Column, Cost, Path};
use super::elements::{Content, ElementPath};
use super::filter::Filter;
use super::rows::RowsError;
use super::times::Zone;
use super::value::Value;

/// Whole numbers above do not fit into a float one by one.
const WHOLE_MAX: f64 = 9.0e15;

/// A calculation ready to run; its parts are known to suit each other.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expr {
    Value(Value),
    Field(Path),
    /// A header of a capture's answer, by its name in small letters.
    Header(String),
    /// How probably a page is of a topic, by its name.
    Topic(String),
    /// The texts of elements of an XML document.
    Elements(Box<ElementPath>),
    /// The text of an element or attribute, in a condition on it.
    Content(Content),
    Call(Function, Box<Expr>),
    Arithmetic(Box<Expr>, Sign, Box<Expr>),
    /// What the rows of a group have in common, by its place in the plan.
    Key(usize),
    /// What was gathered of a group, by its place in the plan.
    Aggregate(usize),
}

/// A function of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Year(Zone),
    Month(Zone),
    Day(Zone),
    /// The day as in 2026-01-31.
    Date(Zone),
    Lower,
    Length,
}

/// A row, or a group of rows, as calculations and filters see it.
pub(crate) trait Subject {
    fn field(&self, path: Path) -> Result<Value, RowsError>;
    fn header(&self, name: &str) -> Result<Value, RowsError>;
    fn topic(&self, name: &str) -> Result<Value, RowsError>;
    /// Whether the search of the plan with this index found it.
    fn hit(&self, search: usize) -> bool;
    /// Whether its content changed in a time: never at its first version.
    fn changed(&self, from: Option<Instant>, until: Option<Instant>) -> Result<bool, RowsError>;
    fn key(&self, index: usize) -> Value;
    fn aggregate(&self, index: usize) -> Value;

    /// Whether a path leads to something of which a filter holds.
    fn some(&self, path: &ElementPath, filter: Option<&Filter>) -> Result<bool, RowsError> {
        let _ = (path, filter);
        Ok(false)
    }

    /// The texts of all that a path leads to.
    fn elements(&self, path: &ElementPath) -> Result<Value, RowsError> {
        let _ = path;
        Ok(Value::Empty)
    }

    /// Its text.
    fn content(&self, content: Content) -> Value {
        let _ = content;
        Value::Empty
    }
}

impl Expr {
    pub(crate) fn value(&self, subject: &dyn Subject) -> Result<Value, RowsError> {
        Ok(match self {
            Self::Value(value) => value.clone(),
            Self::Field(path) => subject.field(*path)?,
            Self::Header(name) => subject.header(name)?,
            Self::Topic(name) => subject.topic(name)?,
            Self::Elements(path) => subject.elements(path)?,
            Self::Content(content) => subject.content(*content),
            Self::Call(function, argument) => function.of(&argument.value(subject)?),
            Self::Arithmetic(left, sign, right) => {
                calculated(&left.value(subject)?, *sign, &right.value(subject)?)
            }
            Self::Key(index) => subject.key(*index),
            Self::Aggregate(index) => subject.aggregate(*index),
        })
    }

    /// Its value if it is the same for every row.
    pub(crate) fn constant(&self) -> Option<Value> {
        Some(match self {
            Self::Value(value) => value.clone(),
            Self::Call(function, argument) => function.of(&argument.constant()?),
            Self::Arithmetic(left, sign, right) => calculated(&left.constant()?, *sign, &right.constant()?),
            _ => return None,
        })
    }

    pub(crate) fn cost(&self) -> Cost {
        match self {
            Self::Value(_) | Self::Key(_) | Self::Aggregate(_) => Cost::Row,
            // The other row is looked up first.
            Self::Field(path) if path.via.is_some() => path.column.cost().max(Cost::Look),
            Self::Field(path) => path.column.cost(),
            Self::Content(_) => Cost::Look,
            Self::Header(_) | Self::Topic(_) | Self::Elements(_) => Cost::Record,
            Self::Call(_, argument) => argument.cost(),
            Self::Arithmetic(left, _, right) => left.cost().max(right.cost()),
        }
    }

    /// Whether it is such a field, value or the like, or is calculated from one.
    pub(super) fn has(&self, is_wanted: fn(&Self) -> bool) -> bool {
        self.any(&mut |part| is_wanted(part))
    }

    /// Whether a function says so of a field, value or the like from which it is calculated; the first ends the search.
    pub(super) fn any(&self, is_wanted: &mut dyn FnMut(&Self) -> bool) -> bool {
        match self {
            Self::Call(_, argument) => argument.any(is_wanted),
            Self::Arithmetic(left, _, right) => left.any(is_wanted) || right.any(is_wanted),
            other => is_wanted(other),
        }
    }

    /// The fields from which some are calculated, each once; none if they need something else, or no field.
    pub(super) fn fields<'e>(mut exprs: impl Iterator<Item = &'e Self>) -> Option<Vec<Path>> {
        let mut fields = Vec::new();
        let are_all = exprs.all(|expr| expr.add_fields(&mut fields));
        Some(fields).filter(|fields| are_all && !fields.is_empty())
    }

    fn add_fields(&self, fields: &mut Vec<Path>) -> bool {
        match self {
            Self::Value(_) => {}
            Self::Field(path) if fields.contains(path) => {}
            Self::Field(path) => fields.push(*path),
            Self::Call(_, argument) => return argument.add_fields(fields),
            Self::Arithmetic(left, _, right) => return left.add_fields(fields) && right.add_fields(fields),
            _ => return false,
        }
        true
    }

    /// The same calculation with other fields.
    pub(super) fn with_fields(&self, of: fn(Path) -> Path) -> Self {
        match self {
            Self::Field(path) => Self::Field(of(*path)),
            Self::Call(function, argument) => Self::Call(*function, Box::new(argument.with_fields(of))),
            Self::Arithmetic(left, sign, right) => {
                Self::Arithmetic(Box::new(left.with_fields(of)), *sign, Box::new(right.with_fields(of)))
            }
            other => other.clone(),
        }
    }

    /// Whether it is the importance of a row, its own or that of another one.
    pub(super) fn is_importance(&self) -> bool {
        self.column() == Some(Column::Importance)
    }

    pub(super) fn is_score(&self) -> bool {
        self.column() == Some(Column::Score)
    }

    /// Whether the records of a capture, or of a page's newest one, may have to be read for it, or its document checked.
    pub(super) fn is_read_ahead(&self) -> bool {
        match self {
            Self::Header(_) => true,
            Self::Field(path) => {
                path.via.is_none() && (path.column.is_of_record() || path.column == Column::Valid)
            }
            _ => false,
        }
    }

    /// The column of a plain field.
    pub(crate) fn column(&self) -> Option<Column> {
        if let Self::Field(path) = self { Some(path.column) } else { None }
    }
}

impl Function {
    pub(crate) const NAMES: [(&'static str, &'static str); 6] = [
        ("year", "the year of a time"),
        ("month", "its month, 1 to 12"),
        ("day", "its day, 1 to 31"),
        ("date", "its day as a text, as in 2026-01-31"),
        ("lower", "a text in small letters"),
        ("length", "the characters of a text"),
    ];

    pub(crate) fn named(name: &str, zone: Zone) -> Option<Self> {
        Some(match name {
            "year" => Self::Year(zone),
            "month" => Self::Month(zone),
            "day" => Self::Day(zone),
            "date" => Self::Date(zone),
            "lower" => Self::Lower,
            "length" => Self::Length,
            _ => return None,
        })
    }

    /// A field of an unknown row is unknown.
    fn of(self, value: &Value) -> Value {
        let date = |time: &Instant, zone| match zone {
            Zone::Local => time.with_timezone(&Local).date_naive(),
            Zone::Utc => time.date_naive(),
        };
        match (self, value) {
            (Self::Year(zone), Value::Time(time)) => number(f64::from(date(time, zone).year())),
            (Self::Month(zone), Value::Time(time)) => Value::Integer(date(time, zone).month().into()),
            (Self::Day(zone), Value::Time(time)) => Value::Integer(date(time, zone).day().into()),
            (Self::Date(zone), Value::Time(time)) => Value::Text(date(time, zone).to_string()),
            (Self::Lower, Value::Text(text)) => Value::Text(text.to_lowercase()),
            (Self::Length, Value::Text(text)) => Value::Integer(text.chars().count() as u64),
            _ => Value::Empty,
        }
    }
}

/// The result of a calculation; unknown if an operand is unknown, and when dividing by zero. Spans of time are seconds.
fn calculated(left: &Value, sign: Sign, right: &Value) -> Value {
    match (left, sign, right) {
        (Value::Time(left), Sign::Minus, Value::Time(right)) => number((*left - *right).as_seconds_f64()),
        (Value::Time(time), Sign::Plus, span) | (span, Sign::Plus, Value::Time(time)) => {
            later(*time, span, 1.0)
        }
        (Value::Time(time), Sign::Minus, span) => later(*time, span, -1.0),
        _ => {
            let (Some(left), Some(right)) = (left.as_number(), right.as_number()) else {
                return Value::Empty;
            };
            number(match sign {
                Sign::Plus => left + right,
                Sign::Minus => left - right,
                Sign::Times => left * right,
                Sign::Over => left / right,
            })
        }
    }
}

fn later(time: Instant, span: &Value, sign: f64) -> Value {
    let moved = span.as_number().and_then(|seconds| {
        let span = TimeDelta::try_milliseconds((sign * seconds * 1000.0).clamp(-1e17, 1e17) as i64)?;
        time.checked_add_signed(span)
    });
    moved.map_or(Value::Empty, Value::Time)
}

/// A whole number as an integer, any other as a float.
pub(crate) fn number(number: f64) -> Value {
    if number.fract() == 0.0 && (0.0..=WHOLE_MAX).contains(&number) {
        Value::Integer(number as u64)
    } else if number.is_finite() {
        Value::Number(number)
    } else {
        Value::Empty
    }
}
