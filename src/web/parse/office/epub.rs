//! Reads e-books (EPUB 2 and 3): their chapters in reading order.

use std::collections::HashMap;

use super::document::{OfficeDocument, OfficeProblem};
use super::markup::{Piece, attribute, walk};
use super::package::Package;
use super::properties::{self, CREATED};
use crate::parse::html::{self, MarkupSyntax};

/// Reads an e-book.
pub(super) fn read(package: &mut Package<'_>, document: &mut OfficeDocument) -> Result<(), OfficeProblem> {
    let container = package.xml("META-INF/container.xml")?.ok_or(OfficeProblem::Damaged)?;
    let mut root = None;
    walk(&container, |piece| {
        if let Piece::Start("rootfile", attributes) = piece {
            root = attribute(attributes, "full-path").map(std::borrow::Cow::into_owned);
        }
        root.is_none()
    });
    let root = root.ok_or(OfficeProblem::Damaged)?;
    let book = package.xml(&root)?.ok_or(OfficeProblem::Damaged)?;
    properties::read(&book, CREATED, document);
    let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut is_damaged = false;
    for chapter in chapters(&book) {
        if document.is_full() {
            break;
        }
        match package.xml(&path(folder, &chapter)) {
            Ok(Some(page)) => read_chapter(&page, document),
            Err(OfficeProblem::TooLarge) => return Err(OfficeProblem::TooLarge),
            Ok(None) | Err(_) => is_damaged = true,
        }
    }
    if is_damaged { Err(OfficeProblem::PartDamaged) } else { Ok(()) }
}

/// Addresses of the chapters, in reading order.
fn chapters(book: &str) -> Vec<String> {
    let (mut files, mut order) = (HashMap::new(), Vec::new());
    walk(book, |piece| {
        match piece {
            Piece::Start("item", attributes) => {
                let file = attribute(attributes, "id").zip(attribute(attributes, "href"));
                files.extend(file.map(|(id, address)| (id.into_owned(), address.into_owned())));
            }
            Piece::Start("itemref", attributes) => {
                order.extend(attribute(attributes, "idref").map(std::borrow::Cow::into_owned));
            }
            _ => {}
        }
        true
    });
    // A chapter is read once.
    order.into_iter().filter_map(|id| files.remove(&id)).collect()
}

/// The part of the package that an address from a file in a folder leads to.
fn path(folder: &str, address: &str) -> String {
    let base = url::Url::parse("file:///").ok().and_then(|root| root.join(&format!("{folder}/")).ok());
    let found = base.and_then(|base| base.join(address).ok());
    let path = found.map(|found| found.path().trim_start_matches('/').to_owned()).unwrap_or_default();
    percent_decoded(&path)
}

fn percent_decoded(path: &str) -> String {
    // The crate that decodes addresses does it for the parts of a query only.
    let escaped = path.replace('+', "%2B").replace('&', "%26").replace('=', "%3D");
    url::form_urlencoded::parse(escaped.as_bytes())
        .next()
        .map(|(name, _)| name.into_owned())
        .unwrap_or_default()
}

fn read_chapter(page: &str, document: &mut OfficeDocument) {
    document.add(&html::text(page, MarkupSyntax::Xml));
    document.line();
    walk(page, |piece| {
        if let Piece::Start("a", attributes) = piece
            && let Some(target) = attribute(attributes, "href").filter(|target| target.contains("://"))
        {
            document.add_link(&target);
        }
        true
    });
}
