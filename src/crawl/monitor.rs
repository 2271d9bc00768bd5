//! The state of a run for other programs: JSON at `/status`, Prometheus metrics at `/metrics`, on a port of the user's
//! choice.
//!
//! A separate thread answers from a copy of the last report, so that neither clients nor the crawl wait for each other.
//! It implements the minimum of HTTP/1.1 that browsers, curl and Prometheus need: one request per connection, one
//! connection at a time, each with an overall deadline.
//!
//! It answers only requests that name it by an address or as localhost. A web page could point its own host name at
//! this port (DNS rebinding) and then read the answers in a visitor's browser, but its requests would have that name in
//! the `Host` field.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use archive_books::ledger::names_this_machine;

use super::options::CrawlStatus;

/// Maximum length of a request's head.
const HEAD_BYTES_MAX: usize = 8 << 10;

/// Maximum bytes after the head that are still read.
const UNREAD_BYTES_MAX: u64 = 64 << 10;

/// Maximum time for a client to send its request and read the answer.
const CLIENT_TIME_MAX: Duration = Duration::from_secs(2);

/// Interval between checks for a new client and for the end.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The answering thread; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Monitor {
    address: SocketAddr,
    shared: Arc<MonitorState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct MonitorState {
    status: Mutex<CrawlStatus>,
    ends: AtomicBool,
}

/// A connection with a deadline, which also ends with the monitor.
struct MonitorClient<'a> {
    connection: TcpStream,
    until: Instant,
    ends: &'a AtomicBool,
}

impl MonitorClient<'_> {
    /// Repeats an operation that waits for the client, in steps short enough to notice the deadline.
    fn patiently<T>(&mut self, mut act: impl FnMut(&mut TcpStream) -> io::Result<T>) -> io::Result<T> {
        loop {
            if self.ends.load(Ordering::Acquire) || Instant::now() >= self.until {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match act(&mut self.connection) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
        }
    }
}

impl Read for MonitorClient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.patiently(|connection| connection.read(buffer))
    }
}

impl Write for MonitorClient<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.patiently(|connection| connection.write(buffer))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Monitor {
    /// Listens at an address; port 0 means any free port.
    pub(super) fn start(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        // A blocking accept could be interrupted only by a connection, for which there may be no resources.
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(MonitorState::default());
        let seen = Arc::clone(&shared);
        let thread = thread::Builder::new().name("status".to_owned()).spawn(move || {
            while !seen.ends.load(Ordering::Acquire) {
                match listener.accept() {
                    // A client that disconnects early does not affect the crawl.
                    Ok((connection, _)) => drop(serve(connection, &seen)),
                    Err(_) => thread::park_timeout(LOOK_EVERY),
                }
            }
        })?;
        Ok(Self { address, shared, thread: Some(thread) })
    }

    /// The address it listens at.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Replaces the published state.
    pub(super) fn publish(&self, status: &CrawlStatus) {
        self.shared.status.lock().unwrap_or_else(PoisonError::into_inner).clone_from(status);
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ended = thread.join();
        }
    }
}

fn serve(connection: TcpStream, shared: &MonitorState) -> io::Result<()> {
    connection.set_nonblocking(false)?;
    connection.set_read_timeout(Some(LOOK_EVERY))?;
    connection.set_write_timeout(Some(LOOK_EVERY))?;
    let until = Instant::now() + CLIENT_TIME_MAX;
    let mut client = MonitorClient { connection, until, ends: &shared.ends };
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
        match client.read(&mut part)? {
            0 => break,
            count => head.extend_from_slice(part.get(..count).unwrap_or_default()),
        }
    }
    let head = String::from_utf8_lossy(&head);
    let mut lines = head.split("\r\n");
    let target = lines.next().unwrap_or_default();
    let status = shared.status.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let (code, kind, body) = match target.split(' ').take(2).collect::<Vec<_>>()[..] {
        _ if !lines.take_while(|line| !line.is_empty()).all(names_an_address) => (
            "421 Misdirected Request",
            "text/plain",
            "ask for this port by its address or as localhost, not by another host name\n".to_owned(),
        ),
        ["GET", "/status" | "/"] => match serde_json::to_string(&status) {
            Ok(json) => ("200 OK", "application/json", json + "\n"),
            Err(error) => ("500 Internal Server Error", "text/plain", format!("{error}\n")),
        },
        ["GET", "/metrics"] => ("200 OK", "text/plain; version=0.0.4", metrics(&status)),
        ["GET", _] => ("404 Not Found", "text/plain", "not found; use /status or /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "text/plain", "only GET is understood\n".to_owned()),
    };
    let length = body.len();
    write!(
        client,
        "HTTP/1.1 {code}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nCache-Control: no-store\r\n\
         Connection: close\r\n\r\n{body}"
    )?;
    // Closing with unread bytes would discard the answer to a client that sent too many.
    client.connection.shutdown(Shutdown::Write)?;
    io::copy(&mut client.take(UNREAD_BYTES_MAX), &mut io::sink())?;
    Ok(())
}

/// Whether a line of a head is no `Host` field, or one with an address or localhost.
fn names_an_address(line: &str) -> bool {
    let Some((name, host)) = line.split_once(':') else { return true };
    !name.eq_ignore_ascii_case("host") || names_this_machine(host.trim())
}

/// Formats the metrics in the Prometheus text format, version 0.0.4.
fn metrics(status: &CrawlStatus) -> String {
    let paused = if status.paused.is_some() { 1.0 } else { 0.0 };
    let topic = status.topic.clone().unwrap_or_default();
    let recall = topic.recall.unwrap_or_default();
    let rows: [(&str, &str, &str, f64); 19] = [
        (
            "captures_total",
            "counter",
            "Captures stored by this run, without robots.txt.",
            status.captures as f64,
        ),
        ("pages_total", "counter", "Of these, pages.", status.pages as f64),
        ("identical_total", "counter", "Captures with the content of another one.", status.identical as f64),
        (
            "errors_total",
            "counter",
            "Fetches without an answer, or with status 400 and above.",
            status.errors as f64,
        ),
        ("refused_total", "counter", "URLs that a rule kept from being fetched.", status.refused as f64),
        ("received_bytes_total", "counter", "Bytes received.", status.bytes as f64),
        ("checkpoints_total", "counter", "Checkpoints.", status.checkpoints as f64),
        (
            "elapsed_seconds",
            "gauge",
            "Since the start of the run, pauses left out.",
            status.elapsed.as_secs_f64(),
        ),
        ("queued_urls", "gauge", "Waiting URLs.", status.queued as f64),
        ("active_requests", "gauge", "Requests under way.", status.active as f64),
        ("active_hosts", "gauge", "Hosts with a request in flight.", status.hosts_active as f64),
        ("waiting_hosts", "gauge", "Hosts waiting for their delay.", status.hosts_waiting as f64),
        ("disk_free_bytes", "gauge", "Room on the disk of the archive.", status.disk_free_bytes as f64),
        ("topic_pages_total", "counter", "Pages checked against the topic.", topic.looked_at as f64),
        ("topic_found_total", "counter", "Of these, pages of the topic.", topic.found as f64),
        ("topic_harvest", "gauge", "The share of the topic among the last hundred pages.", topic.harvest),
        (
            "topic_recall",
            "gauge",
            "The expected share of the topic that is found; 0: unknown.",
            recall.expected,
        ),
        ("topic_waiting", "gauge", "Pages of the topic that are expected to wait.", recall.waiting),
        ("paused", "gauge", "1 while the run is paused.", paused),
    ];
    let mut text = String::new();
    for (name, kind, help, value) in rows {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "# HELP archive_{name} {help}\n# TYPE archive_{name} {kind}\narchive_{name} {value}\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::Monitor;
    use crate::CrawlStatus;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    fn ask(monitor: &Monitor, request: &str) -> String {
        let mut connection = TcpStream::connect(monitor.address()).unwrap();
        connection.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn the_state_is_served_and_foreign_requests_are_answered() {
        let monitor = Monitor::start("127.0.0.1:0".parse().unwrap()).unwrap();
        monitor.publish(&CrawlStatus {
            captures: 12,
            paused: Some("disk low".to_owned()),
            ..CrawlStatus::default()
        });
        let json = ask(&monitor, "GET /status HTTP/1.1\r\nHost: localhost:9600\r\n\r\n");
        let (head, body) = json.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        let status: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!((&status["captures"], &status["paused"]), (&12.into(), &"disk low".into()));
        let text = ask(&monitor, "GET /metrics HTTP/1.1\r\n\r\n");
        assert!(
            text.contains("\narchive_captures_total 12\n") && text.contains("\narchive_paused 1\n"),
            "{text}"
        );
        assert!(ask(&monitor, "GET /x HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(ask(&monitor, "POST /status HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
        assert!(ask(&monitor, &"x".repeat(10_000)).starts_with("HTTP/1.1 405"));
    }

    #[test]
    fn only_requests_that_name_an_address_are_answered() {
        let monitor = Monitor::start("127.0.0.1:0".parse().unwrap()).unwrap();
        let with = |fields: &str| ask(&monitor, &format!("GET /status HTTP/1.1\r\n{fields}\r\n"));
        for host in
            ["127.0.0.1", "192.168.1.7:9600", "[::1]", "[fd00::1]:9600", "LocalHost", "localhost:9600"]
        {
            assert!(with(&format!("Host: {host}\r\n")).starts_with("HTTP/1.1 200"), "{host}");
        }
        for host in ["evil.test", "evil.test:9600", "127.0.0.1.evil.test", "localhost.evil.test", "", "1:2:3"]
        {
            let answer = with(&format!("Accept: */*\r\nhOST:{host}\r\n"));
            assert!(answer.starts_with("HTTP/1.1 421") && !answer.contains("captures"), "{host}: {answer}");
        }
        // Two `Host` fields are not to be trusted.
        assert!(with("Host: localhost\r\nHost: evil.test\r\n").starts_with("HTTP/1.1 421"));
    }

    /// Writes a byte now and then, while the other side listens.
    fn drip(monitor: &Monitor) -> thread::JoinHandle<()> {
        let mut connection = TcpStream::connect(monitor.address()).unwrap();
        thread::spawn(move || {
            while connection.write_all(b"x").is_ok() {
                thread::sleep(Duration::from_millis(100));
            }
        })
    }

    #[test]
    fn a_slow_client_keeps_neither_others_nor_the_end_waiting() {
        let monitor = Monitor::start("127.0.0.1:0".parse().unwrap()).unwrap();
        let dripping = drip(&monitor);
        thread::sleep(Duration::from_millis(200));
        // Sending all 8192 bytes would take it a quarter of an hour.
        assert!(ask(&monitor, "GET /status HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"));
        dripping.join().unwrap();
        let more: Vec<_> = (0..20).map(|_| drip(&monitor)).collect();
        let (ended, ends) = mpsc::channel();
        let address = monitor.address();
        thread::spawn(move || {
            drop(monitor);
            ended.send(()).unwrap();
        });
        // Served to the end, twenty of them would take forty seconds.
        ends.recv_timeout(Duration::from_secs(20)).expect("the monitor ends with the crawl");
        assert!(TcpStream::connect(address).is_err(), "the port is closed");
        more.into_iter().for_each(|client| client.join().unwrap());
    }
}
