//! Values: numbers, texts, dates and times.

use chrono::{FixedOffset, NaiveDate, NaiveTime};
use pest::iterators::Pair;

use crate::error::ParseError;
use crate::syntax::Rule;
use crate::tree::{Ago, Moment, Precision, Unit};

/// Reads the number in the rule `number`.
pub(crate) fn number(text: &str, pair: Pair<'_, Rule>) -> Result<f64, ParseError> {
    let span = pair.as_span();
    let mut value = 0.0;
    for part in pair.into_inner() {
        match part.as_rule() {
            Rule::quantity => value = part.as_str().parse().unwrap_or(f64::INFINITY),
            Rule::scale => {
                value *= match part.as_str() {
                    "k" | "K" => 1e3,
                    "m" | "M" => 1e6,
                    _ => 1e9,
                }
            }
            Rule::bytes => value *= bytes(&part.as_str().to_ascii_lowercase()),
            _ => {}
        }
    }
    if f64::is_finite(value) {
        return Ok(value);
    }
    Err(ParseError::new(text, span.start()..span.end(), "this number is too large"))
}

/// Number of bytes of a unit: `MB` is a million, `MiB` is 2^20.
fn bytes(unit: &str) -> f64 {
    let base: f64 = if unit.contains('i') { 1024.0 } else { 1000.0 };
    let power = match unit.as_bytes().first() {
        Some(b'k') => 1,
        Some(b'm') => 2,
        Some(b'g') => 3,
        _ => 4,
    };
    base.powi(power)
}

/// Reads the regular expression in the rule `string`; its own escapes stay as they are.
pub(crate) fn pattern(written: &str) -> String {
    let quote = written.chars().next().unwrap_or('"');
    let inside = written.get(1..written.len() - 1).unwrap_or_default();
    let mut plain = String::with_capacity(inside.len());
    let mut characters = inside.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped) if escaped == quote => plain.push(escaped),
                escaped => plain.extend(Some('\\').into_iter().chain(escaped)),
            },
            other => plain.push(other),
        }
    }
    plain
}

/// Reads the text in the rule `string` or `bare_word`.
pub(crate) fn text(text: &str, pair: &Pair<'_, Rule>) -> Result<String, ParseError> {
    let written = pair.as_str();
    if pair.as_rule() == Rule::bare_word {
        return Ok(written.to_owned());
    }
    let inside = written.get(1..written.len() - 1).unwrap_or_default();
    let mut plain = String::with_capacity(inside.len());
    let mut characters = inside.char_indices();
    while let Some((_, character)) = characters.next() {
        if character != '\\' {
            plain.push(character);
            continue;
        }
        match characters.next() {
            Some((_, 'n')) => plain.push('\n'),
            Some((_, 't')) => plain.push('\t'),
            Some((_, 'r')) => plain.push('\r'),
            Some((_, escaped @ ('"' | '\'' | '\\'))) => plain.push(escaped),
            // In patterns, `\*` is a literal star: the pattern's own escape is left for the code that reads the
            // pattern.
            Some((_, escaped @ ('*' | '?'))) => plain.extend(['\\', escaped]),
            other => {
                let at = pair.as_span().start() + 1 + other.map_or(inside.len(), |(at, _)| at) - 1;
                let message = "expected \\\", \\\\, \\n, \\t, \\r, \\* or \\?; a plain \\ is written \\\\";
                return Err(ParseError::new(text, at..at + 2, message));
            }
        }
    }
    Ok(plain)
}

/// Reads the time span in the rule `ago` or `span`.
pub(crate) fn amount(text: &str, pair: Pair<'_, Rule>) -> Result<Ago, ParseError> {
    let span = pair.as_span();
    let mut amount = None;
    let mut unit = Unit::Day;
    for part in pair.into_inner() {
        match part.as_rule() {
            Rule::amount => amount = part.as_str().parse().ok(),
            Rule::unit => unit = unit_named(&part.as_str().to_ascii_lowercase()),
            _ => {}
        }
    }
    match amount {
        Some(amount) => Ok(Ago { amount, unit }),
        None => Err(ParseError::new(text, span.start()..span.end(), "this number is too large")),
    }
}

fn unit_named(name: &str) -> Unit {
    match name {
        _ if name.starts_with("mo") => Unit::Month,
        _ if name.starts_with('m') => Unit::Minute,
        _ if name.starts_with('s') => Unit::Second,
        _ if name.starts_with('h') => Unit::Hour,
        _ if name.starts_with('w') => Unit::Week,
        _ if name.starts_with('y') => Unit::Year,
        _ => Unit::Day,
    }
}

/// Reads the date or time in the rule `moment`; it must exist in the calendar.
pub(crate) fn moment(text: &str, pair: Pair<'_, Rule>) -> Result<Moment, ParseError> {
    let mut day = None;
    let mut clock = None;
    let mut zone = None;
    let mut precision = Precision::Day;
    for part in pair.into_inner() {
        let span = part.as_span().start()..part.as_span().end();
        let written = part.as_str();
        let wrong = |what: &str| ParseError::new(text, span.clone(), format!("there is no {what} {written}"));
        match part.as_rule() {
            Rule::date if written.len() == "2026-01".len() => {
                precision = Precision::Month;
                day = Some(parse_date(&format!("{written}-01")).ok_or_else(|| wrong("month"))?);
            }
            Rule::date => day = Some(parse_date(written).ok_or_else(|| wrong("day"))?),
            Rule::time => {
                if precision == Precision::Month {
                    return Err(wrong("month with the time"));
                }
                let seconds = written.len() == "10:00:00".len();
                precision = if seconds { Precision::Second } else { Precision::Minute };
                clock = Some(parse_time(written).ok_or_else(|| wrong("time"))?);
            }
            Rule::zone => zone = Some(parse_zone(written).ok_or_else(|| wrong("time zone"))?),
            _ => {}
        }
    }
    // The grammar guarantees a date.
    let day = day.unwrap_or_default();
    Ok(Moment { start: day.and_time(clock.unwrap_or_default()), precision, zone })
}

fn parse_date(written: &str) -> Option<NaiveDate> {
    let mut parts = written.split('-');
    let year = parts.next()?.parse().ok()?;
    let month = parts.next()?.parse().ok()?;
    let day = parts.next()?.parse().ok()?;
    NaiveDate::from_ymd_opt(year, month, day)
}

fn parse_time(written: &str) -> Option<NaiveTime> {
    let mut parts = written.split(':');
    let hour = parts.next()?.parse().ok()?;
    let minute = parts.next()?.parse().ok()?;
    let second = parts.next().map_or(Some(0), |second| second.parse().ok())?;
    NaiveTime::from_hms_opt(hour, minute, second)
}

fn parse_zone(written: &str) -> Option<FixedOffset> {
    let Some(digits) = written.strip_prefix(['+', '-']) else { return FixedOffset::east_opt(0) };
    let (hours, minutes) = digits.split_once(':')?;
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    if hours > 23 || minutes > 59 {
        return None;
    }
    let seconds = (hours * 60 + minutes) * 60;
    FixedOffset::east_opt(if written.starts_with('-') { -seconds } else { seconds })
}
