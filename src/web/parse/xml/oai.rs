//! Responses of OAI-PMH 2.0 repositories: the records, and the continuation of the list.

use roxmltree::{Document, Node};

use super::super::outlinks::Outlinks;
use super::super::{DatedItem, LinkKind, parse_date};
use super::walk::{child, text_of, url_in};

/// Whether a root element is that of an OAI-PMH response.
pub(super) fn is_root(root: Node<'_, '_>) -> bool {
    root.tag_name().name() == "OAI-PMH"
}

/// Reads a response; returns the dates of the records that contain a URL.
pub(super) fn read(document: &Document<'_>, outlinks: &mut Outlinks) -> Vec<DatedItem> {
    let mut entries = Vec::new();
    for node in document.root_element().children().flat_map(|list| list.children()) {
        match node.tag_name().name() {
            "record" => entries.extend(read_record(node, outlinks)),
            "resumptionToken" => resume(node, outlinks),
            _ => {}
        }
    }
    entries
}

/// Reads a record: adds the identifiers that are URLs, and returns the first one with its date.
fn read_record(record: Node<'_, '_>, outlinks: &mut Outlinks) -> Option<DatedItem> {
    let header = child(record, "header")?;
    let mut first = None;
    for node in child(record, "metadata")?.descendants() {
        if matches!(node.tag_name().name(), "identifier" | "relation" | "source")
            && let Some(url) = url_in(node)
        {
            let place = outlinks.add(url, LinkKind::Reference, false);
            first = first.or(place);
        }
    }
    let modified = parse_date(&text_of(child(header, "datestamp")?))?;
    Some(DatedItem { link: first?, modified })
}

/// Adds the continuation of the list: the requested URL, with the token in place of all other arguments (section 3.5).
fn resume(token: Node<'_, '_>, outlinks: &mut Outlinks) {
    let text = text_of(token);
    let Some(verb) = token.parent_element().map(|list| list.tag_name().name()) else { return };
    if text.is_empty() {
        return;
    }
    let mut url = outlinks.base().clone();
    url.query_pairs_mut().clear().append_pair("verb", verb).append_pair("resumptionToken", &text);
    outlinks.add(url.as_str(), LinkKind::FeedPage, false);
}
