//! XML to links, text and metadata.
//!
//! What parsing would cost is counted before it is done ([`limits`]); what isn't well-formed is repaired as far as it goes
//! ([`repair`]); nothing outside of the document is loaded, only named ([`doctype`]).

mod doctype;
mod feed;
mod generic;
mod limits;
mod oai;
mod repair;
pub(super) mod sitemap;
mod tokens;
mod tree;
mod walk;

use encoding_rs::Encoding;
use roxmltree::{Document as Tree, EntityResolver, Error, ParsingOptions, TextPos};

use self::doctype::Doctype;
use self::walk::{XHTML, XML};
use super::html::{TITLE_BYTES_MAX, one_line};
use super::{Document, DocumentKind, Limits, LinkKind, Problem, signature};

/// Reads an XML document.
pub(super) fn read(text: &str, encoding: &'static Encoding, document: &mut Document<'_>) {
    let text = text.trim_start();
    read_doctype(&Doctype::of(text), document);
    let limits = document.limits;
    let read = with_tree(text, limits, |tree, text, problem| {
        document.parsed.problems.extend(problem);
        read_tree(tree, text, encoding, document);
    });
    if let Err(problem) = read {
        document.parsed.problems.push(problem);
        read_without_tree(text, document);
    }
}

/// Hands the tree of a document, or of as much of it as is sound, to `read`, with its text and what was wrong with it.
///
/// # Errors
/// Why there is no tree.
pub(super) fn with_tree<T>(
    text: &str,
    limits: &Limits,
    read: impl FnOnce(&Tree<'_>, &str, Option<Problem>) -> T,
) -> Result<T, Problem> {
    let doctype = Doctype::of(text);
    limits::check(text, &doctype, limits).map_err(Problem::XmlLimit)?;
    let error = match parse(text, limits.xml_nodes_max) {
        Ok(tree) => return Ok(read(&tree, text, None)),
        Err(error) => error,
    };
    let problem = Problem::Xml(error.to_string());
    let sound = repair::with_sound_references(text, &doctype);
    let error = match parse(&sound, limits.xml_nodes_max) {
        Ok(tree) => return Ok(read(&tree, &sound, Some(problem))),
        Err(error) => error,
    };
    let doctype = Doctype::of(&sound);
    let closed = repair::up_to(&sound, offset_of(&sound, error.pos(), &error), &doctype);
    match closed.as_deref().map(|closed| (closed, parse(closed, limits.xml_nodes_max))) {
        Some((closed, Ok(tree))) => Ok(read(&tree, closed, Some(problem))),
        _ => Err(problem),
    }
}

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

/// Parses with external entities standing for nothing.
fn parse(text: &str, nodes_max: u32) -> Result<Tree<'_>, Error> {
    let nothing: &EntityResolver<'_> = &|_, _| Ok(Some(""));
    Tree::parse_with_options(
        text,
        ParsingOptions { allow_dtd: true, nodes_limit: nodes_max, entity_resolver: Some(nothing) },
    )
}

/// Where in the text an error is, in bytes. Positions count characters; an unexpected end has none.
fn offset_of(text: &str, position: TextPos, error: &Error) -> usize {
    if matches!(error, Error::UnexpectedEndOfStream | Error::UnclosedRootNode) {
        return text.len();
    }
    let row = usize::try_from(position.row).unwrap_or(1).saturating_sub(1);
    let column = usize::try_from(position.col).unwrap_or(1).saturating_sub(1);
    let line_start = match row.checked_sub(1) {
        Some(above) => memchr::memchr_iter(b'\n', text.as_bytes()).nth(above).map_or(text.len(), |at| at + 1),
        None => 0,
    };
    let line = &text[line_start..];
    // One tag more, so that the faulty one is what is cut off.
    line.char_indices().nth(column + 1).map_or(text.len(), |(at, _)| line_start + at)
}

fn read_tree(tree: &Tree<'_>, text: &str, encoding: &'static Encoding, document: &mut Document<'_>) {
    let root = tree.root_element();
    if root.tag_name().name() == "html" && matches!(root.tag_name().namespace(), Some(XHTML) | None) {
        document.parsed.kind = DocumentKind::Html;
        return document.read_html_text(text, encoding);
    }
    if document.parsed.language.is_none() {
        let declared = root.attribute((XML, "lang")).or_else(|| {
            tree.descendants().find(|node| node.tag_name().name() == "language").and_then(|node| node.text())
        });
        document.parsed.language =
            declared.map(|tag| tag.trim().to_owned()).filter(|tag| !tag.is_empty() && tag.len() <= 35);
    }
    if feed::is_root(root) {
        document.parsed.kind = DocumentKind::Feed;
        let facts = feed::read(tree, &mut document.outlinks);
        document.parsed.title = one_line(&facts.title, TITLE_BYTES_MAX);
        document.parsed.entries = facts.entries;
        document.set_text(facts.text, Vec::new());
    } else if sitemap::is_root(root) {
        document.parsed.kind = DocumentKind::Sitemap;
        document.outlinks.allow(document.limits.sitemap_links_max);
        document.parsed.entries = sitemap::read(tree, &mut document.outlinks);
    } else {
        if oai::is_root(root) {
            document.parsed.kind = DocumentKind::OaiPmh;
            document.parsed.entries = oai::read(tree, &mut document.outlinks);
        }
        generic::read(tree, encoding, &mut document.outlinks);
        let title = tree.descendants().find(|node| node.tag_name().name() == "title");
        document.parsed.title =
            title.map(|node| one_line(&walk::text_of(node), TITLE_BYTES_MAX)).unwrap_or_default();
        document.set_text(tree::text(tree), Vec::new());
    }
    document.parsed.signature = tree::signature(tree);
}

/// What can be had of a document of which there is no tree.
fn read_without_tree(text: &str, document: &mut Document<'_>) {
    if sitemap::looks_like_one(text) {
        document.parsed.kind = DocumentKind::Sitemap;
        document.outlinks.allow(document.limits.sitemap_links_max);
        sitemap::read_locations(text, &mut document.outlinks);
    }
    document.parsed.signature = signature::of_bytes(text.as_bytes());
}

#[cfg(test)]
mod tests;
