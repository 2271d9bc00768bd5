//! What a cell of the answer holds.

use std::cmp::Ordering;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Serialize, Serializer};

/// A value of one field of one row.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing is known.
    Empty,
    /// A count.
    Integer(u64),
    /// A finite number.
    Number(f64),
    /// Text.
    Text(String),
    /// An instant.
    Time(DateTime<Utc>),
}

impl Value {
    /// The order of two values of one column, smallest first; texts by their letters, large and small alike. Empty
    /// values are not ordered here: they come last in every order.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Text(left), Self::Text(right)) => {
                let lower = |text: &str| text.chars().flat_map(char::to_lowercase).collect::<String>();
                lower(left).cmp(&lower(right)).then_with(|| left.cmp(right))
            }
            (Self::Time(left), Self::Time(right)) => left.cmp(right),
            (Self::Integer(left), Self::Integer(right)) => left.cmp(right),
            (left, right) => left.as_number().total_cmp(&right.as_number()),
        }
    }

    fn as_number(&self) -> f64 {
        match self {
            Self::Integer(count) => *count as f64,
            Self::Number(number) => *number,
            _ => 0.0,
        }
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Empty, Into::into)
    }
}

impl From<DateTime<Utc>> for Value {
    fn from(time: DateTime<Utc>) -> Self {
        Self::Time(time)
    }
}

/// The form for data: empty is null, times are RFC 3339 in UTC to the second.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Empty => serializer.serialize_none(),
            Self::Integer(count) => serializer.serialize_u64(*count),
            Self::Number(number) => serializer.serialize_f64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Time(time) => serializer.serialize_str(&time.to_rfc3339_opts(SecondsFormat::Secs, true)),
        }
    }
}
