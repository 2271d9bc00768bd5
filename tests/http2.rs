//! Servers that refuse HTTP/1.1 are asked in HTTP/2: their captures are like all others, and their tricks have the same limits.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use archive_storage::segment::StoredRecord;
use archive_storage::warc::{HttpHead, split};
use archive_storage::{Capture, CaptureKind, Store};
use archive_testweb::tls::{AUTHORITY, serve_protocols_with_tls, serve_with_tls};
use bytes::Bytes;
use http::{Request, Response};

use crate::sessions::exported;
use crate::support::program::start;
use crate::support::{Archive, captures, judges};

const HOST: &str = "https://two.faults.test";

/// How a request began, and its fields in their order.
type Asked = (String, Vec<(String, String)>);

/// A server that speaks HTTP/2 to those who begin so, and answers others with `refusal`.
pub(crate) struct Http2Server {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    connections: Arc<AtomicU32>,
}

impl Http2Server {
    pub(crate) fn start(refusal: &'static [u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, asked) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<Asked>>>::default());
        let connections = Arc::<AtomicU32>::default();
        let (log, count) = (Arc::clone(&asked), Arc::clone(&connections));
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut begun = [0; 3];
                if stream.peek(&mut begun).is_ok() && begun == *b"PRI" {
                    count.fetch_add(1, Ordering::Relaxed);
                    let log = Arc::clone(&log);
                    thread::spawn(move || speak(stream, &log));
                } else {
                    let mut refuse = move || {
                        let mut request = [0; 4096];
                        if stream.read(&mut request)? > 0 {
                            stream.write_all(refusal)?;
                        }
                        stream.shutdown(Shutdown::Both)
                    };
                    thread::spawn(move || drop(refuse()));
                }
            }
        });
        Self { address, asked, connections }
    }
}

fn speak(stream: TcpStream, log: &Mutex<Vec<Asked>>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        stream.set_nonblocking(true).unwrap();
        let stream = tokio::net::TcpStream::from_std(stream).unwrap();
        let mut connection = h2::server::handshake(stream).await.unwrap();
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
            let fields = request.headers().iter();
            let fields = fields.map(|(name, value)| (name.to_string(), text(value.as_bytes()))).collect();
            log.lock().unwrap().push((format!("{} {}", request.method(), request.uri()), fields));
            let (head, body) = answer(&request);
            let mut stream = respond.send_response(head, body.is_empty()).unwrap();
            if !body.is_empty() {
                // Whoever has enough leaves.
                let _ = stream.send_data(body, true);
            }
        }
    });
}

fn answer<T>(request: &Request<T>) -> (Response<()>, Bytes) {
    let html = Response::builder().status(200).header("content-type", "text/html; charset=utf-8");
    let knows = |tag: &str| request.headers().get("if-none-match").is_some_and(|known| known == tag);
    let (head, body) = match request.uri().path() {
        "/" => {
            let page = "<title>home</title><a href=/long>l</a><a href=/empty>e</a><a href=/moved>m</a><a href='/a?b=%20`c&d'>q</a>";
            (
                html.header("set-cookie", "one=1; Path=/")
                    .header("x-between", "x")
                    .header("set-cookie", "two=2; Path=/"),
                page.into(),
            )
        }
        "/long" => (html, format!("<title>long</title>{}", "<p>words and words".repeat(60_000)).into()),
        "/tagged" if knows("\"t\"") => {
            (Response::builder().status(304).header("etag", "\"t\""), Bytes::new())
        }
        "/a" | "/tagged" => {
            (html.header("etag", "\"t\"").header("content-length", "19"), "<title>tag</title>\n".into())
        }
        "/empty" => (Response::builder().status(204), Bytes::new()),
        "/moved" => (Response::builder().status(302).header("location", "/tagged"), Bytes::new()),
        "/endless" => (html, vec![b'x'; 8 << 20].into()),
        _ => (Response::builder().status(404), Bytes::new()),
    };
    (head.body(()).unwrap(), body)
}

/// Crawls hosts below `faults.test`, each at its own address; one request at a time goes to each.
fn crawl(hosts: &[(&str, SocketAddr)], paths: &[&str], options: &[&str]) -> Archive {
    let archive = Archive::new();
    let authority = archive.file("authority.pem", AUTHORITY).display().to_string();
    let mut given = vec!["--cacert".to_owned(), authority];
    given.extend(["--delay", "0", "--per-host", "1", "--patience", "0s"].map(str::to_owned));
    for (host, address) in hosts {
        given.extend(["--connect-to".to_owned(), format!("{host}.faults.test:443:{address}")]);
    }
    given.extend(options.iter().map(|option| (*option).to_owned()));
    let seeds = hosts
        .iter()
        .flat_map(|(host, _)| paths.iter().map(move |path| format!("https://{host}.faults.test{path}")));
    let ended = start(&mut archive.crawl(&seeds.collect::<Vec<_>>(), &given)).wait();
    assert!(matches!(ended.code, Some(0 | 1 | 4)), "{}", ended.errors);
    archive
}

fn record(archive: &Archive, capture: &Capture) -> StoredRecord {
    Store::read_only(&archive.path).unwrap().record(capture.location).unwrap()
}

#[test]
fn a_server_that_speaks_nothing_but_http2_is_captured_as_others_are() {
    let server = Http2Server::start(b"");
    let secure = serve_protocols_with_tls(server.address, &["h2"]).unwrap();
    let archive = crawl(&[("two", secure)], &["/"], &["--codec", "gzip"]);
    let captured = captures(&archive.path);
    for (path, status, length) in [
        ("/", 200, 0),
        ("/long", 200, 1_080_019),
        ("/tagged", 200, 19),
        ("/empty", 204, 0),
        ("/moved", 302, 0),
    ] {
        let capture = captured.0[&format!("{HOST}{path}")][0];
        assert_eq!((capture.kind, capture.status), (CaptureKind::Response, status), "{path}");
        assert!(length == 0 || capture.length == length, "{path}: {} bytes", capture.length);
    }
    let home = record(&archive, &captured.0[&format!("{HOST}/")][0]);
    assert_eq!(home.header.get_all("WARC-Protocol").collect::<Vec<_>>(), ["h2", "tls/1.3"]);
    let text = String::from_utf8(home.content.to_vec()).unwrap();
    assert!(
        text.starts_with("HTTP/1.1 200 \r\ncontent-type: text/html; charset=utf-8\r\nset-cookie: one="),
        "{text}"
    );
    let head = HttpHead::parse(&split(&home.content).0);
    assert_eq!(head.fields.iter().filter(|(name, _)| name == "set-cookie").count(), 2);
    assert!(!text.contains("ransfer-"), "{text}");
    let records = exported(&archive);
    let of_query = "GET /a?b=%20`c&d HTTP/1.1\r\nHost: two.faults.test\r\nUser-Agent: archive";
    assert!(records.contains(of_query), "as it would be in HTTP/1.1");

    assert_eq!(server.connections.load(Ordering::Relaxed), 1, "one request after the other");
    let asked = std::mem::take(&mut *server.asked.lock().unwrap());
    let of = |path: &str| asked.iter().find(|(line, _)| *line == format!("GET {HOST}{path}")).unwrap();
    let names: Vec<_> = of("/long").1.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["user-agent", "accept", "referer", "cookie"]);
    let fields: BTreeMap<_, _> = of("/long").1.iter().cloned().collect();
    assert_eq!(
        (fields["referer"].as_str(), fields["cookie"].as_str()),
        ("https://two.faults.test/", "one=1; two=2")
    );
    assert!(asked.iter().any(|(line, _)| line.ends_with("/robots.txt")));

    let refresh =
        ["--policy", "uniform", "--budget", "9", "--shortest", "0s", "--delay", "0", "--patience", "0s"];
    let mut command = archive.command("refresh");
    command.args(refresh).arg("--cacert").arg(archive.folder().join("authority.pem"));
    start(command.args(["--allow-private", "--connect-to", &format!(":443:{secure}")])).wait().succeeded();
    let captured = captures(&archive.path);
    assert_eq!(captured.0[&format!("{HOST}/tagged")][1].kind, CaptureKind::NotModified);
    assert_eq!(captured.0[&format!("{HOST}/long")][1].kind, CaptureKind::Identical);
    archive.verify();
    if let Some(judges) = judges::find() {
        judges.check(&archive.segments());
    }
}

#[test]
fn http2_is_spoken_only_where_http1_is_refused() {
    let refusals: [&[u8]; 4] = [
        b"HTTP/1.1 505 -\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        b"HTTP/1.1 464 \r\nContent-Length: 0\r\n\r\n",
        // Frames of HTTP/2, whatever was asked; nothing at all.
        b"\0\0\0\x04\0\0\0\0\0\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\x0d",
        b"",
    ];
    let good =
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: text/html\r\nConnection: close\r\n\r\nok";
    let servers: Vec<_> = refusals.into_iter().chain([&good[..]]).map(Http2Server::start).collect();
    let names = ["a", "b", "c", "d", "e"];
    let hosts: Vec<_> = names.into_iter().zip(&servers).collect();
    let hosts = hosts.iter().map(|(name, server)| {
        (*name, serve_protocols_with_tls(server.address, &["http/1.1", "h2"]).unwrap())
    });
    let old = Http2Server::start(refusals[0]);
    let hosts: Vec<_> = hosts.chain([("old", serve_with_tls(old.address, false).unwrap())]).collect();
    let archive = crawl(&hosts, &["/"], &["--limit", "8"]);
    let captured = captures(&archive.path);
    for (name, version) in names.into_iter().zip(["h2", "h2", "h2", "h2", "http/1.1"]) {
        let capture = captured.0[&format!("https://{name}.faults.test/")][0];
        assert_eq!((capture.kind, capture.status), (CaptureKind::Response, 200), "{name}");
        assert_eq!(record(&archive, &capture).header.get("WARC-Protocol"), Some(version), "{name}");
    }
    assert_eq!(servers[4].connections.load(Ordering::Relaxed), 0);
    // Of a server that has no other protocol, the refusal is the answer.
    let robots = captured.0["https://old.faults.test/robots.txt"][0];
    assert_eq!((robots.kind, robots.status), (CaptureKind::Response, 505));
    archive.verify();
}

/// Returns a frame of a stream.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes()[..], payload].concat()
}

/// Returns a field as it is sent without compression.
fn literal(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| {
        assert!(text.len() < 127);
        [&[text.len() as u8], text.as_bytes()].concat()
    };
    [vec![0], text(name), text(value)].concat()
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// `:status: 200` and `:status: 404` of the static table.
const OK: u8 = 0x88;
const NOT_FOUND: u8 = 0x8D;

/// What a hostile server sends on a stream: something, and then something else for ever.
type Attack = fn(u32) -> (Vec<u8>, Vec<u8>);

fn attacks() -> Vec<(&'static str, bool, Attack)> {
    fn head(stream: u32, more: &[u8]) -> Vec<u8> {
        frame(HEADERS, END_HEADERS, stream, &[&[OK], more].concat())
    }
    // Name, whether there is a capture, and what is sent.
    vec![
        ("goes", false, |_| (frame(GOAWAY, 0, 0, &[0; 8]), vec![])),
        ("resets", false, |stream| (frame(RESET, 0, stream, &[0, 0, 0, 7]), vec![])),
        ("pings", false, |_| (vec![], frame(PING, 0, 0, &[7; 8]))),
        ("settles", false, |_| (vec![], frame(SETTINGS, 0, 0, &[]))),
        ("forbids", false, |_| (frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 0]), vec![])),
        ("garbles", false, |_| (vec![], (0..=255).collect())),
        ("broken-hpack", false, |stream| (frame(HEADERS, END_HEADERS, stream, &[0xFF; 40]), vec![])),
        ("continues", false, |stream| {
            let field = literal("x", &"y".repeat(100));
            (frame(HEADERS, 0, stream, &[OK]), frame(CONTINUATION, 0, stream, &field.repeat(100)))
        }),
        ("chunked", false, |stream| {
            let body = frame(DATA, END_STREAM, stream, b"5\r\nhello\r\n0\r\n\r\n");
            ([head(stream, &literal("transfer-encoding", "chunked")), body].concat(), vec![])
        }),
        ("pushes", false, |stream| {
            let promised =
                [&[0, 0, 0, 2, 0x82, 0x87, 0x84][..], &literal(":authority", "pushes.faults.test")].concat();
            (frame(PUSH_PROMISE, END_HEADERS, stream, &promised), vec![])
        }),
        ("silent-body", true, |stream| (head(stream, &[]), vec![])),
        ("empty-body", true, |stream| (head(stream, &[]), frame(DATA, 0, stream, &[]))),
        ("floods", true, |stream| (head(stream, &[]), frame(DATA, 0, stream, &[b'x'; 16_384]))),
        ("pads", true, |stream| {
            (head(stream, &[]), frame(DATA, 8, stream, &[&[255][..], &[0; 255]].concat()))
        }),
        ("too-long", true, |stream| {
            let body = frame(DATA, 0, stream, &[b'x'; 10]);
            ([head(stream, &literal("content-length", "5")), body].concat(), vec![])
        }),
        ("too-short", true, |stream| {
            let body = frame(DATA, END_STREAM, stream, b"xxx");
            ([head(stream, &literal("content-length", "5")), body].concat(), vec![])
        }),
        ("reset-body", true, |stream| {
            let sent =
                [head(stream, &[]), frame(DATA, 0, stream, b"part"), frame(RESET, 0, stream, &[0, 0, 0, 2])];
            (sent.concat(), vec![])
        }),
    ]
}

/// Serves nothing but a robots.txt that does not exist, and an attack.
fn hostile(attack: Attack) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answered = Arc::new(AtomicU32::new(0));
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let answered = Arc::clone(&answered);
            // A crawler that has enough closes the connection.
            thread::spawn(move || drop(attack_with(&mut stream, attack, &answered)));
        }
    });
    address
}

fn attack_with(stream: &mut TcpStream, attack: Attack, answered: &AtomicU32) -> std::io::Result<()> {
    stream.read_exact(&mut [0; 24])?;
    stream.write_all(&frame(SETTINGS, 0, 0, &[]))?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head)?;
        let [a, b, c, kind, _, number @ ..] = head;
        stream.read_exact(&mut vec![0; u32::from_be_bytes([0, a, b, c]) as usize])?;
        let number = u32::from_be_bytes(number);
        match kind {
            HEADERS if answered.fetch_add(1, Ordering::Relaxed) == 0 => {
                stream.write_all(&frame(HEADERS, END_HEADERS | END_STREAM, number, &[NOT_FOUND]))?;
            }
            HEADERS => {
                let (first, always) = attack(number);
                stream.write_all(&first)?;
                while !always.is_empty() {
                    stream.write_all(&always)?;
                }
            }
            _ => {}
        }
    }
}

#[test]
fn the_tricks_of_http2_have_the_limits_of_all_answers() {
    let attacks = attacks();
    let hosts: Vec<_> = attacks
        .iter()
        .map(|(name, _, attack)| (*name, serve_protocols_with_tls(hostile(*attack), &["h2"]).unwrap()))
        .collect();
    let archive = crawl(&hosts, &["/"], &["--timeout", "2s", "--max-time", "4s", "--max-body", "1"]);
    let captured = captures(&archive.path);
    for (name, has_capture, _) in &attacks {
        let url = format!("https://{name}.faults.test/");
        let why = archive.json("why", &[&url]).remove(0);
        let capture = captured.0.get(&url).unwrap_or_else(|| panic!("{why}"))[0];
        if !has_capture {
            assert_eq!(capture.kind, CaptureKind::Failed, "{why}");
            continue;
        }
        assert_eq!(capture.kind, CaptureKind::Response, "{why}");
        assert!(capture.length <= 1 << 20, "{name}: {} bytes", capture.length);
        let truncated = record(&archive, &capture).header.get("WARC-Truncated").map(str::to_owned);
        println!("{name}: {truncated:?}, {} bytes", capture.length);
        assert!(truncated.is_some(), "{name}");
    }
    archive.verify();
}

#[test]
fn a_body_that_is_too_long_is_cut_and_the_server_is_told() {
    let server = Http2Server::start(b"");
    let secure = serve_protocols_with_tls(server.address, &["h2"]).unwrap();
    let archive = crawl(&[("two", secure)], &["/endless", "/tagged"], &["--max-body", "1"]);
    let captured = captures(&archive.path);
    let capture = captured.0[&format!("{HOST}/endless")][0];
    assert_eq!(capture.length, 1 << 20);
    assert_eq!(record(&archive, &capture).header.get("WARC-Truncated"), Some("length"));
    assert_eq!(captured.0[&format!("{HOST}/tagged")][0].status, 200);
    archive.verify();
}
