//! The query language of `archive`: grammar and syntax tree, no I/O.
//!
//! A query names a target (pages, sites, hosts, captures, versions or links), a condition and an order:
//!
//! ```text
//! page importance > 2 and type = xml order by importance desc limit 20
//! site importance > 10
//! page text contains "open access" order by score limit 10
//! page host = "example.org" and not (status >= 400 or url ~ "*/archive/*")
//! page last seen < 30 days ago and title is not empty select url, title
//! capture size > 1MB and year(time) = 2026 group by host select host, count, sum(size) order by count
//! page links to (page status = 404) and site.importance > 2
//! ```
//!
//! [`parse`] is strict: it returns a [`Query`] or the first [`ParseError`], with line, column, a caret and what was
//! expected.
//! [`parse_lenient`] returns what could be understood and every mistake, for queries that are still being typed.
//!
//! ```
//! let query = archive_grammar::parse("SITE importance>10 -- the large ones")?;
//! assert_eq!(query.to_string(), "site importance > 10");
//!
//! let mistake = archive_grammar::parse("page importance >").unwrap_err();
//! assert_eq!((mistake.line(), mistake.column()), (1, 18));
//! # Ok::<(), archive_grammar::ParseError>(())
//! ```
//!
//! # Invariants
//! * No text makes the parser panic or exhaust the stack: length and nesting are limited ([`TEXT_BYTES_MAX`],
//!   [`DEPTH_MAX`]) before the grammar sees the text.
//! * A tree prints as canonical text that parses to an equal tree.
//! * The grammar accepts any identifier as a field. The program that runs the query checks whether the field exists and
//!   has the right type; [`nearest`] helps to suggest what was meant, and spans in the tree give the location.
//!
//! # Modules
//! `query.pest` the grammar; `tree` the syntax tree; `print` converts trees to text; `reader` and `literal` convert
//! pest's pairs to the tree; `error`, `expected` and `suggest` produce messages; `tokens` enforces the limits;
//! `lenient` recovers from mistakes.

mod error;
mod expected;
mod lenient;
mod literal;
mod print;
mod reader;
mod suggest;
mod syntax;
mod tokens;
mod tree;

#[cfg(test)]
mod tests;

use pest::Parser;
use pest::error::{ErrorVariant, InputLocation};

pub use error::ParseError;
pub use expected::{keywords, targets};
pub use lenient::parse_lenient;
pub use print::Quoted;
pub use suggest::nearest;
pub use tokens::{DEPTH_MAX, TEXT_BYTES_MAX};
pub use tree::{
    Ago, ArithmeticSign, Check, Comparison, Condition, Direction, Expr, FieldName, Literal, Moment, OrderKey,
    Others, Path, Precision, Quantifier, Query, QueryRows, Related, Relation, ResultColumn, Sample, Spanned,
    Step, Test, TextEnd, Unit,
};

use syntax::{Rule, Syntax};

/// Parses a query; stops at the first mistake.
///
/// # Errors
/// The first mistake in `text`. A text without any words is one: a query for everything is written as `page` or `site`.
pub fn parse(text: &str) -> Result<Query, ParseError> {
    if text.len() <= TEXT_BYTES_MAX && tokens::scan(text).tokens.is_empty() && !text.contains(['"', '\'']) {
        let message = "expected a query such as `page importance > 2` or `site importance > 10`";
        return Err(ParseError::new(text, 0..0, message));
    }
    parse_checked(text)
}

/// Parses a query that may be empty.
fn parse_checked(text: &str) -> Result<Query, ParseError> {
    let tokens = tokens::check(text)?;
    let mut pairs = Syntax::parse(Rule::query, text).map_err(|error| {
        let (InputLocation::Pos(at) | InputLocation::Span((at, _))) = error.location;
        let positives = match error.variant {
            ErrorVariant::ParsingError { positives, .. } => positives,
            ErrorVariant::CustomError { .. } => Vec::new(),
        };
        expected::mistake(text, &tokens, at, &positives)
    })?;
    match pairs.next() {
        Some(pair) => reader::PairReader { text }.query(pair),
        None => Ok(Query::default()),
    }
}
