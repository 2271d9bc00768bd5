//! Repairs documents that almost parse: stray ampersands, entities of a DTD that is not available, and a missing end.
//!
//! Programs that generate feeds and sitemaps often paste text, so a bare `&` in a URL is the most common mistake.

use std::fmt::Write as _;

use super::pieces::{XmlPiece, XmlPieces};

/// Returns the text with every entity reference resolvable, and without characters that XML forbids.
///
/// Names known in HTML become their characters: its table includes those of XHTML, MathML and the ISO sets that DocBook
/// and TEI documents refer to. Other names stand for text that is not available and are removed; a bare `&` becomes
/// `&amp;`.
pub(super) fn with_sound_references(text: &str) -> String {
    let mut sound = String::with_capacity(text.len() + text.len() / 16);
    for piece in XmlPieces::of(text) {
        match piece {
            XmlPiece::Text(text) => push_sound(&mut sound, text),
            XmlPiece::Start(tag) => push_sound(&mut sound, tag.written),
            XmlPiece::Cdata(text) | XmlPiece::Opaque(text) | XmlPiece::End(text) => {
                push_allowed(&mut sound, text);
            }
        }
    }
    sound
}

fn push_sound(sound: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'&', rest.as_bytes()) {
        push_allowed(sound, &rest[..at]);
        let (replacement, taken) = sound_reference(&rest[at..]);
        sound.push_str(&replacement);
        rest = &rest[at + taken..];
    }
    push_allowed(sound, rest);
}

/// Returns the replacement for the reference (or bare `&`) at the start of a text, and the length of what it replaces.
fn sound_reference(rest: &str) -> (String, usize) {
    const NAME_BYTES_MAX: usize = 64;
    let bare = ("&amp;".to_owned(), 1);
    let inside = &rest.as_bytes()[1..];
    let Some(end) = memchr::memchr(b';', &inside[..inside.len().min(NAME_BYTES_MAX)]) else { return bare };
    let Some(name) = rest.get(1..=end) else { return bare };
    let whole = end + 2;
    let written = || rest[..whole].to_owned();
    if name.starts_with('#') {
        return (character(&rest[..whole]).map(|_| written()).unwrap_or_default(), whole);
    }
    if !name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':')) || name.is_empty() {
        return bare;
    }
    if is_predefined(name) {
        return (written(), whole);
    }
    let mut characters = String::new();
    let decoded = htmlize::unescape(&rest[..whole]);
    if decoded != rest[..whole] {
        for character in decoded.chars() {
            let _ = write!(characters, "&#{};", u32::from(character));
        }
    }
    (characters, whole)
}

/// Whether an entity is predefined in XML (section 4.6).
pub(super) fn is_predefined(name: &str) -> bool {
    matches!(name, "amp" | "lt" | "gt" | "quot" | "apos")
}

/// Returns the character of a reference `&#…;`, if XML allows it.
pub(super) fn character(reference: &str) -> Option<char> {
    let number = reference.strip_prefix("&#")?.strip_suffix(';')?;
    let code = match number.strip_prefix('x') {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => number.parse(),
    };
    code.ok().and_then(char::from_u32).filter(|&c| is_allowed(c))
}

/// Whether a character is allowed in XML (XML 1.0, production 2).
fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

fn push_allowed(sound: &mut String, text: &str) {
    let is_odd = |byte: u8| (byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r')) || byte == 0xEF;
    if text.bytes().any(is_odd) {
        sound.extend(text.chars().filter(|&c| is_allowed(c)));
    } else {
        sound.push_str(text);
    }
}

/// Returns the text up to the last tag before an error, with its open elements closed; none if no element is open.
pub(super) fn up_to(text: &str, error_at: usize) -> Option<String> {
    let mut end = text.floor_char_boundary(error_at.min(text.len()));
    // The tag at the error may be the wrong one.
    let last_tag = text[..end].rfind('<')?;
    let is_cut = end == text.len() && text[last_tag..].contains('>');
    end = if is_cut { end } else { last_tag };
    let kept = &text[..end];
    let mut open = Vec::new();
    for piece in XmlPieces::of(kept) {
        match piece {
            XmlPiece::Start(tag) if !tag.is_empty() => open.push(tag.name()),
            XmlPiece::End(_) => {
                open.pop();
            }
            _ => {}
        }
    }
    if open.is_empty() {
        return None;
    }
    let mut repaired = kept.to_owned();
    for name in open.iter().rev() {
        let _ = write!(repaired, "</{name}>");
    }
    Some(repaired)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_become_sound() {
        for (text, expected) in [
            ("<a b='?c=1&d=2'>", "<a b='?c=1&amp;d=2'>"),
            ("<a>x & y &amp; z</a>", "<a>x &amp; y &amp; z</a>"),
            ("<a>caf&eacute;&nbsp;</a>", "<a>caf&#233;&#160;</a>"),
            ("<a>&chapter;</a>", "<a></a>"),
            ("<a>&#65;&#x41;&#0;&#xFFFFFFFF;</a>", "<a>&#65;&#x41;</a>"),
            ("<a><![CDATA[x & y]]><!-- & --></a>", "<a><![CDATA[x & y]]><!-- & --></a>"),
            ("<a>\u{1}x\u{FFFE}\0</a>", "<a>x</a>"),
            ("&", "&amp;"),
        ] {
            assert_eq!(with_sound_references(text), expected, "{text}");
        }
    }

    #[test]
    fn a_cut_document_is_closed() {
        let close = up_to;
        assert_eq!(close("<a><b>x</b><c>y", 15).as_deref(), Some("<a><b>x</b><c>y</c></a>"));
        assert_eq!(close("<a><b>x</c></a>", 11).as_deref(), Some("<a><b>x</b></a>"));
        assert_eq!(close("<a><b>x</b><c", 13).as_deref(), Some("<a><b>x</b></a>"));
        assert_eq!(close("<a", 2), None);
        assert_eq!(close("", 0), None);
        assert_eq!(close("<a/>x", 5), None);
    }
}
