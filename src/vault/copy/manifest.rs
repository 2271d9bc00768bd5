//! Manifests of copies.
//!
//! A manifest consists of JSON lines: a head, the files in the order of their paths, and the SHA-256 of all bytes
//! before. It comes from another machine, so paths that lead out of the archive's folder are refused.

use std::collections::BTreeMap;

use archive_base::remote::{self, RemoteError};
use archive_storage::Digest;
use bytes::Bytes;
use object_store::path::Path as ObjectPath;
use serde::{Deserialize, Serialize};

use super::{CopyError, Remote};

/// Version of the format of manifests and objects.
const FORMAT: u32 = 1;

/// Maximum number of files of a copy.
pub const FILES_MAX: usize = 1_000_000;

/// Maximum bytes of a manifest.
pub(crate) const MANIFEST_BYTES_MAX: u64 = 256 << 20;

/// Maximum bytes of a file's path in the archive, and of one name in it.
pub const PATH_BYTES_MAX: usize = 1024;
const NAME_BYTES_MAX: usize = 255;

/// Maximum depth of nested folders.
const DEPTH_MAX: usize = 16;

/// Maximum bytes of a file, which is the size limit of an object.
const FILE_BYTES_MAX: u64 = 5 << 40;

/// Maximum characters of the random texts and the time in a manifest.
const TEXT_CHARACTERS_MAX: usize = 64;

const MANIFESTS: &str = "manifests";
const OBJECTS: &str = "objects";
const ENDING: &str = ".jsonl";

/// First line of a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestHead {
    format: u32,
    number: u64,
    series: String,
    copy: String,
    time: String,
    captures: u64,
    files: usize,
}

/// A file of a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CopiedFile {
    /// Path in the archive's folder, separated by `/`.
    pub path: String,
    /// Number of bytes.
    pub bytes: u64,
    /// SHA-256 in hexadecimal.
    pub sha256: String,
    /// Number of the copy that uploaded the file.
    pub copy: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestCheck {
    sha256: String,
}

/// Manifest of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Number of the copy; copies in one place are numbered from 1.
    pub number: u64,
    /// Random text shared by all copies of an archive in one place.
    pub series: String,
    /// Random text of this copy.
    pub copy: String,
    /// When the copy was made, RFC 3339.
    pub time: String,
    /// Number of captures in the copy.
    pub captures: u64,
    /// The files, in the order of their paths.
    pub files: Vec<CopiedFile>,
}

impl Manifest {
    /// Bytes of all files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    pub(super) fn encode(&self) -> Result<Bytes, serde_json::Error> {
        let mut text = Vec::new();
        let head = ManifestHead {
            format: FORMAT,
            number: self.number,
            series: self.series.clone(),
            copy: self.copy.clone(),
            time: self.time.clone(),
            captures: self.captures,
            files: self.files.len(),
        };
        serde_json::to_writer(&mut text, &head)?;
        for file in &self.files {
            text.push(b'\n');
            serde_json::to_writer(&mut text, file)?;
        }
        text.push(b'\n');
        let check = ManifestCheck { sha256: hex(&Digest::sha256(&text)) };
        serde_json::to_writer(&mut text, &check)?;
        text.push(b'\n');
        Ok(text.into())
    }

    /// Parses the manifest of copy `number`.
    pub(super) fn decode(bytes: &[u8], number: u64) -> Result<Self, String> {
        let whole = bytes.strip_suffix(b"\n").ok_or("its last line has no end")?;
        let last = whole.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let (text, check) = whole.split_at(last);
        let check: ManifestCheck =
            serde_json::from_slice(check).map_err(|error| format!("its last line: {error}"))?;
        if check.sha256 != hex(&Digest::sha256(text)) {
            return Err("it is damaged: its digest does not match".to_owned());
        }
        let mut lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let head = lines.next().ok_or("it is empty")?;
        let head: ManifestHead =
            serde_json::from_slice(head).map_err(|error| format!("its first line: {error}"))?;
        if head.format != FORMAT {
            return Err(format!("its format is {}; this program knows {FORMAT}", head.format));
        }
        if head.number != number || head.files > FILES_MAX {
            return Err(format!("it says that it is copy {} of {} files", head.number, head.files));
        }
        if [&head.series, &head.copy, &head.time].iter().any(|text| !is_plain(text)) {
            return Err("a text in its first line is invalid".to_owned());
        }
        let mut files: Vec<CopiedFile> = Vec::new();
        for (line, position) in lines.zip(2..) {
            let wrong = |problem: String| format!("line {position}: {problem}");
            let entry: CopiedFile = serde_json::from_slice(line).map_err(|error| wrong(error.to_string()))?;
            entry.check(number).map_err(wrong)?;
            if files.last().is_some_and(|before| before.path >= entry.path) {
                return Err(wrong("the files are not in the order of their paths".to_owned()));
            }
            files.push(entry);
            if files.len() > head.files {
                break;
            }
        }
        if files.len() != head.files {
            return Err(format!("it does not list the {} files that its first line announces", head.files));
        }
        let ManifestHead { series, copy, time, captures, .. } = head;
        Ok(Self { number, series, copy, time, captures, files })
    }
}

impl CopiedFile {
    /// Checks an entry in the manifest of copy `number`.
    fn check(&self, number: u64) -> Result<(), String> {
        check_path(&self.path)?;
        let is_digest = self.sha256.len() == 64
            && self.sha256.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        if !is_digest {
            return Err("the digest is invalid".to_owned());
        }
        if self.bytes > FILE_BYTES_MAX {
            return Err(format!("{} bytes are more than a file may have", self.bytes));
        }
        if self.copy == 0 || self.copy > number {
            return Err(format!("it cannot come from copy {}", self.copy));
        }
        Ok(())
    }

    /// Returns the object that holds the file.
    #[must_use]
    pub fn object(&self) -> ObjectPath {
        object(self.copy, &self.sha256)
    }
}

/// Checks that a path stays in the archive's folder and is valid on disk.
pub(super) fn check_path(path: &str) -> Result<(), String> {
    let names = path.split('/');
    let is_name = |name: &str| {
        !name.is_empty()
            && name != "."
            && name != ".."
            && name.len() <= NAME_BYTES_MAX
            && !name.contains(|symbol: char| symbol.is_control() || symbol == '\\')
    };
    if path.len() > PATH_BYTES_MAX || names.clone().count() > DEPTH_MAX || !names.clone().all(is_name) {
        let shown: String = path.chars().take(TEXT_CHARACTERS_MAX).collect();
        return Err(format!("'{shown}' is not a path in an archive"));
    }
    Ok(())
}

fn is_plain(text: &str) -> bool {
    text.len() <= TEXT_CHARACTERS_MAX && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Formats a SHA-256 as sha256sum does.
pub(super) fn hex(digest: &Digest) -> String {
    let text = digest.to_string();
    text.strip_prefix("sha256:").unwrap_or(&text).to_owned()
}

/// Returns the name of an object that a copy uploaded.
pub(super) fn object(copy: u64, sha256: &str) -> ObjectPath {
    brought(copy).join(sha256)
}

/// Returns the prefix of the objects that a copy uploaded.
pub(super) fn brought(copy: u64) -> ObjectPath {
    objects().join(format!("{copy:08}"))
}

/// Returns the prefix of all objects.
pub(super) fn objects() -> ObjectPath {
    ObjectPath::from(OBJECTS)
}

/// Returns the number of the copy that uploaded an object.
pub(super) fn brought_by(object: &ObjectPath) -> Option<u64> {
    let mut parts = object.parts().skip(1);
    number_in(parts.next()?.as_ref())
}

/// Parses a number of eight digits, or more for larger numbers.
fn number_in(text: &str) -> Option<u64> {
    let number = text.parse().ok()?;
    (format!("{number:08}") == text && number > 0).then_some(number)
}

/// Returns the name of a copy's manifest.
pub(super) fn manifest(number: u64) -> ObjectPath {
    ObjectPath::from(MANIFESTS).join(format!("{number:08}{ENDING}"))
}

/// Returns the numbers of the manifests and their lengths, in the order of the numbers.
fn listed(remote: &Remote) -> Result<BTreeMap<u64, u64>, CopyError> {
    let listed = remote.wait(remote::list(remote.store.as_ref(), &ObjectPath::from(MANIFESTS)))?;
    let number = |path: &ObjectPath| number_in(path.filename()?.strip_suffix(ENDING)?);
    Ok(listed.iter().filter_map(|object| Some((number(&object.location)?, object.size))).collect())
}

/// Returns the empty objects of removed manifests up to a number.
pub(super) fn emptied(remote: &Remote, until: u64) -> Result<Vec<ObjectPath>, CopyError> {
    let emptied = listed(remote)?.into_iter().filter(|(number, bytes)| *number <= until && *bytes == 0);
    Ok(emptied.map(|(number, _)| manifest(number)).collect())
}

impl Remote {
    /// Returns the numbers of the existing copies, in order.
    ///
    /// # Errors
    /// If the store fails.
    pub fn numbers(&self) -> Result<Vec<u64>, CopyError> {
        let numbers = listed(self)?.into_iter().filter(|(_, bytes)| *bytes > 0);
        Ok(numbers.map(|(number, _)| number).collect())
    }

    /// Returns the manifest of a copy.
    ///
    /// # Errors
    /// If there is none of this number, or it is invalid.
    pub fn manifest(&self, number: u64) -> Result<Manifest, CopyError> {
        let url = || self.url.clone();
        let path = manifest(number);
        match self.runtime.block_on(remote::read(self.store.as_ref(), &path, MANIFEST_BYTES_MAX)) {
            Ok(bytes) if bytes.is_empty() => Err(CopyError::NoCopy { url: url(), number: Some(number) }),
            Ok(bytes) => Manifest::decode(&bytes, number).map_err(|problem| CopyError::Manifest {
                url: url(),
                number,
                problem,
            }),
            Err(RemoteError::Missing(_)) => Err(CopyError::NoCopy { url: url(), number: Some(number) }),
            Err(error) => Err(self.failed(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        CopiedFile, Digest, FILES_MAX, Manifest, ManifestCheck, PATH_BYTES_MAX, check_path, hex, number_in,
    };

    fn entry(path: &str) -> CopiedFile {
        CopiedFile { path: path.to_owned(), bytes: 3, sha256: "0f".repeat(32), copy: 2 }
    }

    fn manifest(files: Vec<CopiedFile>) -> Manifest {
        let text = |text: &str| text.to_owned();
        Manifest {
            number: 2,
            series: text("s"),
            copy: text("c"),
            time: text("2026-01-01T00:00:00Z"),
            captures: 1,
            files,
        }
    }

    #[test]
    fn a_manifest_is_read_as_it_was_written_and_no_other_byte() {
        let good = manifest(vec![entry("a"), entry("b/c")]);
        let bytes = good.encode().unwrap();
        assert_eq!(Manifest::decode(&bytes, 2), Ok(good));
        assert!(Manifest::decode(&bytes, 3).is_err());
        for at in 0..bytes.len() {
            let mut damaged = bytes.to_vec();
            damaged[at] ^= 4;
            assert!(Manifest::decode(&damaged, 2).is_err(), "byte {at}");
            assert!(Manifest::decode(&bytes[..at], 2).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn nothing_in_it_leads_out_of_the_folder() {
        let long = "x".repeat(256);
        let deep = "d/".repeat(16) + "x";
        for path in [
            "",
            "/etc/passwd",
            "../x",
            "a/../../x",
            "a//b",
            "a/",
            "./a",
            "a\0b",
            "a\\b",
            "a\nb",
            &long,
            &deep,
        ] {
            let problem = Manifest::decode(&manifest(vec![entry(path)]).encode().unwrap(), 2).unwrap_err();
            assert!(problem.contains("is not a path in an archive"), "{path}: {problem}");
        }
        let longest = format!("{}/{}", "a/".repeat(5) + &"x".repeat(255), "y".repeat(255));
        assert!(longest.len() < PATH_BYTES_MAX && check_path(&longest).is_ok());
        let most = vec!["x".repeat(204); 5].join("/");
        assert_eq!((most.len(), check_path(&most)), (PATH_BYTES_MAX, Ok(())));
        assert!(check_path(&format!("{most}x")).is_err());
    }

    #[test]
    fn what_it_says_of_files_is_possible() {
        let refused = |change: fn(&mut CopiedFile)| {
            let mut one = entry("a");
            change(&mut one);
            Manifest::decode(&manifest(vec![one]).encode().unwrap(), 2).unwrap_err()
        };
        assert!(refused(|entry| entry.sha256.truncate(63)).contains("the digest is invalid"));
        assert!(refused(|entry| entry.sha256 = "../".repeat(21) + "x").contains("the digest is invalid"));
        assert!(refused(|entry| entry.bytes = u64::MAX).contains("more than a file may have"));
        assert!(refused(|entry| entry.copy = 3).contains("it cannot come from copy 3"));
        assert!(refused(|entry| entry.copy = 0).contains("it cannot come from copy"));
        for files in [vec![entry("b"), entry("a")], vec![entry("a"), entry("a")]] {
            let problem = Manifest::decode(&manifest(files).encode().unwrap(), 2).unwrap_err();
            assert!(problem.contains("order of their paths"), "{problem}");
        }
    }

    #[test]
    fn it_lists_the_most_files_and_no_more() {
        let files =
            |count: usize| (0..count).map(|number| entry(&format!("{number:07}"))).collect::<Vec<_>>();
        let most = manifest(files(FILES_MAX));
        assert_eq!(Manifest::decode(&most.encode().unwrap(), 2).unwrap().files.len(), FILES_MAX);
        // One that announces more is not read any further.
        let none = manifest(Vec::new()).encode().unwrap();
        let head = std::str::from_utf8(&none).unwrap().lines().next().unwrap();
        let head = head.replace("\"files\":0", &format!("\"files\":{}", FILES_MAX + 1)) + "\n";
        let check = ManifestCheck { sha256: hex(&Digest::sha256(head.as_bytes())) };
        let more = format!("{head}{}\n", serde_json::to_string(&check).unwrap());
        let problem = Manifest::decode(more.as_bytes(), 2).unwrap_err();
        assert!(problem.contains("1000001 files"), "{problem}");
    }

    #[test]
    fn numbers_have_one_form() {
        assert_eq!((number_in("00000007"), number_in("123456789")), (Some(7), Some(123_456_789)));
        for text in ["7", "0000007", "00000000", "0000000x", "+0000007", "012345678"] {
            assert_eq!(number_in(text), None, "{text}");
        }
    }
}
