//! Importance over time: of sites, and of the most important pages.
//!
//! Only the present importance is in the state. So each run that wrote to an archive notes at its end what has changed, in
//! `trends.json.zst` in the archive's folder: for each site and page its levels with their times. A level is the logarithm
//! of the importance in eighths of a doubling, so a step is 9 %; one is noted when it differs from the last by more than
//! three quarters of a step. The file is named by URLs and not by numbers, so it stays as it is when the state is rebuilt.
//! It has nothing that anything else depends on: it may be removed, and then begins again.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::path::Path;

use archive_base::files::{self, FileError, WholeFile};
use archive_storage::{CaptureId, SiteId, State, UrlId};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::columns::{SavedColumn, TREND};
use crate::prepared::{Error, Pages, SiteSums, captured_importance};

/// Name of the file in the archive's folder.
pub const FILE: &str = "trends.json.zst";

/// Time over which [`Trends::columns`] looks back, in days.
pub const TREND_DAYS: u32 = 30;

/// Maximum number of sites and of pages; the most important ones are kept.
const SITES_MAX: usize = 1000;
const PAGES_MAX: usize = 5000;

/// Importance from which on a page is noted: the mean is 1.
const PAGE_IMPORTANCE_MIN: f64 = 2.0;

/// Maximum number of levels of a site or page; beyond, every second one of the older half is dropped.
const LEVELS_MAX: usize = 64;

/// Maximum number of times of [`Trends::convergence`].
const POINTS_MAX: usize = 200;

/// Maximum length of the file, and of what it unpacks to.
const BYTES_MAX: u64 = 16 << 20;
const UNPACKED_BYTES_MAX: usize = 64 << 20;

/// Compression level.
const ZSTD_LEVEL: i32 = 9;

/// Length of the end of the file.
const END_BYTES: usize = 16;

/// Steps of a doubling, and the level of importance 1.
const STEPS: f64 = 8.0;
const LEVEL_OF_ONE: f64 = 64.0;

/// By how many steps a level has to differ from the last one to be noted.
const STEP_MIN: f64 = 0.75;

const HOUR_SECONDS: i64 = 3600;

/// The levels of a site or page, oldest first: hours since 1970, and the level from then on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Series(Vec<(u32, u8)>);

impl Series {
    /// Notes an importance; returns whether that changed anything.
    fn note(&mut self, hour: u32, importance: f64) -> bool {
        let level = LEVEL_OF_ONE + STEPS * importance.max(f64::MIN_POSITIVE).log2();
        if self.0.last().is_some_and(|(_, last)| (level - f64::from(*last)).abs() <= STEP_MIN) {
            return false;
        }
        // A float is cut off at the ends of an integer's range.
        let level = level.round() as u8;
        match self.0.last_mut() {
            Some((_, last)) if *last == level => return false,
            Some((at, last)) if *at == hour => *last = level,
            _ => self.0.push((hour, level)),
        }
        if self.0.len() > LEVELS_MAX {
            let (half, mut place) = (LEVELS_MAX / 2, 0);
            self.0.retain(|_| {
                place += 1;
                place > half || place % 2 == 1
            });
        }
        true
    }

    fn level_at(&self, hour: u32) -> Option<u8> {
        let after = self.0.partition_point(|(at, _)| *at <= hour);
        self.0.get(after.saturating_sub(1)).map(|(_, level)| *level)
    }

    /// In how many doublings the importance has grown since a time, or since it is known if that is later.
    #[must_use]
    pub fn change_since(&self, time: DateTime<Utc>) -> Option<f64> {
        let (before, (_, now)) = (self.level_at(hour_of(time))?, self.0.last()?);
        Some((f64::from(*now) - f64::from(before)) / STEPS)
    }

    /// The times from which on it had an importance, and this, to within a step.
    pub fn each(&self) -> impl Iterator<Item = (DateTime<Utc>, f64)> + '_ {
        self.0.iter().map(|(hour, level)| (time_of(*hour), importance_at(*level)))
    }
}

/// The error of what pages were thought to have; see [`Trends::convergence`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Convergence {
    /// Beginning of the hour.
    #[serde(with = "archive_base::instant")]
    pub time: DateTime<Utc>,
    /// Number of pages compared.
    pub pages: usize,
    /// Part of their importance that was elsewhere.
    pub error: f64,
}

/// The importance of sites and pages over time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trends {
    /// By name.
    pub sites: BTreeMap<String, Series>,
    /// By canonical URL.
    pub pages: BTreeMap<String, Series>,
}

impl Trends {
    /// Reads the file of an archive; empty if there is none.
    ///
    /// # Errors
    /// When it cannot be read or is damaged.
    pub fn read(archive: &Path) -> Result<Self, FileError> {
        let path = archive.join(FILE);
        let read = || {
            let Some(packed) = files::read_if_there(&path, BYTES_MAX)? else { return Ok(Self::default()) };
            let whole =
                packed.split_last_chunk::<END_BYTES>().filter(|(packed, end)| **end == end_of(packed));
            let Some((packed, _)) = whole else {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "it has changed since it was written",
                ));
            };
            let text = zstd::bulk::decompress(packed, UNPACKED_BYTES_MAX)?;
            serde_json::from_slice(&text).map_err(io::Error::from)
        };
        read().map_err(FileError::at(&path))
    }

    fn write(&self, archive: &Path) -> Result<(), FileError> {
        let path = archive.join(FILE);
        let write = || {
            let mut packed = zstd::bulk::compress(&serde_json::to_vec(self)?, ZSTD_LEVEL)?;
            packed.extend(end_of(&packed));
            WholeFile::replace(&path, &packed)
        };
        write().map_err(FileError::at(&path))
    }

    /// How far what pages were thought to have was from what they have now: at each of at most `POINTS_MAX` times, the
    /// part of the importance that the pages known by then had in other places than now (half the sum of the absolute
    /// differences of their shares; 0 to 1, to within a step), and the number of these pages. The last one is 0.
    #[must_use]
    pub fn convergence(&self) -> Vec<Convergence> {
        let hours: BTreeSet<u32> =
            self.pages.values().flat_map(|series| series.0.iter().map(|at| at.0)).collect();
        let step = hours.len().div_ceil(POINTS_MAX).max(1);
        let mut hours: Vec<u32> = hours.into_iter().rev().step_by(step).collect();
        hours.reverse();
        hours.into_iter().map(|hour| self.converged(hour)).collect()
    }

    fn converged(&self, hour: u32) -> Convergence {
        let known = self.pages.values().filter(|series| series.0.first().is_some_and(|(at, _)| *at <= hour));
        let pairs =
            known.filter_map(|series| Some([series.level_at(hour)?, series.0.last()?.1].map(importance_at)));
        let pairs: Vec<[f64; 2]> = pairs.collect();
        let [then, now] = [0, 1].map(|place| pairs.iter().map(|pair| pair[place]).sum::<f64>());
        let error = pairs.iter().map(|pair| (pair[0] / then - pair[1] / now).abs()).sum::<f64>() / 2.0;
        Convergence { time: time_of(hour), pages: pairs.len(), error }
    }

    /// The change over the last [`TREND_DAYS`] days of all pages and of all sites, by number.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn columns(&self, state: &State, now: DateTime<Utc>) -> Result<[SavedColumn; 2], Error> {
        let since = now - chrono::TimeDelta::days(TREND_DAYS.into());
        let mut values = [Vec::new(), Vec::new()];
        let mut put = |kind: usize, id: Option<usize>, series: &Series| {
            let Some(id) = id else { return };
            if values[kind].len() <= id {
                values[kind].resize(id + 1, None);
            }
            values[kind][id] = series.change_since(since);
        };
        for (url, series) in &self.pages {
            put(0, state.find(url)?.map(UrlId::index), series);
        }
        for (name, series) in &self.sites {
            put(1, state.find_site(name)?.map(SiteId::index), series);
        }
        Ok(values.map(|values| SavedColumn::of(TREND, &values)))
    }
}

/// The end of the file: a frame that zstd skips (RFC 8878, section 3.1.2), with the XXH3-64 of all before it.
fn end_of(packed: &[u8]) -> [u8; END_BYTES] {
    let mut end = [0x50, 0x2a, 0x4d, 0x18, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    end[8..].copy_from_slice(&xxh3_64(packed).to_le_bytes());
    end
}

fn importance_at(level: u8) -> f64 {
    ((f64::from(level) - LEVEL_OF_ONE) / STEPS).exp2()
}

fn time_of(hour: u32) -> DateTime<Utc> {
    DateTime::from_timestamp(i64::from(hour) * HOUR_SECONDS, 0).unwrap_or_default()
}

fn hour_of(time: DateTime<Utc>) -> u32 {
    u32::try_from(time.timestamp() / HOUR_SECONDS).unwrap_or(0)
}

/// Notes the importance of sites and pages as of the last checkpoint, with the time of the newest capture. `prepared` has
/// to be of this checkpoint, if the archive has prepared columns.
///
/// # Errors
/// When the archive cannot be read, or the file cannot be read or written.
pub fn note(state: &State, archive: &Path) -> Result<(), Error> {
    let Some(newest) = state.totals().captures.checked_sub(1) else { return Ok(()) };
    let newest = state.capture(CaptureId(newest as u32))?.time;
    let mut trends = Trends::read(archive)?;
    // An import may end with captures of long ago.
    let known = trends.sites.values().chain(trends.pages.values()).filter_map(|series| series.0.last());
    let latest = known.map(|(hour, _)| *hour).max().unwrap_or(0);
    let hour = hour_of(DateTime::from_timestamp_micros(newest).unwrap_or_default()).max(latest);
    let pages = Pages::open(state)?;
    let mut sites = vec![SiteSums::default(); state.site_count() as usize];
    pages.weigh(&mut sites)?;
    let sites: Vec<_> = (0..).zip(&sites).map(|(id, sums)| (sums.by_links, id)).collect();
    let now = Now { known: &mut trends.sites, hour, most: SITES_MAX };
    let mut is_changed = now.note(
        sites.clone(),
        |id| Ok(state.site_name(SiteId(id))?),
        |name| Ok(state.find_site(name)?.and_then(|id| Some(sites.get(id.index())?.0))),
    )?;
    let now = Now { known: &mut trends.pages, hour, most: PAGES_MAX };
    is_changed |= now.note(
        captured_importance(&pages, archive, PAGE_IMPORTANCE_MIN)?,
        |id| Ok(state.url(UrlId(id))?),
        |url| Ok(state.find(url)?.map(|id| pages.credits().importance_of(state, id)).transpose()?.flatten()),
    )?;
    if is_changed {
        trends.write(archive)?;
    }
    Ok(())
}

/// What is known of sites or of pages, and the time of what is to be noted.
struct Now<'a> {
    known: &'a mut BTreeMap<String, Series>,
    hour: u32,
    most: usize,
}

impl Now<'_> {
    /// Notes the highest of `all`, and what was noted before; returns whether that changed anything.
    fn note(
        self,
        mut all: Vec<(f64, u32)>,
        name_of: impl Fn(u32) -> Result<String, Error>,
        importance_of: impl Fn(&str) -> Result<Option<f64>, Error>,
    ) -> Result<bool, Error> {
        let Self { known, hour, most } = self;
        if all.len() > most {
            all.select_nth_unstable_by(most, |one, other| other.0.total_cmp(&one.0));
            all.truncate(most);
        }
        let (mut is_changed, mut noted) = (false, HashSet::new());
        for (importance, id) in all {
            let name = name_of(id)?;
            is_changed |= known.entry(name.clone()).or_default().note(hour, importance);
            noted.insert(name);
        }
        let mut gone = Vec::new();
        for (name, series) in known.iter_mut().filter(|(name, _)| !noted.contains(*name)) {
            match importance_of(name)? {
                Some(importance) => is_changed |= series.note(hour, importance),
                None => gone.push(name.clone()),
            }
        }
        is_changed |= !gone.is_empty();
        gone.iter().for_each(|name| drop(known.remove(name)));
        if known.len() > most {
            let mut levels: Vec<_> =
                known.iter().map(|(name, series)| (series.0.last().copied(), name)).collect();
            levels.sort_unstable_by_key(|(last, _)| last.map(|(_, level)| level));
            let least =
                levels[..known.len() - most].iter().map(|(_, name)| (*name).clone()).collect::<Vec<_>>();
            least.iter().for_each(|name| drop(known.remove(name)));
            is_changed = true;
        }
        Ok(is_changed)
    }
}

/// Removes pages.
///
/// # Errors
/// When the file cannot be read or written.
pub fn forget(archive: &Path, urls: &HashSet<String>) -> Result<(), FileError> {
    let mut trends = Trends::read(archive)?;
    let before = trends.pages.len();
    trends.pages.retain(|url, _| !urls.contains(url));
    if trends.pages.len() < before { trends.write(archive) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn time(hour: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(hour * HOUR_SECONDS, 0).unwrap()
    }

    #[test]
    fn only_what_has_changed_is_noted() {
        let mut series = Series::default();
        for (hour, importance, is_noted) in [
            (100, 4.0, true),
            (200, 4.2, false),
            (300, 4.26, false),
            (400, 8.0, true),
            (400, 16.0, true),
            (500, 2.0, true),
            (600, 0.0, true),
            (700, f64::MAX, true),
        ] {
            assert_eq!(series.note(hour, importance), is_noted, "{hour} {importance}");
        }
        assert_eq!(series.0, [(100, 80), (400, 96), (500, 72), (600, 0), (700, 255)]);
        let changes = [0, 150, 450, 550, 650, 800].map(|hour| series.change_since(time(hour)).unwrap());
        assert_eq!(changes, [175.0, 175.0, 159.0, 183.0, 255.0, 0.0].map(|steps| steps / STEPS));
        assert_eq!(Series::default().change_since(time(0)), None);
        let each: Vec<_> = series.each().take(2).collect();
        assert_eq!(each, [(time(100), 4.0), (time(400), 16.0)]);
    }

    #[test]
    fn a_series_is_bounded_and_keeps_what_is_new() {
        let mut series = Series::default();
        for hour in 0..10_000 {
            series.note(hour, if hour % 2 == 0 { 1.0 } else { 4.0 });
            assert!(series.0.len() <= LEVELS_MAX);
        }
        assert!(series.0.is_sorted() && series.0[0].0 == 0);
        assert!(series.0.iter().rev().take(8).map(|(hour, _)| *hour).eq((9992..10_000).rev()));
    }

    #[test]
    fn the_most_important_are_kept() {
        let mut known = BTreeMap::new();
        let mut note = |hour, all: &[f64]| {
            let all: Vec<_> = all.iter().copied().zip(0..).collect();
            let importance =
                |name: &str| Ok(all.get(name.parse::<usize>().unwrap()).map(|(importance, _)| *importance));
            let now = Now { known: &mut known, hour, most: 2 };
            let is_changed = now.note(all.clone(), |id| Ok(id.to_string()), importance).unwrap();
            (is_changed, known.keys().cloned().collect::<Vec<_>>())
        };
        assert_eq!(note(1, &[2.0, 4.0, 8.0]), (true, vec!["1".to_owned(), "2".to_owned()]));
        assert_eq!(note(2, &[2.0, 4.0, 8.0]), (false, vec!["1".to_owned(), "2".to_owned()]));
        assert_eq!(note(3, &[16.0, 4.0, 8.0]), (true, vec!["0".to_owned(), "2".to_owned()]));
        assert_eq!(note(4, &[16.0]), (true, vec!["0".to_owned()]), "a page that is gone");
    }

    #[test]
    fn errors_are_those_of_the_pages_known_by_then() {
        let mut trends = Trends::default();
        for (name, hour, importance) in [
            ("a", 1, 8.0),
            ("b", 1, 8.0),
            ("c", 2, 32.0),
            ("a", 3, 16.0),
            ("b", 3, 16.0),
            ("c", 3, 8.0),
            ("d", 4, 4.0),
        ] {
            trends.pages.entry(name.to_owned()).or_default().note(hour, importance);
        }
        let found: Vec<_> = trends.convergence().iter().map(|at| (at.time, at.pages, at.error)).collect();
        let expected = [(1, 2, 0.0), (2, 3, 2.0 / 3.0 - 0.2), (3, 3, 0.0), (4, 4, 0.0)];
        for ((at, pages, error), (hour, known, wanted)) in found.iter().zip(expected) {
            assert!((*at, *pages) == (time(hour), known) && (error - wanted).abs() < 1e-9, "{found:?}");
        }
        assert_eq!((found.len(), Trends::default().convergence().len()), (4, 0));
        let mut long = Trends::default();
        for page in 0..10 {
            let series = long.pages.entry(page.to_string()).or_default();
            for hour in 0..64 {
                series.note(10 * hour + page, if hour % 2 == 0 { 2.0 } else { 4.0 });
            }
        }
        let found = long.convergence();
        assert!((POINTS_MAX / 2..=POINTS_MAX).contains(&found.len()), "{}", found.len());
        assert_eq!(found.last().map(|at| at.error), Some(0.0));
    }

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let archive = tempfile::tempdir().unwrap();
        assert_eq!(Trends::read(archive.path()).unwrap(), Trends::default());
        let mut trends = Trends::default();
        for name in ["http://a.test/", "http://b.test/"] {
            trends.pages.entry(name.to_owned()).or_default().note(7, 3.0);
        }
        trends.sites.entry("a.test".to_owned()).or_default().note(7, 1.0);
        trends.write(archive.path()).unwrap();
        assert_eq!(Trends::read(archive.path()).unwrap(), trends);
        forget(archive.path(), &HashSet::from(["http://a.test/".to_owned()])).unwrap();
        let read = Trends::read(archive.path()).unwrap();
        assert!(read.pages.keys().eq(["http://b.test/"]) && read.sites == trends.sites);
        let path = archive.path().join(FILE);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let flipped = [&whole[..at], &[whole[at] ^ 1], &whole[at + 1..]].concat();
            fs::write(&path, flipped).unwrap();
            assert!(Trends::read(archive.path()).is_err(), "{at}");
            fs::write(&path, &whole[..at]).unwrap();
            assert!(Trends::read(archive.path()).is_err(), "{at}");
        }
    }
}
