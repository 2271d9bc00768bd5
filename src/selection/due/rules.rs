//! How refreshes choose: the policy, what a page weighs, and the shortest time between two fetches of a page.
//!
//! What was typed last is kept in the archive, so that later runs, plans and forecasts go by the same rules.

use std::path::Path;
use std::time::Duration;

use archive_storage::{Page, State, UrlId, Visit};
use serde::{Deserialize, Serialize};

use super::decided::Decided;
use super::{Discovery, refreshable};
use crate::columns::{self, Column, ColumnError, RowKind};
use crate::decisions::{CurrentDecisions, Decisions};
use crate::ledger::{CreditError, REFRESH_SETTING};
use crate::parse::DocumentKind;
use crate::refresh::policies::PolicyName;

/// The column that weighs HTML pages by [`Weighing::Interest`].
const INTEREST: &str = "interest";

/// What an HTML page without interest still weighs, as a share of its importance: it may lead to XML one day.
const UNINTERESTING_SHARE: f64 = 0.1;

/// How refreshes choose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RefreshRules {
    /// Which policy ranks pages.
    pub policy: PolicyName,
    /// What a page weighs.
    pub weight: Weighing,
    /// Which share goes to pages that were never fetched.
    pub discovery: Discovery,
    /// No page is fetched again sooner than this, unless somebody waits for it or announced it.
    pub shortest: Duration,
    /// The time unit in which this is counted, so that runs that begin a little early do not miss a turn.
    pub unit: Duration,
}

impl Default for RefreshRules {
    fn default() -> Self {
        Self {
            policy: PolicyName::default(),
            weight: Weighing::default(),
            discovery: Discovery::default(),
            shortest: Duration::from_secs(3600),
            unit: Duration::from_secs(600),
        }
    }
}

impl RefreshRules {
    /// The rules of the archive's last refresh; the usual ones if there was none.
    ///
    /// # Errors
    /// When they were kept in a form that cannot be read.
    pub fn kept(state: &State) -> Result<Self, CreditError> {
        let Some(bytes) = state.setting(REFRESH_SETTING) else { return Ok(Self::default()) };
        serde_json::from_slice(bytes).map_err(|_| CreditError::Setting(REFRESH_SETTING))
    }

    /// Keeps the rules for the next checkpoint to save.
    ///
    /// # Errors
    /// When the state cannot be written.
    pub fn keep(&self, state: &mut State) -> Result<(), CreditError> {
        let bytes = serde_json::to_vec(self).map_err(|_| CreditError::Setting(REFRESH_SETTING))?;
        Ok(state.set_setting(REFRESH_SETTING, Some(&bytes))?)
    }

    /// Whether a page may be fetched again `seconds` after its last fetch: times are counted in whole units, rounded.
    #[must_use]
    pub fn is_ripe(&self, seconds: i64) -> bool {
        let unit = (self.unit.as_secs() as i64).max(1);
        let units = |seconds: i64| (seconds + unit / 2) / unit;
        units(seconds) >= units(self.shortest.as_secs() as i64)
    }

    /// The least number of days after which a page may be fetched again.
    #[must_use]
    pub fn shortest_days(&self) -> f64 {
        let unit = self.unit.as_secs_f64().max(1.0);
        let units = (self.shortest.as_secs_f64() / unit).round();
        ((units - 0.5) * unit).max(0.0) / 86_400.0
    }
}

/// What a page weighs in a refresh.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Weighing {
    /// Importance for all pages.
    Importance,
    /// XML pages by importance, HTML pages by the column `interest`, if `archive rank` has saved one.
    #[default]
    Interest,
    /// All pages by this column, where it has a value.
    Column(String),
}

impl From<String> for Weighing {
    fn from(text: String) -> Self {
        match text.as_str() {
            "importance" => Self::Importance,
            INTEREST => Self::Interest,
            _ => Self::Column(text),
        }
    }
}

impl From<Weighing> for String {
    fn from(weighing: Weighing) -> Self {
        match weighing {
            Weighing::Importance => "importance".to_owned(),
            Weighing::Interest => INTEREST.to_owned(),
            Weighing::Column(name) => name,
        }
    }
}

/// Why pages cannot be weighed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WeightError {
    /// A column cannot be read.
    #[error(transparent)]
    Column(#[from] ColumnError),
    /// There is no such column.
    #[error(
        "there is no column '{0}' of pages: compute one with `archive rank --save`, or weigh by importance"
    )]
    Missing(String),
}

/// What pages weigh.
#[derive(Debug, Default)]
pub struct Weights {
    column: Option<Column>,
    /// The sum of the column's values, and how many there are.
    values: (f64, f64),
    /// Makes the mean of the column's values 1.
    scale: f64,
    html_only: bool,
    decided: Decided,
}

impl Weights {
    /// By importance alone.
    #[must_use]
    pub fn importance() -> Self {
        Self::default()
    }

    /// Of the archive in this folder.
    ///
    /// # Errors
    /// When a column cannot be read, or one that was named is not there.
    pub fn read(archive: &Path, weighing: &Weighing) -> Result<Self, WeightError> {
        let (name, html_only) = match weighing {
            Weighing::Importance => return Ok(Self::importance()),
            Weighing::Interest => (INTEREST, true),
            Weighing::Column(name) => (name.as_str(), false),
        };
        match columns::read_all(archive, RowKind::Page)?.into_iter().find(|column| column.name == name) {
            Some(column) => Ok(Self::by(column, html_only)),
            None if html_only => Ok(Self::importance()),
            None => Err(WeightError::Missing(name.to_owned())),
        }
    }

    fn by(column: Column, html_only: bool) -> Self {
        let values = (0..column.len())
            .filter_map(|id| column.get(id))
            .fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
        let mut weights = Self { values, column: Some(column), html_only, ..Self::default() };
        Self::put_on_one_scale(std::slice::from_mut(&mut weights));
        weights
    }

    /// Makes the mean of a column's values 1 over all of these archives, which are chosen from as one.
    pub fn put_on_one_scale(all: &mut [Self]) {
        let add = |(sum, count): (f64, f64), one: &Self| (sum + one.values.0, count + one.values.1);
        let (sum, count) = all.iter().fold((0.0, 0.0), add);
        let scale = if sum > 0.0 { count / sum } else { 0.0 };
        all.iter_mut().for_each(|one| one.scale = scale);
    }

    /// By what a column's values are multiplied.
    pub(super) fn scale(&self) -> f64 {
        self.scale
    }

    /// The same, times what people decided ([`crate::decisions::CurrentDecisions::weight`]).
    ///
    /// # Errors
    /// When the store fails.
    pub fn with_decisions(self, state: &State, decisions: Decisions) -> Result<Self, CreditError> {
        Ok(Self { decided: Decided::of(state, decisions)?, ..self })
    }

    /// What people decided on a page.
    ///
    /// # Errors
    /// When the store fails.
    pub fn standing(&self, state: &State, id: UrlId) -> Result<CurrentDecisions, CreditError> {
        self.decided.standing(state, id)
    }

    /// How many decisions they heed.
    pub(super) fn decisions(&self) -> u64 {
        self.decided.count()
    }

    /// The weight of what can be refreshed, by the importance of the page, or of that which it stands for; nothing for what comes
    /// with its page, for robots.txt, and for what people decided against.
    ///
    /// # Errors
    /// When the store fails.
    pub fn of(
        &self,
        state: &State,
        page: (UrlId, &Page),
        importance: Option<f64>,
        visit: &Visit,
    ) -> Result<Option<f64>, CreditError> {
        let Some(importance) = refreshable(page.1.flags, importance, visit) else { return Ok(None) };
        let decided = self.decided.weight(state, page.0, page.1.host)?;
        if decided == 0.0 {
            return Ok(None);
        }
        let kind = DocumentKind::from_code(visit.kind);
        let column = self.column.as_ref().filter(|_| !self.html_only || kind == DocumentKind::Html);
        let value = column.and_then(|column| column.get(page.0.index())).map(|value| value * self.scale);
        Ok(Some(decided * value.map_or(importance, |value| value.max(UNINTERESTING_SHARE * importance))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_in_units() {
        let rules = RefreshRules::default();
        // An hourly run that begins five minutes early does not miss its turn, one within the hour waits.
        assert!(rules.is_ripe(55 * 60) && !rules.is_ripe(54 * 60));
        assert!((rules.shortest_days() * 24.0 * 60.0 - 55.0).abs() < 1e-9);
        let none = RefreshRules { shortest: Duration::ZERO, ..rules };
        assert!(none.is_ripe(0));
        assert_eq!(none.shortest_days(), 0.0);
    }

    #[test]
    fn weights_keep_their_names() {
        for name in ["importance", "interest", "pagerank"] {
            let weighing = Weighing::from(name.to_owned());
            assert_eq!(String::from(weighing), name);
        }
        let rules = RefreshRules { weight: Weighing::Column("hub".to_owned()), ..RefreshRules::default() };
        let bytes = serde_json::to_vec(&rules).unwrap();
        assert_eq!(serde_json::from_slice::<RefreshRules>(&bytes).unwrap(), rules);
    }
}
