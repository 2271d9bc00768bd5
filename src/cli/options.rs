//! Options that several commands share.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use archive::access::Access;
use archive::cluster::Partition;
use archive::crawl::{self, Politeness, WORKERS_MAX};
use archive::duration::read_duration;
use archive::exchange::{erase, repack};
use archive::fetch::{self, ConnectTo, Limits};
use archive::ledger::Credits;
use archive::memory::parse_bytes;
use archive::nodes::{ANSWERS_BYTES_MAX, Asked, Credentials, Http, Node, Source};
use archive::query::{self, MEMORY_MIN, Question};
use archive::recorder::Memory;
use archive::search;
use archive::selection::CrawlPolicy;
use archive_storage::{Clock, Store, UrlId};
use chrono::{DateTime, Utc};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::{EXIT_STOPPED, UsageError, find_shown, logging, output};

/// The pause of an address is this much shorter than a host's: it may serve many hosts.
const ADDRESS_DELAY_DIVISOR: u32 = 4;

/// Connections to one host when there is no delay.
const PER_HOST_WITHOUT_DELAY: u32 = 32;

/// Where the archive is.
#[derive(clap::Args)]
pub(crate) struct ArchiveArgs {
    /// Folder of the archive
    #[arg(long = "archive", env = "ARCHIVE_DIR", default_value = "./web.archive", value_name = "DIR")]
    pub(crate) path: PathBuf,
}

/// Where the archives are that are asked as one.
#[derive(clap::Args)]
pub(crate) struct ArchivesArgs {
    /// Folder of the archive; may be repeated for archives of different sites (such as the partitions of a cluster), which are
    /// then queried as one
    #[arg(long = "archive", env = "ARCHIVE_DIR", default_value = "./web.archive", value_name = "DIR")]
    paths: Vec<PathBuf>,
}

/// How archives of other machines are asked, which are named by URLs such as http://node:8070/ in the place of folders.
#[derive(clap::Args)]
pub(crate) struct NodesArgs {
    /// File with names and passwords for nodes (--archive http://node:8070/): URL, name and password on each line; only its owner
    /// may read it
    #[arg(long, value_name = "FILE", env = "ARCHIVE_CREDENTIALS")]
    credentials: Option<PathBuf>,
    /// How long to wait for a node's answer; a slower node counts as missing
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "2m")]
    wait: Duration,
}

/// How long an answer may take.
#[derive(clap::Args)]
pub(crate) struct TimeArgs {
    /// Give up after this time (10s, 2m); rows that were printed before stay
    #[arg(long, value_name = "TIME", value_parser = duration)]
    time_limit: Option<Duration>,
}

impl TimeArgs {
    /// From now on.
    pub(crate) fn limits(&self) -> query::Limits {
        let limits = query::Limits::USUAL;
        self.time_limit.map_or(limits, |time| limits.within(time))
    }
}

/// The archives that answer.
pub(crate) struct Answering {
    stores: Vec<(Store, Access)>,
    /// Nodes, with how many folders come before each.
    nodes: Vec<(usize, String)>,
    is_whole: bool,
}

impl ArchivesArgs {
    /// The folders.
    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Whether one of them is on another machine.
    pub(crate) fn has_nodes(&self) -> bool {
        self.paths.iter().any(|path| path.to_str().is_some_and(Node::is_meant))
    }

    /// Opens them. Of several, those that cannot be opened are named, and so are missing partitions of their clusters.
    pub(crate) fn open(&self, reader: &ReaderArgs) -> anyhow::Result<Answering> {
        let answering = self.open_beside_nodes(reader)?;
        match answering.nodes.first() {
            Some((_, node)) => Err(UsageError(format!(
                "{node} is asked by `archive query`, `archive search` and `archive rank` alone; name folders here"
            ))
            .into()),
            None => Ok(answering),
        }
    }

    /// The same where some may be on other machines.
    pub(crate) fn open_beside_nodes(&self, reader: &ReaderArgs) -> anyhow::Result<Answering> {
        let open = |path: &PathBuf| anyhow::Ok((Store::read_only(path)?, reader.access(path)?));
        let node = |path: &PathBuf| path.to_str().filter(|name| Node::is_meant(name)).map(str::to_owned);
        let mut answering = Answering { stores: Vec::new(), nodes: Vec::new(), is_whole: true };
        if let [only] = self.paths.as_slice()
            && node(only).is_none()
        {
            answering.stores.push(open(only)?);
            return Ok(answering);
        }
        let mut partitions = Vec::new();
        for path in &self.paths {
            if let Some(node) = node(path) {
                answering.nodes.push((answering.stores.len(), node));
                continue;
            }
            match open(path) {
                Ok((store, access)) => {
                    partitions.extend(Credits::partition_of(store.state())?);
                    answering.stores.push((store, access));
                }
                Err(error) => {
                    answering.is_whole = false;
                    output::note(format_args!("{} is missing from this answer: {error:#}", path.display()));
                }
            }
        }
        if answering.nodes.is_empty() {
            anyhow::ensure!(!answering.stores.is_empty(), "none of these archives can be read");
            answering.is_whole &= are_all(partitions.iter());
        } else if reader.as_archivist {
            let problem = "--as-archivist shows what folders hide; what nodes show they decide themselves";
            return Err(UsageError(problem.to_owned()).into());
        }
        Ok(answering)
    }
}

/// Whether all partitions of the clusters are there that have some of these; names those that are not.
fn are_all<'a>(partitions: impl Iterator<Item = &'a Partition>) -> bool {
    let others = Partition::others(partitions);
    for (count, missing) in &others {
        output::note(format_args!("of {count} partitions these are missing from this answer: {missing}"));
    }
    others.is_empty()
}

impl Answering {
    /// Where some are on other machines: all of them, as they are asked together.
    pub(crate) fn asked(&self, args: &NodesArgs, limits: query::Limits) -> anyhow::Result<Option<Asked<'_>>> {
        if self.nodes.is_empty() {
            return Ok(None);
        }
        let credentials = args.credentials.as_deref().map(Credentials::read).transpose()?.unwrap_or_default();
        let mut folders = self.stores.iter().map(|(store, access)| Ok(Source::Folder(store, access.clone())));
        let (mut sources, mut before) = (Vec::new(), 0);
        for (place, node) in &self.nodes {
            sources.extend(folders.by_ref().take(place - before));
            before = *place;
            sources.push(Ok(Source::Node(Node::new(node, &credentials)?)));
        }
        sources.extend(folders);
        let http = Arc::new(Http::new(args.wait, ANSWERS_BYTES_MAX)?);
        Ok(Some(Asked::new(sources, http)?.within(limits)))
    }

    /// The exit code of an answer of archives of which some are on other machines, whose missing ones are named.
    pub(crate) fn exit_code_of(&self, asked: &Asked<'_>) -> ExitCode {
        let known = asked.known();
        for missing in known.missing() {
            output::note(format_args!("{} is missing from this answer: {}", missing.name, missing.why));
        }
        let are_all = are_all(known.partitions()) && known.missing().is_empty();
        if are_all { self.exit_code() } else { ExitCode::from(EXIT_STOPPED) }
    }

    pub(crate) fn archives(&self) -> Vec<(&Store, Access)> {
        self.stores.iter().map(|(store, access)| (store, access.clone())).collect()
    }

    /// By archive, the pages that a question finds which was asked of all of them as one.
    pub(crate) fn found(&self, question: &Question<'_>) -> Result<Vec<HashSet<UrlId>>, query::Error> {
        let mut found = vec![HashSet::new(); self.stores.len()];
        for page in question.pages()? {
            let (_, archive, id) = question.rows.origin(page);
            found[archive].insert(id);
        }
        Ok(found)
    }

    pub(crate) fn of(&self, archive: usize) -> &(Store, Access) {
        &self.stores[archive]
    }

    /// The exit code of an answer.
    pub(crate) fn exit_code(&self) -> ExitCode {
        if self.is_whole { ExitCode::SUCCESS } else { ExitCode::from(EXIT_STOPPED) }
    }
}

/// Pages of an archive that a command looks at.
#[derive(clap::Args)]
pub(crate) struct PagesArgs {
    /// URLs, or a query for pages
    #[arg(required = true, num_args = 1.., value_name = "QUERY|URL")]
    what: Vec<String>,
    #[command(flatten)]
    archive: ArchiveArgs,
    #[command(flatten)]
    reader: ReaderArgs,
}

/// Such pages, and where they are.
pub(crate) struct Meant {
    pub(crate) store: Store,
    pub(crate) access: Access,
    pub(crate) pages: Vec<UrlId>,
    /// Whether they were given by their URLs.
    pub(crate) are_named: bool,
}

impl PagesArgs {
    /// Opens the archive and finds the pages.
    pub(crate) fn open(&self) -> anyhow::Result<Meant> {
        let store = Store::read_only(&self.archive.path)?;
        let access = self.reader.access(&self.archive.path)?;
        let is_url = |text: &String| text.starts_with("http://") || text.starts_with("https://");
        let are_named = self.what.iter().all(is_url);
        let pages = if are_named {
            let ids = self.what.iter().map(|url| find_shown(&store, &access, url));
            ids.collect::<anyhow::Result<_>>()?
        } else {
            Question::new(&store, access.clone(), &self.what.join(" "), Utc::now())?.pages()?
        };
        Ok(Meant { store, access, pages, are_named })
    }
}

/// Who reads the archive.
#[derive(clap::Args)]
pub(crate) struct ReaderArgs {
    /// Also show what the archive's access rules hide (see `archive access --help`)
    #[arg(long)]
    as_archivist: bool,
}

impl ReaderArgs {
    /// What the reader may see of the archive in `path`.
    pub(crate) fn access(&self, path: &Path) -> anyhow::Result<Access> {
        if let Some(intent) = erase::interrupted(path)? {
            let captures = output::count(intent.count() as u64, "capture");
            output::note(format_args!(
                "an erase of {captures} is not finished; `archive erase --resume` finishes it"
            ));
        }
        if self.as_archivist { Ok(Access::unlimited()) } else { Ok(Access::read(path)?) }
    }
}

/// How to fetch.
#[derive(clap::Args)]
pub(crate) struct FetchArgs {
    /// Pause between two requests to a host (an address gets a quarter of it); use 0 only for your own servers
    #[arg(long, default_value = "2s", value_name = "TIME", value_parser = duration)]
    delay: Duration,
    /// Pause between two requests to an address, which may serve many hosts
    #[arg(long, value_name = "TIME", value_parser = duration)]
    address_delay: Option<Duration>,
    /// After each answer a host is left alone for this many times as long as it took, if that is more than its delay
    #[arg(long, default_value_t = Politeness::default().answer_factor, value_name = "NUMBER")]
    delay_factor: f64,
    /// Connections to one host; more than 1 only with --delay 0, where it is 32
    #[arg(long, value_name = "N")]
    per_host: Option<u32>,
    /// Requests under way at the same time, at most 4096
    #[arg(long, default_value_t = crawl::Options::default().workers, value_name = "N")]
    workers: usize,
    /// About how many URLs wait in memory: the best of each host; all others wait on disk
    #[arg(long, default_value_t = crawl::Options::default().front_max, value_name = "N")]
    front: usize,
    /// How the crawler identifies itself; include an address at which its operator can be reached
    #[arg(long, default_value_t = crawl::Options::default().fetch.user_agent, value_name = "TEXT")]
    user_agent: String,
    /// Connect to ADDR:PORT instead of HOST:PORT, as in curl; empty parts (or *) match anything; may be repeated
    #[arg(long, value_name = "HOST:PORT:ADDR:PORT")]
    connect_to: Vec<ConnectTo>,
    /// Also fetch from addresses that are not public (loopback, private networks)
    #[arg(long)]
    allow_private: bool,
    /// Also trust the authorities whose certificates are in this file (PEM), for example your own
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// Longest body; longer bodies are cut and marked as truncated
    #[arg(long, default_value_t = Limits::default().body_bytes >> 20, value_name = "MIB")]
    max_body: u64,
    /// Longest wait for a connection, for the head of an answer, and for more of its body
    #[arg(long, default_value = "30s", value_name = "TIME", value_parser = duration)]
    timeout: Duration,
    /// Longest time for one answer; the rest is cut off and the capture marked as truncated
    #[arg(long, default_value = "10m", value_name = "TIME", value_parser = duration)]
    max_time: Duration,
    /// Obey `noarchive` (in meta name=robots or X-Robots-Tag): record only a note, no copy of the page
    #[arg(long)]
    obey_noarchive: bool,
    /// Pause while less than this is free on the disk of the archive; 0: a full disk ends the crawl
    #[arg(long, default_value_t = crawl::Options::default().disk_min >> 20, value_name = "MIB")]
    disk_min: u64,
    /// Serve the state of the crawl at this address: JSON at /status, Prometheus metrics at /metrics. Clients must ask by address
    /// or as localhost
    #[arg(long, value_name = "ADDR:PORT")]
    status: Option<SocketAddr>,
    /// Write a log to this file, one JSON object per line; $ARCHIVE_LOG filters it, for example 'info,capture=off'
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Memory for bodies, caches and the full-text index (200MB, 4GiB); longer bodies go through files
    #[arg(long, default_value = "1GiB", value_name = "SIZE", value_parser = memory)]
    memory: Memory,
    /// Repack closed segments while processors have time to spare, as `archive repack` does; takes a third of --memory, and disk
    /// space for new segments beside the old ones
    #[arg(long)]
    repack_while_idle: bool,
    /// Say that processors have time to spare, or none, whatever they do; for simulations
    #[arg(long, value_name = "BOOL", hide = true)]
    spare_time: Option<bool>,
    /// Do not index text for searching
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

/// Which versions are searched.
#[derive(clap::Args)]
pub(crate) struct VersionsArgs {
    /// From now on also index older versions of pages, to search as of a time (`archive search --as-of`); =false: only the newest
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) index_versions: Option<bool>,
}

impl VersionsArgs {
    /// Notes the choice with an archive, whose owner the caller is.
    pub(crate) fn apply(&self, archive: &Path) -> Result<(), search::Error> {
        self.index_versions.map_or(Ok(()), |keep| search::keep_versions(archive, keep))
    }
}

/// Where reports may go.
#[derive(clap::Args)]
pub(crate) struct OutputsArgs {
    /// Let watches write their files (`archive watch --output`) below this folder; may be repeated. Without it, reports that have
    /// a file are printed instead
    #[arg(long, value_name = "DIR")]
    pub(crate) outputs: Vec<PathBuf>,
}

/// What time it is.
#[derive(clap::Args)]
pub(crate) struct ClockArgs {
    /// Set the clock: the run begins at this time (with a zone, as in 2026-01-31T10:00:00Z); for simulations
    #[arg(long, value_name = "TIME", hide = true)]
    clock: Option<DateTime<Utc>>,
}

impl ClockArgs {
    /// The clock, set if it is to be.
    pub(crate) fn clock(&self) -> Clock {
        self.clock.map_or_else(Clock::default, Clock::set_to)
    }
}

impl FetchArgs {
    /// Begins the log, if there is to be one.
    pub(crate) fn start_log(&self, archive: &Path) -> anyhow::Result<()> {
        self.log.as_deref().map_or(Ok(()), |log| logging::start(log, archive))
    }

    /// What was typed, checked and turned into what it means.
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

    /// How memory is divided when segments are repacked beside.
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

/// The certificates of a PEM file.
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

/// The product token of a user agent, which robots.txt addresses (RFC 9309 section 2.2.1).
fn robots_name(user_agent: &str) -> String {
    let compatible = user_agent.split_once("(compatible;").map(|(_, rest)| rest.trim_start());
    let product = compatible.unwrap_or(user_agent);
    product.chars().take_while(|c| c.is_ascii_alphabetic() || matches!(c, '-' | '_')).collect()
}

/// For clap: a span of time.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    read_duration(text)
}

/// Reads an amount of memory for a query.
pub(crate) fn query_memory(text: &str) -> Result<usize, String> {
    let bytes = parse_bytes(text)?;
    if bytes < MEMORY_MIN {
        Err(format!("it has to be at least {}MB", MEMORY_MIN / 1_000_000))
    } else {
        Ok(bytes)
    }
}

/// Reads an amount of memory (200MB, 4GiB).
pub(crate) fn memory(text: &str) -> Result<Memory, String> {
    let bytes = parse_bytes(text)?;
    if bytes < Memory::BYTES_MIN {
        return Err(format!("it has to be at least {}MiB", Memory::BYTES_MIN >> 20));
    }
    Ok(Memory::new(bytes))
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
