//! Parses XML into links, text and metadata.
//!
//! Input whose cost grows faster than its length never reaches the parser: entities are expanded within a budget
//! ([`entities`]), the document type is removed ([`doctype`]), and the cost of parsing is estimated in advance
//! ([`limits`]). A document that is not well-formed is repaired as far as possible ([`repair`]); in one that exceeds
//! the limits, tags and texts are read one by one ([`pieces`], [`tolerant`]). External resources are never loaded, only
//! listed as links; whoever reads a document from the archive has put its external entities in place ([`external`]).

mod bases;
mod dash;
mod doctype;
mod dtd;
mod elements;
mod entities;
mod external;
mod feed;
mod generic;
mod limits;
mod oai;
mod pieces;
pub(super) mod readable;
mod repair;
pub(super) mod sitemap;
mod structure;
mod tolerant;
mod tree;
mod validate;
mod walk;
mod xpath;

use encoding_rs::Encoding;
use roxmltree::{Document as Tree, Error, Node, ParsingOptions};

use self::doctype::Doctype;
pub use self::dtd::Fetch;
pub use self::elements::{ELEMENT_NAMES_MAX, Elements, WHOLE_BYTES_MAX};
use self::entities::Plain;
pub(super) use self::external::with_entities;
use self::pieces::{XmlPiece, XmlPieces};
pub use self::structure::Structure;
pub(super) use self::validate::validate;
pub use self::validate::{Validation, Validity, XmlMistake};
use self::walk::{XHTML, XML};
pub(super) use self::xpath::xpath;
pub use self::xpath::{Selected, XPATH_BYTES_MAX, XPATH_STACK_BYTES, XPathError, XPathResult};
use super::html::{MarkupSyntax, TITLE_BYTES_MAX, TextMarks, one_line};
use super::outlinks::Outlinks;
use super::{Document, DocumentKind, LinkKind, ParseLimits, ParseProblem};

/// Namespaces by their customary prefixes.
pub const NAMESPACES: [(&str, &str); 16] = [
    ("atom", "http://www.w3.org/2005/Atom"),
    ("content", "http://purl.org/rss/1.0/modules/content/"),
    ("dc", "http://purl.org/dc/elements/1.1/"),
    ("dcterms", "http://purl.org/dc/terms/"),
    ("db", "http://docbook.org/ns/docbook"),
    ("mods", "http://www.loc.gov/mods/v3"),
    ("mets", "http://www.loc.gov/METS/"),
    ("oai", "http://www.openarchives.org/OAI/2.0/"),
    ("oai_dc", "http://www.openarchives.org/OAI/2.0/oai_dc/"),
    ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
    ("rdfs", "http://www.w3.org/2000/01/rdf-schema#"),
    ("svg", "http://www.w3.org/2000/svg"),
    ("tei", "http://www.tei-c.org/ns/1.0"),
    ("xhtml", "http://www.w3.org/1999/xhtml"),
    ("xlink", "http://www.w3.org/1999/xlink"),
    ("xml", "http://www.w3.org/XML/1998/namespace"),
];

/// Problem of a document that was read without the white space before its declaration.
const LATE_DECLARATION: &str = "the XML declaration does not stand at the beginning";

/// Reads an XML document.
pub(super) fn read(text: &str, encoding: &'static Encoding, document: &mut Document<'_>) {
    let (all, text) = (text, text.trim_start());
    if all.len() > text.len() && text.starts_with("<?xml ") {
        document.parsed.problems.push(ParseProblem::Xml(LATE_DECLARATION.to_owned()));
    }
    let doctype = Doctype::of(text);
    read_doctype(&doctype, document);
    let limits = document.limits;
    let read = with_tree(text, limits, |tree, text, problem| {
        document.parsed.problems.extend(problem);
        read_tree(tree, text, encoding, document);
    });
    if let Err(problem) = read {
        document.parsed.problems.push(problem);
        tolerant::read(text, document);
    }
    let problems: Vec<String> = document.parsed.problems.iter().map(ToString::to_string).collect();
    let is_well_formed = well_formed(&problems);
    let structure = structure::structure(text, &doctype, limits);
    document.parsed.structure = structure.map(|structure| Structure { is_well_formed, ..structure });
}

/// Returns the structure of an XML document from its text and the problems stored with it.
pub(super) fn structure(text: &str, problems: &[String], limits: &ParseLimits) -> Option<Structure> {
    let text = text.trim_start();
    let structure = structure::structure(text, &Doctype::of(text), limits)?;
    Some(Structure { is_well_formed: well_formed(problems), ..structure })
}

/// Whether a document was well-formed, judging by the problems of reading it, as a capture's records have them; none if
/// it was not completely read.
fn well_formed(problems: &[String]) -> Option<bool> {
    let begins = |problem: &str, with: &[&str]| with.iter().any(|with| problem.starts_with(with));
    let is_unread = |problem: &str| begins(problem, &["XML: too ", "body cut", "not read"]);
    let is_broken = |problem: &str| !is_unread(problem) && begins(problem, &["XML: ", "not all bytes"]);
    if problems.iter().any(|problem| is_broken(problem)) {
        return Some(false);
    }
    problems.iter().all(|problem| !is_unread(problem)).then_some(true)
}

/// Passes the tree of a document, or of its sound part, to `read`, with the text of the tree and the problem found.
///
/// # Errors
/// Why there is no tree.
pub(super) fn with_tree<T>(
    text: &str,
    limits: &ParseLimits,
    read: impl FnOnce(&Tree<'_>, &str, Option<ParseProblem>) -> T,
) -> Result<T, ParseProblem> {
    let doctype = Doctype::of(text);
    let plain = Plain::of(text, &doctype, limits).map_err(ParseProblem::XmlLimit)?;
    let problem = plain.problem.map(|problem| ParseProblem::Xml(problem.to_owned()));
    let error = match parse(&plain.text, limits)? {
        Ok(tree) => return Ok(read(&tree, &plain.text, problem)),
        Err(error) => error,
    };
    let problem = ParseProblem::Xml(one_line(&error.to_string(), PROBLEM_BYTES_MAX));
    let sound = repair::with_sound_references(&plain.text);
    let error = match parse(&sound, limits)? {
        Ok(tree) => return Ok(read(&tree, &sound, Some(problem))),
        Err(error) => error,
    };
    if let Some(closed) = repair::up_to(&sound, offset_of(&sound, &error))
        && let Ok(tree) = parse(&closed, limits)?
    {
        return Ok(read(&tree, &closed, Some(problem)));
    }
    Err(problem)
}

/// Maximum bytes of an error message in a problem.
const PROBLEM_BYTES_MAX: usize = 200;

fn read_doctype(doctype: &Doctype<'_>, document: &mut Document<'_>) {
    if let Some(system) = doctype.system {
        document.outlinks.add(system, LinkKind::Dtd, false);
    }
    for system in &doctype.external {
        document.outlinks.add(system, LinkKind::ExternalEntity, false);
    }
    for system in &doctype.unparsed {
        document.outlinks.add(system, LinkKind::Embed, false);
    }
}

/// Parses a text that is within the limits. Input reaches the parser only here.
fn parse<'t>(text: &'t str, limits: &ParseLimits) -> Result<Result<Tree<'t>, Error>, ParseProblem> {
    limits::check(text, limits).map_err(ParseProblem::XmlLimit)?;
    let options =
        ParsingOptions { allow_dtd: false, nodes_limit: limits.xml_nodes_max, entity_resolver: None };
    match Tree::parse_with_options(text, options) {
        Err(Error::NodesLimitReached) => Err(ParseProblem::XmlLimit(limits::MANY_NODES)),
        parsed => Ok(parsed),
    }
}

/// Reads the style sheets that an XHTML document names before its root, which the HTML reader does not see.
pub(super) fn read_prolog(text: &str, outlinks: &mut Outlinks) {
    for piece in XmlPieces::of(text).take_while(|piece| !matches!(piece, XmlPiece::Start(_))) {
        let XmlPiece::Opaque(written) = piece else { continue };
        let inside = written.strip_prefix("<?").and_then(|inside| inside.strip_suffix("?>"));
        if let Some((target, value)) = inside.and_then(|inside| inside.split_once(char::is_whitespace)) {
            generic::instruction(target, value, outlinks);
        }
    }
}

/// Returns the byte offset of an error in the text. Positions count characters; an unexpected end has no position.
fn offset_of(text: &str, error: &Error) -> usize {
    if matches!(error, Error::UnexpectedEndOfStream | Error::UnclosedRootNode) {
        return text.len();
    }
    let position = error.pos();
    let row = usize::try_from(position.row).unwrap_or(1).saturating_sub(1);
    let column = usize::try_from(position.col).unwrap_or(1).saturating_sub(1);
    let line_start = match row.checked_sub(1) {
        Some(above) => memchr::memchr_iter(b'\n', text.as_bytes()).nth(above).map_or(text.len(), |at| at + 1),
        None => 0,
    };
    let line = &text[line_start..];
    // Includes one more character, so that the faulty tag is the last one and is cut off.
    line.char_indices().nth(column + 1).map_or(text.len(), |(at, _)| line_start + at)
}

fn is_html(root: Node<'_, '_>, text: &str) -> bool {
    matches!(root.tag_name().namespace(), Some(XHTML) | None)
        // With a prefix it is not HTML to the HTML reader.
        && text[root.range().start + 1..].starts_with("html")
        && root.tag_name().name() == "html"
}

/// What a tree's document is, by its root element.
pub(super) fn kind_of(tree: &Tree<'_>, text: &str) -> DocumentKind {
    match tree.root_element() {
        root if is_html(root, text) => DocumentKind::Html,
        root if feed::is_root(root) => DocumentKind::Feed,
        root if sitemap::is_root(root) => DocumentKind::Sitemap,
        root if oai::is_root(root) => DocumentKind::OaiPmh,
        _ => DocumentKind::Xml,
    }
}

fn read_tree(tree: &Tree<'_>, text: &str, encoding: &'static Encoding, document: &mut Document<'_>) {
    let kind = kind_of(tree, text);
    document.parsed.kind = kind;
    if kind == DocumentKind::Html {
        return document.read_html_text(text, encoding, MarkupSyntax::Xml);
    }
    if document.parsed.language.is_none() {
        let declared = tree.root_element().attribute((XML, "lang")).or_else(|| {
            tree.descendants().find(|node| node.tag_name().name() == "language").and_then(|node| node.text())
        });
        document.parsed.language =
            declared.map(|tag| tag.trim().to_owned()).filter(|tag| !tag.is_empty() && tag.len() <= 35);
    }
    if kind == DocumentKind::Feed {
        let facts = feed::read(tree, encoding, &mut document.outlinks);
        document.parsed.title = one_line(&facts.title, TITLE_BYTES_MAX);
        document.parsed.entries = facts.entries;
        document.set_text(facts.text, TextMarks::default());
    } else if kind == DocumentKind::Sitemap {
        document.outlinks.allow(document.limits.sitemap_links_max);
        document.parsed.entries = sitemap::read(tree, &mut document.outlinks);
    } else {
        if kind == DocumentKind::OaiPmh {
            document.parsed.entries = oai::read(tree, &mut document.outlinks);
        }
        if dash::is_root(tree.root_element()) {
            dash::read(tree.root_element(), &mut document.outlinks);
        }
        generic::read(tree, encoding, &mut document.outlinks);
        let title = tree.descendants().find(|node| node.tag_name().name() == "title");
        document.parsed.title =
            title.map(|node| one_line(&walk::text_of(node), TITLE_BYTES_MAX)).unwrap_or_default();
        let (text, has_all) = tree::text(tree);
        let bytes = text.len();
        document.set_text(text, TextMarks::default());
        document.parsed.text_has_all = has_all && document.parsed.text.len() == bytes;
    }
    if kind.has_elements() {
        document.parsed.elements = elements::elements(tree, document.limits.text_bytes_max);
    }
    document.parsed.signature = tree::signature(tree);
}

#[cfg(test)]
mod tests;
