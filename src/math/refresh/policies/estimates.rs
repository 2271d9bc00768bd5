//! Online estimates of change rates, by estimators from the literature.

use super::{RefreshProblem, Sighting};

/// An estimator of change rates from visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Estimator {
    /// Maximum likelihood (product form) with a changed and an unchanged pseudo-interval of half a day, the smoothing
    /// of LambdaCrawl.
    Likelihood,
    /// The same with pseudo-intervals as long as the interval at which the budget visits all pages equally often.
    LikelihoodScaled,
    /// Changes divided by time, with half a pseudo-change in half a day.
    Naive,
    /// The estimator of Avrachenkov, Patil and Thoppe from the law of large numbers.
    LargeNumbers,
    /// Changes divided by the time known to be free of changes from last-modified dates, with a Gamma prior from all
    /// pages.
    LastModified,
    /// Posterior over a grid of rates, with a prior learned from all pages.
    Posterior,
    /// The same, but only its mean is used.
    PosteriorMean,
}

/// Number of rates on the grid.
pub(super) const GRID: usize = 48;
const GRID_LOWEST: f64 = 5e-5;
const GRID_HIGHEST: f64 = 100.0;
/// Minimum interval in days for computing a likelihood.
const SHORTEST_DAYS: f64 = 1e-6;
/// Pseudo-interval of [`Estimator::Likelihood`], in days.
const HALF_DAY: f64 = 0.5;
/// Interval between updates of the prior, as a share of the experiment.
const RENEWAL: f64 = 0.02;
/// Minimum numbers of pages and changes for learning a Gamma distribution.
const PAGES_MIN: usize = 20;
const CHANGES_MIN: f64 = 5.0;

/// Estimated change rates of all pages.
pub(super) struct Estimates {
    estimator: Estimator,
    half_life: Option<f64>,
    experiment: f64,
    renewed: f64,
    changes: Vec<f64>,
    days: Vec<f64>,
    visits: Vec<f64>,
    likelihood: Vec<[f64; GRID]>,
    prior: [f64; GRID],
    shape: f64,
    rate_days: f64,
    rates: Vec<Option<f64>>,
    /// Rate of a page that was not yet revisited.
    unseen: f64,
    pub(super) grid: [f64; GRID],
}

fn grid() -> [f64; GRID] {
    let step = (GRID_HIGHEST / GRID_LOWEST).ln() / (GRID - 1) as f64;
    std::array::from_fn(|i| GRID_LOWEST * (step * i as f64).exp())
}

impl Estimates {
    /// Creates estimates for the pages in `known`. With `half_life` (in days of observation of a page) old visits fade.
    pub(super) fn new(estimator: Estimator, half_life: Option<f64>, known: &RefreshProblem) -> Self {
        let (grid, pages) = (grid(), known.importance.len());
        let interval = pages as f64 / known.budget;
        let pseudo = match estimator {
            Estimator::Likelihood => Some(HALF_DAY),
            Estimator::LikelihoodScaled => Some(interval),
            _ => None,
        };
        let mut start = [0.0; GRID];
        if let Some(days) = pseudo {
            for (sum, rate) in start.iter_mut().zip(grid) {
                *sum = log_likelihood(days, true, rate) + log_likelihood(days, false, rate);
            }
        }
        let by_grid = pseudo.is_some() || estimator.is_posterior();
        Self {
            estimator,
            half_life,
            experiment: known.days,
            renewed: f64::NEG_INFINITY,
            changes: vec![0.0; pages],
            days: vec![0.0; pages],
            visits: vec![0.0; pages],
            likelihood: if by_grid { vec![start; pages] } else { Vec::new() },
            prior: [-(GRID as f64).ln(); GRID],
            shape: 0.5,
            rate_days: 30.0,
            rates: vec![None; pages],
            unseen: interval.recip(),
            grid,
        }
    }

    /// Returns the current estimate for `page`, in changes per day.
    pub(super) fn rate(&self, page: usize) -> f64 {
        self.rates[page].unwrap_or(self.unseen)
    }

    /// Learns from fetches at `now`.
    pub(super) fn seen(&mut self, now: f64, visits: &[Sighting]) {
        for visit in visits {
            let page = visit.page;
            if let Some(half_life) = self.half_life {
                self.fade(page, (-visit.age / half_life).exp2());
            }
            let free = match (self.estimator, visit.changed) {
                (Estimator::LastModified, Some(at)) => now - at,
                _ => visit.age,
            };
            self.visits[page] += 1.0;
            self.changes[page] += f64::from(u8::from(visit.changed.is_some()));
            self.days[page] += free;
            if let Some(likelihood) = self.likelihood.get_mut(page) {
                let days = visit.age.max(SHORTEST_DAYS);
                for (sum, rate) in likelihood.iter_mut().zip(self.grid) {
                    *sum += log_likelihood(days, visit.changed.is_some(), rate);
                }
            }
            self.rates[page] = Some(self.estimate(page));
        }
    }

    fn fade(&mut self, page: usize, factor: f64) {
        for sum in [&mut self.changes[page], &mut self.days[page], &mut self.visits[page]] {
            *sum *= factor;
        }
        if let Some(likelihood) = self.likelihood.get_mut(page) {
            likelihood.iter_mut().for_each(|sum| *sum *= factor);
        }
    }

    fn estimate(&self, page: usize) -> f64 {
        let (changes, days, visits) = (self.changes[page], self.days[page], self.visits[page]);
        match self.estimator {
            Estimator::Likelihood | Estimator::LikelihoodScaled => self.peak(page),
            Estimator::Naive => (changes + 0.5) / (days + 0.5),
            Estimator::LargeNumbers => visits / days.max(1e-9) * (changes + 0.25) / (visits + 0.5 - changes),
            Estimator::LastModified => (changes + self.shape) / (days + self.rate_days),
            Estimator::Posterior | Estimator::PosteriorMean => {
                self.posterior(page).iter().zip(self.grid).map(|(share, rate)| share * rate).sum()
            }
        }
    }

    /// Returns the rate with the highest likelihood: the best one of the grid, refined by the parabola through its
    /// neighbours.
    fn peak(&self, page: usize) -> f64 {
        let likelihood = &self.likelihood[page];
        let mut best = 0;
        for i in 1..GRID {
            if likelihood[i] > likelihood[best] {
                best = i;
            }
        }
        let best = best.clamp(1, GRID - 2);
        let (below, at, above) = (likelihood[best - 1], likelihood[best], likelihood[best + 1]);
        let bend = below - 2.0 * at + above;
        let offset = if bend.abs() > 1e-12 { (below - above) / (2.0 * bend) } else { 0.0 };
        let step = (self.grid[1] / self.grid[0]).ln();
        self.grid[best] * (offset.clamp(-1.0, 1.0) * step).exp()
    }

    /// Returns the posterior of `page` over the grid.
    pub(super) fn posterior(&self, page: usize) -> [f64; GRID] {
        let log: [f64; GRID] = std::array::from_fn(|i| self.likelihood[page][i] + self.prior[i]);
        let top = log.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let shares = log.map(|value| (value - top).exp());
        let sum: f64 = shares.iter().sum();
        shares.map(|share| share / sum)
    }

    /// Updates what is learned from all pages together, if it is due.
    pub(super) fn renew(&mut self, now: f64) {
        if now - self.renewed < self.experiment * RENEWAL {
            return;
        }
        self.renewed = now;
        let seen: Vec<usize> = (0..self.visits.len()).filter(|&page| self.visits[page] > 0.0).collect();
        if seen.len() < PAGES_MIN {
            return;
        }
        if self.estimator.is_posterior() {
            self.learn_prior(&seen);
        } else if self.estimator == Estimator::LastModified {
            self.learn_gamma(&seen);
        } else {
            let mut rates: Vec<f64> = seen.iter().map(|&page| self.rate(page)).collect();
            rates.sort_by(f64::total_cmp);
            let middle = rates.len() / 2;
            self.unseen = if rates.len() % 2 == 1 {
                rates[middle]
            } else {
                f64::midpoint(rates[middle - 1], rates[middle])
            };
        }
    }

    /// Runs some expectation-maximisation steps for the prior over the grid.
    fn learn_prior(&mut self, seen: &[usize]) {
        for _ in 0..5 {
            let mut shares = [1e-4 / GRID as f64; GRID];
            for &page in seen {
                for (sum, share) in shares.iter_mut().zip(self.posterior(page)) {
                    *sum += share / seen.len() as f64;
                }
            }
            let sum: f64 = shares.iter().sum();
            self.prior = shares.map(|share| (share / sum).ln());
        }
        for &page in seen {
            self.rates[page] = Some(self.estimate(page));
        }
        let mean_log: f64 = self.prior.iter().zip(self.grid).map(|(log, rate)| log.exp() * rate.ln()).sum();
        self.unseen = mean_log.exp();
    }

    /// Fits a Gamma distribution to the moments of the rates of pages seen at least twice.
    fn learn_gamma(&mut self, seen: &[usize]) {
        let pages: Vec<usize> = seen.iter().copied().filter(|&page| self.visits[page] >= 2.0).collect();
        let changes: f64 = pages.iter().map(|&page| self.changes[page]).sum();
        if pages.len() <= PAGES_MIN || changes < CHANGES_MIN {
            return;
        }
        let days: f64 = pages.iter().map(|&page| self.days[page]).sum();
        let mean = changes / days;
        let (mut squares, mut weights) = (0.0, 0.0);
        for &page in &pages {
            let weight = self.days[page].max(1e-9);
            squares += weight * (self.changes[page] / self.days[page].max(1e-6) - mean).powi(2);
            weights += weight;
        }
        let sampling = mean / (days / pages.len() as f64);
        let variance = (squares / weights - sampling).max(mean * mean * 0.05);
        self.shape = (mean * mean / variance).clamp(0.05, 5.0);
        self.rate_days = (mean / variance).clamp(0.05, 1e4);
        self.unseen = mean;
        for &page in seen {
            self.rates[page] = Some(self.estimate(page));
        }
    }
}

impl Estimator {
    fn is_posterior(self) -> bool {
        matches!(self, Self::Posterior | Self::PosteriorMean)
    }
}

fn log_likelihood(days: f64, changed: bool, rate: f64) -> f64 {
    let x = days * rate;
    if changed { (-(-x.max(1e-300)).exp_m1()).ln() } else { -x }
}
