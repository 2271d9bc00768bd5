//! Reads OpenDocument (ISO/IEC 26300): `.odt`, `.ods`, `.odp`.

use super::document::{OfficeDocument, OfficeProblem};
use super::markup::{Piece, attribute, walk_without};
use super::package::Package;
use super::properties::{self, MODIFIED};

/// Elements that are not read: what was deleted, remarks on the text, names of pictures, and notes of a speaker.
const LEFT_OUT: [&str; 5] = ["tracked-changes", "annotation", "title", "desc", "notes"];

/// Maximum number of blanks that an element stands for.
const BLANKS_MAX: usize = 100;

/// Reads a package of OpenDocument.
pub(super) fn read(package: &mut Package<'_>, document: &mut OfficeDocument) -> Result<(), OfficeProblem> {
    if let Some(meta) = package.xml("meta.xml").unwrap_or_default() {
        properties::read(&meta, MODIFIED, document);
    }
    let manifest = package.xml("META-INF/manifest.xml").unwrap_or_default().unwrap_or_default();
    if manifest.contains("encryption-data") {
        return Err(OfficeProblem::Encrypted);
    }
    let content = package.xml("content.xml")?.ok_or(OfficeProblem::Damaged)?;
    // Paragraphs in one another: a note or a frame in a paragraph has its own.
    let mut depth = 0_u32;
    walk_without(&LEFT_OUT, &content, |piece| {
        match piece {
            Piece::Start("p" | "h", _) => depth += 1,
            Piece::End("p" | "h") => {
                depth = depth.saturating_sub(1);
                document.line();
            }
            Piece::Text(text) if depth > 0 => add_text(&text, document),
            Piece::Start("s", attributes) => {
                let count = attribute(attributes, "c").and_then(|count| count.parse().ok()).unwrap_or(1);
                document.add(&" ".repeat(count.min(BLANKS_MAX)));
            }
            Piece::Start("tab", _) => document.space(),
            Piece::Start("line-break", _) => document.line(),
            Piece::Start("note", _) if depth > 0 => document.space(),
            Piece::Start("a", attributes) => {
                attribute(attributes, "href").iter().for_each(|target| document.add_link(target));
            }
            _ => {}
        }
        !document.is_full()
    });
    Ok(())
}

/// Adds text in which blanks and line ends count as one blank.
fn add_text(text: &str, document: &mut OfficeDocument) {
    if text.starts_with(char::is_whitespace) {
        document.space();
    }
    for (place, word) in text.split_whitespace().enumerate() {
        if place > 0 {
            document.space();
        }
        document.add(word);
    }
    if text.ends_with(char::is_whitespace) {
        document.space();
    }
}
