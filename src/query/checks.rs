//! Types: which checks and values suit which field.

use std::ops::{Bound, Range};

use archive_grammar::{
    Check, Comparison, Condition, Field, Literal, ParseError, Quantifier, Spanned, Target, Test, nearest,
};
use chrono::{DateTime, Utc};

use super::columns::{Column, ColumnKind, Columns, TEXT, shown};
use super::filter::{Filter, Ranges, TextTest, folded};
use super::glob::Glob;
use super::plan::{Context, Search};
use super::rows::PageType;
use super::times;
use crate::search::{self, TextQuery};

/// Turns conditions into filters.
pub(crate) struct Checker<'a> {
    text: &'a str,
    columns: Columns<'a>,
    context: &'a Context<'a>,
    pub(crate) searches: Vec<Search>,
    /// Where `score` was first tested: whether there is one is known only when all is read.
    pub(crate) score_used: Option<Spanned<Field>>,
    /// Under an odd number of `not`.
    negative: bool,
}

type Checked<T> = Result<T, ParseError>;

impl<'a> Checker<'a> {
    pub(crate) fn new(text: &'a str, columns: Columns<'a>, context: &'a Context<'a>) -> Self {
        Self { text, columns, context, searches: Vec::new(), score_used: None, negative: false }
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
        })
    }

    fn conditions(&mut self, parts: &[Condition]) -> Checked<Vec<Filter>> {
        parts.iter().map(|part| self.condition(part)).collect()
    }

    fn test(&mut self, test: &Test) -> Checked<Filter> {
        let name = test.field.value.name();
        if name == TEXT && self.columns.target == Target::Pages {
            return self.search(test);
        }
        let column = self.columns.find(name).map_err(|unknown| {
            self.mistake(&test.field.span, unknown.message).with_suggestion(unknown.suggestion)
        })?;
        if column == Column::Score {
            self.score_used.get_or_insert_with(|| test.field.clone());
        }
        let field = Named { column, field: &test.field };
        if let Check::Empty { negated } = test.check.value {
            return Ok(negate(Filter::Known(column), !negated));
        }
        match column.kind() {
            ColumnKind::Number => self.number_test(&field, &test.check),
            ColumnKind::Time => self.time_test(&field, &test.check),
            ColumnKind::Text => self.text_test(&field, &test.check),
            ColumnKind::Type => self.type_test(&field, &test.check),
        }
    }

    fn number_test(&self, field: &Named<'_>, check: &Spanned<Check>) -> Checked<Filter> {
        let number = |literal: &Spanned<Literal>| match &literal.value {
            Literal::Number(number) => Ok(*number..*number),
            Literal::Text(text) if text.trim().parse::<f64>().is_ok() => {
                let suggestion = format!("numbers stand without quotes: {}", text.trim());
                Err(self.unsuitable(field, literal, "a number").with_suggestion(Some(suggestion)))
            }
            _ => Err(self.unsuitable(field, literal, "a number")),
        };
        let (ranges, negated) = self.ranges(field, check, true, number)?;
        Ok(negate(Filter::Number(field.column, ranges), negated))
    }

    fn time_test(&self, field: &Named<'_>, check: &Spanned<Check>) -> Checked<Filter> {
        let time = |literal: &Spanned<Literal>| self.time(field, literal);
        let (ranges, negated) = self.ranges(field, check, false, time)?;
        Ok(negate(Filter::Time(field.column, ranges), negated))
    }

    fn time(&self, field: &Named<'_>, literal: &Spanned<Literal>) -> Checked<Range<DateTime<Utc>>> {
        let zone = self.context.zone;
        let found = match &literal.value {
            Literal::Moment(moment) => Some(times::moment(*moment, zone)),
            Literal::Ago(ago) => {
                let time = times::ago(*ago, self.context.now);
                Some(time..time)
            }
            Literal::Number(number) => times::year(*number, zone),
            Literal::Text(word) => times::word(word, self.context.now, zone),
        };
        found.ok_or_else(|| {
            self.unsuitable(field, literal, "a time").with_suggestion(Some(
                "write it as 2026-01-31, 2026-01-31T10:00Z, 30 days ago or today".to_owned(),
            ))
        })
    }

    /// The ranges that a check of an ordered field means, and whether it is the values outside them that are wanted. A
    /// value may itself be a range (a day); with `closed` its end belongs to it.
    fn ranges<T: Clone + PartialOrd>(
        &self,
        field: &Named<'_>,
        check: &Spanned<Check>,
        closed: bool,
        value: impl Fn(&Spanned<Literal>) -> Checked<Range<T>>,
    ) -> Checked<(Ranges<T>, bool)> {
        let last = |end: T, start: &T| {
            if closed || end == *start { Bound::Included(end) } else { Bound::Excluded(end) }
        };
        let after = |end: T, start: &T| {
            if closed || end == *start { Bound::Excluded(end) } else { Bound::Included(end) }
        };
        let whole = |value: Range<T>| (Bound::Included(value.start.clone()), last(value.end, &value.start));
        match &check.value {
            Check::Compare(comparison, literal) => {
                let value = value(literal)?;
                let range = match comparison {
                    Comparison::Equal | Comparison::NotEqual => whole(value),
                    Comparison::Less => (Bound::Unbounded, Bound::Excluded(value.start)),
                    Comparison::LessOrEqual => (Bound::Unbounded, last(value.end, &value.start)),
                    Comparison::Greater => (after(value.end, &value.start), Bound::Unbounded),
                    Comparison::GreaterOrEqual => (Bound::Included(value.start), Bound::Unbounded),
                };
                Ok((Ranges(vec![range]), *comparison == Comparison::NotEqual))
            }
            Check::In { negated, values } => {
                let ranges =
                    values.iter().map(|literal| Ok(whole(value(literal)?))).collect::<Checked<Vec<_>>>()?;
                Ok((Ranges(ranges), *negated))
            }
            Check::Between { negated, low, high } => {
                let (from, to) = (value(low)?, value(high)?);
                if from.start > to.end {
                    let span = low.span.start..high.span.end;
                    return Err(
                        self.mistake(&span, "nothing is between these: the first value is the larger one")
                    );
                }
                let range = (Bound::Included(from.start), last(to.end, &to.start));
                Ok((Ranges(vec![range]), *negated))
            }
            Check::Glob { pattern, .. } => Err(self.not_text(field, "~", &pattern.span)),
            Check::Contains { texts, .. } => {
                Err(self.not_text(field, "contains", texts.first().map_or(&check.span, |text| &text.span)))
            }
            Check::Empty { .. } => Ok((Ranges(Vec::new()), true)),
        }
    }

    fn text_test(&self, field: &Named<'_>, check: &Spanned<Check>) -> Checked<Filter> {
        let folds_case = field.column.folds_case();
        let text = |literal: &Spanned<Literal>| match &literal.value {
            Literal::Text(text) => Ok(folded(text, folds_case).into_owned()),
            _ => {
                let written = self.text.get(literal.span.clone()).unwrap_or_default();
                Err(self
                    .unsuitable(field, literal, "text")
                    .with_suggestion(Some(format!("to mean the text, put it in quotes: \"{written}\""))))
            }
        };
        let (test, negated) = match &check.value {
            Check::Compare(Comparison::Equal, literal) => (TextTest::Is(vec![text(literal)?]), false),
            Check::Compare(Comparison::NotEqual, literal) => (TextTest::Is(vec![text(literal)?]), true),
            Check::In { negated, values } => {
                (TextTest::Is(values.iter().map(text).collect::<Checked<_>>()?), *negated)
            }
            Check::Compare(..) | Check::Between { .. } => {
                let (ranges, negated) = self.ranges(field, check, true, |literal| {
                    let text = text(literal)?;
                    Ok(text.clone()..text)
                })?;
                (TextTest::Between(ranges), negated)
            }
            Check::Glob { negated, pattern } => {
                (TextTest::Fits(Glob::new(&pattern.value, folds_case)), *negated)
            }
            Check::Contains { negated, quantifier, texts } => {
                let texts = texts.iter().map(|text| folded(&text.value, folds_case).into_owned()).collect();
                (TextTest::Contains { all: *quantifier == Quantifier::All, texts }, *negated)
            }
            Check::Empty { negated } => return Ok(negate(Filter::Known(field.column), !negated)),
        };
        Ok(negate(Filter::Text(field.column, test), negated))
    }

    /// `type = xml`, and `type = "application/pdf"`, which is a content type.
    fn type_test(&self, field: &Named<'_>, check: &Spanned<Check>) -> Checked<Filter> {
        let values: Vec<&Spanned<Literal>> = match &check.value {
            Check::Compare(Comparison::Equal | Comparison::NotEqual, literal) => vec![literal],
            Check::In { values, .. } => values.iter().collect(),
            Check::Glob { .. } | Check::Contains { .. } => Vec::new(),
            _ => {
                let message = format!("`{}` has no order: compare it with =, !=, in or ~", field.shown());
                return Err(self.mistake(&check.span, message));
            }
        };
        let is_content_type =
            |literal: &&Spanned<Literal>| matches!(&literal.value, Literal::Text(text) if text.contains('/'));
        if values.iter().all(is_content_type) {
            let content_type = Named { column: Column::ContentType, field: field.field };
            return self.text_test(&content_type, check);
        }
        let types =
            values.into_iter().map(|literal| self.page_type(field, literal)).collect::<Checked<Vec<_>>>()?;
        let negated =
            matches!(&check.value, Check::Compare(Comparison::NotEqual, _) | Check::In { negated: true, .. });
        Ok(negate(Filter::Type(types), negated))
    }

    fn page_type(&self, field: &Named<'_>, literal: &Spanned<Literal>) -> Checked<PageType> {
        let Literal::Text(name) = &literal.value else {
            return Err(self.unsuitable(field, literal, "a type"));
        };
        let names = PageType::EACH.map(PageType::name);
        let found = PageType::EACH.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let suggestion = match nearest(name, names) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!(
                    "the types are {}; a content type such as \"text/html\" also works",
                    names.join(", ")
                ),
            };
            self.mistake(&literal.span, format!("there is no type `{name}`"))
                .with_suggestion(Some(suggestion))
        })
    }

    /// `text contains "open access"`
    fn search(&mut self, test: &Test) -> Checked<Filter> {
        let Check::Contains { negated, quantifier, texts } = &test.check.value else {
            return Err(self
                .mistake(&test.check.span, "`text` can only be searched")
                .with_suggestion(Some("search it with `text contains \"…\"`".to_owned())));
        };
        for text in texts {
            if search::words(&text.value).is_empty() {
                return Err(self.mistake(&text.span, "there is no word to search for in this text"));
            }
        }
        let query = TextQuery {
            all: *quantifier == Quantifier::All,
            texts: texts.iter().map(|text| text.value.clone()).collect(),
        };
        self.searches.push(Search { query, scores: self.negative == *negated });
        Ok(negate(Filter::Hit(self.searches.len() - 1), *negated))
    }

    fn unsuitable(&self, field: &Named<'_>, literal: &Spanned<Literal>, wanted: &str) -> ParseError {
        let written = self.text.get(literal.span.clone()).unwrap_or_default();
        let sort = match literal.value {
            Literal::Number(_) => "a number",
            Literal::Text(_) => "text",
            Literal::Moment(_) | Literal::Ago(_) => "a time",
        };
        let message = if sort == wanted {
            format!("`{}` is {wanted}, but {written} cannot be read as one", field.shown())
        } else {
            format!("`{}` is {wanted}, but {written} is {sort}", field.shown())
        };
        self.mistake(&literal.span, message)
    }

    fn not_text(&self, field: &Named<'_>, sign: &str, span: &Range<usize>) -> ParseError {
        let sort = if field.column.kind() == ColumnKind::Time { "a time" } else { "a number" };
        let message = format!("`{}` is {sort}, and {sign} is for text", field.shown());
        self.mistake(span, message).with_suggestion(Some("compare it with =, <, > or between".to_owned()))
    }

    fn mistake(&self, span: &Range<usize>, message: impl Into<String>) -> ParseError {
        ParseError::new(self.text, span.clone(), message)
    }
}

/// A column and what it was called.
struct Named<'a> {
    column: Column,
    field: &'a Spanned<Field>,
}

impl Named<'_> {
    fn shown(&self) -> String {
        shown(self.field.value.name())
    }
}

fn negate(filter: Filter, negated: bool) -> Filter {
    if negated { Filter::Not(Box::new(filter)) } else { filter }
}
