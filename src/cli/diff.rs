//! `archive diff`: shows the differences between two versions of a page.

use archive_base::texts::Language;
use archive_books::change::xml::Delta;
use archive_books::change::{Difference, LineMark, compare, lines, versions_meant};
use archive_storage::Capture;
use chrono::{DateTime, Utc};

use super::get::read_time;
use super::options::ReadArgs;
use super::{During, Result, output};

/// Show the differences between two versions of a page: the newest and the one before it, or those nearest to two
/// times.
///
/// The difference of XML documents (including feeds and sitemaps) is a delta of deletions, insertions, moves and
/// updates that leads from one version to the other; other pages are compared by the sentences of their own text.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive diff https://www.example.org/
  archive diff https://www.example.org/ --from 2026-01-31 --to 2026-03-01T12:00
  archive diff https://www.example.org/catalogue.xml --delta > delta.xml
  archive diff https://www.example.org/ --json

Output is coloured only on a terminal; NO_COLOR=1 turns colours off.")]
pub(crate) struct Args {
    /// URL of the page
    url: String,
    #[command(flatten)]
    archive: ReadArgs,
    /// Old version: the one nearest to this time [default: the one before the newest change]
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// New version: the one nearest to this time [default: the newest]
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    /// Print the delta of two XML documents as XML
    #[arg(long, conflicts_with = "json")]
    delta: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let time = |text: &Option<String>| text.as_deref().map(read_time).transpose();
    let (from, to) = (time(&args.from)?, time(&args.to)?);
    let (store, access) = args.archive.open()?;
    let id = super::find_shown(&store, &access, &args.url)?;
    let micros = |time: Option<DateTime<Utc>>| time.map(|time| time.timestamp_micros());
    let (old, new) = versions_meant(&store, &access, id, (micros(from), micros(to)))?
        .within(format_args!("the archive has no version of {}: every fetch failed", args.url))?;
    let comparison = compare(&store, &access, &old, &new)?;
    if args.json {
        let data = |capture: &Capture| output::utc_micros(captured(capture));
        let url = store.state().url(id)?;
        let report = object! {
            url: &url,
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
                refuse!("{} is not an XML document in both versions; leave out --delta", args.url);
            }
        };
        output::text(&delta.to_xml())?;
    } else {
        let local = |capture: &Capture| output::local(captured(capture));
        let has_colours = output::has_colours();
        print(&[(LineMark::Gone, format!("--- {} of {}", args.url, local(&old)))], has_colours)?;
        print(&[(LineMark::Fresh, format!("+++ {} of {}", args.url, local(&new)))], has_colours)?;
        let lines = lines(&comparison, has_colours, Language::English);
        lines.iter().try_for_each(|line| print(line, has_colours))?;
        if old.time == new.time {
            note!("both are the same version; `archive history` shows which there are");
        }
    }
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
