//! What a focused crawl looks for, and how.

use std::path::Path;

use archive_books::topics::{self, CLASS, Topic, TopicError};
use archive_math::focus::{Focus, FocusMode};
use archive_storage::Store;
use serde::{Deserialize, Serialize};

/// Default weight of the topic.
const WEIGHT: f64 = 0.8;

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

    pub(super) fn order(&self, store: &Store, topic: &Topic) -> Result<Box<dyn Focus>, TopicError> {
        let learn = |learn| topics::learn_order(store, topic, learn);
        self.mode.order(&topic.knowledge, CLASS, &topic.about.name, learn)
    }

    /// Creates the default policy for a topic.
    #[must_use]
    pub fn new(topic: &str) -> Self {
        Self { topic: topic.to_owned(), mode: FocusMode::default(), weight: WEIGHT }
    }
}
