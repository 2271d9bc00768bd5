//! Speed of the test web: pages generated in one thread, and pages served to keep-alive clients.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use archive_testweb::{PageIndex, Reader, Server, Web};

/// Number of connections of each client thread, used in turn so that the server always has work.
const CONNECTIONS: usize = 16;

/// Prints pages/s and MB/s of generating and of serving pages, by wall-clock and by processor time: on a machine with
/// other load only the latter is meaningful.
pub(crate) fn measure(server: &Server, time: Duration, threads: usize) -> Result<()> {
    let web = server.web();
    let made = make(web, time);
    made.report("made by one thread");
    let process_before = process_processor_time();
    let started = Instant::now();
    let address = server.address();
    let results: Vec<Result<Work>> = std::thread::scope(|scope| {
        let clients: Vec<_> =
            (0..threads).map(|client| scope.spawn(move || ask(web, address, time, client as u64))).collect();
        clients.into_iter().map(|client| client.join().unwrap_or_else(|_| bail!("a client failed"))).collect()
    });
    let mut served = Work { wall: started.elapsed(), ..Work::default() };
    let mut clients = Duration::ZERO;
    for work in results {
        let work = work?;
        served.pages += work.pages;
        served.bytes += work.bytes;
        clients += work.processor;
    }
    served.processor = (process_processor_time() - process_before).saturating_sub(clients);
    served.report(&format!("served to {} keep-alive connections", threads * CONNECTIONS));
    Ok(())
}

/// Amount of work and the time it took.
#[derive(Default)]
struct Work {
    pages: u64,
    bytes: u64,
    wall: Duration,
    /// Processor time, without that of the clients.
    processor: Duration,
}

impl Work {
    fn report(&self, what: &str) {
        let (pages, megabytes) = (self.pages as f64, self.bytes as f64 / 1e6);
        let (wall, processor) = (self.wall.as_secs_f64(), self.processor.as_secs_f64());
        println!(
            "{what}: {:.0} pages/s, {:.0} MB/s; a processor second {:.0} pages, {:.0} MB; {:.0} bytes a page",
            pages / wall,
            megabytes / wall,
            pages / processor,
            megabytes / processor,
            self.bytes as f64 / pages,
        );
    }
}

/// Returns the processor time of this thread (Linux; 0 elsewhere).
fn thread_processor_time() -> Duration {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(times.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
}

/// Returns the processor time of all threads of this process, in steps of 10 ms (Linux; 0 elsewhere).
fn process_processor_time() -> Duration {
    let status = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = status.rsplit(") ").next().unwrap_or_default().split(' ');
    // Fields 14 and 15 of the line: user and system time in hundredths of a second (proc(5)).
    let ticks: u64 = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(10 * ticks)
}

/// Returns the page of a turn; consecutive turns are far apart.
fn page(web: &Web, turn: u64) -> PageIndex {
    PageIndex(turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) % web.pages())
}

fn make(web: &Web, time: Duration) -> Work {
    let urls: Vec<String> = (0..4096).map(|turn| web.url(page(web, turn))).collect();
    let mut reader = Reader::default();
    let mut work = Work::default();
    let (started, processor_before) = (Instant::now(), thread_processor_time());
    while started.elapsed() < time {
        for url in &urls {
            work.bytes += reader.get(web, url).map_or(0, |answer| answer.len() as u64);
            work.pages += 1;
        }
    }
    Work { wall: started.elapsed(), processor: thread_processor_time() - processor_before, ..work }
}

/// Sends requests over several connections, with one in flight on each.
fn ask(web: &Web, address: SocketAddr, time: Duration, client: u64) -> Result<Work> {
    let requests: Vec<Vec<u8>> =
        (0..4096).map(|turn| request(&web.url(page(web, turn + client * 4096)))).collect();
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        let stream = TcpStream::connect(address).context("cannot connect to the server")?;
        stream.set_nodelay(true)?;
        connections.push(stream);
    }
    let mut buffer = vec![0; 256 * 1024];
    let mut work = Work::default();
    let (started, processor_before) = (Instant::now(), thread_processor_time());
    let mut turn = 0;
    while started.elapsed() < time {
        for stream in &mut connections {
            stream.write_all(&requests[turn % requests.len()])?;
            turn += 1;
        }
        for stream in &mut connections {
            work.bytes += read_answer(stream, &mut buffer)?;
            work.pages += 1;
        }
    }
    Ok(Work { wall: started.elapsed(), processor: thread_processor_time() - processor_before, ..work })
}

fn request(url: &str) -> Vec<u8> {
    let rest = url.trim_start_matches("http://");
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes()
}

/// Reads one answer and returns its length.
fn read_answer(stream: &mut TcpStream, buffer: &mut [u8]) -> Result<u64> {
    let mut filled = 0;
    loop {
        let read = stream.read(&mut buffer[filled..])?;
        if read == 0 {
            bail!("the server closed the connection");
        }
        filled += read;
        let answer = &buffer[..filled];
        let Some(head) = find(answer, b"\r\n\r\n").map(|end| end + 4) else { continue };
        let is_whole = match find(&answer[..head], b"Content-Length: ") {
            Some(start) => {
                let digits: String = answer[start + 16..]
                    .iter()
                    .take_while(|byte| byte.is_ascii_digit())
                    .map(|byte| *byte as char)
                    .collect();
                filled >= head + digits.parse::<usize>()?
            }
            None => answer.ends_with(b"0\r\n\r\n"),
        };
        if is_whole {
            return Ok(filled as u64);
        }
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
