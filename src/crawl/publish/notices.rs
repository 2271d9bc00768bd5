//! Notices from strangers to `archive serve --pings`: IndexNow, sitemap pings, WebSub hubs.
//!
//! When a notice arrives, nothing is trusted and nothing is fetched. The notice is queued on disk, as a file in the
//! folder `pings` of the archive, and the next refresh or crawl processes it ([`super::Pending`]). The file name
//! consists of digests of the host and of the notice's content: a notice that is queued already is not written twice,
//! and the number of notices per host is limited.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use archive_base::files::{self, FileError, WholeFile, make_folder};
use archive_storage::Digest;
use archive_storage::address::canonical;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use url::{Position, Url};

use super::{IndexNow, PublishError, read_url, subscriptions, urls_of};

/// Folder within an archive.
pub const FOLDER: &str = "pings";

/// Maximum number of queued notices; further ones are refused.
pub const NOTICES_MAX: usize = 1000;

/// Maximum number of queued notices per host.
pub const HOST_NOTICES_MAX: usize = 20;

/// Maximum total size of queued notices in bytes.
pub const QUEUE_BYTES_MAX: u64 = 64 << 20;

/// A notice that could not be verified within this time is dropped.
pub const KEPT: TimeDelta = TimeDelta::days(7);

/// Minimum and maximum length of an IndexNow key in characters.
pub const KEY_CHARACTERS: [usize; 2] = [8, 128];

/// Name of a file while it is being written.
const UNFINISHED: &str = "new.part";

/// Why a notice is not queued.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoticeError {
    /// [`NOTICES_MAX`], [`HOST_NOTICES_MAX`] or [`QUEUE_BYTES_MAX`] is reached.
    #[error("too many notices wait; try again after the next refresh")]
    Full,
    /// The queue cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}

impl archive_base::error::Classified for NoticeError {}

/// Channel of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoticeKind {
    /// IndexNow, whose key must be found on the host.
    IndexNow,
    /// `/ping?sitemap=URL`: anybody may send it; it counts only for known sitemaps.
    Sitemap,
    /// A WebSub hub, whose signature was verified on arrival.
    WebSub,
}

impl NoticeKind {
    /// Name of the channel in reports of runs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::IndexNow => "IndexNow",
            Self::Sitemap => "sitemap ping",
            Self::WebSub => "WebSub",
        }
    }
}

/// Where the key of a notice must be found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// Canonical URL of the key file.
    pub at: String,
    /// The key that it must contain.
    pub key: String,
}

/// A notice that pages of a host changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// Time of arrival.
    #[serde(with = "archive_base::instant")]
    pub time: DateTime<Utc>,
    /// Channel of the notice.
    pub kind: NoticeKind,
    /// Canonical URLs, all of one host.
    pub urls: Vec<String>,
    /// The proof that is required before the notice counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

impl Notice {
    /// Reads an IndexNow notice from JSON.
    ///
    /// # Errors
    /// When the notice is invalid.
    pub fn of_json(bytes: &[u8], now: DateTime<Utc>) -> Result<Self, PublishError> {
        let submission =
            serde_json::from_slice(bytes).map_err(|error| PublishError::IndexNow(error.to_string()))?;
        Self::of(&submission, now)
    }

    /// Reads an IndexNow notice from URL parameters.
    ///
    /// # Errors
    /// When the notice is invalid.
    pub fn of_parameters(
        url: &str,
        key: &str,
        location: Option<&str>,
        now: DateTime<Utc>,
    ) -> Result<Self, PublishError> {
        let (url, key_location) = (Some(url.to_owned()), location.map(str::to_owned));
        Self::of(&IndexNow { url, key: key.to_owned(), key_location, ..IndexNow::default() }, now)
    }

    fn of(submission: &IndexNow, now: DateTime<Utc>) -> Result<Self, PublishError> {
        let urls: Vec<Url> = urls_of(submission)?.into_iter().map(|announced| announced.url).collect();
        let Some(first) = urls.first() else { return Err(PublishError::IndexNow("no URL".to_owned())) };
        let host = host_of(first);
        if let Some(other) = urls.iter().find(|url| host_of(url) != host) {
            return Err(PublishError::OtherHost { url: other.to_string(), host: host.to_owned() });
        }
        let key = submission.key.as_str();
        let is_key = (KEY_CHARACTERS[0]..=KEY_CHARACTERS[1]).contains(&key.len())
            && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !is_key {
            return Err(PublishError::Key("a key must have 8 to 128 letters, digits and dashes"));
        }
        let at = match &submission.key_location {
            Some(location) => {
                let at = read_url(location).filter(|at| host_of(at) == host);
                at.ok_or(PublishError::Key("keyLocation must be on the host of the URLs"))?
            }
            None => first
                .join(&format!("/{key}.txt"))
                .map_err(|_| PublishError::Key("the key cannot be a file name"))?,
        };
        // A key file covers its own folder and everything below.
        let folder = at.path().rsplit_once('/').map_or("/", |(folder, _)| folder);
        if !urls.iter().all(|url| url.path().strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))) {
            return Err(PublishError::Key("the URLs must be in the folder of the key file or below it"));
        }
        let proof = Some(Proof { at: canonical(&at), key: key.to_owned() });
        Ok(Self { time: now, kind: NoticeKind::IndexNow, urls: urls.iter().map(canonical).collect(), proof })
    }

    /// Creates a notice from a sitemap ping; `None` if `url` is not a valid URL.
    #[must_use]
    pub fn of_sitemap(url: &str, now: DateTime<Utc>) -> Option<Self> {
        let urls = vec![canonical(&read_url(url)?)];
        Some(Self { time: now, kind: NoticeKind::Sitemap, urls, proof: None })
    }

    /// Creates a notice from a hub that a page, given by its canonical URL, has changed.
    #[must_use]
    pub fn of_hub(page: String, now: DateTime<Utc>) -> Self {
        Self { time: now, kind: NoticeKind::WebSub, urls: vec![page], proof: None }
    }

    /// File name of the notice: it depends on the content, not on the time.
    fn name(&self) -> String {
        let said = serde_json::json!([self.kind, self.urls, self.proof]).to_string();
        format!("{}-{}.json", self.host(), Digest::sha256(said.as_bytes()).short_hex())
    }

    fn host(&self) -> String {
        let url = self.urls.first().and_then(|url| Url::parse(url).ok());
        Digest::sha256(url.as_ref().map_or("", host_of).as_bytes()).short_hex()
    }
}

fn host_of(url: &Url) -> &str {
    &url[Position::BeforeHost..Position::AfterPort]
}

/// Whether a notice was queued, or had been before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeQueued {
    /// It was queued.
    New,
    /// It was queued already.
    Waiting,
}

/// Queues a notice durably. Only one process at a time can do this.
///
/// # Errors
/// When the queue is full or cannot be written.
pub fn enqueue(archive: &Path, notice: &Notice) -> Result<NoticeQueued, NoticeError> {
    let folder = archive.join(FOLDER);
    put(&folder, notice).map_err(FileError::at(&folder))?.ok_or(NoticeError::Full)
}

fn put(folder: &Path, notice: &Notice) -> io::Result<Option<NoticeQueued>> {
    make_folder(folder)?;
    let path = folder.join(notice.name());
    if path.exists() {
        return Ok(Some(NoticeQueued::Waiting));
    }
    let mut file = WholeFile::begin_as(&path, folder.join(UNFINISHED))?;
    let bytes = serde_json::to_vec(notice)?;
    let (mut count, mut of_host, mut total) = (0, 0, bytes.len() as u64);
    for found in names(folder)? {
        count += 1;
        of_host += usize::from(found.starts_with(&notice.host()));
        // A run may have removed it in the meantime.
        total += fs::symlink_metadata(folder.join(found)).map_or(0, |found| found.len());
    }
    if count >= NOTICES_MAX || of_host >= HOST_NOTICES_MAX || total > QUEUE_BYTES_MAX {
        return Ok(None);
    }
    file.write_all(&bytes)?;
    file.commit()?;
    Ok(Some(NoticeQueued::New))
}

fn names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in files::if_there(fs::read_dir(folder))?.into_iter().flatten() {
        names.extend(entry?.file_name().into_string().ok().filter(|name| name.ends_with(".json")));
    }
    names.sort_unstable();
    Ok(names)
}

/// The queued notices with their files, oldest first; `None` in place of a file that is not a notice.
///
/// # Errors
/// When the queue cannot be read.
pub fn queued(archive: &Path) -> io::Result<Vec<(PathBuf, Option<Notice>)>> {
    let folder = archive.join(FOLDER);
    let mut found = Vec::new();
    for name in names(&folder)? {
        let path = folder.join(name);
        let bytes = files::read_if_there(&path, QUEUE_BYTES_MAX)?;
        found.push((path, bytes.and_then(|bytes| serde_json::from_slice::<Notice>(&bytes).ok())));
    }
    found.sort_by_key(|(_, notice)| notice.as_ref().map(|notice| notice.time));
    Ok(found)
}

/// Number of queued notices.
///
/// # Errors
/// When the queue cannot be read.
pub fn waiting_notices(archive: &Path) -> io::Result<usize> {
    Ok(names(&archive.join(FOLDER))?.len())
}

/// Removes queued notices that name any of the URLs, unreadable files, which might name them as well, and the
/// subscriptions to the URLs.
///
/// # Errors
/// When a file cannot be read or removed.
pub fn forget(archive: &Path, urls: &HashSet<String>) -> io::Result<()> {
    for (path, notice) in queued(archive)? {
        if notice.is_none_or(|notice| notice.urls.iter().any(|url| urls.contains(url))) {
            fs::remove_file(path)?;
        }
    }
    subscriptions::forget(archive, urls)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn indexnow(urls: &[&str], key: &str, location: Option<&str>) -> Result<Notice, PublishError> {
        let host = "a.test";
        let json = serde_json::json!({ "host": host, "key": key, "keyLocation": location, "urlList": urls });
        Notice::of_json(json.to_string().as_bytes(), Utc::now())
    }

    #[test]
    fn indexnow_is_read_as_its_documentation_says() {
        let notice = indexnow(&["https://a.test/1", "https://a.test/2#x"], "abcdef-12", None).unwrap();
        assert_eq!(notice.urls, ["https://a.test/1", "https://a.test/2"]);
        assert_eq!(notice.proof.unwrap().at, "https://a.test/abcdef-12.txt");
        let at = "https://a.test/news/key.txt";
        let location = Some(at);
        assert_eq!(indexnow(&["https://a.test/news/1"], "abcdefgh", location).unwrap().proof.unwrap().at, at);
        for outside in ["https://a.test/", "https://a.test/newspaper"] {
            assert!(matches!(indexnow(&[outside], "abcdefgh", location), Err(PublishError::Key(_))));
        }
        let foreign = Some("https://b.test/key.txt");
        assert!(matches!(indexnow(&["https://a.test/"], "abcdefgh", foreign), Err(PublishError::Key(_))));
        let [least, most] = KEY_CHARACTERS;
        for (length, is_key) in [(least - 1, false), (least, true), (most, true), (most + 1, false)] {
            assert_eq!(indexnow(&["https://a.test/"], &"k".repeat(length), None).is_ok(), is_key, "{length}");
        }
        assert!(indexnow(&["https://a.test/"], "../../../etc", None).is_err());
    }

    #[test]
    fn the_queue_is_bounded_and_keeps_nothing_twice() {
        let archive = tempfile::tempdir().unwrap();
        let notice = |host: usize, number: usize| {
            Notice::of_sitemap(&format!("http://h{host}.test/{number}.xml"), Utc::now()).unwrap()
        };
        let put = |host, number| enqueue(archive.path(), &notice(host, number));
        for number in 0..HOST_NOTICES_MAX {
            assert_eq!(put(0, number).unwrap(), NoticeQueued::New);
        }
        assert_eq!(put(0, 0).unwrap(), NoticeQueued::Waiting);
        assert!(matches!(put(0, HOST_NOTICES_MAX), Err(NoticeError::Full)));
        // An unfinished file left by a crash is overwritten.
        fs::write(archive.path().join(FOLDER).join(UNFINISHED), "{\"ti").unwrap();
        for number in HOST_NOTICES_MAX..NOTICES_MAX - 1 {
            fs::write(archive.path().join(FOLDER).join(format!("x{number}.json")), "{}").unwrap();
        }
        assert_eq!(put(1, 0).unwrap(), NoticeQueued::New);
        assert!(matches!(put(2, 0), Err(NoticeError::Full)));
        assert_eq!(queued(archive.path()).unwrap().len(), NOTICES_MAX);
        forget(archive.path(), &HashSet::from(["http://h0.test/3.xml".to_owned()])).unwrap();
        assert_eq!(
            queued(archive.path()).unwrap().len(),
            HOST_NOTICES_MAX,
            "files that are not notices go, too"
        );
    }

    #[test]
    fn the_queue_is_bounded_in_bytes() {
        let archive = tempfile::tempdir().unwrap();
        make_folder(&archive.path().join(FOLDER)).unwrap();
        let filler = fs::File::create(archive.path().join(FOLDER).join("x.json")).unwrap();
        let notice = Notice::of_sitemap("http://a.test/s.xml", Utc::now()).unwrap();
        let length = serde_json::to_vec(&notice).unwrap().len() as u64;
        filler.set_len(QUEUE_BYTES_MAX - length + 1).unwrap();
        assert!(matches!(enqueue(archive.path(), &notice), Err(NoticeError::Full)));
        filler.set_len(QUEUE_BYTES_MAX - length).unwrap();
        assert_eq!(enqueue(archive.path(), &notice).unwrap(), NoticeQueued::New);
    }
}
