//! An S3 server (moto), and a faulty proxy in front of it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::judges;

/// Timeout for the start of the server.
const START_MAX: Duration = Duration::from_secs(120);

/// Bucket of the tests.
pub(crate) const BUCKET: &str = "backup";

/// A running server.
pub(crate) struct S3 {
    server: Child,
    pub(crate) address: SocketAddr,
}

impl S3 {
    /// Starts a server with an empty bucket; `None` if it is not installed.
    pub(crate) fn start(folder: &Path) -> Option<Self> {
        let judges = judges::find().filter(|judges| judges.have("moto_server"))?;
        let begun = Instant::now();
        let path = folder.join("moto.log");
        let log = File::create(&path).unwrap();
        let mut command = judges.program("moto_server");
        // It takes a free port and names it.
        command.args(["-H", "127.0.0.1", "-p", "0"]);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let mut server =
            Self { server: command.spawn().unwrap(), address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        let named = || {
            let log = fs::read_to_string(&path).unwrap();
            let (_, rest) = log.split_once("Running on http://")?;
            rest.split_once('\n')?.0.trim().parse().ok()
        };
        loop {
            server.address = named().unwrap_or(server.address);
            if server.address.port() > 0 && server.put_bucket() {
                return Some(server);
            }
            assert!(begun.elapsed() < START_MAX, "moto does not begin; see moto.log");
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn put_bucket(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(self.address) else { return false };
        let authority = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request";
        let request = format!(
            "PUT /{BUCKET} HTTP/1.1\r\nHost: {}\r\nAuthorization: {authority}, SignedHeaders=host, Signature=0\r\n\
             Content-Length: 0\r\nConnection: close\r\n\r\n",
            self.address
        );
        let mut answer = String::new();
        stream.write_all(request.as_bytes()).is_ok()
            && stream.read_to_string(&mut answer).is_ok()
            && answer.starts_with("HTTP/1.1 200")
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        // It has ended by itself, or ends now.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Directs a command to a server.
pub(crate) fn to(address: SocketAddr, command: &mut Command) -> &mut Command {
    command
        .env("AWS_ENDPOINT_URL", format!("http://{address}"))
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "secret-of-the-test")
        .env("AWS_REGION", "us-east-1")
        .env("AWS_READ_TIMEOUT", "1s")
        .env_remove("AWS_PROFILE")
}

/// What happens to a request in the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The request arrives, and so does its answer.
    Pass,
    /// The request does not arrive; the proxy sends this answer instead and closes the connection.
    Answer(Vec<u8>),
    /// The request does not arrive and gets no answer.
    Cut,
    /// The request arrives, but its answer is lost.
    LoseAnswer,
    /// The request arrives, but only this many bytes of its answer do.
    CutAnswer(usize),
    /// The request does not arrive, and the connection stays open for this long.
    Stall(Duration),
}

type Decide = dyn Fn(&str) -> Fate + Send + Sync;

/// A proxy in front of a server.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// Starts a proxy to a server; `decide` gets the method and the path of each request.
    pub(crate) fn start(server: SocketAddr, decide: impl Fn(&str) -> Fate + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (decide, log): (Arc<Decide>, _) = (Arc::new(decide), Arc::clone(&asked));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (decide, log) = (Arc::clone(&decide), Arc::clone(&log));
                // A client that disconnects ends only its own connection.
                thread::spawn(move || drop(lead(&stream, server, &*decide, &log)));
            }
        });
        Self { address, asked }
    }

    /// Returns the method and path of each request so far.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// Reads a head and the body after it, by its length.
fn message(reader: &mut impl BufRead, is_answer_to_head: bool) -> std::io::Result<(Vec<u8>, Vec<u8>)> {
    let (mut head, mut length, mut is_continued) = (Vec::new(), 0, false);
    loop {
        let mut line = Vec::new();
        if reader.read_until(b'\n', &mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let text = String::from_utf8_lossy(&line).to_ascii_lowercase();
        if let Some(value) = text.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        is_continued |= head.is_empty() && text.contains(" 100 ");
        // Each connection serves one request, so that each request has its own fate.
        if !text.starts_with("connection:") {
            if line == b"\r\n" {
                head.extend_from_slice(b"Connection: close\r\n");
            }
            head.extend_from_slice(&line);
        }
        if line == b"\r\n" && is_continued {
            (head, length, is_continued) = (Vec::new(), 0, false);
        } else if line == b"\r\n" {
            break;
        }
    }
    let mut body = vec![0; if is_answer_to_head { 0 } else { length }];
    reader.read_exact(&mut body)?;
    Ok((head, body))
}

fn lead(
    mut client: &TcpStream,
    server: SocketAddr,
    decide: &Decide,
    log: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let (head, body) = message(&mut BufReader::new(client), false)?;
    let text = String::from_utf8_lossy(&head).into_owned();
    let line: String = text.split(' ').take(2).collect::<Vec<_>>().join(" ");
    log.lock().unwrap().push(line.clone());
    let fate = decide(&line);
    match &fate {
        Fate::Answer(answer) => {
            client.write_all(answer)?;
            return client.shutdown(Shutdown::Write);
        }
        Fate::Cut => return client.shutdown(Shutdown::Both),
        Fate::Stall(span) => {
            thread::sleep(*span);
            return client.shutdown(Shutdown::Both);
        }
        Fate::Pass | Fate::LoseAnswer | Fate::CutAnswer(_) => {}
    }
    let mut upstream = TcpStream::connect(server)?;
    upstream.write_all(&head)?;
    upstream.write_all(&body)?;
    let (head, body) = message(&mut BufReader::new(&upstream), line.starts_with("HEAD"))?;
    let answer = [head, body].concat();
    let whole = answer.len();
    let sent = match fate {
        Fate::LoseAnswer => 0,
        Fate::CutAnswer(bytes) => bytes.min(whole),
        _ => whole,
    };
    client.write_all(&answer[..sent])?;
    client.shutdown(Shutdown::Both)
}
