//! The command line program `archive`.

mod cli;

use std::process::ExitCode;

/// Bodies and records are made on one thread and dropped on another, which the system's allocator does at a price.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::main()
}
