//! How a refresh chooses pages: the rules from its job, which archives keep for later runs and plans.

use std::collections::HashSet;
use std::time::Duration;

use archive_base::decisions::Decisions;
use archive_choose::{Discovery, FOLDERS_FROM, RefreshChoice, RefreshRules, Weighing, WeightError, Weights};
use archive_math::refresh::policies::PolicyName;
use archive_storage::{Store, UrlId};

use super::super::Failure;

/// What a refresh changes of the rules that archives keep; `None` keeps what the archive has.
#[derive(Clone, Debug, Default)]
pub struct RulesChange {
    /// The policy.
    pub policy: Option<PolicyName>,
    /// The weight of pages.
    pub weight: Option<Weighing>,
    /// Weight below which pages are neither fetched again nor discovered.
    pub floor: Option<f64>,
    /// Share of the budget for known pages that were never fetched.
    pub discovery: Option<Discovery>,
    /// Shortest interval between two fetches of a page.
    pub shortest: Option<Duration>,
    /// Parts of pages to ask again with them, at most so many per page of the budget on average.
    pub parts: Option<u32>,
    /// Unit to which the shortest interval is rounded.
    pub unit: Option<Duration>,
}

impl RulesChange {
    /// The rules kept by the archives, as changed.
    pub(super) fn over_kept(&self, stores: &[Store]) -> Result<RefreshRules, Failure> {
        if self.unit.is_some_and(|unit| unit.is_zero()) {
            return Err(Failure::usage("--time-unit has to be more than 0"));
        }
        let mut common = None;
        for store in stores {
            let kept = RefreshRules::kept(store.state())?;
            let rules = RefreshRules {
                policy: self.policy.clone().unwrap_or(kept.policy),
                weight: self.weight.clone().unwrap_or(kept.weight),
                floor: self.floor.unwrap_or(kept.floor),
                discovery: self.discovery.unwrap_or(kept.discovery),
                shortest: self.shortest.unwrap_or(kept.shortest),
                parts: self.parts.unwrap_or(kept.parts),
                unit: self.unit.unwrap_or(kept.unit),
            };
            if *common.get_or_insert_with(|| rules.clone()) != rules {
                return Err(Failure::usage(
                    "these archives were last refreshed by different rules; give --policy, --weight, --floor, \
                     --discovery, --shortest, --parts and --time-unit, or refresh each by itself",
                ));
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
) -> Result<Vec<(RefreshChoice, bool)>, Failure> {
    let read = |store: &Store| {
        Weights::read(store.path(), &rules.weight).map_err(|error| match error {
            WeightError::Missing(_) => Failure::usage(format!("{}: {error}", store.path().display())),
            error => error.into(),
        })
    };
    let mut weights = stores.iter().map(read).collect::<Result<Vec<_>, Failure>>()?;
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
        let choice = RefreshChoice::new(rules.clone(), weights).with_folders(store.path(), FOLDERS_FROM);
        let choice = match only.as_mut().and_then(Iterator::next) {
            Some(only) => choice.among(only),
            None => choice,
        };
        Ok((choice, is_changed))
    };
    stores.iter_mut().zip(weights).map(choose).collect()
}
