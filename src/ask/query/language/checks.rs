//! Conditions: which checks and values fit which field.

use std::ops::{Bound, Range};

use archive_grammar::{
    Check, Comparison, Condition, Expr as Written, Literal, ParseError, QueryRows, Spanned, Test, TextEnd,
};

use crate::query::language::expr::PlannedExpr;
use crate::query::language::fields::{Column, ColumnKind, FieldPath, TEXT};
use crate::query::language::filter::{Filter, Ranges};
use crate::query::language::names::FieldNames;
use crate::query::language::plan::{Context, Search};
use crate::query::language::times;
use crate::query::language::times::Instant;
use crate::query::language::types::{Checked, TypedExpr, Typing, same_sort, sort};
use crate::query::language::value::Value;

/// Turns conditions into filters.
pub(crate) struct Checker<'a> {
    pub(crate) typing: Typing<'a>,
    pub(crate) searches: Vec<Search>,
    /// Whether the current condition is inside an odd number of `not`s.
    pub(crate) negative: bool,
}

/// The right side of a comparison.
enum Other<T> {
    /// A constant: an instant, or all of a day.
    Range(Range<T>),
    /// A value that each row has.
    Expr(TypedExpr),
}

/// An ordered type that an expression may result in.
trait Comparable: Clone + PartialOrd {
    fn of(value: &Value) -> Option<Self>;
}

impl Comparable for f64 {
    fn of(value: &Value) -> Option<Self> {
        value.as_number()
    }
}

impl Comparable for Instant {
    fn of(value: &Value) -> Option<Self> {
        if let Value::Time(time) = value { Some(*time) } else { None }
    }
}

impl<'a> Checker<'a> {
    pub(crate) fn new(
        text: &'a str,
        columns: FieldNames<'a>,
        context: &'a Context<'a>,
        is_past: bool,
    ) -> Self {
        let typing = Typing {
            text,
            columns,
            context,
            score_used: None,
            asks_structure: false,
            is_past,
            grouping: None,
        };
        Self { typing, searches: Vec::new(), negative: false }
    }

    pub(crate) fn condition(&mut self, condition: &Condition) -> Checked<Filter> {
        Ok(match condition {
            Condition::All(parts) => Filter::All(self.conditions(parts)?).cheapest_first(),
            Condition::Any(parts) => Filter::Any(self.conditions(parts)?).cheapest_first(),
            Condition::Not(part) => {
                self.negative = !self.negative;
                let part = self.condition(part)?;
                self.negative = !self.negative;
                Filter::Not(Box::new(part))
            }
            Condition::Test(test) => self.test(test)?,
            Condition::Related(related) => self.related(related)?,
        })
    }

    /// Checks the condition of a query. Also returns its conjuncts as written, in evaluation order.
    pub(crate) fn whole(&mut self, condition: &Condition) -> Checked<(Filter, Vec<String>)> {
        let Condition::All(parts) = condition else {
            let filter = self.condition(condition)?;
            let said = vec![condition.to_string(); filter.parts().len()];
            return Ok((filter, said));
        };
        let parts = parts.iter().map(|part| Ok((self.condition(part)?, part.to_string())));
        let mut parts = parts.collect::<Checked<Vec<_>>>()?;
        parts.sort_by_key(|(filter, _)| filter.cost());
        let (filters, said) = parts.into_iter().unzip();
        Ok((Filter::All(filters), said))
    }

    fn conditions(&mut self, parts: &[Condition]) -> Checked<Vec<Filter>> {
        parts.iter().map(|part| self.condition(part)).collect()
    }

    fn test(&mut self, test: &Test) -> Checked<Filter> {
        if let Written::Field(field) = &test.left.value
            && field.name() == TEXT
            && self.typing.columns.target == QueryRows::Pages
        {
            return self.search(test);
        }
        if let Written::Path(path) = &test.left.value {
            return self.elements(path, test);
        }
        let left = self.typing.expr(&test.left)?;
        self.typed_test(&left, &test.check)
    }

    pub(crate) fn typed_test(&mut self, left: &TypedExpr, check: &Spanned<Check>) -> Checked<Filter> {
        if let Check::Empty { negated } = check.value {
            let is_of_page = self.typing.columns.target == QueryRows::Pages;
            let known = match left.expr.own_field() {
                Some(Column::Died) if is_of_page => has_died(),
                _ => self.narrowed(left, Filter::Known(left.expr.clone())),
            };
            return Ok(negate(known, !negated));
        }
        let filter = match left.kind {
            ColumnKind::Number | ColumnKind::Span => {
                let number = |typing: &Typing<'_>, other: &Spanned<Written>| number(typing, left, other);
                self.ordered(left, check, true, number, Filter::Number)
            }
            ColumnKind::Time => {
                let time = |typing: &Typing<'_>, other: &Spanned<Written>| time(typing, left, other);
                self.ordered(left, check, false, time, Filter::Time)
            }
            ColumnKind::Text => self.text_test(left, check),
            ColumnKind::Choice => self.choice_test(left, check),
        };
        Ok(self.narrowed(left, filter?))
    }

    /// Adds a condition that columns decide to a test of a field that is only known of rows that meet it.
    fn narrowed(&self, left: &TypedExpr, filter: Filter) -> Filter {
        let of_page = self.typing.columns.target == QueryRows::Pages;
        let field = |column: Column| PlannedExpr::Field(column.into());
        let at_least = |column, least| {
            Filter::Number(field(column), Ranges(vec![(Bound::Included(least), Bound::Unbounded)]))
        };
        // The negation of a test holds for what is unknown, and so does a comparison with an empty text.
        let only = match (&left.expr, left.expr.own_field()) {
            _ if !of_page || !filter.is_of_known() => return filter,
            (_, Some(Column::Died)) => Filter::Known(field(Column::FailingSince)),
            (_, Some(Column::Recaptured)) => at_least(Column::Captures, 2.0),
            (_, Some(column)) if column.is_lost() => at_least(Column::Versions, 2.0),
            (PlannedExpr::Said { .. }, _) => at_least(Column::Captures, 1.0),
            (_, Some(column)) if column.is_of_payload() => at_least(Column::Captures, 1.0),
            _ => return filter,
        };
        Filter::All(vec![only, filter])
    }

    /// Checks a test of ordered values. A value may itself be a range (a day); with `closed` the end belongs to it.
    /// Values are literals, or expressions with the same result for all rows.
    fn ordered<T: Comparable>(
        &mut self,
        left: &TypedExpr,
        check: &Spanned<Check>,
        closed: bool,
        read: impl Fn(&Typing<'_>, &Spanned<Written>) -> Checked<Option<Range<T>>>,
        filter: fn(PlannedExpr, Ranges<T>) -> Filter,
    ) -> Checked<Filter> {
        let is_span = left.kind == ColumnKind::Time;
        let last = |end: T, start: &T| {
            if closed || end == *start { Bound::Included(end) } else { Bound::Excluded(end) }
        };
        let after = |end: T, start: &T| {
            if closed || end == *start { Bound::Excluded(end) } else { Bound::Included(end) }
        };
        let whole = |value: Range<T>| (Bound::Included(value.start.clone()), last(value.end, &value.start));
        let ranges = |ranges| filter(left.expr.clone(), Ranges(ranges));
        Ok(match &check.value {
            Check::Compare(comparison, other) => match self.other(left, other, &read)? {
                Other::Expr(right) => compare(left, *comparison, right),
                Other::Range(value) => {
                    let range = match comparison {
                        Comparison::Equal | Comparison::NotEqual => whole(value),
                        Comparison::Less => (Bound::Unbounded, Bound::Excluded(value.start)),
                        Comparison::LessOrEqual => (Bound::Unbounded, last(value.end, &value.start)),
                        Comparison::Greater => (after(value.end, &value.start), Bound::Unbounded),
                        Comparison::GreaterOrEqual => (Bound::Included(value.start), Bound::Unbounded),
                    };
                    negate(ranges(vec![range]), *comparison == Comparison::NotEqual)
                }
            },
            Check::In { negated, values } => {
                let mut all = Vec::new();
                for literal in values {
                    let written = Spanned::new(Written::Literal(literal.value.clone()), literal.span.clone());
                    match read(&self.typing, &written)? {
                        Some(value) => all.push(whole(value)),
                        None => {
                            return Err(unsuitable(
                                &self.typing,
                                left,
                                &written.span,
                                sort(ColumnKind::Text),
                            ));
                        }
                    }
                }
                negate(ranges(all), *negated)
            }
            Check::Between { negated, low, high } => {
                let span = low.span.start..high.span.end;
                let between = match (self.other(left, low, &read)?, self.other(left, high, &read)?) {
                    (Other::Range(from), Other::Range(to)) if from.start > to.end => {
                        let message = "this range is empty: the first value is larger than the second";
                        return Err(self.typing.mistake(&span, message));
                    }
                    (Other::Range(from), Other::Range(to)) => {
                        ranges(vec![(Bound::Included(from.start), last(to.end, &to.start))])
                    }
                    (low, high) => {
                        let from = match low {
                            Other::Range(from) => {
                                ranges(vec![(Bound::Included(from.start), Bound::Unbounded)])
                            }
                            Other::Expr(from) => compare(left, Comparison::GreaterOrEqual, from),
                        };
                        let to = match high {
                            Other::Range(to) => ranges(vec![(Bound::Unbounded, last(to.end, &to.start))]),
                            Other::Expr(to) => compare(left, Comparison::LessOrEqual, to),
                        };
                        Filter::All(vec![from, to])
                    }
                };
                negate(between, *negated)
            }
            Check::Since { from, until } if is_span => self.since(left, from, until.as_ref())?,
            Check::Since { from, .. } => return Err(self.not_time(left, from)),
            Check::Glob { pattern, .. } => return Err(self.not_text(left, "~", &pattern.span)),
            Check::Pattern { pattern, .. } => return Err(self.not_text(left, "matches", &pattern.span)),
            Check::Affix { text, end, .. } => {
                let sign = if *end == TextEnd::Start { "starts with" } else { "ends with" };
                return Err(self.not_text(left, sign, &text.span));
            }
            Check::Contains { texts, .. } => {
                let span = texts.first().map_or(&check.span, |text| &text.span);
                return Err(self.not_text(left, "contains", span));
            }
            Check::Empty { negated } => negate(Filter::Known(left.expr.clone()), !negated),
        })
    }

    /// The right side of a comparison: a constant, or something that each row has.
    fn other<T: Comparable>(
        &mut self,
        left: &TypedExpr,
        other: &Spanned<Written>,
        read: impl Fn(&Typing<'_>, &Spanned<Written>) -> Checked<Option<Range<T>>>,
    ) -> Checked<Other<T>> {
        if let Some(range) = read(&self.typing, other)? {
            return Ok(Other::Range(range));
        }
        // A word that is not a value may be a field.
        let written = match &other.value {
            Written::Literal(Literal::Text(word)) => {
                Spanned::new(Written::Field(archive_grammar::FieldName::new(word)), other.span.clone())
            }
            _ => other.clone(),
        };
        let is_word = written != *other;
        let right = match self.typing.expr(&written) {
            Ok(right) => right,
            Err(_) if is_word => {
                let example = if left.kind == ColumnKind::Span { "2 seconds" } else { "2" };
                let suggestion = format!("write a number or a field, as in `{} > {example}`", left.shown);
                return Err(
                    unsuitable(&self.typing, left, &other.span, "text").with_suggestion(Some(suggestion))
                );
            }
            Err(mistake) => return Err(mistake),
        };
        if !same_sort(left.kind, right.kind) {
            return Err(unsuitable(&self.typing, left, &other.span, sort(right.kind)));
        }
        Ok(match right.expr.constant().as_ref().and_then(T::of) {
            Some(value) => Other::Range(value.clone()..value),
            None => Other::Expr(right),
        })
    }

    /// Checks `since`: `changed since …` means that the content changed in the period, not just that the newest version
    /// was first seen in it; any other time field must itself be in the period.
    fn since(
        &mut self,
        left: &TypedExpr,
        from: &Spanned<Written>,
        until: Option<&Spanned<Written>>,
    ) -> Checked<Filter> {
        let mut limit = |written: &Spanned<Written>| -> Checked<Range<Instant>> {
            let read = |typing: &Typing<'_>, other: &Spanned<Written>| time(typing, left, other);
            match self.other(left, written, read)? {
                Other::Range(range) => Ok(range),
                Other::Expr(right) => Err(self
                    .typing
                    .mistake(&right.span, "since and until take times that are the same for all rows")),
            }
        };
        let from = limit(from)?;
        let until = until.map(&mut limit).transpose()?;
        if left.path() == Some(FieldPath::from(Column::Changed)) {
            let end = until.map(|until| times::end(&until));
            return Ok(Filter::Changed(Some(from.start), end));
        }
        let end = until.map_or(Bound::Unbounded, |until| {
            if until.end > until.start { Bound::Excluded(until.end) } else { Bound::Included(until.end) }
        });
        Ok(Filter::Time(left.expr.clone(), Ranges(vec![(Bound::Included(from.start), end)])))
    }

    pub(crate) fn not_time(&self, left: &TypedExpr, from: &Spanned<Written>) -> ParseError {
        let message = format!("`{}` is {}, but `since` works only for times", left.shown, sort(left.kind));
        self.typing.mistake(&from.span, message)
    }
}

/// The number that a literal stands for; `None` for an expression or a word.
fn number(typing: &Typing<'_>, left: &TypedExpr, other: &Spanned<Written>) -> Checked<Option<Range<f64>>> {
    let Written::Literal(literal) = &other.value else { return Ok(None) };
    match literal {
        Literal::Number(number) if left.kind == ColumnKind::Number => Ok(Some(*number..*number)),
        Literal::Number(_) => Err(unsuitable(typing, left, &other.span, "a number")
            .with_suggestion(Some("an amount of time has a unit: 30 days, 2 hours, 1 second".to_owned()))),
        Literal::Span(amount) if left.kind == ColumnKind::Span => {
            let seconds = times::seconds(*amount);
            Ok(Some(seconds..seconds))
        }
        Literal::Text(text) if text.trim().parse::<f64>().is_ok() => {
            let suggestion = format!("write numbers without quotes: {}", text.trim());
            Err(unsuitable(typing, left, &other.span, "text").with_suggestion(Some(suggestion)))
        }
        Literal::Text(_) => Ok(None),
        other_literal => Err(unsuitable(typing, left, &other.span, literal_sort(other_literal))),
    }
}

/// The time that a literal stands for; `None` for an expression or another word.
fn time(typing: &Typing<'_>, left: &TypedExpr, other: &Spanned<Written>) -> Checked<Option<Range<Instant>>> {
    let Written::Literal(literal) = &other.value else { return Ok(None) };
    match (typing.time(literal), literal) {
        (Some(time), _) => Ok(Some(time)),
        (None, Literal::Text(word)) if typing.columns.find(word).is_ok() => Ok(None),
        (None, _) => {
            let written = typing.text.get(other.span.clone()).unwrap_or_default();
            let suggestion = match literal {
                Literal::Span(_) => format!("did you mean `{written} ago`?"),
                _ => "write it as 2026-01-31, 2026-01-31T10:00Z, 30 days ago or today".to_owned(),
            };
            Err(unsuitable(typing, left, &other.span, literal_sort(literal))
                .with_suggestion(Some(suggestion)))
        }
    }
}

pub(crate) fn compare(left: &TypedExpr, comparison: Comparison, right: TypedExpr) -> Filter {
    let folds_case = left.folds_case && right.folds_case;
    let (negated, comparison) = match comparison {
        // Tests of unknown values are false, so the negation of equality holds for them.
        Comparison::NotEqual => (true, Comparison::Equal),
        comparison => (false, comparison),
    };
    negate(Filter::Compare { left: left.expr.clone(), comparison, right: right.expr, folds_case }, negated)
}

pub(crate) fn literal_sort(literal: &Literal) -> &'static str {
    match literal {
        Literal::Number(_) => "a number",
        Literal::Text(_) => "text",
        Literal::Span(_) => sort(ColumnKind::Span),
        Literal::Moment(_) | Literal::Ago(_) => "a time",
    }
}

pub(crate) fn unsuitable(
    typing: &Typing<'_>,
    left: &TypedExpr,
    span: &Range<usize>,
    found: &str,
) -> ParseError {
    let written = typing.text.get(span.clone()).unwrap_or_default();
    let is_type = left.path().is_some_and(|path| path.column == Column::Type);
    let wanted = if is_type { "a type" } else { sort(left.kind) };
    let message = if found == wanted {
        format!("`{}` is {wanted}, but {written} cannot be read as one", left.shown)
    } else {
        format!("`{}` is {wanted}, but {written} is {found}", left.shown)
    };
    typing.mistake(span, message)
}

pub(crate) fn negate(filter: Filter, negated: bool) -> Filter {
    if negated { Filter::Not(Box::new(filter)) } else { filter }
}

/// Whether `died` is known of a page, in terms of what columns have.
fn has_died() -> Filter {
    let field = |column: Column| PlannedExpr::Field(column.into());
    let number =
        |column, least, most| Filter::Number(field(column), Ranges(vec![(Bound::Included(least), most)]));
    let is = |status| number(Column::Status, status, Bound::Included(status));
    let has_failed = Filter::Compare {
        left: field(Column::LastAttempt),
        comparison: Comparison::NotEqual,
        right: field(Column::LastAnswer),
        folds_case: false,
    };
    let has_no_answer = Filter::Not(Box::new(Filter::Known(field(Column::LastAnswer))));
    Filter::All(vec![
        Filter::Known(field(Column::FailingSince)),
        number(Column::Captures, 1.0, Bound::Unbounded),
        Filter::Any(vec![is(404.0), is(410.0), has_no_answer, has_failed]),
    ])
}
