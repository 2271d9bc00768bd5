//! The list of erased URLs, which must not be fetched or imported again.
//!
//! `erased.jsonl` in the archive's folder has a line for each: the SHA-256 of its canonical URL, the URL itself (unless
//! that must be forgotten as well), when it was erased, and why. Like the watches, it is a file outside the state,
//! because the state can be rebuilt and this list cannot. Lifting an erasure removes its line. The last line has the
//! checksum of the others.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use archive_storage::{Digest, State};
use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

use crate::beside;
use crate::files::{self, FileError, WholeFile};

/// Name of the file in the archive's folder.
pub const FILE: &str = "erased.jsonl";

/// Maximum size in bytes, about 4 000 000 URLs; a larger file is refused.
const BYTES_MAX: u64 = 1 << 30;

/// Maximum length of a reason in bytes.
pub const REASON_BYTES_MAX: usize = 1000;

/// Prefix of the name of a page whose URL is forgotten; its digest follows.
pub const FORGOTTEN: &str = "urn:sha256:";

/// Why the list cannot be used. Until that is fixed, nothing may be fetched or imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErasedError {
    /// It cannot be read or written.
    #[error("the list of what was erased, {0}")]
    File(#[from] FileError),
    /// It was there, and is missing, has lost its end or has another checksum.
    #[error(
        "{} is missing, incomplete or damaged, the list of what must not come back: put back a copy of it, or have `archive repair` \
         write it again from the tombstones",
        path.display()
    )]
    Lost {
        /// The file.
        path: PathBuf,
    },
    /// A line is malformed.
    #[error("{}, line {line}: {problem}; nothing is fetched or imported until it is fixed", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
}

/// An erased URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErasedUrl {
    /// SHA-256 of the canonical URL, in hexadecimal.
    pub sha256: String,
    /// The URL, unless it is forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// When it was erased, RFC 3339.
    pub time: String,
    /// Why it was erased.
    pub reason: String,
    /// Who erased it; empty in lists of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
}

/// The list of erased URLs.
#[derive(Debug, Clone, Default)]
pub struct Erased {
    entries: BTreeMap<String, ErasedUrl>,
}

impl Erased {
    /// Reads the list of the archive in `path`; empty if there is no file.
    ///
    /// # Errors
    /// When the file cannot be read or a line is malformed.
    pub fn read(path: &Path) -> Result<Self, ErasedError> {
        let path = path.join(FILE);
        let bytes = files::read_if_there(&path, BYTES_MAX).map_err(FileError::at(&path))?;
        let Some(bytes) = bytes else { return Ok(Self::default()) };
        let Ok(lines) = files::checked(&bytes) else { return Err(ErasedError::Lost { path }) };
        let mut entries = BTreeMap::new();
        for (number, line) in lines_of(lines).enumerate().filter(|(_, line)| !line.is_empty()) {
            let entry: ErasedUrl = serde_json::from_slice(line).map_err(|error| ErasedError::Line {
                path: path.clone(),
                line: number + 1,
                problem: error.to_string(),
            })?;
            entries.insert(entry.sha256.clone(), entry);
        }
        Ok(Self { entries })
    }

    /// As [`Erased::read`], for whoever fetches, imports or changes the list: fails if the archive, whose state this is,
    /// had a list.
    ///
    /// # Errors
    /// As [`Erased::read`], and [`ErasedError::Lost`].
    pub fn of_archive(path: &Path, state: &State) -> Result<Self, ErasedError> {
        if beside::missing(state, path).contains(&FILE) {
            return Err(ErasedError::Lost { path: path.join(FILE) });
        }
        Self::read(path)
    }

    /// The entries of a damaged list that can be read.
    #[must_use]
    pub fn salvaged(path: &Path) -> Self {
        let bytes = files::read_if_there(&path.join(FILE), BYTES_MAX).ok().flatten().unwrap_or_default();
        let entries = lines_of(&bytes).filter_map(|line| serde_json::from_slice::<ErasedUrl>(line).ok());
        Self { entries: entries.map(|entry| (entry.sha256.clone(), entry)).collect() }
    }

    /// The entry of a canonical URL, if it was erased.
    #[must_use]
    pub fn of(&self, url: &str) -> Option<&ErasedUrl> {
        if self.entries.is_empty() { None } else { self.entries.get(&digest_of(url)) }
    }

    /// All entries, sorted by digest.
    pub fn entries(&self) -> impl Iterator<Item = &ErasedUrl> {
        self.entries.values()
    }

    /// Adds a canonical URL, or replaces its entry. The entry omits the URL itself if it is to be `forgotten`.
    pub fn add(&mut self, url: &str, forgotten: bool, time: DateTime<Utc>, (reason, by): (&str, &str)) {
        let sha256 = digest_of(url);
        let entry = ErasedUrl {
            sha256: sha256.clone(),
            url: (!forgotten).then(|| url.to_owned()),
            time: time.to_rfc3339_opts(SecondsFormat::Secs, true),
            reason: reason.to_owned(),
            by: by.to_owned(),
        };
        self.entries.insert(sha256, entry);
    }

    /// Allows a canonical URL, or the digest name of a forgotten one, to be fetched and imported again. Returns whether
    /// it was on the list.
    pub fn lift(&mut self, url: &str) -> bool {
        self.entries.remove(&digest_of(url)).is_some()
    }

    /// Replaces the file of the archive in `path`.
    ///
    /// # Errors
    /// When it cannot be written; the old file then remains.
    pub fn write(&self, path: &Path) -> Result<(), ErasedError> {
        let path = path.join(FILE);
        let written =
            WholeFile::begin(&path).and_then(|file| file.commit_checked_lines(self.entries.values()));
        Ok(written.map_err(FileError::at(&path))?)
    }
}

fn lines_of(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'\n')
}

/// SHA-256 of a canonical URL, in hexadecimal; for a forgotten URL it is taken from its name.
#[must_use]
pub fn digest_of(url: &str) -> String {
    if let Some(digest) = url.strip_prefix(FORGOTTEN) {
        return digest.to_owned();
    }
    let digest = Digest::sha256(url.as_bytes()).to_string();
    digest.strip_prefix("sha256:").unwrap_or(&digest).to_owned()
}

/// The name of a page after its URL is forgotten.
#[must_use]
pub fn forgotten_name(url: &str) -> String {
    format!("{FORGOTTEN}{}", digest_of(url))
}

#[cfg(test)]
mod tests {
    use super::{Erased, FILE, Utc, forgotten_name};

    #[test]
    fn a_url_is_on_the_list_until_it_is_lifted() {
        let folder = tempfile::tempdir().unwrap();
        let mut erased = Erased::read(folder.path()).unwrap();
        erased.add("http://a.test/1", false, Utc::now(), ("asked for", "anna"));
        erased.add("http://a.test/2", true, Utc::now(), ("a court said so", "ben"));
        erased.write(folder.path()).unwrap();
        let text = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        assert!(text.contains("http://a.test/1") && !text.contains("http://a.test/2"));
        let mut erased = Erased::read(folder.path()).unwrap();
        let entry = erased.of("http://a.test/2").unwrap();
        assert_eq!((&*entry.reason, &*entry.by), ("a court said so", "ben"));
        assert!(erased.of("http://a.test/3").is_none());
        assert!(erased.lift(&forgotten_name("http://a.test/2")) && erased.lift("http://a.test/1"));
        assert!(!erased.lift("http://a.test/1"));
        erased.write(folder.path()).unwrap();
        assert_eq!(Erased::read(folder.path()).unwrap().entries().count(), 0);
    }

    #[test]
    fn a_bad_line_is_reported_with_its_number() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), "\n{\"sha256\":\"00\"}\n").unwrap();
        let error = Erased::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("line 2: missing field `time`"), "{error}");
    }
}
