//! `archive diff`: shows the differences between two versions of a page.

use std::cmp::Reverse;

use archive_ask::query::Question;
use archive_base::access::Access;
use archive_base::texts::Language;
use archive_books::change::xml::Delta;
use archive_books::change::{
    ChangeStatistics, ChangeTally, ChangedName, Difference, LineMark, compare, lines, versions_meant,
};
use archive_storage::{Capture, Store};
use chrono::{DateTime, Utc};

use super::get::read_time;
use super::options::ReadArgs;
use super::output::{self, Listing};
use super::{During, Result, progress};

/// Show the differences between two versions of a page: the newest and the one before it, or those nearest to two
/// times.
///
/// The difference of XML documents (including feeds and sitemaps) is a delta of deletions, insertions, moves and
/// updates that leads from one version to the other; other pages are compared by the sentences of their own text.
///
/// With --statistics it is the newest 100 changes of each of many XML documents: which elements and attributes change,
/// at which depth, by the type of the document.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive diff https://www.example.org/
  archive diff https://www.example.org/ --from 2026-01-31 --to 2026-03-01T12:00
  archive diff https://www.example.org/catalogue.xml --delta > delta.xml
  archive diff https://www.example.org/ --json
  archive diff --statistics 'type = xml and site = \"example.org\"'

Output is coloured only on a terminal; NO_COLOR=1 turns colours off.")]
pub(crate) struct Args {
    /// URL of the page
    #[arg(required_unless_present = "statistics")]
    url: Option<String>,
    #[command(flatten)]
    archive: ReadArgs,
    /// Old version: the one nearest to this time [default: the one before the newest change]
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// New version: the one nearest to this time [default: the newest]
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    /// Count what changes in the XML documents among these pages
    #[arg(long, value_name = "QUERY", conflicts_with_all = ["url", "from", "to", "delta"])]
    statistics: Option<String>,
    /// Print the delta of two XML documents as XML
    #[arg(long, conflicts_with = "json")]
    delta: bool,
    /// One JSON object; with --statistics one for each element or attribute
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let time = |text: &Option<String>| text.as_deref().map(read_time).transpose();
    let (from, to) = (time(&args.from)?, time(&args.to)?);
    let (store, access) = args.archive.open()?;
    let Some(url) = &args.url else { return statistics(args, &store, &access) };
    let id = super::find_shown(&store, &access, url)?;
    let micros = |time: Option<DateTime<Utc>>| time.map(|time| time.timestamp_micros());
    let (old, new) = versions_meant(&store, &access, id, (micros(from), micros(to)))?
        .within(format_args!("the archive has no version of {url}: every fetch failed"))?;
    let comparison = compare(&store, &access, &old, &new)?;
    if args.json {
        let data = |capture: &Capture| output::utc_micros(captured(capture));
        let canonical = store.state().url(id)?;
        let report = object! {
            url: &canonical,
            from: data(&old),
            to: data(&new),
            #[serde(flatten)] comparison: &comparison,
        };
        output::json_line(&report)?;
    } else if args.delta {
        let empty = Delta::default();
        let delta = match &comparison.difference {
            Difference::Xml(delta) => delta,
            Difference::None => &empty,
            _ => {
                refuse!("{url} is not an XML document in both versions; leave out --delta");
            }
        };
        output::text(&delta.to_xml())?;
    } else {
        let local = |capture: &Capture| output::local(captured(capture));
        let has_colours = output::has_colours();
        print(&[(LineMark::Gone, format!("--- {url} of {}", local(&old)))], has_colours)?;
        print(&[(LineMark::Fresh, format!("+++ {url} of {}", local(&new)))], has_colours)?;
        let lines = lines(&comparison, has_colours, Language::English);
        lines.iter().try_for_each(|line| print(line, has_colours))?;
        if old.time == new.time {
            note!("both are the same version; `archive history` shows which there are");
        }
    }
    Ok(())
}

fn statistics(args: &Args, store: &Store, access: &Access) -> Result<()> {
    let query = args.statistics.as_deref().unwrap_or_default();
    let pages = Question::new(store, access.clone(), query, Utc::now())?.pages()?;
    let mut found = ChangeStatistics::default();
    let bar = progress::counting(pages.len() as u64, "pages");
    for page in pages {
        found.add(store, access, page)?;
        bar.inc(1);
    }
    progress::end();
    let headings = ["type", "element", "depth", "all", "updated", "inserted", "deleted", "moved", "share"];
    let mut listing = Listing::new(args.json, &headings, &[2, 3, 4, 5, 6, 7, 8]);
    let mut rows: Vec<_> = found.by_name.iter().collect();
    rows.sort_by_key(|(name, tally)| (&name.kind, Reverse(tally.sum())));
    for (name, tally) in rows {
        listing.add(&object! { #[serde(flatten)] name: name, #[serde(flatten)] tally: tally }, |_| {
            let ChangedName { kind, name, depth } = name;
            let ChangeTally { updated, inserted, deleted, moved, changes } = *tally;
            let counts = [*depth as u64, tally.sum(), updated, inserted, deleted, moved]
                .map(|count| count.to_string());
            let [depth, sum, updated, inserted, deleted, moved] = counts;
            let share = format!("{:.1} %", changes as f64 * 100.0 / found.of_kind(kind).max(1) as f64);
            [kind.clone(), name.clone(), depth, sum, updated, inserted, deleted, moved, share]
        })?;
    }
    if !found.by_name.is_empty() {
        listing.end()?;
    }
    if found.unread > 0 {
        note!("{} not compared as XML: too large or too broken", output::count(found.unread, "change"));
    }
    note!("{} of {}", output::count(found.compared, "change"), output::count(found.pages, "XML document"));
    Ok(())
}

fn captured(capture: &Capture) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(capture.time).unwrap_or_default()
}

/// Prints a line of a comparison.
fn print(pieces: &[(LineMark, String)], has_colours: bool) -> Result<()> {
    let colour = |mark: LineMark| match mark {
        LineMark::Gone => Some(31),
        LineMark::Fresh => Some(32),
        LineMark::Moved => Some(36),
        LineMark::Plain => None,
    };
    let pieces: Vec<_> =
        pieces.iter().map(|(mark, text)| (colour(*mark).filter(|_| has_colours), text.as_str())).collect();
    output::coloured_line(&pieces)
}
