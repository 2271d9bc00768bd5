//! XML documents stay unchanged, except for the style sheets that processing instructions name, and the addresses of DASH
//! manifests.

use archive_web::parse::LinkKind;

use super::{LinkRewriter, Splice, playlist};

/// Start of an instruction that names a style sheet (Associating Style Sheets with XML documents 1.0).
pub(super) const INSTRUCTION: &str = "<?xml-stylesheet";

/// Whether a style sheet that an instruction names styles a document, which is so without a type, and does not transform
/// it. In doubt it does.
pub(super) fn is_css(instruction: &str) -> bool {
    let inside = instruction.split("?>").next().unwrap_or_default();
    match inside.matches("type").count() {
        0 => true,
        1 => inside.contains("type=\"text/css\"") || inside.contains("type='text/css'"),
        _ => false,
    }
}

/// Rewrites the addresses of a document's style sheets and, in a manifest, films; `None` if there are none.
pub(in super::super) fn rewrite(xml: &str, links: &LinkRewriter) -> Option<String> {
    let mut splice = Splice::new(xml);
    for (start, _) in xml.match_indices(INSTRUCTION) {
        let inside = &xml[start + INSTRUCTION.len()..];
        let inside = &inside[..inside.find("?>").unwrap_or(0)];
        let Some(value) = pseudo_attribute(inside, "href") else { continue };
        if let Some(address) = links.of_kind(&htmlize::unescape_attribute(value), LinkKind::XmlStylesheet) {
            splice.replace(value, &htmlize::escape_attribute(&*address));
        }
    }
    if playlist::is_manifest(xml) {
        playlist::rewrite_manifest(xml, links, &mut splice);
    }
    splice.finish()
}

/// The value of `name="value"`.
fn pseudo_attribute<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.match_indices(name).find_map(|(at, _)| {
        let value = text[at + name.len()..].trim_start().strip_prefix('=')?.trim_start();
        let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        let value = &value[1..];
        text[..at].ends_with(|c: char| c.is_whitespace()).then(|| value.split(quote).next())?
    })
}
