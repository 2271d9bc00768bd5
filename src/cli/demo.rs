//! `archive demo`: runs everything on a small test web within a minute.

use std::collections::HashMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use archive::jobs::{self, CrawlJob, CrawlOptions, Manners, RefreshJob, ScopeKind, read_seeds};
use archive_base::access::Access;
use archive_base::program;
use archive_books::ledger::Credits;
use archive_crawl::EndReason;
use archive_storage::{Clock as RecordClock, Store};
use archive_testweb::{Clock, Config, PageIndex, Server, SiteIndex, Web, truth};
use chrono::TimeDelta;

use super::messages::Hearing;
use super::progress::{self, ALL_FETCHED};
use super::{During, EXIT_STOPPED, Failure, Result, history, interrupt, output, query, review};

/// Name of the file that marks a folder as replaceable by a demo.
const MARK: &str = "demo.txt";

/// Days simulated on the test web before the refresh.
const DAYS: i64 = 30;

/// Maximum number of pages that the demo's refresh fetches.
const REFRESH_BUDGET: u64 = 500;

/// Number of sites printed.
const SITES: usize = 10;

/// Try everything on a small test web on this machine: crawl, rank, query, refresh, history, review.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folder of the demo's archive; an earlier demo there is replaced
    #[arg(long = "archive", default_value = "./demo.archive", value_name = "DIR")]
    path: PathBuf,
    /// Number of pages of the test web
    #[arg(long, default_value_t = 3000, value_name = "N")]
    pages: u64,
    /// Number of hosts of the test web, two per site
    #[arg(long, default_value_t = 60, value_name = "N")]
    hosts: u32,
    /// Random seed of the test web
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let stop = interrupt::install()?;
    prepare(&args.path)?;
    let mut config = Config::sized(args.seed, args.hosts, args.pages);
    config.clock = Clock::simulated(config.start + TimeDelta::days(365));
    let web = Arc::new(Web::new(config).map_err(Failure::failed)?);
    let server = Server::start(Arc::clone(&web), SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
        .within("cannot serve the test web")?;

    heading(&format!(
        "1. Crawl a web of {} pages on {} hosts, served at {}, in the order of importance",
        args.pages,
        args.hosts,
        server.address()
    ))?;
    let seeds =
        read_seeds(&web.seeds(10).join("\n")).map_err(|_| Failure::failed("the test web has no seeds"))?;
    let job = CrawlJob { seeds, manners: manners(), options: options(&server, &web)?, ..CrawlJob::default() };
    let mut hearing = Hearing::new(false);
    let crawled = jobs::crawl(&args.path, job, &stop, &mut |event| hearing.hear(event))?;
    progress::finish(crawled.end, ALL_FETCHED, &crawled.status, &args.path);
    if crawled.end == EndReason::Stopped {
        return Ok(ExitCode::from(EXIT_STOPPED));
    }

    heading(
        "2. The most important sites: the crawler's estimate, and the truth that only the test web knows",
    )?;
    print_sites(&Store::read_only(&args.path)?, &web)?;

    heading("3. Ask the archive")?;
    for text in [
        "page type = xml order by importance desc limit 5 select importance, url, title",
        "page text contains \"library\" order by score limit 5 select score, importance, url",
    ] {
        output::line("")?;
        say!("$ archive query '{text}' --archive {}", args.path.display())?;
        query::print(vec![(&Store::read_only(&args.path)?, Access::unlimited())], text)?;
    }

    heading(&format!(
        "4. {DAYS} days later the web has changed: refresh what matters most and has probably changed"
    ))?;
    web.config().clock.advance(TimeDelta::days(DAYS));
    let (manners, options) = (manners(), options(&server, &web)?);
    let job = RefreshJob { budget: REFRESH_BUDGET, manners, options, ..RefreshJob::default() };
    let folders = [args.path.clone()];
    let refreshed = jobs::refresh(&folders, &job, &stop, &mut |event| hearing.hear(event))?;
    progress::finish(refreshed.end, ALL_FETCHED, &refreshed.status, &args.path);
    if refreshed.end == EndReason::Stopped {
        return Ok(ExitCode::from(EXIT_STOPPED));
    }
    let store = Store::read_only(&args.path)?;

    heading("5. The history of a page")?;
    if let Some(url) = changed_page(&store)? {
        output::line("")?;
        say!("$ archive history {url} --archive {}", args.path.display())?;
        history::print(&store, &Access::unlimited(), &url, false)?;
    }

    heading("6. What librarians review")?;
    let review_file = args.path.join("review.html");
    review::write_html(&args.path, &review_file)?;
    say!("{} lists the sites by importance, to be rated", review_file.display())?;

    heading("Where everything is")?;
    let path = args.path.display();
    output::text(&format!(
        "{path}/segments   the archive itself: standard WARC files and their manifest\n\
         {path}/state      catalogue, pages, histories, links: derived, can be rebuilt\n\
         {path}/state/fulltext   the full-text index: derived\n\
         Next: archive serve --archive {path}   all of this in a browser, and pages as they were\n\
         \x20     archive stats --archive {path}\n"
    ))?;
    server.stop();
    Ok(ExitCode::SUCCESS)
}

fn heading(text: &str) -> Result<()> {
    output::text(&format!("\n{text}\n{}\n", "=".repeat(text.chars().count())))
}

/// Creates an empty folder, replacing an earlier demo but never anything else.
fn prepare(path: &Path) -> Result<()> {
    if path.exists() {
        let is_empty = fs::read_dir(path)?.next().is_none();
        if !is_empty && !path.join(MARK).is_file() {
            fail!("{} is not the archive of a demo; name another folder with --archive", path.display());
        }
        fs::remove_dir_all(path).within(format_args!("cannot remove {}", path.display()))?;
    }
    fs::create_dir_all(path).within(format_args!("cannot make {}", path.display()))?;
    let text = "The archive of a demo: `archive demo` replaces this folder.\n";
    fs::write(path.join(MARK), text).within(format_args!("cannot write into {}", path.display()))
}

/// The test web is part of this process, so it needs no politeness.
fn manners() -> Manners {
    Manners {
        user_agent: Some(format!("{} (demo)", program::PRODUCT)),
        scope: Some(ScopeKind::Any),
        delay: Some(Duration::ZERO),
        delay_factor: Some(1.0),
        per_host: Some(8),
        ..Manners::default()
    }
}

fn options(server: &Server, web: &Web) -> Result<CrawlOptions> {
    let mut options = CrawlOptions { workers: 64, disk_min: 0, ..CrawlOptions::default() };
    options.fetch.connect_to = vec![format!("*:*:{}", server.address()).parse().map_err(Failure::failed)?];
    options.fetch.allow_private = true;
    // The archive uses the clock of its test web.
    options.fetch.clock = RecordClock::set_to(web.config().clock.now());
    Ok(options)
}

fn print_sites(store: &Store, web: &Web) -> Result<()> {
    let graph = truth::Graph::of(web, web.config().clock.now());
    let exact = truth::importance_among_sites(web, &graph, 1e-10);
    let exact: HashMap<String, f64> = exact
        .iter()
        .enumerate()
        .map(|(site, value)| (web.site_name(SiteIndex(site as u32)), *value))
        .collect();
    let mut table = output::table(&["site", "estimate", "truth"], &[1, 2]);
    for (site, estimate) in Credits::open(store.state())?.top_sites(store.state(), SITES)? {
        let truth = exact.get(&site).map_or("-".to_owned(), |value| format!("{value:.2}"));
        table.add_row([site, format!("{estimate:.2}"), truth]);
    }
    output::print(&table)?;

    let exact = graph.importance(1e-10);
    let credits = Credits::open(store.state())?;
    let mut pages = Vec::new();
    for page in store.state().pages(archive_storage::UrlId(0)) {
        let (id, page) = page?;
        let visit = store.state().visit(id)?;
        if let Some(importance) = credits.importance(&page, visit.as_ref()) {
            pages.push((importance, id));
        }
    }
    pages.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut table = output::table(&["page", "estimate", "truth"], &[1, 2]);
    for (estimate, id) in pages.into_iter().take(SITES) {
        let url = store.state().url(id)?;
        let truth = web.page_of(&url).and_then(|PageIndex(page)| exact.get(usize::try_from(page).ok()?));
        table.add_row([
            url,
            format!("{estimate:.2}"),
            truth.map_or("-".to_owned(), |value| format!("{value:.2}")),
        ]);
    }
    output::line("")?;
    output::print(&table)
}

/// The most important page of which the refresh found a new version.
fn changed_page(store: &Store) -> Result<Option<String>> {
    let credits = Credits::open(store.state())?;
    let mut best: Option<(f64, archive_storage::UrlId)> = None;
    for visit in store.state().visits(0) {
        let (id, visit) = visit?;
        let importance = credits.importance(&store.state().page(id)?, Some(&visit)).unwrap_or(0.0);
        if visit.versions > 1 && best.is_none_or(|(known, _)| importance > known) {
            best = Some((importance, id));
        }
    }
    Ok(best.map(|(_, id)| store.state().url(id)).transpose()?)
}
