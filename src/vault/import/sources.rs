//! The files to read: WARC and ARC files, also those inside WACZ packages.
//!
//! A package stores its records uncompressed (Webrecorder, "Web Archive Collection Zipped" 1.1.1, section 5.2.1), so
//! they are read in place, like a separate file. Some tools deflate them nevertheless, and some put packages into a
//! package.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom, Take};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use archive_storage::warc::{ReadLimits, RecordError, RecordReader};
use chrono::{DateTime, Utc};
use flate2::read::DeflateDecoder;
use zip::{CompressionMethod, ZipArchive};

use super::ImportForm;
use super::made::{self, HttrackMirror, MadeHead};
use super::saved::{self, SavedPage};
use super::signed;

/// Number of records at the start of a file that are searched for a date.
const DATED_WITHIN: usize = 4;

/// Start of ZIP files that are not empty.
const ZIP_START: &[u8] = b"PK\x03\x04";

/// Folder of a package that holds its records.
const RECORDS_FOLDER: &str = "archive/";

/// Ending of the names of packages.
const PACKAGE_ENDING: &str = ".wacz";

/// Maximum number of packages around a package.
const NESTED_MAX: usize = 1;

/// Maximum bytes of a package's directory, about 80 000 files.
const DIRECTORY_BYTES_MAX: u64 = 8 << 20;

/// Bytes of a record's content that are decompressed to find its date.
const DATED_BYTES_MAX: u64 = 64 << 10;

/// Endings of the files of a folder that are imported; what is in them is told by their content.
const ENDINGS: [&str; 9] =
    [".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz", PACKAGE_ENDING, ".cdx", ".cdxj", ".cdx.gz"];

/// What is read, and how.
#[derive(Clone, Copy)]
pub(super) struct SourceOptions<'a> {
    pub(super) files: &'a [PathBuf],
    pub(super) form: ImportForm,
    /// Whether signed packages are read that are not what was signed.
    pub(super) accept_wrong_signatures: bool,
}

/// Replaces folders by the files of records, packages and lists in them. A folder that cannot be read, or has none, stays.
pub(super) fn with_folders(files: &[PathBuf]) -> Vec<PathBuf> {
    let of = |path: &PathBuf| {
        let mut within = if path.is_dir() { made::files_of(path).unwrap_or_default() } else { Vec::new() };
        within.retain(|file| {
            let name = file.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase());
            name.is_some_and(|name| ENDINGS.iter().any(|ending| name.ends_with(ending)))
        });
        if within.is_empty() { vec![path.clone()] } else { within }
    };
    files.iter().flat_map(of).collect()
}

/// A file of records, or one that cannot be read.
pub(super) struct ImportSource {
    /// Name in notes: the path, followed by the path within the package.
    pub(super) name: Arc<str>,
    path: PathBuf,
    /// Byte range of the records in the file, or why they cannot be read.
    bytes: Result<Range<u64>, String>,
    is_deflated: bool,
    made: SourceKind,
    /// Signed packages that the file is in and that no source before has told of, with what is to be told of each.
    pub(super) seals: Vec<(String, String)>,
}

/// What the bytes of a source are.
enum SourceKind {
    /// Records.
    Records,
    /// The end of a block, of which this is the head and the length.
    Block((MadeHead, u64)),
    /// A page in an MHTML file that was saved then.
    Mhtml(DateTime<Utc>),
}

impl ImportSource {
    /// A file that cannot be read, and why.
    fn refused(path: &Path, why: String) -> Self {
        let (name, made) = (path.display().to_string().into(), SourceKind::Records);
        Self { name, path: path.to_owned(), bytes: Err(why), is_deflated: false, made, seals: Vec::new() }
    }

    /// A file that is the end of a block.
    fn made(path: &Path, head: Result<MadeHead, String>) -> Self {
        let length = || std::fs::metadata(path).map(|found| found.len()).map_err(unreadable);
        match head.and_then(|head| Ok((head, length()?))) {
            Ok(block) => {
                let made = SourceKind::Block(block);
                Self { made, bytes: Ok(0..u64::MAX), ..Self::refused(path, String::new()) }
            }
            Err(why) => Self::refused(path, why),
        }
    }

    /// Opens the byte range of the records.
    ///
    /// # Errors
    /// If it cannot be read; a message.
    pub(super) fn open(&self) -> Result<Take<File>, String> {
        let bytes = self.bytes.clone()?;
        part(&self.path, &bytes).map_err(unreadable)
    }

    /// Removes what the package did to the bytes of the range, and makes records of what are none.
    ///
    /// # Errors
    /// If the bytes cannot be read; a message.
    pub(super) fn unpacked<'a>(&self, bytes: impl Read + 'a) -> Result<Box<dyn Read + 'a>, String> {
        let bytes: Box<dyn Read> =
            if self.is_deflated { Box::new(DeflateDecoder::new(bytes)) } else { Box::new(bytes) };
        Ok(match &self.made {
            SourceKind::Records => bytes,
            SourceKind::Block((head, length)) => {
                Box::new(Cursor::new(head.before(*length)).chain(bytes).chain(&b"\r\n\r\n"[..]))
            }
            SourceKind::Mhtml(saved) => {
                Box::new(Cursor::new(saved::records(bytes, *saved).map_err(unreadable)?))
            }
        })
    }

    fn first_date(&self) -> Option<DateTime<Utc>> {
        let bytes = self.bytes.as_ref().ok()?;
        match &self.made {
            SourceKind::Records => {}
            SourceKind::Block((head, _)) => return Some(head.time),
            SourceKind::Mhtml(saved) => return Some(*saved),
        }
        let mut limits = ReadLimits::default();
        limits.content_bytes_max = DATED_BYTES_MAX;
        let source = self.unpacked(part(&self.path, bytes).ok()?).ok()?;
        let records = RecordReader::new(source).with_limits(limits).with_arc();
        records.take(DATED_WITHIN).find_map(|record| match record {
            Ok(record) => record.header.date(),
            // The content was too long to be decompressed.
            Err(RecordError::Broken(place)) => place.header?.date(),
            Err(_) => None,
        })
    }
}

/// Returns the sources in the order of the dates of their first records. Those without a date come first and are
/// reported.
pub(super) fn in_order(options: SourceOptions<'_>) -> Vec<ImportSource> {
    let of = |file: &PathBuf| match options.form {
        ImportForm::Records => sources(file, options.accept_wrong_signatures),
        ImportForm::Folder => or_refused(file, of_folder(file)),
        ImportForm::Httrack => or_refused(file, of_httrack(file)),
        ImportForm::Mhtml => or_refused(file, of_saved(file)),
    };
    let mut sources: Vec<_> = options.files.iter().flat_map(of).collect();
    sources.sort_by_cached_key(ImportSource::first_date);
    sources
}

fn or_refused(path: &Path, sources: io::Result<Vec<ImportSource>>) -> Vec<ImportSource> {
    sources.unwrap_or_else(|error| vec![ImportSource::refused(path, unreadable(error))])
}

/// The documents of a mirrored folder.
fn of_folder(folder: &Path) -> io::Result<Vec<ImportSource>> {
    let files = made::of_mirror(folder)?;
    Ok(files.into_iter().map(|(path, head)| ImportSource::made(&path, head)).collect())
}

/// The answers of a mirror of HTTrack. Documents that the cache has are those that were received; the others are in the
/// mirror.
fn of_httrack(folder: &Path) -> io::Result<Vec<ImportSource>> {
    let cache = HttrackMirror::cache(folder);
    let mirror = HttrackMirror::open(folder)?;
    let window = FileRange::open(&cache, &(0..u64::MAX))?;
    let mut zip = ZipArchive::new(Metered { file: BufReader::new(window), left: DIRECTORY_BYTES_MAX })?;
    let (mut files, mut heads) = (Vec::new(), HashMap::new());
    for place in 0..zip.len() {
        let entry = zip.by_index_raw(place)?;
        let url = entry.name()?.into_owned();
        let head = made::said_of_answer(&cache, entry.header_start()).map_err(unreadable);
        let head = head.and_then(|said| mirror.head(&url, &said));
        let packing = match (entry.compression(), entry.encrypted()) {
            (CompressionMethod::Stored, false) => Ok(PackageContent::Stored),
            (CompressionMethod::Deflated, false) => Ok(PackageContent::Deflated),
            _ => Err("is compressed in a way that HTTrack does not use".to_owned()),
        };
        let start = entry.data_start().unwrap_or_default();
        let bytes = packing.map(|packing| (start..start.saturating_add(entry.compressed_size()), packing));
        heads.insert(url.clone(), (head, entry.size()));
        files.push((url, bytes));
    }
    refuse_overlaps(&mut files);
    let each = files.into_iter().filter_map(|(url, bytes)| {
        let (head, length) = heads.remove(&url)?;
        let name = format!("{}/{url}", cache.display());
        Some(match head.and_then(|(head, file)| Ok((head, file, bytes?))) {
            Ok((head, Some(file), _)) => ImportSource::made(&file, Ok(head)),
            Ok((head, None, (bytes, packing))) => ImportSource {
                name: name.into(),
                path: cache.clone(),
                bytes: Ok(bytes),
                is_deflated: packing == PackageContent::Deflated,
                made: SourceKind::Block((head, length)),
                seals: Vec::new(),
            },
            Err(why) => ImportSource { name: name.into(), ..ImportSource::refused(&cache, why) },
        })
    });
    Ok(each.collect())
}

/// A page that was saved in one file.
fn of_saved(path: &Path) -> io::Result<Vec<ImportSource>> {
    let mut beginning = Vec::new();
    File::open(path)?.take(saved::BEGINNING_BYTES).read_to_end(&mut beginning)?;
    let modified = made::modified(path)?;
    let source = match saved::recognise(&beginning) {
        Some(SavedPage::Html(url, time)) => ImportSource::made(
            path,
            Ok(MadeHead::resource(&url, time.unwrap_or(modified), Some("text/html"))),
        ),
        Some(SavedPage::Mhtml(time)) => {
            let made = SourceKind::Mhtml(time.unwrap_or(modified));
            ImportSource { made, bytes: Ok(0..u64::MAX), ..ImportSource::refused(path, String::new()) }
        }
        None => {
            let what = "it is neither MHTML nor HTML with a comment that says from where it was saved";
            ImportSource::refused(path, what.to_owned())
        }
    };
    Ok(vec![source])
}

fn sources(path: &Path, accepts_all: bool) -> Vec<ImportSource> {
    let name = path.display().to_string();
    let source = |name: String, packed: Result<(Range<u64>, PackageContent), String>| {
        let is_deflated = packed.as_ref().is_ok_and(|(_, packing)| *packing == PackageContent::Deflated);
        let bytes = packed.map(|(bytes, _)| bytes);
        let (made, seals) = (SourceKind::Records, Vec::new());
        ImportSource { name: name.into(), path: path.to_owned(), bytes, is_deflated, made, seals }
    };
    match package(path, &(0..u64::MAX), accepts_all, 0) {
        Ok(None) => vec![source(name, Ok((0..u64::MAX, PackageContent::Stored)))],
        Ok(Some(PackagedRecords { files, .. })) if files.is_empty() => {
            let what = "this ZIP file is not a WACZ package: it has no WARC files in a folder `archive`";
            vec![source(name, Err(what.to_owned()))]
        }
        Ok(Some(PackagedRecords { files, seals })) => {
            let within = |within: &str| format!("{name}/{within}").trim_end_matches('/').to_owned();
            let each = files.into_iter().map(|(file, packed)| source(within(&file), packed));
            let mut sources: Vec<_> = each.collect();
            if let Some(first) = sources.first_mut() {
                first.seals = seals.into_iter().map(|(package, what)| (within(&package), what)).collect();
            }
            sources
        }
        Err(error) => vec![source(name, Err(unreadable(error)))],
    }
}

/// What a package contains in a range of its bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PackageContent {
    /// Records as they are.
    Stored,
    /// Records that the package has compressed.
    Deflated,
    /// Another package.
    Package,
}

/// A file within a package: its name, and where it is or why it cannot be read.
type PackagedFile = (String, Result<(Range<u64>, PackageContent), String>);

/// The files of records in a package.
#[derive(Default)]
struct PackagedRecords {
    files: Vec<PackagedFile>,
    /// What is to be told of the signatures of the package and those in it, each with its name in the package.
    seals: Vec<(String, String)>,
}

/// Returns the files of records in a package that lies within a file, and those of the packages in it; `None` if it is not
/// a ZIP file. `depth` is the number of packages around it.
fn package(
    path: &Path,
    within: &Range<u64>,
    accepts_all: bool,
    depth: usize,
) -> io::Result<Option<PackagedRecords>> {
    let mut start = Vec::new();
    part(path, within)?.take(ZIP_START.len() as u64).read_to_end(&mut start)?;
    if start != ZIP_START {
        return Ok(None);
    }
    let window = FileRange::open(path, within)?;
    let mut zip = ZipArchive::new(Metered { file: BufReader::new(window), left: DIRECTORY_BYTES_MAX })?;
    let mut files = Vec::new();
    for place in 0..zip.len() {
        let file = zip.by_index_raw(place)?;
        let name = file.name()?.into_owned();
        let is_package = depth < NESTED_MAX && name.ends_with(PACKAGE_ENDING);
        if !is_package && (!name.starts_with(RECORDS_FOLDER) || !is_records(&name)) {
            continue;
        }
        let packing = match (file.compression(), file.encrypted()) {
            (CompressionMethod::Stored, false) if is_package => Some(PackageContent::Package),
            (CompressionMethod::Stored, false) => Some(PackageContent::Stored),
            (CompressionMethod::Deflated, false) if !is_package => Some(PackageContent::Deflated),
            _ => None,
        };
        let packed = packing.zip(file.data_start()).map(|(packing, start)| {
            (absolute(within, &(start..start.saturating_add(file.compressed_size()))), packing)
        });
        let why = "is compressed or encrypted by the package, which WACZ forbids; unzip the package and import the files of \
                   its folder `archive`";
        files.push((name, packed.ok_or_else(|| why.to_owned())));
    }
    refuse_overlaps(&mut files);
    let mut records = PackagedRecords::default();
    let names = files.iter().map(|(name, _)| name.as_str());
    match signed::examine(&mut zip, names, |range| part(path, &absolute(within, &range))) {
        None => {}
        Some(Ok(who)) => records.seals.push((String::new(), who)),
        Some(Err(why)) if accepts_all => {
            records.seals.push((String::new(), format!("{why}; imported all the same")));
        }
        Some(Err(why)) => {
            let what = format!("{why}; nothing of it is imported without --accept-wrong-signatures");
            return Ok(Some(PackagedRecords { files: vec![(String::new(), Err(what))], ..records }));
        }
    }
    for (name, packed) in files {
        match packed {
            Ok((range, PackageContent::Package)) => match package(path, &range, accepts_all, depth + 1) {
                Ok(inner) => {
                    let PackagedRecords { files, seals } = inner.unwrap_or_default();
                    let in_it = |within: String| format!("{name}/{within}");
                    records.files.extend(files.into_iter().map(|(within, packed)| (in_it(within), packed)));
                    records.seals.extend(seals.into_iter().map(|(within, what)| (in_it(within), what)));
                }
                Err(error) => records.files.push((name, Err(unreadable(error)))),
            },
            packed => records.files.push((name, packed)),
        }
    }
    Ok(Some(records))
}

/// Returns where a range of a part of a file is in the file.
fn absolute(part: &Range<u64>, range: &Range<u64>) -> Range<u64> {
    let place = |at: u64| part.start.saturating_add(at).min(part.end);
    place(range.start)..place(range.end)
}

/// Refuses files that overlap another file, which could make a package yield far more bytes than it has.
fn refuse_overlaps(files: &mut [PackagedFile]) {
    let start = |(_, packed): &PackagedFile| packed.as_ref().map_or(0, |(bytes, _)| bytes.start);
    files.sort_by_key(start);
    let mut end = 0;
    for (_, packed) in files {
        let Ok((range, _)) = packed else { continue };
        let is_shared = range.start < end;
        end = end.max(range.end);
        if is_shared {
            let what = "overlaps another file of the package; the package is damaged or malicious";
            *packed = Err(what.to_owned());
        }
    }
}

/// A range of a file as a file of its own.
pub(super) struct FileRange {
    file: File,
    range: Range<u64>,
    /// Position in the range.
    at: u64,
}

impl FileRange {
    fn open(path: &Path, range: &Range<u64>) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let end = range.end.min(file.metadata()?.len());
        file.seek(SeekFrom::Start(range.start))?;
        Ok(Self { file, range: range.start.min(end)..end, at: 0 })
    }
}

impl Read for FileRange {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = (self.range.end - self.range.start).saturating_sub(self.at);
        let count = (&mut self.file).take(left).read(buffer)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for FileRange {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => (self.range.end - self.range.start).checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        let at = at.ok_or(io::ErrorKind::InvalidInput)?;
        self.file.seek(SeekFrom::Start(self.range.start.saturating_add(at)))?;
        self.at = at;
        Ok(at)
    }
}

/// A file from which only a limited number of bytes is read.
pub(super) struct Metered {
    file: BufReader<FileRange>,
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
