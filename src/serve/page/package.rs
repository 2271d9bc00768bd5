//! Packages: the captures of a site, or of the pages that a query finds, as WACZ. A package is written before it is sent, so
//! that the archive is held open only while it is made, and failures are reported before the first byte.

use std::io::BufWriter;
use std::time::Duration;

use archive_ask::query::Question;
use archive_base::error::{Classified, ErrorKind};
use archive_grammar::Quoted;
use archive_peers::export::{self, ExportError, Selection};
use chrono::Utc;

use super::{ArchiveRequest, PageProblem, Reply, Speech};
use crate::serve::spool::Unsent;

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

pub(super) fn page(asked: &ArchiveRequest<'_>) -> Result<Reply, PageProblem> {
    let t = asked.speech;
    let (site, query) = (asked.parameter("site"), asked.parameter("query"));
    let text = match (site, query) {
        (site, "") if !site.is_empty() => format!("page site = {} and captures > 0", Quoted(site)),
        ("", query) if !query.is_empty() => query.to_owned(),
        _ => {
            let what = "A package is of one site, ?site=, or of a query, ?query=.";
            return Err(PageProblem::Wrong(t.say(what).to_owned()));
        }
    };
    let (store, access) = (asked.opened.store, &asked.opened.access);
    let pages = match Question::new(store, access.clone(), &text, Utc::now()) {
        Err(error) if error.kind() == ErrorKind::Usage => {
            return Err(PageProblem::Mistake(error.to_string()));
        }
        question => question?.pages()?,
    };
    if pages.len() > PAGES_MAX {
        return Err(too_much(t));
    }
    let selection = Selection::of_pages(store, access, pages.into_iter().collect(), text)?;
    let selection = selection.up_to(RECORD_BYTES_MAX);
    let mut out = Unsent::new(&asked.server.limits.files, BYTES_MAX, TIME_MAX);
    match export::package(store, &selection, BufWriter::new(&mut out)) {
        Err(ExportError::Nothing(_)) => {
            return Err(PageProblem::Missing(t.say("Nothing that was captured fits.").to_owned()));
        }
        Err(ExportError::TooLong(_)) => return Err(too_much(t)),
        Err(_) if out.is_over() => return Err(too_much(t)),
        exported => exported?,
    };
    let name = if site.is_empty() { "query" } else { site };
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let disposition = format!("attachment; filename=\"{name}.wacz\"");
    Ok(out.reply("application/wacz")?.with("Content-Disposition", disposition))
}

fn too_much(t: Speech) -> PageProblem {
    let what = "This package would be larger than {} or {} pages, or take too long; make it with `archive export wacz`.";
    PageProblem::Wrong(t.fill(what, &[&indicatif::HumanBytes(BYTES_MAX), &PAGES_MAX]))
}
