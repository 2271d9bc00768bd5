//! Parses what people type into a search box.

use archive_books::search::{FieldPhrase, Find, TextField};
use archive_grammar::TEXT_BYTES_MAX;
use archive_web::parse::PAGE_TYPES;

/// The minus sign, which marks unwanted words just as `-` does.
pub const MINUS: char = '\u{2212}';

/// A parsed search: words, `"phrases"`, `-unwanted`, `title:`, `description:`, `keywords:`, `author:`, and `site:`, `type:`,
/// `language:`, `before:`, `after:`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedSearch {
    /// Words and phrases to search for.
    pub find: Find,
    /// Further conditions on the pages, in the query language.
    conditions: Vec<String>,
}

/// Why a search is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TypedError {
    /// There is nothing to search for.
    #[error("there is no word to search for; type some words of the page")]
    NoWords,
    /// The search is too long.
    #[error("a search of {0} bytes; at most {TEXT_BYTES_MAX} are read")]
    TooLong(usize),
    /// A quotation is not closed.
    #[error("column {column}: the quotation that begins here is not closed")]
    OpenQuote {
        /// Where the quotation begins, in characters from 1.
        column: usize,
    },
    /// Nothing follows the colon after a name.
    #[error("column {column}: nothing follows `{name}:`; write it without a space, as in {name}:{example}")]
    NoValue {
        /// Where the mistake is, in characters from 1.
        column: usize,
        /// The name.
        name: String,
        /// A possible value.
        example: &'static str,
    },
    /// There is no such type.
    #[error("column {column}: there is no type `{found}`; the types are {}", types())]
    Type {
        /// Where the mistake is, in characters from 1.
        column: usize,
        /// The text there.
        found: String,
    },
    /// There is no such date.
    #[error("column {column}: `{found}` is not a date; write 2026, 2026-01 or 2026-01-31")]
    Date {
        /// Where the mistake is, in characters from 1.
        column: usize,
        /// The text there.
        found: String,
    },
}

fn types() -> String {
    PAGE_TYPES.join(", ")
}

/// One part of the text typed.
struct SearchTerm<'a> {
    /// Where the part begins, in characters from 1.
    column: usize,
    is_unwanted: bool,
    /// The name before a colon.
    name: Option<&'a str>,
    text: &'a str,
    is_quoted: bool,
}

impl SearchTerm<'_> {
    fn without_value(&self, name: &str, example: &'static str) -> TypedError {
        TypedError::NoValue { column: self.column, name: name.to_owned(), example }
    }
}

impl ParsedSearch {
    /// Parses a search.
    ///
    /// # Errors
    /// [`TypedError`], with the position of the mistake.
    pub fn parse(text: &str) -> Result<Self, TypedError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(TypedError::TooLong(text.len()));
        }
        let parts = parts(text)?;
        // Without a wanted word nothing can be unwanted: `-version` is then itself a word to search for.
        let is_wanted = |part: &SearchTerm<'_>| {
            part.name.is_none_or(|name| field(name).is_some()) && !part.is_unwanted && has_words(part.text)
        };
        let nothing_is_wanted = !parts.iter().any(is_wanted);
        let mut typed = Self::default();
        for part in &parts {
            match part.name {
                Some(name) if let Some(field) = field(name) => {
                    if !has_words(part.text) {
                        return Err(part.without_value(name, "garden"));
                    }
                    let (text, is_unwanted) = (part.text.to_owned(), part.is_unwanted);
                    typed.find.within.push(FieldPhrase { field, text, is_unwanted });
                }
                Some(name) => typed.conditions.push(condition(name, part)?),
                None if part.is_unwanted && !nothing_is_wanted => {
                    typed.find.without.extend(has_words(part.text).then(|| part.text.to_owned()));
                }
                None if part.is_quoted && has_words(part.text) => {
                    typed.find.phrases.push(part.text.to_owned());
                }
                None => {
                    typed.find.words.push_str(part.text);
                    typed.find.words.push(' ');
                }
            }
        }
        if typed.find.typed().is_empty() {
            return Err(TypedError::NoWords);
        }
        Ok(typed)
    }

    /// Returns the search with the words that it does not want as words to search for; `None` if there are none. When
    /// nothing is left without them, as without the `-d` of `gzip -d`, they were probably meant so.
    #[must_use]
    pub fn literal(text: &str) -> Option<String> {
        let is_word = |part: &SearchTerm<'_>| part.is_unwanted && part.name.is_none() && !part.is_quoted;
        let parts = parts(text).ok().filter(|parts| parts.iter().any(is_word))?;
        let written = parts.iter().map(|part| {
            let sign = if part.is_unwanted && !is_word(part) { "-" } else { "" };
            let name = part.name.map_or_else(String::new, |name| format!("{name}:"));
            let quote = if part.is_quoted { "\"" } else { "" };
            format!("{sign}{name}{quote}{}{quote}", part.text)
        });
        Some(written.collect::<Vec<_>>().join(" "))
    }

    /// Returns the query for the pages that are searched: those in the index, except pages that are gone since.
    /// Documents that other tools stored without a response (WARC `resource`) have no status.
    #[must_use]
    pub fn query(&self) -> String {
        let found = [
            "(content_status = 200 or (content_status is empty and captures > 0))".to_owned(),
            "status not in (404, 410)".to_owned(),
        ];
        format!("page {}", [&found[..], &self.conditions].concat().join(" and "))
    }
}

fn has_words(text: &str) -> bool {
    !archive_books::search::words(text).is_empty()
}

/// Splits a text at spaces, but not within quotes.
fn parts(text: &str) -> Result<Vec<SearchTerm<'_>>, TypedError> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return Ok(parts);
        }
        let column = text[..text.len() - rest.len()].chars().count() + 1;
        let unsigned = rest.strip_prefix(['-', MINUS]).filter(|rest| !rest.is_empty());
        let is_unwanted = unsigned.is_some_and(|rest| !rest.starts_with(['-', MINUS, ' ']));
        let mut body = if is_unwanted { unsigned.unwrap_or(rest) } else { rest };
        let named = body.split_once(':').filter(|(name, _)| NAMES.contains(name));
        let name = named.map(|(name, _)| name);
        body = named.map_or(body, |(_, value)| value);
        let (value, after) = match body.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').ok_or(TypedError::OpenQuote { column })?,
            None => body.split_at(body.find(char::is_whitespace).unwrap_or(body.len())),
        };
        parts.push(SearchTerm { column, is_unwanted, name, text: value, is_quoted: body.starts_with('"') });
        rest = after;
    }
}

/// Names allowed before a colon; with any other name, the part is a word.
const NAMES: [&str; 10] =
    ["site", "type", "language", "lang", "before", "after", "title", "description", "keywords", "author"];

/// Returns the text of a page that a name stands for.
fn field(name: &str) -> Option<TextField> {
    Some(match name {
        "title" => TextField::Title,
        "description" => TextField::Description,
        "keywords" => TextField::Keywords,
        "author" => TextField::Author,
        _ => return None,
    })
}

/// Translates a part with a name into the query language.
fn condition(name: &str, part: &SearchTerm<'_>) -> Result<String, TypedError> {
    let (column, found) = (part.column, part.text.to_owned());
    // The query language has no escape for a quotation mark, and no site, type, language or date has one.
    let plain = part.text.replace(['"', '\\'], " ");
    if plain.trim().is_empty() {
        let example = match name {
            "site" => "example.org",
            "type" => "pdf",
            "before" | "after" => "2026",
            _ => "fr",
        };
        return Err(part.without_value(name, example));
    }
    let condition = match name {
        "site" => {
            let name =
                plain.trim_start_matches("http://").trim_start_matches("https://").trim_end_matches('/');
            format!("(site = \"{name}\" or host = \"{name}\")")
        }
        "type" => {
            let is_known = PAGE_TYPES.iter().any(|kind| kind.eq_ignore_ascii_case(part.text));
            if !is_known {
                return Err(TypedError::Type { column, found });
            }
            format!("type = {}", part.text.to_ascii_lowercase())
        }
        "language" | "lang" => format!("language = \"{plain}\""),
        _ => {
            let Some((first, last)) = span(part.text) else { return Err(TypedError::Date { column, found }) };
            if name == "before" { format!("first seen < {first}") } else { format!("last seen > {last}") }
        }
    };
    Ok(if part.is_unwanted { format!("not ({condition})") } else { condition })
}

/// Returns the first and last day of a year, month or day.
fn span(text: &str) -> Option<(String, String)> {
    use chrono::{Months, NaiveDate};
    let day = |text: &str| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
    let (first, months) = match text.len() {
        4 => (day(&format!("{text}-01-01"))?, 12),
        7 => (day(&format!("{text}-01"))?, 1),
        10 => (day(text)?, 0),
        _ => return None,
    };
    let last = if months == 0 { first } else { first.checked_add_months(Months::new(months))?.pred_opt()? };
    Some((first.to_string(), last.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(words: &str, phrases: &[&str], without: &[&str], conditions: &[&str]) -> ParsedSearch {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let find = Find {
            words: words.to_owned(),
            phrases: owned(phrases),
            without: owned(without),
            within: Vec::new(),
        };
        ParsedSearch { find, conditions: owned(conditions) }
    }

    #[test]
    fn everything_that_can_be_typed_is_understood() {
        for (text, expected) in [
            ("open access", typed("open access ", &[], &[], &[])),
            ("\"open access\" -journal", typed("", &["open access"], &["journal"], &[])),
            ("a \u{2212}b", typed("a ", &[], &["b"], &[])),
            ("a -\"b c\" - --d", typed("a - --d ", &[], &["b c"], &[])),
            // On its own it is a word to search for.
            ("-DHAVE_ISNAN", typed("DHAVE_ISNAN ", &[], &[], &[])),
            ("x site:https://a.test/", typed("x ", &[], &[], &["(site = \"a.test\" or host = \"a.test\")"])),
            ("x -type:PDF", typed("x ", &[], &[], &["not (type = pdf)"])),
            ("x before:2026-02", typed("x ", &[], &[], &["first seen < 2026-02-01"])),
            ("x after:2026-02", typed("x ", &[], &[], &["last seen > 2026-02-28"])),
            ("x after:2025", typed("x ", &[], &[], &["last seen > 2025-12-31"])),
            // Not a known name: a word with a colon.
            ("std::vector note: x", typed("std::vector note: x ", &[], &[], &[])),
        ] {
            assert_eq!(ParsedSearch::parse(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn fields_are_searched_by_name() {
        let parsed = ParsedSearch::parse("trees author:\"Ada Lovelace\" -title:draft").unwrap();
        let within =
            |field, text: &str, is_unwanted| FieldPhrase { field, text: text.to_owned(), is_unwanted };
        assert_eq!(
            parsed.find.within,
            [within(TextField::Author, "Ada Lovelace", false), within(TextField::Title, "draft", true)]
        );
        assert_eq!(parsed.find.typed(), ["trees", "ada", "lovelace"]);
        assert!(ParsedSearch::parse("keywords:tree").is_ok(), "a field is enough");
        let alone = ParsedSearch::parse("-author:ada").unwrap_err();
        assert_eq!(alone, TypedError::NoWords);
        let error = ParsedSearch::parse("x author:…").unwrap_err().to_string();
        assert!(error.starts_with("column 3: nothing follows `author:`"), "{error}");
    }

    #[test]
    fn unwanted_words_can_be_searched_for() {
        for (text, expected) in [
            ("gzip -d", Some("gzip d")),
            (
                "gzip \u{2212}d -\"b c\" -site:a.test \"d e\" --f",
                Some("gzip d -\"b c\" -site:a.test \"d e\" --f"),
            ),
            ("gzip", None),
            ("gzip -\"b c\"", None),
            ("gzip \"d", None),
        ] {
            assert_eq!(ParsedSearch::literal(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn mistakes_say_where_they_are() {
        for (text, expected) in [
            ("", "there is no word"),
            ("site:a.test", "there is no word"),
            ("…", "there is no word"),
            ("äh \"open", "column 4: the quotation"),
            ("x type:page", "column 3: there is no type `page`; the types are html, xml"),
            ("x type: pdf", "column 3: nothing follows `type:`; write it without a space, as in type:pdf"),
            ("x site:\"\"", "column 3: nothing follows `site:`"),
            ("x before:soon", "column 3: `soon` is not a date"),
            ("x after:2026-13", "column 3: `2026-13` is not a date"),
        ] {
            let error = ParsedSearch::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
        let longest = "x ".repeat(TEXT_BYTES_MAX / 2);
        assert!(ParsedSearch::parse(&longest).is_ok());
        assert_eq!(ParsedSearch::parse(&format!("{longest}x")), Err(TypedError::TooLong(longest.len() + 1)));
    }
}
