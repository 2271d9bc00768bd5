//! `archive watch`: subscriptions to changes.

use std::path::{self, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use archive::jobs::{self, ReportJob};
use archive_ask::watch::{self, Format, ReportOutput, WatchError};
use archive_base::error::{Classified, ErrorKind};
use archive_crawl::EndReason;
use archive_storage::Store;

use super::cluster::TurnsArgs;
use super::fetching::FetchArgs;
use super::messages::Hearing;
use super::options::{ArchiveArgs, ClockArgs, OutputsArgs, duration, named};
use super::output::Listing;
use super::progress::{self, ALL_FETCHED};
use super::{EXIT_STOPPED, Failure, Result, interrupt, output, usage};

/// Watch the pages that match a query, and report their changes at regular intervals.
///
/// The pages are fetched before each report, which covers the time since the last one. `archive refresh` makes reports
/// when they are due; `archive watch report NAME --now` makes one at once.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  archive watch 'page host = \"www.example.org\"' --every week
  archive watch 'page text contains \"open access\"' --every day --format atom --output /srv/www/oa.atom
  archive watch 'page url = \"https://www.example.org/catalogue.xml\"' --element //price --every day
  archive refresh --budget 5000 --outputs /srv/www    # writes that file when its report is due
  archive watch list
  archive watch report host-www-example-org --format json
  archive watch report host-www-example-org --now
  archive watch remove host-www-example-org

The folder `watches` of the archive holds the reports as JSON, and a feed NAME.atom for each watch."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    add: AddWatch,
}

#[derive(clap::Args)]
struct AddWatch {
    /// Query for pages
    #[arg(value_name = "QUERY", num_args = 1..)]
    query: Vec<String>,
    #[command(flatten)]
    archive: ArchiveArgs,
    /// Report only pages on which the values of this XPath expression have changed, with the old and the new values
    #[arg(long, value_name = "XPATH")]
    element: Option<String>,
    /// Interval between reports: hour, day, week, month, or a duration (12h, 3d)
    #[arg(long, value_name = "TIME", value_parser = period, default_value = "week")]
    every: Duration,
    /// Name of the watch [default: from the query]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// File to which each report is also written, if `archive refresh --outputs` names its folder; otherwise reports
    /// are printed
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Format of the file
    #[arg(long, value_name = "FORMAT", requires = "output", default_value = "text", value_parser = named(FORMATS))]
    format: Format,
    #[command(flatten)]
    clock: ClockArgs,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show all watches
    List(ListWatches),
    /// Show the newest report of a watch, or make one now
    Report(Box<ReportNow>),
    /// Remove a watch and its reports
    Remove(RemoveWatch),
}

#[derive(clap::Args)]
struct ListWatches {
    #[command(flatten)]
    archive: ArchiveArgs,
    /// One JSON object per watch
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct ReportNow {
    /// Name of the watch
    name: String,
    #[command(flatten)]
    archive: ArchiveArgs,
    /// Format of the output; atom also has earlier reports
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = named(FORMATS))]
    format: Format,
    /// Fetch the pages of the watch, and report their changes up to now
    #[arg(long)]
    now: bool,
    /// With --now: time within which to finish (30s, 10m, 2h)
    #[arg(long = "for", value_name = "TIME", value_parser = duration, requires = "now")]
    time: Option<Duration>,
    #[command(flatten)]
    turns: TurnsArgs,
    #[command(flatten)]
    outputs: OutputsArgs,
    #[command(flatten)]
    fetch: FetchArgs,
}

#[derive(clap::Args)]
struct RemoveWatch {
    /// Name of the watch
    name: String,
    #[command(flatten)]
    archive: ArchiveArgs,
}

const FORMATS: [(&str, &str, Format); 3] = [
    ("text", "Text for people to read", Format::Text),
    ("json", "One JSON object", Format::Json),
    ("atom", "An Atom feed", Format::Atom),
];

/// For clap: parses a period by name, or a duration.
fn period(text: &str) -> Result<Duration, String> {
    const DAY: u64 = 86_400;
    let seconds = match text {
        "hour" => 3600,
        "day" => DAY,
        "week" => 7 * DAY,
        "month" => 30 * DAY,
        _ => return duration(text),
    };
    Ok(Duration::from_secs(seconds))
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        None => add(&args.add)?,
        Some(Command::List(list)) => show(list)?,
        Some(Command::Remove(remove)) => {
            jobs::check_exists(&remove.archive.path)?;
            watch::remove(&remove.archive.path, &remove.name)?;
        }
        Some(Command::Report(args)) => return report(args),
    }
    Ok(ExitCode::SUCCESS)
}

/// Mistakes in the arguments have their own exit code.
fn as_usage(error: WatchError) -> Failure {
    use WatchError::{Element, Name, Period, Query};
    match &error {
        Element(_) | Name(_) | Period => usage(error.to_string()),
        Query(query) if query.kind() == ErrorKind::Usage => usage(error.to_string()),
        _ => error.into(),
    }
}

fn add(args: &AddWatch) -> Result<()> {
    if args.query.is_empty() {
        refuse!("give a query: archive watch 'page host = \"example.org\"' --every week");
    }
    let store = Store::read_only(&args.archive.path)?;
    let output = match &args.output {
        // cron starts in another folder.
        Some(path) => Some(ReportOutput { path: path::absolute(path)?, format: args.format }),
        None => None,
    };
    let now = args.clock.clock().now();
    let query = args.query.join(" ");
    let (element, name) = (args.element.as_deref(), args.name.as_deref());
    let watch = watch::add(&store, &query, element, args.every, name, output, now).map_err(as_usage)?;
    let pages = watch.pages(&store, now).map_err(as_usage)?.len();
    note!(
        "watch '{}' of {}; its first report is due {}",
        watch.name,
        output::count(pages as u64, "page"),
        output::minute(watch.due_at())
    );
    if let Some(folder) = watch.output.as_ref().and_then(|output| output.path.parent()) {
        note!("`archive refresh` writes its file when it is given --outputs {}", folder.display());
    }
    Ok(())
}

fn show(args: &ListWatches) -> Result<()> {
    jobs::check_exists(&args.archive.path)?;
    let headings = ["name", "every", "next report", "last report", "query"];
    let mut listing = Listing::new(args.json, &headings, &[]);
    for watch in watch::list(&args.archive.path)? {
        let last = watch::latest(&args.archive.path, &watch)?.map(|report| report.until);
        let row = object! {
            #[serde(flatten)] watch: &watch,
            due: output::utc(watch.due_at()),
            /// End of the newest report.
            reported: last.map(output::utc),
        };
        listing.add(&row, |_| {
            let every = Duration::from_secs(watch.every_seconds);
            [
                watch.name.clone(),
                indicatif::HumanDuration(every).to_string(),
                output::minute(watch.due_at()),
                last.map_or("-".to_owned(), output::minute),
                watch.element.iter().fold(watch.query.clone(), |query, element| query + "  " + element),
            ]
        })?;
    }
    listing.end()
}

fn report(args: &ReportNow) -> Result<ExitCode> {
    jobs::check_exists(&args.archive.path)?;
    let watch = watch::get(&args.archive.path, &args.name)?;
    if args.now && make_now(args)? == EndReason::Stopped {
        return Ok(ExitCode::from(EXIT_STOPPED));
    }
    if watch::latest(&args.archive.path, &watch)?.is_none() {
        note!(
            "no report of '{}' yet; the first is due {}, or --now",
            watch.name,
            output::minute(watch.due_at())
        );
        return Ok(ExitCode::SUCCESS);
    }
    let text = watch::render(&args.archive.path, &watch, args.format)?;
    match args.format {
        Format::Text => text.lines().try_for_each(output::line)?,
        _ => output::text(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Fetches the pages of a watch and makes its report, which is printed later, in the requested format.
fn make_now(args: &ReportNow) -> Result<EndReason> {
    let path = &args.archive.path;
    let job = ReportJob {
        time: args.time,
        outputs: args.outputs.outputs.clone(),
        manners: args.fetch.manners(),
        options: args.fetch.options()?,
        turns: args.turns.turns(),
    };
    let stop = interrupt::install()?;
    let mut hearing = Hearing::default();
    let (end, status) = jobs::report(path, &args.name, job, &stop, &mut |event| hearing.hear(event))?;
    hearing.end()?;
    progress::finish(end, ALL_FETCHED, &status, path);
    Ok(end)
}
