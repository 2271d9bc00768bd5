//! What a long command shows: a live display on a terminal, a plain line now and then elsewhere.

use std::io::{IsTerminal, stderr};
use std::path::Path;
use std::time::{Duration, Instant};

use archive::crawl::{End, Status};
use indicatif::{HumanBytes, HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Between two plain lines.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Over which the current rate is measured.
const RATE_SPAN: Duration = Duration::from_secs(5);

/// The display of one run.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    last_line: Instant,
    /// (time, captures) a while ago, for the current rate.
    before: (Instant, u64),
    rate: f64,
}

impl Progress {
    pub(crate) fn start(limit: Option<u64>) -> Self {
        let bar = stderr().is_terminal().then(|| {
            let bar = limit.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(5));
            let template = if limit.is_some() { "{bar:30} {pos}/{len}  {msg}" } else { "{spinner} {msg}" };
            // The template is fixed text, so a mistake in it would show at the first run.
            bar.set_style(ProgressStyle::with_template(template).expect("the template is well-formed"));
            bar
        });
        let now = Instant::now();
        Self { bar, last_line: now, before: (now, 0), rate: 0.0 }
    }

    pub(crate) fn show(&mut self, status: &Status) {
        let now = Instant::now();
        let span = now - self.before.0;
        if span >= RATE_SPAN {
            self.rate = (status.captures - self.before.1) as f64 / span.as_secs_f64();
            self.before = (now, status.captures);
        }
        let rate = if status.elapsed < RATE_SPAN { status.rate() } else { self.rate };
        let line = format!(
            "{} captures, {rate:.0}/s, {}, {} queued, {} hosts active, {} errors",
            HumanCount(status.acknowledged),
            HumanBytes(status.bytes),
            HumanCount(status.queued),
            status.hosts_active,
            HumanCount(status.errors),
        );
        if let Some(bar) = &self.bar {
            let top: Vec<String> = status
                .top_sites
                .iter()
                .map(|(site, importance)| format!("\n  {importance:>8.1}  {site}"))
                .collect();
            let heading = if top.is_empty() { "" } else { "\n  importance of sites so far" };
            bar.set_position(status.acknowledged);
            bar.set_message(format!("{line}{heading}{}", top.concat()));
            bar.tick();
        } else if now - self.last_line >= LINE_EVERY {
            self.last_line = now;
            eprintln!("archive: {line}");
        }
    }

    pub(crate) fn finish(self, end: End, status: &Status, archive: &Path) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
        let reason = match end {
            End::Complete => "nothing left to fetch",
            End::Limit => "limit reached",
            End::Time => "time is over",
            End::Stopped => "stopped",
        };
        eprintln!(
            "archive: {reason} after {}: {} captures ({} unchanged), {}, {:.0}/s, {} errors, {} refused, \
             {} still queued; stored in {}",
            HumanDuration(status.elapsed),
            HumanCount(status.acknowledged),
            HumanCount(status.unchanged),
            HumanBytes(status.bytes),
            status.rate(),
            HumanCount(status.errors),
            HumanCount(status.refused),
            HumanCount(status.queued),
            archive.display(),
        );
    }
}
