//! Serves the test web on loopback and prints how to crawl it.
//!
//!     cargo run --release --example testweb -- --hosts 100 --pages 10000
//!
//! With `--speed` it measures how fast pages are generated and served, and exits.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use archive_testweb::{Clock, Config, PageIndex, Server, Web, faults, traps, truth};
use clap::Parser;

/// Serve a deterministic web of many hosts at one address.
#[derive(Debug, Parser)]
struct Args {
    /// Random seed; the same seed gives the same web
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of hosts; two per site without --sites
    #[arg(long, default_value_t = 100)]
    hosts: u32,
    /// Number of sites
    #[arg(long)]
    sites: Option<u32>,
    /// Number of pages of all hosts
    #[arg(long, default_value_t = 10_000)]
    pages: u64,
    /// Links per page
    #[arg(long, default_value_t = 30)]
    links: u32,
    /// Share of links to other hosts
    #[arg(long, default_value_t = 0.25)]
    inter_host: f64,
    /// Share of XML documents
    #[arg(long, default_value_t = 0.1)]
    xml: f64,
    /// Pages and links only: no requisites, feeds, redirects, duplicates, noise, robots rules
    #[arg(long)]
    plain: bool,
    /// Link to the trap hosts
    #[arg(long)]
    traps: bool,
    /// Link to the host of faults
    #[arg(long)]
    faults: bool,
    /// Share of hosts whose robots.txt asks for a delay of one second
    #[arg(long, default_value_t = 0.0)]
    crawl_delay: f64,
    /// Share of minutes in which a host answers 503 or 429
    #[arg(long, default_value_t = 0.0)]
    busy: f64,
    /// Milliseconds before each answer
    #[arg(long, default_value_t = 0)]
    latency: u64,
    /// Start with a clock at the beginning of the web, which http://clock.test/advance?days=1 advances
    #[arg(long)]
    simulated_clock: bool,
    /// Seconds for which to measure how fast pages are generated and served; then exit
    #[arg(long, value_name = "SECONDS")]
    speed: Option<u64>,
    /// CSV file for the facts of every page (address, allowed, links, importance, changes per day); for webs of up to a
    /// few million pages
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,
    /// Address to listen at; may be repeated
    #[arg(long, default_value = "127.0.0.1:8000")]
    listen: Vec<SocketAddr>,
    /// Number of threads of the server
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Number of seeds to print: the home pages of the most popular sites
    #[arg(long, default_value_t = 10)]
    seeds: u32,
}

impl Args {
    fn config(&self) -> Config {
        let base = if self.plain { Config::plain } else { Config::sized };
        let mut config = Config {
            links_per_page: self.links,
            inter_host_share: self.inter_host,
            xml_share: self.xml,
            traps: self.traps,
            faults: self.faults,
            crawl_delay_share: self.crawl_delay,
            busy_share: self.busy,
            latency: Duration::from_millis(self.latency),
            ..base(self.seed, self.hosts, self.pages)
        };
        config.sites = self.sites.unwrap_or(config.sites);
        if self.simulated_clock {
            config.clock = Clock::simulated(config.start);
        }
        config
    }
}

mod speed;

fn main() -> Result<()> {
    let args = Args::parse();
    let web = Arc::new(Web::new(args.config())?);
    let server = Server::start_on(Arc::clone(&web), &args.listen, args.threads)
        .with_context(|| format!("cannot listen on {:?}", args.listen))?;
    if let Some(seconds) = args.speed {
        return speed::measure(&server, Duration::from_secs(seconds.max(1)), args.threads);
    }
    if let Some(path) = &args.truth {
        write_truth(&web, path).with_context(|| format!("cannot write {}", path.display()))?;
    }
    explain(&args, &server)?;
    loop {
        std::thread::park();
    }
}

/// Precision of the importance: the share of the total that the last round may move.
const IMPORTANCE_TOLERANCE: f64 = 1e-9;

fn write_truth(web: &Web, path: &Path) -> Result<()> {
    let now = web.clock().now();
    let graph = truth::Graph::of(web, now);
    let mut csv = csv::Writer::from_path(path)?;
    csv.write_record(["url", "exists", "allowed", "links", "importance", "changes_per_day"])?;
    for (index, importance) in graph.importance(IMPORTANCE_TOLERANCE).into_iter().enumerate() {
        let page = PageIndex(index as u64);
        csv.write_record([
            web.url(page),
            web.exists(page, now).to_string(),
            web.allowed(page).to_string(),
            graph.targets(index).len().to_string(),
            format!("{importance:.6}"),
            format!("{:.6}", web.rate(page)),
        ])?;
    }
    Ok(csv.flush()?)
}

/// Prints seeds to standard output, so that they can be saved to a file; the rest goes to standard error.
fn explain(args: &Args, server: &Server) -> Result<()> {
    let web = server.web();
    let address = server.address();
    let seeds = web.seeds(args.seeds);
    let mut out = io::stdout().lock();
    for seed in &seeds {
        writeln!(out, "{seed}")?;
    }
    out.flush()?;
    let first = seeds.first().map_or("", String::as_str);
    eprintln!(
        "# {} pages on {} hosts of {} sites, seed {}, at {address}. Ask for them in one of these ways:\n\
         #   archive crawl --seeds FILE --connect-to '*:80:{}:{}' --allow-private --delay 0\n\
         #   curl --connect-to '::{address}' {first}\n\
         #   http_proxy=http://{address} wget -r -l 2 -H -D test {first}\n\
         # Traps: {}\n\
         # Faults: {}, {} of them\n\
         # Clock: http://clock.test/{}",
        web.pages(),
        web.hosts(),
        web.sites(),
        args.seed,
        address.ip(),
        address.port(),
        traps::ENTRANCES.join(" "),
        faults::ENTRANCE,
        faults::FAULTS.iter().map(|group| group.len()).sum::<usize>(),
        if args.simulated_clock {
            "advance?days=1 moves it"
        } else {
            " shows it (--simulated-clock lets you move it)"
        },
    );
    Ok(())
}
