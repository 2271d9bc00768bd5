//! What a URL costs: bytes on disk and in memory, insertions, look-ups and credits a second, checkpoints and reopening,
//! for an archive of any size, and the same insertions and look-ups in plain redb beside it.
//!
//! `cargo bench -p archive-storage --bench scale -- 1000000 10000000` runs both sizes one after the other, and says at the
//! end how much slower look-ups became from the first to the last. `--redb` does the same in redb, `--redb-urls N` at most
//! as many URLs there (10^8 take redb the better part of an hour), `--folder PATH` says where (default: a temporary folder). Look-ups are a
//! crawl's: 60 links a page, of which 36 are the site's menu, 16 the page's neighbours, six lead to pages of any host and two
//! are new. Hosts are drawn again for each page, large and early ones more often (the third power of a uniform number), so a
//! page finds next to nothing in the processor's caches from the page before: a polite crawl, which comes back to the same
//! hundreds of hosts every few seconds, finds more. They go the crawler's way: all hashes of a page are announced
//! (`State::expect_urls`), then each URL is looked up. They are measured twice: alone, and between credits, which
//! change pages all over the table and leave little of the index in the caches.
//!
//! Memory is what the system counts as the process's own (`RssAnon`), above what it had when it started and without
//! the generator's table: index, caches, buffers, and what the allocator keeps of them. The system's cache of files
//! is not in it; the system takes that back at need.

mod plain_redb;
mod web;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use archive_storage::address::url_hash;
use archive_storage::backend::RealDisk;
use archive_storage::{
    Capture, CaptureKind, LinkTarget, Location, MimeId, SegmentId, SiteId, State, StateMode, UrlId, Visit,
    Watermarks,
};
use web::{LINKS_PER_PAGE, Web};

/// URLs between two checkpoints while inserting.
const CHECKPOINT_URLS: u64 = 2_000_000;
/// URLs that are made ahead, outside the measured time.
const BATCH_URLS: usize = 6_000;
/// URLs in a transaction of redb.
const TRANSACTION_URLS: usize = 60_000;
/// Credits between two checkpoints: what a crawl of some hundred pages a second gives in half a minute.
const CHECKPOINT_CREDITS: usize = 600_000;
/// Pages whose links are looked up: as many alone, and as many between credits.
const PAGES: usize = 100_000;
const BATCHES: usize = PAGES * LINKS_PER_PAGE / BATCH_URLS;
/// Links of a fetched page.
const FETCHED_LINKS: u32 = 30;
/// Checkpoints with nearly nothing to save.
const SMALL_CHECKPOINTS: u32 = 50;
/// URLs asked for by id or by name.
const QUESTIONS: u32 = 20_000;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

struct Arguments {
    sizes: Vec<u64>,
    /// The most URLs to put into redb.
    redb_urls: u64,
    folder: Option<PathBuf>,
}

fn arguments() -> Outcome<Arguments> {
    let mut parsed = Arguments { sizes: Vec::new(), redb_urls: 0, folder: None };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            // Cargo says so to every bench.
            "--bench" => {}
            "--redb" => parsed.redb_urls = u64::MAX,
            "--redb-urls" => {
                let number = arguments.next().ok_or("--redb-urls needs a number")?;
                parsed.redb_urls = number.parse()?;
            }
            "--folder" => parsed.folder = arguments.next().map(PathBuf::from),
            size => parsed.sizes.push(size.parse()?),
        }
    }
    if parsed.sizes.is_empty() {
        parsed.sizes.push(1_000_000);
    }
    Ok(parsed)
}

fn main() -> Outcome<()> {
    let Arguments { sizes, redb_urls, folder } = arguments()?;
    let mut rates = Vec::new();
    // Before the first size, so that what the allocator keeps of one size is counted with the next, not hidden.
    let before = own_bytes();
    for &size in &sizes {
        let temporary = match &folder {
            Some(folder) => tempfile::tempdir_in(folder)?,
            None => tempfile::tempdir()?,
        };
        println!("{size} URLs");
        rates.push(measure(temporary.path(), size, before)?);
        if redb_urls > 0 {
            plain_redb::measure(temporary.path(), size.min(redb_urls))?;
        }
    }
    if let [first, .., last] = rates.as_slice() {
        let slower = |place: usize| (1.0 - last[place] / first[place]) * 100.0;
        println!(
            "look-ups at the last size are {:.1} % slower than at the first, between credits {:.1} %",
            slower(0),
            slower(1)
        );
    }
    Ok(())
}

/// Measures one size; returns look-ups a second, alone and between credits.
fn measure(folder: &Path, size: u64, before: u64) -> Outcome<[f64; 2]> {
    let mut web = Web::new();
    let mut state = State::open(Arc::new(RealDisk), folder, StateMode::Own)?;
    insert(&mut state, &mut web, size)?;
    report("memory after insertions", memory(before, &web, size));
    report("  of which the state counts", per_url(state.memory_bytes() as u64, size));
    let disk = folder_bytes(&folder.join("state"), size)?;
    report("disk", per_url(disk, size));
    let rates = look_up(&mut state, &mut web)?;
    report("memory after look-ups, credits", memory(before, &web, size));
    ask(&state)?;
    drop(state);
    let (state, time) = timed(|| Ok(State::open(Arc::new(RealDisk), folder, StateMode::Own)?))?;
    report("reopening after a crash", seconds(time));
    report("memory after reopening", memory(before, &web, size));
    let (count, time) = timed(|| Ok(state.pages(UrlId(0)).filter(Result::is_ok).count()))?;
    report("scanning pages", format!("{} ({count})", rate(count as u64, time)));
    drop(state);
    visits(folder, size / 10)?;
    Ok(rates)
}

fn insert(state: &mut State, web: &mut Web, size: u64) -> Outcome<()> {
    let (mut inserting, mut saving) = (Duration::ZERO, Duration::ZERO);
    let mut slowest = Duration::ZERO;
    let (mut bytes, mut since) = (0, 0);
    while u64::from(state.url_count()) < size {
        let batch: Vec<(String, u64)> = web.discover(BATCH_URLS).map(hashed).collect();
        bytes += batch.iter().map(|(url, _)| url.len() as u64).sum::<u64>();
        since += batch.len() as u64;
        let ((), time) = timed(|| {
            for page in batch.chunks(LINKS_PER_PAGE) {
                state.expect_urls(page.iter().map(|(_, hash)| *hash))?;
                for (url, hash) in page {
                    state.intern(url, *hash)?;
                }
            }
            Ok(())
        })?;
        inserting += time;
        if since >= CHECKPOINT_URLS {
            since = 0;
            let (_, time) = timed(|| Ok(state.checkpoint(watermarks())?))?;
            saving += time;
            slowest = slowest.max(time);
        }
    }
    let (_, time) = timed(|| Ok(state.checkpoint(watermarks())?))?;
    saving += time;
    let count = u64::from(state.url_count());
    report("length of a URL", format!("{:.1} bytes", bytes as f64 / count as f64));
    report("insertions", rate(count, inserting));
    report("insertions with checkpoints", rate(count, inserting + saving));
    report("slowest checkpoint", seconds(slowest.max(time)));
    Ok(())
}

/// The links of many pages, looked up: first alone, then each batch before the credits for its pages. Returns look-ups a
/// second of both.
fn look_up(state: &mut State, web: &mut Web) -> Outcome<[f64; 2]> {
    let mut alone = Tally::default();
    for _ in 0..BATCHES {
        alone.look_up(state, web)?;
    }
    report("look-ups of a crawl", alone.text());
    let mut between = Tally::default();
    let (mut crediting, mut saving, mut dirty) = (Duration::ZERO, Duration::ZERO, 0);
    for batch in 1..=BATCHES {
        let ids = between.look_up(state, web)?;
        let ((), time) = timed(|| {
            for id in ids {
                state.update_page(id, |page| page.cash += 1)?;
            }
            Ok(())
        })?;
        crediting += time;
        if (batch * BATCH_URLS).is_multiple_of(CHECKPOINT_CREDITS) {
            dirty = dirty.max(state.dirty_bytes());
            saving += timed(|| Ok(state.checkpoint(watermarks())?))?.1;
        }
    }
    report("look-ups between credits", between.text());
    report("credits", rate(between.count, crediting));
    report("credits with checkpoints", rate(between.count, crediting + saving));
    report("  changed at once, at most", format!("{} MB", dirty / 1_000_000));
    Ok([alone.rate(), between.rate()])
}

/// Look-ups and the time that they took.
#[derive(Default)]
struct Tally {
    count: u64,
    new: u64,
    time: Duration,
}

impl Tally {
    /// Looks up the links of a batch of pages.
    fn look_up(&mut self, state: &mut State, web: &mut Web) -> Outcome<Vec<UrlId>> {
        let urls: Vec<(String, u64)> =
            web.pages(BATCH_URLS / LINKS_PER_PAGE).into_iter().map(hashed).collect();
        let mut ids = Vec::with_capacity(urls.len());
        let ((), time) = timed(|| {
            for page in urls.chunks(LINKS_PER_PAGE) {
                state.expect_urls(page.iter().map(|(_, hash)| *hash))?;
                for (url, hash) in page {
                    let (id, is_new) = state.intern(url, *hash)?;
                    self.new += u64::from(is_new);
                    ids.push(id);
                }
            }
            Ok(())
        })?;
        self.time += time;
        self.count += urls.len() as u64;
        Ok(ids)
    }

    fn rate(&self) -> f64 {
        self.count as f64 / self.time.as_secs_f64()
    }

    fn text(&self) -> String {
        let new = self.new as f64 * 100.0 / self.count as f64;
        format!("{} ({new:.1} % new)", rate(self.count, self.time))
    }
}

fn ask(state: &State) -> Outcome<()> {
    let count = state.url_count();
    let ids: Vec<UrlId> =
        (0..QUESTIONS).map(|number| UrlId(number.wrapping_mul(0x9e37_79b1) % count)).collect();
    let (urls, time) = timed(|| Ok(ids.iter().map(|&id| state.url(id)).collect::<Result<Vec<_>, _>>()?))?;
    report("URL of a random id", rate(u64::from(QUESTIONS), time));
    let (found, time) =
        timed(|| Ok(urls.iter().filter(|url| matches!(state.find(url), Ok(Some(_)))).count()))?;
    report("id of a random URL, compared", rate(found as u64, time));
    let (cash, time) = timed(|| {
        Ok(ids.iter().map(|&id| state.page(id).map(|page| page.cash)).collect::<Result<Vec<_>, _>>()?)
    })?;
    report("page of a random id", rate(cash.len() as u64, time));
    Ok(())
}

/// Fetches: captures, visits, titles and links of some pages; what they cost and how fast they are read.
fn visits(folder: &Path, count: u64) -> Outcome<()> {
    let mut state = State::open(Arc::new(RealDisk), folder, StateMode::Own)?;
    let (site, _) = state.intern_site("example.org")?;
    state.intern_host("www.example.org", SiteId(site.0))?;
    let before = folder_bytes_quietly(&folder.join("state"))?;
    let mut storing = Duration::ZERO;
    for first in (0..count as u32).step_by(100_000) {
        let ((), time) = timed(|| {
            for number in first..(first + 100_000).min(count as u32) {
                fetch(&mut state, number)?;
            }
            state.checkpoint(watermarks())?;
            Ok(())
        })?;
        storing += time;
    }
    report("fetches with checkpoints", rate(count, storing));
    let bytes = folder_bytes_quietly(&folder.join("state"))? - before;
    report("disk a fetched page", format!("{:.1} bytes", bytes as f64 / count as f64));
    let (seen, time) = timed(|| Ok(state.visits(0).filter(Result::is_ok).count()))?;
    report("scanning visits", rate(seen as u64, time));
    let mut links = 0;
    let ((), time) = timed(|| {
        state.newest_links(|_, list| {
            links += list.len() as u64;
            Ok::<_, archive_storage::StateError>(())
        })?;
        Ok(())
    })?;
    report("scanning links", rate(links, time));
    let ((), time) = timed(|| {
        for number in 0..SMALL_CHECKPOINTS {
            state.update_page(UrlId(number), |page| page.cash += 1)?;
            state.checkpoint(watermarks())?;
        }
        Ok(())
    })?;
    report(
        "checkpoint of one credit",
        format!("{:.1} ms", time.as_secs_f64() * 1e3 / f64::from(SMALL_CHECKPOINTS)),
    );
    for log in ["links.zst", "titles.zst"] {
        let length = folder.join("state").join(log).metadata()?.len();
        report(&format!("  {log}"), format!("{:.2} bytes a fetched page", length as f64 / count as f64));
    }
    Ok(())
}

/// What the ledger does for one page of ten captured.
fn fetch(state: &mut State, number: u32) -> Outcome<()> {
    let url = UrlId(number * 10);
    let mut digest = [0; 16];
    digest[..8].copy_from_slice(&url_hash(&number.to_string()).to_le_bytes());
    let location = Location { segment: SegmentId(0), offset: u64::from(number) * 4000, length: 4000 };
    let capture = Capture {
        url,
        time: i64::from(number),
        location,
        digest,
        status: 200,
        mime: MimeId(0),
        kind: CaptureKind::Response,
        length: 20_000,
        flags: 0,
        original: None,
    };
    state.append_capture(&capture, None)?;
    let title = state.append_title(&format!("Page {number} of a site with a name"))?;
    let visit = Visit { first_seen: number, last_seen: number, title: Some(title), ..Visit::default() };
    state.set_visit(url, &visit)?;
    let links: Vec<LinkTarget> =
        (0..FETCHED_LINKS).map(|link| LinkTarget { target: target(url, link), kind: 1 }).collect();
    state.append_links(url, &links)?;
    Ok(())
}

/// Where a link leads: two thirds to the menu of the site, which has a thousand pages, the rest to some neighbours.
fn target(source: UrlId, link: u32) -> UrlId {
    let site = source.0 / 1000 * 1000;
    if link < FETCHED_LINKS * 2 / 3 {
        return UrlId(site + link);
    }
    let neighbour = web::mix(u64::from(source.0) << 8 | u64::from(link)) % 400;
    UrlId((source.0 + 200).saturating_sub(neighbour as u32).max(site))
}

fn hashed(url: String) -> (String, u64) {
    let hash = url_hash(&url);
    (url, hash)
}

fn watermarks() -> Watermarks {
    Watermarks::default()
}

pub(crate) fn timed<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<(T, Duration)> {
    let start = Instant::now();
    let outcome = work()?;
    Ok((outcome, start.elapsed()))
}

pub(crate) fn report(what: &str, figure: impl std::fmt::Display) {
    println!("  {what:<32} {figure}");
}

pub(crate) fn rate(count: u64, time: Duration) -> String {
    format!("{:.3} M/s", count as f64 / time.as_secs_f64() / 1e6)
}

pub(crate) fn per_url(bytes: u64, urls: u64) -> String {
    format!("{:.2} bytes a URL", bytes as f64 / urls as f64)
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

/// Bytes of all files, listed one by one.
fn folder_bytes(folder: &Path, urls: u64) -> Outcome<u64> {
    let mut total = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let length = entry.metadata()?.len();
        if length > urls / 10 {
            report(&format!("  {}", entry.file_name().to_string_lossy()), per_url(length, urls));
        }
        // The journal is as long as the largest checkpoint, and is written over by the next.
        total += length;
    }
    Ok(total)
}

fn folder_bytes_quietly(folder: &Path) -> Outcome<u64> {
    let lengths = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.metadata()?.len()));
    lengths.sum::<Result<u64, std::io::Error>>().map_err(Into::into)
}

/// Bytes a URL of the process's own memory, see the module.
fn memory(before: u64, web: &Web, size: u64) -> String {
    per_url(own_bytes().saturating_sub(before).saturating_sub(web.memory_bytes()), size)
}

/// The memory that the system counts as this process's own; 0 if there is no `/proc`.
fn own_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}
