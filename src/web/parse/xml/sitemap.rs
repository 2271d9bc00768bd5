//! Sitemaps and sitemap indexes (sitemaps.org, protocol 0.9), in XML or as a list of URLs.

use std::borrow::Cow;

use roxmltree::{Document, Node};

use super::super::kind::names_a_sitemap;
use super::super::outlinks::Outlinks;
use super::super::{DatedItem, DocumentKind, LinkKind, parse_date};
use super::walk::{child, children, is_url, text_of};

/// Whether a root element is that of a sitemap or a sitemap index.
pub(super) fn is_root(root: Node<'_, '_>) -> bool {
    matches!(root.tag_name().name(), "urlset" | "sitemapindex")
}

/// Reads a sitemap or a sitemap index; returns the dates of its entries.
pub(super) fn read(document: &Document<'_>, outlinks: &mut Outlinks) -> Vec<DatedItem> {
    let mut entries = Vec::new();
    for entry in document.root_element().children().filter(Node::is_element) {
        let kind = match entry.tag_name().name() {
            "url" => LinkKind::SitemapEntry,
            "sitemap" => LinkKind::Sitemap,
            _ => continue,
        };
        let location = child(entry, "loc").map_or_else(|| bare_location(entry), text_of);
        let place = outlinks.add(&location, kind, false);
        let modified = child(entry, "lastmod").and_then(|date| parse_date(&text_of(date)));
        if let (Some(link), Some(modified)) = (place, modified) {
            entries.push(DatedItem { link, modified });
        }
        read_extensions(entry, outlinks);
    }
    entries
}

/// Some sitemaps put the URL directly into the entry, without a `loc`.
fn bare_location<'a>(entry: Node<'a, '_>) -> Cow<'a, str> {
    entry.text().map(str::trim).filter(|text| is_url(text)).unwrap_or_default().into()
}

/// Reads the images, videos and other languages of a page.
fn read_extensions(entry: Node<'_, '_>, outlinks: &mut Outlinks) {
    for image in children(entry, "image") {
        if let Some(loc) = child(image, "loc") {
            outlinks.add(&text_of(loc), LinkKind::Enclosure, false);
        }
    }
    for video in children(entry, "video") {
        for name in ["content_loc", "thumbnail_loc", "player_loc", "gallery_loc"] {
            if let Some(loc) = child(video, name) {
                outlinks.add(&text_of(loc), LinkKind::Enclosure, false);
            }
        }
    }
    for link in children(entry, "link") {
        if let Some(href) = link.attribute("href") {
            outlinks.add(href, LinkKind::SitemapEntry, false);
        }
    }
}

/// Whether a text is a list of URLs: every non-empty line is one.
pub(in super::super) fn is_list(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).peekable();
    lines.peek().is_some() && lines.all(is_url)
}

/// Reads a list of URLs.
pub(in super::super) fn read_list(text: &str, outlinks: &mut Outlinks) {
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        outlinks.add(line, LinkKind::SitemapEntry, false);
    }
}

/// Bytes at the beginning of a document that show whether it is a sitemap.
pub(in super::super) const SEEN_BYTES: usize = 4096;

/// Whether the beginning of a document looks like that of a sitemap.
pub(in super::super) fn may_be_one(kind: DocumentKind, beginning: &[u8]) -> bool {
    match kind {
        DocumentKind::Xml => names_a_sitemap(beginning),
        DocumentKind::Text => begins_a_list(beginning.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(beginning)),
        _ => false,
    }
}

/// Whether the beginning of a text is that of a list of URLs; its last line may be incomplete.
pub(in super::super) fn begins_a_list(beginning: &[u8]) -> bool {
    let text = String::from_utf8_lossy(beginning);
    is_list(text.rsplit_once('\n').map_or(&text, |(whole, _)| whole))
}
