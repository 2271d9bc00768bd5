//! `archive cluster`: the state of a cluster's nodes; also the options of a crawl that belongs to a cluster.

use std::process::ExitCode;
use std::time::Duration;

use archive::jobs::{ClusterPlace, ClusterTurns};
use archive_books::cluster::{
    ClusterAudit, ClusterMeasures, Division, Drained, InFlight, Mode, NodeActivity, NodeStatus,
    PARTITIONS_MAX, Publications, audit, drain, moved, plan,
};
use archive_peers::share::ListProgress;
use indicatif::HumanCount;

use self::share::ShareArgs;
use super::options::duration;
use super::{Failure, Result, output};

pub(super) mod orders;
mod share;

/// Inspect and direct the nodes of a cluster
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Status(StatusArgs),
    Drain(DrainArgs),
    Balance(BalanceArgs),
    Share(ShareArgs),
}

/// The object store of a cluster.
#[derive(clap::Args)]
pub(crate) struct ClusterUrl {
    /// URL of the object store that the nodes share
    #[arg(long, value_name = "URL")]
    pub(crate) cluster: String,
}

/// Stop the node of a partition, so that another node can take the partition.
///
/// The node makes everything durable, sends its remaining batches, and ends. All other nodes wait for its successor,
/// which can start at once: move the archive's folder, or restore it from its copy, and start the crawl there.
#[derive(clap::Args)]
#[command(after_help = "Example:
  archive cluster drain 3 --cluster file:///srv/cluster")]
pub(crate) struct DrainArgs {
    /// Number of the partition
    #[arg(value_name = "N")]
    partition: u16,
    #[command(flatten)]
    store: ClusterUrl,
    /// Name of the node of `archive node` that takes the partition; it has a minute to do so
    #[arg(long, value_name = "NODE")]
    to: Option<String>,
    /// Longest wait for the node to end
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "2m")]
    wait: Duration,
}

/// Move partitions between the machines of `archive node` to balance the importance that waits on each.
///
/// Partitions are moved one after the other: each is drained, as by `archive cluster drain --to`, and its next machine
/// continues it from its copy. All machines need --copies.
#[derive(clap::Args)]
#[command(after_help = "Example, after a machine was added:
  archive cluster balance --cluster s3://crawl/cluster --node machine9")]
pub(crate) struct BalanceArgs {
    #[command(flatten)]
    store: ClusterUrl,
    /// Name of a node that has no partition yet; may be repeated
    #[arg(long = "node", value_name = "NODE")]
    nodes: Vec<String>,
    /// Move nothing, only report what would be moved
    #[arg(long)]
    dry_run: bool,
    /// Longest wait for a node to leave a partition, and for the next node to take it
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "2m")]
    wait: Duration,
    /// One JSON object: the importance that waits at each node before and after, and the moves
    #[arg(long)]
    json: bool,
}

/// Show the progress of partitions, batches in flight, how well the nodes divide the work, whether all cash is accounted
/// for, and the state of orders
#[derive(clap::Args)]
#[command(
    after_help = "The exit code is 1 if any cash was lost or created, to the last unit; 0 also while batches have yet to be written.

Examples:
  archive cluster status --cluster file:///srv/cluster
  archive cluster status --cluster file:///srv/cluster --json"
)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    store: ClusterUrl,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// A crawl's place in a cluster.
#[derive(clap::Args)]
#[command(next_help_heading = "Several nodes (docs/cluster.md)")]
pub(crate) struct ClusterArgs {
    /// URL of the object store that the nodes share (file:///srv/cluster): crawls one partition of the web, together
    /// with other nodes
    #[arg(long, value_name = "URL", requires = "partition")]
    cluster: Option<String>,
    /// Partition of this archive and number of partitions: 3/8; all nodes need the same seeds
    #[arg(long, value_name = "N/COUNT", requires = "cluster", value_parser = partition)]
    partition: Option<(u16, u16)>,
    /// Treatment of links to other partitions: exchange, firewall or crossover; set by the node that starts the cluster
    /// [default: exchange]
    #[arg(long, value_name = "MODE", requires = "cluster")]
    cluster_mode: Option<Mode>,
    /// What decides which partition a site belongs to: site, country (all sites of a country's domain together), or
    /// country:de=1,fr=2 (these in partitions 1 and 2); set by the node that starts the cluster [default: site]
    #[arg(long, value_name = "WHAT", requires = "cluster")]
    partition_by: Option<Division>,
    /// Name of this node [default: the machine's name]
    #[arg(long, value_name = "NAME", requires = "cluster")]
    node: Option<String>,
    /// Ask the parent process, over standard input, before each request (`archive node`)
    #[arg(long, requires = "cluster", hide = true)]
    pub(crate) slots: bool,
    /// Take the partition only if this is its newest epoch, that is, if no other machine has started it since (`archive
    /// node`)
    #[arg(long, requires = "cluster", hide = true)]
    after_epoch: Option<u64>,
}

impl ClusterArgs {
    /// The place in a cluster, if given.
    pub(crate) fn place(&self) -> Option<ClusterPlace> {
        let (url, partition) = (self.cluster.clone()?, self.partition?);
        let (mode, node, after) = (self.cluster_mode, self.node.clone(), self.after_epoch);
        Some(ClusterPlace { url, partition, mode, by: self.partition_by.clone(), node, after })
    }
}

/// Coordination of requests with other nodes that fetch from the same addresses.
#[derive(clap::Args)]
pub(crate) struct TurnsArgs {
    /// URL of the object store that the nodes of the archive's cluster share: takes turns with them at addresses from
    /// which they fetch, too (docs/cluster.md)
    #[arg(long, value_name = "URL")]
    cluster: Option<String>,
    /// Name of this node [default: the machine's name]
    #[arg(long, value_name = "NAME", requires = "cluster")]
    node: Option<String>,
}

impl TurnsArgs {
    pub(crate) fn turns(&self) -> ClusterTurns {
        ClusterTurns { cluster: self.cluster.clone(), node: self.node.clone() }
    }
}

/// Parses two numbers such as `3/8`.
fn partition(text: &str) -> Result<(u16, u16), String> {
    let parts =
        text.split_once('/').and_then(|(number, count)| Some((number.parse().ok()?, count.parse().ok()?)));
    parts.filter(|(number, count)| (1..=*count).contains(number) && *count <= PARTITIONS_MAX).ok_or_else(
        || {
            format!(
                "'{text}' is not a partition; write it like 3/8, with at most {PARTITIONS_MAX} partitions"
            )
        },
    )
}

pub(crate) fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Status(args) => status(args),
        Command::Drain(args) => leave(args),
        Command::Balance(args) => balance(args),
        Command::Share(args) => share::run(args),
    }
}

fn balance(args: &BalanceArgs) -> Result<ExitCode> {
    let balance = plan(&args.store.cluster, &args.nodes)?;
    if args.json {
        output::json_line(&balance)?;
    } else {
        let mut table = output::table(&["node", "share of what waits", "then"], &[1, 2]);
        let all = balance.before.values().sum::<u64>().max(1) as f64 / 100.0;
        for ((node, before), after) in balance.before.iter().zip(balance.after.values()) {
            let share = |units: u64| format!("{:.1} %", units as f64 / all);
            table.add_row([output::visible(node).into_owned(), share(*before), share(*after)]);
        }
        output::print(&table)?;
    }
    let mut is_done = true;
    for one in &balance.moves {
        let (partition, to) = (one.partition, output::visible(&one.to));
        if !args.json {
            say!("partition {partition}: '{}' to '{to}'", output::visible(&one.from))?;
        }
        if !args.dry_run {
            drain(&args.store.cluster, partition, Some(&one.to), args.wait)?;
            let node = moved(&args.store.cluster, one, args.wait)?;
            if node != one.to {
                is_done = false;
                let node = output::visible(&node);
                note!("'{node}' has taken partition {partition}, not '{to}'");
            }
        }
    }
    Ok(if is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn leave(args: &DrainArgs) -> Result<ExitCode> {
    let Drained { status, had_ended } =
        drain(&args.store.cluster, args.partition, args.to.as_deref(), args.wait)?;
    let (node, partition) = (output::visible(&status.node), args.partition);
    output::line(&if had_ended {
        format!("the node '{node}' had already left partition {partition}; another one can take it")
    } else {
        format!("the node '{node}' has left partition {partition}; another one can take it")
    })?;
    Ok(ExitCode::SUCCESS)
}

fn status(args: &StatusArgs) -> Result<ExitCode> {
    let audit = audit(&args.store.cluster)?;
    let orders = || Ok::<_, Failure>(ListProgress::look(&Publications::look(&args.store.cluster)?)?);
    if args.json {
        output::json_line(&object! { #[serde(flatten)] audit: &audit, orders: orders()? })?;
    } else {
        // An error in the progress of orders must not hide the audit.
        show(&audit)?;
        orders()?.iter().try_for_each(orders::show_progress)?;
    }
    Ok(if audit.is_exact == Some(false) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn show(audit: &ClusterAudit) -> Result<()> {
    let headings =
        ["partition", "node", "epoch", "state", "pages", "waiting", "sent", "received", "reported"];
    let mut table = output::table(&headings, &[0, 2, 4, 5, 6, 7]);
    for (status, number) in audit.told.iter().zip(1..) {
        table.add_row(status.as_ref().map_or_else(|| never(number), row));
    }
    output::print(&table)?;
    for InFlight { from, to, batches, unwritten, .. } in &audit.in_flight {
        let unwritten = match unwritten {
            0 => String::new(),
            _ => format!("; {unwritten} not written yet"),
        };
        say!("{from} to {to}: batches in flight: {}{unwritten}", HumanCount(*batches))?;
    }
    show_measures(&audit.measures)?;
    for partition in &audit.wrong_books {
        say!(
            "the books of partition {partition} do not add up: its cash is not what it began with plus what it received minus what it sent"
        )?;
    }
    let ClusterAudit { expected, found, .. } = audit;
    let mode = format!("mode {}, sites divided by {}", audit.mode, audit.by);
    output::line(&match audit.is_exact {
        Some(true) => format!("{mode}; all cash is there: {expected} units, to the last one"),
        Some(false) => format!("{mode}; {found} units of cash instead of {expected}"),
        None => format!(
            "{mode}; cash can be added up once all batches are written: run the partitions that send them"
        ),
    })
}

fn show_measures(measures: &ClusterMeasures) -> Result<()> {
    let ClusterMeasures { overlap, coverage, coverage_min, quality, links, bytes } = measures;
    let (Some(coverage), Some(least), Some(quality), Some(links), Some(bytes)) =
        (coverage, coverage_min, quality, links, bytes)
    else {
        return Ok(());
    };
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let least = if least < coverage { format!(" (at least {})", percent(*least)) } else { String::new() };
    say!(
        "overlap {:.2}; coverage {}{least}, with {} of the importance; a page, {links:.2} links and {bytes:.1} bytes sent",
        overlap.unwrap_or_default(),
        percent(*coverage),
        percent(*quality)
    )
}

fn never(number: u16) -> Vec<String> {
    let mut row = vec![number.to_string(), String::new(), String::new(), "never begun".to_owned()];
    row.resize(9, String::new());
    row
}

fn row(status: &NodeStatus) -> Vec<String> {
    let state = match &status.activity {
        NodeActivity::Running => "running".to_owned(),
        NodeActivity::Idle => "waits for others".to_owned(),
        NodeActivity::Complete => "complete".to_owned(),
        NodeActivity::Ended(why) => format!("ended ({why})"),
        NodeActivity::Drained => "waits for its next node".to_owned(),
    };
    let pages = |marks: &std::collections::BTreeMap<u16, archive_books::cluster::Mark>| {
        HumanCount(marks.values().map(|mark| mark.pages).sum()).to_string()
    };
    vec![
        status.partition.to_string(),
        output::visible(&status.node).into_owned(),
        status.epoch.to_string(),
        output::visible(&state).into_owned(),
        HumanCount(status.progress.pages).to_string(),
        HumanCount(status.progress.waiting).to_string(),
        pages(&status.marks.sent),
        pages(&status.marks.received),
        output::visible(&status.time).into_owned(),
    ]
}
