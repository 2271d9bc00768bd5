//! Reads Office Open XML (ECMA-376): `.docx`, `.xlsx`, `.pptx`.

use super::document::{OfficeDocument, OfficeProblem};
use super::markup::{Piece, attribute, walk, walk_without};
use super::package::Package;
use super::properties::{self, CREATED};

/// Elements that are not read: what older programs show instead of something, what was moved away, how kanji are spoken, and settings.
const LEFT_OUT: [&str; 6] = ["Fallback", "moveFrom", "rPh", "pPr", "rPr", "sectPr"];

/// Parts of a text document, in the order in which they are read.
const TEXT_PARTS: [&str; 3] = ["word/document.xml", "word/footnotes.xml", "word/endnotes.xml"];

/// Reads a package of Office Open XML.
pub(super) fn read(package: &mut Package<'_>, document: &mut OfficeDocument) -> Result<(), OfficeProblem> {
    if let Some(core) = package.xml("docProps/core.xml").unwrap_or_default() {
        properties::read(&core, CREATED, document);
    }
    if package.has("xl/workbook.xml") {
        return read_workbook(package, document);
    }
    let numbered = ["ppt/slides/slide", "ppt/charts/chart", "word/charts/chart"];
    let numbered: Vec<String> = numbered.iter().flat_map(|part| package.numbered(part, ".xml")).collect();
    let mut is_read = false;
    for name in TEXT_PARTS.into_iter().chain(numbered.iter().map(String::as_str)) {
        if let Some(part) = package.xml(name)? {
            is_read = true;
            read_paragraphs(&part, document);
            read_relations(package, name, document)?;
        }
    }
    if is_read { Ok(()) } else { Err(OfficeProblem::Format) }
}

/// Reads the paragraphs of a text document or slide, and the labels of a diagram.
fn read_paragraphs(part: &str, document: &mut OfficeDocument) {
    let (mut is_text, mut is_label, mut instruction) = (false, false, None::<String>);
    walk_without(&LEFT_OUT, part, |piece| {
        match piece {
            Piece::Start("t", _) => is_text = true,
            Piece::Start("strCache", _) => is_label = true,
            Piece::End("strCache") => is_label = false,
            Piece::Start("v", _) => is_text = is_label,
            Piece::End("t" | "v") => is_text = false,
            Piece::Text(text) if is_text => document.add(&text),
            Piece::Start("instrText", _) => instruction = Some(String::new()),
            Piece::Text(text) => instruction.iter_mut().for_each(|instruction| instruction.push_str(&text)),
            Piece::End("instrText") => {
                let target =
                    instruction.take().and_then(|instruction| hyperlink(&instruction).map(str::to_owned));
                target.iter().for_each(|target| document.add_link(target));
            }
            Piece::Start("tab" | "ptab", _) => document.space(),
            Piece::Start("noBreakHyphen", _) => document.add("-"),
            Piece::Start("br" | "cr", _) | Piece::End("p" | "pt") => document.line(),
            _ => {}
        }
        !document.is_full()
    });
    document.line();
}

/// The target of a field `HYPERLINK "target"`.
fn hyperlink(instruction: &str) -> Option<&str> {
    let rest = instruction.trim_start().strip_prefix("HYPERLINK")?.trim_start();
    rest.strip_prefix('"')?.split('"').next()
}

/// Takes the links that the relations of a part name.
fn read_relations(
    package: &mut Package<'_>,
    part: &str,
    document: &mut OfficeDocument,
) -> Result<(), OfficeProblem> {
    let (folder, name) = part.rsplit_once('/').unwrap_or(("", part));
    let Some(relations) = package.xml(&format!("{folder}/_rels/{name}.rels"))? else { return Ok(()) };
    walk(&relations, |piece| {
        if let Piece::Start("Relationship", attributes) = piece
            && attribute(attributes, "Type").is_some_and(|kind| kind.ends_with("/hyperlink"))
            && let Some(target) = attribute(attributes, "Target")
        {
            document.add_link(&target);
        }
        true
    });
    Ok(())
}

/// Reads a workbook: the names of its sheets, and their cells row by row.
fn read_workbook(package: &mut Package<'_>, document: &mut OfficeDocument) -> Result<(), OfficeProblem> {
    let mut names = Vec::new();
    walk(&package.xml("xl/workbook.xml")?.unwrap_or_default(), |piece| {
        if let Piece::Start("sheet", attributes) = piece {
            names.push(attribute(attributes, "name").unwrap_or_default().into_owned());
        }
        true
    });
    let shared = package.xml("xl/sharedStrings.xml")?.map(|part| shared_texts(&part)).unwrap_or_default();
    for (place, part) in package.numbered("xl/worksheets/sheet", ".xml").iter().enumerate() {
        if document.is_full() {
            break;
        }
        if let Some(name) = names.get(place) {
            document.add(name);
            document.line();
        }
        let sheet = package.xml(part)?.unwrap_or_default();
        read_sheet(&sheet, &shared, document);
        read_relations(package, part, document)?;
    }
    Ok(())
}

/// The texts that cells refer to by number.
fn shared_texts(part: &str) -> Vec<String> {
    let (mut texts, mut text, mut is_text) = (Vec::new(), String::new(), false);
    walk_without(&LEFT_OUT, part, |piece| {
        match piece {
            Piece::Start("t", _) => is_text = true,
            Piece::End("t") => is_text = false,
            Piece::Text(piece) if is_text => text.push_str(&piece),
            Piece::End("si") => texts.push(std::mem::take(&mut text)),
            _ => {}
        }
        true
    });
    texts
}

fn read_sheet(sheet: &str, shared: &[String], document: &mut OfficeDocument) {
    let (mut is_shared, mut is_value, mut value) = (false, false, String::new());
    walk_without(&LEFT_OUT, sheet, |piece| {
        match piece {
            Piece::Start("c", attributes) => {
                is_shared = attribute(attributes, "t").is_some_and(|kind| kind == "s");
                value.clear();
            }
            Piece::Start("v" | "t", _) => is_value = true,
            Piece::End("v" | "t") => is_value = false,
            Piece::Text(text) if is_value => value.push_str(&text),
            Piece::End("c") => {
                let number = value.parse::<usize>().ok().filter(|_| is_shared);
                let text = number.and_then(|number| shared.get(number)).unwrap_or(&value);
                if !text.trim().is_empty() {
                    document.space();
                    document.add(text);
                }
            }
            Piece::End("row") => document.line(),
            _ => {}
        }
        !document.is_full()
    });
    document.line();
}
