//! Checks whether a well-formed document conforms to its definition (the validity constraints of XML 1.0).

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::super::super::html::decode_entities;
use super::super::pieces::{XmlPiece, XmlPieces, XmlTag};
use super::content::{Automaton, ContentModel};
use super::{AttributeDeclaration, Declared, Dtd, MISTAKES_MAX, Sort, is_name, is_token};

impl Sort {
    /// Normalizes a value (section 3.3.3).
    pub(super) fn normal(&self, written: &str) -> String {
        let value = if written.contains('&') { decode_entities(written) } else { Cow::Borrowed(written) };
        match self {
            Self::Text => value.replace(['\t', '\n', '\r'], " "),
            _ => value.split_whitespace().collect::<Vec<_>>().join(" "),
        }
    }

    /// Whether a value by itself may be of this sort.
    pub(super) fn fits(&self, value: &str) -> bool {
        let each = |may_be_many: bool, fits: fn(&str) -> bool| match may_be_many {
            true => !value.is_empty() && value.split(' ').all(fits),
            false => fits(value),
        };
        match self {
            Self::Text => true,
            Self::Id => is_name(value),
            Self::Reference(many) | Self::Entity(many) => each(*many, is_name),
            Self::Token(many) => each(*many, is_token),
            Self::Listed(listed) => listed.iter().any(|token| token == value),
        }
    }
}

/// An open element.
struct OpenElement<'a> {
    name: &'a str,
    /// State of its content; none if the content is not declared or is already known to be wrong.
    state: Option<u32>,
}

/// A document being checked.
struct DtdValidation<'a, 'd> {
    dtd: &'d mut Dtd,
    open: Vec<OpenElement<'a>>,
    ids: HashSet<String>,
    /// IDs that are referred to, with the offset of the first reference.
    references: HashMap<String, usize>,
    /// Mistakes with their offsets.
    found: Vec<(usize, String)>,
}

/// Returns the mistakes of a well-formed document, given without its document type, by its definition and the name of
/// its type; each with its offset in bytes.
pub(crate) fn check(text: &str, dtd: &mut Dtd, root: &str) -> Vec<(usize, String)> {
    let mut check = DtdValidation {
        dtd,
        open: Vec::new(),
        ids: HashSet::new(),
        references: HashMap::new(),
        found: Vec::new(),
    };
    let mut at = 0;
    let mut is_root = true;
    for piece in XmlPieces::of(text) {
        let written = match piece {
            XmlPiece::Start(tag) => {
                if std::mem::take(&mut is_root) && tag.name() != root {
                    check.report(
                        at,
                        format!("the root is {} and not {root}, as the document type says", tag.name()),
                    );
                }
                check.start(at, tag);
                tag.written
            }
            XmlPiece::End(written) => {
                check.end(at);
                written
            }
            XmlPiece::Text(written) => {
                check.text(at, written.trim_matches([' ', '\t', '\r', '\n']).is_empty());
                written
            }
            XmlPiece::Cdata(written) => {
                check.text(at, false);
                written
            }
            XmlPiece::Opaque(written) => {
                check.other(at);
                written
            }
        };
        at += written.len();
        if check.found.len() >= MISTAKES_MAX {
            break;
        }
    }
    check.finish()
}

impl<'a> DtdValidation<'a, '_> {
    fn report(&mut self, at: usize, mistake: String) {
        self.found.push((at, mistake));
    }

    fn start(&mut self, at: usize, tag: XmlTag<'a>) {
        let name = tag.name();
        self.child(at, name);
        let is_declared = self.make_ready(at, name);
        if is_declared {
            self.attributes(at, tag);
        } else {
            self.report(at, format!("the element {name} is not declared"));
        }
        self.open.push(OpenElement { name, state: is_declared.then_some(Automaton::START) });
        if tag.is_empty() {
            self.end(at);
        }
    }

    /// Compiles the content model of an element when it is first encountered; returns whether the element is declared.
    fn make_ready(&mut self, at: usize, name: &str) -> bool {
        let Some(declared) = self.dtd.elements.get_mut(name) else { return false };
        if let Declared::Written(written) = declared {
            match ContentModel::of(written, &mut self.dtd.steps) {
                Ok(content) => *declared = Declared::Known(content),
                Err(why) => {
                    *declared = Declared::Broken;
                    self.report(at, format!("the content model of {name} is wrong: {why}"));
                }
            }
        }
        true
    }

    /// Checks a child of the open element.
    fn child(&mut self, at: usize, name: &str) {
        let Some(open) = self.open.last_mut() else { return };
        let Some(state) = open.state else { return };
        let around = open.name;
        let mistake = match self.dtd.elements.get(around) {
            Some(Declared::Known(ContentModel::Empty)) => Some(format!("{around} must be empty")),
            Some(Declared::Known(ContentModel::Mixed(names))) if !names.contains(name) => {
                Some(format!("{name} is not allowed in {around}"))
            }
            Some(Declared::Known(ContentModel::Children(automaton))) => match automaton.step(state, name) {
                Some(next) => {
                    open.state = Some(next);
                    None
                }
                None => Some(format!("{name} is not allowed here in {around}, {}", wanted(automaton, state))),
            },
            _ => None,
        };
        self.spoil(at, mistake);
    }

    /// Reports only the first mistake in the content of the open element.
    fn spoil(&mut self, at: usize, mistake: Option<String>) {
        if let Some(mistake) = mistake {
            self.open.last_mut().into_iter().for_each(|open| open.state = None);
            self.report(at, mistake);
        }
    }

    fn text(&mut self, at: usize, is_space: bool) {
        let Some(OpenElement { name, state: Some(_) }) = self.open.last() else { return };
        let mistake = match self.dtd.elements.get(*name) {
            Some(Declared::Known(ContentModel::Empty)) => Some(format!("{name} must be empty")),
            Some(Declared::Known(ContentModel::Children(_))) if !is_space => {
                Some(format!("text is not allowed in {name}, only elements"))
            }
            _ => None,
        };
        self.spoil(at, mistake);
    }

    /// Checks a comment or processing instruction.
    fn other(&mut self, at: usize) {
        let Some(OpenElement { name, state: Some(_) }) = self.open.last() else { return };
        if let Some(Declared::Known(ContentModel::Empty)) = self.dtd.elements.get(*name) {
            let mistake = format!("{name} must be empty");
            self.spoil(at, Some(mistake));
        }
    }

    fn end(&mut self, at: usize) {
        let Some(OpenElement { name, state: Some(state) }) = self.open.pop() else { return };
        if let Some(Declared::Known(ContentModel::Children(automaton))) = self.dtd.elements.get(name)
            && !automaton.accepts(state)
        {
            let mistake = format!("{name} ends too early, {}", wanted(automaton, state));
            self.report(at, mistake);
        }
    }

    fn attributes(&mut self, at: usize, tag: XmlTag<'_>) {
        let element = tag.name();
        let declared = self.dtd.attributes.get(element).map_or(&[][..], Vec::as_slice);
        let mut mistakes = Vec::new();
        for (name, written) in tag.attributes() {
            let Some(attribute) = declared.iter().find(|attribute| attribute.name == name) else {
                mistakes.push(format!("the attribute {name} of {element} is not declared"));
                continue;
            };
            let value = attribute.sort.normal(written);
            mistakes.extend(attribute.mistake(element, &value));
            match attribute.sort {
                Sort::Id if !self.ids.insert(value.clone()) => {
                    mistakes.push(format!("the ID {value} is given twice"));
                }
                Sort::Reference(_) => {
                    for name in value.split(' ') {
                        self.references.entry(name.to_owned()).or_insert(at);
                    }
                }
                Sort::Entity(_) => {
                    let unknown = value.split(' ').filter(|name| !self.dtd.unparsed.contains(*name));
                    mistakes
                        .extend(unknown.map(|name| format!("the unparsed entity {name} is not declared")));
                }
                _ => {}
            }
        }
        for attribute in declared.iter().filter(|attribute| attribute.is_required) {
            if !tag.attributes().any(|(name, _)| name == attribute.name) {
                mistakes.push(format!("{element} has no attribute {}, which it must have", attribute.name));
            }
        }
        self.found.extend(mistakes.into_iter().map(|mistake| (at, mistake)));
    }

    fn finish(mut self) -> Vec<(usize, String)> {
        let ids = &self.ids;
        let unknown = self.references.into_iter().filter(|(name, _)| !ids.contains(name));
        // If the check was cut short, the IDs may be in the rest of the document.
        if self.found.len() < MISTAKES_MAX {
            self.found.extend(unknown.map(|(name, at)| (at, format!("no element has the ID {name}"))));
        }
        self.found.sort();
        self.found.truncate(MISTAKES_MAX);
        self.found
    }
}

impl AttributeDeclaration {
    fn mistake(&self, element: &str, value: &str) -> Option<String> {
        let name = &self.name;
        match &self.fixed {
            Some(fixed) if fixed != value => {
                Some(format!("the attribute {name} of {element} must be \"{fixed}\""))
            }
            _ if self.sort.fits(value) => None,
            _ => {
                let what = match &self.sort {
                    Sort::Listed(listed) => format!("one of {}", listed.join(", ")),
                    Sort::Token(false) => "a name token".to_owned(),
                    Sort::Token(true) => "name tokens".to_owned(),
                    Sort::Reference(true) | Sort::Entity(true) => "names".to_owned(),
                    _ => "a name".to_owned(),
                };
                Some(format!("the attribute {name} of {element} must be {what}"))
            }
        }
    }
}

/// Describes what is allowed at this point.
fn wanted(automaton: &Automaton, state: u32) -> String {
    /// Maximum number of names listed.
    const NAMES_MAX: usize = 5;
    let names = automaton.expected(state);
    let more = if names.len() > NAMES_MAX { ", …" } else { "" };
    match (names.is_empty(), automaton.accepts(state)) {
        (true, _) => "where nothing more is allowed".to_owned(),
        (false, ends) => {
            let or_end = if ends { "nothing or " } else { "" };
            format!("{or_end}{}{more} may follow", names[..names.len().min(NAMES_MAX)].join(", "))
        }
    }
}
