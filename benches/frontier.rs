//! The frontier at scale: memory, disk, picks per second, and how long a restart takes to refill it.
//!
//! `cargo bench --bench frontier -- --urls 100000000 --hosts 1000000 --front 1000000` prints one JSON object per line.
//! The number of URLs per host follows a power law, as on the web. Time is simulated, so politeness is kept without
//! waiting.
//!
//! A restart reads the state of every page and pushes the pages that wait. Its first part, `State::pages`, is measured
//! by `storage/benches/scale`; here a file of the same size is read while URLs are pushed.

use std::env;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Write};
use std::time::{Duration, Instant};

use archive_crawl::{Frontier, Pick, Politeness};
use archive_storage::{HostId, UrlId};
use archive_web::fetch::Place;
use serde_json::json;

/// Bytes of a page's state on disk.
const PAGE_BYTES: usize = 24;

/// Number of requests in flight.
const WORKERS: usize = 1000;

/// Number of links of a fetched page, each of which raises the priority of a waiting URL.
const LINKS: u64 = 10;

/// Number of hosts per address.
const HOSTS_PER_ADDRESS: u32 = 4;

fn main() {
    let urls = argument("--urls").unwrap_or(10_000_000);
    let hosts = argument("--hosts").unwrap_or(urls / 100);
    let front = argument("--front").unwrap_or(1_000_000);
    let picks = argument("--picks").unwrap_or(2_000_000);
    let folder = tempfile::tempdir_in(".").expect("the folder can be written");
    let pages = folder.path().join("pages");
    write_pages(&pages, urls, hosts);

    let (mut frontier, start, seconds) = fill(&pages, front as usize);
    report("begin", &frontier, seconds, urls);
    let (elapsed, simulated) = pick(&mut frontier, start, picks, urls);
    let rate = picks as f64 / elapsed;
    println!(
        "{}",
        json!({ "step": "picks", "picks": picks, "seconds": elapsed, "picks_per_second": rate,
            "simulated_seconds": simulated, "microseconds_a_pick": 1e6 / rate, "links_a_pick": LINKS })
    );
    report("after picks", &frontier, elapsed, urls);
    drop(frontier);
    let (frontier, _, seconds) = fill(&pages, front as usize);
    report("restart", &frontier, seconds, urls);
}

fn argument(name: &str) -> Option<u64> {
    let mut arguments = env::args().skip_while(|argument| argument != name).skip(1);
    arguments.next()?.parse().ok()
}

/// Writes a file like the table of page states: host and level of each URL.
fn write_pages(path: &std::path::Path, urls: u64, hosts: u64) {
    let mut file = BufWriter::new(File::create(path).expect("the folder can be written"));
    let mut dice = fastrand::Rng::with_seed(1);
    for _ in 0..urls {
        // The share of hosts above a size falls with the square root of the size.
        let host = (dice.f64().powi(2) * hosts as f64) as u32;
        let level = 60 + (dice.f64().powi(3) * 100.0) as u8;
        let mut page = [level; PAGE_BYTES];
        page[..4].copy_from_slice(&host.to_le_bytes());
        file.write_all(&page).expect("there is room on the disk");
    }
}

fn fill(pages: &std::path::Path, front: usize) -> (Frontier, Instant, f64) {
    let begun = Instant::now();
    let politeness = Politeness {
        host_delay: Duration::from_secs(2),
        address_delay: Duration::from_millis(500),
        answer_factor: 5.0,
        per_host: 1,
        per_address: 1,
    };
    let file = tempfile::tempfile_in(".").expect("the folder can be written");
    let mut frontier = Frontier::on_disk(politeness, front, file);
    let mut reader = BufReader::with_capacity(1 << 20, File::open(pages).expect("it was just written"));
    let mut page = [0; PAGE_BYTES];
    let mut number = 0;
    while reader.read_exact(&mut page).is_ok() {
        let host = HostId(u32::from_le_bytes([page[0], page[1], page[2], page[3]]));
        frontier.push(UrlId(number), host, page[4], begun).expect("no host was given up");
        number += 1;
    }
    assert!(frontier.failure().is_none());
    (frontier, begun, begun.elapsed().as_secs_f64())
}

/// Picks as a crawl does, with answers after 200 ms; returns real and simulated seconds.
fn pick(frontier: &mut Frontier, start: Instant, picks: u64, urls: u64) -> (f64, f64) {
    let begun = Instant::now();
    let mut now = start;
    let mut dice = fastrand::Rng::with_seed(2);
    let mut under_way = std::collections::VecDeque::new();
    let answer = Duration::from_millis(200);
    let mut picked = 0;
    while picked < picks {
        let next = if under_way.len() < WORKERS { frontier.next(now) } else { None };
        match next {
            Some(Pick::Resolve(host)) => {
                let address = (host.0 / HOSTS_PER_ADDRESS).to_be_bytes();
                let left = frontier.resolved(host, Some(Place::Address(address.into())), now);
                assert!(left.is_empty());
            }
            Some(Pick::Robots(host, _)) => under_way.push_back((now + answer, host, true)),
            Some(Pick::Page(host, ..)) => {
                picked += 1;
                under_way.push_back((now + answer, host, false));
                for _ in 0..LINKS {
                    let raised = UrlId(dice.u64(..urls) as u32);
                    // A link raises a page of the current host, or of another one at its address.
                    frontier.push(raised, host, dice.u64(..200) as u8, now).expect("no host was given up");
                }
            }
            None => {
                let Some((time, host, robots)) = under_way.pop_front() else {
                    now = frontier.next_wake().expect("something waits").max(now);
                    continue;
                };
                now = now.max(time);
                frontier.completed(host, now, answer, None);
                if robots {
                    frontier.robots_known(host, now, Duration::from_secs(1 << 20));
                }
            }
        }
    }
    assert!(frontier.failure().is_none());
    (begun.elapsed().as_secs_f64(), (now - start).as_secs_f64())
}

fn report(step: &str, frontier: &Frontier, seconds: f64, urls: u64) {
    let (memory, disk) = (frontier.memory_bytes(), frontier.disk_bytes());
    println!(
        "{}",
        json!({ "step": step, "seconds": seconds, "urls_per_second": urls as f64 / seconds, "queued": frontier.queued(),
            "on_disk": frontier.on_disk_entries(), "memory_bytes": memory, "disk_bytes": disk,
            "memory_bytes_a_url": memory as f64 / urls as f64, "disk_bytes_a_url": disk as f64 / urls as f64,
            "resident_bytes": resident_bytes() })
    );
}

/// Returns the resident memory of this process (Linux, proc(5)).
fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kibibytes| kibibytes * 1024)
}
