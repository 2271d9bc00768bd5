//! Reports of watches, as a run on the command line waits for them, prints them and says what became of them.

use std::path::Path;

use archive::crawl::Options;
use archive::watch::{self, Awaited, Delivery, Format, Watch};
use archive_storage::Store;

use super::output;

/// The pages that watches wait for; a watch that fails is reported and left out.
pub(crate) fn awaited(due: Vec<Watch>, store: &Store, options: &Options) -> Vec<Awaited> {
    let (awaited, failed) = watch::await_pages(due, store, options.fetch.clock.now());
    for (watch, error) in failed {
        output::note(format_args!("the watch '{}' cannot be served: {error}", watch.name));
    }
    awaited
}

/// Prints reports that go nowhere else, and says what became of the others; returns how many were made.
pub(crate) fn print(archive: &Path, deliveries: &[Delivery], json: bool) -> anyhow::Result<usize> {
    let mut made = 0;
    for delivery in deliveries {
        match delivery {
            Delivery::Made { report, withheld } => {
                made += 1;
                note_withheld(delivery);
                let watch = watch::get(archive, &report.watch)?;
                if json {
                    output::json_line(report)?;
                } else if watch.output.is_none() || withheld.is_some() {
                    let text = watch::render(archive, &watch, Format::Text)?;
                    text.lines().try_for_each(output::line)?;
                    output::line("")?;
                }
            }
            Delivery::Postponed { watch, missing } => output::note(format_args!(
                "the report of '{}' waits for {}; the next refresh continues with them",
                watch.name,
                output::count(*missing as u64, "page")
            )),
            Delivery::Failed { watch, error } => {
                output::note(format_args!("the report of '{}' cannot be made: {error}", watch.name));
            }
        }
    }
    Ok(made)
}

/// Says that a watch's own file was not written, and how to have it written.
pub(crate) fn note_withheld(delivery: &Delivery) {
    if let Delivery::Made { report, withheld: Some(file) } = delivery {
        output::note(format_args!(
            "the report of '{}' was not written to {}; to permit that, name its folder with --outputs",
            report.watch,
            file.display()
        ));
    }
}
