//! Reads e-mail (RFC 5322, MIME): subject, sender, date, the text, and the names of what is attached.

use mail_parser::{Address, MessageParser, MimeHeaders};

use super::document::{OfficeDocument, OfficeProblem};
use super::markup::{Piece, attribute, walk};
use crate::parse::html::{self, MarkupSyntax};

/// Reads a message.
pub(super) fn read(message: &[u8], document: &mut OfficeDocument) -> Result<(), OfficeProblem> {
    let message = MessageParser::default().parse(message).ok_or(OfficeProblem::Damaged)?;
    document.title = message.subject().unwrap_or_default().trim().to_owned();
    document.author = message.from().map(names).unwrap_or_default();
    document.published = message.date().map(mail_parser::DateTime::to_timestamp);
    for (place, part) in message.text_bodies().enumerate() {
        let text = part.text_contents().unwrap_or_default();
        if part.is_text_html() {
            document.add(&html::text(text, MarkupSyntax::Html));
        } else if part.is_text() {
            document.add(text);
        } else if place == 0 {
            return Err(OfficeProblem::Damaged);
        }
        document.line();
    }
    for part in message.html_bodies().filter(|part| part.is_text_html()) {
        walk(part.text_contents().unwrap_or_default(), |piece| {
            if let Piece::Start("a" | "A", attributes) = piece {
                attribute(attributes, "href").iter().for_each(|target| document.add_link(target));
            }
            true
        });
    }
    for name in message.attachments().filter_map(MimeHeaders::attachment_name) {
        document.add(name);
        document.line();
    }
    Ok(())
}

/// The names of senders, or else their addresses.
fn names(senders: &Address<'_>) -> String {
    let mut names = String::new();
    for sender in senders.iter() {
        OfficeDocument::add_to(&mut names, sender.name().or(sender.address()).unwrap_or_default());
    }
    names
}
