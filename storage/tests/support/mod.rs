//! What the crash tests share: a time that stands still.

use chrono::{DateTime, TimeDelta, Utc};

pub(crate) fn now() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(20_000)
}
