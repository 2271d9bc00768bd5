//! Clients that never read, and clients that ask for much, keep nobody else out, and a long record costs no memory.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::imports::import;
use crate::support::Archive;
use crate::support::program::{start, within};
use crate::support::served::{Served, ask};
use crate::support::small_disk::SmallDisk;
use crate::support::warc::{answer, response};

/// Deadline for everything that is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes of a body that is too long to be kept for many clients, or to be read or rewritten whole.
const LONG_BYTES: usize = 20 << 20;

/// What all answers and the records they are made from may take, in MiB: a fraction of the long bodies of all clients.
const MEMORY_MIB: u64 = 640;

const LONG: &str = "http://long.test/";

/// The bytes of the long body from a place on: each eight tell their place.
fn long(from: usize, count: usize) -> Vec<u8> {
    let words = from / 8..(from + count).div_ceil(8);
    let bytes: Vec<u8> = words.flat_map(|word| (word as u64).to_be_bytes()).collect();
    bytes[from % 8..][..count].to_vec()
}

/// An archive with a long body as it is, one in chunks, and one that says that it is coded.
fn archive(bytes: usize) -> Archive {
    let archive = Archive::new();
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    let chunked: Vec<u8> = (0..bytes)
        .step_by(1 << 20)
        .flat_map(|from| [b"100000\r\n", &long(from, 1 << 20)[..], b"\r\n"].concat())
        .chain(*b"0\r\n\r\n")
        .collect();
    for (name, fields, body) in [
        ("plain", "", long(0, bytes)),
        ("chunked", "Transfer-Encoding: chunked\r\n", chunked),
        ("coded", "Content-Encoding: gzip\r\n", long(0, bytes)),
    ] {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n{fields}\r\n");
        let stated = format!(
            "WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:test:{name}>\r\nWARC-Date: 2024-01-01T00:00:00Z\r\n\
             WARC-Target-URI: {LONG}{name}\r\nContent-Type: application/http; msgtype=response\r\n\
             Content-Length: {}\r\n\r\n{head}",
            head.len() + body.len()
        );
        packer.write_all(stated.as_bytes()).unwrap();
        packer.write_all(&body).unwrap();
        packer.write_all(b"\r\n\r\n").unwrap();
        // A record, a member.
        let member = std::mem::replace(&mut packer, GzEncoder::new(Vec::new(), Compression::fast()));
        let file = archive.file(&format!("{name}.warc.gz"), member.finish().unwrap());
        let done = start(archive.command("import").args(["--no-repack", "--json"]).arg(file)).wait();
        assert!(matches!(done.code, Some(0 | 1)), "{}", done.errors);
    }
    archive
}

fn served(archive: &Archive) -> Served {
    let mut command = archive.command("serve");
    command.args(["--listen", "127.0.0.1:0", "--replay-listen", "127.0.0.1:0"]);
    Served::spawn(&mut within("--as=4294967296", &command), 1)
}

/// Peak memory of a server in MiB.
fn peak(served: &Served) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", served.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap() >> 10
}

/// Number of connections that a server has.
fn connections(served: &Served) -> usize {
    let files = std::fs::read_dir(format!("/proc/{}/fd", served.id())).unwrap().flatten();
    let names = files.filter_map(|file| std::fs::read_link(file.path()).ok());
    names.filter(|name| name.to_string_lossy().starts_with("socket:")).count()
}

/// Clients that send a request over and over and never read.
fn unread(address: &str, request: &str, clients: usize, times: usize) -> Vec<TcpStream> {
    let requests = request.repeat(times);
    let one = |_| {
        let mut client = TcpStream::connect(address).unwrap();
        client.set_nonblocking(true).unwrap();
        match client.write(requests.as_bytes()) {
            // Whoever has just come may be the one that makes room.
            Err(error) => assert!(
                matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
                ),
                "{error}"
            ),
            Ok(sent) => assert!(sent >= request.len()),
        }
        client
    };
    (0..clients).map(one).collect()
}

#[test]
fn clients_that_never_read_keep_nobody_out() {
    let archive = Archive::new();
    import(&archive, &[("a.warc", response("urn:test:1", "http://a.test/", "2024-01-01T00:00:00Z", "<p>a"))]);
    let served = served(&archive);
    let before = connections(&served);
    let request = format!("GET /style.css HTTP/1.1\r\nHost: {}\r\n\r\n", served.application);
    let clients = unread(&served.application, &request, 600, 2000);
    let replay = format!("GET /static/replay.js HTTP/1.1\r\nHost: {}\r\n\r\n", served.replay);
    let others = unread(&served.replay, &replay, 100, 2000);
    let began = Instant::now();
    while connections(&served) > before + 8 {
        // Everybody else is served all the time, and not after those that do not read are given up.
        for (address, path) in [
            (&served.application, "/health"),
            (&served.application, "/"),
            (&served.replay, "/static/worker.js"),
        ] {
            let answer = ask(address, "GET", path, &[]);
            assert_eq!(answer.status, 200, "{path} after {:?}", began.elapsed());
        }
        assert!(began.elapsed() < PATIENCE, "{} connections", connections(&served));
        thread::sleep(Duration::from_millis(100));
    }
    drop((clients, others));
    assert!(peak(&served) < MEMORY_MIB, "{} MiB", peak(&served));
}

#[test]
fn costly_queries_delay_no_health_and_no_start_page() {
    let archive = Archive::new();
    let pages: Vec<u8> = (0..3000)
        .flat_map(|number| {
            let (id, url) = (format!("urn:test:{number}"), format!("http://a.test/{number}"));
            response(&id, &url, "2024-01-01T00:00:00Z", &format!("<title>{number}</title><p>words {number}"))
        })
        .collect();
    import(&archive, &[("a.warc", pages)]);
    let served = served(&archive);
    let query = "page text contains words or title matches \"(1|2|3)*9\" select url, title";
    let path =
        format!("/query?q={}", url::form_urlencoded::byte_serialize(query.as_bytes()).collect::<String>());
    assert_eq!(ask(&served.application, "GET", &path, &[]).status, 200);
    let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", served.application);
    let clients = unread(&served.application, &request, 40, 50);
    let mut slowest = Duration::ZERO;
    for path in ["/health", "/"].repeat(50) {
        let began = Instant::now();
        assert_eq!(ask(&served.application, "GET", path, &[]).status, 200);
        slowest = slowest.max(began.elapsed());
    }
    println!("{slowest:?} at most");
    assert!(slowest < Duration::from_secs(20), "{slowest:?}");
    drop(clients);
}

/// What long answers to queries may take in memory beside what the server takes anyway, in MiB: less than two of three.
const ANSWERS_MIB: u64 = 48;

#[test]
fn long_answers_to_queries_take_no_memory() {
    const PAGES: usize = 120;
    const COLUMNS: usize = 1000;
    let archive = Archive::new();
    let title = "herons ".repeat(40);
    let pages: Vec<u8> = (0..PAGES)
        .flat_map(|number| {
            let (id, url) = (format!("urn:test:{number}"), format!("http://a.test/{number}"));
            response(&id, &url, "2024-01-01T00:00:00Z", &format!("<title>{title}{number}</title>"))
        })
        .collect();
    import(&archive, &[("a.warc", pages)]);
    let served = served(&archive);
    let path = |columns: usize, format: &str| {
        let query = format!("page limit {PAGES} select url{}", ", title".repeat(columns));
        let query: String = url::form_urlencoded::byte_serialize(query.as_bytes()).collect();
        format!("/query?q={query}&format={format}")
    };
    assert_eq!(ask(&served.application, "GET", &path(1, "csv"), &[]).status, 200);
    let before = peak(&served);
    let request = |format: &str| {
        format!("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", path(COLUMNS, format), served.application)
    };
    let clients = unread(&served.application, &request("csv"), 2, 1);
    let csv = ask(&served.application, "GET", &path(COLUMNS, "csv"), &[]);
    assert_eq!((csv.status, csv.body.iter().filter(|byte| **byte == b'\n').count()), (200, PAGES + 1));
    assert!(csv.body.len() > PAGES * COLUMNS * title.len());
    println!("{before} MiB, then {} MiB", peak(&served));
    assert!(peak(&served) < before + ANSWERS_MIB, "{before} MiB, then {} MiB", peak(&served));
    drop(clients);
    let json = ask(&served.application, "GET", &path(1, "json"), &[]);
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&json.body).unwrap();
    assert!(rows.len() == PAGES && rows.iter().all(|row| row["title"].as_str().unwrap().contains("herons")));
    // What is too long for a page says so.
    let page = ask(&served.application, "GET", &path(COLUMNS, "html"), &[]);
    let text = String::from_utf8(page.body).unwrap();
    assert!(page.status == 400 && text.contains("this answer is too long"), "{} {text}", page.status);
}

#[test]
fn a_long_record_is_read_as_far_as_it_is_asked_for() {
    let archive = archive(LONG_BYTES);
    let served = served(&archive);
    let get = |path: &str, range: Option<&str>| {
        let range = range.map(|range| format!("Range: bytes={range}"));
        let fields: Vec<&str> = range.iter().map(String::as_str).collect();
        ask(&served.replay, "GET", path, &fields)
    };
    for name in ["plain", "chunked", "coded"] {
        for modifier in ["id_", "oe_"] {
            let path = format!("/web/20240101000000{modifier}/{LONG}{name}");
            for (range, from, count) in [
                ("0-0", 0, 1),
                ("17000001-17000100", 17_000_001, 100),
                ("-9", LONG_BYTES - 9, 9),
                ("4194300-4194310", 4_194_300, 11),
            ] {
                let part = get(&path, Some(range));
                assert_eq!(part.status, 206, "{path}");
                let stated = format!("bytes {from}-{}/{LONG_BYTES}", from + count - 1);
                assert_eq!(part.get("content-range"), Some(&*stated), "{path}");
                assert_eq!(part.body, long(from, count), "{path}");
            }
            assert_eq!(get(&path, Some(&format!("{LONG_BYTES}-"))).status, 416);
            let head = ask(&served.replay, "HEAD", &path, &["Range: bytes=0-0"]);
            assert_eq!((head.status, head.body.len()), (200, 0));
            let length = (name != "chunked").then(|| LONG_BYTES.to_string());
            assert_eq!(head.get("content-length"), length.as_deref(), "{path}");
            // What says that it is coded and is not is shown without the coding.
            let coding = (name == "coded" && modifier == "id_").then_some("gzip");
            assert_eq!(head.get("content-encoding"), coding, "{path}");
        }
    }
    let path = format!("/web/20240101000000id_/{LONG}plain");
    assert!(get(&path, None).body == long(0, LONG_BYTES), "the whole body");
    let got = get(&format!("/warc/20240101000000/{LONG}plain"), None);
    let again = Archive::new();
    import(&again, &[("again.warc.gz", got.content())]);
    assert_eq!(again.verify(), 1);

    // Many at once, of whom some never read.
    let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", served.replay);
    let clients = unread(&served.replay, &request, 60, 1);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(get(&path, Some("0-0")).status, 206));
        }
    });
    thread::sleep(Duration::from_secs(2));
    drop(clients);
    println!("{} MiB", peak(&served));
    assert!(peak(&served) < MEMORY_MIB, "{} MiB", peak(&served));
}

/// An archive of one long record: a video of this many bytes.
fn archive_of_a_video(bytes: usize) -> Archive {
    let archive = Archive::new();
    let body = "HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n\r\n".to_owned() + &"x".repeat(bytes);
    import(
        &archive,
        &[("a.warc", answer("urn:test:1", "http://a.test/", "2024-01-01T00:00:00Z", &[], &body))],
    );
    archive
}

#[test]
fn a_node_that_sends_a_long_record_does_not_read_it_whole() {
    const BYTES: u64 = 256 << 20;
    let archive = archive_of_a_video(BYTES as usize);
    let served = served(&archive);
    let from = format!("http://{}/", served.application);
    for (format, name, bytes_min) in [("warc", "all.warc", BYTES), ("parquet", "all.parquet", 1)] {
        let output = archive.folder().join(name);
        let mut export = Command::new(env!("CARGO_BIN_EXE_archive"));
        export.args(["export", format, "--archive", &from, "--output"]).arg(&output);
        start(&mut export).wait().succeeded();
        assert!(std::fs::metadata(&output).unwrap().len() > bytes_min, "{name}");
    }
    assert!(peak(&served) < (BYTES >> 20), "{} MiB", peak(&served));
}

#[test]
fn an_export_without_room_for_a_long_record_says_so_and_blames_no_record() {
    let archive = archive_of_a_video(LONG_BYTES);
    let small = archive.folder().join("small");
    let Some(_disk) = SmallDisk::mount(small.clone(), "size=4m") else { return };
    let output = archive.folder().join("all.parquet");
    let mut export = archive.command("export");
    export.env("TMPDIR", &small).arg("parquet").arg("--output").arg(&output);
    let says = format!("{}: No space left on device", small.display());
    start(&mut export).wait().refused(1, &[&says]);
}

#[test]
fn who_takes_a_byte_now_and_then_is_dropped() {
    let archive = archive_of_a_video(16 << 20);
    let served = served(&archive);
    let before = connections(&served);
    let request =
        format!("GET /web/20240101000000id_/http://a.test/ HTTP/1.1\r\nHost: {}\r\n\r\n", served.replay);
    let mut client = TcpStream::connect(&served.replay).unwrap();
    client.write_all(request.as_bytes()).unwrap();
    let began = Instant::now();
    // What has arrived can still be read afterwards.
    while began.elapsed() < Duration::from_secs(5) || connections(&served) > before {
        client.read_exact(&mut [0; 16]).unwrap();
        assert!(began.elapsed() < PATIENCE);
        thread::sleep(Duration::from_secs(1));
    }
}
