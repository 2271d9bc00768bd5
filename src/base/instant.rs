//! Times in files: RFC 3339 in UTC, with the microsecond precision of captures.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize as _, Deserializer, Serializer, de};

/// Writes a time.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(time: &DateTime<Utc>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&time.to_rfc3339_opts(SecondsFormat::Micros, true))
}

/// Reads a time.
///
/// # Errors
/// When the text is no time of RFC 3339.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DateTime<Utc>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let time = DateTime::parse_from_rfc3339(&text).map_err(de::Error::custom)?;
    Ok(time.with_timezone(&Utc))
}
