//! The log of a command: JSON lines in a file, filtered by `$ARCHIVE_LOG`.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;

use super::{During, Failure, Result, options};

/// The environment variable that filters the log.
const FILTER: &str = "ARCHIVE_LOG";

/// The default filter: captures, checkpoints, pauses, and everything that needs attention.
const FILTER_DEFAULT: &str = "warn,archive=info,capture=info";

/// Starts appending the log to a file.
pub(crate) fn start(path: &Path, archives: &[PathBuf]) -> Result<()> {
    archives.iter().try_for_each(|archive| options::check_output(archive, path))?;
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .within(format_args!("cannot write the log {}", path.display()))?;
    let filter = std::env::var(FILTER).unwrap_or_else(|_| FILTER_DEFAULT.to_owned());
    let filter: Targets = filter
        .parse()
        .map_err(|error| super::usage(format!("the filter ${FILTER} cannot be used: {error}")))?;
    let subscriber = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_max_level(LevelFilter::TRACE)
        .with_writer(Mutex::new(file))
        .finish()
        .with(filter);
    tracing::subscriber::set_global_default(subscriber)
        .map_err(Failure::failed)
        .within("cannot begin a second log")
}
