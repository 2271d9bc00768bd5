//! Crawls from a program of your own: fetches up to 20 pages of a site, politely, into an archive.
//!
//!     cargo run --release --example small_crawl -- my.archive https://www.example.org/

use anyhow::bail;
use archive_base::control::Control;
use archive_books::ledger::ScopeKind;
use archive_books::recorder;
use archive_crawl::{Options, Purpose, read_seeds, scope_of};
use archive_storage::segment::SegmentOptions;
use archive_web::fetch;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, url] = arguments.as_slice() else { bail!("usage: small_crawl ARCHIVE URL") };
    let seeds = read_seeds(url).map_err(|errors| anyhow::anyhow!("{url}: {errors:?}"))?;
    let scope = scope_of(&seeds, &ScopeKind::Host, 3);

    // The defaults are polite. `$EXAMPLE_LOOPBACK` is for local test servers.
    let own_server = std::env::var_os("EXAMPLE_LOOPBACK").is_some();
    let fetch = fetch::Settings {
        user_agent: "small-crawl-example/1.0 (+https://www.example.org/bot)".to_owned(),
        allow_private: own_server,
        ..fetch::Settings::default()
    };
    let mut options = Options { limit: Some(20), fetch, ..Options::default() };
    if own_server {
        options.politeness = archive_crawl::Politeness::at_once(4, 16);
    }

    // Opening creates the archive if it is missing, and repairs the damage of a crash.
    let opened = recorder::open(folder.as_ref(), SegmentOptions::default())?;
    let mut store = opened.store;
    let plan = Purpose::Discover { seeds, scope };
    let (end, status) = archive_crawl::run(&mut store, plan, &options, &Control::default(), &mut |_| {})?;
    store.close()?;
    println!("{end:?}: {} pages, {} captures, {} errors", status.pages, status.captures, status.errors);
    Ok(())
}
