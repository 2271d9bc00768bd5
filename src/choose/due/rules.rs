//! The rules of refreshes: the policy, the page weights, and the shortest interval between two fetches of a page.
//!
//! The rules given last are kept in the archive, so that later runs, plans and forecasts use them too.

use std::path::Path;
use std::time::Duration;

use archive_base::decisions::{CurrentDecisions, Decisions};
use archive_books::columns::{self, ColumnError, RowKind, SavedColumn};
use archive_books::ledger::{CreditError, REFRESH_SETTING};
use archive_math::refresh::policies::PolicyName;
use archive_storage::{Page, State, UrlId, Visit};
use archive_web::parse::DocumentKind;
use serde::{Deserialize, Serialize};

use super::decisions::DecisionFactors;
use super::{Discovery, refreshable};

/// Name of the column that [`Weighing::Interest`] uses for HTML pages.
const INTEREST: &str = "interest";

/// Minimum weight of a page with a column value, as a share of its importance: it may link to XML one day.
const UNINTERESTING_SHARE: f64 = 0.1;

/// A run may ask this many parts again however few its pages are.
const PARTS_MIN: u64 = 100;

/// The rules of a refresh.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RefreshRules {
    /// The policy that ranks pages.
    #[serde(with = "archive_base::as_text")]
    pub policy: PolicyName,
    /// The source of page weights.
    pub weight: Weighing,
    /// Weight below which a page is neither fetched again nor discovered; feeds and sitemaps are fetched in any case.
    pub floor: f64,
    /// Share of the budget for pages that were never fetched.
    #[serde(with = "archive_base::as_text")]
    pub discovery: Discovery,
    /// Minimum time between two fetches of a page, unless somebody waits for it or announced it.
    pub shortest: Duration,
    /// Maximum number of parts of pages (see [`crate::PARTS_PER_PAGE_MAX`]) that a run asks again, per page
    /// of its budget; 0 asks none.
    pub parts: u32,
    /// Time unit to which times are rounded, so that a run that begins a little early does not miss a page.
    pub unit: Duration,
}

impl Default for RefreshRules {
    fn default() -> Self {
        Self {
            policy: PolicyName::default(),
            weight: Weighing::default(),
            floor: 0.0,
            discovery: Discovery::default(),
            shortest: Duration::from_secs(3600),
            parts: 20,
            unit: Duration::from_secs(600),
        }
    }
}

impl RefreshRules {
    /// Returns the rules of the last refresh of the archive; the defaults if there was none.
    ///
    /// # Errors
    /// If the stored rules cannot be read.
    pub fn kept(state: &State) -> Result<Self, CreditError> {
        let Some(bytes) = state.setting(REFRESH_SETTING) else { return Ok(Self::default()) };
        serde_json::from_slice(bytes).map_err(|_| CreditError::Setting(REFRESH_SETTING))
    }

    /// Stores the rules in the state, for the next checkpoint.
    ///
    /// # Errors
    /// If the state cannot be written.
    pub fn keep(&self, state: &mut State) -> Result<(), CreditError> {
        let bytes = serde_json::to_vec(self).map_err(|_| CreditError::Setting(REFRESH_SETTING))?;
        Ok(state.set_setting(REFRESH_SETTING, Some(&bytes))?)
    }

    /// Whether a page may be fetched again `seconds` after its last fetch. Times are rounded to whole units.
    pub(crate) fn is_ripe(&self, seconds: i64) -> bool {
        self.has_passed(seconds, self.shortest.as_secs_f64())
    }

    /// Whether `seconds` are as long as `wait` seconds, in whole units.
    pub(crate) fn has_passed(&self, seconds: i64, wait: f64) -> bool {
        let unit = (self.unit.as_secs() as i64).max(1);
        let units = |seconds: i64| seconds.saturating_add(unit / 2) / unit;
        units(seconds) >= units(wait as i64)
    }

    /// Returns how many parts of pages a run of this many pages may ask again.
    #[must_use]
    pub fn parts_max(&self, pages: u64) -> u64 {
        let parts = u64::from(self.parts);
        if parts == 0 { 0 } else { (parts * pages).max(PARTS_MIN) }
    }

    /// Returns the minimum number of days after which a page may be fetched again.
    #[must_use]
    pub fn shortest_days(&self) -> f64 {
        let unit = self.unit.as_secs_f64().max(1.0);
        let units = (self.shortest.as_secs_f64() / unit).round();
        ((units - 0.5) * unit).max(0.0) / 86_400.0
    }
}

/// The source of page weights in a refresh.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Weighing {
    /// All pages by importance.
    Importance,
    /// HTML pages by the column `interest`, if `archive rank` has saved one; other pages by importance.
    #[default]
    Interest,
    /// All pages by this column, where it has a value, otherwise by importance.
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

/// Why page weights are not available.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WeightError {
    /// A column cannot be read.
    #[error(transparent)]
    Column(#[from] ColumnError),
    /// The column does not exist.
    #[error("pages have no column '{0}': compute one with `archive rank --save`, or weigh by importance")]
    Missing(String),
}

impl archive_base::error::Classified for WeightError {}

/// Page weights for a refresh.
#[derive(Debug, Default)]
pub struct Weights {
    column: Option<SavedColumn>,
    /// Sum and number of the values of the column.
    values: (f64, f64),
    /// Factor that makes the mean of the values 1.
    scale: f64,
    html_only: bool,
    decided: DecisionFactors,
}

impl Weights {
    /// Weighs by importance alone.
    #[must_use]
    pub fn importance() -> Self {
        Self::default()
    }

    /// Reads the weights from the archive in this folder.
    ///
    /// # Errors
    /// If a column cannot be read, or a named column does not exist.
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

    fn by(column: SavedColumn, html_only: bool) -> Self {
        let values = (0..column.len())
            .filter_map(|id| column.get(id))
            .fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
        let mut weights = Self { values, column: Some(column), html_only, ..Self::default() };
        Self::put_on_one_scale(std::slice::from_mut(&mut weights));
        weights
    }

    /// Scales the columns of several archives together, so that the mean over all of them is 1.
    pub fn put_on_one_scale(all: &mut [Self]) {
        let add = |(sum, count): (f64, f64), one: &Self| (sum + one.values.0, count + one.values.1);
        let (sum, count) = all.iter().fold((0.0, 0.0), add);
        let scale = if sum > 0.0 { count / sum } else { 0.0 };
        all.iter_mut().for_each(|one| one.scale = scale);
    }

    /// Returns the factor for the values of the column.
    pub(super) fn scale(&self) -> f64 {
        self.scale
    }

    /// Also applies people's decisions ([`archive_base::decisions::CurrentDecisions::weight`]).
    ///
    /// # Errors
    /// If the store fails.
    pub fn with_decisions(self, state: &State, decisions: Decisions) -> Result<Self, CreditError> {
        Ok(Self { decided: DecisionFactors::of(state, decisions)?, ..self })
    }

    /// Returns the decisions that apply to a page.
    ///
    /// # Errors
    /// If the store fails.
    pub fn standing(&self, state: &State, id: UrlId) -> Result<CurrentDecisions, CreditError> {
        self.decided.standing(state, id)
    }

    /// Number of decisions taken into account.
    pub(super) fn decisions(&self) -> u64 {
        self.decided.count()
    }

    /// Returns the weight of a page, given its importance or that of the page that it stands for. `None` for
    /// robots.txt, for files that come only with their page, and for pages that people decided against.
    ///
    /// # Errors
    /// If the store fails.
    pub fn of(
        &self,
        state: &State,
        page: (UrlId, &Page),
        importance: Option<f64>,
        visit: &Visit,
    ) -> Result<Option<f64>, CreditError> {
        let Some(importance) = refreshable(page.1, importance, visit) else { return Ok(None) };
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
        // An hourly run that begins five minutes early may fetch the page; one that begins earlier may not.
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
