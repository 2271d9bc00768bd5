//! Crawls from a program of your own: fetches up to 20 pages of a site, politely, into an archive.
//!
//!     cargo run --release --example small_crawl -- my.archive https://www.example.org/

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use archive::jobs::{self, CrawlJob, CrawlOptions, JobEvent, Manners, ScopeKind};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, url] = arguments.as_slice() else { return Err("usage: small_crawl ARCHIVE URL".into()) };
    let seeds = jobs::read_seeds(url).map_err(|errors| format!("{url}: {errors:?}"))?;

    // The defaults are polite. `$EXAMPLE_LOOPBACK` is for local test servers.
    let own_server = std::env::var_os("EXAMPLE_LOOPBACK").is_some();
    let manners = Manners {
        user_agent: Some("small-crawl-example/1.0 (+https://www.example.org/bot)".to_owned()),
        delay: own_server.then_some(Duration::ZERO),
        scope: Some(ScopeKind::Host),
        max_depth: Some(3),
        ..Manners::default()
    };
    let mut options = CrawlOptions { limit: Some(20), ..CrawlOptions::default() };
    options.fetch.allow_private = own_server;

    let job = CrawlJob { seeds, manners, options, ..CrawlJob::default() };
    let outcome = jobs::crawl(Path::new(folder), job, &jobs::Control::default(), &mut |event| match event {
        JobEvent::Notice(text) => eprintln!("{text}"),
        JobEvent::Fetching(status) => eprintln!("{} pages so far", status.pages),
        _ => {}
    })?;
    let status = outcome.status;
    println!(
        "{:?}: {} pages, {} captures, {} errors",
        outcome.end, status.pages, status.captures, status.errors
    );
    Ok(())
}
