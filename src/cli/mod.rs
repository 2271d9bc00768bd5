//! The command line: one file a subcommand, no logic.
//!
//! Results go to standard output, progress and messages to standard error. Exit codes: 0 done, 1 failed,
//! 2 wrong usage (also a query or seeds file that cannot be read), 3 the archive is in use, 4 stopped before the end.

mod lab;
mod output;
mod rank;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A web archiving crawler that ranks, keeps and refreshes what it finds.
#[derive(Parser)]
#[command(name = "archive", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Rank(rank::Args),
    #[command(subcommand)]
    Lab(lab::Command),
}

/// Reads the command line, runs the command, and turns its outcome into an exit code.
pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.command {
        Command::Rank(args) => rank::run(&args),
        Command::Lab(command) => lab::run(&command),
    };
    match outcome {
        Ok(code) => code,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("archive: {error:#}");
            ExitCode::FAILURE
        }
    }
}
