//! Watches: a query whose pages are fetched before a report is due, and the report of what changed.
//!
//! A watch is a file in the folder `watches` of the archive, outside the state: the state can be rebuilt from the
//! segments, a watch cannot. Next to `NAME.json` are the folder `NAME/` with its reports by time, and `NAME.atom`, a
//! feed of the latest changes. Files are replaced atomically.
//!
//! An archive may come from a stranger, so a watch does not control where files are written: its name must be its file
//! name, links are not followed, and its output is written only below folders that the program's user names.
//!
//! Invariant: reports cover time without gaps or overlaps. Each begins where the previous one ended, however many
//! periods were missed in between.

mod atom;
mod folder;
mod report;
mod service;
#[cfg(test)]
mod tests;
mod text;

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use archive_base::access::{Access, AccessError};
use archive_base::files::{self, FileError, WholeFile};
use archive_books::change::{VersionError, xpath_mistake};
use archive_storage::address::surt;
use archive_storage::{Store, UrlId};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use self::folder::{
    NAME_LENGTH_MAX, check_written, checked_name, free_name, json_files, make, parsed, read_json, read_watch,
    replace, save, write_json,
};
pub use folder::file;
pub use report::{ElementNews, News, PageNews, WatchReport};
pub use service::{Awaited, Delivery, await_pages, deliver, pages_of};

use crate::query::{self, Question, Rows as _};

/// Folder within an archive.
pub const FOLDER: &str = "watches";

/// Maximum number of pages of a watch; further pages, in the order of its query, are ignored.
pub const PAGES_MAX: usize = 10_000;

/// Number of reports kept per watch; older ones are removed.
pub const REPORTS_MAX: usize = 100;

/// Minimum period.
pub const EVERY_MIN: Duration = Duration::from_secs(60);

/// Maximum period: ten years.
pub const EVERY_MAX: Duration = Duration::from_secs(10 * 366 * 86_400);

/// Why a watch cannot be stored, or its report cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file was not written by this version of the program.
    #[error("{} is not a watch or report of this version: {problem}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The name is not valid; names are file names.
    #[error("'{0}' is not a name for a watch: use 1 to {NAME_LENGTH_MAX} lowercase letters, digits and -")]
    Name(String),
    /// The name is taken.
    #[error("there is a watch '{0}' already; give another --name, or remove it first")]
    Exists(String),
    /// There is no watch with this name.
    #[error("there is no watch '{0}'; `archive watch list` shows them")]
    Missing(String),
    /// The period is out of range.
    #[error("a period is from a minute to ten years")]
    Period,
    /// The XPath expression is wrong.
    #[error("the XPath expression is wrong: {0}")]
    Element(String),
    /// The query is wrong or failed.
    #[error(transparent)]
    Query(#[from] query::Error),
    /// Versions cannot be read.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// The access rules cannot be read.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The state cannot be read.
    #[error(transparent)]
    State(#[from] archive_storage::StateError),
}

/// A watch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    /// Name of the watch and of its files.
    pub name: String,
    /// Query that selects the pages.
    pub query: String,
    /// Seconds between two reports.
    pub every_seconds: u64,
    /// An XPath expression: reports have only pages on which its values have changed, with these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub element: Option<String>,
    /// Time up to which reports cover changes; initially the time of creation.
    #[serde(with = "archive_base::instant")]
    pub since: DateTime<Utc>,
    /// A file that gets each new report in addition to the archive's own copy, if permitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<ReportOutput>,
}

/// A file that gets each new report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportOutput {
    /// Path of the file, which is replaced.
    pub path: PathBuf,
    /// Format of the report.
    pub format: Format,
}

/// Format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Plain text for people.
    Text,
    /// One JSON object.
    Json,
    /// An Atom feed (RFC 4287) of the changes in this report and earlier ones.
    Atom,
}

impl Watch {
    /// Time at which the next report is due.
    #[must_use]
    pub fn due_at(&self) -> DateTime<Utc> {
        self.after(1)
    }

    /// Whether a report is due.
    #[must_use]
    pub fn is_due(&self, now: DateTime<Utc>) -> bool {
        now >= self.due_at()
    }

    /// Whether a report is so late that it is made even if some pages could not be fetched.
    #[must_use]
    pub fn is_overdue(&self, now: DateTime<Utc>) -> bool {
        now >= self.after(2)
    }

    fn after(&self, periods: i32) -> DateTime<Utc> {
        let every = TimeDelta::seconds(i64::try_from(self.every_seconds).unwrap_or(i64::MAX / 1000));
        self.since.checked_add_signed(every * periods).unwrap_or(DateTime::<Utc>::MAX_UTC)
    }

    /// The captured pages that it currently selects.
    ///
    /// # Errors
    /// When the query cannot be answered.
    pub fn pages(&self, store: &Store, now: DateTime<Utc>) -> Result<Vec<UrlId>, WatchError> {
        let question = question(store, &self.query, now)?;
        let mut found = Vec::new();
        for page in question.pages()? {
            let row = question.rows.page(page).map_err(query::Error::from)?;
            found.extend(row.filter(|row| row.captures > 0).map(|row| row.id));
        }
        Ok(found)
    }
}

/// Plans the query of a watch, which must ask for pages.
fn question<'a>(store: &'a Store, query: &str, now: DateTime<Utc>) -> Result<Question<'a>, WatchError> {
    let mut question = Question::new(store, Access::read(store.path())?, query, now)?.of_pages()?;
    question.plan.limit_if_unlimited(PAGES_MAX);
    Ok(question)
}

/// Creates a watch, of an element if one is given. Without a name, one is derived from its query.
///
/// # Errors
/// When the query or the element is wrong, the name is taken, or the folder cannot be written.
pub fn add(
    store: &Store,
    query: &str,
    element: Option<&str>,
    every: Duration,
    name: Option<&str>,
    output: Option<ReportOutput>,
    now: DateTime<Utc>,
) -> Result<Watch, WatchError> {
    if !(EVERY_MIN..=EVERY_MAX).contains(&every) {
        return Err(WatchError::Period);
    }
    question(store, query, now)?;
    check_element(element)?;
    let archive = store.path();
    let name = match name {
        Some(name) => checked_name(name)?.to_owned(),
        None => free_name(archive, query),
    };
    if file(archive, &name).exists() {
        return Err(WatchError::Exists(name));
    }
    // Leftover reports of an earlier watch with this name do not belong to it.
    remove_reports(&file(archive, &name))?;
    let every_seconds = every.as_secs();
    let (query, element) = (query.to_owned(), element.map(str::to_owned));
    let watch = Watch { name, query, every_seconds, element, since: now, output };
    save(archive, &watch)?;
    Ok(watch)
}

fn check_element(element: Option<&str>) -> Result<(), WatchError> {
    element.and_then(xpath_mistake).map_or(Ok(()), |mistake| Err(WatchError::Element(mistake)))
}

/// Parses a watch from the bytes of its file and checks that it could be added.
///
/// # Errors
/// When the bytes are not a watch, or its query or period is wrong.
pub fn read(path: &Path, bytes: &[u8]) -> Result<Watch, WatchError> {
    let watch = parsed(path, bytes)?;
    if !(EVERY_MIN..=EVERY_MAX).contains(&Duration::from_secs(watch.every_seconds)) {
        return Err(WatchError::Period);
    }
    archive_grammar::parse(&watch.query).map_err(query::Error::from)?;
    check_element(watch.element.as_deref())?;
    Ok(watch)
}

/// Takes over the query, the element and the period of a watch from elsewhere. If a watch with this name exists, it keeps its
/// reporting time and its output; a new one starts now and has no output.
///
/// # Errors
/// When the query is wrong for this archive, or the folder cannot be written.
pub fn take_over(store: &Store, from: &Watch, now: DateTime<Utc>) -> Result<(), WatchError> {
    question(store, &from.query, now)?;
    let archive = store.path();
    let path = file(archive, checked_name(&from.name)?);
    let own = if path.exists() {
        read_watch(&path)?
    } else {
        remove_reports(&path)?;
        Watch { since: now, output: None, ..from.clone() }
    };
    let (query, element) = (from.query.clone(), from.element.clone());
    save(archive, &Watch { query, element, every_seconds: from.every_seconds, ..own })
}

/// All watches, by name.
///
/// # Errors
/// When a file cannot be read.
pub fn list(archive: &Path) -> Result<Vec<Watch>, WatchError> {
    json_files(&archive.join(FOLDER))?.iter().map(|path| read_watch(path)).collect()
}

/// Checks that all watches are as they were written.
///
/// # Errors
/// When one is not, or cannot be read.
pub fn check(archive: &Path) -> Result<(), WatchError> {
    json_files(&archive.join(FOLDER))?.iter().try_for_each(|path| check_written(path))
}

/// The watch with this name.
///
/// # Errors
/// When there is no such watch or it cannot be read.
pub fn get(archive: &Path, name: &str) -> Result<Watch, WatchError> {
    let path = file(archive, checked_name(name)?);
    if path.exists() { read_watch(&path) } else { Err(WatchError::Missing(name.to_owned())) }
}

/// Removes a watch and its reports.
///
/// # Errors
/// When there is no such watch, or its files cannot be removed.
pub fn remove(archive: &Path, name: &str) -> Result<(), WatchError> {
    let path = file(archive, &get(archive, name)?.name);
    remove_reports(&path)?;
    Ok(fs::remove_file(&path).map_err(FileError::at(&path))?)
}

/// Removes the reports and the feed of a watch.
fn remove_reports(path: &Path) -> Result<(), WatchError> {
    let (reports, feed) = (path.with_extension(""), path.with_extension("atom"));
    for (path, outcome) in [(&reports, fs::remove_dir_all(&reports)), (&feed, fs::remove_file(&feed))] {
        files::if_there(outcome).map_err(FileError::at(path))?;
    }
    Ok(())
}

/// Stores a report, writes the feed and the watch's output, and advances the watch so that the next report begins where
/// this one ends. The output is written only if it is below one of the folders in `outputs`; otherwise its path is
/// returned.
///
/// # Errors
/// When a file cannot be written. The report is then made again later.
pub fn keep(
    archive: &Path,
    watch: &Watch,
    report: &WatchReport,
    outputs: &[PathBuf],
) -> Result<Option<PathBuf>, WatchError> {
    let folder = file(archive, &watch.name).with_extension("");
    make(&archive.join(FOLDER))?;
    make(&folder)?;
    let named = |time: DateTime<Utc>| folder.join(format!("{}.json", time.format("%Y%m%d%H%M%S")));
    // After a crash there may be a later report that this one repeats.
    let last = named(watch.since);
    for path in json_files(&folder)?.into_iter().filter(|path| *path > last) {
        fs::remove_file(&path).map_err(FileError::at(&path))?;
    }
    write_json(&named(report.until), report)?;
    let mut names = json_files(&folder)?;
    while names.len() > REPORTS_MAX {
        let oldest = names.remove(0);
        fs::remove_file(&oldest).map_err(FileError::at(&oldest))?;
    }
    replace(
        &file(archive, &watch.name).with_extension("atom"),
        render(archive, watch, Format::Atom)?.as_bytes(),
    )?;
    let mut withheld = None;
    match &watch.output {
        Some(output) if is_permitted(&output.path, outputs) => {
            let text = render(archive, watch, output.format)?;
            WholeFile::replace(&output.path, text.as_bytes()).map_err(FileError::at(&output.path))?;
        }
        Some(output) => withheld = Some(output.path.clone()),
        None => {}
    }
    save(archive, &Watch { since: report.until, ..watch.clone() })?;
    Ok(withheld)
}

/// Whether a file is below one of these folders after resolving links.
fn is_permitted(path: &Path, outputs: &[PathBuf]) -> bool {
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    let is_below = |output: &PathBuf| {
        let output = output.canonicalize().ok();
        output.zip(folder.as_ref()).is_some_and(|(output, folder)| folder.starts_with(output))
    };
    outputs.iter().any(is_below)
}

/// The newest report of a watch; `None` before the first.
///
/// # Errors
/// When the report cannot be read.
pub fn latest(archive: &Path, watch: &Watch) -> Result<Option<WatchReport>, WatchError> {
    let names = json_files(&file(archive, &watch.name).with_extension(""))?;
    names.last().map(|path| read_json(path)).transpose()
}

/// Renders the newest report in a format; empty if there is none.
///
/// # Errors
/// When reports cannot be read.
pub fn render(archive: &Path, watch: &Watch, format: Format) -> Result<String, WatchError> {
    if format == Format::Atom {
        let names = json_files(&file(archive, &watch.name).with_extension(""))?;
        let reports = names.iter().rev().map(|path| read_json(path));
        return atom::feed(watch, reports);
    }
    let Some(report) = latest(archive, watch)? else { return Ok(String::new()) };
    Ok(match format {
        Format::Json => report.to_json(),
        _ => text::of(&report),
    })
}

/// The reports of a watch, restricted to what the access rules now show, newest first.
///
/// # Errors
/// When the folder cannot be read; each item can fail, too.
pub fn shown<'a>(
    archive: &Path,
    watch: &Watch,
    access: &'a Access,
) -> Result<impl Iterator<Item = Result<WatchReport, WatchError>> + 'a, WatchError> {
    let names = json_files(&file(archive, &watch.name).with_extension(""))?;
    Ok(names.into_iter().rev().map(move |path| {
        let mut report: WatchReport = read_json(&path)?;
        report.news.retain(|page| access.hiding(&page.url, page.seen.timestamp_micros()).is_none());
        for page in &mut report.news {
            // The difference and the values contain text of an earlier version, which a rule may hide.
            let surt = surt(&page.url);
            if access.rules().iter().any(|rule| rule.covers(&surt)) {
                (page.difference, page.values) = (None, None);
            }
        }
        Ok(report)
    }))
}

/// The feed of a watch, restricted to what the access rules now show.
///
/// # Errors
/// When reports cannot be read.
pub fn shown_feed(archive: &Path, watch: &Watch, access: &Access) -> Result<String, WatchError> {
    atom::feed(watch, shown(archive, watch, access)?)
}

/// Removes pages from all reports and rewrites the feeds; returns the number of reports that named one. The output
/// files of watches are not touched.
///
/// # Errors
/// When a file cannot be read or written.
pub fn forget_pages(archive: &Path, urls: &HashSet<String>) -> Result<u64, WatchError> {
    let mut changed = 0;
    for watch in list(archive)? {
        let path = file(archive, &watch.name);
        let mut named = 0;
        for path in json_files(&path.with_extension(""))? {
            let mut report: WatchReport = read_json(&path)?;
            let before = report.news.len();
            report.news.retain(|page| !urls.contains(&page.url));
            if report.news.len() < before {
                write_json(&path, &report)?;
                named += 1;
            }
        }
        if named > 0 {
            replace(&path.with_extension("atom"), render(archive, &watch, Format::Atom)?.as_bytes())?;
        }
        changed += named;
    }
    Ok(changed)
}

/// Formats a time for data files.
fn data_time(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}
