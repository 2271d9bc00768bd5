//! WACZ (Webrecorder, "Web Archive Collection Zipped" 1.1.1): a ZIP file with records, a compressed index, a list of
//! pages and the digests of these files.
//!
//! Records are written directly into the ZIP file, which stores them uncompressed, as the format demands, so that a
//! reader can request any record by its offset. Only their index is kept in memory.

use std::io::{self, Seek, Write};

use archive_base::program;
use archive_storage::warc::{HttpHead, RecordType, parse_fields, split};
use archive_storage::{Digest, segment};
use chrono::{DateTime, SecondsFormat, Utc};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::warc::{self, RecordPacking, WrittenCapture};
use super::{ExportError, ExportPart, Exported, lost};

/// Version of the format.
const VERSION: &str = "1.1.1";

/// Name of the file of records in the package.
const RECORDS: &str = "data.warc.gz";

/// Maximum bytes of memory for the index and the list of pages of a package, if nodes send parts of it.
pub(super) const LISTS_BYTES_MAX: usize = 4 << 30;

/// Bytes of memory per capture in addition to its texts.
const LISTED_BYTES: usize = 128;

/// Number of index lines that are compressed together (the format's ZipNum shards).
const LINES_PER_BLOCK: usize = 1024;

/// Writes selections of archives as one package, with the records of one archive after those of the other.
pub(super) fn write<W: Write + Seek>(
    parts: &[ExportPart<'_>],
    zip: ZipWriter<W>,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported, ExportError> {
    let mut package = Package { zip, resources: Vec::new() };
    let (mut index, mut pages) = (Vec::new(), Vec::new());
    let mut room = ListRoom::of(parts);
    let mut each = |written: &WrittenCapture<'_>| {
        let (line, page) = (
            segment::index_line(written.records, written.offset, written.length, RECORDS),
            PackagePage::of(written),
        );
        room.take(line.as_ref().map_or(0, String::len) + page.as_ref().map_or(0, PackagePage::bytes))?;
        index.extend(line);
        pages.extend(page);
        Ok(())
    };
    let mut exported = Exported::default();
    package.add(&format!("archive/{RECORDS}"), |out| {
        exported = warc::write(parts, (RecordPacking::Gzip, None), out, &mut each, progress)?;
        Ok(())
    })?;
    index.sort_unstable();
    let (packed, blocks) = compress(&index).map_err(lost)?;
    package.add("indexes/index.cdx.gz", |out| out.write_all(&packed).map_err(lost))?;
    package.add("indexes/index.idx", |out| out.write_all(blocks.as_bytes()).map_err(lost))?;
    package.add("pages/pages.jsonl", |out| write_pages(&pages, out).map_err(lost))?;
    let title = parts.iter().map(ExportPart::called).collect::<Vec<_>>().join(", ");
    let description = Description {
        profile: "data-package",
        title: &title,
        description: parts.first().and_then(ExportPart::words),
        wacz_version: VERSION,
        software: program::PRODUCT,
        created: Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true),
        resources: &package.resources,
    };
    let description = serde_json::to_vec_pretty(&description).map_err(|error| lost(error.into()))?;
    let digest =
        DescriptionDigest { path: "datapackage.json", hash: Digest::sha256(&description).to_string() };
    let digest = serde_json::to_vec_pretty(&digest).map_err(|error| lost(error.into()))?;
    package.add("datapackage.json", |out| out.write_all(&description).map_err(lost))?;
    package.add("datapackage-digest.json", |out| out.write_all(&digest).map_err(lost))?;
    package.zip.finish()?.flush().map_err(lost)?;
    Ok(exported)
}

/// Memory for the index and the list of pages of a package. It is limited if machines that may not be trusted fill it.
struct ListRoom {
    left: usize,
}

impl ListRoom {
    fn of(parts: &[ExportPart<'_>]) -> Self {
        let is_bounded = parts.iter().any(|part| matches!(part, ExportPart::Node(_)));
        Self { left: if is_bounded { LISTS_BYTES_MAX } else { usize::MAX } }
    }

    fn take(&mut self, bytes: usize) -> Result<(), ExportError> {
        self.left = self.left.checked_sub(bytes + LISTED_BYTES).ok_or(ExportError::LongPackage)?;
        Ok(())
    }
}

/// An output that drops everything after its first failure. A dropped `ZipWriter` still writes its directory, and would
/// print an error if it could not.
pub(super) struct UntilFailure<W> {
    out: W,
    /// The position as if nothing had failed, which the writer relies on.
    position: u64,
    has_failed: bool,
}

impl<W> UntilFailure<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, position: 0, has_failed: false }
    }

    fn pass<T>(&mut self, dropped: T, write: impl FnOnce(&mut W) -> io::Result<T>) -> io::Result<T> {
        if self.has_failed {
            return Ok(dropped);
        }
        let written = write(&mut self.out);
        self.has_failed = written.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::Interrupted);
        written
    }
}

impl<W: Write> Write for UntilFailure<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.pass(bytes.len(), |out| out.write(bytes))?;
        self.position += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pass((), W::flush)
    }
}

impl<W: Seek> Seek for UntilFailure<W> {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        let dropped = match to {
            io::SeekFrom::Start(position) => position,
            io::SeekFrom::Current(by) => self.position.saturating_add_signed(by),
            io::SeekFrom::End(_) => self.position,
        };
        self.position = self.pass(dropped, |out| out.seek(to))?;
        Ok(self.position)
    }
}

/// The ZIP file that is being written.
struct Package<W: Write + Seek> {
    zip: ZipWriter<W>,
    resources: Vec<Resource>,
}

impl<W: Write + Seek> Package<W> {
    fn add(
        &mut self,
        path: &str,
        content: impl FnOnce(&mut dyn Write) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        // All files are small or already compressed; one may be longer than 4 GiB.
        let options =
            SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
        self.zip.start_file(path, options)?;
        let mut digested = Digested { out: &mut self.zip, hasher: Sha256::new(), bytes: 0 };
        content(&mut digested)?;
        let Digested { hasher, bytes, .. } = digested;
        let hash = Digest::from_sha256(hasher.finalize().into()).to_string();
        let name = path.rsplit('/').next().unwrap_or(path).to_owned();
        self.resources.push(Resource { name, path: path.to_owned(), hash, bytes });
        Ok(())
    }
}

/// An output that hashes what is written.
struct Digested<W> {
    out: W,
    hasher: Sha256,
    bytes: u64,
}

impl<W: Write> Write for Digested<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let count = self.out.write(buffer)?;
        self.hasher.update(buffer.get(..count).unwrap_or_default());
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[derive(Serialize)]
struct Description<'a> {
    profile: &'static str,
    title: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    wacz_version: &'static str,
    software: &'static str,
    created: String,
    resources: &'a [Resource],
}

#[derive(Serialize)]
struct Resource {
    name: String,
    path: String,
    hash: String,
    bytes: u64,
}

#[derive(Serialize)]
struct DescriptionDigest {
    path: &'static str,
    hash: String,
}

/// An entry of the list of pages.
#[derive(Serialize)]
struct PackagePage {
    id: String,
    url: String,
    ts: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
}

impl PackagePage {
    /// Bytes of the texts.
    fn bytes(&self) -> usize {
        self.id.len() + self.url.len() + self.ts.len() + self.title.as_ref().map_or(0, String::len)
    }

    /// Returns the entry of an HTML page that was fetched successfully; `None` for other captures.
    fn of(written: &WrittenCapture<'_>) -> Option<Self> {
        let main = written.records.first()?;
        let head = (main.header.record_type() == RecordType::Response)
            .then(|| HttpHead::parse(&split(&main.content).0));
        let is_html = match &head {
            Some(head) => {
                head.status() == Some(200) && head.media_type().is_some_and(|kind| kind.contains("html"))
            }
            None => {
                matches!(main.header.record_type(), RecordType::Resource | RecordType::Conversion)
                    && main.header.get("Content-Type").is_some_and(|kind| kind.starts_with("text/html"))
            }
        };
        if !is_html {
            return None;
        }
        let time: DateTime<Utc> = main.header.date()?;
        let fields = written.records.last().map(|last| parse_fields(&last.content)).unwrap_or_default();
        Some(Self {
            id: main.header.record_id()?.trim_start_matches("urn:uuid:").to_owned(),
            url: main.header.target_uri()?.to_owned(),
            ts: time.to_rfc3339_opts(SecondsFormat::AutoSi, true),
            title: fields.into_iter().find(|(name, _)| name == "title").map(|(_, title)| title),
        })
    }
}

fn write_pages(pages: &[PackagePage], out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"{\"format\": \"json-pages-1.0\", \"id\": \"pages\", \"title\": \"All Pages\"}\n")?;
    for page in pages {
        serde_json::to_writer(&mut *out, page)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Returns the index in blocks that can be decompressed individually, and the list of the blocks.
fn compress(lines: &[String]) -> io::Result<(Vec<u8>, String)> {
    #[derive(Serialize)]
    struct ZipBlock {
        offset: usize,
        length: usize,
        digest: String,
    }
    let mut packed = Vec::new();
    let mut blocks =
        String::from("!meta 0 {\"format\": \"cdxj-gzip-1.0\", \"filename\": \"index.cdx.gz\"}\n");
    for lines in lines.chunks(LINES_PER_BLOCK) {
        let offset = packed.len();
        let mut packer = GzEncoder::new(&mut packed, Compression::default());
        for line in lines {
            packer.write_all(line.as_bytes())?;
            packer.write_all(b"\n")?;
        }
        packer.finish()?;
        let member = packed.get(offset..).unwrap_or_default();
        let digest = Digest::sha256(member).to_string();
        let block = serde_json::to_string(&ZipBlock { offset, length: member.len(), digest })?;
        let first = lines.first().map(String::as_str).unwrap_or_default();
        let key = first.find('{').and_then(|json| first.get(..json)).unwrap_or_default();
        blocks.push_str(&format!("{key}{block}\n"));
    }
    Ok((packed, blocks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_of_a_package_are_as_long_as_the_limit_and_no_longer() {
        let mut room = ListRoom { left: 2 * LISTED_BYTES + 7 };
        room.take(3).unwrap();
        room.take(4).unwrap();
        assert!(matches!(room.take(0), Err(ExportError::LongPackage)));
        assert_eq!(ListRoom::of(&[]).left, usize::MAX, "what folders fill is not limited");
    }
}
