//! Visits of a page as sufficient statistics, and the maximum of their likelihood.
//!
//! The likelihood of yes/no observations is the product (the sum printed in equation 9 of Xyleme's section 6.1.1 is
//! biased towards 0)
//!
//! ```text
//! L(x) = exp(-x Σ v_i) Π_j (1 - exp(-c_j x))
//! ```
//!
//! where `v_i` are the lengths of intervals without a change and `c_j` those with one. The `c_j` are kept as a
//! histogram over log-spaced lengths. Each interval is split between the three nearest buckets with the weights of
//! quadratic interpolation in ln c. Little is lost, because ln(1 - e^(-cx)) is linear in ln c for cx ≪ 1 and constant
//! for cx ≫ 1. With reliable last-modified dates the likelihood is x^C exp(-x E), where E is the number of days known
//! to be free of changes (equation 10 with the exposure of unchanged intervals, which the printed form omits).

use super::RatePrior;

/// Size of a serialised [`ChangeObservations`].
pub const OBSERVATION_BYTES: usize = 48;

/// Value of four unused bytes of the serialised form. It is always the same, so that equal statistics have equal bytes.
const UNUSED: f32 = f32::NAN;

/// Number of histogram buckets for the lengths of changed intervals.
const BUCKETS: usize = 11;
/// Centre of the first bucket in days: five minutes. Shorter intervals count as this long.
const SHORTEST_DAYS: f64 = 1.0 / 288.0;
/// Ratio of neighbouring bucket centres; the last centre is 3641 days.
const BUCKET_RATIO: f64 = 4.0;
/// Number of units in which histogram counts divide an interval.
const FIXED_POINT: f64 = 64.0;
/// Threshold of a histogram count at which all statistics are halved.
const CHANGED_MAX: u16 = i16::MAX as u16 - 2 * FIXED_POINT as u16;
/// Maximum share of dated visits whose date contradicts the content; beyond it, last-modified dates are ignored.
const CONTRADICTED_SHARE_MAX: f64 = 0.05;

/// The result of a visit after the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// Days since the previous visit; positive.
    pub interval: f64,
    /// Whether the meaningful content differs from that of the previous visit.
    pub changed: bool,
    /// Days between the reported last modification and this visit, if one was reported.
    pub last_modified: Option<f64>,
}

/// An estimated change rate and its certainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Changes per day.
    pub per_day: f64,
    /// Shape of the Gamma distribution that approximates the posterior: 1 / variance of ln λ.
    pub shape: f64,
}

/// Everything that the visits of a page say about its change rate, in fixed size.
///
/// When a counter is full, all statistics are halved. The likelihood keeps its maximum, the certainty shrinks to that
/// of half as many visits, and old visits begin to fade.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ChangeObservations {
    /// Total days of intervals without a change.
    unchanged_days: f32,
    /// Total days known to be free of changes from last-modified dates.
    dated_days: f32,
    /// Latest known change in seconds since the epoch; 0 if none is known.
    last_change: u32,
    visits: u16,
    changes: u16,
    dated_visits: u16,
    dated_changes: u16,
    contradictions: u8,
    /// Number of changed intervals by length, in 1/64 of an interval. Interpolation weights can be slightly below 0.
    changed: [i16; BUCKETS],
}

impl ChangeObservations {
    /// A page seen at most once: nothing is known.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a visit. Intervals that are not positive and finite carry no information and are ignored.
    pub fn observe(&mut self, observation: &Observation) {
        let Observation { interval, changed, last_modified } = *observation;
        if !(interval > 0.0 && interval.is_finite()) {
            return;
        }
        self.make_room();
        self.visits += 1;
        if changed {
            self.changes += 1;
            self.add_changed(interval);
        } else {
            self.unchanged_days += interval as f32;
        }
        if let Some(age) = last_modified {
            self.observe_date(interval, changed, age);
        }
    }

    /// A date agrees with the content if it lies inside the interval after a change, and before it otherwise.
    fn observe_date(&mut self, interval: f64, changed: bool, age: f64) {
        self.dated_visits += 1;
        let inside = (0.0..=interval).contains(&age);
        if inside != changed {
            self.contradictions += 1;
        }
        if changed {
            self.dated_changes += 1;
        }
        // A contradicting date does not show when the page changed: count half the interval as free of changes.
        let free = match (changed, inside) {
            (false, _) => interval,
            (true, true) => age,
            (true, false) => interval / 2.0,
        };
        self.dated_days += free as f32;
    }

    fn add_changed(&mut self, interval: f64) {
        let position = (interval / SHORTEST_DAYS).ln() / BUCKET_RATIO.ln();
        let position = position.clamp(0.0, (BUCKETS - 1) as f64);
        let middle = (position.round() as usize).clamp(1, BUCKETS - 2);
        let offset = position - middle as f64;
        let below = (offset * (offset - 1.0) / 2.0 * FIXED_POINT).round() as i16;
        let above = (offset * (offset + 1.0) / 2.0 * FIXED_POINT).round() as i16;
        self.changed[middle - 1] += below;
        self.changed[middle] += FIXED_POINT as i16 - below - above;
        self.changed[middle + 1] += above;
    }

    fn make_room(&mut self) {
        // The first counter is the largest if the statistics come from visits, but bytes from elsewhere may differ.
        let counters = [self.visits, self.changes, self.dated_visits, self.dated_changes];
        let full = counters.contains(&u16::MAX)
            || self.contradictions == u8::MAX
            || self.changed.iter().any(|count| count.unsigned_abs() >= CHANGED_MAX);
        if full {
            for count in &mut self.changed {
                *count /= 2;
            }
            for count in
                [&mut self.visits, &mut self.changes, &mut self.dated_visits, &mut self.dated_changes]
            {
                *count /= 2;
            }
            self.contradictions /= 2;
            self.unchanged_days /= 2.0;
            self.dated_days /= 2.0;
        }
    }

    /// Records when the page last changed, in seconds since the epoch.
    pub fn set_last_change(&mut self, seconds: u32) {
        self.last_change = seconds;
    }

    /// Latest known change of the page, in seconds since the epoch.
    pub fn last_change(&self) -> Option<u32> {
        (self.last_change != 0).then_some(self.last_change)
    }

    /// Number of visits after the first.
    pub fn visits(&self) -> u16 {
        self.visits
    }

    /// Number of visits that found a change.
    pub fn changes(&self) -> u16 {
        self.changes
    }

    /// Whether every visit reported a last-modified date, and the dates agree with the content.
    pub fn dates_reliable(&self) -> bool {
        self.dated_visits > 0
            && self.dated_visits == self.visits
            && f64::from(self.contradictions) <= CONTRADICTED_SHARE_MAX * f64::from(self.dated_visits)
    }

    /// Returns the most likely rate under `prior`, with respect to d ln λ.
    ///
    /// With dates this is the mean of the Gamma posterior. Without dates it is the root of
    ///
    /// ```text
    /// a - x (b + Σ v) + Σ_j c_j x / (e^(c_j x) - 1) = 0
    /// ```
    ///
    /// found by Newton steps on ln x inside a bracket. The left side falls in ln x, so the root is unique.
    pub fn rate(&self, prior: &RatePrior) -> Rate {
        let (log_rate, deviation) =
            if self.dates_reliable() { self.dated_estimate(prior) } else { self.counted_estimate(prior) };
        Rate { per_day: log_rate.exp(), shape: (deviation * deviation).recip() }
    }

    /// Returns the log-likelihood of all visits at `rate`, up to a constant; by dates if they are reliable.
    pub fn log_likelihood_at(&self, rate: f64) -> f64 {
        if self.dates_reliable() {
            f64::from(self.dated_changes) * rate.ln() - rate * f64::from(self.dated_days)
        } else {
            self.log_likelihood(rate)
        }
    }

    /// Returns the log-likelihood of the yes/no observations.
    fn log_likelihood(&self, rate: f64) -> f64 {
        let buckets = self.changed.iter().enumerate().filter(|(_, count)| **count != 0);
        let changed: f64 = buckets
            .map(|(bucket, &count)| {
                let chance = -(-rate * bucket_days(bucket)).exp_m1();
                f64::from(count) / FIXED_POINT * chance.max(f64::MIN_POSITIVE).ln()
            })
            .sum();
        changed - rate * f64::from(self.unchanged_days)
    }

    fn dated_estimate(&self, prior: &RatePrior) -> (f64, f64) {
        let shape = prior.shape + f64::from(self.dated_changes);
        ((shape / (prior.days + f64::from(self.dated_days))).ln(), shape.sqrt().recip())
    }

    fn counted_estimate(&self, prior: &RatePrior) -> (f64, f64) {
        let days = prior.days + f64::from(self.unchanged_days);
        // Each changed interval adds between 0 and 1 to the shape, so the root lies between these two.
        let mut low = (prior.shape / (days + self.changed_days())).ln() - 1.0;
        let mut high = ((prior.shape + self.changed_count()) / days).ln();
        let mut log_rate = prior.mean().ln().clamp(low, high);
        let mut curvature = 1.0;
        for _ in 0..40 {
            let (slope, bend) = self.slope(log_rate.exp(), prior.shape, days);
            curvature = bend;
            if slope > 0.0 {
                low = log_rate;
            } else {
                high = log_rate;
            }
            let step = log_rate + slope / bend;
            let next = if (low..=high).contains(&step) { step } else { f64::midpoint(low, high) };
            if (next - log_rate).abs() < 1e-9 {
                break;
            }
            log_rate = next;
        }
        (log_rate, curvature.sqrt().recip())
    }

    /// Returns the first derivative of the log posterior in ln x, and the negated second derivative.
    fn slope(&self, x: f64, shape: f64, days: f64) -> (f64, f64) {
        let mut slope = shape - x * days;
        let mut bend = x * days;
        for (bucket, &count) in self.changed.iter().enumerate().filter(|(_, count)| **count != 0) {
            let count = f64::from(count) / FIXED_POINT;
            let y = x * bucket_days(bucket);
            let denominator = y.exp_m1();
            if denominator.is_finite() {
                let part = y / denominator;
                slope += count * part;
                // d/d ln x of y/(e^y - 1), negated.
                bend += count * part * (y * (1.0 + denominator.recip()) - 1.0);
            }
        }
        (slope, bend.max(1e-12))
    }

    fn changed_count(&self) -> f64 {
        (self.changed.iter().map(|&count| f64::from(count)).sum::<f64>() / FIXED_POINT).max(0.0)
    }

    fn changed_days(&self) -> f64 {
        let days = self.changed.iter().enumerate().map(|(i, &count)| f64::from(count) * bucket_days(i));
        (days.sum::<f64>() / FIXED_POINT).max(0.0)
    }

    /// Encodes the statistics in the fixed-size form of the page's state, little-endian.
    pub fn to_bytes(&self) -> [u8; OBSERVATION_BYTES] {
        let mut bytes = [0; OBSERVATION_BYTES];
        bytes[0..4].copy_from_slice(&self.unchanged_days.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.dated_days.to_le_bytes());
        bytes[8..12].copy_from_slice(&UNUSED.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.last_change.to_le_bytes());
        let counters = [self.visits, self.changes, self.dated_visits, self.dated_changes];
        let changed = self.changed.iter().map(|count| count.to_le_bytes());
        let shorts = counters.iter().map(|count| count.to_le_bytes()).chain(changed);
        for (slot, short) in bytes[16..46].chunks_exact_mut(2).zip(shorts) {
            slot.copy_from_slice(&short);
        }
        bytes[46] = self.contradictions;
        // Distinguishes a page without observations from bytes that were never written.
        bytes[47] = 1;
        bytes
    }

    /// Decodes the result of [`to_bytes`](Self::to_bytes). Bytes that were never written (all 0) give a new page;
    /// invalid values (negative or infinite days) count as 0.
    pub fn from_bytes(bytes: &[u8; OBSERVATION_BYTES]) -> Self {
        if bytes[47] == 0 {
            return Self::new();
        }
        let word = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        let short = |at: usize| [bytes[at], bytes[at + 1]];
        let count = |at: usize| u16::from_le_bytes(short(at));
        let days = |at: usize| {
            let days = f32::from_le_bytes(word(at));
            if days.is_finite() && days >= 0.0 { days } else { 0.0 }
        };
        Self {
            unchanged_days: days(0),
            dated_days: days(4),
            last_change: u32::from_le_bytes(word(12)),
            visits: count(16),
            changes: count(18),
            dated_visits: count(20),
            dated_changes: count(22),
            contradictions: bytes[46],
            changed: std::array::from_fn(|i| i16::from_le_bytes(short(24 + 2 * i))),
        }
    }
}

fn bucket_days(bucket: usize) -> f64 {
    SHORTEST_DAYS * BUCKET_RATIO.powi(bucket as i32)
}
