//! `archive validate`: lists mistakes in XML documents.

use std::process::ExitCode;

use archive_base::access::Access;
use archive_books::change::{self, version_until};
use archive_storage::{Store, UrlId};
use chrono::DateTime;
use serde::Serialize;

use super::options::{Meant, PagesArgs};
use super::output::{self, Listing};
use super::{During, Result, progress};

/// List mistakes in XML documents: violations of well-formedness and of their document type.
#[derive(clap::Args)]
#[command(
    after_help = "The newest version of each page is checked for well-formedness, and against its document type (DTD) if it declares one. External parts of a document are read from the archive; if they are missing,
only well-formedness is checked, and that is reported. At most 100 mistakes per document are listed.
The exit code is 0 if there are no mistakes, 1 otherwise.

Examples:
  archive validate https://www.example.org/catalogue.xml
  archive validate 'type = xml and site = \"example.org\"'
  archive validate 'well-formed = no' --json"
)]
pub(crate) struct Args {
    #[command(flatten)]
    pages: PagesArgs,
    /// One JSON object per mistake
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct MistakeRow<'a> {
    url: &'a str,
    time: String,
    line: usize,
    column: usize,
    kind: &'static str,
    message: &'a str,
}

/// Totals over all documents.
#[derive(Default)]
struct ValidateSum {
    documents: u64,
    checked: u64,
    incomplete: u64,
    wrong: u64,
    mistakes: u64,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let Meant { store, access, pages, are_named } = args.pages.open()?;
    let mut listing = Listing::new(args.json, &["url", "line", "column", "kind", "mistake"], &[1, 2]);
    let mut sum = ValidateSum::default();
    let bar = progress::counting(pages.len() as u64, "pages");
    for id in pages {
        let is_xml = check(&store, &access, id, &mut sum, &mut |row| {
            listing.add(row, |row| {
                let (line, column) = (row.line.to_string(), row.column.to_string());
                [row.url.to_owned(), line, column, row.kind.to_owned(), row.message.to_owned()]
            })
        })?;
        if are_named && !is_xml {
            note!("{} is not an XML document", store.state().url(id)?);
        }
        bar.inc(1);
    }
    progress::end();
    if sum.mistakes > 0 {
        listing.end()?;
    }
    let ValidateSum { documents, checked, incomplete, wrong, mistakes } = sum;
    if incomplete > 0 {
        let documents = output::count(incomplete, "document");
        note!(
            "{documents} checked for well-formedness only: what declares their elements is not in the archive"
        );
    }
    note!(
        "{}, {checked} checked by their document type: {} in {wrong}",
        output::count(documents, "XML document"),
        output::count(mistakes, "mistake"),
    );
    Ok(if mistakes == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Checks the newest version of a page and reports each mistake; returns whether it is an XML document.
fn check(
    store: &Store,
    access: &Access,
    id: UrlId,
    sum: &mut ValidateSum,
    report: &mut dyn FnMut(MistakeRow<'_>) -> Result<()>,
) -> Result<bool> {
    let Some(capture) = version_until(store, access, id, i64::MAX)? else { return Ok(false) };
    let url = store.state().url(id)?;
    let found = change::validate(store, access, &capture).within(format_args!("cannot read {url}"))?;
    let Some(found) = found else { return Ok(false) };
    sum.documents += 1;
    sum.checked += u64::from(found.is_checked);
    sum.incomplete += u64::from(!found.missing.is_empty());
    sum.wrong += u64::from(!found.mistakes.is_empty());
    sum.mistakes += found.mistakes.len() as u64;
    let time = DateTime::from_timestamp_micros(capture.time).unwrap_or_default();
    for mistake in &found.mistakes {
        report(MistakeRow {
            url: &url,
            time: output::utc_micros(time),
            line: mistake.line,
            column: mistake.column,
            kind: if mistake.is_broken { "well-formedness" } else { "validity" },
            message: &mistake.what,
        })?;
    }
    Ok(true)
}
