//! How fast the test web is: pages made in one thread, and pages served to keep-alive clients.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use archive::testweb::{PageIndex, Reader, Server, Web};

/// Connections of each client thread, asked in turn so that the server always has work.
const CONNECTIONS: usize = 16;

/// Prints pages/s and MB/s of making pages and of serving them.
pub(crate) fn measure(server: &Server, time: Duration, threads: usize) -> Result<()> {
    let web = server.web();
    let (pages, bytes, took) = make(web, time);
    report("made by one thread", pages, bytes, took);
    let started = Instant::now();
    let address = server.address();
    let results: Vec<Result<(u64, u64)>> = std::thread::scope(|scope| {
        let clients: Vec<_> =
            (0..threads).map(|client| scope.spawn(move || ask(web, address, time, client as u64))).collect();
        clients.into_iter().map(|client| client.join().unwrap_or_else(|_| bail!("a client failed"))).collect()
    });
    let took = started.elapsed();
    let (mut pages, mut bytes) = (0, 0);
    for result in results {
        let (own_pages, own_bytes) = result?;
        pages += own_pages;
        bytes += own_bytes;
    }
    report(&format!("served to {} keep-alive connections", threads * CONNECTIONS), pages, bytes, took);
    Ok(())
}

fn report(what: &str, pages: u64, bytes: u64, took: Duration) {
    let seconds = took.as_secs_f64();
    let (rate, megabytes) = (pages as f64 / seconds, bytes as f64 / seconds / 1e6);
    println!(
        "{what}: {rate:.0} pages/s, {megabytes:.0} MB/s, {:.0} bytes a page",
        bytes as f64 / pages.max(1) as f64
    );
}

/// The pages asked for: far apart from each other.
fn page(web: &Web, turn: u64) -> PageIndex {
    PageIndex(turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) % web.pages())
}

fn make(web: &Web, time: Duration) -> (u64, u64, Duration) {
    let urls: Vec<String> = (0..4096).map(|turn| web.url(page(web, turn))).collect();
    let mut reader = Reader::default();
    let (mut pages, mut bytes) = (0, 0);
    let started = Instant::now();
    while started.elapsed() < time {
        for url in &urls {
            bytes += reader.get(web, url).map_or(0, |answer| answer.len() as u64);
            pages += 1;
        }
    }
    (pages, bytes, started.elapsed())
}

/// Asks on several connections, one request under way on each.
fn ask(web: &Web, address: SocketAddr, time: Duration, client: u64) -> Result<(u64, u64)> {
    let requests: Vec<Vec<u8>> =
        (0..4096).map(|turn| request(&web.url(page(web, turn + client * 4096)))).collect();
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        let stream = TcpStream::connect(address).context("cannot connect to the server")?;
        stream.set_nodelay(true)?;
        connections.push(stream);
    }
    let mut buffer = vec![0; 256 * 1024];
    let (mut pages, mut bytes) = (0, 0);
    let started = Instant::now();
    let mut turn = 0;
    while started.elapsed() < time {
        for stream in &mut connections {
            stream.write_all(&requests[turn % requests.len()])?;
            turn += 1;
        }
        for stream in &mut connections {
            bytes += read_answer(stream, &mut buffer)?;
            pages += 1;
        }
    }
    Ok((pages, bytes))
}

fn request(url: &str) -> Vec<u8> {
    let rest = url.trim_start_matches("http://");
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes()
}

/// Reads one answer; its length.
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
