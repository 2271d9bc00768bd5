//! A lightweight scan of a query's text, independent of the real grammar.
//!
//! It finds mistakes that the grammar would report badly (a quote or parenthesis that is never closed), keeps nesting
//! within [`DEPTH_MAX`] so that no text can exhaust the stack, and provides the tokens for error messages and recovery.
//! It must agree with `query.pest` on strings and comments, and on nothing else.

use std::ops::Range;

use crate::error::ParseError;

/// Maximum length of a query's text in bytes.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;

/// Maximum nesting depth of parentheses and brackets.
pub const DEPTH_MAX: usize = 64;

const RESERVED: [&str; 21] = [
    "and",
    "or",
    "not",
    "in",
    "between",
    "contains",
    "is",
    "order",
    "by",
    "limit",
    "offset",
    "select",
    "from",
    "where",
    "asc",
    "ascending",
    "desc",
    "descending",
    "ago",
    "all",
    "any",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Word,
    Text,
    Open,
    Close,
    Comma,
    Sign,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueryToken {
    pub(crate) kind: TokenKind,
    pub(crate) span: Range<usize>,
}

/// Result of a scan.
pub(crate) struct TokenScan {
    pub(crate) tokens: Vec<QueryToken>,
    /// A string that is never closed: its start, and the missing quote.
    pub(crate) unclosed_text: Option<(usize, char)>,
}

/// Splits `text` into words, strings and signs.
pub(crate) fn scan(text: &str) -> TokenScan {
    let mut tokens = Vec::new();
    let mut characters = text.char_indices().peekable();
    while let Some((start, character)) = characters.next() {
        let kind = match character {
            _ if is_space(character) => continue,
            '-' if text[start..].starts_with("--") => {
                while characters.next_if(|&(_, c)| c != '\n').is_some() {}
                continue;
            }
            '"' | '\'' => {
                if !skip_text(&mut characters, character) {
                    return TokenScan { tokens, unclosed_text: Some((start, character)) };
                }
                TokenKind::Text
            }
            '(' | '[' => TokenKind::Open,
            ')' | ']' => TokenKind::Close,
            ',' => TokenKind::Comma,
            _ if is_sign(character) => {
                while characters.next_if(|&(_, c)| is_sign(c)).is_some() {}
                TokenKind::Sign
            }
            _ => {
                while characters.next_if(|&(at, c)| continues_word(text, at, c)).is_some() {}
                TokenKind::Word
            }
        };
        let end = characters.peek().map_or(text.len(), |&(at, _)| at);
        tokens.push(QueryToken { kind, span: start..end });
    }
    TokenScan { tokens, unclosed_text: None }
}

/// Skips a string; returns whether the closing quote was found.
fn skip_text(characters: &mut std::iter::Peekable<std::str::CharIndices<'_>>, quote: char) -> bool {
    while let Some((_, character)) = characters.next() {
        match character {
            '\\' => {
                characters.next();
            }
            _ if character == quote => return true,
            _ => {}
        }
    }
    false
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

fn is_sign(character: char) -> bool {
    matches!(character, '<' | '>' | '=' | '!' | '~')
}

fn continues_word(text: &str, at: usize, character: char) -> bool {
    !is_space(character)
        && !is_sign(character)
        && !matches!(character, '(' | ')' | '[' | ']' | ',' | '"' | '\'')
        && !text[at..].starts_with("--")
}

/// Rejects texts that the grammar cannot parse or should not have to.
pub(crate) fn check(text: &str) -> Result<Vec<QueryToken>, ParseError> {
    if text.len() > TEXT_BYTES_MAX {
        let message = format!("a query has at most {TEXT_BYTES_MAX} bytes, this one has {}", text.len());
        return Err(ParseError::new(text, 0..0, message));
    }
    let TokenScan { tokens, unclosed_text } = scan(text);
    if let Some((start, quote)) = unclosed_text {
        let message = format!("the text that starts here is never closed: expected another {quote}");
        return Err(ParseError::new(text, start..start + 1, message));
    }
    let mut open = Vec::new();
    for token in &tokens {
        match token.kind {
            TokenKind::Open if open.len() == DEPTH_MAX => {
                let message = format!("parentheses are nested more than {DEPTH_MAX} deep");
                return Err(ParseError::new(text, token.span.clone(), message));
            }
            TokenKind::Open => open.push(token.span.clone()),
            TokenKind::Close if open.pop().is_none() => {
                let message = match &text[token.span.clone()] {
                    "]" => "there is no [ that this ] closes",
                    _ => "there is no ( that this ) closes",
                };
                return Err(ParseError::new(text, token.span.clone(), message));
            }
            _ => {}
        }
    }
    match open.pop() {
        Some(span) => {
            let message = match &text[span.clone()] {
                "[" => "this [ is never closed: expected ]",
                _ => "this ( is never closed: expected )",
            };
            Err(ParseError::new(text, span, message))
        }
        None => Ok(tokens),
    }
}

/// Whether `word` is a reserved word of queries.
pub(crate) fn is_reserved(word: &str) -> bool {
    RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(word))
}

/// Whether `text` is a word that canonical text prints without quotes.
pub(crate) fn is_plain_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !is_reserved(text)
}
