//! Intervals of change rates: where the true rate of a page is with 90 % probability, given its visits.

use archive_math::refresh::rate::{ChangeObservations, RatePrior};

/// Probability that the true rate is in a reported interval.
const STATED: f64 = 0.9;

/// The interval of rates that contains the true one with 90 % probability, in changes per day.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RateInterval {
    /// Lower end.
    pub(crate) low: f64,
    /// Upper end.
    pub(crate) high: f64,
}

impl RateInterval {
    /// Returns the shortest interval of ln λ that contains the true rate of a page with 90 % probability, if rates are
    /// distributed as in `prior`. It uses the exact posterior, which is far from normal if there are few visits, or if
    /// all or none of them found a change.
    ///
    /// With shape ½ and half the interval between visits as days, the prior is nearly Jeffreys'. Its intervals have the
    /// right coverage on average for all rates (Brown, Cai, DasGupta, "Interval estimation for a binomial proportion",
    /// 2001).
    pub(crate) fn of(page: &ChangeObservations, prior: &RatePrior) -> Self {
        let law = Posterior::new(|log_rate| {
            let rate = log_rate.exp();
            prior.shape * log_rate - rate * prior.days + page.log_likelihood_at(rate)
        });
        let (low, high) = law.shortest(STATED);
        // The estimate is the most probable rate, computed with a different rounding error.
        let estimate = page.rate(prior).per_day;
        Self { low: low.min(estimate), high: high.max(estimate) }
    }
}

/// Range of the log-rate (rates in changes per day).
const LOG_RATES: (f64, f64) = (-40.0, 20.0);
/// Number of steps in the search for the maximum.
const SEARCH_STEPS: usize = 70;
/// Depth of the log-density below its maximum from which on it is ignored.
const NEGLIGIBLE: f64 = 18.0;
/// Depth of the log-density at the ends of the part around the maximum, which has nodes of its own.
const CORE: f64 = 4.0;
/// Number of nodes per part.
const NODES: usize = 100;
/// Number of bisection steps that determine an interval.
const BISECTIONS: usize = 40;

/// A numerical distribution of ln λ, given its density: the posterior after visits, as sums over nodes.
///
/// The log-density must be concave, as for all likelihoods here: it has one maximum and falls ever more steeply on both
/// sides.
struct Posterior {
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Default)]
struct Node {
    log_rate: f64,
    /// Difference between the maximum of the log-density and its value here.
    depth: f64,
    /// Probability of lower rates.
    below: f64,
}

impl Posterior {
    /// Creates the distribution with this log-density over ln λ, up to a constant.
    fn new(log_density: impl Fn(f64) -> f64) -> Self {
        let mode = maximum(&log_density);
        let top = log_density(mode);
        let reach = |side: f64, depth: f64| {
            let mut step = 1e-3;
            while log_density(mode + side * step) > top - depth && step < LOG_RATES.1 - LOG_RATES.0 {
                step *= 1.3;
            }
            mode + side * step
        };
        let ends =
            [reach(-1.0, NEGLIGIBLE), reach(-1.0, CORE), mode, reach(1.0, CORE), reach(1.0, NEGLIGIBLE)];
        let depth = |at: f64| (top - log_density(at)).max(0.0);
        let mut nodes = vec![Node { log_rate: ends[0], depth: depth(ends[0]), below: 0.0 }];
        let mut before = nodes[0];
        for part in ends.windows(2) {
            let width = (part[1] - part[0]) / NODES as f64;
            for node in 1..=NODES {
                let at = part[0] + width * node as f64;
                let mut next = Node { log_rate: at, depth: depth(at), below: 0.0 };
                next.below = before.below + width * ((-before.depth).exp() + (-next.depth).exp()) / 2.0;
                nodes.push(next);
                before = next;
            }
        }
        nodes.iter_mut().for_each(|node| node.below /= before.below.max(f64::MIN_POSITIVE));
        Self { nodes }
    }

    /// Returns the ends of the shortest interval of ln λ with this probability, as rates. The most probable rate is
    /// inside.
    fn shortest(&self, share: f64) -> (f64, f64) {
        let (mut shallow, mut deep) = (0.0, NEGLIGIBLE);
        for _ in 0..BISECTIONS {
            let depth = f64::midpoint(shallow, deep);
            let (low, high) = self.within(depth);
            if high.below - low.below < share {
                shallow = depth;
            } else {
                deep = depth;
            }
        }
        let (low, high) = self.within(deep);
        (low.log_rate.exp(), high.log_rate.exp())
    }

    /// Returns the ends of the region in which the log-density is at most `depth` below its maximum.
    fn within(&self, depth: f64) -> (Node, Node) {
        let first = self.nodes.iter().position(|node| node.depth <= depth).unwrap_or(0);
        let last = self.nodes.iter().rposition(|node| node.depth <= depth).unwrap_or(first);
        let between = |inner: usize, outer: Option<usize>| {
            let Some(inner) = self.nodes.get(inner) else { return Node::default() };
            let Some(outer) = outer.and_then(|outer| self.nodes.get(outer)) else { return *inner };
            let part = ((depth - inner.depth) / (outer.depth - inner.depth).max(f64::MIN_POSITIVE)).min(1.0);
            let mix = |from: f64, to: f64| from + part * (to - from);
            Node {
                log_rate: mix(inner.log_rate, outer.log_rate),
                depth,
                below: mix(inner.below, outer.below),
            }
        };
        (between(first, first.checked_sub(1)), between(last, Some(last + 1)))
    }
}

/// Finds the maximum of a concave function by golden-section search.
fn maximum(value: impl Fn(f64) -> f64) -> f64 {
    let ratio = (5.0_f64.sqrt() - 1.0) / 2.0;
    let (mut low, mut high) = LOG_RATES;
    let (mut left, mut right) = (high - ratio * (high - low), low + ratio * (high - low));
    let (mut at_left, mut at_right) = (value(left), value(right));
    for _ in 0..SEARCH_STEPS {
        if at_left < at_right {
            (low, left, at_left) = (left, right, at_right);
            right = low + ratio * (high - low);
            at_right = value(right);
        } else {
            (high, right, at_right) = (right, left, at_left);
            left = high - ratio * (high - low);
            at_left = value(left);
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use archive_math::refresh::rate::{OBSERVATION_BYTES, Observation};

    use super::*;

    /// 25 of 100 under Jeffreys' prior: the equal-tailed interval of the share is 0.1858 to 0.3272.
    #[test]
    fn equal_intervals_between_visits_have_the_closed_form() {
        let mut page = ChangeObservations::new();
        for i in 0..100 {
            page.observe(&Observation { interval: 2.0, changed: i % 4 == 0, last_modified: None });
        }
        let interval = RateInterval::of(&page, &RatePrior { shape: 0.5, days: 1.0 });
        for (end, share) in [(interval.low, 0.1858_f64), (interval.high, 0.3272)] {
            assert!((end / (-(1.0 - share).ln() / 2.0) - 1.0).abs() < 0.05, "{interval:?}");
        }
    }

    /// The ends have equal density under a Gamma distribution of ln λ and enclose nine tenths of it.
    #[test]
    fn the_interval_is_the_shortest_one() {
        for shape in [0.5, 1.0, 5.0, 400.0] {
            let log_density = |log_rate: f64| shape * log_rate - log_rate.exp();
            let law = Posterior::new(log_density);
            let (low, high) = law.shortest(0.9);
            assert!(
                (log_density(low.ln()) - log_density(high.ln())).abs() < 0.02,
                "shape {shape}: {low} {high}"
            );
            // Compute the probability separately, by fine sums.
            let (mut inside, mut all) = (0.0, 0.0);
            for step in 0..400_000 {
                let log_rate = -25.0 + f64::from(step) * 1e-4;
                let density = (log_density(log_rate) - log_density(shape.ln())).exp();
                all += density;
                inside += if (low.ln()..=high.ln()).contains(&log_rate) { density } else { 0.0 };
            }
            let share: f64 = inside / all;
            assert!((share - 0.9).abs() < 0.003, "shape {shape}: {share}");
        }
    }

    #[test]
    fn foreign_bytes_have_finite_intervals_around_their_rates() {
        let mut random = fastrand::Rng::with_seed(11);
        for _ in 0..1000 {
            let mut bytes = [0; OBSERVATION_BYTES];
            random.fill(&mut bytes);
            let mut page = ChangeObservations::from_bytes(&bytes);
            page.observe(&Observation { interval: 1.0, changed: true, last_modified: Some(0.5) });
            let (rate, interval) =
                (page.rate(&RatePrior::default()), RateInterval::of(&page, &RatePrior::default()));
            assert!(
                interval.low <= rate.per_day && rate.per_day <= interval.high && interval.high.is_finite()
            );
        }
    }
}
