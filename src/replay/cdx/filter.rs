//! `filter=[!][=|~]field:text`: selects lines whose field contains the text, equals it, or starts with a match of the
//! regular expression.

use regex::{Regex, RegexBuilder};

use super::field::CdxField;
use super::rows::{CdxRow, CdxRows};
use super::table::CdxSource as _;
use crate::ReplayError;

/// Maximum size of a compiled regular expression in bytes.
const REGEX_BYTES_MAX: usize = 1 << 20;

enum FilterTest {
    Has(String),
    Is(String),
    Matches(Regex),
}

pub(super) struct CdxFilter {
    /// `None` for the whole line.
    field: Option<CdxField>,
    test: FilterTest,
    is_inverted: bool,
}

impl CdxFilter {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (text, is_inverted) = text.strip_prefix('!').map_or((text, false), |rest| (rest, true));
        let (mark, rest) = match text.chars().next() {
            Some(mark @ ('=' | '~')) => (Some(mark), &text[1..]),
            _ => (None, text),
        };
        let (field, value) = match rest.split_once(':') {
            Some((field, value)) => (Some(CdxField::named(field)), value),
            None => (None, rest),
        };
        let test = match mark {
            Some('=') => FilterTest::Is(value.to_owned()),
            Some(_) => {
                let built = RegexBuilder::new(&format!("^(?:{value})")).size_limit(REGEX_BYTES_MAX).build();
                FilterTest::Matches(
                    built.map_err(|_| format!("'{value}' is not a regular expression, or is too long"))?,
                )
            }
            None => FilterTest::Has(value.to_owned()),
        };
        Ok(Self { field, test, is_inverted })
    }

    pub(super) fn passes(&self, rows: &CdxRows<'_>, row: &CdxRow) -> Result<bool, ReplayError> {
        let value = match self.field {
            Some(field) => rows.value(row, field)?.unwrap_or_default(),
            None => rows.cdxj(row, None)?.into(),
        };
        let holds = match &self.test {
            FilterTest::Has(text) => value.contains(text),
            FilterTest::Is(text) => value == *text,
            FilterTest::Matches(regex) => regex.is_match(&value),
        };
        Ok(holds != self.is_inverted)
    }
}
