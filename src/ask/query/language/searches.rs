//! Conditions that are evaluated before rows are read: text searches, and relations to other pages.

use std::ops::Bound;

use archive_books::search::{self, TextQuery};
use archive_grammar::{Check, Others, Quantifier, QueryRows, Related, Relation, Spanned, Test};

use crate::query::language::checks::{Checker, negate};
use crate::query::language::expr::PlannedExpr;
use crate::query::language::fields::{Column, FieldPath, plural};
use crate::query::language::filter::{Filter, Ranges};
use crate::query::language::plan::{Plan, Search};
use crate::query::language::types::{Checked, Typing};

impl Checker<'_> {
    /// Checks conditions such as `text contains "open access"`.
    pub(crate) fn search(&mut self, test: &Test) -> Checked<Filter> {
        let Check::Contains { negated, quantifier, texts } = &test.check.value else {
            // Anything but words is looked for in the records.
            let left = self.typing.expr(&test.left)?;
            let filter = self.typed_test(&left, &test.check)?;
            return Ok(if self.typing.is_past { filter } else { self.sifted(filter) });
        };
        self.expect_words(texts)?;
        let query = TextQuery {
            field: None,
            all: *quantifier == Quantifier::All,
            texts: texts.iter().map(|text| text.value.clone()).collect(),
        };
        self.searches.push(Search::Text { query, scores: self.negative == *negated });
        // The index keeps the last text of a page that redirects or is gone; such a page says nothing.
        let (from, until) = (Bound::Included(300.0), Bound::Excluded(400.0));
        let is = |status: f64| (Bound::Included(status), Bound::Included(status));
        let says_nothing = Ranges(vec![(from, until), is(404.0), is(410.0)]);
        let says_nothing = Filter::Number(PlannedExpr::Field(FieldPath::from(Column::Status)), says_nothing);
        let found = Filter::Hit(self.searches.len() - 1);
        Ok(negate(Filter::All(vec![found, negate(says_nothing, true)]), *negated))
    }

    /// Adds searches for pages that need not be read, because the index knows that their texts lack something.
    fn sifted(&mut self, filter: Filter) -> Filter {
        let needs = match filter {
            Filter::Not(part) => return negate(self.sifted(*part), true),
            Filter::All(parts) => {
                return Filter::All(parts.into_iter().map(|part| self.sifted(part)).collect());
            }
            Filter::Text(PlannedExpr::Field(_), ref test) => test.needs(),
            _ => None,
        };
        let Some(needs) = needs else { return filter };
        self.searches.push(Search::Lacking(needs));
        let may_fit = negate(Filter::Hit(self.searches.len() - 1), true);
        // The index has what was found with status 200; redirects have no text.
        let is_other = Ranges(vec![(Bound::Excluded(200.0), Bound::Excluded(300.0))]);
        let is_other = Filter::Number(PlannedExpr::Field(Column::ContentStatus.into()), is_other);
        Filter::All(vec![Filter::Any(vec![may_fit, is_other]), filter])
    }

    pub(crate) fn expect_words(&self, texts: &[Spanned<String>]) -> Checked<()> {
        match texts.iter().find(|text| search::words(&text.value).is_empty()) {
            Some(text) => Err(self.typing.mistake(&text.span, "there is no word to search for in this text")),
            None => Ok(()),
        }
    }

    /// Checks conditions such as `links to (page status = 404)`.
    pub(crate) fn related(&mut self, related: &Spanned<Related>) -> Checked<Filter> {
        let Typing { text, columns, context, is_past, .. } = self.typing;
        if !matches!(columns.target, QueryRows::Pages | QueryRows::Captures | QueryRows::Versions) {
            let message = format!(
                "this condition works for pages and captures only, not for {}",
                plural(columns.target)
            );
            return Err(self.typing.mistake(&related.span, message));
        }
        let search = match &related.value {
            Related::Duplicate => Search::Duplicates,
            Related::To(relation, _)
                if is_past && !matches!(relation, Relation::SameContentAs | Relation::Near) =>
            {
                let message = "links are only known for the newest versions, so this condition cannot be combined with `as of`";
                return Err(self.typing.mistake(&related.span, message));
            }
            Related::To(relation, Others::Url(url)) => {
                Search::Url(*relation, self.typing.url(&url.value, &url.span)?)
            }
            Related::To(relation, Others::Query(query)) => {
                let mut plan = Plan::new(query, text, context)?;
                if let Some(what) = plan.other_than_pages() {
                    let message = format!("pages are needed here, but this selects {what}");
                    return Err(self.typing.mistake(&related.span, message));
                }
                // An inner query has the same `as of` as the outer one.
                if query.as_of.is_some() {
                    let message = "`as of` belongs at the end of the whole query";
                    return Err(self.typing.mistake(&related.span, message));
                }
                plan.as_of = None;
                Search::Pages(*relation, Box::new(plan))
            }
        };
        self.searches.push(search);
        Ok(Filter::Hit(self.searches.len() - 1))
    }
}
