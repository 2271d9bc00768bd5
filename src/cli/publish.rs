//! `archive publish`: accepts announcements of changed pages.

use std::path::PathBuf;

use archive::jobs::{self, Opening};
use archive_books::ledger::Credits;
use archive_books::recorder;
use archive_crawl::publish::{self, Announcement, BYTES_MAX, PublishError};
use archive_storage::Store;
use archive_web::fetch;

use super::messages::Hearing;
use super::options::{ArchiveArgs, ClockArgs};
use super::{Failure, Result, input, output, usage};

/// Maximum number of out-of-scope URLs listed.
const NAMED_MAX: usize = 10;

/// Announce new or changed pages, which the next refresh or crawl fetches first.
///
/// Unknown pages are fetched if they are in the crawl's scope. At most half of a refresh's budget goes to announced
/// pages.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive publish https://www.example.org/news/ https://www.example.org/new-page
  archive publish --file sitemap.xml            # also .xml.gz, a list of URLs, IndexNow's JSON; - is standard input
  archive publish --file catalogue.txt --cluster catalogue   # from now on fetched together
  archive publish --waiting")]
pub(crate) struct Args {
    /// URLs of new or changed pages
    #[arg(value_name = "URL")]
    urls: Vec<String>,
    /// File with such URLs: one per line, a sitemap, a feed, or IndexNow's JSON; - is standard input
    #[arg(long, value_name = "FILE")]
    file: Vec<PathBuf>,
    #[command(flatten)]
    archive: ArchiveArgs,
    /// Name of a cluster: its pages, those announced here, are fetched together from now on; a later announcement for
    /// NAME replaces it
    #[arg(long, value_name = "NAME", conflicts_with = "forget_cluster")]
    cluster: Option<String>,
    /// Name of a cluster to dissolve; its pages are fetched one by one again
    #[arg(long, value_name = "NAME")]
    forget_cluster: Option<String>,
    /// List the waiting URLs
    #[arg(long, conflicts_with_all = ["urls", "file", "cluster", "forget_cluster"])]
    waiting: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    clock: ClockArgs,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    jobs::check_exists(&args.archive.path)?;
    if args.waiting {
        let store = Store::read_only(&args.archive.path)?;
        for url in publish::waiting(store.state(), &Credits::open(store.state())?)? {
            output::summary(args.json, &object! { url: &url }, || url.clone())?;
        }
        return Ok(());
    }
    let announced = read(args)?;
    if announced.is_empty() && args.forget_cluster.is_none() {
        refuse!("there is nothing to announce; give URLs or --file");
    }
    let clock = args.clock.clock();
    let settings = fetch::FetchSettings { clock, ..fetch::FetchSettings::default() };
    let opening = Opening { fetch: Some(&settings), ..Opening::default() };
    let mut store = jobs::open(&args.archive.path, &opening, &mut |event| Hearing::default().hear(event))?;
    let mut credits = Credits::open(store.state())?;
    if let Some(name) = &args.forget_cluster
        && !publish::forget_cluster(store.state_mut(), &credits, name)?
    {
        note!("there is no cluster '{name}'");
    }
    let outcome =
        publish::publish(store.state_mut(), &mut credits, &announced, args.cluster.as_deref(), clock.now())
            .map_err(mistake)?;
    credits.write_remarks::<publish::PublishError>(&mut store)?;
    recorder::close(store)?;
    if args.json {
        return output::json_line(&outcome);
    }
    for url in outcome.out_of_scope.iter().take(NAMED_MAX) {
        note!("{url} is out of scope of the crawl");
    }
    note!(
        "queued for the next refresh or crawl: {}; already queued: {}; fetched since they changed: {}; out of scope: {}; \
         no room in the queue: {}",
        outcome.queued,
        outcome.waiting,
        outcome.unchanged,
        outcome.out_of_scope.len(),
        outcome.over_limit
    );
    Ok(())
}

fn read(args: &Args) -> Result<Vec<Announcement>> {
    let mut announced = publish::read(args.urls.join("\n").as_bytes())
        .map_err(|error| usage(error.to_string().replace("line ", "URL ")))?;
    for file in &args.file {
        let found = publish::read(&input::read(file, BYTES_MAX as u64)?)
            .map_err(|error| usage(format!("{}: {error}", file.display())))?;
        announced.extend(found);
    }
    Ok(announced)
}

/// Converts mistakes in an announcement to usage errors.
fn mistake(error: PublishError) -> Failure {
    match error {
        PublishError::Credit(error) => error.into(),
        error => usage(error.to_string()),
    }
}
