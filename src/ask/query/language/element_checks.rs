//! Conditions on elements and attributes of XML documents.

use std::ops::Bound;

use archive_grammar::{
    Check, Condition, Expr as Written, Literal, Path, Quantifier, QueryRows, Spanned, Test,
};
use archive_web::parse::DocumentKind;

use crate::query::language::checks::{Checker, negate};
use crate::query::language::element_path::{Content, ElementPath, ElementStep};
use crate::query::language::expr::PlannedExpr;
use crate::query::language::fields::{Column, ColumnKind, plural};
use crate::query::language::filter::{Filter, Ranges, TextTest, TextTestKind};
use crate::query::language::plan::Search;
use crate::query::language::types::{Checked, TypedExpr};

impl Checker<'_> {
    /// Checks conditions such as `//book[author contains "Eco"]/title contains rose`.
    pub(crate) fn elements(&mut self, path: &Path, test: &Test) -> Checked<Filter> {
        self.expect_documents(&test.left)?;
        let (filter, negated) = self.place_test(path, test)?;
        // Only the newest versions are indexed.
        let is_indexed = self.typing.columns.target == QueryRows::Pages && !self.typing.is_past;
        let filter = if is_indexed { self.indexed(filter) } else { filter };
        Ok(negate(filter, negated))
    }

    /// Adds index searches for a condition on documents: these come first, and documents that the index decides on are
    /// not read.
    fn indexed(&mut self, filter: Filter) -> Filter {
        let mut search = |search| {
            self.searches.push(search);
            Filter::Hit(self.searches.len() - 1)
        };
        let condition = || Box::new(filter.clone());
        let known = search(Search::Elements { condition: condition(), are_known: true });
        let read = search(Search::Read);
        let unsure = search(Search::Elements { condition: condition(), are_known: false });
        Filter::Any(vec![Filter::All(vec![known, has_document()]), read, Filter::All(vec![unsure, filter])])
    }

    /// Checks a path that stands for the texts that it selects.
    pub(crate) fn texts(&mut self, path: &Path, written: &Spanned<Written>) -> Checked<TypedExpr> {
        self.expect_documents(written)?;
        let path = self.path(path, &written.span)?;
        Ok(TypedExpr {
            shown: path.written.clone(),
            expr: PlannedExpr::Elements(Box::new(path)),
            kind: ColumnKind::Text,
            folds_case: true,
            span: written.span.clone(),
        })
    }

    fn expect_documents(&self, written: &Spanned<Written>) -> Checked<()> {
        let target = self.typing.columns.target;
        if matches!(target, QueryRows::Pages | QueryRows::Captures | QueryRows::Versions) {
            return Ok(());
        }
        let message = format!("only pages, captures and versions have elements, not {}", plural(target));
        Err(self.typing.mistake(&written.span, message))
    }

    fn path(&mut self, path: &Path, span: &std::ops::Range<usize>) -> Checked<ElementPath> {
        let mut steps: Vec<ElementStep> = Vec::new();
        for step in &path.steps {
            if steps.last().is_some_and(|before| before.is_attribute) {
                return Err(self.typing.mistake(span, "an attribute contains no elements or attributes"));
            }
            let filters = step.predicates.iter().map(|predicate| self.within(predicate));
            let filters = filters.collect::<Checked<_>>()?;
            steps.push(ElementStep::of(step, filters));
        }
        Ok(ElementPath { written: path.to_string(), steps })
    }

    /// Checks a condition in brackets.
    fn within(&mut self, condition: &Condition) -> Checked<Filter> {
        let mut each = |parts: &[Condition]| -> Checked<Vec<Filter>> {
            parts.iter().map(|part| self.within(part)).collect()
        };
        Ok(match condition {
            Condition::All(parts) => Filter::All(each(parts)?),
            Condition::Any(parts) => Filter::Any(each(parts)?),
            Condition::Not(part) => Filter::Not(Box::new(self.within(part)?)),
            Condition::Test(test) => {
                // The grammar allows nothing else there.
                let Written::Path(path) = &test.left.value else { return Ok(Filter::Any(Vec::new())) };
                let (filter, negated) = self.place_test(path, test)?;
                negate(filter, negated)
            }
            Condition::Related(_) => Filter::Any(Vec::new()),
        })
    }

    /// Checks the condition that a path selects something that passes a check, or nothing that does; the second value
    /// says whether it is negated.
    fn place_test(&mut self, path: &Path, test: &Test) -> Checked<(Filter, bool)> {
        let path = self.path(path, &test.left.span)?;
        if let Check::Empty { negated } = test.check.value {
            return Ok((Filter::Some(Box::new(path), None), !negated));
        }
        Ok(match self.content_test(&path, test)? {
            Filter::Not(filter) => (Filter::Some(Box::new(path), Some(filter)), true),
            filter => (Filter::Some(Box::new(path), Some(Box::new(filter))), false),
        })
    }

    fn content_test(&mut self, path: &ElementPath, test: &Test) -> Checked<Filter> {
        if let Check::Contains { negated, quantifier, texts } = &test.check.value {
            self.expect_words(texts)?;
            let texts = texts.iter().map(|text| text.value.clone()).collect();
            let kind = TextTestKind::Words { all: *quantifier == Quantifier::All, texts };
            let test = TextTest { kind, folds_case: true };
            return Ok(negate(Filter::Text(PlannedExpr::Content(Content::Text), test), *negated));
        }
        let (content, kind) = match compared_with(&test.check.value) {
            Some(Literal::Number(_)) => (Content::Number, ColumnKind::Number),
            Some(Literal::Moment(_) | Literal::Ago(_)) => (Content::Time, ColumnKind::Time),
            _ => (Content::Text, ColumnKind::Text),
        };
        let left = TypedExpr {
            expr: PlannedExpr::Content(content),
            kind,
            folds_case: true,
            shown: path.written.clone(),
            span: test.left.span.clone(),
        };
        let filter = self.typed_test(&left, &test.check)?;
        if compares_rows(&filter) {
            let message = "the text of elements is compared with numbers, dates and texts";
            return Err(self.typing.mistake(&test.check.span, message));
        }
        Ok(filter)
    }
}

/// The condition that a page's newest capture has a document whose elements can be queried: see `RowSubject::document`.
fn has_document() -> Filter {
    let found = Bound::Included(200.0);
    let types = [DocumentKind::Xml, DocumentKind::Feed].map(|known| known.page_type().to_owned()).to_vec();
    let is_xml = TextTest { kind: TextTestKind::Is(types), folds_case: true };
    let status = || PlannedExpr::Field(Column::ContentStatus.into());
    Filter::All(vec![
        // Documents that were stored without an HTTP response have no status.
        Filter::Any(vec![
            Filter::Number(status(), Ranges(vec![(found, found)])),
            Filter::Not(Box::new(Filter::Known(status()))),
        ]),
        Filter::Text(PlannedExpr::Field(Column::Type.into()), is_xml),
    ])
}

/// The literal whose type determines how an element is interpreted.
fn compared_with(check: &Check) -> Option<&Literal> {
    match check {
        Check::Compare(_, value) | Check::Between { low: value, .. } | Check::Since { from: value, .. } => {
            match &value.value {
                Written::Literal(literal) => Some(literal),
                _ => None,
            }
        }
        Check::In { values, .. } => values.first().map(|value| &value.value),
        _ => None,
    }
}

fn compares_rows(filter: &Filter) -> bool {
    match filter {
        Filter::Compare { .. } => true,
        Filter::All(parts) | Filter::Any(parts) => parts.iter().any(compares_rows),
        Filter::Not(part) => compares_rows(part),
        _ => false,
    }
}
