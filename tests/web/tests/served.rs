//! The test web as seen by a client on the network: headers, conditional requests, connections, and every fault.
#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use archive_testweb::{Clock, Config, Form, HostIndex, PageIndex, Server, Web, faults, tls};

/// Longer than a loaded machine takes for any answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a test waits to see that nothing happens.
const MOMENT: Duration = Duration::from_millis(50);

fn serve(config: Config) -> (Arc<Web>, Server) {
    let web = Arc::new(Web::new(config).unwrap());
    let server = Server::start(Arc::clone(&web), "127.0.0.1:0".parse().unwrap()).unwrap();
    (web, server)
}

/// A client's connection.
struct Client(TcpStream);

/// One answer of a server.
#[derive(Debug)]
struct Answer {
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    fn status(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }
}

impl Client {
    fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(stream)
    }

    fn send(&mut self, request: &str) {
        self.0.write_all(request.as_bytes()).unwrap();
    }

    /// Requests a URL with additional header lines.
    fn get(&mut self, url: &str, headers: &str) -> Answer {
        let rest = url.strip_prefix("http://").unwrap();
        let (host, path) = rest.split_at(rest.find('/').unwrap());
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n"));
        self.answer()
    }

    /// Reads one correct answer.
    fn answer(&mut self) -> Answer {
        let head = self.head();
        let mut answer = Answer { head, body: Vec::new() };
        if let Some(length) = answer.header("Content-Length") {
            answer.body.resize(length.parse().unwrap(), 0);
            self.0.read_exact(&mut answer.body).unwrap();
        } else if answer.header("Transfer-Encoding") == Some("chunked") {
            loop {
                let length = usize::from_str_radix(&self.line(), 16).unwrap();
                let start = answer.body.len();
                answer.body.resize(start + length, 0);
                self.0.read_exact(&mut answer.body[start..]).unwrap();
                assert_eq!(self.line(), "");
                if length == 0 {
                    break;
                }
            }
        }
        answer
    }

    fn head(&mut self) -> String {
        let mut head = String::new();
        loop {
            match self.line() {
                line if line.is_empty() => return head,
                line => head += &(line + "\n"),
            }
        }
    }

    fn line(&mut self) -> String {
        let mut line = Vec::new();
        let mut byte = [0];
        while !line.ends_with(b"\r\n") {
            self.0.read_exact(&mut byte).unwrap();
            line.push(byte[0]);
        }
        String::from_utf8_lossy(&line[..line.len() - 2]).into_owned()
    }

    /// Reads until the server closes the connection, has sent `most` bytes, or pauses for longer than `patience`.
    fn rest(&mut self, most: usize, patience: Duration) -> (Vec<u8>, End) {
        self.0.set_read_timeout(Some(patience)).unwrap();
        let mut bytes = Vec::new();
        let mut buffer = vec![0; 64 * 1024];
        while bytes.len() < most {
            match self.0.read(&mut buffer) {
                Ok(0) => return (bytes, End::Closed),
                Ok(read) => bytes.extend_from_slice(&buffer[..read]),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return (bytes, End::Silent);
                }
                Err(_) => return (bytes, End::Reset),
            }
        }
        (bytes, End::Flooding)
    }
}

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Closed,
    Reset,
    Silent,
    Flooding,
}

#[test]
fn one_connection_takes_many_requests() {
    let (web, server) = serve(Config { chunked_share: 0.5, ..Config::sized(1, 10, 300) });
    let mut client = Client::connect(server.address());
    let mut chunked = 0;
    for page in (0..web.pages()).map(PageIndex) {
        let answer = client.get(&web.url(page), "");
        assert_eq!(answer.status(), "200");
        let end: &[u8] = if web.form(page) == Form::Html { b"</html>\n" } else { b"</article>\n" };
        assert!(answer.body.ends_with(end), "{}", web.url(page));
        chunked += u32::from(answer.header("Transfer-Encoding").is_some());
    }
    assert!((100..200).contains(&chunked), "{chunked}");
    assert_eq!(server.requests(), web.pages());
}

#[test]
fn requests_sent_ahead_are_answered_in_order() {
    let (web, server) = serve(Config::plain(1, 10, 300));
    let mut client = Client::connect(server.address());
    let urls: Vec<String> = (0..100).map(|page| web.url(PageIndex(page))).collect();
    // The last request arrives in two pieces.
    let requests: String =
        urls.iter().map(|url| format!("GET {url} HTTP/1.1\r\nHost: proxy\r\n\r\n")).collect();
    let (first, second) = requests.split_at(requests.len() - 10);
    client.send(first);
    client.send(second);
    for url in urls {
        let title = format!("– {}</title>", &url[7..].split('/').next().unwrap());
        let answer = client.answer();
        assert_eq!(answer.status(), "200", "{url}");
        assert!(String::from_utf8_lossy(&answer.body).contains(&title), "{url}");
    }
}

#[test]
fn conditions_are_answered_rightly() {
    let config =
        Config { validator_share: 1.0, noise_share: 0.0, chunked_share: 0.0, ..Config::sized(1, 10, 300) };
    let clock = Clock::simulated(config.start + chrono::TimeDelta::days(100));
    let (web, server) = serve(Config { clock: clock.clone(), ..config });
    let page = (0..web.pages())
        .map(PageIndex)
        .find(|page| !web.changes(*page, clock.now(), clock.now() + chrono::TimeDelta::days(30)).is_empty())
        .unwrap();
    let url = web.url(page);
    let mut client = Client::connect(server.address());
    let first = client.get(&url, "");
    let (tag, modified) = (first.header("ETag").unwrap(), first.header("Last-Modified").unwrap());
    assert_eq!(
        modified,
        web.last_modified(page, clock.now()).format("%a, %d %b %Y %H:%M:%S GMT").to_string()
    );
    let mut status = |headers: String| client.get(&url, &headers).status().to_owned();
    let old = "Sun, 06 Nov 1994 08:49:37 GMT";
    assert_eq!(status(format!("If-None-Match: {tag}\r\n")), "304");
    assert_eq!(status(format!("If-None-Match: \"other\", W/{}\r\n", tag.trim_start_matches("W/"))), "304");
    assert_eq!(status("If-None-Match: \"other\"\r\n".into()), "200");
    assert_eq!(status("If-None-Match: *\r\n".into()), "304");
    assert_eq!(status(format!("If-Modified-Since: {modified}\r\n")), "304");
    assert_eq!(status(format!("If-Modified-Since: {old}\r\n")), "200");
    assert_eq!(status("If-Modified-Since: yesterday\r\n".into()), "200");
    assert_eq!(status(format!("If-None-Match: \"other\"\r\nIf-Modified-Since: {modified}\r\n")), "200");
    assert_eq!(status(format!("If-None-Match: {tag}\r\nIf-Modified-Since: {old}\r\n")), "304");
    clock.advance(chrono::TimeDelta::days(30));
    assert_eq!(status(format!("If-None-Match: {tag}\r\n")), "200");
    assert_eq!(status(format!("If-Modified-Since: {modified}\r\n")), "200");
}

#[test]
fn every_kind_of_request_is_understood() {
    let (web, server) = serve(Config { chunked_share: 0.0, gzip_share: 1.0, ..Config::sized(1, 10, 300) });
    let url = web.url(PageIndex(5));
    let (host, path) = url[7..].split_once('/').unwrap();
    let ask = |request: String| {
        let mut client = Client::connect(server.address());
        client.send(&request);
        let (bytes, end) = client.rest(1 << 20, PATIENCE);
        (String::from_utf8_lossy(&bytes).into_owned(), end)
    };
    let (head, end) = ask(format!("HEAD /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"));
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\n")
            && head.ends_with("\r\n\r\n")
            && head.contains("Content-Length: ")
    );
    assert_eq!(end, End::Closed);
    let (old, end) = ask(format!("GET /{path} HTTP/1.0\r\nHost: {host}\r\n\r\n"));
    assert!(old.contains("</html>") && end == End::Closed);
    let (port, _) = ask(format!(
        "GET /{path} HTTP/1.1\r\nHost: {}:8080\r\nConnection: close\r\n\r\n",
        host.to_uppercase()
    ));
    assert!(port.starts_with("HTTP/1.1 200 "));
    let (post, _) = ask(format!("POST /{path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 2\r\n\r\nab"));
    assert!(post.starts_with("HTTP/1.1 405 ") && post.contains("Allow: GET, HEAD\r\n"));
    let (unknown, _) = ask("GET / HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n".into());
    assert!(unknown.starts_with("HTTP/1.1 421 "));
    let (garbage, end) = ask("\u{1}\u{2}\u{3}\r\n\r\n".into());
    assert!(garbage.starts_with("HTTP/1.1 400 ") && end == End::Closed);

    let packed = Client::connect(server.address()).get(&url, "Accept-Encoding: br, gzip\r\n");
    assert_eq!(packed.header("Content-Encoding"), Some("gzip"));
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed.body.as_slice()).read_to_string(&mut text).unwrap();
    assert!(text.ends_with("</html>\n"));
}

#[test]
fn arrivals_are_recorded_with_both_ends() {
    let web = Arc::new(Web::new(Config::plain(1, 10, 300)).unwrap());
    let addresses = ["127.0.0.1:0", "127.0.0.2:0"].map(|address| address.parse().unwrap());
    let server = Server::start_on(Arc::clone(&web), &addresses, 1).unwrap();
    let home = web.url(web.home(HostIndex(3)));
    let mut clients: Vec<Client> = server.addresses().iter().copied().map(Client::connect).collect();
    clients[0].get(&home, "");
    server.record_arrivals(true);
    for client in &mut clients {
        client.get(&format!("{home}robots.txt"), "");
    }
    let arrivals = server.take_arrivals();
    assert_eq!(arrivals.len(), 2, "only what came after recording began");
    for ((arrival, client), address) in arrivals.iter().zip(&clients).zip(server.addresses()) {
        assert_eq!(
            (arrival.host.as_str(), arrival.path.as_str()),
            (web.host_name(HostIndex(3)).as_str(), "/robots.txt")
        );
        assert_eq!((arrival.peer, arrival.local), (client.0.local_addr().unwrap(), *address));
    }
    assert!(arrivals[0].time <= arrivals[1].time);
    assert!(server.take_arrivals().is_empty());
}

#[test]
fn the_clock_can_be_moved_from_outside() {
    let config = Config::sized(1, 10, 300);
    let start = config.start;
    let (web, server) = serve(Config { clock: Clock::simulated(start), ..config });
    let mut client = Client::connect(server.address());
    assert_eq!(client.get("http://clock.test/", "").body, b"2025-01-01T00:00:00+00:00\n");
    assert_eq!(client.get("http://clock.test/advance?days=2", "").body, b"2025-01-03T00:00:00+00:00\n");
    assert_eq!(client.get("http://clock.test/advance?seconds=90", "").body, b"2025-01-03T00:01:30+00:00\n");
    assert_eq!(client.get("http://clock.test/advance?days=x", "").status(), "404");
    assert_eq!(web.clock().now() - start, chrono::TimeDelta::seconds(2 * 86_400 + 90));
    let (_, real) = serve(Config::sized(1, 10, 300));
    assert_eq!(Client::connect(real.address()).get("http://clock.test/advance?days=2", "").status(), "409");
}

#[test]
fn a_stopped_server_is_gone() {
    let (web, server) = serve(Config::plain(1, 10, 300));
    let address = server.address();
    let mut client = Client::connect(address);
    client.get(&web.url(PageIndex(0)), "");
    server.stop();
    assert_eq!(client.rest(1, PATIENCE).1, End::Closed);
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn every_fault_leaves_the_server_well() {
    let (web, server) = serve(Config::plain(1, 10, 300));
    let home = web.url(PageIndex(0));
    let mut silent = Vec::new();
    for listed in faults::FAULTS.iter().copied().flatten() {
        let path = listed.path.replace("{n}", "3");
        let mut client = Client::connect(server.address());
        client.send(&format!("GET {path} HTTP/1.1\r\nHost: faults.test\r\nConnection: close\r\n\r\n"));
        let patience = if path == "/hang" { MOMENT } else { PATIENCE };
        if client.rest(1, patience).1 == End::Silent {
            silent.push(path);
        }
        client.rest(4 << 20, MOMENT);
        assert_eq!(Client::connect(server.address()).get(&home, "").status(), "200");
    }
    assert_eq!(silent, ["/hang"], "all others send something or hang up");
    for case in faults::ROBOTS_HOSTS {
        let mut client = Client::connect(server.address());
        client.send(&format!("GET /robots.txt HTTP/1.1\r\nHost: {}.faults.test\r\n\r\n", case.name));
        let patience = if case.name == "robots-hang" { MOMENT } else { PATIENCE };
        let (bytes, end) = client.rest(1, patience);
        client.rest(4 << 20, MOMENT);
        assert!(
            !bytes.is_empty() || matches!(case.name, "robots-hang" | "robots-reset"),
            "{case:?} ended {end:?}"
        );
        let page =
            Client::connect(server.address()).get(&format!("http://{}.faults.test/page", case.name), "");
        assert_eq!(page.status(), "200");
    }
}

#[test]
fn faults_do_what_they_say() {
    let (_, server) = serve(Config::plain(1, 10, 300));
    let ask = |path: &str, most: usize| {
        let mut client = Client::connect(server.address());
        client.send(&format!("GET {path} HTTP/1.1\r\nHost: faults.test\r\nConnection: close\r\n\r\n"));
        let (bytes, end) = client.rest(most, PATIENCE);
        (bytes, end, client)
    };
    let body =
        |bytes: &[u8]| bytes.len() - bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap() - 4;

    let (bytes, end, _) = ask("/early-close", 1 << 20);
    assert_eq!((body(&bytes), end), (1000, End::Closed));
    assert_eq!(ask("/early-reset", 1 << 20).1, End::Reset);
    for (path, expected) in [("/reset", End::Reset), ("/no-answer", End::Closed)] {
        let (bytes, end, _) = ask(path, 1 << 20);
        assert_eq!((bytes.len(), end), (0, expected), "{path}");
    }
    let (_, _, mut client) = ask("/hang", 0);
    let (bytes, end) = client.rest(1, MOMENT);
    assert_eq!((bytes.len(), end), (0, End::Silent));
    let (bytes, _, mut client) =
        ask("/hang-in-body", "HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n".len() + 1000);
    assert_eq!(body(&bytes), 1000);
    assert_eq!(client.rest(1, MOMENT), (Vec::new(), End::Silent));
    for endless in ["/endless", "/endless-plain", "/header-endless", "/continue-forever"] {
        assert_eq!(ask(endless, 8 << 20).1, End::Flooding, "{endless}");
    }
    assert!(ask("/http09", 1 << 20).0.starts_with(b"<!DOCTYPE html>"));
    let (bytes, _, _) = ask("/header-flood", 32 << 20);
    assert_eq!(bytes.windows(8).filter(|window| window == b"X-Flood:").count(), 1_000_000);
    let (bytes, _, _) = ask("/large/3", 32 << 20);
    assert_eq!(body(&bytes), 3 << 20);
    let (bytes, _, _) = ask("/many-links", 32 << 20);
    assert_eq!(bytes.windows(9).filter(|window| window == b"<a href=\"").count(), 100_000);

    let mut client = Client::connect(server.address());
    let mut get = |path: &str| client.get(&format!("http://faults.test{path}"), "");
    assert_eq!(get("/status/451").status(), "451");
    assert_eq!(get("/status/503?retry-after=7").header("Retry-After"), Some("7"));
    assert_eq!(get("/redirect-endless/41").header("Location"), Some("/redirect-endless/42"));
    assert_eq!(get("/redirect-chain/1").header("Location"), Some("/redirect-chain/0"));
    assert_eq!(get("/redirect-chain/0").status(), "200");
    let statuses: Vec<String> = (0..4).map(|_| get("/recovers/2").status().to_owned()).collect();
    assert_eq!(statuses, ["503", "503", "200", "200"]);
    assert_eq!(get("/nothing-of-this-name").status(), "404");
    assert!(String::from_utf8_lossy(&get("/").body).contains("href=\"/bomb\""));
}

/// Connects over TLS as a client that trusts only the web's authority.
fn ask_by_tls(address: SocketAddr, host: &str) -> Result<String, rustls::Error> {
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, ServerName};

    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(tls::AUTHORITY.as_bytes()).unwrap())?;
    let config =
        rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).unwrap();
    let mut session = rustls::ClientConnection::new(Arc::new(config), name)?;
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut stream = rustls::Stream::new(&mut session, &mut socket);
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let mut answer = Vec::new();
    match stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_end(&mut answer)) {
        Ok(_) => Ok(String::from_utf8_lossy(&answer).into_owned()),
        Err(error) => Err(*error.into_inner().expect("TLS says why").downcast().expect("an error of rustls")),
    }
}

#[test]
fn certificates_are_right_or_wrong_in_one_way() {
    use rustls::CertificateError::{self, UnknownIssuer};

    let (web, server) = serve(Config::plain(1, 10, 300));
    let host = web.host_name(HostIndex(2));
    let ask =
        |certificate| ask_by_tls(server.add_tls("127.0.0.1:0".parse().unwrap(), certificate).unwrap(), &host);
    let answer = ask(tls::Certificate::Right).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("</html>\n"));
    let refusal = |certificate| match ask(certificate) {
        Err(rustls::Error::InvalidCertificate(error)) => error,
        other => panic!("{certificate:?} gave {other:?}"),
    };
    assert!(matches!(refusal(tls::Certificate::Expired), CertificateError::ExpiredContext { .. }));
    assert!(matches!(refusal(tls::Certificate::WrongName), CertificateError::NotValidForNameContext { .. }));
    assert_eq!(refusal(tls::Certificate::SelfSigned), UnknownIssuer);
    // The plain port answers a TLS client hello with bytes that are not TLS.
    assert!(matches!(ask_by_tls(server.address(), &host), Err(rustls::Error::InvalidMessage(_))));
}
