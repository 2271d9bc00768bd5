//! Determines what an erase would remove.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use archive_books::ledger::capture_flags;
use archive_storage::{CaptureId, CaptureKind, SegmentId, Store, StoreError, UrlId};
use serde::{Deserialize, Serialize};

/// A request to erase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EraseRequest {
    /// Reason for the erase.
    pub reason: String,
    /// Who erases; empty in orders of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// Whether revisits of other pages that depend on an erased payload stay.
    pub keep_copies: bool,
    /// Whether only digests of the URLs are kept.
    pub forget_url: bool,
}

/// What an erase removes, and what it leaves.
#[derive(Debug, Clone)]
pub struct ErasePlan {
    pub(super) order: EraseRequest,
    /// Identity of the state that the numbers refer to.
    pub(super) identity: u64,
    /// The pages.
    pub pages: BTreeSet<UrlId>,
    /// The captures of the pages.
    pub captures: BTreeSet<CaptureId>,
    /// Captures of other pages that depend on these and are erased with them.
    pub copies: BTreeSet<CaptureId>,
    /// Captures of other pages that depend on these and stay, each with the one that gets the payload.
    pub kept: BTreeMap<CaptureId, CaptureId>,
    /// Number of captures of other pages that hold one of the payloads themselves; they stay.
    pub elsewhere: u64,
    /// Number of other pages that link to one of the pages, or were found on one. They contain its URL in their content
    /// or in the metadata of their captures.
    pub naming: u64,
    /// Segments that contain the captures.
    pub segments: BTreeSet<SegmentId>,
}

impl ErasePlan {
    /// Returns what erasing these pages removes.
    ///
    /// # Errors
    /// If the state cannot be read.
    pub fn of(store: &Store, pages: BTreeSet<UrlId>, order: EraseRequest) -> Result<Self, StoreError> {
        let state = store.state();
        let mut plan = Self {
            order,
            identity: state.identity(),
            pages,
            captures: BTreeSet::new(),
            copies: BTreeSet::new(),
            kept: BTreeMap::new(),
            elsewhere: 0,
            naming: 0,
            segments: BTreeSet::new(),
        };
        let mut payloads = HashSet::new();
        for page in &plan.pages {
            for found in state.history(*page)? {
                let (id, capture) = found?;
                if capture_flags::is_erased(&capture) {
                    continue;
                }
                plan.captures.insert(id);
                plan.segments.insert(capture.location.segment);
                if capture.digest != [0; 16] {
                    payloads.insert(capture.digest);
                }
            }
        }
        plan.find_copies(store, &payloads)?;
        let mut naming = HashSet::new();
        state.newest_links(|(source, ..), links| {
            if links.iter().any(|link| plan.pages.contains(&link.target)) {
                naming.insert(source);
            }
            Ok::<_, StoreError>(())
        })?;
        for found in state.pages(UrlId(0)) {
            let (id, page) = found?;
            if page.visit.is_some() && page.via.is_some_and(|via| plan.pages.contains(&via)) {
                naming.insert(id);
            }
        }
        plan.naming = naming.difference(&plan.pages.iter().copied().collect()).count() as u64;
        Ok(plan)
    }

    /// Finds captures of other pages that depend on the captures, and counts those with the same content.
    fn find_copies(&mut self, store: &Store, payloads: &HashSet<[u8; 16]>) -> Result<(), StoreError> {
        // The first revisit of each page and payload, which holds the payload for the later ones.
        let mut holders: HashMap<(UrlId, CaptureId), CaptureId> = HashMap::new();
        for found in store.state().captures() {
            let (id, capture) = found?;
            if self.pages.contains(&capture.url) {
                continue;
            }
            let Some(original) = capture.original.filter(|original| self.captures.contains(original)) else {
                self.elsewhere += u64::from(capture.kind.has_payload() && payloads.contains(&capture.digest));
                continue;
            };
            let holder = match capture.kind {
                CaptureKind::Identical => Some(*holders.entry((capture.url, original)).or_insert(id)),
                _ => holders.get(&(capture.url, original)).copied(),
            };
            match holder.filter(|_| self.order.keep_copies) {
                Some(holder) => drop(self.kept.insert(id, holder)),
                None => {
                    self.copies.insert(id);
                    self.segments.insert(capture.location.segment);
                }
            }
        }
        Ok(())
    }

    /// Whether there is nothing to erase, because these pages have no captures left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.captures.is_empty()
    }
}
