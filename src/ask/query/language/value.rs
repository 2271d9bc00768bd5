//! The values in the cells of an answer.

use std::cmp::Ordering;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Serialize, Serializer};

/// A value of one field of one row.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Unknown.
    Empty,
    /// A count.
    Integer(u64),
    /// A finite number.
    Number(f64),
    /// Text.
    Text(String),
    /// A point in time.
    Time(DateTime<Utc>),
}

impl Value {
    /// Compares two values of one column, smallest first; texts ignore case. Empty values are not handled here: they
    /// come last in either direction.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Text(left), Self::Text(right)) => by_texts(left, right),
            (Self::Time(left), Self::Time(right)) => left.cmp(right),
            (Self::Integer(left), Self::Integer(right)) => left.cmp(right),
            (left, right) => {
                let number = |value: &Self| value.as_number().unwrap_or_default();
                // Answers from other machines may mix types, and still need an order.
                let sort = |value: &Self| (matches!(value, Self::Text(_)), matches!(value, Self::Time(_)));
                sort(left).cmp(&sort(right)).then_with(|| number(left).total_cmp(&number(right)))
            }
        }
    }

    /// The value as a number, if it is one.
    #[must_use]
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Self::Integer(count) => Some(*count as f64),
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Bytes of memory used.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + if let Self::Text(text) = self { text.len() } else { 0 }
    }

    /// Whether the value is known; an empty text counts as unknown.
    pub(crate) fn is_known(&self) -> bool {
        match self {
            Self::Empty => false,
            Self::Text(text) => !text.is_empty(),
            _ => true,
        }
    }

    /// Appends bytes that identify the value: equal for equal values only. Used as group keys.
    pub(crate) fn push_key(&self, key: &mut Vec<u8>) {
        match self {
            Self::Empty => key.push(0),
            Self::Integer(_) | Self::Number(_) => {
                key.push(1);
                key.extend(self.as_number().unwrap_or_default().to_bits().to_le_bytes());
            }
            Self::Text(text) => {
                key.push(2);
                key.extend((text.len() as u64).to_le_bytes());
                key.extend(text.as_bytes());
            }
            Self::Time(time) => {
                key.push(3);
                key.extend(time.timestamp_micros().to_le_bytes());
            }
        }
    }
}

/// Compares two texts, ignoring case first.
pub(crate) fn by_texts(left: &str, right: &str) -> Ordering {
    by_letters(left, right).then_with(|| left.cmp(right))
}

/// Compares two texts ignoring case; the first letters mostly decide.
fn by_letters(left: &str, right: &str) -> Ordering {
    if left.is_ascii() && right.is_ascii() {
        let right = right.bytes().map(|letter| letter.to_ascii_lowercase());
        left.bytes().map(|letter| letter.to_ascii_lowercase()).cmp(right)
    } else {
        left.chars().flat_map(char::to_lowercase).cmp(right.chars().flat_map(char::to_lowercase))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        if text.is_empty() { Self::Empty } else { Self::Text(text) }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Integer(count)
    }
}

impl From<u32> for Value {
    fn from(count: u32) -> Self {
        Self::Integer(count.into())
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        if number.is_finite() { Self::Number(number) } else { Self::Empty }
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

/// Serialized as data: unknown values are null, times are RFC 3339 in UTC with whole seconds.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Value;

    proptest! {
        #[test]
        fn texts_are_ordered_by_their_letters(left in "[a-cA-CäÄßİ. ]{0,4}", right in "[a-cA-CäÄßİ. ]{0,4}") {
            let expected = (left.to_lowercase(), &left).cmp(&(right.to_lowercase(), &right));
            prop_assert_eq!(Value::Text(left.clone()).compare(&Value::Text(right.clone())), expected);
        }
    }
}
