//! Documents of office programs: PDF, Office Open XML, OpenDocument, e-books and e-mail.
//!
//! Their formats are large, and so are the libraries that read them. They are therefore read in another process (`process`), which has
//! given up all rights before it sees the first byte of a document, and has limits on memory and time; a few such processes
//! serve one program (`readers`). Whatever a document does to its reader, it costs only its own text.

mod document;
mod epub;
mod letters;
mod mail;
mod markup;
mod open_document;
mod open_xml;
mod package;
mod pdf;
mod process;
mod properties;
mod readers;

pub use self::document::{OFFICE_TEXT_BYTES_MAX, OfficeDocument, OfficeProblem};
use self::package::Package;
pub use self::process::serve_documents;
pub(crate) use self::readers::ask;
pub use self::readers::start_readers_with;
use super::DocumentKind;

/// Reads a document of a kind of office documents in this process; never fails: [`OfficeDocument::problem`] says what was not read.
///
/// Time and memory are not bounded by its length: the process must have limits on both, and the document may end it.
#[must_use]
pub fn read_office(kind: DocumentKind, file: Vec<u8>) -> OfficeDocument {
    let mut document = OfficeDocument::default();
    let read = match kind {
        DocumentKind::Pdf => return pdf::read(file),
        DocumentKind::Mail => mail::read(&file, &mut document),
        _ => read_package(&file, &mut document),
    };
    document.problem = read.err();
    document
}

fn read_package(file: &[u8], document: &mut OfficeDocument) -> Result<(), OfficeProblem> {
    if !file.starts_with(b"PK") {
        return Err(OfficeProblem::Format);
    }
    let mut package = Package::open(file)?;
    match () {
        () if package.has("META-INF/container.xml") => epub::read(&mut package, document),
        () if package.has("content.xml") => open_document::read(&mut package, document),
        () => open_xml::read(&mut package, document),
    }
}
