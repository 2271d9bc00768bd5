//! The reading thread: turns files into numbered captures.

use std::fs::File;
use std::io::{self, Read, Take};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use archive_base::control::Control;
use archive_books::recorder::Memory;
use archive_storage::backend::RealDisk;
use archive_storage::segment::Truncated;
use archive_storage::warc::{ReadLimits, Record, RecordError, RecordReader, RecordType};
use crossbeam::channel::Sender;

use super::gather::{CaptureRecords, Gatherer, ImportYield};
use super::room::{Bytes, Room, RoomLease};
use super::sources::{ImportSource, SourceOptions, in_order};
use super::{ImportNote, NoteKind};

/// Maximum bytes on disk of contents that are too long for memory, between reading and storing.
const SPOOLED_BYTES_MAX: u64 = 4 << 30;

/// Bytes that each item takes in addition to its text on its way through the threads.
const ITEM_BYTES: u64 = 1024;

/// An item on its way to the store, where items are handled in the order in which they were read. One slow capture can
/// delay any number of others, so every item holds a place until it is handled.
pub(super) struct QueuedItem<T> {
    /// Position in the order.
    pub(super) number: u64,
    pub(super) what: T,
    /// The memory and disk space that it occupies.
    pub(super) place: Option<RoomLease>,
}

/// An item that was read.
pub(super) enum ReadItem {
    /// A capture of a file.
    Group(Arc<str>, Box<CaptureRecords>),
    /// A note for the user.
    Note(ImportNote),
    /// A record that belongs to no capture.
    LeftOut(RecordType),
    /// The reader has left a file.
    FileEnd {
        /// Name of the file.
        name: Arc<str>,
        /// Whether it was read to its end.
        is_whole: bool,
    },
}

impl ReadItem {
    /// The minimum of memory and disk space that it takes.
    fn bytes(&self) -> Bytes {
        let (text, group) = match self {
            Self::Group(_, group) => (0, group.bytes),
            Self::Note(note) => (note.file.len() + note.what.len(), Bytes::default()),
            Self::LeftOut(record_type) => (record_type.as_str().len(), Bytes::default()),
            Self::FileEnd { name, .. } => (name.len(), Bytes::default()),
        };
        Bytes { memory: ITEM_BYTES + text as u64 + group.memory, ..group }
    }
}

/// The inputs of the reading thread.
pub(super) struct ImportReader<'a> {
    pub(super) sources: SourceOptions<'a>,
    /// Whether a record that is cut by the end of its file is read.
    pub(super) keep_cut: bool,
    /// Compressed bytes read so far.
    pub(super) bytes: Arc<AtomicU64>,
    pub(super) stop: &'a Control,
    pub(super) memory: Memory,
    /// Folder for contents that are too long for memory.
    pub(super) spools: PathBuf,
}

impl ImportReader<'_> {
    /// Reads the files in order. Ends early if the receiver is gone or a stop is requested.
    pub(super) fn run(&self, items: &Sender<QueuedItem<ReadItem>>) {
        let memory = self.memory.bodies() as u64 / 2;
        let room = Room::new(Bytes { memory, disk: SPOOLED_BYTES_MAX });
        let mut number = 0;
        let mut send = |item: ReadItem| {
            // All items that hold places were sent, and earlier items never wait for later ones, so places will become
            // free.
            let place = room.take(item.bytes());
            let queued = QueuedItem { number, what: item, place: Some(place) };
            number += 1;
            !self.stop.is_stopped() && items.send(queued).is_ok()
        };
        for source in in_order(self.sources) {
            if !self.read_file(&source, &mut send) {
                return;
            }
        }
    }

    /// Reads a file. Returns whether the receiver is still there.
    fn read_file(&self, source: &ImportSource, send: &mut impl FnMut(ReadItem) -> bool) -> bool {
        let mut whole = true;
        let mut send_on = |item: ReadItem| {
            whole &= !matches!(&item, ReadItem::Note(note) if note.kind == NoteKind::File);
            send(item)
        };
        let is_heard = self.read_records(source, &mut send_on);
        is_heard && send(ReadItem::FileEnd { name: source.name.clone(), is_whole: whole })
    }

    fn read_records(&self, source: &ImportSource, send: &mut impl FnMut(ReadItem) -> bool) -> bool {
        let name = &source.name;
        let note = |offset, kind, what: String| {
            ReadItem::Note(ImportNote { file: name.to_string(), offset, kind, what })
        };
        for (package, what) in &source.seals {
            let (file, kind, what) = (package.clone(), NoteKind::Signature, what.clone());
            if !send(ReadItem::Note(ImportNote { file, offset: None, kind, what })) {
                return false;
            }
        }
        let counted = |file| Counted { file, bytes: self.bytes.clone() };
        let source = match source.open().and_then(|file| source.unpacked(counted(file))) {
            Ok(source) => source,
            Err(what) => return send(note(None, NoteKind::File, what)),
        };
        let mut limits = ReadLimits::default();
        limits.memory_bytes_max = self.memory.document() as u64;
        limits.window_bytes_max = self.memory.bodies() as u64;
        let records = RecordReader::new(source).with_limits(limits).with_arc();
        let records = records.with_spools(Arc::new(RealDisk), self.spools.clone());
        let mut gatherer = Gatherer::new(self.memory.bodies() as u64 / 4);
        let mut gathered = Vec::new();
        for record in records {
            match record {
                Ok(record) => gatherer.take(record, &mut gathered),
                Err(RecordError::Broken(place)) => {
                    let kept = place.cut.and_then(|record| kept(*record)).filter(|_| self.keep_cut);
                    let said = kept.as_ref().map_or(String::new(), |(_, said)| format!("; {said}"));
                    let what = place.what + &said;
                    if !send(note(Some(place.offset), NoteKind::Broken, what)) {
                        return false;
                    }
                    if let Some((record, _)) = kept {
                        gatherer.take(record, &mut gathered);
                    }
                }
                Err(error) => return send(note(None, NoteKind::File, format!("cannot be read: {error}"))),
            }
            if !send_all(name, &mut gathered, send) {
                return false;
            }
        }
        gatherer.finish(&mut gathered);
        send_all(name, &mut gathered, send)
    }
}

/// Returns what is there of a record that is cut by the end of its file, and says so; `None` if that is of no use.
fn kept(mut record: Record) -> Option<(Record, String)> {
    use RecordType::{Conversion, Resource, Response};
    let is_document = matches!(record.header.record_type(), Response | Resource | Conversion);
    let (there, stated) = (record.content_length(), record.header.content_length()?);
    if !is_document || there == 0 {
        return None;
    }
    if there < stated && record.header.get(TRUNCATED).is_none() {
        record.header.fields.push((TRUNCATED.to_owned(), Truncated::Unspecified.as_str().to_owned()));
    }
    Some((record, format!("the {there} of its {stated} bytes that are there were imported")))
}

/// Field of a record that lacks bytes.
const TRUNCATED: &str = "WARC-Truncated";

fn send_all(
    file: &Arc<str>,
    gathered: &mut Vec<ImportYield>,
    send: &mut impl FnMut(ReadItem) -> bool,
) -> bool {
    gathered.drain(..).all(|gathered| {
        send(match gathered {
            ImportYield::Group(group) => ReadItem::Group(file.clone(), group),
            ImportYield::LeftOut(record_type) => ReadItem::LeftOut(record_type),
        })
    })
}

/// A file that counts the bytes read from it.
struct Counted {
    file: Take<File>,
    bytes: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
