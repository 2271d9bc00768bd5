//! Expands the entities of a document and removes its document type declaration.
//!
//! This is done before parsing, so that the parser is never given input that grows: the bytes that entities expand to
//! are counted as they are written, up to [`ParseLimits::xml_entity_bytes_max`].

use std::borrow::Cow;
use std::collections::HashMap;

use super::super::ParseLimits;
use super::doctype::Doctype;
use super::pieces::{XmlPiece, XmlPieces};
use super::repair::{character, is_predefined};

/// Maximum nesting of entities; a deeper one is assumed to contain itself.
const DEPTH_MAX: usize = 16;

/// Maximum bytes of an entity's name.
const NAME_BYTES_MAX: usize = 256;

/// A document without its document type declaration.
pub(super) struct Plain<'t> {
    pub(super) text: Cow<'t, str>,
    /// The first mistake in the declaration or its entities.
    pub(super) problem: Option<&'static str>,
}

impl<'t> Plain<'t> {
    /// Removes the declaration of a document and expands its entities. References to external entities expand to
    /// nothing; references to undeclared entities remain.
    ///
    /// # Errors
    /// The limit that was exceeded, to be read after "too".
    pub(super) fn of(
        text: &'t str,
        doctype: &Doctype<'_>,
        limits: &ParseLimits,
    ) -> Result<Self, &'static str> {
        if doctype.range.is_empty() {
            return Ok(Self { text: Cow::Borrowed(text), problem: None });
        }
        let (before, after) = (&text[..doctype.range.start], &text[doctype.range.end..]);
        let mut writer = EntityWriter {
            entities: &doctype.entities,
            text: String::with_capacity(before.len() + after.len()),
            bytes_left: limits.xml_entity_bytes_max,
            problem: doctype.is_broken.then_some("the document type declaration is broken"),
        };
        writer.text.push_str(before);
        // Line breaks are kept so that line numbers in errors stay right.
        let lines = memchr::memchr_iter(b'\n', text[doctype.range.clone()].as_bytes());
        writer.text.extend(lines.map(|_| '\n'));
        if doctype.entities.is_empty() {
            writer.text.push_str(after);
        } else {
            writer.content(after, 0)?;
        }
        Ok(Self { text: Cow::Owned(writer.text), problem: writer.problem })
    }
}

/// Context of text (XML 1.0, section 4.4).
#[derive(Clone, Copy, PartialEq)]
enum EntityContext {
    /// Between tags.
    Content,
    /// In a tag.
    Tag,
    /// In an attribute value, inserted by an entity.
    Value,
}

struct EntityWriter<'d> {
    entities: &'d HashMap<&'d str, Option<&'d str>>,
    text: String,
    bytes_left: usize,
    problem: Option<&'static str>,
}

impl EntityWriter<'_> {
    /// Writes tags and the text between them. `depth` is the number of enclosing entities.
    fn content(&mut self, text: &str, depth: usize) -> Result<(), &'static str> {
        for piece in XmlPieces::of(text) {
            match piece {
                XmlPiece::Text(text) => self.references(text, EntityContext::Content, depth)?,
                XmlPiece::Start(tag) => self.references(tag.written, EntityContext::Tag, depth)?,
                XmlPiece::Cdata(written) | XmlPiece::Opaque(written) | XmlPiece::End(written) => {
                    self.text.push_str(written);
                }
            }
        }
        Ok(())
    }

    fn references(&mut self, text: &str, place: EntityContext, depth: usize) -> Result<(), &'static str> {
        let mut rest = text;
        while let Some(at) = memchr::memchr(b'&', rest.as_bytes()) {
            self.push(&rest[..at], place);
            rest = &rest[at..];
            if let Some(name) = reference_name(rest) {
                let (reference, after) = rest.split_at(name.len() + 2);
                match self.entities.get(name).filter(|_| !is_predefined(name)) {
                    Some(Some(value)) => self.include(value, place, depth)?,
                    Some(None) if place == EntityContext::Content => {}
                    Some(None) => {
                        self.problem.get_or_insert("an attribute refers to an entity outside");
                    }
                    None => self.text.push_str(reference),
                }
                rest = after;
            } else {
                let is_character = rest.starts_with("&#") && reference_name(&rest[1..]).is_some();
                if !is_character {
                    // The following text must not turn it into a reference.
                    self.problem.get_or_insert("a bare '&'");
                }
                self.text.push_str(if is_character { "&" } else { "&amp;" });
                rest = &rest[1..];
            }
        }
        self.push(rest, place);
        Ok(())
    }

    /// Writes the replacement of an entity.
    fn include(&mut self, value: &str, place: EntityContext, depth: usize) -> Result<(), &'static str> {
        /// Maximum bytes of an escaped byte.
        const ESCAPED_BYTES: usize = 6;
        if depth >= DEPTH_MAX {
            return Err("deep entities");
        }
        let bytes = if place == EntityContext::Content { value.len() } else { ESCAPED_BYTES * value.len() };
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or("large entities")?;
        let value = replacement(value);
        let has_tags = value.contains('<');
        if place != EntityContext::Content {
            if has_tags {
                self.problem.get_or_insert("an entity inserts a '<' into an attribute value");
            }
            return self.references(&value, EntityContext::Value, depth + 1);
        }
        if has_tags && !is_balanced(&value) {
            self.problem.get_or_insert("an entity contains an unbalanced tag, comment or section");
        }
        self.content(&value, depth + 1)
    }

    /// Writes text without references. Inside an attribute value, text from an entity is data and is escaped.
    fn push(&mut self, text: &str, place: EntityContext) {
        if place != EntityContext::Value || memchr::memchr3(b'<', b'"', b'\'', text.as_bytes()).is_none() {
            self.text.push_str(text);
            return;
        }
        for character in text.chars() {
            match character {
                '<' => self.text.push_str("&lt;"),
                '"' => self.text.push_str("&quot;"),
                '\'' => self.text.push_str("&apos;"),
                other => self.text.push(other),
            }
        }
    }
}

/// Returns the name in the reference at the start of a text; none for a character reference or a bare `&`. The first
/// character is not checked.
pub(super) fn reference_name(text: &str) -> Option<&str> {
    let inside = &text.as_bytes()[1..];
    let end = memchr::memchr(b';', &inside[..inside.len().min(NAME_BYTES_MAX)])?;
    let name = text.get(1..=end)?;
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    (!name.is_empty() && name.chars().all(is_name)).then_some(name)
}

/// Returns the replacement text of an entity: its value with character references resolved, as at its declaration
/// (section 4.4.5). A carriage return stays a reference, since otherwise it would be read as a line break.
pub(super) fn replacement(value: &str) -> Cow<'_, str> {
    if !value.contains("&#") {
        return Cow::Borrowed(value);
    }
    let mut text = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find("&#") {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = rest.find(';').map_or(rest.len(), |end| end + 1);
        match character(&rest[..length]) {
            Some(character) if character != '\r' => text.push(character),
            _ => text.push_str(&rest[..length]),
        }
        rest = &rest[length..];
    }
    text.push_str(rest);
    Cow::Owned(text)
}

/// Whether everything that begins in a text also ends in it.
fn is_balanced(text: &str) -> bool {
    let mut open: usize = 0;
    for piece in XmlPieces::of(text) {
        match piece {
            XmlPiece::Start(tag) if !tag.is_empty() => open += 1,
            XmlPiece::End(_) if open == 0 => return false,
            XmlPiece::End(_) => open -= 1,
            XmlPiece::Cdata(written) if !written.ends_with("]]>") => return false,
            XmlPiece::Opaque(written) if !written.ends_with('>') => return false,
            _ => {}
        }
    }
    open == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Result<(String, Option<&'static str>), &'static str> {
        let limits = ParseLimits { xml_entity_bytes_max: 1000, ..ParseLimits::default() };
        Plain::of(text, &Doctype::of(text), &limits).map(|plain| (plain.text.into_owned(), plain.problem))
    }

    #[test]
    fn entities_are_put_in_place() {
        for (entities, body, expected) in [
            ("<!ENTITY e 'x'>", "<a b='&e;'>&e;&amp;&#65;&f;</a>", "<a b='x'>x&amp;&#65;&f;</a>"),
            ("<!ENTITY e '<b c=\"&f;\"/>'><!ENTITY f '1'>", "<a>&e;</a>", "<a><b c=\"1\"/></a>"),
            ("<!ENTITY e '\"x\"'>", "<a b=\"&e;\"/>", "<a b=\"&quot;x&quot;\"/>"),
            ("<!ENTITY e '&#60;b/>'>", "<a>&e;</a>", "<a><b/></a>"),
            ("<!ENTITY e '&#38;#60;b'>", "<a>&e;</a>", "<a>&#60;b</a>"),
            ("<!ENTITY e SYSTEM 'x'>", "<a>&e;</a>", "<a></a>"),
            ("<!ENTITY % e 'x'>", "<a>&e;</a>", "<a>&e;</a>"),
            ("<!ENTITY e 'x'>", "<a><![CDATA[&e;]]><!-- &e; --></a>", "<a><![CDATA[&e;]]><!-- &e; --></a>"),
            ("<!ENTITY lt '&#38;#60;'>", "<a>&lt;</a>", "<a>&lt;</a>"),
        ] {
            let text = format!("<!DOCTYPE a [{entities}\n]>{body}");
            assert_eq!(plain(&text), Ok((format!("\n{expected}"), None)), "{text}");
        }
        assert_eq!(plain("<a>&e;</a>"), Ok(("<a>&e;</a>".to_owned(), None)));
    }

    #[test]
    fn what_breaks_the_rules_is_reported() {
        for (entities, body) in [
            ("<!ENTITY e '<b>'>", "<a>&e;</b></a>"),
            ("<!ENTITY e '</a><a>'>", "<a>&e;</a>"),
            ("<!ENTITY e '<b/>'>", "<a b='&e;'/>"),
            ("<!ENTITY e '&#38;'>", "<a>&e;</a>"),
            ("<!ENTITY e '&#38;#6'>", "<a>&e;5;</a>"),
            ("<!ENTITY e '#65'>", "<a>&&e;;</a>"),
            ("<!ENTITY e '&#60;!--'>", "<a>&e;--></a>"),
            ("<!ENTITY e SYSTEM 'x'>", "<a b='&e;'/>"),
            ("<!ENTITY>", "<a/>"),
        ] {
            let (_, problem) = plain(&format!("<!DOCTYPE a [{entities}]>{body}")).unwrap();
            assert!(problem.is_some(), "{entities}");
        }
    }

    #[test]
    fn what_grows_is_refused_at_the_limit() {
        let sum = |count| format!("<!DOCTYPE a [<!ENTITY e '0123456789'>]><a>{}</a>", "&e;".repeat(count));
        assert!(plain(&sum(100)).is_ok());
        assert_eq!(plain(&sum(101)), Err("large entities"));
        let mut laughs = "<!ENTITY e0 '0123456789'>".to_owned();
        for level in 1..10 {
            laughs += &format!("<!ENTITY e{level} '{}'>", format!("&e{};", level - 1).repeat(10));
        }
        assert_eq!(plain(&format!("<!DOCTYPE a [{laughs}]><a>&e9;</a>")), Err("large entities"));
        assert_eq!(plain("<!DOCTYPE a [<!ENTITY e '&e;'>]><a>&e;</a>"), Err("deep entities"));
        let chain = |depth: usize| {
            let links: String = (1..depth).map(|n| format!("<!ENTITY e{n} '&e{};'>", n + 1)).collect();
            format!("<!DOCTYPE a [{links}<!ENTITY e{depth} 'x'>]><a>&e1;</a>")
        };
        assert_eq!(plain(&chain(DEPTH_MAX)).unwrap().0, "<a>x</a>");
        assert_eq!(plain(&chain(DEPTH_MAX + 1)), Err("deep entities"));
    }
}
