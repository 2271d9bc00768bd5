//! Turns a query's tree into a plan: checks fields and types, resolves times, separates searches and relations.

use archive_grammar::{Direction, Expr as Written, ParseError, Query, QueryRows, Spanned};

use crate::query::language::aggregate::Gather;
use crate::query::language::checks::Checker;
use crate::query::language::expr::PlannedExpr;
use crate::query::language::fields::{Column, ColumnKind, FieldPath, plural};
use crate::query::language::names::FieldNames;
use crate::query::language::plan::{Context, GroupPlan, Heading, Plan, QueryText, Scores, Search};
use crate::query::language::times::Instant;
use crate::query::language::types::{Checked, Grouping, TypedExpr};
use crate::query::language::{fields, times};

impl Plan {
    /// Parses and checks `text`.
    ///
    /// # Errors
    /// The first mistake in `text`, with its position.
    pub fn parse(text: &str, context: &Context<'_>) -> Result<Self, ParseError> {
        Self::new(&archive_grammar::parse(text)?, text, context)
    }

    /// Checks `query`, which was parsed from `text`, and plans it.
    ///
    /// # Errors
    /// The first field that does not exist, or value that does not fit its field.
    pub fn new(query: &Query, text: &str, context: &Context<'_>) -> Result<Self, ParseError> {
        let columns =
            FieldNames { target: query.target, pages: context.page_columns, sites: context.site_columns };
        let mut checker = Checker::new(text, columns, context, query.as_of.is_some());
        let as_of = as_of(query, &checker)?;
        let whole = query.condition.as_ref().map(|condition| checker.whole(condition)).transpose()?;
        let (filter, checks) = whole.map_or((None, Vec::new()), |(filter, said)| (Some(filter), said));
        let is_scored = checker.searches.iter().any(Search::scores);
        let are_tested = checker.typing.score_used.is_some();
        let mut planner = Planner { checker, query, is_scored };
        let shape = if is_grouped(query) { planner.grouped()? } else { planner.single()? };
        let Checker { typing, searches, .. } = planner.checker;
        if let Some(span) = typing.score_used.as_ref().filter(|_| !is_scored) {
            return Err(typing
                .mistake(span, "there is no score without a search of the text")
                .with_suggestion(Some(
                    "add a condition such as `text contains \"open access\"`".to_owned(),
                )));
        }
        let is_used = typing.score_used.is_some();
        let orders = shape.order.iter().any(|(key, _)| key.has(PlannedExpr::is_score));
        let scores = match are_tested || orders || is_used && shape.groups.is_some() {
            true => Scores::Decide,
            false if is_used => Scores::Shown,
            false => Scores::Nothing,
        };
        let rows = |count: &Spanned<u64>| usize::try_from(count.value).unwrap_or(usize::MAX);
        Ok(Self {
            target: query.target,
            filter,
            searches,
            scores,
            asks_structure: typing.asks_structure,
            sample: query.sample.as_ref().map(|sample| (rows(&sample.rows), sample.seed)),
            groups: shape.groups,
            order: shape.order,
            headings: shape.select.iter().map(|(heading, _)| heading.clone()).collect(),
            select: shape.select.into_iter().map(|(_, expr)| expr).collect(),
            limit: query.limit.as_ref().map(rows),
            offset: query.offset.as_ref().map_or(0, rows),
            as_of,
            written: QueryText::new(query, checks),
        })
    }
}

/// Whether the answer has groups: the query groups rows or uses an aggregate.
fn is_grouped(query: &Query) -> bool {
    let exprs = query.select.iter().map(|selection| &selection.expr);
    let mut exprs = exprs.chain(query.order.iter().map(|key| &key.expr));
    !query.group.is_empty() || query.having.is_some() || exprs.any(|expr| gathers(&expr.value))
}

fn gathers(written: &Written) -> bool {
    match written {
        Written::Call { function, distinct, argument, .. } => {
            Gather::named(function, *distinct, argument.is_some()).is_some()
                || argument.as_ref().is_some_and(|argument| gathers(&argument.value))
        }
        Written::Field(field) => field.name() == "count",
        Written::Arithmetic(left, _, right) => gathers(&left.value) || gathers(&right.value),
        Written::Literal(_) | Written::Path(_) => false,
    }
}

/// The exclusive end of `as of`: the end of the day, or the first instant after a time.
fn as_of(query: &Query, checker: &Checker<'_>) -> Checked<Option<Instant>> {
    let Some(time) = &query.as_of else { return Ok(None) };
    let typing = &checker.typing;
    if matches!(query.target, QueryRows::Hosts | QueryRows::Links) {
        let message = format!("{} are only known as of now", plural(query.target));
        return Err(typing.mistake(&time.span, message));
    }
    let Some(named) = typing.time(&time.value) else {
        let suggestion = "write it as 2026-01-31, 2026-01-31T10:00Z, 30 days ago or yesterday".to_owned();
        return Err(typing.mistake(&time.span, "this is not a time").with_suggestion(Some(suggestion)));
    };
    Ok(Some(times::end(&named)))
}

/// What to make of the matching rows.
struct Shape {
    groups: Option<GroupPlan>,
    select: Vec<(Heading, PlannedExpr)>,
    order: Vec<(PlannedExpr, Direction)>,
}

struct Planner<'a, 'q> {
    checker: Checker<'a>,
    query: &'q Query,
    is_scored: bool,
}

impl Planner<'_, '_> {
    /// Plans one row of the answer per matching row.
    fn single(&mut self) -> Checked<Shape> {
        let mut select = Vec::new();
        let mut names = Vec::new();
        for selection in &self.query.select {
            let typed = self.checker.typing.expr(&selection.expr)?;
            let heading = heading(&selection.expr.value, selection.name.as_ref(), &typed);
            names.push((heading.name.clone(), typed.clone()));
            select.push((heading, typed.expr));
        }
        if select.is_empty() {
            for name in self.checker.typing.columns.default_columns(self.is_scored) {
                let is_of_today = FieldPath::is_of_today;
                if self.checker.typing.is_past
                    && self.checker.typing.columns.find(name).is_ok_and(is_of_today)
                {
                    continue;
                }
                let field = Written::Field(archive_grammar::FieldName::new(name));
                let typed = self.checker.typing.expr(&Spanned::from(field.clone()))?;
                select.push((heading(&field, None, &typed), typed.expr));
            }
        }
        let mut order = Vec::new();
        for key in &self.query.order {
            // A name given in `select` takes precedence over a field of that name.
            let named = match &key.expr.value {
                Written::Field(field) => names.iter().find(|(name, _)| name == field.name()),
                _ => None,
            };
            let typed = match named {
                Some((_, typed)) => typed.clone(),
                None => self.checker.typing.expr(&key.expr)?,
            };
            order.push(directed(typed, key.direction));
        }
        if order.is_empty() {
            order = self.usual_order();
        }
        Ok(Shape { groups: None, select, order })
    }

    /// Captured pages come before pages that are only linked to; text searches only find captured pages.
    fn usual_order(&self) -> Vec<(PlannedExpr, Direction)> {
        let columns: &[Column] = match self.query.target {
            QueryRows::Pages | QueryRows::Sites if self.is_scored => &[Column::Score],
            QueryRows::Pages | QueryRows::Sites => &[Column::Captured, Column::Importance],
            QueryRows::Hosts => &[Column::Captures],
            QueryRows::Captures | QueryRows::Versions => &[Column::Time],
            QueryRows::Links => &[],
        };
        columns
            .iter()
            .map(|column| (PlannedExpr::Field(FieldPath::from(*column)), Direction::Descending))
            .collect()
    }

    /// Plans one row of the answer per group.
    fn grouped(&mut self) -> Checked<Shape> {
        let mut keys = Vec::new();
        for key in &self.query.group {
            keys.push((key.value.clone(), self.checker.typing.expr(key)?));
        }
        let key_exprs: Vec<PlannedExpr> = keys.iter().map(|(_, key)| key.expr.clone()).collect();
        self.checker.typing.grouping = Some(Grouping { keys, aggregates: Vec::new(), names: Vec::new() });

        let mut select = Vec::new();
        for selection in self.selection_of_groups() {
            let typed = self.checker.typing.expr(&selection.expr)?;
            let heading = heading(&selection.expr.value, selection.name.as_ref(), &typed);
            if let (Some(name), Some(grouping)) = (&selection.name, &mut self.checker.typing.grouping) {
                grouping.names.push((name.value.name().to_owned(), typed.clone()));
            }
            select.push((heading, typed));
        }
        let having = self.query.having.as_ref().map(|having| self.checker.condition(having)).transpose()?;
        let mut order = Vec::new();
        for key in &self.query.order {
            let typed = self.checker.typing.expr(&key.expr)?;
            order.push(directed(typed, key.direction));
        }
        // A series comes in order of time.
        if order.is_empty() && !self.query.is_series {
            // Order by the first aggregate, largest first.
            let first = select.iter().find(|(_, typed)| matches!(typed.expr, PlannedExpr::Aggregate(_)));
            order.extend(first.map(|(_, typed)| (typed.expr.clone(), Direction::Descending)));
        }
        // Groups have no id as a tie-break: their keys serve instead.
        order
            .extend((0..self.query.group.len()).map(|index| (PlannedExpr::Key(index), Direction::Ascending)));
        let aggregates = self.checker.typing.grouping.take().map(|grouping| grouping.aggregates);
        let series = key_exprs.first().filter(|_| self.query.is_series).and_then(PlannedExpr::period);
        let groups =
            GroupPlan { keys: key_exprs, series, aggregates: aggregates.unwrap_or_default(), having };
        let select = select.into_iter().map(|(heading, typed)| (heading, typed.expr)).collect();
        Ok(Shape { groups: Some(groups), select, order })
    }

    /// The columns of groups; by default the keys and the number of rows.
    fn selection_of_groups(&self) -> Vec<archive_grammar::ResultColumn> {
        if !self.query.select.is_empty() {
            return self.query.select.clone();
        }
        let count = Spanned::from(Written::Field(archive_grammar::FieldName::new("count")));
        let exprs = self.query.group.iter().cloned().chain([count]);
        exprs.map(|expr| archive_grammar::ResultColumn { expr, name: None }).collect()
    }
}

fn heading(
    written: &Written,
    name: Option<&Spanned<archive_grammar::FieldName>>,
    typed: &TypedExpr,
) -> Heading {
    let name = match (name, typed.expr.column(), written) {
        (Some(name), ..) => name.value.name().to_owned(),
        // The heading is the canonical name, even if the query uses an alias.
        (None, Some(_), Written::Field(field)) if !field.name().contains('.') => {
            normal_name(typed, field.name())
        }
        (None, _, Written::Field(field)) => field.name().to_owned(),
        (None, _, written) => written.to_string(),
    };
    Heading { name, kind: typed.kind }
}

/// A field's canonical name.
fn normal_name(typed: &TypedExpr, written: &str) -> String {
    let column = typed.expr.column();
    let known = fields::KNOWN.iter().find(|known| Some(known.column) == column);
    known.map_or(written, |known| known.name).to_owned()
}

fn directed(typed: TypedExpr, direction: Option<Direction>) -> (PlannedExpr, Direction) {
    let usual = match typed.kind {
        ColumnKind::Number | ColumnKind::Span | ColumnKind::Time => Direction::Descending,
        ColumnKind::Text | ColumnKind::Choice => Direction::Ascending,
    };
    (typed.expr, direction.unwrap_or(usual))
}
