//! The modes of focused crawls, by name: crawls and experiments make their orders here.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::{
    ContextGraph, Fish, Focus, FolderBandit, Knowledge, LabelledPage, LearnedFocus, ParentAnchor, Reinforced,
    Shark, Soft, Tuning, Tunnel,
};

/// A mode of focused crawling; the command line takes its text form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FocusMode {
    /// Learned online from words, parents, siblings and folders.
    #[default]
    Learned,
    /// The probability of the best parent.
    Soft,
    /// Links from pages of the topic only.
    Hard,
    /// Links at most this many pages beyond the topic.
    Tunnel(u32),
    /// What links of pages like the parents lead to.
    Context,
    /// What links with such words lead to.
    Reinforced,
    /// Fish search.
    Fish,
    /// Shark search.
    Shark,
    /// The probability of the best parent, and the text of its link.
    ParentAnchor,
    /// Folders as the arms of a bandit.
    Ucb,
}

/// Learns an order for a class from examples.
pub type LearnOrder = fn(&[LabelledPage<'_>], usize) -> Box<dyn Focus>;

/// The text is not the name of a mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a mode; the modes are learned, soft, hard, tunnel:N, context, reinforced, fish, shark, parent-anchor and ucb"
)]
pub struct UnknownMode(String);

impl FocusMode {
    const NAMED: [(&'static str, Self); 9] = [
        ("learned", Self::Learned),
        ("soft", Self::Soft),
        ("hard", Self::Hard),
        ("context", Self::Context),
        ("reinforced", Self::Reinforced),
        ("fish", Self::Fish),
        ("shark", Self::Shark),
        ("parent-anchor", Self::ParentAnchor),
        ("ucb", Self::Ucb),
    ];

    /// Whether to ignore links on pages that are far from the topic.
    #[must_use]
    pub const fn holds_back(self) -> bool {
        matches!(self, Self::Hard | Self::Tunnel(_))
    }

    /// Returns the lowest and the highest score that differ from all lower and higher ones.
    #[must_use]
    pub const fn range(self) -> (f64, f64) {
        match self {
            // Log-odds.
            Self::Learned => (-6.0, 6.0),
            Self::ParentAnchor => (-12.0, 12.0),
            Self::Fish => (0.0, 3.0),
            Self::Reinforced => (0.0, 2.0),
            Self::Soft | Self::Hard | Self::Tunnel(_) | Self::Context | Self::Shark | Self::Ucb => (0.0, 1.0),
        }
    }

    /// Makes the order of a crawl for pages of `class`, called `name` (empty if links cannot name it). `learn` calls what
    /// it is given with the examples and the class, for the modes that learn from links among examples.
    ///
    /// # Errors
    /// That of `learn`.
    pub fn order<E>(
        self,
        knowledge: &Arc<Knowledge>,
        class: usize,
        name: &str,
        learn: impl FnOnce(LearnOrder) -> Result<Box<dyn Focus>, E>,
    ) -> Result<Box<dyn Focus>, E> {
        let knowledge = || Arc::clone(knowledge);
        Ok(match self {
            Self::Learned => Box::new(LearnedFocus::new(knowledge(), class, name, Tuning::default())),
            Self::Soft => Box::new(Soft::new(class)),
            Self::Hard => Box::new(Tunnel::new(class, 0)),
            Self::Tunnel(pages) => Box::new(Tunnel::new(class, pages)),
            Self::Context => learn(|examples, class| Box::new(ContextGraph::learn(examples, class)))?,
            Self::Reinforced => learn(|examples, class| Box::new(Reinforced::learn(examples, class)))?,
            Self::Fish => Box::new(Fish::new(class)),
            Self::Shark => Box::new(Shark::new(knowledge(), class)),
            Self::ParentAnchor => Box::new(ParentAnchor::new(knowledge(), class)),
            Self::Ucb => Box::new(FolderBandit::new(class)),
        })
    }
}

impl fmt::Display for FocusMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Tunnel(pages) = self {
            return write!(f, "tunnel:{pages}");
        }
        f.write_str(Self::NAMED.iter().find(|(_, mode)| mode == self).map_or("", |(name, _)| name))
    }
}

impl FromStr for FocusMode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(pages) = text.strip_prefix("tunnel:").and_then(|pages| pages.parse().ok()) {
            return Ok(Self::Tunnel(pages));
        }
        let found = Self::NAMED.iter().find(|(name, _)| *name == text);
        found.map(|(_, mode)| *mode).ok_or_else(|| UnknownMode(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_named() {
        let named = FocusMode::NAMED.map(|(name, _)| name);
        for name in named.into_iter().chain(["tunnel:2"]) {
            assert_eq!(name.parse::<FocusMode>().unwrap().to_string(), name);
        }
        for name in ["", "tunnel", "tunnel:x", "best"] {
            let error = name.parse::<FocusMode>().unwrap_err().to_string();
            assert!(named.iter().all(|name| error.contains(name)), "{error}");
        }
    }
}
