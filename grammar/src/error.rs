//! Mistakes in the text of a query, shown with the line and a caret.

use std::fmt::{self, Display, Formatter};
use std::ops::Range;

/// Maximum number of characters shown of a line with a mistake.
const SHOWN_CHARACTERS_MAX: usize = 100;

/// A mistake in the text of a query: its location, what is wrong, and what was probably meant.
///
/// It prints on several lines:
///
/// ```text
/// line 1, column 6: there is no field `importanse`
///   page importanse > 10
///        ^^^^^^^^^^
/// did you mean `importance`?
/// ```
///
/// The planner uses the same form to report what the grammar cannot know (fields, types of values).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    message: String,
    span: Range<usize>,
    line: usize,
    column: usize,
    line_text: String,
    suggestion: Option<String>,
}

impl ParseError {
    /// A mistake at `span` (in bytes, moved to character boundaries) of `text`.
    pub fn new(text: &str, span: Range<usize>, message: impl Into<String>) -> Self {
        let start = boundary(text, span.start);
        let end = boundary(text, span.end).max(start);
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        Self {
            message: message.into(),
            span: start..end,
            line: text[..start].matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            line_text: text[line_start..line_end].trim_end_matches('\r').to_owned(),
            suggestion: None,
        }
    }

    /// Sets what was probably meant.
    #[must_use]
    pub fn with_suggestion(mut self, suggestion: Option<String>) -> Self {
        self.suggestion = suggestion;
        self
    }

    /// What is wrong and what was expected, in one sentence without the location.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The wrong bytes of the text; empty if something is missing there.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// The line, counted from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// The column in characters, counted from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        self.column
    }

    /// The text of the whole line.
    #[must_use]
    pub fn line_text(&self) -> &str {
        &self.line_text
    }

    /// What was probably meant.
    #[must_use]
    pub fn suggestion(&self) -> Option<&str> {
        self.suggestion.as_deref()
    }

    /// The part of the line to show, and the number of characters in it before the mistake.
    fn excerpt(&self) -> (String, usize) {
        let before = self.column - 1;
        let total = self.line_text.chars().count();
        let visible = |text: &mut dyn Iterator<Item = char>| -> String {
            text.map(|c| if c.is_control() { ' ' } else { c }).collect()
        };
        if total <= SHOWN_CHARACTERS_MAX {
            return (visible(&mut self.line_text.chars()), before);
        }
        let skipped = before.saturating_sub(SHOWN_CHARACTERS_MAX / 2);
        let shown = visible(&mut self.line_text.chars().skip(skipped).take(SHOWN_CHARACTERS_MAX));
        let left = if skipped > 0 { "…" } else { "" };
        let right = if skipped + SHOWN_CHARACTERS_MAX < total { "…" } else { "" };
        (format!("{left}{shown}{right}"), before - skipped + left.chars().count())
    }
}

impl Display for ParseError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (line, before) = self.excerpt();
        let room = (line.chars().count() - before.min(line.chars().count())).max(1);
        let wrong = self.line_text.chars().skip(self.column - 1);
        let mut bytes = self.span.len();
        let marked = wrong
            .take_while(|c| {
                let inside = bytes > 0;
                bytes = bytes.saturating_sub(c.len_utf8());
                inside
            })
            .count();
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)?;
        if !line.trim().is_empty() {
            write!(f, "\n  {line}\n  {}{}", " ".repeat(before), "^".repeat(marked.clamp(1, room)))?;
        }
        match &self.suggestion {
            Some(suggestion) => write!(f, "\n{suggestion}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ParseError {}

fn boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
