//! How a refresh chooses pages: the rules from its options, which archives keep for later runs and plans.

use std::collections::HashSet;
use std::time::Duration;

use archive_base::decisions::Decisions;
use archive_choose::{Choice, Discovery, FOLDERS_FROM, RefreshRules, Weighing, WeightError, Weights};
use archive_math::refresh::policies::PolicyName;
use archive_storage::{Store, UrlId};

use super::super::UsageError;
use super::super::options::duration;

/// Choice of pages; an omitted option keeps its stored value.
#[derive(clap::Args)]
#[command(next_help_heading = "Choice of pages (stored for later runs and plans)")]
pub(super) struct RulesArgs {
    /// Refresh policy: default, uniform, prop, xyleme, index, hindex (LambdaCrawl's greedy form), chogm, lambda, azar,
    /// evh_hindex, nutch, …, as in `archive-lab refresh` [default: default]
    #[arg(long, value_name = "NAME")]
    policy: Option<PolicyName>,
    /// Weight of pages: importance; interest (HTML pages by the column `interest` of `archive rank`, if there is one,
    /// all others by importance); or the name of a column [default: interest]
    #[arg(long, value_name = "NAME")]
    weight: Option<String>,
    /// Share of the budget for known pages that were never fetched: 0.1, 10%, or auto (their share of all importance,
    /// at most half) [default: 0]
    #[arg(long, value_name = "SHARE")]
    discovery: Option<Discovery>,
    /// Shortest interval between two fetches of a page, except for awaited and announced pages [default: 1h]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    shortest: Option<Duration>,
    /// Parts of pages (style sheets, pictures and so on) to ask again with them, at most N per page of the budget on
    /// average; 0 for none [default: 20]
    #[arg(long, value_name = "N")]
    parts: Option<u32>,
    /// Unit to which --shortest is rounded: runs may start up to half of it early [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    time_unit: Option<Duration>,
}

impl RulesArgs {
    /// The rules kept by the archives, overridden by the given options.
    pub(super) fn over_kept(&self, stores: &[Store]) -> anyhow::Result<RefreshRules> {
        if self.time_unit.is_some_and(|unit| unit.is_zero()) {
            return Err(UsageError("--time-unit has to be more than 0".to_owned()).into());
        }
        let mut common = None;
        for store in stores {
            let kept = RefreshRules::kept(store.state())?;
            let rules = RefreshRules {
                policy: self.policy.clone().unwrap_or(kept.policy),
                weight: self.weight.clone().map_or(kept.weight, Weighing::from),
                discovery: self.discovery.unwrap_or(kept.discovery),
                shortest: self.shortest.unwrap_or(kept.shortest),
                parts: self.parts.unwrap_or(kept.parts),
                unit: self.time_unit.unwrap_or(kept.unit),
            };
            if *common.get_or_insert_with(|| rules.clone()) != rules {
                let problem = "these archives were last refreshed by different rules; give --policy, --weight, --discovery, \
                           --shortest, --parts and --time-unit, or refresh each by itself";
                return Err(UsageError(problem.to_owned()).into());
            }
        }
        Ok(common.unwrap_or_default())
    }
}

/// Makes each archive choose by these rules and keep them, among `only` these pages if any are given. Returns each choice,
/// and whether the archive had kept different rules.
pub(super) fn choices(
    rules: &RefreshRules,
    stores: &mut [Store],
    with_decisions: bool,
    only: Option<Vec<HashSet<UrlId>>>,
) -> anyhow::Result<Vec<(Choice, bool)>> {
    let read = |store: &Store| {
        Weights::read(store.path(), &rules.weight).map_err(|error| match error {
            WeightError::Missing(_) => {
                anyhow::Error::from(UsageError(format!("{}: {error}", store.path().display())))
            }
            error => error.into(),
        })
    };
    let mut weights = stores.iter().map(read).collect::<anyhow::Result<Vec<_>>>()?;
    Weights::put_on_one_scale(&mut weights);
    let mut only = only.map(Vec::into_iter);
    let choose = |(store, mut weights): (&mut Store, Weights)| {
        if with_decisions {
            weights = weights.with_decisions(store.state(), Decisions::read(store.path())?)?;
        }
        let is_changed = RefreshRules::kept(store.state())? != *rules;
        if is_changed {
            rules.keep(store.state_mut())?;
        }
        let choice = Choice::new(rules.clone(), weights).with_folders(store.path(), FOLDERS_FROM);
        let choice = match only.as_mut().and_then(Iterator::next) {
            Some(only) => choice.among(only),
            None => choice,
        };
        Ok((choice, is_changed))
    };
    stores.iter_mut().zip(weights).map(choose).collect()
}
