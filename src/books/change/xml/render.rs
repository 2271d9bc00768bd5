//! Deltas and trees as XML.
//!
//! A `delta` element contains one element per operation, named after it. Numbers and places are attributes. An inserted
//! or deleted subtree is the content of its element, and `nodes` lists the numbers of its nodes. Parts moved into an
//! inserted subtree or out of a deleted one are not included: they have a `move` of their own.

use std::fmt::Write as _;

use super::delta::{ChildSlot, Delta, DeltaStep, SubtreeNode};
use super::tree::{NodeContent, QualifiedName, Tree};

/// The namespace of the elements of a delta.
const NAMESPACE: &str = "urn:archive:xml-delta:1";

impl Delta {
    /// Formats the delta as an XML document.
    #[must_use]
    pub fn to_xml(&self) -> String {
        let mut out =
            format!("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<d:delta xmlns:d=\"{NAMESPACE}\">\n");
        for operation in &self.operations {
            put_operation(&mut out, operation);
        }
        out.push_str("</d:delta>\n");
        out
    }
}

impl Tree {
    /// Formats the tree as an XML document: children of an element without text on lines of their own, elements named
    /// without prefix.
    #[must_use]
    pub fn to_xml(&self) -> String {
        let mut out = "<?xml version=\"1.0\" encoding=\"utf-8\"?>".to_owned();
        let mut open: Vec<usize> = Vec::new();
        let name = |place: usize| match &self.nodes[place].content {
            NodeContent::Element(name, _) => Some(name),
            _ => None,
        };
        let is_text = |child: &usize| matches!(self.nodes[*child].content, NodeContent::Text(_));
        let has_lines = |place: usize| {
            let children = &self.nodes[place].children;
            !children.is_empty() && !children.iter().any(is_text)
        };
        let close = |out: &mut String, place: usize| {
            if let Some(name) = name(place) {
                let line = if has_lines(place) { "\n" } else { "" };
                let _ = write!(out, "{line}</{}>", name.local);
            }
        };
        for (place, node) in self.nodes.iter().enumerate().skip(1) {
            while open.last().is_some_and(|around| *around != node.parent) {
                open.pop().into_iter().for_each(|place| close(&mut out, place));
            }
            if has_lines(node.parent) {
                out.push('\n');
            }
            let around = open.last().and_then(|around| name(*around)).map(|name| name.namespace.as_str());
            put_piece(&mut out, &node.content, around);
            if name(place).is_some() {
                open.push(place);
            }
        }
        open.into_iter().rev().for_each(|place| close(&mut out, place));
        out.push('\n');
        out
    }
}

fn put_operation(out: &mut String, operation: &DeltaStep) {
    match operation {
        DeltaStep::Delete { from, nodes } => put_fragment(out, "delete", from, nodes),
        DeltaStep::Insert { to, nodes } => put_fragment(out, "insert", to, nodes),
        DeltaStep::Move { id, from, to } => {
            out.push_str("  <d:move");
            put_attribute(out, "node", &id.to_string());
            put_slot(out, "from-", from);
            put_slot(out, "to-", to);
            out.push_str("/>\n");
        }
        DeltaStep::Update { id, path, old, new } => {
            out.push_str("  <d:update");
            put_attribute(out, "node", &id.to_string());
            put_attribute(out, "path", path);
            out.push_str("><d:old>");
            put_escaped(out, old, false);
            out.push_str("</d:old><d:new>");
            put_escaped(out, new, false);
            out.push_str("</d:new></d:update>\n");
        }
        DeltaStep::Attribute { id, path, name, old, new } => {
            out.push_str("  <d:attribute");
            put_attribute(out, "node", &id.to_string());
            put_attribute(out, "path", path);
            put_attribute(out, "name", &name.local);
            if !name.namespace.is_empty() {
                put_attribute(out, "namespace", &name.namespace);
            }
            for (label, value) in [("old", old), ("new", new)] {
                if let Some(value) = value {
                    put_attribute(out, label, value);
                }
            }
            out.push_str("/>\n");
        }
    }
}

fn put_fragment(out: &mut String, operation: &str, slot: &ChildSlot, nodes: &[SubtreeNode]) {
    let _ = write!(out, "  <d:{operation}");
    put_slot(out, "", slot);
    let numbers: Vec<String> = nodes.iter().map(|piece| piece.id.to_string()).collect();
    put_attribute(out, "nodes", &numbers.join(" "));
    out.push('>');
    let mut open: Vec<(u32, &QualifiedName)> = Vec::new();
    for piece in nodes {
        while let Some((id, name)) = open.last().copied()
            && id != piece.parent
        {
            let _ = write!(out, "</{}>", name.local);
            open.pop();
        }
        put_piece(out, &piece.content, open.last().map(|(_, name)| name.namespace.as_str()));
        if let NodeContent::Element(name, _) = &piece.content {
            open.push((piece.id, name));
        }
    }
    for (_, name) in open.iter().rev() {
        let _ = write!(out, "</{}>", name.local);
    }
    let _ = writeln!(out, "</d:{operation}>");
}

/// Writes the start of a node. `around` is the default namespace in force, `None` directly below the operation or the document.
fn put_piece(out: &mut String, content: &NodeContent, around: Option<&str>) {
    match content {
        NodeContent::Document => {}
        NodeContent::Element(name, attributes) => {
            let _ = write!(out, "<{}", name.local);
            if around.unwrap_or_default() != name.namespace {
                put_attribute(out, "xmlns", &name.namespace);
            }
            for (number, attribute) in attributes.iter().enumerate() {
                let (name, value) = (&attribute.name, &attribute.value);
                match name.namespace.as_str() {
                    "" => put_attribute(out, &name.local, value),
                    "http://www.w3.org/XML/1998/namespace" => {
                        put_attribute(out, &format!("xml:{}", name.local), value);
                    }
                    namespace => {
                        put_attribute(out, &format!("xmlns:a{number}"), namespace);
                        put_attribute(out, &format!("a{number}:{}", name.local), value);
                    }
                }
            }
            out.push('>');
        }
        NodeContent::Text(text) => put_escaped(out, text, false),
        NodeContent::Comment(text) => {
            let _ = write!(out, "<!--{text}-->");
        }
        NodeContent::Instruction(target, value) => {
            let _ = write!(out, "<?{target} {value}?>");
        }
    }
}

fn put_slot(out: &mut String, prefix: &str, slot: &ChildSlot) {
    put_attribute(out, &format!("{prefix}parent"), &slot.parent.to_string());
    put_attribute(out, &format!("{prefix}position"), &slot.position.to_string());
    put_attribute(out, &format!("{prefix}path"), &slot.path);
}

fn put_attribute(out: &mut String, name: &str, value: &str) {
    let _ = write!(out, " {name}=\"");
    put_escaped(out, value, true);
    out.push('"');
}

fn put_escaped(out: &mut String, text: &str, in_attribute: bool) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' if in_attribute => out.push_str("&quot;"),
            '\n' | '\t' if in_attribute => {
                let _ = write!(out, "&#{};", c as u32);
            }
            '\r' => out.push_str("&#13;"),
            c => out.push(c),
        }
    }
}
