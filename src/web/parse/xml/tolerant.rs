//! Reads what can be read of a document without a tree: its tags and texts one by one, in one pass.

use super::super::html::{TITLE_BYTES_MAX, TextBuilder, TextMarks, decode_entities, one_line};
use super::super::{Document, DocumentKind, LinkKind, signature};
use super::generic::{kind_of_attribute, names_a_url};
use super::pieces::{XmlPiece, XmlPieces, XmlTag};
use super::walk::is_url;

/// Reads links and text.
pub(super) fn read(text: &str, document: &mut Document<'_>) {
    let root = XmlPieces::of(text).find_map(|piece| match piece {
        XmlPiece::Start(tag) => Some(local(tag.name())),
        _ => None,
    });
    document.parsed.kind = match root {
        Some("rss" | "feed" | "RDF") => DocumentKind::Feed,
        Some("urlset" | "sitemapindex") => DocumentKind::Sitemap,
        Some("OAI-PMH") => DocumentKind::OaiPmh,
        _ => document.parsed.kind,
    };
    let is_sitemap = document.parsed.kind == DocumentKind::Sitemap;
    if is_sitemap {
        document.outlinks.allow(document.limits.sitemap_links_max);
    }
    let content = match root {
        Some("sitemapindex") => LinkKind::Sitemap,
        Some("urlset") => LinkKind::SitemapEntry,
        Some("rss" | "feed" | "RDF") => LinkKind::FeedEntry,
        _ => LinkKind::Reference,
    };
    let mut builder = TextBuilder::with_capacity(if is_sitemap { 0 } else { text.len() / 2 });
    let mut element = "";
    for piece in XmlPieces::of(text) {
        let written = match piece {
            XmlPiece::Start(tag) => {
                element = local(tag.name());
                attributes(tag, document);
                builder.end_line();
                continue;
            }
            XmlPiece::End(_) => {
                element = "";
                builder.end_line();
                continue;
            }
            XmlPiece::Opaque(_) => continue,
            XmlPiece::Text(text) => decode_entities(text),
            XmlPiece::Cdata(text) => {
                let inside = text.strip_prefix("<![CDATA[").unwrap_or(text);
                inside.strip_suffix("]]>").unwrap_or(inside).into()
            }
        };
        if names_a_url(element) && is_url(written.trim()) {
            document.outlinks.add(written.trim(), content, false);
        }
        if element == "title" && document.parsed.title.is_empty() {
            document.parsed.title = one_line(&written, TITLE_BYTES_MAX);
        }
        if !is_sitemap && !matches!(element, "script" | "style") {
            builder.push(&written);
        }
    }
    if !is_sitemap {
        document.set_text(builder.finish().0, TextMarks::default());
    }
    document.parsed.signature = signature::of_bytes(text.as_bytes());
}

fn attributes(tag: XmlTag<'_>, document: &mut Document<'_>) {
    for (name, value) in tag.attributes() {
        let kind = match name {
            "xlink:href" => Some(LinkKind::XLink),
            _ => kind_of_attribute(None, local(tag.name()), name),
        };
        if let Some(kind) = kind {
            document.outlinks.add(&decode_entities(value), kind, false);
        }
    }
}

/// Returns a name without its prefix.
fn local(name: &str) -> &str {
    name.rsplit(':').next().unwrap_or(name)
}
