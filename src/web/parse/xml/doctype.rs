//! The document type declaration: its external parts and its entities.
//!
//! Nothing external is ever loaded from here: external subsets and entities are reported as links, which the crawler
//! fetches (or refuses to fetch) like any other, and [`super::external`] takes them from the archive. Only this module reads the declaration: the parser receives the
//! document without it.

use std::collections::HashMap;
use std::ops::Range;

use super::pieces::is_space;

/// A document type declaration and its internal subset.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Doctype<'a> {
    /// Declared name of the root element.
    pub(super) name: &'a str,
    /// Public identifier of the external subset.
    pub(super) public: Option<&'a str>,
    /// The internal subset, between its brackets.
    pub(super) subset: &'a str,
    /// Position of the internal subset in the text.
    pub(super) subset_at: Option<usize>,
    /// System identifier of the external subset.
    pub(super) system: Option<&'a str>,
    /// System identifiers of external entities, both parsed and parameter entities.
    pub(super) external: Vec<&'a str>,
    /// System identifiers of unparsed entities, such as images.
    pub(super) unparsed: Vec<&'a str>,
    /// General entities: the value of an internal one as written, none for an external one. The first declaration of a
    /// name takes precedence.
    pub(super) entities: HashMap<&'a str, Option<&'a str>>,
    /// Range of the declaration in the text; empty if there is none.
    pub(super) range: Range<usize>,
    /// Whether the declaration violates the syntax. What could be read of it counts.
    pub(super) is_broken: bool,
}

impl<'a> Doctype<'a> {
    /// Reads the declaration of a document, if it has one.
    pub(super) fn of(text: &'a str) -> Self {
        let mut doctype = Self::default();
        if let Some(start) = find_declaration(text) {
            let mut reader = DoctypeReader { text, at: start + START.len() };
            if doctype.read(&mut reader).is_none() {
                doctype.is_broken = true;
                reader.at = end_of_broken(text, start);
            }
            doctype.range = start..reader.at;
        }
        doctype
    }

    /// Reads production 28.
    fn read(&mut self, reader: &mut DoctypeReader<'a>) -> Option<()> {
        reader.some_space()?;
        self.name = reader.name()?;
        if reader.space() {
            if let Some((public, system)) = reader.external_id() {
                (self.public, self.system) = (public, Some(system));
            }
            reader.space();
        }
        if reader.eat("[") {
            let start = reader.at;
            self.subset(reader)?;
            self.subset = &reader.text[start..reader.at - 1];
            self.subset_at = Some(start);
            reader.space();
        }
        reader.eat(">").then_some(())
    }

    /// Reads production 28b.
    fn subset(&mut self, reader: &mut DoctypeReader<'a>) -> Option<()> {
        loop {
            reader.space();
            if reader.eat("]") {
                return Some(());
            }
            if reader.eat("<!--") {
                self.is_broken |= reader.past("-->")?.contains("--");
            } else if reader.eat("<?") {
                let instruction = reader.past("?>")?;
                self.is_broken |= instruction.starts_with("xml ") || instruction.starts_with(is_space);
            } else if reader.eat("<!ENTITY") {
                self.entity(reader)?;
            } else if reader.eat("<!ELEMENT") {
                reader.past(">")?;
            } else if reader.eat("<!ATTLIST") || reader.eat("<!NOTATION") {
                reader.past_declaration()?;
            } else if reader.eat("%") {
                reader.past(";")?;
            } else {
                return None;
            }
        }
    }

    /// Reads productions 70 to 76.
    fn entity(&mut self, reader: &mut DoctypeReader<'a>) -> Option<()> {
        reader.some_space()?;
        let is_parameter = reader.eat("%");
        if is_parameter {
            reader.some_space()?;
        }
        let name = reader.name()?;
        reader.some_space()?;
        let value = reader.quoted();
        if value.is_none() {
            let (_, system) = reader.external_id()?;
            if reader.space() && reader.eat("NDATA") {
                reader.some_space()?;
                reader.name()?;
                self.unparsed.push(system);
            } else {
                self.external.push(system);
            }
        }
        if !is_parameter {
            self.entities.entry(name).or_insert(value);
        }
        reader.space();
        reader.eat(">").then_some(())
    }
}

const START: &str = "<!DOCTYPE";

/// Returns the offset of `<!DOCTYPE`, which only space, comments and processing instructions may precede.
fn find_declaration(text: &str) -> Option<usize> {
    let mut reader = DoctypeReader { text, at: 0 };
    loop {
        reader.space();
        if reader.rest().starts_with(START) {
            return Some(reader.at);
        }
        if reader.eat("<!--") {
            reader.past("-->")?;
        } else if reader.eat("<?") {
            reader.past("?>")?;
        } else {
            return None;
        }
    }
}

/// Returns the assumed end of a malformed declaration: after its subset if there is one, else at the first `>`.
fn end_of_broken(text: &str, start: usize) -> usize {
    let rest = &text.as_bytes()[start..];
    let end = match memchr::memchr2(b'[', b'>', rest) {
        Some(at) if rest[at] == b'[' => memchr::memmem::find(rest, b"]>").map(|end| end + 1),
        found => found,
    };
    end.map_or(text.len(), |at| start + at + 1)
}

pub(super) struct DoctypeReader<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
}

impl<'a> DoctypeReader<'a> {
    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Skips space; returns whether there was any.
    pub(super) fn space(&mut self) -> bool {
        let rest = self.rest();
        let length = rest.len() - rest.trim_start_matches(is_space).len();
        self.at += length;
        length > 0
    }

    pub(super) fn some_space(&mut self) -> Option<()> {
        self.space().then_some(())
    }

    pub(super) fn eat(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        self.at += if found { word.len() } else { 0 };
        found
    }

    /// Returns the text before a mark, and skips both.
    pub(super) fn past(&mut self, mark: &str) -> Option<&'a str> {
        let rest = self.rest();
        let length = memchr::memmem::find(rest.as_bytes(), mark.as_bytes())?;
        self.at += length + mark.len();
        Some(&rest[..length])
    }

    pub(super) fn name(&mut self) -> Option<&'a str> {
        let rest = self.rest();
        let ends = |c: char| !c.is_alphanumeric() && !matches!(c, '_' | ':' | '-' | '.') && c.is_ascii();
        let name = &rest[..rest.find(ends).unwrap_or(rest.len())];
        self.at += name.len();
        let starts = |c: char| !c.is_ascii() || c.is_alphabetic() || matches!(c, '_' | ':');
        name.starts_with(starts).then_some(name)
    }

    pub(super) fn quoted(&mut self) -> Option<&'a str> {
        let rest = self.rest();
        let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        let end = rest[1..].find(quote)?;
        self.at += end + 2;
        Some(&rest[1..=end])
    }

    /// Reads `SYSTEM "x"` or `PUBLIC "p" "x"`; returns `p` and `x`.
    pub(super) fn external_id(&mut self) -> Option<(Option<&'a str>, &'a str)> {
        let public = if self.eat("PUBLIC") {
            self.some_space()?;
            Some(self.quoted()?)
        } else if self.eat("SYSTEM") {
            None
        } else {
            return None;
        };
        self.some_space()?;
        Some((public, self.quoted()?))
    }

    /// Skips past the `>` of a declaration, ignoring any inside quotes.
    pub(super) fn past_declaration(&mut self) -> Option<()> {
        loop {
            let rest = self.rest();
            let at = memchr::memchr3(b'>', b'"', b'\'', rest.as_bytes())?;
            self.at += at;
            if self.eat(">") {
                return Some(());
            }
            self.quoted()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subset_with_everything() {
        let text = r#"<?xml version="1.0"?><!-- <!DOCTYPE x> -->
            <!DOCTYPE book PUBLIC "-//OASIS//DTD DocBook XML V4.5//EN" 'http://d.example/docbookx.dtd' [
              <!-- <!ENTITY no "no"> --> <?pi ]> ?>
              <!ELEMENT a (#PCDATA)> <!ATTLIST a b CDATA ">">
              <!ENTITY copy "(c) >"> <!ENTITY copy "second">
              <!ENTITY chapter SYSTEM "chapter.xml">
              <!ENTITY % iso PUBLIC "ISO" "iso.ent"> %iso; <!ENTITY % copy "third">
              <!ENTITY logo SYSTEM "logo.png" NDATA png>
            ] ><book/>"#;
        let doctype = Doctype::of(text);
        assert_eq!(doctype.name, "book");
        assert_eq!(doctype.public, Some("-//OASIS//DTD DocBook XML V4.5//EN"));
        assert_eq!(doctype.system, Some("http://d.example/docbookx.dtd"));
        assert!(doctype.subset.ends_with("NDATA png>\n            "));
        assert_eq!(doctype.external, ["chapter.xml", "iso.ent"]);
        assert_eq!(doctype.unparsed, ["logo.png"]);
        let entities = [("copy", Some("(c) >")), ("chapter", None), ("logo", None)];
        assert_eq!(doctype.entities, HashMap::from(entities));
        assert_eq!(&text[doctype.range.end..], "<book/>");
        assert!(!doctype.is_broken);
    }

    #[test]
    fn no_declaration_and_broken_ones() {
        assert_eq!(Doctype::of("<a><!DOCTYPE b SYSTEM 'c'></a>"), Doctype::default());
        assert_eq!(Doctype::of("<!DOCTYPE a SYSTEM 'b'>").system, Some("b"));
        for (text, after) in [
            ("<!DOCTYPE", ""),
            ("<!DOCTYPE a [", ""),
            ("<!DOCTYPE a [<!ENTITY b 'c", ""),
            ("<!DOCTYPE a [<!ENTITY b 'c]><a/>", "<a/>"),
            ("<!DOCTYPE a [<!", ""),
            ("<!DOCTYPE a SYSTEM 'b><a/>", "<a/>"),
            ("<!DOCTYPE a [<!ATTLIST a b CDATA '>]><a/>", "<a/>"),
        ] {
            let doctype = Doctype::of(text);
            assert!(doctype.is_broken, "{text}");
            assert_eq!(&text[doctype.range.end..], after, "{text}");
        }
        let quote = "<!DOCTYPE a [<!ELEMENT a '><!ENTITY b 'c'>]><a/>";
        assert_eq!(Doctype::of(quote).entities, HashMap::from([("b", Some("c"))]));
    }
}
