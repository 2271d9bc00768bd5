//! Shows what a job tells: notices, progress, findings and reports.

use std::path::Path;

use archive::jobs::{ArchiveRefreshed, JobEvent};
use archive_ask::watch::{self, Delivery, Format};
use archive_vault::import::ImportNote;
use archive_vault::repack::{RepackBatch, Repacked};
use indicatif::{HumanCount, ProgressBar};

use super::progress::{self, RunProgress};
use super::{Failure, Result, output};

/// Maximum number of findings printed as text; JSON contains all of them.
const FINDINGS_MAX: u64 = 20;

/// Shows what a job tells.
#[derive(Default)]
pub(crate) struct Hearing {
    /// Whether findings and reports are printed as JSON.
    json: bool,
    /// Whether the reports of watches are printed, not only what became of them.
    pub(crate) prints_reports: bool,
    fetching: Option<RunProgress>,
    bar: Option<ProgressBar>,
    findings: u64,
    /// The error that prevented printing.
    failure: Option<Failure>,
}

impl Hearing {
    pub(crate) fn new(json: bool) -> Self {
        Self { json, ..Self::default() }
    }

    /// With a bar for this many bytes, which also shows what was counted.
    pub(crate) fn with_bar(json: bool, total: u64) -> Self {
        let bar = progress::bar(total, "{bar:30} {bytes}/{total_bytes} {eta}  {msg}");
        Self { json, bar: Some(bar), ..Self::default() }
    }

    pub(crate) fn hear(&mut self, event: JobEvent<'_>) {
        match event {
            JobEvent::Notice(text) => note!("{text}"),
            JobEvent::Begun(limit) => self.fetching = Some(RunProgress::start(limit)),
            JobEvent::Fetching(status) => self.fetching.iter_mut().for_each(|progress| progress.show(status)),
            JobEvent::Ended(ArchiveRefreshed { path, share, end, status, .. }) => {
                let complete = format!("share of {} spent", HumanCount(*share));
                progress::finish(*end, &complete, status, path);
            }
            JobEvent::Reported(archive, delivery) => {
                let shown = self.report(archive, delivery);
                self.keep(shown);
            }
            JobEvent::Importing(status) => {
                let Some(bar) = &self.bar else { return };
                bar.set_position(status.bytes);
                bar.set_message(format!(
                    "{} captures, {} known, {} broken",
                    HumanCount(status.captures),
                    HumanCount(status.duplicates),
                    HumanCount(status.broken)
                ));
            }
            JobEvent::Found(note) => self.find(note),
            JobEvent::Written { bytes, total } => {
                let bar = self.bar.get_or_insert_with(|| {
                    progress::bar(total, "{bar:30} {bytes}/{total_bytes} {eta}  {msg}")
                });
                bar.set_length(total);
                bar.set_position(bytes);
            }
            JobEvent::Repacked(batch, done) if self.json => self.batch(batch, done),
            _ => {}
        }
    }

    /// Removes the bar; fails if something could not be printed.
    pub(crate) fn end(self) -> Result<()> {
        progress::end();
        if self.findings > FINDINGS_MAX && !self.json {
            note!("{}; --json lists all", output::count(self.findings - FINDINGS_MAX, "more finding"));
        }
        self.failure.map_or(Ok(()), Err)
    }

    fn keep(&mut self, shown: Result<()>) {
        if let Err(error) = shown {
            self.failure.get_or_insert(error);
        }
    }

    fn find(&mut self, note: &ImportNote) {
        self.findings += 1;
        if self.json {
            self.keep(output::json_line(note));
        } else if self.findings <= FINDINGS_MAX {
            let place = note.offset.map_or(String::new(), |offset| format!(", offset {offset}"));
            note!("{}{place}: {}", note.file, note.what);
        }
    }

    fn batch(&mut self, batch: &RepackBatch, done: &Repacked) {
        self.keep(output::json_line(&object! {
            segments: batch.segments.len(),
            captures: batch.captures,
            bytes_before: done.bytes.0,
            bytes_after: done.bytes.1,
            plain_bytes: batch.plain_bytes,
        }));
    }

    /// Prints a report that has no other output, or says what happened to it.
    fn report(&self, archive: &Path, delivery: &Delivery) -> Result<()> {
        match delivery {
            Delivery::Made { report, withheld } => {
                if let Some(file) = withheld {
                    note!(
                        "the report of '{}' was not written to {}; to permit that, name its folder with --outputs",
                        report.watch,
                        file.display()
                    );
                }
                if !self.prints_reports {
                    return Ok(());
                }
                let watch = watch::get(archive, &report.watch)?;
                if self.json {
                    output::json_line(report)?;
                } else if watch.output.is_none() || withheld.is_some() {
                    let text = watch::render(archive, &watch, Format::Text)?;
                    text.lines().try_for_each(output::line)?;
                    output::line("")?;
                }
            }
            Delivery::Postponed { watch, missing } => note!(
                "the report of '{}' waits for {}; the next refresh continues with them",
                watch.name,
                output::count(*missing as u64, "page")
            ),
            Delivery::Failed { watch, error } => {
                note!("the report of '{}' cannot be made: {error}", watch.name);
            }
        }
        Ok(())
    }
}
