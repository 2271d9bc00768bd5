//! A server of pages generated for one test.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Pages by path, with their media types.
pub(crate) type Pages = HashMap<String, (&'static str, Vec<u8>)>;

/// Serves pages until the test ends.
pub(crate) struct PageServer {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl PageServer {
    /// Serves pages on a free local port, for any host; other paths are not found.
    pub(crate) fn start(pages: Pages) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (pages, noted) = (Arc::new(pages), Arc::clone(&asked));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (pages, noted) = (Arc::clone(&pages), Arc::clone(&noted));
                // Clients may disconnect at any time.
                thread::spawn(move || drop(answer(stream, &pages, &noted)));
            }
        });
        Self { address, asked }
    }

    /// Returns the options that direct a crawl of every host here, without delay.
    pub(crate) fn options(&self) -> Vec<String> {
        let connect = format!("::{}", self.address);
        ["--delay", "0", "--connect-to", &connect].map(str::to_owned).to_vec()
    }

    /// Returns the requested paths, in order.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn answer(mut stream: TcpStream, pages: &Pages, asked: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let path = first.split(' ').nth(1).unwrap_or_default();
    asked.lock().unwrap().push(path.to_owned());
    let (status, media_type, body) = match pages.get(path) {
        Some((media_type, body)) => ("200 OK", *media_type, &body[..]),
        None => ("404 Not Found", "text/plain", &b""[..]),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    stream.write_all(body)
}
