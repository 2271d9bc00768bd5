//! Canonical text: `Display` for the tree.
//!
//! Invariant: what prints parses again, to an equal tree, whenever the tree is one that the parser can give.

use std::fmt::{self, Display, Formatter};

use chrono::Timelike;

use crate::tokens;
use crate::tree::{
    Ago, Check, Comparison, Condition, Direction, Field, Literal, Moment, OrderKey, Precision, Quantifier,
    Query, Target, Test, Unit,
};

/// Names of two words, which read better with a space than with the `_` of their normal form.
pub(crate) const PAIR_NAMES: [&str; 5] =
    ["first_seen", "last_seen", "last_changed", "next_visit", "change_rate"];

impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self.target {
            Target::Pages => "page",
            Target::Sites => "site",
        })?;
        if let Some(condition) = &self.condition {
            write!(f, " {condition}")?;
        }
        if !self.select.is_empty() {
            f.write_str(" select ")?;
            list(f, self.select.iter().map(|field| &field.value))?;
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
        Ok(())
    }
}

impl Display for Field {
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
                inner => write!(f, "not ({inner})"),
            },
            Self::Test(test) => test.fmt(f),
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

impl Display for Test {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field.value, self.check.value)
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
            Self::Ago(ago) => ago.fmt(f),
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
        write!(f, "{} {unit}{plural} ago", self.amount)
    }
}

impl Display for OrderKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.field.value.fmt(f)?;
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

struct Quoted<'a>(&'a str);

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
