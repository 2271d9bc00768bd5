//! Lines that describe a difference for people, on a terminal, in a file or in a feed.

use archive_base::texts::Language;

use super::text::{Passage, TextFate};
use super::xml::{DeltaStep, NodeContent, SubtreeNode};
use super::{Difference, VersionComparison};

/// Maximum number of characters of a value in a line of an XML difference.
const VALUE_CHARACTERS_MAX: usize = 200;

/// The meaning of a piece of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineMark {
    /// Context, or content of both versions.
    Plain,
    /// Only in the old version.
    Gone,
    /// Only in the new version.
    Fresh,
    /// In both versions, at different places.
    Moved,
}

/// A line as consecutive pieces.
pub type MarkedLine = Vec<(LineMark, String)>;

/// Describes a comparison in lines, in a language.
///
/// With `inline`, removed and added words are on one line, for output that shows marks by colour or strike-through.
/// Without it they are on separate lines that begin with `-` and `+`.
#[must_use]
pub fn lines(comparison: &VersionComparison, inline: bool, t: Language) -> Vec<MarkedLine> {
    let mut lines = Vec::new();
    if let Some((old, new)) = &comparison.title {
        lines.push(line(LineMark::Gone, format!("- {}", t.fill("title: {}", &[old]))));
        lines.push(line(LineMark::Fresh, format!("+ {}", t.fill("title: {}", &[new]))));
    }
    lines.extend(comparison.cut.map(|cut| line(LineMark::Plain, format!("  {}", t.say(cut.sentence())))));
    match &comparison.difference {
        Difference::None => lines.push(line(LineMark::Plain, format!("  {}", t.say("no difference")))),
        Difference::Bytes => {
            let (old, new) = comparison.bytes;
            let what = "only bytes differ, not the page's own text ({} bytes before, {} now)";
            lines.push(line(LineMark::Plain, format!("  {}", t.fill(what, &[&old, &new]))));
        }
        Difference::Text { changes: passages } => {
            passages.iter().for_each(|passage| put_passage(passage, inline, &mut lines));
        }
        Difference::Xml(delta) => {
            delta.operations.iter().for_each(|operation| put_operation(operation, &mut lines, t));
        }
    }
    lines
}

fn line(mark: LineMark, text: String) -> MarkedLine {
    vec![(mark, text)]
}

fn put_passage(passage: &Passage, inline: bool, lines: &mut Vec<MarkedLine>) {
    lines.push(MarkedLine::new());
    if let Some(before) = &passage.before {
        lines.push(line(LineMark::Plain, format!("  {before}")));
    }
    if passage.words.is_empty() || !inline {
        lines.extend(passage.old.iter().map(|sentence| line(LineMark::Gone, format!("- {sentence}"))));
        lines.extend(passage.new.iter().map(|sentence| line(LineMark::Fresh, format!("+ {sentence}"))));
        return;
    }
    let mut shown = line(LineMark::Plain, "~".to_owned());
    for words in &passage.words {
        let mark = match words.fate {
            TextFate::Same => LineMark::Plain,
            TextFate::Gone => LineMark::Gone,
            TextFate::New => LineMark::Fresh,
        };
        shown.push((LineMark::Plain, " ".to_owned()));
        shown.push((mark, words.text.clone()));
    }
    lines.push(shown);
}

fn put_operation(operation: &DeltaStep, lines: &mut Vec<MarkedLine>, t: Language) {
    match operation {
        DeltaStep::Delete { from, nodes } => {
            lines.push(line(LineMark::Gone, format!("- {}  {}", short(&from.path), short(&outline(nodes)))));
        }
        DeltaStep::Insert { to, nodes } => {
            lines.push(line(LineMark::Fresh, format!("+ {}  {}", short(&to.path), short(&outline(nodes)))));
        }
        DeltaStep::Move { from, to, .. } => {
            let way = t.fill("{}  to  {}", &[&short(&from.path), &short(&to.path)]);
            lines.push(line(LineMark::Moved, format!("> {way}")));
        }
        DeltaStep::Update { path, old, new, .. } => {
            lines.push(line(LineMark::Plain, format!("~ {}", short(path))));
            put_values(Some(old), Some(new), lines);
        }
        DeltaStep::Attribute { path, name, old, new, .. } => {
            lines.push(line(LineMark::Plain, format!("~ {}/@{}", short(path), short(&name.local))));
            put_values(old.as_deref(), new.as_deref(), lines);
        }
    }
}

fn put_values(old: Option<&str>, new: Option<&str>, lines: &mut Vec<MarkedLine>) {
    lines.extend(old.map(|old| line(LineMark::Gone, format!("    - {}", short(old)))));
    lines.extend(new.map(|new| line(LineMark::Fresh, format!("    + {}", short(new)))));
}

/// Puts a text on one line and truncates it.
fn short(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(VALUE_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// Returns the texts of a subtree on one line, or its element names if there are no texts.
fn outline(nodes: &[SubtreeNode]) -> String {
    let texts = nodes.iter().filter_map(|piece| match &piece.content {
        NodeContent::Text(text) => Some(text.trim()),
        _ => None,
    });
    let texts = texts.collect::<Vec<_>>().join(" · ");
    if !texts.is_empty() {
        return texts;
    }
    let names = nodes.iter().filter_map(|piece| match &piece.content {
        NodeContent::Element(name, _) => Some(format!("<{}>", name.local)),
        _ => None,
    });
    names.collect()
}
