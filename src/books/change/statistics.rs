//! Which elements and attributes of XML documents change, at which depth, by the type of the document: statistics over
//! deltas, as Xyleme's (Marian, Abiteboul, Cobéna, Mignet, "Change-Centric Management of Versions in an XML Warehouse",
//! VLDB 2001, section 6).

use std::collections::{BTreeMap, BTreeSet};

use archive_base::access::Access;
use archive_storage::{Capture, Store, UrlId};
use serde::Serialize;

use super::xml::{Delta, DeltaStep};
use super::{Difference, VersionError, compare, is_version, structure};
use crate::ledger::capture_flags;

/// Maximum number of changes of a page that are looked at, the newest ones.
const CHANGES_MAX: usize = 100;

/// Maximum number of different elements and attributes that are counted; others are counted as [`OTHERS`].
const NAMES_MAX: usize = 10_000;

/// What stands for all names beyond them.
const OTHERS: &str = "(others)";

/// What has changed, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ChangedName {
    /// Document type, or else the name of the root element.
    #[serde(rename = "type")]
    pub kind: String,
    /// Name of the element, with `@` and the name of an attribute.
    pub name: String,
    /// Number of elements around it; the root has 0.
    pub depth: usize,
}

/// How often something has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChangeTally {
    /// Changes of its text, of a comment or instruction in it, or of the value of the attribute.
    pub updated: u64,
    /// It came in: an element with all that is in it, or the attribute.
    pub inserted: u64,
    /// It went out.
    pub deleted: u64,
    /// It moved.
    pub moved: u64,
    /// Number of changes of documents in which any of this happened.
    pub changes: u64,
}

impl ChangeTally {
    /// All of them.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.updated + self.inserted + self.deleted + self.moved
    }
}

/// Counts of changes.
#[derive(Clone, Debug, Default)]
pub struct ChangeStatistics {
    /// By what has changed.
    pub by_name: BTreeMap<ChangedName, ChangeTally>,
    /// Number of pages with an XML document that changed.
    pub pages: u64,
    /// Number of versions that were compared with their predecessors.
    pub compared: u64,
    /// Number of those of each type.
    by_kind: BTreeMap<String, u64>,
    /// Number of those that could not be compared as trees.
    pub unread: u64,
}

impl ChangeStatistics {
    /// Counts the newest changes of a page; of other pages than XML documents there are none.
    ///
    /// # Errors
    /// If records cannot be read.
    pub fn add(&mut self, store: &Store, access: &Access, page: UrlId) -> Result<(), VersionError> {
        let versions = versions(store, access, page)?;
        let before = self.compared;
        for (new, old) in versions.iter().zip(versions.iter().skip(1)) {
            let Some(structure) = structure(store, new)? else { return Ok(()) };
            let compared = match compare(store, access, old, new) {
                Err(VersionError::NoOriginal) => continue,
                compared => compared?,
            };
            self.compared += 1;
            let kind = if structure.doctype.is_empty() { structure.root } else { structure.doctype };
            match compared.difference {
                Difference::Xml(delta) => self.add_delta(&kind, &delta),
                Difference::None | Difference::Bytes => {}
                Difference::Text { .. } => self.unread += 1,
            }
        }
        self.pages += u64::from(self.compared > before);
        Ok(())
    }

    /// Number of deltas of documents of a type.
    #[must_use]
    pub fn of_kind(&self, kind: &str) -> u64 {
        self.by_kind.get(kind).copied().unwrap_or(0)
    }

    /// Counts a delta of a document of this type.
    pub fn add_delta(&mut self, kind: &str, delta: &Delta) {
        *self.by_kind.entry(kind.to_owned()).or_default() += 1;
        let mut seen = BTreeSet::new();
        for step in &delta.operations {
            let (path, attribute) = match step {
                DeltaStep::Delete { from, .. } => (&from.path, None),
                DeltaStep::Insert { to, .. } | DeltaStep::Move { to, .. } => (&to.path, None),
                DeltaStep::Update { path, .. } => (path, None),
                DeltaStep::Attribute { path, name, .. } => (path, Some(name.local.as_str())),
            };
            let (name, depth, is_element) = named(path, attribute);
            let mut changed = ChangedName { kind: kind.to_owned(), name, depth };
            if self.by_name.len() >= NAMES_MAX && !self.by_name.contains_key(&changed) {
                changed = ChangedName { name: OTHERS.to_owned(), depth: 0, ..changed };
            }
            let tally = self.by_name.entry(changed.clone()).or_default();
            tally.changes += u64::from(seen.insert(changed));
            match step {
                // A text that comes, goes or moves changes its element.
                DeltaStep::Delete { .. } if is_element => tally.deleted += 1,
                DeltaStep::Insert { .. } if is_element => tally.inserted += 1,
                DeltaStep::Move { .. } if is_element => tally.moved += 1,
                DeltaStep::Attribute { old: None, .. } => tally.inserted += 1,
                DeltaStep::Attribute { new: None, .. } => tally.deleted += 1,
                _ => tally.updated += 1,
            }
        }
    }
}

/// The newest versions of a page, each with other content than the one before, newest first.
fn versions(store: &Store, access: &Access, page: UrlId) -> Result<Vec<Capture>, VersionError> {
    let mut versions = Vec::new();
    // Whether the last one listed has the content of the one before.
    let mut is_same = false;
    for capture in access.history(store.state(), page)? {
        let (_, capture) = capture?;
        if !is_version(&capture) {
            continue;
        }
        if is_same {
            versions.pop();
        }
        versions.push(capture);
        is_same = !capture_flags::bytes_changed(&capture);
        if versions.len() > CHANGES_MAX && !is_same {
            break;
        }
    }
    Ok(versions)
}

/// The name of what a path of a delta leads to, its depth, and whether it is an element.
fn named(path: &str, attribute: Option<&str>) -> (String, usize, bool) {
    let mut steps: Vec<&str> =
        path.split('/').skip(1).map(|step| step.split('[').next().unwrap_or(step)).collect();
    let is_element = steps.last().is_none_or(|last| !last.ends_with(')'));
    if !is_element {
        steps.pop();
    }
    let (name, depth) = (steps.last().copied().unwrap_or_default(), steps.len().saturating_sub(1));
    let name = if name.is_empty() { "/" } else { name };
    match attribute {
        Some(attribute) => (format!("{name}/@{attribute}"), depth, true),
        None => (name.to_owned(), depth, is_element),
    }
}

#[cfg(test)]
mod tests {
    use roxmltree::Document;

    use super::super::xml::Tree;
    use super::*;

    #[test]
    fn changes_are_counted_where_they_are() {
        let tree = |xml: &str| Tree::of(&Document::parse(xml).unwrap());
        let delta = |old, new| Delta::between(&tree(old), &tree(new));
        let mut statistics = ChangeStatistics::default();
        let old =
            "<list><item k='1'><price>1</price></item><item k='2'><price>2</price><note/></item></list>";
        let new =
            "<list><item k='1'><price>3</price></item><item l='2'><price>4</price>!</item></list><!-- n -->";
        statistics.add_delta("list", &delta(old, new));
        statistics.add_delta("list", &delta(new, old));
        let found: Vec<_> = statistics
            .by_name
            .iter()
            .map(|(name, tally)| {
                let ChangeTally { updated, inserted, deleted, moved, changes } = *tally;
                (name.name.as_str(), name.depth, [updated, inserted, deleted, moved, changes])
            })
            .collect();
        let expected = [
            ("/", 0, [2, 0, 0, 0, 2]),
            ("item", 1, [2, 0, 0, 0, 2]),
            ("item/@k", 1, [0, 1, 1, 0, 2]),
            ("item/@l", 1, [0, 1, 1, 0, 2]),
            ("note", 2, [0, 1, 1, 0, 2]),
            ("price", 2, [4, 0, 0, 0, 2]),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn names_are_bounded() {
        let mut statistics = ChangeStatistics::default();
        let step = |number: usize| DeltaStep::Update {
            id: 1,
            path: format!("/r/e{number}/text()"),
            old: "a".to_owned(),
            new: "b".to_owned(),
        };
        let delta = |operations| Delta { operations, numbers: Vec::new() };
        statistics.add_delta("r", &delta((0..NAMES_MAX + 5).map(step).collect()));
        assert_eq!(statistics.by_name.len(), NAMES_MAX + 1);
        let others = ChangedName { kind: "r".to_owned(), name: OTHERS.to_owned(), depth: 0 };
        assert_eq!(statistics.by_name[&others].sum(), 5);
    }
}
