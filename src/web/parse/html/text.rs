//! The visible text of a document, line by line, and the parts of it that are not its own.
//!
//! A line is what a reader sees as one: block elements end it. White space becomes a single space. Regions (navigation,
//! footers, advertisements) are marked so that the signature can leave them out; hidden ones are removed from the text.
//! A region counts only once its end tag is found: an element that is never closed swallows nothing.

use std::ops::Range;

use super::element::HtmlElement;
use crate::parse::LinkText;

/// Maximum number of headings of a document, and of link texts.
const LABELS_MAX: usize = 10_000;

/// Maximum bytes of a heading or link text; longer ones are not names.
const LABEL_BYTES_MAX: usize = 256;

/// Maximum number of open regions; deeper ones are ignored.
const REGIONS_OPEN_MAX: usize = 16;

/// Treatment of a region's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextRole {
    /// Not visible: removed from the text.
    Hidden,
    /// On many pages, or changing without editing: stays in the text, but not in the signature.
    Surrounding,
}

#[derive(Debug)]
struct Region {
    element: HtmlElement,
    role: TextRole,
    /// Number of open elements of the same name inside.
    depth: u32,
    start: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    None,
    Space,
    Line,
}

/// Assembles the text.
#[derive(Debug)]
pub(crate) struct TextBuilder {
    text: String,
    gap: Gap,
    open: Vec<Region>,
    marks: TextMarks,
    /// Start of a heading whose line has not ended yet.
    heading: Option<usize>,
    /// The link whose element is open, and the start of its text.
    link: Option<(u32, usize)>,
}

/// Marked parts of a document's text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TextMarks {
    /// Parts that are not the page's own, in the order of their ends.
    pub(crate) surroundings: Vec<Range<usize>>,
    /// Names of the document's parts.
    pub(crate) headings: Vec<Range<usize>>,
    /// Texts of its links.
    pub(crate) link_texts: Vec<LinkText>,
}

impl TextMarks {
    /// Drops everything that ends after `at`.
    pub(crate) fn cut(&mut self, at: usize) {
        for ranges in [&mut self.surroundings, &mut self.headings] {
            ranges.truncate(ranges.partition_point(|range| range.end <= at));
        }
        self.link_texts.truncate(self.link_texts.partition_point(|link| link.range.end <= at));
    }
}

impl TextBuilder {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self {
            text: String::with_capacity(bytes),
            gap: Gap::None,
            open: Vec::new(),
            marks: TextMarks::default(),
            heading: None,
            link: None,
        }
    }

    /// Starts a new line before the next word.
    pub(crate) fn end_line(&mut self) {
        self.gap = Gap::Line;
        if let Some(start) = self.heading.take_if(|start| *start < self.text.len())
            && let Some(range) = self.label(start)
            && self.marks.headings.len() < LABELS_MAX
        {
            self.marks.headings.push(range);
        }
    }

    /// Starts a heading, which ends with its line.
    pub(crate) fn begin_heading(&mut self) {
        self.heading = Some(self.text.len());
    }

    /// Ends a heading without content.
    pub(crate) fn end_heading(&mut self) {
        self.heading = None;
    }

    /// Starts the text of the link at this index of [`crate::parse::ParsedDocument::links`].
    pub(crate) fn begin_link(&mut self, link: u32) {
        self.end_link();
        self.link = Some((link, self.text.len()));
    }

    /// Ends the text of the open link.
    pub(crate) fn end_link(&mut self) {
        if let Some((link, start)) = self.link.take()
            && let Some(range) = self.label(start)
            && self.marks.link_texts.len() < LABELS_MAX
        {
            self.marks.link_texts.push(LinkText { link, range });
        }
    }

    /// Drops the texts of links, whose indexes have changed.
    pub(crate) fn forget_links(&mut self) {
        self.marks.link_texts.clear();
        self.link = None;
    }

    /// Returns the text added since `start`, if it is a name.
    fn label(&self, start: usize) -> Option<Range<usize>> {
        let start = start + usize::from(matches!(self.text.as_bytes().get(start), Some(b' ' | b'\n')));
        let range = start..self.text.len();
        (!range.is_empty() && range.len() <= LABEL_BYTES_MAX).then_some(range)
    }

    /// Separates the next word from the last.
    pub(crate) fn end_word(&mut self) {
        self.gap = self.gap.max(Gap::Space);
    }

    /// Appends text with entities decoded.
    pub(crate) fn push(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let space = space_length(&bytes[at..]);
            if space > 0 {
                self.end_word();
                at += space;
                continue;
            }
            let start = at;
            at += run_length(&bytes[at..]);
            self.fill_gap();
            self.text.push_str(&text[start..at]);
        }
    }

    fn fill_gap(&mut self) {
        match self.gap {
            Gap::None => {}
            _ if self.text.is_empty() => {}
            Gap::Space => self.text.push(' '),
            Gap::Line => self.text.push('\n'),
        }
        self.gap = Gap::None;
    }

    /// Whether any region is open, so that end tags matter.
    pub(crate) fn has_open_regions(&self) -> bool {
        !self.open.is_empty()
    }

    /// Opens a region at a start tag.
    pub(crate) fn open(&mut self, element: HtmlElement, role: TextRole) {
        if self.open.len() < REGIONS_OPEN_MAX {
            self.open.push(Region { element, role, depth: 0, start: self.text.len() });
        }
    }

    /// Counts a start tag inside regions. Call this before [`Self::open`].
    pub(crate) fn enter(&mut self, element: HtmlElement) {
        for region in &mut self.open {
            region.depth += u32::from(region.element == element);
        }
    }

    /// Counts an end tag. It belongs to the innermost region of its element: it closes either an element inside, or the
    /// region and those still open in it. Outer regions have counted its start tag too.
    pub(crate) fn leave(&mut self, element: HtmlElement) {
        let Some(innermost) = self.open.iter().rposition(|region| region.element == element) else { return };
        for outer in self.open[..innermost].iter_mut().filter(|outer| outer.element == element) {
            outer.depth = outer.depth.saturating_sub(1);
        }
        let region = &mut self.open[innermost];
        if region.depth > 0 {
            region.depth -= 1;
            return;
        }
        let (role, start) = (region.role, region.start);
        self.open.truncate(innermost);
        match role {
            TextRole::Hidden => {
                self.text.truncate(start);
                self.marks.cut(start);
                self.heading.take_if(|heading| *heading > start);
                self.link.take_if(|(_, link)| *link > start);
            }
            TextRole::Surrounding if self.text.len() > start => {
                self.marks.surroundings.push(start..self.text.len());
            }
            TextRole::Surrounding => {}
        }
    }

    /// Returns the text and its marked parts.
    pub(crate) fn finish(mut self) -> (String, TextMarks) {
        self.end_line();
        (self.text, self.marks)
    }
}

/// Returns the length of the white-space character at the start of a text; 0 if there is none. The no-break space
/// counts as white space, as pages are laid out with it.
fn space_length(text: &[u8]) -> usize {
    match text {
        [b' ' | b'\n' | b'\t' | b'\r' | 0x0C, ..] => 1,
        [0xC2, 0xA0, ..] => 2,
        _ => 0,
    }
}

/// Returns the length of a run of words separated by single spaces, without a trailing space.
fn run_length(text: &[u8]) -> usize {
    // Everything but white space, control characters and the first byte of the no-break space.
    let is_plain = |byte: u8| byte > b' ' && byte != 0xC2;
    let mut at = 0;
    while at < text.len() {
        if is_plain(text[at]) {
            at += 1;
        } else if text[at] == b' ' && at + 1 < text.len() && is_plain(text[at + 1]) {
            at += 2;
        } else {
            let is_single = text[at] == b' ' && at + 1 < text.len() && space_length(&text[at + 1..]) == 0;
            if space_length(&text[at..]) > 0 && !is_single {
                break;
            }
            at += 1;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_is_collapsed_and_lines_are_kept() {
        let mut builder = TextBuilder::with_capacity(0);
        builder.end_line();
        builder.push("  one\n two ");
        builder.push("three");
        builder.end_word();
        builder.push("four");
        builder.end_line();
        builder.end_word();
        builder.push(" five  six\u{a0}seven \u{a9} eight");
        assert_eq!(builder.finish().0, "one two three four\nfive six seven \u{a9} eight");
    }

    #[test]
    fn regions_count_their_own_elements() {
        let mut builder = TextBuilder::with_capacity(0);
        builder.push("a");
        builder.enter(HtmlElement::Division);
        builder.open(HtmlElement::Division, TextRole::Surrounding);
        builder.push("b");
        builder.enter(HtmlElement::Division);
        builder.enter(HtmlElement::Division);
        builder.open(HtmlElement::Division, TextRole::Hidden);
        builder.push("c");
        builder.leave(HtmlElement::Division);
        builder.leave(HtmlElement::Division);
        builder.push("d");
        builder.leave(HtmlElement::Division);
        builder.push("e");
        let (text, marks) = builder.finish();
        assert_eq!(text, "abde");
        assert_eq!(marks.surroundings.len(), 1);
        assert_eq!(marks.surroundings[0], 1..3);
    }

    #[test]
    fn an_open_region_swallows_nothing() {
        let mut builder = TextBuilder::with_capacity(0);
        builder.open(HtmlElement::Navigation, TextRole::Surrounding);
        builder.open(HtmlElement::Template, TextRole::Hidden);
        builder.push("a");
        assert_eq!(builder.finish(), ("a".to_owned(), TextMarks::default()));
    }
}
