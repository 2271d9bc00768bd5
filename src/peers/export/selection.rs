//! Selects the captures to export.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use archive_ask::query::UnreadRows;
use archive_base::access::Access;
use archive_storage::segment::CONTENT_BYTES_MAX;
use archive_storage::{Capture, Location, SegmentId, Store, StoreError, UrlId};

use super::ExportError;

/// Captures of an archive as of its last checkpoint.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// `None` for all captures.
    chosen: Option<ChosenCaptures>,
    /// The query in words.
    words: Option<String>,
    /// Limit of a record's content, if it is not that of the archive.
    content_bytes_max: Option<u64>,
    /// What an export of it could not read.
    unread: Arc<Mutex<Option<UnreadRows>>>,
}

#[derive(Debug, Clone, Default)]
struct ChosenCaptures {
    pages: HashSet<UrlId>,
    /// Sorted offsets of main records, by segment.
    places: BTreeMap<SegmentId, Vec<u64>>,
}

impl ChosenCaptures {
    fn add(&mut self, store: &Store, access: &Access, page: UrlId) -> Result<(), StoreError> {
        let mut add = |capture: &Capture| {
            self.places.entry(capture.location.segment).or_default().push(capture.location.offset);
        };
        for capture in access.history(store.state(), page)? {
            let (_, capture) = capture?;
            add(&capture);
            if let Some(original) = capture.original {
                add(&store.state().capture(original)?);
            }
        }
        Ok(())
    }

    fn in_order(mut self) -> Self {
        for offsets in self.places.values_mut() {
            offsets.sort_unstable();
            offsets.dedup();
        }
        self
    }
}

impl Selection {
    /// Selects all captures that `access` shows.
    ///
    /// # Errors
    /// If the store fails.
    pub fn all(store: &Store, access: &Access) -> Result<Self, StoreError> {
        if access.is_unlimited() {
            return Ok(Self::default());
        }
        let state = store.state();
        let mut chosen = ChosenCaptures::default();
        for visit in state.visits(0) {
            let (page, visit) = visit?;
            chosen.add(store, access, page)?;
            if access.shows_page(state, Some(&visit))? {
                chosen.pages.insert(page);
            }
        }
        Ok(Self { chosen: Some(chosen.in_order()), ..Self::default() })
    }

    /// Selects all captures of `pages` that `access` shows, and the captures of other pages that hold their payloads.
    ///
    /// # Errors
    /// If the store fails.
    pub fn of_pages(
        store: &Store,
        access: &Access,
        pages: HashSet<UrlId>,
        words: String,
    ) -> Result<Self, StoreError> {
        let mut chosen = ChosenCaptures::default();
        for page in &pages {
            chosen.add(store, access, *page)?;
        }
        Ok(Self {
            chosen: Some(ChosenCaptures { pages, ..chosen.in_order() }),
            words: Some(words),
            ..Self::default()
        })
    }

    /// Limits the content of its records, so that each takes little memory: an export with a longer one fails.
    #[must_use]
    pub fn up_to(self, content_bytes_max: u64) -> Self {
        Self { content_bytes_max: Some(content_bytes_max), ..self }
    }

    pub(super) fn content_bytes_max(&self) -> u64 {
        self.content_bytes_max.unwrap_or(CONTENT_BYTES_MAX)
    }

    /// Returns the query in words; `None` if everything was requested.
    #[must_use]
    pub fn words(&self) -> Option<&str> {
        self.words.as_deref()
    }

    /// Notes a capture or segment that cannot be read.
    pub(super) fn leave_out(&self, error: &ExportError) {
        let mut unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
        unread.get_or_insert_with(|| UnreadRows { rows: 0, first: error.to_string() }).rows += 1;
    }

    /// Returns what the export left out because it cannot be read, if anything.
    #[must_use]
    pub fn unread(&self) -> Option<UnreadRows> {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Number of selected captures in its archive.
    #[must_use]
    pub fn count_in(&self, store: &Store) -> u64 {
        match &self.chosen {
            Some(chosen) => chosen.places.values().map(|offsets| offsets.len() as u64).sum(),
            None => store.state().totals().captures,
        }
    }

    /// Whether the links of a page are selected.
    pub(super) fn has_page(&self, page: UrlId) -> bool {
        self.chosen.as_ref().is_none_or(|chosen| chosen.pages.contains(&page))
    }

    /// Whether a capture is selected.
    pub(super) fn has(&self, location: &Location) -> bool {
        self.offsets(location.segment).is_none_or(|offsets| offsets.binary_search(&location.offset).is_ok())
    }

    /// Returns the selected offsets in a segment; `None` for all.
    pub(super) fn offsets(&self, segment: SegmentId) -> Option<&[u64]> {
        let chosen = self.chosen.as_ref()?;
        Some(chosen.places.get(&segment).map(Vec::as_slice).unwrap_or_default())
    }
}

/// Returns the error of an empty selection; `words` is its query.
pub(super) fn nothing(words: Option<&str>) -> ExportError {
    ExportError::Nothing(match words {
        Some(words) => format!("nothing that was captured fits '{words}'"),
        None => "the archive has nothing of this kind".to_owned(),
    })
}
