//! Reports of watches: a command-line run waits for their pages, prints the reports and says what happened to them.

use std::path::Path;

use archive_ask::watch::{self, Awaited, Delivery, Format, Watch};
use archive_crawl::Options;
use archive_storage::Store;

use super::output;

/// The pages that watches wait for; a watch that fails is reported and skipped.
pub(crate) fn awaited(due: Vec<Watch>, store: &Store, options: &Options) -> Vec<Awaited> {
    let (awaited, failed) = watch::await_pages(due, store, options.fetch.clock.now());
    for (watch, error) in failed {
        output::note(format_args!("the watch '{}' cannot be served: {error}", watch.name));
    }
    awaited
}

/// Prints the reports that have no other output, and says what happened to the others. Returns the number of reports
/// made.
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

/// Reports that a watch's file was not written, and how to permit it.
pub(crate) fn note_withheld(delivery: &Delivery) {
    if let Delivery::Made { report, withheld: Some(file) } = delivery {
        output::note(format_args!(
            "the report of '{}' was not written to {}; to permit that, name its folder with --outputs",
            report.watch,
            file.display()
        ));
    }
}
