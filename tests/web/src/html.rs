//! HTML pages: navigation, a table of contents, paragraphs of text with the free links, pictures, and a footer. The
//! links are in the order of the ground truth.

use super::Web;
use super::dates::{put_day, put_instant};
use super::layout::{BRANCHES, Host, section};
use super::links::{Outline, Target, Way};
use super::media;
use super::pages::{Face, Version};
use super::random::{Key, Subject};
use super::text::{Append, Vocabulary, vocabulary_of};

/// A document to write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Document<'a> {
    pub(super) web: &'a Web,
    pub(super) host: &'a Host,
    pub(super) face: Face,
    pub(super) version: Version,
    /// Different at each fetch of a noisy page; `None` for other pages.
    pub(super) noise: Option<u64>,
    /// Encoding in which the document is sent.
    pub(super) encoding: &'static str,
}

/// Smallest number of paragraphs on a page.
const PARAGRAPHS_MIN: u64 = 6;
/// Number of possible paragraph counts.
const PARAGRAPHS_SPREAD: u64 = 24;

impl Document<'_> {
    /// Returns the key of everything that near duplicates share.
    pub(super) const fn source_key(&self) -> Key {
        self.host.page_key(self.face.source)
    }

    const fn own_key(&self) -> Key {
        self.host.page_key(self.face.local)
    }

    /// Returns the number of paragraphs of the text.
    pub(super) fn paragraphs(&self) -> u64 {
        PARAGRAPHS_MIN + self.source_key().of(Subject::Text).below(PARAGRAPHS_SPREAD)
    }

    /// Returns the key of a paragraph's text. Each version rewrites one paragraph, in turn.
    pub(super) fn paragraph_key(&self, paragraph: u64, paragraphs: u64) -> Key {
        let rewritten = if paragraph == 0 {
            self.version.number / paragraphs
        } else {
            (self.version.number + paragraphs - paragraph) / paragraphs
        };
        self.source_key().of(Subject::Paragraph).at(paragraph).at(rewritten)
    }

    /// Returns the time of the version in seconds since 1970.
    pub(super) const fn since_seconds(&self) -> i64 {
        self.version.since.div_euclid(1_000_000)
    }

    /// Appends the title, which is the same in all versions and unique on its host.
    pub(super) fn put_title(&self, words: &Vocabulary, out: &mut Vec<u8>) {
        let topic = self.source_key().of(Subject::Topic);
        out.put(words.noun(topic));
        out.put(", ");
        out.put(words.noun(topic.at(1)));
        out.push(b' ');
        out.put_number(u64::from(self.face.local));
        out.put(" – ");
        self.host.put_name(out);
    }

    /// Appends the page as HTML in UTF-8.
    pub(super) fn put_html(&self, outline: &Outline, out: &mut Vec<u8>) {
        let words = vocabulary_of(self.host.key);
        let has_base = self.own_key().of(Subject::Requisites).below(32) == 0;
        self.put_head(words, has_base, out);
        self.put_frame(words, outline, out);
        self.put_contents(words, outline, out);
        self.put_article(words, outline, has_base, out);
        self.put_foot(out);
    }

    fn put_head(&self, words: &Vocabulary, has_base: bool, out: &mut Vec<u8>) {
        out.put("<!DOCTYPE html>\n<html lang=\"");
        out.put(words.language.tag);
        out.put("\">\n<head>\n<meta charset=\"");
        out.put(self.encoding);
        out.put("\">\n<title>");
        self.put_title(words, out);
        out.put("</title>\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
        out.put("<meta name=\"description\" content=\"");
        words.sentence(&mut self.source_key().of(Subject::Text).at(1).stream(), out);
        out.put("\">\n");
        if has_base {
            out.put("<base href=\"");
            self.put_own_address(0, out);
            out.put("\">\n");
        }
        if self.own_key().of(Subject::Requisites).at(1).below(4) == 0 {
            out.put("<link rel=\"canonical\" href=\"");
            self.put_own_address(self.face.local, out);
            out.put("\">\n");
        }
        if self.web.config.requisites {
            media::put_head(out);
        }
        if self.web.config.feeds && self.face.local <= BRANCHES {
            out.put(
                "<link rel=\"alternate\" type=\"application/rss+xml\" title=\"RSS\" href=\"/feed.rss\">\n",
            );
            out.put(
                "<link rel=\"alternate\" type=\"application/atom+xml\" title=\"Atom\" href=\"/feed.atom\">\n",
            );
        }
        out.put("</head>\n");
    }

    fn put_own_address(&self, local: u32, out: &mut Vec<u8>) {
        Target { host: *self.host, local, way: Way::Direct }.put_address(self.web, None, out);
    }

    fn put_frame(&self, words: &Vocabulary, outline: &Outline, out: &mut Vec<u8>) {
        out.put("<body class=\"page\">\n<header class=\"site-header\" role=\"banner\">\n<div class=\"site-name\">");
        self.host.put_name(out);
        out.put("</div>\n<nav class=\"site-navigation\" aria-label=\"main\">\n<ul class=\"menu\">\n");
        for (index, target) in outline.frame().iter().enumerate() {
            out.put("<li class=\"menu-item\"><a class=\"menu-link\" href=\"");
            target.put_address(self.web, Some(self.host), out);
            out.put("\">");
            if target.host.index == self.host.index {
                out.put(words.language.frame[index.min(3)]);
            } else {
                target.host.put_name(out);
            }
            out.put("</a></li>\n");
        }
        out.put("</ul>\n</nav>\n</header>\n");
    }

    fn put_contents(&self, words: &Vocabulary, outline: &Outline, out: &mut Vec<u8>) {
        if outline.children().is_empty() {
            return;
        }
        out.put("<aside class=\"contents\">\n<h2>");
        out.put(words.language.frame[4]);
        out.put("</h2>\n<ol>\n");
        for target in outline.children() {
            out.put("<li><a href=\"");
            target.put_address(self.web, Some(self.host), out);
            out.put("\">");
            put_anchor(words, target, out);
            out.put("</a></li>\n");
        }
        out.put("</ol>\n</aside>\n");
    }

    fn put_article(&self, words: &Vocabulary, outline: &Outline, has_base: bool, out: &mut Vec<u8>) {
        out.put("<main id=\"content\">\n<article>\n<h1>");
        self.put_title(words, out);
        out.put("</h1>\n<p class=\"byline\">");
        out.put(words.language.frame[5]);
        out.put(": <time datetime=\"");
        put_instant(self.since_seconds(), out);
        out.put("\">");
        put_day(self.since_seconds(), out);
        out.put("</time></p>\n");
        if self.web.config.requisites {
            media::put_figure(self.host, self.source_key(), out);
        }
        let paragraphs = self.paragraphs();
        let mut links = FreeLinks { document: self, words, has_base, links: outline.free(), written: 0 };
        for paragraph in 0..paragraphs {
            let until = (paragraph + 1) * outline.free().len() as u64 / paragraphs;
            self.put_paragraph(words, paragraph, paragraphs, until as usize, &mut links, out);
        }
        if self.face.local != self.face.source {
            out.put("<p class=\"note\">");
            words.sentence(&mut self.own_key().of(Subject::Duplicate).at(9).stream(), out);
            out.put("</p>\n");
        }
        out.put("</article>\n</main>\n");
    }

    fn put_paragraph(
        &self,
        words: &Vocabulary,
        paragraph: u64,
        paragraphs: u64,
        links_until: usize,
        links: &mut FreeLinks<'_>,
        out: &mut Vec<u8>,
    ) {
        if paragraph > 0 && paragraph.is_multiple_of(3) {
            out.put("<h2 id=\"s");
            out.put_number(paragraph);
            out.put("\">");
            out.put(words.noun(self.source_key().of(Subject::Topic).at(1 + paragraph)));
            out.put("</h2>\n");
        }
        out.put("<p>");
        let mut stream = self.paragraph_key(paragraph, paragraphs).stream();
        for _ in 0..4 + stream.below(5) {
            words.sentence(&mut stream, out);
            if links.written < links_until {
                links.put_next(out);
            }
        }
        while links.written < links_until {
            links.put_next(out);
        }
        out.put("</p>\n");
    }

    fn put_foot(&self, out: &mut Vec<u8>) {
        if let Some(noise) = self.noise {
            let words = vocabulary_of(self.host.key);
            out.put("<aside class=\"advertisement\"><p>");
            words.sentence(&mut Key::new(noise).stream(), out);
            out.put("</p></aside>\n<p class=\"generated\">Served as request ");
            out.put_number(noise);
            out.put("</p>\n");
        }
        out.put("<footer class=\"site-footer\">\n<p>&copy; 2025 ");
        self.host.put_name(out);
        out.put(" &middot; <a href=\"mailto:editor@");
        self.host.put_name(out);
        out.put("\">editor@");
        self.host.put_name(out);
        out.put("</a> &middot; <a href=\"javascript:window.print()\">print</a>");
        if self.face.local > 0 {
            out.put(" &middot; <a href=\"/#content\">&uarr;</a>");
        }
        out.put("</p>\n</footer>\n</body>\n</html>\n");
    }
}

/// The free links of a page as they are written into its text.
struct FreeLinks<'a> {
    document: &'a Document<'a>,
    words: &'a Vocabulary,
    has_base: bool,
    links: &'a [Target],
    written: usize,
}

impl FreeLinks<'_> {
    fn put_next(&mut self, out: &mut Vec<u8>) {
        let Some(target) = self.links.get(self.written) else { return };
        let shape = self.document.source_key().of(Subject::Form).at(self.written as u64 + 1).below(64);
        self.written += 1;
        // A few links use another element than `a`.
        match (self.written, shape) {
            (1, 0..8) if !matches!(target.way, Way::Elsewhere(_)) => {
                out.put("<iframe title=\"frame\" loading=\"lazy\" src=\"");
                self.put_address(target, shape, out);
                out.put("\"></iframe> ");
            }
            (2, 0..4) => {
                out.put("<map name=\"plan\"><area shape=\"rect\" coords=\"0,0,9,9\" alt=\"\" href=\"");
                self.put_address(target, shape, out);
                out.put("\"></map> ");
            }
            _ => {
                out.put("<a href=\"");
                self.put_address(target, shape, out);
                out.put("\">");
                put_anchor(self.words, target, out);
                out.put("</a> ");
            }
        }
    }

    /// Appends the address in one of the forms that documents use: absolute, from the root, or from the folder.
    fn put_address(&self, target: &Target, shape: u64, out: &mut Vec<u8>) {
        let Document { web, host, face, .. } = *self.document;
        if shape.is_multiple_of(8) {
            return target.put_address(web, None, out);
        }
        let start = out.len();
        target.put_address(web, Some(host), out);
        let in_folder = target.way == Way::Direct
            && target.host.index == host.index
            && target.local > BRANCHES
            && face.local > BRANCHES
            && section(target.local) == section(face.local);
        if shape % 8 < 3 && in_folder && !self.has_base {
            let name = out.iter().rposition(|byte| *byte == b'/').map_or(start, |slash| slash + 1);
            out.drain(start..name);
        }
    }
}

/// Appends the visible text of a link.
pub(super) fn put_anchor(words: &Vocabulary, target: &Target, out: &mut Vec<u8>) {
    if let Way::Elsewhere(address) = target.way {
        return out.put(address);
    }
    let topic = target.host.page_key(target.local).of(Subject::Topic);
    out.put(words.noun(topic));
    out.push(b' ');
    out.put_number(u64::from(target.local));
}
