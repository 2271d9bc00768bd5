//! `archive lab`: the papers' experiments.

mod orders;

use std::process::ExitCode;

/// Repeat the papers' experiments on simulated and recorded webs.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Orders(orders::Args),
}

pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Orders(args) => orders::run(args),
    }
}
