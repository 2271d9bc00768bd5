//! Document type definitions: what a document declares about its elements and attributes, and whether it conforms to
//! them.
//!
//! The internal subset is read first, so its declarations take precedence (XML 1.0, section 2.8). Parameter entities
//! are expanded within a budget before a declaration is parsed; external ones and the external subset are requested
//! from the caller.

mod content;
mod declare;
mod valid;

use std::collections::{HashMap, HashSet};

use self::content::ContentModel;
pub(super) use self::valid::check;
use super::doctype::{Doctype, DoctypeReader};

/// Maximum bytes of declarations, including expanded parameter entities.
const BYTES_MAX: usize = 8 << 20;

/// Maximum nesting of parameter entities and external parts.
const DEPTH_MAX: usize = 32;

/// Maximum number of external parts of a definition.
const PARTS_MAX: usize = 256;

/// Maximum number of declared attributes of an element.
const ATTRIBUTES_MAX: usize = 256;

/// Maximum number of values in an attribute's enumeration.
const TOKENS_MAX: usize = 512;

/// Maximum number of mistakes reported for a document.
pub(super) const MISTAKES_MAX: usize = 100;

/// Returns the text and name of an external part of a definition, given the name of the part that refers to it and its
/// system identifier.
pub type Fetch<'f> = dyn FnMut(Option<&str>, &str) -> Option<(String, String)> + 'f;

/// Declarations of a document.
#[derive(Debug, Default)]
pub(super) struct Dtd {
    /// Declared content of each element, as written until the element is first encountered.
    elements: HashMap<String, Declared>,
    attributes: HashMap<String, Vec<AttributeDeclaration>>,
    /// General entities; the first declaration of a name counts.
    pub(super) entities: HashMap<String, Entity>,
    pub(super) unparsed: HashSet<String>,
    notations: HashSet<String>,
    parameters: HashMap<String, Entity>,
    /// Mistakes in the definition.
    pub(super) mistakes: Vec<String>,
    /// System identifiers of external parts that could not be fetched.
    pub(super) missing: Vec<String>,
    bytes: usize,
    parts: usize,
    /// Number of transitions of the content models compiled so far.
    steps: usize,
}

/// Declared content of an element.
#[derive(Debug)]
enum Declared {
    Written(String),
    Known(ContentModel),
    /// The content model is invalid, which has been reported.
    Broken,
}

/// A declared entity.
#[derive(Debug)]
pub(super) enum Entity {
    /// The value; that of a general entity as written.
    Text(String),
    /// The name of the part that declares it, and its system identifier.
    Outside(Option<String>, String),
}

/// An attribute of an element.
#[derive(Debug)]
struct AttributeDeclaration {
    pub name: String,
    sort: Sort,
    is_required: bool,
    fixed: Option<String>,
}

/// Type of an attribute's values (production 54).
#[derive(Debug, PartialEq)]
enum Sort {
    Text,
    Id,
    /// References to IDs; whether several are allowed.
    Reference(bool),
    /// The same for unparsed entities.
    Entity(bool),
    /// The same for name tokens.
    Token(bool),
    /// One of these tokens.
    Listed(Vec<String>),
}

/// Why reading declarations stopped.
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

    /// Whether no element or attribute is declared.
    pub(super) fn is_empty(&self) -> bool {
        self.elements.is_empty() && self.attributes.is_empty()
    }

    /// Returns the attributes that are IDs, each after the name of its element.
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

/// Whether a text is a name (production 5, simplified).
fn is_name(text: &str) -> bool {
    let mut reader = DoctypeReader { text, at: 0 };
    reader.name().is_some() && reader.rest().is_empty()
}

/// Whether a text is a name token (production 7).
fn is_token(text: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '-' | '.') || !c.is_ascii();
    !text.is_empty() && text.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use rustix::time::{ClockId, clock_gettime};

    use super::*;

    /// Returns the mistakes of a definition in an external part.
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
            let start = clock_gettime(ClockId::ThreadCPUTime);
            let _ = mistakes(&format!("<!ENTITY % a ''>{text}"));
            let _ = mistakes(&format!("<!ELEMENT a {text}>"));
            assert!((clock_gettime(ClockId::ThreadCPUTime) - start).tv_sec < 10, "{piece}");
        }
    }
}
