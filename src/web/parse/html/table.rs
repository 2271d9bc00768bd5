//! The attributes that hold references, by element, and the role of these: current and earlier HTML, SVG, MathML, and
//! the attributes that lazy-loading scripts look for.
//!
//! Elements with more than one relevant attribute are in `attributes`.

use super::super::LinkKind;
use super::element::HtmlElement;

/// How an attribute's value holds references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceForm {
    /// A single one.
    Url,
    /// Several, separated by spaces.
    Words,
    /// Image candidates.
    Candidates,
    /// Declarations of a style sheet.
    Style,
    /// A single one, or something else: the attribute is in no standard.
    Guess,
}

/// Maximum bytes of the names in the table.
const NAME_BYTES_MAX: usize = 21;

/// Returns the form and role of references in an attribute of an element, ignoring case; none if it holds none.
pub fn role(element: HtmlElement, attribute: &str) -> Option<(ReferenceForm, LinkKind)> {
    use HtmlElement as E;
    use LinkKind as K;
    let name = attribute.as_bytes();
    if !(3..=NAME_BYTES_MAX).contains(&name.len()) {
        return None;
    }
    let mut lower = [0; NAME_BYTES_MAX];
    for (to, from) in lower.iter_mut().zip(name) {
        *to = from.to_ascii_lowercase();
    }
    let kind = match &lower[..name.len()] {
        b"src" => match element {
            E::Image => K::Image,
            E::Script => K::Script,
            E::InlineFrame => K::InlineFrame,
            E::Frame => K::Frame,
            E::Source | E::Track | E::Audio | E::Video => K::Media,
            E::Embed => K::Embed,
            _ => return None,
        },
        b"href" => match element {
            E::Area => K::Area,
            E::SvgImage => K::Image,
            E::Script => K::Script,
            _ => return None,
        },
        b"xlink:href" => match element {
            E::Anchor => return None,
            E::Script => K::Script,
            _ => K::Image,
        },
        b"style" => return Some((ReferenceForm::Style, K::StyleResource)),
        b"srcset" | b"imagesrcset" => return Some((ReferenceForm::Candidates, K::ImageSource)),
        b"data-srcset" | b"data-lazy-srcset" | b"data-original-set" => {
            return Some((ReferenceForm::Candidates, K::LazyImage));
        }
        b"data-src" if element == E::InlineFrame => K::InlineFrame,
        b"data-src" | b"data-original" | b"data-lazy-src" => K::LazyImage,
        b"data-original-src"
        | b"data-lazy"
        | b"data-lazyload"
        | b"data-hi-res-src"
        | b"data-background"
        | b"data-background-image"
        | b"data-bg"
        | b"data-bg-image"
        | b"data-image"
        | b"data-image-src"
        | b"data-img-src"
        | b"data-poster"
        | b"data-thumb"
        | b"data-zoom-image"
        | b"data-full-src"
        | b"data-large-file"
        | b"data-orig-file" => return Some((ReferenceForm::Guess, K::LazyImage)),
        b"data-href" => return Some((ReferenceForm::Guess, K::Related)),
        b"background" | b"lowsrc" | b"altimg" => K::Image,
        b"poster" | b"dynsrc" => K::Media,
        b"cite" | b"longdesc" | b"usemap" | b"profile" => K::Related,
        b"manifest" if element == E::Html => K::WebManifest,
        b"pluginspage" | b"formaction" => K::Speculative,
        b"ping" => return Some((ReferenceForm::Words, K::Speculative)),
        _ => return None,
    };
    Some((ReferenceForm::Url, kind))
}

/// Returns the role of the reference in a `meta` element, by its `property`, `name` or `itemprop`; none if it holds no
/// reference.
pub fn role_of_property(name: &str) -> Option<LinkKind> {
    const IMAGES: [&str; 17] = [
        "og:image",
        "og:image:url",
        "og:image:secure_url",
        "twitter:image",
        "twitter:image:src",
        "image",
        "logo",
        "photo",
        "thumbnail",
        "thumbnailurl",
        "primaryimageofpage",
        "msapplication-tileimage",
        "msapplication-square70x70logo",
        "msapplication-square150x150logo",
        "msapplication-square310x310logo",
        "msapplication-wide310x150logo",
        "msapplication-config",
    ];
    const MEDIA: [&str; 8] = [
        "og:video",
        "og:video:url",
        "og:video:secure_url",
        "og:audio",
        "og:audio:url",
        "og:audio:secure_url",
        "twitter:player:stream",
        "contenturl",
    ];
    const PAGES: [&str; 17] = [
        "og:url",
        "og:see_also",
        "twitter:url",
        "twitter:player",
        "article:author",
        "article:publisher",
        "msapplication-starturl",
        "citation_pdf_url",
        "citation_fulltext_html_url",
        "citation_abstract_html_url",
        "citation_public_url",
        "embedurl",
        "mainentityofpage",
        "sameas",
        "url",
        "discussionurl",
        "downloadurl",
    ];
    let is_in = |names: &[&str]| names.iter().any(|one| name.eq_ignore_ascii_case(one));
    match name {
        _ if is_in(&IMAGES) => Some(LinkKind::Image),
        _ if is_in(&MEDIA) => Some(LinkKind::Media),
        _ if is_in(&PAGES) => Some(LinkKind::Related),
        _ => None,
    }
}

/// Returns the kind of link for a `rel` of a `link` element or `Link` header field; none if its target cannot be
/// captured.
pub fn kind_of_relation(rel: &str, media_type: Option<&str>) -> Option<LinkKind> {
    let mut best = None;
    for word in rel.split_ascii_whitespace() {
        let kind = match kind_of_word(&word.to_ascii_lowercase(), media_type) {
            Some(LinkKind::Stylesheet) => return Some(LinkKind::Stylesheet),
            Some(kind) => kind,
            None => continue,
        };
        // A more specific word overrides `alternate` or an unknown one.
        best = match best {
            None | Some(LinkKind::Speculative | LinkKind::Alternate) => Some(kind),
            kept => kept,
        };
    }
    best
}

/// From the HTML standard, section 4.6.7; IANA's registry of link relations; and earlier usage.
fn kind_of_word(word: &str, media_type: Option<&str>) -> Option<LinkKind> {
    Some(match word {
        "stylesheet" | "stylesheet/less" => LinkKind::Stylesheet,
        "icon"
        | "apple-touch-icon"
        | "apple-touch-icon-precomposed"
        | "mask-icon"
        | "fluid-icon"
        | "apple-touch-startup-image"
        | "image_src"
        | "thumbnail"
        | "logo" => LinkKind::Icon,
        "canonical" => LinkKind::Canonical,
        "alternate" if media_type.is_some_and(|media_type| media_type.contains("oembed")) => {
            LinkKind::Speculative
        }
        "alternate" => LinkKind::Alternate,
        "preload" | "modulepreload" | "prefetch" | "prerender" | "subresource" | "import" | "fontdef" => {
            LinkKind::Preload
        }
        "video_src" | "audio_src" => LinkKind::Media,
        "manifest" => LinkKind::WebManifest,
        "sitemap" => LinkKind::Sitemap,
        "enclosure" => LinkKind::Enclosure,
        "dns-prefetch" | "preconnect" | "shortcut" | "nofollow" | "noopener" | "noreferrer" | "external" => {
            return None;
        }
        _ if PAGES.contains(&word) => LinkKind::Related,
        _ => LinkKind::Speculative,
    })
}

/// Relations to other documents.
const PAGES: [&str; 58] = [
    "next",
    "prev",
    "previous",
    "first",
    "last",
    "up",
    "top",
    "home",
    "index",
    "contents",
    "toc",
    "start",
    "begin",
    "end",
    "origin",
    "parent",
    "child",
    "sibling",
    "chapter",
    "section",
    "subsection",
    "appendix",
    "glossary",
    "copyright",
    "help",
    "author",
    "made",
    "me",
    "publisher",
    "license",
    "bookmark",
    "search",
    "archives",
    "amphtml",
    "shortlink",
    "privacy-policy",
    "terms-of-service",
    "tag",
    "latest-version",
    "predecessor-version",
    "successor-version",
    "version-history",
    "working-copy",
    "describedby",
    "about",
    "item",
    "collection",
    "cite-as",
    "related",
    "via",
    "source",
    "replies",
    "feed",
    "meta",
    "profile",
    "original",
    "mobile",
    "handheld",
];
