//! Walks through the elements of an XML part.
//!
//! Elements are known by their local names, and no tree is built: depth costs nothing, and markup that is broken is read up to the end.

use std::borrow::Cow;

use crate::parse::html::{Attribute, HtmlToken, Markup, decode_entities};

/// A piece of an XML part.
pub(super) enum Piece<'a, 'm> {
    /// An element begins.
    Start(&'a str, &'m [Attribute<'a>]),
    /// An element ends.
    End(&'a str),
    /// Text in an element.
    Text(Cow<'a, str>),
}

/// Passes the pieces of an XML part to `take` until that returns false.
pub(super) fn walk(xml: &str, mut take: impl FnMut(Piece<'_, '_>) -> bool) {
    let mut markup = Markup::of(xml);
    markup.allow_cdata(true);
    while let Some(token) = markup.next_token() {
        let goes_on = match token {
            HtmlToken::Text(text) => take(Piece::Text(decode_entities(text))),
            HtmlToken::PlainText(text) => take(Piece::Text(Cow::Borrowed(text))),
            HtmlToken::Conditional(_) => true,
            HtmlToken::Tag(tag) if tag.is_end => take(Piece::End(local(tag.name))),
            HtmlToken::Tag(tag) => {
                take(Piece::Start(local(tag.name), tag.attributes))
                    && (!tag.is_self_closing || take(Piece::End(local(tag.name))))
            }
        };
        if !goes_on {
            break;
        }
    }
}

/// As [`walk`], without elements of these names and all that is in them.
pub(super) fn walk_without(names: &[&str], xml: &str, mut take: impl FnMut(Piece<'_, '_>) -> bool) {
    // Elements in one another since the one that is left out began.
    let mut depth = 0_u32;
    walk(xml, |piece| {
        match &piece {
            Piece::Start(name, _) if depth > 0 || names.contains(name) => depth += 1,
            Piece::End(_) if depth > 0 => depth -= 1,
            _ if depth > 0 => {}
            _ => return take(piece),
        }
        true
    });
}

/// The value of an attribute by its local name.
pub(super) fn attribute<'a>(attributes: &[Attribute<'a>], name: &str) -> Option<Cow<'a, str>> {
    let found = attributes.iter().find(|attribute| local(attribute.name) == name)?;
    Some(decode_entities(found.value))
}

/// A name without its prefix.
pub(super) fn local(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, local)| local)
}
