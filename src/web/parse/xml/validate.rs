//! Mistakes of an XML document: where it is not well-formed, and where it does not conform to its definition.

use roxmltree::Error;

use super::super::ParseLimits;
use super::doctype::Doctype;
use super::dtd::{self, Dtd, Entity, Fetch};
use super::entities::Plain;
use super::external::with_entities;
use super::{PROBLEM_BYTES_MAX, offset_of, one_line, parse};

/// A mistake in an XML document. Positions refer to the document after its entities are expanded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XmlMistake {
    /// Line, from 1.
    pub line: usize,
    /// Character in the line, from 1.
    pub column: usize,
    /// Whether the mistake makes the document not well-formed.
    pub is_broken: bool,
    /// Description of the mistake.
    pub what: String,
}

/// Result of validating an XML document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validation {
    /// Mistakes in order, up to the limit.
    pub mistakes: Vec<XmlMistake>,
    /// External parts of the definition, and external entities, that were missing; if any are, only well-formedness was
    /// checked.
    pub missing: Vec<String>,
    /// Whether the document was checked against a definition.
    pub is_checked: bool,
}

/// Whether an XML document conforms to its document type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// It conforms.
    Valid,
    /// It does not conform, or is not even well-formed.
    Invalid,
    /// It has no known mistakes, but declares nothing or some declarations could not be fetched.
    Unknown,
}

impl Validity {
    /// All values.
    pub const EACH: [Self; 3] = [Self::Valid, Self::Invalid, Self::Unknown];

    /// Name in queries and answers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Valid => "yes",
            Self::Invalid => "no",
            Self::Unknown => "unknown",
        }
    }
}

impl Validation {
    /// Returns the validity of the document.
    #[must_use]
    pub fn validity(&self) -> Validity {
        match (self.mistakes.is_empty(), self.is_checked) {
            (false, _) => Validity::Invalid,
            (true, true) => Validity::Valid,
            (true, false) => Validity::Unknown,
        }
    }

    fn add(&mut self, text: &str, is_broken: bool, found: impl IntoIterator<Item = (usize, String)>) {
        // The mistakes are in order of their offsets.
        let (mut line, mut start, mut counted) = (1, 0, 0);
        for (at, what) in found {
            let at = text.floor_char_boundary(at);
            let between = &text[counted.min(at)..at];
            line += memchr::memchr_iter(b'\n', between.as_bytes()).count();
            start = between.rfind('\n').map_or(start, |end| counted + end + 1);
            counted = at;
            let column = text[start..at].chars().count() + 1;
            let what = one_line(&what, PROBLEM_BYTES_MAX);
            self.mistakes.push(XmlMistake { line, column, is_broken, what });
        }
    }
}

/// Validates a document; `had_errors` is whether some of its bytes were invalid.
pub(crate) fn validate(
    text: &str,
    had_errors: bool,
    limits: &ParseLimits,
    fetch: &mut Fetch<'_>,
) -> Validation {
    let mut result = Validation::default();
    let outside = with_entities(text, limits, fetch);
    if let Some((_, missing)) = &outside {
        result.missing.clone_from(missing);
    }
    let text = outside.as_ref().map_or(text, |(text, _)| &**text);
    if had_errors {
        result.add(text, true, [(0, "not all of its bytes are in its encoding".to_owned())]);
    }
    let mut doctype = Doctype::of(text);
    let start = doctype.range.start;
    if doctype.is_broken {
        result.add(text, true, [(start, "the document type declaration is broken".to_owned())]);
        return result;
    }
    let mut dtd = Dtd::of(&doctype, fetch);
    for missing in std::mem::take(&mut dtd.missing) {
        if !result.missing.contains(&missing) {
            result.missing.push(missing);
        }
    }
    let entities = std::mem::take(&mut dtd.entities);
    for (name, value) in &entities {
        let value = if let Entity::Text(value) = value { Some(value.as_str()) } else { None };
        doctype.entities.entry(name).or_insert(value);
    }
    let plain = match Plain::of(text, &doctype, limits) {
        Ok(plain) => plain,
        Err(what) => {
            result.add(text, true, [(start, format!("it has too {what} to be read"))]);
            return result;
        }
    };
    if let Some(what) = plain.problem {
        result.add(text, true, [(start, what.to_owned())]);
        return result;
    }
    match parse(&plain.text, limits) {
        Ok(Ok(_)) => {}
        // The entity may be declared in a part that was not read.
        Ok(Err(Error::UnknownEntityReference(..))) if !result.missing.is_empty() => return result,
        Ok(Err(error)) => {
            result.add(&plain.text, true, [(offset_of(&plain.text, &error), error.to_string())]);
            return result;
        }
        Err(problem) => {
            result.add(&plain.text, true, [(0, problem.to_string())]);
            return result;
        }
    }
    if result.missing.is_empty() {
        let mistakes = std::mem::take(&mut dtd.mistakes);
        result.add(text, false, mistakes.into_iter().map(|what| (start, what)));
        if !dtd.is_empty() {
            result.is_checked = true;
            let found = dtd::check(&plain.text, &mut dtd, doctype.name);
            result.add(&plain.text, false, found);
        }
    }
    result
}
