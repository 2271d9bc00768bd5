//! Conditions ready to run: every literal is resolved and has the right type.
//!
//! Invariant: a test of an unknown value is false, and `not` makes that true: `status != 404` holds for a page that was
//! never fetched. Only `= ""` matches an unknown text.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Bound;

use archive_books::ledger::{authority, host_name};
use archive_books::search::{Needs, words};
use archive_grammar::Comparison;
use regex::Regex;

use crate::query::language::element_path::ElementPath;
use crate::query::language::error::Found;
use crate::query::language::expr::{PlannedExpr, Subject};
use crate::query::language::fields::{Column, Cost, FieldPath};
use crate::query::language::glob::Glob;
use crate::query::language::times::Instant;
use crate::query::language::value::Value;

/// A condition ready to run.
#[derive(Clone, Debug)]
pub(crate) enum Filter {
    Any(Vec<Filter>),
    All(Vec<Filter>),
    Not(Box<Filter>),
    Known(PlannedExpr),
    Number(PlannedExpr, Ranges<f64>),
    Time(PlannedExpr, Ranges<Instant>),
    Text(PlannedExpr, TextTest),
    /// Compares two values of the same type; texts ignore case if `folds_case`.
    Compare {
        left: PlannedExpr,
        comparison: Comparison,
        right: PlannedExpr,
        folds_case: bool,
    },
    /// The plan's search with this index found the row.
    Hit(usize),
    /// Some node that the path selects in the document meets the condition.
    Some(Box<ElementPath>, Option<Box<Filter>>),
    /// The content changed between these times.
    Changed(Option<Instant>, Option<Instant>),
}

/// A union of ranges.
#[derive(Clone, Debug)]
pub(crate) struct Ranges<T>(pub(crate) Vec<(Bound<T>, Bound<T>)>);

impl<T: PartialOrd> Ranges<T> {
    pub(crate) fn has(&self, value: &T) -> bool {
        self.0.iter().any(|range| std::ops::RangeBounds::contains(range, value))
    }
}

/// A test on a text.
#[derive(Clone, Debug)]
pub(crate) struct TextTest {
    pub(crate) kind: TextTestKind,
    /// Whether case is ignored; the wanted texts are then in lower case.
    pub(crate) folds_case: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum TextTestKind {
    /// Equals one of these.
    Is(Vec<String>),
    Between(Ranges<String>),
    Fits(Glob),
    Matches(Regex),
    Starts(String),
    Ends(String),
    /// Contains all or any of these texts.
    Contains {
        all: bool,
        texts: Vec<String>,
    },
    /// Contains all or any of these phrases, word by word.
    Words {
        all: bool,
        texts: Vec<String>,
    },
}

impl Filter {
    /// The only URLs of pages that can match, if the filter limits them.
    pub(crate) fn urls(&self) -> Option<&[String]> {
        self.only(Column::Url)
    }

    /// The only values of a row's own text field that can match, if the filter limits them.
    pub(crate) fn only(&self, field: Column) -> Option<&[String]> {
        match self {
            Self::Text(
                PlannedExpr::Field(FieldPath { via: None, column }),
                TextTest { kind: TextTestKind::Is(texts), folds_case },
            ) if *column == field && *folds_case == (field != Column::Url) => Some(texts),
            Self::All(parts) => parts.iter().find_map(|part| part.only(field)),
            _ => None,
        }
    }

    /// The conjuncts of the filter.
    pub(crate) fn parts(&self) -> &[Self] {
        match self {
            Self::All(parts) => parts,
            only => std::slice::from_ref(only),
        }
    }

    /// Whether a test of one value holds for known values only.
    pub(crate) fn is_of_known(&self) -> bool {
        match self {
            Self::Known(_) | Self::Number(..) | Self::Time(..) | Self::Compare { .. } => true,
            Self::Text(_, test) => !test.holds_of(None, None),
            _ => false,
        }
    }

    /// Whether the filter depends on an expression that `is_wanted` accepts.
    pub(crate) fn has(&self, is_wanted: fn(&PlannedExpr) -> bool) -> bool {
        self.any(&mut |part| is_wanted(part))
    }

    /// Like `has`, with a closure; stops at the first match.
    pub(crate) fn any(&self, is_wanted: &mut dyn FnMut(&PlannedExpr) -> bool) -> bool {
        match self {
            Self::Any(parts) | Self::All(parts) => parts.iter().any(|part| part.any(is_wanted)),
            Self::Not(part) => part.any(is_wanted),
            own => own.exprs().any(|expr| expr.any(is_wanted)),
        }
    }

    /// The expressions that decide the filter by themselves; none for compound filters or if more than expressions
    /// decides.
    fn exprs(&self) -> impl Iterator<Item = &PlannedExpr> {
        let exprs = match self {
            Self::Known(expr) | Self::Number(expr, _) | Self::Time(expr, _) | Self::Text(expr, _) => {
                [Some(expr), None]
            }
            Self::Compare { left, right, .. } => [Some(left), Some(right)],
            _ => [None, None],
        };
        exprs.into_iter().flatten()
    }

    /// The distinct fields that decide the filter by themselves; `None` for compound filters or if more than fields
    /// decides.
    pub(crate) fn fields(&self) -> Option<Vec<FieldPath>> {
        PlannedExpr::fields(self.exprs())
    }

    /// Whether only headers of the response decide the filter.
    pub(crate) fn is_of_headers(&self) -> bool {
        let is_other = |expr: &PlannedExpr| !matches!(expr, PlannedExpr::Value(_) | PlannedExpr::Header(_));
        let has_header = self.exprs().any(|expr| expr.has(|expr| matches!(expr, PlannedExpr::Header(_))));
        has_header && !self.exprs().any(|expr| expr.has(is_other))
    }

    /// The same filter with each field mapped, if fields decide it.
    pub(crate) fn with_fields(&self, of: fn(FieldPath) -> FieldPath) -> Self {
        match self {
            Self::Known(expr) => Self::Known(expr.with_fields(of)),
            Self::Number(expr, ranges) => Self::Number(expr.with_fields(of), ranges.clone()),
            Self::Time(expr, ranges) => Self::Time(expr.with_fields(of), ranges.clone()),
            Self::Text(expr, test) => Self::Text(expr.with_fields(of), test.clone()),
            Self::Compare { left, comparison, right, folds_case } => Self::Compare {
                left: left.with_fields(of),
                comparison: *comparison,
                right: right.with_fields(of),
                folds_case: *folds_case,
            },
            other => other.clone(),
        }
    }

    /// Whether the condition holds for a row.
    pub(crate) fn holds(&self, subject: &dyn Subject) -> Found<bool> {
        Ok(match self {
            Self::All(parts) => {
                for part in parts {
                    if !part.holds(subject)? {
                        return Ok(false);
                    }
                }
                true
            }
            Self::Any(parts) => {
                for part in parts {
                    if part.holds(subject)? {
                        return Ok(true);
                    }
                }
                false
            }
            Self::Not(part) => !part.holds(subject)?,
            Self::Known(expr) => expr.value(subject)?.is_known(),
            Self::Number(expr, ranges) => {
                expr.value(subject)?.as_number().is_some_and(|number| ranges.has(&number))
            }
            Self::Time(expr, ranges) => match expr.value(subject)? {
                Value::Time(time) => ranges.has(&time),
                _ => false,
            },
            Self::Text(expr, test) => match expr.value(subject)? {
                Value::Text(text) => test.holds_of(Some(&text), expr.column()),
                _ => test.holds_of(None, expr.column()),
            },
            Self::Compare { left, comparison, right, folds_case } => {
                let order = order(&left.value(subject)?, &right.value(subject)?, *folds_case);
                order.is_some_and(|order| fits(order, *comparison))
            }
            Self::Hit(search) => subject.hit(*search),
            Self::Some(path, filter) => subject.some(path, filter.as_deref())?,
            Self::Changed(from, until) => subject.changed(*from, *until)?,
        })
    }

    /// Whether the filter depends on elements of documents that have to be read.
    pub(crate) fn asks_elements(&self) -> bool {
        match self {
            Self::Some(..) => true,
            Self::Any(parts) | Self::All(parts) => parts.iter().any(Self::asks_elements),
            Self::Not(part) => part.asks_elements(),
            own => own.has(|expr| matches!(expr, PlannedExpr::Elements(_))),
        }
    }

    /// Sorts the parts of `and` and `or` by cost: values of the row, then searches, then lookups, then records.
    pub(crate) fn cheapest_first(mut self) -> Self {
        if let Self::Any(parts) | Self::All(parts) = &mut self {
            parts.sort_by_key(Self::cost);
        }
        self
    }

    pub(crate) fn cost(&self) -> u32 {
        let of = |expr: &PlannedExpr| match expr.cost() {
            Cost::Row => 1,
            Cost::Look => 10,
            Cost::Record => 1000,
        };
        match self {
            Self::Number(expr, _) | Self::Time(expr, _) | Self::Known(expr) | Self::Text(expr, _) => of(expr),
            Self::Compare { left, right, .. } => of(left) + of(right),
            Self::Hit(_) => 2,
            Self::Changed(..) => 20,
            Self::Some(..) => 1000,
            Self::Not(part) => part.cost(),
            Self::Any(parts) | Self::All(parts) => {
                parts.iter().fold(0, |sum, part| sum.saturating_add(part.cost()))
            }
        }
    }
}

/// Compares two known values; `None` if they are not comparable.
fn order(left: &Value, right: &Value, folds_case: bool) -> Option<Ordering> {
    match (left, right) {
        (Value::Text(left), Value::Text(right)) => {
            Some(folded(left, folds_case).cmp(&folded(right, folds_case)))
        }
        // Times of pages have whole seconds, those of captures do not.
        (Value::Time(left), Value::Time(right)) => Some(left.timestamp().cmp(&right.timestamp())),
        _ => left.as_number()?.partial_cmp(&right.as_number()?),
    }
}

fn fits(order: Ordering, comparison: Comparison) -> bool {
    match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    }
}

impl TextTest {
    /// Whether the test gives the same result for a text and for its lower-case form.
    pub(crate) fn is_in_small_letters(&self) -> bool {
        use TextTestKind as Kind;
        let compares_texts = !matches!(self.kind, Kind::Fits(_) | Kind::Matches(_) | Kind::Words { .. });
        self.folds_case && compares_texts
    }

    /// Whether the test holds for a column's value; a host name with a port may also match without the port.
    pub(crate) fn holds_of(&self, text: Option<&str>, column: Option<Column>) -> bool {
        match text {
            Some(text) => {
                self.holds_for(text) || column == Some(Column::Host) && self.holds_for(host_name(text))
            }
            // An empty text counts as unknown.
            None => {
                matches!(&self.kind, TextTestKind::Is(wanted) if wanted.iter().any(String::is_empty))
            }
        }
    }

    /// What the index must have of a text for the test to hold, as far as it is a pattern.
    pub(crate) fn needs(&self) -> Option<Needs> {
        match &self.kind {
            TextTestKind::Fits(glob) => Needs::of(glob.expression(), self.folds_case, true),
            TextTestKind::Matches(regex) => Needs::of(regex.as_str(), self.folds_case, false),
            _ => None,
        }
    }

    /// The host that every matching URL has, if the test fixes it.
    pub(crate) fn host(&self) -> Option<String> {
        let beginning = match &self.kind {
            TextTestKind::Starts(beginning) => beginning,
            TextTestKind::Fits(glob) => glob.beginning(),
            _ => return None,
        };
        let (_, rest) = beginning.split_once("://")?;
        rest.contains('/').then(|| authority(beginning).to_owned())
    }

    fn holds_for(&self, text: &str) -> bool {
        let folded = || folded(text, self.folds_case);
        match &self.kind {
            // These handle case themselves.
            TextTestKind::Fits(glob) => glob.matches(text),
            TextTestKind::Matches(regex) => regex.is_match(text),
            TextTestKind::Is(wanted) => {
                let text = folded();
                wanted.iter().any(|wanted| *wanted == text)
            }
            TextTestKind::Between(ranges) => ranges.has(&folded().into_owned()),
            TextTestKind::Starts(wanted) => folded().starts_with(wanted),
            TextTestKind::Ends(wanted) => folded().ends_with(wanted),
            TextTestKind::Contains { all, texts } => {
                let text = folded();
                let has = |wanted: &String| text.contains(wanted);
                if *all { texts.iter().all(has) } else { texts.iter().any(has) }
            }
            TextTestKind::Words { all, texts } => {
                let said = words(text);
                let has = |wanted: &String| {
                    let wanted = words(wanted);
                    !wanted.is_empty() && said.windows(wanted.len()).any(|run| run == wanted)
                };
                if *all { texts.iter().all(has) } else { texts.iter().any(has) }
            }
        }
    }
}

/// The text in the form that tests compare: in lower case if case is ignored.
pub(crate) fn folded(text: &str, folds_case: bool) -> Cow<'_, str> {
    if text.is_ascii() && !text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Borrowed(text)
    } else if folds_case && text.is_ascii() {
        Cow::Owned(text.to_ascii_lowercase())
    } else if folds_case && text.chars().any(|c| !c.is_lowercase() && c.is_alphabetic()) {
        Cow::Owned(text.to_lowercase())
    } else {
        Cow::Borrowed(text)
    }
}
