//! Conditions on texts, and on fields with a fixed set of words.

use std::ops::{Bound, Range};

use archive_grammar::{
    Check, Comparison, Expr as Written, Literal, ParseError, Quantifier, Spanned, TextEnd, nearest,
};

use crate::query::language::checks::{Checker, compare, literal_sort, negate, unsuitable};
use crate::query::language::expr::{Function, PlannedExpr};
use crate::query::language::fields::{Column, ColumnKind, FieldPath};
use crate::query::language::filter::{Filter, Ranges, TextTest, TextTestKind, folded};
use crate::query::language::glob::Glob;
use crate::query::language::types::{Checked, REGEX_BYTES_MAX, TypedExpr, same_sort, sort};

fn is_text(path: FieldPath) -> bool {
    path.column == Column::Text
}

impl Checker<'_> {
    pub(crate) fn text_test(&mut self, left: &TypedExpr, check: &Spanned<Check>) -> Checked<Filter> {
        if let Check::Compare(comparison, other) = &check.value
            && let Some(other) = self.of_each_row(other)
        {
            let right = self.typing.expr(&other)?;
            if !same_sort(left.kind, right.kind) {
                return Err(unsuitable(&self.typing, left, &right.span, sort(right.kind)));
            }
            return Ok(compare(left, *comparison, right));
        }
        let folds_case = left.folds_case;
        let text = |literal: &Literal, span: &Range<usize>| match literal {
            Literal::Text(text) => Ok(folded(text, folds_case).into_owned()),
            _ => {
                let written = self.typing.text.get(span.clone()).unwrap_or_default();
                Err(unsuitable(&self.typing, left, span, literal_sort(literal))
                    .with_suggestion(Some(format!("to mean the text, put it in quotes: \"{written}\""))))
            }
        };
        let of = |written: &Spanned<Written>| match &written.value {
            Written::Literal(literal) => text(literal, &written.span),
            _ => Err(unsuitable(&self.typing, left, &written.span, "a calculation")),
        };
        let bounds = |comparison: Comparison, text: String| match comparison {
            Comparison::Less => (Bound::Unbounded, Bound::Excluded(text)),
            Comparison::LessOrEqual => (Bound::Unbounded, Bound::Included(text)),
            Comparison::Greater => (Bound::Excluded(text), Bound::Unbounded),
            _ => (Bound::Included(text), Bound::Unbounded),
        };
        use TextTestKind as Kind;
        let (kind, negated) = match &check.value {
            Check::Compare(Comparison::Equal, other) => (Kind::Is(vec![of(other)?]), false),
            Check::Compare(Comparison::NotEqual, other) => (Kind::Is(vec![of(other)?]), true),
            Check::Compare(comparison, other) => {
                (Kind::Between(Ranges(vec![bounds(*comparison, of(other)?)])), false)
            }
            Check::In { negated, values } => {
                let texts = values.iter().map(|literal| text(&literal.value, &literal.span));
                (Kind::Is(texts.collect::<Checked<_>>()?), *negated)
            }
            Check::Between { negated, low, high } => {
                let (from, to) = (of(low)?, of(high)?);
                if from > to {
                    let message = "this range is empty: the first value is larger than the second";
                    return Err(self.typing.mistake(&(low.span.start..high.span.end), message));
                }
                (Kind::Between(Ranges(vec![(Bound::Included(from), Bound::Included(to))])), *negated)
            }
            Check::Glob { negated, pattern } => {
                let glob = Glob::new(&pattern.value, folds_case, REGEX_BYTES_MAX)
                    .map_err(|error| self.typing.unusable(pattern, "this is not a pattern", &error))?;
                (Kind::Fits(glob), *negated)
            }
            Check::Pattern { negated, pattern } => {
                (Kind::Matches(self.typing.regex(pattern, folds_case)?), *negated)
            }
            Check::Affix { negated, end, text } => {
                let text = folded(&text.value, folds_case).into_owned();
                (if *end == TextEnd::Start { Kind::Starts(text) } else { Kind::Ends(text) }, *negated)
            }
            // What pages say is searched by whole words, as in the index.
            Check::Contains { negated, quantifier, texts } if left.path().is_some_and(is_text) => {
                self.expect_words(texts)?;
                let texts = texts.iter().map(|text| text.value.clone()).collect();
                (Kind::Words { all: *quantifier == Quantifier::All, texts }, *negated)
            }
            Check::Contains { negated, quantifier, texts } => {
                let texts = texts.iter().map(|text| folded(&text.value, folds_case).into_owned()).collect();
                (Kind::Contains { all: *quantifier == Quantifier::All, texts }, *negated)
            }
            Check::Empty { negated } => return Ok(negate(Filter::Known(left.expr.clone()), !negated)),
            Check::Since { from, .. } => return Err(self.not_time(left, from)),
        };
        let test = TextTest { kind, folds_case };
        // A test that ignores case anyway can be applied to the text itself, which allows more ways to evaluate it.
        let expr = match &left.expr {
            PlannedExpr::Call(Function::Lower, text) if test.is_in_small_letters() => (**text).clone(),
            other => other.clone(),
        };
        Ok(negate(Filter::Text(expr, test), negated))
    }

    /// The right side of a comparison with a text, if it differs between rows: an expression, or the field of a related
    /// row. Other words are literal texts.
    fn of_each_row(&self, other: &Spanned<Written>) -> Option<Spanned<Written>> {
        match &other.value {
            Written::Literal(Literal::Text(word)) => {
                let written = self.typing.text.get(other.span.clone())?;
                let is_field =
                    word.contains('.') && written == word && self.typing.columns.find(word).is_ok();
                let field = Written::Field(archive_grammar::FieldName::new(word));
                is_field.then(|| Spanned::new(field, other.span.clone()))
            }
            Written::Literal(_) => None,
            _ => Some(other.clone()),
        }
    }

    /// Checks `type = xml`, and `type = "application/pdf"`, which is a content type.
    pub(crate) fn choice_test(&mut self, left: &TypedExpr, check: &Spanned<Check>) -> Checked<Filter> {
        let literal = |written: &Spanned<Written>| match &written.value {
            Written::Literal(literal) => Some(Spanned::new(literal.clone(), written.span.clone())),
            _ => None,
        };
        let path = left.path();
        let is_type = path.is_some_and(|path| path.column == Column::Type);
        let (values, negated) = match &check.value {
            Check::Compare(comparison @ (Comparison::Equal | Comparison::NotEqual), other) => {
                let Some(literal) = literal(other) else { return self.text_test(left, check) };
                (vec![literal], *comparison == Comparison::NotEqual)
            }
            Check::In { negated, values } => (values.clone(), *negated),
            Check::Glob { .. } | Check::Contains { .. } | Check::Pattern { .. } | Check::Affix { .. } => {
                (Vec::new(), false)
            }
            _ => {
                let message = format!("`{}` has no order: compare it with =, !=, in or ~", left.shown);
                return Err(self.typing.mistake(&check.span, message));
            }
        };
        let is_content_type =
            |literal: &Spanned<Literal>| matches!(&literal.value, Literal::Text(text) if text.contains('/'));
        if values.iter().all(is_content_type) && is_type {
            let via = path.and_then(|path| path.via);
            let expr = PlannedExpr::Field(FieldPath { via, column: Column::ContentType });
            return self.text_test(&TypedExpr { expr, kind: ColumnKind::Text, ..left.clone() }, check);
        }
        if values.is_empty() {
            return self.text_test(left, check);
        }
        let Some(FieldPath { column, .. }) = path else { return self.text_test(left, check) };
        let mut wanted = Vec::new();
        for literal in &values {
            wanted.extend(self.choices(left, column, literal)?);
        }
        let test = TextTest { kind: TextTestKind::Is(wanted), folds_case: true };
        Ok(negate(Filter::Text(left.expr.clone(), test), negated))
    }

    /// The words that a choice stands for.
    fn choices(&self, left: &TypedExpr, column: Column, literal: &Spanned<Literal>) -> Checked<Vec<String>> {
        let Literal::Text(name) = &literal.value else {
            return Err(unsuitable(&self.typing, left, &literal.span, literal_sort(&literal.value)));
        };
        let names = column.choices();
        let Some(found) = names.iter().find(|known| known.eq_ignore_ascii_case(name)) else {
            let suggestion = match (nearest(name, names.iter().copied()), column) {
                (Some(meant), _) => format!("did you mean `{meant}`?"),
                (None, Column::Type) => format!(
                    "the types are {}; a content type such as \"text/html\" also works",
                    names.join(", ")
                ),
                (None, _) => format!("it may be {}", names.join(", ")),
            };
            let message = format!("there is no {} `{name}`", left.shown);
            return Err(self.typing.mistake(&literal.span, message).with_suggestion(Some(suggestion)));
        };
        // Feeds and sitemaps are XML, too.
        let xml: &[&str] = if column == Column::Type && *found == "xml" { &["feed", "sitemap"] } else { &[] };
        Ok([found].into_iter().chain(xml).map(|word| (*word).to_owned()).collect())
    }

    pub(crate) fn not_text(&self, left: &TypedExpr, sign: &str, span: &Range<usize>) -> ParseError {
        let message = format!("`{}` is {}, and {sign} is for text", left.shown, sort(left.kind));
        self.typing
            .mistake(span, message)
            .with_suggestion(Some("compare it with =, <, > or between".to_owned()))
    }
}
