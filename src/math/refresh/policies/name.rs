//! Names of online policies: a rule and the source of its rates, as in `xyleme_mles` or `evh_hindex_h365`.

use std::fmt;
use std::str::FromStr;

use super::activity::SiteActivities;
use super::adaptive::{Adaptive, BudgetFit, CrawlerSchedule};
use super::estimates::Estimator;
use super::events::{SharedEvents, Sharing};
use super::ranked::{Ageing, Allocated, Greedy, Uniform};
use super::shared::SharedModel;
use super::{RefreshPolicy, RefreshProblem};
use crate::refresh::budget::BudgetRule;

/// The name of an online policy.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyName {
    text: String,
    kind: PolicyKind,
}

/// The text is not the name of a policy.
#[derive(Debug, thiserror::Error)]
#[error(
    "there is no policy {0:?}; known are default, uniform, xyleme, penalty:ALPHA:BETA, prop, chogm, azar, lambda, index, hindex \
     (these also with _mle, _mles, _naive, _lln, _lm, _eb, _ebmean after them), evd_index, evh_hindex, \
     gf_hindex_naive; nutch, heritrix, storm with _fifo, _strict, _tuned0.3; _h365 after a name lets visits fade with that half-life in days"
)]
pub struct UnknownPolicy(pub String);

#[derive(Clone, Copy, Debug, PartialEq)]
enum PolicyKind {
    Default,
    Uniform,
    Greedy(BudgetRule, Ages, Estimator, Option<f64>),
    /// A budget divided in advance.
    Allocated(BudgetRule, Estimator, Option<f64>),
    Adaptive(CrawlerSchedule, BudgetFit),
}

/// What counts as the age of a copy.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ages {
    Calendar,
    Activity,
    Events(Sharing),
}

/// Short names and their full forms.
const SHORT: [(&str, &str); 13] = [
    ("xyleme", "xyleme_mles"),
    ("prop", "prop_mles"),
    ("proportional", "prop_mles"),
    ("chogm", "chogm_mles"),
    ("azar", "azar_mles"),
    ("lambda", "lambda_mles"),
    ("lambdacrawl", "lambda_mles"),
    ("index", "index_mles"),
    ("hindex", "hindex_mles"),
    ("evh", "evh_hindex"),
    ("nutch", "nutch_fifo"),
    ("heritrix", "heritrix_fifo"),
    ("storm", "storm_fifo"),
];

impl PolicyName {
    /// Creates the policy for the pages in `known`. Random decisions use `draw`, which returns numbers from 0 to 1.
    #[must_use]
    pub fn build(&self, known: &RefreshProblem, draw: &mut dyn FnMut() -> f64) -> Box<dyn RefreshPolicy> {
        match self.kind {
            PolicyKind::Default => Box::new(SharedModel::new(known)),
            PolicyKind::Uniform => Box::new(Uniform),
            PolicyKind::Greedy(rule, ages, estimator, half) => {
                let ageing: Option<Box<dyn Ageing>> = match ages {
                    Ages::Calendar => None,
                    Ages::Activity => Some(Box::new(SiteActivities::new(known))),
                    Ages::Events(sharing) => Some(Box::new(SharedEvents::new(sharing, known))),
                };
                Box::new(Greedy::new(rule, ageing, estimator, half, known))
            }
            PolicyKind::Allocated(rule, estimator, half) => {
                Box::new(Allocated::new(rule, estimator, half, known))
            }
            PolicyKind::Adaptive(crawler, fit) => Box::new(Adaptive::new(crawler, fit, known, draw)),
        }
    }

    /// Returns the rule of a policy for single pages, if its name does not specify an estimator: `xyleme`, but not
    /// `xyleme_lm`.
    #[must_use]
    pub fn simple(&self) -> Option<BudgetRule> {
        match self.kind {
            PolicyKind::Uniform => Some(BudgetRule::Uniform),
            PolicyKind::Greedy(rule, Ages::Calendar, ..) | PolicyKind::Allocated(rule, ..)
                if !self.text.contains('_') =>
            {
                Some(rule)
            }
            _ => None,
        }
    }

    /// Returns the rule for ranking pages by importance, rate and age alone, as forecasts do; `None` if only due dates
    /// decide.
    #[must_use]
    pub fn rule(&self) -> Option<BudgetRule> {
        match self.kind {
            PolicyKind::Default => Some(BudgetRule::Freshness),
            PolicyKind::Uniform => Some(BudgetRule::Uniform),
            PolicyKind::Greedy(rule, ..) | PolicyKind::Allocated(rule, ..) => Some(rule),
            PolicyKind::Adaptive(..) => None,
        }
    }
}

impl Default for PolicyName {
    /// The policy that keeps most pages fresh on recorded histories.
    fn default() -> Self {
        Self { text: "default".to_owned(), kind: PolicyKind::Default }
    }
}

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for PolicyName {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        let full = SHORT.iter().find(|(short, _)| *short == text).map_or(text, |(_, full)| full);
        let (name, half_life) = match full.rsplit_once("_h") {
            Some((name, days)) if days.starts_with(|c: char| c.is_ascii_digit()) => {
                (name, days.parse().ok().filter(|days: &f64| *days > 0.0))
            }
            _ => (full, None),
        };
        let kind = match name {
            "default" => Some(PolicyKind::Default),
            "uniform" => Some(PolicyKind::Uniform),
            _ => of_parts(&name.split('_').collect::<Vec<_>>(), half_life),
        };
        let faded = name.len() == full.len() || half_life.is_some();
        kind.filter(|_| faded)
            .map(|kind| Self { text: text.to_owned(), kind })
            .ok_or_else(|| UnknownPolicy(text.to_owned()))
    }
}

fn of_parts(parts: &[&str], half_life: Option<f64>) -> Option<PolicyKind> {
    Some(match *parts {
        ["gf", rule, estimate] => {
            PolicyKind::Greedy(greedy(rule)?, Ages::Activity, estimator(estimate)?, half_life)
        }
        [events @ ("evd" | "evh"), rule] => {
            let sharing = if events == "evd" { Sharing::Directory } else { Sharing::Layered };
            PolicyKind::Greedy(greedy(rule)?, Ages::Events(sharing), Estimator::LastModified, half_life)
        }
        [crawler @ ("nutch" | "heritrix" | "storm"), mode] => {
            let crawler = match crawler {
                "nutch" => CrawlerSchedule::Nutch,
                "heritrix" => CrawlerSchedule::Heritrix,
                _ => CrawlerSchedule::Storm,
            };
            PolicyKind::Adaptive(crawler, fit(mode)?)
        }
        [rule] => PolicyKind::Greedy(penalty(rule)?, Ages::Calendar, Estimator::LikelihoodScaled, half_life),
        [rule, estimate] => match greedy(rule) {
            Some(rule) => PolicyKind::Greedy(rule, Ages::Calendar, estimator(estimate)?, half_life),
            None => PolicyKind::Allocated(allocated(rule)?, estimator(estimate)?, half_life),
        },
        _ => return None,
    })
}

fn fit(mode: &str) -> Option<BudgetFit> {
    match mode {
        "fifo" => Some(BudgetFit::Queue),
        "strict" => Some(BudgetFit::Strict),
        _ => {
            mode.strip_prefix("tuned")?.parse().ok().filter(|scale: &f64| *scale > 0.0).map(BudgetFit::Tuned)
        }
    }
}

/// Returns the rule that ranks pages by value under this name.
fn greedy(name: &str) -> Option<BudgetRule> {
    Some(match name {
        "prop" => BudgetRule::Proportional,
        "xyleme" => BudgetRule::Xyleme,
        "index" => BudgetRule::Freshness,
        "hindex" => BudgetRule::Harmonic,
        _ => return penalty(name),
    })
}

/// Returns the rule `penalty:ALPHA:BETA`.
fn penalty(name: &str) -> Option<BudgetRule> {
    let (old, stale) = name.strip_prefix("penalty:")?.split_once(':')?;
    let [old, stale] =
        [old, stale].map(|number| number.parse().ok().filter(|number: &f64| (0.0..=1e6).contains(number)));
    let (old, stale) = (old?, stale?);
    (old + stale > 0.0).then_some(BudgetRule::Penalty { old, stale })
}

/// Returns the rule that divides a budget by frequencies under this name.
#[must_use]
pub fn allocated(name: &str) -> Option<BudgetRule> {
    Some(match name {
        "prop" => BudgetRule::Proportional,
        "xyleme" => BudgetRule::Xyleme,
        "chogm" => BudgetRule::Freshness,
        "azar" => BudgetRule::Azar,
        "lambda" => BudgetRule::LambdaCrawl,
        _ => return None,
    })
}

fn estimator(name: &str) -> Option<Estimator> {
    Some(match name {
        "mle" => Estimator::Likelihood,
        "mles" => Estimator::LikelihoodScaled,
        "naive" => Estimator::Naive,
        "lln" => Estimator::LargeNumbers,
        "lm" => Estimator::LastModified,
        "eb" => Estimator::Posterior,
        "ebmean" => Estimator::PosteriorMean,
        _ => return None,
    })
}
