//! `archive lab`: runs the experiments, which are a separate program.

use super::{During, Result};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// Name of the program, in the same folder as this one.
const PROGRAM: &str = "archive-lab";

/// Repeat the papers' experiments; `archive lab --help` lists them.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// Experiment and its options
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    args: Vec<OsString>,
}

/// Replaces this process by the other program; returns only on failure.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let own = std::env::current_exe().within("cannot find the folder of this program")?;
    let program = own.with_file_name(PROGRAM);
    let error = Command::new(&program).args(&args.args).exec();
    if error.kind() == io::ErrorKind::NotFound {
        fail!(
            "{} does not exist: build it with `cargo build -p archive-lab`, in the profile of this program",
            program.display()
        );
    }
    Err(error).within(format_args!("cannot start {}", program.display()))
}
