//! Records made of what is no file of records: folders of HTTrack and wget, and pages saved in one file.
//!
//! Each file of a folder becomes a source of its own, which is read as a WARC record: a head, the bytes of the file, line
//! ends. So a page of another tool has the limits, the notes and the way into the archive that records have. What the tool
//! did not keep is not made up: `storage/FORMAT.md` says what is known.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

use archive_base::files;
use archive_storage::warc::HttpHead;
use chrono::{DateTime, NaiveDateTime, NaiveTime, SecondsFormat, TimeDelta, Utc};
use url::Url;

/// Maximum number of files of a folder, and folders within it.
const FILES_MAX: usize = 200_000;
const DEPTH_MAX: usize = 64;

/// Maximum bytes of HTTrack's list of files, and of the file with its start.
const LIST_BYTES_MAX: u64 = 64 << 20;
const START_BYTES_MAX: u64 = 64 << 10;

/// Fields of HTTrack's cache that were fields of the answer.
const ANSWERED: [&str; 4] = ["Last-Modified", "Etag", "Location", "Content-Disposition"];

/// Media types by the ending of a file, where a folder does not state them.
const TYPES: [(&str, &str); 23] = [
    ("html", "text/html"),
    ("htm", "text/html"),
    ("xhtml", "application/xhtml+xml"),
    ("php", "text/html"),
    ("asp", "text/html"),
    ("css", "text/css"),
    ("js", "text/javascript"),
    ("mjs", "text/javascript"),
    ("json", "application/json"),
    ("xml", "application/xml"),
    ("txt", "text/plain"),
    ("csv", "text/csv"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("svg", "image/svg+xml"),
    ("ico", "image/vnd.microsoft.icon"),
    ("woff2", "font/woff2"),
    ("woff", "font/woff"),
    ("mp4", "video/mp4"),
];

/// The head of a record that is made, without its length.
#[derive(Debug, Clone)]
pub(super) struct MadeHead {
    pub(super) time: DateTime<Utc>,
    fields: String,
    /// The beginning of the block, which is not in the file.
    block: String,
}

impl MadeHead {
    /// A document of which nothing is known but where it was, when it was there and what it is.
    pub(super) fn resource(url: &str, time: DateTime<Utc>, kind: Option<&str>) -> Self {
        let kind = kind.map_or(String::new(), |kind| format!("Content-Type: {}\r\n", one_line(kind)));
        Self::of("resource", url, time, &kind, String::new())
    }

    fn of(record_type: &str, url: &str, time: DateTime<Utc>, more: &str, block: String) -> Self {
        let date = time.to_rfc3339_opts(SecondsFormat::Secs, true);
        let url = one_line(url);
        let fields =
            format!("WARC-Type: {record_type}\r\nWARC-Target-URI: {url}\r\nWARC-Date: {date}\r\n{more}");
        Self { time, fields, block }
    }

    /// Returns the bytes before the file's, if that has this length.
    pub(super) fn before(&self, length: u64) -> Vec<u8> {
        let Self { fields, block, .. } = self;
        let length = block.len() as u64 + length;
        format!("WARC/1.1\r\n{fields}Content-Length: {length}\r\n\r\n{block}").into_bytes()
    }
}

fn one_line(text: &str) -> String {
    text.replace(['\r', '\n'], " ")
}

/// A file that is a page or a part of one, and its record's head or why there is none.
pub(super) type MadeFile = (PathBuf, Result<MadeHead, String>);

/// Returns the files of a mirrored folder, whose paths are the URLs: `HOST/PATH?QUERY`, or `SCHEME/HOST/PATH?QUERY`.
///
/// # Errors
/// If the folder cannot be read or has too many files.
pub(super) fn of_mirror(folder: &Path) -> io::Result<Vec<MadeFile>> {
    let each = files_of(folder)?.into_iter().map(|path| {
        let head = url_of(folder, &path)
            .ok_or_else(|| "its path is no URL: give the folder that holds the folders of hosts".to_owned());
        let head = head.and_then(|url| {
            let time = modified(&path).map_err(|error| error.to_string())?;
            Ok(MadeHead::resource(url.as_str(), time, media_type(&path)))
        });
        (path, head)
    });
    Ok(each.collect())
}

/// Returns the files of a folder and the folders in it, in the order of their names.
///
/// # Errors
/// If it cannot be read or has too many files.
pub(super) fn files_of(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    collect(folder, 0, &mut found)?;
    Ok(found)
}

/// When a file was last changed: mirrors set what the server said, or else when they wrote it.
pub(super) fn modified(path: &Path) -> io::Result<DateTime<Utc>> {
    fs::metadata(path)?.modified().map(Into::into)
}

fn collect(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_unstable_by_key(fs::DirEntry::file_name);
    for entry in entries {
        // Links may lead out of the folder, and around in circles.
        let kind = entry.file_type()?;
        if kind.is_dir() && depth < DEPTH_MAX {
            collect(&entry.path(), depth + 1, found)?;
        } else if kind.is_file() {
            found.push(entry.path());
        }
        if found.len() > FILES_MAX {
            let what = format!("it has more than {FILES_MAX} files; import its folders one by one");
            return Err(io::Error::other(what));
        }
    }
    Ok(())
}

fn url_of(folder: &Path, path: &Path) -> Option<Url> {
    let parts: Vec<&str> =
        path.strip_prefix(folder).ok()?.iter().map(|part| part.to_str()).collect::<Option<_>>()?;
    let (scheme, parts) = match parts.split_first()? {
        (&scheme @ ("http" | "https"), rest) if rest.len() > 1 => (scheme, rest),
        _ => ("http", &parts[..]),
    };
    let (host, path) = parts.split_first().filter(|(_, path)| !path.is_empty())?;
    let mut url = Url::parse(&format!("{scheme}://{host}/")).ok()?;
    let path = path.join("/");
    let (path, query) =
        path.split_once('?').map_or((path.as_str(), None), |(path, query)| (path, Some(query)));
    // A mirror names what an address of a folder showed.
    url.set_path(
        path.strip_suffix("index.html").filter(|rest| rest.is_empty() || rest.ends_with('/')).unwrap_or(path),
    );
    url.set_query(query);
    Some(url)
}

fn media_type(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_str()?;
    let (_, ending) = name.split('?').next().unwrap_or_default().rsplit_once('.')?;
    TYPES.iter().find(|(known, _)| known.eq_ignore_ascii_case(ending)).map(|(_, kind)| *kind)
}

/// A mirror of HTTrack: a cache with the answers, and the files.
pub(super) struct HttrackMirror {
    folder: PathBuf,
    /// When it began. HTTrack writes dates and times of its machine's clock; they are taken as UTC.
    began: DateTime<Utc>,
    /// When each URL was fetched.
    fetched: HashMap<String, NaiveTime>,
}

impl HttrackMirror {
    /// Where the cache of a mirror is.
    pub(super) fn cache(folder: &Path) -> PathBuf {
        folder.join("hts-cache").join("new.zip")
    }

    /// # Errors
    /// If there is no cache, or the lists beside it cannot be read.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        if !Self::cache(folder).is_file() {
            return Err(io::Error::other(
                "it has no cache of HTTrack (hts-cache/new.zip); name the folder of a mirror",
            ));
        }
        let beside = |name| folder.join("hts-cache").join(name);
        let started = files::read_if_there(&beside("doit.log"), START_BYTES_MAX)?.unwrap_or_default();
        let started = String::from_utf8_lossy(&started).into_owned();
        let began = started.split_once("automatically on ").and_then(|(_, rest)| {
            let date = rest.split_once(", ")?.1.split_once(", ")?.0;
            Some(NaiveDateTime::parse_from_str(date, "%d %b %Y %H:%M:%S").ok()?.and_utc())
        });
        let list = files::read_if_there(&beside("new.txt"), LIST_BYTES_MAX)?.unwrap_or_default();
        let fetched = String::from_utf8_lossy(&list).lines().filter_map(fetched_line).collect();
        let began = began.map_or_else(|| modified(&Self::cache(folder)), Ok)?;
        Ok(Self { folder: folder.to_owned(), began, fetched })
    }

    fn time(&self, url: &str) -> DateTime<Utc> {
        let Some(time) = self.fetched.get(url) else { return self.began };
        let same_day = self.began.date_naive().and_time(*time).and_utc();
        if same_day < self.began { same_day + TimeDelta::days(1) } else { same_day }
    }

    /// Returns the head of an entry's record, and the file with its document if that is not in the cache. `said` is what
    /// the cache says of the answer.
    pub(super) fn head(&self, url: &str, said: &[u8]) -> Result<(MadeHead, Option<PathBuf>), String> {
        let head = HttpHead::parse(said);
        let field = |name| head.get(name).map(one_line);
        if head.status().is_none() {
            return Err("the cache does not say what was answered".to_owned());
        }
        let url = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
        let file = field("X-Save").filter(|_| field("X-In-Cache").as_deref() != Some("1"));
        let file = file.and_then(|name| self.file(&name));
        let is_lost = file.is_none() && field("X-In-Cache").as_deref() != Some("1");
        let mut answer = format!("{}\r\n", one_line(&head.first_line));
        if let Some(kind) = field("Content-Type") {
            let charset = field("X-Charset").map_or(String::new(), |charset| format!("; charset={charset}"));
            answer += &format!("Content-Type: {kind}{charset}\r\n");
        }
        for (name, value) in ANSWERED.into_iter().filter_map(|name| Some((name, field(name)?))) {
            answer += &format!("{name}: {value}\r\n");
        }
        let mut more = "Content-Type: application/http; msgtype=response\r\n".to_owned();
        if is_lost && field("X-Size").is_some_and(|size| size != "0") {
            more += "WARC-Truncated: unspecified\r\n";
        }
        Ok((MadeHead::of("response", &url, self.time(&url), &more, answer + "\r\n"), file))
    }

    /// Returns a file of the mirror that is there; its name must not lead out of it.
    fn file(&self, name: &str) -> Option<PathBuf> {
        let name = Path::new(name);
        let is_inside = name.components().all(|part| matches!(part, Component::Normal(_)));
        let path = self.folder.join(name);
        (is_inside && fs::symlink_metadata(&path).is_ok_and(|found| found.is_file())).then_some(path)
    }
}

/// Reads the URL and the time of day of a line of HTTrack's list.
fn fetched_line(line: &str) -> Option<(String, NaiveTime)> {
    let mut columns = line.split('\t');
    let time = NaiveTime::parse_from_str(columns.next()?, "%H:%M:%S").ok()?;
    let url = columns.nth(6)?;
    Some((if url.contains("://") { url.to_owned() } else { format!("http://{url}") }, time))
}

/// Returns what HTTrack's cache says of the answer whose entry begins at an offset: it is in an extra field that is none.
///
/// # Errors
/// If the file cannot be read.
pub(super) fn said_of_answer(cache: &Path, entry: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(cache)?;
    file.seek(SeekFrom::Start(entry))?;
    // Lengths of the name and of the extra field, at the end of the local head (APPNOTE.TXT 4.3.7).
    let mut head = [0; 30];
    file.read_exact(&mut head)?;
    let [.., n0, n1, e0, e1] = head;
    file.seek_relative(i64::from(u16::from_le_bytes([n0, n1])))?;
    let mut said = vec![0; usize::from(u16::from_le_bytes([e0, e1]))];
    file.read_exact(&mut said)?;
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_mirrors_are_urls() {
        for (path, url) in [
            ("a.test/index.html", Some("http://a.test/")),
            ("a.test/b/index.html", Some("http://a.test/b/")),
            ("a.test/my-index.html", Some("http://a.test/my-index.html")),
            ("a.test:8080/x y.php?id=3&x= y", Some("http://a.test:8080/x%20y.php?id=3&x=%20y")),
            ("https/a.test/100%.png", Some("https://a.test/100%.png")),
            ("robots.txt", None),
            ("no host/x", None),
        ] {
            let found = url_of(Path::new("/m"), &Path::new("/m").join(path));
            assert_eq!(found.as_ref().map(Url::as_str), url, "{path}");
        }
    }
}
