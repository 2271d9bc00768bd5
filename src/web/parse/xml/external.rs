//! External entities: puts their texts into the document that refers to them.
//!
//! The texts come from the caller, which has them from the archive; nothing is loaded from here. The document stays a
//! document: for each entity that it refers to, a declaration with the text is written before its own declarations, of
//! which the first counts. So whatever reads the document expands it within the same budget.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::super::ParseLimits;
use super::doctype::Doctype;
use super::dtd::{Dtd, Entity, Fetch};
use super::entities::reference_name;
use super::pieces::{XmlPiece, XmlPieces};
use super::repair::is_predefined;

/// Maximum number of external entities whose texts are put into a document.
const ENTITIES_MAX: usize = 256;

/// Returns a document with declarations of the external entities that it refers to, and of entities that only an
/// external part of its definition declares, with the system identifiers of parts and entities that are missing. `None`
/// if it refers to none of either kind.
pub(in crate::parse) fn with_entities<'t>(
    text: &'t str,
    limits: &ParseLimits,
    fetch: &mut Fetch<'_>,
) -> Option<(Cow<'t, str>, Vec<String>)> {
    let doctype = Doctype::of(text);
    let declares_outside = doctype.system.is_some() || !doctype.external.is_empty();
    if doctype.is_broken || !declares_outside {
        return None;
    }
    let mut wanted = EntityNames::default();
    wanted.add(&text[doctype.range.end..]);
    // Most documents refer to entities that they declare themselves, or to none.
    let (mut inside, mut outside) = (0, false);
    while let Some(name) = wanted.names.get(inside).cloned() {
        match doctype.entities.get(name.as_str()) {
            Some(Some(value)) => wanted.add(value),
            _ => outside = true,
        }
        inside += 1;
    }
    outside.then(|| Loader { wanted, limits, fetch }.put(text, &doctype))
}

/// Names of entities that a text refers to, in order, each once.
#[derive(Default)]
struct EntityNames {
    names: Vec<String>,
    known: BTreeSet<String>,
    /// Those in attribute values, where external entities are not allowed (XML 1.0, section 4.4.4).
    in_tags: BTreeSet<String>,
}

impl EntityNames {
    fn add(&mut self, text: &str) {
        for piece in XmlPieces::of(text) {
            match piece {
                XmlPiece::Text(text) => self.references(text, false),
                XmlPiece::Start(tag) => self.references(tag.written, true),
                XmlPiece::Cdata(_) | XmlPiece::Opaque(_) | XmlPiece::End(_) => {}
            }
        }
    }

    fn references(&mut self, text: &str, is_tag: bool) {
        for at in memchr::memchr_iter(b'&', text.as_bytes()) {
            let Some(name) = reference_name(&text[at..]).filter(|name| !is_predefined(name)) else {
                continue;
            };
            if is_tag {
                self.in_tags.insert(name.to_owned());
            }
            if self.known.insert(name.to_owned()) {
                self.names.push(name.to_owned());
            }
        }
    }
}

struct Loader<'a, 'f> {
    wanted: EntityNames,
    limits: &'a ParseLimits,
    fetch: &'a mut Fetch<'f>,
}

impl Loader<'_, '_> {
    fn put<'t>(mut self, text: &'t str, doctype: &Doctype<'_>) -> (Cow<'t, str>, Vec<String>) {
        let mut dtd = Dtd::of(doctype, self.fetch);
        let mut missing = std::mem::take(&mut dtd.missing);
        let (mut written, mut loaded, mut next) = (String::new(), 0, 0);
        while let Some(name) = self.wanted.names.get(next).cloned() {
            next += 1;
            match dtd.entities.get(&name) {
                Some(Entity::Text(value)) => {
                    self.wanted.add(value);
                    if !doctype.entities.contains_key(name.as_str()) {
                        declare(&name, value, false, &mut written);
                    }
                }
                Some(Entity::Outside(..)) if self.wanted.in_tags.contains(&name) => {}
                Some(Entity::Outside(base, system)) if !dtd.unparsed.contains(&name) => {
                    let is_allowed = loaded < ENTITIES_MAX;
                    let room = self.limits.xml_entity_bytes_max.saturating_sub(written.len());
                    let found = is_allowed.then(|| (self.fetch)(base.as_deref(), system)).flatten();
                    match found.filter(|(_, text)| text.len() <= room) {
                        Some((_, text)) => {
                            loaded += 1;
                            let text = without_declaration(&text);
                            self.wanted.add(text);
                            declare(&name, text, true, &mut written);
                        }
                        None => missing.push(system.clone()),
                    }
                }
                _ => {}
            }
        }
        let mut seen = BTreeSet::new();
        missing.retain(|system| seen.insert(system.clone()));
        if written.is_empty() {
            return (Cow::Borrowed(text), missing);
        }
        let (at, before, after) = match doctype.subset_at {
            Some(at) => (at, "", ""),
            None => (doctype.range.end - 1, " [", "]"),
        };
        (Cow::Owned([&text[..at], before, &written, after, &text[at..]].concat()), missing)
    }
}

/// Returns the text of an external entity without its text declaration (XML 1.0, section 4.3.1).
fn without_declaration(text: &str) -> &str {
    let inside = text.strip_prefix("<?xml").filter(|inside| inside.starts_with(|c: char| c.is_whitespace()));
    inside.and_then(|inside| inside.split_once("?>")).map_or(text, |(_, text)| text)
}

/// Writes the declaration of an entity in one line, so that the lines of the document keep their numbers. `is_outside`
/// is whether the text is that of an external entity, whose character references stay references.
fn declare(name: &str, text: &str, is_outside: bool, written: &mut String) {
    written.extend(["<!ENTITY ", name, " \""]);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' => written.push_str("&#34;"),
            '%' => written.push_str("&#37;"),
            '&' if is_outside && characters.peek() == Some(&'#') => written.push_str("&#38;"),
            // A line ends with one character (section 2.11).
            '\r' if characters.peek() == Some(&'\n') => {}
            '\r' | '\n' => written.push_str("&#10;"),
            other => written.push(other),
        }
    }
    written.push_str("\">");
}

#[cfg(test)]
mod tests {
    use super::super::entities::Plain;
    use super::*;

    /// Expands a document whose external parts are given by their system identifiers; returns what is missing too.
    fn expanded(text: &str, parts: &[(&str, &str)], limits: &ParseLimits) -> (String, Vec<String>) {
        let mut fetch = |_: Option<&str>, system: &str| {
            let part = parts.iter().find(|(name, _)| *name == system)?;
            Some((part.0.to_owned(), part.1.to_owned()))
        };
        let (text, missing) =
            with_entities(text, limits, &mut fetch).unwrap_or((Cow::Borrowed(text), Vec::new()));
        let plain = Plain::of(&text, &Doctype::of(&text), limits).map(|plain| plain.text.into_owned());
        (plain.unwrap_or_else(str::to_owned), missing)
    }

    #[test]
    fn texts_are_put_in_place() {
        let limits = ParseLimits::default();
        for (doctype, body, parts, expected) in [
            ("<!DOCTYPE a [<!ENTITY e SYSTEM 'e'>]>", "<a>&e;</a>", &[("e", "<b/>")][..], "<a><b/></a>"),
            (
                "<!DOCTYPE a [<!ENTITY e SYSTEM 'e'>]>",
                "<a>&e;</a>",
                &[("e", "<?xml version='1.0'?><b c=\"%d\">&#60;&amp;</b>\r\n")],
                "<a><b c=\"%d\">&#60;&amp;</b>\n</a>",
            ),
            // Entities of entities, and of a definition.
            (
                "<!DOCTYPE a [<!ENTITY e SYSTEM 'e'><!ENTITY f SYSTEM 'f'>]>",
                "<a>&e;</a>",
                &[("e", "1&f;"), ("f", "2")],
                "<a>12</a>",
            ),
            ("<!DOCTYPE a SYSTEM 'd'>", "<a b='&e;'>&e;</a>", &[("d", "<!ENTITY e 'x'>")], "<a b='x'>x</a>"),
            (
                "<!DOCTYPE a SYSTEM 'd' [<!ENTITY e 'own &f;'>]>",
                "<a>&e;</a>",
                &[("d", "<!ENTITY e 'x'><!ENTITY f SYSTEM 'f'>"), ("f", "<b>f</b>")],
                "<a>own <b>f</b></a>",
            ),
            (
                "<!DOCTYPE a [<!ENTITY % d SYSTEM 'd'> %d;]>",
                "<a>&e;</a>",
                &[("d", "<!ENTITY e '<b c=\"1\"/>'>")],
                "<a><b c=\"1\"/></a>",
            ),
        ] {
            let text = format!("{doctype}{body}");
            assert_eq!(expanded(&text, parts, &limits), (expected.to_owned(), Vec::new()), "{text}");
        }
    }

    #[test]
    fn lines_keep_their_numbers_and_missing_texts_are_named() {
        let limits = ParseLimits::default();
        let text = "<!DOCTYPE a [\n<!ENTITY e SYSTEM 'e'>\n<!ENTITY f SYSTEM 'f'>\n]><a>&f;&e;</a>";
        assert_eq!(
            expanded(text, &[("e", "1")], &limits),
            ("\n\n\n<a>1</a>".to_owned(), vec!["f".to_owned()])
        );
        assert_eq!(expanded("<!DOCTYPE a SYSTEM 'd'><a>&e;</a>", &[], &limits).1, ["d"]);
        // An attribute must not refer to an external entity, nothing to an image, and what is not referred to is no
        // part.
        let text =
            "<!DOCTYPE a SYSTEM 'd' [<!ENTITY e SYSTEM 'e' NDATA png><!ENTITY f SYSTEM 'f'>]><a>&e;</a>";
        assert_eq!(expanded(text, &[("d", "")], &limits), ("<a></a>".to_owned(), Vec::new()));
        let mut never =
            |_: Option<&str>, _: &str| -> Option<(String, String)> { panic!("nothing is needed") };
        for text in
            ["<a>&e;</a>", "<!DOCTYPE a SYSTEM 'd'><a>&amp;</a>", "<!DOCTYPE a [<!ENTITY e '1'>]><a>&e;</a>"]
        {
            assert!(with_entities(text, &limits, &mut never).is_none(), "{text}");
        }
    }

    #[test]
    fn what_grows_is_refused_at_the_limit() {
        let limits = ParseLimits { xml_entity_bytes_max: 4000, ..ParseLimits::default() };
        let long = "x".repeat(4001);
        let text = "<!DOCTYPE a [<!ENTITY e SYSTEM 'e'>]><a>&e;</a>";
        assert_eq!(expanded(text, &[("e", &long)], &limits), ("<a></a>".to_owned(), vec!["e".to_owned()]));
        assert_eq!(expanded(text, &[("e", &long[..4000])], &limits).0, format!("<a>{}</a>", &long[..4000]));
        let itself = expanded(text, &[("e", "&e;")], &limits);
        assert_eq!(itself, ("deep entities".to_owned(), Vec::new()));
        let twice = format!("<!DOCTYPE a [<!ENTITY e SYSTEM 'e'>]><a>{}</a>", "&e;".repeat(5));
        assert_eq!(expanded(&twice, &[("e", &long[..1000])], &limits).0, "large entities");
        let many: String = (0..=ENTITIES_MAX).map(|n| format!("<!ENTITY e{n} SYSTEM 'e'>")).collect();
        let references: String = (0..=ENTITIES_MAX).map(|n| format!("&e{n};")).collect();
        let text = format!("<!DOCTYPE a [{many}]><a>{references}</a>");
        let (text, missing) = expanded(&text, &[("e", "1")], &ParseLimits::default());
        assert_eq!((text.len(), missing.len()), ("<a></a>".len() + ENTITIES_MAX, 1));
    }
}
