//! The reading thread: files to numbered captures.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use archive_storage::warc::{ReadError, RecordReader};
use chrono::{DateTime, Utc};
use crossbeam::channel::Sender;
use flate2::read::MultiGzDecoder;

use super::gather::{Gathered, Gatherer, Group};
use super::{Note, NoteKind};
use crate::crawl::Control;

/// Records at a file's start that are looked at for a date.
const DATED_WITHIN: usize = 4;

/// How every ARC file begins (Internet Archive, "Arc File Format", 1996).
const ARC_START: &[u8] = b"filedesc:";

/// How gzip members begin.
const GZIP_START: &[u8] = &[0x1f, 0x8b];

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
    for file in in_order(files) {
        if !read_file(&file, bytes, &mut send) {
            return;
        }
    }
}

/// Files by the date of their first record; those without one come first, where they are reported.
fn in_order(files: &[PathBuf]) -> Vec<PathBuf> {
    let mut dated: Vec<_> = files.iter().map(|file| (first_date(file), file.clone())).collect();
    dated.sort_by_key(|(date, _)| *date);
    dated.into_iter().map(|(_, file)| file).collect()
}

fn first_date(path: &Path) -> Option<DateTime<Utc>> {
    let records = RecordReader::new(File::open(path).ok()?);
    records.take(DATED_WITHIN).find_map(|record| record.ok()?.header.date())
}

/// Whether somebody still listens.
fn read_file(path: &Path, bytes: &Arc<AtomicU64>, send: &mut impl FnMut(Item) -> bool) -> bool {
    let name: Arc<str> = path.display().to_string().into();
    let note = |offset, kind, what: String| Item::Note(Note { file: name.to_string(), offset, kind, what });
    let source = match open(path) {
        Ok(Opened::Warc(file)) => Counted { file, bytes: bytes.clone() },
        Ok(Opened::Arc) => {
            let what = "this is an ARC file, and only WARC 1.0 and 1.1 are read; make a WARC file of it with \
                        `warcio recompress FILE NEW.warc.gz`";
            return send(note(None, NoteKind::File, what.to_owned()));
        }
        Err(error) => return send(note(None, NoteKind::File, format!("cannot be read: {error}"))),
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
        if !send_all(&name, &mut gathered, send) {
            return false;
        }
    }
    gatherer.finish(&mut gathered);
    send_all(&name, &mut gathered, send) && send(Item::FileDone)
}

fn send_all(file: &Arc<str>, gathered: &mut Vec<Gathered>, send: &mut impl FnMut(Item) -> bool) -> bool {
    gathered.drain(..).all(|gathered| {
        send(match gathered {
            Gathered::Group(group) => Item::Group(file.clone(), group),
            Gathered::LeftOut(records) => Item::LeftOut(records),
        })
    })
}

enum Opened {
    Warc(File),
    Arc,
}

fn open(path: &Path) -> io::Result<Opened> {
    let mut start = Vec::new();
    File::open(path)?.take(2).read_to_end(&mut start)?;
    let file = BufReader::new(File::open(path)?);
    let mut first = vec![0; ARC_START.len()];
    // What cannot be unpacked is no ARC file; the reader of records says what is wrong with it.
    let is_read = match start == GZIP_START {
        true => MultiGzDecoder::new(file).read_exact(&mut first).is_ok(),
        false => { file }.read_exact(&mut first).is_ok(),
    };
    if is_read && first == ARC_START { Ok(Opened::Arc) } else { Ok(Opened::Warc(File::open(path)?)) }
}

/// A file that counts what is read of it.
struct Counted {
    file: File,
    bytes: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
