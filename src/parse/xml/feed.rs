//! RSS 0.9x, 1.0, 2.0 and Atom.
//!
//! Elements are known by their local names: feeds are careless about namespaces, and no two of these vocabularies mean
//! different things by one name.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use roxmltree::{Document, Node};

use super::super::html::{anchors_of, fragment_text};
use super::super::outlinks::Outlinks;
use super::super::{Entry, LinkKind, parse_date};
use super::walk::{RDF, XML, child, children, text_of};

/// What a feed says of itself and its items.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FeedFacts {
    pub(super) title: String,
    pub(super) text: String,
    pub(super) entries: Vec<Entry>,
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
pub(super) fn read(document: &Document<'_>, outlinks: &mut Outlinks) -> FeedFacts {
    let root = document.root_element();
    let mut reader = Reader { outlinks, facts: FeedFacts::default() };
    if root.tag_name().name() == "feed" {
        reader.atom(root);
    } else {
        reader.rss(root);
    }
    reader.facts
}

/// Whether a text is written in base64, as Atom 0.3 allowed (section 3.1.2).
fn is_base64(node: Node<'_, '_>) -> bool {
    node.attribute("mode") == Some("base64")
}

/// The text of a title, summary or content.
fn content_of<'a>(node: Node<'a, '_>) -> Cow<'a, str> {
    let text = text_of(node);
    if !is_base64(node) {
        return text;
    }
    let symbols: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    match STANDARD.decode(symbols) {
        Ok(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        Err(_) => text,
    }
}

struct Reader<'o> {
    outlinks: &'o mut Outlinks,
    facts: FeedFacts,
}

impl Reader<'_> {
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
        // A feed that has moved says so in a document of its own.
        for moved in children(root, "redirect").filter_map(|redirect| child(redirect, "newLocation")) {
            self.add(moved, &text_of(moved), LinkKind::Redirect);
        }
        // RSS 0.90 and 1.0 have the items beside the channel.
        for item in children(root, "item") {
            self.rss_item(item);
        }
    }

    fn image(&mut self, channel: Node<'_, '_>) {
        for image in children(channel, "image") {
            if let Some(url) = child(image, "url") {
                self.add(url, &text_of(url), LinkKind::Icon);
            }
            if let Some(link) = child(image, "link") {
                self.add(link, &text_of(link), LinkKind::Related);
            }
        }
    }

    /// The site of an RSS channel, or an Atom link inside of one.
    fn channel_link(&mut self, link: Node<'_, '_>) {
        match link.attribute("href") {
            Some(href) => self.feed_link(link, href),
            None => {
                self.add(link, &text_of(link), LinkKind::Related);
            }
        }
    }

    /// An Atom link of the feed itself.
    fn feed_link(&mut self, link: Node<'_, '_>, href: &str) {
        let kind = match link.attribute("rel").unwrap_or("alternate") {
            "hub" | "search" | "edit" => return,
            // Where the feed wants to be read: mostly here, but not always.
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

    /// Enclosures, and Media RSS's content.
    fn item_media(&mut self, item: Node<'_, '_>) {
        for media in item.descendants() {
            if matches!(media.tag_name().name(), "enclosure" | "content" | "thumbnail")
                && let Some(url) = media.attribute("url")
            {
                self.add(media, url, LinkKind::Enclosure);
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
        // Some writers of Atom took RSS's name for entries.
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
                "edit" | "edit-media" | "self" => continue,
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

    /// The feed's own title and what it says of itself.
    fn about(&mut self, node: Node<'_, '_>, description: &'static str) {
        self.mentioned(node);
        if self.facts.title.is_empty() {
            self.facts.title = child(node, "title").map(content_of).unwrap_or_default().into_owned();
        }
        self.item_text(node, &[description]);
    }

    /// What a feed or item links to besides: in its texts, and to people, comments and documentation.
    fn mentioned(&mut self, node: Node<'_, '_>) {
        for found in node.children().filter(Node::is_element) {
            match found.tag_name().name() {
                "title" | "subtitle" | "tagline" | "description" | "summary" | "content" | "encoded"
                | "rights" | "copyright" | "info" | "body" | "fullitem" => self.anchors(found),
                "comments" | "comment" | "commentRss" | "commentRSS" | "docs" => {
                    self.add(found, &text_of(found), LinkKind::Related);
                }
                "author" | "contributor" => {
                    for page in ["uri", "url"].iter().filter_map(|name| child(found, name)) {
                        self.add(page, &text_of(page), LinkKind::Related);
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
                // The taxonomy that a category is of may be a page, or a mere name.
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

    /// The links that a person sees in a text, whether it is marked up as XML or as escaped HTML.
    fn anchors(&mut self, node: Node<'_, '_>) {
        if is_base64(node) {
            anchors_of(&content_of(node), |href| {
                self.add(node, href, LinkKind::Anchor);
            });
            return;
        }
        for inner in node.descendants() {
            if let Some(href) = inner.attribute("href").filter(|_| inner.tag_name().name() == "a") {
                self.add(inner, href, LinkKind::Anchor);
            }
            if let Some(text) = inner.text().filter(|text| inner.is_text() && text.contains('<')) {
                anchors_of(text, |href| {
                    self.add(node, href, LinkKind::Anchor);
                });
            }
        }
    }

    /// Adds the texts of these children, which may hold markup.
    fn item_text(&mut self, node: Node<'_, '_>, names: &[&'static str]) {
        for name in names {
            if let Some(found) = child(node, name) {
                self.push_line(&fragment_text(&content_of(found)));
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
            self.facts.entries.push(Entry { link, modified });
        }
    }

    /// Adds a link against the `xml:base` of its element.
    fn add(&mut self, node: Node<'_, '_>, reference: &str, kind: LinkKind) -> Option<u32> {
        let bases: Vec<&str> = node.ancestors().filter_map(|found| found.attribute((XML, "base"))).collect();
        if bases.is_empty() {
            return self.outlinks.add(reference, kind, false);
        }
        let mut base = self.outlinks.base().clone();
        for inner in bases.iter().rev() {
            base =
                base.join(inner).ok().filter(|url| matches!(url.scheme(), "http" | "https")).unwrap_or(base);
        }
        if reference.trim().is_empty() {
            return None;
        }
        let absolute = base.join(reference.trim()).ok()?;
        self.outlinks.add(absolute.as_str(), kind, false)
    }
}
