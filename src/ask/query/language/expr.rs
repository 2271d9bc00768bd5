//! Expressions of a checked query: fields, values, functions and aggregates.

use archive_books::ledger::{authority, host_name};
use archive_grammar::ArithmeticSign;
use chrono::{Datelike, Local, TimeDelta};
use regex::Regex;

use crate::query::language::element_path::{Content, ElementPath};
use crate::query::language::error::Found;
use crate::query::language::fields::{Column, Cost, FieldPath};
use crate::query::language::filter::Filter;
use crate::query::language::times::{Instant, Period, Zone};
use crate::query::language::value::Value;

/// Largest whole number to convert from a float; larger ones are not all exact.
const WHOLE_MAX: f64 = 9.0e15;

/// An expression ready to run; the types of its parts match.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PlannedExpr {
    Value(Value),
    Field(FieldPath),
    /// A header of a capture's response, by lower-case name.
    Header(String),
    /// The probability that a page is about a topic, by its name.
    Topic(String),
    /// When a page first or last had a phrase.
    Said {
        phrase: String,
        is_last: bool,
    },
    /// The share of the text of the page at a URL that stands in this one.
    Shared(String),
    /// The texts of elements of an XML document.
    Elements(Box<ElementPath>),
    /// The text of an element or attribute, inside a condition on it.
    Content(Content),
    Call(Function, Box<PlannedExpr>),
    Arithmetic(Box<PlannedExpr>, ArithmeticSign, Box<PlannedExpr>),
    /// A group key, by its index in the plan.
    Key(usize),
    /// An aggregate, by its index in the plan.
    Aggregate(usize),
}

/// A function of one value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Function {
    Year(Zone),
    Month(Zone),
    Day(Zone),
    /// The period of the calendar that a time is in, as a text.
    Period(Period, Zone),
    Lower,
    Length,
    /// The label of a host with this number: from the right from 1 on, from the left from -1 on.
    Label(i32),
    /// What a pattern or its first group finds in a text.
    Part(Pattern),
}

/// A regular expression; compared as written.
#[derive(Clone, Debug)]
pub(crate) struct Pattern(pub(crate) Regex);

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

/// A row or group that expressions and filters are evaluated on. What it does not have is unknown.
pub(crate) trait Subject {
    fn field(&self, path: FieldPath) -> Found<Value> {
        let _ = path;
        Ok(Value::Empty)
    }

    fn header(&self, name: &str) -> Found<Value> {
        let _ = name;
        Ok(Value::Empty)
    }

    fn topic(&self, name: &str) -> Found<Value> {
        let _ = name;
        Ok(Value::Empty)
    }

    /// When the page first or last had a phrase.
    fn said(&self, phrase: &str, is_last: bool) -> Found<Value> {
        let _ = (phrase, is_last);
        Ok(Value::Empty)
    }

    fn shared(&self, url: &str) -> Found<Value> {
        let _ = url;
        Ok(Value::Empty)
    }

    /// Whether the plan's search with this index found the row.
    fn hit(&self, search: usize) -> bool {
        let _ = search;
        false
    }

    /// Whether the content changed within a period; the first version does not count.
    fn changed(&self, from: Option<Instant>, until: Option<Instant>) -> Found<bool> {
        let _ = (from, until);
        Ok(false)
    }

    fn key(&self, index: usize) -> Value {
        let _ = index;
        Value::Empty
    }

    fn aggregate(&self, index: usize) -> Value {
        let _ = index;
        Value::Empty
    }

    /// Whether a path selects a node for which the filter holds.
    fn some(&self, path: &ElementPath, filter: Option<&Filter>) -> Found<bool> {
        let _ = (path, filter);
        Ok(false)
    }

    /// The texts of all nodes that a path selects.
    fn elements(&self, path: &ElementPath) -> Found<Value> {
        let _ = path;
        Ok(Value::Empty)
    }

    /// The text of the element or attribute itself.
    fn content(&self, content: Content) -> Value {
        let _ = content;
        Value::Empty
    }
}

impl PlannedExpr {
    pub(crate) fn value(&self, subject: &dyn Subject) -> Found<Value> {
        Ok(match self {
            Self::Value(value) => value.clone(),
            Self::Field(path) => subject.field(*path)?,
            Self::Header(name) => subject.header(name)?,
            Self::Topic(name) => subject.topic(name)?,
            Self::Said { phrase, is_last } => subject.said(phrase, *is_last)?,
            Self::Shared(url) => subject.shared(url)?,
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

    /// The value, if it is the same for every row.
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
            // The related row is looked up first.
            Self::Field(path) if path.via.is_some() => path.column.cost().max(Cost::Look),
            Self::Field(path) => path.column.cost(),
            Self::Content(_) => Cost::Look,
            Self::Header(_) | Self::Topic(_) | Self::Said { .. } | Self::Shared(_) | Self::Elements(_) => {
                Cost::Record
            }
            Self::Call(_, argument) => argument.cost(),
            Self::Arithmetic(left, _, right) => left.cost().max(right.cost()),
        }
    }

    /// Whether the expression contains a leaf that `is_wanted` accepts.
    pub(crate) fn has(&self, is_wanted: fn(&Self) -> bool) -> bool {
        self.any(&mut |part| is_wanted(part))
    }

    /// Like `has`, with a closure; stops at the first match.
    pub(crate) fn any(&self, is_wanted: &mut dyn FnMut(&Self) -> bool) -> bool {
        match self {
            Self::Call(_, argument) => argument.any(is_wanted),
            Self::Arithmetic(left, _, right) => left.any(is_wanted) || right.any(is_wanted),
            other => is_wanted(other),
        }
    }

    /// The distinct fields that the expressions use; `None` if they use anything else, or no field.
    pub(crate) fn fields<'e>(mut exprs: impl Iterator<Item = &'e Self>) -> Option<Vec<FieldPath>> {
        let mut fields = Vec::new();
        let are_all = exprs.all(|expr| expr.add_fields(&mut fields));
        Some(fields).filter(|fields| are_all && !fields.is_empty())
    }

    fn add_fields(&self, fields: &mut Vec<FieldPath>) -> bool {
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

    /// The same expression with each field mapped.
    pub(crate) fn with_fields(&self, of: fn(FieldPath) -> FieldPath) -> Self {
        match self {
            Self::Field(path) => Self::Field(of(*path)),
            Self::Call(function, argument) => {
                Self::Call(function.clone(), Box::new(argument.with_fields(of)))
            }
            Self::Arithmetic(left, sign, right) => {
                Self::Arithmetic(Box::new(left.with_fields(of)), *sign, Box::new(right.with_fields(of)))
            }
            other => other.clone(),
        }
    }

    /// Whether the expression is the importance of the row or of a related row.
    pub(crate) fn is_importance(&self) -> bool {
        self.column() == Some(Column::Importance)
    }

    pub(crate) fn is_score(&self) -> bool {
        self.column() == Some(Column::Score)
    }

    /// Whether evaluating may need to read the records of a capture (or of a page's newest one) or to validate its
    /// document.
    pub(crate) fn is_read_ahead(&self) -> bool {
        match self {
            Self::Header(_) | Self::Said { .. } => true,
            Self::Field(FieldPath { via: None, column }) => {
                column.is_of_record() || *column == Column::Valid || column.is_of_payload()
            }
            _ => false,
        }
    }

    /// Whether evaluating needs whole payloads.
    pub(crate) fn is_of_payload(&self) -> bool {
        self.own_field().is_some_and(Column::is_of_payload)
    }

    /// The periods that the expression names.
    pub(crate) fn period(&self) -> Option<Period> {
        if let Self::Call(Function::Period(period, _), _) = self { Some(*period) } else { None }
    }

    /// The row's own field, if the expression is nothing else.
    pub(crate) fn own_field(&self) -> Option<Column> {
        self.path().filter(|path| path.via.is_none()).map(|path| path.column)
    }

    /// The field, if the expression is nothing else.
    pub(crate) fn path(&self) -> Option<FieldPath> {
        if let Self::Field(path) = self { Some(*path) } else { None }
    }

    /// The column, if the expression is a field.
    pub(crate) fn column(&self) -> Option<Column> {
        self.path().map(|path| path.column)
    }
}

impl Function {
    pub(crate) const NAMES: [(&'static str, &'static str); 10] = [
        ("year", "the year of a time"),
        ("month", "its month, 1 to 12"),
        ("day", "its day, 1 to 31"),
        ("date", "its day as a text, as in 2026-01-31"),
        ("by_day", "its day, by which series are made"),
        ("by_week", "its week by ISO 8601, as in 2026-W05"),
        ("by_month", "its month, as in 2026-01"),
        ("by_year", "its year, as a text"),
        ("lower", "a text in lower case"),
        ("length", "the characters of a text"),
    ];

    pub(crate) fn named(name: &str, zone: Zone) -> Option<Self> {
        if let Some((_, period)) = Period::EACH.iter().find(|(known, _)| *known == name) {
            return Some(Self::Period(*period, zone));
        }
        Some(match name {
            "year" => Self::Year(zone),
            "month" => Self::Month(zone),
            "day" => Self::Day(zone),
            "date" => Self::Period(Period::Day, zone),
            "lower" => Self::Lower,
            "length" => Self::Length,
            _ => return None,
        })
    }

    /// Applies the function; an unknown argument or one of the wrong type gives an unknown result.
    fn of(&self, value: &Value) -> Value {
        let date = |time: &Instant, zone: &Zone| match zone {
            Zone::Local => time.with_timezone(&Local).date_naive(),
            Zone::Utc => time.date_naive(),
        };
        match (self, value) {
            (Self::Year(zone), Value::Time(time)) => number(f64::from(date(time, zone).year())),
            (Self::Month(zone), Value::Time(time)) => Value::Integer(date(time, zone).month().into()),
            (Self::Day(zone), Value::Time(time)) => Value::Integer(date(time, zone).day().into()),
            (Self::Lower, Value::Text(text)) => Value::Text(text.to_lowercase()),
            (Self::Period(period, zone), Value::Time(time)) => Value::Text(period.of(date(time, zone))),
            (Self::Length, Value::Text(text)) => Value::Integer(text.chars().count() as u64),
            (Self::Label(number), Value::Text(host)) => label(host, *number).into(),
            (Self::Part(pattern), Value::Text(text)) => part(text, &pattern.0).into(),
            _ => Value::Empty,
        }
    }
}

/// A label of a host, or of the host of a URL, by its number; addresses have none.
fn label(host: &str, number: i32) -> Option<&str> {
    let host = host_name(if host.contains("://") { authority(host) } else { host });
    // The name of a site may have a path.
    let host = host.split('/').next()?;
    if host.starts_with('[') || host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    let place = usize::try_from(number.unsigned_abs()).ok()?.checked_sub(1)?;
    if number > 0 { host.rsplit('.').nth(place) } else { host.split('.').nth(place) }
}

/// What the first group of a pattern finds in a text, or all of a pattern without groups.
fn part<'t>(text: &'t str, pattern: &Regex) -> Option<&'t str> {
    if pattern.captures_len() == 1 {
        return pattern.find(text).map(|found| found.as_str());
    }
    let groups = pattern.captures(text)?;
    groups.iter().skip(1).flatten().next().map(|group| group.as_str())
}

/// The result of an arithmetic operation; unknown if an operand is unknown, or on division by zero. Durations are in
/// seconds.
fn calculated(left: &Value, sign: ArithmeticSign, right: &Value) -> Value {
    match (left, sign, right) {
        (Value::Time(left), ArithmeticSign::Minus, Value::Time(right)) => {
            number((*left - *right).as_seconds_f64())
        }
        (Value::Time(time), ArithmeticSign::Plus, span) | (span, ArithmeticSign::Plus, Value::Time(time)) => {
            later(*time, span, 1.0)
        }
        (Value::Time(time), ArithmeticSign::Minus, span) => later(*time, span, -1.0),
        _ => {
            let (Some(left), Some(right)) = (left.as_number(), right.as_number()) else {
                return Value::Empty;
            };
            number(match sign {
                ArithmeticSign::Plus => left + right,
                ArithmeticSign::Minus => left - right,
                ArithmeticSign::Times => left * right,
                ArithmeticSign::Over => left / right,
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

/// A whole non-negative number as an integer, any other as a float; unknown if infinite or NaN.
pub(crate) fn number(number: f64) -> Value {
    if number.fract() == 0.0 && (0.0..=WHOLE_MAX).contains(&number) {
        Value::Integer(number as u64)
    } else if number.is_finite() {
        Value::Number(number)
    } else {
        Value::Empty
    }
}

/// A row whose fields a function gives.
pub(crate) struct Given<F>(pub(crate) F);

impl<F: Fn(FieldPath) -> Value> Subject for Given<F> {
    fn field(&self, path: FieldPath) -> Found<Value> {
        Ok(self.0(path))
    }
}
