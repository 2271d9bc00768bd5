//! The syntax tree of a query.
//!
//! Trees are compared by meaning: positions in the text ([`Spanned::span`]) are ignored. Trees print as canonical text
//! (see `print.rs`) that parses to an equal tree.

use std::ops::Range;

use chrono::{FixedOffset, NaiveDateTime};

/// A complete query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// The kind of rows.
    pub target: QueryRows,
    /// Condition on the rows; all rows if `None`.
    pub condition: Option<Condition>,
    /// The selected columns; if empty, a default that suits the target.
    pub select: Vec<ResultColumn>,
    /// Expressions by which rows are grouped; if empty and nothing is aggregated, rows are not grouped.
    pub group: Vec<Spanned<Expr>>,
    /// Whether the first of them is a period of time (`per month`), of which no one in between is left out.
    pub is_series: bool,
    /// Condition on the groups.
    pub having: Option<Condition>,
    /// The order, most significant key first; if empty, most important first.
    pub order: Vec<OrderKey>,
    /// Maximum number of rows.
    pub limit: Option<Spanned<u64>>,
    /// Number of rows to skip at the start.
    pub offset: Option<Spanned<u64>>,
    /// Draws matching rows at random.
    pub sample: Option<Sample>,
    /// The time as of which the archive is queried; now if `None`.
    pub as_of: Option<Spanned<Literal>>,
}

/// The kind of rows that a query returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum QueryRows {
    /// Pages: one row per URL.
    #[default]
    Pages,
    /// Sites: one row per group of hosts.
    Sites,
    /// Hosts: one row per name with its port.
    Hosts,
    /// Captures: one row per fetch.
    Captures,
    /// Captures with new content.
    Versions,
    /// Links: one row per link of the newest version of a page.
    Links,
}

/// A column of the result.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultColumn {
    /// The expression.
    pub expr: Spanned<Expr>,
    /// The name of the column, if given.
    pub name: Option<Spanned<FieldName>>,
}

/// Rows drawn at random.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Number of rows.
    pub rows: Spanned<u64>,
    /// The same seed draws the same rows from the same archive.
    pub seed: u64,
}

/// A part of the tree and its position in the text.
#[derive(Clone, Debug)]
pub struct Spanned<T> {
    /// The part itself.
    pub value: T,
    /// The bytes of the part in the text, without surrounding comments and space. Empty in trees that were not parsed.
    pub span: Range<usize>,
}

impl<T> Spanned<T> {
    /// A part at `span`.
    pub fn new(value: T, span: Range<usize>) -> Self {
        Self { value, span }
    }
}

impl<T> From<T> for Spanned<T> {
    fn from(value: T) -> Self {
        Self { value, span: 0..0 }
    }
}

impl<T: PartialEq> PartialEq for Spanned<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

/// The name of a field in its normal form: lower case, words joined by `_`. The grammar does not check that the field
/// exists.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldName(String);

impl FieldName {
    /// The field that users call `name`, for example `Last  Seen` or `well-formed`. A trailing `-` stays: without it,
    /// `and-` would be another word.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let words: Vec<_> =
            name.split(|c: char| c.is_whitespace() || c == '-').filter(|word| !word.is_empty()).collect();
        let end = if name.ends_with('-') { "-" } else { "" };
        Self(words.join("_").to_lowercase() + end)
    }

    /// The name in its normal form, for example `last_seen`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// A condition on rows.
///
/// The parser produces flat trees: no `All` directly inside `All`, no `Any` inside `Any`, no `Not` of `Not`, and at
/// least two parts in each `All` and `Any`.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// At least one part holds (`or`).
    Any(Vec<Condition>),
    /// Every part holds (`and`).
    All(Vec<Condition>),
    /// The part does not hold.
    Not(Box<Condition>),
    /// A test of one value.
    Test(Test),
    /// A relation of a page to others.
    Related(Spanned<Related>),
}

/// A relation of a page to others.
#[derive(Clone, Debug, PartialEq)]
pub enum Related {
    /// `links to "…"` and similar.
    To(Relation, Others),
    /// `duplicates`: another page has the same content.
    Duplicate,
}

/// How a page relates to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The page links to one of them.
    LinksTo,
    /// One of them links to the page.
    LinkedFrom,
    /// The page redirects to one of them.
    RedirectsTo,
    /// The page has the same content as one of them.
    SameContentAs,
    /// The page shares passages of its text with one of them.
    Near,
}

/// The other pages in a relation.
#[derive(Clone, Debug, PartialEq)]
pub enum Others {
    /// The page at a URL.
    Url(Spanned<String>),
    /// The pages that match a query.
    Query(Box<Query>),
}

/// An expression that has a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A literal value.
    Literal(Literal),
    /// A field, possibly of something else: `site.importance`.
    Field(FieldName),
    /// `//book/@year`
    Path(Path),
    /// `length(title)`, `count(distinct host)`
    Call {
        /// Name of the function in lower case.
        function: String,
        /// Whether each value counts only once.
        distinct: bool,
        /// The argument; `None` in `count(*)`.
        argument: Option<Box<Spanned<Expr>>>,
        /// A second argument: a number, or a regular expression as written, without its quotes.
        second: Option<Box<Spanned<Literal>>>,
    },
    /// `last_seen - first_seen`
    Arithmetic(Box<Spanned<Expr>>, ArithmeticSign, Box<Spanned<Expr>>),
}

/// Elements or attributes of an XML document.
///
/// In a [`Condition`] of a step, the paths of all tests start at the step's element.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Path {
    /// Whether it starts at the enclosing element instead of the document.
    pub is_relative: bool,
    /// Steps from there; none for the enclosing element itself.
    pub steps: Vec<Step>,
}

/// A step to children, or to all descendants (`//`).
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Whether it leads to all descendants.
    pub is_deep: bool,
    /// The name of an element, or of an attribute after `@`, optionally with a prefix; `*` for any.
    pub name: String,
    /// Conditions on the element.
    pub predicates: Vec<Condition>,
}

/// An arithmetic operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ArithmeticSign {
    Plus,
    Minus,
    Times,
    Over,
}

/// A test of one value.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// The tested expression, usually a field.
    pub left: Spanned<Expr>,
    /// The check that it must pass.
    pub check: Spanned<Check>,
}

/// A check of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Check {
    /// `> 10`
    Compare(Comparison, Spanned<Expr>),
    /// `~ "*/archive/*"`: `*` stands for any characters, `?` for one.
    Glob {
        /// `!~`
        negated: bool,
        /// The pattern.
        pattern: Spanned<String>,
    },
    /// `matches "^https?:"`: a regular expression that matches anywhere in the text.
    Pattern {
        /// `not matches`
        negated: bool,
        /// The expression as written, without its quotes.
        pattern: Spanned<String>,
    },
    /// `starts with "https:"` or `ends with ".pdf"`
    Affix {
        /// `not starts with`
        negated: bool,
        /// The end of the text to which the check applies.
        end: TextEnd,
        /// The prefix or suffix.
        text: Spanned<String>,
    },
    /// `in (404, 410)`
    In {
        /// `not in`
        negated: bool,
        /// The values, at least one.
        values: Vec<Spanned<Literal>>,
    },
    /// `between 1 and 2`, inclusive.
    Between {
        /// `not between`
        negated: bool,
        /// The lower bound.
        low: Spanned<Expr>,
        /// The upper bound.
        high: Spanned<Expr>,
    },
    /// `contains "open access"`
    Contains {
        /// `not contains`
        negated: bool,
        /// How many of the texts must occur.
        quantifier: Quantifier,
        /// The texts, at least one.
        texts: Vec<Spanned<String>>,
    },
    /// `is empty`: the field has no known value.
    Empty {
        /// `is not empty`
        negated: bool,
    },
    /// `since 2026-01-31 until today`: something happened in that time.
    Since {
        /// Start of the time.
        from: Spanned<Expr>,
        /// End of the time; now if `None`.
        until: Option<Spanned<Expr>>,
    },
}

/// An end of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum TextEnd {
    Start,
    End,
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`, also `==` and `is`
    Equal,
    /// `!=`, also `<>` and `is not`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// How many of several texts must occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    /// All of them; also used if there is only one.
    All,
    /// At least one of them.
    Any,
}

/// A value written in a query.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// A finite number; `10k` is 10 000.
    Number(f64),
    /// Text, in quotes or a single bare word.
    Text(String),
    /// A date or time.
    Moment(Moment),
    /// A time span before now.
    Ago(Ago),
    /// `30 days`
    Span(Ago),
}

/// A date or time as written: a whole month, day, minute or second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Its first instant, in the local time of `zone`.
    pub start: NaiveDateTime,
    /// The length of time that it denotes.
    pub precision: Precision,
    /// The time zone, if written; only times have one, never dates.
    pub zone: Option<FixedOffset>,
}

/// The length of time that a [`Moment`] denotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// `2026-01`
    Month,
    /// `2026-01-31`
    Day,
    /// `2026-01-31T10:00`
    Minute,
    /// `2026-01-31T10:00:59`
    Second,
}

/// `30 days ago`, or `30 days`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ago {
    /// Number of units, at most nine digits.
    pub amount: u32,
    /// The unit.
    pub unit: Unit,
}

/// A unit of time; months and years are calendar units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Unit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

/// A sort key.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderKey {
    /// The expression to sort by.
    pub expr: Spanned<Expr>,
    /// The direction, if written. By default, numbers and times are sorted largest first, texts from A to Z.
    pub direction: Option<Direction>,
}

/// A sort direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
}
