//! Nodes with scripted answers.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// A node that answers each request according to its script, until it is dropped.
pub(crate) struct Fake {
    address: String,
    asked: Arc<AtomicUsize>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Pairs of a text and the answer to a request that contains it.
pub(crate) type Script = Vec<(&'static str, Vec<u8>)>;

impl Fake {
    pub(crate) fn new(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, ends) = (listener.local_addr().unwrap().to_string(), Arc::new(AtomicBool::new(false)));
        let (until, asked) = (Arc::clone(&ends), Arc::<AtomicUsize>::default());
        let count = Arc::clone(&asked);
        let serve = move || {
            let open = Mutex::new(Vec::new());
            for stream in listener.incoming() {
                if until.load(Ordering::Relaxed) {
                    return;
                }
                count.fetch_add(1, Ordering::Relaxed);
                if let Some(silent) = Self::say(stream.unwrap(), &script) {
                    open.lock().unwrap().push(silent);
                }
            }
        };
        Self { address, asked, ends, thread: Some(thread::spawn(serve)) }
    }

    /// Returns the number of requests so far.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// Sends the answer of the script; returns the connection if the script has none.
    fn say(stream: TcpStream, script: &Script) -> Option<TcpStream> {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line).unwrap() > 2 {
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let body = String::from_utf8(body).unwrap();
        let mut stream = stream;
        let Some((_, said)) = script.iter().find(|(what, _)| body.contains(what)) else {
            return Some(stream);
        };
        if said.starts_with(b"HTTP/") {
            // The client may have closed the connection.
            let mut is_open = stream.write_all(said).is_ok();
            let last = said.split(|byte| *byte == b'\n').rev().nth(1).unwrap();
            while is_open && last.len() > 1 << 20 {
                is_open = stream.write_all(last).and_then(|()| stream.write_all(b"\n")).is_ok();
            }
            return None;
        }
        let head = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
        let _ = stream.write_all(&[head.as_bytes(), said].concat());
        None
    }

    /// Starts a node whose answer begins like this and then repeats its last line for ever.
    pub(crate) fn endless(beginning: &[u8]) -> Self {
        let marked = [b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".as_slice(), beginning].concat();
        Self::new(vec![("\"ask\"", marked)])
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(&self.address));
        self.thread.take().unwrap().join().unwrap();
    }
}

pub(crate) const HEAD: &str = "{\"version\":2,\"partition\":null}\n";
pub(crate) const END: &str = "{\"end\":null}\n";
/// The end of an answer to a query of which no further rows match.
pub(crate) const END_OF_QUERY: &str = "{\"end\":0}\n";

/// Starts a node that knows a site but does not answer queries.
pub(crate) fn fake_silent() -> Fake {
    Fake::new(vec![("\"sites\"", format!("{HEAD}{{\"row\":[\"fake.test\",true]}}\n{END}").into_bytes())])
}

/// Starts a node that knows a site and gives this answer to a query.
pub(crate) fn fake(said: impl Into<Vec<u8>>) -> Fake {
    let sites = format!("{HEAD}{{\"row\":[\"fake.test\",true]}}\n{END}");
    Fake::new(vec![("\"sites\"", sites.into_bytes()), ("\"portions\"", said.into())])
}
