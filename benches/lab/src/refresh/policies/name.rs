//! Names of policies: those of [`archive_math::refresh::policies`], `_true` ones and the clairvoyant one.

use std::fmt;
use std::str::FromStr;

use archive_math::refresh::budget::BudgetRule;
use archive_math::refresh::policies;

use super::hindsight::{Clairvoyant, Fixed, Informed};
use super::{RefreshPolicy, UnknownPolicy};
use crate::refresh::draws::Draws;
use crate::refresh::words::Words;
use crate::refresh::world::World;

/// A policy that can be replayed.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayPolicy {
    text: String,
    kind: ReplayPolicyKind,
}

#[derive(Clone, Debug, PartialEq)]
enum ReplayPolicyKind {
    Online(policies::PolicyName),
    Clairvoyant,
    Fixed(BudgetRule),
    Memoryless(BudgetRule),
    Informed(BudgetRule),
}

impl ReplayPolicy {
    /// Creates the policy for a replay of `world` with `budget` fetches per day.
    ///
    /// Its random choices come from `draws`, which the replay then continues.
    pub fn build<'a>(
        &self,
        world: &'a World,
        words: Option<&Words>,
        budget: f64,
        draws: &mut Draws,
    ) -> Box<dyn RefreshPolicy + 'a> {
        let mut known = world.known(budget);
        known.promised = words.map_or_else(Vec::new, Words::rates);
        match &self.kind {
            ReplayPolicyKind::Online(name) => name.build(&known, &mut || draws.unit()),
            ReplayPolicyKind::Clairvoyant => Box::new(Clairvoyant(world)),
            ReplayPolicyKind::Fixed(rule) => Box::new(Fixed::new(*rule, world, budget, None)),
            ReplayPolicyKind::Memoryless(rule) => {
                Box::new(Fixed::new(*rule, world, budget, Some(draws.clone())))
            }
            ReplayPolicyKind::Informed(rule) => Box::new(Informed::new(*rule, world)),
        }
    }
}

impl fmt::Display for ReplayPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for ReplayPolicy {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        let kind = match *text.split('_').collect::<Vec<_>>() {
            ["clairvoyant"] => Some(ReplayPolicyKind::Clairvoyant),
            [rule, "poisson", "true"] => policies::allocated(rule).map(ReplayPolicyKind::Memoryless),
            ["index", "true"] => Some(ReplayPolicyKind::Informed(BudgetRule::Freshness)),
            ["hindex", "true"] => Some(ReplayPolicyKind::Informed(BudgetRule::Harmonic)),
            [rule, "true"] => policies::allocated(rule).map(ReplayPolicyKind::Fixed),
            _ => Some(ReplayPolicyKind::Online(text.parse()?)),
        };
        let kind = kind.ok_or_else(|| UnknownPolicy(text.to_owned()))?;
        Ok(Self { text: text.to_owned(), kind })
    }
}
