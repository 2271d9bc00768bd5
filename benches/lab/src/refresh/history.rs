//! Recorded changes of real pages: `NAME.tsv.gz`, with `NAME.importance.tsv.gz` in the same folder.
//!
//! The first line is a header. The columns of the others are page, Unix time, kind (A added, M modified, D deleted, T a
//! change of only the template, which does not count), bytes, commit, and number of pages in that commit. Only the
//! first three columns are read.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

/// Suffix of a file of changes.
const HISTORY_ENDING: &str = ".tsv.gz";
/// Suffix of a file of importance.
const IMPORTANCE_ENDING: &str = ".importance.tsv.gz";
/// Suffix of a feed's history of semantic changes, which uses the importance file of the feed's full history.
const MEANING_ONLY: &str = "-semantic";

/// Why a history cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A line is malformed.
    #[error("line {line} of {path} has no {what}")]
    Line {
        /// Path of the file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// What is missing.
        what: &'static str,
    },
    /// The folder has no history.
    #[error("no file in {0} ends in {HISTORY_ENDING}; give a history or a folder of them")]
    Empty(PathBuf),
    /// No page of the histories is live in the window.
    #[error("no page of {0} lives between these dates for more than a day")]
    NoPages(String),
}

/// A change of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Seconds since the epoch.
    pub seconds: i64,
    /// Whether the page was deleted; otherwise it was added or modified.
    pub deleted: bool,
}

/// The changes of the pages of one source.
#[derive(Clone, Debug)]
pub struct History {
    /// The file's name without its suffix.
    pub name: String,
    /// Pages with their events in file order, which is chronological.
    pub pages: Vec<(String, Vec<Event>)>,
    /// Importance by page, if known.
    pub importance: Option<HashMap<String, f64>>,
}

impl History {
    /// Reads the changes at `path`, and the importance from `importance` or else from the file next to it.
    ///
    /// # Errors
    /// A file cannot be read or has a malformed line.
    pub fn read(path: &Path, importance: Option<&Path>) -> Result<Self, HistoryError> {
        let file_name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let name = file_name.strip_suffix(HISTORY_ENDING).unwrap_or(&file_name).to_owned();
        let mut pages: Vec<(String, Vec<Event>)> = Vec::new();
        let mut index: HashMap<String, usize> = HashMap::new();
        for_each_line(path, |number, line| {
            let missing = |what| HistoryError::Line { path: path.to_owned(), line: number, what };
            if number == 1 {
                return Ok(());
            }
            let mut columns = line.split('\t');
            let page = columns.next().ok_or_else(|| missing("page"))?;
            let seconds = columns.next().and_then(|text| text.parse().ok()).ok_or_else(|| missing("time"))?;
            let deleted = match columns.next() {
                Some("A" | "M") => false,
                Some("D") => true,
                Some("T") => return Ok(()),
                _ => return Err(missing("kind A, M, D or T")),
            };
            let at = *index.entry(page.to_owned()).or_insert_with(|| {
                pages.push((page.to_owned(), Vec::new()));
                pages.len() - 1
            });
            pages[at].1.push(Event { seconds, deleted });
            Ok(())
        })?;
        let beside = path.with_file_name(format!("{}{IMPORTANCE_ENDING}", name.replace(MEANING_ONLY, "")));
        let importance = match importance {
            Some(path) => Some(read_importance(path)?),
            None if beside.exists() => Some(read_importance(&beside)?),
            None => None,
        };
        Ok(Self { name, pages, importance })
    }
}

/// Returns the histories at `path`: the file itself, or all in the folder, ordered by name.
///
/// # Errors
/// The folder cannot be read or has no history.
pub fn find(path: &Path) -> Result<Vec<PathBuf>, HistoryError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let unreadable = |source| HistoryError::Read { path: path.to_owned(), source };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.ends_with(HISTORY_ENDING) && !name.ends_with(IMPORTANCE_ENDING) {
            found.push(entry.path());
        }
    }
    found.sort();
    if found.is_empty() { Err(HistoryError::Empty(path.to_owned())) } else { Ok(found) }
}

fn read_importance(path: &Path) -> Result<HashMap<String, f64>, HistoryError> {
    let mut importance = HashMap::new();
    for_each_line(path, |line, text| {
        let parsed =
            text.rsplit_once('\t').and_then(|(page, value)| Some((page, value.parse::<f64>().ok()?)));
        match parsed {
            Some((page, value)) if value.is_finite() && value >= 0.0 => {
                importance.insert(page.to_owned(), value);
                Ok(())
            }
            // The first line may be a header.
            _ if line == 1 => Ok(()),
            _ => Err(HistoryError::Line { path: path.to_owned(), line, what: "page and importance" }),
        }
    })?;
    Ok(importance)
}

/// Calls `take` with every line and its number from 1. Gzip is recognised by its magic bytes, not by the name.
fn for_each_line(
    path: &Path,
    mut take: impl FnMut(usize, &str) -> Result<(), HistoryError>,
) -> Result<(), HistoryError> {
    let unreadable = |source| HistoryError::Read { path: path.to_owned(), source };
    let mut file = BufReader::new(File::open(path).map_err(unreadable)?);
    let zipped = file.fill_buf().map_err(unreadable)?.starts_with(&[0x1f, 0x8b]);
    let text: Box<dyn Read> = if zipped { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    for (index, line) in BufReader::new(text).lines().enumerate() {
        let line = line.map_err(unreadable)?;
        if !line.is_empty() {
            take(index + 1, &line)?;
        }
    }
    Ok(())
}
