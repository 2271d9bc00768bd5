//! `archive rank`: importance off line, over a stored link graph.

use std::process::ExitCode;

/// Rank the pages of a graph by an off-line method.
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: &Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("rank is not there yet")
}
