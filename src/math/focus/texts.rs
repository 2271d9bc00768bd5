//! Evidence of link texts. The menu of a site is on all its pages, so results are cached.

use std::collections::HashMap;
use std::hash::Hasher as _;

use xxhash_rust::xxh3::Xxh3Default;

use super::links::{last_segment, names};
use super::waiting_pages::LinkEvidence;
use super::{Knowledge, Lead};

/// Maximum number of cached texts; when it is reached, the cache is cleared.
const TEXTS_MAX: usize = 1 << 16;

/// Link texts and their evidence for one class.
#[derive(Debug)]
pub(super) struct LinkTexts {
    /// Stem of words that name the topic.
    stem: String,
    said: HashMap<u64, LinkEvidence>,
    /// The heading above the last link, and whether it names the topic.
    heading: (String, bool),
}

impl LinkTexts {
    pub(super) fn new(stem: String) -> Self {
        Self { stem, said: HashMap::new(), heading: Default::default() }
    }

    /// Returns the evidence of the texts of a link for `class`, which must be the same in every call.
    pub(super) fn say(&mut self, knowledge: &Knowledge, class: usize, lead: &Lead<'_>) -> LinkEvidence {
        let (anchor, segment) = (lead.anchor, last_segment(lead.url));
        if lead.heading != self.heading.0 {
            self.heading = (lead.heading.to_owned(), names(lead.heading, &self.stem));
        }
        let mut hash = Xxh3Default::new();
        hash.write(anchor.as_bytes());
        hash.write_u8(0xFF);
        hash.write(segment.as_bytes());
        if self.said.len() == TEXTS_MAX {
            self.said.clear();
        }
        let said = self.said.entry(hash.finish()).or_insert_with(|| LinkEvidence {
            anchor: knowledge.anchor(anchor)[class] as f32,
            naming: knowledge.naming(lead)[class] as f32,
            named: [names(anchor, &self.stem), names(segment, &self.stem), false],
        });
        let [in_anchor, in_url, _] = said.named;
        LinkEvidence { named: [in_anchor, in_url, self.heading.1], ..*said }
    }
}
