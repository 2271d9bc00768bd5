//! `archive cluster share`: access rules, topics and watches that apply to all nodes.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use archive::jobs::{self, OrderNews};
use archive_base::access::AccessError;
use archive_base::control::Control;
use archive_books::cluster::{FileVersion, Publications};
use archive_peers::share::orders::OrderList;
use archive_peers::share::{self, FileAdoption, FileOutcome, ShareError};
use chrono::Utc;

use super::super::options::duration;
use super::{ClusterUrl, orders};
use crate::cli::{EXIT_STOPPED, Result, interrupt, output, usage};

/// Publish access rules, topics and watches to all nodes of a cluster, list them, or update archives with them.
///
/// The decisions and erasures of `archive review` and `archive erase` with --cluster are published, too: each archive
/// carries out those on sites of its partition, once. An erasure waits while another program uses the archive; a crawl
/// carries it out when it starts.
///
/// The name of a file determines its kind: access.toml, NAME.topic or NAME.json (a watch), as in the folder of an
/// archive. Archives take over the newest version of each; a running server reads new rules within a second. Run the
/// command with --every beside the server of each node. While the object store cannot be read, archives keep what they
/// have. A file of an archive that did not come from the cluster, or was changed since, is kept and reported, and the
/// exit code is 1.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive cluster share --cluster s3://crawl/cluster --set access.toml A1/topics/pies.topic A1/watches/open-access.json
  archive cluster share --cluster s3://crawl/cluster --remove pies.topic
  archive cluster share --cluster s3://crawl/cluster --archive A1 --archive A2
  archive cluster share --cluster s3://crawl/cluster --archive A1 --every 10s     # until interrupted
  archive cluster share --cluster s3://crawl/cluster     # lists the published files with their versions; --json for programs

An empty access.toml lifts all rules. A watch is published with its query and interval; each
archive makes its own reports, without gaps when the watch changes. Removing a watch removes its
reports.")]
pub(crate) struct ShareArgs {
    #[command(flatten)]
    store: ClusterUrl,
    /// Files to publish, each as a new version
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["archives", "every", "remove"])]
    set: Vec<PathBuf>,
    /// File to withdraw: access.toml, NAME.topic or NAME.json; archives that have it from the cluster remove it
    #[arg(long, value_name = "NAME", conflicts_with_all = ["archives", "every"])]
    remove: Option<String>,
    /// Folder of an archive to update with what is published; may be repeated
    #[arg(long = "archive", value_name = "DIR")]
    archives: Vec<PathBuf>,
    /// Interval at which to look for newer versions, until interrupted by a signal
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "archives")]
    every: Option<Duration>,
    /// One JSON object per published file and order
    #[arg(long, conflicts_with_all = ["archives", "set", "remove"])]
    json: bool,
}

pub(super) fn run(args: &ShareArgs) -> Result<ExitCode> {
    match &args.remove {
        Some(file) => remove(args, file)?,
        None if !args.set.is_empty() => publish(args)?,
        None if args.archives.is_empty() => show(args)?,
        None => return take_over(args, &*interrupt::install()?),
    }
    Ok(ExitCode::SUCCESS)
}

fn publish(args: &ShareArgs) -> Result<()> {
    let checked = args.set.iter().map(|path| share::checked(path)).collect::<Result<Vec<_>, _>>();
    let checked = checked.map_err(|error| {
        let problem = match error {
            // The rest of the error's message applies to an archive that contains the file.
            ShareError::Access(AccessError::Mistake { path, line, column, problem }) => {
                format!("{}, line {line}, column {column}: {problem}", path.display())
            }
            error => error.to_string(),
        };
        usage(format!("{problem}; nothing was published"))
    })?;
    let mut published = Publications::look(&args.store.cluster)?;
    for (file, bytes) in checked {
        let version = published.publish(&file, bytes)?;
        say!("{file}: version {version} is published")?;
    }
    Ok(())
}

fn remove(args: &ShareArgs, file: &str) -> Result<()> {
    if is_list(file) {
        refuse!(
            "the orders in '{file}' cannot be removed; reverse them with `archive review undo` or `archive erase --lift`, with --cluster"
        );
    }
    let mut published = Publications::look(&args.store.cluster)?;
    if published.newest.get(file).is_none_or(|version| version.is_removed) {
        let file = output::visible(file);
        refuse!("no file '{file}' is published; without --remove all are listed");
    }
    let version = published.publish(file, Vec::new())?;
    say!("{file}: version {version} removes it")
}

fn show(args: &ShareArgs) -> Result<()> {
    let published = Publications::look(&args.store.cluster)?;
    if published.newest.is_empty() {
        note!("nothing is published");
    }
    for (file, version) in published.newest.iter().filter(|(file, _)| !is_list(file)) {
        let FileVersion { number, is_removed } = *version;
        output::summary(args.json, &object! { file, version: number, removed: is_removed }, || {
            format!("{}: {version}", output::visible(file))
        })?;
    }
    orders::show(&published, args.json)
}

fn is_list(file: &str) -> bool {
    OrderList::EACH.iter().any(|list| list.name() == file)
}

/// Takes over what is published, once or repeatedly; unchanged problems are reported only once.
fn take_over(args: &ShareArgs, control: &Control) -> Result<ExitCode> {
    for archive in &args.archives {
        jobs::check_exists(archive)?;
    }
    let mut before = newest_over(args, &BTreeSet::new())?;
    let Some(every) = args.every else {
        return Ok(if before.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    };
    loop {
        if !interrupt::wait(control, every) {
            return Ok(ExitCode::from(EXIT_STOPPED));
        }
        match newest_over(args, &before) {
            Ok(refused) => before = refused,
            Err(error) => note!("{error:#}; trying again"),
        }
    }
}

/// Brings all archives up to date. Returns the reasons why some files were refused, and prints those that are not in
/// `before`.
fn newest_over(args: &ShareArgs, before: &BTreeSet<String>) -> Result<BTreeSet<String>> {
    let mut published = Publications::look(&args.store.cluster)?;
    let (mut refused, mut printed) = (BTreeSet::new(), Ok(()));
    let refuse = |refused: &mut BTreeSet<String>, why: String| {
        if !before.contains(&why) {
            note!("{why}");
        }
        refused.insert(why);
    };
    share::take_over(
        &published,
        &args.archives,
        Utc::now(),
        &mut |FileOutcome { archive, file, version, taken }| {
            let archive = archive.display();
            let why = match taken {
                Ok(FileAdoption::Had) => return,
                Ok(FileAdoption::Over) => {
                    if printed.is_ok() {
                        printed = say!("{archive}: {file}: {version}");
                    }
                    return;
                }
                Ok(FileAdoption::Refused) => format!(
                    "{archive}: {file} differs from the cluster's version and is kept: publish it with --set, or remove it"
                ),
                Err(error) => format!("{archive}: {file} was not applied: {error}"),
            };
            refuse(&mut refused, why);
        },
    );
    printed?;
    for archive in &args.archives {
        let mut printed = Ok(());
        let carried = jobs::carry_out_orders(&mut published, archive, None, &mut |news| match news {
            OrderNews::Done(text) if printed.is_ok() => printed = output::line(&text),
            OrderNews::Done(_) => {}
            OrderNews::LeftOut(why) | OrderNews::Failed(why) => refuse(&mut refused, why),
            OrderNews::Notice(text) => note!("{text}"),
        });
        printed?;
        if let Err(error) = carried {
            refuse(&mut refused, format!("{}: {error}", archive.display()));
        }
    }
    if published.newest.is_empty() && before.is_empty() {
        note!("nothing is published");
    }
    Ok(refused)
}
