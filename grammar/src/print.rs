//! Prints canonical text: `Display` for the tree.
//!
//! Invariant: the text of every tree that the parser can produce parses to an equal tree.

use std::fmt::{self, Display, Formatter};

use chrono::Timelike;
use pest::Parser as _;

use crate::syntax::{Rule, Syntax};
use crate::tokens;
use crate::tree::{
    Ago, ArithmeticSign, Check, Comparison, Condition, Direction, Expr, FieldName, Literal, Moment, OrderKey,
    Others, Path, Precision, Quantifier, Query, QueryRows, Related, Relation, ResultColumn, Test, TextEnd,
    Unit,
};

/// Names of two words, which read better with a space than with the `_` of the normal form.
pub(crate) const PAIR_NAMES: [&str; 21] = [
    "first_seen",
    "last_seen",
    "last_changed",
    "last_answer",
    "last_attempt",
    "next_visit",
    "change_rate",
    "parts_age",
    "parts_right",
    "rated_by",
    "response_time",
    "well_formed",
    "text_length",
    "declared_language",
    "declared_charset",
    "detected_language",
    "detected_charset",
    "pictures_without_alt",
    "lost_title",
    "lost_text",
    "lost_pictures",
];

impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.target.fmt(f)?;
        if let Some(condition) = &self.condition {
            write!(f, " {condition}")?;
        }
        if !self.select.is_empty() {
            f.write_str(" select ")?;
            list(f, self.select.iter())?;
        }
        let (series, group) = self.group.split_at(usize::from(self.is_series).min(self.group.len()));
        for key in series {
            if let Expr::Call { function, argument: Some(time), .. } = &key.value {
                write!(f, " per {} of {}", function.trim_start_matches("by_"), time.value)?;
            }
        }
        if !group.is_empty() {
            f.write_str(" group by ")?;
            list(f, group.iter().map(|key| &key.value))?;
        }
        if let Some(having) = &self.having {
            write!(f, " having {having}")?;
        }
        if !self.order.is_empty() {
            f.write_str(" order by ")?;
            list(f, self.order.iter())?;
        }
        if let Some(limit) = &self.limit {
            write!(f, " limit {}", limit.value)?;
        }
        if let Some(offset) = &self.offset {
            write!(f, " offset {}", offset.value)?;
        }
        if let Some(sample) = &self.sample {
            write!(f, " sample {}", sample.rows.value)?;
            if sample.seed != 0 {
                write!(f, " seed {}", sample.seed)?;
            }
        }
        match &self.as_of {
            Some(time) => write!(f, " as of {}", time.value),
            None => Ok(()),
        }
    }
}

impl Display for QueryRows {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pages => "page",
            Self::Sites => "site",
            Self::Hosts => "host",
            Self::Captures => "capture",
            Self::Versions => "version",
            Self::Links => "link",
        })
    }
}

impl Display for ResultColumn {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.expr.value.fmt(f)?;
        match &self.name {
            Some(name) => write!(f, " as {}", name.value.name()),
            None => Ok(()),
        }
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(literal) => literal.fmt(f),
            Self::Field(field) => field.fmt(f),
            Self::Path(path) => path.fmt(f),
            Self::Call { function, distinct: is_distinct, argument, second } => {
                let distinct = if *is_distinct { "distinct " } else { "" };
                let second = Second(second.as_ref().map(|second| &second.value));
                match argument {
                    // In a call, a bare word is a field, so a text is quoted.
                    Some(argument) => match &argument.value {
                        Self::Literal(Literal::Text(text)) => {
                            write!(f, "{function}({distinct}{}{second})", Quoted(text))
                        }
                        argument => {
                            let argument = argument.to_string();
                            // A field named `distinct` must not be read as the keyword.
                            match !is_distinct && Syntax::parse(Rule::DISTINCT, &argument).is_ok() {
                                true => write!(f, "{function}(({argument}){second})"),
                                false => write!(f, "{function}({distinct}{argument}{second})"),
                            }
                        }
                    },
                    None => write!(f, "{function}()"),
                }
            }
            Self::Arithmetic(left, sign, right) => {
                operand(f, &left.value, |below| sign.binds() > below)?;
                write!(f, " {sign} ")?;
                operand(f, &right.value, |below| sign.binds() >= below)
            }
        }
    }
}

/// The second argument of a call.
struct Second<'a>(Option<&'a Literal>);

impl Display for Second<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => Ok(()),
            Some(Literal::Text(pattern)) => f.write_str(", ").and_then(|()| raw(f, pattern)),
            Some(literal) => write!(f, ", {literal}"),
        }
    }
}

/// Writes an operand, in parentheses where its own sign would otherwise bind differently.
fn operand(f: &mut Formatter<'_>, expr: &Expr, is_grouped: impl Fn(u8) -> bool) -> fmt::Result {
    match expr {
        Expr::Arithmetic(_, sign, _) if is_grouped(sign.binds()) => write!(f, "({expr})"),
        Expr::Literal(Literal::Text(text)) => quoted(f, text),
        expr => expr.fmt(f),
    }
}

impl ArithmeticSign {
    /// Precedence of the sign.
    fn binds(self) -> u8 {
        match self {
            Self::Plus | Self::Minus => 1,
            Self::Times | Self::Over => 2,
        }
    }
}

impl Display for ArithmeticSign {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plus => "+",
            Self::Minus => "-",
            Self::Times => "*",
            Self::Over => "/",
        })
    }
}

impl Display for Related {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self::To(relation, others) = self else { return f.write_str("duplicates") };
        f.write_str(match relation {
            Relation::LinksTo => "links to ",
            Relation::LinkedFrom => "linked from ",
            Relation::RedirectsTo => "redirects to ",
            Relation::SameContentAs => "same content as ",
            Relation::Near => "near ",
        })?;
        match others {
            Others::Url(url) => quoted(f, &url.value),
            Others::Query(query) => write!(f, "({query})"),
        }
    }
}

impl Display for FieldName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if PAIR_NAMES.contains(&self.name()) {
            f.write_str(&self.name().replace('_', " "))
        } else {
            f.write_str(self.name())
        }
    }
}

impl Display for Condition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any(parts) => joined(f, parts, " or ", |part| matches!(part, Self::Any(_))),
            Self::All(parts) => joined(f, parts, " and ", |part| matches!(part, Self::Any(_) | Self::All(_))),
            Self::Not(inner) => match inner.as_ref() {
                Self::Test(test) => write!(f, "not {test}"),
                Self::Related(related) => write!(f, "not {}", related.value),
                inner => write!(f, "not ({inner})"),
            },
            Self::Test(test) => test.fmt(f),
            Self::Related(related) => related.value.fmt(f),
        }
    }
}

fn joined(
    f: &mut Formatter<'_>,
    parts: &[Condition],
    separator: &str,
    grouped: impl Fn(&Condition) -> bool,
) -> fmt::Result {
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            f.write_str(separator)?;
        }
        if grouped(part) {
            write!(f, "({part})")?;
        } else {
            part.fmt(f)?;
        }
    }
    Ok(())
}

impl Display for Path {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, step) in self.steps.iter().enumerate() {
            let is_first = self.is_relative && index == 0;
            f.write_str(match step.is_deep {
                true if is_first => ".//",
                true => "//",
                false if is_first && tokens::is_reserved(&step.name) => "./",
                false if is_first => "",
                false => "/",
            })?;
            f.write_str(&step.name)?;
            step.predicates.iter().try_for_each(|predicate| write!(f, "[{predicate}]"))?;
        }
        if self.steps.is_empty() { f.write_str(".") } else { Ok(()) }
    }
}

impl Display for Test {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let (Expr::Path(path), Check::Empty { negated: true }) = (&self.left.value, &self.check.value) {
            return path.fmt(f);
        }
        write!(f, "{} {}", self.left.value, self.check.value)
    }
}

impl Display for Check {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let not = |negated: &bool| if *negated { "not " } else { "" };
        match self {
            Self::Compare(comparison, literal) => write!(f, "{comparison} {}", literal.value),
            Self::Glob { negated, pattern } => {
                f.write_str(if *negated { "!~ " } else { "~ " })?;
                quoted(f, &pattern.value)
            }
            Self::Pattern { negated, pattern } => {
                write!(f, "{}matches ", not(negated))?;
                raw(f, &pattern.value)
            }
            Self::Affix { negated, end, text } => {
                let end = if *end == TextEnd::Start { "starts" } else { "ends" };
                write!(f, "{}{end} with {}", not(negated), Quoted(&text.value))
            }
            Self::Since { from, until } => {
                write!(f, "since {}", from.value)?;
                until.as_ref().map_or(Ok(()), |until| write!(f, " until {}", until.value))
            }
            Self::In { negated, values } => {
                write!(f, "{}in (", not(negated))?;
                list(f, values.iter().map(|literal| &literal.value))?;
                f.write_str(")")
            }
            Self::Between { negated, low, high } => {
                write!(f, "{}between {} and {}", not(negated), low.value, high.value)
            }
            Self::Contains { negated, quantifier, texts } => {
                write!(f, "{}contains ", not(negated))?;
                if let ([text], Quantifier::All) = (texts.as_slice(), quantifier) {
                    return quoted(f, &text.value);
                }
                f.write_str(match quantifier {
                    Quantifier::All => "all (",
                    Quantifier::Any => "any (",
                })?;
                list(f, texts.iter().map(|text| Quoted(&text.value)))?;
                f.write_str(")")
            }
            Self::Empty { negated } => write!(f, "is {}empty", not(negated)),
        }
    }
}

impl Display for Comparison {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        })
    }
}

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) if tokens::is_plain_word(text) => f.write_str(text),
            Self::Text(text) => quoted(f, text),
            Self::Moment(moment) => moment.fmt(f),
            Self::Ago(ago) => write!(f, "{ago} ago"),
            Self::Span(span) => span.fmt(f),
        }
    }
}

impl Display for Moment {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let date = self.start.date();
        match self.precision {
            Precision::Month => return write!(f, "{}", date.format("%Y-%m")),
            Precision::Day => return write!(f, "{}", date.format("%Y-%m-%d")),
            Precision::Minute => write!(f, "{}", self.start.format("%Y-%m-%dT%H:%M"))?,
            Precision::Second => {
                write!(f, "{}T{:02}:{:02}", date.format("%Y-%m-%d"), self.start.hour(), self.start.minute())?;
                write!(f, ":{:02}", self.start.second())?;
            }
        }
        match self.zone {
            None => Ok(()),
            Some(zone) if zone.local_minus_utc() == 0 => f.write_str("Z"),
            Some(zone) => zone.fmt(f),
        }
    }
}

impl Display for Ago {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let unit = match self.unit {
            Unit::Second => "second",
            Unit::Minute => "minute",
            Unit::Hour => "hour",
            Unit::Day => "day",
            Unit::Week => "week",
            Unit::Month => "month",
            Unit::Year => "year",
        };
        let plural = if self.amount == 1 { "" } else { "s" };
        write!(f, "{} {unit}{plural}", self.amount)
    }
}

impl Display for OrderKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.expr.value.fmt(f)?;
        match self.direction {
            None => Ok(()),
            Some(Direction::Ascending) => f.write_str(" asc"),
            Some(Direction::Descending) => f.write_str(" desc"),
        }
    }
}

fn list<T: Display>(f: &mut Formatter<'_>, items: impl Iterator<Item = T>) -> fmt::Result {
    for (index, item) in items.enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        item.fmt(f)?;
    }
    Ok(())
}

/// A text in the form of a query: in double quotes, with escapes where they are needed.
///
/// ```
/// let query = format!("page title = {}", archive_grammar::Quoted("the \"open\" web"));
/// assert_eq!(query, r#"page title = "the \"open\" web""#);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Quoted<'a>(pub &'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        quoted(f, self.0)
    }
}

/// Writes `text` in double quotes; [`crate::reader`] reads the same escapes back.
fn quoted(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for character in text.chars() {
        match character {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\t' => f.write_str("\\t")?,
            '\r' => f.write_str("\\r")?,
            other => write!(f, "{other}")?,
        }
    }
    f.write_str("\"")
}

/// Writes a regular expression in double quotes; [`crate::literal::pattern`] reads it back.
fn raw(f: &mut Formatter<'_>, pattern: &str) -> fmt::Result {
    f.write_str("\"")?;
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => f.write_str("\\\"")?,
            '\\' => {
                f.write_str("\\")?;
                characters.next().map_or(Ok(()), |escaped| write!(f, "{escaped}"))?;
            }
            other => write!(f, "{other}")?,
        }
    }
    f.write_str("\"")
}
