//! Facts about revisits that only their originals hold.

use std::collections::HashMap;

use archive_books::ledger::{CrawlerFacts, canonical_of, language};
use archive_books::originals::shows;
use archive_storage::warc::Record;
use archive_storage::{Capture, CaptureId, State, Store, StoreError};
use archive_web::parse::DocumentKind;

/// Maximum number of originals in the cache.
const READ_MAX: usize = 1 << 16;

/// The capture that a revisit refers to.
#[derive(Clone, Default)]
pub(super) struct Original {
    pub(super) status: u16,
    pub(super) mime: Option<String>,
    /// The kind of document.
    pub(super) document: Option<DocumentKind>,
    pub(super) language: Option<String>,
    pub(super) title: Option<String>,
}

/// Finds originals. Most are still shown by their page, so the state knows their facts; the records of others are read
/// and cached.
#[derive(Default)]
pub(super) struct Originals {
    read: HashMap<CaptureId, Original>,
}

impl Originals {
    /// Returns the original of a capture; `None` for captures that are no revisits or whose original is missing.
    pub(super) fn of(&mut self, store: &Store, revisit: &Capture) -> Result<Option<Original>, StoreError> {
        let state = store.state();
        let Some(id) = revisit.original else { return Ok(None) };
        if let Some(known) = self.read.get(&id) {
            return Ok(Some(known.clone()));
        }
        let capture = state.capture(id)?;
        let mime = Some(state.mime(capture.mime).to_owned()).filter(|mime| !mime.is_empty());
        let original = Original { status: capture.status, mime, ..Original::default() };
        if let Some(visit) = state.visit(revisit.url)?
            && shows(state, revisit.url, id)?
        {
            let document = Some(DocumentKind::from_code(visit.kind));
            let title = visit.title.map(|position| state.title(position)).transpose()?;
            return Ok(Some(Original {
                document,
                language: language(state, visit.language),
                title,
                ..original
            }));
        }
        // A damaged original does not end the export of what refers to it.
        let fields = store.metadata(&capture).unwrap_or_default();
        let CrawlerFacts { document, language, title, .. } = CrawlerFacts::from_fields(&fields);
        let original = Original { document, language, title, ..original };
        if self.read.len() >= READ_MAX {
            self.read.clear();
        }
        self.read.insert(id, original.clone());
        Ok(Some(original))
    }
}

/// Looks up the capture of a main record in the state.
pub(super) fn capture_of(state: &State, main: &Record) -> Result<Option<Capture>, StoreError> {
    let (Some(url), Some(time)) = (main.header.target_uri(), main.header.date()) else { return Ok(None) };
    let Some(page) = state.find(&canonical_of(url))? else { return Ok(None) };
    let time = time.timestamp_micros();
    let found = state.nearest(page, time)?.filter(|(_, capture)| capture.time == time);
    Ok(found.map(|(_, capture)| capture))
}
