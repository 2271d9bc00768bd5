//! Links: where they point, and in what role.

/// A link found in a document or its HTTP head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The canonical absolute URL, `http` or `https`.
    pub url: String,
    /// [`archive_storage::address::url_hash`] of the URL.
    pub hash: u64,
    /// The role in which the document links.
    pub kind: LinkKind,
    /// Whether every link to this URL in the document carries `rel=nofollow`.
    pub nofollow: bool,
    /// Whether every link to this URL is in a page's template: navigation, header, footer, aside.
    pub template: bool,
}

/// The role of a link, with everything the crawler derives from it.
///
/// The codes are stored in the link log: they are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[non_exhaustive]
pub enum LinkKind {
    /// A link a person follows.
    Anchor = 1,
    /// A part of an image map.
    Area = 2,
    /// A frame of a frame set.
    Frame = 3,
    /// A document inside the document.
    InlineFrame = 4,
    /// An HTTP redirect.
    Redirect = 5,
    /// A redirect by the document or its head after some seconds.
    Refresh = 6,
    /// The address a document prefers for itself.
    Canonical = 7,
    /// The same in another language or form, as a feed for example.
    Alternate = 8,
    /// A document next to this one: `next`, `prev`, `help`, `license` and so on.
    Related = 9,
    /// An XLink that a person follows.
    XLink = 10,
    /// An XLink whose target shows inside the document.
    XLinkEmbed = 11,
    /// A document that XInclude puts into this one.
    XInclude = 12,
    /// An item of a feed.
    FeedEntry = 13,
    /// Another page of a feed or list, as OAI-PMH's resumption.
    FeedPage = 14,
    /// A page in a sitemap.
    SitemapEntry = 15,
    /// A sitemap in an index of sitemaps or in robots.txt.
    Sitemap = 16,
    /// A link in a document whose kind has no better name for it, as Dublin Core identifiers.
    Reference = 17,
    /// Where a form leads that only asks.
    Form = 18,
    /// Where a script leads by a literal.
    ScriptTarget = 19,
    /// A style sheet of an HTML document.
    Stylesheet = 32,
    /// A style sheet or transformation that an XML processing instruction names.
    XmlStylesheet = 33,
    /// A style sheet that another one imports.
    StyleImport = 34,
    /// An image or font that a style sheet names.
    StyleResource = 35,
    /// A script.
    Script = 36,
    /// An image.
    Image = 37,
    /// An image in one of several sizes.
    ImageSource = 38,
    /// An image that a script is to load.
    LazyImage = 39,
    /// Sound, film, subtitles or the still image of a film.
    Media = 40,
    /// An embedded object.
    Embed = 41,
    /// The icon of a site or document.
    Icon = 42,
    /// What a browser is asked to load at once.
    Preload = 43,
    /// A web application's manifest.
    WebManifest = 44,
    /// What a feed entry encloses.
    Enclosure = 45,
    /// A document type definition.
    Dtd = 64,
    /// An entity outside the document.
    ExternalEntity = 65,
    /// A schema.
    Schema = 66,
    /// robots.txt or DNS, which come before a page can be fetched.
    Prerequisite = 67,
    /// A guess: what a document mentions without saying that it is a link.
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
    /// Every kind, by code.
    pub fn all() -> impl Iterator<Item = Self> {
        KINDS.iter().map(|&(kind, ..)| kind)
    }

    /// The stable number that files hold.
    #[must_use]
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The kind with this code; none when a newer version has written it.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::all().find(|kind| kind.code() == code)
    }

    /// The letter of Heritrix's hop paths: L link, E embed, R redirect, M sitemap, P prerequisite, X guess.
    #[must_use]
    pub fn hop(self) -> char {
        self.row().1
    }

    /// Where such a link stands, in the manner of XPath, as `outlink` lines of metadata records have it.
    #[must_use]
    pub fn context(self) -> &'static str {
        self.row().2
    }

    /// Whether the page isn't whole without the target: it is captured with the page.
    #[must_use]
    pub fn is_requisite(self) -> bool {
        matches!(self.hop(), 'E' | 'P') && self != Self::Enclosure && self != Self::Prerequisite
    }

    /// Whether importance flows along the link: it leads to a document, not to a part of this page.
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

    /// Metadata records name kinds by their contexts, as words between spaces.
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
