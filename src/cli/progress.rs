//! The progress of a long command: a live display on a terminal, otherwise a plain line once in a while.

use std::io::{IsTerminal, stderr};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use archive_choose::TopicStatus;
use archive_crawl::{CrawlStatus, EndReason};
use indicatif::{HumanBytes, HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::output::{count, note, visible};

/// Interval between two plain lines.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Result of a run that nothing stopped early.
pub(crate) const ALL_FETCHED: &str = "nothing left to fetch";

/// Time span over which the current rate is measured.
const RATE_SPAN: Duration = Duration::from_secs(5);

/// Time after which a bar appears; quicker work shows none.
const APPEARS_AFTER: Duration = Duration::from_secs(2);

/// Interval between redraws.
const TICK: Duration = Duration::from_millis(200);

/// The bar that is shown or will be shown. There is one at a time.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// A bar on standard error that replaces the previous one, and appears only if the work takes long. With a total of 0
/// it only shows activity. Without a terminal there is none.
pub(crate) fn bar(total: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
    // Templates are constants, so a mistake in one would show in the first run.
    bar.set_style(ProgressStyle::with_template(template).expect("the template is well-formed"));
    replace(Some(bar.clone()));
    if stderr().is_terminal() {
        let shown = bar.downgrade();
        thread::spawn(move || {
            thread::sleep(APPEARS_AFTER);
            if let Some(bar) = shown.upgrade().filter(|bar| !bar.is_finished()) {
                bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(5));
                bar.enable_steady_tick(TICK);
            }
        });
    }
    bar
}

/// A bar for a number of items, with a word for them.
pub(crate) fn counting(total: u64, what: &'static str) -> ProgressBar {
    bar(total, "{bar:30} {human_pos}/{human_len} {msg}  {elapsed}").with_message(what)
}

/// Shows activity for a command that cannot report its progress.
pub(crate) fn working() {
    bar(0, "{spinner} working for {elapsed}");
}

/// Removes the bar.
pub(crate) fn end() {
    replace(None);
}

fn replace(bar: Option<ProgressBar>) {
    let mut shown = BAR.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(before) = std::mem::replace(&mut *shown, bar) {
        before.finish_and_clear();
    }
}

/// Writes something while the bar is hidden.
pub(crate) fn aside<T>(write: impl FnOnce() -> T) -> T {
    let bar = BAR.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match bar {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

/// The display of one run.
pub(crate) struct RunProgress {
    bar: Option<ProgressBar>,
    last_line: Instant,
    /// Time and number of captures a while ago, for the current rate.
    before: (Instant, u64),
    rate: f64,
}

impl RunProgress {
    pub(crate) fn start(limit: Option<u64>) -> Self {
        let template = if limit.is_some() { "{bar:30} {pos}/{len}  {msg}" } else { "{spinner} {msg}" };
        let bar = bar(limit.unwrap_or(0), template);
        let bar = stderr().is_terminal().then(|| {
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(5));
            bar
        });
        let now = Instant::now();
        Self { bar, last_line: now, before: (now, 0), rate: 0.0 }
    }

    pub(crate) fn show(&mut self, status: &CrawlStatus) {
        for notice in &status.notices {
            note(format_args!("{notice}"));
        }
        let now = Instant::now();
        let span = now - self.before.0;
        if span >= RATE_SPAN {
            self.rate = (status.captures - self.before.1) as f64 / span.as_secs_f64();
            self.before = (now, status.captures);
        }
        if self.bar.is_none() && now - self.last_line < LINE_EVERY {
            return;
        }
        let rate = if status.elapsed < RATE_SPAN { status.rate() } else { self.rate };
        let found = status.topic.as_ref().map_or(String::new(), |topic| format!(", {}", harvest(topic)));
        let line = format!(
            "{} captures, {rate:.0}/s, {}, {} queued, {} hosts active, {} errors{found}",
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
                .map(|(site, importance)| format!("\n  {importance:>8.1}  {}", visible(site)))
                .collect();
            let heading = if top.is_empty() { "" } else { "\n  importance of sites so far" };
            bar.set_position(status.pages);
            bar.set_message(format!("{line}{heading}{}", top.concat()));
            bar.tick();
        } else {
            self.last_line = now;
            note(format_args!("{line}"));
        }
    }
}

/// Removes the bar and prints a summary of the run; `complete` describes the end of a run that nothing stopped early.
pub(crate) fn finish(ended: EndReason, complete: &str, status: &CrawlStatus, archive: &Path) {
    end();
    note(format_args!(
        "{} after {}: {}; stored in {}",
        reason(ended, complete),
        HumanDuration(status.elapsed),
        sum(status),
        archive.display(),
    ));
    for (why, urls) in &status.left {
        note(format_args!("{} left out: {}", count(*urls, "URL"), why.sentence()));
    }
}

/// Describes why a run ended; `complete` describes the end of a run that nothing stopped early.
pub(crate) fn reason(ended: EndReason, complete: &str) -> &str {
    match ended {
        EndReason::Complete => complete,
        EndReason::Waiting => "all that is left waits for its servers",
        EndReason::Limit => "limit reached",
        EndReason::Time => "the time is up",
        EndReason::Found => "enough pages of the topic found",
        EndReason::Harvest => "too few of the last pages are of the topic",
        EndReason::Recall => "enough of the topic's pages expected to be found",
        EndReason::Stopped => "stopped",
        EndReason::Drained => "left to another node",
    }
}

/// Summarizes what a run stored and left, omitting zero counts.
pub(crate) fn sum(status: &CrawlStatus) -> String {
    let mut parts = Vec::new();
    if status.acknowledged == 0 {
        parts.push("no captures".to_owned());
    } else {
        let identical = match status.identical {
            0 => String::new(),
            number => format!(" ({} identical to another capture)", HumanCount(number)),
        };
        parts.push(count(status.acknowledged, "capture") + &identical);
        parts.push(format!("{}, {:.0}/s", HumanBytes(status.bytes), status.rate()));
    }
    if status.errors > 0 {
        parts.push(count(status.errors, "error"));
    }
    if let Some(topic) = &status.topic {
        parts.push(harvest(topic));
    }
    let left = [
        (status.refused, "refused"),
        (status.unloaded, "bodies too long to be received (--max-body)"),
        (status.waiting, "put off by their servers until the next run"),
        (status.queued, "still queued"),
        (status.parts_left, "parts of pages left to the next run"),
    ];
    for (number, what) in left {
        if number > 0 {
            parts.push(format!("{} {what}", HumanCount(number)));
        }
    }
    parts.join(", ")
}

/// Describes what a focused crawl has found.
pub(crate) fn harvest(topic: &TopicStatus) -> String {
    let recall = topic.recall.map_or_else(String::new, |recall| {
        format!(
            ", recall {:.0} % ({:.0} to {:.0} %), {} expected to wait",
            100.0 * recall.expected,
            100.0 * recall.low,
            100.0 * recall.high,
            HumanCount(recall.waiting.round() as u64)
        )
    });
    format!(
        "{} of {} of the topic {} ({:.0} % of the last hundred{recall})",
        HumanCount(topic.found),
        count(topic.looked_at, "page"),
        topic.name,
        100.0 * topic.harvest
    )
}

#[cfg(test)]
mod tests {
    use super::{CrawlStatus, sum};

    #[test]
    fn what_there_was_none_of_is_not_counted() {
        assert_eq!(sum(&CrawlStatus::default()), "no captures");
        assert_eq!(sum(&CrawlStatus { refused: 2, ..CrawlStatus::default() }), "no captures, 2 refused");
        let status = CrawlStatus { acknowledged: 1, errors: 1, bytes: 300, ..CrawlStatus::default() };
        assert_eq!(sum(&status), "1 capture, 300 B, 0/s, 1 error");
        let status = CrawlStatus { acknowledged: 2000, identical: 30, refused: 4, queued: 5, ..status };
        assert_eq!(
            sum(&status),
            "2,000 captures (30 identical to another capture), 300 B, 0/s, 1 error, 4 refused, 5 still queued"
        );
    }
}
