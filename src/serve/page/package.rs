//! Packages: the captures of a site, or of the pages that a query finds, as WACZ. A package is written to an unnamed
//! temporary file and sent from there, so that the archive is held open only while it is made, and failures are
//! reported before the first byte.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::time::{Duration, Instant};

use archive_ask::query::Question;
use archive_base::error::{Classified, ErrorKind};
use archive_grammar::Quoted;
use archive_peers::export::{self, ExportError, Selection};
use chrono::Utc;

use super::{Asked, Problem, Reply, Speech};

/// Maximum size of a package in bytes.
const BYTES_MAX: u64 = 512 << 20;

/// Maximum content of a record in a package, in bytes: it is packed in memory.
const RECORD_BYTES_MAX: u64 = 64 << 20;

/// Maximum number of pages in a package.
const PAGES_MAX: usize = 100_000;

/// Time limit for making a package.
const TIME_MAX: Duration = Duration::from_secs(50);

/// Whether a request is for a package.
pub(in super::super) fn is_package(path: &str) -> bool {
    path.split('?').next() == Some("/wacz")
}

pub(super) fn page(asked: &Asked<'_>) -> Result<Reply, Problem> {
    let t = asked.speech;
    let (site, query) = (asked.parameter("site"), asked.parameter("query"));
    let text = match (site, query) {
        (site, "") if !site.is_empty() => format!("page site = {} and captures > 0", Quoted(site)),
        ("", query) if !query.is_empty() => query.to_owned(),
        _ => {
            let what = "A package is of one site, ?site=, or of a query, ?query=.";
            return Err(Problem::Wrong(t.say(what).to_owned()));
        }
    };
    let (store, access) = (asked.opened.store, &asked.opened.access);
    let pages = match Question::new(store, access.clone(), &text, Utc::now()) {
        Err(error) if error.kind() == ErrorKind::Usage => return Err(Problem::Mistake(error.to_string())),
        question => question?.pages()?,
    };
    if pages.len() > PAGES_MAX {
        return Err(too_much(t));
    }
    let selection = Selection::of_pages(store, access, pages.into_iter().collect(), text)?;
    let selection = selection.up_to(RECORD_BYTES_MAX);
    let mut out = Bounded { file: tempfile::tempfile()?, left: BYTES_MAX, until: Instant::now() + TIME_MAX };
    match export::package(store, &selection, BufWriter::new(&mut out)) {
        Err(ExportError::Nothing(_)) => {
            return Err(Problem::Missing(t.say("Nothing that was captured fits.").to_owned()));
        }
        Err(ExportError::TooLong(_)) => return Err(too_much(t)),
        Err(_) if out.is_over() => return Err(too_much(t)),
        exported => exported?,
    };
    let name = if site.is_empty() { "query" } else { site };
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let reply = Reply::of(200, "application/wacz", "")
        .with("Content-Disposition", format!("attachment; filename=\"{name}.wacz\""))
        .with("Content-Length", out.file.metadata()?.len().to_string());
    out.file.rewind()?;
    Ok(Reply { file: Some(out.file), ..reply })
}

fn too_much(t: Speech) -> Problem {
    let what = "This package would be larger than {} or {} pages, or take too long; make it with `archive export wacz`.";
    Problem::Wrong(t.fill(what, &[&indicatif::HumanBytes(BYTES_MAX), &PAGES_MAX]))
}

/// A file limited in size and in writing time.
pub(in super::super) struct Bounded {
    pub(in super::super) file: File,
    pub(in super::super) left: u64,
    pub(in super::super) until: Instant,
}

impl Bounded {
    pub(in super::super) fn is_over(&self) -> bool {
        self.left == 0 || Instant::now() >= self.until
    }
}

impl Write for Bounded {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.left = self.left.saturating_sub(buffer.len() as u64);
        if self.is_over() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.file.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Bounded {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.file.seek(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_takes_no_more_than_it_may() {
        let bounded =
            |left| Bounded { file: tempfile::tempfile().unwrap(), left, until: Instant::now() + TIME_MAX };
        let (mut enough, mut short) = (bounded(4), bounded(3));
        assert!(enough.write_all(b"abc").is_ok() && !enough.is_over());
        assert!(short.write_all(b"abc").is_err() && short.is_over());
        let mut late = Bounded { until: Instant::now(), ..bounded(9) };
        assert!(late.write_all(b"abc").is_err());
    }
}
