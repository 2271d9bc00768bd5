//! Options of commands that fetch.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use archive::crawl::{self, Politeness, WORKERS_MAX};
use archive::exchange::repack;
use archive::fetch::{self, ConnectTo, Limits};
use archive::recorder::Memory;
use archive::selection::CrawlPolicy;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::options::{ClockArgs, VersionsArgs, duration, memory};
use super::{UsageError, logging};

/// The delay of an address is shorter than a host's by this factor: it may serve many hosts.
const ADDRESS_DELAY_DIVISOR: u32 = 4;

/// Maximum number of connections to one host when there is no delay.
const PER_HOST_WITHOUT_DELAY: u32 = 32;

/// Options of fetching.
#[derive(clap::Args)]
pub(crate) struct FetchArgs {
    /// Pause between requests to a host (to an address, a quarter of it); use 0 only for your own servers
    #[arg(long, default_value = "2s", value_name = "TIME", value_parser = duration)]
    delay: Duration,
    /// Pause between requests to an address, which may serve many hosts
    #[arg(long, value_name = "TIME", value_parser = duration)]
    address_delay: Option<Duration>,
    /// Pause after each response, as a multiple of the time it took, if that is longer than the host's delay
    #[arg(long, default_value_t = Politeness::default().answer_factor, value_name = "NUMBER")]
    delay_factor: f64,
    /// Connections per host; more than 1 only with --delay 0 [default: 1, or 32 with --delay 0]
    #[arg(long, value_name = "N")]
    per_host: Option<u32>,
    /// Concurrent requests, at most 4096
    #[arg(long, default_value_t = crawl::Options::default().workers, value_name = "N")]
    workers: usize,
    /// Approximate number of URLs that wait in memory: the best of each host; all others wait on disk
    #[arg(long, default_value_t = crawl::Options::default().front_max, value_name = "N")]
    front: usize,
    /// User-Agent by which the crawler identifies itself; include an address at which its operator can be reached
    #[arg(long, default_value_t = crawl::Options::default().fetch.user_agent, value_name = "TEXT")]
    user_agent: String,
    /// Connect to ADDR:PORT instead of HOST:PORT, as in curl; empty parts (or *) match anything; may be repeated
    #[arg(long, value_name = "HOST:PORT:ADDR:PORT")]
    connect_to: Vec<ConnectTo>,
    /// Also fetch from addresses that are not public (loopback, private networks)
    #[arg(long)]
    allow_private: bool,
    /// File of certificate authorities to trust, too (PEM), for example your own
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// Maximum length of a body; longer bodies are cut and marked as truncated
    #[arg(long, default_value_t = Limits::default().body_bytes >> 20, value_name = "MIB")]
    max_body: u64,
    /// Longest wait for a connection, for the head of a response, and for more of its body
    #[arg(long, default_value = "30s", value_name = "TIME", value_parser = duration)]
    timeout: Duration,
    /// Maximum time for one response; the rest is cut off and the capture marked as truncated
    #[arg(long, default_value = "10m", value_name = "TIME", value_parser = duration)]
    max_time: Duration,
    /// Obey `noarchive` (in meta name=robots or X-Robots-Tag): store only a note, not the page
    #[arg(long)]
    obey_noarchive: bool,
    /// Free space on the disk of the archive below which the run pauses; with 0, a full disk ends the crawl
    #[arg(long, default_value_t = crawl::Options::default().disk_min >> 20, value_name = "MIB")]
    disk_min: u64,
    /// Address at which the state of the crawl is served: JSON at /status, Prometheus metrics at /metrics. Clients must
    /// use an IP address or localhost as the host name
    #[arg(long, value_name = "ADDR:PORT")]
    status: Option<SocketAddr>,
    /// Log file, one JSON object per line; $ARCHIVE_LOG filters it, for example 'info,capture=off'
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Memory for bodies, caches and the full-text index (200MB, 4GiB); longer bodies go through files
    #[arg(long, default_value = "1GiB", value_name = "SIZE", value_parser = memory)]
    memory: Memory,
    /// Repack closed segments while processors are idle, as `archive repack` does; takes a third of --memory, and disk
    /// space for new segments beside the old ones
    #[arg(long)]
    repack_while_idle: bool,
    /// Treat the processors as idle, or as busy, whatever their load; for simulations
    #[arg(long, value_name = "BOOL", hide = true)]
    spare_time: Option<bool>,
    /// Do not index text for search
    #[arg(long)]
    no_full_text: bool,
    #[command(flatten)]
    pub(crate) versions: VersionsArgs,
    /// Ignore people's decisions (`archive review`)
    #[arg(long)]
    pub(crate) no_decisions: bool,
    #[command(flatten)]
    clock: ClockArgs,
}

impl FetchArgs {
    /// Starts the log, if requested.
    pub(crate) fn start_log(&self, archives: &[PathBuf]) -> anyhow::Result<()> {
        self.log.as_deref().map_or(Ok(()), |log| logging::start(log, archives))
    }

    /// Validates the options and converts them to settings.
    pub(crate) fn options(&self) -> anyhow::Result<crawl::Options> {
        let at_once = self.delay.is_zero();
        let per_host = self.per_host.unwrap_or(if at_once { PER_HOST_WITHOUT_DELAY } else { 1 });
        if per_host == 0 {
            return Err(UsageError("--per-host has to be at least 1".to_owned()).into());
        }
        if !(1..=WORKERS_MAX).contains(&self.workers) {
            return Err(UsageError(format!("--workers has to be from 1 to {WORKERS_MAX}")).into());
        }
        if per_host > 1 && !at_once {
            let text = "--per-host above 1 needs --delay 0: with a delay a host gets one request at a time";
            return Err(UsageError(text.to_owned()).into());
        }
        if self.user_agent.bytes().any(|byte| !(b' '..=b'~').contains(&byte)) {
            return Err(UsageError("--user-agent may only have printable ASCII characters".to_owned()).into());
        }
        if !(0.0..=1000.0).contains(&self.delay_factor) {
            return Err(UsageError("--delay-factor has to be from 0 to 1000".to_owned()).into());
        }
        let (memory, repack) = self.memory_and_repack()?;
        let workers = u32::try_from(self.workers).unwrap_or(u32::MAX);
        let address_delay = self.address_delay.unwrap_or(self.delay / ADDRESS_DELAY_DIVISOR);
        Ok(crawl::Options {
            workers: self.workers,
            front_max: self.front,
            politeness: Politeness {
                host_delay: self.delay,
                address_delay,
                answer_factor: self.delay_factor,
                per_host,
                per_address: if address_delay.is_zero() { workers } else { 1 },
            },
            policy: CrawlPolicy {
                robots_name: robots_name(&self.user_agent),
                obey_noarchive: self.obey_noarchive,
                ..CrawlPolicy::default()
            },
            fetch: fetch::Settings {
                user_agent: self.user_agent.clone(),
                connect_to: self.connect_to.clone(),
                allow_private: self.allow_private,
                authorities: self.cacert.as_deref().map_or(Ok(Vec::new()), authorities)?,
                limits: Limits {
                    connect: self.timeout.min(Limits::default().connect),
                    head: self.timeout,
                    idle: self.timeout,
                    total: self.max_time,
                    body_bytes: self.max_body << 20,
                    ..Limits::default()
                },
                clock: self.clock.clock(),
            },
            obey_decisions: !self.no_decisions,
            full_text: !self.no_full_text,
            disk_min: self.disk_min << 20,
            status: self.status,
            memory,
            repack,
            has_spare_time: self.spare_time,
            ..crawl::Options::default()
        })
    }

    /// Divides the memory if segments are repacked at the same time.
    fn memory_and_repack(&self) -> Result<(Memory, Option<repack::Options>), UsageError> {
        if !self.repack_while_idle {
            return Ok((self.memory, None));
        }
        let (rest, memory) = self.memory.with_repacking().ok_or_else(|| {
            let least = Memory::WITH_REPACKING_MIN >> 20;
            UsageError(format!("--repack-while-idle needs a --memory of at least {least}MiB"))
        })?;
        Ok((rest, Some(repack::Options { memory, threads: 1, ..repack::Options::default() })))
    }
}

/// Reads the certificates of a PEM file.
fn authorities(path: &Path) -> Result<Vec<CertificateDer<'static>>, UsageError> {
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| error.to_string());
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        other => {
            let why = other.err().unwrap_or_else(|| "it has no certificate".to_owned());
            Err(UsageError(format!("--cacert {} cannot be used: {why}", path.display())))
        }
    }
}

/// Returns the product token of a user agent, which robots.txt refers to (RFC 9309 section 2.2.1).
fn robots_name(user_agent: &str) -> String {
    let compatible = user_agent.split_once("(compatible;").map(|(_, rest)| rest.trim_start());
    let product = compatible.unwrap_or(user_agent);
    product.chars().take_while(|c| c.is_ascii_alphabetic() || matches!(c, '-' | '_')).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        fetch: FetchArgs,
    }

    #[test]
    fn what_is_not_typed_is_what_the_library_does_by_itself() {
        let options = Typed::parse_from(["archive"]).fetch.options().unwrap();
        assert_eq!(format!("{options:?}"), format!("{:?}", crawl::Options::default()));
    }
}
