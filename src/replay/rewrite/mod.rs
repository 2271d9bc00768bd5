//! Rewriting: whatever a document loads or leads to gets an address in the archive, of the document's own time.

pub(super) mod css;
pub(super) mod html;
pub(super) mod xml;

#[cfg(test)]
mod tests;

use encoding_rs::{Encoding, UTF_8};
use url::Url;

use super::address::Modifier;
use crate::parse::LinkKind;
use crate::parse::resolve::absolute;

/// Where the references of one document lead.
#[derive(Clone, Debug)]
pub(super) struct Links {
    /// Nothing is rewritten in a document whose URL is none.
    base: Option<Url>,
    encoding: &'static Encoding,
    stamp: String,
    /// What the document itself was asked for as: links that a reader follows keep it.
    modifier: Modifier,
}

impl Links {
    /// For a document of this URL and timestamp.
    pub(super) fn new(base: Option<Url>, stamp: String, modifier: Modifier) -> Self {
        Self { base, encoding: UTF_8, stamp, modifier }
    }

    /// For references in a document of some encoding.
    pub(super) fn in_encoding(self, encoding: &'static Encoding) -> Self {
        Self { encoding: encoding.output_encoding(), ..self }
    }

    /// Takes over the base that a document states.
    pub(super) fn rebase(&mut self, reference: &str) {
        let base = self.base.as_ref().and_then(|base| absolute(base, self.encoding, reference));
        self.base = base.or(self.base.take());
    }

    /// The address of what a reference names; none when it leads nowhere, as `#part`, `mailto:` and `data:`.
    pub(super) fn address(&self, reference: &str, modifier: Modifier) -> Option<String> {
        let reference = reference.trim_matches(|c: char| c <= ' ');
        if reference.is_empty() || reference.starts_with('#') {
            return None;
        }
        let url = absolute(self.base.as_ref()?, self.encoding, reference)?;
        Some(format!("/web/{}{}/{url}", self.stamp, modifier.as_str()))
    }

    /// The same, as what a link of this kind asks for.
    pub(super) fn of_kind(&self, reference: &str, kind: LinkKind) -> Option<String> {
        self.address(reference, self.modifier_of(kind))
    }

    /// How links of a kind are asked for.
    fn modifier_of(&self, kind: LinkKind) -> Modifier {
        match kind {
            LinkKind::Image
            | LinkKind::ImageSource
            | LinkKind::LazyImage
            | LinkKind::Icon
            | LinkKind::StyleResource => Modifier::Image,
            LinkKind::Script => Modifier::Script,
            LinkKind::Stylesheet | LinkKind::StyleImport | LinkKind::XmlStylesheet => Modifier::Style,
            LinkKind::InlineFrame => Modifier::InlineFrame,
            LinkKind::Frame => Modifier::Frame,
            LinkKind::Media | LinkKind::Embed => Modifier::Object,
            LinkKind::Preload | LinkKind::WebManifest => Modifier::Main,
            _ => self.page(),
        }
    }

    /// How the pages are asked for that a reader goes to from here.
    pub(super) fn page(&self) -> Modifier {
        if self.modifier.is_document() || self.modifier == Modifier::Identity {
            self.modifier
        } else {
            Modifier::Main
        }
    }
}

/// A text with some of its parts replaced; nothing when none was.
#[derive(Debug)]
pub(super) struct Splice<'a> {
    text: &'a str,
    written: String,
    from: usize,
}

impl<'a> Splice<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, written: String::new(), from: 0 }
    }

    /// Puts something in the place of `part`, a slice of the text behind the last one that was replaced.
    pub(super) fn replace(&mut self, part: &str, with: &str) {
        let at = (part.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let is_part = at.checked_add(part.len()).is_some_and(|end| end <= self.text.len());
        if is_part && let Some(before) = self.text.get(self.from..at) {
            self.written.push_str(before);
            self.written.push_str(with);
            self.from = at + part.len();
        }
    }

    pub(super) fn finish(mut self) -> Option<String> {
        if self.from == 0 && self.written.is_empty() {
            return None;
        }
        self.written.push_str(&self.text[self.from..]);
        Some(self.written)
    }
}
