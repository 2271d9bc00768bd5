//! Servers whose answer is a function of host and path, for what the test web cannot do.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A head line after whose answer the connection ends, as after an empty answer.
pub(crate) const CLOSE: &str = "Connection: close\r\n";

/// A server at a free local port that answers for every host until the test ends.
pub(crate) struct Answers {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Answers {
    /// Starts a server that answers every request with the bytes that `answer` returns for its host and path.
    pub(crate) fn start(answer: impl Fn(&str, &str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::with_tags(move |host, path, _| answer(host, path))
    }

    /// The same; `answer` also gets the entity tag that the client has, or an empty string.
    pub(crate) fn with_tags(answer: impl Fn(&str, &str, &str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::with_heads(move |host, path, head| answer(host, path, field(head, "If-None-Match")))
    }

    /// The same; `answer` also gets the fields of the request, a line each, and after an empty line its body, if it has one.
    pub(crate) fn with_heads(answer: impl Fn(&str, &str, &str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (answer, log) = (Arc::new(answer), Arc::clone(&asked));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, log) = (Arc::clone(&answer), Arc::clone(&log));
                // A crawler that disconnects ends only its own connection.
                thread::spawn(move || drop(serve(&stream, &*answer, &log)));
            }
        });
        Self { address, asked }
    }

    /// Returns the options that direct every host here, without delay or full-text index and with little patience.
    pub(crate) fn at_once(&self) -> Vec<String> {
        self.with_patience("2s")
    }

    /// The same, with a patience that is too short to ask anything again if it is shorter than two seconds.
    pub(crate) fn with_patience(&self, patience: &str) -> Vec<String> {
        let options = ["--delay", "0", "--patience", patience, "--no-full-text"].map(str::to_owned);
        options.into_iter().chain(self.connection()).collect()
    }

    /// Returns the options that direct every host here.
    pub(crate) fn connection(&self) -> [String; 2] {
        ["--connect-to".to_owned(), format!("::{}", self.address)]
    }

    /// Returns the requests since the last call, as `host/path`, in order.
    pub(crate) fn take_asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

/// Returns a field of a request, or an empty string.
pub(crate) fn field<'h>(head: &'h str, name: &str) -> &'h str {
    let value = |line: &'h str| line.split_once(": ").filter(|(own, _)| *own == name).map(|(_, value)| value);
    head.lines().find_map(value).unwrap_or_default()
}

fn serve(
    mut stream: &TcpStream,
    answer: &dyn Fn(&str, &str, &str) -> Vec<u8>,
    log: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 {
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        line.clear();
        let mut head = String::new();
        while reader.read_line(&mut line)? > 2 {
            head.push_str(&line);
            line.clear();
        }
        line.clear();
        if let Ok(length) = field(&head, "Content-Length").parse() {
            let mut body = vec![0; length];
            reader.read_exact(&mut body)?;
            head.push_str("\r\n");
            head.push_str(&String::from_utf8_lossy(&body));
        }
        let host = field(&head, "Host");
        log.lock().unwrap().push(format!("{host}{path}"));
        let answer = answer(host, &path, &head);
        stream.write_all(&answer)?;
        if answer.is_empty() || memchr::memmem::find(&answer, CLOSE.as_bytes()).is_some() {
            return Ok(());
        }
    }
    Ok(())
}

/// Returns an answer with this status, these additional header lines (each with its line end), and this body.
pub(crate) fn whole(status: u16, head: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status} -\r\n{head}Content-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// Returns an answer with an HTML page.
pub(crate) fn html(body: &str) -> Vec<u8> {
    whole(200, "Content-Type: text/html; charset=utf-8\r\n", body.as_bytes())
}

/// Returns an answer with plain text, such as a robots.txt.
pub(crate) fn plain(body: &str) -> Vec<u8> {
    whole(200, "Content-Type: text/plain\r\n", body.as_bytes())
}

/// Returns a redirect.
pub(crate) fn redirect(to: &str) -> Vec<u8> {
    whole(302, &format!("Location: {to}\r\n"), b"")
}

/// Returns a 404 answer.
pub(crate) fn nothing() -> Vec<u8> {
    whole(404, "", b"")
}
