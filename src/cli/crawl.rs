//! `archive crawl`: starts or continues a crawl.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use archive::jobs::{self, CrawlJob, CrawlOutcome, Failure};
use archive_books::ledger::ScopeKind;
use archive_choose::{CrawlOrder, CrawlPolicy, FocusPolicy};
use archive_crawl::{
    CopyTo, CrawlOptions, EndReason, HARVEST_PAGES_MAX, HarvestRules, Manners, Seed, SeedError, Timings,
    listed_seeds, read_seeds,
};
use archive_math::focus::FocusMode;
use archive_storage::segment::{CompressionTotals, Shrinking};
use archive_storage::warc::CaptureList;
use indicatif::HumanCount;

use super::cash::CashArgs;
use super::cluster::ClusterArgs;
use super::fetching::{FetchArgs, KEPT};
use super::messages::Hearing;
use super::options::{ArchiveArgs, SegmentArgs, duration};
use super::progress::{self, ALL_FETCHED};
use super::{During, EXIT_STOPPED, Result, interrupt, output, usage};

/// Maximum number of failed seeds listed.
const FAILED_SEEDS_MAX: usize = 10;

/// Start a crawl from a list of seeds; the same command continues it where the last run stopped.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive crawl --seeds list.txt
  archive crawl --seeds list.txt --scope host --max-depth 3 --for 1h
  archive crawl --seeds list.txt --inter-host 3 --favour news --favour 'xml*4' --sites host
  archive crawl --seeds list.txt --topic maps --stop-harvest 0.02/1000
  archive crawl --seeds list.txt --topic maps --stop-recall 0.9
  archive crawl --seeds list.txt --archive A3 --cluster file:///srv/cluster --partition 3/8
  archive crawl --seeds list.txt --limit 500 --delay 5s --user-agent 'mybot/1.0 (+https://example.org/bot)'

Changes to the file crawl.toml in the archive's folder take effect during the run. Its settings override the command line; a file with a mistake changes nothing.
  paused = true                     # nothing new is fetched; SIGUSR1 pauses and SIGUSR2 resumes, too
  delay = '5s'
  scope = 'host'
  ignore = ['/print/', '[?&]replytocom=']
  [host.'slow.example.org']
  delay = '30s'

A list of captures (CDX, CDXJ, a CDX server's JSON; gzip or plain) is a seeds file, too: the pages that another archive has.

Each line of the seeds file is a URL, optionally followed by its options; # starts a comment:
  https://www.example.org/
  https://example.com/docs/   scope=host depth=3 delay=5s   # slow server")]
pub(crate) struct Args {
    /// File with one seed URL per line, '-' for standard input, or an http(s) URL of such a file
    #[arg(long, value_name = "FILE")]
    seeds: String,
    #[command(flatten)]
    archive: ArchiveArgs,
    /// Number of pages after which to stop; their images, style sheets and scripts are fetched but not counted
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Time after which to stop (30s, 10m, 2h)
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,
    /// Scope of the crawl: host, site (registrable domain) or any; or regex:PATTERN for URLs [default: site]
    #[arg(long, value_name = "SCOPE", help_heading = KEPT)]
    scope: Option<ScopeKind>,
    /// Maximum number of links from a seed to a page [default: 255]
    #[arg(long, value_name = "N", help_heading = KEPT)]
    max_depth: Option<u8>,
    /// Crawl order: cash (OPIC), endowed[@M], fpr[@M], pagerank[@N], rankmass[@N], cycle, breadth, depth, backlinks or
    /// random; M is the weight of a link between hosts, N the number of pages after which ranks are computed again
    /// (pagerank: a tenth of the pages fetched; rankmass: a twentieth of those that wait)
    #[arg(long, default_value = "cash", value_name = "ORDER")]
    order: CrawlOrder,
    /// Maximum number of pages of a host; multiplied by the importance of its site if that is above 1 (by links from
    /// other sites); 0 for no limit
    #[arg(long, value_name = "N", help_heading = KEPT)]
    pages_per_host: Option<u32>,
    /// Maximum number of pages of a site; likewise higher for important sites; 0 for no limit
    #[arg(long, value_name = "N", help_heading = KEPT)]
    pages_per_site: Option<u32>,
    /// Maximum number of variations of a page by a query of three or more parameters; 0 for no limit [default: 1000]
    #[arg(long, value_name = "N", help_heading = KEPT)]
    query_variations: Option<u32>,
    /// Number of pages of a host with nearly the same content after which links of further ones are not followed; 0 for
    /// no limit [default: 250]
    #[arg(long, value_name = "N", help_heading = KEPT)]
    same_content: Option<u32>,
    /// Parameters left out of all links, separated by commas; 'utm_*' means all that begin like it. Others that make no
    /// difference are found by tests of each host
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = KEPT)]
    drop_parameters: Option<Vec<String>>,
    /// Do not extend the scope to the site to which a seed redirects; =false to end it
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = KEPT)]
    leave_moved_seeds: Option<bool>,
    /// Do not follow links marked nofollow (rel=nofollow, meta name=robots, X-Robots-Tag); =false to end it
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = KEPT)]
    obey_nofollow: Option<bool>,
    #[command(flatten)]
    focus: FocusArgs,
    #[command(flatten)]
    fetch: FetchArgs,
    #[command(flatten)]
    cash: CashArgs,
    #[command(flatten)]
    segments: SegmentArgs,
    /// Time between checkpoints, which bounds how much is replayed after a crash and how late other nodes get links;
    /// longer if checkpoints would take more than a twentieth of the time
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s")]
    checkpoint_every: Duration,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// URL to which the archive is copied after each checkpoint, as by `archive copy`: a lost disk then costs only the
    /// captures since the last copy. In a cluster, nothing is sent to other nodes before a copy contains it
    #[arg(long, value_name = "URL")]
    copy_to: Option<String>,
    /// Number of copies to keep there; older ones are removed
    #[arg(long, value_name = "N", requires = "copy_to", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    copy_keep: u64,
    /// At the end, print one JSON object
    #[arg(long)]
    json: bool,
    /// At the end, print how the processor time per page was spent, and the speed in each tenth of the run
    #[arg(long)]
    timings: bool,
}

/// Topic and stopping rules of a focused crawl.
#[derive(clap::Args)]
struct FocusArgs {
    /// Topic whose pages are fetched first (see `archive topic learn`)
    #[arg(long, value_name = "NAME", conflicts_with = "order")]
    topic: Option<String>,
    /// Focused crawl order: learned, soft, hard (follows only links of the topic's pages), tunnel:N (also follows links
    /// up to N pages beyond the topic), context, reinforced, fish, shark, parent-anchor or ucb
    #[arg(long, default_value = "learned", value_name = "MODE", requires = "topic")]
    topic_mode: FocusMode,
    /// Weight of the topic relative to importance, 0 to 1
    #[arg(long, default_value_t = 0.8, value_name = "WEIGHT", requires = "topic")]
    focus: f64,
    /// Share X of the last N pages that must belong to the topic; the crawl stops when fewer do [N: 500]
    #[arg(long, value_name = "X[/N]", requires = "topic", value_parser = harvest)]
    stop_harvest: Option<(f64, u32)>,
    /// Number of the topic's pages after which to stop
    #[arg(long, value_name = "N", requires = "topic")]
    stop_found: Option<u64>,
    /// Estimated share of the topic's pages, for example 0.9, after which to stop
    #[arg(long, value_name = "SHARE", requires = "topic", value_parser = recall)]
    stop_recall: Option<f64>,
}

/// Parses a share, and the number of pages to which it applies.
fn harvest(text: &str) -> Result<(f64, u32), String> {
    let (share, pages) = text.split_once('/').unwrap_or((text, "500"));
    let share = share.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    let pages = pages.parse().ok().filter(|pages| (1..=HARVEST_PAGES_MAX).contains(pages));
    share
        .zip(pages)
        .ok_or_else(|| format!("a share from 0 to 1, / and 1 to {HARVEST_PAGES_MAX} pages, as in 0.02/500"))
}

/// Parses a recall, strictly between 0 and 1.
fn recall(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| *share > 0.0 && *share < 1.0);
    share.ok_or_else(|| "a share between 0 and 1, as in 0.9".to_owned())
}

impl Args {
    /// What the options say of the treatment of servers, and how far the crawl goes.
    fn manners(&self) -> Manners {
        Manners {
            scope: self.scope.clone(),
            max_depth: self.max_depth,
            pages_per_host: self.pages_per_host,
            pages_per_site: self.pages_per_site,
            query_variations: self.query_variations,
            same_content: self.same_content,
            drop_parameters: self.drop_parameters.clone(),
            leave_moved_seeds: self.leave_moved_seeds,
            obey_nofollow: self.obey_nofollow,
            ..self.fetch.manners()
        }
    }

    fn job(&self) -> Result<CrawlJob> {
        let FocusArgs { topic, topic_mode, focus, stop_harvest, stop_found, stop_recall } = &self.focus;
        let focus = |topic: &String| FocusPolicy { topic: topic.clone(), mode: *topic_mode, weight: *focus };
        let copy_to = |url: &String| CopyTo { url: url.clone(), keep: self.copy_keep };
        let policy =
            CrawlPolicy { order: self.order, focus: topic.as_ref().map(focus), ..CrawlPolicy::default() };
        Ok(CrawlJob {
            seeds: load_seeds(&self.seeds)?,
            manners: self.manners(),
            options: CrawlOptions {
                limit: self.limit,
                time: self.time,
                policy,
                harvest: HarvestRules { least: *stop_harvest, found: *stop_found, recall: *stop_recall },
                checkpoint_every: self.checkpoint_every,
                has_slots: self.cluster.slots,
                copies: self.copy_to.as_ref().map(copy_to),
                ..self.fetch.options()?
            },
            cash: self.cash.change(),
            segments: self.segments.options(),
            cluster: self.cluster.place(),
            index_versions: self.fetch.versions.index_versions,
        })
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let (path, job) = (&args.archive.path, args.job()?);
    args.fetch.start_log(std::slice::from_ref(path))?;
    let stop = interrupt::install()?;
    let mut hearing = Hearing::new(args.json);
    let outcome = jobs::crawl(path, job, &stop, &mut |event| hearing.hear(event))?;
    hearing.end()?;
    let CrawlOutcome { end, status, failed_seeds, is_in_vain } = outcome;
    progress::finish(end, ALL_FETCHED, &status, path);
    if args.json {
        output::json_line(&object! { end: end.name(), #[serde(flatten)] status: &status })?;
    }
    if args.timings {
        output::print(&timings_table(&status.timings))?;
        output::line(&packing(&status.timings.packing))?;
        print_pace(&status.timings)?;
    }
    for line in failed_seeds.iter().take(FAILED_SEEDS_MAX) {
        note!("{line}");
    }
    if let Some(more) = failed_seeds.len().checked_sub(FAILED_SEEDS_MAX).filter(|more| *more > 0) {
        note!("{} could not be fetched; see `archive why URL`", output::count(more as u64, "more seed"));
    }
    if end == EndReason::Stopped {
        return Ok(ExitCode::from(EXIT_STOPPED));
    }
    if is_in_vain {
        note!("no seed could be fetched; the next crawl tries them again");
        return Ok(ExitCode::FAILURE);
    }
    Ok(if end == EndReason::Waiting { ExitCode::from(EXIT_STOPPED) } else { ExitCode::SUCCESS })
}

/// A table of the stages with their CPU time in microseconds per capture.
fn timings_table(timings: &Timings) -> output::Table {
    let mut table = output::table(&["stage", "\u{b5}s a capture", "share"], &[1, 2]);
    let total = timings.total.as_secs_f64().max(f64::MIN_POSITIVE);
    let mut row = |name: &str, time: Duration| {
        let share = time.as_secs_f64() / total * 100.0;
        table.add_row([name.to_owned(), format!("{:.1}", timings.a_capture(time)), format!("{share:.1} %")]);
    };
    for (name, time) in &timings.stages {
        row(name, *time);
    }
    row("total processor time", timings.total);
    row("elapsed time", timings.elapsed);
    table
}

/// Describes what was packed in spare time, and how much that saved.
fn packing(packing: &CompressionTotals) -> String {
    let share = |of: &Shrinking| of.packed_bytes as f64 / of.plain_bytes.max(1) as f64;
    let CompressionTotals { hurried, at_leisure } = packing;
    format!(
        "{} packed in spare time, to {:.3} of their bytes; {} packed fast, to {:.3}",
        output::count(at_leisure.captures, "capture"),
        share(at_leisure),
        HumanCount(hurried.captures),
        share(hurried)
    )
}

/// Prints the speed for each tenth of the captures, and the last one relative to the first.
fn print_pace(timings: &Timings) -> Result<()> {
    let tenths = timings.pace.tenths();
    let (Some(first), Some(last)) = (tenths.first(), tenths.last()) else { return Ok(()) };
    let mut table = output::table(&["tenth", "captures/s", "\u{b5}s of processor a capture"], &[0, 1, 2]);
    for (number, part) in tenths.iter().enumerate() {
        let processor = part.processor.as_secs_f64() * 1e6;
        table.add_row([(number + 1).to_string(), format!("{:.0}", part.rate), format!("{processor:.1}")]);
    }
    output::print(&table)?;
    let processor = first.processor.as_secs_f64() / last.processor.as_secs_f64().max(f64::MIN_POSITIVE);
    let wall = last.rate / first.rate.max(f64::MIN_POSITIVE);
    let line = format!(
        "the last tenth ran at {wall:.2} of the speed of the first, {processor:.2} by processor time"
    );
    output::line(&line)
}

/// Reads the seeds; every bad line is reported before anything is fetched.
fn load_seeds(source: &str) -> Result<Vec<Seed>> {
    let text = if source == "-" {
        std::io::read_to_string(std::io::stdin()).within("cannot read the seeds from standard input")?
    } else if source.starts_with("http://") || source.starts_with("https://") {
        super::download::text(source)?
    } else if let Ok(Some(list)) = CaptureList::open(Path::new(source)) {
        return listed_seeds(list).map_err(|errors| invalid(source, &errors));
    } else {
        read_file(Path::new(source))?
    };
    read_seeds(&text).map_err(|errors| invalid(source, &errors))
}

fn invalid(source: &str, errors: &[SeedError]) -> Failure {
    let lines: Vec<String> = errors.iter().map(|error| format!("{source}, {error}")).collect();
    usage(lines.join("\narchive: "))
}

fn read_file(path: &Path) -> Result<String> {
    let bytes = fs::read(path).map_err(|error| {
        usage(format!("cannot read the seeds file {}: {error}; write one URL a line into it", path.display()))
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        usage(format!("the seeds file {} is not UTF-8 text (byte {place}); save it as UTF-8", path.display()))
    })
}
