//! Options of commands that fetch.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

use archive_base::decisions::RobotsDecision;
use archive_base::memory::parse_bytes;
use archive_books::recorder::Memory;
use archive_crawl::{CookieUse, CrawlOptions, Manners};
use archive_vault::repack;
use archive_web::fetch::{self, AcceptedCertificate, Compression, ConnectTo, IpVersion, TypeLimit, Ways};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::options::{ClockArgs, VersionsArgs, duration, memory, named};
use super::{Result, logging, usage};

/// Heading of the options that later runs of the archive take over.
pub(crate) const KEPT: &str = "How servers are treated (kept for later runs of any command)";

const COOKIES: [(&str, &str, CookieUse); 3] = [
    (CookieUse::Off.name(), "none", CookieUse::Off),
    (CookieUse::Run.name(), "those that servers set in this run", CookieUse::Run),
    (
        CookieUse::Kept.name(),
        "those of earlier runs, too; a file that only its owner can read keeps them",
        CookieUse::Kept,
    ),
];

const COMPRESSION: [(&str, &str, Compression); 2] = [
    (
        Compression::Off.name(),
        "none: what versions of a page have in common is stored once",
        Compression::Off,
    ),
    (
        Compression::On.name(),
        "gzip and br: a fifth to transfer, but pages that come again take twice the space",
        Compression::On,
    ),
];

pub(crate) const ROBOTS: [(&str, &str, RobotsDecision); 3] = [
    (RobotsDecision::Obey.name(), "nothing", RobotsDecision::Obey),
    (RobotsDecision::Parts.name(), "parts of pages: pictures, style sheets, scripts", RobotsDecision::Parts),
    (RobotsDecision::Ignore.name(), "everything; delays hold", RobotsDecision::Ignore),
];

/// What may be asked, and whom to trust.
#[derive(clap::Args)]
pub(crate) struct ReachArgs {
    /// Connect to ADDR:PORT instead of HOST:PORT, as in curl; empty parts (or *) match anything; may be repeated
    #[arg(long, value_name = "HOST:PORT:ADDR:PORT")]
    connect_to: Vec<ConnectTo>,
    /// Take ADDR for HOST at PORT instead of asking DNS, as in curl; may be repeated
    #[arg(long, value_name = "HOST:PORT:ADDR", value_parser = ConnectTo::resolved)]
    resolve: Vec<ConnectTo>,
    /// Proxy for all hosts, or for HOST or *.DOMAIN: http, https, socks5 (names are resolved here) or socks5h (it resolves
    /// them) ://HOST:PORT, or direct for none. May be repeated; hosts are spread over several with the same HOSTS, and each
    /// keeps its own. `archive login add HOST:PORT --proxy NAME` keeps a proxy's name and password
    #[arg(long, value_name = "[HOSTS=]URL")]
    proxy: Vec<String>,
    /// Address of this machine to connect from; may be repeated: hosts are spread over those of IPv4, and of IPv6
    #[arg(long, value_name = "ADDR")]
    bind: Vec<IpAddr>,
    /// Connect to addresses of IPv4 only
    #[arg(long, conflicts_with = "ipv6")]
    ipv4: bool,
    /// Connect to addresses of IPv6 only
    #[arg(long)]
    ipv6: bool,
    /// Also fetch from addresses that are not public (loopback, private networks)
    #[arg(long)]
    allow_private: bool,
    /// File of certificate authorities to trust, too (PEM), for example your own
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// Host whose certificate is taken although it cannot be verified, or no other than the one with this digest; may
    /// be repeated. The captures say so
    #[arg(long, value_name = "HOST[=SHA256]")]
    accept_certificate: Vec<AcceptedCertificate>,
    /// Take the certificates of all hosts although they cannot be verified (insecure). The captures say so
    #[arg(long)]
    accept_invalid_certificates: bool,
}

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
    #[arg(long, default_value_t = archive_crawl::CrawlOptions::default().workers, value_name = "N")]
    workers: usize,
    /// Approximate number of URLs that wait in memory: the best of each host; all others wait on disk
    #[arg(long, default_value_t = archive_crawl::CrawlOptions::default().front_max, value_name = "N")]
    front: usize,
    /// User-Agent by which the crawler identifies itself; include an address at which its operator can be reached
    /// [default: archive/VERSION]
    #[arg(long, value_name = "TEXT", help_heading = KEPT)]
    user_agent: Option<String>,
    #[command(flatten)]
    reach: ReachArgs,
    /// Maximum length of a body: a longer one is not received, or cut if its length is not known before, and marked as
    /// truncated [default: 64]
    #[arg(long, value_name = "MIB", help_heading = KEPT)]
    max_body: Option<u64>,
    /// The same for bodies of a type, as video=10MB or application/zip=0; may be repeated
    #[arg(long, value_name = "TYPE=SIZE", value_parser = type_limit, help_heading = KEPT)]
    max_body_of: Option<Vec<TypeLimit>>,
    /// Maximum number of bytes that a run receives from a host, or a seed's bytes=SIZE; 0 for no limit
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = KEPT)]
    bytes_per_host: Option<u64>,
    /// Maximum number of bytes that a run receives from a site; 0 for no limit
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = KEPT)]
    bytes_per_site: Option<u64>,
    /// Number of bytes received after which to stop (80MB, 2GiB)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    limit_bytes: Option<u64>,
    /// Longest wait for a connection, for the head of a response, and for more of its body [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = KEPT)]
    timeout: Option<Duration>,
    /// Maximum time for one response; the rest is cut off and the capture marked as truncated [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = KEPT)]
    max_time: Option<Duration>,
    /// Which cookies are sent, as browsers send them [default: run]
    #[arg(long, value_name = "WHICH", value_parser = named(COOKIES), help_heading = KEPT)]
    cookies: Option<CookieUse>,
    /// Whether servers may compress what they send; it is stored as received [default: off]
    #[arg(long, value_name = "WHICH", value_parser = named(COMPRESSION), help_heading = KEPT)]
    compression: Option<Compression>,
    /// Longest wait, once nothing else is left, for servers that said "later" (429, 503) or did not answer; what has to
    /// wait longer is left to the next run [default: 30s, or 5m with --for]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    patience: Option<Duration>,
    /// Obey `noarchive` (in meta name=robots or X-Robots-Tag): store only a note, not the page; =false to end it
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = KEPT)]
    obey_noarchive: Option<bool>,
    /// Free space on the disk of the archive below which the run pauses; with 0, a full disk ends the crawl
    #[arg(long, default_value_t = archive_crawl::CrawlOptions::default().disk_min >> 20, value_name = "MIB")]
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
    /// Which of what robots.txt forbids is fetched all the same, at hosts without a decision (`archive review set --robots`);
    /// the captures say so
    #[arg(long, default_value = "obey", value_name = "WHICH", value_parser = named(ROBOTS))]
    robots: RobotsDecision,
    #[command(flatten)]
    clock: ClockArgs,
}

impl ReachArgs {
    /// How URLs are fetched, as far as these options say it.
    pub(crate) fn settings(&self) -> Result<fetch::FetchSettings> {
        let any = self.accept_invalid_certificates.then(AcceptedCertificate::any);
        Ok(fetch::FetchSettings {
            connect_to: self.connect_to.iter().chain(&self.resolve).cloned().collect(),
            ways: self.ways()?,
            allow_private: self.allow_private,
            authorities: self.cacert.as_deref().map_or(Ok(Vec::new()), authorities)?,
            accepted: self.accept_certificate.iter().cloned().chain(any).collect(),
            ..CrawlOptions::default().fetch
        })
    }

    fn ways(&self) -> Result<Ways> {
        for own in &self.bind {
            // Any port: whether the address can be used at all.
            let is_own = UdpSocket::bind((*own, 0));
            is_own.map_err(|error| usage(format!("--bind {own} is no address of this machine: {error}")))?;
        }
        // Not parsed by clap, which would repeat a password.
        let proxies =
            self.proxy.iter().map(|rule| rule.parse()).collect::<Result<_, fetch::ProxyRuleError>>();
        let versions = [(self.ipv4, IpVersion::V4), (self.ipv6, IpVersion::V6)];
        Ok(Ways {
            proxies: proxies.map_err(|error| usage(format!("--proxy: {error}")))?,
            own: self.bind.clone(),
            version: versions.into_iter().find_map(|(is_only, version)| is_only.then_some(version)),
        })
    }
}

impl FetchArgs {
    /// Starts the log, if requested.
    pub(crate) fn start_log(&self, archives: &[PathBuf]) -> Result<()> {
        self.log.as_deref().map_or(Ok(()), |log| logging::start(log, archives))
    }

    /// What these options say of the treatment of servers.
    pub(crate) fn manners(&self) -> Manners {
        Manners {
            user_agent: self.user_agent.clone(),
            delay: self.delay,
            address_delay: self.address_delay,
            delay_factor: self.delay_factor,
            per_host: self.per_host,
            max_body: self.max_body,
            max_body_of: self.max_body_of.clone(),
            bytes_per_host: self.bytes_per_host,
            bytes_per_site: self.bytes_per_site,
            timeout: self.timeout,
            max_time: self.max_time,
            obey_noarchive: self.obey_noarchive,
            cookies: self.cookies,
            compression: self.compression,
            ..Manners::default()
        }
    }

    /// What they say of everything else.
    pub(crate) fn options(&self) -> Result<CrawlOptions> {
        let (memory, repack) = self.memory_and_repack()?;
        Ok(CrawlOptions {
            workers: self.workers,
            front_max: self.front,
            patience: self.patience,
            bytes: self.limit_bytes,
            fetch: fetch::FetchSettings { clock: self.clock.clock(), ..self.reach.settings()? },
            obey_decisions: !self.no_decisions,
            robots: self.robots,
            full_text: !self.no_full_text,
            disk_min: self.disk_min << 20,
            status: self.status,
            memory,
            repack,
            has_spare_time: self.spare_time,
            ..CrawlOptions::default()
        })
    }

    /// Divides the memory if segments are repacked at the same time.
    fn memory_and_repack(&self) -> Result<(Memory, Option<repack::RepackOptions>)> {
        if !self.repack_while_idle {
            return Ok((self.memory, None));
        }
        let (rest, memory) = self.memory.with_repacking().ok_or_else(|| {
            let least = Memory::WITH_REPACKING_MIN >> 20;
            usage(format!("--repack-while-idle needs a --memory of at least {least}MiB"))
        })?;
        Ok((rest, Some(repack::RepackOptions { memory, threads: 1, ..repack::RepackOptions::default() })))
    }
}

fn size(text: &str) -> Result<u64, String> {
    parse_bytes(text).map(|bytes| bytes as u64)
}

/// Parses the maximum length of bodies of a type.
fn type_limit(text: &str) -> Result<TypeLimit, String> {
    let (media_type, bytes) = text.split_once('=').ok_or("write a type and a size, as in video=10MB")?;
    Ok(TypeLimit { media_type: media_type.to_ascii_lowercase(), bytes: size(bytes)? })
}

/// Reads the certificates of a PEM file.
fn authorities(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| error.to_string());
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        other => {
            let why = other.err().unwrap_or_else(|| "it has no certificate".to_owned());
            Err(usage(format!("--cacert {} cannot be used: {why}", path.display())))
        }
    }
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
        let typed = Typed::parse_from(["archive"]).fetch;
        assert_eq!(format!("{:?}", typed.options().unwrap()), format!("{:?}", CrawlOptions::default()));
        assert_eq!(typed.manners(), Manners::default());
    }
}
