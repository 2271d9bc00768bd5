//! Names of policies: those of [`archive_math::refresh::policies`], `_true` ones and the clairvoyant one.

use std::fmt;
use std::str::FromStr;

use archive_math::refresh::budget::Rule;
use archive_math::refresh::policies;

use super::hindsight::{Clairvoyant, Fixed, Informed};
use super::{RefreshPolicy, UnknownPolicy};
use crate::refresh::draws::Draws;
use crate::refresh::world::World;

/// A policy that can be replayed.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyName {
    text: String,
    kind: PolicyKind,
}

#[derive(Clone, Debug, PartialEq)]
enum PolicyKind {
    Online(policies::PolicyName),
    Clairvoyant,
    Fixed(Rule),
    Memoryless(Rule),
    Informed(Rule),
}

impl PolicyName {
    /// Creates the policy for a replay of `world` with `budget` fetches per day.
    ///
    /// Its random choices come from `draws`, which the replay then continues.
    pub fn build<'a>(&self, world: &'a World, budget: f64, draws: &mut Draws) -> Box<dyn RefreshPolicy + 'a> {
        match &self.kind {
            PolicyKind::Online(name) => name.build(&world.known(budget), &mut || draws.unit()),
            PolicyKind::Clairvoyant => Box::new(Clairvoyant(world)),
            PolicyKind::Fixed(rule) => Box::new(Fixed::new(*rule, world, budget, None)),
            PolicyKind::Memoryless(rule) => Box::new(Fixed::new(*rule, world, budget, Some(draws.clone()))),
            PolicyKind::Informed(rule) => Box::new(Informed::new(*rule, world)),
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
        let kind = match *text.split('_').collect::<Vec<_>>() {
            ["clairvoyant"] => Some(PolicyKind::Clairvoyant),
            [rule, "poisson", "true"] => policies::allocated(rule).map(PolicyKind::Memoryless),
            ["index", "true"] => Some(PolicyKind::Informed(Rule::Freshness)),
            ["hindex", "true"] => Some(PolicyKind::Informed(Rule::Harmonic)),
            [rule, "true"] => policies::allocated(rule).map(PolicyKind::Fixed),
            _ => Some(PolicyKind::Online(text.parse()?)),
        };
        let kind = kind.ok_or_else(|| UnknownPolicy(text.to_owned()))?;
        Ok(Self { text: text.to_owned(), kind })
    }
}
