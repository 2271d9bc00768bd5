//! Reads declarations one by one, and expands parameter entities in them.

use std::collections::hash_map::Entry;

use super::super::doctype::DoctypeReader;
use super::super::entities::replacement;
use super::{
    ATTRIBUTES_MAX, AttributeDeclaration, BYTES_MAX, DEPTH_MAX, Declared, Dtd, Entity, Fetch, PARTS_MAX,
    Sort, Stop, TOKENS_MAX, is_token,
};

impl Dtd {
    /// Reads an external part.
    pub(super) fn outside(
        &mut self,
        base: Option<&str>,
        system: &str,
        depth: usize,
        fetch: &mut Fetch<'_>,
    ) -> Result<(), Stop> {
        self.parts += 1;
        if self.parts > PARTS_MAX {
            return Err(Stop::TooMuch);
        }
        match fetch(base, system) {
            Some((name, text)) => self.read(&text, Some(&name), depth + 1, fetch),
            None => {
                self.missing.push(system.to_owned());
                Ok(())
            }
        }
    }

    /// Reads the part named `base` (productions 28b and 31).
    pub(super) fn read(
        &mut self,
        text: &str,
        base: Option<&str>,
        depth: usize,
        fetch: &mut Fetch<'_>,
    ) -> Result<(), Stop> {
        self.spend(text.len(), depth)?;
        let mut reader = DoctypeReader { text, at: 0 };
        loop {
            reader.space();
            if reader.rest().is_empty() {
                return Ok(());
            }
            if reader.eat("<!--") {
                reader.past("-->").ok_or(Stop::Broken)?;
            } else if reader.eat("<?") {
                reader.past("?>").ok_or(Stop::Broken)?;
            } else if reader.eat("<![") {
                let inside = section(&mut reader).ok_or(Stop::Broken)?;
                let (keyword, inside) = inside.split_once('[').ok_or(Stop::Broken)?;
                if self.with_parameters(keyword, depth)?.trim() == "INCLUDE" {
                    self.read(inside, base, depth + 1, fetch)?;
                }
            } else if reader.eat("%") {
                let name = reader.name().filter(|_| reader.eat(";")).ok_or(Stop::Broken)?;
                match self.parameters.get(name) {
                    Some(Entity::Text(text)) => {
                        let text = text.clone();
                        self.read(&text, base, depth + 1, fetch)?;
                    }
                    Some(Entity::Outside(base, system)) => {
                        let (base, system) = (base.clone(), system.clone());
                        self.outside(base.as_deref(), &system, depth, fetch)?;
                    }
                    None => self.report(format!("the parameter entity {name} is not declared")),
                }
            } else {
                let start = reader.at;
                reader.past_declaration().ok_or(Stop::Broken)?;
                let written = self.with_parameters(&text[start..reader.at - 1], depth)?;
                self.declaration(&written, base).ok_or(Stop::Broken)?;
            }
        }
    }

    fn spend(&mut self, bytes: usize, depth: usize) -> Result<(), Stop> {
        self.bytes += bytes;
        if self.bytes > BYTES_MAX || depth > DEPTH_MAX { Err(Stop::TooMuch) } else { Ok(()) }
    }

    /// Returns a declaration with its parameter entities expanded, except inside attribute values.
    fn with_parameters(&mut self, written: &str, depth: usize) -> Result<String, Stop> {
        self.spend(written.len(), depth)?;
        let is_list = written.starts_with("<!ATTLIST");
        let mut whole = String::with_capacity(written.len());
        let mut quote = None;
        let mut rest = written;
        while let Some(next) = rest.chars().next() {
            match (next, quote) {
                ('%', within) if !(is_list && within.is_some()) => {
                    let mut reference = DoctypeReader { text: rest, at: 1 };
                    let name = reference.name().filter(|_| reference.eat(";"));
                    let value = match name.and_then(|name| self.parameters.get(name)) {
                        Some(Entity::Text(value)) => Some((value.clone(), reference.rest())),
                        _ => None,
                    };
                    if let Some((value, after)) = value {
                        let value = self.with_parameters(&value, depth + 1)?;
                        let space = if within.is_some() { "" } else { " " };
                        whole.extend([space, &value, space]);
                        rest = after;
                        continue;
                    }
                }
                ('"' | '\'', None) => quote = Some(next),
                _ if quote == Some(next) => quote = None,
                _ => {}
            }
            whole.push(next);
            rest = &rest[next.len_utf8()..];
        }
        Ok(whole)
    }

    fn declaration(&mut self, written: &str, base: Option<&str>) -> Option<()> {
        let mut reader = DoctypeReader { text: written, at: 0 };
        match () {
            () if reader.eat("<!ELEMENT") => self.element(&mut reader),
            () if reader.eat("<!ATTLIST") => self.attributes(&mut reader),
            () if reader.eat("<!ENTITY") => self.entity(&mut reader, base),
            () if reader.eat("<!NOTATION") => {
                reader.some_space()?;
                self.notations.insert(reader.name()?.to_owned());
                Some(())
            }
            () => None,
        }
    }

    /// Reads production 45.
    fn element(&mut self, reader: &mut DoctypeReader<'_>) -> Option<()> {
        reader.some_space()?;
        let name = reader.name()?;
        reader.some_space()?;
        match self.elements.entry(name.to_owned()) {
            Entry::Vacant(place) => {
                place.insert(Declared::Written(reader.rest().to_owned()));
            }
            Entry::Occupied(_) => self.report(format!("the element {name} is declared twice")),
        }
        Some(())
    }

    /// Reads production 52.
    fn attributes(&mut self, reader: &mut DoctypeReader<'_>) -> Option<()> {
        reader.some_space()?;
        let element = reader.name()?;
        loop {
            reader.space();
            if reader.rest().is_empty() {
                return Some(());
            }
            let name = reader.name()?;
            reader.some_space()?;
            let sort = sort(reader)?;
            reader.space();
            let is_required = reader.eat("#REQUIRED");
            let is_fixed = !is_required && reader.eat("#FIXED");
            reader.space();
            let default = match is_required || !is_fixed && reader.eat("#IMPLIED") {
                true => None,
                false => Some(reader.quoted()?),
            };
            self.attribute(element, name, sort, is_required, default, is_fixed)?;
        }
    }

    /// Adds an attribute; an earlier declaration of it takes precedence.
    fn attribute(
        &mut self,
        element: &str,
        name: &str,
        sort: Sort,
        is_required: bool,
        default: Option<&str>,
        is_fixed: bool,
    ) -> Option<()> {
        let known = self.attributes.entry(element.to_owned()).or_default();
        if known.iter().any(|attribute| attribute.name == name) {
            return Some(());
        }
        if known.len() >= ATTRIBUTES_MAX {
            return None;
        }
        let default = default.map(|default| sort.normal(default));
        let has_two = sort == Sort::Id && known.iter().any(|attribute| attribute.sort == Sort::Id);
        let is_id_given = sort == Sort::Id && default.is_some();
        let is_wrong = default.as_ref().is_some_and(|default| !sort.fits(default));
        let fixed = default.filter(|_| is_fixed);
        known.push(AttributeDeclaration { name: name.to_owned(), sort, is_required, fixed });
        for (is_so, what) in [
            (has_two, "is a second ID"),
            (is_id_given, "is an ID and may have no default"),
            (is_wrong, "has a default that is not a value of it"),
        ] {
            if is_so {
                self.report(format!("the attribute {name} of {element} {what}"));
            }
        }
        Some(())
    }

    /// Reads productions 70 to 76.
    fn entity(&mut self, reader: &mut DoctypeReader<'_>, base: Option<&str>) -> Option<()> {
        reader.some_space()?;
        let is_parameter = reader.eat("%");
        reader.space();
        let name = reader.name()?.to_owned();
        reader.some_space()?;
        let value = reader.quoted();
        let system = match value {
            Some(_) => "",
            None => reader.external_id()?.1,
        };
        let outside = || Entity::Outside(base.map(str::to_owned), system.to_owned());
        if is_parameter {
            let value = value.map(|value| Entity::Text(replacement(value).into_owned()));
            self.parameters.entry(name).or_insert_with(|| value.unwrap_or_else(outside));
            return Some(());
        }
        if reader.space() && reader.eat("NDATA") {
            self.unparsed.insert(name.clone());
        }
        let value = value.map(|value| Entity::Text(value.to_owned()));
        self.entities.entry(name).or_insert_with(|| value.unwrap_or_else(outside));
        Some(())
    }
}

/// Returns the contents between `<![` and `]]>`, including nested sections.
fn section<'a>(reader: &mut DoctypeReader<'a>) -> Option<&'a str> {
    let start = reader.at;
    let mut depth = 1;
    // Every open section costs a search for its end.
    while (1..=DEPTH_MAX).contains(&depth) {
        let rest = reader.rest();
        let end = memchr::memmem::find(rest.as_bytes(), b"]]>")?;
        match memchr::memmem::find(&rest.as_bytes()[..end], b"<![") {
            Some(inner) => {
                reader.at += inner + 3;
                depth += 1;
            }
            None => {
                reader.at += end + 3;
                depth -= 1;
            }
        }
    }
    (depth == 0).then(|| &reader.text[start..reader.at - 3])
}

/// Parses productions 54 to 59.
fn sort(reader: &mut DoctypeReader<'_>) -> Option<Sort> {
    // Of two words with the same beginning, the longer one comes first.
    const WORDS: [(&str, Sort); 8] = [
        ("CDATA", Sort::Text),
        ("IDREFS", Sort::Reference(true)),
        ("IDREF", Sort::Reference(false)),
        ("ID", Sort::Id),
        ("ENTITIES", Sort::Entity(true)),
        ("ENTITY", Sort::Entity(false)),
        ("NMTOKENS", Sort::Token(true)),
        ("NMTOKEN", Sort::Token(false)),
    ];
    for (word, sort) in WORDS {
        if reader.eat(word) {
            return Some(sort);
        }
    }
    if reader.eat("NOTATION") {
        reader.some_space()?;
    }
    let listed = reader.eat("(").then(|| reader.past(")")).flatten()?;
    let listed: Vec<String> =
        listed.split('|').take(TOKENS_MAX + 1).map(|token| token.trim().to_owned()).collect();
    let is_listed = listed.len() <= TOKENS_MAX && listed.iter().all(|token| is_token(token));
    is_listed.then_some(Sort::Listed(listed))
}
