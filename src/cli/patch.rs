//! `archive patch`: makes one version of an XML document from the other and their difference.

use std::path::{Path, PathBuf};

use archive_base::files;
use archive_books::change::{DELTA_BYTES_MAX, PatchError, patch, read_delta};

use super::{During, Result, output};

/// Maximum size of a document in bytes; larger ones are not compared as XML either.
const DOCUMENT_BYTES_MAX: u64 = 4 << 20;

/// Make the new version of an XML document from the old one and their difference, or the old one from the new one.
///
/// The difference is what `archive diff --json` prints of two XML documents. The result is the other version, except
/// for what carries no meaning in XML: white space between elements, prefixes, the order of attributes, the document
/// type. A difference that belongs to other versions is refused.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive diff https://www.example.org/catalogue.xml --json > delta.json
  archive patch old.xml delta.json > new.xml
  archive patch --invert new.xml delta.json > old.xml")]
pub(crate) struct Args {
    /// The old version; with --invert the new one
    document: PathBuf,
    /// The difference, as JSON
    delta: PathBuf,
    /// Go from the new version back to the old one
    #[arg(long)]
    invert: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let read = |path: &Path, bytes_max| {
        files::read(path, bytes_max).within(format_args!("cannot read {}", path.display()))
    };
    let document = read(&args.document, DOCUMENT_BYTES_MAX)?;
    let named = |path: &Path, error: PatchError| super::usage(format!("{}: {error}", path.display()));
    let delta =
        read_delta(&read(&args.delta, DELTA_BYTES_MAX)?).map_err(|error| named(&args.delta, error))?;
    let made = patch(document, delta, args.invert).map_err(|error| {
        let is_document = matches!(error, PatchError::Document);
        named(if is_document { &args.document } else { &args.delta }, error)
    })?;
    output::text(&made)
}
