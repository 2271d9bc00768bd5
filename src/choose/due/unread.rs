//! The share of a refresh for pages that were never fetched (γ in section 6 of Xyleme).

use std::fmt;
use std::str::FromStr;

use archive_books::ledger::{CreditError, LEVEL_REQUISITE};

use super::{DueArchive, SourcePage, TopScores};

/// Upper bound of the automatic share.
const AUTO_MAX: f64 = 0.5;

/// The share of a refresh for discovery.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Discovery {
    /// A fixed share, from 0 to 1.
    Share(f64),
    /// The share of all importance that lies on pages that were never fetched, at most half.
    Auto,
}

impl Default for Discovery {
    /// A refresh discovers nothing.
    fn default() -> Self {
        Self::Share(0.0)
    }
}

impl fmt::Display for Discovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share(share) => share.fmt(f),
            Self::Auto => f.write_str("auto"),
        }
    }
}

impl FromStr for Discovery {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let (number, factor) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 0.01));
        let share = number.trim().parse::<f64>().ok().map(|number| number * factor);
        let share = share.filter(|share| (0.0..=1.0).contains(share));
        share
            .map(Self::Share)
            .ok_or_else(|| format!("'{text}' is not a share; write it like 0.1, 10% or auto"))
    }
}

/// Returns the most important known pages that were never fetched, up to the discovery share of `budget`.
///
/// # Errors
/// If the store fails.
pub(crate) fn undiscovered(
    sources: &[DueArchive<'_>],
    budget: usize,
) -> Result<Vec<SourcePage>, CreditError> {
    let discovery = sources.first().map_or(Discovery::default(), |source| source.choice.rules.discovery);
    if discovery == Discovery::default() || budget == 0 {
        return Ok(Vec::new());
    }
    let (mut best, mut waiting, mut accounts) = (Vec::new(), 0.0, 0.0);
    for (place, source) in sources.iter().enumerate() {
        let mut own = TopScores::new(budget);
        source.credits.waiting(source.state, |candidate| {
            let page = source.state.page(candidate.url)?;
            let importance =
                source.credits.importance(&page, None).filter(|_| candidate.level < LEVEL_REQUISITE);
            if let Some(importance) = importance
                && importance >= source.choice.rules.floor
                && source.choice.asks(candidate.url)
                && source.answers(place, &page)?
            {
                waiting += importance;
                own.offer(importance, candidate.url);
            }
            Ok(())
        })?;
        accounts += source.credits.pages().pages() as f64;
        best.push(own);
    }
    let share = match discovery {
        Discovery::Share(share) => share,
        // The mean importance of all accounts is 1.
        Discovery::Auto => (waiting / accounts.max(1.0)).min(AUTO_MAX),
    };
    Ok(TopScores::of_all(best, (share * budget as f64).round() as usize))
}

#[cfg(test)]
mod tests {
    use super::Discovery;
    use crate::RefreshRules;

    #[test]
    fn shares_are_read_and_kept() {
        for (text, share) in [("0", 0.0), ("0.25", 0.25), ("25%", 0.25), ("1", 1.0)] {
            assert_eq!(text.parse(), Ok(Discovery::Share(share)));
        }
        assert_eq!("auto".parse(), Ok(Discovery::Auto));
        for text in ["", "-1", "101%", "much", "NaN"] {
            assert!(text.parse::<Discovery>().is_err(), "{text}");
        }
        for discovery in [Discovery::Share(0.1), Discovery::Auto] {
            let rules = RefreshRules { discovery, ..RefreshRules::default() };
            let kept = serde_json::to_string(&rules).unwrap();
            assert_eq!(serde_json::from_str::<RefreshRules>(&kept).unwrap(), rules);
        }
    }
}
