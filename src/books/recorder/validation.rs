//! Validates XML documents that name a definition once, when an archive is closed, so that queries for valid documents
//! need not. Those that refer to external entities are indexed again then, with what was captured after them.

use std::path::Path;
use std::time::{Duration, Instant};

use archive_base::access::Access;
use archive_storage::{Capture, CaptureId, ROWS_TOGETHER, Store};
use rayon::prelude::*;

use super::error::RecorderError;
use super::indexer::index_again;
use crate::change::{CheckedDocument, Checks};
use crate::prepared::{self, Answers};
use crate::search::{self, SearchReader};
use crate::trends;

/// Maximum time that this adds to closing an archive. The next closing, or a query, checks the remaining documents.
const TIME_MAX: Duration = Duration::from_secs(10);

/// Closes an archive that was written to, after validating unchecked documents, and prepares its columns.
///
/// # Errors
/// When the disk refuses, or the archive cannot be read. The archive is closed in any case.
pub fn close(mut store: Store) -> Result<(), prepared::Error> {
    let index = store.path().join(search::FOLDER);
    // Only an optimization: queries validate unchecked documents themselves.
    if let Err(error) = check(&mut store, &index, TIME_MAX) {
        tracing::warn!(%error, "documents are not checked against their definitions");
    }
    prepared::close(&mut store)?;
    // Nothing depends on it, and a damaged file is no reason to lose what was crawled.
    if let Err(error) = trends::note(store.state(), store.path()) {
        tracing::warn!(%error, "importance over time is not noted");
    }
    Ok(())
}

/// Validates the newest version of each page that the index lists with a definition, unless it was already validated
/// against this definition.
pub fn check(store: &mut Store, index: &Path, time_max: Duration) -> Result<(), RecorderError> {
    let begun = Instant::now();
    let pages = match SearchReader::open(index) {
        Err(search::SearchError::Missing { .. }) => return Ok(()),
        reader => reader?.pages_with_doctype()?,
    };
    if pages.is_empty() {
        return Ok(());
    }
    let access = Access::unlimited();
    let answers = Answers::open(store)?;
    let checks = answers.as_ref().map(|answers| Checks::of(answers, store, &access)).transpose()?;
    let known = answers.as_ref().zip(checks.as_ref());
    let mut again = Vec::new();
    for pages in pages.chunks(ROWS_TOGETHER) {
        let contents = prepared::newest_contents(store.state(), pages)?;
        let of_content = |(id, capture): &(CaptureId, Capture)| {
            let is_known = match known {
                Some((answers, checks)) => checks.found(answers, store.state(), *id)?.is_some(),
                None => false,
            };
            if is_known || begun.elapsed() >= time_max {
                return Ok(None);
            }
            // What cannot be read stays unchecked.
            let checked = CheckedDocument::of(store, &access, capture);
            let checked = checked.inspect_err(|error| tracing::warn!(%error, "a document cannot be checked"));
            Ok::<_, RecorderError>(checked.ok().flatten().map(|checked| (*id, *capture, checked)))
        };
        let checked = contents.par_iter().map(of_content);
        for (id, capture, checked) in checked.collect::<Result<Vec<_>, _>>()?.into_iter().flatten() {
            prepared::note_checked(store.state_mut(), id, &checked.to_text());
            again.extend(checked.has_parts().then_some(capture));
        }
        if begun.elapsed() >= time_max {
            break;
        }
    }
    index_again(store, index, &again)
}
