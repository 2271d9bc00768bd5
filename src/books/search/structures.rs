//! Document-level properties of XML documents, in a column of the index: documents with equal properties share one text
//! in it.

use std::collections::HashMap;

use archive_storage::UrlId;
use archive_web::parse::Structure;
use tantivy::Searcher;

/// The column's name.
pub(super) const COLUMN: &str = "structure";

/// Separates the parts of a text; occurs in no document.
const BETWEEN: char = '\u{1F}';

/// Document-level properties of XML documents, by page.
#[derive(Debug, Default)]
pub struct Structures {
    pages: HashMap<UrlId, usize>,
    different: Vec<Structure>,
}

impl Structures {
    /// Returns the properties of a page.
    #[must_use]
    pub fn get(&self, page: UrlId) -> Option<&Structure> {
        self.pages.get(&page).and_then(|index| self.different.get(*index))
    }

    /// Returns the distinct properties.
    #[must_use]
    pub fn different(&self) -> &[Structure] {
        &self.different
    }

    /// Returns the pages, each with the index of its properties in [`Structures::different`].
    pub fn each(&self) -> impl Iterator<Item = (UrlId, usize)> + '_ {
        self.pages.iter().map(|(page, index)| (*page, *index))
    }

    /// Adds those of another index, whose pages have other numbers here, or none.
    pub fn add(&mut self, other: Self, number: impl Fn(UrlId) -> Option<UrlId>) {
        let first = self.different.len();
        self.different.extend(other.different);
        let pages = other.pages.into_iter();
        self.pages.extend(pages.filter_map(|(page, index)| Some((number(page)?, first + index))));
    }

    /// Reads the column of every segment of an index.
    pub(super) fn read(searcher: &Searcher) -> tantivy::Result<Self> {
        let Self { mut pages, mut different } = Self::default();
        let is_wanted = |structure| {
            different.push(structure);
            true
        };
        each_document(searcher, is_wanted, |page, structure| pages.extend([(page, structure)]))?;
        Ok(Self { pages, different })
    }
}

/// Returns the pages of documents with a document type, in ascending order.
pub(super) fn with_doctype(searcher: &Searcher) -> tantivy::Result<Vec<UrlId>> {
    let mut pages = Vec::new();
    each_document(searcher, |structure| !structure.doctype.is_empty(), |page, _| pages.push(page))?;
    pages.sort_unstable();
    Ok(pages)
}

/// Passes each distinct structure of every segment to `is_wanted`, and the pages with a wanted one to `take`, with the
/// number of the structure.
fn each_document(
    searcher: &Searcher,
    mut is_wanted: impl FnMut(Structure) -> bool,
    mut take: impl FnMut(UrlId, usize),
) -> tantivy::Result<()> {
    let mut first = 0;
    for segment in searcher.segment_readers() {
        let columns = segment.fast_fields();
        let (pages, Some(texts)) = (columns.u64("page")?, columns.str(COLUMN)?) else { continue };
        let (mut wanted, mut text) = (Vec::new(), String::new());
        for ordinal in 0..texts.num_terms() as u64 {
            text.clear();
            texts.ord_to_str(ordinal, &mut text)?;
            wanted.push(is_wanted(from_text(&text)));
        }
        let documents = wanted.contains(&true).then(|| segment.doc_ids_alive());
        for document in documents.into_iter().flatten() {
            let ordinal = texts.term_ords(document).next().and_then(|ordinal| usize::try_from(ordinal).ok());
            let Some(ordinal) = ordinal.filter(|ordinal| wanted.get(*ordinal) == Some(&true)) else {
                continue;
            };
            let page = pages.first(document).and_then(|page| u32::try_from(page).ok());
            page.into_iter().for_each(|page| take(UrlId(page), first + ordinal));
        }
        first += wanted.len();
    }
    Ok(())
}

/// Encodes a structure for the column.
pub(super) fn to_text(structure: &Structure) -> String {
    let Structure { root, namespace, doctype, is_well_formed } = structure;
    let is_well_formed = match is_well_formed {
        Some(true) => "y",
        Some(false) => "n",
        None => "",
    };
    [root, namespace, doctype, is_well_formed].join(&BETWEEN.to_string())
}

fn from_text(text: &str) -> Structure {
    let mut parts = text.split(BETWEEN);
    let mut next = || parts.next().unwrap_or_default().to_owned();
    let (root, namespace, doctype) = (next(), next(), next());
    let is_well_formed = Some(next()).filter(|said| !said.is_empty()).map(|said| said == "y");
    Structure { root, namespace, doctype, is_well_formed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_back() {
        for is_well_formed in [None, Some(true), Some(false)] {
            let [root, namespace] = ["a", "urn:b c"].map(str::to_owned);
            let structure = Structure { root, namespace, doctype: String::new(), is_well_formed };
            assert_eq!(from_text(&to_text(&structure)), structure);
        }
    }
}
