//! Types of pages.

use archive_web::parse::DocumentKind;

/// The type of a page's newest capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PageType {
    /// HTML and XHTML pages.
    Html,
    /// XML documents that are neither feeds nor sitemaps.
    Xml,
    /// RSS and Atom feeds.
    Feed,
    /// Sitemaps and sitemap indexes.
    Sitemap,
    /// Style sheets.
    Style,
    /// Scripts.
    Script,
    /// Images.
    Image,
    /// Plain text, including robots.txt.
    Text,
    /// PDF documents.
    Pdf,
    /// Everything else.
    Other,
}

impl PageType {
    /// Every type.
    pub const EACH: [Self; 10] = [
        Self::Html,
        Self::Xml,
        Self::Feed,
        Self::Sitemap,
        Self::Style,
        Self::Script,
        Self::Image,
        Self::Text,
        Self::Pdf,
        Self::Other,
    ];

    /// The name in queries and answers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Xml => "xml",
            Self::Feed => "feed",
            Self::Sitemap => "sitemap",
            Self::Style => "style",
            Self::Script => "script",
            Self::Image => "image",
            Self::Text => "text",
            Self::Pdf => "pdf",
            Self::Other => "other",
        }
    }

    /// Whether a query for the type `asked` includes pages of this type: `xml` includes feeds and sitemaps.
    #[must_use]
    pub fn is(self, asked: Self) -> bool {
        self == asked || asked == Self::Xml && matches!(self, Self::Feed | Self::Sitemap)
    }

    /// The type of a kind of document, by its code.
    pub(crate) fn from_code(code: u8) -> Self {
        match DocumentKind::from_code(code) {
            DocumentKind::Html => Self::Html,
            DocumentKind::Xml | DocumentKind::OaiPmh => Self::Xml,
            DocumentKind::Feed => Self::Feed,
            DocumentKind::Sitemap => Self::Sitemap,
            DocumentKind::Css => Self::Style,
            DocumentKind::Script => Self::Script,
            DocumentKind::Image => Self::Image,
            DocumentKind::Text | DocumentKind::Json => Self::Text,
            DocumentKind::Pdf => Self::Pdf,
            _ => Self::Other,
        }
    }

    /// The type of a document with this media type.
    pub(crate) fn of(content_type: &str) -> Self {
        Self::from_code(DocumentKind::of(content_type, &[]).code())
    }
}
