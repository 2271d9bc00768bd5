//! Recovers what can be understood of a query with mistakes in it.
//!
//! Each mistake costs the smallest piece around it: one test, key or clause. The piece is replaced by spaces, so that
//! every span of the final tree still refers to the original text, and the rest is parsed again. Every round removes at
//! least one token, so this terminates.

use std::ops::Range;

use crate::error::ParseError;
use crate::tokens::{self, QueryToken, TokenKind};
use crate::tree::Query;

/// Maximum number of mistakes reported per text; after that, the rest is abandoned.
const MISTAKES_MAX: usize = 32;

/// Returns the tree of what could be understood, and every mistake found. Without mistakes the tree equals that of
/// [`crate::parse`]. A text that consists of mistakes only gives the query for all pages, and so does a text without
/// words, which is no mistake here.
#[must_use]
pub fn parse_lenient(text: &str) -> (Query, Vec<ParseError>) {
    let mut mistakes = Vec::new();
    let mut left = text.to_owned();
    while mistakes.len() < MISTAKES_MAX {
        match crate::parse_checked(&left) {
            Ok(query) => return (query, mistakes),
            Err(mistake) => {
                let repaired = repaired(&left, &mistake);
                mistakes.push(restored(text, &mistake));
                match repaired {
                    Some(repaired) => left = repaired,
                    None => break,
                }
            }
        }
    }
    (Query::default(), mistakes)
}

/// The same mistake, located in the original text.
fn restored(text: &str, mistake: &ParseError) -> ParseError {
    let suggestion = mistake.suggestion().map(str::to_owned);
    ParseError::new(text, mistake.span(), mistake.message()).with_suggestion(suggestion)
}

/// `text` without the piece that contains `mistake`; `None` if there is nothing left to remove.
fn repaired(text: &str, mistake: &ParseError) -> Option<String> {
    if text.len() > tokens::TEXT_BYTES_MAX {
        return None;
    }
    let scan = tokens::scan(text);
    if let Some((start, quote)) = scan.unclosed_text {
        // The user is still typing: close the text at the end of the query.
        let closed = format!("{text}{quote}");
        let still_open = tokens::scan(&closed).unclosed_text.is_some();
        return Some(if still_open { blanked(text, start..text.len()) } else { closed });
    }
    let tokens = scan.tokens;
    if tokens.is_empty() {
        return None;
    }
    if let Some(unmatched) = unmatched(&tokens) {
        return Some(blanked(text, tokens[unmatched].span.clone()));
    }
    let seen = tokens.partition_point(|token| token.span.end <= mistake.span().start);
    let at = if seen < tokens.len() { culprit(text, &tokens, seen) } else { tokens.len() - 1 };
    let piece = piece(text, &tokens, at);
    // What precedes the mistake may be valid on its own; if it is not, the next mistake is no further on.
    let without_rest = blanked(text, tokens[at].span.start..tokens[piece.end - 1].span.end);
    let progress = match (crate::parse_checked(&without_rest), tokens.get(piece.end)) {
        (Ok(_), _) => true,
        (Err(next), Some(following)) => next.span().start >= following.span.end,
        (Err(_), None) => false,
    };
    if piece.start < at && progress {
        return Some(without_rest);
    }
    let whole = with_connective(text, &tokens, piece);
    Some(blanked(text, tokens[whole.start].span.start..tokens[whole.end - 1].span.end))
}

/// The token to blame for a mistake seen at `at`: where a piece ends too early, its last token; in empty parentheses,
/// the opening one.
fn culprit(text: &str, tokens: &[QueryToken], at: usize) -> usize {
    let Some(before) = at.checked_sub(1) else { return at };
    match (tokens[before].kind, tokens[at].kind) {
        (TokenKind::Open, TokenKind::Close) => before,
        (TokenKind::Open, _) => at,
        (_, TokenKind::Close) => before,
        _ if ends_piece(text, &tokens[at]) && !ends_piece(text, &tokens[before]) => before,
        _ => at,
    }
}

/// Finds a parenthesis without its partner, or one that is nested too deeply.
fn unmatched(tokens: &[QueryToken]) -> Option<usize> {
    let mut open = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        match token.kind {
            TokenKind::Open if open.len() == tokens::DEPTH_MAX => return Some(index),
            TokenKind::Open => open.push(index),
            TokenKind::Close if open.pop().is_none() => return Some(index),
            _ => {}
        }
    }
    open.pop()
}

/// The tokens around `at` that are removed together: up to the next connective, including the one before. Parentheses
/// are removed with their contents or not at all.
fn piece(text: &str, tokens: &[QueryToken], at: usize) -> Range<usize> {
    let mut start = at;
    while start > 0 && !ends_piece(text, &tokens[start]) && !matches!(tokens[start - 1].kind, TokenKind::Open)
    {
        start -= 1;
        if tokens[start].kind == TokenKind::Close {
            start = opening(tokens, start);
        }
    }
    let mut end = at + 1;
    if tokens[at].kind == TokenKind::Open {
        end = closing(tokens, at) + 1;
    }
    while end < tokens.len() && !ends_piece(text, &tokens[end]) && tokens[end].kind != TokenKind::Close {
        end = if tokens[end].kind == TokenKind::Open { closing(tokens, end) + 1 } else { end + 1 };
    }
    start..end
}

/// Extends a piece by the connective after it if there is none before it, and by parentheses that would be left empty.
fn with_connective(text: &str, tokens: &[QueryToken], piece: Range<usize>) -> Range<usize> {
    let Range { mut start, mut end } = piece;
    if !ends_piece(text, &tokens[start]) && end < tokens.len() && is_connective(text, &tokens[end]) {
        end += 1;
    }
    while start > 0
        && end < tokens.len()
        && tokens[start - 1].kind == TokenKind::Open
        && tokens[end].kind == TokenKind::Close
    {
        start -= 1;
        end += 1;
    }
    start..end
}

fn ends_piece(text: &str, token: &QueryToken) -> bool {
    token.kind == TokenKind::Comma
        || is_connective(text, token)
        || ["order", "group", "having", "limit", "offset", "select", "sample"]
            .iter()
            .any(|word| is(text, token, word))
}

fn is_connective(text: &str, token: &QueryToken) -> bool {
    token.kind == TokenKind::Comma || is(text, token, "and") || is(text, token, "or")
}

fn is(text: &str, token: &QueryToken, word: &str) -> bool {
    token.kind == TokenKind::Word && text[token.span.clone()].eq_ignore_ascii_case(word)
}

/// The partner of the closing parenthesis at `close`, given that parentheses are balanced.
fn opening(tokens: &[QueryToken], close: usize) -> usize {
    let mut depth = 0;
    for index in (0..=close).rev() {
        match tokens[index].kind {
            TokenKind::Close => depth += 1,
            TokenKind::Open if depth == 1 => return index,
            TokenKind::Open => depth -= 1,
            _ => {}
        }
    }
    0
}

/// The partner of the opening parenthesis at `open`, given that parentheses are balanced.
fn closing(tokens: &[QueryToken], open: usize) -> usize {
    let mut depth = 0;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.kind {
            TokenKind::Open => depth += 1,
            TokenKind::Close if depth == 1 => return index,
            TokenKind::Close => depth -= 1,
            _ => {}
        }
    }
    tokens.len() - 1
}

/// `text` with the bytes of `span` replaced by spaces; line ends stay.
fn blanked(text: &str, span: Range<usize>) -> String {
    let mut blank = String::with_capacity(text.len());
    blank.push_str(&text[..span.start]);
    for byte in text[span.clone()].bytes() {
        blank.push(if byte == b'\n' { '\n' } else { ' ' });
    }
    blank.push_str(&text[span.end..]);
    blank
}
