//! The files to read: WARC files, also those inside WACZ packages.
//!
//! A package stores its records uncompressed (Webrecorder, "Web Archive Collection Zipped" 1.1.1, section 5.2.1), so
//! they are read in place, like a separate file.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Take};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use archive_storage::warc::{ReadError, ReadLimits, RecordReader};
use chrono::{DateTime, Utc};
use flate2::read::MultiGzDecoder;
use zip::{CompressionMethod, ZipArchive};

/// Number of records at the start of a file that are searched for a date.
const DATED_WITHIN: usize = 4;

/// Start of every ARC file (Internet Archive, "Arc File Format", 1996).
const ARC_START: &[u8] = b"filedesc:";

/// Start of gzip members.
const GZIP_START: &[u8] = &[0x1f, 0x8b];

/// Start of ZIP files that are not empty.
const ZIP_START: &[u8] = b"PK\x03\x04";

/// Folder of a package that holds its records.
const RECORDS_FOLDER: &str = "archive/";

/// Maximum bytes of a package's directory, about 80 000 files.
const DIRECTORY_BYTES_MAX: u64 = 8 << 20;

/// Bytes of a record's content that are decompressed to find its date.
const DATED_BYTES_MAX: u64 = 64 << 10;

/// A file of records, or one that cannot be read.
pub(super) struct Source {
    /// Name in notes: the path, followed by the path within the package.
    pub(super) name: Arc<str>,
    path: PathBuf,
    /// Byte range of the records in the file, or why they cannot be read.
    bytes: Result<Range<u64>, String>,
}

impl Source {
    /// Opens the byte range of the records.
    ///
    /// # Errors
    /// If it cannot be read; a message.
    pub(super) fn open(&self) -> Result<Take<File>, String> {
        let bytes = self.bytes.clone()?;
        if self.is_arc(&bytes).map_err(unreadable)? {
            return Err(
                "this is an ARC file, and only WARC 1.0 and 1.1 are read; make a WARC file of it with \
                        `warcio recompress FILE NEW.warc.gz`"
                    .to_owned(),
            );
        }
        part(&self.path, &bytes).map_err(unreadable)
    }

    fn is_arc(&self, bytes: &Range<u64>) -> io::Result<bool> {
        let mut start = Vec::new();
        part(&self.path, bytes)?.take(2).read_to_end(&mut start)?;
        let file = BufReader::new(part(&self.path, bytes)?);
        let mut first = vec![0; ARC_START.len()];
        // Data that cannot be decompressed is not an ARC file; the record reader reports what is wrong with it.
        let is_read = match start == GZIP_START {
            true => MultiGzDecoder::new(file).read_exact(&mut first).is_ok(),
            false => { file }.read_exact(&mut first).is_ok(),
        };
        Ok(is_read && first == ARC_START)
    }

    fn first_date(&self) -> Option<DateTime<Utc>> {
        let bytes = self.bytes.as_ref().ok()?;
        let mut limits = ReadLimits::default();
        limits.content_bytes_max = DATED_BYTES_MAX;
        let records = RecordReader::new(part(&self.path, bytes).ok()?).with_limits(limits);
        records.take(DATED_WITHIN).find_map(|record| match record {
            Ok(record) => record.header.date(),
            // The content was too long to be decompressed.
            Err(ReadError::Broken(place)) => place.header?.date(),
            Err(_) => None,
        })
    }
}

/// Returns the sources in the order of the dates of their first records. Those without a date come first and are
/// reported.
pub(super) fn in_order(files: &[PathBuf]) -> Vec<Source> {
    let mut sources: Vec<_> = files.iter().flat_map(|file| sources(file)).collect();
    sources.sort_by_cached_key(Source::first_date);
    sources
}

fn sources(path: &Path) -> Vec<Source> {
    let name = path.display().to_string();
    let source = |name: String, bytes| Source { name: name.into(), path: path.to_owned(), bytes };
    match package(path) {
        Ok(None) => vec![source(name, Ok(0..u64::MAX))],
        Ok(Some(records)) if records.is_empty() => {
            let what = "this ZIP file is not a WACZ package: it has no WARC files in a folder `archive`";
            vec![source(name, Err(what.to_owned()))]
        }
        Ok(Some(records)) => {
            records.into_iter().map(|(within, bytes)| source(format!("{name}/{within}"), bytes)).collect()
        }
        Err(error) => vec![source(name, Err(unreadable(error)))],
    }
}

/// A file of records within a package: its name, and its byte range or why it cannot be read.
type Packed = (String, Result<Range<u64>, String>);

/// Returns the files of records in a package; `None` if it is not a ZIP file.
fn package(path: &Path) -> io::Result<Option<Vec<Packed>>> {
    let mut start = Vec::new();
    File::open(path)?.take(ZIP_START.len() as u64).read_to_end(&mut start)?;
    if start != ZIP_START {
        return Ok(None);
    }
    let file = BufReader::new(File::open(path)?);
    let mut zip = ZipArchive::new(Metered { file, left: DIRECTORY_BYTES_MAX })?;
    let mut records = Vec::new();
    for place in 0..zip.len() {
        let file = zip.by_index_raw(place)?;
        let name = file.name()?.into_owned();
        if !name.starts_with(RECORDS_FOLDER) || !is_records(&name) {
            continue;
        }
        let bytes = match (file.compression(), file.encrypted(), file.data_start()) {
            (CompressionMethod::Stored, false, Some(start)) => {
                Ok(start..start.saturating_add(file.compressed_size()))
            }
            _ => Err("is compressed or encrypted by the package, which WACZ forbids; unzip the package and import \
                      the files of its folder `archive`"
                .to_owned()),
        };
        records.push((name, bytes));
    }
    refuse_overlaps(&mut records);
    Ok(Some(records))
}

/// Refuses files of records that overlap another file, which could make a package yield far more bytes than it has.
fn refuse_overlaps(records: &mut [Packed]) {
    let start = |(_, bytes): &Packed| bytes.as_ref().map_or(0, |bytes| bytes.start);
    records.sort_by_key(start);
    let mut end = 0;
    for (_, bytes) in records {
        let Ok(range) = bytes else { continue };
        let is_shared = range.start < end;
        end = end.max(range.end);
        if is_shared {
            let what = "overlaps another file of the package; the package is damaged or malicious";
            *bytes = Err(what.to_owned());
        }
    }
}

/// A file from which only a limited number of bytes is read.
struct Metered {
    file: BufReader<File>,
    left: u64,
}

impl Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.left = self.left.checked_sub(count as u64).ok_or_else(|| {
            io::Error::other(format!(
                "the directory of the package is longer than {} MiB; unzip it and import the files of its folder `archive`",
                DIRECTORY_BYTES_MAX >> 20
            ))
        })?;
        Ok(count)
    }
}

impl Seek for Metered {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

fn is_records(name: &str) -> bool {
    [".warc", ".warc.gz", ".warc.zst"].iter().any(|ending| name.ends_with(ending))
}

fn part(path: &Path, bytes: &Range<u64>) -> io::Result<Take<File>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(bytes.start))?;
    Ok(file.take(bytes.end - bytes.start))
}

fn unreadable(error: impl std::fmt::Display) -> String {
    format!("cannot be read: {error}")
}
