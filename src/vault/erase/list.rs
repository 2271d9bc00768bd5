//! The list of erased URLs, made again from the tombstones.

use archive_base::erased::{self, Erased, ErasedError, FORGOTTEN};
use archive_books::ledger::{CrawlerFacts, capture_flags};
use archive_books::recorder::RecorderError;
use archive_storage::{Capture, StateError, Store};

/// Returns what is wrong with the list of an archive.
pub(crate) fn list_damage(store: &Store) -> Option<String> {
    let path = store.path();
    match Erased::of_archive(path, store.state()) {
        Ok(_) => {}
        Err(ErasedError::Lost { .. }) => {
            return Some(format!("{} is missing, incomplete or damaged", erased::FILE));
        }
        Err(error) => return Some(error.to_string()),
    }
    // An earlier version did not note the list, but left tombstones. That the state cannot be read is found elsewhere.
    let is_missing = !path.join(erased::FILE).exists() && tombstones(store).any(|found| found.is_ok());
    is_missing.then(|| format!("{} is missing, although pages were erased", erased::FILE))
}

/// Writes the list again: what is left of it, and every page with a tombstone. Returns the number of pages on it.
pub(crate) fn restore_list(store: &Store) -> Result<usize, RecorderError> {
    let mut erased = Erased::salvaged(store.path());
    for capture in tombstones(store) {
        let capture = capture?;
        let url = store.state().url(capture.url)?;
        if erased.of(&url).is_some() {
            continue;
        }
        let facts = CrawlerFacts::from_fields(&store.metadata(&capture)?);
        // The page of a copy may come back.
        if let Some(erasure) = facts.erased.filter(|erasure| !erasure.is_copy) {
            let time = erasure.time.parse().unwrap_or_default();
            erased.add(&url, url.starts_with(FORGOTTEN), time, (&erasure.reason, &erasure.by));
        }
    }
    erased.write(store.path())?;
    Ok(erased.entries().count())
}

fn tombstones(store: &Store) -> impl Iterator<Item = Result<Capture, StateError>> + '_ {
    let captures = store.state().captures().map(|found| found.map(|(_, capture)| capture));
    captures.filter(|found| found.as_ref().map_or(true, capture_flags::is_erased))
}
