//! The searchable parts of a document.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use archive_storage::{State, StateError, UrlId};
use archive_web::parse::{HashedAlready, ParseProblem, ParsedDocument, SaidTexts, Structure};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::search::{IndexedVersion, TEXT_BYTES_MAX, elements, language_term, sign_terms};

/// The searchable parts of a document, and the texts of its links.
#[derive(Debug, Default)]
pub struct Text {
    title: String,
    text: String,
    headings: String,
    said: SaidTexts,
    /// Terms for the language and, of an XML document, for the elements: see [`elements::terms`].
    elements: String,
    /// Terms for signs; none if another reader of the document may find another text.
    signs: String,
    structure: Option<Structure>,
    /// Whether searches find it; if not, it is indexed for its structure alone.
    is_searched: bool,
    /// Target URLs of its links, their hashes, and the link texts.
    links: Vec<(String, u64, String)>,
}

impl Text {
    /// Takes the searchable parts out of a parsed document; `None` if it has neither text nor structure. Link texts in
    /// `said` are left out; a document that replaces an older version must pass `None`.
    pub fn take(parsed: &mut ParsedDocument, said: Option<&LinkTextMemory>) -> Option<Self> {
        let is_unread = parsed.problems.iter().any(|problem| matches!(problem, ParseProblem::NotRead(_)));
        let is_searched = parsed.kind.has_text();
        // Entities of an XML document may be in other captures, which not everybody may read.
        let may_have_parts =
            parsed.structure.as_ref().map_or(parsed.kind.is_xml(), |known| !known.doctype.is_empty());
        // An XML document without a root element, such as a DTD, gets an empty structure, so that nobody has to read it
        // again.
        let structure = parsed.structure.take().or_else(|| parsed.kind.is_xml().then(Structure::default));
        if !is_searched {
            // What is not read may have a text: it replaces that of the version before.
            return (is_unread || structure.is_some()).then(|| Self { structure, ..Self::default() });
        }
        let text = std::mem::take(&mut parsed.text);
        let is_sure = !is_unread && !may_have_parts;
        let signs = if is_sure { sign_terms(&parsed.title, &text) } else { String::new() };
        let of = |range: &Range<usize>| text.get(range.clone()).unwrap_or_default();
        let headings = parsed.headings.iter().map(of).collect::<Vec<_>>().join("\n");
        let links = parsed.link_texts.iter();
        let mut links: Vec<_> =
            links.filter_map(|said| Some((parsed.links.get(said.link as usize)?, of(&said.range)))).collect();
        if let Some(said) = said {
            said.leave_new(&mut links, |(link, text)| xxh3_64_with_seed(text.as_bytes(), link.hash));
        }
        let owned = |(link, text): (&archive_web::parse::Link, &str)| {
            // A link text is one line of the index.
            (link.url.clone(), link.hash, text.replace('\n', " "))
        };
        let links = links.into_iter().map(owned).collect();
        let mut elements = match parsed.kind.has_elements() {
            true => {
                elements::terms(parsed.elements.take(), parsed.text_has_all && text.len() <= TEXT_BYTES_MAX)
            }
            false => String::new(),
        };
        if let Some(language) = &parsed.language {
            elements.extend([" ", &language_term(language)]);
        }
        let (title, said) = (parsed.title.clone(), std::mem::take(&mut parsed.said));
        Some(Self { title, text, headings, said, elements, signs, structure, is_searched, links })
    }

    /// Notes that a reader of the capture finds the document under another media type.
    pub(crate) fn read_otherwise(&mut self) {
        self.signs.clear();
    }

    /// Approximate bytes of memory.
    pub fn bytes(&self) -> u64 {
        let links: usize = self.links.iter().map(|(url, _, said)| url.len() + said.len() + 64).sum();
        let SaidTexts { description, keywords, author, headline } = &self.said;
        let links = links + description.len() + keywords.len() + author.len() + headline.len();
        (self.text.len() + self.headings.len() + self.elements.len() + self.signs.len() + links) as u64
    }

    /// Builds the index document of a page; links to unknown URLs are left out.
    pub(crate) fn document(
        self,
        state: &State,
        page: UrlId,
        url: &str,
    ) -> Result<IndexedVersion, StateError> {
        let Self { title, text, headings, said, mut elements, signs, structure, is_searched, links } = self;
        elements.push_str(&signs);
        let mut known = Vec::with_capacity(links.len());
        for (url, hash, words) in links {
            known.extend(state.known(&url, hash)?.map(|target| (target, words)));
        }
        let url = if is_searched { url.to_owned() } else { String::new() };
        let links = known;
        let (replaces, version) = (true, None);
        Ok(IndexedVersion {
            page,
            replaces,
            version,
            url,
            title,
            text,
            headings,
            said,
            elements,
            structure,
            links,
        })
    }
}

/// Hashes of the link texts seen so far: a menu repeats the same ones on every page, and indexing them once is enough.
/// If a document is replaced, link texts indexed with it alone are lost until the index is rebuilt. Clones share the
/// set.
#[derive(Clone, Debug, Default)]
pub struct LinkTextMemory(Arc<Mutex<Remembered>>);

#[derive(Debug, Default)]
struct Remembered {
    all: HashSet<u64, HashedAlready>,
    /// Some of the newest hashes, each in its own slot: menus are found here, within the processor's cache.
    newest: Vec<u64>,
}

impl LinkTextMemory {
    /// Maximum number of hashes; beyond it all are dropped, and some link texts are indexed again.
    const MAX: usize = 1 << 20;

    /// Number of slots that fits into a processor's cache.
    const NEWEST: usize = 1 << 12;

    fn leave_new<T>(&self, links: &mut Vec<T>, hash: impl Fn(&T) -> u64) {
        let mut remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Remembered { all, newest } = &mut *remembered;
        if all.len() >= Self::MAX {
            all.clear();
        }
        newest.resize(Self::NEWEST, 0);
        links.retain(|link| {
            let hash = hash(link);
            let before = std::mem::replace(&mut newest[hash as usize % Self::NEWEST], hash);
            before != hash && all.insert(hash)
        });
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;
    use archive_web::parse::{FetchedDocument, ParseLimits, parse};

    fn parsed(html: &str) -> ParsedDocument {
        let url = Url::parse("http://a.test/").unwrap();
        let source = FetchedDocument {
            url: &url,
            status: 200,
            content_type: Some("text/html"),
            headers: &[],
            body: html.as_bytes(),
        };
        parse(&source, &ParseLimits::default())
    }

    #[test]
    fn a_sitemap_is_known_by_its_structure_alone() {
        let xml = |body: &str| {
            let url = Url::parse("http://a.test/map.xml").unwrap();
            let content_type = Some("application/xml");
            let source =
                FetchedDocument { url: &url, status: 200, content_type, headers: &[], body: body.as_bytes() };
            let text = Text::take(&mut parse(&source, &ParseLimits::default()), None).unwrap();
            (text.is_searched, text.text, text.structure.unwrap().root)
        };
        let loc = "<url><loc>http://a.test/</loc></url>";
        let sitemap = format!("<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{loc}</urlset>");
        assert_eq!(xml(&sitemap), (false, String::new(), "urlset".to_owned()));
        assert_eq!(xml("<a>b</a>"), (true, "b".to_owned(), "a".to_owned()));
        assert_eq!(xml("<!ELEMENT a (b)>").2, "");
        assert!(Text::take(&mut parsed("<p>"), None).unwrap().structure.is_none());
    }

    #[test]
    fn a_menu_says_something_once() {
        let said = LinkTextMemory::default();
        let links = |html: &str, said: Option<&LinkTextMemory>| {
            let text = Text::take(&mut parsed(html), said).unwrap();
            text.links.into_iter().map(|(url, _, said)| format!("{url} {said}")).collect::<Vec<_>>()
        };
        let menu = "<a href=/a>Opening<p>hours</p></a><a href=/b>Opening hours</a>";
        let all = ["http://a.test/a Opening hours", "http://a.test/b Opening hours"];
        assert_eq!(links(menu, Some(&said)), all);
        assert_eq!(links(&format!("{menu}<a href=/a>More</a>"), Some(&said)), ["http://a.test/a More"]);
        assert_eq!(links(menu, None), all);
    }
}
