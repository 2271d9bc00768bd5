//! The syntax tree of a query.
//!
//! Trees compare by what they say: where a part was in the text ([`Spanned::span`]) is not compared. Trees
//! print as canonical text (see `print.rs`) that parses to an equal tree.

use std::ops::Range;

use chrono::{FixedOffset, NaiveDateTime};

/// A whole query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// What is asked for.
    pub target: Target,
    /// Which of them; all when there is none.
    pub condition: Option<Condition>,
    /// The columns asked for; a choice that suits the target when empty.
    pub select: Vec<Selection>,
    /// By what rows are put together; rows stay alone when empty and nothing is counted.
    pub group: Vec<Spanned<Expr>>,
    /// Which of the groups.
    pub having: Option<Condition>,
    /// The order, most significant key first; most important first when empty.
    pub order: Vec<OrderKey>,
    /// At most this many rows.
    pub limit: Option<Spanned<u64>>,
    /// Rows to leave out at the start.
    pub offset: Option<Spanned<u64>>,
    /// So many of the rows that fit, drawn at random.
    pub sample: Option<Sample>,
    /// The time as of which the archive is asked; now when there is none.
    pub as_of: Option<Spanned<Literal>>,
}

/// What a query asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Target {
    /// Pages: one row a URL.
    #[default]
    Pages,
    /// Sites: one row a group of hosts.
    Sites,
    /// Hosts: one row a name with its port.
    Hosts,
    /// Captures: one row a fetch.
    Captures,
    /// Captures with new content.
    Versions,
    /// Links: one row a link of the newest version of a page.
    Links,
}

/// A column of the answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// What is in it.
    pub expr: Spanned<Expr>,
    /// What it is called, if that was said.
    pub name: Option<Spanned<Field>>,
}

/// Rows drawn at random.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// How many.
    pub rows: Spanned<u64>,
    /// The same seed draws the same rows of the same archive.
    pub seed: u64,
}

/// A part of the tree, and its place in the text.
#[derive(Clone, Debug)]
pub struct Spanned<T> {
    /// The part.
    pub value: T,
    /// Its bytes in the text, comments and space around it left out. Empty in trees made by hand.
    pub span: Range<usize>,
}

impl<T> Spanned<T> {
    /// A part that stands at `span`.
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

/// A field's name in its normal form: small letters, words joined by `_`. Whether there is such a field is not the
/// grammar's business.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Field(String);

impl Field {
    /// The field that people call `name`, for example `Last  Seen` or `well-formed`. A `-` at the end stays: without it `and-` would be
    /// another word.
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

/// Which rows are wanted.
///
/// The parser gives flat trees: no `All` directly inside `All`, no `Any` inside `Any`, no `Not` of `Not`, and at least
/// two parts in each `All` and `Any`.
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
    /// What a page has to do with others.
    Related(Spanned<Related>),
}

/// What a page has to do with others.
#[derive(Clone, Debug, PartialEq)]
pub enum Related {
    /// `links to "…"`, and the like.
    To(Relation, Others),
    /// `duplicates`: another page has the same content.
    Duplicate,
}

/// How a page is related to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// It has a link to one of them.
    LinksTo,
    /// One of them has a link to it.
    LinkedFrom,
    /// It is a redirect to one of them.
    RedirectsTo,
    /// Its content is that of one of them.
    SameContentAs,
}

/// The other pages of a relation.
#[derive(Clone, Debug, PartialEq)]
pub enum Others {
    /// The page at a URL.
    Url(Spanned<String>),
    /// The pages that a query finds.
    Query(Box<Query>),
}

/// What has a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A value that is written.
    Literal(Literal),
    /// A field, also one of something else: `site.importance`.
    Field(Field),
    /// `//book/@year`
    Path(Path),
    /// `length(title)`, `count(distinct host)`
    Call {
        /// The function's name in small letters.
        function: String,
        /// Whether values count once.
        distinct: bool,
        /// What it is called with; nothing in `count(*)`.
        argument: Option<Box<Spanned<Expr>>>,
    },
    /// `last_seen - first_seen`
    Arithmetic(Box<Spanned<Expr>>, Sign, Box<Spanned<Expr>>),
}

/// Elements or attributes of an XML document.
///
/// In a [`Condition`] of a step, all tests are of paths that start at the step's element.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Path {
    /// Whether it starts at the element around it, not at the document.
    pub is_relative: bool,
    /// From there; none for the element around it itself.
    pub steps: Vec<Step>,
}

/// A step to children, or to all that is below (`//`).
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Whether it leads to all that is below.
    pub is_deep: bool,
    /// The name of an element, or of an attribute after `@`, maybe with a prefix; `*` for any.
    pub name: String,
    /// What has to be true of it.
    pub predicates: Vec<Condition>,
}

/// A sign of arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Sign {
    Plus,
    Minus,
    Times,
    Over,
}

/// A test of one value.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// What is tested, mostly a field.
    pub left: Spanned<Expr>,
    /// What has to be true of it.
    pub check: Spanned<Check>,
}

/// What has to be true of a field.
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
    /// `matches "^https?:"`: a regular expression that fits anywhere in the text.
    Pattern {
        /// `not matches`
        negated: bool,
        /// The expression as it is written, but for its quotes.
        pattern: Spanned<String>,
    },
    /// `starts with "https:"` or `ends with ".pdf"`
    Affix {
        /// `not starts with`
        negated: bool,
        /// Which end of the text.
        end: End,
        /// The beginning or ending.
        text: Spanned<String>,
    },
    /// `in (404, 410)`
    In {
        /// `not in`
        negated: bool,
        /// At least one value.
        values: Vec<Spanned<Literal>>,
    },
    /// `between 1 and 2`, both included.
    Between {
        /// `not between`
        negated: bool,
        /// The lower end.
        low: Spanned<Expr>,
        /// The upper end.
        high: Spanned<Expr>,
    },
    /// `contains "open access"`
    Contains {
        /// `not contains`
        negated: bool,
        /// How many of the texts have to be there.
        quantifier: Quantifier,
        /// At least one text.
        texts: Vec<Spanned<String>>,
    },
    /// `is empty`: nothing is known of the field.
    Empty {
        /// `is not empty`
        negated: bool,
    },
    /// `since 2026-01-31 until today`: something happened then.
    Since {
        /// From then on.
        from: Spanned<Expr>,
        /// Until then; until now when there is none.
        until: Option<Spanned<Expr>>,
    },
}

/// An end of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum End {
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

/// How many of several texts have to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    /// Each of them; also meant when only one is given.
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
    /// A time counted back from now.
    Ago(Ago),
    /// `30 days`
    Span(Ago),
}

/// A date or time as it was written: a whole month, day, minute or second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Its first instant, by the clock of `zone`.
    pub start: NaiveDateTime,
    /// How much time it names.
    pub precision: Precision,
    /// The zone when one was written; only times have one, dates never do.
    pub zone: Option<FixedOffset>,
}

/// How much time a [`Moment`] names.
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
    /// How many, at most nine digits.
    pub amount: u32,
    /// Of what.
    pub unit: Unit,
}

/// A unit of time; months and years are those of the calendar.
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

/// One key of the order.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderKey {
    /// By what.
    pub expr: Spanned<Expr>,
    /// The direction when one was written. Without one, numbers and times come largest first, texts from A to Z.
    pub direction: Option<Direction>,
}

/// A direction of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
}
