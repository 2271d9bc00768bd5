//! What a revisit does not say itself: what the capture it stands for was.

use std::collections::HashMap;

use archive_storage::warc::Record;
use archive_storage::{Capture, CaptureId, State, Store, StoreError};

use crate::ledger::{Facts, canonical_of, language};
use crate::originals::shows;
use crate::parse::DocumentKind;

/// Originals whose records were read that are kept in mind.
const READ_MAX: usize = 1 << 16;

/// The capture that a revisit stands for.
#[derive(Clone, Default)]
pub(super) struct Original {
    pub(super) status: u16,
    pub(super) mime: Option<String>,
    /// The kind of document.
    pub(super) document: Option<DocumentKind>,
    pub(super) language: Option<String>,
    pub(super) title: Option<String>,
}

/// Finds originals. Most revisits are of what their page still is, which the state knows; records are read of others, once
/// for many revisits.
#[derive(Default)]
pub(super) struct Originals {
    read: HashMap<CaptureId, Original>,
}

impl Originals {
    /// What a capture stands for; nothing for what is not a revisit, or one whose original is not there.
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
        let Facts { document, language, title, .. } = Facts::from_fields(&store.metadata(&capture)?);
        let original = Original { document, language, title, ..original };
        if self.read.len() >= READ_MAX {
            self.read.clear();
        }
        self.read.insert(id, original.clone());
        Ok(Some(original))
    }
}

/// A capture as the state knows it, by its main record.
pub(super) fn capture_of(state: &State, main: &Record) -> Result<Option<Capture>, StoreError> {
    let (Some(url), Some(time)) = (main.header.target_uri(), main.header.date()) else { return Ok(None) };
    let Some(page) = state.find(&canonical_of(url))? else { return Ok(None) };
    let time = time.timestamp_micros();
    let found = state.nearest(page, time)?.filter(|(_, capture)| capture.time == time);
    Ok(found.map(|(_, capture)| capture))
}
