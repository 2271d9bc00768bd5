//! The command line program `archive`.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
