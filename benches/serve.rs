//! Latency of the server for pages, TimeMaps and CDX answers, requested over many connections at once.
//!
//!     cargo bench --bench serve                                       a page with 10 000 captures, made for it
//!     cargo bench --bench serve -- --archive DIR '/search?q=library'  an archive of yours, and what you like
//!     cargo bench --bench serve -- --at 127.0.0.1:8070 '/site?name=example.org'
//!
//! The last form measures a running server, so that two programs can be compared. Each address is requested on its own,
//! over `--connections` at once for `--seconds` after one unmeasured request; with `--together`, all addresses are
//! requested in turn. The output is one JSON object per measurement: number of answers, and median, 99th percentile and
//! maximum in milliseconds. The client shares the processors with the server.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use archive::serve;
use archive_base::control::Control;
use archive_books::prepared;
use archive_books::recorder::{self, Memory};
use archive_storage::segment::SegmentOptions;
use archive_vault::import;
use serde_json::json;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Number of captures of the generated page.
const CAPTURES: usize = 10_000;
const PAGE: &str = "http://www.many.test/";

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| words.iter().skip_while(|word| *word != name).nth(1);
    let number = |name: &str, usual: u64| value(name).map_or(Ok(usual), |text| text.parse());
    let (connections, seconds) = (number("--connections", 64)?, number("--seconds", 5)?);
    let mut asked: Vec<&str> =
        words.iter().map(String::as_str).filter(|word| word.starts_with('/')).collect();
    asked.retain(|word| Some(*word) != value("--archive").map(String::as_str));
    let usual = [
        format!("/page?url={PAGE}"),
        format!("/page?url={PAGE}&from=9500"),
        format!("/timemap/link/{PAGE}"),
        format!("/timemap/json/{PAGE}"),
        format!("/cdx?url={PAGE}"),
        format!("/cdx?url={PAGE}*&limit=10000"),
        format!("/web/2015/{PAGE}"),
        "/search?q=library".to_owned(),
    ];
    if asked.is_empty() {
        asked = usual.iter().map(String::as_str).collect();
    }
    let groups: Vec<&[&str]> =
        if words.iter().any(|word| word == "--together") { vec![&asked] } else { asked.chunks(1).collect() };
    let ask = |application: SocketAddr, replay: SocketAddr| -> Outcome<()> {
        for group in &groups {
            let requests = group.iter().map(|path| request(path, application, replay)).collect();
            measure(requests, connections, Duration::from_secs(seconds))?;
        }
        Ok(())
    };
    if let Some(at) = value("--at") {
        let application: SocketAddr = at.parse()?;
        return ask(application, SocketAddr::new(application.ip(), application.port() + 1));
    }
    let temporary = tempfile::tempdir()?;
    let folder = match value("--archive") {
        Some(folder) => PathBuf::from(folder),
        None => made(temporary.path())?,
    };
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = serve::Server::bind(&serve::ServeOptions {
        archives: vec![folder],
        listen: any,
        replay_listen: any,
        public: Vec::new(),
        review: None,
        pings: None,
        timegates: Vec::new(),
        people: None,
        user_header: None,
        together: None,
    })?;
    let addresses = server.addresses().next().map(|(_, addresses)| addresses);
    let [application, replay] = addresses.ok_or("there is no archive")?;
    let control = Control::default();
    thread::scope(|scope| {
        let serving = scope.spawn(|| server.run(&control));
        let outcome = ask(application, replay);
        control.stop();
        let _ = serving.join();
        outcome
    })
}

/// Generates an archive of one page, captured every four hours from 2015 on; every tenth capture finds a new version.
fn made(folder: &Path) -> Outcome<PathBuf> {
    let (file, archive) = (folder.join("many.warc"), folder.join("archive"));
    let mut records = String::new();
    for number in 0..CAPTURES {
        let time =
            chrono::DateTime::from_timestamp(1_420_070_400 + 14_400 * number as i64, 0).unwrap_or_default();
        let version = number / 10;
        let http = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<title>Library</title><p>News of the library, number {version}."
        );
        write!(
            records,
            "WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:bench:{number}>\r\nWARC-Target-URI: {PAGE}\r\n\
             WARC-Date: {}\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n{http}\r\n\r\n",
            time.format("%Y-%m-%dT%H:%M:%SZ"),
            http.len()
        )?;
    }
    std::fs::write(&file, records)?;
    let mut store = recorder::open(&archive, SegmentOptions::default())?.store;
    let options = import::ImportOptions {
        files: vec![file],
        form: import::ImportForm::Records,
        threads: 2,
        full_text: true,
        checkpoint_every: Duration::from_secs(10),
        memory: Memory::new(Memory::BYTES_MIN),
        keep_cut: true,
        accept_wrong_signatures: false,
    };
    import::run(&mut store, &options, &Control::default(), &mut |_| {})?;
    prepared::close(&mut store)?;
    Ok(archive)
}

/// Builds the request for a path and picks the server: replay paths have an address of their own.
fn request(path: &str, application: SocketAddr, replay: SocketAddr) -> (String, SocketAddr, String) {
    let is_replay =
        ["/web/", "/timemap/", "/timegate/", "/cdx", "/warc/"].iter().any(|it| path.starts_with(it));
    let address = if is_replay { replay } else { application };
    (path.to_owned(), address, format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n"))
}

/// Sends requests over this many connections and prints the latencies.
fn measure(requests: Vec<(String, SocketAddr, String)>, connections: u64, time: Duration) -> Outcome<()> {
    let requests: Arc<[_]> = requests.into();
    let (mut bytes, mut taken) = (0, Vec::new());
    for (_, address, head) in requests.iter() {
        bytes = answer(&mut BufReader::new(TcpStream::connect(address)?), head)?;
    }
    let begun = Instant::now();
    let ask = |first: usize, requests: &[(String, SocketAddr, String)]| -> Outcome<Vec<f64>> {
        let mut open: Vec<Option<BufReader<TcpStream>>> = requests.iter().map(|_| None).collect();
        let mut taken = Vec::new();
        for (place, (_, address, head)) in requests.iter().enumerate().cycle().skip(first % requests.len()) {
            if begun.elapsed() >= time {
                break;
            }
            // One connection per address.
            let same = requests.iter().position(|(_, other, _)| other == address).unwrap_or(place);
            if open[same].is_none() {
                open[same] = Some(BufReader::new(TcpStream::connect(address)?));
            }
            let Some(stream) = open[same].as_mut() else { continue };
            let asked = Instant::now();
            answer(stream, head)?;
            taken.push(asked.elapsed().as_secs_f64() * 1e3);
        }
        Ok(taken)
    };
    let asking: Vec<_> = thread::scope(|scope| {
        let spawn = |first: u64| {
            let (ask, requests) = (&ask, &requests);
            scope.spawn(move || ask(first as usize, requests))
        };
        let asking: Vec<_> = (0..connections).map(spawn).collect();
        asking.into_iter().map(thread::ScopedJoinHandle::join).collect()
    });
    for own in asking {
        taken.extend(own.map_err(|_| "a connection panicked")??);
    }
    taken.sort_unstable_by(f64::total_cmp);
    let of_100 = |share: usize| taken.get((taken.len() * share / 100).min(taken.len().saturating_sub(1)));
    let paths: Vec<&str> = requests.iter().map(|(path, ..)| path.as_str()).collect();
    println!(
        "{}",
        json!({ "asked": paths, "connections": connections, "answers": taken.len(), "bytes": bytes,
            "half": of_100(50), "p99": of_100(99), "all": of_100(100) })
    );
    Ok(())
}

/// Sends a request over a connection, reads the answer and returns its number of bytes.
fn answer(stream: &mut BufReader<TcpStream>, head: &str) -> Outcome<usize> {
    stream.get_mut().set_nodelay(true)?;
    stream.get_mut().write_all(head.as_bytes())?;
    let (mut line, mut length, mut status) = (String::new(), 0, None);
    loop {
        line.clear();
        stream.read_line(&mut line)?;
        let text = line.trim_end();
        if status.is_none() {
            status = Some(text.split(' ').nth(1).unwrap_or_default().to_owned());
        }
        if let Some((_, value)) =
            text.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        {
            length = value.trim().parse()?;
        }
        if text.is_empty() {
            break;
        }
    }
    if status.as_deref().is_none_or(|status| !status.starts_with(['2', '3'])) {
        return Err(format!("status {status:?} for {head}").into());
    }
    std::io::copy(&mut stream.by_ref().take(length as u64), &mut std::io::sink())?;
    Ok(length)
}
