//! The commands: one file each, without logic.

mod convergence;
mod estimators;
mod focus;
mod librarian;
mod orders;
mod partitions;
mod passes;
mod raters;
mod refresh;
mod slices;
mod subjects;
mod windows;

use std::process::ExitCode;

/// Repeat the papers' experiments on simulated and recorded webs.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Convergence(convergence::Args),
    Windows(windows::Args),
    Librarian(librarian::Args),
    Orders(orders::Args),
    Partitions(partitions::Args),
    Passes(passes::Args),
    Raters(raters::Args),
    Refresh(refresh::Args),
    Estimators(estimators::Args),
    Focus(focus::Args),
    Slices(slices::Args),
    Subjects(subjects::Args),
}

pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Convergence(args) => convergence::run(args),
        Command::Windows(args) => windows::run(args),
        Command::Librarian(args) => librarian::run(args),
        Command::Partitions(args) => partitions::run(args),
        Command::Passes(args) => passes::run(args),
        Command::Raters(args) => raters::run(args),
        Command::Refresh(args) => refresh::run(args),
        Command::Estimators(args) => estimators::run(args),
        Command::Focus(args) => focus::run(args),
        Command::Slices(args) => slices::run(args),
        Command::Subjects(args) => subjects::run(args),
        Command::Orders(args) => orders::run(args),
    }
}
