//! Records what is being read, in the file `state/reading`. What it lists when a program starts was being read when the
//! previous program ended.
//!
//! An entry has 24 bytes: the start of the document's digest (16), the number of programs that ended while reading it,
//! including the one reading it now (1), whether reading took long (1), and zeros. An entry of zeros is free. The file
//! is written without syncing: a power failure is not the fault of the page being read. If the file cannot be written,
//! nothing is noted.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use archive_base::files::{self, WholeFile};
use archive_storage::backend::{OpenMode, open_regular};

use super::DocumentKey;

const ENTRY_BYTES: usize = 24;
const ENDS_AT: usize = 16;
const LONG_AT: usize = 17;

/// Maximum number of documents remembered from earlier programs; beyond it, the first ones are forgotten.
const REMEMBERED_MAX: usize = 1000;

/// Maximum bytes read from the file, which has one entry per remembered document and per reading thread.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A document that this many programs died of is not read again. Somebody who repeatedly kills a program as it starts
/// may well hit the same document each time: the one fetched first.
pub(super) const ENDS_MAX: u8 = 10;

/// The notes of an archive.
#[derive(Default)]
pub(super) struct Notes {
    shared: Arc<SharedNotes>,
    next_place: AtomicU64,
}

#[derive(Default)]
struct SharedNotes {
    file: Option<(File, PathBuf)>,
    /// Documents noted by earlier programs: position of the entry, and number of programs that died of it.
    remembered: HashMap<DocumentKey, (u64, u8)>,
}

impl Notes {
    /// Takes over the notes in an archive's folder.
    pub(super) fn open(archive: &Path) -> Self {
        let folder = archive.join("state");
        let path = folder.join("reading");
        let mut entries: Vec<[u8; ENTRY_BYTES]> = Vec::new();
        let before = files::read(&path, FILE_BYTES_MAX).unwrap_or_default();
        for entry in before.as_chunks().0.iter().filter(|entry| entry[ENDS_AT] > 0) {
            let mut entry: [u8; ENTRY_BYTES] = *entry;
            if entry[LONG_AT] > 0 {
                entry[ENDS_AT] = ENDS_MAX;
            }
            // A document may have a note of this program next to that of an earlier one.
            match entries.iter_mut().find(|known| known[..ENDS_AT] == entry[..ENDS_AT]) {
                Some(known) => known[ENDS_AT] = known[ENDS_AT].max(entry[ENDS_AT]),
                None => entries.push(entry),
            }
        }
        entries.drain(..entries.len().saturating_sub(REMEMBERED_MAX));
        let file = begin(&folder, path, entries.as_flattened()).ok();
        let remembered = entries.iter().zip(0..).map(|(entry, place)| {
            let (key, ends) = entry.split_at(ENDS_AT);
            (DocumentKey::try_from(key).unwrap_or_default(), (place, ends[0]))
        });
        let shared = Arc::new(SharedNotes { file, remembered: remembered.collect() });
        Self { shared, next_place: AtomicU64::new(entries.len() as u64) }
    }

    /// Whether reading a document has ended so many programs that it must not be read again.
    pub(super) fn has_ended_the_program(&self, key: &DocumentKey) -> bool {
        self.shared.remembered.get(key).is_some_and(|(_, ends)| *ends >= ENDS_MAX)
    }

    /// Creates a note for one thread.
    pub(super) fn note(&self) -> ReadingNote {
        let place = self.next_place.fetch_add(1, Ordering::Relaxed);
        ReadingNote { shared: Arc::clone(&self.shared), place }
    }
}

/// Creates a new file with the remembered entries.
fn begin(folder: &Path, path: PathBuf, entries: &[u8]) -> io::Result<(File, PathBuf)> {
    files::make_folder(folder)?;
    WholeFile::replace(&path, entries)?;
    Ok((open_regular(&path, OpenMode::Write)?, path))
}

impl Drop for SharedNotes {
    /// Removes the file on a clean exit, unless a document is still being read.
    fn drop(&mut self) {
        let Some((_, path)) = &self.file else { return };
        if files::read(path, FILE_BYTES_MAX).is_ok_and(|bytes| bytes.iter().all(|byte| *byte == 0)) {
            // A file that stays is harmless: it has only free entries.
            let _ = fs::remove_file(path);
        }
    }
}

/// The entry where a thread notes what it reads.
pub(super) struct ReadingNote {
    shared: Arc<SharedNotes>,
    place: u64,
}

impl ReadingNote {
    /// Notes that a document is being read.
    pub(super) fn begin(&self, key: DocumentKey) {
        let before = self.shared.remembered.get(&key).map_or(0, |(_, ends)| *ends);
        let mut entry = [0; ENTRY_BYTES];
        entry[..ENDS_AT].copy_from_slice(&key);
        entry[ENDS_AT] = before.saturating_add(1);
        self.write(self.place, 0, &entry);
    }

    /// Notes that reading takes long.
    pub(super) fn takes_long(&self) {
        self.write(self.place, LONG_AT, &[1]);
    }

    /// Notes that the document was read without ending the program.
    pub(super) fn end(&self, key: DocumentKey) {
        let before = self.shared.remembered.get(&key).map(|(place, _)| *place);
        for place in [Some(self.place), before].into_iter().flatten() {
            self.write(place, 0, &[0; ENTRY_BYTES]);
        }
    }

    fn write(&self, place: u64, at: usize, bytes: &[u8]) {
        if let Some((file, _)) = &self.shared.file {
            // Failing to write a note only loses that note.
            let _ = file.write_all_at(bytes, place * ENTRY_BYTES as u64 + at as u64);
        }
    }
}
