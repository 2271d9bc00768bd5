//! Values and aggregates in the form that archives send to each other.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use chrono::DateTime;
use serde::{Deserialize, Serialize};

use crate::query::language::{Aggregate, Gather, Value};
use crate::query::run::Gathered;

/// Maximum number of bytes of the values of `count(distinct …)` or `median` in one portion.
const PORTION_BYTES: usize = 1 << 20;

/// Larger whole numbers are refused: floats represent all of them exactly up to here.
const INTEGER_MAX: u64 = 1 << 53;

/// A value in the form that is sent, without loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Sent {
    /// Unknown.
    #[serde(rename = "e")]
    Empty,
    /// A count.
    #[serde(rename = "i")]
    Integer(u64),
    /// The bits of a finite number.
    #[serde(rename = "f")]
    Number(u64),
    /// Text.
    #[serde(rename = "t")]
    Text(String),
    /// Seconds since 1970, and nanoseconds.
    #[serde(rename = "d")]
    Time(i64, u32),
}

/// The state of an aggregate in the form that is sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Partial {
    Count(u64),
    /// The keys of distinct values, in Base64.
    Distinct(Vec<String>),
    /// The bits of a sum, and the number of its values.
    Sum(u64, u64),
    Best(Sent),
    /// Bits of numbers.
    All(Vec<u64>),
}

impl From<&Value> for Sent {
    fn from(value: &Value) -> Self {
        match value {
            Value::Empty => Self::Empty,
            Value::Integer(count) => Self::Integer(*count),
            Value::Number(number) => Self::Number(number.to_bits()),
            Value::Text(text) => Self::Text(text.clone()),
            Value::Time(time) => Self::Time(time.timestamp(), time.timestamp_subsec_nanos()),
        }
    }
}

impl Sent {
    /// Converts it back to a value.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn value(self) -> Result<Value, &'static str> {
        Ok(match self {
            Self::Empty => Value::Empty,
            Self::Integer(count) => Value::Integer(whole(count)?),
            Self::Number(bits) => Value::Number(finite(bits)?),
            Self::Text(text) => Value::Text(text),
            Self::Time(seconds, nanos) => {
                Value::Time(DateTime::from_timestamp(seconds, nanos).ok_or("a timestamp is out of range")?)
            }
        })
    }
}

fn whole(count: u64) -> Result<u64, &'static str> {
    if count <= INTEGER_MAX { Ok(count) } else { Err("a number is larger than any of an archive") }
}

fn finite(bits: u64) -> Result<f64, &'static str> {
    Some(f64::from_bits(bits)).filter(|number| number.is_finite()).ok_or("a number is not finite")
}

impl From<Gathered> for Partial {
    fn from(gathered: Gathered) -> Self {
        match gathered {
            Gathered::Count(count) => Self::Count(count),
            Gathered::Distinct(values) => {
                Self::Distinct(values.into_iter().map(|key| BASE64_STANDARD.encode(key)).collect())
            }
            Gathered::Sum { sum, low, count } => Self::Sum((sum + low).to_bits(), count),
            Gathered::Best(value) => Self::Best(Sent::from(&value)),
            Gathered::All(values) => Self::All(values.into_iter().map(f64::to_bits).collect()),
        }
    }
}

impl Partial {
    /// Removes and returns as much as fits into one portion.
    pub(crate) fn piece(&mut self) -> Self {
        match self {
            Self::Count(count) => Self::Count(std::mem::take(count)),
            Self::Sum(sum, count) => Self::Sum(std::mem::take(sum), std::mem::take(count)),
            Self::Best(best) => Self::Best(std::mem::replace(best, Sent::Empty)),
            Self::Distinct(values) => {
                let mut bytes = 0;
                let longer = values.iter().rev().take_while(|value| {
                    bytes += value.len();
                    bytes <= PORTION_BYTES
                });
                // At least one value, however long it is.
                Self::Distinct(values.split_off(values.len().saturating_sub(longer.count().max(1))))
            }
            Self::All(values) => {
                Self::All(values.split_off(values.len().saturating_sub(PORTION_BYTES / size_of::<u64>())))
            }
        }
    }

    /// Whether everything was removed.
    pub(crate) fn is_sent(&self) -> bool {
        match self {
            Self::Distinct(values) => values.is_empty(),
            Self::All(values) => values.is_empty(),
            _ => true,
        }
    }

    /// Converts it back to an aggregate's state, if it fits the aggregate.
    pub(crate) fn of(self, aggregate: &Aggregate) -> Result<Gathered, &'static str> {
        Ok(match (self, aggregate.gather) {
            (Self::Count(count), Gather::Count | Gather::Known) => Gathered::Count(whole(count)?),
            (Self::Distinct(values), Gather::Distinct) => {
                let keys = values.iter().map(|value| BASE64_STANDARD.decode(value)).collect::<Result<_, _>>();
                Gathered::Distinct(keys.map_err(|_| "a value is not in Base64")?)
            }
            (Self::Sum(sum, count), Gather::Sum | Gather::Avg) => {
                Gathered::Sum { sum: finite(sum)?, low: 0.0, count: whole(count)? }
            }
            (Self::Best(best), Gather::Min | Gather::Max) => Gathered::Best(best.value()?),
            (Self::All(values), Gather::Median) => {
                Gathered::All(values.into_iter().map(finite).collect::<Result<_, _>>()?)
            }
            _ => return Err("a group has other numbers than were asked for"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(portions: &str) -> Result<Value, &'static str> {
        serde_json::from_str::<Sent>(portions).map_err(|_| "no value").and_then(Sent::value)
    }

    #[test]
    fn values_are_sent_without_loss_up_to_their_limits() {
        for value in [
            Value::Empty,
            Value::Integer(INTEGER_MAX),
            Value::Number(0.1 + 0.2),
            Value::Number(-f64::MIN_POSITIVE),
            Value::Text("\u{1b}\n\"é".to_owned()),
            Value::Time(DateTime::from_timestamp(-1, 999_999_999).unwrap()),
        ] {
            assert_eq!(sent(&serde_json::to_string(&Sent::from(&value)).unwrap()), Ok(value));
        }
        assert!(sent(&format!("{{\"i\":{}}}", INTEGER_MAX + 1)).unwrap_err().contains("larger"));
        assert!(sent(&format!("{{\"f\":{}}}", f64::NAN.to_bits())).unwrap_err().contains("not finite"));
        assert!(sent("{\"d\":[9223372036854775807,0]}").unwrap_err().contains("out of range"));
        for wrong in ["{\"i\":-1}", "{\"i\":18446744073709551616}", "{\"x\":1}", "5", "{\"d\":[1]}"] {
            assert_eq!(sent(wrong), Err("no value"), "{wrong}");
        }
    }

    #[test]
    fn large_groups_come_in_pieces_and_each_piece_has_something() {
        let long = "x".repeat(PORTION_BYTES + 1);
        let mut distinct = Partial::Distinct(vec![long.clone(), "a".to_owned(), long]);
        let mut pieces = 0;
        while !distinct.is_sent() {
            let Partial::Distinct(piece) = distinct.piece() else { panic!("it is the same sort") };
            assert!(!piece.is_empty());
            pieces += 1;
        }
        assert_eq!(pieces, 3);
        let mut all = Partial::All(vec![1; 2 * PORTION_BYTES / 8 + 1]);
        let lengths = std::iter::from_fn(|| match all.piece() {
            Partial::All(piece) if !piece.is_empty() => Some(piece.len()),
            _ => None,
        });
        assert_eq!(lengths.collect::<Vec<_>>(), [PORTION_BYTES / 8, PORTION_BYTES / 8, 1]);
    }
}
