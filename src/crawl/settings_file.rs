//! The settings file of a crawl: `crawl.toml` in the archive, read when a crawl starts and whenever it changes.
//!
//! Its settings override those of the command line. A file with a mistake changes nothing: the earlier settings stay in
//! force, and the mistake is reported with its line and column.
//!
//! ```toml
//! paused = false                  # true: nothing new is asked for until it is false again
//! delay = "5s"                    # between two requests to a host
//! address-delay = "1s"            # between two requests to an address
//! workers = 64                    # requests under way at the same time, at most --workers
//! disk-min = 1024                 # MiB that are to stay free on the disk of the archive
//! scope = "host"                  # host, site, any or regex:PATTERN, for all seeds
//! max-depth = 12
//! pages-per-host = 5000
//! pages-per-site = 20000
//! ignore = ['^https?://[^/]*/print/', '[?&]replytocom=']
//!
//! [host."slow.example.org"]       # with its port, if it has one
//! delay = "30s"
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use archive_base::duration::read_duration;
use archive_base::files;
use archive_books::ledger::ScopeKind;
use regex::Regex;
use serde::{Deserialize, Deserializer, de};
use toml::Spanned;

/// Name of the file in the archive's folder.
pub const SETTINGS_FILE: &str = "crawl.toml";

/// Maximum length of a settings file in bytes.
const BYTES_MAX: u64 = 4 << 20;

/// Why a settings file is rejected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// It cannot be read.
    #[error("cannot read the settings file {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// It has a mistake.
    #[error("{}, line {line}, column {column}: {problem}", path.display())]
    Mistake {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// What is wrong.
        problem: String,
    },
}

/// The settings in a file; `None` for those that it does not have.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Edits {
    pub(super) paused: bool,
    #[serde(deserialize_with = "span")]
    pub(super) delay: Option<Duration>,
    #[serde(deserialize_with = "span")]
    pub(super) address_delay: Option<Duration>,
    pub(super) workers: Option<usize>,
    /// In MiB.
    pub(super) disk_min: Option<u64>,
    #[serde(deserialize_with = "scope")]
    pub(super) scope: Option<ScopeKind>,
    pub(super) max_depth: Option<u8>,
    pub(super) pages_per_host: Option<u32>,
    pub(super) pages_per_site: Option<u32>,
    ignore: Vec<Spanned<String>>,
    /// The patterns of `ignore`.
    #[serde(skip)]
    pub(super) ignored: Vec<Regex>,
    pub(super) host: BTreeMap<String, HostEdits>,
}

/// The settings for a host.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct HostEdits {
    #[serde(deserialize_with = "span")]
    pub(super) delay: Option<Duration>,
}

fn span<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    read_duration(&text).map(Some).map_err(de::Error::custom)
}

fn scope<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ScopeKind>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(de::Error::custom)
}

/// Parses a settings file.
fn read(text: &str, path: &Path) -> Result<Edits, SettingsError> {
    let edits: Result<Edits, toml::de::Error> = toml::from_str(text);
    let mistake = |at: usize, problem: String| {
        let (line, column) = files::place(text, at);
        SettingsError::Mistake { path: path.to_owned(), line, column, problem }
    };
    let mut edits = edits.map_err(|error| {
        mistake(error.span().map_or(0, |span| span.start), error.message().replace('\n', "; "))
    })?;
    if edits.workers == Some(0) {
        let at = text.find("workers").unwrap_or_default();
        return Err(mistake(at, "workers has to be at least 1".to_owned()));
    }
    for pattern in &edits.ignore {
        let regex = Regex::new(pattern.get_ref()).map_err(|error| {
            // The last line of the message names the mistake; those before it repeat the pattern.
            let error = error.to_string();
            let what = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
            mistake(pattern.span().start, format!("the pattern cannot be used: {what}"))
        })?;
        edits.ignored.push(regex);
    }
    Ok(edits)
}

/// The settings file, watched.
#[derive(Debug)]
pub(super) struct SettingsFile {
    path: PathBuf,
    /// Length and modification time of the file when it was read last; `None` while there is no file.
    seen: Option<(u64, SystemTime)>,
}

impl SettingsFile {
    pub(super) fn in_archive(archive: &Path) -> Self {
        Self { path: archive.join(SETTINGS_FILE), seen: None }
    }

    /// Returns the settings in the file, if it has changed since the last call.
    pub(super) fn changed(&mut self) -> Result<Option<Edits>, SettingsError> {
        let now = match fs::metadata(&self.path) {
            Ok(data) => Some((data.len(), data.modified().unwrap_or(SystemTime::UNIX_EPOCH))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(source) => return Err(SettingsError::Unreadable { path: self.path.clone(), source }),
        };
        if now == self.seen {
            return Ok(None);
        }
        self.seen = now;
        match now {
            None => Ok(Some(Edits::default())),
            Some(_) => {
                let text = files::read(&self.path, BYTES_MAX)
                    .and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other))
                    .map_err(|source| SettingsError::Unreadable { path: self.path.clone(), source })?;
                read(&text, &self.path).map(Some)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{SETTINGS_FILE, SettingsFile, read};
    use archive_books::ledger::ScopeKind;
    use std::path::Path;
    use std::time::Duration;

    #[test]
    fn settings_are_read() {
        let text = "paused = true\ndelay = \"5s\"\nscope = 'host'\nignore = ['/print/', 'x']\n\
                    [host.'a.test:81']\ndelay = '1m'\n";
        let edits = read(text, Path::new("crawl.toml")).unwrap();
        assert!(edits.paused);
        assert_eq!((edits.delay, edits.scope), (Some(Duration::from_secs(5)), Some(ScopeKind::Host)));
        assert!(edits.ignored[0].is_match("http://a.test/print/1"));
        assert_eq!(edits.host["a.test:81"].delay, Some(Duration::from_secs(60)));
        assert_eq!(edits.workers, None);
    }

    #[test]
    fn mistakes_are_reported_with_their_place() {
        for (text, place) in [
            ("delay = 5s\n", "crawl.toml, line 1, column 9: "),
            ("# ä\n  delay = '5y'\n", "crawl.toml, line 2, column 11: '5y' is not a span of time"),
            ("paused = true\ndelai = '5s'\n", "crawl.toml, line 2, column 1: unknown field `delai`"),
            (
                "ignore = ['a', '(']\n",
                "crawl.toml, line 1, column 16: the pattern cannot be used: unclosed group",
            ),
            ("scope = 'hosts'\n", "crawl.toml, line 1, column 9: 'hosts' is not a scope"),
            ("workers = 0\n", "crawl.toml, line 1, column 1: workers has to be"),
            ("[host.x]\ndelay = '1s'\nlimit = 3\n", "crawl.toml, line 3, column 1: unknown field `limit`"),
        ] {
            let error = read(text, Path::new("crawl.toml")).unwrap_err().to_string();
            assert!(error.starts_with(place), "{text}: {error}");
        }
    }

    #[test]
    fn a_change_is_seen_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = SettingsFile::in_archive(folder.path());
        assert!(file.changed().unwrap().is_none());
        std::fs::write(folder.path().join(SETTINGS_FILE), "delay = '3s'").unwrap();
        assert_eq!(file.changed().unwrap().unwrap().delay, Some(Duration::from_secs(3)));
        assert!(file.changed().unwrap().is_none());
        std::fs::write(folder.path().join(SETTINGS_FILE), "delay = '3'x").unwrap();
        assert!(file.changed().is_err() && file.changed().unwrap().is_none());
        std::fs::remove_file(folder.path().join(SETTINGS_FILE)).unwrap();
        assert_eq!(file.changed().unwrap().unwrap().delay, None);
    }
}
