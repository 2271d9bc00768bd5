//! Lines that describe a difference for people, on a terminal, in a file or in a feed.

use archive_base::texts::Language;

use super::text::{Fate, Passage};
use super::xml::{Content, Operation, Piece};
use super::{Comparison, Difference};

/// Maximum number of characters of a value in a line of an XML difference.
const VALUE_CHARACTERS_MAX: usize = 200;

/// The meaning of a piece of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
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
pub type Line = Vec<(Mark, String)>;

/// Describes a comparison in lines, in a language.
///
/// With `inline`, removed and added words are on one line, for output that shows marks by colour or strike-through.
/// Without it they are on separate lines that begin with `-` and `+`.
#[must_use]
pub fn lines(comparison: &Comparison, inline: bool, t: Language) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Some((old, new)) = &comparison.title {
        lines.push(line(Mark::Gone, format!("- {}", t.fill("title: {}", &[old]))));
        lines.push(line(Mark::Fresh, format!("+ {}", t.fill("title: {}", &[new]))));
    }
    lines.extend(comparison.cut.map(|cut| line(Mark::Plain, format!("  {}", t.say(cut.sentence())))));
    match &comparison.difference {
        Difference::None => lines.push(line(Mark::Plain, format!("  {}", t.say("no difference")))),
        Difference::Bytes => {
            let (old, new) = comparison.bytes;
            let what = "only bytes differ, not the page's own text ({} bytes before, {} now)";
            lines.push(line(Mark::Plain, format!("  {}", t.fill(what, &[&old, &new]))));
        }
        Difference::Text(passages) => {
            passages.iter().for_each(|passage| put_passage(passage, inline, &mut lines));
        }
        Difference::Xml(delta) => {
            delta.operations.iter().for_each(|operation| put_operation(operation, &mut lines, t));
        }
    }
    lines
}

fn line(mark: Mark, text: String) -> Line {
    vec![(mark, text)]
}

fn put_passage(passage: &Passage, inline: bool, lines: &mut Vec<Line>) {
    lines.push(Line::new());
    if let Some(before) = &passage.before {
        lines.push(line(Mark::Plain, format!("  {before}")));
    }
    if passage.words.is_empty() || !inline {
        lines.extend(passage.old.iter().map(|sentence| line(Mark::Gone, format!("- {sentence}"))));
        lines.extend(passage.new.iter().map(|sentence| line(Mark::Fresh, format!("+ {sentence}"))));
        return;
    }
    let mut shown = line(Mark::Plain, "~".to_owned());
    for words in &passage.words {
        let mark = match words.fate {
            Fate::Same => Mark::Plain,
            Fate::Gone => Mark::Gone,
            Fate::New => Mark::Fresh,
        };
        shown.push((Mark::Plain, " ".to_owned()));
        shown.push((mark, words.text.clone()));
    }
    lines.push(shown);
}

fn put_operation(operation: &Operation, lines: &mut Vec<Line>, t: Language) {
    match operation {
        Operation::Delete { from, nodes } => {
            lines.push(line(Mark::Gone, format!("- {}  {}", short(&from.path), short(&outline(nodes)))));
        }
        Operation::Insert { to, nodes } => {
            lines.push(line(Mark::Fresh, format!("+ {}  {}", short(&to.path), short(&outline(nodes)))));
        }
        Operation::Move { from, to, .. } => {
            let way = t.fill("{}  to  {}", &[&short(&from.path), &short(&to.path)]);
            lines.push(line(Mark::Moved, format!("> {way}")));
        }
        Operation::Update { path, old, new, .. } => {
            lines.push(line(Mark::Plain, format!("~ {}", short(path))));
            put_values(Some(old), Some(new), lines);
        }
        Operation::Attribute { path, name, old, new, .. } => {
            lines.push(line(Mark::Plain, format!("~ {}/@{}", short(path), short(&name.local))));
            put_values(old.as_deref(), new.as_deref(), lines);
        }
    }
}

fn put_values(old: Option<&str>, new: Option<&str>, lines: &mut Vec<Line>) {
    lines.extend(old.map(|old| line(Mark::Gone, format!("    - {}", short(old)))));
    lines.extend(new.map(|new| line(Mark::Fresh, format!("    + {}", short(new)))));
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
fn outline(nodes: &[Piece]) -> String {
    let texts = nodes.iter().filter_map(|piece| match &piece.content {
        Content::Text(text) => Some(text.trim()),
        _ => None,
    });
    let texts = texts.collect::<Vec<_>>().join(" · ");
    if !texts.is_empty() {
        return texts;
    }
    let names = nodes.iter().filter_map(|piece| match &piece.content {
        Content::Element(name, _) => Some(format!("<{}>", name.local)),
        _ => None,
    });
    names.collect()
}
