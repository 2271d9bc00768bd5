//! `archive node`: crawls the partitions of a cluster that have no node.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use archive_books::cluster::{Division, Member, Mode, PARTITIONS_MAX, Vacancy};
use archive_crawl::WORKERS_MAX;
use archive_peers::supervisor::{self, CrawlsOfMachine};

use super::cluster::ClusterUrl;
use super::{During, EXIT_STOPPED, EXIT_USAGE, Result, interrupt};

/// Crawl the partitions of a cluster that have no node, each in its own process and folder, as `archive crawl` does.
///
/// Run the same command on all machines. Each takes one partition at a time, so that machines started together share
/// them. If the node of a partition is gone (killed, drained, or silent for two minutes), the machine that has its
/// archive continues the partition, or, with --copies, any machine. When stopped, the command drains its partitions,
/// and others continue them at once. It ends when nothing waits in any partition.
#[derive(clap::Args)]
#[command(after_help = "Example, on each machine:
  archive node --cluster s3://crawl/cluster --partitions 64 --archives /srv/archives --partitions-max 16 \\
    --copies s3://crawl/copies -- --seeds /srv/list.txt --scope any --user-agent 'mybot/1.0 (+https://example.org/bot)'")]
pub(crate) struct Args {
    #[command(flatten)]
    store: ClusterUrl,
    /// Number of partitions of the cluster; set by the first node
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=i64::from(PARTITIONS_MAX)))]
    partitions: u16,
    /// Treatment of links to other partitions: exchange, firewall or crossover; set by the node that starts the cluster
    /// [default: exchange]
    #[arg(long, value_name = "MODE")]
    cluster_mode: Option<Mode>,
    /// What decides which partition a site belongs to: site, country (all sites of a country's domain together), or
    /// country:de=1,fr=2 (these in partitions 1 and 2); set by the node that starts the cluster [default: site]
    #[arg(long, value_name = "WHAT")]
    partition_by: Option<Division>,
    /// Name of this node [default: the machine's name]
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Folder of the archives; partition 3 is in 3.archive
    #[arg(long, value_name = "DIR")]
    archives: PathBuf,
    /// Maximum number of partitions that this machine takes; those whose archive it has continue anyway
    #[arg(long, value_name = "N", default_value_t = PARTITIONS_MAX)]
    partitions_max: u16,
    /// URL to which each archive is copied after each checkpoint (crawl --copy-to), and from which partitions of other
    /// machines are taken over
    #[arg(long, value_name = "URL")]
    copies: Option<String>,
    /// Concurrent requests of all partitions of this machine together; each is for the most important page of all
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=WORKERS_MAX as i64))]
    workers: u16,
    /// Options of the crawls, after --
    #[arg(last = true, required = true, value_name = "CRAWL OPTIONS")]
    crawl: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let control = interrupt::install()?;
    fs::create_dir_all(&args.archives).within(args.archives.display())?;
    let place = (1, args.partitions);
    let treats = (args.cluster_mode, args.partition_by.as_ref());
    let member = Member::find(&args.store.cluster, place, treats, args.node.as_deref())?;
    let crawl =
        |vacancy: &Vacancy, folder: &Path, copies: Option<&str>| command(args, vacancy, folder, copies);
    let machine = CrawlsOfMachine {
        member: &member,
        archives: &args.archives,
        partitions_max: usize::from(args.partitions_max),
        copies: args.copies.as_deref(),
        requests_max: usize::from(args.workers),
        command: &crawl,
        exit_codes: [EXIT_STOPPED, EXIT_USAGE],
    };
    let is_stopped = supervisor::run(&machine, &control, &mut |text| note!("{text}"))?;
    Ok(if is_stopped { ExitCode::from(EXIT_STOPPED) } else { ExitCode::SUCCESS })
}

/// The crawl of a partition.
fn command(args: &Args, vacancy: &Vacancy, folder: &Path, copies: Option<&str>) -> Command {
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("archive"));
    let mut command = Command::new(program);
    command.arg("crawl").args(&args.crawl).arg("--archive").arg(folder);
    command.args(["--cluster", &args.store.cluster, "--partition"]);
    command.arg(format!("{}/{}", vacancy.number, args.partitions)).arg("--slots");
    command.args(["--after-epoch", &vacancy.epoch.to_string()]);
    if let Some(url) = copies {
        command.args(["--copy-to", url]);
    }
    if let Some(node) = &args.node {
        command.args(["--node", node]);
    }
    command
}
