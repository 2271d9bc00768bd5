//! The visible text of a document, line by line, and which parts of it are not its own.
//!
//! A line is what a reader sees as one: block elements end it. White space is one space. Regions (navigation, footers,
//! advertisements) are marked so that the signature can leave them out; hidden ones are taken out of the text. A region
//! counts only once its end tag has come: an element that is never closed swallows nothing.

use std::ops::Range;

use super::element::Element;
use crate::parse::LinkText;

/// Headings that are kept of a document, and link texts, each.
const LABELS_MAX: usize = 10_000;

/// Bytes of a heading or link text; what is longer names nothing.
const LABEL_BYTES_MAX: usize = 256;

/// Regions open at once; deeper ones are ignored.
const REGIONS_OPEN_MAX: usize = 16;

/// What becomes of a region's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Nobody sees it.
    Hidden,
    /// It is on many pages or changes by itself: it stays in the text, and out of the signature.
    Surrounding,
}

#[derive(Debug)]
struct Region {
    element: Element,
    role: Role,
    /// Elements of the same name open inside.
    depth: u32,
    start: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    None,
    Space,
    Line,
}

/// Puts the text together.
#[derive(Debug)]
pub(crate) struct TextBuilder {
    text: String,
    gap: Gap,
    open: Vec<Region>,
    marks: Marks,
    /// Where the heading begins whose line has not ended.
    heading: Option<usize>,
    /// The link whose element is open, and where its text begins.
    link: Option<(u32, usize)>,
}

/// Parts of a document's text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    /// What is not the page's own, in the order of the ends.
    pub(crate) surroundings: Vec<Range<usize>>,
    /// What names the document's parts.
    pub(crate) headings: Vec<Range<usize>>,
    /// What its links say.
    pub(crate) link_texts: Vec<LinkText>,
}

impl Marks {
    /// Forgets what lies after a place.
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
            marks: Marks::default(),
            heading: None,
            link: None,
        }
    }

    /// Begins a new line before the next word.
    pub(crate) fn end_line(&mut self) {
        self.gap = Gap::Line;
        if let Some(start) = self.heading.take_if(|start| *start < self.text.len())
            && let Some(range) = self.label(start)
            && self.marks.headings.len() < LABELS_MAX
        {
            self.marks.headings.push(range);
        }
    }

    /// Begins a heading, which ends with its line.
    pub(crate) fn begin_heading(&mut self) {
        self.heading = Some(self.text.len());
    }

    /// Ends a heading that has nothing in it.
    pub(crate) fn end_heading(&mut self) {
        self.heading = None;
    }

    /// Begins the text of a link by its place in [`crate::parse::Parsed::links`].
    pub(crate) fn begin_link(&mut self, link: u32) {
        self.end_link();
        self.link = Some((link, self.text.len()));
    }

    /// Ends the text of the link that is open.
    pub(crate) fn end_link(&mut self) {
        if let Some((link, start)) = self.link.take()
            && let Some(range) = self.label(start)
            && self.marks.link_texts.len() < LABELS_MAX
        {
            self.marks.link_texts.push(LinkText { link, range });
        }
    }

    /// Forgets links that stand at other places now.
    pub(crate) fn forget_links(&mut self) {
        self.marks.link_texts.clear();
        self.link = None;
    }

    /// What has been added since a place, if it names something.
    fn label(&self, start: usize) -> Option<Range<usize>> {
        let start = start + usize::from(matches!(self.text.as_bytes().get(start), Some(b' ' | b'\n')));
        let range = start..self.text.len();
        (!range.is_empty() && range.len() <= LABEL_BYTES_MAX).then_some(range)
    }

    /// Parts the next word from the last.
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

    /// Whether a region is open in which end tags of this element matter.
    pub(crate) fn has_open_regions(&self) -> bool {
        !self.open.is_empty()
    }

    /// Opens a region at a start tag.
    pub(crate) fn open(&mut self, element: Element, role: Role) {
        if self.open.len() < REGIONS_OPEN_MAX {
            self.open.push(Region { element, role, depth: 0, start: self.text.len() });
        }
    }

    /// Counts a start tag inside regions. To be called before [`Self::open`].
    pub(crate) fn enter(&mut self, element: Element) {
        for region in &mut self.open {
            region.depth += u32::from(region.element == element);
        }
    }

    /// Counts an end tag. It belongs to the innermost region of its element: either to an element inside, or it closes
    /// the region and those left open in it. Regions further out have counted its start tag too.
    pub(crate) fn leave(&mut self, element: Element) {
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
            Role::Hidden => {
                self.text.truncate(start);
                self.marks.cut(start);
                self.heading.take_if(|heading| *heading > start);
                self.link.take_if(|(_, link)| *link > start);
            }
            Role::Surrounding if self.text.len() > start => {
                self.marks.surroundings.push(start..self.text.len());
            }
            Role::Surrounding => {}
        }
    }

    /// The text, and its parts.
    pub(crate) fn finish(mut self) -> (String, Marks) {
        self.end_line();
        (self.text, self.marks)
    }
}

/// The length of the white space character that a text begins with; 0 when it begins with none. The space that doesn't
/// break counts as one: pages are laid out with it.
fn space_length(text: &[u8]) -> usize {
    match text {
        [b' ' | b'\n' | b'\t' | b'\r' | 0x0C, ..] => 1,
        [0xC2, 0xA0, ..] => 2,
        _ => 0,
    }
}

/// The length of a run of words parted by single spaces, without a space at its end.
fn run_length(text: &[u8]) -> usize {
    // Everything but white space, control characters and the first byte of the unbreaking space.
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
        builder.enter(Element::Division);
        builder.open(Element::Division, Role::Surrounding);
        builder.push("b");
        builder.enter(Element::Division);
        builder.enter(Element::Division);
        builder.open(Element::Division, Role::Hidden);
        builder.push("c");
        builder.leave(Element::Division);
        builder.leave(Element::Division);
        builder.push("d");
        builder.leave(Element::Division);
        builder.push("e");
        let (text, marks) = builder.finish();
        assert_eq!(text, "abde");
        assert_eq!(marks.surroundings.len(), 1);
        assert_eq!(marks.surroundings[0], 1..3);
    }

    #[test]
    fn an_open_region_swallows_nothing() {
        let mut builder = TextBuilder::with_capacity(0);
        builder.open(Element::Navigation, Role::Surrounding);
        builder.open(Element::Template, Role::Hidden);
        builder.push("a");
        assert_eq!(builder.finish(), ("a".to_owned(), Marks::default()));
    }
}
