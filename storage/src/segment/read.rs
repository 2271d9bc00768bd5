//! Reads any record by its location, from any thread, without touching the rest of its segment.
//!
//! All checksums are verified on the way: a record that differs from what was written is an error and never returned.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use zstd::zstd_safe::{self, DCtx, DDict};

use super::codec::Codec;
use super::error::{IoContext, SegmentError};
use super::name::SegmentName;
use crate::backend::{Disk, DiskFile, OpenMode};
use crate::ids::{Location, SegmentId};
use crate::warc::{self, HttpHead, RecordHeader, parse_fields};

/// Number of segments that are kept open for reading.
const FILES_MAX: usize = 128;
/// Bytes of dictionaries that are kept prepared, unless another limit is set. Preparing one takes milliseconds, so this
/// is enough for the segments of a history of some years.
const DICTIONARIES_BYTES_MAX: usize = 256 << 20;
/// Maximum bytes of an unpacked record.
const RECORD_BYTES_MAX: u64 = super::CONTENT_BYTES_MAX + warc::HEAD_BYTES_MAX as u64 + 4;

/// A record of the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecord {
    /// Where it is stored.
    pub location: Location,
    /// Its header fields.
    pub header: RecordHeader,
    /// Its content block.
    pub content: Bytes,
}

impl StoredRecord {
    /// Returns the fields of an `application/warc-fields` record in order.
    #[must_use]
    pub fn fields(&self) -> Vec<(String, String)> {
        parse_fields(&self.content)
    }

    /// Returns the head of the HTTP message, or a head with just the media type for content without HTTP.
    #[must_use]
    pub fn http_head(&self) -> HttpHead {
        warc::http_head(&self.header, &self.content)
    }

    /// Returns the content, without head and transfer coding if it is an HTTP message.
    #[must_use]
    pub fn payload(&self) -> Bytes {
        warc::payload(&self.header, &self.content)
    }
}

/// Reads records. Cheap to clone and used by many threads at once, even while another process writes.
#[derive(Clone)]
pub struct SegmentReader {
    shared: Arc<ReaderCache>,
}

struct ReaderCache {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    files: Mutex<OpenFiles>,
    contexts: Mutex<Vec<DCtx<'static>>>,
}

#[derive(Default)]
struct OpenFiles {
    open: HashMap<SegmentId, Arc<OpenSegment>>,
    /// Segments with a prepared dictionary, the most recently used one last.
    dictionaries: Vec<(SegmentId, Arc<PreparedDictionary>)>,
    /// Limit on their bytes, if it is not the default.
    dictionaries_max: Option<usize>,
}

/// A dictionary that is prepared for decompression.
struct PreparedDictionary {
    dictionary: DDict<'static>,
    bytes: usize,
}

struct OpenSegment {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    codec: Codec,
    /// The index beside it, if there is one; set at the first request.
    index: OnceLock<Option<IndexFile>>,
}

/// The index beside a segment.
#[derive(Clone, Debug)]
pub(super) struct IndexFile {
    pub(super) file: Arc<dyn DiskFile>,
    pub(super) path: PathBuf,
}

impl std::fmt::Debug for SegmentReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SegmentReader").field("folder", &self.shared.folder).finish_non_exhaustive()
    }
}

/// Locks a mutex even if it is poisoned: a thread that panicked while holding it can only have changed caches.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SegmentReader {
    /// Creates a reader of an archive.
    #[must_use]
    pub fn new(disk: Arc<dyn Disk>, archive: &Path) -> Self {
        Self::in_folder(disk, archive.join(super::FOLDER))
    }

    /// Creates a reader of a folder of segments.
    pub(super) fn in_folder(disk: Arc<dyn Disk>, folder: PathBuf) -> Self {
        let (files, contexts) = (Mutex::default(), Mutex::default());
        Self { shared: Arc::new(ReaderCache { disk, folder, files, contexts }) }
    }

    /// Returns a reader of the same folder with nothing open.
    pub(crate) fn anew(&self) -> Self {
        Self::in_folder(Arc::clone(&self.shared.disk), self.shared.folder.clone())
    }

    /// Reads a record.
    ///
    /// # Errors
    /// When the segment is missing, cannot be read, or holds something else at this location.
    pub fn read(&self, location: Location) -> Result<StoredRecord, SegmentError> {
        self.pieces(location)?.beginning(usize::MAX)
    }

    /// Reads only the head of a record, whose content may be long.
    ///
    /// # Errors
    /// As [`SegmentReader::read`].
    pub fn header(&self, location: Location) -> Result<RecordHeader, SegmentError> {
        Ok(self.pieces(location)?.header().clone())
    }

    /// Returns the bytes of a segment's dictionary, including its tables; `None` if it has none.
    ///
    /// # Errors
    /// When the segment is missing, or its dictionary is damaged.
    pub fn dictionary_bytes(&self, id: SegmentId) -> Result<Option<Vec<u8>>, SegmentError> {
        Ok(self.load_dictionary(id)?.map(|dictionary| dictionary.as_bytes().to_vec()))
    }

    /// Unpacks complete frames of a segment; the inner error describes damage.
    pub(super) fn unpack(
        &self,
        segment: SegmentId,
        packed: &[u8],
    ) -> Result<Result<Vec<u8>, String>, SegmentError> {
        let dictionary = match zstd_safe::get_dict_id_from_frame(packed) {
            None => None,
            Some(_) => Some(self.dictionary(segment)?),
        };
        let mut context = locked(&self.shared.contexts).pop().unwrap_or_default();
        let dictionary = dictionary.as_ref().map(|prepared| &prepared.dictionary);
        let outcome = decompress(&mut context, packed, dictionary);
        locked(&self.shared.contexts).push(context);
        Ok(outcome)
    }

    /// Returns a segment's file and its path.
    pub(super) fn file(&self, id: SegmentId) -> Result<(Arc<dyn DiskFile>, PathBuf), SegmentError> {
        let segment = self.segment(id)?;
        Ok((segment.file.clone(), segment.path.clone()))
    }

    /// Returns the index beside a segment, if there is one.
    pub(super) fn index(&self, id: SegmentId) -> Result<Option<IndexFile>, SegmentError> {
        let segment = self.segment(id)?;
        if segment.index.get().is_none() {
            let name = segment.path.file_name().unwrap_or_default().to_string_lossy();
            let path = segment.path.with_file_name(super::index::file_of(&name));
            let opened = match self.shared.disk.open(&path, OpenMode::Read) {
                Ok(file) => Some(IndexFile { file, path }),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(error).context("open", &path),
            };
            return Ok(segment.index.get_or_init(|| opened).clone());
        }
        Ok(segment.index.get().cloned().flatten())
    }

    /// Returns the compression of a segment.
    pub(super) fn codec(&self, id: SegmentId) -> Result<Codec, SegmentError> {
        Ok(self.segment(id)?.codec)
    }

    /// Sets the bytes of dictionaries that are kept prepared.
    pub(super) fn keep_dictionaries(&self, bytes: usize) {
        locked(&self.shared.files).dictionaries_max = Some(bytes);
    }

    /// Drops a segment from the caches, because it was renamed or removed.
    pub(super) fn forget(&self, segment: SegmentId) {
        let mut files = locked(&self.shared.files);
        files.open.remove(&segment);
        files.dictionaries.retain(|(other, _)| *other != segment);
    }

    fn segment(&self, id: SegmentId) -> Result<Arc<OpenSegment>, SegmentError> {
        if let Some(segment) = locked(&self.shared.files).open.get(&id) {
            return Ok(segment.clone());
        }
        // The segment may be closed, and so renamed, between listing and opening; retry then.
        for _ in 0..3 {
            let entries = self.shared.disk.list(&self.shared.folder).context("list", &self.shared.folder)?;
            let find = |parse: fn(&str) -> Option<SegmentName>| {
                let names = entries.iter().filter_map(|entry| Some((parse(&entry.name)?, &entry.name)));
                names.into_iter().find(|(name, _)| name.id == id)
            };
            // If a rewrite was interrupted, a segment may not have its final name yet.
            let found = find(SegmentName::parse).or_else(|| find(SegmentName::parse_rewritten));
            let (name, file) = found.ok_or(SegmentError::Missing(id))?;
            let path = self.shared.folder.join(file);
            match self.shared.disk.open(&path, OpenMode::Read) {
                Ok(file) => {
                    let segment =
                        Arc::new(OpenSegment { file, path, codec: name.codec, index: OnceLock::new() });
                    let mut files = locked(&self.shared.files);
                    if files.open.len() >= FILES_MAX {
                        files.open.clear();
                    }
                    files.open.insert(id, segment.clone());
                    return Ok(segment);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error).context("open", &path),
            }
        }
        Err(SegmentError::Missing(id))
    }

    fn dictionary(&self, id: SegmentId) -> Result<Arc<PreparedDictionary>, SegmentError> {
        {
            let mut files = locked(&self.shared.files);
            if let Some(place) = files.dictionaries.iter().position(|(other, _)| *other == id) {
                let entry = files.dictionaries.remove(place);
                let dictionary = entry.1.clone();
                files.dictionaries.push(entry);
                return Ok(dictionary);
            }
        }
        let missing =
            || SegmentError::Corrupted { segment: id, offset: 0, what: "the dictionary is missing".into() };
        let dictionary = self.load_dictionary(id)?.ok_or_else(missing)?;
        let bytes = dictionary.as_bytes().len();
        let prepared = dictionary.prepare().ok_or_else(missing)?;
        let prepared = Arc::new(PreparedDictionary { dictionary: prepared, bytes });
        let mut files = locked(&self.shared.files);
        files.dictionaries.push((id, prepared.clone()));
        let mut held: usize = files.dictionaries.iter().map(|(_, prepared)| prepared.bytes).sum();
        let most = files.dictionaries_max.unwrap_or(DICTIONARIES_BYTES_MAX);
        while held > most && files.dictionaries.len() > 1 {
            held -= files.dictionaries.remove(0).1.bytes;
        }
        Ok(prepared)
    }
}

/// Unpacks all frames of a record.
fn decompress(
    context: &mut DCtx<'static>,
    packed: &[u8],
    dictionary: Option<&DDict<'_>>,
) -> Result<Vec<u8>, String> {
    let explain = |code| zstd_safe::get_error_name(code).to_owned();
    let (mut size, mut rest) = (0_u64, packed);
    while !rest.is_empty() {
        let content =
            zstd_safe::get_frame_content_size(rest).ok().flatten().ok_or("a frame has no content size")?;
        size = size.saturating_add(content);
        let length = zstd_safe::find_frame_compressed_size(rest).map_err(explain)?;
        rest = rest.get(length..).unwrap_or_default();
    }
    if size > RECORD_BYTES_MAX {
        return Err(format!("{size} bytes are more than a record can have"));
    }
    let mut record = Vec::with_capacity(size as usize);
    match dictionary {
        Some(dictionary) => context.decompress_using_ddict(&mut record, packed, dictionary),
        None => context.decompress(&mut record, packed),
    }
    .map_err(explain)?;
    Ok(record)
}
