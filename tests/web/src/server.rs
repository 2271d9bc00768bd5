//! The server: HTTP/1.1 on loopback, by `Host` header or absolute-form, with threads of its own.
//!
//! It works directly on sockets because an HTTP library cannot send the broken answers of [`faults`]. Connections are
//! persistent, requests may be pipelined, and an answer is one write.
//!
//! [`faults`]: super::faults

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Runtime;

use super::Web;
use super::answer::{Answerer, Outcome, Request};
use super::script::{Ending, Script};
use super::tls::{self, Certificate};

/// Largest request head that is read, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Largest number of header lines in a request.
const HEADERS_MAX: usize = 100;
/// Answers to pipelined requests are collected up to this many bytes before they are written.
const OUTPUT_BYTES: usize = 256 * 1024;
/// Length of the queue of connections that wait to be accepted.
const BACKLOG: u32 = 4096;
/// Largest number of faulty paths whose visits are counted; at this number all counts start again.
const VISITED_PATHS_MAX: usize = 100_000;
/// Pause of the accept loop when there are no file handles left.
pub(super) const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A request as it arrived, for tests of politeness.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// When the head was complete.
    pub time: Instant,
    /// Requested host, without port.
    pub host: String,
    /// The path and query.
    pub path: String,
    /// The client's end of the connection.
    pub peer: SocketAddr,
    /// The server's end of the connection.
    pub local: SocketAddr,
}

/// A running server. Dropping it stops it.
#[derive(Debug)]
pub struct Server {
    addresses: Vec<SocketAddr>,
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
}

/// State shared by all connections.
#[derive(Debug)]
struct Shared {
    web: Arc<Web>,
    requests: AtomicU64,
    bytes: AtomicU64,
    records_arrivals: AtomicBool,
    arrivals: Mutex<Vec<Arrival>>,
    /// Number of requests for each faulty path.
    visits: Mutex<HashMap<Vec<u8>, u64>>,
}

impl Shared {
    /// Counts a visit to a faulty path and returns the number of earlier visits.
    fn visit(&self, path: &[u8]) -> u64 {
        let mut visits = self.visits.lock().unwrap_or_else(PoisonError::into_inner);
        if visits.len() >= VISITED_PATHS_MAX {
            visits.clear();
        }
        let count = visits.entry(path.to_vec()).or_default();
        *count += 1;
        *count - 1
    }
}

impl Server {
    /// Serves `web` at `address` (port 0 picks a free one) with as many threads as there are processors.
    ///
    /// # Errors
    /// The address cannot be bound, or threads cannot be started.
    pub fn start(web: Arc<Web>, address: SocketAddr) -> io::Result<Self> {
        let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self::start_on(web, &[address], threads)
    }

    /// Serves `web` at several addresses, such as 127.0.0.1 and 127.0.0.2, on `threads` threads.
    ///
    /// # Errors
    /// An address cannot be bound, or threads cannot be started.
    pub fn start_on(web: Arc<Web>, addresses: &[SocketAddr], threads: usize) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads.max(1))
            .thread_name("testweb")
            .enable_all()
            .build()?;
        let shared = Arc::new(Shared {
            web,
            requests: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            records_arrivals: AtomicBool::new(false),
            arrivals: Mutex::new(Vec::new()),
            visits: Mutex::new(HashMap::new()),
        });
        let mut bound = Vec::new();
        for address in addresses {
            let listener = {
                let _context = runtime.enter();
                listen(*address)?
            };
            bound.push(listener.local_addr()?);
            runtime.spawn(accept(listener, Arc::clone(&shared)));
        }
        Ok(Self { addresses: bound, shared, runtime: Some(runtime) })
    }

    /// Serves the same web over TLS at another address, which is returned. Arrivals through it have the relay as their
    /// peer.
    ///
    /// # Errors
    /// The address cannot be bound, or the server has been stopped.
    pub fn add_tls(&self, address: SocketAddr, certificate: Certificate) -> io::Result<SocketAddr> {
        let runtime = self.runtime.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let acceptor = certificate.acceptor()?;
        let listener = {
            let _context = runtime.enter();
            listen(address)?
        };
        let bound = listener.local_addr()?;
        runtime.spawn(tls::relay(listener, acceptor, self.address()));
        Ok(bound)
    }

    /// Returns the (first) address of the server.
    ///
    /// # Panics
    /// If the server was started without an address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// Returns all addresses of the server.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns the web that is served.
    #[must_use]
    pub fn web(&self) -> &Arc<Web> {
        &self.shared.web
    }

    /// Returns the number of requests so far.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes sent so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// Starts or stops recording arrivals, which takes about 200 bytes per request.
    pub fn record_arrivals(&self, is_on: bool) {
        self.shared.records_arrivals.store(is_on, Ordering::Relaxed);
    }

    /// Returns the recorded arrivals and clears the record.
    #[must_use]
    pub fn take_arrivals(&self) -> Vec<Arrival> {
        std::mem::take(&mut *self.shared.arrivals.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Stops the server and closes its connections.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let shared = Arc::clone(&shared);
                tokio::spawn(async move {
                    // Errors of a connection concern only its client.
                    let _ = Connection::new(&shared, stream, peer)?.serve().await;
                    Ok::<(), io::Error>(())
                });
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// One client's connection.
struct Connection<'a> {
    shared: &'a Shared,
    stream: TcpStream,
    peer: SocketAddr,
    local: SocketAddr,
    input: Vec<u8>,
    output: Vec<u8>,
    answerer: Answerer,
}

/// State of the bytes read so far.
enum Step {
    /// A request of `length` bytes has been answered into the output.
    Answered { length: usize, keeps_alive: bool },
    /// A request of `length` bytes must be answered with a fault.
    Faulty { length: usize, keeps_alive: bool, script: Script },
    /// The request is incomplete.
    Partial,
    /// Not a request; the output contains the error answer.
    Bad,
}

impl<'a> Connection<'a> {
    fn new(shared: &'a Shared, stream: TcpStream, peer: SocketAddr) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let local = stream.local_addr()?;
        let (input, output) = (Vec::with_capacity(4096), Vec::new());
        Ok(Self { shared, stream, peer, local, input, output, answerer: Answerer::new() })
    }

    async fn serve(mut self) -> io::Result<()> {
        loop {
            let mut read = 0;
            loop {
                match self.step(read) {
                    Step::Answered { length, keeps_alive } => {
                        read += length;
                        if !keeps_alive {
                            self.flush().await?;
                            return self.stream.shutdown().await;
                        }
                        if self.output.len() >= OUTPUT_BYTES {
                            self.flush().await?;
                        }
                    }
                    Step::Faulty { length, keeps_alive, script } => {
                        read += length;
                        self.flush().await?;
                        match script.play(&mut self.stream).await? {
                            Ending::KeepOpen if keeps_alive => {}
                            Ending::KeepOpen | Ending::Close => return self.stream.shutdown().await,
                            Ending::Reset => return self.reset(),
                        }
                    }
                    Step::Partial => break,
                    Step::Bad => {
                        self.flush().await?;
                        return self.stream.shutdown().await;
                    }
                }
            }
            self.input.drain(..read);
            self.flush().await?;
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Ok(());
            }
        }
    }

    async fn flush(&mut self) -> io::Result<()> {
        if self.output.is_empty() {
            return Ok(());
        }
        let latency = self.shared.web.config.latency;
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        self.stream.write_all(&self.output).await?;
        self.shared.bytes.fetch_add(self.output.len() as u64, Ordering::Relaxed);
        self.output.clear();
        Ok(())
    }

    /// Closes the connection so that the client's system sees a reset.
    fn reset(self) -> io::Result<()> {
        self.stream.set_zero_linger()
    }

    /// Parses the request at `start` of the input and builds its answer.
    fn step(&mut self, start: usize) -> Step {
        let Self { shared, input, output, answerer, .. } = self;
        let bytes = &input[start..];
        if bytes.is_empty() {
            return Step::Partial;
        }
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut head = httparse::Request::new(&mut headers);
        let length = match head.parse(bytes) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) if bytes.len() < HEAD_BYTES_MAX => return Step::Partial,
            Ok(httparse::Status::Partial) | Err(_) => {
                output.extend_from_slice(
                    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
                );
                return Step::Bad;
            }
        };
        let number = shared.requests.fetch_add(1, Ordering::Relaxed);
        let request = understand(&head, number);
        if shared.records_arrivals.load(Ordering::Relaxed) {
            let arrival = Arrival {
                time: Instant::now(),
                host: String::from_utf8_lossy(request.host).into_owned(),
                path: String::from_utf8_lossy(request.path).into_owned(),
                peer: self.peer,
                local: self.local,
            };
            shared.arrivals.lock().unwrap_or_else(PoisonError::into_inner).push(arrival);
        }
        match answerer.answer(&shared.web, &request, shared.web.clock().micros(), output) {
            Outcome::Ready => Step::Answered { length, keeps_alive: request.keeps_alive },
            Outcome::Fault(fault) => {
                let script = fault.script(&request, shared.visit(request.path));
                Step::Faulty { length, keeps_alive: request.keeps_alive, script }
            }
        }
    }
}

/// Extracts from a parsed head what the answer depends on.
fn understand<'a>(head: &httparse::Request<'_, 'a>, number: u64) -> Request<'a> {
    let method = head.method.unwrap_or("");
    let is_http11 = head.version == Some(1);
    let mut request = Request {
        is_head: method == "HEAD",
        is_other_method: !matches!(method, "GET" | "HEAD"),
        host: b"",
        path: head.path.unwrap_or("/").as_bytes(),
        if_none_match: None,
        if_modified_since: None,
        accepts_gzip: false,
        is_http11,
        // Other methods may have a body, which is not read.
        keeps_alive: is_http11 && matches!(method, "GET" | "HEAD"),
        number,
    };
    for header in head.headers.iter() {
        let (name, value) = (header.name, header.value);
        if name.eq_ignore_ascii_case("host") {
            request.host = value;
        } else if name.eq_ignore_ascii_case("if-none-match") {
            request.if_none_match = Some(value);
        } else if name.eq_ignore_ascii_case("if-modified-since") {
            request.if_modified_since = Some(value);
        } else if name.eq_ignore_ascii_case("accept-encoding") {
            request.accepts_gzip = memchr::memmem::find(value, b"gzip").is_some();
        } else if name.eq_ignore_ascii_case("connection") {
            if value.eq_ignore_ascii_case(b"close") {
                request.keeps_alive = false;
            } else if value.eq_ignore_ascii_case(b"keep-alive") && !request.is_other_method {
                request.keeps_alive = true;
            }
        }
    }
    // A client that uses the server as a proxy names the host in the target, which takes precedence over the header
    // (RFC 9112, 3.2.2).
    if let Some(rest) = request.path.strip_prefix(b"http://") {
        let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
        request.host = &rest[..end];
        request.path = if end == rest.len() { b"/" } else { &rest[end..] };
    }
    if let Some(colon) = request.host.iter().position(|byte| *byte == b':') {
        request.host = &request.host[..colon];
    }
    request
}
