//! Refreshes an archive from a program of your own: fetches up to 100 pages again, those that matter most and have
//! probably changed, and shows what the archive holds then.
//!
//!     cargo run --release --example refresh -- my.archive

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use archive::jobs::{self, JobEvent, RefreshJob, RulesChange};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("usage: refresh ARCHIVE")?);

    // How servers are treated, the archive knows from its crawl. `$EXAMPLE_LOOPBACK` is for local test servers.
    let own_server = std::env::var_os("EXAMPLE_LOOPBACK").is_some();
    let mut job = RefreshJob { budget: 100, ..RefreshJob::default() };
    job.options.fetch.allow_private = own_server;
    if own_server {
        job.rules = RulesChange { shortest: Some(Duration::ZERO), ..RulesChange::default() };
    }

    let folders = [folder];
    let outcome = jobs::refresh(&folders, &job, &jobs::Control::default(), &mut |event| match event {
        JobEvent::Notice(text) => eprintln!("{text}"),
        JobEvent::Fetching(status) => eprintln!("{} captures so far", status.captures),
        _ => {}
    })?;
    if let Some(why) = outcome.idle {
        println!("nothing to fetch: {why:?}");
    }
    let status = outcome.status;
    println!("{:?}: {} captures, {} of them unchanged", outcome.end, status.captures, status.identical);
    let stats = jobs::stats(&folders[0])?;
    println!("the archive has {} captures of {} URLs", stats.captures, stats.fetched);
    Ok(())
}
