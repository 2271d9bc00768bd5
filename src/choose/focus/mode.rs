//! The modes of focused crawls.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use archive_books::topics::{self, CLASS, Topic, TopicError};
use archive_math::focus::{Fish, Focus, LearnedFocus, Shark, Soft, Tuning, Tunnel};
use archive_storage::Store;
use serde::{Deserialize, Serialize};

/// Default weight of the topic.
const WEIGHT: f64 = 0.8;

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
    /// Estimated number of links from the parents to the topic.
    Context,
    /// Fish search.
    Fish,
    /// Shark search.
    Shark,
}

/// The text is not the name of a mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a mode; the modes are learned, soft, hard, tunnel:N, context, fish and shark")]
pub struct UnknownMode(String);

impl FocusMode {
    const NAMED: [(&'static str, Self); 6] = [
        ("learned", Self::Learned),
        ("soft", Self::Soft),
        ("hard", Self::Hard),
        ("context", Self::Context),
        ("fish", Self::Fish),
        ("shark", Self::Shark),
    ];

    /// Whether to ignore links on pages that are far from the topic.
    pub(super) const fn holds_back(self) -> bool {
        matches!(self, Self::Hard | Self::Tunnel(_))
    }

    /// Returns the scores of the lowest and the highest level.
    pub(super) const fn range(self) -> (f64, f64) {
        match self {
            // Log-odds.
            Self::Learned => (-6.0, 6.0),
            Self::Context => (0.0, 4.0),
            Self::Fish => (0.0, 3.0),
            Self::Soft | Self::Hard | Self::Tunnel(_) | Self::Shark => (0.0, 1.0),
        }
    }

    pub(super) fn order(self, store: &Store, topic: &Topic) -> Result<Box<dyn Focus>, TopicError> {
        let knowledge = || std::sync::Arc::clone(&topic.knowledge);
        Ok(match self {
            Self::Learned => {
                Box::new(LearnedFocus::new(knowledge(), CLASS, &topic.about.name, Tuning::default()))
            }
            Self::Soft => Box::new(Soft::new(CLASS)),
            Self::Hard => Box::new(Tunnel::new(CLASS, 0)),
            Self::Tunnel(pages) => Box::new(Tunnel::new(CLASS, pages)),
            Self::Context => Box::new(topics::learn_layers(store, topic)?),
            Self::Fish => Box::new(Fish::new(CLASS)),
            Self::Shark => Box::new(Shark::new(knowledge(), CLASS)),
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

/// The topic of a focused crawl, and how to find it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FocusPolicy {
    /// The name of the topic.
    pub topic: String,
    /// The mode that orders pages.
    #[serde(with = "archive_base::as_text")]
    pub mode: FocusMode,
    /// Weight of the topic relative to cash, from 0 to 1: level = weight · topic + (1 - weight) · cash.
    pub weight: f64,
}

impl FocusPolicy {
    /// Reads the topic and makes it as strict as the mode.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read_topic(&self, archive: &Path) -> Result<Topic, TopicError> {
        Ok(Topic { is_hard: self.mode.holds_back(), ..topics::get(archive, &self.topic)? })
    }

    /// Creates the default policy for a topic.
    #[must_use]
    pub fn new(topic: &str) -> Self {
        Self { topic: topic.to_owned(), mode: FocusMode::default(), weight: WEIGHT }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_named() {
        for name in ["learned", "soft", "hard", "tunnel:2", "context", "fish", "shark"] {
            assert_eq!(name.parse::<FocusMode>().unwrap().to_string(), name);
        }
        for name in ["", "tunnel", "tunnel:x", "best"] {
            assert!(
                name.parse::<FocusMode>().unwrap_err().to_string().contains("the modes are learned"),
                "{name}"
            );
        }
    }
}
