//! The HTML elements that matter for links, text or change detection.

/// An HTML element, with only the distinctions needed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each has the name of its element")]
pub enum HtmlElement {
    Anchor,
    Area,
    Article,
    Aside,
    Audio,
    Base,
    Body,
    Button,
    Division,
    Embed,
    Footer,
    Form,
    Frame,
    Header,
    /// Names the following part of the document: a heading, a caption, a term of a list.
    Heading,
    Html,
    InlineFrame,
    Image,
    Input,
    Inserted,
    Link,
    Math,
    Meta,
    Navigation,
    NoEmbed,
    NoFrames,
    NoScript,
    Object,
    Parameter,
    PlainText,
    Preformatted,
    Script,
    Section,
    Source,
    Style,
    Svg,
    SvgImage,
    TableCell,
    Template,
    TextArea,
    Title,
    Track,
    Video,
    /// Begins a new line of text; has no other effect.
    Block,
    /// Separates words; has no other effect.
    Space,
    /// None of the above.
    Inline,
}

/// Maximum bytes of the names in the table.
const NAME_BYTES_MAX: usize = 14;

impl HtmlElement {
    /// Returns the element with this name, ignoring case.
    pub fn of(name: &str) -> Self {
        let name = name.as_bytes();
        if name.len() > NAME_BYTES_MAX {
            return Self::Inline;
        }
        let mut lower = [0; NAME_BYTES_MAX];
        for (to, from) in lower.iter_mut().zip(name) {
            *to = from.to_ascii_lowercase();
        }
        match &lower[..name.len()] {
            b"a" => Self::Anchor,
            b"div" => Self::Division,
            b"p" | b"li" | b"br" | b"dd" | b"dl" | b"hr" | b"ol" | b"tr" | b"ul" | b"dir" | b"pre"
            | b"head" | b"menu" | b"thead" | b"tbody" | b"tfoot" | b"center" | b"dialog" | b"figure"
            | b"hgroup" | b"legend" | b"option" | b"address" | b"details" | b"listing" | b"summary"
            | b"fieldset" | b"frameset" | b"optgroup" | b"blockquote" | b"figcaption" => Self::Block,
            b"span" | b"b" | b"i" | b"em" | b"strong" | b"path" | b"g" => Self::Inline,
            b"td" | b"th" | b"table" => Self::TableCell,
            b"img" | b"amp-img" | b"amp-anim" | b"mglyph" => Self::Image,
            b"link" => Self::Link,
            b"meta" => Self::Meta,
            b"script" => Self::Script,
            b"section" => Self::Section,
            b"nav" => Self::Navigation,
            b"svg" => Self::Svg,
            b"math" => Self::Math,
            b"image" | b"use" | b"feimage" | b"lineargradient" | b"radialgradient" | b"pattern"
            | b"filter" | b"textpath" | b"tref" | b"cursor" | b"mpath" => Self::SvgImage,
            b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" | b"dt" | b"caption" => Self::Heading,
            b"header" => Self::Header,
            b"article" | b"main" => Self::Article,
            b"button" => Self::Button,
            b"area" => Self::Area,
            b"aside" => Self::Aside,
            b"audio" | b"amp-audio" => Self::Audio,
            b"base" => Self::Base,
            b"body" => Self::Body,
            b"embed" | b"xml" => Self::Embed,
            b"footer" => Self::Footer,
            b"form" => Self::Form,
            b"frame" | b"layer" | b"ilayer" | b"portal" => Self::Frame,
            b"html" => Self::Html,
            b"iframe" => Self::InlineFrame,
            b"input" => Self::Input,
            b"ins" => Self::Inserted,
            b"noembed" => Self::NoEmbed,
            b"noframes" => Self::NoFrames,
            b"noscript" => Self::NoScript,
            b"object" | b"applet" => Self::Object,
            b"param" => Self::Parameter,
            b"plaintext" => Self::PlainText,
            b"xmp" => Self::Preformatted,
            b"source" => Self::Source,
            b"style" => Self::Style,
            b"template" => Self::Template,
            b"textarea" => Self::TextArea,
            b"title" => Self::Title,
            b"track" | b"bgsound" => Self::Track,
            b"video" | b"amp-video" => Self::Video,
            b"select" | b"label" | b"canvas" | b"meter" | b"output" | b"progress" | b"wbr" => Self::Space,
            _ => Self::Inline,
        }
    }

    /// Whether the texts before and after its tags are on different lines.
    pub(crate) fn breaks_line(self) -> bool {
        matches!(
            self,
            Self::Block
                | Self::Heading
                | Self::Division
                | Self::Section
                | Self::Aside
                | Self::Footer
                | Self::Navigation
                | Self::Header
                | Self::Article
                | Self::TableCell
                | Self::Body
                | Self::Html
                | Self::Title
                | Self::NoScript
                | Self::NoFrames
                | Self::Form
                | Self::Frame
                | Self::InlineFrame
                | Self::PlainText
                | Self::Preformatted
                | Self::Template
                | Self::Style
                | Self::Video
                | Self::Audio
        )
    }

    /// Whether the texts before and after its tags are different words.
    pub(crate) fn parts_words(self) -> bool {
        matches!(
            self,
            Self::Space
                | Self::Button
                | Self::Image
                | Self::Input
                | Self::TextArea
                | Self::Object
                | Self::Embed
                | Self::Svg
        )
    }
}
