//! `archive lab`: the papers' experiments.

use std::process::ExitCode;

/// Repeat the papers' experiments on simulated and recorded webs.
#[derive(clap::Subcommand)]
pub(crate) enum Command {}

pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match *command {}
}
