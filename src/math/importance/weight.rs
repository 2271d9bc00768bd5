//! The weights by which the cash of a page is divided among its links.

use serde::{Deserialize, Serialize};

/// Weight of a link, in 1/64 of an ordinary link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight(u32);

impl Weight {
    /// No weight.
    pub const NONE: Self = Self(0);
    /// An ordinary link.
    pub const LINK: Self = Self(64);
    /// Maximum weight, 1024 ordinary links.
    pub const MAX: Self = Self(64 * 1024);

    /// The weight of `links` ordinary links, clamped to 0 to 1024; a positive weight is never rounded down to zero.
    #[must_use]
    pub fn links(links: f64) -> Self {
        let parts = links.clamp(0.0, 1024.0) * f64::from(Self::LINK.0);
        Self(if parts > 0.0 { parts.round().max(1.0) as u32 } else { 0 })
    }

    /// Returns the weight in 1/64 of a link.
    #[must_use]
    pub const fn parts(self) -> u32 {
        self.0
    }
}

/// Properties of a link that affect its weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkTraits {
    /// Whether the target is on another host.
    pub between_hosts: bool,
    /// Whether the author asked not to follow it (`rel=nofollow`, `ugc`, `sponsored`).
    pub nofollow: bool,
    /// Whether it is on most pages of its host: navigation, not recommendation.
    pub template: bool,
}

/// Link weights by properties. By default only `nofollow` matters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkWeights {
    /// M: weight of a link between hosts relative to one inside a host (Alam et al., FPR@M; the paper's best is 100).
    pub between_hosts: f64,
    /// Factor for links with `nofollow`.
    pub nofollow: f64,
    /// Factor for template links.
    pub template: f64,
}

impl Default for LinkWeights {
    fn default() -> Self {
        Self { between_hosts: 1.0, nofollow: 0.1, template: 1.0 }
    }
}

impl LinkWeights {
    /// Returns the weight of a link.
    #[must_use]
    pub fn of(&self, link: LinkTraits) -> Weight {
        let mut links = 1.0;
        if link.between_hosts {
            links *= self.between_hosts;
        }
        if link.nofollow {
            links *= self.nofollow;
        }
        if link.template {
            links *= self.template;
        }
        Weight::links(links)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_multiply_and_stay_in_range() {
        let weights = LinkWeights { between_hosts: 100.0, nofollow: 0.1, template: 0.0 };
        let link = LinkTraits::default();
        assert_eq!(weights.of(link), Weight::LINK);
        assert_eq!(weights.of(LinkTraits { between_hosts: true, ..link }).parts(), 6400);
        assert_eq!(weights.of(LinkTraits { between_hosts: true, nofollow: true, ..link }).parts(), 640);
        assert_eq!(weights.of(LinkTraits { template: true, ..link }), Weight::NONE);
        assert_eq!(Weight::links(1e-9).parts(), 1);
        assert_eq!(Weight::links(1e9), Weight::MAX);
    }
}
