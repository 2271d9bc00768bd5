//! What is read of a document, and why some of it is not.

use serde::{Deserialize, Serialize};

/// Maximum bytes of a document's text that are read; the rest of the document is not looked at.
pub const OFFICE_TEXT_BYTES_MAX: usize = 1 << 20;

/// Maximum number of links that are read of a document, and bytes of one.
const LINKS_MAX: usize = 10_000;
const LINK_BYTES_MAX: usize = 2048;

/// What a document of an office program says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfficeDocument {
    /// Its title; empty if it has none, as the other texts are.
    pub title: String,
    /// Its authors, `, ` between them.
    pub author: String,
    /// What it is about.
    pub description: String,
    /// Its keywords.
    pub keywords: String,
    /// The language that it says it is in, as a tag.
    pub language: String,
    /// When it was published or made, in seconds since 1970.
    pub published: Option<i64>,
    /// When it was last changed.
    pub revised: Option<i64>,
    /// Its text, with one line per paragraph.
    pub text: String,
    /// What its links lead to, as written.
    pub links: Vec<String>,
    /// What was not read of it.
    pub problem: Option<OfficeProblem>,
}

/// Why a document, or a part of it, was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum OfficeProblem {
    /// The format is none of those that are read.
    #[error("documents of this format are not read")]
    Format,
    /// It needs a password.
    #[error("the document is encrypted")]
    Encrypted,
    /// It is broken, or not what it seems.
    #[error("the document is damaged")]
    Damaged,
    /// A part of it is broken or lacks.
    #[error("a part of the document is damaged")]
    PartDamaged,
    /// It has more parts than allowed.
    #[error("the document has too many parts")]
    TooManyParts,
    /// It unpacks to more bytes than allowed.
    #[error("the document unpacks to too many bytes")]
    TooLarge,
    /// It has more pages than are read.
    #[error("the document has too many pages; the first ones were read")]
    TooManyPages,
    /// Nothing on its pages is text.
    #[error("the document has no text; it may show pictures of text")]
    NoText,
    /// Its fonts do not tell letters.
    #[error("the document's fonts do not say which letters they show")]
    NoLetters,
    /// It takes more time or memory than allowed.
    #[error("reading the document takes too much time or memory")]
    TooCostly,
    /// The process that read it broke down.
    #[error("the reader broke down on the document")]
    BrokeDown,
    /// No process could be started that reads such documents.
    #[error("no process could be started to read the document")]
    NotStarted,
    /// The process that was to read it cannot give up its rights on this system.
    #[error("this system cannot shut in the process that reads such documents")]
    NotConfined,
    /// This program reads no such documents.
    #[error("this program does not read such documents")]
    NoReader,
}

impl OfficeDocument {
    /// A document of which nothing was read.
    pub(crate) fn unread(problem: OfficeProblem) -> Self {
        Self { problem: Some(problem), ..Self::default() }
    }

    /// Adds what a link leads to, as written.
    pub(super) fn add_link(&mut self, target: &str) {
        let is_new = self.links.last().is_none_or(|last| last != target);
        if is_new && self.links.len() < LINKS_MAX && (1..=LINK_BYTES_MAX).contains(&target.len()) {
            self.links.push(target.to_owned());
        }
    }

    /// Whether no more text is read.
    pub(super) fn is_full(&self) -> bool {
        self.text.len() >= OFFICE_TEXT_BYTES_MAX
    }

    /// Adds a piece of text as it is.
    pub(super) fn add(&mut self, text: &str) {
        let room = OFFICE_TEXT_BYTES_MAX.saturating_sub(self.text.len());
        self.text.push_str(&text[..text.floor_char_boundary(room)]);
    }

    /// Separates what follows from the text so far by a blank.
    pub(super) fn space(&mut self) {
        if self.text.ends_with(|last: char| !last.is_whitespace()) {
            self.add(" ");
        }
    }

    /// Begins a new line, unless the text is at the beginning of one.
    pub(super) fn line(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.add("\n");
        }
    }

    /// Adds a name to a list of names.
    pub(super) fn add_to(list: &mut String, name: &str) {
        let name = name.trim();
        if !name.is_empty() {
            if !list.is_empty() {
                list.push_str(", ");
            }
            list.push_str(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_read_up_to_its_limits() {
        let mut document = OfficeDocument::default();
        document.add(&"x".repeat(OFFICE_TEXT_BYTES_MAX - 1));
        assert!(!document.is_full());
        document.add("é");
        assert_eq!(document.text.len(), OFFICE_TEXT_BYTES_MAX - 1, "a letter is not divided");
        document.add("yz");
        assert!(document.is_full() && document.text.ends_with('y'));
        (0..=LINKS_MAX).for_each(|number| document.add_link(&number.to_string()));
        assert_eq!(document.links.len(), LINKS_MAX);
        document.links.clear();
        document.add_link(&"x".repeat(LINK_BYTES_MAX));
        document.add_link(&"x".repeat(LINK_BYTES_MAX + 1));
        assert_eq!(document.links.len(), 1);
    }
}
