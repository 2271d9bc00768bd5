//! The state of a run for other programs: JSON at `/status`, Prometheus metrics at `/metrics`, on a port of the user's
//! choice.
//!
//! A separate thread answers from a copy of the last report, so that neither clients nor the crawl wait for each other:
//! one request per connection, one connection at a time, each with an overall deadline.
//!
//! It answers only requests that name it by an address or as localhost. A web page could point its own host name at
//! this port (DNS rebinding) and then read the answers in a visitor's browser, but its requests would have that name in
//! the `Host` field.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::future::ready;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use archive_books::ledger::names_this_machine;
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, copy, sink};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::options::CrawlStatus;

/// Maximum length of a request's head: the least that the server takes.
const HEAD_BYTES_MAX: usize = 8 << 10;

/// Maximum bytes after the head that are still read.
const UNREAD_BYTES_MAX: u64 = 64 << 10;

/// Maximum time for a client to send its request and read the answer.
const CLIENT_TIME_MAX: Duration = Duration::from_secs(2);

/// Pause after the listener failed, for example because there are too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The answering thread; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Monitor {
    address: SocketAddr,
    status: Arc<Mutex<CrawlStatus>>,
    /// Ends the thread when dropped.
    ends: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Monitor {
    /// Listens at an address; port 0 means any free port.
    pub(super) fn start(address: SocketAddr) -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind(address))?;
        let address = listener.local_addr()?;
        let status = Arc::<Mutex<CrawlStatus>>::default();
        let seen = Arc::clone(&status);
        let (ends, end) = oneshot::channel();
        let answering = async move {
            loop {
                match listener.accept().await {
                    Ok((client, _)) => drop(timeout(CLIENT_TIME_MAX, serve(client, &seen)).await),
                    Err(_) => sleep(ACCEPT_PAUSE).await,
                }
            }
        };
        let thread = thread::Builder::new().name("status".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! { () = answering => {}, _ = end => {} }
            });
        })?;
        Ok(Self { address, status, ends: Some(ends), thread: Some(thread) })
    }

    /// The address it listens at.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Replaces the published state.
    pub(super) fn publish(&self, status: &CrawlStatus) {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone_from(status);
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        drop(self.ends.take());
        self.thread.take().map(JoinHandle::join);
    }
}

async fn serve(mut client: TcpStream, status: &Mutex<CrawlStatus>) {
    let service = service_fn(|request| ready(Ok::<_, Infallible>(answer(&request, status))));
    // A client that disconnects early or does not speak HTTP does not affect the crawl.
    let _ = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(&mut client), service)
        .await;
    // Closing with unread bytes would discard the answer to a client that sent too many.
    let _ = copy(&mut client.take(UNREAD_BYTES_MAX), &mut sink()).await;
}

fn answer(request: &Request<Incoming>, status: &Mutex<CrawlStatus>) -> Response<String> {
    let names_an_address = |host: &HeaderValue| host.to_str().is_ok_and(names_this_machine);
    let status = status.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let (code, kind, body) = match (request.method(), request.uri().path()) {
        _ if !request.headers().get_all(HOST).iter().all(names_an_address) => {
            let what = "ask for this port by its address or as localhost, not by another host name\n";
            (StatusCode::MISDIRECTED_REQUEST, "text/plain", what.to_owned())
        }
        (&Method::GET, "/status" | "/") => match serde_json::to_string(&status) {
            Ok(json) => (StatusCode::OK, "application/json", json + "\n"),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, "text/plain", format!("{error}\n")),
        },
        (&Method::GET, "/metrics") => (StatusCode::OK, "text/plain; version=0.0.4", metrics(&status)),
        (&Method::GET, _) => {
            (StatusCode::NOT_FOUND, "text/plain", "not found; use /status or /metrics\n".to_owned())
        }
        _ => (StatusCode::METHOD_NOT_ALLOWED, "text/plain", "only GET is understood\n".to_owned()),
    };
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
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
    use super::{HEAD_BYTES_MAX, Monitor};
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
        let head = |bytes: usize| format!("GET /status HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(bytes - 29));
        assert!(ask(&monitor, &head(HEAD_BYTES_MAX)).starts_with("HTTP/1.1 200"));
        assert!(ask(&monitor, &head(3 * HEAD_BYTES_MAX)).starts_with("HTTP/1.1 431"));
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
