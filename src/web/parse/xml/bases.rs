//! Bases set by `xml:base` (XML Base), for every node of a tree.

use encoding_rs::Encoding;
use roxmltree::{Document, Node};
use url::Url;

use super::super::LinkKind;
use super::super::outlinks::Outlinks;
use super::walk::XML;

/// Maximum number of bases of a document; more are ignored.
const BASES_MAX: usize = 10_000;

/// Maximum bytes of a base; longer ones are ignored.
const BASE_BYTES_MAX: usize = 2048;

/// The bases of a document, and the collector of its links.
pub(super) struct Bases<'o> {
    outlinks: &'o mut Outlinks,
    encoding: &'static Encoding,
    /// The document's own base and those of its elements.
    urls: Vec<Url>,
    /// Index of each node's base; empty if all nodes have the document's own.
    of_node: Vec<u16>,
    /// Index of the collector's current base.
    now: u16,
}

impl<'o> Bases<'o> {
    /// Finds the bases of a document in one pass, so that no link requires walking up the tree.
    pub(super) fn of(
        document: &Document<'_>,
        encoding: &'static Encoding,
        outlinks: &'o mut Outlinks,
    ) -> Self {
        let urls = vec![outlinks.base().clone()];
        let mut bases = Self { outlinks, encoding, urls, of_node: Vec::new(), now: 0 };
        if memchr::memmem::find(document.input_text().as_bytes(), b":base").is_some() {
            for node in document.descendants() {
                let outer = node.parent().map_or(0, |parent| bases.place_of(parent));
                let inner = node.attribute((XML, "base")).and_then(|written| bases.enter(outer, written));
                bases.of_node.push(inner.unwrap_or(outer));
            }
        }
        bases
    }

    fn enter(&mut self, outer: u16, written: &str) -> Option<u16> {
        if written.len() > BASE_BYTES_MAX || self.urls.len() >= BASES_MAX {
            return None;
        }
        let url = self.urls[usize::from(outer)].join(written).ok()?;
        let is_base = matches!(url.scheme(), "http" | "https") && url.as_str().len() <= BASE_BYTES_MAX;
        let place = u16::try_from(self.urls.len()).ok().filter(|_| is_base)?;
        self.urls.push(url);
        Some(place)
    }

    fn place_of(&self, node: Node<'_, '_>) -> u16 {
        self.of_node.get(node.id().get_usize()).copied().unwrap_or(0)
    }

    /// Returns the collector, set to the base of a node.
    pub(super) fn at(&mut self, node: Node<'_, '_>) -> &mut Outlinks {
        let base = self.place_of(node);
        if base != self.now {
            self.now = base;
            self.outlinks.set_base(self.urls[usize::from(base)].clone(), self.encoding);
        }
        self.outlinks
    }

    /// Adds a link of a node.
    pub(super) fn add(&mut self, node: Node<'_, '_>, reference: &str, kind: LinkKind) -> Option<u32> {
        self.at(node).add(reference, kind, false)
    }
}
