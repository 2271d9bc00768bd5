//! What is done with whole archives, as calls of the library: without a command line, and told by events.

use std::path::Path;
use std::time::Duration;

use archive::jobs::{
    self, Control, CrawlJob, CrawlOptions, EndReason, ErrorKind, JobEvent, Manners, Opening, RefreshJob,
    RulesChange, ScopeKind,
};
use archive_storage::Clock;
use chrono::{DateTime, TimeDelta, Utc};

use crate::support::Archive;
use crate::support::site::Site;

/// A crawl of a site in this process, at once.
fn crawl_of(site: &Site, clock: DateTime<Utc>) -> CrawlJob {
    let manners = Manners {
        user_agent: Some("jobs/1.0".to_owned()),
        delay: Some(Duration::ZERO),
        scope: Some(ScopeKind::Host),
        ..Manners::default()
    };
    let mut options = CrawlOptions { disk_min: 0, ..CrawlOptions::default() };
    options.fetch.allow_private = true;
    options.fetch.clock = Clock::set_to(clock);
    let seeds = jobs::read_seeds(&site.url("/")).unwrap();
    CrawlJob { seeds, manners, options, ..CrawlJob::default() }
}

/// A refresh of the archive a day later, which says nothing of how servers are treated.
fn refresh_at(
    archive: &Path,
    clock: DateTime<Utc>,
    reaches_here: bool,
) -> (jobs::RefreshOutcome, Vec<String>) {
    let mut job = RefreshJob { budget: 1000, ..RefreshJob::default() };
    job.options.disk_min = 0;
    job.options.fetch.allow_private = reaches_here;
    job.options.fetch.clock = Clock::set_to(clock);
    let mut told = Vec::new();
    let outcome = jobs::refresh(&[archive.to_owned()], &job, &Control::default(), &mut |event| {
        if let JobEvent::Notice(text) = event {
            told.push(text);
        }
    });
    (outcome.unwrap(), told)
}

#[test]
fn an_archive_is_crawled_and_refreshed_without_a_command_line() {
    let (archive, site) = (Archive::new(), Site::start());
    let now = Utc::now();
    let (mut begun, mut reports) = (Vec::new(), 0);
    let crawled =
        jobs::crawl(&archive.path, crawl_of(&site, now), &Control::default(), &mut |event| match event {
            JobEvent::Begun(limit) => begun.push(limit),
            JobEvent::Fetching(_) => reports += 1,
            event => panic!("{event:?}"),
        });
    let crawled = crawled.unwrap();
    assert_eq!((crawled.end, crawled.is_in_vain), (EndReason::Complete, false));
    assert_eq!(crawled.failed_seeds, Vec::<String>::new());
    assert!(crawled.status.pages > 40 && begun == [None] && reports > 0, "{:?}", crawled.status);
    let stats = jobs::stats(&archive.path).unwrap();
    assert_eq!((stats.captures + stats.errors, stats.failures), (crawled.status.captures, 0));

    // The archive knows how to treat the servers; what widens the reach of the program has to be given again.
    let (refreshed, told) = refresh_at(&archive.path, now + TimeDelta::days(1), true);
    assert_eq!((refreshed.end, refreshed.idle, told.len()), (EndReason::Complete, None, 0), "{told:?}");
    assert!(refreshed.has_all_due && refreshed.status.identical > 40, "{:?}", refreshed.status);
    let (refused, told) = refresh_at(&archive.path, now + TimeDelta::days(2), false);
    assert_eq!((refused.status.captures, told.len()), (0, 1), "{told:?}");
    assert_eq!(refused.lacking.into_iter().collect::<Vec<_>>(), ["--allow-private"]);
    archive.run("verify", &[] as &[&str]).succeeded();
}

#[test]
fn errors_say_what_they_mean_to_the_caller() {
    let (archive, control) = (Archive::new(), Control::default());
    let silent = &mut |_: JobEvent<'_>| {};
    let refresh = RefreshJob { budget: 1, ..RefreshJob::default() };
    let folders = [archive.path.clone()];
    let error = jobs::refresh(&folders, &refresh, &control, silent).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed, "{error}");

    let owner = jobs::open(&archive.path, &Opening::default(), silent).unwrap();
    for error in [
        jobs::open(&archive.path, &Opening::default(), silent).map(drop).unwrap_err(),
        jobs::refresh(&folders, &refresh, &control, silent).map(drop).unwrap_err(),
        jobs::crawl(&archive.path, CrawlJob::default(), &control, silent).map(drop).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    }
    drop(owner);

    let rules = RulesChange { unit: Some(Duration::ZERO), ..RulesChange::default() };
    let no_unit = RefreshJob { rules, ..refresh.clone() };
    let wrong_query = RefreshJob { query: Some("page colour = red".to_owned()), ..refresh.clone() };
    let per_host = Manners { per_host: Some(2), ..Manners::default() };
    let impolite = RefreshJob { manners: per_host, ..refresh };
    for job in [no_unit, wrong_query, impolite] {
        let error = jobs::refresh(&folders, &job, &control, silent).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    }
}
