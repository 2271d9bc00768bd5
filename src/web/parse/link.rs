//! Links: targets and roles.

use archive_storage::address::url_hash;

/// A link in a document or its HTTP head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Canonical absolute URL, `http` or `https`.
    pub url: String,
    /// [`url_hash`] of the URL.
    pub hash: u64,
    /// Role of the link in the document.
    pub kind: LinkKind,
    /// Whether every link to this URL in the document has `rel=nofollow`.
    pub nofollow: bool,
    /// Whether every link to this URL is in the page's template: navigation, header, footer or aside.
    pub template: bool,
    /// When the target last changed according to a sitemap or feed, in seconds since 1970.
    pub modified: Option<i64>,
}

impl Link {
    /// Creates a link of which nothing else is known.
    #[must_use]
    pub fn new(url: String, kind: LinkKind) -> Self {
        Self { hash: url_hash(&url), url, kind, nofollow: false, template: false, modified: None }
    }
}

/// Role of a link; the crawler's treatment of the link follows from it.
///
/// Codes are stored in the link log and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[non_exhaustive]
pub enum LinkKind {
    /// A link for a person to follow.
    Anchor = 1,
    /// An area of an image map.
    Area = 2,
    /// A frame of a frameset.
    Frame = 3,
    /// A document embedded in the document.
    InlineFrame = 4,
    /// An HTTP redirect.
    Redirect = 5,
    /// A delayed redirect, in the document or its head.
    Refresh = 6,
    /// The URL that a document prefers for itself.
    Canonical = 7,
    /// The same content in another language or form, for example as a feed.
    Alternate = 8,
    /// A document related to this one: `next`, `prev`, `help`, `license` and so on.
    Related = 9,
    /// An XLink for a person to follow.
    XLink = 10,
    /// An XLink whose target is shown inside the document.
    XLinkEmbed = 11,
    /// A document that XInclude includes in this one.
    XInclude = 12,
    /// An item of a feed.
    FeedEntry = 13,
    /// Another page of a feed or list, such as an OAI-PMH resumption.
    FeedPage = 14,
    /// A page in a sitemap.
    SitemapEntry = 15,
    /// A sitemap, in a sitemap index or in robots.txt.
    Sitemap = 16,
    /// A link in a document whose kind has no better name for it, such as a Dublin Core identifier.
    Reference = 17,
    /// The target of a form that only queries.
    Form = 18,
    /// A script's navigation to a literal URL.
    ScriptTarget = 19,
    /// A style sheet of an HTML document.
    Stylesheet = 32,
    /// A style sheet or transformation named by an XML processing instruction.
    XmlStylesheet = 33,
    /// A style sheet imported by another one.
    StyleImport = 34,
    /// An image or font in a style sheet.
    StyleResource = 35,
    /// A script.
    Script = 36,
    /// An image.
    Image = 37,
    /// An image that is available in several sizes.
    ImageSource = 38,
    /// An image that a script loads later.
    LazyImage = 39,
    /// Audio, video, subtitles or the still image of a video.
    Media = 40,
    /// An embedded object.
    Embed = 41,
    /// The icon of a site or document.
    Icon = 42,
    /// A resource that the browser should load at once.
    Preload = 43,
    /// The manifest of a web application.
    WebManifest = 44,
    /// An enclosure of a feed entry.
    Enclosure = 45,
    /// A document type definition.
    Dtd = 64,
    /// An external entity.
    ExternalEntity = 65,
    /// A schema.
    Schema = 66,
    /// robots.txt or DNS, which are needed before a page can be fetched.
    Prerequisite = 67,
    /// A guess: something that a document mentions without marking it as a link.
    Speculative = 96,
}

/// Every kind with its hop letter and context.
const KINDS: [(LinkKind, char, &str); 38] = {
    use LinkKind::*;
    [
        (Anchor, 'L', "a/@href"),
        (Area, 'L', "area/@href"),
        (Frame, 'E', "frame/@src"),
        (InlineFrame, 'E', "iframe/@src"),
        (Redirect, 'R', "Location:"),
        (Refresh, 'R', "meta[@http-equiv=refresh]/@content"),
        (Canonical, 'L', "link[@rel=canonical]/@href"),
        (Alternate, 'L', "link[@rel=alternate]/@href"),
        (Related, 'L', "link/@href"),
        (XLink, 'L', "@xlink:href"),
        (XLinkEmbed, 'E', "@xlink:href[../@xlink:show=embed]"),
        (XInclude, 'E', "xi:include/@href"),
        (FeedEntry, 'L', "item/link"),
        (FeedPage, 'L', "resumptionToken"),
        (SitemapEntry, 'M', "url/loc"),
        (Sitemap, 'M', "sitemap/loc"),
        (Reference, 'L', "identifier"),
        (Form, 'L', "form/@action"),
        (ScriptTarget, 'L', "script/location"),
        (Stylesheet, 'E', "link[@rel=stylesheet]/@href"),
        (XmlStylesheet, 'E', "processing-instruction(xml-stylesheet)"),
        (StyleImport, 'E', "@import"),
        (StyleResource, 'E', "css/url()"),
        (Script, 'E', "script/@src"),
        (Image, 'E', "img/@src"),
        (ImageSource, 'E', "img/@srcset"),
        (LazyImage, 'E', "img/@data-src"),
        (Media, 'E', "source/@src"),
        (Embed, 'E', "embed/@src"),
        (Icon, 'E', "link[@rel=icon]/@href"),
        (Preload, 'E', "link[@rel=preload]/@href"),
        (WebManifest, 'E', "link[@rel=manifest]/@href"),
        (Enclosure, 'E', "enclosure/@url"),
        (Dtd, 'P', "doctype"),
        (ExternalEntity, 'P', "entity"),
        (Schema, 'P', "@xsi:schemaLocation"),
        (Prerequisite, 'P', "prerequisite"),
        (Speculative, 'X', "speculative"),
    ]
};

impl LinkKind {
    /// Returns every kind, by code.
    pub fn all() -> impl Iterator<Item = Self> {
        KINDS.iter().map(|&(kind, ..)| kind)
    }

    /// Returns the stable number for use in files.
    #[must_use]
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Returns the kind with this code; none if a newer version wrote it.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::all().find(|kind| kind.code() == code)
    }

    /// Letter in Heritrix's hop paths: L link, E embed, R redirect, M sitemap, P prerequisite, X guess.
    #[must_use]
    pub fn hop(self) -> char {
        self.row().1
    }

    /// Where such a link occurs, in XPath style, as in `outlink` lines of metadata records.
    #[must_use]
    pub fn context(self) -> &'static str {
        self.row().2
    }

    /// Whether the page is incomplete without the target, which is therefore captured with the page.
    #[must_use]
    pub fn is_requisite(self) -> bool {
        matches!(self.hop(), 'E' | 'P') && self != Self::Enclosure && self != Self::Prerequisite
    }

    /// Whether importance flows along the link: its target is a document, not a part of this page.
    #[must_use]
    pub fn carries_cash(self) -> bool {
        (self as u8) < Self::Stylesheet as u8
    }

    /// Whether a browser shows or runs the target as a part of the document, so that it is not a document itself.
    pub(crate) fn is_subresource(self) -> bool {
        use LinkKind::*;
        matches!(
            self,
            Stylesheet | XmlStylesheet | StyleImport | StyleResource | Script | Image | ImageSource | Media
        )
    }

    fn row(self) -> (Self, char, &'static str) {
        KINDS[KINDS.iter().position(|&(kind, ..)| kind == self).unwrap_or(0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_row_and_code() {
        let mut last = 0;
        for kind in LinkKind::all() {
            assert!(kind.code() > last, "rows are in the order of codes");
            last = kind.code();
            assert_eq!(LinkKind::from_code(kind.code()), Some(kind));
            assert_eq!(kind.row().0, kind);
        }
        assert_eq!(LinkKind::all().count(), KINDS.len());
        assert_eq!(LinkKind::from_code(0), None);
    }

    /// Metadata records name kinds by their contexts, as words separated by spaces.
    #[test]
    fn contexts_distinguish_kinds() {
        let mut contexts: Vec<_> = LinkKind::all().map(LinkKind::context).collect();
        assert!(contexts.iter().all(|context| !context.contains(char::is_whitespace)));
        contexts.sort_unstable();
        contexts.dedup();
        assert_eq!(contexts.len(), KINDS.len());
    }

    #[test]
    fn cash_flows_to_documents_only() {
        assert!(LinkKind::Anchor.carries_cash() && !LinkKind::Anchor.is_requisite());
        assert!(LinkKind::InlineFrame.carries_cash() && LinkKind::InlineFrame.is_requisite());
        assert!(!LinkKind::Image.carries_cash() && LinkKind::Image.is_requisite());
        assert!(!LinkKind::Dtd.carries_cash() && LinkKind::Dtd.is_requisite());
        assert!(!LinkKind::Speculative.carries_cash() && !LinkKind::Speculative.is_requisite());
    }
}
