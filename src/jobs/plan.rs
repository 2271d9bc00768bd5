//! Predicts what a refresh budget buys.

use archive_ask::query::{self, Question};
use archive_base::access::Access;
use archive_choose::freshness::{PartModel, copies_of};
use archive_choose::plan::{
    Forecast, ForecastSample, Guarantee, Period, RUNS_MAX, RunRanking, RunSeries, requests,
};
use archive_choose::{RefreshRules, Timetable};
use archive_math::refresh::policies::PolicyName;
use archive_peers::nodes::CopySample;
use archive_storage::Store;
use chrono::{DateTime, Utc};
use serde::Serialize;

use super::Failure;

/// Budgets of the curve, relative to the given one.
const CURVE: [f64; 8] = [0.0, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0];

/// What is to be predicted.
#[derive(Clone, Debug)]
pub struct PlanJob {
    /// Maximum number of pages that a run fetches.
    pub budget: u64,
    /// Days between two runs.
    pub every_days: f64,
    /// Number of days to look ahead.
    pub days: f64,
    /// The policy to assume; `None` for that of the last refresh.
    pub policy: Option<PolicyName>,
    /// The freshness for which to find the budget, too.
    pub target: Option<f64>,
    /// The currency for which to find the budget and the periods of pages, too.
    pub guarantee: Option<Guarantee>,
}

/// The forecast of a budget.
#[derive(Clone, Debug, Serialize)]
pub struct BudgetForecast {
    /// What it achieves.
    #[serde(flatten)]
    pub forecast: Forecast,
    /// Expected requests of all runs in total, with those for parts of pages.
    pub requests: u64,
    /// Whether this is the given budget.
    pub asked: bool,
    /// The target freshness, if this is the lowest budget that reaches it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<f64>,
    /// The currency, if this is the lowest budget that reaches it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guarantee: Option<Guarantee>,
}

/// The forecasts of several budgets.
#[derive(Clone, Debug)]
pub struct PlanOutcome {
    /// The forecasts, in the order of their budgets.
    pub budgets: Vec<BudgetForecast>,
    /// How often pages have to be fetched for the wanted currency, if one is wanted.
    pub periods: Vec<Period>,
    /// The number of pages of the sample that they were computed from, if it is not all pages.
    pub sample: Option<usize>,
    /// Whether no budget reaches the target.
    pub is_out_of_reach: bool,
    /// Whether no budget reaches the wanted currency.
    pub is_never_current: bool,
}

impl PlanJob {
    /// Checks the times.
    ///
    /// # Errors
    /// If they make no runs, or too many.
    pub fn check(&self) -> Result<(), Failure> {
        let is_time = self.days > 0.0 && self.days.is_finite() && self.every_days > 0.0;
        if is_time && self.days / self.every_days <= RUNS_MAX as f64 {
            return Ok(());
        }
        let text = format!("--days and --every have to be more than 0, and give at most {RUNS_MAX} runs");
        Err(Failure::usage(text))
    }

    /// How runs will rank pages: as in the last refresh, or as requested.
    fn ranking(&self, kept: &RefreshRules) -> Result<RunRanking, Failure> {
        let policy = self.policy.as_ref().unwrap_or(&kept.policy);
        let Some(by) = policy.rule() else {
            let text =
                format!("there is no forecast for the policy {policy}; name another one with --policy");
            return Err(Failure::usage(text));
        };
        Ok(RunRanking { by, shortest: kept.shortest_days(), floor: kept.floor })
    }
}

/// Predicts what the budget and others around it buy, for these copies.
///
/// # Errors
/// If the archives have different rules, or there is no forecast for the policy.
pub fn plan(job: &PlanJob, copies: &CopySample) -> Result<PlanOutcome, Failure> {
    job.check()?;
    let mut ranking = None;
    for rules in &copies.rules {
        let own = job.ranking(rules)?;
        if *ranking.get_or_insert(own) != own {
            return Err(Failure::usage(
                "these archives were last refreshed by different policies or intervals; plan each by itself",
            ));
        }
    }
    let ranking = ranking.ok_or_else(|| Failure::usage("there is no archive"))?;
    let sample = ForecastSample::drawn(copies.sampled.iter().collect(), copies.count);
    let grace = job.guarantee.map_or(0.0, |guarantee| guarantee.grace_days);
    let runs = RunSeries { budget: job.budget as f64, every: job.every_days, days: job.days, grace };
    let row = |forecast: Forecast| {
        let parts_max = copies.rules.iter().map(|rules| rules.parts_max(forecast.budget)).max().unwrap_or(0);
        let requests = requests(&forecast, &runs, sample.len(), &copies.parts, parts_max);
        let asked = forecast.budget == job.budget;
        BudgetForecast { asked, forecast, requests, target: None, guarantee: None }
    };
    let of_budget = |budget: u64| sample.forecast(&ranking, &RunSeries { budget: budget as f64, ..runs });
    let budgets = budgets(job.budget, sample.len()).into_iter();
    let mut budgets: Vec<BudgetForecast> = budgets.map(|budget| row(of_budget(budget))).collect();
    let mut add = |found: BudgetForecast| {
        let is_curve = |row: &BudgetForecast| !row.asked && row.target.is_none();
        budgets.retain(|row| !is_curve(row) || row.forecast.budget != found.forecast.budget);
        budgets.push(found);
    };
    // Fresh copies are current without a grace period.
    let fresh_runs = RunSeries { grace: 0.0, ..runs };
    let reached = job.target.map(|target| (target, sample.budget_for(&ranking, &fresh_runs, target)));
    if let Some((target, Some(fresh))) = reached {
        add(BudgetForecast { target: Some(target), ..row(of_budget(fresh.budget)) });
    }
    let kept = job.guarantee.map(|wanted| (wanted, sample.budget_for(&ranking, &runs, wanted.current)));
    if let Some((guarantee, Some(forecast))) = kept {
        add(BudgetForecast { guarantee: Some(guarantee), ..row(forecast) });
    }
    budgets.sort_by_key(|row| row.forecast.budget);
    let periods = job.guarantee.map(|guarantee| sample.periods(guarantee, job.every_days));
    Ok(PlanOutcome {
        budgets,
        periods: periods.unwrap_or_default(),
        sample: sample.is_part().then(|| sample.len()),
        is_out_of_reach: matches!(reached, Some((_, None))),
        is_never_current: matches!(kept, Some((_, None))),
    })
}

/// The budgets of the curve: around the given one, and no more than there are pages.
fn budgets(asked: u64, pages: usize) -> Vec<u64> {
    let mut budgets: Vec<u64> = CURVE.iter().map(|part| (asked as f64 * part).round() as u64).collect();
    budgets.retain(|budget| *budget <= asked || *budget < pages as u64);
    budgets.dedup();
    budgets
}

/// The copies in several archives as in one, sampled down to the number used for a plan: of all pages, or of those that
/// a query finds.
///
/// # Errors
/// If two of the archives have the same site, the query is wrong, or an archive cannot be read.
pub fn copies(
    archives: &[(&Store, Access)],
    query: Option<&str>,
    now: DateTime<Utc>,
) -> Result<CopySample, Failure> {
    // A page that is in two archives would be planned twice.
    query::answering(archives)?;
    let found = match query {
        None => None,
        Some(text) => {
            let question = Question::of(archives.to_vec(), text, Utc::now())?;
            Some(question.of_pages()?.pages_by_archive(archives.len())?)
        }
    };
    let (mut all, mut rules, mut parts) = (Vec::new(), Vec::new(), Vec::new());
    for (archive, (store, _)) in archives.iter().enumerate() {
        let copies = copies_of(store, found.as_ref().map(|found| &found[archive]), now)?;
        let kept = RefreshRules::kept(store.state())?;
        parts.extend(PartModel::of(store.state(), &copies, kept.shortest_days())?);
        all.extend(copies);
        rules.push(kept);
    }
    let count = all.len();
    Ok(CopySample {
        rules,
        count,
        parts,
        sampled: all.into_iter().step_by(ForecastSample::step(count)).collect(),
    })
}

/// The pages that bring nothing now, and how often refreshes ask them in the days of a plan nevertheless.
///
/// # Errors
/// If an archive cannot be read.
pub fn retries(
    archives: &[(&Store, Access)],
    job: &PlanJob,
    now: DateTime<Utc>,
) -> Result<(u64, u64), Failure> {
    let (mut failing, mut again) = (0, 0);
    for (store, _) in archives {
        let (pages, attempts) = Timetable::of(store, now)?.retries(store.state(), job.days)?;
        (failing, again) = (failing + pages, again + attempts);
    }
    Ok((failing, again))
}
