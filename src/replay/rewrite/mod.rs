//! Rewriting: everything that a document loads or links to gets an address in the archive, at the document's own time.

pub(super) mod css;
pub(super) mod html;
mod import_map;
pub(super) mod playlist;
pub(super) mod script;
pub(super) mod xml;

#[cfg(test)]
mod tests;

use std::ops::Range;

use archive_web::parse::LinkKind;
use archive_web::parse::resolve::Resolver;
use encoding_rs::{Encoding, UTF_8};
use url::Url;

use super::address::Modifier;

/// Resolves the references of a document to addresses in the archive.
#[derive(Clone, Debug)]
pub(super) struct LinkRewriter {
    /// `None` if the document's URL is not valid; nothing is rewritten then.
    base: Option<Resolver>,
    stamp: String,
    /// Modifier with which the document was requested; links that a reader follows keep it.
    modifier: Modifier,
    /// Modifier for scripts.
    script: Modifier,
    /// The address against which a browser resolves references; `None` if unknown.
    place: Option<String>,
}

impl LinkRewriter {
    /// For a document with this URL and timestamp.
    pub(super) fn new(base: Option<Url>, stamp: String, modifier: Modifier) -> Self {
        let base = base.map(|base| Resolver::new(base, UTF_8));
        Self { base, stamp, modifier, script: Modifier::Script, place: None }
    }

    /// For a document that does not load our script, so that its scripts must stay as captured.
    pub(super) fn with_plain_scripts(self) -> Self {
        Self { script: Modifier::Main, ..self }
    }

    /// For a document that the browser has at this path and query of the replay.
    pub(super) fn shown_at(self, place: &str) -> Self {
        Self { place: Some(place.to_owned()), ..self }
    }

    /// For references in a document with this encoding.
    pub(super) fn in_encoding(self, encoding: &'static Encoding) -> Self {
        Self { base: self.base.map(|base| base.in_encoding(encoding)), ..self }
    }

    /// Applies the base that a document declares.
    pub(super) fn rebase(&mut self, reference: &str) {
        self.place = self.place.take().and_then(|_| self.address(reference, self.page()));
        let base = self.base.as_ref().and_then(|base| base.rebased(reference));
        self.base = base.or(self.base.take());
    }

    /// The address of a reference; `None` if it is not fetchable, such as `#part`, `mailto:` and `data:`.
    pub(super) fn address(&self, reference: &str, modifier: Modifier) -> Option<String> {
        let reference = reference.trim_matches(|c: char| c <= ' ');
        if reference.is_empty() || reference.starts_with('#') {
            return None;
        }
        let mut address = self.start(modifier);
        address.reserve(reference.len() + 64);
        self.base.as_ref()?.resolve_whole(reference, &mut address).then_some(address)
    }

    /// The address in the archive of a URL, up to the URL.
    fn start(&self, modifier: Modifier) -> String {
        ["/web/", &self.stamp, modifier.as_str(), "/"].concat()
    }

    /// The address of the page that a link leads to. Also `None` if a browser resolves the reference to this address
    /// anyway: where possible, styles and scripts should find the attribute unchanged.
    pub(super) fn followed(&self, reference: &str) -> Option<String> {
        self.address(reference, self.page()).filter(|address| !self.leads_to(reference, address))
    }

    /// Whether a browser resolves a reference to this address. Detects only plain relative references, whose text is
    /// the end of the address.
    fn leads_to(&self, reference: &str, address: &str) -> bool {
        let Some(place) = &self.place else { return false };
        let mut rest = reference.trim_matches(|c: char| c <= ' ');
        let first_segment = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if rest.starts_with(['/', '\\']) || first_segment.contains(':') {
            return false;
        }
        let path = place.split(['?', '#']).next().unwrap_or_default();
        let mut above = if rest.starts_with('?') { path } else { directory(path) };
        while let Some(less) = rest.strip_prefix("../") {
            above = directory(above.strip_suffix('/').unwrap_or(above));
            rest = less;
        }
        address.strip_prefix(above) == Some(rest)
    }

    /// The address that a link of this kind requests.
    pub(super) fn of_kind(&self, reference: &str, kind: LinkKind) -> Option<String> {
        self.address(reference, self.modifier_of(kind))
    }

    /// The modifier for links of this kind.
    fn modifier_of(&self, kind: LinkKind) -> Modifier {
        match kind {
            LinkKind::Image
            | LinkKind::ImageSource
            | LinkKind::LazyImage
            | LinkKind::Icon
            | LinkKind::StyleResource => Modifier::Image,
            LinkKind::Script => self.script,
            LinkKind::Stylesheet | LinkKind::StyleImport | LinkKind::XmlStylesheet => Modifier::Style,
            LinkKind::InlineFrame => Modifier::InlineFrame,
            LinkKind::Frame => Modifier::Frame,
            LinkKind::Media | LinkKind::Embed => Modifier::Object,
            LinkKind::Preload | LinkKind::WebManifest => Modifier::Main,
            _ => self.page(),
        }
    }

    /// The modifier for pages that a reader goes to from here.
    pub(super) fn page(&self) -> Modifier {
        if self.modifier.is_document() || self.modifier == Modifier::Identity {
            self.modifier
        } else {
            Modifier::Main
        }
    }
}

/// The path up to and including its last slash.
fn directory(path: &str) -> &str {
    &path[..path.rfind('/').map_or(0, |slash| slash + 1)]
}

/// Maximum size of a document after rewriting, in bytes; one that would be longer is not rewritten.
pub(super) const WRITTEN_BYTES_MAX: usize = 64 << 20;

/// A text with some of its parts replaced. [`Splice::finish`] returns `None` if no part was, or if the result would be
/// too long.
#[derive(Debug)]
pub(super) struct Splice<'a> {
    pub(super) text: &'a str,
    written: String,
    from: usize,
    is_too_long: bool,
}

impl<'a> Splice<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, written: String::new(), from: 0, is_too_long: false }
    }

    /// Replaces `part`, which must be a slice of the text after the last replaced one.
    pub(super) fn replace(&mut self, part: &str, with: &str) {
        let Some(place) = self.place(part).filter(|place| !place.is_empty() || !with.is_empty()) else {
            return;
        };
        let Some(before) = self.text.get(self.from..place.start) else { return };
        self.is_too_long |= self.written.len() + before.len() + with.len() > WRITTEN_BYTES_MAX;
        if !self.is_too_long {
            if self.written.capacity() == 0 {
                self.written.reserve(self.text.len() + self.text.len() / 4);
            }
            self.written.push_str(before);
            self.written.push_str(with);
            self.from = place.end;
        }
    }

    /// Writes everything before `part`; returns the position of `part` in what is written.
    pub(super) fn write_before(&mut self, part: &str) -> usize {
        if let Some(place) = self.place(part)
            && let Some(before) = self.text.get(self.from..place.start)
        {
            self.written.push_str(before);
            self.from = place.start;
        }
        self.written.len()
    }

    /// The position of a slice in the text.
    pub(super) fn place(&self, part: &str) -> Option<Range<usize>> {
        let start = (part.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let end = start.checked_add(part.len()).filter(|end| *end <= self.text.len())?;
        Some(start..end)
    }

    /// Inserts a text at a position that [`Splice::write_before`] gave.
    pub(super) fn insert(&mut self, position: usize, text: &str) {
        self.is_too_long |= self.written.len() + text.len() > WRITTEN_BYTES_MAX;
        if !self.is_too_long {
            self.written.insert_str(position, text);
        }
    }

    pub(super) fn finish(mut self) -> Option<String> {
        if self.is_too_long || self.from == 0 && self.written.is_empty() {
            return None;
        }
        self.written.push_str(&self.text[self.from..]);
        Some(self.written)
    }
}
