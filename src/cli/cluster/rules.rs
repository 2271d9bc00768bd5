//! `archive cluster access`: access rules that hold on all nodes.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use archive::access::{Access, AccessError, FILE};
use archive::cluster::{ClusterRules, RULES_BYTES_MAX, Taken, newest_rules, publish_rules};
use archive::files;
use archive::recorder::Control;

use super::super::options::duration;
use super::super::{EXIT_STOPPED, UsageError, interrupt, open, output};

/// Publish access rules for all nodes of a cluster, let archives take over what was published, or show it.
///
/// Archives take over the newest rules as their access.toml, which a running server reads within a second. Run it with --every beside
/// the server of each node. While the object store cannot be read, archives keep the rules that they have. An archive whose access.toml
/// did not come from the cluster keeps that, and the exit code is 1.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive cluster access --cluster s3://crawl/cluster --set access.toml
  archive cluster access --cluster s3://crawl/cluster --archive A1 --archive A2
  archive cluster access --cluster s3://crawl/cluster --archive A1 --every 10s     # until interrupted
  archive cluster access --cluster s3://crawl/cluster     # shows the newest rules

An empty file lifts all rules. The file is explained by `archive access --help`.")]
pub(crate) struct RulesArgs {
    /// The object store that the nodes share
    #[arg(long, value_name = "URL")]
    cluster: String,
    /// Publish the rules of this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["archives", "every"])]
    set: Option<PathBuf>,
    /// Folder of an archive that takes over the newest rules; may be repeated
    #[arg(long = "archive", value_name = "DIR")]
    archives: Vec<PathBuf>,
    /// Look for newer rules every TIME until a signal ends it
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "archives")]
    every: Option<Duration>,
}

pub(super) fn run(args: &RulesArgs) -> anyhow::Result<ExitCode> {
    match &args.set {
        Some(file) => publish(args, file),
        None if args.archives.is_empty() => show(args),
        None => take_over(args, &*interrupt::install()?),
    }
}

fn publish(args: &RulesArgs, file: &Path) -> anyhow::Result<ExitCode> {
    let unreadable = || format!("cannot read {}", file.display());
    let bytes = files::read(file, RULES_BYTES_MAX).with_context(unreadable)?;
    let text = String::from_utf8(bytes).with_context(unreadable)?;
    let rules = Access::of_text(file, &text).map_err(|error| match error {
        AccessError::Mistake { path, line, column, problem } => anyhow::Error::from(UsageError(format!(
            "{}, line {line}, column {column}: {problem}; nothing was published",
            path.display()
        ))),
        error => error.into(),
    })?;
    let version = publish_rules(&args.cluster, &text)?;
    let count = output::count(rules.rules().len() as u64, "rule");
    output::line(&format!("version {version} is published: {count}"))?;
    Ok(ExitCode::SUCCESS)
}

fn show(args: &RulesArgs) -> anyhow::Result<ExitCode> {
    match newest_rules(&args.cluster)? {
        Some(ClusterRules { version, text }) => {
            output::note(format_args!("version {version}"));
            output::write(text.as_bytes())?;
        }
        None => output::note(format_args!("no access rules are published")),
    }
    Ok(ExitCode::SUCCESS)
}

/// Once, or again and again.
fn take_over(args: &RulesArgs, control: &Control) -> anyhow::Result<ExitCode> {
    for archive in &args.archives {
        open::check_exists(archive)?;
    }
    let is_taken = newest_over(args)?;
    let Some(every) = args.every else {
        return Ok(if is_taken { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    };
    loop {
        if !interrupt::wait(control, every) {
            return Ok(ExitCode::from(EXIT_STOPPED));
        }
        if let Err(error) = newest_over(args) {
            output::note(format_args!("{error:#}; trying again"));
        }
    }
}

/// Gives all archives the newest rules; whether they have them.
fn newest_over(args: &RulesArgs) -> anyhow::Result<bool> {
    let Some(rules) = newest_rules(&args.cluster)? else {
        output::note(format_args!("no access rules are published"));
        return Ok(true);
    };
    let mut is_taken = true;
    for archive in &args.archives {
        let path = archive.join(FILE);
        match rules.take_over(archive).with_context(|| format!("cannot replace {}", path.display()))? {
            Taken::Had => {}
            Taken::Over => output::line(&format!("{}: version {}", path.display(), rules.version))?,
            Taken::Refused => {
                is_taken = false;
                output::note(format_args!(
                    "{} did not come from the cluster and stays: publish its rules with --set, then remove it",
                    path.display()
                ));
            }
        }
    }
    Ok(is_taken)
}
