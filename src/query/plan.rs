//! From a query's tree to a plan: fields and types checked, times resolved, the full-text part set apart.

use archive_grammar::{Direction, Field, OrderKey, ParseError, Query, Spanned, Target};
use chrono::{DateTime, Utc};

use super::checks::Checker;
use super::columns::{Column, ColumnKind, Columns, TEXT};
use super::filter::Filter;
use super::rows::Rows;
use super::times::Zone;
use crate::search::TextQuery;

/// What a query means depends on when and where it is asked, and of which store.
#[derive(Clone, Debug)]
pub struct Context<'a> {
    /// The time from which `30 days ago` counts.
    pub now: DateTime<Utc>,
    /// The zone of dates and times that name none.
    pub zone: Zone,
    /// Names of the store's further numbers of pages.
    pub page_columns: &'a [String],
    /// Names of the store's further numbers of sites.
    pub site_columns: &'a [String],
}

impl<'a> Context<'a> {
    /// Asked now, here, of `rows`.
    pub fn of(rows: &'a dyn Rows) -> Self {
        Self {
            now: Utc::now(),
            zone: Zone::Local,
            page_columns: rows.page_columns(),
            site_columns: rows.site_columns(),
        }
    }
}

/// A query that is known to make sense, ready to run.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) target: Target,
    pub(crate) filter: Option<Filter>,
    pub(crate) searches: Vec<Search>,
    /// Never empty.
    pub(crate) order: Vec<(Column, Direction)>,
    pub(crate) select: Vec<Column>,
    pub(crate) headings: Vec<Heading>,
    pub(crate) limit: Option<usize>,
    pub(crate) offset: usize,
}

/// One full-text search of a plan.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    pub(crate) query: TextQuery,
    /// Whether a match makes a page better; under `not` it does not.
    pub(crate) scores: bool,
}

/// What stands over a column of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heading {
    /// The field in its normal form, for example `last_seen`.
    pub name: String,
    /// What sort of values the column has.
    pub kind: ColumnKind,
}

impl Plan {
    /// Parses and checks `text`.
    ///
    /// # Errors
    /// The first mistake in `text`, with its place.
    pub fn parse(text: &str, context: &Context<'_>) -> Result<Self, ParseError> {
        Self::new(&archive_grammar::parse(text)?, text, context)
    }

    /// Checks `query`, which was parsed from `text`.
    ///
    /// # Errors
    /// The first field that does not exist, or value that does not suit its field.
    pub fn new(query: &Query, text: &str, context: &Context<'_>) -> Result<Self, ParseError> {
        let named = match query.target {
            Target::Pages => context.page_columns,
            Target::Sites => context.site_columns,
        };
        let columns = Columns { target: query.target, named };
        let mut checker = Checker::new(text, columns, context);
        let filter = query.condition.as_ref().map(|condition| checker.condition(condition)).transpose()?;
        let Checker { searches, score_used, .. } = checker;
        let fields = Fields { text, columns, scored: searches.iter().any(|search| search.scores) };
        if let Some(field) = score_used.filter(|_| !fields.scored) {
            return Err(fields.needs_search(&field));
        }

        let select = query.select.iter().map(|field| fields.column(field)).collect::<Result<Vec<_>, _>>()?;
        let select = if select.is_empty() { columns.usual(fields.scored) } else { select };
        let heading =
            |column: &Column| Heading { name: columns.name(*column).to_owned(), kind: column.kind() };
        let order = query.order.iter().map(|key| fields.order_key(key)).collect::<Result<Vec<_>, _>>()?;
        // What was captured goes before what is only linked to; whatever a search finds was.
        let usual: &[Column] =
            if fields.scored { &[Column::Score] } else { &[Column::Captured, Column::Importance] };
        let rows = |count: &Spanned<u64>| usize::try_from(count.value).unwrap_or(usize::MAX);
        Ok(Self {
            target: query.target,
            filter,
            searches,
            order: if order.is_empty() {
                usual.iter().map(|column| (*column, Direction::Descending)).collect()
            } else {
                order
            },
            headings: select.iter().map(heading).collect(),
            select,
            limit: query.limit.as_ref().map(rows),
            offset: query.offset.as_ref().map_or(0, rows),
        })
    }

    /// Whether the plan needs the full-text index.
    #[must_use]
    pub fn searches_text(&self) -> bool {
        !self.searches.is_empty()
    }

    /// Whether the plan asks for sites, not pages.
    #[must_use]
    pub fn asks_for_sites(&self) -> bool {
        self.target == Target::Sites
    }

    /// Limits the answer to `rows` unless the query has a limit of its own; whether it had none.
    pub fn limit_if_unlimited(&mut self, rows: usize) -> bool {
        let unlimited = self.limit.is_none();
        self.limit.get_or_insert(rows);
        unlimited
    }
}

/// Fields of clauses.
struct Fields<'a> {
    text: &'a str,
    columns: Columns<'a>,
    scored: bool,
}

impl Fields<'_> {
    fn order_key(&self, key: &OrderKey) -> Result<(Column, Direction), ParseError> {
        let column = self.column(&key.field)?;
        let usual = match column.kind() {
            ColumnKind::Number | ColumnKind::Time => Direction::Descending,
            ColumnKind::Text | ColumnKind::Type => Direction::Ascending,
        };
        Ok((column, key.direction.unwrap_or(usual)))
    }

    fn column(&self, field: &Spanned<Field>) -> Result<Column, ParseError> {
        let mistake = |message: String| ParseError::new(self.text, field.span.clone(), message);
        let name = field.value.name();
        if name == TEXT && self.columns.target == Target::Pages {
            return Err(mistake("`text` can be searched but is not a column".to_owned())
                .with_suggestion(Some("search it with `text contains \"…\"`".to_owned())));
        }
        let column = self
            .columns
            .find(name)
            .map_err(|unknown| mistake(unknown.message).with_suggestion(unknown.suggestion))?;
        if column == Column::Score && !self.scored {
            return Err(self.needs_search(field));
        }
        Ok(column)
    }

    /// `score` where nothing is searched.
    fn needs_search(&self, field: &Spanned<Field>) -> ParseError {
        ParseError::new(self.text, field.span.clone(), "there is no score without a search of the text")
            .with_suggestion(Some("add a condition such as `text contains \"open access\"`".to_owned()))
    }
}
