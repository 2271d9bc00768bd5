//! When an archive's pages were captured, for choosing a time to search it as of.

use archive_storage::{CaptureId, State, StateError, Store};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::parts::NO_TIME;
use crate::search::VERSIONS_FOLDER;

/// Maximum number of captures sampled.
const TIMES_MAX: u64 = 200;

/// Times of captures spread evenly over all of an archive's captures, earliest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Times {
    captures: u64,
    /// Microseconds since 1970.
    times: Vec<i64>,
}

impl Times {
    /// Samples the captures of an archive.
    ///
    /// # Errors
    /// When its captures cannot be read.
    pub fn of(state: &State) -> Result<Self, StateError> {
        let captures = state.totals().captures;
        let points = TIMES_MAX.min(captures);
        let mut times = Vec::new();
        for point in 0..points {
            // Captures are not in order of time: imports append older ones.
            let id = u32::try_from(point * captures / points).unwrap_or(u32::MAX);
            times.push(state.capture(CaptureId(id))?.time);
        }
        times.sort_unstable();
        Ok(Self { captures, times })
    }

    /// Samples the times as of which an archive can be searched; none if its index has only the newest versions.
    ///
    /// # Errors
    /// As [`Times::of`].
    pub fn searched(store: &Store) -> Result<Option<Self>, StateError> {
        let has_versions = store.path().join(VERSIONS_FOLDER).is_dir();
        has_versions.then(|| Self::of(store.state())).transpose()
    }

    /// Returns the same, if an archive can have such times.
    ///
    /// # Errors
    /// A description of what is wrong.
    pub fn checked(self) -> Result<Self, &'static str> {
        if self.times.len() as u64 > TIMES_MAX.min(self.captures) {
            return Err("there are more times than were asked for");
        }
        let are_times = self.times.iter().all(|time| DateTime::from_timestamp_micros(*time).is_some());
        if are_times { Ok(self) } else { Err(NO_TIME) }
    }

    /// Returns each time, with the number of captures that it represents.
    pub fn each(&self) -> impl Iterator<Item = (DateTime<Utc>, f64)> {
        let each = self.captures as f64 / self.times.len().max(1) as f64;
        self.times.iter().filter_map(move |time| Some((DateTime::from_timestamp_micros(*time)?, each)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_no_archive_has_are_refused() {
        let times = |captures, times: Vec<i64>| Times { captures, times }.checked();
        assert!(times(0, vec![]).is_ok() && times(200, vec![0; 200]).is_ok());
        assert!(times(1, vec![0; 2]).is_err() && times(999, vec![0; 201]).is_err());
        assert!(times(1, vec![i64::MAX]).is_err());
    }
}
