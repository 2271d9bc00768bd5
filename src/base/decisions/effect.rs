//! The effect of decisions on crawls and refreshes.

use super::{CurrentDecisions, DecisionVerdict, RobotsDecided};
use crate::texts::Language;

/// Refresh weight factor for a page with the verdict "often".
const OFTEN: f64 = 4.0;

/// Rating with a neutral weight: midway between the two ratings that mean "keep" and the two that do not.
const RATING_NEUTRAL: f64 = 2.5;

impl CurrentDecisions {
    /// Describes the decisions and their effect; `None` if there are none.
    #[must_use]
    pub fn sentence(&self, t: Language) -> Option<String> {
        let names = |names: &mut dyn Iterator<Item = &String>| names.cloned().collect::<Vec<_>>().join(", ");
        let mut parts = Vec::new();
        if let Some(rating) = self.rating() {
            let by = names(&mut self.ratings.keys());
            parts.push(t.fill("rated {} by {}", &[&t.decimal(rating, 1), &by]));
        }
        if let Some((verdict, by, reason)) = &self.verdict {
            let because = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
            parts.push(t.fill("{} by {}", &[&t.say(verdict.name()), by]) + &because);
        }
        if let Some(RobotsDecided { what, by, reason, .. }) = &self.robots {
            let because = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
            parts.push(t.fill("{} by {}", &[&t.say(what.sentence()), by]) + &because);
        }
        for (what, of) in [("tags", &self.tags), ("collections", &self.collections)] {
            if !of.is_empty() {
                parts.push(format!("{} {}", t.say(what), names(&mut of.iter())));
            }
        }
        match self.weight() {
            0.0 => parts.push(t.say("is not fetched").to_owned()),
            1.0 => {}
            weight => parts.push(t.fill("weighs {} times as much in a refresh", &[&t.decimal(weight, 2)])),
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// Weight factor from its ratings alone, in a refresh and in the budgets of its hosts and site.
    #[must_use]
    pub fn rated_weight(&self) -> f64 {
        self.rating().map_or(1.0, |rating| (rating - RATING_NEUTRAL).exp2())
    }

    /// Weight factor in a refresh: it doubles with each step of the rating from 2.5 on, is four times as high for pages
    /// to be fetched often, and 0 for pages not to be fetched.
    #[must_use]
    pub fn weight(&self) -> f64 {
        let rated = self.rated_weight();
        match self.verdict {
            Some((verdict, ..)) if verdict.ends_fetching() => 0.0,
            Some((DecisionVerdict::Often, ..)) => OFTEN * rated,
            _ => rated,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decisions::Rated;
    use chrono::Utc;

    #[test]
    fn ratings_and_verdicts_weigh() {
        let rated = |rating: u8| (rating.to_string(), Rated { rating, time: Utc::now() });
        let mut standing = CurrentDecisions::default();
        assert_eq!(standing.weight(), 1.0);
        standing.ratings = [rated(4), rated(1)].into();
        assert_eq!(standing.weight(), 1.0);
        standing.ratings = [rated(3)].into();
        assert!((standing.weight() - 2_f64.sqrt()).abs() < 1e-12);
        standing.verdict = Some((DecisionVerdict::Often, String::new(), String::new()));
        assert!((standing.weight() - 4.0 * 2_f64.sqrt()).abs() < 1e-12);
        standing.verdict = Some((DecisionVerdict::Drop, String::new(), String::new()));
        assert_eq!(standing.weight(), 0.0);
    }
}
