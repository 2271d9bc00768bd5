//! Files that are named on the command line.

use std::fs::File;
use std::io;
use std::path::Path;

use archive_base::files;

use super::{Result, usage};

/// Reads a file or pipe of limited length, or standard input if its name is '-'.
pub(super) fn read(file: &Path, bytes_max: u64) -> Result<Vec<u8>> {
    let (read, name) = if file == Path::new("-") {
        (files::read_within(io::stdin().lock(), bytes_max), "standard input".to_owned())
    } else {
        (File::open(file).and_then(|file| files::read_within(file, bytes_max)), file.display().to_string())
    };
    read.map_err(|error| usage(format!("cannot read {name}: {error}")))
}
