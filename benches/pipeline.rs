//! Processor time per page: every part of a crawl alone, and all of them together in a crawl, on the same pages.
//!
//!     cargo bench --bench pipeline                  the test web, served by another process
//!     cargo bench --bench pipeline -- seeds.txt     servers of your own, a URL a line, without any delay
//!
//! The web is crawled once without and once with the full-text index. Then each part works alone, on one thread, on the
//! captures of the crawl; this is its limit. The time of each part in the crawl is printed next to it: there, the parts
//! share caches and processors and hand pages to each other. All figures are processor time in microseconds per
//! capture.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use archive_base::control::Control;
use archive_books::ledger::{CrawlerFacts, Credits, FetchOutcome, ScopeKind};
use archive_books::recorder::{self, Memory};
use archive_books::search::{self, IndexedVersion};
use archive_crawl::{CrawlOptions, Politeness, Purpose, Seed, Timings};
use archive_storage::segment::{CaptureBody, CaptureGroup, SegmentOptions};
use archive_storage::warc::{HttpHead, split};
use archive_storage::{CaptureId, CaptureKind, Digest, Store, UrlId};
use archive_testweb::{Config, Server, Web};
use archive_web::fetch::{
    self, BodyMemory, Endpoint, FetchRequest, FetchTask, Fetcher, Job, JobResult, Place,
};
use archive_web::parse::{FetchedDocument, ParseLimits, ParsedDocument, parse};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use crossbeam::channel::bounded;
use url::Url;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Number of hosts and pages of the test web.
const TEST_WEB: (u32, u64) = (50, 10_000);

/// Largest number of captures on which the parts are measured; they are all in memory.
const CAPTURES_MAX: u64 = 20_000;

/// Number of requests in flight, both in a crawl and when fetching alone.
const WORKERS: usize = 256;

/// Number of requests in flight per host.
const PER_HOST: u32 = 32;

type Outcomes<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcomes<()> {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--bench")).collect();
    match arguments.first().map(String::as_str) {
        Some("--serve") => serve(),
        Some(file) => measure(&fs::read_to_string(file)?, None),
        None => {
            let mut served = Served::start()?;
            let measured = measure(&served.seeds, Some(served.address));
            served.process.kill()?;
            served.process.wait()?;
            measured
        }
    }
}

/// Serves the test web until killed, in a process of its own so that its processor time is not counted.
fn serve() -> Outcomes<()> {
    let (hosts, pages) = TEST_WEB;
    let server =
        Server::start(Arc::new(Web::new(Config::sized(1, hosts, pages))?), ([127, 0, 0, 1], 0).into())?;
    println!("{}\n{}", server.address(), server.web().seeds(hosts).join(" "));
    loop {
        thread::park();
    }
}

/// The test web in a process of its own.
struct Served {
    process: Child,
    address: SocketAddr,
    seeds: String,
}

impl Served {
    fn start() -> Outcomes<Self> {
        let mut process =
            Command::new(std::env::current_exe()?).arg("--serve").stdout(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(process.stdout.take().ok_or("no output")?).lines();
        let mut line = || lines.next().transpose()?.ok_or_else(|| Box::<dyn Error>::from("no test web"));
        let (address, seeds) = (line()?.parse()?, line()?.replace(' ', "\n"));
        Ok(Self { process, address, seeds })
    }
}

fn measure(seeds: &str, connect: Option<SocketAddr>) -> Outcomes<()> {
    let seeds = archive_crawl::read_seeds(seeds).map_err(|errors| format!("seeds: {errors:?}"))?;
    let folder = tempfile::tempdir()?;
    let (plain, indexed, alone) =
        (folder.path().join("plain"), folder.path().join("indexed"), folder.path().join("alone"));
    let mut options = options(connect);
    let whole = crawled(&plain, &seeds, &options)?;
    options.full_text = true;
    let with_index = crawled(&indexed, &seeds, &options)?;
    let captures = captures(&plain)?;
    println!(
        "{} captures crawled; the parts alone on {} of them, {:.1} MB\n",
        whole.captures,
        captures.len(),
        captures.iter().map(|capture| capture.http.len()).sum::<usize>() as f64 / 1e6
    );
    let mut table = Table { whole: &whole, count: captures.len(), alone: 0.0 };
    println!("{:44} {:>10} {:>10}", "\u{b5}s of processor a capture", "alone", "in a crawl");
    table.row("fetch (sockets, request, response)", &["fetch"], fetch_alone(&captures, &options, connect)?);
    table.row("digest", &["digest"], digest_alone(&captures));
    let (parse_time, parsed) = parse_alone(&captures);
    table.row("parse (links, text, signature)", &["parse"], parse_time);
    let stored = store_alone(&captures, &parsed, &seeds, &alone)?;
    table.row("links as fields of the record", &["metadata"], stored.links);
    table.row("compress (records, block digests)", &["records"], stored.compress);
    table.row("append", &["append"], stored.append);
    table.row("ledger (URLs, history, links, cash)", &["ledger", "importance (cash", "queue"], stored.ledger);
    table.rest(&["pick", "checkpoint", "importance (settling", "full-text index and other"]);
    table.sum("whole crawl", whole.total);
    let index_folder = folder.path().join("index");
    let bare = bare_index_alone(&captures, &parsed, &folder.path().join("bare"))?;
    let index = index_alone(&captures, parsed, &index_folder)?;
    println!(
        "index alone: {:.1} \u{b5}s a capture, {:.1} MB; bare tantivy, the same texts in as many fields: {:.1} \u{b5}s, {:.1} MB\n",
        micros(index, captures.len()),
        megabytes(&index_folder)?,
        micros(bare, captures.len()),
        megabytes(&folder.path().join("bare"))?
    );
    let in_crawl = with_index.total.saturating_sub(whole.total);
    println!(
        "{:44} {:10.1} {:10.1}",
        "full-text index",
        micros(index, captures.len()),
        micros(in_crawl, usize::try_from(whole.captures)?)
    );
    table.alone += micros(index, captures.len());
    table.sum("whole crawl with the index", with_index.total);
    Ok(())
}

/// The printed table of parts.
struct Table<'a> {
    whole: &'a Timings,
    count: usize,
    /// Microseconds per capture of all parts so far.
    alone: f64,
}

impl Table<'_> {
    /// Returns the microseconds per capture of the crawl stages whose names start with one of `stages`.
    fn in_crawl(&self, stages: &[&str]) -> f64 {
        let stages = |name: &str| stages.iter().any(|stage| name.starts_with(stage));
        let times = self.whole.stages.iter().filter(|(name, _)| stages(name));
        times.map(|(_, time)| self.whole.a_capture(*time)).sum()
    }

    fn row(&mut self, name: &str, stages: &[&str], alone: Duration) {
        let alone = micros(alone, self.count);
        self.alone += alone;
        println!("{name:44} {alone:10.1} {:10.1}", self.in_crawl(stages));
    }

    fn rest(&self, stages: &[&str]) {
        println!(
            "{:44} {:>10} {:10.1}",
            "choosing, checkpoints, dictionaries, settling",
            "",
            self.in_crawl(stages)
        );
    }

    fn sum(&self, name: &str, whole: Duration) {
        let whole = self.whole.a_capture(whole);
        println!("{name:44} {:10.1} {whole:10.1}   {:.2} of the limit\n", self.alone, self.alone / whole);
    }
}

fn micros(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e6 / count.max(1) as f64
}

/// Returns the processor time of a thread of this process; the first number of `schedstat` is in nanoseconds.
fn processor_time_of(task: &Path) -> Duration {
    let text = fs::read_to_string(task.join("schedstat")).unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0))
}

/// Runs `work` and returns the processor time of this thread with the result.
fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let own = Path::new("/proc/thread-self");
    let before = processor_time_of(own);
    let done = work();
    (processor_time_of(own).saturating_sub(before), done)
}

/// Returns the processor time of this process, including ended threads: fields 14 and 15 of `stat` (proc(5)), in
/// hundredths of a second.
fn processor_time() -> Duration {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

fn options(connect: Option<SocketAddr>) -> CrawlOptions {
    CrawlOptions {
        workers: WORKERS,
        politeness: Politeness::at_once(PER_HOST, WORKERS as u32),
        fetch: fetch::FetchSettings {
            user_agent: "archive-bench".to_owned(),
            connect_to: connect.iter().filter_map(|address| format!("*:*:{address}").parse().ok()).collect(),
            allow_private: true,
            ..fetch::FetchSettings::default()
        },
        full_text: false,
        disk_min: 0,
        ..CrawlOptions::default()
    }
}

/// Compresses as `archive crawl` does.
fn segment_options() -> SegmentOptions {
    SegmentOptions { trained_level: archive_crawl::TRAINED_LEVEL, ..SegmentOptions::default() }
}

fn crawled(path: &Path, seeds: &[Seed], options: &CrawlOptions) -> Outcomes<Timings> {
    let mut store = recorder::open(path, segment_options())?.store;
    let scope = archive_crawl::scope_of(seeds, &ScopeKind::Site, 255);
    let plan = Purpose::Discover { seeds: seeds.to_vec(), scope };
    let (_, status) = archive_crawl::run(&mut store, plan, options, &Control::default(), &mut |_| ())?;
    store.close()?;
    Ok(status.timings)
}

/// A capture of the crawl as it came from the fetcher.
struct Captured {
    url: Url,
    time: DateTime<Utc>,
    status: u16,
    http: Bytes,
    facts: CrawlerFacts,
}

/// Returns the captures of an archive that have a payload, in order.
fn captures(path: &Path) -> Outcomes<Vec<Captured>> {
    let store = Store::read_only(path)?;
    let mut captures = Vec::new();
    let count = store.state().totals().captures;
    for number in (0..count).step_by(usize::try_from(count.div_ceil(CAPTURES_MAX))?) {
        let capture = store.state().capture(CaptureId(u32::try_from(number)?))?;
        let facts = CrawlerFacts::from_fields(&store.metadata(&capture)?);
        if capture.kind != CaptureKind::Response || facts.robots {
            continue;
        }
        captures.push(Captured {
            url: Url::parse(&store.state().url(capture.url)?)?,
            time: DateTime::from_timestamp_micros(capture.time).unwrap_or_default(),
            status: capture.status,
            http: store.record(capture.location)?.content,
            facts,
        });
    }
    Ok(captures)
}

/// Measures the fetching thread alone, which requests the same URLs again.
fn fetch_alone(
    captures: &[Captured],
    options: &CrawlOptions,
    connect: Option<SocketAddr>,
) -> Outcomes<Duration> {
    let (sender, answers) = bounded(WORKERS + 1);
    let memory = BodyMemory::new(1 << 30, PathBuf::from("."));
    let fetcher = Fetcher::start(options.fetch.clone(), memory, sender)?;
    let mut under_way = 0;
    for capture in captures {
        let address = match connect {
            Some(address) => address,
            None => *capture.url.socket_addrs(|| None)?.first().ok_or("a URL without an address")?,
        };
        let host = Arc::from(capture.url.host_str().unwrap_or_default());
        let endpoint =
            Endpoint { secure: false, host, port: address.port(), place: Place::Address(address.ip()) };
        let request = FetchRequest::new(capture.url.clone());
        fetcher.submit(Job { task: FetchTask::Fetch { endpoint, request: Box::new(request) }, tag: () })?;
        under_way += 1;
        if under_way >= PER_HOST as usize {
            let ((), answer) = answers.recv()?;
            under_way -= 1;
            if let JobResult::Fetched(Err(error)) = answer {
                return Err(error.into());
            }
        }
    }
    for _ in 0..under_way {
        answers.recv()?;
    }
    let tasks = fs::read_dir("/proc/self/task")?.flatten().map(|task| task.path());
    let is_fetching =
        |task: &PathBuf| fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "fetch");
    Ok(tasks.filter(is_fetching).map(|task| processor_time_of(&task)).max().unwrap_or_default())
}

fn digest_alone(captures: &[Captured]) -> Duration {
    timed(|| {
        for capture in captures {
            std::hint::black_box(Digest::sha256(&split(&capture.http).1));
        }
    })
    .0
}

fn parse_alone(captures: &[Captured]) -> (Duration, Vec<ParsedDocument>) {
    let limits = ParseLimits::default();
    timed(|| {
        let parsed = captures.iter().map(|capture| {
            let (head, body) = split(&capture.http);
            let head = HttpHead::parse(&head);
            let headers: Vec<(&str, &[u8])> =
                head.fields.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
            let (url, status) = (&capture.url, capture.status);
            parse(
                &FetchedDocument { url, status, content_type: None, headers: &headers, body: &body },
                &limits,
            )
        });
        parsed.collect()
    })
}

/// Processor time of the parts from links to the store.
#[derive(Default)]
struct Stored {
    links: Duration,
    compress: Duration,
    append: Duration,
    ledger: Duration,
}

/// Stores and credits captures in a separate archive. Another thread trains the dictionaries, as in a crawl.
fn store_alone(
    captures: &[Captured],
    parsed: &[ParsedDocument],
    seeds: &[Seed],
    path: &Path,
) -> Outcomes<Stored> {
    let mut store = recorder::open(path, segment_options())?.store;
    let encoder = store.encoder()?;
    let mut credits = Credits::open(store.state())?;
    credits.set_scope(store.state_mut(), archive_crawl::scope_of(seeds, &ScopeKind::Site, 255))?;
    let urls: Vec<String> = seeds.iter().map(|seed| seed.url.to_string()).collect();
    credits.add_seeds(store.state_mut(), &urls)?;
    let (mut times, mut candidates) = (Stored::default(), Vec::new());
    for (capture, parsed) in captures.iter().zip(parsed) {
        let outcome = outcome(capture, parsed);
        let (time, metadata) = timed(|| outcome.facts.to_fields());
        times.links += time;
        let group = CaptureGroup {
            url: outcome.url.clone(),
            time: outcome.time,
            address: Some([127, 0, 0, 1].into()),
            request: Some(Bytes::from(format!(
                "GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n",
                capture.url.path()
            ))),
            body: CaptureBody::Response { http: capture.http.clone(), truncated: None },
            payload_digest: Some(Digest::sha256(&split(&capture.http).1)),
            protocols: vec!["http/1.1".to_owned()],
            metadata,
        };
        let (time, encoded) = timed(|| encoder.encode(group));
        times.compress += time;
        let encoded = encoded?;
        let (time, location) = timed(|| store.append(&encoded));
        times.append += time;
        let location = location?;
        let credit = || credits.credit(store.state_mut(), &outcome, location, &mut candidates);
        let (time, credited) = timed(credit);
        credited?;
        times.ledger += time;
        candidates.clear();
    }
    store.close()?;
    Ok(times)
}

/// Builds the crawler's outcome of a capture.
fn outcome(capture: &Captured, parsed: &ParsedDocument) -> FetchOutcome {
    let (head, body) = split(&capture.http);
    FetchOutcome {
        url: capture.url.to_string(),
        time: capture.time,
        kind: CaptureKind::Response,
        status: capture.status,
        media_type: HttpHead::parse(&head).media_type().unwrap_or_default(),
        payload_bytes: body.len() as u64,
        digest: Digest::sha256(&body).prefix(),
        original: None,
        validators: None,
        facts: CrawlerFacts { links: parsed.links.clone(), ..capture.facts.clone() },
    }
}

/// Returns the captures that the index accepts.
fn searched<'a, P>(
    captures: &'a [Captured],
    parsed: impl IntoIterator<Item = P> + 'a,
) -> impl Iterator<Item = (usize, &'a Captured, P)> + 'a
where
    P: std::borrow::Borrow<ParsedDocument> + 'a,
{
    let all = captures.iter().zip(parsed).enumerate();
    all.map(|(number, (capture, parsed))| (number, capture, parsed))
        .filter(|(_, capture, parsed)| capture.status == 200 && !parsed.borrow().text.is_empty())
}

/// Measures the search engine alone with its own tokenizer: the same texts as in [`index_alone`], in the same number of
/// fields.
fn bare_index_alone(captures: &[Captured], parsed: &[ParsedDocument], folder: &Path) -> Outcomes<Duration> {
    use tantivy::doc;
    use tantivy::schema::{FAST, INDEXED, Schema, TEXT};
    let before = processor_time();
    fs::create_dir(folder)?;
    let mut schema = Schema::builder();
    let page = schema.add_u64_field("page", FAST | INDEXED);
    let [url, title, body, labels] =
        ["url", "title", "body", "labels"].map(|name| schema.add_text_field(name, TEXT));
    let index = tantivy::Index::create_in_dir(folder, schema.build())?;
    let mut writer = index.writer_with_num_threads(1, Memory::default().index().memory_bytes)?;
    for (number, capture, parsed) in searched(captures, parsed) {
        writer.add_document(doc!(
            page => number as u64,
            url => capture.url.to_string(),
            title => parsed.title.as_str(),
            body => parsed.text.as_str(),
            labels => parsed.title.as_str(),
        ))?;
    }
    writer.commit()?;
    writer.wait_merging_threads()?;
    Ok(processor_time().saturating_sub(before))
}

/// Returns the total size of the files in a folder, in megabytes.
fn megabytes(folder: &Path) -> Outcomes<f64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes as f64 / 1e6)
}

/// Measures the full-text index alone: all its threads, including the commit.
fn index_alone(captures: &[Captured], parsed: Vec<ParsedDocument>, folder: &Path) -> Outcomes<Duration> {
    let before = processor_time();
    let mut writer = search::IndexWriterOwner::open(folder, Memory::default().index())?;
    for (number, capture, parsed) in searched(captures, parsed) {
        writer.add(&IndexedVersion {
            page: UrlId(u32::try_from(number)?),
            replaces: false,
            version: None,
            url: capture.url.to_string(),
            title: parsed.title,
            text: parsed.text,
            headings: String::new(),
            said: archive_web::parse::SaidTexts::default(),
            elements: String::new(),
            structure: None,
            links: Vec::new(),
        })?;
    }
    writer.commit(captures.len() as u64)?;
    writer.close()?;
    Ok(processor_time().saturating_sub(before))
}
