//! Tracks which elements belong to SVG or MathML, as far as the tokenizer needs it.
//!
//! In these, `title` and `style` hold markup like any other element, and CDATA sections are text. The rules are those
//! of the HTML standard's tree construction (section 13.2.6.5, "any other start tag in foreign content"), but without a
//! tree: only the elements at which the namespace changes are recorded.

use super::element::HtmlElement;
use super::markup::HtmlTag;

/// Maximum nesting of namespace changes; deeper ones are ignored.
const OPEN_MAX: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Namespace {
    Html,
    Svg,
    MathMl,
}

/// Open namespaces at the current position of a document.
#[derive(Debug, Default)]
pub struct Namespaces {
    /// Namespaces inside the outermost one, which is HTML.
    open: Vec<Namespace>,
}

impl Namespaces {
    /// Whether the position belongs to SVG or MathML.
    pub fn is_foreign(&self) -> bool {
        self.current() != Namespace::Html
    }

    /// Whether the position belongs to MathML.
    pub(super) fn is_math(&self) -> bool {
        self.current() == Namespace::MathMl
    }

    fn current(&self) -> Namespace {
        self.open.last().copied().unwrap_or(Namespace::Html)
    }

    fn enter(&mut self, namespace: Namespace) {
        if self.open.len() < OPEN_MAX {
            self.open.push(namespace);
        }
    }

    /// Updates the namespaces for a tag.
    pub fn meet(&mut self, element: HtmlElement, tag: &HtmlTag<'_, '_>) {
        match element {
            HtmlElement::Svg if !tag.is_end && !tag.is_self_closing => self.enter(Namespace::Svg),
            HtmlElement::Math if !tag.is_end && !tag.is_self_closing => self.enter(Namespace::MathMl),
            _ if self.open.is_empty() => {}
            _ if tag.is_end => self.leave(element, tag.name),
            _ if self.is_foreign() => self.meet_inside(tag),
            _ => {}
        }
    }

    /// Handles a start tag in SVG or MathML: it may be an HTML tag, or an integration point for HTML.
    fn meet_inside(&mut self, tag: &HtmlTag<'_, '_>) {
        let has = |name: &str| tag.attributes.iter().any(|found| found.is(name));
        let is_font = tag.name.eq_ignore_ascii_case("font") && (has("color") || has("face") || has("size"));
        if is_font || is_one_of(tag.name, &BELONGS_TO_HTML) {
            self.open.pop();
        } else if !tag.is_self_closing && self.opens_html(tag) {
            self.enter(Namespace::Html);
        }
    }

    /// Whether an element is an integration point, which contains HTML.
    fn opens_html(&self, tag: &HtmlTag<'_, '_>) -> bool {
        let is_html_encoding = |value: &str| {
            value.eq_ignore_ascii_case("text/html") || value.eq_ignore_ascii_case("application/xhtml+xml")
        };
        match self.current() {
            Namespace::Html => false,
            Namespace::Svg => is_one_of(tag.name, &HTML_IN_SVG),
            Namespace::MathMl => {
                is_one_of(tag.name, &TEXT_IN_MATHML)
                    || tag.name.eq_ignore_ascii_case(ANNOTATION)
                        && tag.attributes.iter().any(|one| one.is("encoding") && is_html_encoding(one.value))
            }
        }
    }

    fn leave(&mut self, element: HtmlElement, name: &str) {
        let before = self.open.len().checked_sub(2).map_or(Namespace::Html, |place| self.open[place]);
        let ends = match (self.current(), before) {
            (Namespace::Svg, _) => element == HtmlElement::Svg || is_one_of(name, &["p", "br"]),
            (Namespace::MathMl, _) => element == HtmlElement::Math || is_one_of(name, &["p", "br"]),
            (Namespace::Html, Namespace::Svg) => is_one_of(name, &HTML_IN_SVG),
            (Namespace::Html, Namespace::MathMl) => {
                is_one_of(name, &TEXT_IN_MATHML) || name.eq_ignore_ascii_case(ANNOTATION)
            }
            (Namespace::Html, Namespace::Html) => false,
        };
        if ends {
            self.open.pop();
        }
    }
}

const ANNOTATION: &str = "annotation-xml";
const HTML_IN_SVG: [&str; 3] = ["desc", "title", "foreignobject"];
const TEXT_IN_MATHML: [&str; 5] = ["mi", "mo", "mn", "ms", "mtext"];
const BELONGS_TO_HTML: [&str; 44] = [
    "b",
    "big",
    "blockquote",
    "body",
    "br",
    "center",
    "code",
    "dd",
    "div",
    "dl",
    "dt",
    "em",
    "embed",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "hr",
    "i",
    "img",
    "li",
    "listing",
    "menu",
    "meta",
    "nobr",
    "ol",
    "p",
    "pre",
    "ruby",
    "s",
    "small",
    "span",
    "strong",
    "strike",
    "sub",
    "sup",
    "table",
    "tt",
    "u",
    "ul",
    "var",
];

fn is_one_of(name: &str, names: &[&str]) -> bool {
    names.iter().any(|one| name.eq_ignore_ascii_case(one))
}
