//! Document type definitions: what a document declares of its elements and attributes, and whether it is as declared.
//!
//! The internal subset comes first, so what it declares counts (XML 1.0, section 2.8). Parameter entities are expanded within a
//! budget, before a declaration is read; external ones and the external subset are requested from the caller.

mod content;
mod declare;
mod valid;

use std::collections::{HashMap, HashSet};

use self::content::Content;
pub(super) use self::valid::check;
use super::doctype::{Doctype, Reader};

/// Bytes of declarations, including expanded parameter entities.
const BYTES_MAX: usize = 8 << 20;

/// Parameter entities and external parts inside one another.
const DEPTH_MAX: usize = 32;

/// External parts of a definition.
const PARTS_MAX: usize = 256;

/// Attributes of an element that are declared.
const ATTRIBUTES_MAX: usize = 256;

/// Values that an attribute may be one of.
const TOKENS_MAX: usize = 512;

/// Mistakes that are reported for a document.
pub(super) const MISTAKES_MAX: usize = 100;

/// Returns the text and name of an external part of a definition, given the name of the part that refers to it and its system identifier.
pub type Fetch<'f> = dyn FnMut(Option<&str>, &str) -> Option<(String, String)> + 'f;

/// What a document declares.
#[derive(Debug, Default)]
pub(super) struct Dtd {
    /// What each element is declared to hold, as written, or worked out when it is first met.
    elements: HashMap<String, Declared>,
    attributes: HashMap<String, Vec<Attribute>>,
    /// General entities: see [`Doctype::entities`].
    pub(super) entities: HashMap<String, Option<String>>,
    unparsed: HashSet<String>,
    notations: HashSet<String>,
    parameters: HashMap<String, Parameter>,
    /// What is wrong with it.
    pub(super) mistakes: Vec<String>,
    /// External parts that were not to be had.
    pub(super) missing: Vec<String>,
    bytes: usize,
    parts: usize,
    /// Steps of content models that were worked out.
    steps: usize,
}

/// What an element is declared to hold.
#[derive(Debug)]
enum Declared {
    Written(String),
    Known(Content),
    /// It cannot be followed, which was said.
    Broken,
}

/// A parameter entity.
#[derive(Debug)]
enum Parameter {
    Text(String),
    /// The name of the part that declares it, and its system identifier.
    Outside(Option<String>, String),
}

/// An attribute of an element.
#[derive(Debug)]
struct Attribute {
    name: String,
    sort: Sort,
    is_required: bool,
    fixed: Option<String>,
}

/// Of what sort the values of an attribute are (production 54).
#[derive(Debug, PartialEq)]
enum Sort {
    Text,
    Id,
    /// The names of IDs; whether several are allowed.
    Reference(bool),
    /// The same of unparsed entities.
    Entity(bool),
    /// The same of name tokens.
    Token(bool),
    /// One of these.
    Listed(Vec<String>),
}

/// Why declarations cannot be read.
#[derive(Debug, PartialEq, Eq)]
enum Stop {
    Broken,
    TooMuch,
}

impl Dtd {
    /// Reads the definition of a document.
    pub(super) fn of(doctype: &Doctype<'_>, fetch: &mut Fetch<'_>) -> Self {
        let mut dtd = Self::default();
        let read = dtd.read(doctype.subset, None, 0, fetch).and_then(|()| match doctype.system {
            Some(system) => dtd.outside(None, system, 0, fetch),
            None => Ok(()),
        });
        let stopped = match read {
            Ok(()) => return dtd,
            Err(Stop::Broken) => "a declaration is broken or too long; what follows it was not read",
            Err(Stop::TooMuch) => "its definition is too large to be checked",
        };
        dtd.report(stopped.to_owned());
        dtd
    }

    /// Whether it declares any element or attribute.
    pub(super) fn is_empty(&self) -> bool {
        self.elements.is_empty() && self.attributes.is_empty()
    }

    /// The attributes that are IDs, after the names of their elements.
    pub(super) fn ids(&self) -> HashSet<(&str, &str)> {
        let each = self.attributes.iter().flat_map(|(element, attributes)| {
            let ids = attributes.iter().filter(|attribute| attribute.sort == Sort::Id);
            ids.map(move |attribute| (element.as_str(), attribute.name.as_str()))
        });
        each.collect()
    }

    fn report(&mut self, mistake: String) {
        if self.mistakes.len() < MISTAKES_MAX {
            self.mistakes.push(mistake);
        }
    }
}

/// Production 5, as far as it matters here.
fn is_name(text: &str) -> bool {
    let mut reader = Reader { text, at: 0 };
    reader.name().is_some() && reader.rest().is_empty()
}

/// Production 7.
fn is_token(text: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '-' | '.') || !c.is_ascii();
    !text.is_empty() && text.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with a definition outside of the document.
    fn mistakes(outside: &str) -> Vec<String> {
        let mut fetch = |_: Option<&str>, system: &str| {
            Some((system.to_owned(), outside.to_owned())).filter(|_| system == "d")
        };
        Dtd::of(&Doctype::of("<!DOCTYPE a SYSTEM 'd'><a/>"), &mut fetch).mistakes
    }

    fn is_too_much(outside: &str) -> bool {
        match mistakes(outside).as_slice() {
            [] => false,
            [only] => only.contains("too la") || only.contains("too lo"),
            more => panic!("{more:?}"),
        }
    }

    #[test]
    fn what_grows_is_refused_at_the_limit() {
        let attributes = |count: usize| {
            let each = (0..count).map(|number| format!("x{number} CDATA #IMPLIED "));
            format!("<!ATTLIST a {}>", each.collect::<String>())
        };
        assert!(!is_too_much(&attributes(ATTRIBUTES_MAX)) && is_too_much(&attributes(ATTRIBUTES_MAX + 1)));
        let values = |count: usize| format!("<!ATTLIST a x ({}) #IMPLIED>", vec!["b"; count].join("|"));
        assert!(!is_too_much(&values(TOKENS_MAX)) && is_too_much(&values(TOKENS_MAX + 1)));
        let sections = |depth: usize| format!("{}{}", "<![IGNORE[".repeat(depth), "]]>".repeat(depth));
        assert!(!is_too_much(&sections(DEPTH_MAX)) && is_too_much(&sections(DEPTH_MAX + 1)));
        assert!(is_too_much("<!ENTITY % e '%e;'>%e;") && is_too_much("<!ENTITY % e SYSTEM 'd'>%e;"));
        let long = |bytes: usize| format!("<!--{}-->", "x".repeat(bytes - 7));
        assert!(!is_too_much(&long(BYTES_MAX)) && is_too_much(&long(BYTES_MAX + 1)));
        let mut laughs = "<!ENTITY % e0 'xxxxxxxxxx'>".to_owned();
        for level in 1..9 {
            laughs += &format!("<!ENTITY % e{level} '{}'>", format!("%e{};", level - 1).repeat(10));
        }
        assert!(is_too_much(&laughs));
        let parts = |count: usize| {
            (0..count).map(|part| format!("<!ENTITY % p{part} SYSTEM 'p'>%p{part};")).collect::<String>()
        };
        assert!(!is_too_much(&parts(PARTS_MAX - 1)) && is_too_much(&parts(PARTS_MAX)));
        assert_eq!(mistakes(&"%no;".repeat(MISTAKES_MAX + 1)).len(), MISTAKES_MAX);
    }

    #[test]
    fn what_would_take_long_does_not() {
        for piece in ["%", "%a", "<![", "<!", "<!ELEMENT a (", "<!ATTLIST a x (a|", "<![INCLUDE["] {
            let text = piece.repeat(2_000_000 / piece.len());
            let start = std::time::Instant::now();
            let _ = mistakes(&format!("<!ENTITY % a ''>{text}"));
            let _ = mistakes(&format!("<!ELEMENT a {text}>"));
            assert!(start.elapsed().as_secs() < 10, "{piece}");
        }
    }
}
