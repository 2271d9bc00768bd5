//! `archive watch`: subscriptions to changes.

use std::path::{self, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use archive_ask::watch::{self, Format, Output, Watch, WatchError};
use archive_base::runs::Run;
use archive_books::recorder;
use archive_crawl::{End, Manners, Purpose};
use archive_storage::Store;
use serde::Serialize;

use super::cluster::turns::TurnsArgs;
use super::fetching::FetchArgs;
use super::options::{ArchiveArgs, ClockArgs, OutputsArgs, duration};
use super::progress::{ALL_FETCHED, Progress};
use super::refresh::left;
use super::{EXIT_STOPPED, UsageError, deliveries, interrupt, open, output};

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
    add: Add,
}

#[derive(clap::Args)]
struct Add {
    /// Query for pages
    #[arg(value_name = "QUERY", num_args = 1..)]
    query: Vec<String>,
    #[command(flatten)]
    archive: ArchiveArgs,
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
    #[arg(long, value_name = "FORMAT", requires = "output", default_value = "text")]
    format: FormatName,
    #[command(flatten)]
    clock: ClockArgs,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show all watches
    List(List),
    /// Show the newest report of a watch, or make one now
    Report(Box<Report>),
    /// Remove a watch and its reports
    Remove(Remove),
}

#[derive(clap::Args)]
struct List {
    #[command(flatten)]
    archive: ArchiveArgs,
    /// One JSON object per watch
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Report {
    /// Name of the watch
    name: String,
    #[command(flatten)]
    archive: ArchiveArgs,
    /// Format of the output; atom also has earlier reports
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: FormatName,
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
struct Remove {
    /// Name of the watch
    name: String,
    #[command(flatten)]
    archive: ArchiveArgs,
}

/// Format of a report.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum FormatName {
    /// Text for people to read
    Text,
    /// One JSON object
    Json,
    /// An Atom feed
    Atom,
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Text => Self::Text,
            FormatName::Json => Self::Json,
            FormatName::Atom => Self::Atom,
        }
    }
}

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

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        None => add(&args.add).map_err(as_usage)?,
        Some(Command::List(list)) => show(list)?,
        Some(Command::Remove(remove)) => {
            open::check_exists(&remove.archive.path)?;
            watch::remove(&remove.archive.path, &remove.name)?;
        }
        Some(Command::Report(args)) => return report(args),
    }
    Ok(ExitCode::SUCCESS)
}

/// Mistakes in the arguments have their own exit code.
fn as_usage(error: anyhow::Error) -> anyhow::Error {
    use WatchError::{Name, Period, Query};
    match error.downcast_ref::<WatchError>() {
        Some(Name(_) | Period) => UsageError(error.to_string()).into(),
        Some(Query(query)) if query.is_mistake() => UsageError(error.to_string()).into(),
        _ => error,
    }
}

fn add(args: &Add) -> anyhow::Result<()> {
    if args.query.is_empty() {
        let text = "give a query: archive watch 'page host = \"example.org\"' --every week";
        return Err(UsageError(text.to_owned()).into());
    }
    let store = Store::read_only(&args.archive.path)?;
    let output = match &args.output {
        // cron starts in another folder.
        Some(path) => Some(Output { path: path::absolute(path)?, format: args.format.into() }),
        None => None,
    };
    let now = args.clock.clock().now();
    let query = args.query.join(" ");
    let watch = watch::add(&store, &query, args.every, args.name.as_deref(), output, now)?;
    let pages = watch.pages(&store, now)?.len();
    output::note(format_args!(
        "watch '{}' of {}; its first report is due {}",
        watch.name,
        output::count(pages as u64, "page"),
        output::minute(watch.due_at())
    ));
    if let Some(folder) = watch.output.as_ref().and_then(|output| output.path.parent()) {
        output::note(format_args!(
            "`archive refresh` writes its file when it is given --outputs {}",
            folder.display()
        ));
    }
    Ok(())
}

#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    watch: &'a Watch,
    due: String,
    /// End of the newest report.
    reported: Option<String>,
}

fn show(args: &List) -> anyhow::Result<()> {
    open::check_exists(&args.archive.path)?;
    let mut table = output::table(&["name", "every", "next report", "last report", "query"], &[]);
    for watch in watch::list(&args.archive.path)? {
        let last = watch::latest(&args.archive.path, &watch)?.map(|report| report.until);
        if args.json {
            let row =
                Row { watch: &watch, due: output::utc(watch.due_at()), reported: last.map(output::utc) };
            output::json_line(&row)?;
            continue;
        }
        table.add_row([
            watch.name.clone(),
            indicatif::HumanDuration(Duration::from_secs(watch.every_seconds)).to_string(),
            output::minute(watch.due_at()),
            last.map_or("-".to_owned(), output::minute),
            watch.query,
        ]);
    }
    if !args.json {
        output::print(&table)?;
    }
    Ok(())
}

fn report(args: &Report) -> anyhow::Result<ExitCode> {
    open::check_exists(&args.archive.path)?;
    let watch = watch::get(&args.archive.path, &args.name)?;
    if args.now && make_now(args, &watch)? == End::Stopped {
        return Ok(ExitCode::from(EXIT_STOPPED));
    }
    if watch::latest(&args.archive.path, &watch)?.is_none() {
        output::note(format_args!(
            "no report of '{}' yet; the first is due {}, or --now",
            watch.name,
            output::minute(watch.due_at())
        ));
        return Ok(ExitCode::SUCCESS);
    }
    let text = watch::render(&args.archive.path, &watch, args.format.into())?;
    match args.format {
        FormatName::Text => text.lines().try_for_each(output::line)?,
        _ => output::text(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Fetches the pages of a watch and makes its report.
fn make_now(args: &Report, watch: &Watch) -> anyhow::Result<End> {
    let started = Instant::now();
    let mut options = args.fetch.options(&args.archive.path, Manners::default())?;
    options.account = Some(Run::begins("watch", options.fetch.clock.now()));
    let stop = interrupt::install()?;
    let mut store = args.turns.own(&args.archive.path, &options)?;
    options.cluster = args.turns.place(&mut store)?;
    let awaited = deliveries::awaited(vec![watch.clone()], &store, &options);
    let pages = watch::pages_of(&awaited);
    options.time = args.time.map(|time| left(time, started));
    let mut progress = Progress::start(Some(pages.len() as u64));
    let (end, status) =
        archive_crawl::run(&mut store, Purpose::Refresh { pages }, &options, &stop, &mut |status| {
            progress.show(status);
        })?;
    if end != End::Stopped {
        let now = options.fetch.clock.now();
        let deliveries = watch::deliver(awaited, &store, now, &args.outputs.outputs);
        // The report itself is printed later, in the requested format.
        deliveries.iter().for_each(deliveries::note_withheld);
        let others: Vec<_> = deliveries
            .into_iter()
            .filter(|delivery| !matches!(delivery, watch::Delivery::Made { .. }))
            .collect();
        deliveries::print(&args.archive.path, &others, false)?;
    }
    recorder::close(store)?;
    progress.finish(end, ALL_FETCHED, &status, &args.archive.path);
    Ok(end)
}
