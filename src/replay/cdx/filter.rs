//! `filter=[!][=|~]field:text`: selects lines whose field contains the text, equals it, or starts with a match of the
//! regular expression.

use regex::{Regex, RegexBuilder};

use super::field::Field;
use super::rows::{Row, Rows};
use super::table::Table as _;
use crate::Error;

/// Maximum size of a compiled regular expression in bytes.
const REGEX_BYTES_MAX: usize = 1 << 20;

enum Test {
    Has(String),
    Is(String),
    Matches(Regex),
}

pub(super) struct Filter {
    /// `None` for the whole line.
    field: Option<Field>,
    test: Test,
    is_inverted: bool,
}

impl Filter {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (text, is_inverted) = text.strip_prefix('!').map_or((text, false), |rest| (rest, true));
        let (mark, rest) = match text.chars().next() {
            Some(mark @ ('=' | '~')) => (Some(mark), &text[1..]),
            _ => (None, text),
        };
        let (field, value) = match rest.split_once(':') {
            Some((field, value)) => (Some(Field::named(field)), value),
            None => (None, rest),
        };
        let test = match mark {
            Some('=') => Test::Is(value.to_owned()),
            Some(_) => {
                let built = RegexBuilder::new(&format!("^(?:{value})")).size_limit(REGEX_BYTES_MAX).build();
                Test::Matches(
                    built.map_err(|_| format!("'{value}' is not a regular expression, or is too long"))?,
                )
            }
            None => Test::Has(value.to_owned()),
        };
        Ok(Self { field, test, is_inverted })
    }

    pub(super) fn passes(&self, rows: &Rows<'_>, row: &Row) -> Result<bool, Error> {
        let value = match self.field {
            Some(field) => rows.value(row, field)?.unwrap_or_default(),
            None => rows.cdxj(row, None)?.into(),
        };
        let holds = match &self.test {
            Test::Has(text) => value.contains(text),
            Test::Is(text) => value == *text,
            Test::Matches(regex) => regex.is_match(&value),
        };
        Ok(holds != self.is_inverted)
    }
}
