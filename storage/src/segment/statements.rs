//! Statements about closed segments, recorded in three places: `segments.jsonl`, `manifest.sha256` and the catalogue.
//! Any of them may be damaged, and so may the segment. None is trusted alone, and the current state of a segment never
//! replaces what was recorded when it was closed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::error::SegmentError;
use super::ledger::{self, Closed, MANIFEST, SUMMARIES, SegmentInfo};
use super::name::SegmentName;
use crate::backend::Disk;
use crate::digest::Digest;

/// What the catalogue states about segments, by file name.
pub type Catalogued = BTreeMap<String, SegmentInfo>;

/// Everything stated about segments.
#[derive(Debug)]
pub(super) struct SegmentStatements {
    /// By file name; damaged lines are left out.
    pub summaries: BTreeMap<String, SegmentInfo>,
    pub manifest: BTreeMap<String, Digest>,
    catalogue: Catalogued,
}

impl SegmentStatements {
    pub(super) fn read(disk: &dyn Disk, folder: &Path, catalogue: &Catalogued) -> Result<Self, SegmentError> {
        let (summaries, _) = ledger::lines(disk, folder, SUMMARIES)?;
        let summaries = summaries.iter().filter_map(|line| ledger::parse_summary(line));
        let (manifest, _) = ledger::lines(disk, folder, MANIFEST)?;
        Ok(Self {
            summaries: summaries.map(|info| (info.name.clone(), info)).collect(),
            manifest: manifest.iter().filter_map(|line| ledger::parse_manifest(line)).collect(),
            catalogue: catalogue.clone(),
        })
    }

    /// Returns the digests stated for a file.
    fn digests(&self, file: &str) -> Vec<Digest> {
        let summary = self.summaries.get(file).and_then(|info| info.sha256);
        let catalogued = self.catalogue.get(file).and_then(|info| info.sha256);
        [summary, self.manifest.get(file).copied(), catalogued].into_iter().flatten().collect()
    }

    /// Whether anything is stated about a file.
    pub(super) fn knows(&self, file: &str) -> bool {
        let is_listed = self.summaries.contains_key(file) || self.manifest.contains_key(file);
        is_listed || self.catalogue.contains_key(file)
    }

    /// Whether the file is in the manifest and all digests stated for it are equal.
    pub(super) fn agrees(&self, file: &str) -> bool {
        let digests = self.digests(file);
        self.manifest.contains_key(file) && digests.iter().all(|digest| Some(digest) == digests.first())
    }

    /// Returns the digest that a file was closed with: the one found, unless another is stated more often.
    pub(super) fn digest(&self, file: &str, found: Digest) -> Digest {
        let digests = self.digests(file);
        let times = |wanted: &Digest| digests.iter().filter(|digest| *digest == wanted).count();
        let other = digests.iter().filter(|digest| **digest != found).max_by_key(|digest| times(digest));
        other.filter(|other| times(other) > times(&found)).copied().unwrap_or(found)
    }

    /// Returns the summary of a closed file; if only the manifest has it, just its name and digest.
    pub(super) fn info(&self, file: &str) -> Option<SegmentInfo> {
        let known = self.summaries.get(file).or_else(|| self.catalogue.get(file));
        let named = || {
            let id = SegmentName::parse(file)?.id;
            let sha256 = self.manifest.get(file).copied();
            Some(SegmentInfo { is_open: false, sha256, ..SegmentInfo::new(id, file, 0) })
        };
        known.cloned().or_else(named)
    }

    /// Returns the segments that most places state as closed, but whose files are gone. A segment that was open at the
    /// last checkpoint is only in the catalogue.
    pub(super) fn missing(&self, present: &BTreeSet<String>) -> Closed {
        let witnesses = [self.summaries.is_empty(), self.manifest.is_empty(), self.catalogue.is_empty()];
        let witnesses = witnesses.iter().filter(|is_empty| !**is_empty).count();
        let names = self.summaries.keys().chain(self.manifest.keys()).chain(self.catalogue.keys());
        let is_missing = |file: &&String| {
            let by = [
                self.summaries.contains_key(*file),
                self.manifest.contains_key(*file),
                self.catalogue.contains_key(*file),
            ];
            let times = by.iter().filter(|is_by| **is_by).count();
            let was_open = self.catalogue.get(*file).is_some_and(|info| info.is_open);
            !present.contains(*file) && (2 * times >= witnesses || was_open)
        };
        let missing = names.filter(is_missing).filter_map(|file| self.info(file));
        missing.map(|info| (info.id, SegmentInfo { is_open: false, ..info })).collect()
    }
}
