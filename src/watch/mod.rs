//! Subscriptions: a query whose pages are fetched before a report is due, and the report that tells what changed.
//!
//! A watch is a file of its own in the folder `watches` of the archive, not a part of the state: the state can be made
//! again from the segments, a watch cannot. Beside `NAME.json` stand `NAME/`, which holds its reports by time, and
//! `NAME.atom`, a feed of the newest changes. Files are replaced as a whole.
//!
//! Invariant: reports cover time without gaps and without overlap: each begins where the one before ended, however many
//! periods were missed in between.

mod atom;
mod report;
mod service;
mod text;
mod time;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use archive_storage::{Store, UrlId};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::change::VersionError;
use crate::query::{ArchiveRows, ArchiveRowsError, Context, FullText, Plan};
use crate::search::{self, Reader};

pub use report::{News, PageNews, Report};
pub use service::{Awaited, Delivery, await_pages, deliver, pages_of};

/// The folder in an archive.
pub const FOLDER: &str = "watches";

/// Pages of a watch, at most: what is beyond is left out by the order of its query.
pub const PAGES_MAX: usize = 10_000;

/// Reports that are kept of a watch; older ones are removed.
pub const REPORTS_MAX: usize = 100;

/// The shortest period.
pub const EVERY_MIN: Duration = Duration::from_secs(60);

/// The longest period: ten years.
pub const EVERY_MAX: Duration = Duration::from_secs(10 * 366 * 86_400);

/// Letters of a name.
const NAME_LENGTH_MAX: usize = 40;

/// Why a watch cannot be kept, or its report not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The file system says so.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// A file that was not written by this program.
    #[error("{} is no watch or report of this version: {problem}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// Names are file names.
    #[error("'{0}' is no name for a watch: small letters, digits and -, at most {NAME_LENGTH_MAX}")]
    Name(String),
    /// Two of a name.
    #[error("there is a watch '{0}' already; give another --name, or remove it first")]
    Exists(String),
    /// None of this name.
    #[error("there is no watch '{0}'; `archive watch list` shows them")]
    Missing(String),
    /// The period is out of its range.
    #[error("a period is from a minute to ten years")]
    Period,
    /// The query has a mistake.
    #[error("in the query, {0}")]
    Query(String),
    /// The query asks for sites.
    #[error("a watch has to ask for pages: 'page host = \"example.org\"'")]
    Sites,
    /// The archive's rows cannot be read.
    #[error(transparent)]
    Rows(#[from] ArchiveRowsError),
    /// The query failed.
    #[error(transparent)]
    Answer(#[from] crate::query::Error),
    /// The index cannot be read.
    #[error(transparent)]
    Search(#[from] search::Error),
    /// Versions cannot be read.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// The state cannot be read.
    #[error(transparent)]
    State(#[from] archive_storage::StateError),
}

/// A subscription.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    /// Its name, also of its files.
    pub name: String,
    /// The pages it is about.
    pub query: String,
    /// Seconds between two reports.
    pub every_seconds: u64,
    /// Up to when the reports so far tell of changes; at first when it was made.
    #[serde(with = "time")]
    pub since: DateTime<Utc>,
    /// A file that gets each new report, besides the archive's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
}

/// A file that gets each new report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// The file, which is replaced.
    pub path: PathBuf,
    /// In which form.
    pub format: Format,
}

/// The form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Text for people.
    Text,
    /// One JSON object.
    Json,
    /// An Atom feed (RFC 4287) of this report's changes and those before.
    Atom,
}

impl Watch {
    /// When the next report is due.
    #[must_use]
    pub fn due_at(&self) -> DateTime<Utc> {
        self.after(1)
    }

    /// Whether a report is due.
    #[must_use]
    pub fn is_due(&self, now: DateTime<Utc>) -> bool {
        now >= self.due_at()
    }

    /// Whether a report is so late that it is made even of pages that could not be fetched.
    #[must_use]
    pub fn is_overdue(&self, now: DateTime<Utc>) -> bool {
        now >= self.after(2)
    }

    fn after(&self, periods: i32) -> DateTime<Utc> {
        let every = TimeDelta::seconds(i64::try_from(self.every_seconds).unwrap_or(i64::MAX / 1000));
        self.since.checked_add_signed(every * periods).unwrap_or(DateTime::<Utc>::MAX_UTC)
    }

    /// The pages it is about now, of those that were captured.
    ///
    /// # Errors
    /// When the query cannot be answered.
    pub fn pages(&self, store: &Store, now: DateTime<Utc>) -> Result<Vec<UrlId>, WatchError> {
        let rows = ArchiveRows::new(store)?;
        let plan = plan(&self.query, &rows, now)?;
        let index = if plan.searches_text() { open_index(store)? } else { None };
        let full_text = index.as_ref().map(|index| index as &dyn FullText);
        let found = plan.select_pages(&rows, full_text)?.into_iter();
        Ok(found.filter(|row| row.captures > 0).map(|row| row.id).collect())
    }
}

/// The plan of a watch's query, if it asks for pages.
fn plan(query: &str, rows: &ArchiveRows<'_>, now: DateTime<Utc>) -> Result<Plan, WatchError> {
    let context = Context { now, ..Context::of(rows) };
    let mut plan = Plan::parse(query, &context).map_err(|mistake| WatchError::Query(mistake.to_string()))?;
    if plan.asks_for_sites() {
        return Err(WatchError::Sites);
    }
    plan.limit_if_unlimited(PAGES_MAX);
    Ok(plan)
}

fn open_index(store: &Store) -> Result<Option<Reader>, WatchError> {
    match Reader::open(&store.path().join(search::FOLDER)) {
        Ok(reader) => Ok(Some(reader)),
        Err(search::Error::Missing { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Makes a watch; without a name it gets one from its query.
///
/// # Errors
/// When the query has a mistake, the name is taken, or the folder cannot be written.
pub fn add(
    store: &Store,
    query: &str,
    every: Duration,
    name: Option<&str>,
    output: Option<Output>,
    now: DateTime<Utc>,
) -> Result<Watch, WatchError> {
    if !(EVERY_MIN..=EVERY_MAX).contains(&every) {
        return Err(WatchError::Period);
    }
    plan(query, &ArchiveRows::new(store)?, now)?;
    let archive = store.path();
    let name = match name {
        Some(name) => checked_name(name)?.to_owned(),
        None => free_name(archive, query),
    };
    if file(archive, &name).exists() {
        return Err(WatchError::Exists(name));
    }
    let every_seconds = every.as_secs();
    let watch = Watch { name, query: query.to_owned(), every_seconds, since: now, output };
    save(archive, &watch)?;
    Ok(watch)
}

/// All watches by name.
///
/// # Errors
/// When a file cannot be read.
pub fn list(archive: &Path) -> Result<Vec<Watch>, WatchError> {
    let folder = archive.join(FOLDER);
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|source| io_error(&folder, source))?,
    };
    let mut watches = Vec::new();
    for entry in entries {
        let path = entry.map_err(|source| io_error(&folder, source))?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            watches.push(read_json::<Watch>(&path)?);
        }
    }
    watches.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(watches)
}

/// The watch of a name.
///
/// # Errors
/// When there is none.
pub fn get(archive: &Path, name: &str) -> Result<Watch, WatchError> {
    let path = file(archive, checked_name(name)?);
    if path.exists() { read_json(&path) } else { Err(WatchError::Missing(name.to_owned())) }
}

/// Removes a watch and its reports.
///
/// # Errors
/// When there is none, or the files cannot be removed.
pub fn remove(archive: &Path, name: &str) -> Result<(), WatchError> {
    let path = file(archive, &get(archive, name)?.name);
    fs::remove_file(&path).map_err(|source| io_error(&path, source))?;
    let (reports, feed) = (path.with_extension(""), path.with_extension("atom"));
    for (path, outcome) in [(&reports, fs::remove_dir_all(&reports)), (&feed, fs::remove_file(&feed))] {
        match outcome {
            Err(source) if source.kind() != io::ErrorKind::NotFound => return Err(io_error(path, source)),
            _ => {}
        }
    }
    Ok(())
}

/// Keeps a report, writes the feed and the watch's own file, and lets the next report begin where this one ends.
///
/// # Errors
/// When a file cannot be written. The report is made again then.
pub fn keep(archive: &Path, watch: &Watch, report: &Report) -> Result<(), WatchError> {
    let folder = file(archive, &watch.name).with_extension("");
    fs::create_dir_all(&folder).map_err(|source| io_error(&folder, source))?;
    let name = report.until.format("%Y%m%d%H%M%S").to_string();
    write_json(&folder.join(format!("{name}.json")), report)?;
    let mut names = report_files(&folder)?;
    while names.len() > REPORTS_MAX {
        let oldest = names.remove(0);
        fs::remove_file(&oldest).map_err(|source| io_error(&oldest, source))?;
    }
    replace(
        &file(archive, &watch.name).with_extension("atom"),
        render(archive, watch, Format::Atom)?.as_bytes(),
    )?;
    if let Some(output) = &watch.output {
        replace(&output.path, render(archive, watch, output.format)?.as_bytes())?;
    }
    save(archive, &Watch { since: report.until, ..watch.clone() })
}

/// The newest report of a watch; none before the first.
///
/// # Errors
/// When it cannot be read.
pub fn latest(archive: &Path, watch: &Watch) -> Result<Option<Report>, WatchError> {
    let names = report_files(&file(archive, &watch.name).with_extension(""))?;
    names.last().map(|path| read_json(path)).transpose()
}

/// The newest report in a form; nothing is said where there is none.
///
/// # Errors
/// When reports cannot be read.
pub fn render(archive: &Path, watch: &Watch, format: Format) -> Result<String, WatchError> {
    if format == Format::Atom {
        let names = report_files(&file(archive, &watch.name).with_extension(""))?;
        let reports = names.iter().rev().map(|path| read_json(path));
        return atom::feed(watch, reports);
    }
    let Some(report) = latest(archive, watch)? else { return Ok(String::new()) };
    Ok(match format {
        Format::Json => report.to_json(),
        _ => text::of(&report),
    })
}

/// The files of reports, the oldest first.
fn report_files(folder: &Path) -> Result<Vec<PathBuf>, WatchError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|source| io_error(folder, source))?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|source| io_error(folder, source))?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn save(archive: &Path, watch: &Watch) -> Result<(), WatchError> {
    let folder = archive.join(FOLDER);
    fs::create_dir_all(&folder).map_err(|source| io_error(&folder, source))?;
    write_json(&file(archive, &watch.name), watch)
}

fn file(archive: &Path, name: &str) -> PathBuf {
    archive.join(FOLDER).join(format!("{name}.json"))
}

fn checked_name(name: &str) -> Result<&str, WatchError> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > NAME_LENGTH_MAX || !name.chars().all(fits) || name.starts_with('-') {
        return Err(WatchError::Name(name.to_owned()));
    }
    Ok(name)
}

/// A name that is not taken, from the words of a query.
fn free_name(archive: &Path, query: &str) -> String {
    let words = query.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut name = String::new();
    for word in words.skip_while(|word| *word == "page") {
        if name.len() + word.len() + 5 > NAME_LENGTH_MAX {
            break;
        }
        if !name.is_empty() {
            name.push('-');
        }
        name.push_str(&word.to_ascii_lowercase());
    }
    if name.is_empty() {
        name.push_str("watch");
    }
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    std::iter::once(name.clone()).chain(numbered).find(|name| !file(archive, name).exists()).unwrap_or(name)
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, WatchError> {
    let bytes = fs::read(path).map_err(|source| io_error(path, source))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| WatchError::Format { path: path.to_owned(), problem: error.to_string() })
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), WatchError> {
    let mut bytes = serde_json::to_vec_pretty(value)
        .map_err(|error| WatchError::Format { path: path.to_owned(), problem: error.to_string() })?;
    bytes.push(b'\n');
    replace(path, &bytes)
}

/// Replaces a file as a whole.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), WatchError> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let save = || -> io::Result<()> {
        let mut out = File::create(&partial)?;
        out.write_all(bytes)?;
        out.sync_all()?;
        fs::rename(&partial, path)
    };
    save().map_err(|source| io_error(path, source))
}

fn io_error(path: &Path, source: io::Error) -> WatchError {
    WatchError::Io { path: path.to_owned(), source }
}

/// A time as data has it.
fn data_time(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(name: &str) -> Watch {
        let since = DateTime::from_timestamp(1_770_000_000, 0).unwrap();
        let query = format!("page url ~ \"*{name}*\"");
        Watch { name: name.to_owned(), query, every_seconds: 3600, since, output: None }
    }

    #[test]
    fn reports_follow_each_other_and_missed_periods_become_one() {
        let watch = watch("a");
        assert!(!watch.is_due(watch.since + TimeDelta::minutes(59)));
        assert!(watch.is_due(watch.since + TimeDelta::minutes(60)));
        assert!(!watch.is_overdue(watch.since + TimeDelta::minutes(119)));
        assert!(watch.is_overdue(watch.since + TimeDelta::days(9)));
        let archive = tempfile::tempdir().unwrap();
        save(archive.path(), &watch).unwrap();
        let report = Report {
            watch: watch.name.clone(),
            query: watch.query.clone(),
            since: watch.since,
            until: watch.since + TimeDelta::days(9),
            pages: 3,
            not_fetched: 0,
            news: Vec::new(),
        };
        keep(archive.path(), &watch, &report).unwrap();
        let later = get(archive.path(), "a").unwrap();
        assert_eq!(later.since, report.until);
        assert!(!later.is_due(report.until + TimeDelta::minutes(1)), "nine days are one report");
        assert_eq!(latest(archive.path(), &later).unwrap(), Some(report));
        assert!(render(archive.path(), &later, Format::Text).unwrap().contains("nothing changed"));
    }

    #[test]
    fn old_reports_are_removed() {
        let archive = tempfile::tempdir().unwrap();
        let watch = watch("a");
        for day in 0..REPORTS_MAX + 5 {
            let until = watch.since + TimeDelta::days(day as i64);
            let (name, query) = (watch.name.clone(), watch.query.clone());
            let report = Report {
                watch: name,
                query,
                since: until,
                until,
                pages: 0,
                not_fetched: 0,
                news: Vec::new(),
            };
            keep(archive.path(), &watch, &report).unwrap();
        }
        assert_eq!(report_files(&archive.path().join("watches/a")).unwrap().len(), REPORTS_MAX);
        remove(archive.path(), "a").unwrap();
        assert!(list(archive.path()).unwrap().is_empty() && !archive.path().join("watches/a").exists());
        assert!(matches!(get(archive.path(), "a"), Err(WatchError::Missing(_))));
    }

    #[test]
    fn names_are_file_names() {
        let archive = tempfile::tempdir().unwrap();
        for name in ["", "A", "a/b", "../x", "-a", &"x".repeat(41)] {
            assert!(matches!(get(archive.path(), name), Err(WatchError::Name(_))), "{name}");
        }
        let query = "page host = \"www.example.org\" and importance > 2";
        assert_eq!(free_name(archive.path(), query), "host-www-example-org-and-importance");
        save(archive.path(), &watch("host-www-example-org-and-importance")).unwrap();
        assert_eq!(free_name(archive.path(), query), "host-www-example-org-and-importance-2");
        assert_eq!(free_name(archive.path(), "page"), "watch");
    }
}
