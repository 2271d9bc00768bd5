//! James Clark's XML test cases: well-formed documents with their meaning, and documents that are not well-formed.
//!
//! A crawler must read every well-formed document, extract the right text and report references to external files;
//! malformed documents must do no harm. The parser does not validate and loads no external files.

use std::collections::HashMap;

use archive_books::change::xml::{Delta, Tree};
use archive_web::parse::{LinkKind, ParseLimits, ParseProblem, with_xml_tree};

use super::archives::unzip;
use super::{Tally, data, read};

type Files = HashMap<String, Vec<u8>>;

fn files() -> Option<Files> {
    Some(unzip(&data("xml/xmltest.zip")?).into_iter().collect())
}

fn names(files: &Files, folder: &str) -> Vec<String> {
    let is_case = |name: &&String| {
        name.strip_prefix(folder).is_some_and(|rest| rest.ends_with(".xml") && !rest.contains('/'))
    };
    let mut names: Vec<String> = files.keys().filter(is_case).cloned().collect();
    names.sort();
    names
}

/// A case holds if the document is read without a problem, and its tree is that of the expected output: elements,
/// attributes and text, ignoring what carries no meaning.
#[test]
fn well_formed_documents_are_read() {
    let Some(files) = files() else { return };
    let mut tally = Tally::default();
    let mut with_text = 0;
    for folder in ["sa", "not-sa", "ext-sa"] {
        for name in names(&files, &format!("xmltest/valid/{folder}/")) {
            let read_file =
                |name: &str| read("http://a.example/xmltest/case.xml", "application/xml", &files[name]);
            let parsed = read_file(&name);
            let expected = read_file(&name.replacen(&format!("/{folder}/"), &format!("/{folder}/out/"), 1));
            with_text += usize::from(parsed.text == expected.text);
            if parsed.problems.is_empty() && parsed.signature == expected.signature {
                tally.held();
            } else {
                let source = String::from_utf8_lossy(&files[&name]).into_owned();
                let case =
                    format!("{name}: {:?}, not {:?} {:?}", parsed.text, expected.text, parsed.problems);
                tally.missed(&case, reason(folder, &source, &parsed.problems));
            }
        }
    }
    println!("well-formed XML: {with_text} have the right text");
    tally.finish("well-formed XML, whole trees", 114);
}

fn reason(folder: &str, source: &str, problems: &[ParseProblem]) -> Option<&'static str> {
    if source.contains("SYSTEM") || source.contains("PUBLIC") || folder != "sa" {
        return Some("what lies outside of the document is named as a link, not loaded");
    }
    if source.contains("<!ATTLIST") {
        return Some("attribute defaults and types of a DTD are not applied: roxmltree doesn't read them");
    }
    if source.contains("<!ENTITY") {
        return Some("entities that are declared by parameter entities: these are not read");
    }
    (!problems.is_empty())
        .then_some("read after a repair: roxmltree keeps to XML namespaces, where a name has one colon")
}

#[test]
fn what_lies_outside_is_named() {
    let Some(files) = files() else { return };
    let mut tally = Tally::default();
    for folder in ["valid/not-sa", "valid/ext-sa"] {
        for name in names(&files, &format!("xmltest/{folder}/")) {
            let text = String::from_utf8_lossy(&files[&name]).into_owned();
            let parsed = read("http://a.example/xmltest/case.xml", "application/xml", &files[&name]);
            let named = |kind| parsed.links.iter().any(|link| link.kind == kind);
            if !text.contains("SYSTEM") && !text.contains("PUBLIC") {
                continue;
            }
            if named(LinkKind::Dtd) || named(LinkKind::ExternalEntity) {
                tally.held();
            } else {
                tally.missed(&name, None);
            }
        }
    }
    tally.finish("references of XML to outside", 45);
}

#[test]
fn documents_that_are_not_well_formed_are_reported() {
    let Some(files) = files() else { return };
    let mut tally = Tally::default();
    for folder in ["sa", "not-sa", "ext-sa"] {
        for name in names(&files, &format!("xmltest/not-wf/{folder}/")) {
            let parsed = read("http://a.example/case.xml", "application/xml", &files[&name]);
            let is_reported = parsed.problems.iter().any(|problem| {
                matches!(
                    problem,
                    ParseProblem::Xml(_) | ParseProblem::XmlLimit(_) | ParseProblem::Encoding { .. }
                )
            });
            if is_reported {
                tally.held();
            } else {
                let why = "roxmltree doesn't check this rule; the document is read";
                tally.missed(&name, Some(why));
            }
        }
    }
    tally.finish("XML that is not well-formed, reported", 124);
}

/// The delta from each document to the next leads there and back, and each tree is read as it is written.
#[test]
fn deltas_lead_from_each_document_to_the_next_and_back() {
    let Some(files) = files() else { return };
    let read = |xml: &[u8]| with_xml_tree(xml, None, &ParseLimits::default(), Tree::of);
    let mut names: Vec<&String> = files.keys().filter(|name| name.ends_with(".xml")).collect();
    names.sort();
    let trees: Vec<(&String, Tree)> =
        names.into_iter().filter_map(|name| Some((name, read(&files[name])?))).collect();
    assert!(trees.len() > 200, "{}", trees.len());
    for pair in trees.windows(2) {
        let [(_, old), (name, new)] = pair else { continue };
        let delta = Delta::between(old, new);
        assert_eq!(delta.apply(old).as_ref(), Ok(new), "{name}");
        assert_eq!(delta.inverted().unwrap().apply(new).as_ref(), Ok(old), "{name}");
        assert_eq!(read(new.to_xml().as_bytes()).as_ref(), Some(new), "{name}: {}", new.to_xml());
    }
}
