//! `archive refresh`: spend a budget of fetches on what is most obsolete.

use std::process::ExitCode;
use std::time::Duration;

use archive::crawl::{self, End, Plan, most_obsolete};
use archive::ledger::Credits;

use super::options::{ArchiveArgs, FetchArgs, duration};
use super::progress::Progress;
use super::{EXIT_STOPPED, interrupt, open};

/// Fetch again what is most obsolete: important pages that probably changed, the most overdue first.
///
/// Pages are asked for conditionally; what has not changed is stored as a revisit. Meant for cron: a second start while
/// one runs says so and leaves with exit code 3.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive refresh --budget 5000
  archive refresh --budget 5000 --for 50m      # an hourly cron job that ends before the next one

A first cron line:
  7 * * * *  archive refresh --archive /srv/web.archive --budget 5000 --for 50m")]
pub(crate) struct Args {
    /// Pages to fetch, at most
    #[arg(long, value_name = "N")]
    budget: u64,
    #[command(flatten)]
    archive: ArchiveArgs,
    /// Stop after this time (30s, 10m, 2h)
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,
    #[command(flatten)]
    fetch: FetchArgs,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut options = args.fetch.options()?;
    options.time = args.time;
    let stop = interrupt::install()?;
    open::check_exists(&args.archive.path)?;
    let mut store = open::own(&args.archive.path, None, &options.fetch)?;
    let credits = Credits::open(store.state())?;
    let budget = usize::try_from(args.budget).unwrap_or(usize::MAX);
    let pages = most_obsolete(store.state(), &credits, budget, options.fetch.clock.now())?;
    let mut progress = Progress::start(Some(pages.len() as u64));
    let (end, status) = crawl::run(&mut store, Plan::Refresh { pages }, &options, &stop, &mut |status| {
        progress.show(status);
    })?;
    store.close()?;
    progress.finish(end, &status, &args.archive.path);
    Ok(if end == End::Stopped { ExitCode::from(EXIT_STOPPED) } else { ExitCode::SUCCESS })
}
