//! The current decisions on a subject, from all statements about it; and on a page, from all subjects that contain it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use super::{Decision, DecisionVerdict, Decisions, RobotsDecision, Statement, Subject};

/// A rating by one person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rated {
    /// Rating, 1 to 4.
    pub rating: u8,
    /// When it was given.
    pub time: DateTime<Utc>,
}

/// What was decided on robots.txt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RobotsDecided {
    /// What becomes of it.
    pub what: RobotsDecision,
    /// Name of the person.
    pub by: String,
    /// When it was decided.
    pub time: DateTime<Utc>,
    /// Why.
    pub reason: String,
}

impl RobotsDecided {
    /// Who decided it, when and why, for records.
    #[must_use]
    pub fn origin(&self) -> String {
        let because = if self.reason.is_empty() { String::new() } else { format!(": {}", self.reason) };
        format!("decision of {} on {}{because}", self.by, self.time.format("%F"))
    }
}

/// The current decisions on a subject.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CurrentDecisions {
    /// Each person's newest rating.
    pub ratings: BTreeMap<String, Rated>,
    /// The newest verdict, with the person's name and the reason.
    pub verdict: Option<(DecisionVerdict, String, String)>,
    /// The newest word on its robots.txt.
    pub robots: Option<RobotsDecided>,
    /// Its tags.
    pub tags: BTreeSet<String>,
    /// The collections it is in.
    pub collections: BTreeSet<String>,
    /// Number of the newest decision, from 1.
    pub newest: u64,
}

impl CurrentDecisions {
    pub(super) fn hear(&mut self, decision: &Decision, said: &Statement, number: u64) {
        if let Some(rating) = said.rating {
            self.ratings.insert(decision.by.clone(), Rated { rating, time: decision.time });
        }
        if let Some(verdict) = said.verdict {
            self.verdict = Some((verdict, decision.by.clone(), said.reason.clone()));
        }
        if let Some(what) = said.robots {
            let (by, time, reason) = (decision.by.clone(), decision.time, said.reason.clone());
            self.robots = Some(RobotsDecided { what, by, time, reason });
        }
        change(&mut self.tags, &said.tags);
        change(&mut self.collections, &said.collections);
        self.newest = number;
    }

    /// Mean rating, 1 to 4: the reference value of the OPIC paper (section 5).
    #[must_use]
    pub fn rating(&self) -> Option<f64> {
        let sum: u32 = self.ratings.values().map(|rated| u32::from(rated.rating)).sum();
        (!self.ratings.is_empty()).then(|| f64::from(sum) / self.ratings.len() as f64)
    }

    /// Adds the decisions on a wider subject. Narrower ratings and verdicts take precedence; tags and collections add
    /// up.
    fn fill(&mut self, wider: &Self) {
        if self.ratings.is_empty() {
            self.ratings.clone_from(&wider.ratings);
        }
        if self.verdict.is_none() {
            self.verdict.clone_from(&wider.verdict);
        }
        if self.robots.is_none() {
            self.robots.clone_from(&wider.robots);
        }
        self.tags.extend(wider.tags.iter().cloned());
        self.collections.extend(wider.collections.iter().cloned());
        self.newest = self.newest.max(wider.newest);
    }
}

fn change(names: &mut BTreeSet<String>, said: &[String]) {
    for name in said {
        match name.strip_prefix('-') {
            Some(name) => names.remove(name),
            None => names.insert(name.clone()),
        };
    }
}

impl Decisions {
    /// The decisions that apply to a page: on the page, on its folders from the deepest up, on its host and on its
    /// site. Narrower ratings and verdicts take precedence; tags and collections add up.
    #[must_use]
    pub fn of_page(&self, url: &str, host: &str, site: &str) -> CurrentDecisions {
        let mut standing = self.on(&Subject::Page(url.to_owned())).cloned().unwrap_or_default();
        let path = url.find("://").map_or(0, |scheme| scheme + 3);
        for (slash, _) in url[path..].rmatch_indices('/') {
            let folder = url[..=path + slash].to_owned();
            self.on(&Subject::Folder(folder)).into_iter().for_each(|wider| standing.fill(wider));
        }
        standing.fill(&self.of_host(host, site));
        standing
    }

    /// The decisions that apply to a host, including those on its site.
    #[must_use]
    pub fn of_host(&self, host: &str, site: &str) -> CurrentDecisions {
        let mut standing = self.on(&Subject::Host(host.to_owned())).cloned().unwrap_or_default();
        self.on(&Subject::Site(site.to_owned())).into_iter().for_each(|wider| standing.fill(wider));
        standing
    }
}
