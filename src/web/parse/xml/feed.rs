//! RSS 0.9x, 1.0, 2.0 and Atom.
//!
//! Elements are recognised by their local names: feeds are careless about namespaces, and no name means different
//! things in two of these vocabularies.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use encoding_rs::Encoding;
use roxmltree::{Document, Node};

use super::super::html::{fragment_text, links_inside};
use super::super::outlinks::Outlinks;
use super::super::{DatedItem, LinkKind, parse_date};
use super::bases::Bases;
use super::generic;
use super::walk::{RDF, child, children, text_of};

/// Facts from a feed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FeedFacts {
    pub(super) title: String,
    pub(super) text: String,
    pub(super) entries: Vec<DatedItem>,
}

/// Whether a root element is that of a feed.
pub(super) fn is_root(root: Node<'_, '_>) -> bool {
    match root.tag_name().name() {
        "rss" | "feed" => true,
        "RDF" => root.tag_name().namespace() == Some(RDF) && child(root, "channel").is_some(),
        _ => false,
    }
}

/// Reads a feed.
pub(super) fn read(
    document: &Document<'_>,
    encoding: &'static Encoding,
    outlinks: &mut Outlinks,
) -> FeedFacts {
    let root = document.root_element();
    let bases = Bases::of(document, encoding, outlinks);
    let mut reader = FeedReader { bases, facts: FeedFacts::default() };
    if root.tag_name().name() == "feed" {
        reader.atom(root);
    } else {
        reader.rss(root);
    }
    reader.facts
}

/// Whether the content of an element is in base64: Atom 0.3 declares it (section 3.1.2); Atom 1.0 implies it by a media
/// type that is neither text nor XML (RFC 4287, section 4.1.3.3).
fn is_base64(node: Node<'_, '_>) -> bool {
    let is_binary = |kind: &str| kind.contains('/') && !kind.starts_with("text/") && !kind.ends_with("xml");
    match node.attribute("mode") {
        Some(mode) => mode == "base64",
        None => node.tag_name().name() == "content" && node.attribute("type").is_some_and(is_binary),
    }
}

/// Returns the text of a title, summary or content; empty if it is not text.
fn content_of<'a>(node: Node<'a, '_>) -> Cow<'a, str> {
    let text = text_of(node);
    if !is_base64(node) {
        return text;
    }
    let symbols: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let decoded = STANDARD.decode(symbols).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.unwrap_or_default().into()
}

/// Returns the visible text of a title, summary or content, which may hold markup as elements or escaped.
pub(super) fn visible(node: Node<'_, '_>) -> String {
    let text = content_of(node);
    match node.attribute("type") {
        Some("text" | "text/plain" | "xhtml" | "application/xhtml+xml") => text.into_owned(),
        _ => fragment_text(&text).into_owned(),
    }
}

struct FeedReader<'o> {
    bases: Bases<'o>,
    facts: FeedFacts,
}

impl FeedReader<'_> {
    fn rss(&mut self, root: Node<'_, '_>) {
        for channel in children(root, "channel") {
            self.about(channel, "description");
            for link in children(channel, "link") {
                self.channel_link(link);
            }
            self.image(channel);
            for item in children(channel, "item") {
                self.rss_item(item);
            }
        }
        // A feed that has moved announces it in its own document.
        for moved in children(root, "redirect").filter_map(|redirect| child(redirect, "newLocation")) {
            self.add(moved, &text_of(moved), LinkKind::Redirect);
        }
        // RSS 0.90 and 1.0 have the items next to the channel.
        for item in children(root, "item") {
            self.rss_item(item);
        }
    }

    fn image(&mut self, channel: Node<'_, '_>) {
        for image in children(channel, "image") {
            if let Some(href) = image.attribute("href") {
                self.add(image, href, LinkKind::Icon);
            }
            if let Some(url) = child(image, "url") {
                self.add(url, &text_of(url), LinkKind::Icon);
            }
            if let Some(link) = child(image, "link") {
                self.add(link, &text_of(link), LinkKind::Related);
            }
        }
    }

    /// Reads the site of an RSS channel, or an Atom link inside the channel.
    fn channel_link(&mut self, link: Node<'_, '_>) {
        match link.attribute("href") {
            Some(href) => self.feed_link(link, href),
            None => {
                self.add(link, &text_of(link), LinkKind::Related);
            }
        }
    }

    /// Reads an Atom link of the feed itself.
    fn feed_link(&mut self, link: Node<'_, '_>, href: &str) {
        let kind = match link.attribute("rel").unwrap_or("alternate") {
            "hub" | "search" | "edit" => return,
            // The preferred URL of the feed: usually this one, but not always.
            "self" => LinkKind::Alternate,
            "next" | "previous" | "prev" | "first" | "last" | "next-archive" | "prev-archive" | "current" => {
                LinkKind::FeedPage
            }
            _ => LinkKind::Related,
        };
        self.add(link, href, kind);
    }

    fn rss_item(&mut self, item: Node<'_, '_>) {
        let mut place = None;
        for link in children(item, "link") {
            let href = link.attribute("href").map_or_else(|| text_of(link), Cow::Borrowed);
            place = place.or(self.add(link, &href, LinkKind::FeedEntry));
        }
        if let Some(guid) = child(item, "guid") {
            let is_link = guid.attribute("isPermaLink").is_none_or(|value| value.trim() != "false");
            let url = text_of(guid);
            if place.is_none() && is_link && url.contains("://") {
                place = self.add(guid, &url, LinkKind::FeedEntry);
            }
        }
        if place.is_none()
            && let Some(about) = item.attribute((RDF, "about"))
        {
            place = self.add(item, about, LinkKind::FeedEntry);
        }
        self.item_media(item);
        self.mentioned(item);
        self.dated(place, item, &["pubDate", "date", "updated", "published"]);
        self.item_text(item, &["title", "encoded", "description", "summary"]);
    }

    /// Reads enclosures, Media RSS, and podcast elements.
    fn item_media(&mut self, item: Node<'_, '_>) {
        for media in item.descendants().filter(Node::is_element) {
            let (attribute, kind) = match media.tag_name().name() {
                "enclosure" | "content" => ("url", LinkKind::Enclosure),
                "thumbnail" => ("url", LinkKind::Image),
                "player" | "transcript" | "chapters" | "subTitle" => ("url", LinkKind::Related),
                // From podcasts; RSS's own `image` has child elements.
                "image" => ("href", LinkKind::Image),
                _ => continue,
            };
            if let Some(url) = media.attribute(attribute) {
                self.add(media, url, kind);
            }
        }
    }

    fn atom(&mut self, feed: Node<'_, '_>) {
        self.about(feed, "subtitle");
        for link in children(feed, "link") {
            if let Some(href) = link.attribute("href") {
                self.feed_link(link, href);
            }
        }
        for name in ["icon", "logo"] {
            if let Some(icon) = child(feed, name) {
                self.add(icon, &text_of(icon), LinkKind::Icon);
            }
        }
        // Some Atom feeds use RSS's name for entries.
        for entry in children(feed, "entry").chain(children(feed, "item")) {
            self.atom_entry(entry);
        }
    }

    fn atom_entry(&mut self, entry: Node<'_, '_>) {
        let mut place = None;
        for link in children(entry, "link") {
            let Some(href) = link.attribute("href") else { continue };
            let kind = match link.attribute("rel").unwrap_or("alternate") {
                "alternate" => LinkKind::FeedEntry,
                "enclosure" => LinkKind::Enclosure,
                "edit" | "edit-media" => continue,
                "self" => LinkKind::Alternate,
                _ => LinkKind::Related,
            };
            let added = self.add(link, href, kind);
            if kind == LinkKind::FeedEntry {
                place = place.or(added);
            }
        }
        if let Some((content, src)) =
            child(entry, "content").and_then(|found| Some((found, found.attribute("src")?)))
        {
            let added = self.add(content, src, LinkKind::FeedEntry);
            place = place.or(added);
        }
        self.item_media(entry);
        self.mentioned(entry);
        self.dated(place, entry, &["updated", "modified", "published", "issued"]);
        self.item_text(entry, &["title", "content", "summary"]);
    }

    /// Reads the title and description of the feed.
    fn about(&mut self, node: Node<'_, '_>, description: &'static str) {
        self.mentioned(node);
        if self.facts.title.is_empty() {
            self.facts.title = child(node, "title").map(visible).unwrap_or_default();
        }
        self.item_text(node, &[description]);
    }

    /// Reads further links of a feed or item: those in its texts, and those to people, comments and documentation.
    fn mentioned(&mut self, node: Node<'_, '_>) {
        for found in node.children().filter(Node::is_element) {
            match found.tag_name().name() {
                "title" | "subtitle" | "tagline" | "description" | "summary" | "content" | "encoded"
                | "rights" | "copyright" | "info" | "body" | "fullitem" => self.links(found),
                "comments" | "comment" | "commentRss" | "commentRSS" | "docs" | "origLink"
                | "new-feed-url" => {
                    self.add(found, &text_of(found), LinkKind::Related);
                }
                "author" | "contributor" => {
                    for page in ["uri", "url"].iter().filter_map(|name| child(found, name)) {
                        self.add(page, &text_of(page), LinkKind::Related);
                    }
                }
                // The source of an entry in an aggregated feed: metadata of another feed.
                "source" if found.first_element_child().is_some() => {
                    for link in children(found, "link") {
                        if let Some(href) = link.attribute("href") {
                            self.add(link, href, LinkKind::Related);
                        }
                    }
                }
                "source" | "license" => {
                    let attribute = found.attribute("url").or_else(|| found.attribute((RDF, "resource")));
                    let reference = attribute.map_or_else(|| text_of(found), Cow::Borrowed);
                    self.add(found, &reference, LinkKind::Related);
                }
                // The page that a search form of the feed leads to.
                "textInput" | "textinput" => {
                    if let Some(link) = child(found, "link") {
                        self.add(link, &text_of(link), LinkKind::Related);
                    }
                }
                // The taxonomy of a category may be a page, or just a name.
                "category" => {
                    let taxonomy = found.attribute("domain").or_else(|| found.attribute("scheme"));
                    if let Some(taxonomy) = taxonomy.filter(|taxonomy| taxonomy.contains("://")) {
                        self.add(found, taxonomy, LinkKind::Speculative);
                    }
                }
                "generator" => {
                    for page in ["uri", "url"].iter().filter_map(|name| found.attribute(*name)) {
                        self.add(found, page, LinkKind::Speculative);
                    }
                }
                _ => {}
            }
        }
    }

    /// Adds the links of a text, whether it is marked up as XML or as escaped HTML.
    fn links(&mut self, node: Node<'_, '_>) {
        if is_base64(node) {
            return links_inside(&content_of(node), self.bases.at(node));
        }
        for inner in node.descendants().skip(1) {
            if inner.is_element() {
                generic::element(inner, self.bases.at(inner));
            } else if let Some(text) = inner.text().filter(|text| inner.is_text() && text.contains('<')) {
                links_inside(text, self.bases.at(node));
            }
        }
    }

    /// Adds the texts of children with these names, which may hold markup.
    fn item_text(&mut self, node: Node<'_, '_>, names: &[&'static str]) {
        for name in names {
            if let Some(found) = child(node, name) {
                self.push_line(&visible(found));
            }
        }
    }

    fn push_line(&mut self, line: &str) {
        if !line.is_empty() {
            if !self.facts.text.is_empty() {
                self.facts.text.push('\n');
            }
            self.facts.text.push_str(line);
        }
    }

    fn dated(&mut self, place: Option<u32>, node: Node<'_, '_>, names: &[&'static str]) {
        let date = names.iter().find_map(|name| parse_date(&text_of(child(node, name)?)));
        if let (Some(link), Some(modified)) = (place, date) {
            self.facts.entries.push(DatedItem { link, modified });
        }
    }

    fn add(&mut self, node: Node<'_, '_>, reference: &str, kind: LinkKind) -> Option<u32> {
        self.bases.add(node, reference, kind)
    }
}
