//! A labelled web built from an archive and a table of labels.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use archive_books::change::{VersionError, parsed};
use archive_books::topics::line_around;
use archive_storage::address::canonical;
use archive_storage::{StateError, Store, StoreError};
use archive_web::parse::ParsedDocument;
use url::Url;

use super::web::{Link, Page, Web};

/// Why the web cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FocusError {
    /// The labels cannot be read.
    #[error("{}: {source}", path.display())]
    Labels {
        /// Path of the file.
        path: PathBuf,
        /// Reason.
        source: csv::Error,
    },
    /// A line is malformed.
    #[error("{}, line {line}: expected a URL, a class and a group, with tabs between", path.display())]
    Line {
        /// Path of the file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
    },
    /// The archive has none of the labelled pages.
    #[error("{}: none of its pages is in the archive: import their WARC files first", .0.display())]
    NothingThere(PathBuf),
    /// The archive cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its state cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// A capture cannot be read.
    #[error(transparent)]
    Version(#[from] VersionError),
}

/// Reads labels (tab-separated lines of URL, class and group after a heading line) and the newest version of each of
/// these pages from `archive`. Links to pages without a label or a version are dead ends.
///
/// # Errors
/// The archive or the labels cannot be read, or the archive has none of the labelled pages.
pub fn read(archive: &Path, labels: &Path) -> Result<Web, FocusError> {
    let store = Store::read_only(archive)?;
    let state = store.state();
    let mut web = Web::default();
    let mut places: HashMap<String, u32> = HashMap::new();
    let mut documents = Vec::new();
    let csv = |source| FocusError::Labels { path: labels.to_owned(), source };
    let mut lines = csv::ReaderBuilder::new()
        .delimiter(b'\t')
        .quoting(false)
        .flexible(true)
        .from_path(labels)
        .map_err(csv)?;
    for line in lines.records() {
        let line = line.map_err(csv)?;
        let [Some(url), Some(class), Some(group)] = [0, 1, 2].map(|column| line.get(column)) else {
            let line = line.position().map_or(0, csv::Position::line);
            return Err(FocusError::Line { path: labels.to_owned(), line });
        };
        let Ok(url) = Url::parse(url) else { continue };
        let url = canonical(&url);
        let Some(id) = state.find(&url)? else { continue };
        let Some((_, capture)) = state.newest_version(id)? else { continue };
        if places.contains_key(&url) {
            continue;
        }
        places.insert(url.clone(), documents.len() as u32);
        let label = (place(&mut web.classes, class), place(&mut web.groups, group));
        documents.push((url, label, parsed(&store, &capture)?));
    }
    if documents.is_empty() {
        return Err(FocusError::NothingThere(labels.to_owned()));
    }
    web.pages = documents
        .into_iter()
        .map(|(url, label, document)| Page {
            links: links(&url, &document, &places),
            title: document.title,
            headings: document.headings.iter().map(|range| of(&document.text, range).to_owned()).collect(),
            text: document.text,
            url,
            label: Some(label),
        })
        .collect();
    Ok(web)
}

/// Returns the index of a name, which is added if it is new.
fn place(names: &mut Vec<String>, name: &str) -> usize {
    names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    })
}

fn of<'t>(text: &'t str, range: &Range<usize>) -> &'t str {
    text.get(range.clone()).unwrap_or_default().trim()
}

/// Returns the links of a page to others of the web, each with all of its texts, and the heading above the first one and
/// the line around it.
fn links(url: &str, document: &ParsedDocument, places: &HashMap<String, u32>) -> Vec<Link> {
    let mut said: HashMap<u32, (String, &str, &str)> = HashMap::new();
    let mut above = 0;
    for text in &document.link_texts {
        while document.headings.get(above).is_some_and(|heading| heading.start <= text.range.start) {
            above += 1;
        }
        let heading = above.checked_sub(1).map_or("", |above| of(&document.text, &document.headings[above]));
        let around = || line_around(&document.text, &text.range);
        let (anchor, ..) = said.entry(text.link).or_insert_with(|| (String::new(), heading, around()));
        anchor.push(' ');
        anchor.push_str(of(&document.text, &text.range));
    }
    let cash = document.links.iter().zip(0..).filter(|(link, _)| link.kind.carries_cash() && link.url != url);
    cash.filter_map(|(link, number)| {
        let target = *places.get(&link.url)?;
        Some((target, said.remove(&number).unwrap_or_default()))
    })
    .zip(0..)
    .map(|((target, (anchor, heading, context)), place)| {
        let [heading, context] = [heading, context].map(str::to_owned);
        Link { target, anchor, heading, context, place }
    })
    .collect()
}
