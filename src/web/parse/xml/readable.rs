//! Feeds, sitemaps and other XML in a form for people to read: as text, with long parts cut.

use roxmltree::Node;
use serde::Serialize;

use super::super::html::one_line;
use super::super::{DocumentKind, ParseLimits, decoded, headers};
use super::walk::{child, children, text_of};
use super::{feed, kind_of, sitemap, with_tree};

/// Maximum bytes of a document that is shown.
const BYTES_MAX: usize = 16 << 20;

/// Maximum number of feed items, or of sitemap URLs, that are shown.
const ROWS_MAX: usize = 1000;

/// Maximum number and depth of a tree's elements, and maximum number of an element's attributes, that are shown.
const ELEMENTS_MAX: usize = 3000;
const DEPTH_MAX: usize = 32;
const ATTRIBUTES_MAX: usize = 20;

/// Maximum bytes of a text that is shown.
const TEXT_BYTES_MAX: usize = 1000;

/// Contents of an XML document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Readable {
    /// RSS and Atom.
    Feed {
        /// Title of the feed.
        title: String,
        /// Description of the feed.
        about: String,
        /// The first items.
        items: Vec<FeedItem>,
        /// Number of all items.
        count: usize,
    },
    /// A sitemap or a sitemap index.
    Sitemap {
        /// The first URLs.
        urls: Vec<SitemapUrl>,
        /// Number of all URLs.
        count: usize,
    },
    /// Other XML.
    Tree {
        /// The root element.
        root: ReadableElement,
        /// Number of elements shown.
        shown: usize,
        /// Number of all elements.
        count: usize,
    },
}

/// An item of a feed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FeedItem {
    /// Title of the item.
    pub title: String,
    /// Link of the item, as written.
    pub link: String,
    /// Date of the item, as written.
    pub date: String,
    /// Text of the item.
    pub text: String,
}

/// A URL of a sitemap; all fields are as written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SitemapUrl {
    /// The URL.
    pub url: String,
    /// Time of the last change.
    pub modified: String,
    /// Change frequency.
    pub changes: String,
    /// Priority of the URL.
    pub priority: String,
}

/// An element.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReadableElement {
    /// Local name.
    pub name: String,
    /// Names and values of the attributes.
    pub attributes: Vec<(String, String)>,
    /// Text directly in the element.
    pub text: String,
    /// Child elements that are shown.
    pub children: Vec<ReadableElement>,
    /// Number of child elements and attributes that are not shown.
    pub left_out: usize,
}

/// Why a document cannot be shown in this form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotReadable {
    /// It is not XML.
    NotXml,
    /// It is too long, or reading it takes too long.
    TooLong,
}

impl NotReadable {
    /// Returns the reason as a sentence.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::NotXml => "It is not an XML document.",
            Self::TooLong => "It is too long to be shown here.",
        }
    }
}

/// Returns the contents of a document if it is a feed, a sitemap or other XML.
///
/// # Errors
/// When the document is not XML, or is too long.
pub fn readable(body: &[u8], content_type: Option<&str>) -> Result<Readable, NotReadable> {
    if body.len() > BYTES_MAX {
        return Err(NotReadable::TooLong);
    }
    let media_type = headers::media_type(content_type);
    let kind = DocumentKind::of(&media_type, body);
    let (text, _) = decoded(body, content_type);
    if kind == DocumentKind::Text && sitemap::is_list(&text) {
        let urls = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let place = |url: &str| SitemapUrl { url: short(url), ..SitemapUrl::default() };
        return Ok(Readable::Sitemap {
            count: urls.clone().count(),
            urls: urls.take(ROWS_MAX).map(place).collect(),
        });
    }
    if !kind.is_xml() && !media_type.contains("xml") {
        return Err(NotReadable::NotXml);
    }
    let read = with_tree(text.trim_start(), &ParseLimits::default(), |tree, text, _| {
        let root = tree.root_element();
        match kind_of(tree, text) {
            DocumentKind::Html => Err(NotReadable::NotXml),
            DocumentKind::Feed => Ok(feed_of(root)),
            DocumentKind::Sitemap => Ok(sitemap_of(root)),
            _ => {
                let mut room = ELEMENTS_MAX;
                let count = tree.descendants().filter(Node::is_element).count();
                let root = element(root, 0, &mut room);
                Ok(Readable::Tree { root, shown: ELEMENTS_MAX - room, count })
            }
        }
    });
    read.unwrap_or(Err(NotReadable::NotXml))
}

fn short(text: &str) -> String {
    one_line(text, TEXT_BYTES_MAX)
}

/// Returns the text of the first child that has one of these names and is not empty.
fn said(node: Node<'_, '_>, names: &[&'static str]) -> String {
    let texts = names.iter().filter_map(|name| child(node, name)).map(|found| short(&feed::visible(found)));
    texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
}

fn feed_of(root: Node<'_, '_>) -> Readable {
    let channel = child(root, "channel").unwrap_or(root);
    let items = || {
        // RSS 0.90 and 1.0 have the items next to the channel.
        let outside = (channel != root).then(|| children(root, "item")).into_iter().flatten();
        children(channel, "item").chain(children(channel, "entry")).chain(outside)
    };
    Readable::Feed {
        title: said(channel, &["title"]),
        about: said(channel, &["description", "subtitle", "tagline"]),
        items: items().take(ROWS_MAX).map(item).collect(),
        count: items().count(),
    }
}

fn item(node: Node<'_, '_>) -> FeedItem {
    let link = children(node, "link")
        .filter(|link| matches!(link.attribute("rel"), None | Some("alternate")))
        .map(|link| link.attribute("href").map_or_else(|| text_of(link), Into::into))
        .find(|link| !link.is_empty());
    let guid = || child(node, "guid").map(text_of).filter(|guid| guid.contains("://"));
    FeedItem {
        title: said(node, &["title"]),
        link: short(&link.or_else(guid).unwrap_or_default()),
        date: said(node, &["pubDate", "date", "published", "updated", "issued", "modified"]),
        text: said(node, &["description", "summary", "encoded", "content"]),
    }
}

fn sitemap_of(root: Node<'_, '_>) -> Readable {
    let entries = || {
        root.children()
            .filter(|node| matches!(node.tag_name().name(), "url" | "sitemap") && node.is_element())
    };
    let place = |entry: Node<'_, '_>| {
        let text = |name| child(entry, name).map(|found| short(&text_of(found))).unwrap_or_default();
        // Some sitemaps put the URL directly into the entry.
        let url = child(entry, "loc").map_or_else(|| entry.text().unwrap_or_default().into(), text_of);
        SitemapUrl {
            url: short(&url),
            modified: text("lastmod"),
            changes: text("changefreq"),
            priority: text("priority"),
        }
    };
    Readable::Sitemap { urls: entries().take(ROWS_MAX).map(place).collect(), count: entries().count() }
}

/// Returns an element with its descendants, as long as there is room. Recursion is safe because the depth is limited.
fn element(node: Node<'_, '_>, depth: usize, room: &mut usize) -> ReadableElement {
    *room = room.saturating_sub(1);
    let attributes = node.attributes().map(|found| (short(found.name()), short(found.value())));
    let texts: Vec<&str> = node.children().filter(Node::is_text).filter_map(|text| text.text()).collect();
    let mut shown = ReadableElement {
        name: short(node.tag_name().name()),
        attributes: attributes.take(ATTRIBUTES_MAX).collect(),
        text: short(&texts.join(" ")),
        children: Vec::new(),
        left_out: node.attributes().len().saturating_sub(ATTRIBUTES_MAX),
    };
    for inner in node.children().filter(Node::is_element) {
        if *room > 0 && depth < DEPTH_MAX {
            shown.children.push(element(inner, depth + 1, room));
        } else {
            shown.left_out += 1;
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Readable {
        readable(text.as_bytes(), Some("application/xml")).unwrap()
    }

    #[test]
    fn feeds_are_lists_of_what_they_say() {
        let rss = read(
            "<rss><channel><title>News</title><description>All &lt;b&gt;of&lt;/b&gt; it</description>\
             <item><title>One</title><link>http://a.test/1</link><pubDate>Mon, 02 Jan 2006</pubDate>\
             <description>&lt;script&gt;x()&lt;/script&gt;&lt;p&gt;Said&lt;/p&gt;</description></item>\
             <item><guid>http://a.test/2</guid></item></channel></rss>",
        );
        let Readable::Feed { title, about, items, count } = rss else { panic!("{rss:?}") };
        assert_eq!((title.as_str(), about.as_str(), count), ("News", "All of it", 2));
        assert_eq!((items[0].text.as_str(), items[0].date.as_str()), ("Said", "Mon, 02 Jan 2006"));
        assert_eq!(items[1].link, "http://a.test/2");
        let atom = read(
            "<feed xmlns='http://www.w3.org/2005/Atom'><title>A</title><entry><title>T</title>\
             <link rel='edit' href='/no'/><link href='/yes'/><updated>2026-01-01</updated></entry></feed>",
        );
        let Readable::Feed { items, .. } = atom else { panic!("{atom:?}") };
        assert_eq!((items[0].link.as_str(), items[0].date.as_str()), ("/yes", "2026-01-01"));
    }

    #[test]
    fn sitemaps_are_tables() {
        let map = read("<urlset><url><loc> http://a.test/ </loc><priority>0.5</priority></url></urlset>");
        let Readable::Sitemap { urls, count } = map else { panic!("{map:?}") };
        assert_eq!((urls[0].url.as_str(), urls[0].priority.as_str(), count), ("http://a.test/", "0.5", 1));
        let list = readable(b"http://a.test/1\n\nhttp://a.test/2\n", Some("text/plain")).unwrap();
        assert!(matches!(list, Readable::Sitemap { count: 2, .. }), "{list:?}");
    }

    #[test]
    fn trees_have_limits_on_everything() {
        let deep = "<a>".repeat(DEPTH_MAX + 9) + &"</a>".repeat(DEPTH_MAX + 9);
        let Readable::Tree { root, shown, count } = read(&deep) else { panic!() };
        assert_eq!((shown, count), (DEPTH_MAX + 1, DEPTH_MAX + 9));
        let mut last = &root;
        while let Some(child) = last.children.first() {
            last = child;
        }
        assert_eq!(last.left_out, 1);
        let attributes: String = (0..ATTRIBUTES_MAX + 3).map(|number| format!(" a{number}='1'")).collect();
        let wide =
            format!("<a{attributes}>{}{}</a>", "x ".repeat(TEXT_BYTES_MAX), "<b/>".repeat(ELEMENTS_MAX));
        let Readable::Tree { root, shown, count } = read(&wide) else { panic!() };
        assert_eq!((shown, count, root.left_out), (ELEMENTS_MAX, ELEMENTS_MAX + 1, 3 + 1));
        assert!(root.text.len() <= TEXT_BYTES_MAX && root.attributes.len() == ATTRIBUTES_MAX);
        let rows =
            format!("<urlset>{}</urlset>", "<url><loc>http://a.test/</loc></url>".repeat(ROWS_MAX + 1));
        let Readable::Sitemap { urls, count } = read(&rows) else { panic!() };
        assert_eq!((urls.len(), count), (ROWS_MAX, ROWS_MAX + 1));
    }

    #[test]
    fn other_documents_than_xml_are_not_read() {
        assert_eq!(readable(b"<p>x", Some("text/html")), Err(NotReadable::NotXml));
        assert_eq!(readable(b"GIF89a", Some("image/gif")), Err(NotReadable::NotXml));
        let xhtml = b"<html xmlns='http://www.w3.org/1999/xhtml'><body/></html>";
        assert_eq!(readable(xhtml, Some("application/xhtml+xml")), Err(NotReadable::NotXml));
        assert_eq!(readable(&vec![b' '; BYTES_MAX + 1], Some("text/xml")), Err(NotReadable::TooLong));
    }
}
