//! Names of policies: a rule and where its rates come from, as in `xyleme_mles` or `evh_hindex_h365`.

use std::fmt;
use std::str::FromStr;

use super::Policy;
use super::activity::Activity;
use super::adaptive::{Adaptive, Crawler, Fit};
use super::allocation::Allocation;
use super::estimates::Estimator;
use super::events::{Events, Sharing};
use super::hindsight::{Clairvoyant, Fixed, Informed};
use super::outlook;
use super::ranked::{Allocated, Greedy, Uniform};
use crate::lab::refresh::draws::Draws;
use crate::lab::refresh::world::World;
use crate::refresh::policy::Rule;

/// A policy that can be replayed.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyName {
    text: String,
    kind: Kind,
}

/// A name that means no policy.
#[derive(Debug, thiserror::Error)]
#[error(
    "there is no policy {0:?}; known are default, uniform, RULE_ESTIMATE with RULE one of xyleme, prop, chogm, azar, lambda, \
     index, hindex and ESTIMATE one of mle, mles, naive, lln, lm, eb, ebmean, true; evd_index, evh_hindex, \
     gf_hindex_naive; nutch, heritrix, storm with _fifo, _strict, _tuned0.3; clairvoyant; _h365 behind a name lets \
     visits fade with that half-life in days"
)]
pub struct UnknownPolicy(String);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Default,
    Uniform,
    Clairvoyant,
    Greedy(Rule, Estimator, Option<f64>),
    Allocated(Allocation, Estimator, Option<f64>),
    Activity(Rule, Estimator, Option<f64>),
    Events(Rule, Sharing, Estimator, Option<f64>),
    Adaptive(Crawler, Fit),
    Fixed(Allocation),
    Memoryless(Allocation),
    Informed(Rule),
}

/// Short names, and what they stand for.
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
    /// The policy, ready for a replay of `world` with `budget` fetches a day.
    ///
    /// What it decides by chance comes from `draws`, which the replay then goes on with.
    pub fn build<'a>(&self, world: &'a World, budget: f64, draws: &mut Draws) -> Box<dyn Policy + 'a> {
        let known = world.known(budget);
        match self.kind {
            Kind::Default => Box::new(outlook::Default::new(&known)),
            Kind::Uniform => Box::new(Uniform),
            Kind::Clairvoyant => Box::new(Clairvoyant(world)),
            Kind::Greedy(rule, estimator, half) => Box::new(Greedy::new(rule, estimator, half, &known)),
            Kind::Allocated(allocation, estimator, half) => {
                Box::new(Allocated::new(allocation, estimator, half, &known))
            }
            Kind::Activity(rule, estimator, half) => Box::new(Activity::new(rule, estimator, half, &known)),
            Kind::Events(rule, sharing, estimator, half) => {
                Box::new(Events::new(rule, sharing, estimator, half, &known))
            }
            Kind::Adaptive(crawler, fit) => Box::new(Adaptive::new(crawler, fit, &known, draws)),
            Kind::Fixed(allocation) => Box::new(Fixed::new(allocation, world, budget, None)),
            Kind::Memoryless(allocation) => {
                Box::new(Fixed::new(allocation, world, budget, Some(draws.clone())))
            }
            Kind::Informed(rule) => Box::new(Informed::new(rule, world)),
        }
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
            "default" => Some(Kind::Default),
            "uniform" => Some(Kind::Uniform),
            "clairvoyant" => Some(Kind::Clairvoyant),
            _ => of_parts(&name.split('_').collect::<Vec<_>>(), half_life),
        };
        let faded = name.len() == full.len() || half_life.is_some();
        kind.filter(|_| faded)
            .map(|kind| Self { text: text.to_owned(), kind })
            .ok_or_else(|| UnknownPolicy(text.to_owned()))
    }
}

fn of_parts(parts: &[&str], half_life: Option<f64>) -> Option<Kind> {
    Some(match *parts {
        [allocation, "poisson", "true"] => Kind::Memoryless(allocated(allocation)?),
        [rule, "true"] => match greedy(rule) {
            Some(rule @ (Rule::Freshness | Rule::Harmonic)) => Kind::Informed(rule),
            _ => Kind::Fixed(allocated(rule)?),
        },
        ["gf", rule, estimate] => Kind::Activity(greedy(rule)?, estimator(estimate)?, half_life),
        ["evd", rule] => Kind::Events(greedy(rule)?, Sharing::Directory, Estimator::LastModified, half_life),
        ["evh", rule] => Kind::Events(greedy(rule)?, Sharing::Layered, Estimator::LastModified, half_life),
        [crawler @ ("nutch" | "heritrix" | "storm"), mode] => {
            let crawler = match crawler {
                "nutch" => Crawler::Nutch,
                "heritrix" => Crawler::Heritrix,
                _ => Crawler::Storm,
            };
            Kind::Adaptive(crawler, fit(mode)?)
        }
        [rule, estimate] => match greedy(rule) {
            Some(rule) => Kind::Greedy(rule, estimator(estimate)?, half_life),
            None => Kind::Allocated(allocated(rule)?, estimator(estimate)?, half_life),
        },
        _ => return None,
    })
}

fn fit(mode: &str) -> Option<Fit> {
    match mode {
        "fifo" => Some(Fit::Queue),
        "strict" => Some(Fit::Strict),
        _ => mode.strip_prefix("tuned")?.parse().ok().filter(|scale: &f64| *scale > 0.0).map(Fit::Tuned),
    }
}

/// Rules whose greedy form ranks by age.
fn greedy(name: &str) -> Option<Rule> {
    Some(match name {
        "prop" => Rule::Proportional,
        "xyleme" => Rule::Xyleme,
        "index" => Rule::Freshness,
        "hindex" => Rule::Harmonic,
        _ => return None,
    })
}

fn allocated(name: &str) -> Option<Allocation> {
    Some(match name {
        "prop" => Allocation::Proportional,
        "xyleme" => Allocation::Xyleme,
        "chogm" => Allocation::Freshness,
        "azar" => Allocation::Azar,
        "lambda" => Allocation::Harmonic,
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
