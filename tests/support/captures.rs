//! Reads the contents of an archive through the storage library.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use archive_books::ledger::Credits;
use archive_storage::{Capture, CaptureKind, StateError, Store, StoreError};

/// Every captured URL with its captures, in storage order.
pub(crate) struct Captured(pub(crate) BTreeMap<String, Vec<Capture>>);

/// Returns all captures of an archive; none before its first checkpoint.
pub(crate) fn captures(archive: &Path) -> Captured {
    let store = match Store::read_only(archive) {
        Err(StoreError::State(StateError::Missing { .. } | StateError::Lost { .. })) => {
            return Captured(BTreeMap::new());
        }
        opened => opened.unwrap(),
    };
    let mut by_url: BTreeMap<String, Vec<Capture>> = BTreeMap::new();
    for capture in store.state().captures() {
        let (_, capture) = capture.unwrap();
        by_url.entry(store.state().url(capture.url).unwrap()).or_default().push(capture);
    }
    Captured(by_url)
}

impl Captured {
    /// Returns all URLs.
    pub(crate) fn urls(&self) -> BTreeSet<String> {
        self.0.keys().cloned().collect()
    }

    /// Returns the number of captures.
    pub(crate) fn count(&self) -> u64 {
        self.0.values().map(|captures| captures.len() as u64).sum()
    }

    /// Fails if a URL was captured more than once.
    pub(crate) fn are_single(&self) {
        for (url, captures) in &self.0 {
            assert_eq!(captures.len(), 1, "{url} was captured {} times: {captures:?}", captures.len());
        }
    }

    /// Fails if a URL was captured more than once, or if a fetch failed.
    pub(crate) fn are_single_answers(&self) {
        self.are_single();
        let failed = self.of_kind(CaptureKind::Failed);
        assert!(failed.is_empty(), "{failed:?} gave nothing");
    }

    /// Returns the URLs whose newest capture is of this kind.
    pub(crate) fn of_kind(&self, kind: CaptureKind) -> Vec<String> {
        let newest = |captures: &[Capture]| captures.last().is_some_and(|capture| capture.kind == kind);
        self.0.iter().filter(|(_, captures)| newest(captures)).map(|(url, _)| url.clone()).collect()
    }
}

/// Fails unless the archive's ledger accounts for all cash, exactly.
pub(crate) fn ledger_balances(archive: &Path) {
    let store = Store::read_only(archive).unwrap();
    Credits::open(store.state()).unwrap().audit(store.state()).unwrap();
}

/// Fails unless two sets of URLs are equal, and prints the differences.
pub(crate) fn assert_same(found: &BTreeSet<String>, expected: &BTreeSet<String>, what: &str) {
    let missing: Vec<&String> = expected.difference(found).take(20).collect();
    let surplus: Vec<&String> = found.difference(expected).take(20).collect();
    assert!(
        missing.is_empty() && surplus.is_empty(),
        "{what}: {} URLs found, {} expected; missing: {missing:#?}; not expected: {surplus:#?}",
        found.len(),
        expected.len(),
    );
}
