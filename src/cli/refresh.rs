//! `archive refresh`: spend a budget of fetches on what is most obsolete.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use archive::crawl::{self, End, Options, Plan, Status, agenda};
use archive::ledger::Credits;
use archive::watch::{self, Awaited, Delivery, Format, Watch};
use archive_storage::Store;
use serde::Serialize;

use super::options::{ArchiveArgs, FetchArgs, duration};
use super::progress::Progress;
use super::{EXIT_STOPPED, interrupt, open, output};

/// The part of the time that is kept for the end (the last checkpoint, reports), as a divisor, and at most.
const TIME_FOR_END: u32 = 10;
const TIME_FOR_END_MAX: Duration = Duration::from_secs(20);

/// Fetch again what is most obsolete: important pages that probably changed, the most overdue first.
///
/// Pages of watches whose reports are due come first, then those that site masters announced. Pages are asked for
/// conditionally; what has not changed is stored as a revisit. Meant for cron: a second start while one runs says so and
/// leaves with exit code 3; after missed runs the next one fetches no more than its budget, the most overdue first.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive refresh --budget 5000
  archive refresh --budget 5000 --for 50m      # an hourly cron job that ends before the next one

A first cron line (examples/ has more, and systemd units):
  7 * * * *  archive refresh --archive /srv/web.archive --budget 5000 --for 50m

The last line on standard error sums the run up. Exit codes: 0 done (also when the time is over), 1 failed, 2 wrong usage,
3 the archive is in use, 4 stopped by a signal.")]
pub(crate) struct Args {
    /// Pages to fetch, at most
    #[arg(long, value_name = "N")]
    budget: u64,
    #[command(flatten)]
    archive: ArchiveArgs,
    /// Be done within this time (30s, 10m, 2h)
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,
    /// One JSON object for each report and for the run, on standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    fetch: FetchArgs,
}

#[derive(Serialize)]
struct Summary {
    budget: u64,
    captures: u64,
    unchanged: u64,
    errors: u64,
    refused: u64,
    bytes: u64,
    seconds: f64,
    end: &'static str,
    reports: usize,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let mut options = args.fetch.options()?;
    args.fetch.start_log()?;
    let stop = interrupt::install()?;
    open::check_exists(&args.archive.path)?;
    let mut store = open::own(&args.archive.path, None, Some(&options.fetch))?;
    let now = options.fetch.clock.now();
    let due = watch::list(&args.archive.path)?.into_iter().filter(|watch| watch.is_due(now)).collect();
    let awaited = awaited(due, &store, &options);
    let credits = Credits::open(store.state())?;
    let budget = usize::try_from(args.budget).unwrap_or(usize::MAX);
    let pages = agenda(store.state(), &credits, budget, now, &watch::pages_of(&awaited))?;
    drop(credits);
    options.time = args.time.map(|time| left(time, started));
    let mut progress = Progress::start(Some(pages.len() as u64));
    let (end, status) = crawl::run(&mut store, Plan::Refresh { pages }, &options, &stop, &mut |status| {
        progress.show(status);
    })?;
    let reports = if end == End::Stopped {
        0
    } else {
        let deliveries = watch::deliver(awaited, &store, options.fetch.clock.now());
        tell(&args.archive.path, &deliveries, args.json)?
    };
    store.close()?;
    progress.finish(end, &status, &args.archive.path);
    if args.json {
        output::json_line(&summary(args.budget, end, &status, reports))?;
    }
    Ok(if end == End::Stopped { ExitCode::from(EXIT_STOPPED) } else { ExitCode::SUCCESS })
}

/// What is left of the time for fetching.
pub(crate) fn left(time: Duration, started: Instant) -> Duration {
    time.saturating_sub((time / TIME_FOR_END).min(TIME_FOR_END_MAX)).saturating_sub(started.elapsed())
}

/// The pages that watches wait for; a watch that fails is told of and left out.
pub(crate) fn awaited(due: Vec<Watch>, store: &Store, options: &Options) -> Vec<Awaited> {
    let (awaited, failed) = watch::await_pages(due, store, options.fetch.clock.now());
    for (watch, error) in failed {
        eprintln!("archive: the watch '{}' cannot be served: {error}", watch.name);
    }
    awaited
}

/// Prints reports that go nowhere else, and says what became of the others; how many were made.
pub(crate) fn tell(archive: &Path, deliveries: &[Delivery], json: bool) -> anyhow::Result<usize> {
    let mut made = 0;
    for delivery in deliveries {
        match delivery {
            Delivery::Made(report) => {
                made += 1;
                let watch = watch::get(archive, &report.watch)?;
                if json {
                    output::json_line(report)?;
                } else if watch.output.is_none() {
                    let text = watch::render(archive, &watch, Format::Text)?;
                    text.lines().try_for_each(|line| output::line(&output::harmless(line)))?;
                    output::line("")?;
                }
            }
            Delivery::Postponed { watch, missing } => eprintln!(
                "archive: the report of '{}' waits for {missing} pages; the next refresh goes on with them",
                watch.name
            ),
            Delivery::Failed { watch, error } => {
                eprintln!("archive: the report of '{}' cannot be made: {error}", watch.name);
            }
        }
    }
    Ok(made)
}

fn summary(budget: u64, end: End, status: &Status, reports: usize) -> Summary {
    Summary {
        budget,
        captures: status.captures,
        unchanged: status.unchanged,
        errors: status.errors,
        refused: status.refused,
        bytes: status.bytes,
        seconds: status.elapsed.as_secs_f64(),
        end: match end {
            End::Complete => "complete",
            End::Limit => "limit",
            End::Time => "time",
            End::Stopped => "stopped",
        },
        reports,
    }
}
