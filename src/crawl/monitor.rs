//! The state of a run for machines: JSON at `/status`, Prometheus metrics at `/metrics`, on a port of one's own.
//!
//! A thread of its own answers, from a copy of the last report, so that whoever asks never waits for the crawl nor the
//! crawl for him. It speaks the least of HTTP/1.1 that browsers, curl and Prometheus need: one request a connection.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::options::Status;

/// Longest head of a request.
const HEAD_BYTES_MAX: usize = 8 << 10;

/// Bytes behind the head that are still taken.
const UNREAD_BYTES_MAX: u64 = 64 << 10;

/// Whoever asks has this long for his request and for taking the answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The thread that answers; dropping this ends it.
#[derive(Debug)]
pub(super) struct Monitor {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    status: Mutex<Status>,
    ends: AtomicBool,
}

impl Monitor {
    /// Listens at an address; port 0 is any free one.
    pub(super) fn start(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let seen = Arc::clone(&shared);
        let thread = thread::Builder::new().name("status".to_owned()).spawn(move || {
            for connection in listener.incoming() {
                if seen.ends.load(Ordering::Acquire) {
                    return;
                }
                // One who goes away before he has his answer is no concern of the crawl's.
                let _gone = connection.and_then(|connection| serve(connection, &seen));
            }
        })?;
        Ok(Self { address, shared, thread: Some(thread) })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Shows another state from now on.
    pub(super) fn publish(&self, status: &Status) {
        self.shared.status.lock().unwrap_or_else(PoisonError::into_inner).clone_from(status);
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Release);
        // The thread waits for a connection: it gets one. When there is none to be had, it ends with the process.
        if TcpStream::connect_timeout(&self.address, PATIENCE).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ended = thread.join();
        }
    }
}

fn serve(mut connection: TcpStream, shared: &Shared) -> io::Result<()> {
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
        match connection.read(&mut part)? {
            0 => break,
            count => head.extend_from_slice(part.get(..count).unwrap_or_default()),
        }
    }
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let target = String::from_utf8_lossy(line);
    let status = shared.status.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let (code, kind, body) = match target.split(' ').take(2).collect::<Vec<_>>()[..] {
        ["GET", "/status" | "/"] => match serde_json::to_string(&status) {
            Ok(json) => ("200 OK", "application/json", json + "\n"),
            Err(error) => ("500 Internal Server Error", "text/plain", format!("{error}\n")),
        },
        ["GET", "/metrics"] => ("200 OK", "text/plain; version=0.0.4", metrics(&status)),
        ["GET", _] => ("404 Not Found", "text/plain", "there are /status and /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "text/plain", "only GET is understood\n".to_owned()),
    };
    let length = body.len();
    write!(
        connection,
        "HTTP/1.1 {code}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nCache-Control: no-store\r\n\
         Connection: close\r\n\r\n{body}"
    )?;
    // Closing with bytes unread would take the answer back from him who sent too many.
    connection.shutdown(Shutdown::Write)?;
    io::copy(&mut connection.take(UNREAD_BYTES_MAX), &mut io::sink())?;
    Ok(())
}

/// The text format of Prometheus, version 0.0.4.
fn metrics(status: &Status) -> String {
    let paused = if status.paused.is_some() { 1.0 } else { 0.0 };
    let rows: [(&str, &str, &str, f64); 13] = [
        (
            "captures_total",
            "counter",
            "Captures stored by this run, without robots.txt.",
            status.captures as f64,
        ),
        ("pages_total", "counter", "Of these, pages.", status.pages as f64),
        ("unchanged_total", "counter", "Captures that found nothing changed.", status.unchanged as f64),
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
        ("queued_urls", "gauge", "URLs that wait.", status.queued as f64),
        ("active_requests", "gauge", "Requests under way.", status.active as f64),
        ("active_hosts", "gauge", "Hosts that are being asked.", status.hosts_active as f64),
        ("disk_free_bytes", "gauge", "Room on the disk of the archive.", status.disk_free_bytes as f64),
        ("paused", "gauge", "1 while nothing new is asked for.", paused),
    ];
    let mut text = String::new();
    for (name, kind, help, value) in rows {
        // Writing into a string cannot fail.
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
    use crate::crawl::Status;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    fn ask(monitor: &Monitor, request: &str) -> String {
        let mut connection = TcpStream::connect(monitor.address()).unwrap();
        connection.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn the_state_is_told_and_foreign_requests_are_answered() {
        let monitor = Monitor::start("127.0.0.1:0".parse().unwrap()).unwrap();
        monitor.publish(&Status { captures: 12, paused: Some("disk low".to_owned()), ..Status::default() });
        let json = ask(&monitor, "GET /status HTTP/1.1\r\nHost: x\r\n\r\n");
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
}
