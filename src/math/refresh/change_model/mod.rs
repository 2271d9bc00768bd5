//! A model of page changes that learns from all visits: the policy that did best on recorded histories.
//!
//! Every page has a rate, and pages of a site share the times at which changes happen (`timeline`). Evidence for or
//! against a change comes from visits of related pages since the page's own last visit, from its own last change, and
//! from pages that appeared near it (`relatives`, `cohort`, `births`). The weight of each is learned online from all
//! visits (`regression`), so nothing is tuned to an archive. The value of a fetch is the freshness it gains by Cho and
//! Garcia-Molina's crawl value, with the expected number of changes in place of λτ, and in calendar days for all sites
//! (`pace`).

mod births;
mod cohort;
mod pace;
mod population;
mod promises;
mod regression;
mod relatives;
#[cfg(test)]
mod tests;
mod timeline;

use std::collections::HashMap;

use births::Births;
use cohort::Cohorts;
use pace::Paces;
use population::Population;
use promises::Promises;
use rayon::prelude::*;
use regression::Regression;
pub(crate) use relatives::RELATIONS;
use relatives::Relatives;
pub use relatives::{DIRECTORY, Relations, relations};
use timeline::Timelines;

use super::budget::BudgetRule;

/// Bytes of the model per page. The memory for each site, directory and group is bounded.
pub const PAGE_BYTES: usize = 132;

/// What is known about a page before its first visit.
#[derive(Clone, Debug)]
pub struct ModelledPage {
    /// Importance relative to the mean of all pages.
    pub importance: f64,
    /// Number of its site.
    pub site: usize,
    /// Number of its directory.
    pub directory: usize,
    /// Names of its groups, from [`relations`].
    pub relations: Relations,
    /// Changes a day that its site announces.
    pub promised: Option<f64>,
}

/// The result of a visit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sighting {
    /// Number of the page.
    pub page: usize,
    /// Days since the previous visit.
    pub age: f64,
    /// Time of the last change, in days on the caller's clock, if the page changed since the previous visit.
    pub changed: Option<f64>,
}

/// Inputs of the regression: a constant, the log-odds by the rate, the rate, the age, the page's own last change,
/// births in site and directory, the groups, the cohort.
const INPUTS: usize = 7 + RELATIONS + 1;
const BIRTHS: usize = 5;
const GROUPS: usize = 7;
const COHORT: usize = INPUTS - 1;
/// Initial weight of the evidence from relatives.
const FIRST_EVIDENCE: f64 = 0.12;
/// Prior variances of the weights.
const VARIANCE_CONSTANT: f64 = 1.0 / 3.0;
const VARIANCE: f64 = 1.0 / 30.0;
/// Bound of the log-ratios given to the regression.
const EVIDENCE_MAX: f64 = 4.0;
/// Number of pages that a task evaluates.
const PAGES_OF_PART: usize = 1 << 12;

/// Number of pages per fetch whose values are computed before the others are compared with an upper bound.
const CANDIDATES: usize = 8;
/// Relations by which births are counted.
const BIRTH_RELATIONS: [usize; 2] = [relatives::SITE, relatives::DIRECTORY];

/// The learned model.
#[derive(Clone, Debug)]
pub struct ChangeModel {
    pages: Vec<KeptPage>,
    population: Population,
    timelines: Timelines,
    paces: Paces,
    relatives: Relatives,
    cohorts: Cohorts,
    regression: Regression<INPUTS>,
    /// When each page last changed or appeared, as far as known.
    changed: Vec<f64>,
    /// When pages appeared, by site and directory.
    births: Births,
    /// Expected changes announced since the last visit of a page.
    announced: HashMap<usize, f64>,
    /// Days between visits if all pages were visited equally often.
    interval: f64,
}

/// The part of a [`ModelledPage`] that is kept.
#[derive(Clone, Copy, Debug)]
struct KeptPage {
    importance: f64,
    site: u32,
    directory: u32,
}

/// The evidence for a change of a page.
struct ChangeEvidence {
    rate: f64,
    /// Expected changes by the rate of the page and the measure of its site alone.
    expected: f64,
    inputs: [f64; INPUTS],
}

impl ChangeModel {
    /// Creates a model for pages in `directories` directories and `sites` sites, under a budget in fetches per day.
    /// `mean_rate` is the initial change rate; by default it is one that the budget can keep up with.
    pub fn new(
        pages: impl ExactSizeIterator<Item = ModelledPage>,
        sites: usize,
        directories: usize,
        budget: f64,
        mean_rate: Option<f64>,
    ) -> Self {
        let count = pages.len();
        let mean_rate = mean_rate.unwrap_or(budget / count as f64);
        let mut site_of = vec![0; directories];
        let (mut places, mut directory_of) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut relations = Vec::with_capacity(count);
        let mut promises = Promises::default();
        for (number, page) in pages.enumerate() {
            if let Some(rate) = page.promised {
                promises.add(number, page.site, rate);
            }
            site_of[page.directory] = page.site;
            let (site, directory) = (page.site as u32, page.directory as u32);
            places.push(KeptPage { importance: page.importance, site, directory });
            directory_of.push(directory);
            relations.push(page.relations);
        }
        let mut weights = [FIRST_EVIDENCE; INPUTS];
        weights[..GROUPS].copy_from_slice(&[0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        let mut variances = [VARIANCE; INPUTS];
        variances[0] = VARIANCE_CONSTANT;
        Self {
            population: Population::new(directory_of, directories, mean_rate, promises),
            timelines: Timelines::new(&site_of, sites),
            paces: Paces::new(sites, count as f64 / budget),
            births: Births::new(&relations, BIRTH_RELATIONS),
            relatives: Relatives::new(&relations),
            cohorts: Cohorts::new(count),
            regression: Regression::new(weights, variances),
            changed: vec![f64::NEG_INFINITY; count],
            announced: HashMap::new(),
            interval: count as f64 / budget,
            pages: places,
        }
    }

    /// Records that a page was discovered and first fetched; `born` says whether it was new then.
    pub fn found(&mut self, page: usize, at: f64, born: bool) {
        if born {
            self.changed[page] = at;
            self.cohorts.changed(page, at);
            self.births.add(page, at);
        }
    }

    /// Records an announced change since the last visit of a page, worth `changes` expected changes.
    pub fn announced(&mut self, page: usize, changes: f64) {
        self.announced.insert(page, changes);
    }

    /// Records that a page no longer exists.
    pub fn gone(&mut self, page: usize) {
        self.population.gone(page);
        self.cohorts.gone(page);
    }

    /// Computes the value of fetching each of `pages` now, whose copies are `ages` days old. The `best` highest values
    /// are exact; the others are only certain to be lower.
    pub fn values(&mut self, now: f64, pages: &[usize], ages: &[f64], best: usize, values: &mut [f64]) {
        self.timelines.sum_all();
        let model = &*self;
        let pairs = pages.par_iter().zip(ages).enumerate().with_min_len(PAGES_OF_PART);
        let mut candidates: Vec<(f64, usize)> =
            pairs.map(|(place, (&page, &age))| (model.value_max(page, now, age), place)).collect();
        let first = (CANDIDATES * best).min(candidates.len());
        if first == 0 {
            return;
        }
        candidates.select_nth_unstable_by(first - 1, |a, b| b.0.total_cmp(&a.0));
        let (likely, others) = candidates.split_at(first);
        let mut found: Vec<f64> = Vec::with_capacity(first);
        for &(_, place) in likely {
            values[place] = model.value(pages[place], now, ages[place]);
            found.push(values[place]);
        }
        let kth = best.min(found.len()) - 1;
        let bar = *found.select_nth_unstable_by(kth, |a, b| b.total_cmp(a)).1;
        let others = others.par_iter().with_min_len(PAGES_OF_PART).map(|&(value_max, place)| {
            (place, if value_max < bar { value_max } else { model.value(pages[place], now, ages[place]) })
        });
        for (place, value) in others.collect::<Vec<_>>() {
            values[place] = value;
        }
    }

    /// Returns an upper bound of [`value`](Self::value), at a fraction of the cost.
    fn value_max(&self, page: usize, now: f64, age: f64) -> f64 {
        let rate = self.population.rate(page);
        let importance = self.pages[page].importance / self.pace(page);
        if self.announced.contains_key(&page) {
            return importance / rate;
        }
        let days = self.timelines.between(self.directory(page), now - age, now).max(1e-9);
        // Freshness.value(w, λ, τ) is below w/λ and w λτ²/2; the expected changes are below √(λ days · 8).
        let bound = rate.recip().min(regression::LOG_ODDS_MAX * 1.001 / 2.0 * days);
        importance * bound
    }

    /// Returns the value of fetching a page now whose copy is `age` days old.
    pub fn value(&self, page: usize, now: f64, age: f64) -> f64 {
        let evidence = self.evidence(page, now - age, now);
        let announced = self.announced.get(&page).copied().unwrap_or(0.0);
        let changes = self.expected_changes(&evidence) + announced;
        let value =
            BudgetRule::Freshness.value(self.pages[page].importance, evidence.rate, changes / evidence.rate);
        self.population.alive(page) * value / self.pace(page)
    }

    /// Learns from all visits at one time.
    pub fn seen(&mut self, now: f64, sightings: &[Sighting]) {
        for seen in sightings {
            self.timelines.sum(self.directory(seen.page));
        }
        let evidence: Vec<ChangeEvidence> =
            sightings.iter().map(|seen| self.evidence(seen.page, now - seen.age, now)).collect();
        for (seen, evidence) in sightings.iter().zip(&evidence) {
            self.regression.learn(&evidence.inputs, seen.changed.is_some());
            let changed = seen.changed.unwrap_or(self.changed[seen.page]);
            self.relatives.visited(seen.page, now, changed, evidence.rate);
            self.cohorts.visited(seen.page, now, changed);
        }
        let mut sites = Vec::new();
        for seen in sightings {
            let rate = self.population.rate(seen.page);
            let from = seen.changed.unwrap_or(now - seen.age);
            self.timelines.book(self.directory(seen.page), from, seen.changed, rate);
            sites.push(self.pages[seen.page].site as usize);
        }
        sites.sort_unstable();
        sites.dedup();
        sites.into_iter().for_each(|site| self.timelines.close(site, now));
        for seen in sightings {
            self.timelines.sum(self.directory(seen.page));
            let page = seen.page;
            // The change itself belongs to the observed time.
            let from = seen.changed.map_or(now - seen.age, |at| at - timeline::SAME_DAYS * 1.01);
            let days = self.timelines.between(self.directory(page), from, now).max(0.0);
            self.population.book(page, days, seen.changed.is_some());
            self.paces.book(
                self.pages[page].site as usize,
                days,
                now - seen.changed.unwrap_or(now - seen.age),
            );
            self.announced.remove(&page);
            if let Some(at) = seen.changed {
                self.changed[page] = at;
                self.cohorts.changed(page, at);
            }
        }
        self.population.renew();
    }

    /// Days of a site's measure per calendar day.
    fn pace(&self, page: usize) -> f64 {
        self.paces.of(self.pages[page].site as usize)
    }

    fn directory(&self, page: usize) -> usize {
        self.pages[page].directory as usize
    }

    fn evidence(&self, page: usize, last: f64, now: f64) -> ChangeEvidence {
        let rate = self.population.rate(page);
        let days = self.timelines.between(self.directory(page), last, now).max(1e-9);
        // Averages over the distribution of the rate instead of using its mean.
        let certainty = self.population.changes(page);
        let expected = certainty * (rate * days / certainty).ln_1p();
        let bounded = expected.clamp(0.01, 5.0);
        let chance = -(-bounded).exp_m1();
        let odds = bounded.exp_m1();
        let age = (now - last).max(1e-3);
        let mut inputs = [0.0; INPUTS];
        inputs[0] = 1.0;
        inputs[1] = odds.ln();
        inputs[2] = (rate / self.population.mean()).ln();
        inputs[3] = (age / self.interval).ln().clamp(-5.0, 5.0);
        let quiet = last - self.changed[page];
        inputs[4] = if quiet.is_finite() { (quiet / age).clamp(0.02, 50.0).ln() } else { 1.5 };
        for (input, (late, all)) in inputs[BIRTHS..].iter_mut().zip(self.births.since(page, last)) {
            let usual = all * age / now.max(1.0);
            *input = ((late + 0.5) / (usual + 0.5)).ln();
        }
        for (input, group) in inputs[GROUPS..].iter_mut().zip(self.relatives.evidence(page, last)) {
            if group.visits > 0.0 {
                let ratio = (group.hits + chance) / (group.expected + chance);
                *input = ratio.ln().clamp(-EVIDENCE_MAX, EVIDENCE_MAX);
            }
        }
        let (visits, hits) = self.cohorts.evidence(page, last);
        if visits > 0.0 {
            let share: f64 = ((hits + chance) / (visits + 1.0)).clamp(0.003, 0.997);
            inputs[COHORT] = (share / (1.0 - share)).ln() - inputs[1];
        }
        ChangeEvidence { rate, expected, inputs }
    }

    /// Expected changes since the last visit: the geometric mean of the results of the regression and of the rate
    /// alone, because the regression learns only from pages that were worth a visit.
    fn expected_changes(&self, evidence: &ChangeEvidence) -> f64 {
        let log_odds = self.regression.log_odds(&evidence.inputs);
        // -ln(1 - p) for p = 1/(1 + e^-z).
        let learned = log_odds.max(0.0) + (-log_odds.abs()).exp().ln_1p();
        (learned * evidence.expected).sqrt()
    }
}
