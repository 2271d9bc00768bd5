//! Tokens of a script, and what may precede and follow some of them.

use memchr::{memchr2, memmem};

/// Skips white space and comments; returns the position after them and whether they contain a line break.
pub(super) fn after_blank(text: &[u8], mut at: usize) -> (usize, bool) {
    let mut is_after_line = at == 0;
    loop {
        let rest = &text[at.min(text.len())..];
        match rest {
            [b'\n' | b'\r', ..] => (at, is_after_line) = (at + 1, true),
            [b' ' | b'\t' | 0xb | 0xc, ..] => at += 1,
            [0xc2, 0xa0, ..] => at += 2,
            [0xef, 0xbb, 0xbf, ..] => at += 3,
            [b'/', b'/', ..] | [b'<', b'!', b'-', b'-', ..] => at = line_end(text, at),
            [b'-', b'-', b'>', ..] if is_after_line => at = line_end(text, at),
            [b'/', b'*', comment @ ..] => {
                let length = memmem::find(comment, b"*/").map_or(comment.len(), |end| end + 2);
                is_after_line |= memchr2(b'\n', b'\r', &comment[..length]).is_some();
                at += 2 + length;
            }
            _ => return (at.min(text.len()), is_after_line),
        }
    }
}

pub(super) fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'\\' | 0x80..)
}

pub(super) fn is_word(token: &[u8]) -> bool {
    token.first().is_some_and(|byte| is_of_word(*byte) && !byte.is_ascii_digit() || *byte == b'#')
}

/// The word that begins here; may be empty.
pub(super) fn word_at(text: &[u8], at: usize) -> &[u8] {
    let rest = text.get(at..).unwrap_or_default();
    &rest[..rest.iter().take_while(|byte| is_of_word(**byte)).count()]
}

/// Whether an operand follows a word, so that a slash begins a regular expression and a brace an object.
pub(super) fn is_before_operand(word: &[u8]) -> bool {
    const WORDS: [&[u8]; 12] = [
        b"return",
        b"typeof",
        b"case",
        b"in",
        b"instanceof",
        b"new",
        b"void",
        b"delete",
        b"throw",
        b"yield",
        b"await",
        b"extends",
    ];
    WORDS.contains(&word)
}

pub(super) fn is_before_object(word: &[u8]) -> bool {
    matches!(word, b"const" | b"let" | b"var" | b"default")
}

/// Whether a property without a value ends here, or a default value follows.
pub(super) fn ends_property(rest: &[u8]) -> bool {
    match rest {
        [b',' | b'}', ..] => true,
        [b'=', next, ..] => !matches!(next, b'=' | b'>'),
        _ => false,
    }
}

/// Whether the expression before a dot may be a window or a document: its name resembles one, or is as short as in
/// minified scripts, or the expression ends with a bracket. Anything else keeps its own `location`: objects without a
/// prototype, and objects that intercept property accesses, do not have ours.
pub(super) fn may_be_window(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 9] =
        [b"self", b"top", b"parent", b"opener", b"root", b"scope", b"context", b"view", b"browser"];
    const PARTS: [&[u8]; 4] = [b"win", b"doc", b"frame", b"global"];
    let has = |part: &[u8]| name.windows(part.len()).any(|piece| piece.eq_ignore_ascii_case(part));
    name.len() <= 2 || NAMES.contains(&name) || PARTS.iter().any(|part| has(part))
}

pub(super) fn line_end(text: &[u8], at: usize) -> usize {
    memchr2(b'\n', b'\r', &text[at..]).map_or(text.len(), |length| at + length)
}

/// The end of a string; `None` if it does not end on its line.
pub(super) fn string_end(text: &[u8], start: usize) -> Option<usize> {
    let quote = text[start];
    let mut at = start + 1;
    loop {
        match *text.get(at)? {
            b'\\' => at += 2,
            b'\n' | b'\r' => return None,
            byte if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// The end of a regular expression including its flags; `None` if it does not end on its line.
pub(super) fn expression_end(text: &[u8], start: usize) -> Option<usize> {
    let (mut at, mut is_in_class) = (start + 1, false);
    loop {
        match *text.get(at)? {
            b'\\' => at += 1,
            b'\n' | b'\r' => return None,
            b'[' => is_in_class = true,
            b']' => is_in_class = false,
            b'/' if !is_in_class => return Some(at + 1 + word_at(text, at + 1).len()),
            _ => {}
        }
        at += 1;
    }
}
