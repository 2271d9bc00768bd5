//! The parts of a document that count for topics, limited in size, for documents just fetched as well as stored ones.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use archive_math::focus::{Lead, TopicText};
use archive_storage::{State, StateError};
use archive_web::parse::ParsedDocument;

/// Maximum number of links of a page, the first ones.
pub(crate) const LEADS_MAX: usize = 300;

/// Maximum number of bytes of a title, a heading, or the texts of a link.
const LINE_BYTES_MAX: usize = 256;

/// Maximum number of headings of a page, the first ones.
const HEADINGS_MAX: usize = 20;

/// Maximum number of bytes of text, the first ones.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// The text of a page, and its links.
#[derive(Clone, Debug, Default)]
pub struct Sight {
    title: String,
    headings: Vec<String>,
    text: String,
    links: Vec<LinkWords>,
}

/// A link and what stands around it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkWords {
    /// URL of the target.
    pub url: String,
    /// Texts of the links to it, with a space before each.
    pub anchor: String,
    /// Heading above the first of them.
    pub heading: String,
    /// Line around the first of them; see [`line_around`].
    pub context: String,
}

impl Sight {
    /// Extracts the parts of the document at `url`; `None` if it has no text.
    #[must_use]
    pub fn of(url: &str, document: &ParsedDocument) -> Option<Self> {
        if !document.kind.has_text() {
            return None;
        }
        let headings = document.headings.iter().take(HEADINGS_MAX);
        Some(Self {
            title: cut(&document.title, LINE_BYTES_MAX).to_owned(),
            headings: headings.map(|range| line(document, range).to_owned()).collect(),
            text: cut(&document.text, TEXT_BYTES_MAX).to_owned(),
            links: link_words(url, document, LEADS_MAX),
        })
    }

    /// Returns its text as that of the page at `url`.
    #[must_use]
    pub fn text<'a>(&'a self, url: &'a str) -> TopicText<'a> {
        let headings = self.headings.iter().map(String::as_str).collect();
        TopicText { url, title: &self.title, headings, text: &self.text }
    }

    /// Returns its links to URLs that `state` knows, each target once, by id.
    ///
    /// # Errors
    /// If the state cannot be read.
    pub fn leads(&self, state: &State) -> Result<Vec<Lead<'_>>, StateError> {
        let mut met = HashSet::new();
        let mut leads = Vec::with_capacity(self.links.len());
        for (LinkWords { url, anchor, heading, context }, place) in self.links.iter().zip(0..) {
            if let Some(target) = state.find(url)?.filter(|target| met.insert(*target)) {
                leads.push(Lead { target: target.0, url, anchor, heading, context, place });
            }
        }
        Ok(leads)
    }
}

/// Returns the links of a page to others, the first `most`, with all their texts, and the heading above the first one and
/// the line around it.
#[must_use]
pub fn link_words(url: &str, document: &ParsedDocument, most: usize) -> Vec<LinkWords> {
    let mut said: HashMap<u32, (String, &str, &str)> = HashMap::new();
    let mut above = 0;
    for text in &document.link_texts {
        while document.headings.get(above).is_some_and(|heading| heading.start <= text.range.start) {
            above += 1;
        }
        let heading = above.checked_sub(1).and_then(|above| document.headings.get(above));
        let heading = heading.map_or("", |heading| line(document, heading));
        let around = || line_around(&document.text, &text.range);
        let (anchor, ..) = said.entry(text.link).or_insert_with(|| (String::new(), heading, around()));
        if anchor.len() < LINE_BYTES_MAX {
            anchor.push(' ');
            anchor.push_str(line(document, &text.range));
        }
    }
    let leading = document.links.iter().zip(0..);
    leading
        .filter(|(link, _)| link.kind.carries_cash() && link.url != url)
        .take(most)
        .map(|(link, number)| {
            let (anchor, heading, context) = said.remove(&number).unwrap_or_default();
            let [heading, context] = [heading, context].map(str::to_owned);
            LinkWords { url: link.url.clone(), anchor, heading, context }
        })
        .collect()
}

/// Returns a trimmed part of the text, limited in length; empty if the range is invalid.
fn line<'t>(document: &'t ParsedDocument, range: &Range<usize>) -> &'t str {
    cut(document.text.get(range.clone()).unwrap_or_default().trim(), LINE_BYTES_MAX)
}

/// Returns the line of `text` in which a range is, at most 128 bytes before the range and after it; empty if the range
/// is invalid. A line is a sentence or an item of a list, and what it says around a link is often about the target.
#[must_use]
pub fn line_around<'t>(text: &'t str, range: &Range<usize>) -> &'t str {
    const REACH: usize = LINE_BYTES_MAX / 2;
    let (Some(before), Some(after)) = (text.get(..range.start), text.get(range.end..)) else { return "" };
    let before = &before[before.ceil_char_boundary(before.len().saturating_sub(REACH))..];
    let before = before.rsplit('\n').next().unwrap_or_default();
    let after = cut(after, REACH).split('\n').next().unwrap_or_default();
    text[range.start - before.len()..range.end + after.len()].trim()
}

/// Truncates a text at a character boundary.
fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;
    use archive_web::parse::{FetchedDocument, ParseLimits, parse};

    fn sight(html: &str) -> Option<Sight> {
        let url = Url::parse("http://a.test/").unwrap();
        let source = FetchedDocument {
            url: &url,
            status: 200,
            content_type: Some("text/html"),
            headers: &[],
            body: html.as_bytes(),
        };
        Sight::of(url.as_str(), &parse(&source, &ParseLimits::default()))
    }

    #[test]
    fn links_come_with_what_they_say_and_the_heading_above() {
        let page = "<title>Pies</title><h2>Sweet</h2>A famous <a href=/apple>Apple pie</a> and <a href=/apple>again</a>
            <h2>Savoury</h2><p><a href=/leek>Leek</a> <a href=/>Home</a><img src=/x.png>";
        let sight = sight(page).unwrap();
        let said: Vec<_> = sight
            .links
            .iter()
            .map(|said| [&said.url, said.anchor.trim(), &said.heading, &said.context])
            .collect();
        assert_eq!(
            said,
            [
                ["http://a.test/apple", "Apple pie again", "Sweet", "A famous Apple pie and again"],
                ["http://a.test/leek", "Leek", "Savoury", "Leek Home"]
            ]
        );
        let text = sight.text("http://a.test/");
        assert_eq!((text.title, text.headings), ("Pies", vec!["Sweet", "Savoury"]));
    }

    #[test]
    fn too_much_is_cut() {
        let (long, links) = ("é".repeat(TEXT_BYTES_MAX), |count: usize| -> String {
            (0..count).map(|i| format!("<a href=/{i}>{}</a>", "x".repeat(400))).collect()
        });
        let sight = sight(&format!("<title>{long}</title><p>{}<p>{long}", links(LEADS_MAX + 1))).unwrap();
        assert_eq!(sight.links.len(), LEADS_MAX);
        assert!(sight.title.len() <= LINE_BYTES_MAX && sight.text.len() <= TEXT_BYTES_MAX);
        assert!(sight.links.iter().all(|said| said.anchor.len() <= 2 * LINE_BYTES_MAX + 1));
        assert_eq!(cut("aé", 2), "a");
        let text = format!("a\n{}x{}\nb", "é".repeat(200), "é".repeat(200));
        let around = line_around(&text, &(402..403));
        assert_eq!(around, format!("{0}x{0}", "é".repeat(LINE_BYTES_MAX / 4)));
        assert_eq!([line_around(&text, &(0..1)), line_around(&text, &(3..4))], ["a", ""]);
    }
}
