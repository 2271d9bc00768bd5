//! The command line program `archive-lab`, which repeats the papers' experiments.

mod commands;
mod output;

use std::process::ExitCode;

use clap::Parser;

/// The allocator of `archive`, so that measurements are comparable.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Repeat the papers' experiments on simulated and recorded webs.
#[derive(Parser)]
#[command(name = "archive-lab", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    match commands::run(&Cli::parse().command) {
        Ok(code) => code,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("archive-lab: {error:#}");
            ExitCode::FAILURE
        }
    }
}
