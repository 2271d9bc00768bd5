//! The document type declaration: what lies outside the document, and what its entities would come to.
//!
//! Nothing outside is ever loaded from here: external subsets and entities are given as links, which the crawler fetches
//! (or refuses to) like any other.

use std::collections::HashMap;

/// A document type declaration and its internal subset.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Doctype<'a> {
    /// The system identifier of the external subset.
    pub(super) system: Option<&'a str>,
    /// System identifiers of external entities, parsed and parameter ones.
    pub(super) external: Vec<&'a str>,
    /// System identifiers of unparsed entities, as images.
    pub(super) unparsed: Vec<&'a str>,
    /// Internal entities: name and replacement text as written. The first declaration of a name counts.
    pub(super) entities: HashMap<&'a str, &'a str>,
    /// Where the declaration ends; 0 when there is none.
    pub(super) end: usize,
}

impl<'a> Doctype<'a> {
    /// Reads the declaration of a document, if it has one. A broken one gives what came before the break.
    pub(super) fn of(text: &'a str) -> Self {
        let mut doctype = Self::default();
        if let Some(start) = find_declaration(text) {
            let mut reader = Reader { text, at: start + "<!DOCTYPE".len() };
            doctype.read(&mut reader);
            doctype.end = reader.at.min(text.len());
        }
        doctype
    }

    fn read(&mut self, reader: &mut Reader<'a>) -> Option<()> {
        reader.space();
        reader.name();
        self.system = reader.external_id();
        reader.space();
        if reader.eat("[") {
            self.subset(reader)?;
        }
        reader.past(">")
    }

    fn subset(&mut self, reader: &mut Reader<'a>) -> Option<()> {
        loop {
            reader.space();
            if reader.eat("]") {
                return Some(());
            }
            if reader.eat("<!--") {
                reader.past("-->")?;
            } else if reader.eat("<?") {
                reader.past("?>")?;
            } else if reader.eat("<!ENTITY") {
                self.entity(reader)?;
            } else if reader.eat("<!") {
                reader.past_declaration()?;
            } else if reader.eat("%") {
                reader.past(";")?;
            } else {
                return None;
            }
        }
    }

    fn entity(&mut self, reader: &mut Reader<'a>) -> Option<()> {
        reader.space();
        let is_parameter = reader.eat("%");
        reader.space();
        let name = reader.name();
        reader.space();
        if let Some(value) = reader.quoted() {
            if !is_parameter {
                self.entities.entry(name).or_insert(value);
            }
        } else if let Some(system) = reader.external_id() {
            reader.space();
            if reader.eat("NDATA") { self.unparsed.push(system) } else { self.external.push(system) }
        }
        reader.past_declaration()
    }

    /// The bytes that all references in a text to internal entities come to, with those inside them.
    pub(super) fn expanded_bytes(&self, text: &str) -> u64 {
        if self.entities.is_empty() {
            return 0;
        }
        let mut sizes = HashMap::new();
        references(text).map(|name| self.size(name, &mut sizes, 0)).fold(0, u64::saturating_add)
    }

    /// The bytes that an entity comes to. Those that contain themselves, or lie deeper than the parser goes along, come to
    /// more than any limit.
    fn size(&self, name: &'a str, sizes: &mut HashMap<&'a str, u64>, depth: u32) -> u64 {
        /// The parser takes references nested deeper for a loop, and stops.
        const DEPTH_MAX: u32 = 10;
        let Some((&name, value)) = self.entities.get_key_value(name) else { return 0 };
        if let Some(&size) = sizes.get(name) {
            return size;
        }
        if depth > DEPTH_MAX {
            return u64::MAX;
        }
        sizes.insert(name, u64::MAX);
        let own = value.len() as u64;
        let size =
            references(value).map(|inner| self.size(inner, sizes, depth + 1)).fold(own, u64::saturating_add);
        sizes.insert(name, size);
        size
    }
}

/// The names of the entities that a text refers to.
pub(super) fn references(text: &str) -> impl Iterator<Item = &str> {
    /// A longer name is none that anybody declares.
    const NAME_BYTES_MAX: usize = 256;
    memchr::memchr_iter(b'&', text.as_bytes()).filter_map(|at| {
        let rest = &text.as_bytes()[at + 1..];
        let end = memchr::memchr(b';', &rest[..rest.len().min(NAME_BYTES_MAX)])?;
        text.get(at + 1..at + 1 + end).filter(|name| !name.starts_with('#'))
    })
}

/// Where `<!DOCTYPE` begins: behind nothing but space, comments and instructions.
fn find_declaration(text: &str) -> Option<usize> {
    let mut reader = Reader { text, at: 0 };
    loop {
        reader.space();
        if reader.rest().starts_with("<!DOCTYPE") {
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

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_ascii_start().len();
    }

    fn eat(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn past(&mut self, mark: &str) -> Option<()> {
        let found = memchr::memmem::find(self.rest().as_bytes(), mark.as_bytes());
        self.at = found.map_or(self.text.len(), |at| self.at + at + mark.len());
        found.map(|_| ())
    }

    fn name(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c: char| c.is_ascii_whitespace() || matches!(c, '>' | '[' | '"' | '\''));
        let name = &rest[..end.unwrap_or(rest.len())];
        self.at += name.len();
        name
    }

    fn quoted(&mut self) -> Option<&'a str> {
        let rest = self.rest();
        let quote = rest.chars().next().filter(|&c| c == '"' || c == '\'')?;
        let end = rest[1..].find(quote)?;
        self.at += end + 2;
        Some(&rest[1..=end])
    }

    /// `SYSTEM "x"` or `PUBLIC "p" "x"`: gives `x`.
    fn external_id(&mut self) -> Option<&'a str> {
        self.space();
        if self.eat("PUBLIC") {
            self.space();
            self.quoted()?;
        } else if !self.eat("SYSTEM") {
            return None;
        }
        self.space();
        self.quoted()
    }

    /// To behind the `>` of a declaration, outside of quotes.
    fn past_declaration(&mut self) -> Option<()> {
        loop {
            let rest = self.rest();
            let at = rest.find(['>', '"', '\''])?;
            self.at += at;
            if rest[at..].starts_with('>') {
                self.at += 1;
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
              <!ENTITY % iso PUBLIC "ISO" "iso.ent"> %iso;
              <!ENTITY logo SYSTEM "logo.png" NDATA png>
            ] ><book/>"#;
        let doctype = Doctype::of(text);
        assert_eq!(doctype.system, Some("http://d.example/docbookx.dtd"));
        assert_eq!(doctype.external, ["chapter.xml", "iso.ent"]);
        assert_eq!(doctype.unparsed, ["logo.png"]);
        assert_eq!(doctype.entities, HashMap::from([("copy", "(c) >")]));
        assert_eq!(&text[doctype.end..], "<book/>");
    }

    #[test]
    fn no_declaration_and_broken_ones() {
        assert_eq!(Doctype::of("<a><!DOCTYPE b SYSTEM 'c'></a>"), Doctype::default());
        assert_eq!(Doctype::of("<!DOCTYPE a SYSTEM 'b'>").system, Some("b"));
        for text in [
            "<!DOCTYPE",
            "<!DOCTYPE a [",
            "<!DOCTYPE a [<!ENTITY b 'c",
            "<!DOCTYPE a [<!",
            "<!DOCTYPE a SYSTEM 'b",
        ] {
            assert!(Doctype::of(text).end <= text.len());
        }
    }

    #[test]
    fn the_size_of_a_bomb_is_known_before_it_goes_off() {
        let mut text = "<!DOCTYPE a [<!ENTITY e0 '0123456789'>".to_owned();
        for level in 1..10 {
            text += &format!("<!ENTITY e{level} '{}'>", format!("&e{};", level - 1).repeat(10));
        }
        text += &format!("<!ENTITY loop '{}'>]><a>&e9;&#65;&unknown;</a>", "&loop;".repeat(10_000));
        let doctype = Doctype::of(&text);
        assert!(doctype.expanded_bytes(&text[doctype.end..]) > 10_u64.pow(10));
        assert_eq!(doctype.expanded_bytes("&e1;&e1;"), 2 * (40 + 100));
        assert_eq!(doctype.expanded_bytes("&loop;"), u64::MAX);
        assert_eq!(Doctype::default().expanded_bytes(&text), 0);
    }
}
