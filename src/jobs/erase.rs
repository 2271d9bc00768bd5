//! Erases captures permanently.

use std::collections::BTreeSet;
use std::path::Path;

use archive_base::erased::Erased;
use archive_storage::address::canonical;
use archive_storage::{Owner, Store, UrlId, segment};
use archive_vault::erase::{self, Done, ErasePlan, EraseRequest};
use url::Url;

use super::open::{erase_options, finish_erase};
use super::{Failure, Hear, JobEvent};

/// What erasing the pages that `select` returns removes, to be shown before it is done. An interrupted erase is finished
/// first.
///
/// # Errors
/// If there are no pages, a repair is not finished, or the archive cannot be read.
pub fn plan_erase(
    path: &Path,
    order: EraseRequest,
    select: impl FnOnce(&Store) -> Result<BTreeSet<UrlId>, Failure>,
    hear: &mut Hear<'_>,
) -> Result<ErasePlan, Failure> {
    let store = readable(path, hear)?;
    let pages = select(&store)?;
    if pages.is_empty() {
        return Err(Failure::failed("no page matches; nothing was changed"));
    }
    Ok(ErasePlan::of(&store, pages, order)?)
}

/// Opens the archive for reading, once nothing is unfinished in it.
fn readable(path: &Path, hear: &mut Hear<'_>) -> Result<Store, Failure> {
    segment::check_repaired(path)?;
    finish_erase(path, hear)?;
    Ok(Store::read_only(path)?)
}

/// Erases what was planned. An erase that is interrupted is finished by whatever opens the archive for writing next.
///
/// # Errors
/// If nothing is left to erase, another program owns the archive, or the disk fails.
pub fn erase(path: &Path, plan: &ErasePlan, hear: &mut Hear<'_>) -> Result<Done, Failure> {
    let mut written = |bytes, total| hear(JobEvent::Written { bytes, total });
    erase::run(path, &erase_options(), plan, &mut written).map_err(|error| {
        Failure::from(error).within("the erase is not finished; `archive erase --resume` finishes it")
    })
}

/// Allows erased URLs to be fetched and imported again; a forgotten one is given by its digest.
///
/// # Errors
/// If one of them is not on the list of what was erased, or another program owns the archive.
pub fn lift(path: &Path, urls: &[String]) -> Result<(), Failure> {
    let _owner = Owner::of(path)?;
    let mut erased = Erased::of_archive(path, Store::read_only(path)?.state())?;
    for url in urls {
        let meant = Url::parse(url).map_or_else(|_| url.clone(), |url| canonical(&url));
        if !erased.lift(&meant) && !erased.lift(url) {
            return Err(Failure::usage(format!(
                "'{url}' is not on the list of what was erased; `archive erase --list` shows it"
            )));
        }
    }
    Ok(erased.write(path)?)
}

/// A warning about copies after an erase, in a sentence.
#[must_use]
pub fn copies_hold(url: &str) -> String {
    format!(
        "copies in {url} still hold it; `archive copy --to {url} --keep 1` makes a new one and removes them"
    )
}
