//! Links that get a bonus for what their texts say, found while a document is at hand: records have no link texts, so a
//! replay pays no such bonus again.

use std::collections::HashMap;

use archive_web::parse::ParsedDocument;

use super::rules::{CashRules, UrlTopic};
use crate::search::Phrase;

/// The phrases that [`CashRules`] favour in link texts, each with its bonus.
#[derive(Clone, Debug, Default)]
pub struct FavouredTexts(Vec<(Phrase, f64)>);

impl FavouredTexts {
    /// Returns the phrases of the rules.
    #[must_use]
    pub fn of(rules: &CashRules) -> Self {
        let phrase = |topic: &UrlTopic| match topic {
            UrlTopic::LinkText(words) => Phrase::of(words),
            _ => None,
        };
        Self(rules.favours.iter().filter_map(|favour| Some((phrase(&favour.topic)?, favour.bonus))).collect())
    }

    /// Returns the bonus of each favoured link of a document, by its place among the document's links.
    #[must_use]
    pub fn find(&self, parsed: &ParsedDocument) -> HashMap<usize, f64> {
        let mut found = HashMap::new();
        for said in parsed.link_texts.iter().filter(|_| !self.0.is_empty()) {
            let text = parsed.text.get(said.range.clone()).unwrap_or_default();
            let bonuses = self.0.iter().filter(|(phrase, _)| phrase.is_in(text)).map(|(_, bonus)| *bonus);
            if let Some(bonus) = bonuses.reduce(f64::max) {
                let most = found.entry(said.link as usize).or_insert(bonus);
                *most = f64::max(*most, bonus);
            }
        }
        found
    }
}
