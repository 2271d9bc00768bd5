//! The reading thread: files to numbered captures.

use std::fs::File;
use std::io::{self, Read, Take};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use archive_storage::warc::{ReadError, RecordReader};
use crossbeam::channel::Sender;

use super::gather::{Gathered, Gatherer, Group};
use super::sources::{Source, in_order};
use super::{Note, NoteKind};
use crate::crawl::Control;

/// What is handed to the threads behind.
pub(super) enum Item {
    /// A capture of a file.
    Group(Arc<str>, Box<Group>),
    /// Something to be told.
    Note(Note),
    /// So many records that belong to no capture.
    LeftOut(u64),
    /// A file has been read to its end.
    FileDone,
}

/// Reads files from the first to the last; ends early when nobody listens any more or `stop` is raised.
pub(super) fn read_files(
    files: &[PathBuf],
    items: &Sender<(u64, Item)>,
    bytes: &Arc<AtomicU64>,
    stop: &Control,
) {
    let mut number = 0;
    let mut send = |item| {
        number += 1;
        !stop.is_stopped() && items.send((number - 1, item)).is_ok()
    };
    for source in in_order(files) {
        if !read_file(&source, bytes, &mut send) {
            return;
        }
    }
}

/// Whether somebody still listens.
fn read_file(source: &Source, bytes: &Arc<AtomicU64>, send: &mut impl FnMut(Item) -> bool) -> bool {
    let name = &source.name;
    let note = |offset, kind, what: String| Item::Note(Note { file: name.to_string(), offset, kind, what });
    let source = match source.open() {
        Ok(file) => Counted { file, bytes: bytes.clone() },
        Err(what) => return send(note(None, NoteKind::File, what)),
    };
    let (mut gatherer, mut gathered) = (Gatherer::default(), Vec::new());
    for record in RecordReader::new(source) {
        match record {
            Ok(record) => gatherer.take(record, &mut gathered),
            Err(ReadError::Broken(place)) => {
                if !send(note(Some(place.offset), NoteKind::Broken, place.what)) {
                    return false;
                }
            }
            Err(error) => return send(note(None, NoteKind::File, format!("cannot be read: {error}"))),
        }
        if !send_all(name, &mut gathered, send) {
            return false;
        }
    }
    gatherer.finish(&mut gathered);
    send_all(name, &mut gathered, send) && send(Item::FileDone)
}

fn send_all(file: &Arc<str>, gathered: &mut Vec<Gathered>, send: &mut impl FnMut(Item) -> bool) -> bool {
    gathered.drain(..).all(|gathered| {
        send(match gathered {
            Gathered::Group(group) => Item::Group(file.clone(), group),
            Gathered::LeftOut(records) => Item::LeftOut(records),
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
