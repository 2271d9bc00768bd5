//! Compares the archive with lists of captures (CDX, CDXJ) that lie beside imported files, or that another archive gave out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use archive_base::control::Control;
use archive_storage::address::canonical;
use archive_storage::warc::{CaptureList, ListError, ListedCapture};
use archive_storage::{Capture, Digest, Store, StoreError};
use serde::Serialize;
use url::Url;

use super::{HearImport, ImportEvent, ImportNote, ImportStatus, NoteKind};

/// Maximum number of files of a list whose missing captures are counted one by one.
const FILES_MAX: usize = 1000;

/// Number of files that the note about a list names.
const FILES_NAMED: usize = 5;

const MICROSECONDS: i64 = 1_000_000;

/// Schemes of records that describe a file, and are no captures.
const ABOUT_FILES: [&str; 3] = ["filedesc:", "warcinfo:", "metadata:"];

/// What lists and archive have in common.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ListedCaptures {
    /// Captures that lists name.
    pub listed: u64,
    /// Of these, captures that the archive does not have: none of the URL and second.
    pub listed_missing: u64,
    /// Captures that the archive has with another digest.
    pub listed_otherwise: u64,
}

impl ListedCaptures {
    /// Number of listed captures that the archive does not have as they are listed.
    #[must_use]
    pub fn missing_or_other(&self) -> u64 {
        self.listed_missing + self.listed_otherwise
    }
}

/// Separates lists from files of records.
pub(super) fn divided(files: Vec<PathBuf>) -> (Vec<PathBuf>, Vec<PathBuf>) {
    files.into_iter().partition(|file| !matches!(CaptureList::open(file), Ok(Some(_))))
}

/// Compares the archive with lists; ends early if `stop` comes.
pub(super) fn compare(
    store: &Store,
    lists: &[PathBuf],
    status: &mut ImportStatus,
    stop: &Control,
    hear: &mut HearImport<'_>,
) -> Result<(), StoreError> {
    for path in lists {
        compare_one(store, path, status, stop, hear)?;
    }
    Ok(())
}

fn compare_one(
    store: &Store,
    path: &Path,
    status: &mut ImportStatus,
    stop: &Control,
    hear: &mut HearImport<'_>,
) -> Result<(), StoreError> {
    let file = path.display().to_string();
    let mut note = |kind, what: String| {
        hear(ImportEvent::Note(&ImportNote { file: file.clone(), offset: None, kind, what }));
    };
    let list = match CaptureList::open(path) {
        Ok(Some(list)) => list,
        Ok(None) => return Ok(()),
        Err(error) => {
            status.refused_files += 1;
            note(NoteKind::File, format!("cannot be read: {error}"));
            return Ok(());
        }
    };
    let mut found = ListedCaptures::default();
    let mut lacking: BTreeMap<String, u64> = BTreeMap::new();
    for entry in list {
        if stop.is_stopped() {
            return Ok(());
        }
        let entry = match entry {
            Ok(entry) => entry,
            Err(error @ ListError::Line { .. }) => {
                status.broken += 1;
                note(NoteKind::Broken, error.to_string());
                continue;
            }
            Err(error) => {
                status.refused_files += 1;
                note(NoteKind::File, error.to_string());
                break;
            }
        };
        if ABOUT_FILES.iter().any(|scheme| entry.url.starts_with(scheme)) {
            continue;
        }
        found.listed += 1;
        let (url, time) = (&entry.url, entry.time.format("%Y-%m-%dT%H:%M:%SZ"));
        let place = entry.file.as_ref().map_or(String::new(), |file| format!(", listed in {file},"));
        match fit(store, &entry)? {
            ListFit::Same => {}
            ListFit::Otherwise => {
                found.listed_otherwise += 1;
                let what = format!("the capture of {url} at {time}{place} has another digest in the archive");
                note(NoteKind::Listed, what);
            }
            ListFit::Missing => {
                found.listed_missing += 1;
                note(
                    NoteKind::Listed,
                    format!("the capture of {url} at {time}{place} is not in the archive"),
                );
                let file = entry.file.unwrap_or_default();
                if lacking.len() < FILES_MAX || lacking.contains_key(&file) {
                    *lacking.entry(file).or_default() += 1;
                }
            }
        }
    }
    note(NoteKind::List, summary(found, lacking));
    status.lists.listed += found.listed;
    status.lists.listed_missing += found.listed_missing;
    status.lists.listed_otherwise += found.listed_otherwise;
    Ok(())
}

fn summary(found: ListedCaptures, lacking: BTreeMap<String, u64>) -> String {
    let ListedCaptures { listed, listed_missing, listed_otherwise } = found;
    let held = listed - listed_missing - listed_otherwise;
    let mut text = format!("of the {listed} captures that it lists, the archive has {held}");
    if listed_otherwise > 0 {
        text.push_str(&format!(", {listed_otherwise} with another digest"));
    }
    if listed_missing > 0 {
        text.push_str(&format!(", and lacks {listed_missing}"));
    }
    let mut files: Vec<_> = lacking.into_iter().filter(|(file, _)| !file.is_empty()).collect();
    files.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let named: Vec<_> =
        files.iter().take(FILES_NAMED).map(|(file, count)| format!("{count} of {file}")).collect();
    if !named.is_empty() {
        let more = if files.len() > FILES_NAMED { ", …" } else { "" };
        text.push_str(&format!(" ({}{more})", named.join(", ")));
    }
    text
}

/// How an entry of a list fits the archive.
enum ListFit {
    Same,
    Otherwise,
    Missing,
}

/// Looks for a capture of the URL and second of an entry, and for its digest.
fn fit(store: &Store, entry: &ListedCapture) -> Result<ListFit, StoreError> {
    let Ok(url) = Url::parse(&entry.url) else { return Ok(ListFit::Missing) };
    let state = store.state();
    let Some(page) = state.find(&canonical(&url))? else { return Ok(ListFit::Missing) };
    let first = entry.time.timestamp().saturating_mul(MICROSECONDS);
    let last = first.saturating_add(MICROSECONDS - 1);
    // The nearest one may be newer than the second, but none within it is older than that.
    let Some((nearest, _)) = state.nearest(page, last)? else { return Ok(ListFit::Missing) };
    let mut fit = ListFit::Missing;
    for capture in state.history_from(nearest) {
        let (_, capture) = capture?;
        if capture.time < first {
            break;
        }
        if capture.time <= last {
            if entry.digest.is_none_or(|digest| capture.digest == digest.prefix())
                || has_digest(store, &capture, entry)?
            {
                return Ok(ListFit::Same);
            }
            fit = ListFit::Otherwise;
        }
    }
    Ok(fit)
}

/// Whether a capture has the digest of an entry, by what its record states or by its payload. Both may be so: some tools
/// hash a payload in chunks as it was sent.
fn has_digest(store: &Store, capture: &Capture, entry: &ListedCapture) -> Result<bool, StoreError> {
    let Some(digest) = entry.digest else { return Ok(true) };
    let record = store.record(capture.location)?;
    let stated = ["WARC-Payload-Digest", "WARC-Block-Digest"].into_iter();
    if stated
        .filter_map(|name| record.header.get(name)?.parse::<Digest>().ok())
        .any(|stated| stated == digest)
    {
        return Ok(true);
    }
    Ok(store.payload(capture)?.is_some_and(|payload| digest.matches(&payload)))
}
