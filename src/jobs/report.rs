//! Makes the report of a watch now: fetches its pages, and stores what changed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use archive_ask::watch;
use archive_base::control::Control;
use archive_base::runs::RunReport;
use archive_books::recorder;
use archive_crawl::{CrawlOptions, CrawlStatus, EndReason, Manners, Purpose};

use super::refresh::{awaited, deliver, left};
use super::{ClusterTurns, Failure, Hear, JobEvent, Opening, manners, open};

/// How the pages of a watch are fetched for a report.
#[derive(Clone, Debug, Default)]
pub struct ReportJob {
    /// Time within which to finish.
    pub time: Option<Duration>,
    /// Folders below which the watch may write its file.
    pub outputs: Vec<PathBuf>,
    /// How servers are treated; as for [`CrawlJob`](super::CrawlJob).
    pub manners: Manners,
    /// Everything else.
    pub options: CrawlOptions,
    /// The cluster with whose nodes to take turns.
    pub turns: ClusterTurns,
}

/// Fetches the pages of a watch, and stores its report unless the run was stopped.
///
/// # Errors
/// If there is no such watch, another program owns the archive, or the disk fails.
pub fn report(
    path: &Path,
    name: &str,
    job: ReportJob,
    control: &Control,
    hear: &mut Hear<'_>,
) -> Result<(EndReason, CrawlStatus), Failure> {
    let started = Instant::now();
    let ReportJob { time, outputs, manners, mut options, turns } = job;
    let watch = watch::get(path, name)?;
    manners::settle(path, manners, &mut options, hear)?;
    options.account = Some(RunReport::begins("watch", options.fetch.clock.now()));
    let opening =
        Opening { fetch: Some(&options.fetch), cluster: turns.cluster.as_deref(), ..Opening::default() };
    let mut store = open(path, &opening, hear)?;
    options.cluster = turns.member(&mut store, hear)?;
    let awaited = awaited(vec![watch], &store, options.fetch.clock.now(), hear);
    let pages = watch::pages_of(&awaited);
    options.time = time.map(|time| left(time, started));
    hear(JobEvent::Begun(Some(pages.len() as u64)));
    let plan = Purpose::Refresh { pages };
    let (end, status) = archive_crawl::run(&mut store, plan, &options, control, &mut |status| {
        hear(JobEvent::Fetching(status));
    })?;
    if end != EndReason::Stopped {
        deliver(awaited, &store, options.fetch.clock.now(), &outputs, hear);
    }
    recorder::close(store)?;
    Ok((end, status))
}
