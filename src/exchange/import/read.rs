//! The reading thread: files to numbered captures.

use std::fs::File;
use std::io::{self, Read, Take};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use archive_storage::backend::RealDisk;
use archive_storage::warc::{ReadError, ReadLimits, RecordReader, RecordType};
use crossbeam::channel::Sender;

use super::gather::{Gathered, Gatherer, Group};
use super::room::{self, Place, Room};
use super::sources::{Source, in_order};
use super::{Note, NoteKind};
use crate::recorder::{Control, Memory};

/// Bytes on disk of contents that are too long for memory, from reading to storing.
const SPOOLED_BYTES_MAX: u64 = 4 << 30;

/// What is handed to the threads behind.
pub(super) enum Item {
    /// A capture of a file.
    Group(Arc<str>, Box<Group>, Place),
    /// Something to be told.
    Note(Note),
    /// A record that belongs to no capture.
    LeftOut(RecordType),
    /// A file was left, read to its end or not.
    FileEnd {
        /// What it is called.
        name: Arc<str>,
        /// Whether it was read to its end.
        is_whole: bool,
    },
}

/// What the reading thread needs.
pub(super) struct Reader<'a> {
    pub(super) files: &'a [PathBuf],
    /// Compressed bytes read so far.
    pub(super) bytes: Arc<AtomicU64>,
    pub(super) stop: &'a Control,
    pub(super) memory: Memory,
    /// The folder of contents that are too long for memory.
    pub(super) spools: PathBuf,
}

impl Reader<'_> {
    /// Reads files from the first to the last; ends early when nobody listens any more or is to stop.
    pub(super) fn run(&self, items: &Sender<(u64, Item)>) {
        let mut number = 0;
        let mut send = |item| {
            number += 1;
            !self.stop.is_stopped() && items.send((number - 1, item)).is_ok()
        };
        let memory = self.memory.bodies() as u64 / 2;
        let room = Room::new(room::Bytes { memory, disk: SPOOLED_BYTES_MAX });
        for source in in_order(self.files) {
            if !self.read_file(&source, &room, &mut send) {
                return;
            }
        }
    }

    /// Whether somebody still listens.
    fn read_file(&self, source: &Source, room: &Arc<Room>, send: &mut impl FnMut(Item) -> bool) -> bool {
        let mut whole = true;
        let mut send_on = |item: Item| {
            whole &= !matches!(&item, Item::Note(note) if note.kind == NoteKind::File);
            send(item)
        };
        let is_heard = self.read_records(source, room, &mut send_on);
        is_heard && send(Item::FileEnd { name: source.name.clone(), is_whole: whole })
    }

    fn read_records(&self, source: &Source, room: &Arc<Room>, send: &mut impl FnMut(Item) -> bool) -> bool {
        let name = &source.name;
        let note =
            |offset, kind, what: String| Item::Note(Note { file: name.to_string(), offset, kind, what });
        let source = match source.open() {
            Ok(file) => Counted { file, bytes: self.bytes.clone() },
            Err(what) => return send(note(None, NoteKind::File, what)),
        };
        let mut limits = ReadLimits::default();
        limits.memory_bytes_max = self.memory.document() as u64;
        limits.window_bytes_max = self.memory.bodies() as u64;
        let records = RecordReader::new(source).with_limits(limits);
        let records = records.with_spools(Arc::new(RealDisk), self.spools.clone());
        let mut gatherer = Gatherer::new(self.memory.bodies() as u64 / 4);
        let mut gathered = Vec::new();
        for record in records {
            match record {
                Ok(record) => gatherer.take(record, &mut gathered),
                Err(ReadError::Broken(place)) => {
                    if !send(note(Some(place.offset), NoteKind::Broken, place.what)) {
                        return false;
                    }
                }
                Err(error) => return send(note(None, NoteKind::File, format!("cannot be read: {error}"))),
            }
            if !send_all(name, room, &mut gathered, send) {
                return false;
            }
        }
        gatherer.finish(&mut gathered);
        send_all(name, room, &mut gathered, send)
    }
}

fn send_all(
    file: &Arc<str>,
    room: &Arc<Room>,
    gathered: &mut Vec<Gathered>,
    send: &mut impl FnMut(Item) -> bool,
) -> bool {
    gathered.drain(..).all(|gathered| {
        send(match gathered {
            Gathered::Group(group) => {
                let place = room.take(group.bytes());
                Item::Group(file.clone(), group, place)
            }
            Gathered::LeftOut(record_type) => Item::LeftOut(record_type),
        })
    })
}

/// A file that counts what is read of it.
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
