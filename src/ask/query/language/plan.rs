//! Checked queries, ready to run.

use archive_books::search::{Needs, TextQuery};
use archive_grammar::{Direction, Query, QueryRows, Relation};
use chrono::{DateTime, Utc};

use crate::query::language::aggregate::Aggregate;
use crate::query::language::error::Error;
use crate::query::language::expr::PlannedExpr;
use crate::query::language::fields::{ColumnKind, plural};
use crate::query::language::filter::Filter;
use crate::query::language::times::{Instant, Period, Zone};

/// When, where and of which store a query is asked: its meaning depends on these.
#[derive(Clone, Debug)]
pub struct Context<'a> {
    /// The time that `30 days ago` is relative to.
    pub now: DateTime<Utc>,
    /// The zone of dates and times without one.
    pub zone: Zone,
    /// Names of the store's additional numeric page columns.
    pub page_columns: &'a [String],
    /// Names of the store's additional numeric site columns.
    pub site_columns: &'a [String],
    /// Names of topics.
    pub topics: &'a [String],
    /// Whether several archives are queried, so that fields whose values differ between archives are not allowed.
    pub of_several: bool,
    /// Whether some of these are on other machines: then links lack what other archives know of their target pages.
    pub elsewhere: bool,
}

impl<'a> Context<'a> {
    /// The context of a query over a store without additional columns and topics.
    #[must_use]
    pub fn bare(now: DateTime<Utc>, zone: Zone) -> Self {
        let nothing: &[String] = &[];
        let (page_columns, site_columns, topics) = (nothing, nothing, nothing);
        Self { now, zone, page_columns, site_columns, topics, of_several: false, elsewhere: false }
    }
}

/// A valid query, ready to run.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) target: QueryRows,
    pub(crate) filter: Option<Filter>,
    pub(crate) searches: Vec<Search>,
    pub(crate) scores: Scores,
    /// Whether the query uses the document structure of pages.
    pub(crate) asks_structure: bool,
    /// The sample to draw from the matching rows: its size and the seed.
    pub(crate) sample: Option<(usize, u64)>,
    pub(crate) groups: Option<GroupPlan>,
    pub(crate) order: Vec<(PlannedExpr, Direction)>,
    pub(crate) select: Vec<PlannedExpr>,
    pub(crate) headings: Vec<Heading>,
    pub(crate) limit: Option<usize>,
    pub(crate) offset: usize,
    /// Only captures before this time count.
    pub(crate) as_of: Option<Instant>,
    pub(crate) written: QueryText,
}

/// What scores are used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scores {
    Nothing,
    /// They only appear in columns of the answer.
    Shown,
    /// They decide which rows match, or their order.
    Decide,
}

/// How rows are grouped.
#[derive(Clone, Debug)]
pub(crate) struct GroupPlan {
    /// Empty for one group of all rows.
    pub(crate) keys: Vec<PlannedExpr>,
    /// The periods that the first key names, if those between the first and the last that have no rows are groups, too.
    pub(crate) series: Option<Period>,
    pub(crate) aggregates: Vec<Aggregate>,
    pub(crate) having: Option<Filter>,
}

/// What is looked up before rows are read: pages that a text search selects or that are related to others.
#[derive(Clone, Debug)]
pub(crate) enum Search {
    Text {
        query: TextQuery,
        /// Whether a match raises a page's score; under `not` it does not.
        scores: bool,
    },
    /// Pages related to the page at this URL.
    Url(Relation, String),
    /// Pages related to the pages of another query.
    Pages(Relation, Box<Plan>),
    /// Pages related to the pages at these URLs, or these pages themselves.
    Urls(Option<Relation>, Vec<String>),
    /// Pages whose content equals that of another page.
    Duplicates,
    /// XML documents for which the index knows that a condition on elements holds; or further ones in which it may hold:
    /// they have to be read. The three searches of a condition follow one another, with [`Search::Read`] in the middle.
    Elements { condition: Box<Filter>, are_known: bool },
    /// XML documents found by the next search that were read and match.
    Read,
    /// Pages whose text lacks what a regular expression needs, as the index knows: they need not be read.
    Lacking(Needs),
}

/// The heading of an answer column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heading {
    /// The canonical name of the field, for example `last_seen`; for a calculation, its text.
    pub name: String,
    /// The type of the column's values.
    pub kind: ColumnKind,
}

impl Plan {
    /// Whether the plan needs the full-text index.
    #[must_use]
    pub fn searches_text(&self) -> bool {
        self.asks_structure
            || self.searches.iter().any(|search| match search {
                Search::Text { .. }
                | Search::Elements { .. }
                | Search::Lacking(_)
                | Search::Url(Relation::Near, _) => true,
                Search::Pages(relation, plan) => *relation == Relation::Near || plan.searches_text(),
                Search::Url(..) | Search::Urls(..) | Search::Duplicates | Search::Read => false,
            })
    }

    /// The plan's own text queries, without those of nested plans.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &TextQuery> {
        self.searches.iter().filter_map(|search| match search {
            Search::Text { query, .. } => Some(query),
            _ => None,
        })
    }

    /// Whether the plan searches the text of pages.
    #[must_use]
    pub fn reads_texts(&self) -> bool {
        self.searches.iter().any(|search| match search {
            Search::Text { .. } | Search::Url(Relation::Near, _) | Search::Pages(Relation::Near, _) => true,
            Search::Pages(_, plan) => plan.reads_texts(),
            _ => false,
        })
    }

    /// Whether the plan asks for elements, which only XML documents have.
    #[must_use]
    pub fn asks_elements(&self) -> bool {
        let is_search = |search: &Search| matches!(search, Search::Elements { .. });
        self.searches.iter().any(is_search) || self.filter.as_ref().is_some_and(Filter::asks_elements)
    }

    /// Whether the plan selects sites themselves, without grouping them.
    #[must_use]
    pub fn asks_for_sites(&self) -> bool {
        self.target == QueryRows::Sites && self.groups.is_none()
    }

    /// Checks that the plan selects pages and nothing else.
    ///
    /// # Errors
    /// [`Error::Sites`] and [`Error::NotPages`].
    pub fn expect_pages(&self) -> Result<(), Error> {
        match self.target {
            QueryRows::Sites => Err(Error::Sites),
            QueryRows::Pages if self.groups.is_none() => Ok(()),
            QueryRows::Pages => Err(Error::NotPages { what: "numbers" }),
            target => Err(Error::NotPages { what: plural(target) }),
        }
    }

    /// What the plan selects, if it yields no pages, neither directly nor through sites, hosts or captures.
    pub fn other_than_pages(&self) -> Option<&'static str> {
        match self.target {
            _ if self.groups.is_some() => Some("numbers"),
            QueryRows::Links => Some(plural(self.target)),
            _ => None,
        }
    }

    /// The headings, one per column of the answer.
    #[must_use]
    pub fn headings(&self) -> &[Heading] {
        &self.headings
    }

    /// Limits the answer to `rows` if the query has no limit. Returns whether it had none.
    pub fn limit_if_unlimited(&mut self, rows: usize) -> bool {
        let unlimited = self.limit.is_none();
        self.limit.get_or_insert(rows);
        unlimited
    }
}

impl Search {
    pub(crate) fn scores(&self) -> bool {
        matches!(self, Self::Text { scores: true, .. })
    }
}

/// Parts of a query as written, for explanations.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueryText {
    /// The conjuncts in evaluation order.
    pub(crate) checks: Vec<String>,
    pub(crate) groups: String,
    pub(crate) having: Option<String>,
    pub(crate) order: String,
}

impl QueryText {
    pub(crate) fn new(query: &Query, checks: Vec<String>) -> Self {
        let listed = |each: &mut dyn Iterator<Item = String>| each.collect::<Vec<_>>().join(", ");
        Self {
            checks,
            groups: listed(&mut query.group.iter().map(|key| key.value.to_string())),
            having: query.having.as_ref().map(ToString::to_string),
            order: listed(&mut query.order.iter().map(ToString::to_string)),
        }
    }
}
