//! When an archive's pages were captured, for choosing a time to search it as of, and for a picture of its growth.

use archive_base::access::Access;
use archive_books::search::VERSIONS_FOLDER;
use archive_storage::{CaptureId, State, StateError, Store};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::parts::NO_TIME;
use crate::query::{self, Question, Value};

/// Maximum number of captures sampled.
const SAMPLED_MAX: u64 = 200;

/// Maximum number of times: months of three centuries.
const TIMES_MAX: u64 = 3600;

/// The first capture of each month, for which the query's rows are grouped in the server's time zone.
const MONTHS: &str =
    "capture select min(time), count group by year(time), month(time) order by min(time) asc";

/// Times of captures, each for a number of captures around it, earliest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureTimes {
    captures: u64,
    /// Microseconds since 1970.
    times: Vec<i64>,
    /// Number of captures for which each stands; empty if each stands for equally many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    counts: Vec<u64>,
}

impl CaptureTimes {
    /// Samples the captures of an archive evenly.
    ///
    /// # Errors
    /// When its captures cannot be read.
    pub fn of(state: &State) -> Result<Self, StateError> {
        if state.veil().is_some() {
            // Which numbers are shown is not known beforehand.
            let mut times = state.captures().map(|found| Ok(found?.1.time)).collect::<Result<Vec<_>, _>>()?;
            times.sort_unstable();
            let captures = times.len() as u64;
            let step = captures.div_ceil(SAMPLED_MAX).max(1) as usize;
            return Ok(Self {
                captures,
                times: times.into_iter().step_by(step).collect(),
                counts: Vec::new(),
            });
        }
        let captures = state.totals().captures;
        let points = SAMPLED_MAX.min(captures);
        let mut times = Vec::new();
        for point in 0..points {
            // Captures are not in order of time: imports append older ones.
            let id = u32::try_from(point * captures / points).unwrap_or(u32::MAX);
            times.push(state.capture(CaptureId(id))?.time);
        }
        times.sort_unstable();
        Ok(Self { captures, times, counts: Vec::new() })
    }

    /// Counts the captures of each month as of which an archive can be searched; none if its index has only the newest
    /// versions.
    ///
    /// # Errors
    /// When its captures cannot be read.
    pub fn searched(store: &Store, access: Access) -> Result<Option<Self>, query::Error> {
        if !store.path().join(VERSIONS_FOLDER).is_dir() {
            return Ok(None);
        }
        let mut found = Self::default();
        for row in Question::new(store, access, MONTHS, Utc::now())?.answer()?.rows {
            if let [Value::Time(first), Value::Integer(captures)] = row[..] {
                found.captures += captures;
                found.times.push(first.timestamp_micros());
                found.counts.push(captures);
            }
        }
        Ok(Some(found))
    }

    /// Returns the same, if an archive can have such times.
    ///
    /// # Errors
    /// A description of what is wrong.
    pub fn checked(self) -> Result<Self, &'static str> {
        if self.times.len() as u64 > TIMES_MAX.min(self.captures) {
            return Err("there are more times than were asked for");
        }
        if !self.counts.is_empty() && self.counts.len() != self.times.len() {
            return Err("there are not as many counts as times");
        }
        let are_times = self.times.iter().all(|time| DateTime::from_timestamp_micros(*time).is_some());
        if are_times { Ok(self) } else { Err(NO_TIME) }
    }

    /// Returns each time, with the number of captures that it represents.
    pub fn each(&self) -> impl Iterator<Item = (DateTime<Utc>, f64)> {
        let each = self.captures as f64 / self.times.len().max(1) as f64;
        let counts = self.counts.iter().map(|count| *count as f64).chain(std::iter::repeat(each));
        self.times
            .iter()
            .zip(counts)
            .filter_map(|(time, count)| Some((DateTime::from_timestamp_micros(*time)?, count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_no_archive_has_are_refused() {
        let times =
            |captures, times: Vec<i64>| CaptureTimes { captures, times, counts: Vec::new() }.checked();
        let most = TIMES_MAX as usize;
        assert!(times(0, vec![]).is_ok() && times(TIMES_MAX, vec![0; most]).is_ok());
        assert!(times(1, vec![0; 2]).is_err() && times(9999, vec![0; most + 1]).is_err());
        assert!(CaptureTimes { captures: 2, times: vec![0; 2], counts: vec![2] }.checked().is_err());
        assert!(times(1, vec![i64::MAX]).is_err());
    }
}
