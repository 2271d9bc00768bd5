//! Options of commands that fetch.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use archive_books::recorder::Memory;
use archive_choose::{Budgets, CrawlPolicy};
use archive_crawl::{Manners, Politeness, WORKERS_MAX};
use archive_storage::Store;
use archive_vault::repack;
use archive_web::fetch::{self, ConnectTo, Limits};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::options::{ClockArgs, VersionsArgs, duration, memory};
use super::{UsageError, logging, output};

/// The delay of an address is shorter than a host's by this factor: it may serve many hosts.
const ADDRESS_DELAY_DIVISOR: u32 = 4;

/// Maximum number of connections to one host when there is no delay.
const PER_HOST_WITHOUT_DELAY: u32 = 32;

/// Heading of the options that later runs of the archive take over.
pub(crate) const KEPT: &str = "How servers are treated (kept for later runs of any command)";

/// Options that widen the reach of the program: not taken from an archive.
const REACH: [&str; 4] = ["--allow-private", "--cacert", "--insecure", "--connect-to"];

/// Options of fetching.
#[derive(clap::Args)]
pub(crate) struct FetchArgs {
    /// Pause between requests to a host (to an address, a quarter of it); use 0 only for your own servers [default: 2s]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = KEPT)]
    delay: Option<Duration>,
    /// Pause between requests to an address, which may serve many hosts
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = KEPT)]
    address_delay: Option<Duration>,
    /// Pause after each response, as a multiple of the time it took, if that is longer than the host's delay [default: 5]
    #[arg(long, value_name = "NUMBER", help_heading = KEPT)]
    delay_factor: Option<f64>,
    /// Connections per host; more than 1 only with --delay 0 [default: 1, or 32 with --delay 0]
    #[arg(long, value_name = "N", help_heading = KEPT)]
    per_host: Option<u32>,
    /// Concurrent requests, at most 4096
    #[arg(long, default_value_t = archive_crawl::Options::default().workers, value_name = "N")]
    workers: usize,
    /// Approximate number of URLs that wait in memory: the best of each host; all others wait on disk
    #[arg(long, default_value_t = archive_crawl::Options::default().front_max, value_name = "N")]
    front: usize,
    /// User-Agent by which the crawler identifies itself; include an address at which its operator can be reached
    /// [default: archive/VERSION]
    #[arg(long, value_name = "TEXT", help_heading = KEPT)]
    user_agent: Option<String>,
    /// Connect to ADDR:PORT instead of HOST:PORT, as in curl; empty parts (or *) match anything; may be repeated
    #[arg(long, value_name = "HOST:PORT:ADDR:PORT")]
    connect_to: Vec<ConnectTo>,
    /// Also fetch from addresses that are not public (loopback, private networks)
    #[arg(long)]
    allow_private: bool,
    /// File of certificate authorities to trust, too (PEM), for example your own
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// Host whose certificate is not verified, or * for all; may be repeated. The captures say so
    #[arg(long, value_name = "HOST")]
    insecure: Vec<String>,
    /// Maximum length of a body; longer bodies are cut and marked as truncated [default: 64]
    #[arg(long, value_name = "MIB", help_heading = KEPT)]
    max_body: Option<u64>,
    /// Longest wait for a connection, for the head of a response, and for more of its body [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = KEPT)]
    timeout: Option<Duration>,
    /// Maximum time for one response; the rest is cut off and the capture marked as truncated [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = KEPT)]
    max_time: Option<Duration>,
    /// Longest wait, once nothing else is left, for servers that said "later" (429, 503) or did not answer; what has to
    /// wait longer is left to the next run [default: 30s, or 5m with --for]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    patience: Option<Duration>,
    /// Obey `noarchive` (in meta name=robots or X-Robots-Tag): store only a note, not the page; =false to end it
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = KEPT)]
    obey_noarchive: Option<bool>,
    /// Free space on the disk of the archive below which the run pauses; with 0, a full disk ends the crawl
    #[arg(long, default_value_t = archive_crawl::Options::default().disk_min >> 20, value_name = "MIB")]
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

    /// What these options say of the treatment of servers.
    fn manners(&self) -> Manners {
        let reach = [
            self.allow_private,
            self.cacert.is_some(),
            !self.insecure.is_empty(),
            !self.connect_to.is_empty(),
        ];
        let reach = REACH.into_iter().zip(reach).filter(|(_, given)| *given);
        Manners {
            user_agent: self.user_agent.clone(),
            delay: self.delay,
            address_delay: self.address_delay,
            delay_factor: self.delay_factor,
            per_host: self.per_host,
            max_body: self.max_body,
            timeout: self.timeout,
            max_time: self.max_time,
            obey_noarchive: self.obey_noarchive,
            reach: reach.map(|(name, _)| name.to_owned()).collect(),
            ..Manners::default()
        }
    }

    /// Returns the options that earlier runs of an archive had and this one has not, of those that are not taken over.
    pub(crate) fn lacking(&self, told: &Manners) -> Vec<&'static str> {
        let given = self.manners().reach;
        let is_lacking = |name: &&str| {
            told.reach.iter().any(|before| before == name) && !given.iter().any(|given| given == name)
        };
        REACH.into_iter().filter(is_lacking).collect()
    }

    /// Validates the options, completed by what the archive in a folder was told before, and converts them to settings.
    /// The `limits` of a crawl are given only for one.
    pub(crate) fn options(&self, archive: &Path, limits: Manners) -> anyhow::Result<archive_crawl::Options> {
        let kept = kept(archive)?;
        let lacking = self.lacking(&kept);
        if !lacking.is_empty() {
            let (options, path) = (lacking.join(" "), archive.display());
            output::note(format_args!(
                "earlier runs of {path} had {options}, which this run does not take from a folder that others may have \
                 written; if it still holds, give it again"
            ));
        }
        let said = Manners {
            scope: limits.scope,
            max_depth: limits.max_depth,
            pages_per_host: limits.pages_per_host,
            pages_per_site: limits.pages_per_site,
            query_variations: limits.query_variations,
            same_content: limits.same_content,
            drop_parameters: limits.drop_parameters,
            leave_moved_seeds: limits.leave_moved_seeds,
            obey_nofollow: limits.obey_nofollow,
            ..self.manners()
        };
        self.settings(said.over(kept))
    }

    /// Validates what an archive was told, and converts it to settings.
    fn settings(&self, told: Manners) -> anyhow::Result<archive_crawl::Options> {
        let usual = archive_crawl::Options::default();
        let delay = told.delay.unwrap_or(usual.politeness.host_delay);
        let at_once = delay.is_zero();
        let per_host = told.per_host.unwrap_or(if at_once { PER_HOST_WITHOUT_DELAY } else { 1 });
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
        let user_agent = told.user_agent.clone().unwrap_or(usual.fetch.user_agent);
        if user_agent.bytes().any(|byte| !(b' '..=b'~').contains(&byte)) {
            return Err(UsageError("--user-agent may only have printable ASCII characters".to_owned()).into());
        }
        let answer_factor = told.delay_factor.unwrap_or(usual.politeness.answer_factor);
        if !(0.0..=1000.0).contains(&answer_factor) {
            return Err(UsageError("--delay-factor has to be from 0 to 1000".to_owned()).into());
        }
        let (memory, repack) = self.memory_and_repack()?;
        let workers = u32::try_from(self.workers).unwrap_or(u32::MAX);
        let address_delay = told.address_delay.unwrap_or(delay / ADDRESS_DELAY_DIVISOR);
        let (timeout, limits) = (told.timeout.unwrap_or(Limits::default().head), Limits::default());
        let most = |pages: Option<u32>| pages.filter(|pages| *pages > 0);
        Ok(archive_crawl::Options {
            workers: self.workers,
            front_max: self.front,
            politeness: Politeness {
                host_delay: delay,
                address_delay,
                answer_factor,
                per_host,
                per_address: if address_delay.is_zero() { workers } else { 1 },
            },
            patience: self.patience,
            policy: CrawlPolicy {
                robots_name: robots_name(&user_agent),
                obey_noarchive: told.obey_noarchive.unwrap_or_default(),
                obey_nofollow: told.obey_nofollow.unwrap_or_default(),
                budgets: Budgets {
                    pages_per_host: most(told.pages_per_host),
                    pages_per_site: most(told.pages_per_site),
                },
                query_variations: told.query_variations.unwrap_or(CrawlPolicy::default().query_variations),
                same_content: told.same_content.unwrap_or(CrawlPolicy::default().same_content),
                dropped_parameters: told.drop_parameters.clone().unwrap_or_default(),
                leave_moved_seeds: told.leave_moved_seeds.unwrap_or_default(),
                ..CrawlPolicy::default()
            },
            fetch: fetch::Settings {
                user_agent,
                connect_to: self.connect_to.clone(),
                allow_private: self.allow_private,
                authorities: self.cacert.as_deref().map_or(Ok(Vec::new()), authorities)?,
                insecure: self.insecure.clone(),
                limits: Limits {
                    connect: timeout.min(limits.connect),
                    head: timeout,
                    idle: timeout,
                    total: told.max_time.unwrap_or(limits.total),
                    body_bytes: told
                        .max_body
                        .map_or(limits.body_bytes, |mebibytes| mebibytes.saturating_mul(1 << 20)),
                    ..limits
                },
                clock: self.clock.clock(),
            },
            manners: Some(told),
            obey_decisions: !self.no_decisions,
            full_text: !self.no_full_text,
            disk_min: self.disk_min << 20,
            status: self.status,
            memory,
            repack,
            has_spare_time: self.spare_time,
            ..usual
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

/// What an archive was told before; nothing if it does not exist or has no checkpoint yet.
fn kept(archive: &Path) -> anyhow::Result<Manners> {
    Ok(state_of(archive).map_or(Ok(Manners::default()), |store| Manners::of(store.state()))?)
}

/// The archive as of its last checkpoint. What is wrong with it, opening it for writing will say.
fn state_of(archive: &Path) -> Option<Store> {
    Store::read_only(archive).ok()
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
        let nowhere = Path::new("/nonexistent.archive");
        let options = Typed::parse_from(["archive"]).fetch.options(nowhere, Manners::default()).unwrap();
        let usual =
            archive_crawl::Options { manners: Some(Manners::default()), ..archive_crawl::Options::default() };
        assert_eq!(format!("{options:?}"), format!("{usual:?}"));
    }
}
