//! How well the parts of a page agree with it: how far apart they were captured, and whether they are what the server
//! gave then.

use std::collections::{BTreeMap, HashMap, HashSet};

use archive_books::change::is_version;
use archive_books::ledger::{CreditError, capture_flags};
use archive_books::prepared::archive_prior;
use archive_math::refresh::rate::{ChangeObservations, RatePrior};
use archive_storage::{Capture, State, StateError, UrlId};
use serde::{Deserialize, Serialize};

use super::{PageModel, SECONDS_PER_DAY};
use crate::plan::ForecastSample;
use crate::requisites::{PartTurn, Requisite, parts_of};

/// Maximum number of captures of a part that are searched for those before and after its page.
const CAPTURES_MAX: usize = 1 << 10;

/// Maximum number of parts in a forecast.
const MODELLED_MAX: usize = 1 << 20;

/// Parts that rest for fewer days than this are alike.
const RESTS_MIN: f64 = 1.0 / 1024.0;

/// The parts of some pages, as of a capture of each page. Days are those between a page's capture and the nearest one
/// of the part, which a replay shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PartsShown {
    /// Number of parts; one of several pages counts for each.
    pub parts: u64,
    /// Mean of the days.
    pub age_days: f64,
    /// Maximum of the days.
    pub age_days_max: f64,
    /// Expected share of parts that are what the server gave at the time of their page: known where the captures
    /// before and after are the same, estimated by the part's change rate elsewhere.
    pub right: f64,
}

impl PartsShown {
    /// The parts of a page, by its newest links, with a capture of the page at `time` in microseconds since 1970.
    ///
    /// # Errors
    /// If the state cannot be read.
    pub fn at(state: &State, prior: &RatePrior, page: UrlId, time: i64) -> Result<Self, StateError> {
        let mut shown = Self::default();
        for part in parts_of(state, page, &mut HashSet::new())? {
            let (days, right) = shown_at(state, prior, &part, time)?;
            shown.add(&Self { parts: 1, age_days: days, age_days_max: days, right });
        }
        Ok(shown)
    }

    /// The parts of a page as of its newest capture that found it; `None` if there is none.
    ///
    /// # Errors
    /// If the state cannot be read.
    pub fn newest(state: &State, prior: &RatePrior, page: UrlId) -> Result<Option<Self>, StateError> {
        for capture in state.history(page)? {
            let (_, capture) = capture?;
            if is_version(&capture) {
                return Ok(Some(Self::at(state, prior, page, capture.time)?));
            }
        }
        Ok(None)
    }

    /// The parts of all these copies as of their newest captures; of many copies, of a sample.
    ///
    /// # Errors
    /// If the state cannot be read.
    pub fn of(state: &State, copies: &[PageModel]) -> Result<Self, CreditError> {
        let prior = archive_prior(&[state])?;
        let mut all = Self::default();
        let step = ForecastSample::step(copies.len());
        for copy in copies.iter().step_by(step) {
            let of_page = Self::newest(state, &prior, copy.id)?;
            of_page.iter().for_each(|shown| all.add(shown));
        }
        Ok(Self { parts: all.parts * step as u64, ..all })
    }

    fn add(&mut self, more: &Self) {
        let parts = self.parts + more.parts;
        let mean = |a: f64, b: f64| (a * self.parts as f64 + b * more.parts as f64) / parts.max(1) as f64;
        *self = Self {
            parts,
            age_days: mean(self.age_days, more.age_days),
            age_days_max: self.age_days_max.max(more.age_days_max),
            right: mean(self.right, more.right),
        };
    }
}

/// Parts that are alike: as many pages have each, and each rests as long.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartModel {
    /// Number of parts.
    pub parts: f64,
    /// Number of pages that have each of them.
    pub pages: f64,
    /// Number of days after a request for which it is not asked again.
    pub rests: f64,
}

impl PartModel {
    /// The parts of these copies, all of which rest for `shortest` days at least; of many copies, as a sample shows
    /// them.
    ///
    /// # Errors
    /// If the state cannot be read.
    pub fn of(state: &State, copies: &[PageModel], shortest: f64) -> Result<Vec<Self>, CreditError> {
        let step = ForecastSample::step(copies.len());
        let mut known: HashMap<UrlId, (f64, f64)> = HashMap::new();
        for copy in copies.iter().step_by(step) {
            for part in parts_of(state, copy.id, &mut HashSet::new())? {
                if let Some((pages, _)) = known.get_mut(&part.id) {
                    *pages += 1.0;
                } else if known.len() < MODELLED_MAX {
                    let rests = PartTurn::of(&part.visit).days.max(shortest);
                    known.insert(part.id, (1.0, rests));
                }
            }
        }
        let mut alike: BTreeMap<(i64, i64), Self> = BTreeMap::new();
        for (pages, rests) in known.into_values() {
            // What only one page of the sample has stands for the like of the pages left out.
            let (parts, pages) = if pages > 1.0 { (1.0, pages * step as f64) } else { (step as f64, 1.0) };
            let key = (pages.log2().round() as i64, (2.0 * rests.max(RESTS_MIN).log2()).round() as i64);
            let all = alike.entry(key).or_insert(Self { parts: 0.0, pages, rests });
            all.parts += parts;
        }
        Ok(alike.into_values().collect())
    }

    /// Whether the numbers can be those of parts.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let Self { parts, pages, rests } = *self;
        [parts, pages, rests].iter().all(|number| number.is_finite() && *number >= 0.0)
    }

    /// Returns how often these parts are asked in all in `days` with runs every `every` days that each fetch this share
    /// of all pages.
    pub(crate) fn requests(&self, share: f64, every: f64, days: f64) -> f64 {
        let chance = 1.0 - (1.0 - share.clamp(0.0, 1.0)).powf(self.pages);
        if chance > 0.0 { self.parts * days / (self.rests + every / chance) } else { 0.0 }
    }
}

/// Returns the days between `time` and the capture of a part nearest to it, and the probability that this capture is
/// what the server gave at `time`.
fn shown_at(state: &State, prior: &RatePrior, part: &Requisite, time: i64) -> Result<(f64, f64), StateError> {
    let (mut before, mut after): (Option<Capture>, Option<Capture>) = (None, None);
    for capture in state.history(part.id)?.take(CAPTURES_MAX) {
        let (_, capture) = capture?;
        if capture.time <= time {
            before = Some(capture);
            break;
        }
        after = Some(capture);
    }
    let days = |capture: &Capture| (capture.time - time).abs() as f64 / 1e6 / SECONDS_PER_DAY;
    let [since, until] = [&before, &after].map(|capture| capture.as_ref().map(days));
    let nearest = since.into_iter().chain(until).fold(f64::INFINITY, f64::min);
    let right = match (before.zip(after), since.zip(until)) {
        (Some((before, after)), Some((since, until))) => {
            let found = (is_version(&before), is_version(&after));
            let is_same =
                found == (false, false) || found == (true, true) && !capture_flags::bytes_changed(&after);
            // A change in between came at any time.
            if is_same { 1.0 } else { 1.0 - nearest / (since + until).max(f64::MIN_POSITIVE) }
        }
        _ => (-ChangeObservations::from_bytes(&part.visit.extension).rate(prior).per_day * nearest).exp(),
    };
    Ok((nearest, right))
}
