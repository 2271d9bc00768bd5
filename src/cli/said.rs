//! `archive said`: finds out since when and until when pages said something.

use std::process::ExitCode;

use archive_books::change::{SaidPeriod, SaidPeriods, said};
use archive_books::search::Phrase;
use chrono::{DateTime, Utc};

use super::get::read_time;
use super::options::{Meant, PagesArgs, SearchTime};
use super::output::{self, Listing};
use super::{EXIT_STOPPED, Result};

/// Find the periods in which pages contained some words, by all their versions.
#[derive(clap::Args)]
#[command(
    after_help = "The words must follow each other, in the title or text; word* matches all words with that
beginning. The content of a page between two captures is not known, so each period has four times:
the last capture before it and the first after it, without the words, and the first and last
capture with them. An empty column means that there is no such capture.

Versions are read one by one, on all processors, for at most --for. If any remain unread, that is
reported and the exit code is 4. A query for few pages reads most of their versions; pages that
contain the words today are found by `text contains`.

Examples:
  archive said 'opening hours' https://www.example.org/
  archive said 'until further notice' 'site = \"example.org\" and versions > 1'
  archive said 'open access' 'text contains \"open access\" limit 100' --at 2026-01-31 --json"
)]
pub(crate) struct Args {
    /// Words to find
    text: String,
    #[command(flatten)]
    pages: PagesArgs,
    /// Only pages that contained the words at this time (2026-01-31, 2026-01-31T10:00, 20260131100000, or with a zone)
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    #[command(flatten)]
    time: SearchTime,
    /// One JSON object per period in which a page contained the words
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let Some(phrase) = Phrase::of(&args.text) else {
        refuse!("there is no word in '{}' to look for", args.text);
    };
    let at = args.at.as_deref().map(read_time).transpose()?;
    let deadline = args.time.deadline()?;
    let Meant { store, access, pages, .. } = args.pages.open()?;
    let looked = said(&store, &access, &phrase, &pages, deadline)?;
    let mut listing = Listing::new(args.json, &["page", "not yet", "since", "last", "no more"], &[]);
    let mut is_found = false;
    for page in &looked.pages {
        let url = store.state().url(page.id)?;
        for span in page.spans.iter().filter(|span| at.is_none_or(|at| span.has(at))) {
            is_found = true;
            let [not_yet, since, last, gone] = times(span).map(|time| time.map(output::utc));
            listing.add(object! { url: &url, not_yet, since, last, gone }, |_| {
                let shown = times(span).map(|time| time.map_or(String::new(), output::minute));
                let [not_yet, since, last, gone] = shown;
                [url.clone(), not_yet, since, last, gone]
            })?;
        }
    }
    if is_found {
        listing.end()?;
    }
    note_reading(&looked, is_found);
    Ok(if looked.left == 0 { ExitCode::SUCCESS } else { ExitCode::from(EXIT_STOPPED) })
}

/// Reports what was read and what was not.
fn note_reading(looked: &SaidPeriods, is_found: bool) {
    if !is_found {
        note!("nothing was found");
    }
    let sum = |count: fn(&archive_books::change::PagePeriods) -> u64| looked.pages.iter().map(count).sum();
    let pages = output::count(looked.pages.len() as u64, "page");
    note!("{} of {pages} read", output::count(sum(|page| page.read), "version"));
    let unread = sum(|page| page.unread);
    if unread > 0 {
        note!("{} ignored, because reading failed or took too long", output::count(unread, "version"));
    }
    if looked.left > 0 {
        note!("{} not read: the time is up (--for)", output::count(looked.left as u64, "page"));
    }
}

fn times(span: &SaidPeriod) -> [Option<DateTime<Utc>>; 4] {
    [span.not_yet, Some(span.since), Some(span.last), span.gone]
}
